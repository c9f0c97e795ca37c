"""How PostgreSQL finds candidates, and how its rows are fetched.

Every statement runs inside a transaction that has set the tenant for row-level security, and carries the scope
predicate besides. Named parameters are psycopg's.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import AsyncConnection
from psycopg.rows import AsyncRowFactory, DictRow, dict_row, tuple_row
from psycopg.sql import SQL

from memplane.adapters.sql.packing import PackedIds, counted, postings
from memplane.adapters.sql.reader import SqlReader
from memplane.adapters.sql.rows import Row
from memplane.adapters.sql.scope import memories_in, turns_in
from memplane.adapters.sql.statements import Statement, mentioning
from memplane.application.records import Candidates, Query
from memplane.domain.priors import TURN_IMPORTANCE, Priors
from memplane.domain.ranking import Signals
from memplane.domain.scope import Scope
from memplane.domain.surroundings import Surroundings, in_thread_order

T = TypeVar("T")


class PostgresSyntax:
    """How PostgreSQL writes the scope predicate; ``mark`` is how a driver marks a parameter's place."""

    def __init__(self, mark: str) -> None:
        self._mark = mark

    def value(self, name: str) -> str:
        """A bound value."""
        return self._mark.format(name)

    def any_of(self, column: str, name: str) -> str:
        """The column's value is one of a bound list."""
        return f"{column} = ANY({self.value(name)})"

    def holds_all(self, column: str, name: str) -> str:
        """The list column holds every item of a bound list."""
        return f"{column} @> CAST({self.value(name)} AS text[])"

    def listed(self, table: str, alias: str, name: str) -> tuple[str, str]:
        """Rows of a table by a bound list of ids."""
        return f"{table} {alias}", self.any_of(f"{alias}.id", name)

    def bound(self, values: Mapping[str, object]) -> dict[str, object]:
        """Values as psycopg takes them: as they are."""
        return dict(values)


SYNTAX = PostgresSyntax("%({})s")
"""For statements that go to psycopg."""
TEXT_SYNTAX = PostgresSyntax(":{}")
"""For conditions inside SQLAlchemy's text."""

_UNIT = np.dtype(
    [
        *(("id", "V16"), ("thread", ">i8"), ("seq", ">i4"), ("length", ">i4"), ("terms", ">i4"), ("sim", ">f4")),
        ("actor", "u1"),
        *(("happened", ">i8"), ("hit", ">i8"), ("importance", ">i2"), ("marks", ">i2")),
        *(("reinforcement", ">i4"), ("mentions", ">i4"), ("hits", ">i4")),
    ]
)
"""One unit as the scan packs it, big-endian like PostgreSQL's binary send functions."""
UNIT_BYTES = _UNIT.itemsize

# One pass over the units in scope: their places, lengths, similarity and terms, packed so that 10 000 units travel as
# two values. Served by ix_memories_user and uq_turns_tenant_id_user_id_thread_id_seq; cost follows the scope.
_SCAN = """
SELECT string_agg(uuid_send(u.id) || int8send({thread}) || int4send({seq}) || int4send(u.term_length)
         || int4send(octet_length(u.terms) / 5) || float4send({similarity}) || {actor} || {priors}, ''::bytea) AS units,
       string_agg(u.terms, ''::bytea) AS terms
  FROM {table} u
 WHERE {scope}"""
_SIMILARITY = "coalesce(-(u.embedding <#> %(embedding)s::halfvec), 'NaN')::real"
_NO_SIMILARITY = "'NaN'::real"
_ACTOR = r"CASE WHEN string_to_array(lower(u.actor_id), ' ') && %(words)s THEN '\x01'::bytea ELSE '\x00'::bytea END"

_PINNED, _INSIGHT = 1, 2
# microseconds since 2000, as PostgreSQL keeps times
_OF_MEMORIES = (
    "timestamptz_send(coalesce(u.event_time, u.updated_at))"
    " || timestamptz_send(coalesce(u.last_hit_at, u.recorded_at)) || int2send(u.importance)"
    f" || int2send((u.pinned::int * {_PINNED} + (u.type = 'insight')::int * {_INSIGHT})::int2)"
    " || int4send(u.reinforcement) || int4send(u.mention_count) || int4send(u.hits)"
)
_ORDINARY = "".join(f"{value:0{size}x}" for value, size in ((TURN_IMPORTANCE, 4), (0, 4), (0, 8), (1, 8), (0, 8)))
_OF_TURNS = (
    "timestamptz_send(coalesce(u.event_time, u.recorded_at)) || timestamptz_send(u.recorded_at)"
    rf" || '\x{_ORDINARY}'::bytea"
)
_EPOCH = 946_684_800.0
"""The first moment of 2000, in seconds since 1970."""


def scan_statements(scope: Scope, query: Query) -> list[Statement]:
    """The scan of memories, and of turns where they are in scope."""
    shared: dict[str, object] = {"words": list(query.words)}
    if query.embedding is not None:
        shared["embedding"] = HalfVector(query.embedding)
    sources = (
        (memories_in(scope, SYNTAX, "u"), {"table": "memories", "thread": "0", "seq": "0", "priors": _OF_MEMORIES}),
        (
            turns_in(scope, SYNTAX, "u"),
            {"table": "turns", "thread": "u.thread_key", "seq": "u.seq::int4", "priors": _OF_TURNS},
        ),
    )
    parts = []
    for allowed, columns in sources:
        if allowed is not None:
            similarity = _NO_SIMILARITY if query.embedding is None else _SIMILARITY
            sql = _SCAN.format(scope=allowed.sql, similarity=similarity, actor=_ACTOR, **columns)
            parts.append(Statement(sql, allowed.values | shared))
    return parts


class PostgresReader(SqlReader):
    """One read-only transaction of one tenant."""

    syntax = SYNTAX

    def __init__(self, connection: AsyncConnection[DictRow]) -> None:
        self._connection = connection

    async def rows(self, statement: Statement) -> list[Row]:
        """The rows of a statement."""
        async with self._connection.cursor(row_factory=dict_row, binary=True) as cursor:
            await cursor.execute(SQL(statement.sql), statement.values)
            return list(await cursor.fetchall())

    async def rows_of_all(self, asked: Sequence[Statement]) -> list[list[Row]]:
        """The rows of several statements, sent together and then waited for."""
        return await self._all(asked, dict_row)

    async def candidates(self, scope: Scope, query: Query) -> Candidates:
        """All memories and turns in scope, with their signals for the query."""
        asked = scan_statements(scope, query)
        scans = len(asked)
        if query.names:
            asked.append(mentioning(scope, SYNTAX, query.names))
        found = await self._all(asked, tuple_row)
        units = b"".join(rows[0][0] or b"" for rows in found[:scans])
        terms = b"".join(rows[0][1] or b"" for rows in found[:scans])
        named = [{"id": identity, "found": count} for rows in found[scans:] for identity, count in rows]
        return await asyncio.to_thread(unpack, units, terms, query, named)

    async def _all(self, asked: Sequence[Statement], rows: AsyncRowFactory[T]) -> list[list[T]]:
        async with AsyncExitStack() as open_cursors:
            cursors = []
            for statement in asked:
                cursor = await open_cursors.enter_async_context(self._connection.cursor(row_factory=rows, binary=True))
                cursors.append(await cursor.execute(SQL(statement.sql), statement.values))
            return [list(await cursor.fetchall()) for cursor in cursors]


def unpack(units: bytes, terms: bytes, query: Query, named: Sequence[Row] = ()) -> Candidates:
    """Packed units and their terms as ids and signals, with who mentions what the query names."""
    read = np.frombuffer(units, dtype=_UNIT)
    order = in_thread_order(read["thread"].astype(np.int64), read["seq"].astype(np.int32))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    rows = read[order]
    ids = PackedIds(rows["id"])
    signals = Signals(
        surroundings=Surroundings(
            rows["thread"].astype(np.int64), rows["seq"].astype(np.int32), rows["length"].astype(np.int32)
        ),
        postings=postings(read["terms"], terms, list(query.terms.counts), place),
        similarity=None if query.embedding is None else rows["sim"].astype(np.float32),
        actor=rows["actor"].astype(bool),
        priors=_priors(rows),
        entity=counted(ids, named) if query.names else None,
    )
    return Candidates(ids=ids, signals=signals)


def _priors(rows: NDArray[np.void]) -> Priors:
    return Priors(
        happened=rows["happened"] / 1e6 + _EPOCH,
        hit=rows["hit"] / 1e6 + _EPOCH,
        importance=rows["importance"].astype(np.int64),
        pinned=(rows["marks"] & _PINNED) > 0,
        insight=(rows["marks"] & _INSIGHT) > 0,
        reinforcement=rows["reinforcement"].astype(np.int64),
        mentions=rows["mentions"].astype(np.int64),
        hits=rows["hits"].astype(np.int64),
    )
