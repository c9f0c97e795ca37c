"""A write transaction on PostgreSQL: what it adds travels in one statement, what it looks up in one exchange.

A statement costs more to prepare, send and wait for than to run. Rows to add wait until a statement could see them, and
travel as JSON, one parameter for each table.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import psycopg
import sqlalchemy as sa
from psycopg import AsyncConnection, AsyncCursor
from psycopg.pq import PipelineStatus
from psycopg.rows import dict_row
from psycopg.sql import SQL
from pydantic_core import to_json
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection as SqlConnection

from memplane.adapters.postgres.active_embedding import Known, active_embedding_of, active_embedding_statement
from memplane.adapters.postgres.arrays import IdArray, VectorArray
from memplane.adapters.postgres.pipeline import PipelineConnection
from memplane.adapters.postgres.search import PostgresReader, by_cursors
from memplane.adapters.postgres.syntax import SYNTAX
from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.session import (
    ENTITIES,
    JOB_RUNS,
    MEMORIES,
    MENTIONS,
    RELATIONS,
    UNDO,
    Row,
    SqlSession,
    Values,
    table_of,
)
from memplane.application.records import ChangeNotice
from memplane.application.transaction import TransactionInterrupted
from memplane.domain.errors import StorageError
from memplane.domain.memory.memory import new_id
from memplane.domain.ranking.co_recall import APART, CO_RECALLED
from memplane.domain.ranking.embedding_models import Column, InForce

NEW_RELATIONS = "new_relations"
"""Relations of a memory that is added in the same statement, where nothing can be in their place."""
_ORDER = (
    ENTITIES, MEMORIES, MENTIONS, NEW_RELATIONS, RELATIONS, CO_RECALLED, "turns", "history", UNDO, "events",
    "change_log", JOB_RUNS,
)  # fmt: skip
_TABLE = {NEW_RELATIONS: RELATIONS, CO_RECALLED: RELATIONS}
_MUST = frozenset({MEMORIES, ENTITIES})
"""Rows of which another transaction may have come first."""
_VECTORS = frozenset({MEMORIES, "turns"})
_MANY = 100
"""Rows that are written out in a thread, where it holds nobody up."""
_CONFLICT = {
    MEMORIES: "ON CONFLICT DO NOTHING",
    ENTITIES: "ON CONFLICT DO NOTHING",
    MENTIONS: "ON CONFLICT DO NOTHING",
    # to look at what is there, row-level security would ask for a memory that it does not see yet
    NEW_RELATIONS: "ON CONFLICT DO NOTHING",
    RELATIONS: "ON CONFLICT (tenant_id, from_id, to_id, relation_type) DO UPDATE SET"
    " strength = greatest(relations.strength, excluded.strength), updated_at = excluded.updated_at",
    CO_RECALLED: "ON CONFLICT (tenant_id, from_id, to_id, relation_type) DO UPDATE SET"
    " co_recalls = relations.co_recalls + 1, updated_at = excluded.updated_at"
    f" WHERE relations.updated_at <= excluded.updated_at - interval '{APART.total_seconds():.0f} seconds'",
}
_TELL = """told AS (
INSERT INTO thread_revision AS t (tenant_id, user_id, thread_id, rev, turns, updated_at)
SELECT %(tenant)s, %(user_id)s, w.thread_id, %(revs)s, 0, max(w.at)
  FROM (SELECT * FROM (SELECT r.thread_id, r.updated_at AS at FROM thread_revision r
                        WHERE r.tenant_id = %(tenant)s AND r.user_id = %(user_id)s AND r.updated_at > %(since)s
                        ORDER BY r.updated_at DESC LIMIT %(most)s) lately
         UNION ALL
        SELECT * FROM unnest(%(names)s::text[], %(at)s::timestamptz[])) AS w (thread_id, at)
 GROUP BY w.thread_id ORDER BY w.thread_id
    ON CONFLICT (tenant_id, user_id, thread_id) DO UPDATE
   SET rev = t.rev + excluded.rev, updated_at = greatest(t.updated_at, excluded.updated_at)
RETURNING thread_id, rev),
logged AS (
INSERT INTO change_log (tenant_id, id, user_id, thread_id, rev, memory_id, event, category, meta, ts)
SELECT %(tenant)s, (%(ids)s::uuid[])[row_number() OVER (ORDER BY told.thread_id, c.place)], %(user_id)s, told.thread_id,
       told.rev - %(revs)s + c.place, c.memory_id, c.event, c.category, '{}', %(ts)s
  FROM told CROSS JOIN unnest(%(told_memories)s::uuid[], %(told_events)s::text[], %(told_categories)s::text[])
       WITH ORDINALITY AS c (memory_id, event, category, place))"""


class BegunAnew(TransactionInterrupted):
    """Another transaction came first, with a row of the same name or another model: this one starts again."""


_OF_ONE_STATEMENT = (
    psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError, psycopg.NotSupportedError,
)  # fmt: skip
"""After these a transaction can go on from a savepoint."""


class PostgresSession(SqlSession):
    """Rows wait until a statement could see them; the transaction begins with the first statement."""

    syntax = SYNTAX

    def __init__(self, connection: SqlConnection, tenant: str, beginning: Statement, known: Known) -> None:
        super().__init__(tenant, insert, known.get(tenant, InForce()))
        self._connection = connection
        self._known = known
        self._asked: AsyncCursor[Row] | None = None
        self._beginning: Statement | None = beginning
        self._waiting: dict[str, list[Row]] = {}
        self._in_bulk = False

    async def execute(self, statement: sa.Executable, values: Values = None) -> sa.CursorResult[Any]:
        """Send a statement, which sees whatever was added before; its rows."""
        await self.flush()
        found: sa.CursorResult[Any] = await self._connection.execute(statement, values)
        return found

    async def rows_changed(self, statement: sa.Executable, values: Values = None) -> int:
        """Send a statement; how many rows it changed."""
        return (await self.execute(statement, values)).rowcount

    @asynccontextmanager
    async def _attempt(self) -> AsyncIterator[None]:
        await self.flush()
        try:
            async with self._connection.begin_nested():
                yield
                await self.flush()
        except BaseException as error:
            self._waiting.clear()
            cause = getattr(error, "orig", error)
            if isinstance(cause, psycopg.Error) and not isinstance(cause, _OF_ONE_STATEMENT):
                raise TransactionInterrupted(cause) from error
            raise

    def attempt(self) -> AbstractAsyncContextManager[object]:
        """Work within the transaction that is taken back alone when it fails."""
        return self._attempt()

    async def add(self, table: str, rows: list[Row]) -> bool:
        """Let rows wait; should one of the same name turn out to be there, the transaction starts again."""
        if table == MEMORIES and MEMORIES in self._waiting:
            await self.flush()
        if table == RELATIONS:
            new = {row["id"] for row in self._waiting.get(MEMORIES, ())}
            if all(row["from_id"] in new for row in rows):
                table = NEW_RELATIONS
            else:
                await self.flush()
        self._waiting.setdefault(table, []).extend(rows)
        return True

    async def add_new(self, table: str, rows: list[Row]) -> frozenset[UUID]:
        """Add rows in whose place nothing is, all with the same columns and an id each; the ids of those added."""
        if not rows:
            return frozenset()
        await self.flush()
        driver = await self.driver()
        if not self._in_bulk:
            # a session keeps its plan for the checks of foreign keys from when the tables were small, and would read
            # all of a grown one for each row, until its next analysis
            self._in_bulk = True
            await driver.execute(SQL("SET LOCAL plan_cache_mode = force_custom_plan"))
        adding = _adding(table, tuple(rows[0]), conflict="ON CONFLICT DO NOTHING", returning="id")
        async with driver.cursor(row_factory=dict_row, binary=True) as cursor:
            await cursor.execute(SQL(adding), await asyncio.to_thread(_as_values, table, rows))
            return frozenset(row["id"] for row in await cursor.fetchall())

    async def learn(self) -> None:
        """Begin at once where it is not known what the vectors are of."""
        if self.tenant not in self._known:
            await self.flush()
            self._known[self.tenant] = self.in_force

    async def flush(self) -> None:
        """Send what waits, in one statement, and begin the transaction if need be.

        Raises:
            BegunAnew: another transaction came first with a row of the same name, or changed the embedding model.
        """
        if self._waiting:
            await self._send({})
        elif self._beginning is not None:
            await self._begin(await self.driver())

    async def tell(self, user_id: str, threads: Mapping[str, datetime], told: ChangeNotice) -> Mapping[str, int]:
        """Log changes in threads and in the user's recent ones, with what waits: each thread's last revision."""
        most = len(told.changes) * (told.most + len(threads))
        values: Row = {
            "tenant": self.tenant,
            "user_id": user_id,
            "revs": len(told.changes),
            "since": told.since,
            "most": told.most,
            "names": list(threads),
            "at": list(threads.values()),
            "ids": [new_id() for _ in range(most)],
            "ts": told.ts,
            "told_memories": [each.memory_id for each in told.changes],
            "told_events": [each.event.value for each in told.changes],
            "told_categories": [each.category for each in told.changes],
        }
        return {row["thread_id"]: row["rev"] for row in await self._send(values) if row["thread_id"] is not None}

    async def _send(self, telling: Row) -> list[Row]:
        waiting, self._waiting = self._waiting, {}
        shape = tuple((name, tuple(waiting[name][0])) for name in _ORDER if name in waiting)
        values = dict(telling)
        for name, _ in shape:
            rows = waiting[name]
            values |= _as_values(name, rows) if len(rows) < _MANY else await asyncio.to_thread(_as_values, name, rows)
        driver = await self.driver()
        await self._begin(driver)
        async with driver.cursor(row_factory=dict_row, binary=True) as cursor:
            await cursor.execute(SQL(_flushing(shape, telling=bool(telling))), values)
            rows = list(await cursor.fetchall())
        for name in _MUST & set(waiting):
            if rows[0][name] != len(waiting[name]):
                raise BegunAnew
        return rows

    async def rows_of_all(self, asked: Sequence[Statement]) -> list[list[Row]]:
        """The rows of several statements, sent together with the beginning of the transaction."""
        if self._waiting:
            await self.flush()
        driver = await self.driver()
        found: list[list[Row]] = []
        async with driver.pipeline():
            await self._begin(driver)
            cursors = []
            for statement in asked:
                cursor = driver.cursor(row_factory=dict_row, binary=True)
                cursors.append(await cursor.execute(SQL(statement.sql), statement.values))
            for cursor in cursors:
                found.append(list(await cursor.fetchall()))
                await cursor.close()
        await self._require_in_force()
        return found

    async def reader(self) -> PostgresReader:
        """The reads of a tenant, within this transaction: what it added is seen."""
        await self.flush()
        return PostgresReader(by_cursors(await self.driver()), self.tenant, seen=self.in_force)

    async def driver(self) -> AsyncConnection[Any]:
        """The driver's own connection."""
        return await driver_of(self._connection)

    async def _begin(self, driver: AsyncConnection[Any]) -> None:
        """Begin, and ask by which model vectors are: what has the lock of the tenant's vectors sees it as it stays."""
        if self._beginning is None:
            return
        beginning, self._beginning = self._beginning, None
        asked = active_embedding_statement(self.tenant)
        self._asked = driver.cursor(row_factory=dict_row)
        if driver.pgconn.pipeline_status != PipelineStatus.OFF:  # it is answered with the rest
            await driver.execute(SQL(beginning.sql), beginning.values)
            await self._asked.execute(SQL(asked.sql), asked.values)
            return
        async with driver.pipeline():
            await driver.execute(SQL(beginning.sql), beginning.values)
            await self._asked.execute(SQL(asked.sql), asked.values)
        await self._require_in_force()

    async def _require_in_force(self) -> None:
        """Go on only by the model that is in force."""
        if self._asked is None:
            return
        found = active_embedding_of(await self._asked.fetchall())
        await self._asked.close()
        self._asked = None
        if found != self.in_force:
            self._known[self.tenant] = found
            raise BegunAnew


async def driver_of(connection: SqlConnection) -> PipelineConnection:
    """The driver's own connection.

    Raises:
        StorageError: it is another driver's.
    """
    driver = (await connection.get_raw_connection()).driver_connection
    if not isinstance(driver, PipelineConnection):
        raise StorageError("the connection is not psycopg's, as the storage makes them")
    return driver


def _as_values(table: str, rows: list[Row]) -> Row:
    if table not in _VECTORS:
        return {table: _json(rows)}
    columns = [column for column in Column if column in rows[0]]
    plain = [
        {name: value for name, value in row.items() if name not in columns} | {"terms": f"\\x{row['terms'].hex()}"}
        for row in rows
    ]
    values: Row = {table: _json(plain)}
    for column in columns:
        vectors = [(row["id"], row[column]) for row in rows if row[column] is not None]
        values[f"{table}_{column}_ids"] = IdArray(one for one, _ in vectors)
        values[f"{table}_{column}s"] = VectorArray(vector for _, vector in vectors)
    return values


def _json(rows: list[Row]) -> str:
    """Rows as JSON that PostgreSQL reads as the columns' types."""
    return to_json(rows).decode()


@lru_cache
def _flushing(shape: tuple[tuple[str, tuple[str, ...]], ...], *, telling: bool) -> str:
    """The statement that adds rows of these tables and columns, and tells threads; it returns how many were added."""
    parts = [f"{name}_added AS ({_adding(name, columns)})" for name, columns in shape]
    counts = [f"(SELECT count(*) FROM {name}_added) AS {name}" for name, _ in shape]  # noqa: S608 - our own names
    if telling:
        parts.append(_TELL)
        counts += ["told.thread_id", "told.rev"]
    # a row even where no thread is told, for the counts
    source = " FROM (SELECT) AS one LEFT JOIN told ON true" if telling else ""
    return f"WITH {', '.join(parts)} SELECT {', '.join(counts)}{source}"


def _adding(name: str, columns: tuple[str, ...], conflict: str | None = None, returning: str = "1") -> str:
    table = table_of(_TABLE.get(name, name))
    rows = f"jsonb_populate_recordset(NULL::{table.name}, %({name})s::jsonb) AS r"
    vectors = [column for column in Column if name in _VECTORS and column in columns]
    wanted = ", ".join(f"v_{column}.{column}" if column in vectors else f"r.{column}" for column in columns)
    for column in vectors:
        added = f"unnest(%({name}_{column}_ids)s::uuid[], %({name}_{column}s)b::halfvec[]) AS v_{column} (id, {column})"
        rows += f" LEFT JOIN {added} ON v_{column}.id = r.id"
    conflict = _CONFLICT.get(name, "") if conflict is None else conflict
    added = f"SELECT {wanted} FROM {rows} {conflict} RETURNING {returning}"  # noqa: S608 - our own names
    return f"INSERT INTO {table.name} ({', '.join(columns)}) {added}"
