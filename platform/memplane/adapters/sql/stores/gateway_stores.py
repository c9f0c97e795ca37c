"""What the write gateway keeps beside memories: tombstones, relations and entities, answers."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.queries import write_statements
from memplane.adapters.sql.queries.write_statements import upserts
from memplane.adapters.sql.rows import memory_of
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import ENTITIES, MENTIONS, RELATIONS, SqlSession
from memplane.application.records import (
    ConflictState,
    Edge,
    KnownName,
    StoredAnswer,
    SuspectedConflicts,
    TombstonedValues,
    TombstoneOrigin,
)
from memplane.domain.language.entities import Mention
from memplane.domain.language.text import instant
from memplane.domain.memory.conflict_verdicts import COMPATIBLE, POSSIBLE_CONFLICT, VERDICTS, ConflictVerdict
from memplane.domain.memory.memory import Memory, State, TrustState, new_id
from memplane.domain.memory.undo_records import plain

_B = tables.tombstones.c
_MANY = 500
UNKNOWN = "name"
"""The kind of a name of which the text does not show more."""
NAMED = frozenset({UNKNOWN, "person", "organisation", "place", "project"})


def wanted_names(tenant: str, user_id: str, mentions: Sequence[Mention]) -> dict[str, object]:
    """By what the entities of mentions are looked up."""
    kinds = sorted(NAMED | {mention.kind for mention in mentions})
    return {"tenant_id": tenant, "user_id": user_id, "keys": sorted({each.key for each in mentions}), "kinds": kinds}


def match_names(
    names: Sequence[KnownName], wanted: Collection[tuple[str, str]]
) -> tuple[dict[tuple[str, str], UUID], dict[UUID, str]]:
    """By kind and key the ids of entities that are known, and the kinds of those that a text shows first.

    A name whose kind only one of two texts shows is one entity.
    """
    aliased = {name.key: name for name in names if name.alias}
    exact = {(name.kind, name.key): name for name in names if not name.alias}
    alike = {name.key: name for name in names if not name.alias and name.kind in NAMED}
    found: dict[tuple[str, str], UUID] = {}
    shown: dict[UUID, str] = {}
    for kind, key in wanted:
        known = aliased.get(key) or exact.get((kind, key))
        if known is None and kind in NAMED and (other := alike.get(key)) and UNKNOWN in (kind, other.kind):
            known = other
            if kind != UNKNOWN:
                shown[known.id] = kind
        if known is not None:
            found[kind, key] = known.id
    return found, shown


class SqlTombstones:
    """Buried values within a transaction."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def load(self, user_id: str, category: str) -> frozenset[str]:
        """Keys of the values that are buried."""
        values = {"tenant_id": self._tenant, "scope": user_id, "category": category}
        return frozenset((await self._session.execute(write_statements.BURIED, values)).scalars())

    async def add(self, user_id: str, category: str, keys: Collection[str], burial: TombstoneOrigin) -> None:
        """Bury values; one that is buried already stays as it is."""
        why = {"reason": burial.reason, "actor": burial.actor, "ts": burial.ts, "verdict_id": burial.verdict}
        why |= {"subject_id": burial.subject}
        where = {"tenant_id": self._tenant, "scope": user_id, "category": category}
        values = [{**where, **why, "id": new_id(), "value_hash": key} for key in sorted(keys)]
        if not values:
            return
        await self._session.execute(self._session.insert(tables.tombstones).values(values).on_conflict_do_nothing())

    async def lift(self, user_id: str, category: str, keys: Collection[str], moment: datetime) -> None:
        """Take back what was buried at a moment, and at no other."""
        t = tables.tombstones.c
        await self._session.execute(
            sa.delete(tables.tombstones).where(
                t.tenant_id == self._tenant,
                t.scope == user_id,
                t.category == category,
                t.value_hash.in_(sorted(keys)),
                t.ts == moment,
            )
        )

    async def verdict(self, verdict_id: UUID) -> TombstonedValues | None:
        """A verdict, or a single value that belongs to none; none where it was lifted."""
        statement = sa.select(tables.tombstones).where(*self._of_verdict(verdict_id)).order_by(_B.category)
        rows = list(await self._session.execute(statement))
        if not rows:
            return None
        first, places = rows[0], Counter(row.category for row in rows)
        return TombstonedValues(
            verdict_id, first.scope, first.reason, first.actor, first.ts, dict(places), first.subject_id
        )

    async def rejected_at(self, user_id: str, moment: datetime) -> list[Memory]:
        """A user's memories that were rejected at a moment, locked."""
        m = tables.memories.c
        statement = sa.select(*write_statements.MEMORY).where(
            m.tenant_id == self._tenant, m.user_id == user_id, m.trust_state == TrustState.REJECTED,
            m.state == State.SOFT_DELETED, m.updated_at == moment,
        )  # fmt: skip
        rows = await self._session.execute(statement.order_by(m.id).with_for_update())
        return [memory_of(dict(row)) for row in rows.mappings()]

    async def lift_verdict(self, verdict_id: UUID) -> list[Mapping[str, str]]:
        """Take a verdict back as a whole; what was buried, as it can be buried again."""
        mine = self._of_verdict(verdict_id)
        rows = (await self._session.execute(sa.select(tables.tombstones).where(*mine))).mappings()
        lifted: list[Mapping[str, str]] = [
            {name: str(plain(value)) for name, value in row.items() if name != "tenant_id" and value is not None}
            for row in rows
        ]
        await self._session.execute(sa.delete(tables.tombstones).where(*mine))
        return lifted

    async def restore(self, rows: Sequence[Mapping[str, str]]) -> None:
        """Bury what a verdict that was lifted had buried; what was buried since stays as it is."""
        values = [
            {"tenant_id": self._tenant, "verdict_id": None, "subject_id": None, **row, "ts": instant(row["ts"])}
            | {name: UUID(row[name]) for name in ("id", "verdict_id", "subject_id") if name in row}
            for row in rows
        ]
        insert = self._session.insert(tables.tombstones)
        for start in range(0, len(values), _MANY):
            some = insert.values(values[start : start + _MANY])
            await self._session.execute(some.on_conflict_do_nothing())

    def _of_verdict(self, verdict_id: UUID) -> tuple[sa.ColumnElement[bool], ...]:
        alone = sa.and_(_B.verdict_id.is_(None), _B.id == verdict_id)
        return _B.tenant_id == self._tenant, sa.or_(_B.verdict_id == verdict_id, alone)


class SqlGraph:
    """Relations and entities within a transaction."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

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
        await self._session.add(RELATIONS, values)

    async def linked_ids(self, memory_id: UUID, kind: str) -> list[UUID]:
        """Where relations of a kind lead from a memory."""
        r = tables.relations.c
        statement = sa.select(r.to_id).where(
            r.tenant_id == self._tenant, r.from_id == memory_id, r.relation_type == kind
        )
        return list((await self._session.execute(statement.order_by(r.to_id))).scalars())

    async def conflicts(self, ids: Sequence[UUID]) -> dict[UUID, SuspectedConflicts]:
        """By memory, the active memories that it may contradict, and those of which it was decided that both hold."""
        r, m = tables.relations.c, tables.memories.c
        found: dict[UUID, dict[str, set[UUID]]] = {}
        for near, far in ((r.from_id, r.to_id), (r.to_id, r.from_id)):
            statement = sa.select(near.label("near"), far.label("far"), r.relation_type).where(
                r.tenant_id == self._tenant,
                near.in_(sorted(ids)),
                r.relation_type.in_((POSSIBLE_CONFLICT, COMPATIBLE)),
                m.tenant_id == self._tenant,
                m.id == far,
                m.state == State.ACTIVE.value,
            )
            for row in await self._session.execute(statement):
                found.setdefault(row.near, {}).setdefault(row.relation_type, set()).add(row.far)
        return {
            near: SuspectedConflicts(frozenset(kinds.get(POSSIBLE_CONFLICT, ())), frozenset(kinds.get(COMPATIBLE, ())))
            for near, kinds in found.items()
        }

    async def conflict(self, conflict_id: UUID) -> ConflictState | None:
        """A conflict, open or decided; ``None`` when there is none of that id."""
        r = tables.relations.c
        statement = sa.select(r.from_id, r.to_id, r.relation_type).where(
            r.tenant_id == self._tenant, r.id == conflict_id, r.relation_type.in_(sorted(VERDICTS))
        )
        row = (await self._session.execute(statement)).one_or_none()
        return None if row is None else ConflictState((row.from_id, row.to_id), VERDICTS[row.relation_type])

    async def settle_conflict(
        self, conflict_id: UUID, verdict: ConflictVerdict, now: datetime, strength: float = 0.0
    ) -> None:
        """Note what was decided about a conflict; the relation is at least as strong as ``strength`` from now on."""
        r = tables.relations.c
        this = (r.tenant_id == self._tenant, r.id == conflict_id)
        held = (await self._session.execute(sa.select(r.from_id, r.to_id).where(*this))).one()
        # an import may have brought a second one of the same pair
        pair = await self._between(held.from_id, held.to_id)
        await self._unlink([each.id for each in pair if each.id != conflict_id])
        await self._session.execute(
            sa.update(tables.relations)
            .where(*this)
            .values(
                relation_type=verdict.relation,
                strength=sa.case((r.strength < strength, strength), else_=r.strength),
                updated_at=now,
            )
        )

    async def reconcile(self, edge: Edge, now: datetime) -> None:
        """Note that both memories at the ends hold, whether or not they were listed as a possible conflict."""
        known = {each.relation_type: each.id for each in await self._between(edge.from_id, edge.to_id)}
        if POSSIBLE_CONFLICT in known:
            await self.settle_conflict(known[POSSIBLE_CONFLICT], ConflictVerdict.KEEP_BOTH, now, edge.strength)
        elif COMPATIBLE not in known:
            await self.link([replace(edge, kind=COMPATIBLE)], now)

    async def ended_by_verdict(self, memory_id: UUID) -> dict[UUID, UUID]:
        """The decided conflicts of a memory of which one side was to hold, by the memory on the other side."""
        ended = (ConflictVerdict.NEWER.relation, ConflictVerdict.OLDER.relation)
        return {each.far: each.id for each in await self._conflicts_of(memory_id, ended)}

    async def drop_conflicts(self, memory_id: UUID, still: Collection[UUID]) -> None:
        """Remove a memory's open conflicts but for those with some others, and the verdicts that both hold."""
        found = await self._conflicts_of(memory_id, (POSSIBLE_CONFLICT, COMPATIBLE))
        await self._unlink(
            [each.id for each in found if each.relation_type != POSSIBLE_CONFLICT or each.far not in still]
        )

    async def _between(self, one: UUID, other: UUID) -> Sequence[sa.Row[Any]]:
        """The conflicts of two memories, open or decided, whichever way they lead."""
        r, both = tables.relations.c, (one, other)
        statement = sa.select(r.id, r.relation_type).where(
            r.tenant_id == self._tenant, r.from_id.in_(both), r.to_id.in_(both), r.relation_type.in_(sorted(VERDICTS))
        )
        return (await self._session.execute(statement)).all()

    async def _conflicts_of(self, memory_id: UUID, kinds: Collection[str]) -> list[sa.Row[Any]]:
        """The conflicts of a memory of some kinds, each with the memory on the other side."""
        r, found = tables.relations.c, list[sa.Row[Any]]()
        for near, far in ((r.from_id, r.to_id), (r.to_id, r.from_id)):
            statement = sa.select(r.id, r.relation_type, far.label("far")).where(
                r.tenant_id == self._tenant, near == memory_id, r.relation_type.in_(sorted(kinds))
            )
            found += (await self._session.execute(statement)).all()
        return found

    async def _unlink(self, ids: Sequence[UUID]) -> None:
        if ids:
            r = tables.relations.c
            await self._session.execute(sa.delete(tables.relations).where(r.tenant_id == self._tenant, r.id.in_(ids)))

    async def entities(
        self, user_id: str, mentions: Sequence[Mention], now: datetime, known: Sequence[KnownName] | None = None
    ) -> list[UUID]:
        """Ids of a user's entities, made where they are new; an alias leads to the entity that has it."""
        return sorted({*(await self.entity_ids(user_id, mentions, now, known)).values()})

    async def entity_ids(
        self, user_id: str, mentions: Sequence[Mention], now: datetime, known: Sequence[KnownName] | None = None
    ) -> dict[tuple[str, str], UUID]:
        """By kind and key of each mention, the id of its entity; see :meth:`entities`."""
        if not mentions:
            return {}
        wanted = {(mention.kind, mention.key): mention for mention in mentions}
        if known is None:
            known = await self.known_names(user_id, mentions)
        found, shown = match_names(known, wanted)
        for entity_id, kind in sorted(shown.items()):
            await self._is_of_kind(entity_id, kind)
        made = {place: new_id() for place in sorted(wanted.keys() - found.keys())}
        values = [
            {
                "tenant_id": self._tenant,
                "id": entity_id,
                "user_id": user_id,
                "kind": kind,
                "name": wanted[kind, key].name,
                "name_key": key,
                "created_at": now,
            }
            for (kind, key), entity_id in made.items()
        ]
        if values:
            await self._session.add(ENTITIES, values)
        return found | made

    async def known_names(self, user_id: str, mentions: Sequence[Mention]) -> list[KnownName]:
        """What a user's entities are called that have one of these names."""
        rows = await self._session.execute(
            write_statements.KNOWN_ENTITIES, wanted_names(self._tenant, user_id, mentions)
        )
        return [KnownName(row.id, row.key, row.kind, row.alias) for row in rows]

    async def mention(self, memory: Memory, entities: Sequence[UUID]) -> None:
        """Note which entities a memory mentions, instead of those that it did before."""
        junction = tables.memory_entities.c
        if memory.version > 1:
            await self._session.execute(
                sa.delete(tables.memory_entities).where(
                    junction.tenant_id == self._tenant, junction.memory_id == memory.id
                )
            )
        if entities:
            values = [{"tenant_id": self._tenant, "memory_id": memory.id, "entity_id": each} for each in entities]
            await self._session.add(MENTIONS, values)

    async def name(self, user_id: str, entity_id: UUID, alias: str, key: str) -> bool:
        """Give an entity another name; False when another entity of the user has it."""
        e, a = tables.entities.c, tables.entity_aliases.c
        others = sa.select(e.id).where(e.tenant_id == self._tenant, e.user_id == user_id, e.id != entity_id)
        named = others.where(e.name_key == key)
        aliased = others.where(
            a.tenant_id == self._tenant, a.alias_key == key, a.entity_id == e.id, e.tenant_id == a.tenant_id
        )
        if (await self._session.execute(named.union_all(aliased).limit(1))).first() is not None:
            return False
        values = {"tenant_id": self._tenant, "id": new_id(), "entity_id": entity_id, "alias": alias, "alias_key": key}
        await self._session.execute(
            self._session.insert(tables.entity_aliases).values([values]).on_conflict_do_nothing()
        )
        return True

    async def fold(self, gone: UUID, kept: UUID, name: tuple[str, str]) -> bool:
        """Put an entity into another, its name and key among the other's aliases; False when one is not there."""
        e, a, j = tables.entities.c, tables.entity_aliases.c, tables.memory_entities.c
        both = sa.select(e.id).where(e.tenant_id == self._tenant, e.id.in_([gone, kept])).order_by(e.id)
        if len((await self._session.execute(both.with_for_update())).all()) < 2:
            return False
        mine = (j.tenant_id == self._tenant, j.entity_id == gone)
        moved = sa.select(j.tenant_id, j.memory_id, sa.literal(kept, sa.Uuid())).where(*mine)
        junction = self._session.insert(tables.memory_entities)
        await self._session.execute(
            junction.from_select(["tenant_id", "memory_id", "entity_id"], moved).on_conflict_do_nothing()
        )
        found = sa.select(a.alias, a.alias_key).where(a.tenant_id == self._tenant, a.entity_id == gone).order_by(a.id)
        names = [name, *((row.alias, row.alias_key) for row in await self._session.execute(found))]
        values = [
            {"tenant_id": self._tenant, "id": new_id(), "entity_id": kept, "alias": alias, "alias_key": key}
            for alias, key in names
        ]
        await self._session.execute(self._session.insert(tables.entity_aliases).values(values).on_conflict_do_nothing())
        await self._session.execute(sa.delete(tables.entities).where(e.tenant_id == self._tenant, e.id == gone))
        return True

    async def _is_of_kind(self, entity_id: UUID, kind: str) -> None:
        e = tables.entities.c
        await self._session.execute(
            sa.update(tables.entities).where(e.tenant_id == self._tenant, e.id == entity_id).values(kind=kind)
        )


class SqlAnswers:
    """Answers to requests with an idempotency key, within a transaction."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def find_answer(self, key_id: str, name: str) -> StoredAnswer | None:
        """The answer of the request that took an idempotency key, or none."""
        values = {"tenant_id": self._tenant, "key_id": key_id, "idempotency_key": name}
        row = (await self._session.execute(write_statements.ANSWERED, values)).one_or_none()
        return None if row is None else StoredAnswer(row.request_hash, row.answer)

    async def keep(
        self, key_id: str, name: str, answered: StoredAnswer, now: datetime, user_id: str | None = None
    ) -> bool:
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
            "of_user": user_id,
        }
        return (await self._session.execute(upserts(self._session.insert).answer, values)).first() is not None
