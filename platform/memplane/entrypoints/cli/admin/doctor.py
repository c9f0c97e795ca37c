"""`memplane doctor`: whether everything that the server needs is there, and what to do where it is not."""

from contextlib import ExitStack

import typer
from rich.text import Text

from memplane.entrypoints.cli.checks.check_results import Status
from memplane.entrypoints.cli.options import Data, Storage, settings_of
from memplane.entrypoints.cli.output import ExitCode, Json, add, show, table


def doctor(data: Data = None, storage: Storage = None, json: Json = False) -> None:
    """Check the data folder, the database, the policy, the embedding model and the keys; say what to do."""
    from memplane.entrypoints.cli.admin.database import storage_found  # noqa: PLC0415 - opens databases, as few commands do
    from memplane.entrypoints.cli.checks.server_checks import Examination  # noqa: PLC0415 - everything, which no other command waits for

    settings = storage_found(settings_of(data=data, storage=storage))
    with ExitStack() as cleanup:
        findings = list(Examination(settings, cleanup).findings())
    healthy = not any(finding.status is Status.PROBLEM for finding in findings)
    rows = table("check", "", "found", "what to do")
    styles = {Status.OK: "green", Status.WARNING: "yellow", Status.PROBLEM: "bold red", Status.SKIPPED: "dim"}
    for each in findings:
        add(rows, each.check, Text(each.status, style=styles[each.status]), each.found, each.advice)
    show({"ok": healthy, "checks": findings}, rows, as_json=json)
    raise typer.Exit(ExitCode.OK if healthy else ExitCode.FAILED)
