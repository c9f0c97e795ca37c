"""The route that takes back what one key or agent did."""

from fastapi import APIRouter
from pydantic import BaseModel

from memplane.application.reverts.revert_service import Receipt, RevertSelection
from memplane.contracts.reverting import CheckpointsLeft, RevertedItem, RevertReceipt, RevertRequest
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable
from memplane.entrypoints.http.routes.memories import failure_responses

router = APIRouter(prefix="/v1/admin", route_class=AuthenticatedRoute, tags=["administration"])


@router.post("/revert", responses=failure_responses(404, 409, 413), summary="Take back what one key or agent did")
async def revert(request: RevertRequest, app: App, caller: Caller, again: Repeatable) -> RevertReceipt:
    """What a key or an agent wrote, changed and decided since a moment, and what rests on it. For `admin`.

    What it ended comes back. What others did since is kept; what cannot be told apart stays, and is listed with the
    reason. Much of it takes more than one request: ask again until `finished`.
    """
    wanted = RevertSelection(request.since, request.key_id, request.of_agent)
    done = await app.revert(caller, wanted, request.agent, dry_run=request.dry_run, once=again.once(_kept))
    return _receipt(done)


def _receipt(done: Receipt) -> RevertReceipt:
    items = [
        RevertedItem.model_validate(
            {"kind": each.kind, "id": each.id, "user_id": each.user_id, "what": each.what, "reason": each.reason}
        )
        for each in done.items
    ]
    return RevertReceipt(
        receipt=done.id, outcome="reverted" if done.counts else "nothing_to_revert", finished=done.finished,
        reverted=dict(done.counts), conflicts=done.kept, items=items, not_reverted=dict(done.lost),
        checkpoints=CheckpointsLeft(count=done.checkpoints) if done.checkpoints else None,
        keys=list(done.keys), policy=done.policy_hash, started_at=done.started_at,
    )  # fmt: skip


def _kept(done: Receipt) -> tuple[int, BaseModel]:
    return 200, _receipt(done)
