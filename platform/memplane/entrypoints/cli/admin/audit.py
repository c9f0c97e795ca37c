"""`memplane audit`: the head of the chain over the history, and its verification, directly on the database."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from memplane.entrypoints.cli.admin.jobs import DEFAULT_TENANT, Tenant
from memplane.entrypoints.cli.options import Data, Storage, settings_of
from memplane.entrypoints.cli.output import ExitCode, Json, plain, show

if TYPE_CHECKING:  # the commands load the database when they run, not when their help is shown
    from memplane.application.operations.audit import VerificationResult
    from memplane.application.operations.audit_chain_ports import SealState
    from memplane.bootstrap import Application

app = typer.Typer(name="audit", no_args_is_help=True, help="The chain over the history: its head, and its proof.")


@app.command()
def head(*, tenant: Tenant = DEFAULT_TENANT, data: Data = None, storage: Storage = None, json: Json = False) -> None:
    """Print the head of the chain. Keep it where nobody who can change the database can."""
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    async def work(application: "Application") -> "SealState":
        return await application.audit.state(tenant)

    found = on_database(settings_of(data=data, storage=storage), work)
    document = {
        "head": str(found.head), "sealed": found.head.position, "unsealed": found.unsealed,
        "sealed_at": found.sealed_at,
    }  # fmt: skip
    show(document, plain(str(found.head)), as_json=json)


@app.command()
def verify(
    *,
    tenant: Tenant = DEFAULT_TENANT,
    anchor: Annotated[str | None, typer.Option(help="A head that was written down before.")] = None,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Verify the whole chain: tell the first entry that was edited, deleted, moved or cut off, and exit with 1."""
    from memplane.domain.privacy.audit_chain import Head  # noqa: PLC0415 - with the database
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    written = None if anchor is None else Head.parse(anchor)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("verified", total=None)

        async def work(application: "Application") -> "VerificationResult":
            return await application.audit(
                tenant, written, progress=lambda done, all_: bar.update(task, completed=done, total=all_)
            )

        found = on_database(settings_of(data=data, storage=storage), work)
    wrong = found.found
    document = {
        "ok": wrong is None, "head": str(found.state.head), "sealed": found.state.head.position,
        "unsealed": found.state.unsealed, "anchored": written is not None,
        "fault": wrong and {"fault": wrong.fault.value, "position": wrong.position, "entry": wrong.entry},
    }  # fmt: skip
    show(document, plain(_told(found, anchored=written is not None)), as_json=json)
    if wrong is not None:
        raise typer.Exit(ExitCode.FAILED)


def _told(found: "VerificationResult", *, anchored: bool) -> str:
    wrong = found.found
    if wrong is not None:
        named = f", entry {wrong.entry}" if wrong.entry else ""
        return f"The history was tampered with: {wrong.fault.value} at position {wrong.position}{named}."
    told = f"{found.entries} entries are as they were sealed; {found.state.unsealed} are not sealed yet."
    return told if anchored else f"{told} Without --anchor a chain that was cut off or written anew is not noticed."
