"""The keyword arguments of the client's methods. They mirror the fields of the contracts, which check their values.

What is not given is not sent. Enumerations are given as their members or as their values.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Literal, Required, TypedDict
from uuid import UUID

from pydantic import JsonValue

from memplane.contracts.query import QueryFilters

Moment = datetime | str
"""A time, or its RFC 3339 text; without a zone it is UTC."""


class FilterFields(TypedDict, total=False):
    """`QueryFilters`, as a plain dictionary."""

    user_id: str | None
    agent_id: str | None
    run_id: str | None
    actor_id: str | None
    role: str | None
    thread_id: str | None
    category: str | Sequence[str] | None
    type: str | None
    types: Sequence[str]
    visibility: str | None
    tags: Sequence[str]
    entity: str | Sequence[str] | None
    pinned: bool | None
    importance_min: int | None
    importance_max: int | None
    updated_after: date | str | None
    updated_before: date | str | None


class QueryFields(TypedDict, total=False):
    """`QueryRequest`, but for its ``query``."""

    agent: str | None
    categories: Sequence[str] | None
    filters: QueryFilters | FilterFields
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    actor_id: str | None
    role: str | None
    top_k: int
    return_: Literal["bullets", "full"]
    budget_tokens: int
    threshold: float | None
    since_rev: int | None
    thread_id: str | None
    ranking: str | None
    related: bool
    archive: bool
    purpose: Literal["search", "on_demand"]
    explain: bool
    as_of: Mapping[str, object] | None


class ContextFields(TypedDict, total=False):
    """`ContextRequest`, but for whom and which thread it is about."""

    message: str | None
    agent: str | None
    since_rev: int | None
    budget_tokens: int
    k: int


class CheckpointFields(TypedDict, total=False):
    """`CheckpointRequest`."""

    user_id: str | None
    graph: Mapping[str, JsonValue] | None
    memory: Mapping[str, JsonValue] | None
    conversation: Sequence[Mapping[str, JsonValue]] | None
    agents: Mapping[str, JsonValue] | None


class TurnFields(TypedDict, total=False):
    """`NewTurnRequest`, but for its ``text``."""

    user_id: Required[str]
    thread_id: Required[str]
    role: Required[str]
    agent: str | None
    actor_id: str | None
    agent_id: str | None
    run_id: str | None
    event_time: Moment | None
    external_id: str | None
    auto_extract: bool
    dry_run: bool


class TurnEntry(TurnFields, total=False):
    """`NewTurnRequest`, as a plain dictionary."""

    text: Required[str]


class _ChangeableFields(TypedDict, total=False):
    title: str | None
    narrative: str | None
    lang: str | None
    event_time: Moment | None
    valid_from: Moment | None
    valid_until: Moment | None
    expires_at: Moment | None


class MemoryFields(_ChangeableFields, total=False):
    """`NewMemoryRequest`, but for its ``content``; ``user_id`` is ``None`` for shared knowledge."""

    user_id: Required[str | None]
    category: Required[str]
    agent: str | None
    type: str
    visibility: str | None
    min_trust: str | None
    facts: Sequence[str]
    steps: Sequence[str]
    tags: Sequence[str]
    related_files: Sequence[str]
    agent_id: str | None
    run_id: str | None
    actor_id: str | None
    role: str | None
    thread_id: str | None
    external_id: str | None
    importance: int
    pinned: bool
    confidence: float
    source_ids: Sequence[UUID | str]
    attributes: Mapping[str, JsonValue]
    dry_run: bool


class ObservationFields(TypedDict, total=False):
    """`ObservationRequest`, but for its ``tool`` and ``outcome``."""

    user_id: Required[str]
    arguments: Mapping[str, JsonValue]
    files: Sequence[str]
    category: str | None
    thread_id: str | None
    run_id: str | None
    event_time: datetime | str | None
    external_id: str | None
    agent: str | None
    dry_run: bool


class ChangeFields(_ChangeableFields, total=False):
    """`MemoryChange`; a field given as ``None`` is emptied."""

    content: str
    category: str
    facts: Sequence[str] | None
    steps: Sequence[str] | None
    tags: Sequence[str] | None
    related_files: Sequence[str] | None
    importance: int
    pinned: bool
    confidence: float
    attributes: Mapping[str, JsonValue] | None
    dry_run: bool


class ListFields(TypedDict, total=False):
    """What narrows a list of memories."""

    user_id: str | None
    category: Sequence[str]
    type: str | None
    thread_id: str | None
    tag: Sequence[str]
    pinned: bool | None
    state: Literal["active", "superseded", "archived", "soft_deleted"]
    layer: Literal["mid", "long"] | None
    q: str | None
    trust_state: Literal["candidate", "confirmed", "disputed"] | None
    shared: bool
    agent: str | None


Verb = Literal["reinforce", "demote", "pin", "confirm", "retract", "reject", "restore"]
"""What can be said of a memory without further words."""


class VerbFields(TypedDict, total=False):
    """`VerbRequest`, with what `pin` and `reject` take besides."""

    agent: str | None
    pinned: bool
    reason: str | None
    dry_run: bool


class CorrectionFields(TypedDict, total=False):
    """`CorrectionRequest`, but for its ``content``."""

    agent: str | None
    title: str | None
    narrative: str | None
    facts: Sequence[str]
    tags: Sequence[str]
    lang: str | None
    valid_from: Moment | None
    source_ids: Sequence[UUID | str]
    dry_run: bool


class ConsentNarrowing(TypedDict, total=False):
    """`ConsentFilters`: what narrows a list of proposals."""

    state: str | None
    user_id: str | None
    field: str | None
    agent: str | None


class ConsentFields(ConsentNarrowing, total=False):
    """`ConsentFilters`: which page of it, too."""

    cursor: UUID | str | None
    limit: int


class TombstoneNarrowing(TypedDict, total=False):
    """`TombstoneFilters`: what narrows a list of tombstones."""

    user_id: str | None
    erased: bool
    agent: str | None


class TombstoneFields(TombstoneNarrowing, total=False):
    """`TombstoneFilters`: which page of it, too."""

    cursor: UUID | str | None
    limit: int


class ConflictFields(TypedDict, total=False):
    """`ConflictFilters`."""

    user_id: str | None
    agent: str | None
    cursor: UUID | str | None
    limit: int


class DecisionEntry(TypedDict, total=False):
    """`BulkItem`, as a plain dictionary."""

    id: Required[UUID | str]
    decision: Required[Literal["approve", "reject"]]
    reason: str | None


class EventFields(TypedDict, total=False):
    """`EventQuery`, but for the page."""

    user_id: str | None
    thread_id: str | None
    node: str | None
    op: str | None
    status: str | None
    memory_id: UUID | str | None
    since: Moment | None
    until: Moment | None
    agent: str | None
