"""The route of tool runs."""

from fastapi import APIRouter, Response

from memplane.application.turns.tool_capture import ToolRun
from memplane.contracts.memories import WriteOutcome
from memplane.contracts.observations import ObservationRequest
from memplane.entrypoints.http import wire_conversion
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.execution import Execution
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable
from memplane.entrypoints.http.routes.memories import NEW, failure_responses, stored_response

router = APIRouter(prefix="/v1", route_class=AuthenticatedRoute, tags=["memories"])


@router.post(
    "/observations",
    status_code=201,
    responses=failure_responses(409, 413, there=WriteOutcome)
    | {202: {"model": WriteOutcome, "description": "It waits for consent"}},
    summary="Store a tool run",
)
async def observe(
    request: ObservationRequest, app: App, caller: Caller, response: Response, again: Repeatable
) -> WriteOutcome:
    """Remember what a tool was called with and what came of it, as a memory of type `observation`."""
    given = {name: getattr(request, name) for name in ToolRun.__slots__}
    run = ToolRun(**given | {"files": tuple(request.files)})
    execution = Execution.of(app, caller, request.agent, dry_run=request.dry_run)
    outcome = await execution.writes.observe(caller, run, request.agent, once=execution.once(again, stored_response))
    return await execution.answer(wire_conversion.outcome_of(outcome), response, NEW.get(outcome.outcome, 200))
