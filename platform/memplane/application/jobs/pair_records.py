"""What of a user's memories is compared at night, what is noted of it, and what reads and keeps both."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from memplane.domain.jobs.pair_selection import Glance, PairCandidate


@dataclass(frozen=True, slots=True)
class PairCheck:
    """What came of two memories that were compared.

    Attributes:
        fingerprint: of the values of both.
        verdict: what one is to the other.
        checked_at: when.
        prompt_version: by which prompt a model was asked; ``None`` where rules have decided.
    """

    fingerprint: str
    verdict: str
    checked_at: datetime
    prompt_version: str | None = None


class Pairs(Protocol):
    """Memories that may be the same, and what was compared of them, within a transaction."""

    async def next_user(self, after: str | None, since: datetime) -> str | None:
        """The next user, by name, of whom an active memory changed since a moment; or none."""
        ...

    async def recent_facts(self, user_id: str, since: datetime, now: datetime, limit: int) -> list[Glance]:
        """What decides which of a user's facts are compared: of those that changed since a moment, the newest first.

        Only what is believed, holds now and is no item of a store.
        """
        ...

    async def candidates(self, user_id: str, ids: Sequence[UUID]) -> list[PairCandidate]:
        """Some of a user's active memories with what makes them findable, in the order of their ids."""
        ...

    async def related_pairs(self, ids: Sequence[UUID], kind: str) -> set[frozenset[UUID]]:
        """Between which of some memories there is a relation of a kind, whichever way it leads."""
        ...

    async def field_holders(self, user_id: str) -> frozenset[UUID]:
        """The memories that hold a decided field of a user's profile."""
        ...

    async def past_checks(self, user_id: str, since: datetime) -> list[PairCheck]:
        """The pairs of a user that were compared since a moment."""
        ...

    async def note(self, user_id: str, checks: Collection[PairCheck]) -> None:
        """Note pairs that were compared; one that was compared before is noted anew."""
        ...

    async def sweep(self, before: datetime, limit: int) -> None:
        """Forget pairs, of whichever user, that were compared before a moment; at most so many."""
        ...
