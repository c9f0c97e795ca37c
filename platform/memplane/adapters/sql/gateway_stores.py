"""What the write gateway keeps beside memories: tombstones, relations and entities, answers, proposals."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memplane.adapters.sql import prepared, tables
from memplane.adapters.sql.prepared import Insert, one_or_many, upserts
from memplane.application.records import Answered, Burial, Edge, Proposal
from memplane.domain.entities import Mention
from memplane.domain.memory import Memory, new_id

PENDING = "pending"
UNKNOWN = "name"
"""The kind of a name of which the text does not show more."""
NAMED = frozenset({UNKNOWN, "person", "organisation", "place", "project"})


class SqlTombstones:
    """Buried values within a transaction."""

    def __init__(self, connection: AsyncConnection, tenant: str, insert: Insert) -> None:
        self._connection = connection
        self._tenant = tenant
        self._insert = insert

    async def held(self, user_id: str, category: str) -> frozenset[str]:
        """Keys of the values that are buried."""
        values = {"tenant_id": self._tenant, "scope": user_id, "category": category}
        return frozenset((await self._connection.execute(prepared.BURIED, values)).scalars())

    async def bury(self, user_id: str, category: str, keys: Collection[str], burial: Burial) -> None:
        """Bury values; one that is buried already stays as it is."""
        why = {"reason": burial.reason, "actor": burial.actor, "ts": burial.ts}
        where = {"tenant_id": self._tenant, "scope": user_id, "category": category}
        values = [{**where, **why, "id": new_id(), "value_hash": key} for key in sorted(keys)]
        if not values:
            return
        await self._connection.execute(self._insert(tables.tombstones).values(values).on_conflict_do_nothing())


class SqlGraph:
    """Relations and entities within a transaction."""

    def __init__(self, connection: AsyncConnection, tenant: str, insert: Insert) -> None:
        self._connection = connection
        self._tenant = tenant
        self._insert = insert

    async def link(self, edges: Sequence[Edge], now: datetime) -> None:
        """Add relations; one that is there takes the greater strength."""
        if not edges:
            return
        ordered = sorted(edges, key=lambda edge: (edge.from_id, edge.to_id, edge.kind))
        values = [
            {
                "tenant_id": self._tenant,
                "id": new_id(),
                "from_id": edge.from_id,
                "to_id": edge.to_id,
                "relation_type": edge.kind,
                "strength": edge.strength,
                "created_at": now,
                "updated_at": now,
            }
            for edge in ordered
        ]
        await self._connection.execute(upserts(self._insert).relations, one_or_many(values))

    async def linked(self, memory_id: UUID, kind: str) -> list[UUID]:
        """Where relations of a kind lead from a memory."""
        r = tables.relations.c
        statement = sa.select(r.to_id).where(
            r.tenant_id == self._tenant, r.from_id == memory_id, r.relation_type == kind
        )
        return list((await self._connection.execute(statement.order_by(r.to_id))).scalars())

    async def mention(self, memory: Memory, mentions: Sequence[Mention], now: datetime) -> None:
        """Note whom a memory mentions, instead of whom it did before; entities that are new are made."""
        junction = tables.memory_entities.c
        if memory.version > 1:
            await self._connection.execute(
                sa.delete(tables.memory_entities).where(
                    junction.tenant_id == self._tenant, junction.memory_id == memory.id
                )
            )
        if not mentions:
            return
        by_key = {(mention.kind, mention.key): mention for mention in mentions}
        ids = await self._entities(memory.user_id, by_key, now)
        values = [{"tenant_id": self._tenant, "memory_id": memory.id, "entity_id": found} for found in ids]
        await self._connection.execute(upserts(self._insert).mentions, one_or_many(values))

    async def name(self, user_id: str, entity_id: UUID, alias: str, key: str) -> bool:
        """Give an entity another name; False when another entity of the user has it."""
        e, a = tables.entities.c, tables.entity_aliases.c
        others = sa.select(e.id).where(e.tenant_id == self._tenant, e.user_id == user_id, e.id != entity_id)
        named = others.where(e.name_key == key)
        aliased = others.where(
            a.tenant_id == self._tenant, a.alias_key == key, a.entity_id == e.id, e.tenant_id == a.tenant_id
        )
        if (await self._connection.execute(named.union_all(aliased).limit(1))).first() is not None:
            return False
        values = {"tenant_id": self._tenant, "id": new_id(), "entity_id": entity_id, "alias": alias, "alias_key": key}
        await self._connection.execute(self._insert(tables.entity_aliases).values([values]).on_conflict_do_nothing())
        return True

    async def fold(self, gone: UUID, kept: UUID, name: tuple[str, str]) -> bool:
        """Put an entity into another, its name and key among the other's aliases; False when one is not there."""
        e, a, j = tables.entities.c, tables.entity_aliases.c, tables.memory_entities.c
        both = sa.select(e.id).where(e.tenant_id == self._tenant, e.id.in_([gone, kept])).order_by(e.id)
        if len((await self._connection.execute(both.with_for_update())).all()) < 2:
            return False
        mine = (j.tenant_id == self._tenant, j.entity_id == gone)
        moved = sa.select(j.tenant_id, j.memory_id, sa.literal(kept, sa.Uuid())).where(*mine)
        junction = self._insert(tables.memory_entities)
        await self._connection.execute(
            junction.from_select(["tenant_id", "memory_id", "entity_id"], moved).on_conflict_do_nothing()
        )
        found = sa.select(a.alias, a.alias_key).where(a.tenant_id == self._tenant, a.entity_id == gone).order_by(a.id)
        names = [name, *((row.alias, row.alias_key) for row in await self._connection.execute(found))]
        values = [
            {"tenant_id": self._tenant, "id": new_id(), "entity_id": kept, "alias": alias, "alias_key": key}
            for alias, key in names
        ]
        await self._connection.execute(self._insert(tables.entity_aliases).values(values).on_conflict_do_nothing())
        await self._connection.execute(sa.delete(tables.entities).where(e.tenant_id == self._tenant, e.id == gone))
        return True

    async def _entities(self, user_id: str, wanted: Mapping[tuple[str, str], Mention], now: datetime) -> list[UUID]:
        """Ids of a user's entities, made where they are new; an alias leads to the entity that has it."""
        left, found = await self._known(user_id, wanted)
        values = [
            {
                "tenant_id": self._tenant,
                "id": new_id(),
                "user_id": user_id,
                "kind": kind,
                "name": mention.name,
                "name_key": key,
                "created_at": now,
            }
            for (kind, key), mention in sorted(left.items())
        ]
        if values:
            made = await self._connection.execute(upserts(self._insert).entities, one_or_many(values))
            found = found | set(made.scalars())
        return sorted(found)

    async def _known(
        self, user_id: str, wanted: Mapping[tuple[str, str], Mention]
    ) -> tuple[Mapping[tuple[str, str], Mention], set[UUID]]:
        """What is not known yet, and the ids of what is.

        A name whose kind only one of two texts shows is one entity.
        """
        keys = sorted({key for _, key in wanted})
        values = {"tenant_id": self._tenant, "user_id": user_id, "keys": keys, "kinds": sorted(NAMED)}
        rows = (await self._connection.execute(prepared.KNOWN_ENTITIES, values)).all()
        aliased = {row.key: row for row in rows if row.alias}
        named = {row.key: row for row in rows if not row.alias}
        left, found = dict(wanted), set()
        for kind, key in wanted:
            known = aliased.get(key) or named.get(key)
            if known is None:
                continue
            if not known.alias and (kind not in NAMED or (kind != UNKNOWN and known.kind not in (kind, UNKNOWN))):
                continue
            found.add(known.id)
            del left[kind, key]
            if not known.alias and kind != UNKNOWN and known.kind == UNKNOWN:
                await self._is_of_kind(known.id, kind)
        return left, found

    async def _is_of_kind(self, entity_id: UUID, kind: str) -> None:
        e = tables.entities.c
        await self._connection.execute(
            sa.update(tables.entities).where(e.tenant_id == self._tenant, e.id == entity_id).values(kind=kind)
        )


class SqlAnswers:
    """Answers to requests with an idempotency key, within a transaction."""

    def __init__(self, connection: AsyncConnection, tenant: str, insert: Insert) -> None:
        self._connection = connection
        self._tenant = tenant
        self._insert = insert

    async def answered(self, key_id: str, name: str) -> Answered | None:
        """The answer of the request that took an idempotency key, or none."""
        values = {"tenant_id": self._tenant, "key_id": key_id, "idempotency_key": name}
        row = (await self._connection.execute(prepared.ANSWERED, values)).one_or_none()
        return None if row is None else Answered(row.request_hash, row.answer)

    async def keep(self, key_id: str, name: str, answered: Answered, now: datetime) -> bool:
        """Store what a request was and what it is answered; False when another request took the key.

        Another transaction with the same key waits here until this one ends.
        """
        values = {
            "tenant_id": self._tenant,
            "key_id": key_id,
            "idempotency_key": name,
            "request_hash": answered.request_hash,
            "answer": dict(answered.answer),
            "created_at": now,
        }
        return (await self._connection.execute(upserts(self._insert).answer, values)).first() is not None


class SqlConsents:
    """Proposals within a transaction."""

    def __init__(self, connection: AsyncConnection, tenant: str) -> None:
        self._connection = connection
        self._tenant = tenant

    async def propose(self, proposal: Proposal, value_key: str) -> UUID | None:
        """Store a proposal; the id of the open one for the same field and value, or ``None`` when it is new."""
        p = tables.consent_proposals.c
        statement = sa.select(p.id).where(
            p.tenant_id == self._tenant,
            p.user_id == proposal.user_id,
            p.state == PENDING,
            p.field == proposal.field,
            p.value_hash == value_key,
            p.expires_at > proposal.created_at,
        )
        there = (await self._connection.execute(statement.limit(1))).scalar_one_or_none()
        if there is None:
            values = {name: getattr(proposal, name) for name in Proposal.__slots__}
            await self._connection.execute(
                sa.insert(tables.consent_proposals).values(
                    tenant_id=self._tenant, state=PENDING, value_hash=value_key, meta={}, **values
                )
            )
        return there
