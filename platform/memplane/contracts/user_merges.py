"""One user merged into another, and the merge undone."""

from datetime import datetime
from uuid import UUID

from pydantic import StrictBool

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
