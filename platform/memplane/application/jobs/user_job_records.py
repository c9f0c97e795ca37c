"""Jobs that are done for each user once in a while: for whom there is something new, and what is kept of it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from memplane.domain.memory.memory import MemoryType


@dataclass(frozen=True, slots=True)
class News:
    """What of a user is new to a job.

    Attributes:
        job: its name.
        types: memories of which types count.
        turns: whether turns do.
        since: what is older does not.
        rested: users for whom it was done later than this are left.
        least: so many such memories since that moment there are at least.
    """

    job: str
    types: tuple[MemoryType, ...]
    turns: bool
    since: datetime
    rested: datetime
    least: int = 1


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A user of whom there is something new.

    Attributes:
        unit: the memory or turn that is.
        thread_id: the conversation of theirs in which something happened last, or none.
    """

    unit: UUID
    user_id: str
    thread_id: str | None


class JobUsers(Protocol):
    """For which users jobs were done, within a transaction."""

    async def due(self, news: News, after: UUID | None, limit: int) -> Sequence[Newcomer]:
        """What is new of users for whom the job is due, by its ids, of what comes after one; one row for each unit."""
        ...

    async def last_done(self, job: str, users: Collection[str]) -> Mapping[str, datetime]:
        """By which moments a job was done for users last."""
        ...

    async def keep(self, job: str, user_id: str, done_at: datetime) -> None:
        """Note that a job was done for a user."""
        ...

    async def forget(self, job: str, user_id: str) -> None:
        """Let a job look at a user again, as if it had not been done."""
        ...

    async def there(self, user_id: str, turns: Collection[UUID]) -> frozenset[UUID]:
        """Those of some turns of a user that are there."""
        ...
