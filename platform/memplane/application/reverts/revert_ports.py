"""What taking back a writer's changes needs of a write transaction, stated as intent."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import ContextField
from memplane.domain.memory.memory import Memory, Turn
from memplane.domain.memory.revert_rules import RecordedChange
from memplane.domain.memory.undo_records import UndoRecord


@dataclass(frozen=True, slots=True)
class RevertedWriter:
    """Whose changes are taken back, and since when.

    Attributes:
        key_id: a key, or the subject of tokens; ``None`` where an agent is named.
        agent: every key of this agent.
        keys: the keys of the agent, for what is noted by key alone.
        since: what was written earlier stays.
    """

    key_id: str | None
    agent: str | None
    since: datetime
    keys: frozenset[str] = frozenset()

    @property
    def actor(self) -> str | None:
        """How history names the agent."""
        return None if self.agent is None else f"agent:{self.agent}"

    def wrote(self, key_id: object, actor: str) -> bool:
        """Whether a record of the history is the writer's."""
        return actor == self.actor if self.key_id is None else key_id == self.key_id


@dataclass(frozen=True, slots=True)
class RejectedValue:
    """A value that a person rejected, by its key and where that counts."""

    id: UUID
    category: str
    key: str
    actor: str
    ts: datetime


class Reverts(Protocol):
    """What one writer changed, and what else there is to it, within a transaction."""

    async def users(self, writer: RevertedWriter) -> list[str]:
        """User ids with writes of this writer that are not reverted yet, sorted."""
        ...

    async def deeds_of(
        self, writer: RevertedWriter, user_id: str, before: UUID | None, limit: int
    ) -> list[RecordedChange]:
        """What of the writer's changes was not taken back, newest first, those older than ``before``."""
        ...

    async def deeds_on(self, ids: Collection[UUID], since: datetime) -> Mapping[UUID, list[RecordedChange]]:
        """What anybody did to memories since a moment, or since the first change that was taken back; oldest first."""
        ...

    async def writer_records(self, writer: RevertedWriter, user_id: str, since: datetime) -> list[UndoRecord]:
        """What the writer changed besides memories and was not taken back, newest first."""
        ...

    async def decision_records(self, user_id: str, since: datetime) -> list[UndoRecord]:
        """What anybody's decisions on fields of a user replaced since a moment."""
        ...

    async def proposal_records(self, proposals: Collection[UUID]) -> Mapping[UUID, list[UndoRecord]]:
        """Who made or repeated proposals, by proposal."""
        ...

    async def turns(self, writer: RevertedWriter, user_id: str, since: datetime) -> list[Turn]:
        """A user's turns that the writer recorded since a moment."""
        ...

    async def memories(self, ids: Collection[UUID]) -> list[Memory]:
        """Memories in whatever state, locked."""
        ...

    async def ended_by(self, user_id: str, ids: Collection[UUID]) -> list[UUID]:
        """Memories of a user in whose place others are."""
        ...

    async def changed_since(self, user_id: str, since: datetime) -> list[Memory]:
        """Memories of a user that hold or held and were changed since a moment, locked."""
        ...

    async def holding(self, memories: Collection[Memory]) -> list[Memory]:
        """Other active memories of the values and names of some of one user."""
        ...

    async def disputes(self, ids: Collection[UUID]) -> Mapping[UUID, frozenset[UUID]]:
        """By memory that disputes one of some, all that it disputes."""
        ...

    async def rejected_memories(self, user_id: str, but: Collection[UUID]) -> list[Memory]:
        """What a person rejected of a user, but for some."""
        ...

    async def fields(self, user_id: str) -> list[ContextField]:
        """All decided fields of a user."""
        ...

    async def corroborations(self, user_id: str) -> list[tuple[str, str, UUID]]:
        """What corroborates benign fields of a user: field, value and turn."""
        ...

    async def standing(self, gone: UUID, kept: UUID) -> Mapping[str, Any]:
        """Two entities before one is put into the other, as an undo record has them."""
        ...

    async def replace(self, memories: Sequence[tuple[Memory, SearchMaterial | None]]) -> None:
        """Store locked memories, with search material where their words changed; those that leave come first."""
        ...

    async def mention(self, memories: Mapping[UUID, Sequence[UUID]]) -> None:
        """Note which entities memories mention, instead of those that they did before."""
        ...

    async def remove_turns(self, user_id: str, turns: Sequence[Turn]) -> None:
        """Remove turns, and what they corroborated."""
        ...

    async def put_fields(self, gone: Sequence[ContextField], back: Sequence[ContextField]) -> None:
        """Remove decided fields, and store others."""
        ...

    async def reopen(self, proposals: Collection[UUID]) -> None:
        """Let decided proposals wait again."""
        ...

    async def tombstones_since(self, user_id: str, since: datetime) -> list[RejectedValue]:
        """Values of a user that were buried since a moment."""
        ...

    async def lift(self, graves: Collection[UUID]) -> None:
        """Take back what was buried."""
        ...

    async def unlink(self, kind: str, pairs: Collection[tuple[UUID, UUID]]) -> None:
        """Remove relations of a kind between pairs, in either direction."""
        ...

    async def reopen_sessions(self, user_id: str, summaries: Collection[UUID]) -> None:
        """Let conversations be closed again whose summaries are gone."""
        ...

    async def unname(self, entity_id: UUID, alias_key: str) -> bool:
        """Take another name from an entity; False when it does not have it."""
        ...

    async def unfold(self, before: Mapping[str, Any]) -> bool:
        """Take an entity out of another again; False when that one is gone, or the name is taken."""
        ...

    async def mark(self, receipt: UUID, deeds: Sequence[RecordedChange], noted: Sequence[UndoRecord]) -> None:
        """Note that changes are taken back."""
        ...

    async def unmark(self, user_id: str, receipts: Collection[UUID]) -> None:
        """Clear the mark of these receipts from a user's undo records: a reverted revert."""
        ...

    async def count_refused(self, user_id: str, since: datetime, categories: Collection[str] | None) -> int:
        """Count refused writes for a user since a moment, by any sender, in the given categories or in all."""
        ...

    async def keys_made(self, writer: RevertedWriter) -> list[str]:
        """Keys that the writer made or renewed since."""
        ...

    async def checkpoints(self, writer: RevertedWriter, users: Collection[str] | None) -> int:
        """How many checkpoints and supervisors' states of some or all users are as the writer saved them since."""
        ...
