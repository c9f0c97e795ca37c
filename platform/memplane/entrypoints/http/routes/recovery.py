"""Routes of an administrator: bring back, remove for good."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from memplane.application.memories import recovery
from memplane.application.memories.placement import Outcome
from memplane.application.memories.recovery import RecoveryFailure, RecoverySelection
from memplane.contracts.recovery import Purged, PurgeRequest, Recovered, RestoredMemory, RestoreRequest
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.execution import Execution
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable
from memplane.entrypoints.http.routes.memories import failure_responses

router = APIRouter(prefix="/v1/admin", route_class=AuthenticatedRoute, tags=["administration"])


@router.post("/restore", responses=failure_responses(404, 409, 413), summary="Bring memories back")
async def restore(request: RestoreRequest, app: App, caller: Caller, again: Repeatable) -> Recovered:
    """One memory, or what was deleted or archived of a user since a moment; not what a person rejected. For `admin`.

    The one takes the place of what contradicts it. Of several the newer come first, and one that contradicts what is
    active stays gone, as `failed`. What was superseded is brought back by its id.
    """
    chosen = RecoverySelection(
        request.memory_id, request.user_id, request.since, request.cursor, request.limit, request.agent
    )
    run = Execution.of(app, caller, request.agent, dry_run=request.dry_run)
    return await run.answer(_recovered(await run.writes.recovery.restore(caller, chosen, once=run.once(again, _kept))))


@router.post("/purge", responses=failure_responses(404, 409, 413), summary="Remove memories for good")
async def purge(request: PurgeRequest, app: App, caller: Caller, again: Repeatable) -> Purged:
    """One deleted memory, or those of a user: whose time to be restored is over, or all with `early`. For `admin`."""
    chosen = RecoverySelection(request.memory_id, request.user_id, limit=request.limit, agent=request.agent)
    run = Execution.of(app, caller, request.agent, dry_run=request.dry_run)
    done = await run.writes.recovery.purge(caller, chosen, early=request.early, once=run.once(again, _gone))
    return await run.answer(_purged(done))


def _recovered(found: recovery.RecoveryPage) -> Recovered:
    items = [_failed(each) if isinstance(each, RecoveryFailure) else _restored(each) for each in found.done]
    return Recovered(items=items, next=None if found.next is None else str(found.next))


def _restored(done: Outcome) -> RestoredMemory:
    if done.proposal is not None:
        return RestoredMemory(outcome="queued_for_consent", id=done.proposal)
    outcome: Literal["restored", "outdated"] = "outdated" if done.outcome == "outdated" else "restored"
    return RestoredMemory(outcome=outcome, id=done.memory.id, overruled=list(done.overruled))


def _failed(each: RecoveryFailure) -> RestoredMemory:
    return RestoredMemory(outcome="failed", id=each.memory_id, code=each.error.code, detail=each.error.detail)


def _purged(removed: recovery.PurgeResult) -> Purged:
    return Purged(purged=removed.count, more=removed.more)


def _kept(found: recovery.RecoveryPage) -> tuple[int, BaseModel]:
    return 200, _recovered(found)


def _gone(removed: recovery.PurgeResult) -> tuple[int, BaseModel]:
    return 200, _purged(removed)
