"""What an import writes of one user, many records at once, on both databases."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.rows import material_values, memory_values, turn_values
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import MANY, MENTIONS, RELATIONS, Row, SqlSession
from memplane.adapters.sql.stores.memory_stores import thread_key
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import Proposal
from memplane.application.transfer.portable_records import Holder, MemoryRelation, NamedEntity, Tombstone
from memplane.domain.consent.consent_rules import ProposalState
from memplane.domain.memory.history import HistoryEntry
from memplane.domain.memory.memory import Memory, Turn, new_id, weight_of
from memplane.domain.memory.tombstones import value_key, verdict_of

T = TypeVar("T")
_VALUE = ("category", "type", "visibility", "min_trust", "value_hash")

# Served by pk_memories.
_HOLDERS = "SELECT m.id, m.user_id, m.category FROM memories m WHERE m.tenant_id = {tenant} AND {listed}"

# Served by pk_turns.
_SPEAKERS = "SELECT t.id, t.user_id FROM turns t WHERE t.tenant_id = {tenant} AND {listed}"

# Served by uq_memories_value; the state is written out, as the partial indexes have it.
_VALUES = """
SELECT m.category, m.type, m.visibility, m.min_trust, m.value_hash, m.authority, m.trust_state FROM memories m
 WHERE m.tenant_id = {tenant} AND m.user_id = {of_user} AND m.state = 'active' AND {listed}"""

# Served by uq_memories_external.
_NAMED = """
SELECT m.external_id, m.authority, m.trust_state FROM memories m
 WHERE m.tenant_id = {tenant} AND m.user_id = {of_user} AND m.state = 'active' AND {listed}"""

# Served by uq_entities_tenant_id_user_id_kind_name_key.
_ENTITIES = """
SELECT e.id, e.kind, e.name_key FROM entities e
 WHERE e.tenant_id = {tenant} AND e.user_id = {of_user} AND {kinds} AND {listed}"""

# Served by pk_history.
_NOTED = "SELECT h.id FROM history h WHERE h.tenant_id = {tenant} AND {listed}"

# Served by pk_consent_proposals.
_PROPOSED = "SELECT p.id FROM consent_proposals p WHERE p.tenant_id = {tenant} AND p.user_id = {of_user} AND {listed}"


class SqlPortableStore:
    """Many records at once within a transaction; see ``PortableStore``."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def holders(self, ids: Collection[UUID]) -> Mapping[UUID, Holder]:
        """Whose memories these ids are, of those that are there."""
        rows = await self._rows(_HOLDERS, "m.id", ids)
        return {row["id"]: Holder(row["user_id"], row["category"]) for row in rows}

    async def speakers(self, ids: Collection[UUID]) -> Mapping[UUID, str]:
        """Whose turns these ids are, of those that are there."""
        return {row["id"]: row["user_id"] for row in await self._rows(_SPEAKERS, "t.id", ids)}

    async def rivals(self, memories: Sequence[Memory]) -> Mapping[UUID, int]:
        """The weight of the heaviest active memory of the value or name of some of one user, where there is one."""
        if not memories:
            return {}
        user_id = memories[0].user_id
        hashes = {each.value_hash for each in memories}
        names = {each.external_id for each in memories if each.external_id is not None}
        weights: dict[object, int] = {}
        for row in await self._rows(_VALUES, "m.value_hash", hashes, of_user=user_id):
            weights[tuple(row[name] for name in _VALUE)] = weight_of(row["authority"], row["trust_state"])
        for row in await self._rows(_NAMED, "m.external_id", names, of_user=user_id):
            weights[row["external_id"]] = weight_of(row["authority"], row["trust_state"])
        found = {}
        for each in memories:
            places = (tuple(getattr(each, name) for name in _VALUE), each.external_id)
            known = [weights[place] for place in places if place is not None and place in weights]
            if known:
                found[each.id] = max(known)
        return found

    async def add_memories(self, new: Sequence[tuple[Memory, SearchMaterial]]) -> frozenset[UUID]:
        """Insert memories; the ids of those that were."""
        in_force = self._session.in_force

        def made() -> list[Row]:
            return [self._row(memory_values(memory) | material_values(material, in_force)) for memory, material in new]

        return await self._session.add_new("memories", await asyncio.to_thread(made))

    async def add_turns(self, new: Sequence[tuple[Turn, SearchMaterial]]) -> frozenset[UUID]:
        """Insert turns; the ids of those that were."""
        rows = [
            self._row(turn_values(turn) | material_values(material, self._session.in_force))
            | {"thread_key": thread_key(turn.user_id, turn.thread_id)}
            for turn, material in new
        ]
        return await self._session.add_new("turns", rows)

    async def add_entities(self, user_id: str, new: Sequence[NamedEntity]) -> Mapping[tuple[str, str], UUID]:
        """Make entities that are new; the ids of all of them, by kind and key."""
        rows = [
            self._row({"id": each.id, "user_id": user_id, "kind": each.kind, "name": each.name, "name_key": each.key})
            | {"created_at": each.created_at}
            for each in sorted(new, key=lambda each: (each.kind, each.key))
        ]
        wanted = {(each.kind, each.key) for each in new}
        known = await self._known(user_id, wanted)
        missing = [row for row in rows if (row["kind"], row["name_key"]) not in known]
        if missing and len(await self._session.add_new("entities", missing)) < len(missing):
            # an id is another's
            again = [row | {"id": new_id()} for row in missing]
            await self._session.add_new("entities", again)
        return known | (await self._known(user_id, wanted - set(known)) if missing else {})

    async def _known(self, user_id: str, wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], UUID]:
        kinds = sorted({kind for kind, _ in wanted})
        rows = await self._rows(_ENTITIES, "e.name_key", {key for _, key in wanted}, of_user=user_id, kinds=kinds)
        found = {(row["kind"], row["name_key"]): row["id"] for row in rows}
        return {place: each for place, each in found.items() if place in wanted}

    async def add_mentions(self, pairs: Collection[tuple[UUID, UUID]]) -> None:
        """Note which memories mention which entities."""
        rows = [self._row({"memory_id": memory, "entity_id": entity}) for memory, entity in sorted(pairs)]
        for some in _parts(rows):
            await self._session.add(MENTIONS, list(some))
        await self._session.flush()

    async def add_relations(self, new: Sequence[MemoryRelation]) -> None:
        """Add relations; one that is there takes the greater strength."""
        ordered = sorted(new, key=lambda each: (each.from_id, each.to_id, each.relation_type))
        rows = [
            self._row({name: getattr(each, name) for name in MemoryRelation.__slots__} | {"id": new_id()})
            for each in ordered
        ]
        for some in _parts(rows):
            await self._session.add(RELATIONS, list(some))
        await self._session.flush()

    async def known_entries(self, ids: Collection[UUID]) -> frozenset[UUID]:
        """Those of some ids that are entries of the history."""
        return frozenset(row["id"] for row in await self._rows(_NOTED, "h.id", ids))

    async def add_history(self, entries: Sequence[HistoryEntry]) -> frozenset[UUID]:
        """Append to the history what is not there; the ids of what was appended."""
        rows = [
            self._row({name: getattr(entry, name) for name in HistoryEntry.__slots__} | {"meta": dict(entry.meta)})
            for entry in entries
        ]
        return await self._session.add_new("history", rows)

    async def add_proposals(self, proposals: Sequence[Proposal]) -> frozenset[UUID]:
        """Insert proposals; the ids of those that were."""
        rows = [
            self._row({name: getattr(each, name) for name in Proposal.__slots__})
            | {"meta": dict(each.meta), "value_hash": value_key(each.new_value)}
            for each in proposals
        ]
        return await self._session.add_new("consent_proposals", rows)

    async def known_proposals(self, user_id: str, ids: Collection[UUID]) -> frozenset[UUID]:
        """Those of some ids that are proposals for the user."""
        return frozenset(row["id"] for row in await self._rows(_PROPOSED, "p.id", ids, of_user=user_id))

    async def consented_fields(self, user_id: str) -> frozenset[tuple[str, str, UUID]]:
        """What a user agreed to: field, key of the value, and the memory that it became."""
        p = tables.consent_proposals.c
        statement = sa.select(p.field, p.value_hash, p.memory_id).where(
            p.tenant_id == self._tenant, p.user_id == user_id, p.state == ProposalState.APPROVED,
            p.memory_id.is_not(None),
        )  # fmt: skip
        return frozenset((row.field, row.value_hash, row.memory_id) for row in await self._session.execute(statement))

    async def bury(self, user_id: str, buried: Sequence[Tombstone]) -> None:
        """Bury values, as of the moments at which they were; one that is buried already stays as it is."""
        rows = [
            self._row(
                {name: getattr(each, name) for name in Tombstone.__slots__}
                | {"id": new_id(), "scope": user_id, "subject_id": None}
                | {"verdict_id": verdict_of(user_id, each.reason, each.actor, each.ts)}
            )
            for each in sorted(buried, key=lambda each: (each.category, each.value_hash))
        ]
        await self._session.add_new("tombstones", rows)

    def _row(self, values: Mapping[str, object]) -> Row:
        return {"tenant_id": self._tenant, **values}

    async def _rows(
        self, template: str, column: str, among: Collection[object], **values: object
    ) -> list[Mapping[str, Any]]:
        """The rows of which a column has one of some values, however many these are."""
        if not among:
            return []
        syntax = self._session.syntax
        values |= {"tenant": self._tenant, "among": list(among)}
        marks = {name: syntax.value(name) for name in values}
        listed = {"listed": syntax.any_of(column, "among"), "kinds": syntax.any_of("e.kind", "kinds")}
        (rows,) = await self._session.rows_of_all([Statement(template.format(**marks | listed), values)])
        return list(rows)


def _parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many as one statement takes."""
    for start in range(0, len(values), MANY):
        yield values[start : start + MANY]
