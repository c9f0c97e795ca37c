"""What is erased of a user, and the receipt of it."""

from datetime import datetime
from uuid import UUID

from pydantic import StrictBool

from memplane.contracts.base import Message, Name, Request


class EraseRequest(Request):
    """The erasure of a user, which cannot be undone."""

    confirm: Name | None = None
    """The user's name again; not needed for a dry run."""
    dry_run: StrictBool = False
    """Tell how much there is, and erase nothing."""


class ErasureReceipt(Message):
    """What was erased of a user; it holds no name and no word of theirs."""

    receipt: UUID | None
    """Of this erasure; none for a dry run."""
    finished: bool
    """Whether nothing is left; if not, ask again: nothing is written of the user until then."""
    erased: dict[str, int]
    """How many rows, by what they were."""
    subject: str | None
    """The keyed hash of the user's name."""
    policy: str | None
    """Hash of the policy in force when it was asked for."""
    started_at: datetime | None
    finished_at: datetime | None
