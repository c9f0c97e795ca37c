"""What a write does to memories and proposals, collected while it is under way."""

from dataclasses import dataclass, field
from uuid import UUID

from memplane.application.records import Proposal
from memplane.domain.memory.history import HistoryEntry
from memplane.domain.memory.memory import Memory


@dataclass(frozen=True, slots=True)
class WriteChange:
    """A change of a memory: its entry in the history, the memory after it, and whether the change makes it."""

    entry: HistoryEntry
    memory: Memory
    is_new: bool


@dataclass(slots=True)
class Effects:
    """What a write does, for a dry run to show.

    Attributes:
        changes: of memories, in their order.
        proposals: for fields that wait for consent.
        new_ids: of what the write makes.
    """

    changes: list[WriteChange] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    new_ids: list[UUID] = field(default_factory=list)
