"""Statistics and operational events on the wire."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from memplane.contracts.base import Message, Name, Owner, Request, Time

Node = Literal["hotpath", "context", "episodic", "worker"]
Status = Literal["ok", "error", "skipped"]
Op = Annotated[str, Field(min_length=1, max_length=16, pattern=r"^[a-z_]{1,16}$")]


class EventRecord(Message):
    """Something that was done, without its words."""

    id: UUID
    ts: datetime
    node: Node
    """Where: `hotpath` for requests that write, `context` for reads, `episodic` for work on whole conversations,
    `worker` for other background work."""
    op: str
    """What: `turn`, `classify`, `create`, `update`, `merge`, `delete`, `link`, `ttl`, `search`, `recall_on_demand` …"""
    status: Status
    user_id: Owner
    thread_id: str | None
    memory_id: UUID | None
    category: str | None
    sim: float | None
    """The best similarity, where one was compared."""


class EventList(Message):
    """A page of events, newest first."""

    items: list[EventRecord]
    next: str | None
    """Cursor of the next page."""


class EventQuery(Request):
    """Which events are asked for."""

    user_id: Name | None = None
    thread_id: Name | None = None
    node: Node | None = None
    op: Op | None = None
    status: Status | None = None
    memory_id: UUID | None = None
    since: Time | None = None
    """Inclusive."""
    until: Time | None = None
    """Exclusive."""
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""
    cursor: UUID | None = None
    """`next` of the page before."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class StatisticsQuery(Request):
    """Of what statistics are asked for."""

    user_id: Name | None = None
    days: Annotated[int, Field(ge=1, le=365)] = 30
    """The window of on-demand recall; never longer than events are kept."""
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""


class HitStatistics(Message):
    """How often active memories were read, helped, and were said again."""

    hits: int
    """How often agents reinforced them, or they were said again."""
    memories: int
    """How many of them were."""
    accesses: int
    """How often they were read."""


class AgeStatistics(Message):
    """How old active memories are."""

    oldest: datetime | None
    """When the first of them was recorded."""
    buckets: dict[str, int]
    """By age: no older than `1d`, `7d`, `30d`, `90d` and `365d`, each beyond the one before, and `older`."""


class OnDemandStatistics(Message):
    """How often an agent had to ask for what it was not given before."""

    since: datetime
    """The beginning of the window, which ends now."""
    turns: int
    """Turns of role `user` in the window."""
    recalled: int
    """Those of them after which, before the next turn of role `user` in their thread, a query had `on_demand`."""
    share: float | None
    """`recalled` of `turns`; null where there are no turns."""
    queries: int
    """Queries with `on_demand` in the window."""
    unplaced: int
    """Those of them that name no thread, or one in which the user had said nothing before."""


class StatisticsRecord(Message):
    """What there is, of what the caller may see."""

    states: dict[str, int]
    """All memories by state; `expired` are those that are past their `expires_at`."""
    layers: dict[str, int]
    """Active memories, as in everything below."""
    categories: dict[str, int]
    types: dict[str, int]
    hits: HitStatistics
    age: AgeStatistics
    on_demand: OnDemandStatistics | None
    """Null for who may not read turns."""
    complete: bool
    """Whether all memories were counted; otherwise the newest 100 000."""
    policy: str
