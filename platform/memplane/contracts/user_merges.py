"""One user merged into another, and the merge undone."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field, StrictBool

from memplane.contracts.base import Message, Name, Request


class UserMergeRequest(Request):
    """A merge of a user into another one."""

    into: Name
    """The user that has the records from then on; it may be new."""
    dry_run: StrictBool = False
    """Answer what would move, and change nothing."""


class UserUnmergeRequest(Request):
    """The undoing of a merge."""

    dry_run: StrictBool = False
    """Answer what would go back, and change nothing."""


class UserMergeReceipt(Message):
    """A merge, with the rows of each table before and after."""

    receipt: UUID
    user_id: str
    """The merged user: its name is answered with `user_merged` from then on."""
    into: str
    tables: dict[str, dict[str, int]]
    """By table: rows that `moved`, that were `folded` into rows that were there, and the other user's `before` and
    `after`."""
    outcomes: dict[str, int]
    """What became of memories besides: of the `same_value`, `rejected`, `merged`, `superseded`, in new `conflicts`."""
    policy: str
    """Hash of the policy in force."""
    merged_at: datetime
    revertible_until: datetime
    """Until when it can be undone."""


class UserMergeRecord(UserMergeReceipt):
    """A merge as the list of merges has it."""

    actor: str
    """Who merged them."""
    undone_at: datetime | None
    """When it was undone; null of one that stands."""


class UserMergeList(Message):
    """A page of merges, newest first."""

    items: list[UserMergeRecord]
    next: str | None
    """Cursor of the next page."""


class UserMergeFilters(Request):
    """Which merges are asked for."""

    user_id: Name | None = None
    """Those from or into this user."""
    cursor: UUID | None = None
    """`next` of the page before."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class UserUnmergeReceipt(Message):
    """A merge that was undone."""

    receipt: UUID
    """Of the merge."""
    user_id: str
    into: str
    returned: dict[str, int]
    """By table, the rows that belong to the former user again."""
    kept: dict[str, int]
    """By table, the rows that stay with the other user because they were changed since."""
    undone_at: datetime
