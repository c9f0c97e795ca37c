"""What the use cases hand to storage, and what it hands back."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from memplane.application.recall.search_material import SearchMaterial
from memplane.domain.consent.consent_rules import ProposalState
from memplane.domain.language.entities import Mention
from memplane.domain.memory.conflict_verdicts import ConflictVerdict
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.memory import Memory, new_id
from memplane.domain.memory.scope import Scope


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """Where a new turn stands: its number in the thread and the thread's revision."""

    seq: int
    rev: int


@dataclass(frozen=True, slots=True)
class ChangeEntry:
    """One line of the change log: exactly one for each revision of a thread."""

    user_id: str
    thread_id: str
    rev: int
    memory_id: UUID
    event: ChangeEvent
    category: str
    ts: datetime


@dataclass(frozen=True, slots=True)
class ChangedMemory:
    """A memory that changed, for the threads that are told."""

    memory_id: UUID
    event: ChangeEvent
    category: str


@dataclass(frozen=True, slots=True)
class ChangeNotice:
    """What a user's threads are told: those that are named, and those that were active lately.

    Attributes:
        changes: what changed, in order; a revision for each in each thread.
        ts: when.
        since: from when on a thread was active lately.
        most: at most so many of these, the latest.
    """

    changes: tuple[ChangedMemory, ...]
    ts: datetime
    since: datetime
    most: int


EXTRACT = "extract"
"""The operation of an event that counts a fact of a turn which is not stored."""


@dataclass(frozen=True, slots=True)
class OperationalEvent:
    """One entry of the operational tracking."""

    node: str
    op: str
    status: str
    ts: datetime
    user_id: str | None = None
    thread_id: str | None = None
    memory_id: UUID | None = None
    category: str | None = None
    sim: float | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """Units that one read returned, and when; and the memories that it found by a question, the best first."""

    tenant: str
    ids: tuple[UUID, ...]
    event: OperationalEvent
    found: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class TombstoneOrigin:
    """Why values were buried, by whom and when.

    Attributes:
        subject: the memory, proposal or turn that the verdict was given on.
        verdict: what is lifted as a whole.
    """

    reason: str
    actor: str
    ts: datetime
    subject: UUID | None = None
    verdict: UUID = field(default_factory=new_id)


@dataclass(frozen=True, slots=True)
class TombstonedValues:
    """What one verdict refuses, or one value that an erasure left.

    Attributes:
        id: of the verdict, or of the value's tombstone where it belongs to none.
        scope: the user; of an erased one a keyed hash of the name.
        places: how many values are buried in which category, and where else: see :func:`grave`.
        subject: the memory, proposal or turn that the verdict was given on.
    """

    id: UUID
    scope: str
    reason: str
    actor: str
    ts: datetime
    places: Mapping[str, int]
    subject: UUID | None = None


@dataclass(frozen=True, slots=True)
class TombstoneQuery:
    """Which verdicts are asked for.

    Attributes:
        places: the categories, and what else values are buried under, that may be seen; a verdict that reaches
            further is not there.
        scopes: the users, or hashes of erased ones; ``None`` for all.
        erased: single values that erasures left, instead of verdicts.
        ids: only these.
    """

    tenant: str
    places: Sequence[str]
    scopes: Collection[str] | None = None
    erased: bool = False
    ids: Sequence[UUID] | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation from one memory to another; ``strength`` is 0…1."""

    from_id: UUID
    to_id: UUID
    strength: float
    kind: str = "related_to"


@dataclass(frozen=True, slots=True)
class LinkChange:
    """A relation of a memory to another one, for the history."""

    other: Memory
    relation: str
    strength: float


@dataclass(frozen=True, slots=True)
class ConflictPair:
    """Two memories that may contradict each other; ``id`` is that of the relation between them."""

    id: UUID
    from_id: UUID
    to_id: UUID
    noted_at: datetime


@dataclass(frozen=True, slots=True)
class SuspectedConflicts:
    """The active memories that one may contradict, and those of which it was decided that both hold."""

    open: frozenset[UUID] = frozenset()
    compatible: frozenset[UUID] = frozenset()


@dataclass(frozen=True, slots=True)
class ConflictState:
    """Between which memories a conflict is, and what was decided about it; no verdict while it is open."""

    ends: tuple[UUID, UUID]
    verdict: ConflictVerdict | None


@dataclass(frozen=True, slots=True)
class Entity:
    """Who or what memories mention.

    Attributes:
        memories: how many memories in scope mention it; ``None`` when they were not counted.
        aliases: its other names, as they were given.
    """

    id: UUID
    user_id: str
    kind: str
    name: str
    memories: int | None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntityQuery:
    """Which entities are asked for: of a kind, with a name or alias of this key, by their ids."""

    kind: str | None = None
    key: str | None = None
    ids: tuple[UUID, ...] | None = None


@dataclass(frozen=True, slots=True)
class RelatedEntity:
    """An entity that is mentioned beside another one, and in how many memories."""

    id: UUID
    kind: str
    name: str
    memories: int


@dataclass(frozen=True, slots=True)
class EntityProfile:
    """What is known of an entity.

    Attributes:
        facts: memories that mention it, newest first.
        related: entities that they mention besides, those first that most do.
        last_mentioned: when one of them was last said.
    """

    facts: Sequence[Memory]
    related: Sequence[RelatedEntity]
    last_mentioned: datetime | None


@dataclass(frozen=True, slots=True)
class KnownName:
    """A name under which a user's entity is known; ``alias`` when it is one that a person gave it."""

    id: UUID
    key: str
    kind: str
    alias: bool


@dataclass(frozen=True, slots=True)
class WriteLookup:
    """What a new memory is looked up by, before it is decided what becomes of it.

    Attributes:
        memory: the memory.
        material: its search material.
        scope: where its neighbours are looked for.
        limit: how many of them by meaning, and how many by words.
        mentions: whom and what it mentions.
    """

    memory: Memory
    material: SearchMaterial
    scope: Scope
    limit: int
    mentions: tuple[Mention, ...]


@dataclass(frozen=True, slots=True)
class LookupResult:
    """What stands around a new memory.

    Attributes:
        buried: keys of values that were rejected or erased.
        there: the active memory of its value or name, locked.
        past: without one, the superseded or archived memory of its name.
        near: without either, its neighbours with their cosine, most similar first.
        known: entities of the names that it mentions, where they were looked up at once.
        last: when the latest memory of its user was recorded.
    """

    buried: frozenset[str]
    there: Memory | None
    past: Memory | None
    near: tuple[tuple[Memory, float], ...]
    known: tuple[KnownName, ...] | None
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """What a request with an idempotency key was, and what it was answered."""

    request_hash: str
    answer: Mapping[str, object]


BESIDES = "besides"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change of a profile field that waits for consent, or waited for it.

    Attributes:
        evidence: the turn that says it, if one does.
        meta: the memory that it becomes when it is approved, the one that it was meant to change, and the values of
            other fields that its words state.
        acknowledged_by: the turn in which the user agreed.
        memory_id: what it became.
        reason: why it was rejected.
        key_id: the key, or the subject of the token, that proposed it last; ``None`` when that was not noted yet.
        asked_at: when the same was proposed again; ``None``: it was not.
        self_acknowledged: whether the key that proposed it, or recorded its evidence, recorded the acknowledging turn.
    """

    id: UUID
    user_id: str
    field: str
    new_value: str
    evidence: UUID | None
    confidence: float
    actor: str
    policy_hash: str
    created_at: datetime
    expires_at: datetime
    category: str = "profile"
    old_value: str | None = None
    state: ProposalState = ProposalState.PENDING
    meta: Mapping[str, object] = dataclasses.field(default_factory=dict)
    decided_at: datetime | None = None
    decided_by: str | None = None
    acknowledged_by: UUID | None = None
    memory_id: UUID | None = None
    reason: str | None = None
    key_id: str | None = None
    asked_at: datetime | None = None
    self_acknowledged: bool = False

    def says_besides(self) -> object:
        """The values of other fields that its words state, by field and key; of those that hold now."""
        return self.meta.get(BESIDES) or []


@dataclass(frozen=True, slots=True)
class ProposalQuery:
    """Which proposals are asked for.

    Attributes:
        tenant: the only tenant.
        categories: the only categories.
        users: the only users; ``None`` for every one of the tenant.
        now: by when a proposal that nobody decided on has lapsed.
        state: in this state alone.
        user_id: of this user alone.
        field: for this field alone.
        ids: these alone.
    """

    tenant: str
    categories: tuple[str, ...]
    users: frozenset[str] | None
    now: datetime
    state: ProposalState | None = None
    user_id: str | None = None
    field: str | None = None
    ids: tuple[UUID, ...] | None = None


@dataclass(frozen=True, slots=True)
class ContextField:
    """A field of a user's profile with a value that was decided on, and the memory that holds it.

    Attributes:
        value_hash: by which one value is told from another.
        proposal_id: the proposal that was approved; ``None`` where the value applied by itself.
        evidence: the turn that said it, or agreed to it.
    """

    user_id: str
    field: str
    value_hash: str
    field_value: str
    category: str
    memory_id: UUID
    proposal_id: UUID | None
    evidence: UUID | None
    actor: str
    policy_hash: str
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class Signal:
    """A turn that gives a benign field a value, and the memory that says so."""

    user_id: str
    field: str
    value_hash: str
    turn_id: UUID
    memory_id: UUID
    confidence: float
    ts: datetime


@dataclass(frozen=True, slots=True)
class StoredKey:
    """An API key as stored: everything but the secret, of which the SHA-256 is kept."""

    tenant: str
    key_id: str
    secret_hash: bytes = field(repr=False)
    agent: str | None
    act_for: tuple[str, ...]
    users: tuple[str, ...] | None
    trust: str
    scopes: tuple[str, ...]
    label: str | None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    def valid(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


@dataclass(frozen=True, slots=True)
class Rate:
    """How often each key may ask.

    Attributes:
        per_second: tokens that a bucket gets back in a second.
        burst: tokens of a full bucket.
    """

    per_second: float
    burst: int


@dataclass(frozen=True, slots=True)
class Draw:
    """Tokens that a process asks for, in the name of a key.

    Attributes:
        needed: fewer do not help.
        wanted: how many it would like.
    """

    tenant: str
    key_id: str
    needed: int
    wanted: int


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """Tokens that were given, and how many are left in the bucket."""

    granted: int
    left: float
