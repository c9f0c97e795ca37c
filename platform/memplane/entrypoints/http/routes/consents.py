"""Routes of consent: proposals, decisions on them, and the fields that were decided."""

from collections.abc import Sequence
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Body, Query
from pydantic import BaseModel

from memplane.application.consent.consents import DecisionFailure, ProposalSelection
from memplane.application.consent.decisions import Decision, DecisionResult
from memplane.application.consent.proposals import draft_of
from memplane.application.records import ContextField, Proposal
from memplane.contracts.base import Name
from memplane.contracts.consents import (
    AckRequest,
    ApproveRequest,
    BulkOutcome,
    BulkRequest,
    ConsentFilters,
    ConsentList,
    ConsentOutcome,
    ConsentRecord,
    ContextFieldRecord,
    FailedDecision,
    RefuseRequest,
    UserContext,
    UserContextChange,
    UserContextOutcome,
)
from memplane.domain.consent.consent_rules import Verdict
from memplane.entrypoints.http import examples
from memplane.entrypoints.http.dependencies import Agent, App, Caller
from memplane.entrypoints.http.execution import Execution
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable
from memplane.entrypoints.http.routes.memories import failure_responses

router = APIRouter(prefix="/v1", route_class=AuthenticatedRoute, tags=["consent"])


@router.get("/consents", responses=failure_responses(409), summary="Proposals for sensitive fields")
async def list_consents(app: App, caller: Caller, asked: Annotated[ConsentFilters, Query()]) -> ConsentList:
    """Changes of sensitive fields that wait for consent, or waited for it, newest first. For `consent:review`."""
    wanted = ProposalSelection(asked.state, asked.user_id, asked.field)
    found, more = await app.consents.list(caller, wanted, before=asked.cursor, limit=asked.limit, agent=asked.agent)
    return ConsentList(items=[_record(each) for each in found], next=str(found[-1].id) if more else None)


@router.post("/consents/bulk", responses=failure_responses(409, 413), summary="Decide on several proposals")
async def decide_all(
    request: Annotated[BulkRequest, Body(openapi_examples=examples.CONSENTS)], app: App, caller: Caller,
    again: Repeatable,
) -> BulkOutcome:  # fmt: skip
    """Each proposal is named with its decision; one that cannot be decided leaves the others as they are."""
    rulings = [Decision(item.id, item.decision, item.reason) for item in request.items]
    run = Execution.of(app, caller, request.agent, dry_run=request.dry_run)
    done = await run.writes.consents.decide_all(caller, rulings, request.agent, once=run.once(again, _all_kept))
    return await run.answer(_bulk(done))


@router.post("/consents/{proposal_id}/approve", responses=failure_responses(404, 409, 413), summary="The person agrees")
async def approve(
    proposal_id: UUID, app: App, caller: Caller, again: Repeatable, request: ApproveRequest | None = None
) -> ConsentOutcome:
    """The value holds from now on, as a confirmed memory and as a field of the profile. For `consent:review`."""
    asked = request or ApproveRequest()
    run = Execution.of(app, caller, asked.agent, dry_run=asked.dry_run)
    ruling, once = Decision(proposal_id, Verdict.APPROVE), run.once(again, _kept)
    return await run.answer(_outcome(await run.writes.consents.decide(caller, ruling, asked.agent, once=once)))


@router.post("/consents/{proposal_id}/reject", responses=failure_responses(404, 409, 413), summary="The person refuses")
async def reject(
    proposal_id: UUID, app: App, caller: Caller, again: Repeatable, request: RefuseRequest | None = None
) -> ConsentOutcome:
    """The value does not come back for this field, whoever says it. For `consent:review`."""
    asked = request or RefuseRequest()
    run = Execution.of(app, caller, asked.agent, dry_run=asked.dry_run)
    ruling, once = Decision(proposal_id, Verdict.REJECT, asked.reason), run.once(again, _kept)
    return await run.answer(_outcome(await run.writes.consents.decide(caller, ruling, asked.agent, once=once)))


@router.post(
    "/consents/{proposal_id}/ack", responses=failure_responses(404, 409, 413), summary="The user agreed in the chat"
)
async def acknowledge(
    proposal_id: UUID, request: Annotated[AckRequest, Body(openapi_examples=examples.ACK)], app: App, caller: Caller,
    again: Repeatable,
) -> ConsentOutcome:  # fmt: skip
    """Approve by a turn of the user that is later than the proposal and plainly agrees (422 `not_an_agreement`)."""
    run = Execution.of(app, caller, request.agent, dry_run=request.dry_run)
    once, consents = run.once(again, _kept), run.writes.consents
    done = await consents.acknowledge(caller, proposal_id, request.turn_id, request.agent, once=once)
    return await run.answer(_outcome(done))


# `path`: a user's name may have slashes in it
@router.get(
    "/users/{user_id:text}/context", responses=failure_responses(409), summary="The decided fields of a profile"
)
async def user_context(user_id: Name, app: App, caller: Caller, agent: Agent = None) -> UserContext:
    """Fields that a person consented to, or that enough turns corroborated; those that the agent may read."""
    found = await app.consents.context(caller, user_id, agent)
    zone = await app.writes.user_settings.time_zone(caller, user_id)
    return UserContext(user_id=user_id, time_zone=zone, items=[_field(each) for each in found])


@router.patch("/users/{user_id:text}/context", responses=failure_responses(409, 413), summary="Set a user's time zone")
async def change_user_context(
    user_id: Name, request: UserContextChange, app: App, caller: Caller
) -> UserContextOutcome:
    """What relative dates mean in what the user says from now on. For fully trusted keys."""
    run = Execution.of(app, caller, request.agent, dry_run=request.dry_run)
    done = await run.writes.user_settings.set_time_zone(caller, user_id, request.time_zone, request.agent)
    outcome: Literal["updated", "unchanged"] = "updated" if done.changed else "unchanged"
    return await run.answer(UserContextOutcome(outcome=outcome, user_id=done.user_id, time_zone=done.name))


def _kept(decided: DecisionResult) -> tuple[int, BaseModel]:
    return 200, _outcome(decided)


def _all_kept(done: Sequence[DecisionResult | DecisionFailure]) -> tuple[int, BaseModel]:
    return 200, _bulk(done)


def _record(proposal: Proposal) -> ConsentRecord:
    told = {name: getattr(proposal, name) for name in ConsentRecord.model_fields if name != "content"}
    return ConsentRecord(**told, content=draft_of(proposal, proposal.created_at).text.content)


def _outcome(decided: DecisionResult) -> ConsentOutcome:
    proposal = decided.proposal
    return ConsentOutcome(
        outcome=decided.outcome,
        id=proposal.id,
        state=proposal.state,
        memory_id=proposal.memory_id,
        rev=decided.rev,
        overruled=list(decided.overruled),
    )


def _bulk(done: Sequence[DecisionResult | DecisionFailure]) -> BulkOutcome:
    return BulkOutcome(items=[_failed(each) if isinstance(each, DecisionFailure) else _outcome(each) for each in done])


def _failed(failed: DecisionFailure) -> FailedDecision:
    return FailedDecision(id=failed.proposal_id, code=failed.error.code, detail=failed.error.detail)


def _field(field: ContextField) -> ContextFieldRecord:
    return ContextFieldRecord(
        field=field.field,
        value=field.field_value,
        category=field.category,
        memory_id=field.memory_id,
        decided="corroboration" if field.proposal_id is None else "consent",
        proposal_id=field.proposal_id,
        evidence=field.evidence,
        actor=field.actor,
        policy_hash=field.policy_hash,
        decided_at=field.decided_at,
    )
