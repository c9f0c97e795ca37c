"""What an administrator brings back, and what he removes for good."""

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import Field, model_validator

from memplane.contracts.base import Message, Name, Time
from memplane.contracts.dry_runs import DryRunnable, DryRunRequest

MAX_PAGE = 100


class _Chosen(DryRunRequest):
    """One memory, or those of a user."""

    memory_id: UUID | None = None
    user_id: Name | None = None
    agent: Name | None = None
    """The agent to act for; without one a key that may act for every agent reaches every category."""
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = MAX_PAGE
    """The most memories of one call."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.memory_id is None) == (self.user_id is None):
            raise ValueError("name either memory_id or user_id")
        return self


class RestoreRequest(_Chosen):
    """One memory, or what was deleted or archived of a user since a moment."""

    since: Time | None = None
    """From when on; with ``user_id``."""
    cursor: UUID | None = None
    """`next` of the page before; with ``user_id``."""

    @model_validator(mode="after")
    def _since_with_user(self) -> Self:
        if (self.user_id is None) != (self.since is None):
            raise ValueError("since goes with user_id, and user_id with since")
        return self


class PurgeRequest(_Chosen):
    """One deleted memory, or those of a user."""

    early: bool = False
    """Also what could still be restored."""


class RestoredMemory(Message):
    """What became of one memory."""

    outcome: Literal["restored", "outdated", "queued_for_consent", "failed"]
    """`outdated`: newer is known, so that it is a thing of the past again."""
    id: UUID
    """Of the memory; of the proposal, where it waits for consent."""
    code: str | None = None
    """Stable name of the problem, where it failed."""
    detail: str | None = None
    overruled: list[UUID] = []
    """Memories that it took the place of; the newer ones, where it is outdated."""


class Recovered(DryRunnable):
    """What was brought back, newest first; one that cannot be leaves the others as they are."""

    items: list[RestoredMemory]
    next: str | None
    """Cursor of the next page."""


class Purged(DryRunnable):
    """What was removed for good."""

    purged: int
    more: bool
    """Whether there is more to remove: ask again."""
