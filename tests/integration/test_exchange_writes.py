"""Exchanges that write: what is kept and what is taken back, and what becomes of the connection."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from memplane.adapters.postgres.pipeline import WRITING, Pipeline, PipelineConnection, as_dicts
from memplane.adapters.postgres.storage import PostgresStorage
from memplane.adapters.sql.queries.read_statements import Statement
from memplane.application.checkpoints.checkpoint_records import Thread
from memplane.application.transaction import CheckpointStore
from memplane.domain.errors import StateConflict, StorageError, StorageUnavailable
from memplane.domain.identity.principal import Reach
from support.cluster import Database

BEGINNING = Statement("SELECT set_config('memplane.tenant', %(tenant)s, true)", {"tenant": "acme"})
COUNT = Statement("SELECT count(*) AS rows FROM kept", {})
TENANT = "acme"
THREAD = Thread("u1", "t1")


def adding(number: int) -> Statement:
    return Statement("INSERT INTO kept VALUES (%(number)s)", {"number": number})


def writing(database: Database, work: Callable[[Callable[[], Pipeline]], Awaitable[Any]]) -> None:
    with psycopg.connect(database.admin_url) as admin:
        admin.execute("CREATE TABLE kept (n int PRIMARY KEY)")
        admin.execute("GRANT ALL ON kept TO PUBLIC")

    async def run() -> None:
        connection = await PipelineConnection.connect(database.url)
        try:
            await work(lambda: Pipeline(connection, BEGINNING, WRITING))
        finally:
            await connection.close()

    asyncio.run(run())


def rows_in(database: Database) -> list[int]:
    with psycopg.connect(database.admin_url) as admin:
        return [row[0] for row in admin.execute("SELECT n FROM kept ORDER BY n")]


def test_what_is_sent_travels_with_what_is_waited_for_next(database: Database) -> None:
    async def work(opened: Callable[[], Pipeline]) -> None:
        exchange = opened()
        exchange.send([adding(1), adding(2)])
        assert await exchange.rows([COUNT], as_dicts) == [[{"rows": 2}]]
        exchange.send([adding(3)])
        assert rows_in(database) == []  # the control: it is one transaction
        await exchange.end()
        assert rows_in(database) == [1, 2, 3]
        alone = opened()
        alone.send([adding(4)])
        await alone.end()
        assert rows_in(database) == [1, 2, 3, 4]

    writing(database, work)


def test_what_is_taken_back_leaves_the_statements_that_it_prepared(database: Database) -> None:
    async def work(opened: Callable[[], Pipeline]) -> None:
        given_up = opened()
        await given_up.rows([adding(1)], as_dicts)
        given_up.send([COUNT, adding(2)])
        await given_up.end(keep=False)
        assert rows_in(database) == []
        again = opened()
        assert await again.rows([adding(1), COUNT], as_dicts) == [[], [{"rows": 1}]]
        await again.end()
        assert rows_in(database) == [1]

    writing(database, work)


def test_what_was_sent_and_is_refused_is_told_at_the_end_and_nothing_is_kept(database: Database) -> None:
    async def work(opened: Callable[[], Pipeline]) -> None:
        exchange = opened()
        await exchange.rows([adding(1)], as_dicts)
        exchange.send([adding(2), adding(2), adding(3)])
        assert not exchange.broken
        with pytest.raises(psycopg.errors.UniqueViolation):
            await exchange.end()
        assert exchange.broken

    writing(database, work)
    assert rows_in(database) == []


async def _opened(database: Database) -> PostgresStorage:
    database.rows(TENANT, "INSERT INTO tenants VALUES (%(tenant)s, now()) ON CONFLICT DO NOTHING", {})
    storage = PostgresStorage(database.url, pool_size=2)
    await storage.open()
    return storage


async def _make(checkpoints: CheckpointStore) -> None:
    await checkpoints.open(THREAD, datetime.now(UTC))


async def _there(storage: PostgresStorage) -> bool:
    async def look(checkpoints: CheckpointStore) -> bool:
        return await checkpoints.lock(THREAD) is not None

    return await storage.write_checkpoints(Reach(TENANT), look)


@pytest.mark.parametrize("error", [StateConflict("ours"), asyncio.CancelledError()], ids=["refused", "given up"])
def test_work_that_ends_in_an_error_keeps_nothing_and_its_pool_is_whole(
    database: Database, error: BaseException
) -> None:
    async def failing(checkpoints: CheckpointStore) -> None:
        await _make(checkpoints)
        raise error

    async def run() -> None:
        storage = await _opened(database)
        try:
            for _ in range(3):  # more often than there are connections
                with pytest.raises(type(error)):
                    await storage.write_checkpoints(Reach(TENANT), failing)
                assert not await _there(storage)
            await storage.write_checkpoints(
                Reach(TENANT), lambda checkpoints: checkpoints.open(THREAD, datetime.now(UTC))
            )
            assert await _there(storage)
        finally:
            await storage.close()

    asyncio.run(run())


def test_one_who_waits_for_a_locked_thread_can_give_up(database: Database) -> None:
    """And whoever holds it keeps what it writes."""

    async def run() -> None:
        holder, other = await _opened(database), await _opened(database)
        locked, waited = asyncio.Event(), asyncio.Event()

        async def hold(checkpoints: CheckpointStore) -> None:
            await _make(checkpoints)
            locked.set()
            await waited.wait()

        try:
            holding = asyncio.create_task(holder.write_checkpoints(Reach(TENANT), hold))
            await asyncio.wait_for(locked.wait(), 60)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(other.write_checkpoints(Reach(TENANT), _make), 0.3)
            waited.set()
            await holding
            assert await _there(other)
        finally:
            await holder.close()
            await other.close()

    asyncio.run(run())


def test_a_connection_that_the_server_ended_is_an_error_that_says_so(database: Database) -> None:
    async def ended(checkpoints: CheckpointStore) -> None:
        await _make(checkpoints)
        with psycopg.connect(database.admin_url, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND usename <> current_user AND xact_start IS NOT NULL"
            )
        await checkpoints.lock(THREAD)

    async def run() -> None:
        storage = await _opened(database)
        try:
            with pytest.raises((StorageUnavailable, StorageError)):
                await storage.write_checkpoints(Reach(TENANT), ended)
            assert not await _there(storage)
        finally:
            await storage.close()

    asyncio.run(run())
