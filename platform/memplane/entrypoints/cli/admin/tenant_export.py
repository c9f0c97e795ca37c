"""What `memplane tenants export` writes: a file for each user, one for each other table, and a manifest."""

import asyncio
import hashlib
import json
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from pydantic_core import from_json, to_json

from memplane.adapters.conversion.conversion import Side
from memplane.adapters.conversion.conversion_sides import FILE, file_side
from memplane.adapters.files.tenant_tables import LEFT_OUT, TableFile, write_tables
from memplane.adapters.sql.schema import tables
from memplane.application.transfer.exports import ExportStream
from memplane.bootstrap import DEFAULT_TENANT, Application, now, prepare
from memplane.domain.errors import RecordNotFound
from memplane.domain.identity.principal import KeyScope, Principal, Reach
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.export_lines import export_lines
from memplane.settings import Settings

FORMAT, VERSION = "memplane-tenant-export", 1
MANIFEST = "manifest.json"
_OPERATOR = "operator"
_CHECKED = {"memories": "memory", "turns": "turn"}
"""Tables of which every row must be in a user's file, and what a line calls it."""


async def export_tenant(application: Application, settings: Settings, tenant: str, out: Path) -> dict[str, Any]:
    """Export a tenant to a folder; the manifest is written last.

    Returns:
        How many users, records and rows there are, and what is missing of the tables that are checked.

    Raises:
        NotFound: there is no such tenant.
        StorageError: the database does not answer, or refuses.
        OSError: a file cannot be written.
    """
    if not await application.storage.has_tenant(tenant):
        raise RecordNotFound(f"there is no tenant '{tenant}'")
    for name in ("users", "tables"):
        (out / name).mkdir(parents=True, mode=0o700)
    names = sorted(await application.storage.write(Reach(tenant), lambda uow: uow.erasures.users()))
    principal = Principal(tenant, None, Trust.FULL, frozenset(KeyScope), _OPERATOR)
    users = [
        await _user(application, await application.exports.begin(principal, user or None), out, number)
        for number, user in enumerate(names, 1)
    ]
    written, held = await asyncio.to_thread(_others, settings, tenant, out / "tables")
    counts: Counter[str] = sum((Counter(each["counts"]) for each in users), Counter())
    document = {
        "format": FORMAT, "version": VERSION, "tenant": tenant, "exported_at": now(),
        "policy": application.policies.current.digest, "counts": dict(counts), "users": users,
        "tables": [
            {"table": each.table, "file": str(each.file.relative_to(out)), "rows": each.rows, "bytes": each.bytes,
             "sha256": each.sha256}
            for each in written
        ],
        "left_out": LEFT_OUT,
    }  # fmt: skip
    await asyncio.to_thread(_keep, out / MANIFEST, document)
    missing = {name: rows - counts[_CHECKED[name]] for name, rows in held.items() if rows != counts[_CHECKED[name]]}
    return {
        "tenant": tenant, "folder": out, "users": len(users), "counts": dict(counts),
        "tables": {each.table: each.rows for each in written}, "missing": missing,
    }  # fmt: skip


async def _user(application: Application, export: ExportStream, out: Path, number: int) -> dict[str, Any]:
    """Write the export of a user, as `GET /v1/users/{id}/export` sends it; its entry of the manifest."""
    path = out / "users" / f"{number:06}.jsonl"
    digest, last = hashlib.sha256(), b""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        async with application.exports.place(), aclosing(export_lines(application.exports, export)) as lines:
            async for some in lines:
                await asyncio.to_thread(file.write, some)
                digest.update(some)
                last = some
        size = file.tell()
    return {
        "user": export.user_id, "file": str(path.relative_to(out)), "bytes": size, "sha256": digest.hexdigest(),
        "counts": from_json(last)["counts"],
    }  # fmt: skip


def _others(settings: Settings, tenant: str, folder: Path) -> tuple[Sequence[TableFile], dict[str, int]]:
    """Write the other tables; how many rows the checked ones have."""
    with ExitStack() as cleanup:
        side = _side(settings, tenant, cleanup)
        written = write_tables(side, folder)
        with side.transaction() as connection:
            held = {}
            for name in _CHECKED:
                each = tables.metadata.tables[name]
                count = sa.select(sa.func.count()).select_from(each).where(each.c.tenant_id == tenant)
                held[name] = connection.execute(count).scalar_one()
        return written, held


def _side(settings: Settings, tenant: str, cleanup: ExitStack) -> Side:
    prepared = prepare(settings)
    cleanup.callback(prepared.stop)
    if prepared.url.startswith(FILE):
        return file_side(prepared.url, cleanup, DEFAULT_TENANT, None)
    from memplane.adapters.postgres.provisioning import checked_engine  # noqa: PLC0415 - loaded when it is chosen

    engine = checked_engine(prepared.url)
    cleanup.callback(engine.dispose)
    return Side("the database", engine, tenant)


def _keep(path: Path, document: dict[str, Any]) -> None:
    part = path.with_name(f"{path.name}.part")
    plain = json.dumps(from_json(to_json(document)), indent=2, ensure_ascii=False)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(f"{plain}\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
