"""The stores of a write transaction, in SQLAlchemy Core, on both databases."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memplane.adapters.sql import tables
from memplane.adapters.sql.rows import (
    MEMORY_COLUMNS,
    TURN_COLUMNS,
    key_of,
    material_values,
    memory_of,
    memory_values,
    turn_of,
    turn_values,
)
from memplane.adapters.sql.scope import Syntax, memories_in
from memplane.application.records import (
    Candidates,
    ChangeEntry,
    OperationalEvent,
    Query,
    SearchMaterial,
    StoredKey,
    TurnPlace,
)
from memplane.domain.history import HistoryEntry
from memplane.domain.memory import Memory, State, Turn, new_id
from memplane.domain.ranking import closest
from memplane.domain.scope import Scope

Insert = Callable[[sa.Table], Any]
"""The database's own ``insert``, which knows ``ON CONFLICT``."""
FindCandidates = Callable[[AsyncConnection, Scope, Query], Awaitable[Candidates]]
"""The database's own way to the signals of everything in scope."""


_COUNTED = 500
# what makes a text findable stays in the database
_MEMORY = [tables.memories.c[name] for name in MEMORY_COLUMNS]
_TURN = [tables.turns.c[name] for name in TURN_COLUMNS]
# written out, as the unique indexes of active memories have it: a bound value would keep a generic plan from them
_ACTIVE: sa.ColumnElement[str] = sa.literal_column(f"'{State.ACTIVE}'")


def thread_key(user_id: str, thread_id: str) -> int:
    """A signed 64-bit name for one user's thread, never 0; two threads share one by chance alone."""
    digest = hashlib.blake2b(f"{len(user_id)}:{user_id}{thread_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) or 1


class SqlMemories:
    """Memories within a transaction."""

    def __init__(
        self, connection: AsyncConnection, tenant: str, insert: Insert, syntax: Syntax, candidates: FindCandidates
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._insert = insert
        self._syntax = syntax
        self._candidates = candidates

    async def add(self, memory: Memory, material: SearchMaterial) -> bool:
        """Insert; False when an active memory of the same value, or the same external id, is there already."""
        values = memory_values(memory) | material_values(material) | {"tenant_id": self._tenant}
        statement = (
            self._insert(tables.memories).values(values).on_conflict_do_nothing().returning(tables.memories.c.id)
        )
        return (await self._connection.execute(statement)).first() is not None

    async def find_duplicate(self, memory: Memory) -> Memory | None:
        """The active memory of the same external id, or of the same value, locked; or none."""
        m = tables.memories.c
        same_value = sa.and_(
            m.category == memory.category,
            m.type == memory.type,
            m.visibility == memory.visibility,
            m.min_trust == memory.min_trust,
            m.value_hash == memory.value_hash,
        )
        same = same_value if memory.external_id is None else sa.or_(m.external_id == memory.external_id, same_value)
        statement = (
            sa.select(*_MEMORY)
            .where(m.tenant_id == self._tenant, m.user_id == memory.user_id, m.state == _ACTIVE, same)
            .order_by(sa.case((m.external_id == memory.external_id, 0), else_=1), m.id)
            .limit(1)
            .with_for_update()
        )
        row = (await self._connection.execute(statement)).mappings().first()
        return memory_of(dict(row)) if row else None

    async def find_past(self, memory: Memory) -> Memory | None:
        """The superseded or archived memory of the same external id, the newest; or none."""
        if memory.external_id is None:
            return None
        m = tables.memories.c
        statement = (
            sa.select(*_MEMORY)
            .where(
                m.tenant_id == self._tenant,
                m.user_id == memory.user_id,
                m.external_id == memory.external_id,
                m.state.in_([sa.literal_column(f"'{state}'") for state in (State.SUPERSEDED, State.ARCHIVED)]),
            )
            .order_by(m.id.desc())
            .limit(1)
        )
        row = (await self._connection.execute(statement)).mappings().first()
        return memory_of(dict(row)) if row else None

    async def find(self, scope: Scope, memory_id: UUID) -> Memory | None:
        """The memory, when it is in scope; not locked."""
        return next(iter(await self._in_scope(scope, [memory_id])), None)

    async def lock(self, scope: Scope, memory_id: UUID) -> Memory | None:
        """The memory, locked until the transaction ends, when it is in scope."""
        return next(iter(await self._in_scope(scope, [memory_id], locked=True)), None)

    async def nearest(self, scope: Scope, material: SearchMaterial, limit: int) -> list[tuple[Memory, float]]:
        """The memories in scope that are nearest to a text by meaning, and those by words, with their cosine."""
        query = Query(terms=material.terms, words=(), embedding=material.embedding)
        found = await self._candidates(self._connection, replace(scope, turns=False), query)
        near = await asyncio.to_thread(closest, found.signals, limit)
        similarity = {found.ids[int(place)]: float(cosine) for place, cosine in near}
        if not similarity:
            return []
        memories = await self._in_scope(scope, list(similarity))
        return sorted(((each, similarity[each.id]) for each in memories), key=lambda pair: (-pair[1], pair[0].id))

    async def _in_scope(self, scope: Scope, ids: Sequence[UUID], *, locked: bool = False) -> list[Memory]:
        allowed = memories_in(scope, self._syntax, "memories")
        statement = sa.select(*_MEMORY).where(
            tables.memories.c.tenant_id == self._tenant,
            tables.memories.c.id.in_(ids),
            sa.text(allowed.sql).bindparams(**self._syntax.bound(allowed.values)),
        )
        if locked:
            statement = statement.with_for_update()
        return [memory_of(dict(row)) for row in (await self._connection.execute(statement)).mappings()]

    async def replace(self, memory: Memory, material: SearchMaterial | None) -> bool:
        """Store every field of a locked memory; False when another active memory holds the same value already."""
        m = tables.memories.c
        values = memory_values(memory) | (material_values(material) if material else {})
        for counted in ("access_count", "last_accessed"):  # counted beside, without a version
            del values[counted]
        try:
            async with self._connection.begin_nested():
                await self._connection.execute(
                    sa.update(tables.memories).where(m.tenant_id == self._tenant, m.id == memory.id).values(values)
                )
        except sa.exc.IntegrityError:
            return False
        return True


class SqlThreads:
    """Threads, turns and change log within a transaction."""

    def __init__(self, connection: AsyncConnection, tenant: str, insert: Insert) -> None:
        self._connection = connection
        self._tenant = tenant
        self._insert = insert

    async def advance(self, user_id: str, thread_id: str, now: datetime, *, revs: int, turns: int = 0) -> TurnPlace:
        """Lock the thread, making it if new, and allocate revisions and turn numbers: the numbers after it."""
        t = tables.thread_revision.c
        statement = (
            self._insert(tables.thread_revision)
            .values(tenant_id=self._tenant, user_id=user_id, thread_id=thread_id, rev=revs, turns=turns, updated_at=now)
            .on_conflict_do_update(
                index_elements=[t.tenant_id, t.user_id, t.thread_id],
                set_={"rev": t.rev + revs, "turns": t.turns + turns, "updated_at": now},
            )
            .returning(t.rev, t.turns)
        )
        row = (await self._connection.execute(statement)).one()
        return TurnPlace(seq=row.turns, rev=row.rev)

    async def existing_turns(self, user_id: str, thread_id: str, external_ids: Sequence[str]) -> Mapping[str, Turn]:
        """Turns of a thread by the caller's own names for them."""
        if not external_ids:
            return {}
        t = tables.turns.c
        statement = sa.select(*_TURN).where(
            t.tenant_id == self._tenant,
            t.user_id == user_id,
            t.thread_id == thread_id,
            t.external_id.in_(external_ids),
        )
        rows = (await self._connection.execute(statement)).mappings()
        return {row["external_id"]: turn_of(dict(row)) for row in rows}

    async def add_turns(self, turns: Sequence[tuple[Turn, SearchMaterial]]) -> None:
        """Insert turns."""
        if turns:
            values = [
                turn_values(turn)
                | material_values(material)
                | {"tenant_id": self._tenant, "thread_key": thread_key(turn.user_id, turn.thread_id)}
                for turn, material in turns
            ]
            await self._connection.execute(sa.insert(tables.turns), values)

    async def log(self, entries: Sequence[ChangeEntry]) -> None:
        """Append to the change log."""
        if entries:
            values = [
                {
                    "tenant_id": self._tenant,
                    "id": new_id(),
                    "meta": {},
                    **{name: getattr(entry, name) for name in ChangeEntry.__slots__},
                }
                for entry in entries
            ]
            await self._connection.execute(sa.insert(tables.change_log), values)

    async def revision(self, user_id: str, thread_id: str) -> int:
        """The thread's revision, without a lock; 0 when there is none."""
        t = tables.thread_revision.c
        statement = sa.select(t.rev).where(t.tenant_id == self._tenant, t.user_id == user_id, t.thread_id == thread_id)
        return (await self._connection.execute(statement)).scalar_one_or_none() or 0

    async def recent(self, user_id: str, since: datetime, limit: int) -> Mapping[str, datetime]:
        """The user's threads that were active since, at most so many, the latest; with when that was."""
        t = tables.thread_revision.c
        statement = (
            sa.select(t.thread_id, t.updated_at)
            .where(t.tenant_id == self._tenant, t.user_id == user_id, t.updated_at > since)
            .order_by(t.updated_at.desc())
            .limit(limit)
        )
        return {row.thread_id: row.updated_at for row in await self._connection.execute(statement)}

    async def tell(self, user_id: str, threads: Mapping[str, datetime], revs: int) -> Mapping[str, int]:
        """Allocate so many revisions in each thread, in the order of their names; each thread's last one."""
        t = tables.thread_revision.c
        values = [
            {
                "tenant_id": self._tenant,
                "user_id": user_id,
                "thread_id": name,
                "rev": revs,
                "turns": 0,
                "updated_at": at,
            }
            for name, at in sorted(threads.items())
        ]
        insert = self._insert(tables.thread_revision).values(values)
        statement = insert.on_conflict_do_update(
            index_elements=[t.tenant_id, t.user_id, t.thread_id],
            set_={"rev": t.rev + revs, "updated_at": insert.excluded.updated_at},
        ).returning(t.thread_id, t.rev)
        return {row.thread_id: row.rev for row in await self._connection.execute(statement)}


class SqlJournal:
    """History and operational events within a transaction."""

    def __init__(self, connection: AsyncConnection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    async def record(self, entries: Sequence[HistoryEntry]) -> None:
        """Append to the history."""
        if entries:
            values = [
                {"tenant_id": self._tenant}
                | {name: getattr(entry, name) for name in HistoryEntry.__slots__}
                | {"meta": dict(entry.meta)}
                for entry in entries
            ]
            await self._connection.execute(sa.insert(tables.history), values)

    async def events(self, entries: Sequence[OperationalEvent]) -> None:
        """Append to the operational events."""
        if entries:
            values = [
                {"tenant_id": self._tenant, "id": new_id()}
                | {name: getattr(entry, name) for name in OperationalEvent.__slots__}
                for entry in entries
            ]
            await self._connection.execute(sa.insert(tables.events), values)

    async def count_accesses(self, counts: Mapping[UUID, int], now: datetime) -> None:
        """Add to the access counts of memories, in the order of their ids so that two batches cannot deadlock."""
        if not counts:
            return
        ordered = sorted(counts)
        for start in range(0, len(ordered), _COUNTED):
            await self._count(counts, ordered[start : start + _COUNTED], now)

    async def _count(self, counts: Mapping[UUID, int], ordered: Sequence[UUID], now: datetime) -> None:
        m = tables.memories.c
        locked = sa.select(m.id).where(m.tenant_id == self._tenant, m.id.in_(ordered)).order_by(m.id).with_for_update()
        await self._connection.execute(locked)
        by_id = sa.case(*[(m.id == memory_id, counts[memory_id]) for memory_id in ordered], else_=0)
        await self._connection.execute(
            sa.update(tables.memories)
            .where(m.tenant_id == self._tenant, m.id.in_(ordered))
            .values(access_count=m.access_count + by_id, last_accessed=now)
        )


class SqlKeys:
    """API keys within a transaction."""

    def __init__(self, connection: AsyncConnection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    async def add(self, key: StoredKey) -> None:
        """Insert."""
        values = {name: getattr(key, name) for name in StoredKey.__slots__ if name != "tenant"}
        values["users"] = None if key.users is None else list(key.users)
        await self._connection.execute(sa.insert(tables.api_keys).values(tenant_id=self._tenant, **values))

    async def all(self) -> list[StoredKey]:
        """Every key of the tenant, oldest first."""
        k = tables.api_keys.c
        statement = sa.select(tables.api_keys).where(k.tenant_id == self._tenant).order_by(k.created_at, k.key_id)
        rows = (await self._connection.execute(statement)).mappings()
        return [key_of(dict(row)) for row in rows]

    async def revoke(self, key_id: str, now: datetime) -> bool:
        """Mark as revoked; False when there is no such key or it is revoked already."""
        k = tables.api_keys.c
        statement = (
            sa.update(tables.api_keys)
            .where(k.tenant_id == self._tenant, k.key_id == key_id, k.revoked_at.is_(None))
            .values(revoked_at=now)
        )
        return (await self._connection.execute(statement)).rowcount == 1
