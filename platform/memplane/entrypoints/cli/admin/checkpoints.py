"""`memplane checkpoints`: taken over from other savers, and pruned, directly on the database."""

import re
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from memplane.domain.errors import SettingsError
from memplane.domain.identity.principal import ALL, KeyScope, Principal
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.cli.options import Data, Storage, settings_of
from memplane.entrypoints.cli.output import ExitCode, Json, add, console, plain, show, table

if TYPE_CHECKING:  # the database, and LangGraph, which help does not wait for
    from memplane.adapters.langgraph.migration import MigratedThread
    from memplane.bootstrap import Application

app = typer.Typer(name="checkpoints", no_args_is_help=True, help="Checkpoints of LangGraph.")

Tenant = Annotated[str, typer.Option(help="The tenant.")]
DEFAULT_TENANT = "default"
_TYPE = re.compile(r"\A([\w.]+):(\w+)")


def caller(tenant: str) -> Principal:
    """Who works on the checkpoints of all users of a tenant from the command line."""
    return Principal(
        tenant, None, Trust.FULL, frozenset({KeyScope.CHECKPOINT}), "command-line", act_for=frozenset({ALL})
    )


@app.command()
def migrate(  # noqa: PLR0913, PLR0917 - the options of a command
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="SOURCE",
            help="The file of SqliteSaver, an export of InMemorySaver, or the postgresql:// address of PostgresSaver.",
        ),
    ],
    user: Annotated[str | None, typer.Option(help="The user of threads whose checkpoints name none.")] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", help="A type that graphs keep, as module:Class; several times.")
    ] = None,
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Take over the threads of another saver, and compare each with its source. The source is only read.

    Run again, it compares what is there and copies what is missing; an interrupted run goes on where it stopped.
    """
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not need

    try:
        from memplane.adapters.langgraph.migration import CheckpointMigration  # noqa: PLC0415 - an extra
        from memplane.adapters.langgraph.postgres_source import (  # noqa: PLC0415 - an extra
            address,
            is_database,
            threads_in_database,
        )
        from memplane.adapters.langgraph.serializer import StrictSerializer  # noqa: PLC0415 - an extra
        from memplane.adapters.langgraph.sources import threads_in  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise SettingsError(f"this needs LangGraph ({error}): pip install 'memplane[langgraph]'") from error
    serde = StrictSerializer([_type(each) for each in types or ()])

    def told(thread: "MigratedThread") -> None:
        if not json:
            console().print(plain(f"{thread.thread_id}: {thread.fate}", "dim"))

    async def work(application: "Application") -> "list[MigratedThread]":
        await application.ensure_tenant(tenant)
        migration = CheckpointMigration(application.checkpoints, caller(tenant), serde, user)
        threads = threads_in_database(source, serde) if is_database(source) else threads_in(Path(source), serde)
        return await migration.run(threads, told)

    done = on_database(settings_of(data=data, storage=storage), work)
    _show(address(source), done, as_json=json)
    if any(thread.digest is None for thread in done):
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def prune(
    keep: Annotated[int, typer.Option(min=1, help="So many of the newest of each namespace stay.")],
    older_than: Annotated[float, typer.Option(min=0, help="Days; whatever is younger stays too.")],
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Delete old checkpoints of every thread; never a head, nor what a kept one is rebuilt from."""
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not need

    done = on_database(
        settings_of(data=data, storage=storage),
        lambda application: application.pruning(tenant, keep, timedelta(days=older_than)),
    )
    show(done, plain(f"{done.checkpoints} checkpoints of {done.threads} threads deleted."), as_json=json)


@app.command()
def erase(
    user: Annotated[str, typer.Argument(help="The user.")],
    tenant: Tenant = DEFAULT_TENANT,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Erase every checkpoint of a user, in all threads. End the user's runs first: one that goes on begins anew."""
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not need

    done = on_database(
        settings_of(data=data, storage=storage),
        lambda application: application.checkpoints.erase(caller(tenant), user),
    )
    rows = ", ".join(f"{count} {name}" for name, count in done.items())
    show({"user_id": user, "erased": done}, plain(f"Erased of {user}: {rows}."), as_json=json)


def _type(name: str) -> type:
    """A type by its name.

    Raises:
        typer.BadParameter: there is none.
    """
    found = _TYPE.fullmatch(name)
    if found is None:
        raise typer.BadParameter(f"'{name}': write module:Class")
    try:
        kind = getattr(import_module(found[1]), found[2])
    except (ImportError, AttributeError) as error:
        raise typer.BadParameter(f"'{name}': {error}") from error
    if not isinstance(kind, type):
        raise typer.BadParameter(f"'{name}' is no class")
    return kind


def _show(source: str, done: "list[MigratedThread]", *, as_json: bool) -> None:
    rows = table("thread", "user", "checkpoints", "writes", "", "")
    for each in done:
        fate = Text(str(each.fate), style="green" if each.digest else "bold red")
        add(rows, each.thread_id, each.user_id, each.checkpoints, each.writes, fate, each.why)
    equal = [each for each in done if each.digest]
    told = f"{len(equal)} of {len(done)} threads of {source} are here, each equal to its source."
    document = {"ok": len(equal) == len(done), "source": source, "threads": done}
    show(document, rows, plain(told), as_json=as_json)
