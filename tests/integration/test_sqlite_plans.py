"""How SQLite looks up what a write needs: by the index that was made for it, however many memories a user has."""

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from memplane.adapters.sql.queries import read_statements, write_statements
from memplane.adapters.sql.scope import memories_in, turns_in
from memplane.adapters.sqlite import search
from memplane.adapters.sqlite.provisioning import migrate
from memplane.adapters.sqlite.storage import SqliteStorage
from memplane.application.transaction import UnitOfWork
from memplane.domain.identity.principal import Reach
from memplane.domain.memory.memory import MemoryType, Visibility
from memplane.domain.memory.scope import Filters, Scope
from support.plan_writes import WRITES

WHOLE = ("ix_memories_user", "ix_memories_scope", "ix_memories_recorded")
"""Indexes that lead through all memories of a user."""
SERVED = {
    "SAME_VALUE": {"uq_memories_value"},
    "SAME_NAME_OR_VALUE": {"uq_memories_value", "uq_memories_external", "sqlite_autoindex_memories_1"},
    "LAST_RECORDED": {"ix_memories_recorded"},
    "PAST_OF_NAME": {"ix_memories_external_past"},
    "REJECTED": {"ix_memories_scope"},
    "BURIED": {"sqlite_autoindex_tombstones_2"},
    "ANSWERED": {"sqlite_autoindex_idempotency_keys_1"},
    "RECENT": {"ix_thread_revision_recent"},
    "REVISION": {"sqlite_autoindex_thread_revision_1"},
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> sqlite3.Connection:
    path = tmp_path_factory.mktemp("plans") / "memplane.db"
    migrate(path)
    return sqlite3.connect(path)


def plan(file: sqlite3.Connection, statement: sa.Executable) -> list[str]:
    compiled = statement.compile(dialect=sqlite.dialect(paramstyle="named"))  # type: ignore[attr-defined]  # any statement
    values = {name: "x" if value is None else value for name, value in compiled.params.items()}
    return [row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {compiled.string}", values)]


def indexes(told: list[str]) -> set[str]:
    return {line.split("INDEX ", 1)[1].split(" ", 1)[0] for line in told if "INDEX " in line}


@pytest.mark.parametrize("name", SERVED)
def test_a_lookup_is_served_by_its_own_index(file: sqlite3.Connection, name: str) -> None:
    told = plan(file, getattr(write_statements, name))
    assert indexes(told) == SERVED[name], told
    assert not [line for line in told if line.startswith("SCAN")], told
    if name == "REJECTED":  # within a state of the user's, by every column that is asked for
        assert "state=? AND trust_state=? AND category=?" in told[0]


SCOPE = Scope(
    tenant="default",
    categories=("tasks", "goals"),
    visibilities=frozenset(Visibility),
    trust_levels=("full", "inner"),
    users=None,
    now=datetime(2026, 1, 1, tzinfo=UTC),
    turns=True,
    filters=Filters(user_id="ana"),
)


@pytest.mark.parametrize("source", [search._MEMORIES, search._TURNS], ids=["memories", "turns"])
def test_a_whole_scope_is_read_from_an_index_alone(file: sqlite3.Connection, source: search._Source) -> None:
    typed = replace(SCOPE, filters=replace(SCOPE.filters, types=(MemoryType.SEMANTIC,)))
    memories = source.table == "memories"
    found = memories_in(typed, search.SYNTAX, "u") if memories else turns_in(SCOPE, search.SYNTAX, "u")
    assert found is not None
    sql = search._SCOPE.format(table=source.table, versions=source.versions, expiry=source.expiry, scope=found.sql)
    told = [row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {sql}", search.SYNTAX.bind_values(found.values))]
    assert told[0].startswith("SEARCH u USING COVERING INDEX"), told


def test_an_or_would_lead_through_all_memories(file: sqlite3.Connection) -> None:
    m = write_statements.tables.memories.c
    condition = sa.or_(m.external_id == "x", m.value_hash == "x")
    told = plan(file, sa.select(m.id).where(m.tenant_id == "x", m.user_id == "x", condition))
    assert indexes(told) & set(WHOLE), told


def test_every_lookup_of_the_write_path_is_here() -> None:
    kept = {
        name
        for name, value in vars(write_statements).items()
        if isinstance(value, sa.Select) and not name.startswith("_")
    }
    assert kept - {"ALIASED", "NAMED"} == set(SERVED)  # these two are served by the index of their tables' names


IDS = [UUID(int=1), UUID(int=2)]


@pytest.mark.parametrize("ids", [None, IDS], ids=["of a user", "of memories"])
def test_conflicts_do_not_lead_through_those_of_others(file: sqlite3.Connection, ids: list[UUID] | None) -> None:
    told, everybody = (_conflicts(file, of, ids) for of in (SCOPE, replace(SCOPE, filters=Filters())))
    assert "ix_relations_conflicts" not in indexes(told), told
    assert not [line for line in told if "relations" in line and line.startswith("SCAN")], told
    if ids is None:  # the control: those of a tenant are read from the index of what is open
        assert "ix_relations_conflicts" in indexes(everybody), everybody


def _conflicts(file: sqlite3.Connection, scope: Scope, ids: list[UUID] | None) -> list[str]:
    found = read_statements.conflicts(scope, search.SYNTAX, ids, None, 50)
    return [row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {found.sql}", search.SYNTAX.bind_values(found.values))]


REVERTS = [name for name, write in WRITES.items() if "reverts" in write.__code__.co_names]


def sent_by(path: Path, write: Callable[[UnitOfWork], Awaitable[object]]) -> list[tuple[str, Any]]:
    """The statements of a write transaction, with their values."""
    sent: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, values: Any, *_: object) -> None:  # noqa: ANN401 - of the driver
        sent.append((statement, values[0] if isinstance(values, list) else values))

    def forgive(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA foreign_keys = OFF")  # there is nothing in the file

    async def run() -> None:
        storage = SqliteStorage(path, dimensions=256)
        sa.event.listen(storage._writer._engine, "before_cursor_execute", note)
        sa.event.listen(storage._writer._engine, "connect", forgive)
        await storage.open()
        try:
            await storage.write(Reach("default"), write)
        finally:
            await storage.close()

    asyncio.run(run())
    return sent


def beyond(told: str) -> bool:
    """Whether a line of a plan leads through a table, or through all that a tenant has of it."""
    return (told.startswith("SCAN ") and "CONSTANT ROW" not in told) or told.endswith("(tenant_id=?)")


@pytest.mark.parametrize("name", [*REVERTS, "merged entities taken apart"])
def test_a_revert_looks_up_by_indexes(tmp_path: Path, name: str) -> None:
    path = tmp_path / "memplane.db"
    migrate(path)
    looked = [
        each
        for each in sent_by(path, WRITES[name])
        if re.match(r"\s*(SELECT|UPDATE|DELETE)", each[0]) and re.search(r"\bWHERE\b", each[0])
    ]
    assert looked
    with closing(sqlite3.connect(path)) as file:
        for statement, values in looked:
            told = [row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
            assert not [line for line in told if beyond(line)], (statement, told)


def test_what_a_writer_did_would_lead_through_the_tenant_without_its_index(tmp_path: Path) -> None:
    path = tmp_path / "memplane.db"
    migrate(path)
    (statement, values), *_ = (
        each for each in sent_by(path, WRITES["users of a key's changes"]) if "FROM history" in each[0]
    )
    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP INDEX ix_history_by_key")
        told = [row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
        assert not [line for line in told if "key_id=?" in line], told
