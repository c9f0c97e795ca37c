"""What the deletion of a turn needs of a write transaction, stated as intent."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from memplane.application.records import Proposal
from memplane.domain.memory.memory import Turn


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """What a request with an idempotency key was answered, and by what it is found."""

    key_id: str
    name: str
    answer: Mapping[str, object]


class Removals(Protocol):
    """Turns that are deleted, and what else of a user points at them, within a transaction."""

    async def lock(self, user_id: str, turn_id: UUID) -> Turn | None:
        """A user's turn, locked until the transaction ends; or none."""
        ...

    async def turns_of(self, user_id: str, turn_ids: Collection[UUID]) -> list[Turn]:
        """Those of some turns that are there and a user's, in the order of their ids."""
        ...

    async def remove(self, turn: Turn) -> list[tuple[str, str]]:
        """Remove a locked turn with what it corroborated; the fields and keys of the values that it spoke for."""
        ...

    async def lapse(self, user_id: str, field: str, value_hash: str) -> bool:
        """Let a field's value apply no longer, if no person has decided on it; whether it did."""
        ...

    async def proposals(self, user_ids: Collection[str]) -> list[Proposal]:
        """Proposals of some users, in whatever state."""
        ...

    async def withdraw(self, proposal_ids: Sequence[UUID]) -> None:
        """Remove proposals."""
        ...

    async def unquote(
        self, user_ids: Collection[str], proposal_ids: Sequence[UUID], evidence: Collection[UUID]
    ) -> None:
        """Let what was decided stand without its evidence: the drafts of proposals go, and what fields rest on."""
        ...

    async def answers(self, turn: Turn) -> list[KeptAnswer]:
        """Answers since a turn was stored that tell of it, or sum its thread up."""
        ...

    async def tell_less(self, answers: Sequence[tuple[KeptAnswer, Mapping[str, object]]]) -> None:
        """Keep less of answers; of one that is empty it is only known that the request was carried out."""
        ...

    async def tombstoned_keys(self, user_id: str, where: str, keys: Collection[str]) -> frozenset[str]:
        """Those of some keys that are buried."""
        ...
