"""The read statements of PostgreSQL, hand-written, next to each other.

Every statement runs inside a transaction that has set the tenant for row-level security, and carries the scope
predicate besides. Named parameters are psycopg's.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row, tuple_row
from psycopg.sql import SQL

from memplane.adapters.sql.rows import (
    MEMORY_COLUMNS,
    TERM,
    TURN_COLUMNS,
    history_of,
    memory_of,
    turn_of,
)
from memplane.adapters.sql.scope import Predicate, memories_in, turns_in
from memplane.application.ports import Candidates, Query, Unit
from memplane.domain.delta import Change, ChangeEvent
from memplane.domain.history import HistoryEntry
from memplane.domain.memory import Memory
from memplane.domain.ranking import Signals
from memplane.domain.scope import Scope


class PostgresSyntax:
    """How PostgreSQL, through psycopg, writes the scope predicate."""

    def value(self, name: str) -> str:
        """A bound value."""
        return f"%({name})s"

    def any_of(self, column: str, name: str) -> str:
        """The column's value is one of a bound list."""
        return f"{column} = ANY(%({name})s)"

    def holds_all(self, column: str, name: str) -> str:
        """The list column holds every item of a bound list."""
        return f"{column} @> %({name})s::text[]"


SYNTAX = PostgresSyntax()

_UNIT = np.dtype(
    [
        ("id", "V16"),
        ("thread", ">i8"),
        ("seq", ">i4"),
        ("length", ">i4"),
        ("terms", ">i4"),
        ("sim", ">f4"),
        ("actor", "u1"),
    ]
)
"""One unit as :data:`_SCAN` packs it, big-endian like PostgreSQL's binary send functions."""

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

# The newest units in scope; ids are ordered by time. Served by ix_memories_user, pk_memories and pk_turns.
_NEWEST = "(SELECT u.id FROM {table} u WHERE {scope} ORDER BY u.id DESC LIMIT %(limit)s)"

# Whole rows by id. Served by pk_memories and pk_turns.
_MEMORIES = "SELECT {columns} FROM memories m WHERE {scope} AND m.id = ANY(%(ids)s)"
_TURNS = "SELECT {columns} FROM turns t WHERE {scope} AND t.id = ANY(%(ids)s)"

# A page of memories. Served by ix_memories_user, or by pk_memories where no user is named.
_LIST = "SELECT {columns} FROM memories m WHERE {scope} AND {page} ORDER BY m.id DESC LIMIT %(limit)s"

# Neighbours in the relation graph. Served by uq_relations_tenant_id_from_id_… and ix_relations_to.
_RELATED = """
SELECT edge.via, edge.strength, {columns}
  FROM (SELECT from_id AS via, to_id AS id, strength FROM relations
         WHERE tenant_id = %(tenant)s AND from_id = ANY(%(ids)s)
        UNION ALL
        SELECT to_id, from_id, strength FROM relations WHERE tenant_id = %(tenant)s AND to_id = ANY(%(ids)s)) edge
  JOIN memories m ON m.tenant_id = %(tenant)s AND m.id = edge.id
 WHERE {scope} AND NOT m.id = ANY(%(ids)s)
 ORDER BY edge.strength DESC, m.id DESC LIMIT %(limit)s"""

# Served by ix_thread_revision_thread.
_THREAD_USERS = """
SELECT user_id FROM thread_revision
 WHERE tenant_id = %(tenant)s AND thread_id = %(thread_id)s AND (%(users)s::text[] IS NULL OR user_id = ANY(%(users)s))
 ORDER BY user_id LIMIT 2"""

# Served by pk_thread_revision.
_REVISION = """
SELECT rev FROM thread_revision WHERE tenant_id = %(tenant)s AND user_id = %(user_id)s AND thread_id = %(thread_id)s"""

# Served by uq_change_log_tenant_id_user_id_thread_id_rev and pk_memories.
_CHANGES = """
SELECT c.rev, c.event, c.memory_id, m.category, coalesce(m.title, m.content) AS summary, m.importance, c.ts
  FROM change_log c JOIN memories m ON m.tenant_id = c.tenant_id AND m.id = c.memory_id
 WHERE c.tenant_id = %(tenant)s AND c.user_id = %(thread_user)s AND c.thread_id = %(thread)s AND c.rev > %(since)s
   AND c.event <> 'turn' AND {scope}
 ORDER BY c.rev DESC LIMIT %(limit)s"""

# Served by ix_history_memory and pk_memories.
_HISTORY = """
SELECT h.* FROM history h
 WHERE h.tenant_id = %(tenant)s AND h.memory_id = %(memory_id)s AND {page}
 ORDER BY h.id DESC LIMIT %(limit)s"""
_SEEN = "SELECT 1 FROM memories m WHERE {scope} AND m.id = %(memory_id)s"

_MEMORY_LIST = ", ".join(f"m.{name}" for name in MEMORY_COLUMNS)
_TURN_LIST = ", ".join(f"t.{name}" for name in TURN_COLUMNS)


def scan_statements(scope: Scope, query: Query) -> list[tuple[str, dict[str, object]]]:
    """The scan of memories, and of turns where they are in scope, with their values."""
    similarity = _NO_SIMILARITY if query.embedding is None else _SIMILARITY
    shared: dict[str, object] = {"words": list(query.words)}
    if query.embedding is not None:
        shared["embedding"] = HalfVector(query.embedding)
    parts = []
    sources = (
        ("memories", memories_in(scope, SYNTAX, "u"), "0", "0"),
        ("turns", turns_in(scope, SYNTAX, "u"), "u.thread_key", "u.seq::int4"),
    )
    for table, allowed, thread, seq in sources:
        if allowed is not None:
            sql = _SCAN.format(
                table=table, scope=allowed.sql, thread=thread, seq=seq, similarity=similarity, actor=_ACTOR
            )
            parts.append((sql, allowed.values | shared))
    return parts


class PostgresReader:
    """One read-only transaction of one tenant."""

    def __init__(self, connection: AsyncConnection[DictRow]) -> None:
        self._connection = connection

    async def _rows(self, sql: str, values: dict[str, object]) -> list[DictRow]:
        async with self._connection.cursor(row_factory=dict_row, binary=True) as cursor:
            await cursor.execute(SQL(sql), values)
            return await cursor.fetchall()

    async def candidates(self, scope: Scope, query: Query) -> Candidates:
        """All memories and turns in scope, with their signals for the query."""
        packed: list[bytes] = []
        terms: list[bytes] = []
        async with AsyncExitStack() as open_cursors:
            cursors = []
            for sql, values in scan_statements(scope, query):  # sent together, then waited for
                cursor = await open_cursors.enter_async_context(
                    self._connection.cursor(row_factory=tuple_row, binary=True)
                )
                cursors.append(await cursor.execute(SQL(sql), values))
            for cursor in cursors:
                units, unit_terms = await cursor.fetchone() or (None, None)
                packed.append(units or b"")
                terms.append(unit_terms or b"")
        return unpack(b"".join(packed), b"".join(terms), query)

    async def newest(self, scope: Scope, limit: int) -> list[UUID]:
        """Ids of the newest memories and turns in scope, newest first."""
        parts: list[str] = []
        bound: dict[str, object] = {"limit": limit}
        for table, allowed in (("memories", memories_in(scope, SYNTAX, "u")), ("turns", turns_in(scope, SYNTAX, "u"))):
            if allowed is not None:
                parts.append(_NEWEST.format(table=table, scope=allowed.sql))
                bound |= allowed.values
        rows = await self._rows(" UNION ALL ".join(parts) + " ORDER BY id DESC LIMIT %(limit)s", bound)
        return [row["id"] for row in rows]

    async def units(self, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, Unit]:
        """The memories and turns with these ids that are in scope."""
        found: dict[UUID, Unit] = {}
        wanted = memories_in(scope, SYNTAX)
        sql = _MEMORIES.format(columns=_MEMORY_LIST, scope=wanted.sql)
        for row in await self._rows(sql, wanted.values | {"ids": list(ids)}):
            found[row["id"]] = memory_of(row)
        spoken = turns_in(scope, SYNTAX)
        if spoken is not None and len(found) < len(ids):
            sql = _TURNS.format(columns=_TURN_LIST, scope=spoken.sql)
            for row in await self._rows(sql, spoken.values | {"ids": list(ids)}):
                found[row["id"]] = turn_of(row)
        return found

    async def memories(self, scope: Scope, *, before: UUID | None, limit: int) -> list[Memory]:
        """Memories in scope, newest first, those older than ``before``."""
        allowed = memories_in(scope, SYNTAX)
        page = _page("m.id", allowed, before)
        sql = _LIST.format(columns=_MEMORY_LIST, scope=allowed.sql, page=page)
        return [memory_of(row) for row in await self._rows(sql, allowed.values | {"limit": limit})]

    async def related(self, scope: Scope, ids: Sequence[UUID], limit: int) -> list[tuple[UUID, Memory, float]]:
        """Memories in scope that a relation links to one of ``ids``, strongest first."""
        allowed = memories_in(scope, SYNTAX)
        sql = _RELATED.format(columns=_MEMORY_LIST, scope=allowed.sql)
        rows = await self._rows(sql, allowed.values | {"ids": list(ids), "limit": limit})
        return [(row["via"], memory_of(row), row["strength"]) for row in rows]

    async def thread_users(self, scope: Scope, thread_id: str) -> list[str]:
        """The users in the scope's tenant and user list that have a thread of this name; at most two."""
        users = None if scope.users is None else sorted(scope.users)
        values: dict[str, object] = {"tenant": scope.tenant, "thread_id": thread_id, "users": users}
        return [row["user_id"] for row in await self._rows(_THREAD_USERS, values)]

    async def revision(self, scope: Scope, user_id: str, thread_id: str) -> int:
        """The thread's revision; 0 when there is no such thread."""
        values: dict[str, object] = {"tenant": scope.tenant, "user_id": user_id, "thread_id": thread_id}
        rows = await self._rows(_REVISION, values)
        return rows[0]["rev"] if rows else 0

    async def changes(self, scope: Scope, user_id: str, thread_id: str, since: int, limit: int) -> list[Change]:
        """The last ``limit`` changes of memories after a revision, oldest first."""
        allowed = memories_in(scope, SYNTAX, any_state=True)
        values = allowed.values | {"thread_user": user_id, "thread": thread_id, "since": since, "limit": limit}
        rows = await self._rows(_CHANGES.format(scope=allowed.sql), values)
        return [Change(**row | {"event": ChangeEvent(row["event"])}) for row in reversed(rows)]

    async def history(
        self, scope: Scope, memory_id: UUID, *, before: UUID | None, limit: int
    ) -> list[HistoryEntry] | None:
        """A memory's history, newest first; ``None`` when the memory is not in scope in any state."""
        allowed = memories_in(scope, SYNTAX, any_state=True)
        seen = await self._rows(_SEEN.format(scope=allowed.sql), allowed.values | {"memory_id": memory_id})
        if not seen:
            return None
        wanted = Predicate(SYNTAX, values={"tenant": scope.tenant, "memory_id": memory_id, "limit": limit})
        sql = _HISTORY.format(page=_page("h.id", wanted, before))
        return [history_of(row) for row in await self._rows(sql, wanted.values)]


def _page(column: str, allowed: Predicate, before: UUID | None) -> str:
    if before is None:
        return "true"
    allowed.values["before"] = before
    return f"{column} < %(before)s"


def unpack(units: bytes, terms: bytes, query: Query) -> Candidates:
    """Packed units and their terms as ids and signals."""
    rows = np.frombuffer(units, dtype=_UNIT)
    signals = Signals(
        thread=rows["thread"].astype(np.int64),
        seq=rows["seq"].astype(np.int32),
        length=rows["length"].astype(np.int32),
        frequency=_frequency(rows["terms"], np.frombuffer(terms, dtype=TERM), list(query.terms.counts)),
        similarity=None if query.embedding is None else rows["sim"].astype(np.float32),
        actor=rows["actor"].astype(bool),
    )
    return Candidates(ids=_Ids(rows["id"]), signals=signals)


def _frequency(sizes: NDArray[np.int32], terms: NDArray[np.void], wanted: list[int]) -> NDArray[np.float32]:
    """How often each unit holds each wanted term: shape (units, wanted)."""
    frequency = np.zeros((len(sizes), len(wanted)), dtype=np.float32)
    if not wanted or not len(terms):
        return frequency
    column = np.asarray(wanted, dtype=np.uint32)  # ascending, as Terms keeps them
    place = np.searchsorted(column, terms["term"]).clip(max=len(column) - 1)
    (hits,) = np.nonzero(column[place] == terms["term"])
    owner = np.searchsorted(np.cumsum(sizes), hits, side="right")
    frequency[owner, place[hits]] = terms["count"][hits]
    return frequency


class _Ids(Sequence[UUID]):
    """Packed ids that become UUIDs only when looked at."""

    def __init__(self, packed: NDArray[np.void]) -> None:
        self._packed = packed

    def __len__(self) -> int:
        return len(self._packed)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204 - the two overloads of Sequence
        if isinstance(index, slice):
            return [UUID(bytes=value.tobytes()) for value in self._packed[index]]
        return UUID(bytes=self._packed[index].tobytes())
