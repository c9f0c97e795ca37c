"""The stores of a write transaction, in SQLAlchemy Core, on both databases."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.queries import write_statements
from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.queries.write_statements import upserts
from memplane.adapters.sql.rows import (
    TURN_COLUMNS,
    key_entry_of,
    key_of,
    key_values,
    material_values,
    memory_of,
    memory_values,
    turn_of,
    turn_values,
)
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.scope import Syntax, memories_in
from memplane.adapters.sql.session import MEMORIES, UNDO, SqlSession
from memplane.adapters.sql.stores.erasures import WORDLESS
from memplane.application.keys.key_history import KeyEntry
from memplane.application.limits.offload import offload
from memplane.application.recall.search_material import Candidates, Query, SearchMaterial
from memplane.application.records import ChangeEntry, ChangeNotice, OperationalEvent, StoredKey, TurnPlace
from memplane.domain.memory.history import HistoryEntry, HistoryEvent
from memplane.domain.memory.memory import Memory, MemoryText, State, Turn, new_id
from memplane.domain.memory.scope import Scope
from memplane.domain.memory.undo_records import UndoRecord
from memplane.domain.ranking.embedding_models import Column
from memplane.domain.ranking.signals import closest

FindCandidates = Callable[[SqlSession, Scope, Query], Awaitable[Candidates]]
"""The database's own way to the signals of everything in scope."""
ReadMemories = Callable[[SqlSession, Scope, Sequence[UUID]], Awaitable[list[Memory]]]
"""The database's own fast way to memories in scope by their ids."""


# Served by pk_memories. Each list is one value: written out, its statement would be a new one for each length.
_LOCK = "SELECT m.id FROM memories m WHERE m.tenant_id = {tenant} AND {listed} ORDER BY m.id {for_update}"
_COUNT = """
UPDATE memories AS m SET access_count = access_count + {count}, last_accessed = {now}
 WHERE m.tenant_id = {tenant} AND {listed} RETURNING 1 AS counted"""
_TURN = [tables.turns.c[name] for name in TURN_COLUMNS]
_PLACE = ("user_id", "category", "type", "visibility", "min_trust", "value_hash", "external_id")


def thread_key(user_id: str, thread_id: str) -> int:
    """A signed 64-bit name for one user's thread, never 0; two threads share one by chance alone."""
    digest = hashlib.blake2b(f"{len(user_id)}:{user_id}{thread_id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True) or 1


def place_of(memory: Memory) -> dict[str, object]:
    """By what another memory that stands in a memory's place is found."""
    return {name: getattr(memory, name) for name in _PLACE}


class SqlMemories:
    """Memories within a transaction."""

    def __init__(
        self,
        session: SqlSession,
        syntax: Syntax,
        candidates: FindCandidates,
        read: ReadMemories | None = None,
        *,
        row_locks: bool = True,
    ) -> None:
        self._session = session
        self._tenant = session.tenant
        self._syntax = syntax
        self._candidates = candidates
        self._read = read
        self._row_locks = row_locks

    async def add(self, memory: Memory, material: SearchMaterial) -> bool:
        """Insert; False when an active memory of the same value, or the same external id, is there already."""
        values = memory_values(memory) | self._material(material) | {"tenant_id": self._tenant}
        return await self._session.add(MEMORIES, [values])

    def _material(self, material: SearchMaterial) -> dict[str, object]:
        return material_values(material, self._session.in_force)

    async def find_duplicate(self, memory: Memory) -> Memory | None:
        """The active memory of the same external id, or of the same value, locked; or none."""
        return await self._one(write_statements.same(memory), memory)

    async def find_past(self, memory: Memory) -> Memory | None:
        """The superseded or archived memory of the same external id, the newest; or none."""
        return None if memory.external_id is None else await self._one(write_statements.PAST_OF_NAME, memory)

    async def _one(self, statement: sa.Select[Any], memory: Memory) -> Memory | None:
        """The memory that stands where a new one would."""
        values = {"tenant_id": self._tenant} | place_of(memory)
        row = (await self._session.execute(statement, values)).mappings().first()
        return memory_of(dict(row)) if row else None

    async def find(self, scope: Scope, memory_id: UUID) -> Memory | None:
        """The memory, when it is in scope; not locked."""
        return next(iter(await self._in_scope(scope, [memory_id])), None)

    async def lock(self, scope: Scope, memory_id: UUID) -> Memory | None:
        """The memory, locked until the transaction ends, when it is in scope."""
        return next(iter(await self._in_scope(scope, [memory_id], locked=True)), None)

    async def nearest(
        self, scope: Scope, material: SearchMaterial, limit: int, unseen: Mapping[UUID, float] | None = None
    ) -> list[tuple[Memory, float]]:
        """The memories in scope that are nearest to a text by meaning, and those by words, with their cosine."""
        query = Query(material.terms, (), material.embedding)
        found = await self._candidates(self._session, replace(scope, turns=False), query)
        return await self.nearest_of(scope, found, limit, unseen)

    async def nearest_of(
        self, scope: Scope, found: Candidates, limit: int, unseen: Mapping[UUID, float] | None = None
    ) -> list[tuple[Memory, float]]:
        """The memories that are nearest among candidates, as in :meth:`nearest`."""
        near = await offload(len(found.ids), closest, found.signals, limit)
        similarity = {found.ids[int(place)]: float(cosine) for place, cosine in near}
        similarity |= unseen or {}
        if not similarity:
            return []
        memories = await self._in_scope(scope, list(similarity))
        return sorted(((each, similarity[each.id]) for each in memories), key=lambda pair: (-pair[1], pair[0].id))

    async def _in_scope(self, scope: Scope, ids: Sequence[UUID], *, locked: bool = False) -> list[Memory]:
        if self._read is not None and not (locked and self._row_locks):
            return await self._read(self._session, scope, ids)
        allowed = memories_in(scope, self._syntax, "memories")
        statement = sa.select(*write_statements.MEMORY).where(
            tables.memories.c.tenant_id == self._tenant,
            tables.memories.c.id.in_(ids),
            sa.text(allowed.sql).bindparams(**self._syntax.bind_values(allowed.values)),
        )
        if locked:
            statement = statement.with_for_update()
        return [memory_of(dict(row)) for row in (await self._session.execute(statement)).mappings()]

    async def share_material(self, memory_id: UUID, other: UUID) -> None:
        """Give a memory the search material of another one of the same words."""
        m, of = tables.memories.c, tables.memories.alias("other")
        copied = {
            name: sa.select(of.c[name]).where(of.c.tenant_id == self._tenant, of.c.id == other).scalar_subquery()
            for name in write_statements.MATERIAL
        }
        statement = sa.update(tables.memories).where(m.tenant_id == self._tenant, m.id == memory_id)
        await self._session.execute(statement.values(**copied))

    async def last_recorded(self, user_id: str) -> datetime | None:
        """When the latest memory of a user was recorded."""
        place = {"tenant_id": self._tenant, "user_id": user_id}
        return (await self._session.execute(write_statements.LAST_RECORDED, place)).scalar_one_or_none()

    async def rejected_texts(self, user_id: str, category: str, limit: int) -> list[MemoryText]:
        """What a user's rejected memories of a category say, the newest first."""
        values = {"tenant_id": self._tenant, "user_id": user_id, "category": category, "most": limit}
        rows = (await self._session.execute(write_statements.REJECTED, values)).mappings()
        return [memory_of(dict(row)).text for row in rows]

    async def replace(self, memory: Memory, material: SearchMaterial | None) -> bool:
        """Store every field of a locked memory; False when another active memory holds the same value already."""
        values = memory_values(memory)
        if material is not None:  # of what is not stored any more nothing is left
            values |= dict.fromkeys(Column) | self._material(material)
        for counted in ("access_count", "last_accessed"):  # counted beside, without a version
            del values[counted]
        values = {"of_tenant": self._tenant} | {f"new_{name}": value for name, value in values.items()}
        statement = write_statements.replacing(with_material=material is not None, active=memory.state is State.ACTIVE)
        return await self._session.rows_changed(statement, values) == 1


class SqlThreads:
    """Threads, turns and change log within a transaction."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def advance(self, user_id: str, thread_id: str, now: datetime, *, revs: int, turns: int = 0) -> TurnPlace:
        """Lock the thread, making it if new, and allocate revisions and turn numbers: the numbers after it."""
        place = {"user_id": user_id, "thread_id": thread_id, "rev": revs, "turns": turns, "updated_at": now}
        values = {"tenant_id": self._tenant} | place
        row = (await self._session.execute(upserts(self._session.insert).thread, values)).one()
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
        rows = (await self._session.execute(statement)).mappings()
        return {row["external_id"]: turn_of(dict(row)) for row in rows}

    async def release_names(self, turn_ids: Sequence[UUID]) -> None:
        """Take the caller's own names from some turns, which stay as they are otherwise."""
        t = tables.turns.c
        named = sa.update(tables.turns).where(t.tenant_id == self._tenant, t.id.in_(turn_ids))
        await self._session.execute(named.values(external_id=None))

    async def add_turns(self, turns: Sequence[tuple[Turn, SearchMaterial]]) -> None:
        """Insert turns."""
        if turns:
            values = [
                turn_values(turn)
                | material_values(material, self._session.in_force)
                | {"tenant_id": self._tenant, "thread_key": thread_key(turn.user_id, turn.thread_id)}
                for turn, material in turns
            ]
            await self._session.add("turns", values)

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
            await self._session.add("change_log", values)

    async def revision(self, user_id: str, thread_id: str) -> int:
        """The thread's revision, without a lock; 0 when there is none."""
        place = {"tenant_id": self._tenant, "user_id": user_id, "thread_id": thread_id}
        return (await self._session.execute(write_statements.REVISION, place)).scalar_one_or_none() or 0

    async def publish(self, user_id: str, threads: Mapping[str, datetime], told: ChangeNotice) -> Mapping[str, int]:
        """Log changes in the named threads and in those that were active lately: each thread's last revision."""
        return await self._session.tell(user_id, threads, told)


class SqlJournal:
    """History and operational events within a transaction."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def record(self, entries: Sequence[HistoryEntry]) -> None:
        """Append to the history."""
        if entries:
            values = [
                {"tenant_id": self._tenant}
                | {name: getattr(entry, name) for name in HistoryEntry.__slots__}
                | {"meta": dict(entry.meta)}
                for entry in entries
            ]
            await self._session.add("history", values)

    async def keep_undo(self, records: Sequence[UndoRecord]) -> None:
        """Keep what changes changed, so that they can be taken back."""
        if records:
            values = [
                {"tenant_id": self._tenant}
                | {name: getattr(record, name) for name in UndoRecord.__slots__}
                | {"changes": dict(record.changes), "said": None if record.said is None else dict(record.said)}
                for record in records
            ]
            await self._session.add(UNDO, values)

    async def events(self, entries: Sequence[OperationalEvent]) -> None:
        """Append to the operational events."""
        if entries:
            values = [
                {"tenant_id": self._tenant, "id": new_id()}
                | {name: getattr(entry, name) for name in OperationalEvent.__slots__}
                for entry in entries
            ]
            await self._session.add("events", values)

    async def notes(self, memory_id: UUID) -> list[Mapping[str, object]]:
        """What the entries of a memory's history note besides its words, oldest first."""
        h = tables.history.c
        found = sa.select(h.meta).where(h.tenant_id == self._tenant, h.memory_id == memory_id).order_by(h.id)
        return [dict(meta or {}) for meta in (await self._session.execute(found)).scalars()]

    async def forget(self, purges: Sequence[UUID]) -> None:
        """Take the words of memories that are gone out of the history, by the entries that tell of their purge."""
        h = tables.history.c
        for purge in purges:
            found = sa.select(h.memory_id, h.of_user).where(h.tenant_id == self._tenant, h.id == purge)
            gone = (await self._session.execute(found)).one()
            own = h.memory_id == gone.memory_id
            quoted = (h.event == HistoryEvent.SUPERSEDE) & (h.meta["superseded_by"].as_string() == str(gone.memory_id))
            u = tables.user_merges.c
            aliases = sa.select(u.from_user).where(
                u.tenant_id == self._tenant, u.into_user == gone.of_user, u.undone_at.is_(None)
            )
            whose = ((h.of_user == gone.of_user) | h.of_user.in_(aliases)) & quoted
            for words in (own, whose):
                left = (h.tenant_id == self._tenant, h.id != purge, h.erased_by.is_(None), words)
                statement = sa.update(tables.history).where(*left)
                await self._session.execute(statement.values(**WORDLESS, erased_by=purge))

    async def count_accesses(self, counts: Mapping[UUID, int], now: datetime) -> None:
        """Add to the access counts of memories, in the order of their ids so that two batches cannot deadlock."""
        if not counts:
            return
        by_count: dict[int, list[UUID]] = {}
        for memory_id, count in counts.items():
            by_count.setdefault(count, []).append(memory_id)
        syntax, values = self._session.syntax, {"tenant": self._tenant}
        marks = {name: syntax.value(name) for name in ("tenant", "count", "now")}
        marks |= {"listed": syntax.any_of("m.id", "ids"), "for_update": syntax.for_update}
        added = [
            Statement(_COUNT.format(**marks), values | {"ids": ids, "count": count, "now": now})
            for count, ids in sorted(by_count.items())
        ]
        await self._session.send([Statement(_LOCK.format(**marks), values | {"ids": list(counts)}), *added])


class SqlKeys:
    """API keys within a transaction."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def add(self, key: StoredKey) -> None:
        """Insert."""
        await self._session.execute(sa.insert(tables.api_keys).values(tenant_id=self._tenant, **key_values(key)))

    async def all(self) -> list[StoredKey]:
        """Every key of the tenant, oldest first."""
        k = tables.api_keys.c
        statement = sa.select(tables.api_keys).where(k.tenant_id == self._tenant).order_by(k.created_at, k.key_id)
        rows = (await self._session.execute(statement)).mappings()
        return [key_of(dict(row)) for row in rows]

    async def lock(self, key_id: str) -> StoredKey | None:
        """A key, locked until the transaction ends; or none."""
        k = tables.api_keys.c
        statement = sa.select(tables.api_keys).where(k.tenant_id == self._tenant, k.key_id == key_id).with_for_update()
        row = (await self._session.execute(statement)).mappings().one_or_none()
        return key_of(dict(row)) if row else None

    async def end(self, key_id: str, moment: datetime) -> None:
        """Set when a key expires."""
        k = tables.api_keys.c
        statement = sa.update(tables.api_keys).where(k.tenant_id == self._tenant, k.key_id == key_id)
        await self._session.execute(statement.values(expires_at=moment))

    async def note_uses(self, moments: Mapping[str, datetime]) -> None:
        """Note when keys were last used, in the order of their ids so that two batches cannot deadlock."""
        k = tables.api_keys.c
        for key_id, moment in sorted(moments.items()):
            await self._session.execute(
                sa.update(tables.api_keys)
                .where(k.tenant_id == self._tenant, k.key_id == key_id)
                .where(k.last_used_at.is_(None) | (k.last_used_at < moment))
                .values(last_used_at=moment)
            )

    async def note(self, entries: Sequence[KeyEntry]) -> None:
        """Add to the history of keys."""
        rows = [
            {name: getattr(each, name) for name in KeyEntry.__slots__}
            | {"tenant_id": self._tenant, "event": each.event.value, "meta": dict(each.meta)}
            for each in entries
        ]
        await self._session.execute(sa.insert(tables.key_history), rows)

    async def history(self, key_ids: Sequence[str] | None, before: UUID | None, limit: int) -> list[KeyEntry]:
        """Entries of some keys, or of all of the tenant, newest first, those older than ``before``."""
        h = tables.key_history.c
        statement = sa.select(tables.key_history).where(h.tenant_id == self._tenant)
        if key_ids is not None:
            statement = statement.where(h.key_id.in_(key_ids))
        if before is not None:
            statement = statement.where(h.id < before)
        rows = (await self._session.execute(statement.order_by(h.id.desc()).limit(limit))).mappings()
        return [key_entry_of(dict(row)) for row in rows]

    async def revoke(self, key_id: str, now: datetime) -> bool:
        """Mark as revoked; False when there is no such key or it is revoked already."""
        k = tables.api_keys.c
        statement = (
            sa.update(tables.api_keys)
            .where(k.tenant_id == self._tenant, k.key_id == key_id, k.revoked_at.is_(None))
            .values(revoked_at=now)
        )
        return await self._session.rows_changed(statement) == 1
