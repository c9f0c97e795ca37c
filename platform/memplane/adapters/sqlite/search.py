"""How SQLite finds candidates, and how its rows are fetched."""

import json
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memplane.adapters.sql.packing import PackedIds, counted
from memplane.adapters.sql.reader import SqlReader
from memplane.adapters.sql.rows import Row
from memplane.adapters.sql.scope import Predicate, memories_in, turns_in
from memplane.adapters.sql.statements import Statement, mentioning
from memplane.adapters.sqlite.cache import MaterialCache, Numbers, ScopeCache, ScopeKey
from memplane.adapters.sqlite.engine import Snapshot
from memplane.adapters.sqlite.values import SqliteSyntax, rows_of
from memplane.application.records import Candidates, Query
from memplane.domain.priors import TURN_IMPORTANCE, Priors, joined
from memplane.domain.ranking import Posting, Signals
from memplane.domain.scope import Scope
from memplane.domain.surroundings import Surroundings, in_thread_order

SYNTAX = SqliteSyntax()
_FETCHED = 5_000

# The rows in scope, by number alone. Served by ix_memories_scope and ix_turns_scope without touching the rows.
_SCOPE = "SELECT group_concat(u.rowid), {versions}, {expiry} FROM {table} u WHERE {scope}"
_EPOCH = "SELECT removals, changes FROM search_epoch"
# Served by the rowid.
_MATERIAL = """
SELECT u.rowid, {version}, u.id, {thread}, {seq}, u.term_length, u.actor_id, u.terms, u.embedding, {priors}
  FROM {table} u WHERE u.rowid IN (SELECT value FROM json_each(:rowids))"""


# when the first of them expires or is no longer true
_ENDS = "min(min(coalesce(u.expires_at, '9999'), coalesce(u.valid_until, '9999')))"


@dataclass(frozen=True, slots=True)
class _Source:
    """A table of units, with the columns that only one of the two has."""

    table: str
    version: str
    versions: str
    expiry: str
    thread: str
    seq: str
    priors: str


_SECONDS = "(julianday({}) - 2440587.5) * 86400.0"
_OF_MEMORIES = (
    f"{_SECONDS.format('coalesce(u.event_time, u.updated_at)')},"
    f" {_SECONDS.format('coalesce(u.last_hit_at, u.recorded_at)')},"
    " u.importance, u.pinned, u.type = 'insight', u.reinforcement, u.mention_count, u.hits"
)
_OF_TURNS = (
    f"{_SECONDS.format('coalesce(u.event_time, u.recorded_at)')}, {_SECONDS.format('u.recorded_at')},"
    f" {TURN_IMPORTANCE}, 0, 0, 0, 1, 0"
)
_MEMORIES = _Source("memories", "u.version", "group_concat(u.version)", _ENDS, "0", "0", _OF_MEMORIES)
_TURNS = _Source("turns", "0", "NULL", "NULL", "u.thread_key", "u.seq", _OF_TURNS)  # a turn is never rewritten


@dataclass(frozen=True, slots=True)
class _InScope:
    """The units of one table that are in scope, in thread order.

    Attributes:
        cache: holds their material.
        places: where the cache holds them; right for as long as no row is removed.
        expiry: when the first of them expires.
    """

    cache: MaterialCache
    places: Numbers
    expiry: str | None


@dataclass(frozen=True, slots=True)
class _Units:
    """Every unit in scope: the memories, then the turns.

    Attributes:
        parts: by table.
        stands: for each place of a part's cache, where the unit stands among all; -1 for one that is not in scope.
        ids: of the units.
        surroundings: who stands next to whom.
        priors: what speaks for them beside the question.
    """

    parts: Sequence[_InScope]
    stands: Sequence[Numbers]
    ids: PackedIds
    surroundings: Surroundings
    priors: Priors

    @classmethod
    def of(cls, parts: Sequence[_InScope]) -> "_Units":
        """All units of some tables."""
        stands, start = [], 0
        for part in parts:
            places = np.full(part.cache.count, -1, dtype=np.int64)
            places[part.places] = np.arange(start, start + len(part.places))
            stands.append(places)
            start += len(part.places)
        thread, seq, length, ids = (
            np.concatenate([getattr(part.cache, column)[part.places] for part in parts])
            for column in ("thread", "seq", "length", "ids")
        )
        priors = joined([part.cache.priors(part.places) for part in parts])
        return cls(parts, stands, PackedIds(ids), Surroundings(thread, seq, length), priors)

    def postings(self, terms: Sequence[int]) -> list[Posting]:
        """For each term, the units that hold it, and how often."""
        found: list[Posting] = []
        for held in zip(*(part.cache.holders(terms) for part in self.parts), strict=True):
            places, counts = [], []
            for stands, (place, count) in zip(self.stands, held, strict=True):
                early = place < len(stands)  # what was added since the scope was found is not in it
                unit = stands[place[early]]
                places.append(unit[unit >= 0])
                counts.append(count[early][unit >= 0])
            found.append((np.concatenate(places), np.concatenate(counts)))
        return found


@dataclass(frozen=True, slots=True)
class SearchCaches:
    """The material of both tables of units, and what is known of scopes."""

    memories: MaterialCache
    turns: MaterialCache
    scopes: ScopeCache[_Units]
    lock: threading.Lock

    @classmethod
    def empty(cls, dimensions: int) -> "SearchCaches":
        """Caches that hold nothing yet."""
        return cls(MaterialCache(dimensions), MaterialCache(dimensions), ScopeCache(), threading.Lock())


def fetched(connection: sqlite3.Connection, statement: Statement) -> list[Row]:
    """The rows of a statement."""
    cursor = connection.execute(statement.sql, SYNTAX.bound(statement.values))
    return list(rows_of(tuple(column[0] for column in cursor.description), cursor))


class SqliteReader(SqlReader):
    """One read-only transaction."""

    syntax = SYNTAX

    def __init__(self, snapshot: Snapshot, caches: SearchCaches) -> None:
        self._snapshot = snapshot
        self._caches = caches

    async def rows(self, statement: Statement) -> list[Row]:
        """The rows of a statement."""
        return await self._snapshot.run(lambda connection: fetched(connection, statement))

    async def rows_of_all(self, asked: Sequence[Statement]) -> list[list[Row]]:
        """The rows of several statements, read in one go."""
        return await self._snapshot.run(lambda connection: [fetched(connection, statement) for statement in asked])

    async def candidates(self, scope: Scope, query: Query) -> Candidates:
        """All memories and turns in scope, with their signals for the query."""
        return await self._snapshot.run(lambda connection: _candidates(connection, self._caches, scope, query))


def _candidates(connection: sqlite3.Connection, caches: SearchCaches, scope: Scope, query: Query) -> Candidates:
    """Find the units in scope and measure them; one thread at a time, for they would load the same."""
    with caches.lock:
        units = _units(connection, caches, scope)
        return Candidates(units.ids, _measured(units, query, _named(connection, scope, query)))


def _named(connection: sqlite3.Connection, scope: Scope, query: Query) -> list[Row]:
    """Memories that mention what the query names."""
    return fetched(connection, mentioning(scope, SYNTAX, query.names)) if query.names else []


def _units(connection: sqlite3.Connection, caches: SearchCaches, scope: Scope) -> _Units:
    """The units in scope, remembered until a unit changes or expires.

    Who is mentioned changes without a change of the unit, so a scope that asks for an entity is not remembered.
    """
    epoch, changes = connection.execute(_EPOCH).fetchone()
    if epoch < max(caches.memories.epoch, caches.turns.epoch):
        caches = SearchCaches.empty(caches.memories.dimensions)  # an old snapshot: read for itself alone
    sources = (
        (_MEMORIES, memories_in(scope, SYNTAX, "u"), caches.memories),
        (_TURNS, turns_in(scope, SYNTAX, "u"), caches.turns),
    )
    wanted = [(source, allowed, cache) for source, allowed, cache in sources if allowed is not None]
    key = _key([allowed for _, allowed, _ in wanted])
    lasting = scope.filters.entity is None
    kept = caches.scopes.find(key, changes, _time(scope)) if lasting else None
    if kept is not None:
        return kept
    parts = [_in_scope(connection, source, allowed, cache, epoch) for source, allowed, cache in wanted]
    units = _Units.of(parts)
    if lasting:
        expiries = [part.expiry for part in parts if part.expiry is not None]
        caches.scopes.keep(key, changes, min(expiries, default=None), units)
    return units


def _key(asked: Sequence[Predicate]) -> ScopeKey:
    """What makes two scopes the same, whenever they are asked for."""
    parts: list[object] = []
    for allowed in asked:
        values = SYNTAX.bound(allowed.values)
        parts += [allowed.sql, *((name, values[name]) for name in values if name != "now")]
    return tuple(parts)


def _time(scope: Scope) -> str:
    return str(SYNTAX.bound({"now": scope.now})["now"])


def _in_scope(
    connection: sqlite3.Connection, source: _Source, allowed: Predicate, cache: MaterialCache, epoch: int
) -> _InScope:
    """The rows of one table that are in scope, with their material in the cache."""
    sql = _SCOPE.format(table=source.table, versions=source.versions, expiry=source.expiry, scope=allowed.sql)
    rows, versions, expiry = connection.execute(sql, SYNTAX.bound(allowed.values)).fetchone()
    rowids = _numbers(rows)
    current = _numbers(versions) if versions else np.zeros_like(rowids)
    _load(connection, source, cache, epoch, cache.missing(epoch, rowids, current))
    places = cache.places(rowids)
    places = places[in_thread_order(cache.thread[places], cache.seq[places])]
    return _InScope(cache, places, expiry)


def _load(
    connection: sqlite3.Connection, source: _Source, cache: MaterialCache, epoch: int, missing: Sequence[int]
) -> None:
    """Read what the cache does not hold yet."""
    columns = {name: getattr(source, name) for name in ("table", "version", "thread", "seq", "priors")}
    for start in range(0, len(missing), _FETCHED):
        part = {"rowids": json.dumps(missing[start : start + _FETCHED])}
        cache.add(epoch, connection.execute(_MATERIAL.format(**columns), part).fetchall())


def _measured(units: _Units, query: Query, named: Sequence[Row]) -> Signals:
    """The signals of units for a query."""
    similarity = None
    if query.embedding is not None:
        similarity = np.concatenate([part.cache.similarity(part.places, query.embedding) for part in units.parts])
    return Signals(
        surroundings=units.surroundings,
        postings=units.postings(list(query.terms.counts)),
        similarity=similarity,
        actor=np.concatenate([part.cache.actor_named(part.places, query.words) for part in units.parts]),
        priors=units.priors,
        entity=counted(units.ids, named) if query.names else None,
    )


def _numbers(joined: str | None) -> Numbers:
    if not joined:
        return np.zeros(0, dtype=np.int64)
    return np.fromstring(joined, sep=",", dtype=np.int64)
