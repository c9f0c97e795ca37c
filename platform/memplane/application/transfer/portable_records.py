"""What of a user leaves in an export and comes back in an import, record by record."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import ContextField, Proposal
from memplane.domain.memory.history import HistoryEntry
from memplane.domain.memory.memory import Memory, Turn
from memplane.domain.memory.scope import Scope


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """Whom or what memories mention, by the names that are known."""

    id: UUID
    kind: str
    name: str
    key: str
    created_at: datetime
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mentioning:
    """A memory, and the entities that it mentions, as (kind, name)."""

    memory: Memory
    entities: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryRelation:
    """A relation from one memory to another."""

    from_id: UUID
    to_id: UUID
    relation_type: str
    strength: float
    co_recalls: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A value that a person rejected or erased, by its hash alone."""

    category: str
    value_hash: str
    reason: str
    actor: str
    ts: datetime


Record = Turn | NamedEntity | Mentioning | MemoryRelation | HistoryEntry | Proposal | ContextField | Tombstone
"""One record of an export."""


class PortableReader(Protocol):
    """All records of one user that a scope covers, in whatever state, page by page in the order of their keys."""

    async def turns(self, scope: Scope, after: Turn | None, limit: int) -> list[Turn]:
        """Turns, thread by thread."""
        ...

    async def memories(self, scope: Scope, after: UUID | None, limit: int) -> list[Mentioning]:
        """Memories, oldest first, with the entities that they mention."""
        ...

    async def memory_ids(self, scope: Scope, after: UUID | None, limit: int) -> list[UUID]:
        """Ids of memories, oldest first."""
        ...

    async def histories(
        self, scope: Scope, ids: Sequence[UUID], after: HistoryEntry | None, limit: int
    ) -> list[HistoryEntry]:
        """What was done to memories or proposals that were found in scope, record by record, oldest first."""
        ...

    async def relations(self, scope: Scope, ids: Sequence[UUID]) -> list[MemoryRelation]:
        """Relations that lead out of memories that were found in scope, to others in scope."""
        ...

    async def entities(self, scope: Scope, after: NamedEntity | None, limit: int) -> list[NamedEntity]:
        """Entities that memories in scope mention, by kind and name."""
        ...

    async def fields(self, scope: Scope, after: ContextField | None, limit: int) -> list[ContextField]:
        """Decided fields of the profile whose memories are in scope, by name."""
        ...

    async def tombstones(
        self, scope: Scope, categories: Sequence[str], after: Tombstone | None, limit: int
    ) -> list[Tombstone]:
        """Buried values of the scope's user, of some categories."""
        ...


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose a memory is, and under which category."""

    user_id: str
    category: str


class PortableStore(Protocol):
    """Many records at once, within a write; what another record stands in the place of is left as it is."""

    async def holders(self, ids: Collection[UUID]) -> Mapping[UUID, Holder]:
        """Whose memories these ids are, of those that are there."""
        ...

    async def speakers(self, ids: Collection[UUID]) -> Mapping[UUID, str]:
        """Whose turns these ids are, of those that are there."""
        ...

    async def rivals(self, memories: Sequence[Memory]) -> Mapping[UUID, int]:
        """The weight of the heaviest active memory of the value or name of some of one user, where there is one."""
        ...

    async def add_memories(self, new: Sequence[tuple[Memory, SearchMaterial]]) -> frozenset[UUID]:
        """Insert memories; the ids of those that were."""
        ...

    async def add_turns(self, new: Sequence[tuple[Turn, SearchMaterial]]) -> frozenset[UUID]:
        """Insert turns; the ids of those that were."""
        ...

    async def add_entities(self, user_id: str, new: Sequence[NamedEntity]) -> Mapping[tuple[str, str], UUID]:
        """Make entities that are new; the ids of all of them, by kind and key."""
        ...

    async def add_mentions(self, pairs: Collection[tuple[UUID, UUID]]) -> None:
        """Note which memories mention which entities."""
        ...

    async def add_relations(self, new: Sequence[MemoryRelation]) -> None:
        """Add relations; one that is there takes the greater strength."""
        ...

    async def known_entries(self, ids: Collection[UUID]) -> frozenset[UUID]:
        """Those of some ids that are entries of the history."""
        ...

    async def add_history(self, entries: Sequence[HistoryEntry]) -> frozenset[UUID]:
        """Append to the history what is not there; the ids of what was appended."""
        ...

    async def add_proposals(self, proposals: Sequence[Proposal]) -> frozenset[UUID]:
        """Insert proposals; the ids of those that were."""
        ...

    async def known_proposals(self, user_id: str, ids: Collection[UUID]) -> frozenset[UUID]:
        """Those of some ids that are proposals for the user."""
        ...

    async def consented_fields(self, user_id: str) -> frozenset[tuple[str, str, UUID]]:
        """What a user agreed to: field, key of the value, and the memory that it became."""
        ...

    async def bury(self, user_id: str, buried: Sequence[Tombstone]) -> None:
        """Bury values, as of the moments at which they were; one that is buried already stays as it is."""
        ...
