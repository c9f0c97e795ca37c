"""What merging users needs of a write transaction, stated as intent."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from memplane.domain.identity.user_merges import UserMerge
from memplane.domain.memory.memory import Memory

Counts = Mapping[str, int]
"""How many rows, by table."""


@dataclass(frozen=True, slots=True)
class MergedMemoryRecord:
    """A memory that a merge moved or changed, as it left it.

    Attributes:
        version: while the memory has it, nobody has changed it since.
        moved: whether it belonged to the user that was merged.
        changes: fields with their values before and after, beside the user.
    """

    id: UUID
    version: int
    moved: bool
    changes: Mapping[str, Sequence[object]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnmergeCounts:
    """What an undone merge gave back, and what stays because it was changed since; by table.

    Attributes:
        memories: that belong to the former user again, as they are now.
    """

    memories: Sequence[Memory]
    returned: Counts
    kept: Counts


class UserMerges(Protocol):
    """Merges of users within a transaction."""

    async def standing(self, user_ids: Collection[str]) -> Mapping[str, UserMerge]:
        """Those of some users that were merged into another one, with the merge."""
        ...

    async def aliases(self, user_id: str) -> list[str]:
        """Users that were merged into a user."""
        ...

    async def page(
        self, user_id: str | None, among: Collection[str] | None, before: UUID | None, limit: int
    ) -> list[UserMerge]:
        """Merges, standing and undone ones, newest first.

        Args:
            user_id: one of the two users of each; ``None`` for any.
            among: users that both have to be; ``None`` for any.
            before: only those that are older than this one.
            limit: how many at most.
        """
        ...

    async def keep(self, merge: UserMerge) -> None:
        """Store a merge, or what became of it."""
        ...

    async def active(self, user_id: str, categories: Collection[str], limit: int) -> list[Memory]:
        """Active memories of a user in some categories, locked, the newest first."""
        ...

    async def rejected_in(self, user_id: str) -> list[str]:
        """The categories in which values of a user are buried."""
        ...

    async def move(self, merge: UserMerge, multiple: Collection[str], away: timedelta) -> Counts:
        """Move all rows of a user to the other one, and record them; how many were folded into rows that were there.

        Args:
            merge: the merge, which is stored.
            multiple: fields of a profile that have several values at a time.
            away: how long a gap in a user's activity counts as one stretch.
        """
        ...

    async def record(self, merge: UserMerge, memories: Sequence[MergedMemoryRecord]) -> None:
        """Record which memories a merge moved and changed."""
        ...

    async def versions(self, ids: Sequence[UUID]) -> Mapping[UUID, int]:
        """The versions that memories have now."""
        ...

    async def following(self, merge: UserMerge) -> UserMerge | None:
        """The merge that has moved this one's user on to another, if it stands."""
        ...

    async def move_back(self, merge: UserMerge) -> UnmergeCounts:
        """Give back what moved and was not changed since, and forget what was recorded."""
        ...

    async def forget(self, user_id: str) -> int:
        """Remove every merge from or into a user, for an erasure; how many."""
        ...

    async def expire(self, now: datetime, limit: int) -> int:
        """Forget what was recorded of merges that can no longer be undone; how many."""
        ...
