"""`memplane export`: all that is known of a user, in a file that is whole or not there."""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from pydantic_core import from_json
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from memplane.entrypoints.cli.options import DEFAULT_URL, AdminKey, Data, Url, Within
from memplane.entrypoints.cli.output import Json, plain, show
from memplane.entrypoints.cli.session import operating

PART = ".part"


def export(  # noqa: PLR0913 - one argument for each option
    user: Annotated[str | None, typer.Argument(help="The user.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(help="The file; without it, standard output.")] = None,
    *,
    shared: Annotated[bool, typer.Option("--shared", help="What is about no user, in place of a user.")] = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Export all that is known of a user as lines of JSON, which `memplane import` takes.

    With the administrator's key. The file appears when all of it has come, readable by its owner alone.
    """
    if (user is None) is not shared:
        raise typer.BadParameter("name a user, or say --shared for what is about no user; not both")
    if json and out is None:
        raise typer.BadParameter("--json tells of a file: name one with --out")
    with operating(url, key, agent, data) as opened, _target(out) as file, _counting() as count:
        last = b""
        for some in opened.client.export(user, agent=opened.agent):
            file.write(some)
            count(some.count(b"\n"))
            last = some[some.rfind(b"\n", 0, -1) + 1 :]
        counts: Counter[str] = Counter(from_json(last)["counts"])
    if out is not None:
        told = ", ".join(f"{number} {name}" for name, number in counts.items()) or "nothing"
        document = {"user": user, "file": out, "bytes": out.stat().st_size, "counts": dict(counts)}
        show(
            document,
            plain(f"{out} has all that is {'shared' if user is None else f'known of {user}'}: {told}"),
            as_json=json,
        )


@contextmanager
def _target(out: Path | None) -> Iterator[BinaryIO]:
    """Where to write: a file that takes its name when it is whole, and is gone when it is not."""
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = out.with_name(out.name + PART)
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(out)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


class _Count:
    """Lines so far, on a terminal."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("lines", total=None)

    def __call__(self, lines: int) -> None:
        self._progress.advance(self._task, lines)


@contextmanager
def _counting() -> Iterator[_Count]:
    columns = (SpinnerColumn(), TextColumn("{task.completed:.0f} {task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        yield _Count(progress)
