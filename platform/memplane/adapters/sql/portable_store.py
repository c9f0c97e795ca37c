"""What an import writes of one user, many records at once, on both databases."""

from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql import tables
from memplane.adapters.sql.rows import material_values, memory_values, turn_values
from memplane.adapters.sql.session import MANY, MENTIONS, RELATIONS, Row, Session
from memplane.adapters.sql.stores import thread_key
from memplane.application.portable import Holder, NamedEntity, Relation, Tombstone
from memplane.application.records import Proposal
from memplane.application.vectors import SearchMaterial
from memplane.domain.consent import ProposalState
from memplane.domain.history import HistoryEntry
from memplane.domain.memory import Memory, State, Turn, new_id
from memplane.domain.tombstones import value_key

T = TypeVar("T")
_VALUE = ("category", "type", "visibility", "min_trust", "value_hash")


class SqlPortableStore:
    """Many records at once within a transaction; see ``PortableStore``."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tenant = session.tenant

    async def holders(self, ids: Collection[UUID]) -> Mapping[UUID, Holder]:
        """Whose memories these ids are, of those that are there."""
        m = tables.memories.c
        statement = sa.select(m.id, m.user_id, m.category).where(m.tenant_id == self._tenant)
        return {row.id: Holder(row.user_id, row.category) async for row in self._each(statement, m.id, ids)}

    async def speakers(self, ids: Collection[UUID]) -> Mapping[UUID, str]:
        """Whose turns these ids are, of those that are there."""
        t = tables.turns.c
        statement = sa.select(t.id, t.user_id).where(t.tenant_id == self._tenant)
        return {row.id: row.user_id async for row in self._each(statement, t.id, ids)}

    async def taken(self, memories: Sequence[Memory]) -> frozenset[UUID]:
        """Those of some active memories of one user whose value or name another active one has."""
        if not memories:
            return frozenset()
        m = tables.memories.c
        # written out, as the partial indexes have it
        state: sa.ColumnElement[str] = sa.literal_column(f"'{State.ACTIVE}'")
        active = (m.tenant_id == self._tenant, m.user_id == memories[0].user_id, m.state == state)
        values = sa.select(*(m[name] for name in _VALUE)).where(*active)
        hashes = {each.value_hash for each in memories}
        found = {tuple(row) async for row in self._each(values, m.value_hash, hashes)}
        names = {each.external_id for each in memories if each.external_id is not None}
        named = sa.select(m.external_id).where(*active)
        known = {row.external_id async for row in self._each(named, m.external_id, names)}
        return frozenset(
            each.id
            for each in memories
            if tuple(getattr(each, name) for name in _VALUE) in found or each.external_id in known
        )

    async def add_memories(self, new: Sequence[tuple[Memory, SearchMaterial]]) -> frozenset[UUID]:
        """Insert memories; the ids of those that were."""
        in_force = self._session.in_force
        rows = [self._row(memory_values(memory) | material_values(material, in_force)) for memory, material in new]
        return await self._session.add_new("memories", rows)

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
        e = tables.entities.c
        statement = sa.select(e.id, e.kind, e.name_key).where(e.tenant_id == self._tenant, e.user_id == user_id)
        statement = statement.where(e.kind.in_({kind for kind, _ in wanted}))
        found = {
            (row.kind, row.name_key): row.id async for row in self._each(statement, e.name_key, {k for _, k in wanted})
        }
        return {place: each for place, each in found.items() if place in wanted}

    async def add_mentions(self, pairs: Collection[tuple[UUID, UUID]]) -> None:
        """Note which memories mention which entities."""
        rows = [self._row({"memory_id": memory, "entity_id": entity}) for memory, entity in sorted(pairs)]
        for some in _parts(rows):
            await self._session.add(MENTIONS, list(some))
        await self._session.flush()

    async def add_relations(self, new: Sequence[Relation]) -> None:
        """Add relations; one that is there takes the greater strength."""
        ordered = sorted(new, key=lambda each: (each.from_id, each.to_id, each.relation_type))
        rows = [
            self._row({name: getattr(each, name) for name in Relation.__slots__} | {"id": new_id()}) for each in ordered
        ]
        for some in _parts(rows):
            await self._session.add(RELATIONS, list(some))
        await self._session.flush()

    async def noted(self, ids: Collection[UUID]) -> frozenset[UUID]:
        """Those of some ids that are entries of the history."""
        h = tables.history.c
        statement = sa.select(h.id).where(h.tenant_id == self._tenant)
        return frozenset([row.id async for row in self._each(statement, h.id, ids)])

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

    async def proposed(self, user_id: str, ids: Collection[UUID]) -> frozenset[UUID]:
        """Those of some ids that are proposals for the user."""
        p = tables.consent_proposals.c
        statement = sa.select(p.id).where(p.tenant_id == self._tenant, p.user_id == user_id)
        return frozenset([row.id async for row in self._each(statement, p.id, ids)])

    async def consented(self, user_id: str) -> frozenset[tuple[str, str, UUID]]:
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
            self._row({name: getattr(each, name) for name in Tombstone.__slots__} | {"id": new_id(), "scope": user_id})
            for each in sorted(buried, key=lambda each: (each.category, each.value_hash))
        ]
        await self._session.add_new("tombstones", rows)

    def _row(self, values: Mapping[str, object]) -> Row:
        return {"tenant_id": self._tenant, **values}

    async def _each(
        self, statement: sa.Select[Any], column: sa.Column[Any], values: Collection[object]
    ) -> AsyncGenerator[sa.Row[Any], None]:
        for some in _parts(sorted(values, key=str)):
            for row in await self._session.execute(statement.where(column.in_(some))):
                yield row


def _parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many as one statement takes."""
    for start in range(0, len(values), MANY):
        yield values[start : start + MANY]
