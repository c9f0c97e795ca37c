"""The command line."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from memplane.client import MemplaneClientError
from memplane.domain.errors import MemplaneError
from memplane.entrypoints.cli.admin import (
    audit,
    checkpoints,
    doctor,
    jobs,
    keys,
    reembed,
    serve,
    setup,
    tenants,
    transfer,
    worker,
)
from memplane.entrypoints.cli.bench import bench_app
from memplane.entrypoints.cli.commands import (
    conflicts,
    consents,
    conversations,
    entities,
    erasure,
    exports,
    feedback,
    imports,
    inspection,
    memory,
    policy,
    quotas,
    recovery,
    reverts,
    tombstones,
    tracking,
    users,
)
from memplane.entrypoints.cli.demo.command import demo
from memplane.entrypoints.cli.options import settings_of
from memplane.entrypoints.cli.output import EXIT_CODES, report, report_unexpected

app = typer.Typer(
    name="memplane", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, epilog=EXIT_CODES
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memplane {version('memplane')}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", help="Say which version this is.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """Memplane: the memory plane for teams of AI agents."""


_SERVER, _MEMORY = "Server", "Memory, over HTTP"
_INSPECTION, _FEEDBACK = "One memory, explained", "One memory, put right"
_USER = "All of a user"
_ENTITIES, _CONSENT = "Whom and what memories mention", "The profile, and consent to its changes"
for _command in (
    serve.serve,
    worker.worker,
    setup.init,
    setup.migrate,
    transfer.convert,
    transfer.backup,
    doctor.doctor,
):
    app.command(rich_help_panel=_SERVER)(_command)
app.add_typer(keys.app, rich_help_panel=_SERVER)
app.add_typer(tenants.app, rich_help_panel=_SERVER)
app.add_typer(checkpoints.app, rich_help_panel=_SERVER)
app.add_typer(policy.app, rich_help_panel=_SERVER)
app.add_typer(jobs.app, rich_help_panel=_SERVER)
app.add_typer(reembed.app, rich_help_panel=_SERVER)
app.add_typer(audit.app, rich_help_panel=_SERVER)
app.command("gc", rich_help_panel=_SERVER)(jobs.gc)
app.command(rich_help_panel=_SERVER)(quotas.quotas)
for _panel, _commands in (
    (_MEMORY, {**memory.COMMANDS, **conversations.COMMANDS, **tracking.COMMANDS}),
    (_INSPECTION, inspection.COMMANDS),
    (_FEEDBACK, {**feedback.COMMANDS, **recovery.COMMANDS, **reverts.COMMANDS, **erasure.COMMANDS}),
    (_ENTITIES, entities.COMMANDS),
):
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel)(_command)
app.add_typer(users.app, rich_help_panel=_USER)
app.command("export", rich_help_panel=_USER)(exports.export)
app.command("import", rich_help_panel=_USER)(imports.take_in)
app.add_typer(conflicts.app, rich_help_panel=_CONSENT)
app.add_typer(consents.app, rich_help_panel=_CONSENT)
app.add_typer(tombstones.app, rich_help_panel=_CONSENT)
app.command("profile", rich_help_panel=_CONSENT)(consents.profile)
app.command("time-zone", rich_help_panel=_CONSENT)(consents.time_zone)
app.command(rich_help_panel="Getting to know it")(demo)
app.add_typer(bench_app, name="bench", rich_help_panel="Getting to know it")


def main() -> None:
    """Run the command line."""
    try:
        app()
    except (MemplaneError, MemplaneClientError, OSError) as error:
        sys.exit(report(error))
    except Exception as error:  # noqa: BLE001 - the last resort: one line, and the rest on request
        sys.exit(report_unexpected(error, trace=_wants_trace()))


def _wants_trace() -> bool:
    try:
        return settings_of().log_level == "DEBUG"
    except MemplaneError:
        return False
