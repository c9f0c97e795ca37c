"""Routes of the feedback verbs: what callers say of a memory."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from fastapi import APIRouter
from pydantic import BaseModel

from memplane.application.memories.feedback import Feedback, Verb
from memplane.application.memories.placement import Outcome
from memplane.application.memories.writes import Writes
from memplane.contracts.memories import CorrectionRequest, PinRequest, RejectRequest, VerbRequest, WriteOutcome
from memplane.domain.identity.principal import Principal
from memplane.entrypoints.http import wire_conversion
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.execution import Execution
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable, Repeats
from memplane.entrypoints.http.routes.memories import IfMatch, failure_responses, version_of

router = APIRouter(prefix="/v1/memories/{memory_id}", route_class=AuthenticatedRoute, tags=["feedback"])
_PROBLEMS: Any = failure_responses(404, 409, 412, 413)
_Verb = Callable[[Writes, Verb], Awaitable[Outcome]]


def _kept(outcome: Outcome) -> tuple[int, BaseModel]:
    return 200, wire_conversion.outcome_of(outcome)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a verb, as it was sent."""

    app: App
    caller: Caller
    memory_id: UUID
    if_match: str | None
    again: Repeats


async def _said(call: _Call, request: VerbRequest, verb: _Verb) -> WriteOutcome:
    run = Execution.of(call.app, call.caller, request.agent, dry_run=request.dry_run)
    once = run.once(call.again, _kept)
    done = await verb(run.writes, Verb(call.memory_id, request.agent, version_of(call.if_match), once))
    return await run.answer(wire_conversion.outcome_of(done))


@router.post("/pin", responses=_PROBLEMS, summary="Keep it")
async def pin(
    memory_id: UUID, app: App, caller: Caller, again: Repeatable, request: PinRequest | None = None,
    if_match: IfMatch = None,
) -> WriteOutcome:  # fmt: skip
    """Keep the memory whatever its age, or no longer."""
    asked = request or PinRequest()
    call = _Call(app, caller, memory_id, if_match, again)
    return await _said(call, asked, lambda writes, verb: writes.feedback.pin(caller, verb, pinned=asked.pinned))


@router.post("/correct", responses=_PROBLEMS, summary="This is right instead")
async def correct(
    memory_id: UUID, request: CorrectionRequest, app: App, caller: Caller, again: Repeatable, if_match: IfMatch = None
) -> WriteOutcome:
    """Replace a memory that is wrong; the old one stays in the history as superseded."""
    right = wire_conversion.correction_of(request)
    call = _Call(app, caller, memory_id, if_match, again)
    return await _said(call, request, lambda writes, verb: writes.correct(caller, verb, right))


@router.post("/reject", responses=_PROBLEMS, summary="A person says that it is wrong")
async def reject(
    memory_id: UUID, app: App, caller: Caller, again: Repeatable, request: RejectRequest | None = None,
    if_match: IfMatch = None,
) -> WriteOutcome:  # fmt: skip
    """The memory is gone, and its value does not come back, whoever says it. For fully trusted keys."""
    asked = request or RejectRequest()
    call = _Call(app, caller, memory_id, if_match, again)
    return await _said(call, asked, lambda writes, verb: writes.feedback.reject(caller, verb, asked.reason))


class Plain(NamedTuple):
    """A verb that needs no further words."""

    name: str
    said: Callable[[Feedback], Callable[[Principal, Verb], Awaitable[Outcome]]]
    summary: str
    told: str


PLAIN = (
    Plain(
        "reinforce",
        lambda feedback: feedback.reinforce,
        "It helped",
        "The memory helped: it counts for more in rankings that ask.",
    ),
    Plain(
        "demote",
        lambda feedback: feedback.demote,
        "It did not help",
        "The memory did not help: it counts for less in rankings that ask.",
    ),
    Plain(
        "confirm",
        lambda feedback: feedback.confirm,
        "It is right",
        "The memory is right; one that was disputed takes the place of what it disputes. For fully trusted keys.",
    ),
    Plain(
        "retract",
        lambda feedback: feedback.retract,
        "It is no longer so",
        "The memory is no longer so, and nothing takes its place.",
    ),
    Plain(
        "restore",
        lambda feedback: feedback.restore,
        "Bring it back",
        "Bring a superseded, archived, expired or deleted memory back; not one that a person rejected.",
    ),
)


def _add(plain: Plain) -> None:
    async def route(
        memory_id: UUID, app: App, caller: Caller, again: Repeatable, request: VerbRequest | None = None,
        if_match: IfMatch = None,
    ) -> WriteOutcome:  # fmt: skip
        call = _Call(app, caller, memory_id, if_match, again)
        return await _said(
            call, request or VerbRequest(), lambda writes, verb: plain.said(writes.feedback)(caller, verb)
        )

    route.__name__, route.__doc__ = plain.name, plain.told
    router.post(f"/{plain.name}", responses=_PROBLEMS, summary=plain.summary)(route)


for each in PLAIN:
    _add(each)
