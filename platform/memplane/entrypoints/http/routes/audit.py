"""The route of the chain over the history."""

from typing import Annotated

from fastapi import APIRouter, Query

from memplane.application.operations.audit import VerificationResult
from memplane.contracts.audit import AuditFault, AuditQuery, AuditRecord
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.routes.memories import failure_responses

router = APIRouter(prefix="/v1/admin", route_class=AuthenticatedRoute, tags=["administration"])


@router.get("/audit", responses=failure_responses(), summary="Verify the history")
async def audit(app: App, caller: Caller, asked: Annotated[AuditQuery, Query()]) -> AuditRecord:
    """The head of the chain over the history, and whether a part of it is as it was sealed. For `admin`."""
    return _record(await app.audit.for_administrator(caller, asked.anchor, asked.after, asked.limit))


def _record(found: VerificationResult) -> AuditRecord:
    state, wrong = found.state, found.found
    return AuditRecord(
        head=str(state.head), sealed=state.head.position, unsealed=state.unsealed, sealed_at=state.sealed_at,
        verified=found.entries, next=found.following,
        fault=None if wrong is None else AuditFault(
            fault=wrong.fault.value, position=wrong.position, entry=wrong.entry
        ),
    )  # fmt: skip
