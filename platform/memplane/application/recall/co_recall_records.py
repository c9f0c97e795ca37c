"""What is counted of answers, stated as intent."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Protocol
from uuid import UUID

from memplane.domain.ranking.co_recall import CoRecallCount


class CoRecalls(Protocol):
    """What was recalled together, within a transaction."""

    async def note(self, pairs: Mapping[tuple[UUID, UUID], str], now: datetime) -> None:
        """Count pairs of memories, each of a user, as recalled together; those that are not the user's are left.

        A pair that was counted within the hour stays as it is.
        """
        ...

    async def users(self, after: str | None, limit: int) -> list[str]:
        """Users who have memories, in the order of their names, after one."""
        ...

    async def of(self, users: Collection[str]) -> list[CoRecallCount]:
        """All that was recalled together of some users."""
        ...

    async def strengthen(self, strengths: Mapping[UUID, float]) -> None:
        """Give relations other strengths; their users are locked."""
        ...

    async def forget(self, ids: Collection[UUID]) -> None:
        """Remove relations; their users are locked."""
        ...
