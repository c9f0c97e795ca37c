"""Values that are refused, by the verdict that refuses them, and the lifting of a verdict."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from memplane.contracts.base import Message, Name, Owner, Request, Time


class TombstoneRecord(Message):
    """One verdict: the values that it refuses are stored as hashes."""

    id: UUID
    user_id: Owner
    """Whose values; null of an erased user, and of what is about no user."""
    subject: str | None
    """Of an erased user, the keyed hash that stands for the name."""
    categories: list[str]
    """The categories in which the values are refused."""
    fields: list[str]
    """The fields of the profile for which they are refused."""
    turns: bool
    """Whether it is a turn that does not come back, by its id, its name or its words."""
    values: int
    """How many hashes it has: a value is refused in each of its spellings."""
    reason: str
    actor: str
    rejected_at: Time
    memory_id: UUID | None
    """The memory that the verdict was given on, where it is still there and the caller may read it."""
    words: str | None
    """What that memory said, or the value that was proposed."""


class TombstoneList(Message):
    """A page of verdicts, newest first."""

    items: list[TombstoneRecord]
    next: str | None
    """Cursor of the next page."""


class TombstoneFilters(Request):
    """Which verdicts are asked for."""

    user_id: Name | None = None
    erased: bool = False
    """Single values that erasures left, of which only hashes are there, instead of what persons rejected."""
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""
    cursor: UUID | None = None
    """`next` of the page before."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class LiftRequest(Request):
    """Why a verdict is taken back."""

    reason: Annotated[str, Field(max_length=63)] | None = None
    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""


class LiftOutcome(Message):
    """What lifting a verdict did."""

    outcome: Literal["lifted", "unchanged"]
    """`unchanged` when it was lifted before."""
    id: UUID
    values: int
    """How many hashes are refused no longer."""
    memories: list[UUID]
    """Memories that it had rejected; they stay deleted, and can be restored until their purge."""
