"""What a tenant has beside what the exports of its users carry: tables as lines of JSON, one object for each row."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from pydantic_core import to_json

from memplane.adapters.conversion.conversion import Side
from memplane.adapters.sql.schema import tables

IN_USER_EXPORTS = frozenset(
    {
        "memories", "turns", "relations", "entities", "entity_aliases", "memory_entities", "consent_proposals",
        "user_context",
    }
)  # fmt: skip
"""Tables whose rows the export of a user has as records."""
LEFT_OUT = {
    "tenants": "the name alone",
    "memory_sources": "derived: the sources of memories",
    "user_usage": "derived: what is stored of each user, counted",
    "metadata": "the service's own state, with the secret of the hashes of what was erased",
    "idempotency_keys": "answers that are kept for a day, of what is exported anyway",
}
SECRETS = {"api_keys": frozenset({"secret_hash"})}
_PAGE = 500


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table that was written: its file, and how many rows and bytes that has."""

    table: str
    file: Path
    rows: int
    bytes: int
    sha256: str


def write_tables(side: Side, folder: Path) -> list[TableFile]:
    """Write the other tables of a side's tenant, as one state of the database, to files of a folder; empty ones too.

    Raises:
        StorageUnavailable, StorageError: the database does not answer, or refuses.
        OSError: a file cannot be written.
    """
    wanted = [each for each in tables.metadata.sorted_tables if each.name not in {*IN_USER_EXPORTS, *LEFT_OUT}]
    with side.transaction(snapshot=True) as connection:
        return [_written(connection, side.tenant, table, folder / f"{table.name}.jsonl") for table in wanted]


def _written(connection: sa.Connection, tenant: str, table: sa.Table, path: Path) -> TableFile:
    digest, rows, size = hashlib.sha256(), 0, 0
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        for line in _lines(connection, tenant, table):
            file.write(line)
            digest.update(line)
            rows, size = rows + 1, size + len(line)
    return TableFile(table.name, path, rows, size, digest.hexdigest())


def _lines(connection: sa.Connection, tenant: str, table: sa.Table) -> Iterator[bytes]:
    hidden = SECRETS.get(table.name, frozenset()) | {"tenant_id"}
    columns = [column for column in table.columns if column.name not in hidden]
    statement = sa.select(*columns).where(table.c.tenant_id == tenant).order_by(*table.primary_key.columns)
    for row in connection.execute(statement.execution_options(yield_per=_PAGE)).mappings():
        yield to_json(dict(row), bytes_mode="hex") + b"\n"
