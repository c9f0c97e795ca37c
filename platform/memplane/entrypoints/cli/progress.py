"""A bar that shows how far a long command has come, on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class ProgressBar:
    """A bar of lines; call it with how many are done."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task("lines", total=total)

    def __call__(self, lines: int) -> None:
        """Show that so many are done."""
        self._progress.update(self._task, completed=lines)


@contextmanager
def bar(total: int) -> Iterator[ProgressBar]:
    """Show a bar while something is at work."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        yield ProgressBar(progress, total)
