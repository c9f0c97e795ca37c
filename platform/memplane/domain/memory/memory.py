"""What is remembered: memories, the turns they rest on, and the names of their parts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

import uuid_utils.compat

SHARED = ""
"""In the place of the user for knowledge about no user. No user has this name: ids are never empty."""


class MemoryType(StrEnum):
    """What kind of memory it is."""

    SEMANTIC = "semantic"
    EPISODIC = "episodic"
    PROCEDURAL = "procedural"
    INSIGHT = "insight"
    REFLECTION = "reflection"
    OBSERVATION = "observation"


class Visibility(StrEnum):
    """Which store a memory lies in; a principal's trust decides which stores it sees."""

    PRIVATE = "private"
    SHARED = "shared"
    SOCIAL = "social"


class TrustState(StrEnum):
    """How far a memory is believed."""

    CANDIDATE = "candidate"
    CONFIRMED = "confirmed"
    DISPUTED = "disputed"
    REJECTED = "rejected"


class State(StrEnum):
    """Where a memory is in its life."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"
    SOFT_DELETED = "soft_deleted"
    PURGED = "purged"


class Source(StrEnum):
    """Which path brought a memory; assigned by the path, never believed from a payload."""

    USER = "user"
    AGENT = "agent"
    EXTRACTION = "extraction"
    CONSOLIDATION = "consolidation"
    REFLECTION = "reflection"
    MIGRATION = "migration"
    TOOL = "tool"


class Layer(StrEnum):
    """How settled a memory is."""

    MID = "mid"
    LONG = "long"


class Role(StrEnum):
    """Who spoke a turn."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


RETRIEVABLE_TRUST = (TrustState.CANDIDATE, TrustState.CONFIRMED)
"""What a read may return unless it says otherwise and is allowed to."""


def new_id() -> UUID:
    """A new UUIDv7: unique, and ordered by the time of its making."""
    return uuid_utils.compat.uuid7()


def first_id(moment: datetime) -> UUID:
    """The least id that is made at a moment or later; RFC 9562: 48 bits of milliseconds come first."""
    milliseconds = max(int(moment.timestamp() * 1000), 0)
    return UUID(int=milliseconds << 80 | 0x7 << 76 | 0x2 << 62)


_ENDINGS = (".", "!", "?", "。", "！", "？", "…")


@dataclass(frozen=True, slots=True)
class MemoryText:
    """The words of a memory.

    Attributes:
        content: one or two sentences that stand by themselves.
        title: a few words, or none.
        narrative: what did not fit the content, or none.
        facts: single statements.
        steps: numbered instructions, for procedural memories.
        tags: free labels.
        related_files: paths or names.
        lang: ISO 639-1 code, or none when unknown.
    """

    content: str
    title: str | None = None
    narrative: str | None = None
    facts: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    related_files: tuple[str, ...] = ()
    lang: str | None = None

    def searchable(self) -> str:
        """All words by which the memory can be found, one part a line."""
        parts = (self.title, self.content, self.narrative, *self.facts, *self.steps, *self.tags, *self.related_files)
        return "\n".join(part for part in parts if part)

    def continuation(self) -> str | None:
        """The content with the narrative that goes on with its last sentence; ``None`` where that sentence ends.

        A line break ends a sentence where texts are cut to their limits, and may part a value from its statement.
        """
        if not self.narrative or self.content.rstrip("\"'”’)] *_`").endswith(_ENDINGS):
            return None
        return f"{self.content}\n{self.narrative}"

    def embeddable(self) -> str:
        """The words whose meaning stands for the memory."""
        return "\n".join(part for part in (self.title, self.content, *self.facts) if part)


@dataclass(frozen=True, slots=True)
class Memory:
    """One discrete thing known.

    Times are UTC; ``confidence`` is 0…1; ``importance`` 1…5; ``authority`` is how far its writer was trusted, 0…3;
    ``decay_rate`` is how fast its confidence wanes, for each day, 0 for never. ``asserted_at`` is the time of the
    latest statement that was merged into it, where that is later than its own.
    """

    id: UUID
    user_id: str
    category: str
    type: MemoryType
    visibility: Visibility
    text: MemoryText
    value_hash: str
    source: Source
    recorded_at: datetime
    updated_at: datetime
    agent_id: str | None = None
    run_id: str | None = None
    actor_id: str | None = None
    role: Role | None = None
    thread_id: str | None = None
    external_id: str | None = None
    importance: int = 3
    pinned: bool = False
    confidence: float = 1.0
    decay_rate: float = 0.0
    trust_state: TrustState = TrustState.CANDIDATE
    authority: int = 3
    min_trust: str = "public"
    source_ids: tuple[UUID, ...] = ()
    event_time: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    asserted_at: datetime | None = None
    superseded_at: datetime | None = None
    superseded_by: UUID | None = None
    expires_at: datetime | None = None
    state: State = State.ACTIVE
    purge_at: datetime | None = None
    mention_count: int = 1
    access_count: int = 0
    reinforcement: int = 0
    hits: int = 0
    last_accessed: datetime | None = None
    last_hit_at: datetime | None = None
    layer: Layer = Layer.MID
    version: int = 1
    pii: tuple[str, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)


FULL_AUTHORITY = 3
CONFIRMED_WEIGHT = 4


def weight(memory: Memory) -> int:
    """How much it takes to overrule a memory: its writer's authority, or more once a person confirmed it."""
    return weight_of(memory.authority, memory.trust_state)


def weight_of(authority: int, trust_state: str) -> int:
    """The same, of a memory of this authority that is believed so."""
    return CONFIRMED_WEIGHT if trust_state == TrustState.CONFIRMED else authority


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a thread, kept word for word; ``seq`` counts from 1 within the thread.

    Attributes:
        key_id: the key, or the subject of the token, that recorded it; ``None`` when that was not noted yet.
        vouched: False when the role is `user` and that key may not record what a person says: nothing is drawn from
            the turn, and it acknowledges nothing.
        time_zone: the zone or offset by which its relative dates are resolved; ``None``: UTC.
    """

    id: UUID
    user_id: str
    thread_id: str
    seq: int
    rev: int
    role: Role
    text: str
    recorded_at: datetime
    actor_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    event_time: datetime | None = None
    external_id: str | None = None
    key_id: str | None = None
    vouched: bool = True
    time_zone: str | None = None

    @property
    def is_persons_word(self) -> bool:
        """Whether it counts as said by the person: facts are drawn from it, and it can acknowledge."""
        return self.role is Role.USER and self.vouched
