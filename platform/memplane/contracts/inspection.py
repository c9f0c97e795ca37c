"""What can be told about one memory."""

from memplane.contracts.base import Message
from memplane.contracts.memories import HistoryRecord, MemoryRecord, TurnRecord


class WhyRecord(Message):
    """Why a memory is as it is."""

    memory: MemoryRecord
    """As it is now, in whatever state."""
    age_days: float
    turns: list[TurnRecord]
    """Turns that it was drawn from, those that the caller may read."""
    memories: list[MemoryRecord]
    """Memories that it was derived from, those that the caller may read."""
    decisions: list[HistoryRecord]
    """What was done to it, newest first."""


class Timeline(Message):
    """What was recorded around a memory, oldest first."""

    items: list[MemoryRecord | TurnRecord]


class RelatedRecord(Message):
    """A memory that a relation links to another."""

    strength: float
    """0 to 1."""
    memory: MemoryRecord


class RelatedList(Message):
    """Related memories, strongest first."""

    items: list[RelatedRecord]
