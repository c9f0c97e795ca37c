"""What of a conversation is noted when it is closed, and what keeps it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Closing:
    """What is noted of a conversation when it is closed.

    Attributes:
        agent: for whom it was closed: what comes of it goes by this agent's allowlist.
        first_seen: when its first turn was recorded.
        seq: its last turn by then.
        summary_id: the memory that sums it up; ``None`` when nothing could be told, or a person rejected that.
    """

    user_id: str
    thread_id: str
    agent: str
    first_seen: datetime
    closed_at: datetime
    seq: int
    summary_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Resting:
    """A conversation in which nothing was said lately, and more than when it was closed last.

    Attributes:
        turns: how many turns it has.
        updated_at: when something happened in it last.
    """

    user_id: str
    thread_id: str
    turns: int
    updated_at: datetime


class Closings(Protocol):
    """What is noted of conversations when they are closed, within a transaction."""

    async def resting(self, since: datetime, limit: int) -> list[Resting]:
        """Conversations that have rested since a moment and were not closed as they are, by their names."""
        ...

    async def begun(self, user_id: str, thread_id: str) -> datetime | None:
        """When the first turn of a conversation was recorded; ``None`` when none is there."""
        ...

    async def find(self, user_id: str, thread_id: str) -> Closing | None:
        """The last closing of a conversation; or none."""
        ...

    async def keep(self, closing: Closing) -> None:
        """Note a closing, in place of the one before."""
        ...
