"""What the job that repairs derived data hands to storage, and what it hands back."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

import numpy as np

from memplane.application.jobs.vector_records import Kind
from memplane.application.recall.search_material import SearchMaterial, Vector
from memplane.domain.language.terms import Terms
from memplane.domain.memory.memory import Memory, MemoryText, MemoryType, State
from memplane.domain.ranking.embedding_models import InForce

MOST_COUNTED = 255
"""How often a term is counted in a stored text."""
_UNIT = 0.05
"""How far the length of a stored vector, in half precision, may be from that of a unit vector."""


@dataclass(frozen=True, slots=True)
class DerivedText:
    """A memory or turn with what was derived from its words.

    Attributes:
        id: of the memory or turn.
        user_id: whose it is.
        said: its words.
        terms: how often each term is stored for it; ``None`` where nothing that could be terms is.
        length: how many terms are stored for it, with repeats.
        vector: the one that questions are compared with, as it is stored; or none.
        category: of the memory; '' for a turn.
        state: of the memory; turns have none other.
        sources: what the memory names as its sources, as it is stored.
        noted: what leads from its sources to it.
        mentions: how many entities the memory mentions.
    """

    id: UUID
    user_id: str
    said: MemoryText | str
    terms: Mapping[int, int] | None
    length: int
    vector: Vector | None
    category: str = ""
    state: State = State.ACTIVE
    sources: tuple[str, ...] = ()
    noted: frozenset[str] = field(default_factory=frozenset)
    mentions: int = 0

    def searchable(self) -> tuple[str, str | None]:
        """By what it is found, and its language where that is known."""
        return (self.said, None) if isinstance(self.said, str) else (self.said.searchable(), self.said.lang)

    def fits(self, words: Terms) -> bool:
        """Whether the terms that are stored are those of its words."""
        counted = {term: min(count, MOST_COUNTED) for term, count in words.counts.items()}
        return self.length == words.length and self.terms == counted

    def comparable(self, in_force: InForce) -> bool:
        """Whether there is a vector, and questions can be compared with it: a unit vector as long as the model's."""
        if self.vector is None or in_force.model is None:
            return self.vector is not None
        if self.vector.shape != (in_force.model.dimensions,):
            return False
        return bool(abs(float(np.linalg.norm(self.vector)) - 1.0) < _UNIT)


@dataclass(frozen=True, slots=True)
class HeldRelation:
    """A relation with whose memories it joins.

    Attributes:
        joined: the memories that it leads from and to.
        from_user: of the memory that it leads from; ``None`` where there is no such memory.
        to_user: likewise of the other end.
        reverse: the id of the relation of the same kind that leads back, or none.
        reverse_strength: the strength of that.
    """

    id: UUID
    relation_type: str
    strength: float
    joined: tuple[UUID, UUID]
    from_user: str | None
    to_user: str | None
    reverse: UUID | None
    reverse_strength: float | None

    @property
    def astray(self) -> bool:
        """Whether it leads nowhere, or from one user to another."""
        return self.from_user is None or self.from_user != self.to_user


@dataclass(frozen=True, slots=True)
class HeldMention:
    """A link of a memory with an entity, with whose each of them is; ``None`` for what is not there."""

    memory_id: UUID
    entity_id: UUID
    of_memory: str | None
    of_entity: str | None

    @property
    def astray(self) -> bool:
        """Whether it leads nowhere, or from one user to another."""
        return self.of_memory is None or self.of_memory != self.of_entity


@dataclass(frozen=True, slots=True)
class HeldEntity:
    """An entity, and whether a memory mentions it or somebody gave it another name."""

    id: UUID
    user_id: str
    needed: bool


@dataclass(frozen=True, slots=True)
class Placing:
    """Where a memory stands among others: neighbours are of the same user, category and type.

    Attributes:
        linked: whether any relation leads from it or to it.
        vector: the one that questions are compared with; none where it was not read.
    """

    id: UUID
    user_id: str
    category: str
    type: MemoryType
    linked: bool = False
    vector: Vector | None = None

    @property
    def group(self) -> tuple[str, str, MemoryType]:
        """Among which its neighbours are."""
        return self.user_id, self.category, self.type


class Repairs(Protocol):
    """Derived data of a tenant, read to be checked and put right, within a transaction."""

    async def derived_texts(self, kind: Kind, after: UUID | None, limit: int) -> list[DerivedText]:
        """Memories that are not deleted, or turns, in the order of their ids, after one."""
        ...

    async def lock(self, kind: Kind, ids: Collection[UUID]) -> list[DerivedText]:
        """Some of them as they are now, locked, in the order of their ids."""
        ...

    async def refit(self, kind: Kind, found: Sequence[tuple[UUID, SearchMaterial]]) -> None:
        """Store other search material of what is locked, and have every cache read it anew; without a version."""
        ...

    async def find_vanished(self, named: Collection[UUID]) -> frozenset[UUID]:
        """Those of some ids that were memories of the tenant once, and are not there any more."""
        ...

    async def rest_on(self, sources: Mapping[UUID, tuple[Sequence[str], int]]) -> list[Memory]:
        """Let memories that are locked name these sources alone, and be said as many times less as others went.

        Returns:
            Them as they are then, with another version.
        """
        ...

    async def note_sources(self, sources: Mapping[UUID, Sequence[str]]) -> None:
        """Let what leads from sources to memories that are locked be what the memories name."""
        ...

    async def relations(self, after: UUID | None, limit: int) -> list[HeldRelation]:
        """Relations in the order of their ids, after one."""
        ...

    async def unlink(self, astray: Collection[HeldRelation], doubles: Collection[HeldRelation]) -> int:
        """Remove relations that still lead astray, or lead back where a stronger one is by now; how many they were."""
        ...

    async def mentions(self, after: tuple[UUID, UUID] | None, limit: int) -> list[HeldMention]:
        """Links of memories with entities, in the order of both ids, after one."""
        ...

    async def unmention(self, pairs: Collection[tuple[UUID, UUID]]) -> int:
        """Remove links of memories with entities that still lead nowhere or to somebody else's; how many they were."""
        ...

    async def entities(self, after: UUID | None, limit: int) -> list[HeldEntity]:
        """Entities in the order of their ids, after one."""
        ...

    async def needless(self, ids: Collection[UUID]) -> int:
        """Remove those of some entities that nothing needs by now; how many they were."""
        ...

    async def placings(self, after: tuple[str, UUID] | None, limit: int) -> list[Placing]:
        """Memories that are read and have a vector, in the order of their users and ids, after one."""
        ...

    async def around(self, user_id: str, before: UUID | None, limit: int) -> list[Placing]:
        """Such memories of a user with their vectors, newest first, those older than one."""
        ...

    async def memories(self, ids: Collection[UUID]) -> list[Memory]:
        """Memories that are read, by their ids, in the order of these."""
        ...

    async def with_relations(self, ids: Collection[UUID]) -> frozenset[UUID]:
        """Those of some memories that a relation leads from or to."""
        ...
