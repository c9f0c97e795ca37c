"""Proposals for sensitive fields of profiles, decisions on them, and the fields that were decided."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StrictBool

from memplane.contracts.base import Message, Name, Request, Time
from memplane.contracts.dry_runs import DryRunnable, DryRunRequest
from memplane.domain.consent.consent_rules import ProposalState, Verdict

MAX_BULK = 100
FieldName = Annotated[str, Field(min_length=1, max_length=63)]
Reason = Annotated[str, Field(min_length=1, max_length=63)]


class ConsentRecord(Message):
    """A change of a sensitive field that waits for consent, or waited for it."""

    id: UUID
    user_id: str
    field: str
    category: str
    old_value: str | None
    """The value when the change was proposed; null when there was none."""
    new_value: str
    content: str
    """The memory that it becomes when it is approved."""
    evidence: UUID | None
    """The turn that says it, if one does."""
    confidence: float
    state: ProposalState
    actor: str
    """Who proposed it."""
    policy_hash: str
    created_at: Time
    expires_at: Time
    """When it lapses unless it is decided on."""
    decided_at: Time | None
    decided_by: str | None
    acknowledged_by: UUID | None
    """The turn in which the user agreed, if it was in the chat."""
    self_acknowledged: StrictBool = False
    """Whether one key recorded that turn and made the proposal, or recorded the turn that says the value."""
    reason: str | None
    memory_id: UUID | None
    """The memory that holds the value since."""


class ConsentList(Message):
    """A page of proposals, newest first."""

    items: list[ConsentRecord]
    next: str | None
    """Cursor of the next page."""


class ConsentFilters(Request):
    """Which proposals are asked for."""

    state: ProposalState | None = None
    user_id: Name | None = None
    field: FieldName | None = None
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""
    cursor: UUID | None = None
    """`next` of the page before."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class ApproveRequest(DryRunRequest):
    """An approval needs no more words."""

    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""


class RefuseRequest(ApproveRequest):
    """Why a proposal is rejected."""

    reason: Reason | None = None


class AckRequest(ApproveRequest):
    """Where the user agreed."""

    turn_id: UUID
    """A turn of the user, later than the proposal, that plainly agrees."""


class BulkItem(Request):
    """One proposal and what is decided of it."""

    id: UUID
    decision: Verdict
    reason: Reason | None = None
    """Of a rejection."""


class BulkRequest(ApproveRequest):
    """Decisions on up to 100 proposals, each named."""

    items: Annotated[list[BulkItem], Field(min_length=1, max_length=MAX_BULK)]


class ConsentOutcome(DryRunnable):
    """What a decision did."""

    outcome: Literal["approved", "rejected", "unchanged"]
    """`unchanged`: it was decided so before."""
    id: UUID
    state: ProposalState
    memory_id: UUID | None
    """The memory that holds the value."""
    rev: int | None
    """The revision of the thread in which the value was said."""
    overruled: list[UUID]
    """Memories that it took the place of."""


class FailedDecision(Message):
    """A decision that could not be carried out."""

    outcome: Literal["failed"] = "failed"
    id: UUID
    code: str
    """Stable name of the problem."""
    detail: str


class BulkOutcome(DryRunnable):
    """What became of each decision, in the order sent."""

    items: list[ConsentOutcome | FailedDecision]


class ContextFieldRecord(Message):
    """A field of a user's profile."""

    field: str
    value: str
    category: str
    memory_id: UUID
    """The memory that holds it."""
    decided: Literal["consent", "corroboration"]
    """By a person, or by itself once enough turns agreed."""
    proposal_id: UUID | None
    evidence: UUID | None
    """The turn that said it, or agreed to it."""
    actor: str
    policy_hash: str
    decided_at: Time


class UserContextChange(ApproveRequest):
    """What of a user's context can be set without a proposal."""

    time_zone: Annotated[str, Field(min_length=1, max_length=63)] | None
    """IANA name, such as `Pacific/Auckland`: what "tomorrow" and other relative dates mean from now on. Null: none."""


class UserContextOutcome(DryRunnable):
    """What a change of a user's context did."""

    outcome: Literal["updated", "unchanged"]
    user_id: str
    time_zone: str | None


class UserContext(Message):
    """What is decided of a user's profile, as far as the caller may read it."""

    user_id: str
    time_zone: str | None = None
    """By which relative dates are resolved; null: by the offset of each turn's `event_time`, else UTC."""
    items: list[ContextFieldRecord]
    """By field, the newest value first."""
