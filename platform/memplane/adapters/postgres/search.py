"""How PostgreSQL finds candidates, and how its rows are fetched.

Every statement runs inside a transaction that has set the tenant for row-level security, and carries the scope
predicate besides. Named parameters are psycopg's.
"""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from pgvector import HalfVector
from psycopg import AsyncConnection
from psycopg.rows import tuple_row
from psycopg.sql import SQL

from memplane.adapters.postgres.active_embedding import Known, active_embedding_of, active_embedding_statement
from memplane.adapters.postgres.arrays import bind_arrays
from memplane.adapters.postgres.packed_units import (
    MEMORIES,
    TURNS,
    UNIT_BYTES,
    load_material,
    material_of,
    scan_of,
    unpack,
)
from memplane.adapters.postgres.pipeline import Maker, as_dicts, as_tuples
from memplane.adapters.postgres.scope_cache import (
    MOST_UNITS,
    CachedScope,
    Key,
    ScopeCache,
    ScopeSnapshot,
    changed_units,
    embedding_key,
    horizon,
    key_of,
)
from memplane.adapters.postgres.syntax import SYNTAX
from memplane.adapters.sql.queries.read_statements import Statement, mentioning
from memplane.adapters.sql.queries.reader import SqlReader
from memplane.adapters.sql.rows import Row
from memplane.adapters.sql.scope import Predicate, memories_in, turns_in
from memplane.application.limits.offload import offload
from memplane.application.recall.search_material import Candidates, Query, TextVectors
from memplane.domain.memory.scope import Scope
from memplane.domain.ranking.embedding_models import Column, InForce

T = TypeVar("T")


class _Changed(Exception):
    """The transaction sees other vectors in force than those that it was asked by."""

    def __init__(self, seen: InForce) -> None:
        super().__init__("the embedding model was changed")
        self.seen = seen


Asked = tuple[Mapping[str, str], Predicate]
"""A table of units, as packed columns, and the scope predicate for it."""


def sources_of(scope: Scope) -> list[Asked]:
    """The tables of which units may be in scope."""
    both = ((MEMORIES, memories_in(scope, SYNTAX, "u")), (TURNS, turns_in(scope, SYNTAX, "u")))
    return [(columns, allowed) for columns, allowed in both if allowed is not None]


def scan_statements(sources: Sequence[Asked], query: Query, vectors: Column) -> list[Statement]:
    """The scan of memories, and of turns where they are in scope, by the vectors of a column."""
    shared: dict[str, object] = {"words": list(query.words)}
    vector = query.vector
    if vector is not None:
        shared["embedding"] = HalfVector(vector)
    return [
        Statement(scan_of(columns, allowed, vectors, by_meaning=vector is not None), allowed.values | shared)
        for columns, allowed in sources
    ]


def material_statements(
    sources: Sequence[Asked], vectors: Column, within: tuple[int, int] | None = None
) -> list[Statement]:
    """The material of all units in scope, or of those that changed in a range of transactions."""
    later = {} if within is None else {"since": within[0], "next": within[1]}
    return [
        Statement(material_of(columns, allowed, vectors, since=within is not None), allowed.values | later)
        for columns, allowed in sources
    ]


class FetchRows(Protocol):
    """How the rows of several statements are got."""

    async def __call__(self, asked: Sequence[Statement], make: Maker[T]) -> list[list[T]]:
        """The rows of each, as they are made of their values."""
        ...


class PostgresReader(SqlReader):
    """The reads of one tenant, within one transaction."""

    syntax = SYNTAX

    def __init__(
        self,
        ask: FetchRows,
        tenant: str,
        scopes: ScopeCache | None = None,
        known: Known | None = None,
        *,
        seen: InForce | None = None,
    ) -> None:
        super().__init__(tenant)
        self._ask = ask
        self._scopes = scopes
        self._known = {} if known is None else known
        self._seen = seen

    async def rows(self, statement: Statement) -> list[Row]:
        """The rows of a statement."""
        (rows,) = await self.rows_of_all([statement])
        return rows

    async def rows_of_all(self, asked: Sequence[Statement]) -> list[list[Row]]:
        """The rows of several statements, sent together and then waited for."""
        return await self._ask(asked, as_dicts)

    async def candidates_apart(self, scope: Scope, query: Query) -> Candidates:
        """All memories and turns in a scope, with their signals for the query, by the model that is in force."""
        in_force = self._seen or self._known.get(self._tenant)
        if in_force is None or not _answers(query, in_force):
            in_force = await self._looked()
        try:
            found = await self._candidates(scope, query.by(in_force.model), in_force)
        except _Changed as error:
            in_force = error.seen
            found = await self._candidates(scope, query.by(in_force.model), in_force)
        return replace(found, model=in_force.model)

    async def _looked(self) -> InForce:
        """What the vectors are of, as this transaction sees it."""
        if self._seen is None:
            (rows,) = await self._ask([active_embedding_statement(self._tenant)], as_tuples)
            self._seen = self._known[self._tenant] = active_embedding_of(rows)
        return self._seen

    def _asking(self) -> list[Statement]:
        """What asks for it beside other statements, unless it is known."""
        return [] if self._seen else [active_embedding_statement(self._tenant)]

    def _require(self, in_force: InForce, found: list[list[Any]]) -> None:
        """Take the answer off the end of what was found, unless it is known; stop where it is another."""
        if self._seen is None:
            self._seen = self._known[self._tenant] = active_embedding_of(found.pop())
            if self._seen != in_force:
                raise _Changed(self._seen)

    async def _candidates(self, scope: Scope, query: Query, in_force: InForce) -> Candidates:
        sources = sources_of(scope)
        key = key_of(scope, [allowed for _, allowed in sources])
        if self._scopes is None or key is None:
            return await self._scanned(sources, scope, query, in_force)
        kept = self._scopes.find(key)
        if kept is None:
            if not self._scopes.worth(key):
                return await self._scanned(sources, scope, query, in_force)
            return await self._remembered(self._scopes, key, scope, query, in_force)
        found = await self.rows_of_all([horizon(scope, query.names), *self._asking()])
        self._require(in_force, found)
        seen = found[0][0]
        look = ScopeSnapshot.of(seen)
        async with kept.lock:
            if kept.look.age <= look.age:
                if not kept.right(look, scope.now) or kept.vectors != embedding_key(in_force):
                    self._scopes.forget(key)
                    return await self._remembered(self._scopes, key, scope, query, in_force)
                if not kept.current(look):
                    await self._brought_up(kept, look, scope, sources)
                    self._scopes.settle()
                return await offload(kept.material.count, kept.measure, query, _named(seen))
        # others have looked later than this transaction does
        return await self._scanned(sources, scope, query, in_force)

    async def _scanned(self, sources: Sequence[Asked], scope: Scope, query: Query, in_force: InForce) -> Candidates:
        """Without anything remembered: one pass over the scope, in which the database measures the similarity."""
        named = [mentioning(scope, SYNTAX, query.names)] if query.names else []
        asked = [*scan_statements(sources, query, in_force.column), *named, *self._asking()]
        found = await self._ask(asked, as_tuples)
        self._require(in_force, found)
        scans = found[: len(sources)]
        units = b"".join(rows[0][0] or b"" for rows in scans)
        terms = b"".join(rows[0][1] or b"" for rows in scans)
        mentions = b"".join(rows[0][0] or b"" for rows in found[len(sources) :])
        return await offload(len(units) // UNIT_BYTES, unpack, units, terms, query, mentions)

    async def _remembered(
        self, scopes: ScopeCache, key: Key, scope: Scope, query: Query, in_force: InForce
    ) -> Candidates:
        """The whole scope's material, kept for the next question."""
        statements = material_statements(sources_of(scope), in_force.column)
        found = await self.rows_of_all([horizon(scope, query.names), *statements, *self._asking()])
        self._require(in_force, found)
        (seen,), *parts = found
        size = sum(len(part[0]["units"] or b"") for part in parts) // UNIT_BYTES
        dimensions = scopes.size_of(in_force)

        def made() -> tuple[CachedScope, Candidates]:
            kept = scopes.build_scope(
                ScopeSnapshot.of(seen), [load_material(part[0], dimensions) for part in parts], in_force
            )
            return kept, kept.measure(query, _named(seen))

        kept, candidates = await offload(size, made)
        if size <= MOST_UNITS:
            scopes.keep(key, kept)
        return candidates

    async def _brought_up(self, kept: CachedScope, look: ScopeSnapshot, scope: Scope, sources: Sequence[Asked]) -> None:
        """What changed since the scope was looked at, in its place; by who holds the lock."""
        since = kept.look.horizon
        gone = [changed_units(columns["table"], scope, since, look.next) for columns, _ in sources]
        more = material_statements(sources, kept.vectors[0], (since, look.next))
        found = await self.rows_of_all([*gone, *more])
        left, material = found[: len(sources)], found[len(sources) :]
        size = sum(len(rows[0]["units"] or b"") for rows in material) // UNIT_BYTES

        def placed() -> None:
            for rows in left:
                kept.take_out(rows[0]["ids"] or b"")
            kept.put([load_material(rows[0], kept.material.dimensions) for rows in material])

        try:
            await offload(size, placed)
        except BaseException:
            kept.unsure = True  # a thread that nobody waits for any more may still be at it
            raise
        kept.look = look


def _answers(query: Query, in_force: InForce) -> bool:
    """Whether a question has a vector for it."""
    embedded, model = query.embedding, in_force.model
    return model is None or not isinstance(embedded, TextVectors) or model.key in embedded.by_model


def by_cursors(connection: AsyncConnection[Any]) -> FetchRows:
    """How a transaction that the driver began is asked."""

    async def ask(asked: Sequence[Statement], make: Maker[T]) -> list[list[T]]:
        async with AsyncExitStack() as opened:
            cursors = []
            for statement in asked:  # within a pipeline they travel together
                cursor = await opened.enter_async_context(connection.cursor(row_factory=tuple_row, binary=True))
                cursors.append(await cursor.execute(SQL(statement.sql), bind_arrays(statement.values)))
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
