"""Statements that travel together: their rows, and what becomes of the connection when one is refused or given up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from memplane.adapters.postgres.pipeline import (
    PLAN_SECONDS,
    Pipeline,
    PipelineConnection,
    as_dicts,
    as_tuples,
    to_numbered_parameters,
)
from memplane.adapters.postgres.storage import PostgresStorage, Timeouts
from memplane.adapters.sql.queries.read_statements import Statement
from memplane.domain.errors import StorageError, StorageUnavailable
from memplane.domain.identity.principal import Reach
from support.cluster import Database

BEGINNING = Statement("SELECT set_config('memplane.tenant', %(tenant)s, true)", {"tenant": "acme"})
TENANT = Statement("SELECT current_setting('memplane.tenant', true) AS tenant", {})


def in_exchange(database: Database, work: Callable[[Pipeline, PipelineConnection], Awaitable[Any]]) -> Any:  # noqa: ANN401 - what work brings
    async def run() -> Any:  # noqa: ANN401 - what work brings
        async with await PipelineConnection.connect(database.url, autocommit=True) as connection:
            return await work(Pipeline(connection, BEGINNING), connection)

    return asyncio.run(run())


def test_rows_of_several_statements_come_in_their_order(database: Database) -> None:
    async def work(exchange: Pipeline, _connection: PipelineConnection) -> None:
        asked = [
            Statement(
                "SELECT n, %(word)s::text AS word FROM generate_series(1, %(most)s::int) n", {"most": 3, "word": "a"}
            ),
            Statement("SELECT 1 AS one WHERE false", {}),
            Statement("SELECT 5 %% 3 AS rest, NULL AS nothing", {}),
            TENANT,
        ]
        many, none, rest, tenant = await exchange.rows(asked, as_dicts)
        assert many == [{"n": n, "word": "a"} for n in (1, 2, 3)]
        assert (none, rest, tenant) == ([], [{"rest": 2, "nothing": None}], [{"tenant": "acme"}])
        assert await exchange.rows([asked[0]], as_tuples) == [[(n, "a") for n in (1, 2, 3)]]
        await exchange.end()

    in_exchange(database, work)


def test_a_result_larger_than_any_buffer_comes_whole(database: Database) -> None:
    async def work(exchange: Pipeline, _connection: PipelineConnection) -> None:
        sent = "x" * 3_000_000
        asked = [Statement("SELECT repeat(%(text)s::text, 3) AS text", {"text": sent})] * 4
        found = await exchange.rows(asked, as_dicts)
        assert [len(rows[0]["text"]) for rows in found] == [9_000_000] * 4
        await exchange.end()

    in_exchange(database, work)


def test_nothing_of_a_transaction_is_left_when_it_has_ended(database: Database) -> None:
    async def work(exchange: Pipeline, connection: PipelineConnection) -> None:
        assert await exchange.rows([TENANT], as_dicts) == [[{"tenant": "acme"}]]
        await exchange.end()
        row = await (await connection.execute("SELECT current_setting('memplane.tenant', true)")).fetchone()
        assert row is not None
        assert row[0] in ("", None)
        again = Pipeline(connection, Statement(BEGINNING.sql, {"tenant": "other"}))
        assert await again.rows([TENANT], as_dicts) == [[{"tenant": "other"}]]
        await again.end()

    in_exchange(database, work)


def test_one_statement_at_once_leaves_nothing_behind(database: Database) -> None:
    async def work(exchange: Pipeline, connection: PipelineConnection) -> None:
        assert await exchange.at_once(TENANT, as_dicts) == [{"tenant": "acme"}]
        left = "SELECT coalesce(current_setting('memplane.tenant', true), '')"
        assert await (await connection.execute(left)).fetchone() == ("",)
        with pytest.raises(ValueError, match="has begun"):
            await exchange.at_once(TENANT, as_dicts)
        again = Pipeline(connection, Statement(BEGINNING.sql, {"tenant": "other"}))
        assert await again.at_once(TENANT, as_dicts) == [{"tenant": "other"}]

    in_exchange(database, work)


def test_one_statement_at_once_that_is_refused_breaks_the_connection(database: Database) -> None:
    async def work(exchange: Pipeline, _connection: PipelineConnection) -> None:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await exchange.at_once(Statement("SELECT 1 / 0 AS one", {}), as_dicts)
        assert exchange.broken

    in_exchange(database, work)


def test_plans_are_made_anew_for_tables_that_have_grown(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("memplane.adapters.postgres.pipeline.monotonic", lambda: now[0])
    with psycopg.connect(database.admin_url) as admin:
        admin.execute("CREATE TABLE grows (n int) WITH (autovacuum_enabled = false)")
        admin.execute("GRANT SELECT ON grows TO PUBLIC")
    asked = Statement("SELECT count(*) AS rows FROM grows WHERE n > %(least)s::int", {"least": 5})

    async def expected(connection: PipelineConnection) -> int:
        """How many rows the plan that the connection has is made for."""
        exchange = Pipeline(connection, BEGINNING)
        await exchange.rows([asked], as_dicts)
        await exchange.end()
        cursor = await connection.execute("SELECT name FROM pg_prepared_statements WHERE statement LIKE '%grows%'")
        row = await cursor.fetchone()
        assert row is not None
        explained = await connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE {row[0]} (5)")  # type: ignore[arg-type]  # a name that the connection gave
        plan = await explained.fetchone()
        assert plan is not None
        return int(plan[0][0]["Plan"]["Plans"][0]["Plan Rows"])

    async def work(_exchange: Pipeline, connection: PipelineConnection) -> None:
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        planned = await expected(connection)
        for _ in range(5):  # the server may drop a plan by itself, when others change much at that moment
            with psycopg.connect(database.admin_url) as admin:
                admin.execute("INSERT INTO grows SELECT generate_series(1, 100000)")
            before, planned = planned, await expected(connection)
            if planned == before:
                break
        assert planned == before  # the control: a plan is kept
        now[0] += PLAN_SECONDS
        assert await expected(connection) > planned * 1.1

    in_exchange(database, work)


def test_every_statement_sees_the_same_moment_and_none_writes(database: Database) -> None:
    async def work(exchange: Pipeline, _connection: PipelineConnection) -> None:
        seen = Statement("SELECT count(*) AS tables FROM pg_class WHERE relname = 'new_one'", {})
        assert await exchange.rows([seen], as_dicts) == [[{"tables": 0}]]
        with psycopg.connect(database.admin_url) as other:
            other.execute("CREATE TABLE new_one (a int)")
        assert await exchange.rows([seen], as_dicts) == [[{"tables": 0}]]
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await exchange.rows([Statement("DELETE FROM memories", {})], as_dicts)

    in_exchange(database, work)


def test_more_statements_than_are_kept_prepared(database: Database) -> None:
    async def work(exchange: Pipeline, _connection: PipelineConnection) -> None:
        for turn in range(2):
            asked = [Statement(f"SELECT {number} + %(turn)s::int AS sum", {"turn": turn}) for number in range(300)]
            assert await exchange.rows(asked, as_dicts) == [[{"sum": number + turn}] for number in range(300)]
        (prepared,) = await exchange.rows([Statement("SELECT count(*) AS n FROM pg_prepared_statements", {})], as_dicts)
        assert prepared[0]["n"] <= 257
        await exchange.end()

    in_exchange(database, work)


def test_values_of_other_types_prepare_a_statement_anew(database: Database) -> None:
    async def work(exchange: Pipeline, _connection: PipelineConnection) -> None:
        for value in (1, "1", 2**40, None, 1.5):
            asked = Statement("SELECT %(value)s::text AS said", {"value": value})
            assert await exchange.rows([asked], as_dicts) == [[{"said": None if value is None else str(value)}]]
        await exchange.end()

    in_exchange(database, work)


def test_a_single_per_cent_sign_is_found() -> None:
    with pytest.raises(ValueError, match="per cent"):
        to_numbered_parameters("SELECT 5 % 3")
    assert to_numbered_parameters("SELECT %(b)s, %(a)s, %(b)s, '%%'") == (b"SELECT $1, $2, $1, '%'", ("b", "a"))


@pytest.mark.parametrize("given_up", [False, True])
def test_a_pool_is_whole_after_a_refused_or_given_up_read(database: Database, given_up: bool) -> None:
    async def run() -> None:
        storage = PostgresStorage(
            database.url, pool_size=2, timeouts=Timeouts(statement_ms=400 if not given_up else 10_000)
        )
        await storage.open()
        try:
            for _ in range(6):  # more often than there are connections
                if given_up:
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(slow(storage), 0.2)
                else:
                    with pytest.raises(StorageUnavailable, match="too long"):
                        await slow(storage)
            async with storage.reading(Reach("acme")) as reader:
                assert await reader.rows(TENANT) == [{"tenant": "acme"}]  # type: ignore[attr-defined] # every reader has it
        finally:
            await storage.close()

    asyncio.run(run())


async def slow(storage: PostgresStorage) -> None:
    async with storage.reading(Reach("acme")) as reader:
        await reader.rows(Statement("SELECT pg_sleep(5)", {}))  # type: ignore[attr-defined] # every reader has it


def test_an_error_of_the_caller_leaves_the_connection_to_the_next(database: Database) -> None:
    async def run() -> None:
        storage = PostgresStorage(database.url, pool_size=2)
        await storage.open()
        seen: list[int] = []
        try:
            for _ in range(8):
                with pytest.raises(StorageError, match="ours"):
                    await refused_after_reading(storage, seen)
        finally:
            await storage.close()
        assert len(seen) == 8
        assert len(set(seen)) <= 2

    asyncio.run(run())


async def refused_after_reading(storage: PostgresStorage, seen: list[int]) -> None:
    async with storage.reading(Reach("acme")) as reader:
        asked = Statement("SELECT pg_backend_pid() AS pid", {})
        seen.append((await reader.rows(asked))[0]["pid"])  # type: ignore[attr-defined] # every reader has it
        raise StorageError("ours")
