"""The pipeline of checkpoints on PostgreSQL: what fails in it is told and stores nothing, and the next one works."""

import asyncio

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint

from memplane.adapters.postgres.checkpoint_pipeline import MOST, CheckpointPipeline
from memplane.adapters.postgres.storage import PostgresStorage
from memplane.adapters.sql.queries.read_statements import Statement
from memplane.application.transaction import CheckpointStore, UnitOfWork
from memplane.domain.errors import RecordNotFound, StaleCheckpoint, StorageError
from memplane.domain.identity.principal import Reach
from memplane.entrypoints.langgraph import MemplaneSaver
from support.cluster import Database
from support.graph_stores import running
from support.graphs import at, counting, principal

CONFIG = at("plans", "ana", checkpoint_ns="")


def new(said: object) -> dict[str, object]:
    return {**empty_checkpoint(), "channel_values": {"said": said}, "channel_versions": {"said": str(said)}}


async def put(saver: MemplaneSaver, config: dict[str, object], said: object) -> object:
    return await saver.aput(config, new([said]), {"source": "loop", "step": 1}, {"said": str([said])})  # type: ignore[arg-type]  # as LangGraph has it


def test_a_write_that_the_database_refuses_is_told_and_takes_all_of_it_back(database: Database) -> None:
    async def run() -> None:
        tenant = database.new_tenant()
        async with running(database, tenant) as application:
            saver = MemplaneSaver(application.checkpoints, principal(tenant))
            stored = await put(saver, CONFIG, 1)
            with psycopg.connect(database.admin_url, autocommit=True) as admin:
                admin.execute("ALTER TABLE checkpoint_blobs ADD CONSTRAINT none CHECK (false) NOT VALID")
                for _ in range(3):
                    with pytest.raises(StorageError, match="23514"):
                        await put(saver, stored, 2)  # type: ignore[arg-type]  # a config
                rows = database.rows(tenant, "SELECT version FROM supervisor_checkpoints", {})
                assert [row["version"] for row in rows] == [1]
                admin.execute("ALTER TABLE checkpoint_blobs DROP CONSTRAINT none")
            await put(saver, stored, 2)  # type: ignore[arg-type]  # a config
            with pytest.raises(StaleCheckpoint):
                await put(saver, stored, 3)  # type: ignore[arg-type]  # a config
            found = await saver.aget_tuple(CONFIG)
            assert found is not None
            assert found.checkpoint["channel_values"] == {"said": [2]}
            rows = database.rows(tenant, "SELECT version FROM supervisor_checkpoints", {})
            assert [row["version"] for row in rows] == [2]

    asyncio.run(run())


def test_a_cancelled_save_leaves_a_connection_that_works(database: Database) -> None:
    async def run() -> None:
        tenant = database.new_tenant()
        async with running(database, tenant) as application:
            saver = MemplaneSaver(application.checkpoints, principal(tenant))
            for nth in range(40):
                running_one = asyncio.create_task(
                    counting(saver).ainvoke({"count": 0, "messages": []}, at(f"t{nth}", "ana"))
                )
                for _ in range(nth):
                    await asyncio.sleep(0)
                running_one.cancel()
                await asyncio.gather(running_one, return_exceptions=True)
            done = await asyncio.gather(
                *(counting(saver).ainvoke({"count": 0, "messages": []}, at(f"u{nth}", "ana")) for nth in range(20))
            )
            assert [each["count"] for each in done] == [3] * 20

    asyncio.run(run())


def test_a_few_writes_become_one_statement_and_many_do_not(database: Database) -> None:
    async def run() -> None:
        async with await psycopg.AsyncConnection.connect(database.admin_url) as connection:
            exchange = CheckpointPipeline(connection, "t")  # type: ignore[arg-type]  # rows are not looked at
            asked = [
                Statement("INSERT INTO tenants VALUES (%(name)s, now()) RETURNING 1 AS done", {"name": f"x{n}"})
                for n in range(MOST + 1)
            ]
            assert exchange.merge_statements(asked) == asked
            assert exchange.merge_statements(asked[:1]) == asked[:1]
            (one,) = exchange.merge_statements(asked[:MOST])
            await connection.execute(one.sql, one.values)  # type: ignore[arg-type]  # made of ours
            cursor = await connection.execute("SELECT count(*) FROM tenants WHERE tenant_id LIKE 'x%'")
            assert await cursor.fetchone() == (MOST,)

    asyncio.run(run())


def test_a_save_works_on_a_connection_that_was_rolled_back(database: Database) -> None:
    """After a rollback the driver deallocates what it prepared on the connection, and with it what exchanges did."""

    async def failing(uow: UnitOfWork) -> None:
        await uow.keys.all()
        raise RecordNotFound("taken back")

    async def run() -> None:
        tenant = database.new_tenant()
        storage = PostgresStorage(database.url, pool_size=2)
        await storage.open()
        try:
            for _ in range(8):  # often enough for the driver to prepare them
                await storage.write(Reach(tenant), lambda uow: uow.keys.all())
            await storage.write_checkpoints(Reach(tenant), erased)
            with pytest.raises(RecordNotFound):
                await storage.write(Reach(tenant), failing)
            await storage.write(Reach(tenant), lambda uow: uow.keys.all())
            await storage.write_checkpoints(Reach(tenant), erased)
        finally:
            await storage.close()

    async def erased(store: CheckpointStore) -> object:
        return await store.erasure_times("ana")

    asyncio.run(run())
