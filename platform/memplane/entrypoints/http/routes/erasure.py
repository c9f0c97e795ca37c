"""The route that erases a user."""

from fastapi import APIRouter
from pydantic import BaseModel

from memplane.contracts.base import Name
from memplane.contracts.erasure import EraseRequest, ErasureReceipt
from memplane.domain.privacy.erasure import Erasure
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable
from memplane.entrypoints.http.routes.memories import failure_responses

router = APIRouter(prefix="/v1", route_class=AuthenticatedRoute, tags=["administration"])


@router.post("/users/{user_id:text}/erase", responses=failure_responses(409, 413), summary="Erase a user")
async def erase(user_id: Name, request: EraseRequest, app: App, caller: Caller, again: Repeatable) -> ErasureReceipt:
    """Everything that there is of a user, and what was derived from it, for good. For `admin`.

    What was said is refused from then on, and the receipt tells how much it was. Much of it takes more than one
    request: ask again until `finished`; nothing is written of the user from the first to the last.
    """
    if request.dry_run:
        counts = await app.erase.preview(caller, user_id)
        return ErasureReceipt(
            receipt=None, finished=False, erased=dict(counts), subject=None, policy=None, started_at=None,
            finished_at=None,
        )  # fmt: skip
    return _receipt(await app.erase(caller, user_id, request.confirm or "-", once=again.once(_kept)))


def _receipt(done: Erasure) -> ErasureReceipt:
    return ErasureReceipt(
        receipt=done.id, finished=done.finished_at is not None, erased=dict(done.counts), subject=done.subject,
        policy=done.policy_hash, started_at=done.started_at, finished_at=done.finished_at,
    )  # fmt: skip


def _kept(done: Erasure) -> tuple[int, BaseModel]:
    return 200, _receipt(done)
