"""`memplane erase`: a user erased over HTTP; erasures done again on a restored database."""

import json as jsonlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memplane.contracts.erasure import ErasureReceipt
from memplane.domain.errors import SettingsError
from memplane.entrypoints.cli.confirmation import Yes, require_terminal
from memplane.entrypoints.cli.options import DEFAULT_URL, AdminKey, Data, Storage, Url, settings_of
from memplane.entrypoints.cli.output import Json, add, plain, show, table
from memplane.entrypoints.cli.session import operating
from memplane.settings import Settings

if TYPE_CHECKING:  # the database, which help does not wait for
    from memplane.application.erasure.erasure_replay import ReplayResult
    from memplane.bootstrap import Application


def erase(  # noqa: PLR0913 - one argument for each option
    user: Annotated[str | None, typer.Argument(metavar="USER", help="Whom to erase.")] = None,
    *,
    yes: Yes = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be erased.")] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="After a backup was restored: do again what was erased since.")
    ] = False,
    save: Annotated[Path | None, typer.Option(help="Write all receipts of the database to a new ledger.")] = None,
    receipts: Annotated[
        list[Path] | None, typer.Option(help="A ledger to replay; again for several. Without: the server's own.")
    ] = None,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    data: Data = None,
    storage: Storage = None,
    json: Json = False,
) -> None:
    """Erase all that there is of a user, for good. What was said is refused afterwards, unless the person says it anew.

    With --replay on the database itself, its server stopped: erasures that a restored backup does not know.
    """
    if sum((user is not None, replay, save is not None)) != 1:
        raise typer.BadParameter("name a user, or --replay, or --save FILE")
    if replay:
        _replay(settings_of(data=data, storage=storage), receipts or [], as_json=json)
    elif save is not None:
        _save(settings_of(data=data, storage=storage), save, as_json=json)
    elif user is not None:
        if require_terminal(yes=yes or dry_run):
            _ask(user)
        with operating(url, key, None, data) as opened:
            done = opened.client.erase(user, confirm=None if dry_run else user, dry_run=dry_run)
            while not (done.finished or dry_run):
                done = opened.client.erase(user, confirm=user)
        _show(done, user, as_json=json)


def _ask(user: str) -> None:
    """Have the name typed again at the terminal."""
    told = f"All of '{user}' will be gone for good, and this cannot be undone. Type the name to go on"
    if typer.prompt(told, err=True) != user:
        raise typer.Abort


def _show(done: ErasureReceipt, user: str, *, as_json: bool) -> None:
    rows = table("what", "rows")
    for name, count in sorted(done.erased.items()):
        add(rows, name.replace("_", " "), count)
    told = "Nothing was erased yet: this is what there is." if done.receipt is None else f"Receipt {done.receipt}"
    nothing = [] if any(done.erased.values()) else [plain(f"Nothing is stored about '{user}': check the name.")]
    show(done, rows, *nothing, plain(told), as_json=as_json)


def _replay(settings: Settings, files: list[Path], *, as_json: bool) -> None:
    from memplane.adapters.files.erasure_ledger import read_ledger  # noqa: PLC0415 - with the database
    from memplane.bootstrap import ledger_of  # noqa: PLC0415 - the database, which help does not wait for
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    if not files:
        own = ledger_of(settings)
        if own is None:
            raise SettingsError("no ledger is named: give it with --receipts FILE or MEMPLANE_ERASURE_LEDGER")
        files = [own]
    entries = [entry for file in files for entry in read_ledger(file)]

    async def work(application: "Application") -> "list[ReplayResult]":
        return await application.replay(entries)

    found = on_database(settings, work)
    rows = table("tenant", "receipt", "outcome", "rows")
    for each in found:
        add(rows, each.tenant, each.receipt, each.outcome, sum(each.counts.values()))
    show({"items": found}, rows, as_json=as_json)


def _save(settings: Settings, file: Path, *, as_json: bool) -> None:
    from memplane.entrypoints.cli.admin.database import on_database  # noqa: PLC0415 - the database, which help does not wait for

    async def work(application: "Application") -> list[Mapping[str, object]]:
        tenants = await application.storage.tenants()
        return [entry for tenant in tenants for entry in await application.replay.ledger_entries(tenant)]

    entries = on_database(settings, work)
    with file.open("x", encoding="utf-8") as opened:
        file.chmod(0o600)
        opened.writelines(f"{jsonlib.dumps(dict(each))}\n" for each in entries)
    count = sum(each["type"] == "erasure" for each in entries)
    show({"file": file, "receipts": count}, plain(f"{count} receipts are in {file}."), as_json=as_json)


COMMANDS: Mapping[str, Callable[..., None]] = {"erase": erase}
