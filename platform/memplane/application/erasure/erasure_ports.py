"""What an erasure needs of a write transaction, and where it is noted outside the database, stated as intent."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from memplane.application.records import TombstoneOrigin
from memplane.domain.memory.memory import Memory
from memplane.domain.privacy.erasure import Erasure

Counts = Mapping[str, int]
"""How many rows, by what they are."""
Buried = tuple[str, str]
"""Where a value is buried, and by which hash."""


@dataclass(frozen=True, slots=True)
class TurnFingerprint:
    """A turn, as far as an erasure knows it again."""

    id: UUID
    thread_id: str
    text: str


class Erasures(Protocol):
    """Receipts, keyed tombstones, and whatever there is of one user, within a transaction."""

    async def keys(self) -> list[bytes]:
        """The tenant's keys for hashes of what was erased, the oldest first; none while nobody was."""
        ...

    async def fences(self, users: Collection[str]) -> tuple[list[bytes], Mapping[str, str]]:
        """The tenant's keys, and the standing merges from or into some users, by the merged one."""
        ...

    async def add_key(self, key: bytes, now: datetime) -> None:
        """Store a key beside those that there are; one that is there stays as it is."""
        ...

    async def of_subjects(self, subjects: Collection[str]) -> list[Erasure]:
        """The erasures of users, by the hashes of their names, the oldest first."""
        ...

    async def all(self) -> list[Erasure]:
        """Every erasure of the tenant, the oldest first."""
        ...

    async def next_unfinished(self, after: UUID | None = None) -> Erasure | None:
        """The oldest erasure that was begun and is not finished; of those that came after one."""
        ...

    async def keep(self, erasure: Erasure) -> None:
        """Store what was erased so far."""
        ...

    async def has_tombstone(
        self, subject: str, where: str, hashes: Collection[str], said: datetime | None = None
    ) -> bool:
        """Whether one of some values is buried; where ``said`` is given, erased values count if they went later."""
        ...

    async def bury(self, subject: str, buried: Sequence[Buried], burial: TombstoneOrigin) -> None:
        """Bury values; one that is buried already is so from the later moment on, and a person's verdict stays one."""
        ...

    async def graves(self, subject: str, reason: str, after: Buried | None, limit: int) -> list[Buried]:
        """What is buried of a user for a reason, in one order."""
        ...

    async def memories(self, user_id: str, limit: int) -> list[Memory]:
        """Memories of a user, in whatever state, locked."""
        ...

    async def turns(self, user_id: str, limit: int) -> list[TurnFingerprint]:
        """Turns of a user."""
        ...

    async def derived_from(self, ids: Collection[UUID], user_id: str) -> list[Memory]:
        """Memories of other users than this one that were derived from some units, locked."""
        ...

    async def take_tombstones(self, user_id: str, limit: int) -> list[Buried]:
        """Take the tombstones of a user out; what they were."""
        ...

    async def field_values(self, user_id: str, limit: int) -> list[Buried]:
        """The values of a user's fields, decided and proposed, by the field and their keys."""
        ...

    async def forget_history(self, receipt: UUID, memory_ids: Sequence[UUID], limit: int) -> int:
        """Take the words of a user out of the history, of some memories and of others; how many entries."""
        ...

    async def remove(self, memory_ids: Sequence[UUID], turn_ids: Sequence[UUID]) -> Counts:
        """Remove memories with their relations and mentions, and turns."""
        ...

    async def sweep(self, user_id: str, limit: int) -> Counts:
        """Remove what else there is of a user, so many rows of each table at most."""
        ...

    async def finish(self, user_id: str, now: datetime) -> Counts:
        """Remove what there is one of for a thread or a user, once the rest is gone."""
        ...

    async def count(self, user_id: str) -> Counts:
        """How many rows there are of a user."""
        ...

    async def users(self) -> list[str]:
        """Every user of whom there is a row."""
        ...


class ErasureLedger(Protocol):
    """Notes of erasures outside the database: a backup that is restored does not have the newest."""

    async def note(self, entries: Sequence[Mapping[str, object]]) -> None:
        """Store notes before the erasure that they tell of is committed.

        Raises:
            StorageUnavailable: they cannot be stored; nothing is erased then.
        """
        ...


class NoLedger:
    """Where no place outside the database is named."""

    async def note(self, entries: Sequence[Mapping[str, object]]) -> None:
        """Keep nothing."""
