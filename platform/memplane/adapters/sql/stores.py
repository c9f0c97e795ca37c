"""The stores of a write transaction, in SQLAlchemy Core, on both databases."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memplane.adapters.sql import prepared, tables
from memplane.adapters.sql.prepared import Insert, one_or_many, upserts
from memplane.adapters.sql.rows import (
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
from memplane.domain.memory import Memory, MemoryText, Turn, new_id
from memplane.domain.ranking import closest
from memplane.domain.scope import Scope

FindCandidates = Callable[[AsyncConnection, Scope, Query], Awaitable[Candidates]]
"""The database's own way to the signals of everything in scope."""
ReadMemories = Callable[[AsyncConnection, Scope, Sequence[UUID]], Awaitable[list[Memory]]]
"""The database's own fast way to memories in scope by their ids."""


_COUNTED = 500
_TURN = [tables.turns.c[name] for name in TURN_COLUMNS]
_PLACE = ("user_id", "category", "type", "visibility", "min_trust", "value_hash", "external_id")


def thread_key(user_id: str, thread_id: str) -> int:
    """A signed 64-bit name for one user's thread, never 0; two threads share one by chance alone."""
    digest = hashlib.blake2b(f"{len(user_id)}:{user_id}{thread_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) or 1


class SqlMemories:
    """Memories within a transaction."""

    def __init__(
        self,
        connection: AsyncConnection,
        tenant: str,
        insert: Insert,
        syntax: Syntax,
        candidates: FindCandidates,
        read: ReadMemories | None = None,
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._insert = insert
        self._syntax = syntax
        self._candidates = candidates
        self._read = read

    async def add(self, memory: Memory, material: SearchMaterial) -> bool:
        """Insert; False when an active memory of the same value, or the same external id, is there already."""
        whole = memory_values(memory) | material_values(material) | {"tenant_id": self._tenant}
        # the driver reads a statement anew each time when it has more than fifty values
        values = {name: value for name, value in whole.items() if value is not None}
        return (await self._connection.execute(upserts(self._insert).memory, values)).first() is not None

    async def find_duplicate(self, memory: Memory) -> Memory | None:
        """The active memory of the same external id, or of the same value, locked; or none."""
        by_name = memory.external_id is not None
        return await self._one(prepared.SAME_NAME_OR_VALUE if by_name else prepared.SAME_VALUE, memory)

    async def find_past(self, memory: Memory) -> Memory | None:
        """The superseded or archived memory of the same external id, the newest; or none."""
        return None if memory.external_id is None else await self._one(prepared.PAST_OF_NAME, memory)

    async def _one(self, statement: sa.Select[Any], memory: Memory) -> Memory | None:
        """The memory that stands where a new one would."""
        values = {"tenant_id": self._tenant} | {name: getattr(memory, name) for name in _PLACE}
        row = (await self._connection.execute(statement, values)).mappings().first()
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
        read = self._in_scope if self._read is None else partial(self._read, self._connection)
        memories = await read(scope, list(similarity))
        return sorted(((each, similarity[each.id]) for each in memories), key=lambda pair: (-pair[1], pair[0].id))

    async def _in_scope(self, scope: Scope, ids: Sequence[UUID], *, locked: bool = False) -> list[Memory]:
        allowed = memories_in(scope, self._syntax, "memories")
        statement = sa.select(*prepared.MEMORY).where(
            tables.memories.c.tenant_id == self._tenant,
            tables.memories.c.id.in_(ids),
            sa.text(allowed.sql).bindparams(**self._syntax.bound(allowed.values)),
        )
        if locked:
            statement = statement.with_for_update()
        return [memory_of(dict(row)) for row in (await self._connection.execute(statement)).mappings()]

    async def rejected(self, user_id: str, category: str, limit: int) -> list[MemoryText]:
        """What a user's rejected memories of a category say, the newest first."""
        values = {"tenant_id": self._tenant, "user_id": user_id, "category": category, "most": limit}
        rows = (await self._connection.execute(prepared.REJECTED, values)).mappings()
        return [memory_of(dict(row)).text for row in rows]

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
        place = {"user_id": user_id, "thread_id": thread_id, "rev": revs, "turns": turns, "updated_at": now}
        values = {"tenant_id": self._tenant} | place
        row = (await self._connection.execute(upserts(self._insert).thread, values)).one()
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
            await self._connection.execute(prepared.ADD_TURNS, one_or_many(values))

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
            await self._connection.execute(prepared.ADD_CHANGES, one_or_many(values))

    async def revision(self, user_id: str, thread_id: str) -> int:
        """The thread's revision, without a lock; 0 when there is none."""
        place = {"tenant_id": self._tenant, "user_id": user_id, "thread_id": thread_id}
        return (await self._connection.execute(prepared.REVISION, place)).scalar_one_or_none() or 0

    async def recent(self, user_id: str, since: datetime, limit: int) -> Mapping[str, datetime]:
        """The user's threads that were active since, at most so many, the latest; with when that was."""
        values = {"tenant_id": self._tenant, "user_id": user_id, "since": since, "most": limit}
        return {row.thread_id: row.updated_at for row in await self._connection.execute(prepared.RECENT, values)}

    async def tell(self, user_id: str, threads: Mapping[str, datetime], revs: int) -> Mapping[str, int]:
        """Allocate so many revisions in each thread, in the order of their names; each thread's last one."""
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
        told = await self._connection.execute(upserts(self._insert).thread, values)
        return {row.thread_id: row.rev for row in told}


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
            await self._connection.execute(prepared.ADD_HISTORY, one_or_many(values))

    async def events(self, entries: Sequence[OperationalEvent]) -> None:
        """Append to the operational events."""
        if entries:
            values = [
                {"tenant_id": self._tenant, "id": new_id()}
                | {name: getattr(entry, name) for name in OperationalEvent.__slots__}
                for entry in entries
            ]
            await self._connection.execute(prepared.ADD_EVENTS, one_or_many(values))

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
