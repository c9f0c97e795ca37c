"""Routes of possible conflicts: pairs of memories that wait for a verdict."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Body, Query
from pydantic import BaseModel

from memplane.application.conflicts import Conflict, Settled
from memplane.contracts.conflicts import (
    ConflictFilters,
    ConflictList,
    ConflictOutcome,
    ConflictRecord,
    ConflictVerdictRequest,
)
from memplane.entrypoints.http import examples
from memplane.entrypoints.http.convert import record_of
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.guard import Guarded
from memplane.entrypoints.http.repeats import Repeatable
from memplane.entrypoints.http.routes import described

router = APIRouter(prefix="/v1/conflicts", route_class=Guarded, tags=["feedback"])


@router.get("", responses=described(), summary="Memories that may contradict each other")
async def list_conflicts(app: App, caller: Caller, asked: Annotated[ConflictFilters, Query()]) -> ConflictList:
    """Pairs that the rules suspect and cannot prove, newest first. Both memories are active and readable."""
    found, following = await app.conflicts.list(
        caller, asked.user_id, before=asked.cursor, limit=asked.limit, agent=asked.agent
    )
    return ConflictList(items=[_record(each) for each in found], next=None if following is None else str(following))


@router.post("/{conflict_id}/decide", responses=described(404, 409, 413), summary="Decide on a conflict")
async def decide_conflict(
    conflict_id: UUID, request: Annotated[ConflictVerdictRequest, Body(openapi_examples=examples.CONFLICT)], app: App,
    caller: Caller, again: Repeatable,
) -> ConflictOutcome:  # fmt: skip
    """Keep both, or the newer or the older one alone: the other is superseded and can be restored. Needs full trust."""
    return _outcome(
        await app.conflicts.decide(caller, conflict_id, request.verdict, request.agent, once=again.once(_kept))
    )


def _kept(settled: Settled) -> tuple[int, BaseModel]:
    return 200, _outcome(settled)


def _record(conflict: Conflict) -> ConflictRecord:
    return ConflictRecord(
        id=conflict.id,
        user_id=conflict.older.user_id,
        noted_at=conflict.noted_at,
        older=record_of(conflict.older),
        newer=record_of(conflict.newer),
    )


def _outcome(settled: Settled) -> ConflictOutcome:
    return ConflictOutcome(
        outcome=settled.outcome,
        id=settled.id,
        kept=list(settled.kept),
        superseded=settled.superseded,
        rev=settled.rev,
    )
