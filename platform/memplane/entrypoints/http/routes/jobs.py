"""Routes of background work, for administrators."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel

from memplane.application.jobs.garbage_collection import CollectionResult
from memplane.application.jobs.job_records import JobRun
from memplane.contracts.jobs import CollectionRecord, CollectionRequest, JobList, JobRecord, JobRequest
from memplane.domain.jobs.job_definitions import JobState
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable
from memplane.entrypoints.http.routes.memories import Limit, failure_responses

router = APIRouter(prefix="/v1/admin/jobs", route_class=AuthenticatedRoute, tags=["administration"])
_State = Annotated[JobState | None, Query(description="Only those in it.")]


@router.get("", responses=failure_responses(), summary="Background work")
async def list_jobs(
    app: App, caller: Caller, state: _State = None, cursor: UUID | None = None, limit: Limit = 50
) -> JobList:
    """What was done for the tenant, is being done and waits, the newest first, with progress. For `admin`."""
    found, more = await app.job_admin.page(caller, limit, before=cursor, state=state)
    return JobList(items=[record(run) for run in found], next=str(found[-1].id) if more else None)


@router.post("", status_code=202, responses=failure_responses(404, 409, 413), summary="Do a job now")
async def run_job(request: JobRequest, app: App, caller: Caller, again: Repeatable) -> JobRecord:
    """Put a job into the queue. One of this day that waits or is at work stays as it is. For `admin`."""
    return record(await app.job_admin.ask(caller, request.name, once=again.once(_asked)))


@router.post("/{job_id}/cancel", responses=failure_responses(404, 409), summary="Cancel a job")
async def cancel_job(job_id: UUID, app: App, caller: Caller, again: Repeatable) -> JobRecord:
    """A job that waits is not done; one at work ends before its next batch, and what it did stays. For `admin`."""
    return record(await app.job_admin.cancel(caller, job_id, once=again.once(_kept)))


@router.post("/{job_id}/retry", responses=failure_responses(404, 409), summary="Retry a job")
async def retry_job(job_id: UUID, app: App, caller: Caller, again: Repeatable) -> JobRecord:
    """A job that was parked or cancelled waits again, and goes on from where it was left. For `admin`."""
    return record(await app.job_admin.retry(caller, job_id, once=again.once(_kept)))


gc_router = APIRouter(prefix="/v1/admin", route_class=AuthenticatedRoute, tags=["administration"])


@gc_router.post("/gc", responses=failure_responses(409, 413), summary="Collect what a user keeps no longer")
async def collect(request: CollectionRequest, app: App, caller: Caller, again: Repeatable) -> CollectionRecord:
    """Expiry, TTL, layers, size and purge for one user, as the night does them for all. For `admin`.

    With `dry_run` nothing changes. A whole tenant is collected by its jobs, or by `memplane gc`.
    """
    once = None if request.dry_run else again.once(_collected)
    return collection(await app.collect.user(caller, request.user_id, dry_run=request.dry_run, once=once))


def collection(done: CollectionResult) -> CollectionRecord:
    """A collection as callers read it."""
    told = {name: getattr(done, name) for name in CollectionRecord.model_fields}
    return CollectionRecord(**told | {"skipped": list(done.skipped), "report": dict(done.report)})


def _collected(done: CollectionResult) -> tuple[int, BaseModel]:
    return 200, collection(done)


def record(run: JobRun) -> JobRecord:
    """A job as callers read it."""
    told = {name: getattr(run, name) for name in JobRecord.model_fields if name != "progress"}
    return JobRecord(**told, progress=dict(run.counts))


def _asked(run: JobRun) -> tuple[int, BaseModel]:
    return 202, record(run)


def _kept(run: JobRun) -> tuple[int, BaseModel]:
    return 200, record(run)
