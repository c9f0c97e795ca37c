"""`memplane convert` and `memplane backup`: all that is remembered, in another place."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from memplane.entrypoints.cli.options import Data, Storage, settings_of
from memplane.entrypoints.cli.output import ExitCode, Json, add, plain, show, table

if TYPE_CHECKING:  # the database, which help does not wait for
    from memplane.adapters.conversion.conversion import ConversionResult, Told

_WHERE = "A SQLite file, a folder with an embedded PostgreSQL, or the URL of the owner of a PostgreSQL schema."


def convert(
    source: Annotated[str, typer.Option("--from", help=_WHERE)],
    target: Annotated[str, typer.Option("--to", help=_WHERE)],
    tenant: Annotated[
        str | None,
        typer.Option(help="The tenant on PostgreSQL's side; in a file it is the default one.", show_default="default"),
    ] = None,
    json: Json = False,
) -> None:
    """Copy everything from SQLite to PostgreSQL, or back, and compare both. Stop the servers of both first.

    The target has to be empty. A run that was interrupted goes on where it stopped when it is run again.
    """
    from memplane.entrypoints.cli.admin.copying import convert as run  # noqa: PLC0415 - the database, which help does not wait for

    settings = settings_of()
    with _progress(shown=not json) as told:
        done = run(source, target, tenant, settings.app_role, told)
    _show(done, as_json=json)
    if not done.equal:
        raise typer.Exit(ExitCode.FAILED)


def backup(
    file: Annotated[Path, typer.Argument(help="The copy; it must not be there yet.")],
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Copy the SQLite file of the data folder while a server runs. The copy is opened like the file itself."""
    from memplane.entrypoints.cli.admin.copying import backup as run  # noqa: PLC0415 - the database, which help does not wait for

    source = asyncio.run(run(settings_of(data=data, storage=storage), file))
    told = plain(f"{file} is a copy of {source}. To restore it, stop the server and put it in that file's place.")
    show({"source": source, "copy": file, "bytes": file.stat().st_size}, told, as_json=json)


@contextmanager
def _progress(*, shown: bool) -> Iterator["Told"]:
    """A bar for each table, on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not shown, transient=True) as progress:
        bars: dict[str, TaskID] = {}

        def told(name: str, done: int, rows: int) -> None:
            if name not in bars:
                bars[name] = progress.add_task(name, total=rows)
            progress.update(bars[name], completed=done)

        yield told


def _show(done: "ConversionResult", *, as_json: bool) -> None:
    rows = table("table", "copied", "source", "target", "")
    for each in done.tables:
        verdict = Text("equal", style="green") if each.equal else Text("DIFFERS", style="bold red")
        add(rows, each.table, each.copied, each.source_rows, each.target_rows, verdict)
    copied = sum(each.copied for each in done.tables)
    if done.equal:
        told = f"{done.source} and {done.target} hold the same; {copied} rows were copied now."
    else:
        told = (
            "The two differ: one of them was written to since the conversion began. Stop the servers of both, and "
            "convert again into an empty database."
        )
    document = {
        "ok": done.equal, "source": done.source, "target": done.target, "resumed": done.resumed, "copied": copied,
        "tables": [
            {"table": each.table, "copied": each.copied, "equal": each.equal,
             "source": {"rows": each.source_rows, "sha256": each.source_hash},
             "target": {"rows": each.target_rows, "sha256": each.target_hash}}
            for each in done.tables
        ],
    }  # fmt: skip
    show(document, rows, plain(told), as_json=as_json)
