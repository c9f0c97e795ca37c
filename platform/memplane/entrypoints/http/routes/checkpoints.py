"""Routes of checkpoints: the state of a supervisor in a thread."""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response

from memplane.application.checkpoints.checkpoint_records import SupervisorState
from memplane.contracts.base import Name
from memplane.contracts.checkpoints import CheckpointRecord, CheckpointRequest, DeletedThread
from memplane.domain.checkpoints.supervisor_state import SECTIONS
from memplane.entrypoints.http import examples
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.routes.memories import IfMatch, failure_responses, version_of

router = APIRouter(prefix="/v1/checkpoints", route_class=AuthenticatedRoute, tags=["checkpoints"])
User = Annotated[Name | None, Query(description="Whose thread it is, where more than one of the key's users has it.")]


# `path`: a thread's name may have slashes in it
@router.get("/{thread_id:text}", responses=failure_responses(404, 409), summary="The state of a supervisor")
async def get_checkpoint(
    thread_id: Name, app: App, caller: Caller, response: Response, user_id: User = None
) -> CheckpointRecord:
    """What a supervisor needs to go on after a restart, with its version as `ETag`."""
    thread = await app.checkpoints.resolve_thread(caller, thread_id, user_id)
    state = await app.checkpoints.supervisor_state(caller, thread)
    response.headers["ETag"] = f'"{state.version}"'
    return _record(state)


@router.put(
    "/{thread_id:text}",
    responses={**failure_responses(409, 412, 413), 201: {"model": CheckpointRecord, "description": "It is new"}},
    summary="Store the state of a supervisor",
)
async def put_checkpoint(
    thread_id: Name,
    request: Annotated[CheckpointRequest, Body(openapi_examples=examples.CHECKPOINT)],
    app: App,
    caller: Caller,
    response: Response,
    if_match: IfMatch = None,
) -> CheckpointRecord:
    """Store sections of the state, if it still is at the version in `If-Match`; 0 is that of one that is not there."""
    thread = app.checkpoints.thread(caller, thread_id, request.user_id)
    sections = request.model_dump(mode="json", include=request.model_fields_set & set(SECTIONS))
    state = await app.checkpoints.supervise(caller, thread, sections, version_of(if_match))
    response.status_code = 201 if state.version == 1 else 200
    response.headers["ETag"] = f'"{state.version}"'
    return _record(state)


@router.delete(
    "/{thread_id:text}", responses=failure_responses(404, 409, 412), summary="Delete all checkpoints of a thread"
)
async def delete_checkpoint(
    thread_id: Name, app: App, caller: Caller, user_id: User = None, if_match: IfMatch = None
) -> DeletedThread:
    """Delete the state, and every checkpoint that a graph has stored in the thread."""
    thread = await app.checkpoints.resolve_thread(caller, thread_id, user_id)
    await app.checkpoints.delete(caller, thread, version_of(if_match))
    return DeletedThread(user_id=thread.user_id, thread_id=thread.thread_id)


def _record(state: SupervisorState) -> CheckpointRecord:
    sections = {name: state.data.get(name) for name in SECTIONS}
    return CheckpointRecord.model_validate(
        {
            **sections,
            "user_id": state.thread.user_id,
            "thread_id": state.thread.thread_id,
            "version": state.version,
            "created_at": state.created_at,
            "updated_at": state.updated_at,
        }
    )
