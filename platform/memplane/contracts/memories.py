"""Memories, turns, threads and histories."""

from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Field, JsonValue, StrictBool, model_validator
from pydantic.json_schema import SkipJsonSchema

from memplane.contracts.base import Category, Importance, LocalTime, Message, Name, Owner, Request, Text, Time
from memplane.contracts.dry_runs import DryRunnable, DryRunRequest
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import (
    Layer,
    MemoryType,
    Role,
    Source,
    State,
    TrustState,
    Visibility,
)
from memplane.domain.policy.policy import Trust

Texts = Annotated[list[Text], Field(max_length=200)]
Labels = Annotated[list[Name], Field(max_length=200)]
Attributes = Annotated[dict[str, JsonValue], Field(max_length=100)]
Unit = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Lang = Annotated[str, Field(pattern=r"^[a-z]{2}$")]


class MemoryContent(Request):
    """What a memory says, and what whoever stores it says of it."""

    category: Category
    content: Text
    """One or two sentences that stand by themselves, in the third person."""
    type: MemoryType = MemoryType.SEMANTIC
    visibility: Visibility | None = None
    min_trust: Trust | None = None
    """The least trust level that may read it, beside its visibility."""
    title: Text | None = None
    narrative: Text | None = None
    facts: Texts = []
    steps: Texts = []
    tags: Labels = []
    related_files: Texts = []
    lang: Lang | None = None
    """ISO 639-1 code of the language, by which words are stemmed; found out from the words when it is left out."""
    agent_id: Name | None = None
    run_id: Name | None = None
    actor_id: Name | None = None
    role: Role | None = None
    thread_id: Name | None = None
    external_id: Name | None = None
    """The caller's own name for it, unique per user: the same one again is the same record."""
    importance: Importance = 3
    pinned: StrictBool = False
    confidence: Unit = 1.0
    source_ids: Annotated[list[UUID], Field(max_length=100)] = []
    """Turns and memories that it was derived from."""
    event_time: Time | None = None
    valid_from: Time | None = None
    valid_until: Time | None = None
    expires_at: Time | None = None
    attributes: Attributes = {}


class NewMemoryRequest(MemoryContent, DryRunRequest):
    """A memory to store. Trust and source are assigned by the server."""

    user_id: Name | None
    """The person that it is about; null for knowledge about no user, which is part of every user's recall."""
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""


class MemoryChange(DryRunRequest):
    """Fields of a memory to change; a field that is not named stays."""

    content: Text | SkipJsonSchema[None] = None
    category: Category | SkipJsonSchema[None] = None
    title: Text | None = None
    narrative: Text | None = None
    facts: Texts | None = None
    steps: Texts | None = None
    tags: Labels | None = None
    related_files: Texts | None = None
    lang: Lang | None = None
    importance: Importance | SkipJsonSchema[None] = None
    pinned: StrictBool | SkipJsonSchema[None] = None
    confidence: Unit | SkipJsonSchema[None] = None
    event_time: Time | None = None
    valid_from: Time | None = None
    valid_until: Time | None = None
    expires_at: Time | None = None
    attributes: Attributes | None = None


class WritingWarning(Message):
    """A rule of style that the words break, and for which they are not refused."""

    rule: str
    words: str
    """The words that break it."""
    detail: str
    """What to do."""


class WriteOutcome(DryRunnable):
    """What a write did."""

    outcome: Literal[
        "created",
        "updated",
        "merged",
        "duplicate",
        "superseded",
        "disputed",
        "outdated",
        "deleted",
        "retracted",
        "rejected",
        "restored",
        "unchanged",
        "queued_for_consent",
    ]
    """`superseded`: it took the place of others; `disputed`: it waits for review; `outdated`: newer is known;
    `queued_for_consent`: nothing changes until a person agrees."""
    id: UUID
    """Of the memory, or of the proposal that waits for consent."""
    version: int | None
    """Of the memory; null for a proposal."""
    rev: int | None = None
    """The thread's revision, for a memory with a thread."""
    external_id: str | None = None
    overruled: list[UUID] = []
    """Memories that it took the place of, that it disputes, or that are newer than it."""
    possible_conflicts: list[UUID] = []
    """Memories that it may contradict, though the words do not prove it: both stay, see `/v1/conflicts`."""
    warnings: list[WritingWarning] = []
    """What to write otherwise the next time; the memory is stored."""


class VerbRequest(DryRunRequest):
    """What is said of a memory needs no more words."""

    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""


class PinRequest(VerbRequest):
    """Whether to keep a memory whatever its age."""

    pinned: StrictBool = True


class RejectRequest(VerbRequest):
    """Why a person rejects a memory."""

    reason: Annotated[str, Field(max_length=63)] | None = None


class CorrectionRequest(VerbRequest):
    """What is right instead."""

    content: Text
    title: Text | None = None
    narrative: Text | None = None
    facts: Texts = []
    tags: Labels = []
    lang: Lang | None = None
    valid_from: Time | None = None
    """Since when it is so; without it, for as long as anything is known."""
    source_ids: Annotated[list[UUID], Field(max_length=100)] = []
    """Turns that say it."""


class MemoryRecord(Message):
    """A memory as stored."""

    id: UUID
    user_id: Owner
    """Null: it is about no user."""
    category: str
    type: MemoryType
    visibility: Visibility
    content: str
    title: str | None
    narrative: str | None
    facts: list[str]
    steps: list[str]
    tags: list[str]
    related_files: list[str]
    lang: str | None
    agent_id: str | None
    run_id: str | None
    actor_id: str | None
    role: Role | None
    thread_id: str | None
    external_id: str | None
    importance: int
    pinned: bool
    confidence: float
    trust_state: TrustState
    min_trust: Trust
    source: Source
    source_ids: list[UUID]
    event_time: datetime | None
    valid_from: datetime | None
    valid_until: datetime | None
    recorded_at: datetime
    updated_at: datetime
    superseded_at: datetime | None
    superseded_by: UUID | None
    expires_at: datetime | None
    last_accessed: datetime | None
    state: State
    layer: Layer
    mention_count: int
    access_count: int
    reinforcement: int
    version: int
    pii: list[str]
    """Kinds of personal data in its text."""
    attributes: dict[str, JsonValue]
    possible_conflicts: list[UUID] = []
    """Memories that it may contradict, at most three; they wait for a verdict in `/v1/conflicts`."""


class ListedMemory(MemoryRecord):
    """A memory in a list."""

    score: float | None = None
    """How well it matches the words `q`, 0 to 1; null without them."""


class MemoryList(Message):
    """A page of memories, newest first."""

    items: list[ListedMemory]
    next: str | None
    """Cursor of the next page."""


class NewTurnRequest(DryRunRequest):
    """A message of a conversation."""

    user_id: Name
    thread_id: Name
    role: Role
    text: Text
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""
    actor_id: Name | None = None
    """Who spoke, when the role does not say it."""
    agent_id: Name | None = None
    run_id: Name | None = None
    event_time: LocalTime | None = None
    """Its offset says what "tomorrow" means, unless the user's time zone is known."""
    external_id: Name | None = None
    """The caller's own name for it, unique per thread: the same one again is the same record."""
    auto_extract: StrictBool = True
    """Whether facts may be drawn from it."""


class TurnBatchRequest(DryRunRequest):
    """Up to 1 000 turns, stored all or none."""

    turns: Annotated[list[NewTurnRequest], Field(min_length=1, max_length=1_000)]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if any(turn.dry_run for turn in self.turns):
            raise ValueError("dry_run is for the whole batch: name it beside `turns`")
        return self


class Extracted(Message):
    """What was drawn from a turn."""

    id: UUID | None
    """Of the memory, or of the proposal that waits for consent; null when it was refused or failed."""
    content: str
    category: str
    action: str


class LeftOutOfTurn(Message):
    """How much of a turn the limits of extraction leave out, in whatever category."""

    facts: int = 0
    """Facts beyond the most that are stored of one turn."""
    statements: int = 0
    """Statements that were not read: those after the first 60, and sentences of more than 600 characters."""
    characters: int = 0
    """Characters that were not read: those after the first 4 000."""


class TurnOutcome(DryRunnable):
    """Where a turn stands."""

    outcome: Literal["created", "duplicate"]
    turn_id: UUID
    seq: int
    rev: int
    extracted: list[Extracted] = []
    """What was drawn from it in categories that the agent may read."""
    extracted_elsewhere: int = 0
    """How many facts it states in other categories, whatever became of them."""
    left_out: LeftOutOfTurn = LeftOutOfTurn()
    external_id: str | None = None
    vouched: bool = True
    """False for a turn of role `user` that a key without `turns:user` recorded: nothing is drawn from it, and it
    acknowledges no proposal."""


class TurnBatchOutcome(DryRunnable):
    """Where each turn stands, in the order sent."""

    items: list[TurnOutcome]


class TurnDeletion(DryRunnable):
    """A turn that was deleted for good."""

    outcome: Literal["deleted"] = "deleted"
    turn_id: UUID
    rev: int
    """The thread's revision after it."""


class TurnRecord(Message):
    """A turn as stored."""

    id: UUID
    user_id: str
    thread_id: str
    seq: int
    rev: int
    role: Role
    text: str
    actor_id: str | None
    agent_id: str | None
    run_id: str | None
    event_time: datetime | None
    recorded_at: datetime
    external_id: str | None
    vouched: bool = True
    """False for a turn of role `user` that a key without `turns:user` recorded."""
    time_zone: str | None = None
    """The time zone or offset by which its relative dates are resolved; null: UTC."""


class TurnList(Message):
    """A page of a thread's turns: newest first, or oldest first with `after_seq`."""

    items: list[TurnRecord]
    next: str | None
    """The `before_seq`, or `after_seq`, of the next page."""


class ChangeRecord(Message):
    """One change of a thread's memory."""

    rev: int
    event: ChangeEvent
    memory_id: UUID
    category: str
    summary: str
    importance: int
    ts: datetime


class ThreadDelta(Message):
    """What changed in a thread's memory since a revision."""

    rev: int
    header: str | None
    """At most three lines of changes; absent when nothing changed."""
    changes: list[ChangeRecord]
    """Oldest first; at most the last 500."""
    pruned: bool = False
    """Whether changes after `since` are no longer kept: load the context again."""


class MemoryBatchRequest(Request):
    """Which memories are asked for."""

    ids: Annotated[list[UUID], Field(min_length=1, max_length=200)]
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""


class MemoryBatch(Message):
    """Memories in the order asked; those that are absent or not the caller's are left out."""

    items: list[MemoryRecord]


class HistoryRecord(Message):
    """One entry of a memory's history."""

    id: UUID
    memory_id: UUID
    event: HistoryEvent
    old_ref: str | None
    """The text before."""
    new_ref: str | None
    """The text after."""
    actor: str
    meta: dict[str, JsonValue]
    policy_hash: str
    ts: datetime


class HistoryList(Message):
    """A page of a memory's history, newest first."""

    items: list[HistoryRecord]
    next: str | None
    """Cursor of the next page."""


class Health(Message):
    """Whether the server works."""

    status: Literal["ok", "unavailable"]
    version: str
    policy: str | None = None
