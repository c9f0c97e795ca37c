"""The lines of an export, each a JSON document of its own, which an import takes."""

from collections.abc import Mapping
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, JsonValue

from memplane.contracts.base import Category, Message, Name, Request, Text, Time
from memplane.contracts.memories import Labels, MemoryContent, Unit
from memplane.domain.consent.consent_rules import ProposalState
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import Layer, Role, Source, State, TrustState

FORMAT = "memplane-export"
VERSION = 1
MEDIA_TYPE = "application/x-ndjson"
HEADER, END = "header", "end"

Short = Annotated[str, Field(min_length=1, max_length=80)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Signed = Annotated[int, Field(gt=-(2**31), lt=2**31)]
Document = Annotated[dict[str, JsonValue], Field(max_length=100)]
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class HeaderLine(Request):
    """The first line: what the file is. It names no tenant, and its user is told and not believed."""

    record: Literal["header"]
    format: Literal["memplane-export"]
    version: int
    user: Name | None
    """Null where it is about no user."""
    exported_at: Time
    policy: Short
    """Hash of the policy in force."""
    categories: Annotated[list[Category], Field(max_length=1000)]
    """What it covers: all, or what the agent may read in whose name it was made."""


class TurnLine(Request):
    """A message of a thread, in the order of the thread."""

    record: Literal["turn"]
    thread_id: Name
    role: Role
    text: Text
    id: UUID | None = None
    seq: Count | None = None
    recorded_at: Time | None = None
    actor_id: Name | None = None
    agent_id: Name | None = None
    run_id: Name | None = None
    external_id: Name | None = None
    event_time: Time | None = None
    time_zone: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """By which its relative dates were resolved."""
    vouched: bool = True
    """False: nobody vouched that the user said it. True counts only where the importing key has `turns:user`."""


class EntityLine(Request):
    """Whom or what memories mention."""

    record: Literal["entity"]
    kind: Annotated[str, Field(min_length=1, max_length=32)]
    name: Name
    id: UUID | None = None
    created_at: Time | None = None
    aliases: Labels = []


class MemoryLine(MemoryContent):
    """A memory in whatever state. What is not said has the value of a new one."""

    record: Literal["memory"]
    id: UUID | None = None
    entities: Annotated[list[tuple[Short, Name]], Field(max_length=1000)] = []
    """Kind and name of each entity that it mentions."""
    source: Source | None = None
    trust_state: TrustState = TrustState.CANDIDATE
    authority: Annotated[int, Field(ge=0, le=3)] | None = None
    state: State = State.ACTIVE
    recorded_at: Time | None = None
    updated_at: Time | None = None
    asserted_at: Time | None = None
    """When it was said last, where that is later than its own time."""
    superseded_at: Time | None = None
    superseded_by: UUID | None = None
    purge_at: Time | None = None
    decay_rate: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    mention_count: Count = 1
    access_count: Count = 0
    reinforcement: Signed = 0
    hits: Count = 0
    last_accessed: Time | None = None
    last_hit_at: Time | None = None
    layer: Layer = Layer.MID
    version: Annotated[int, Field(ge=1, lt=2**31)] = 1
    pii: Annotated[list[Short], Field(max_length=100)] = []
    """Kinds of personal data in it; an import looks for them anew."""


class RelationLine(Request):
    """A relation from one memory to another."""

    record: Literal["relation"]
    from_id: UUID
    to_id: UUID
    relation_type: Annotated[str, Field(min_length=1, max_length=63)] = "related_to"
    strength: Unit = 1.0
    co_recalls: Count = 0
    created_at: Time | None = None
    updated_at: Time | None = None


class HistoryLine(Request):
    """What was done to a memory or a proposal."""

    record: Literal["history"]
    id: UUID
    memory_id: UUID
    event: HistoryEvent
    actor: Name
    policy_hash: Short
    ts: Time
    old_ref: Annotated[str, Field(max_length=100_000)] | None = None
    new_ref: Annotated[str, Field(max_length=100_000)] | None = None
    meta: Document = {}


class ProposalLine(Request):
    """A change of a profile field that waits for consent, or on which was decided."""

    record: Literal["proposal"]
    id: UUID
    field: Annotated[str, Field(min_length=1, max_length=63)]
    category: Category
    new_value: Text
    confidence: Unit
    state: ProposalState
    actor: Name
    policy_hash: Short
    created_at: Time
    expires_at: Time
    old_value: Text | None = None
    evidence: UUID | None = None
    meta: Document = {}
    decided_at: Time | None = None
    decided_by: Name | None = None
    acknowledged_by: UUID | None = None
    memory_id: UUID | None = None
    reason: Annotated[str, Field(max_length=63)] | None = None
    asked_at: Time | None = None
    self_acknowledged: bool = False


class FieldLine(Request):
    """A field of the profile with a value that was decided on, and the memory that holds it."""

    record: Literal["field"]
    field: Annotated[str, Field(min_length=1, max_length=63)]
    value_hash: Hash
    field_value: Text
    category: Category
    memory_id: UUID
    actor: Name
    policy_hash: Short
    decided_at: Time
    proposal_id: UUID | None = None
    evidence: UUID | None = None


class TombstoneLine(Request):
    """A value that a person rejected or erased, by its hash alone."""

    record: Literal["tombstone"]
    category: Category
    value_hash: Hash
    reason: Annotated[str, Field(max_length=63)]
    actor: Name
    ts: Time


class EndLine(Request):
    """The last line: a file without it was cut off."""

    record: Literal["end"]
    counts: Mapping[str, Count]
    """How many lines of each record came before it, without the header."""


Line = Annotated[
    HeaderLine | TurnLine | EntityLine | MemoryLine | RelationLine | HistoryLine | ProposalLine | FieldLine
    | TombstoneLine | EndLine,
    Field(discriminator="record"),
]  # fmt: skip

MAX_LINES = 500
MAX_LINE = 1_000_000


class ImportRequest(Request):
    """Some lines of an export, or memories and turns in the same form, for one user."""

    lines: Annotated[list[Annotated[str, Field(max_length=MAX_LINE)]], Field(min_length=1, max_length=MAX_LINES)]
    """Each a JSON document; one that cannot be read is refused for itself."""
    mode: Literal["add", "restore"] = "add"
    """`add`: every memory goes the way of a new one. `restore`: each record comes back as it was; for `admin`."""
    agent: Name | None = None
    """The agent to act for; to restore, a key that may act for every agent reaches every category without one."""


LineOutcome = Literal[
    "created", "updated", "merged", "duplicate", "superseded", "disputed", "outdated", "restored", "unchanged",
    "queued_for_consent", "skipped", "refused",
]  # fmt: skip


class RefusedLine(Message):
    """Why a line was not taken."""

    line: Annotated[int, Field(ge=0)]
    """Its place in the request, from 0."""
    code: str
    """Stable name of the problem."""
    detail: str


class ImportOutcome(Message):
    """What became of each line."""

    outcomes: list[LineOutcome]
    """In the order of the lines. `skipped`: it only says something of the file."""
    refused: list[RefusedLine]
