"""Routes of tombstones: the verdicts by which values are refused, and their lifting."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel

from memplane.application.memories.refused_values import LiftedVerdict, RefusedValues, VerdictFilters
from memplane.contracts.tombstones import LiftOutcome, LiftRequest, TombstoneFilters, TombstoneList, TombstoneRecord
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable
from memplane.entrypoints.http.routes.memories import failure_responses

router = APIRouter(prefix="/v1/tombstones", route_class=AuthenticatedRoute, tags=["feedback"])


@router.get("", responses=failure_responses(409), summary="Values that are refused")
async def list_tombstones(app: App, caller: Caller, asked: Annotated[TombstoneFilters, Query()]) -> TombstoneList:
    """Verdicts by which values are refused, newest first, with the memory that each was given on, while it is there.

    Needs full trust. A verdict is shown where the agent reads and writes every category that it reaches.
    """
    wanted = VerdictFilters(asked.user_id, asked.erased)
    found, more = await app.verdicts.list(caller, wanted, before=asked.cursor, limit=asked.limit, agent=asked.agent)
    return TombstoneList(items=[_record(each) for each in found], next=str(found[-1].buried.id) if more else None)


@router.post("/{tombstone_id}/lift", responses=failure_responses(404, 409, 413), summary="Take a verdict back")
async def lift_tombstone(
    tombstone_id: UUID, app: App, caller: Caller, again: Repeatable, request: LiftRequest | None = None
) -> LiftOutcome:
    """Its values can be stored again, in every category and spelling. A rejected memory stays deleted until restored.

    Needs full trust. A verdict that was lifted before is answered `unchanged`.
    """
    asked = request or LiftRequest()
    return _outcome(await app.verdicts.lift(caller, tombstone_id, asked.reason, asked.agent, once=again.once(_kept)))


def _kept(done: LiftedVerdict) -> tuple[int, BaseModel]:
    return 200, _outcome(done)


def _outcome(done: LiftedVerdict) -> LiftOutcome:
    return LiftOutcome(outcome=done.outcome, id=done.id, values=done.values, memories=list(done.memories))


def _record(each: RefusedValues) -> TombstoneRecord:
    buried = each.buried
    return TombstoneRecord(
        id=buried.id,
        user_id=each.user_id,
        subject=buried.scope if each.user_id is None else None,
        categories=list(each.categories),
        fields=list(each.fields),
        turns=each.turns,
        values=sum(buried.places.values()),
        reason=buried.reason,
        actor=buried.actor,
        rejected_at=buried.ts,
        memory_id=each.memory_id,
        words=each.words,
    )
