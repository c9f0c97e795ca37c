"""Relations, mentions and entities, read to be checked and put right, within a transaction."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.stores.jobs.text_repairs import SqlTextRepairs, binary_embedding, parts
from memplane.application.jobs.reconciliation.reconcile_records import HeldEntity, HeldMention, HeldRelation, Placing
from memplane.domain.memory.memory import RETRIEVABLE_TRUST, MemoryType, State
from memplane.domain.ranking.co_recall import CO_RECALLED


class SqlRepairs(SqlTextRepairs):
    """Derived data of a tenant."""

    async def relations(self, after: UUID | None, limit: int) -> list[HeldRelation]:
        """Relations in the order of their ids, after one."""
        r = tables.relations.c
        statement = sa.select(r.id, r.from_id, r.to_id, r.relation_type, r.strength).where(r.tenant_id == self._tenant)
        if after is not None:
            statement = statement.where(r.id > after)
        rows = (await self._session.execute(statement.order_by(r.id).limit(limit))).all()
        users = await self._owners(tables.memories, {end for row in rows for end in (row.from_id, row.to_id)})
        there = await self._leading_back([(row.to_id, row.from_id) for row in rows])
        found = []
        for row in rows:
            back = there.get((row.to_id, row.from_id, row.relation_type))
            ends = (users.get(row.from_id), users.get(row.to_id))
            joined = (row.from_id, row.to_id)
            found.append(HeldRelation(row.id, row.relation_type, row.strength, joined, *ends, *(back or (None, None))))
        return found

    async def _leading_back(
        self, pairs: Sequence[tuple[UUID, UUID]]
    ) -> Mapping[tuple[UUID, UUID, str], tuple[UUID, float]]:
        """Relations that join two memories, by these and their kind: their ids and strengths."""
        r, found = tables.relations.c, {}
        for some in parts(sorted(set(pairs))):
            # by where they begin first: no index serves pairs on SQLite
            statement = sa.select(r.id, r.from_id, r.to_id, r.relation_type, r.strength).where(
                r.tenant_id == self._tenant,
                r.from_id.in_({one for one, _ in some}),
                sa.tuple_(r.from_id, r.to_id).in_(some),
            )
            for row in await self._session.execute(statement):
                found[row.from_id, row.to_id, row.relation_type] = (row.id, row.strength)
        return found

    async def _owners(self, table: sa.Table, ids: Collection[UUID]) -> Mapping[UUID, str]:
        """Whose some memories or entities are; asked apart from their page, or it would read all of a tenant."""
        found: dict[UUID, str] = {}
        for some in parts(sorted(ids)):
            statement = sa.select(table.c.id, table.c.user_id).where(
                table.c.tenant_id == self._tenant, table.c.id.in_(some)
            )
            found |= {row.id: row.user_id for row in await self._session.execute(statement)}
        return found

    async def unlink(self, astray: Collection[HeldRelation], doubles: Collection[HeldRelation]) -> int:
        """Remove relations that still lead astray, or lead back where a stronger one is by now; how many they were."""
        taken = [(each.joined, each.id) for each in (*astray, *doubles)]
        taken += [(each.joined[::-1], each.reverse) for each in doubles if each.reverse is not None]
        await self._lock([each for _, each in sorted(taken)])
        return await self._unlink(astray, ~_joins()) + await self._unlink(doubles, _leads_back())

    async def _unlink(self, held: Collection[HeldRelation], condition: sa.ColumnElement[bool]) -> int:
        r, count = tables.relations.c, 0
        for some in parts(sorted(each.id for each in held)):
            statement = sa.delete(tables.relations).where(r.tenant_id == self._tenant, r.id.in_(some), condition)
            count += await self._session.rows_changed(statement)
        return count

    async def _lock(self, ids: Sequence[UUID]) -> None:
        """Rows in the order in which who counts what is recalled together takes them."""
        r = tables.relations.c
        for some in parts(ids):
            statement = sa.select(r.id).where(r.tenant_id == self._tenant, r.id.in_(some))
            await self._session.execute(statement.order_by(r.from_id, r.to_id).with_for_update())

    async def mentions(self, after: tuple[UUID, UUID] | None, limit: int) -> list[HeldMention]:
        """Links of memories with entities, in the order of both ids, after one."""
        j = tables.memory_entities.c
        statement = sa.select(j.memory_id, j.entity_id).where(j.tenant_id == self._tenant)
        if after is not None:
            statement = statement.where(sa.tuple_(j.memory_id, j.entity_id) > sa.tuple_(*_ids(after)))
        rows = (await self._session.execute(statement.order_by(j.memory_id, j.entity_id).limit(limit))).all()
        users = await self._owners(tables.memories, {row.memory_id for row in rows})
        whose = await self._owners(tables.entities, {row.entity_id for row in rows})
        return [
            HeldMention(row.memory_id, row.entity_id, users.get(row.memory_id), whose.get(row.entity_id))
            for row in rows
        ]

    async def unmention(self, pairs: Collection[tuple[UUID, UUID]]) -> int:
        """Remove links of memories with entities that still lead nowhere or to somebody else's; how many they were."""
        j, count = tables.memory_entities.c, 0
        for some in parts(sorted(pairs)):
            # by the memories first: no index serves pairs on SQLite
            memories = j.memory_id.in_({memory for memory, _ in some})
            statement = sa.delete(tables.memory_entities).where(
                j.tenant_id == self._tenant, memories, sa.tuple_(j.memory_id, j.entity_id).in_(some), ~_names()
            )
            count += await self._session.rows_changed(statement)
        return count

    async def entities(self, after: UUID | None, limit: int) -> list[HeldEntity]:
        """Entities in the order of their ids, after one."""
        e = tables.entities.c
        statement = sa.select(e.id, e.user_id).where(e.tenant_id == self._tenant)
        if after is not None:
            statement = statement.where(e.id > after)
        rows = (await self._session.execute(statement.order_by(e.id).limit(limit))).all()
        needed = await self._leading([each.c.entity_id for each in _NEEDING], [row.id for row in rows])
        return [HeldEntity(row.id, row.user_id, row.id in needed) for row in rows]

    async def _leading(
        self, ends: Sequence[sa.Column[UUID]], ids: Sequence[UUID], *conditions: sa.ColumnElement[bool]
    ) -> frozenset[UUID]:
        """Those of some ids that stand in one of some columns."""
        found = set[UUID]()
        for some in parts(ids):
            for end in ends:
                tenant = end.table.c.tenant_id
                statement = sa.select(end).where(tenant == self._tenant, end.in_(some), *conditions).distinct()
                found.update((await self._session.execute(statement)).scalars())
        return frozenset(found)

    async def needless(self, ids: Collection[UUID]) -> int:
        """Remove those of some entities that nothing needs by now; how many they were."""
        e, count = tables.entities.c, 0
        for some in parts(sorted(ids)):
            statement = sa.delete(tables.entities).where(e.tenant_id == self._tenant, e.id.in_(some), ~is_needed())
            count += await self._session.rows_changed(statement)
        return count

    async def placings(self, after: tuple[str, UUID] | None, limit: int) -> list[Placing]:
        """Memories that are read and have a vector, in the order of their users and ids, after one."""
        m = tables.memories.c
        statement = sa.select(*_PLACE).where(m.tenant_id == self._tenant, *self._placed())
        if after is not None:
            user, last = after
            bounds = (sa.literal(user, m.user_id.type), sa.literal(last, m.id.type))
            statement = statement.where(sa.tuple_(m.user_id, m.id) > sa.tuple_(*bounds))
        rows = (await self._session.execute(statement.order_by(m.user_id, m.id).limit(limit))).all()
        linked = await self.with_relations([row.id for row in rows])
        return [Placing(row.id, row.user_id, row.category, MemoryType(row.type), row.id in linked) for row in rows]

    async def around(self, user_id: str, before: UUID | None, limit: int) -> list[Placing]:
        """Such memories of a user with their vectors, newest first, those older than one."""
        m = tables.memories.c
        vector = binary_embedding(m[self._session.in_force.column]).label("vector")
        statement = sa.select(*_PLACE, vector).where(m.tenant_id == self._tenant, m.user_id == user_id, *self._placed())
        if before is not None:
            statement = statement.where(m.id < before)
        rows = await self._session.execute(statement.order_by(m.id.desc()).limit(limit))
        # vectors are decoded as rows are taken out of the answer
        return await asyncio.to_thread(_placings, rows)

    async def with_relations(self, ids: Collection[UUID]) -> frozenset[UUID]:
        """Those of some memories that a relation leads from or to; to be recalled together makes none of meaning."""
        r = tables.relations.c
        return await self._leading([r.from_id, r.to_id], sorted(ids), r.relation_type != CO_RECALLED)

    def _placed(self) -> Sequence[sa.ColumnElement[bool]]:
        m = tables.memories.c
        trusted = m.trust_state.in_([each.value for each in RETRIEVABLE_TRUST])
        vector = m[self._session.in_force.column].is_not(None)
        return m.tenant_id == self._tenant, m.state == sa.literal_column(f"'{State.ACTIVE}'"), trusted, vector


_PLACE: Sequence[sa.ColumnElement[Any]] = [tables.memories.c[name] for name in ("id", "user_id", "category", "type")]


_NEEDING = (tables.memory_entities, tables.entity_aliases)


def _placings(rows: sa.Result[Any]) -> list[Placing]:
    return [Placing(row.id, row.user_id, row.category, MemoryType(row.type), vector=row.vector) for row in rows]


def _ids(values: Sequence[UUID]) -> list[sa.ColumnElement[UUID]]:
    return [sa.literal(each, sa.Uuid()) for each in values]


def is_needed() -> sa.ColumnElement[bool]:
    """Whether a memory mentions an entity, or somebody gave it another name."""
    e = tables.entities.c
    return sa.or_(*(
        sa.exists(sa.select(sa.literal(1)).where(other.c.tenant_id == e.tenant_id, other.c.entity_id == e.id))
        for other in _NEEDING
    ))  # fmt: skip


def _joins() -> sa.ColumnElement[bool]:
    """Whether a relation joins memories of one user."""
    r, one, other = tables.relations.c, tables.memories.alias("one").c, tables.memories.alias("other").c
    return sa.exists(
        sa.select(sa.literal(1)).where(
            one.tenant_id == r.tenant_id, one.id == r.from_id,
            other.tenant_id == r.tenant_id, other.id == r.to_id, other.user_id == one.user_id,
        )
    )  # fmt: skip


def _leads_back() -> sa.ColumnElement[bool]:
    """Whether a stronger relation of the same kind leads back; of two that are as strong the later one stays."""
    r, back = tables.relations.c, tables.relations.alias("back").c
    stronger = sa.or_(back.strength > r.strength, sa.and_(back.strength == r.strength, back.id > r.id))
    return sa.exists(
        sa.select(sa.literal(1)).where(
            back.tenant_id == r.tenant_id, back.from_id == r.to_id, back.to_id == r.from_id,
            back.relation_type == r.relation_type, stronger,
        )
    )  # fmt: skip


def _names() -> sa.ColumnElement[bool]:
    """Whether a link leads from a memory to an entity of the same user."""
    j, m, e = tables.memory_entities.c, tables.memories.c, tables.entities.c
    return sa.exists(
        sa.select(sa.literal(1)).where(
            m.tenant_id == j.tenant_id, m.id == j.memory_id,
            e.tenant_id == j.tenant_id, e.id == j.entity_id, e.user_id == m.user_id,
        )
    )  # fmt: skip
