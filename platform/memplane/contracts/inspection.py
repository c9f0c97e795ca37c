"""What can be told about one memory."""

from datetime import datetime

from memplane.contracts.base import Message
from memplane.contracts.memories import HistoryRecord, MemoryRecord, TurnRecord
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import Layer


class DecayRecord(Message):
    """How a memory's confidence wanes."""

    rate: float
    """For each day; 0 for never: what is pinned, confirmed, of importance 4 or more, not semantic or not active."""
    days: float
    """Since it was last used. The night's work counts fewer where its user was away."""
    left: float
    """The confidence that so many days leave of what it has now."""
    floor: float
    """What has less is deleted."""


class RuleRecord(Message):
    """The rule that last decided on a memory."""

    event: HistoryEvent
    ts: datetime
    rule: str
    """A rule of comparison, a frame of extraction (`frame:…`), or what a person decided."""
    verdict: str | None
    """What a comparison came to."""
    words: dict[str, list[str]]
    """The words that it went by: `common`, `old` and `new` of two texts, or those `matched` in a turn."""


class ScoreRecord(Message):
    """What a question makes of a memory."""

    score: float
    parts: dict[str, float]
    matched: list[str]
    """Word stems of the question that the memory holds."""


class WhyRecord(Message):
    """Why a memory is as it is."""

    memory: MemoryRecord
    """As it is now, in whatever state."""
    age_days: float
    layer: Layer
    hits: int
    """How often an agent said that it helped, or somebody said it again."""
    last_hit_at: datetime | None
    decay: DecayRecord
    rule: RuleRecord | None
    """Null where no entry of its last ones names a rule, or where it may not be shown."""
    score: ScoreRecord | None
    """With `query`: its score among all of its user that the agent reads; null where no question finds it."""
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
