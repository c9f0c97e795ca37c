"""The routes that merge one user into another, and undo that."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from memplane.application.users.user_merging import UnmergeResult
from memplane.contracts.base import Name
from memplane.contracts.user_merges import (
    UserMergeFilters,
    UserMergeList,
    UserMergeReceipt,
    UserMergeRecord,
    UserMergeRequest,
    UserUnmergeReceipt,
    UserUnmergeRequest,
)
from memplane.domain.identity.user_merges import UserMerge
from memplane.entrypoints.http.dependencies import App, Caller
from memplane.entrypoints.http.middleware.guard import AuthenticatedRoute
from memplane.entrypoints.http.middleware.idempotency_header import Repeatable
from memplane.entrypoints.http.routes.memories import failure_responses

router = APIRouter(prefix="/v1", route_class=AuthenticatedRoute, tags=["administration"])


@router.get("/admin/user-merges", responses=failure_responses(), summary="List merges of users")
async def list_merges(app: App, caller: Caller, asked: Annotated[UserMergeFilters, Query()]) -> UserMergeList:
    """Merges that stand and that were undone, newest first, with their receipts. For `admin`.

    A key that is bound to users sees those of which it reaches both.
    """
    found, more = await app.merge_users.list(caller, asked.user_id, before=asked.cursor, limit=asked.limit)
    return UserMergeList(items=[_record(each) for each in found], next=str(found[-1].id) if more else None)


@router.post(
    "/users/{user_id:text}/merge", responses=failure_responses(404, 409, 413), summary="Merge a user into another"
)
async def merge(
    user_id: Name, request: UserMergeRequest, app: App, caller: Caller, again: Repeatable
) -> UserMergeReceipt:
    """Everything of a user, such as an anonymous one, belongs to another one from then on. For `admin`.

    The former name is answered with 409 `user_merged`. The merge can be undone for as long as the policy says.
    """
    done = await app.merge_users(caller, user_id, request.into, dry_run=request.dry_run, once=again.once(_merged))
    return _receipt(done)


@router.post(
    "/users/{user_id:text}/unmerge", responses=failure_responses(404, 409, 413), summary="Undo a merge of users"
)
async def unmerge(
    user_id: Name, request: UserUnmergeRequest, app: App, caller: Caller, again: Repeatable
) -> UserUnmergeReceipt:
    """What moved and was not changed since goes back to the merged user; the receipt counts the rest. For `admin`."""
    done = await app.merge_users.undo(caller, user_id, dry_run=request.dry_run, once=again.once(_unmerged))
    return _undone(done)


def _receipt(done: UserMerge) -> UserMergeReceipt:
    return UserMergeReceipt(
        receipt=done.id, user_id=done.from_user, into=done.into_user,
        tables={name: dict(counts) for name, counts in done.counts.items() if name != "outcomes"},
        outcomes=dict(done.counts.get("outcomes", {})), policy=done.policy_hash, merged_at=done.merged_at,
        revertible_until=done.revertible_until,
    )  # fmt: skip


def _record(merge: UserMerge) -> UserMergeRecord:
    return UserMergeRecord(**dict(_receipt(merge)), actor=merge.actor, undone_at=merge.undone_at)


def _undone(done: UnmergeResult) -> UserUnmergeReceipt:
    return UserUnmergeReceipt(
        receipt=done.merge.id, user_id=done.merge.from_user, into=done.merge.into_user, returned=dict(done.returned),
        kept=dict(done.kept), undone_at=done.merge.undone_at or done.merge.merged_at,
    )  # fmt: skip


def _merged(done: UserMerge) -> tuple[int, BaseModel]:
    return 200, _receipt(done)


def _unmerged(done: UnmergeResult) -> tuple[int, BaseModel]:
    return 200, _undone(done)
