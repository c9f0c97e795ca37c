"""How SQLite finds candidates, and how its rows are fetched."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite
import numpy as np
from numpy.typing import NDArray

from memplane.adapters.sql.packing import PackedIds
from memplane.adapters.sql.reader import SqlReader
from memplane.adapters.sql.rows import Row
from memplane.adapters.sql.scope import Predicate, memories_in, turns_in
from memplane.adapters.sql.statements import Statement
from memplane.adapters.sqlite.cache import MaterialCache, ScopeCache
from memplane.adapters.sqlite.cache import Row as CacheRow
from memplane.adapters.sqlite.values import SqliteSyntax, row_of
from memplane.application.ports import Candidates, Query
from memplane.domain.errors import StorageError
from memplane.domain.ranking import Signals
from memplane.domain.scope import Scope

SYNTAX = SqliteSyntax()
_FETCHED = 5_000
_ATTEMPTS = 4

# The rows in scope, by number alone. Served by ix_memories_scope and ix_turns_scope without touching the rows.
_SCOPE = "SELECT group_concat(u.rowid), {versions}, {expiry} FROM {table} u WHERE {scope}"
_EPOCH = "SELECT removals, changes FROM search_epoch"
# Served by the rowid.
_MATERIAL = """
SELECT u.rowid, {version}, u.id, {thread}, {seq}, u.term_length, u.actor_id, u.terms, u.embedding
  FROM {table} u WHERE u.rowid IN (SELECT value FROM json_each(:rowids))"""


@dataclass(frozen=True, slots=True)
class _Source:
    """A table of units, with the columns that only one of the two has."""

    table: str
    version: str
    versions: str
    expiry: str
    thread: str
    seq: str


_MEMORIES = _Source("memories", "u.version", "group_concat(u.version)", "min(u.expires_at)", "0", "0")
_TURNS = _Source("turns", "0", "NULL", "NULL", "u.thread_key", "u.seq")  # a turn is never rewritten


@dataclass(frozen=True, slots=True)
class SearchCaches:
    """The material of both tables of units, and which rows were in scope."""

    memories: MaterialCache
    turns: MaterialCache
    scopes: ScopeCache

    @classmethod
    def empty(cls, dimensions: int) -> "SearchCaches":
        """Caches that hold nothing yet."""
        return cls(MaterialCache(dimensions), MaterialCache(dimensions), ScopeCache())


class SqliteReader(SqlReader):
    """One read-only transaction."""

    syntax = SYNTAX

    def __init__(self, connection: aiosqlite.Connection, caches: SearchCaches) -> None:
        self._connection = connection
        self._caches = caches

    async def rows(self, statement: Statement) -> list[Row]:
        """The rows of a statement."""
        async with self._connection.execute(statement.sql, SYNTAX.bound(statement.values)) as cursor:
            names = [column[0] for column in cursor.description]
            return [row_of(names, row) for row in await cursor.fetchall()]

    async def candidates(self, scope: Scope, query: Query) -> Candidates:
        """All memories and turns in scope, with their signals for the query."""
        sources = (
            (_MEMORIES, memories_in(scope, SYNTAX, "u"), self._caches.memories),
            (_TURNS, turns_in(scope, SYNTAX, "u"), self._caches.turns),
        )
        found = [
            await self._signals(source, allowed, cache, query)
            for source, allowed, cache in sources
            if allowed is not None
        ]
        return _joined(found)

    async def _signals(
        self, source: _Source, allowed: Predicate, cache: MaterialCache, query: Query
    ) -> tuple[NDArray[np.void], Signals]:
        ((epoch, changes),) = await self._connection.execute_fetchall(_EPOCH)
        rowids, current = await self._in_scope(source, allowed, changes)
        for attempt in range(_ATTEMPTS):
            # a reader of an older snapshot than the cache, or one that always loses the race, reads for itself alone
            if epoch < cache.epoch or attempt == _ATTEMPTS - 1:
                cache = MaterialCache(cache.dimensions)
            with cache.lock:
                missing = cache.missing(epoch, rowids, current)
            await self._load(source, cache, epoch, missing)
            measured = await asyncio.to_thread(_measured, cache, epoch, (rowids, current), query)
            if measured is not None:
                return measured
        raise StorageError("the search cache could not be brought up to date")

    async def _in_scope(
        self, source: _Source, allowed: Predicate, changes: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row numbers and versions of the rows in scope, remembered until a unit changes or expires.

        Who is mentioned changes without a change of the unit, so a scope that asks for an entity is not remembered.
        """
        values = SYNTAX.bound(allowed.values)
        key = (source.table, allowed.sql, tuple((name, values[name]) for name in values if name != "now"))
        now = str(values.get("now", ""))
        lasting = "f_entity" not in values
        kept = self._caches.scopes.find(key, changes, now) if lasting else None
        if kept is not None:
            return kept
        sql = _SCOPE.format(table=source.table, versions=source.versions, expiry=source.expiry, scope=allowed.sql)
        ((rows, versions, expiry),) = await self._connection.execute_fetchall(sql, values)
        rowids = _numbers(rows)
        found = (rowids, _numbers(versions) if versions else np.zeros_like(rowids))
        if lasting:
            self._caches.scopes.keep(key, changes, expiry, found)
        return found

    async def _load(self, source: _Source, cache: MaterialCache, epoch: int, missing: list[int]) -> None:
        columns = {"table": source.table, "version": source.version, "thread": source.thread, "seq": source.seq}
        for start in range(0, len(missing), _FETCHED):
            part = {"rowids": json.dumps(missing[start : start + _FETCHED])}
            rows = await self._connection.execute_fetchall(_MATERIAL.format(**columns), part)
            await asyncio.to_thread(_hold, cache, epoch, [tuple(row) for row in rows])


def _hold(cache: MaterialCache, epoch: int, rows: Sequence[CacheRow]) -> None:
    with cache.lock:
        cache.add(epoch, rows)


def _measured(
    cache: MaterialCache, epoch: int, rows: tuple[NDArray[np.int64], NDArray[np.int64]], query: Query
) -> tuple[NDArray[np.void], Signals] | None:
    """The signals of rows, or ``None`` when another reader took them out of the cache; runs in a worker thread."""
    with cache.lock:
        if epoch < cache.epoch or cache.missing(epoch, *rows):
            return None
        places = cache.places(rows[0])
        signals = Signals(
            thread=cache.thread[places],
            seq=cache.seq[places],
            length=cache.length[places],
            frequency=cache.frequency(places, list(query.terms.counts)),
            similarity=None if query.embedding is None else cache.similarity(places, query.embedding),
            actor=cache.actor_named(places, query.words),
        )
        return cache.ids[places], signals


def _numbers(joined: str | None) -> NDArray[np.int64]:
    if not joined:
        return np.zeros(0, dtype=np.int64)
    return np.fromstring(joined, sep=",", dtype=np.int64)


def _joined(found: Sequence[tuple[NDArray[np.void], Signals]]) -> Candidates:
    signals = [part for _, part in found]
    similarities = [part.similarity for part in signals if part.similarity is not None]
    together = Signals(
        thread=np.concatenate([part.thread for part in signals]),
        seq=np.concatenate([part.seq for part in signals]),
        length=np.concatenate([part.length for part in signals]),
        frequency=np.concatenate([part.frequency for part in signals]),
        similarity=np.concatenate(similarities) if similarities else None,
        actor=np.concatenate([part.actor for part in signals]),
    )
    return Candidates(ids=PackedIds(np.concatenate([ids for ids, _ in found])), signals=together)
