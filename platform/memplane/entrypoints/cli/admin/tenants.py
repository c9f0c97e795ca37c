"""`memplane tenants`: a tenant exported and removed as a whole, directly on the database."""

import asyncio
import getpass
import json as jsonlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from memplane.domain.errors import InvalidRequest, NotSupported, SettingsError
from memplane.entrypoints.cli.confirmation import Yes, require_terminal
from memplane.entrypoints.cli.options import Data, Storage, settings_of
from memplane.entrypoints.cli.output import ExitCode, Json, add, plain, show, table
from memplane.settings import Settings

if TYPE_CHECKING:  # the commands load the database when they run, not when their help is shown
    from memplane.adapters.conversion.conversion import Side
    from memplane.adapters.postgres.tenant_removal import Progress as Removing
    from memplane.adapters.postgres.tenant_removal import Removal, RemoveTenant

app = typer.Typer(name="tenants", no_args_is_help=True, help="A tenant as a whole: its export, and its removal.")
_Tenant = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant.")]


@app.command()
def export(
    tenant: _Tenant,
    *,
    out: Annotated[Path, typer.Option(help="The folder; it must be new or empty.")],
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Export every user of a tenant, and its other tables, to a folder with a manifest of counts and hashes.

    `memplane import` takes each file of its folder `users`.
    """
    from memplane.entrypoints.cli.admin.database import on_database, storage_found  # noqa: PLC0415 - the database, which help does not wait for
    from memplane.entrypoints.cli.admin.tenant_export import export_tenant  # noqa: PLC0415 - the database, which help does not wait for

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise typer.BadParameter(f"{out} is there already and not an empty folder")
    settings = storage_found(settings_of(data=data, storage=storage))
    found = on_database(settings, lambda application: export_tenant(application, settings, tenant, out))
    rows = table("what", "records")
    for name, count in sorted({**found["counts"], **found["tables"]}.items()):
        add(rows, name.replace("_", " "), count)
    show(found, rows, plain(f"{found['users']} users of '{tenant}' are in {out}"), as_json=json)
    if found["missing"]:
        missing = ", ".join(f"{count} {name}" for name, count in found["missing"].items())
        typer.echo(
            f"not exported: {missing}. Their categories are not in the policy, or the tenant was written to meanwhile",
            err=True,
        )
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def remove(  # noqa: PLR0913 - one argument for each option
    tenant: Annotated[str | None, typer.Argument(metavar="TENANT", help="The tenant.")] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted, and change nothing.")] = False,
    yes: Yes = False,
    receipt: Annotated[Path | None, typer.Option(help="Write the receipt to a new file.")] = None,
    by: Annotated[str | None, typer.Option(help="Who removes it.", show_default="the name of the login")] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="After a backup was restored: remove again what was removed since.")
    ] = False,
    receipts: Annotated[
        list[Path] | None,
        typer.Option(help="A ledger or receipt to replay; again for several. Without: the server's ledger."),
    ] = None,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Remove a tenant for good: users, memories, turns, keys, history, everything. Its name is not used again.

    As the schema's owner, while servers run. A removal that was interrupted goes on when it is asked for again.
    """
    if (tenant is None) != replay:
        raise typer.BadParameter("name a tenant, or --replay")
    if receipt is not None and receipt.exists():
        raise typer.BadParameter(f"{receipt} is there already: name a new file")
    settings = settings_of(data=data, storage=storage)
    if tenant is None:
        _replay(settings, receipts or [], as_json=json)
        return
    with ExitStack() as cleanup:
        removing = _removing(settings, tenant, cleanup, unnoted=dry_run or receipt is not None)
        actor = by or _login()
        if dry_run:
            _show(removing.preview(actor), "Nothing was deleted: this is what there is.", as_json=json)
            return
        if require_terminal(yes=yes):
            _ask(tenant)
        with _progress(shown=not json) as told:
            done = removing.run(actor, told)
    if receipt is not None:
        _write(receipt, done)
    _show(done, f"The tenant '{tenant}' is removed. Receipt {done.id}, history head {done.head}", as_json=json)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "operator"


def _ask(tenant: str) -> None:
    """Have the name typed again at the terminal."""
    told = f"All of the tenant '{tenant}' will be deleted, and this cannot be undone. Type its name to go on"
    if typer.prompt(told, err=True) != tenant:
        raise typer.Abort


def _replay(settings: Settings, files: list[Path], *, as_json: bool) -> None:
    from memplane.adapters.files.erasure_ledger import read_ledger  # noqa: PLC0415 - with the database
    from memplane.adapters.postgres.tenant_removal import removal_of  # noqa: PLC0415 - with the database
    from memplane.application.erasure.erasure_replay import TENANT_REMOVAL  # noqa: PLC0415 - with the database
    from memplane.bootstrap import ledger_of  # noqa: PLC0415 - the database, which help does not wait for

    if not files:
        own = ledger_of(settings)
        if own is None:
            raise SettingsError("no ledger is named: give it with --receipts FILE or MEMPLANE_ERASURE_LEDGER")
        files = [own]
    noted: dict[str, Removal] = {}
    for entry in (entry for file in files for entry in read_ledger(file)):
        if entry["type"] == TENANT_REMOVAL:
            try:
                noted[entry["tenant"]] = removal_of(entry)
            except (KeyError, TypeError, ValueError) as error:
                raise InvalidRequest(f"a line of the ledger is not whole: {error}") from error
    found: list[dict[str, object]] = []
    for tenant, removal in noted.items():
        with ExitStack() as cleanup, _progress(shown=not as_json) as told:
            done = _removing(settings, tenant, cleanup, unnoted=True).replay(removal, told)
        outcome = "known" if done is None else "removed" if done.counts else "absent"
        rows = 0 if done is None else sum(done.counts.values())
        found.append({"tenant": tenant, "receipt": removal.id, "outcome": outcome, "rows": rows})
    shown = table("tenant", "receipt", "outcome", "rows")
    for each in found:
        add(shown, *each.values())
    show({"items": found}, shown, as_json=as_json)


def _removing(settings: Settings, tenant: str, cleanup: ExitStack, *, unnoted: bool) -> "RemoveTenant":
    """What removes a tenant.

    Args:
        settings: which database.
        tenant: the tenant.
        cleanup: disconnects.
        unnoted: whether it may be removed without a ledger.

    Raises:
        NotSupported: the database, or the data folder, holds this one tenant.
        SettingsError: the owner's role or the ledger is not named.
    """
    from memplane.adapters.files.erasure_ledger import LedgerFile  # noqa: PLC0415 - with the database
    from memplane.adapters.postgres.tenant_removal import RemoveTenant  # noqa: PLC0415 - with the database
    from memplane.bootstrap import ledger_of, now  # noqa: PLC0415 - the database, which help does not wait for

    side = _owner_side(settings, tenant, cleanup)
    path = ledger_of(settings)
    if path is None and not unnoted:
        raise SettingsError(
            "no ledger is named, and a restored backup would bring the tenant back: set MEMPLANE_ERASURE_LEDGER, or "
            "keep the receipt with --receipt FILE"
        )

    def note(entry: Mapping[str, object]) -> None:
        if path is not None:
            asyncio.run(LedgerFile(path).note([entry]))

    return RemoveTenant(side, note, now)


def _owner_side(settings: Settings, tenant: str, cleanup: ExitStack) -> "Side":
    from memplane.adapters.conversion.conversion_sides import postgres_side  # noqa: PLC0415 - with the database
    from memplane.bootstrap import DEFAULT_TENANT, SQLITE_FILE  # noqa: PLC0415 - the database, which help does not wait for
    from memplane.entrypoints.cli.admin.database import require_database, storage_found  # noqa: PLC0415 - with the database

    settings = storage_found(settings)
    if settings.storage == "sqlite":
        file = settings.data / SQLITE_FILE
        raise NotSupported(
            f"a SQLite file holds one tenant: stop its server and delete {file} with {file.name}-wal and "
            f"{file.name}-shm; `memplane tenants export` exports it before",
        )
    if settings.migration_url is not None:
        return postgres_side(settings.migration_url.get_secret_value(), cleanup, tenant, None)
    if settings.database_url is not None:
        raise SettingsError(
            "MEMPLANE_DATABASE_URL names the application's role, which may not delete history: set "
            "MEMPLANE_MIGRATION_URL to the URL of the schema's owner"
        )
    require_database(settings)
    if tenant == DEFAULT_TENANT:
        raise NotSupported(
            f"the server of this data folder serves the tenant '{tenant}': stop it and delete {settings.data}; "
            "`memplane tenants export` exports it before"
        )
    return postgres_side(str(settings.data), cleanup, tenant, None)


def _write(path: Path, done: "Removal") -> None:
    """The receipt as one line, which `--receipts` takes."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(f"{jsonlib.dumps(done.note())}\n")
        file.flush()
        os.fsync(file.fileno())


def _show(done: "Removal", told: str, *, as_json: bool) -> None:
    document: dict[str, Any] = done.note() | {"receipt": done.id}
    del document["type"], document["subject"]
    rows = table("table", "rows")
    for name, count in sorted(done.counts.items()):
        add(rows, name.replace("_", " "), count)
    show(document, rows, plain(told), as_json=as_json)


@contextmanager
def _progress(*, shown: bool) -> Iterator["Removing"]:
    """One line that counts, on standard error."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"))
    with Progress(
        *columns, console=Console(stderr=True), disable=not (shown and sys.stderr.isatty()), transient=True
    ) as progress:
        line = progress.add_task("waiting for requests under way", total=None)
        told: Callable[[str, int], None] = lambda name, rows: progress.update(line, description=f"{name}: {rows} rows")  # noqa: E731 - one line, used once
        yield told
