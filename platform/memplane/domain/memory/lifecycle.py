"""The states of a memory, the steps between them, and what becomes of it with time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from memplane.domain.errors import StateConflict
from memplane.domain.memory.memory import Memory, MemoryType, State, TrustState

DAY = timedelta(days=1)
FADING = 0.05
"""Exponent of each day in the score of a layer."""
IMPORTANT = 4
"""The importance from which on a memory is important: time alone never makes the system forget it."""
_REINFORCED, _FORGOTTEN = 0.2, 0.01
_OF_EVENTS: Mapping[str, int] = MappingProxyType({"activity": 4, "recent_activity": 4, "event": 4})


class Cause(StrEnum):
    """Why a memory goes from one state to another."""

    OVERRULED = "overruled"
    DELETED = "deleted"
    IDLE = "idle"
    EXPIRED = "expired"
    DECAYED = "decayed"
    CROWDED = "crowded"
    PRUNED = "pruned"
    RESTORED = "restored"
    PURGED = "purged"


_HERE = (State.ACTIVE,)
_LASTING = (State.ACTIVE, State.SUPERSEDED, State.ARCHIVED)
_GONE = (State.SUPERSEDED, State.ARCHIVED, State.SOFT_DELETED)
STEPS: Mapping[Cause, tuple[tuple[State, ...], State]] = {
    Cause.OVERRULED: (_HERE, State.SUPERSEDED),
    Cause.DELETED: (_LASTING, State.SOFT_DELETED),
    Cause.IDLE: (_HERE, State.SOFT_DELETED),
    Cause.EXPIRED: (_HERE, State.SOFT_DELETED),
    Cause.DECAYED: (_HERE, State.SOFT_DELETED),
    Cause.CROWDED: (_HERE, State.ARCHIVED),
    Cause.PRUNED: (_HERE, State.ARCHIVED),
    Cause.RESTORED: (_GONE, State.ACTIVE),
    Cause.PURGED: ((State.SOFT_DELETED,), State.PURGED),
}
"""The whole state machine: from which states each cause leads, and to which."""


def check_transition(before: State, after: State) -> None:
    """Refuse a step that the state machine does not have.

    Raises:
        Conflict: there is no such step.
    """
    if not any(before in sources and after is target for sources, target in STEPS.values()):
        raise StateConflict(f"a memory that is {before} cannot become {after}", state=before.value)


def after(cause: Cause, before: State) -> State:
    """The state that a cause leads to.

    Raises:
        Conflict: it does not lead from here.
    """
    sources, target = STEPS[cause]
    if before not in sources:
        raise StateConflict(f"a memory that is {before} cannot be {cause}", state=before.value)
    return target


@dataclass(frozen=True, slots=True)
class LifecycleRules:
    """What ``lifecycle.yaml`` says.

    Attributes:
        away: so many days of a user's absence count towards the ages of memories.
        idle: how long a memory lasts that nobody asks for.
        importance_below: only those of less importance go for that.
        importance_below_in: the same for some categories.
        decay_rate: how fast the confidence of a new semantic memory decays.
        floor: the confidence below which a memory goes.
        promote_hits: as many hits settle a memory,
        promote_within: when the last of them is no older.
        capacity: as many memories of a user may be unsettled.
        archive_score: over the capacity, those that score less are archived,
        archive_after: and those that had no hit for so long.
        max_size: as many active memories a user may have.
        prune_percent: beyond, so much of them is archived at a time.
        purge_after: how long what is deleted can be restored.
        keep_events: how long operational events are kept.
        keep_changes: how long threads know what changed in them; who asks for older changes loads the context again.
        merge_revertible: how long a merge of two users can be undone.
    """

    idle: timedelta = 60 * DAY
    importance_below: int = 2
    importance_below_in: Mapping[str, int] = field(default_factory=lambda: _OF_EVENTS)
    away: timedelta = 14 * DAY
    decay_rate: float = 0.0002
    floor: float = 0.05
    promote_hits: int = 3
    promote_within: timedelta = 7 * DAY
    capacity: int = 500
    archive_score: float = 0.5
    archive_after: timedelta = 30 * DAY
    max_size: int = 100_000
    prune_percent: int = 10
    purge_after: timedelta = 30 * DAY
    keep_events: timedelta = 90 * DAY
    keep_changes: timedelta = 90 * DAY
    merge_revertible: timedelta = 30 * DAY


@dataclass(frozen=True, slots=True)
class WeighedMemory:
    """What of a memory decides whether there is room for it.

    Attributes:
        used: when it was hit last, or recorded; later by the days that do not count.
        kept: whether it stays whatever its score: pinned, confirmed, important, or with a field of the profile.
    """

    id: UUID
    hits: int
    reinforcement: int
    importance: int
    used: datetime
    kept: bool

    def days_unused(self, now: datetime) -> float:
        """Days since it was used; never negative, though a clock was put back."""
        return max((now - self.used) / DAY, 0.0)

    def score(self, now: datetime) -> float:
        """ln(1 + hits) + exp(-0.05 · days) + 2 · important: how much it counts in its layer."""
        return math.log1p(self.hits) + math.exp(-FADING * self.days_unused(now)) + 2.0 * (self.importance >= IMPORTANT)

    def rank(self, now: datetime) -> float:
        """exp(0.2 · reinforcement) / (1 + 0.01 · days): how much it counts among all of its user."""
        return math.exp(_REINFORCED * min(self.reinforcement, 1000)) / (1 + _FORGOTTEN * self.days_unused(now))


def decayed_confidence(confidence: float, rate: float, accessed: datetime, now: datetime) -> float:
    """Confidence · exp(-rate · days since access); never more than before, though a clock was put back."""
    return confidence * math.exp(-rate * max((now - accessed) / DAY, 0.0))


def wanes(memory: Memory) -> bool:
    """Whether the confidence of a memory decays at all; fields of the profile, which a person confirmed, never do."""
    kept = memory.pinned or memory.importance >= IMPORTANT or memory.trust_state is TrustState.CONFIRMED
    return memory.state is State.ACTIVE and memory.type is MemoryType.SEMANTIC and not kept


def crowded_out(unsettled: Sequence[WeighedMemory], rules: LifecycleRules, now: datetime) -> list[UUID]:
    """Which of a user's unsettled memories are archived: over the capacity, the lowest of what may go."""
    excess = len(unsettled) - rules.capacity
    if excess <= 0:
        return []
    going = [
        each
        for each in unsettled
        if not each.kept
        and (each.score(now) < rules.archive_score or each.days_unused(now) > rules.archive_after / DAY)
    ]
    return [each.id for each in sorted(going, key=lambda each: (each.score(now), each.id))[:excess]]


def memories_to_archive(everything: Sequence[WeighedMemory], rules: LifecycleRules, now: datetime) -> list[UUID]:
    """Which of a user's active memories are archived: over the size, so many percent of them, until it is kept."""
    left = len(everything)
    while left > rules.max_size:
        left -= math.ceil(left * rules.prune_percent / 100)
    going = sorted((each for each in everything if not each.kept), key=lambda each: (each.rank(now), each.id))
    return [each.id for each in going[: len(everything) - left]]
