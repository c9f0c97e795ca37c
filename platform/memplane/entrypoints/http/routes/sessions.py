"""Routes of conversations that are closed."""

from fastapi import APIRouter
from pydantic import BaseModel

from memplane.application.turns.session_close import SessionCloseResult
from memplane.contracts.base import Name
from memplane.contracts.sessions import ClosedSession, CloseRequest, SessionSummary
from memplane.domain.language.extraction.session_summary import SessionSummaryText
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable
from memplane.entrypoints.http.routes.memories import failure_responses

router = APIRouter(prefix="/v1/sessions", route_class=AuthenticatedRoute, tags=["threads"])


# `text`: a thread's name may have slashes in it
@router.post("/{thread_id:text}/close", responses=failure_responses(404, 409, 413), summary="Close a conversation")
async def close(thread_id: Name, app: App, caller: Caller, again: Repeatable, request: CloseRequest) -> ClosedSession:
    """Sum up what was asked, what came of it, what was decided and what is left open, as a memory."""
    once = again.once(_kept)
    return _record(await app.close_session(caller, thread_id, request.user_id, request.agent, once=once))


def _kept(closed: SessionCloseResult) -> tuple[int, BaseModel]:
    return 200, _record(closed)


def _record(closed: SessionCloseResult) -> ClosedSession:
    closing = closed.closing
    return ClosedSession(
        outcome=closed.outcome,
        user_id=closing.user_id,
        thread_id=closing.thread_id,
        first_seen=closing.first_seen,
        closed_at=closing.closed_at,
        summary=None if closed.summary is None else _summary(closed.summary),
        memory_id=closing.summary_id,
        rev=closed.rev,
        left_out=closed.left_out,
    )


def _summary(summary: SessionSummaryText) -> SessionSummary:
    return SessionSummary(
        request=None if summary.request is None else summary.request.text,
        outcome=None if summary.outcome is None else summary.outcome.text,
        decisions=[each.text for each in summary.decisions],
        open_items=[each.text for each in summary.open_items],
    )
