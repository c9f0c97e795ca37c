"""What operational tracking and statistics take and give."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class TurnSpan:
    """A stretch of a thread by the numbers of its turns: before one, or after one, or, with neither, from its end."""

    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True)
class EventFilters:
    """Which events are asked for; each condition narrows. ``since`` is inclusive, ``until`` exclusive."""

    user_id: str | None = None
    thread_id: str | None = None
    node: str | None = None
    op: str | None = None
    status: str | None = None
    memory_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class EventPageQuery:
    """A page of events.

    Attributes:
        filters: which.
        every: whether the reader operates the whole tenant: events about no memory and no category are shown too.
        stores: whether the reader sees every store: needed for events that name no memory, as those of turns.
        before: the id of the last event of the page before.
    """

    filters: EventFilters
    every: bool
    stores: bool
    before: UUID | None
    limit: int


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One entry of the operational tracking, as stored."""

    id: UUID
    user_id: str | None
    thread_id: str | None
    node: str
    op: str
    status: str
    memory_id: UUID | None
    category: str | None
    sim: float | None
    ts: datetime


AGES: Mapping[str, int | None] = {"1d": 1, "7d": 7, "30d": 30, "90d": 90, "365d": 365, "older": None}
"""Buckets of age: the name, and how many days old a memory of it is at most."""


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """Memories of one state, layer, category and type: how many, their hits and reads, and how old they are.

    Attributes:
        newer: how many are younger than each bound of :data:`AGES` that has one, in that order.
        oldest: when the first of them was recorded.
    """

    state: str
    layer: str
    category: str
    type: str
    memories: int
    hits: int
    hit: int
    accesses: int
    newer: tuple[int, ...]
    oldest: datetime


@dataclass(frozen=True, slots=True)
class OnDemand:
    """How often recall on demand was needed.

    Attributes:
        since: the beginning of the window; it ends now.
        turns: turns of role ``user`` in it.
        recalled: those of them after which, before the next turn of role ``user`` in their thread, somebody asked.
        queries: the on-demand queries in it.
        unplaced: those of them that no turn of the user precedes in their thread, or that name no thread.
    """

    since: datetime
    turns: int
    recalled: int
    queries: int
    unplaced: int

    @property
    def share(self) -> float | None:
        """``recalled`` of ``turns``; ``None`` where there are none."""
        return self.recalled / self.turns if self.turns else None


@dataclass(frozen=True, slots=True)
class Statistics:
    """What there is, of what the reader may see.

    Attributes:
        states: memories by state; ``expired`` are those that are active but past their ``expires_at``.
        layers, categories, types: the active ones.
        hits: how often agents said of the active ones that they helped, or they were said again.
        hit: how many of them that were.
        accesses: how often they were read.
        ages: how many of them are in each bucket of :data:`AGES`.
        oldest: when the first of them was recorded.
        complete: whether all memories were counted, or only the newest of many.
        on_demand: how often recall on demand was needed; ``None`` for who may not read turns.
    """

    policy: str
    complete: bool = True
    states: Mapping[str, int] = field(default_factory=dict)
    layers: Mapping[str, int] = field(default_factory=dict)
    categories: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, int] = field(default_factory=dict)
    hits: int = 0
    hit: int = 0
    accesses: int = 0
    ages: Mapping[str, int] = field(default_factory=dict)
    oldest: datetime | None = None
    on_demand: OnDemand | None = None
