"""How SQLite finds candidates, and how its rows are fetched."""

import json
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import sqlalchemy as sa

from memplane.adapters.sql.queries.material import Material, Numbers
from memplane.adapters.sql.queries.packing import PackedIds
from memplane.adapters.sql.queries.read_statements import Statement, mentioning
from memplane.adapters.sql.queries.reader import SqlReader
from memplane.adapters.sql.queries.units import UnitPart, Units, measure, part_of
from memplane.adapters.sql.rows import Row
from memplane.adapters.sql.scope import Predicate, memories_in, turns_in
from memplane.adapters.sql.session import SqlSession
from memplane.adapters.sqlite.engine import Snapshot
from memplane.adapters.sqlite.scope_cache import FileScopeCache, ScopeKey, columns_of
from memplane.adapters.sqlite.values import SqliteSyntax, rows_of
from memplane.application.jobs.vector_records import Kind
from memplane.application.recall.search_material import Candidates, Query
from memplane.domain.memory.scope import Scope
from memplane.domain.ranking.embedding_models import Column, InForce
from memplane.domain.ranking.priors import TURN_IMPORTANCE

SYNTAX = SqliteSyntax()
_FETCHED = 5_000

# The rows in scope, by number alone. Served by ix_memories_scope and ix_turns_scope without touching the rows.
_SCOPE = "SELECT group_concat(u.rowid), {versions}, {expiry} FROM {table} u WHERE {scope}"
# served by pk_metadata
_IN_FORCE = "SELECT value FROM metadata WHERE tenant_id = :tenant AND name = 'embedding'"
_EPOCH = "SELECT removals, changes FROM search_epoch"
_FRESHEN = sa.text("UPDATE search_epoch SET changes = changes + 1, removals = removals + 1")
# Served by the rowid.
_MATERIAL = """
SELECT u.rowid, {version}, u.id, {thread}, {seq}, u.term_length, u.actor_id, u.terms, u.{vectors}, {priors}
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
    " u.importance, u.pinned, u.type IN ('insight', 'reflection'), u.reinforcement, u.mention_count, u.hits"
)
_OF_TURNS = (
    f"{_SECONDS.format('coalesce(u.event_time, u.recorded_at)')}, {_SECONDS.format('u.recorded_at')},"
    f" {TURN_IMPORTANCE}, 0, 0, 0, 1, 0"
)
_MEMORIES = _Source("memories", "u.version", "group_concat(u.version)", _ENDS, "0", "0", _OF_MEMORIES)
_TURNS = _Source("turns", "0", "NULL", "NULL", "u.thread_key", "u.seq", _OF_TURNS)  # a turn is never rewritten


@dataclass(frozen=True, slots=True)
class SearchCaches:
    """The material of both tables of units, and what is known of scopes."""

    memories: Material
    turns: Material
    scopes: FileScopeCache[Units]
    lock: threading.Lock
    in_force: InForce

    @classmethod
    def empty(cls, dimensions: int, in_force: InForce) -> "SearchCaches":
        """Caches that hold nothing yet, for vectors of a length."""
        return cls(Material(dimensions), Material(dimensions), FileScopeCache(), threading.Lock(), in_force)

    def anew(self) -> "SearchCaches":
        """The same, empty."""
        return self.empty(self.memories.dimensions, self.in_force)


async def freshen(session: SqlSession, _kind: Kind, _ids: Sequence[UUID]) -> None:
    """Have what is remembered of units read anew, whatever their version: all that is held is given up."""
    await session.execute(_FRESHEN)


async def reread(session: SqlSession, _users: Sequence[str]) -> None:
    """Have what is remembered of users' units read anew: all that is held is given up."""
    await session.execute(_FRESHEN)


class CachesInForce:
    """The caches of what is in force; those of an embedding model that was in force before are given up.

    Args:
        dimensions: of the embeddings of a file that was never used.
    """

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._caches = SearchCaches.empty(dimensions, InForce())

    def of(self, in_force: InForce) -> SearchCaches:
        """The caches for what a snapshot sees in force."""
        held = self._caches
        if (held.in_force.column, held.in_force.model) != (in_force.column, in_force.model):
            dimensions = self._dimensions if in_force.model is None else in_force.model.dimensions
            held = self._caches = SearchCaches.empty(dimensions, in_force)
        return held

    def clear(self) -> None:
        """Let go of everything."""
        self._caches = self._caches.anew()


def fetch_rows(connection: sqlite3.Connection, statement: Statement) -> list[Row]:
    """The rows of a statement."""
    cursor = connection.execute(statement.sql, SYNTAX.bind_values(statement.values))
    return list(rows_of(tuple(column[0] for column in cursor.description), cursor))


class SqliteReader(SqlReader):
    """One read-only transaction."""

    syntax = SYNTAX

    def __init__(self, snapshot: Snapshot, caches: CachesInForce, tenant: str) -> None:
        super().__init__(tenant)
        self._snapshot = snapshot
        self._caches = caches

    async def rows(self, statement: Statement) -> list[Row]:
        """The rows of a statement."""
        return await self._snapshot.run(lambda connection: fetch_rows(connection, statement))

    async def rows_of_all(self, asked: Sequence[Statement]) -> list[list[Row]]:
        """The rows of several statements, read in one go."""
        return await self._snapshot.run(lambda connection: [fetch_rows(connection, statement) for statement in asked])

    async def candidates_apart(self, scope: Scope, query: Query) -> Candidates:
        """All memories and turns in a scope, with their signals for the query."""
        return await self._snapshot.run(lambda connection: _candidates(connection, self._caches, scope, query))


def _candidates(connection: sqlite3.Connection, remembered: CachesInForce, scope: Scope, query: Query) -> Candidates:
    """Find the units in scope and measure them; one thread at a time, for they would load the same."""
    in_force = in_force_of(connection, scope.tenant)
    caches, query = remembered.of(in_force), query.by(in_force.model)
    with caches.lock:
        units = _units(connection, caches, scope)
        signals = measure(units, query, _named(connection, scope, query))
    return Candidates(units.ids, signals, in_force.model)


def in_force_of(connection: sqlite3.Connection, tenant: str) -> InForce:
    """What the tenant's vectors are of, as a transaction sees it.

    Raises:
        EmbeddingMismatch: it was recorded in another form.
    """
    row = connection.execute(_IN_FORCE, {"tenant": tenant}).fetchone()
    return InForce.of(None if row is None else json.loads(row[0]))


def _named(connection: sqlite3.Connection, scope: Scope, query: Query) -> bytes:
    """Packed ids of memories that mention what the query names."""
    if not query.names:
        return b""
    return PackedIds.unpack(fetch_rows(connection, mentioning(scope, SYNTAX, query.names))[0]["ids"])


def _units(connection: sqlite3.Connection, caches: SearchCaches, scope: Scope) -> Units:
    """The units in scope, remembered until a unit changes or expires.

    Who is mentioned changes without a change of the unit, so a scope that asks for an entity is not remembered.
    """
    epoch, changes = connection.execute(_EPOCH).fetchone()
    if epoch < max(caches.memories.epoch, caches.turns.epoch):
        caches = caches.anew()  # an old snapshot: read for itself alone
    sources = (
        (_MEMORIES, memories_in(scope, SYNTAX, "u"), caches.memories),
        (_TURNS, turns_in(scope, SYNTAX, "u"), caches.turns),
    )
    wanted = [(source, allowed, cache) for source, allowed, cache in sources if allowed is not None]
    key = _key([allowed for _, allowed, _ in wanted])
    lasting = not scope.filters.entities
    kept = caches.scopes.find(key, changes, _time(scope)) if lasting else None
    if kept is not None:
        return kept
    vectors = caches.in_force.column
    found = [_in_scope(connection, source, allowed, (vectors, cache), epoch) for source, allowed, cache in wanted]
    units = Units.of([part for part, _ in found])
    if lasting:
        expiries = [expiry for _, expiry in found if expiry is not None]
        caches.scopes.keep(key, changes, min(expiries, default=None), units)
    return units


def _key(asked: Sequence[Predicate]) -> ScopeKey:
    """What makes two scopes the same, whenever they are asked for."""
    parts: list[object] = []
    for allowed in asked:
        values = SYNTAX.bind_values(allowed.values)
        parts += [allowed.sql, *((name, values[name]) for name in values if name != "now")]
    return tuple(parts)


def _time(scope: Scope) -> str:
    return str(SYNTAX.bind_values({"now": scope.now})["now"])


def _in_scope(
    connection: sqlite3.Connection, source: _Source, allowed: Predicate, held: tuple[Column, Material], epoch: int
) -> tuple[UnitPart, str | None]:
    """The rows of one table that are in scope, with their material in the cache; and when the first of them expires."""
    sql = _SCOPE.format(table=source.table, versions=source.versions, expiry=source.expiry, scope=allowed.sql)
    rows, versions, expiry = connection.execute(sql, SYNTAX.bind_values(allowed.values)).fetchone()
    cache, rowids = held[1], _numbers(rows)
    current = _numbers(versions) if versions else np.zeros_like(rowids)
    _load(connection, source, held, epoch, cache.missing(epoch, rowids, current))
    return part_of(cache, cache.places(rowids)), expiry


def _load(
    connection: sqlite3.Connection, source: _Source, held: tuple[Column, Material], epoch: int, missing: Sequence[int]
) -> None:
    """Read what the cache does not hold yet."""
    vectors, cache = held
    columns = {name: getattr(source, name) for name in ("table", "version", "thread", "seq", "priors")}
    columns["vectors"] = vectors
    for start in range(0, len(missing), _FETCHED):
        part = {"rowids": json.dumps(missing[start : start + _FETCHED])}
        rows = connection.execute(_MATERIAL.format(**columns), part).fetchall()
        cache.add(epoch, *columns_of(rows, cache.dimensions))


def _numbers(joined: str | None) -> Numbers:
    if not joined:
        return np.zeros(0, dtype=np.int64)
    return np.fromstring(joined, sep=",", dtype=np.int64)
