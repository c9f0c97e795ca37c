"""What the commands print: JSON for scripts, tables for people, one clear line for what went wrong; and exit codes."""

import sys
import traceback
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from enum import IntEnum
from typing import Annotated

import typer
from pydantic_core import to_json, to_jsonable_python
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from memplane.client import Invalid as InvalidCall
from memplane.client import MemplaneClientError, Unavailable
from memplane.domain.errors import (
    EmbeddedPostgresError,
    MemplaneError,
    QuotaExceeded,
    SettingsError,
    StorageUnavailable,
)
from memplane.domain.ranking.fencing import visible
from memplane.entrypoints.redaction import without_secrets

PLAIN_WIDTH = 160  # columns of a table that goes to a file or another program


class ExitCode(IntEnum):
    """What a command's exit code means."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_STARTED = 3
    NOT_REACHABLE = 4


EXIT_CODES = (
    "Exit codes: 0 done; 1 refused or failed; 2 wrong usage or settings; 3 the server could not start; "
    "4 the server or database cannot be reached; 130 interrupted."
)

HINTS: Mapping[str, str] = {
    "not_found": "check the id; `memplane why` tells the state of any that the agent may read; another agent: --agent",
    "scope_forbidden": "`memplane keys create --scope` makes a key that has it",
    "trust_too_low": "`memplane keys create --trust full` makes a key that may",
    "unauthenticated": "give a valid one with --key or MEMPLANE_KEY; `memplane keys list` shows which are valid",
    "unreachable": "start it with `memplane serve`, or name another with --url or MEMPLANE_URL",
    "value_rejected": "`memplane tombstones list` shows the verdicts that a key may lift",
    "version_conflict": "read it again with `memplane get`",
}
"""What to do on the command line about what a server answered, by code; a note on the error knows better."""

_as_json: ContextVar[bool] = ContextVar("as_json", default=False)


def _asked_for_json(value: bool) -> bool:
    _as_json.set(value)
    return value


Json = Annotated[
    bool, typer.Option("--json", help="Print JSON, on standard output alone.", callback=_asked_for_json, is_eager=True)
]


def show(document: object, *human: RenderableType, as_json: bool) -> None:
    """Print a result.

    Args:
        document: what `--json` prints: contract models, dataclasses, mappings.
        human: what people get instead, one below the other.
        as_json: which of the two.
    """
    if as_json:
        typer.echo(to_json(document, indent=2, by_alias=True))
        return
    screen = console()
    for each in human:
        screen.print(each)


def console() -> Console:
    """Standard output, for people: as wide as the terminal, and wide enough where there is none."""
    return Console(width=None if sys.stdout.isatty() else PLAIN_WIDTH, highlight=False)


def table(*columns: str, title: str | None = None) -> Table:
    """A table with a header."""
    made = Table(title=title, title_justify="left", header_style="bold", show_lines=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def add(to: Table, *cells: object) -> None:
    """A row of plain text: stored words are shown, never obeyed, whatever brackets or control characters they hold."""
    to.add_row(*(cell if isinstance(cell, Text) else plain(cell) for cell in cells))


def plain(value: object, style: str = "") -> Text:
    """A value as text; nothing for ``None``, a list by its items."""
    if value is None:
        return Text("")
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = ", ".join(str(each) for each in value)
    return Text(visible(str(value)), style=style)


def more(cursor: str | None) -> list[RenderableType]:
    """That a page is not the last one, and how to get the next."""
    return [] if cursor is None else [plain(f"There is more: --cursor {cursor}", "dim")]


def report(error: Exception, code: ExitCode | None = None) -> ExitCode:
    """Tell an error in one line on standard error, and with `--json` as a document on standard output.

    Args:
        error: what went wrong.
        code: the exit code, where the caller knows better than the error.

    Returns:
        The exit code.
    """
    name, told, extra = _parts(error)
    detail = without_secrets(told)
    hint = _hint(error, name)
    Console(stderr=True, soft_wrap=True, highlight=False).print(
        Text.assemble(
            ("memplane: ", "bold red"), f"{name}: ", plain(" ".join(detail.split())), f" ({hint})" if hint else ""
        )
    )
    if _as_json.get():
        problem = {"code": name, "detail": detail, **extra}
        typer.echo(to_json({"error": to_jsonable_python(problem, fallback=str)}, indent=2))
    return _exit_code(error) if code is None else code


def report_unexpected(error: Exception, *, trace: bool) -> ExitCode:
    """Tell an error that nobody expected; where it was raised only if asked for."""
    if trace:
        typer.echo(without_secrets("".join(traceback.format_exception(error))), err=True)
    detail = f"{type(error).__name__}: {error}"
    return report(MemplaneError(detail if trace else f"{detail} (MEMPLANE_LOG_LEVEL=DEBUG shows where)"))


def _hint(error: Exception, name: str) -> str | None:
    """What to do about an error: what the command noted on it, or what its code says."""
    if not isinstance(error, MemplaneClientError):
        return None
    notes: list[str] = getattr(error, "__notes__", [])
    return "; ".join(notes) or HINTS.get(name)


def _parts(error: Exception) -> tuple[str, str, dict[str, object]]:
    if isinstance(error, MemplaneError):
        return error.code, error.detail, dict(error.extra)
    if isinstance(error, MemplaneClientError):
        return error.code, error.detail, {**error.extra, "status": error.status}
    if isinstance(error, OSError):
        told = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
        return "system_error", told, {}
    return "internal_error", str(error), {}


def _exit_code(error: Exception) -> ExitCode:
    if isinstance(error, SettingsError) or (isinstance(error, InvalidCall) and error.status is None):
        return ExitCode.USAGE
    if isinstance(error, EmbeddedPostgresError):
        return ExitCode.NOT_STARTED
    if isinstance(error, Unavailable) and error.code == QuotaExceeded.code:  # trying again soon helps nobody
        return ExitCode.FAILED
    if isinstance(error, StorageUnavailable | Unavailable):
        return ExitCode.NOT_REACHABLE
    return ExitCode.FAILED
