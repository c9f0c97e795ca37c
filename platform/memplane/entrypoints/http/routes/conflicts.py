"""Routes of possible conflicts: pairs of memories that wait for a verdict."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Body, Query
from pydantic import BaseModel

from memplane.application.memories.browse import Conflicting
from memplane.application.memories.conflicts import DecidedConflict, PossibleConflict
from memplane.contracts.conflicts import (
    ConflictFilters,
    ConflictList,
    ConflictOutcome,
    ConflictRecord,
    ConflictVerdictRequest,
)
from memplane.entrypoints.http import examples
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.execution import Execution
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable
from memplane.entrypoints.http.routes.memories import failure_responses
from memplane.entrypoints.http.wire_conversion import record_of

router = APIRouter(prefix="/v1/conflicts", route_class=AuthenticatedRoute, tags=["feedback"])


@router.get("", responses=failure_responses(409), summary="Memories that may contradict each other")
async def list_conflicts(app: App, caller: Caller, asked: Annotated[ConflictFilters, Query()]) -> ConflictList:
    """Pairs that the rules suspect and cannot prove, newest first. Both memories are active and readable."""
    page = await app.conflicts.list(caller, asked.user_id, before=asked.cursor, limit=asked.limit, agent=asked.agent)
    items = [_record(each, page.conflicting) for each in page.items]
    return ConflictList(items=items, next=None if page.next is None else str(page.next))


@router.post("/{conflict_id}/decide", responses=failure_responses(404, 409, 413), summary="Decide on a conflict")
async def decide_conflict(
    conflict_id: UUID, request: Annotated[ConflictVerdictRequest, Body(openapi_examples=examples.CONFLICT)], app: App,
    caller: Caller, again: Repeatable,
) -> ConflictOutcome:  # fmt: skip
    """Keep both, or the newer or the older one alone: the other is superseded and can be restored. Needs full trust.

    The same verdict again is answered `unchanged`, another one with 409 `already_decided`.
    """
    run = Execution.of(app, caller, request.agent, dry_run=request.dry_run)
    once, conflicts = run.once(again, _kept), run.writes.conflicts
    done = await conflicts.decide(caller, conflict_id, request.verdict, request.agent, once=once)
    return await run.answer(_outcome(done))


def _kept(decided: DecidedConflict) -> tuple[int, BaseModel]:
    return 200, _outcome(decided)


def _record(conflict: PossibleConflict, marks: Conflicting) -> ConflictRecord:
    return ConflictRecord(
        id=conflict.id,
        user_id=conflict.older.user_id,
        noted_at=conflict.noted_at,
        older=record_of(conflict.older, marks),
        newer=record_of(conflict.newer, marks),
    )


def _outcome(decided: DecidedConflict) -> ConflictOutcome:
    return ConflictOutcome(
        outcome=decided.outcome,
        id=decided.id,
        kept=list(decided.kept),
        superseded=decided.superseded,
        rev=decided.rev,
    )
