"""What of a conversation is noted when it is closed, and what keeps it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from memplane.domain.memory.memory import Turn


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


@dataclass(frozen=True, slots=True)
class Unread:
    """A closed conversation of which a part was not consolidated yet, and the next of its turns.

    Attributes:
        agent: for whom it was closed.
        seq: the last turn that was consolidated.
        until: the last turn of this part.
        turns: those of the part that are there, in their order.
    """

    user_id: str
    thread_id: str
    agent: str
    seq: int
    until: int
    turns: Sequence[Turn] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Whose conversation it is, and which."""
        return self.user_id, self.thread_id


class Closings(Protocol):
    """What is noted of conversations when they are closed, within a transaction."""

    async def resting(self, since: datetime, limit: int, user_id: str | None = None) -> list[Resting]:
        """Conversations, of a user or of all, that have rested since a moment and were not closed as they are.

        In the order of their names.
        """
        ...

    async def began_at(self, user_id: str, thread_id: str) -> datetime | None:
        """When the first turn of a conversation was recorded; ``None`` when none is there."""
        ...

    async def find(self, user_id: str, thread_id: str) -> Closing | None:
        """The last closing of a conversation; or none."""
        ...

    async def keep(self, closing: Closing) -> None:
        """Note a closing, in place of the one before."""
        ...

    async def unread(self, moment: datetime, limit: int, part: int) -> list[Unread]:
        """Closed conversations to go on with by a moment, by their names, each with its next so many turns."""
        ...

    async def read_to(self, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], int]:
        """Up to which turn closed conversations were consolidated."""
        ...

    async def mark_consolidated(self, parts: Sequence[Unread]) -> None:
        """Note that parts of conversations were consolidated."""
        ...

    async def postpone(self, keys: Sequence[tuple[str, str]], until: datetime) -> None:
        """Let closed conversations not be gone on with before a moment."""
        ...

    async def remaining(self, turn_ids: Sequence[UUID]) -> frozenset[UUID]:
        """Those of some turns that are there."""
        ...
