"""The chain over the history, and what its verification found."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from memplane.contracts.base import Message, Request


class AuditQuery(Request):
    """What of the chain is to be verified."""

    anchor: Annotated[str | None, Field(max_length=100)] = None
    """A head that was written down before: only it shows that the end was cut off, or everything written anew."""
    after: Annotated[int, Field(ge=0, le=2**62)] = 0
    """`next` of the part before."""
    limit: Annotated[int, Field(ge=0, le=10_000)] = 1_000
    """Entries to verify; 0 for the head alone."""


class AuditFault(Message):
    """The first thing that is wrong with a chain."""

    fault: Literal["edited", "deleted", "reordered", "truncated", "rewritten"]
    position: int
    """Where in the chain."""
    entry: UUID | None
    """The entry of the history that stands there."""


class AuditRecord(Message):
    """How far the history is sealed, and whether what was sealed is as it was."""

    head: str
    """To be written down where nobody who can change the database can: the anchor of later verifications."""
    sealed: int
    """Entries in the chain."""
    unsealed: int
    """Entries that come into it with the next seal."""
    sealed_at: datetime | None
    verified: int
    """Entries that were looked at now."""
    fault: AuditFault | None
    """What is wrong first."""
    next: int | None
    """After which entry to go on; none at the end."""
