"""What sealing and verifying the history need of a transaction, stated as intent."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from memplane.domain.privacy.audit_chain import ChainEntry, Head


@dataclass(frozen=True, slots=True)
class SealState:
    """How far a tenant's history is sealed.

    Attributes:
        head: of the chain.
        sealed_at: when the last batch was; ``None`` before the first.
        unsealed: entries that no seal covers yet.
    """

    head: Head
    sealed_at: datetime | None
    unsealed: int


class Chain(Protocol):
    """The chain over a tenant's history, within a transaction."""

    async def state(self) -> SealState:
        """How far it goes."""
        ...

    async def head(self) -> Head:
        """Its end."""
        ...

    async def at(self, position: int) -> Head:
        """The chain's end, had it that many entries."""
        ...

    async def next_unsealed(self, limit: int) -> list[ChainEntry]:
        """Entries that no seal covers, by their ids."""
        ...

    async def seal(self, after: Head, entries: Sequence[ChainEntry], now: datetime) -> int:
        """Put entries at the end of the chain, and seal it; how many."""
        ...

    async def entries(self, after: int, limit: int) -> list[ChainEntry]:
        """Entries of the chain in order."""
        ...

    async def seals(self, after: int, limit: int) -> list[Head]:
        """The heads that were sealed in a part of the chain."""
        ...

    async def last_seal(self) -> Head | None:
        """The last head that was sealed."""
        ...

    async def erasers(self, ids: Collection[UUID]) -> Mapping[UUID, str]:
        """Which of some ids are those of a purge, or of a receipt that the history tells of; and the event."""
        ...
