"""How PostgreSQL finds candidates, and how its rows are fetched.

Every statement runs inside a transaction that has set the tenant for row-level security, and carries the scope
predicate besides. Named parameters are psycopg's.
"""

from collections.abc import Mapping
from contextlib import AsyncExitStack

import numpy as np
from pgvector import HalfVector
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row, tuple_row
from psycopg.sql import SQL

from memplane.adapters.sql.packing import PackedIds, frequency
from memplane.adapters.sql.reader import SqlReader
from memplane.adapters.sql.rows import Row
from memplane.adapters.sql.scope import memories_in, turns_in
from memplane.adapters.sql.statements import Statement
from memplane.application.ports import Candidates, Query
from memplane.domain.ranking import Signals
from memplane.domain.scope import Scope


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
    ]
)
"""One unit as the scan packs it, big-endian like PostgreSQL's binary send functions."""

# One pass over the units in scope: their places, lengths, similarity and terms, packed so that 10 000 units travel as
# two values. Served by ix_memories_user and uq_turns_tenant_id_user_id_thread_id_seq; cost follows the scope.
_SCAN = """
SELECT string_agg(uuid_send(u.id) || int8send({thread}) || int4send({seq}) || int4send(u.term_length)
         || int4send(octet_length(u.terms) / 5) || float4send({similarity}) || {actor}, ''::bytea),
       string_agg(u.terms, ''::bytea)
  FROM {table} u
 WHERE {scope}"""
_SIMILARITY = "coalesce(-(u.embedding <#> %(embedding)s::halfvec), 'NaN')::real"
_NO_SIMILARITY = "'NaN'::real"
_ACTOR = r"CASE WHEN string_to_array(lower(u.actor_id), ' ') && %(words)s THEN '\x01'::bytea ELSE '\x00'::bytea END"


def scan_statements(scope: Scope, query: Query) -> list[Statement]:
    """The scan of memories, and of turns where they are in scope."""
    shared: dict[str, object] = {"words": list(query.words)}
    if query.embedding is not None:
        shared["embedding"] = HalfVector(query.embedding)
    sources = (
        ("memories", memories_in(scope, SYNTAX, "u"), "0", "0"),
        ("turns", turns_in(scope, SYNTAX, "u"), "u.thread_key", "u.seq::int4"),
    )
    parts = []
    for table, allowed, thread, seq in sources:
        if allowed is not None:
            similarity = _NO_SIMILARITY if query.embedding is None else _SIMILARITY
            sql = _SCAN.format(
                table=table, scope=allowed.sql, thread=thread, seq=seq, similarity=similarity, actor=_ACTOR
            )
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

    async def candidates(self, scope: Scope, query: Query) -> Candidates:
        """All memories and turns in scope, with their signals for the query."""
        packed: list[bytes] = []
        terms: list[bytes] = []
        async with AsyncExitStack() as open_cursors:
            cursors = []
            for statement in scan_statements(scope, query):  # sent together, then waited for
                cursor = await open_cursors.enter_async_context(
                    self._connection.cursor(row_factory=tuple_row, binary=True)
                )
                cursors.append(await cursor.execute(SQL(statement.sql), statement.values))
            for cursor in cursors:
                units, unit_terms = await cursor.fetchone() or (None, None)
                packed.append(units or b"")
                terms.append(unit_terms or b"")
        return unpack(b"".join(packed), b"".join(terms), query)


def unpack(units: bytes, terms: bytes, query: Query) -> Candidates:
    """Packed units and their terms as ids and signals."""
    rows = np.frombuffer(units, dtype=_UNIT)
    signals = Signals(
        thread=rows["thread"].astype(np.int64),
        seq=rows["seq"].astype(np.int32),
        length=rows["length"].astype(np.int32),
        frequency=frequency(rows["terms"], terms, list(query.terms.counts)),
        similarity=None if query.embedding is None else rows["sim"].astype(np.float32),
        actor=rows["actor"].astype(bool),
    )
    return Candidates(ids=PackedIds(rows["id"]), signals=signals)
