"""Undoing a merge of users within a transaction: what moved goes back, what was changed since stays."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import MENTIONS, SqlSession
from memplane.adapters.sql.stores.memory_stores import thread_key
from memplane.adapters.sql.stores.reverts import SqlReverts
from memplane.adapters.sql.stores.user_merge_rows import (
    CHECKPOINTS,
    FOLDED,
    LISTED,
    THREADED,
    key_columns,
    key_of,
    parts,
    row_from_json,
)
from memplane.application.users.user_merge_ports import MergedMemoryRecord, UnmergeCounts
from memplane.domain.identity.user_merges import UserMerge
from memplane.domain.memory.memory import Memory, State, new_id
from memplane.domain.memory.undo_records import with_fields


class TakingBack:
    """The rows of one merge, given back table by table."""

    def __init__(self, session: SqlSession, merge: UserMerge) -> None:
        self._session = session
        self._tenant = session.tenant
        self._merge = merge
        self._former: dict[str, str] = {}
        self._record: dict[str, list[Any]] = {}
        self._returned: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()

    async def __call__(self) -> UnmergeCounts:
        """Give back what was not changed since."""
        r = tables.user_merge_rows.c
        found = sa.select(r.name, r.entries).where(r.tenant_id == self._tenant, r.merge_id == self._merge.id)
        for row in await self._session.execute(found.order_by(r.name, r.part)):
            self._record.setdefault(row.name, []).extend(row.entries)
        await self._threads()
        memories = await self._memories()
        await self._entities([each.id for each in memories])
        await self._unlink([each.id for each in memories])
        for table, column in LISTED.items():
            await self._listed(table, column)
        for table, (column, _) in FOLDED.items():
            await self._listed(table, column)
            await self._put_again(table)
        return UnmergeCounts(memories, +self._returned, +self._kept)

    async def _threads(self) -> None:
        """Threads that were not continued, without what they were told since: who asks for that loads its context."""
        rows = {new: (old, turns, rev) for new, old, turns, rev in self._record.get("threads", ())}
        continued = await self._continued(rows)
        self._kept["threads"] += len(continued)
        self._former = {new: old for new, (old, _, _) in rows.items() if new not in continued}
        v, back = tables.thread_revision.c, list[dict[str, Any]]()
        for some in parts(sorted(self._former), 200):
            there = (v.tenant_id == self._tenant, v.user_id == self._merge.into_user, v.thread_id.in_(some))
            found = (await self._session.execute(sa.select(tables.thread_revision).where(*there))).mappings()
            for row in found:
                pruned = row["pruned_rev"] if row["rev"] == rows[row["thread_id"]][2] else row["rev"]
                place = {"user_id": self._merge.from_user, "thread_id": self._former[row["thread_id"]]}
                back.append(dict(row) | place | {"pruned_rev": pruned})
            if back:
                await self._session.execute(sa.insert(tables.thread_revision), back)
                self._returned["threads"] += len(back)
                back.clear()
            c, t = tables.change_log.c, tables.turns.c
            since = (c.tenant_id == self._tenant, c.user_id == self._merge.into_user, c.thread_id.in_(some))
            await self._session.execute(sa.delete(tables.change_log).where(*since, c.ts >= self._merge.merged_at))
            keys = {
                new: sa.literal(thread_key(self._merge.from_user, self._former[new]), sa.BigInteger) for new in some
            }
            for table in (*THREADED, *CHECKPOINTS):
                mine = (
                    table.c.tenant_id == self._tenant, table.c.user_id == self._merge.into_user,
                    table.c.thread_id.in_(some),
                )  # fmt: skip
                values: dict[str, Any] = {"user_id": self._merge.from_user, "thread_id": self._name(table.c.thread_id)}
                if table is tables.turns:
                    values["thread_key"] = sa.case(keys, value=t.thread_id)
                done = await self._session.rows_changed(sa.update(table).where(*mine).values(values))
                self._returned[table.name] += done
            await self._session.execute(sa.delete(tables.thread_revision).where(*there))

    def _name(self, column: sa.Column[Any]) -> sa.ColumnElement[Any]:
        """A thread's former name, where it goes back and was renamed."""
        other = {new: old for new, old in self._former.items() if new != old}
        return sa.case(other, value=column, else_=column) if other else column

    async def _continued(self, rows: Mapping[str, Sequence[Any]]) -> set[str]:
        """Threads with turns or checkpoints that came since."""
        found: set[str] = set()
        s, k, v = tables.supervisor_checkpoints.c, tables.checkpoints.c, tables.thread_revision.c
        for some in parts(sorted(rows)):
            for columns, moment in ((s, s.updated_at), (k, k.created_at)):
                since = sa.select(columns.thread_id).where(
                    columns.tenant_id == self._tenant, columns.user_id == self._merge.into_user,
                    columns.thread_id.in_(some), moment >= self._merge.merged_at,
                )  # fmt: skip
                found.update((await self._session.execute(since)).scalars())
            turns = sa.select(v.thread_id, v.turns).where(
                v.tenant_id == self._tenant, v.user_id == self._merge.into_user, v.thread_id.in_(some)
            )
            for row in await self._session.execute(turns):
                if row.turns != (rows[row.thread_id][1] or 0):
                    found.add(row.thread_id)
        return found

    async def _memories(self) -> list[Memory]:
        """Memories that have the version with which the merge left them, with the fields that they had before."""
        entries = [MergedMemoryRecord(UUID(name), version, moved, changes) for name, version, moved, changes in
                   self._record.get("memories", ())]  # fmt: skip
        there = await self._unchanged(entries)
        self._kept["memories"] += len(entries) - len(there)
        moved = [each.id for each in entries if each.moved and each.id in there]
        m = tables.memories.c
        for some in parts(moved):
            back = sa.update(tables.memories).where(m.tenant_id == self._tenant, m.id.in_(some))
            values = {"user_id": self._merge.from_user, "thread_id": self._name(m.thread_id)}
            await self._session.execute(back.values(values))
        self._returned["memories"] += len(moved)
        reverts = SqlReverts(self._session)
        now = {each.id: each for each in await reverts.memories([each.id for each in entries if each.id in there])}
        former = [
            with_fields(now[each.id], {name: old for name, (old, _) in each.changes.items()})
            for each in entries
            if each.changes and each.id in now
        ]
        active = [each for each in former if each.state is State.ACTIVE]
        taken = {
            place for other in await reverts.holding(active) for place in _places(other)
        } if active else set()  # fmt: skip
        free = [each for each in former if each.state is not State.ACTIVE or taken.isdisjoint(_places(each))]
        self._kept["memories"] += len(former) - len(free)
        await reverts.replace([(replace(each, version=each.version + 1), None) for each in free])
        return await reverts.memories(moved)

    async def _unchanged(self, entries: Sequence[MergedMemoryRecord]) -> set[UUID]:
        m, found = tables.memories.c, set[UUID]()
        wanted = {each.id: each.version for each in entries}
        for some in parts(sorted(wanted)):
            statement = sa.select(m.id, m.version).where(
                m.tenant_id == self._tenant, m.id.in_(some), m.user_id == self._merge.into_user
            )
            found.update(row.id for row in await self._session.execute(statement) if wanted[row.id] == row.version)
        return found

    async def _entities(self, memory_ids: Sequence[UUID]) -> None:
        """Entities that memories mention which went back; one that others mention too is there for both users."""
        j, e = tables.memory_entities.c, tables.entities.c
        mine: dict[UUID, list[UUID]] = {}
        for some in parts(memory_ids):
            found = sa.select(j.entity_id, j.memory_id).where(j.tenant_id == self._tenant, j.memory_id.in_(some))
            for row in await self._session.execute(found):
                mine.setdefault(row.entity_id, []).append(row.memory_id)
        shared: set[UUID] = set()
        for some in parts(sorted(mine)):
            m = tables.memories.c
            others = (
                sa.select(j.entity_id)
                .join(tables.memories, sa.and_(m.tenant_id == j.tenant_id, m.id == j.memory_id))
                .where(j.tenant_id == self._tenant, j.entity_id.in_(some), m.user_id != self._merge.from_user)
            )
            shared.update((await self._session.execute(others.distinct())).scalars())
        moved = {UUID(each[0]) for each in self._record.get(tables.entities.name, ())}
        folded = {UUID(each["into"]): each for each in self._record.get("folded", ())}
        for some in parts(sorted((moved & mine.keys()) - shared)):
            back = sa.update(tables.entities).where(
                e.tenant_id == self._tenant, e.id.in_(some), e.user_id == self._merge.into_user
            )
            self._returned["entities"] += await self._session.rows_changed(back.values(user_id=self._merge.from_user))
        await self._copied({name: mine[name] for name in mine.keys() - (moved - shared)}, folded)
        await self._unnamed(folded.values())

    async def _copied(self, mentioned: Mapping[UUID, Sequence[UUID]], folded: Mapping[UUID, Mapping[str, Any]]) -> None:
        """Entities of their own for memories that went back, instead of the other user's."""
        e, j = tables.entities.c, tables.memory_entities.c
        for some in parts(sorted(mentioned)):
            found = sa.select(tables.entities).where(
                e.tenant_id == self._tenant, e.id.in_(some), e.user_id == self._merge.into_user
            )
            rows = {row["id"]: dict(row) for row in (await self._session.execute(found)).mappings()}
            own: dict[UUID, UUID] = {}
            made, names = list[dict[str, Any]](), list[dict[str, Any]]()
            for name, row in rows.items():
                before = folded.get(name)
                own[name] = new_id() if before is None else UUID(before["id"])
                made.append(row | {"id": own[name], "user_id": self._merge.from_user})
                for alias, key in () if before is None else before["aliases"]:
                    place = {"tenant_id": self._tenant, "id": new_id(), "entity_id": own[name]}
                    names.append(place | {"alias": alias, "alias_key": key})
            if made:
                await self._session.execute(sa.insert(tables.entities), made)
            if names:
                await self._session.execute(sa.insert(tables.entity_aliases), names)
            links = [
                {"tenant_id": self._tenant, "memory_id": memory, "entity_id": own[name]}
                for name in rows
                for memory in mentioned[name]
            ]
            if links:
                await self._session.add(MENTIONS, links)
            ids = sorted({memory for name in rows for memory in mentioned[name]})
            for memories in parts(ids):
                gone = sa.delete(tables.memory_entities).where(
                    j.tenant_id == self._tenant, j.memory_id.in_(memories), j.entity_id.in_(sorted(rows))
                )
                await self._session.execute(gone)
            self._returned["entities"] += len(made)

    async def _unnamed(self, folded: Collection[Mapping[str, Any]]) -> None:
        """Take names from entities that they got from those of the former user."""
        a = tables.entity_aliases.c
        added = [(UUID(each["into"]), key) for each in folded for key in each["added"]]
        for some in parts(added):
            gone = sa.delete(tables.entity_aliases).where(
                a.tenant_id == self._tenant, sa.tuple_(a.entity_id, a.alias_key).in_(some)
            )
            await self._session.execute(gone)

    async def _unlink(self, memory_ids: Sequence[UUID]) -> None:
        """Relations between memories of the two users end."""
        r, m = tables.relations.c, tables.memories.c
        for some in parts(memory_ids):
            for near, far in ((r.from_id, r.to_id), (r.to_id, r.from_id)):
                others = sa.select(m.id).where(
                    m.tenant_id == self._tenant, m.id == far, m.user_id == self._merge.into_user
                )
                gone = sa.delete(tables.relations).where(r.tenant_id == self._tenant, near.in_(some), sa.exists(others))
                await self._session.execute(gone)

    async def _listed(self, table: sa.Table, column: sa.Column[Any]) -> None:
        """Rows that moved as they were, and are as they were."""
        columns = key_columns(table, column)
        values: dict[str, Any] = {column.name: self._merge.from_user}
        if "thread_id" in table.c:
            values["thread_id"] = self._name(table.c.thread_id)
        entries = self._record.get(table.name, ())
        done = 0
        for some in parts(entries):
            mine = [table.c.tenant_id == self._tenant, column == self._merge.into_user, *self._as_it_was(table)]
            if columns:
                mine.append(sa.tuple_(*columns).in_([key_of(columns, entry) for entry in some]))
            done += await self._session.rows_changed(sa.update(table).where(*mine).values(values))
        self._returned[table.name] += done
        self._kept[table.name] += len(entries) - done

    def _as_it_was(self, table: sa.Table) -> list[sa.ColumnElement[bool]]:
        """Which rows nobody has changed since the merge."""
        since = self._merge.merged_at
        if table is tables.consent_proposals:
            p = tables.consent_proposals.c
            return [
                sa.or_(p.decided_at.is_(None), p.decided_at < since),
                sa.or_(p.asked_at.is_(None), p.asked_at < since),
            ]
        if table is tables.user_context:
            return [tables.user_context.c.decided_at < since, self._goes_back()]
        if table is tables.user_settings:
            return [tables.user_settings.c.updated_at < since]
        return []

    def _goes_back(self) -> sa.ColumnElement[bool]:
        """Whether the memory that holds a decided field belongs to the former user again."""
        m = tables.memories.c
        return sa.exists().where(
            m.tenant_id == self._tenant, m.id == tables.user_context.c.memory_id,
            m.user_id == self._merge.from_user,
        )  # fmt: skip

    async def _put_again(self, table: sa.Table) -> None:
        """Rows that gave way to those of the other user."""
        rows = [
            row_from_json(table, each) | {"tenant_id": self._tenant}
            for each in self._record.get(f"dropped {table.name}", ())
        ]
        for some in parts(rows):
            await self._session.execute(self._session.insert(table).on_conflict_do_nothing(), some)
        self._returned[table.name] += len(rows)


def _places(memory: Memory) -> set[tuple[object, ...]]:
    """By what an active memory keeps others of its user away."""
    store = (memory.user_id, memory.category, memory.type, memory.visibility, memory.min_trust)
    named = set() if memory.external_id is None else {(memory.user_id, memory.external_id)}
    return {(*store, memory.value_hash), *named}
