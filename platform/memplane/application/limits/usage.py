"""How much is stored of users, and what they set, within a transaction."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class StoredAmounts:
    """How much there is.

    Attributes:
        memories: that are stored; deleted ones are not counted.
        bytes: of the texts of these and of turns, in UTF-8.
        writes: on the day, as far as they are counted: where they are limited.
    """

    memories: int = 0
    bytes: int = 0
    writes: int = 0


class UsageStore(Protocol):
    """How much there is, within a transaction; what the transaction writes is counted at once."""

    async def spend(self, user_id: str, day: str, writes: int) -> StoredAmounts:
        """Count writes of a user on a day; how much there is of the user after that."""
        ...

    async def of_tenant(self, day: str) -> StoredAmounts:
        """How much there is of all users."""
        ...

    async def of_user(self, user_id: str, day: str) -> StoredAmounts:
        """How much there is of a user."""
        ...


class SettingsStore(Protocol):
    """What users set, within a transaction."""

    async def set_time_zone(self, user_id: str, name: str | None, actor: str, now: datetime) -> bool:
        """Store a user's time zone; False when it was that already."""
        ...
