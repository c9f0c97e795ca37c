"""How PostgreSQL finds candidates, and how its rows are fetched.

Every statement runs inside a transaction that has set the tenant for row-level security, and carries the scope
predicate besides. Named parameters are psycopg's.
"""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol, TypeVar

from pgvector import HalfVector
from psycopg import AsyncConnection
from psycopg.rows import tuple_row
from psycopg.sql import SQL

from memplane.adapters.postgres.arrays import arrayed
from memplane.adapters.postgres.exchange import Maker, as_dicts, as_tuples
from memplane.adapters.postgres.packed import MEMORIES, TURNS, UNIT_BYTES, loaded, material_of, scan_of, unpack
from memplane.adapters.postgres.scopes import (
    MOST_UNITS,
    Kept,
    Key,
    Look,
    ScopeMemory,
    changed,
    horizon,
    key_of,
)
from memplane.adapters.postgres.syntax import SYNTAX
from memplane.adapters.sql.reader import SqlReader
from memplane.adapters.sql.rows import Row
from memplane.adapters.sql.scope import Predicate, memories_in, turns_in
from memplane.adapters.sql.statements import Statement, mentioning
from memplane.application.offload import offload
from memplane.application.records import Candidates, Query
from memplane.domain.scope import Scope

T = TypeVar("T")


Asked = tuple[Mapping[str, str], Predicate]
"""A table of units, as packed columns, and the scope predicate for it."""


def sources_of(scope: Scope) -> list[Asked]:
    """The tables of which units may be in scope."""
    both = ((MEMORIES, memories_in(scope, SYNTAX, "u")), (TURNS, turns_in(scope, SYNTAX, "u")))
    return [(columns, allowed) for columns, allowed in both if allowed is not None]


def scan_statements(sources: Sequence[Asked], query: Query) -> list[Statement]:
    """The scan of memories, and of turns where they are in scope."""
    shared: dict[str, object] = {"words": list(query.words)}
    if query.embedding is not None:
        shared["embedding"] = HalfVector(query.embedding)
    return [
        Statement(scan_of(columns, allowed, by_meaning=query.embedding is not None), allowed.values | shared)
        for columns, allowed in sources
    ]


def material_statements(sources: Sequence[Asked], within: tuple[int, int] | None = None) -> list[Statement]:
    """The material of all units in scope, or of those that changed in a range of transactions."""
    later = {} if within is None else {"since": within[0], "next": within[1]}
    return [
        Statement(material_of(columns, allowed, since=within is not None), allowed.values | later)
        for columns, allowed in sources
    ]


class Ask(Protocol):
    """How the rows of several statements are got."""

    async def __call__(self, asked: Sequence[Statement], make: Maker[T]) -> list[list[T]]:
        """The rows of each, as they are made of their values."""
        ...


class PostgresReader(SqlReader):
    """The reads of one tenant, within one transaction."""

    syntax = SYNTAX

    def __init__(self, ask: Ask, tenant: str, scopes: ScopeMemory | None = None) -> None:
        super().__init__(tenant)
        self._ask = ask
        self._scopes = scopes

    async def rows(self, statement: Statement) -> list[Row]:
        """The rows of a statement."""
        (rows,) = await self.rows_of_all([statement])
        return rows

    async def rows_of_all(self, asked: Sequence[Statement]) -> list[list[Row]]:
        """The rows of several statements, sent together and then waited for."""
        return await self._ask(asked, as_dicts)

    async def candidates(self, scope: Scope, query: Query) -> Candidates:
        """All memories and turns in scope, with their signals for the query."""
        sources = sources_of(scope)
        key = key_of(scope, [allowed for _, allowed in sources])
        if self._scopes is None or key is None:
            return await self._scanned(sources, scope, query)
        kept = self._scopes.find(key)
        if kept is None:
            if not self._scopes.worth(key):
                return await self._scanned(sources, scope, query)
            return await self._remembered(self._scopes, key, scope, query)
        (seen,) = await self.rows(horizon(scope, query.names))
        look = Look.of(seen)
        async with kept.lock:
            if kept.look.age <= look.age:
                if not kept.right(look, scope.now):
                    self._scopes.forget(key)
                    return await self._remembered(self._scopes, key, scope, query)
                if not kept.current(look):
                    await self._brought_up(kept, look, scope, sources)
                    self._scopes.settle()
                return await offload(kept.material.count, kept.measured, query, _named(seen))
        return await self._scanned(sources, scope, query)  # others have looked later than this transaction does

    async def _scanned(self, sources: Sequence[Asked], scope: Scope, query: Query) -> Candidates:
        """Without anything remembered: one pass over the scope, in which the database measures the similarity."""
        named = [mentioning(scope, SYNTAX, query.names)] if query.names else []
        found = await self._ask([*scan_statements(sources, query), *named], as_tuples)
        scans = found[: len(sources)]
        units = b"".join(rows[0][0] or b"" for rows in scans)
        terms = b"".join(rows[0][1] or b"" for rows in scans)
        mentions = b"".join(rows[0][0] or b"" for rows in found[len(sources) :])
        return await offload(len(units) // UNIT_BYTES, unpack, units, terms, query, mentions)

    async def _remembered(self, scopes: ScopeMemory, key: Key, scope: Scope, query: Query) -> Candidates:
        """The whole scope's material, kept for the next question."""
        asked = [horizon(scope, query.names), *material_statements(sources_of(scope))]
        (seen,), *parts = await self.rows_of_all(asked)
        size = sum(len(part[0]["units"] or b"") for part in parts) // UNIT_BYTES

        def made() -> tuple[Kept, Candidates]:
            kept = scopes.made(Look.of(seen), [loaded(part[0], scopes.dimensions) for part in parts])
            return kept, kept.measured(query, _named(seen))

        kept, candidates = await offload(size, made)
        if size <= MOST_UNITS:
            scopes.keep(key, kept)
        return candidates

    async def _brought_up(self, kept: Kept, look: Look, scope: Scope, sources: Sequence[Asked]) -> None:
        """What changed since the scope was looked at, in its place; by who holds the lock."""
        since = kept.look.horizon
        gone = [changed(columns["table"], scope, since, look.next) for columns, _ in sources]
        found = await self.rows_of_all([*gone, *material_statements(sources, (since, look.next))])
        left, material = found[: len(sources)], found[len(sources) :]
        size = sum(len(rows[0]["units"] or b"") for rows in material) // UNIT_BYTES

        def placed() -> None:
            for rows in left:
                kept.take_out(rows[0]["ids"] or b"")
            kept.put([loaded(rows[0], kept.material.dimensions) for rows in material])

        try:
            await offload(size, placed)
        except BaseException:
            kept.unsure = True  # a thread that nobody waits for any more may still be at it
            raise
        kept.look = look


def by_cursors(connection: AsyncConnection[Any]) -> Ask:
    """How a transaction that the driver began is asked."""

    async def ask(asked: Sequence[Statement], make: Maker[T]) -> list[list[T]]:
        async with AsyncExitStack() as opened:
            cursors = []
            for statement in asked:  # within a pipeline they travel together
                cursor = await opened.enter_async_context(connection.cursor(row_factory=tuple_row, binary=True))
                cursors.append(await cursor.execute(SQL(statement.sql), arrayed(statement.values)))
            found: list[list[T]] = []
            for cursor in cursors:
                rows = await cursor.fetchall()
                made = make([column.name for column in cursor.description or ()])
                found.append([made(values) for values in rows])
            return found

    return ask


def _named(seen: Row) -> bytes:
    """Packed ids of what mentions whom the question names."""
    found: bytes | None = seen.get("named")
    return found or b""
