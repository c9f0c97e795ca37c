"""No statement of the request path reads a whole table: the plans of what the application really sends.

The application's own readers and stores run against some twenty thousand rows of each kind, and every statement that
they send is explained as the application's role, once for its values and once as the generic plan that a prepared
statement may be given.
"""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from pgvector.psycopg import register_vector_async

from memplane.adapters.postgres.arrays import register_arrays
from memplane.adapters.postgres.search import PostgresReader, by_cursors
from memplane.adapters.postgres.storage import PostgresStorage
from memplane.application.transaction import UnitOfWork
from memplane.domain.identity.principal import Reach
from support.cluster import Database
from support.plan_reads import OF_A_TENANT, READERS, READS
from support.plan_writes import INSERTS, LISTS, OF_A_NIGHT, OF_NOBODY, OTHERWISE, STORES, WRITES
from support.plans import TENANT, Explainer, Sent, nodes, planned, told, unserved


def check(explainer: Explainer, sent: Sent, *, beyond_tenant: bool = True, bound: bool = True) -> None:
    """Every statement that looks something up is served by an index, whatever its values."""
    looked = [(text, values) for text, values in sent.statements if re.search(r"\bFROM\b|\bUPDATE\b", text)]
    assert looked
    for text, values in looked:
        for plan in explainer.plans(text, values):
            assert unserved(plan, beyond_tenant=beyond_tenant, bound=bound) == [], f"{text}\n{told(plan)}"


@pytest.mark.parametrize("read", READS)
def test_a_read_is_served_by_indexes(busy: Database, explainer: Explainer, read: str) -> None:
    sent = Sent()

    async def run() -> None:
        connection = await psycopg.AsyncConnection.connect(
            busy.url, row_factory=psycopg.rows.dict_row, cursor_factory=sent.cursor_class()
        )
        async with connection:
            await register_vector_async(connection)
            register_arrays(connection)
            await connection.execute("SELECT set_config('memplane.tenant', %s, true)", (TENANT,))
            await READS[read](PostgresReader(by_cursors(connection), TENANT))

    asyncio.run(run())
    check(explainer, sent, beyond_tenant=read not in OF_A_TENANT)


class NotKept(Exception):
    """Takes a transaction back."""


def record(database: Database, write: Callable[[UnitOfWork], Awaitable[object]]) -> Sent:
    """What a write sends, in a transaction that is taken back."""
    sent = Sent()

    async def work(uow: UnitOfWork) -> None:
        await write(uow)
        raise NotKept

    async def run() -> None:
        storage = PostgresStorage(database.url, pool_size=2)
        noting = sent.cursor_class()

        def note_all(connection: Any, _record: object) -> None:  # noqa: ANN401 - SQLAlchemy's hook
            connection.driver_connection.cursor_factory = noting

        sa.event.listen(storage._engine.sync_engine, "connect", note_all)
        await storage.open()
        try:
            with pytest.raises(NotKept):
                await storage.write(Reach(TENANT), work)
        finally:
            await storage.close()

    asyncio.run(run())
    return sent


@pytest.mark.parametrize("write", WRITES)
def test_a_write_looks_up_by_indexes(busy: Database, explainer: Explainer, write: str) -> None:
    sent = record(busy, WRITES[write])
    check(explainer, sent, beyond_tenant=write not in OF_A_NIGHT, bound=write not in OF_NOBODY)


def test_a_key_is_found_by_its_index(explainer: Explainer) -> None:
    sent = Sent([("SELECT * FROM api_keys WHERE key_id = %(key_id)s", {"key_id": f"{TENANT}7"})])
    source = inspect.getsource(PostgresStorage.find_key)
    assert sent.statements[0][0] in source  # what is explained is what is sent
    check(explainer, sent)


@pytest.mark.parametrize("write", ["duplicate by value", "duplicate by name"])
def test_a_duplicate_is_found_by_its_own_index(busy: Database, explainer: Explainer, write: str) -> None:
    """However many memories the user has, and although the index holds active ones alone."""
    for text, values in record(busy, WRITES[write]).statements:
        if "FROM memories" in text:
            for plan in explainer.plans(text, values):
                used = {node["Index Name"] for node in nodes(plan) if "Index Name" in node}
                assert used <= {"uq_memories_value", "uq_memories_external", "pk_memories"}, told(plan)


CONTROLS = {
    "ix_memories_user": "SELECT id FROM memories WHERE tenant_id = %(t)s AND user_id = %(u)s ORDER BY id DESC LIMIT 8",
    "ix_turns_user": "SELECT id FROM turns WHERE tenant_id = %(t)s AND user_id = %(u)s ORDER BY id DESC LIMIT 8",
    "ix_api_keys_key": "SELECT 1 FROM api_keys WHERE key_id = %(t)s",
}


@pytest.mark.parametrize("index", CONTROLS)
def test_a_missing_index_would_be_found(busy: Database, index: str) -> None:
    statement, values = f"EXPLAIN (FORMAT JSON) {CONTROLS[index]}", {"t": TENANT, "u": "user-3"}
    with psycopg.connect(busy.admin_url) as connection:
        before = planned(connection, statement, values)
        connection.execute(f"DROP INDEX {index}")
        after = planned(connection, statement, values)
        connection.rollback()
    assert unserved(before, beyond_tenant=True) == [], told(before)
    assert unserved(after, beyond_tenant=True) != [], told(after)


def test_every_read_and_write_is_explained() -> None:
    methods = {name for kind in (*READERS, *STORES) for name in vars(kind) if not name.startswith("_")}
    called = {name for function in (*READS.values(), *WRITES.values()) for name in function.__code__.co_names}
    parts = {"rows", "rows_of_all", "nearest_of", "candidates_apart"}  # of what is called
    assert methods - called - INSERTS - LISTS - OTHERWISE == parts
