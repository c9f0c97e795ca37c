"""What the work of the night needs of a write transaction, stated as intent."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol
from uuid import UUID

from memplane.application.jobs.job_records import JobRun, MemorySelection, Swept, TokensSpent
from memplane.application.jobs.vector_records import Kind, Text
from memplane.application.recall.search_material import Vector
from memplane.domain.jobs.job_definitions import JobState
from memplane.domain.language.enrichment import Enriched
from memplane.domain.memory.active_days import Activity
from memplane.domain.memory.lifecycle import WeighedMemory
from memplane.domain.memory.memory import Layer, Memory, State
from memplane.domain.memory.scope import Scope
from memplane.domain.ranking.embedding_models import Column


class Upkeep(Protocol):
    """What becomes of memories with time, many at once, within a transaction."""

    async def lock_deleted(
        self, scope: Scope, memory_id: UUID | None, due: datetime | None, limit: int
    ) -> list[Memory]:
        """Deleted memories of a scope, locked, in whatever trust state: one, or all; those to purge by then alone."""
        ...

    async def purge(self, gone: Sequence[Memory]) -> None:
        """Remove memories, with what hangs on them."""
        ...

    async def users_of_derived(self, sources: Sequence[UUID]) -> frozenset[str]:
        """Whose memories name one of some sources, whichever users the tenant has."""
        ...

    async def lock_derived(self, sources: Sequence[UUID]) -> list[Memory]:
        """The tenant's memories that name one of some sources, locked, in the order of their ids."""
        ...

    async def due(self, wanted: MemorySelection, after: UUID | None, limit: int) -> list[tuple[UUID, str]]:
        """Ids, in their order, and users of the tenant's memories that a job looks at, of those after one."""
        ...

    async def lock_due(self, wanted: MemorySelection, ids: Sequence[UUID]) -> list[Memory]:
        """Those of some memories that it still looks at, locked, in the order of their ids."""
        ...

    async def move(self, ids: Sequence[UUID], state: State, purge_at: datetime | None, now: datetime) -> None:
        """Give memories that are locked another state."""
        ...

    async def fade(self, confidences: Mapping[UUID, float]) -> None:
        """Give memories that are locked another confidence; it is counted beside, without a version."""
        ...

    async def doubt(self, ids: Sequence[UUID], most: float) -> None:
        """Let memories that are locked be believed no more than that; it is counted beside, without a version."""
        ...

    async def promote(self, ids: Sequence[UUID]) -> None:
        """Settle memories that are locked; without a version."""
        ...

    async def next_crowded_user(
        self, most: int, layer: Layer | None, after: str | None, user: str | None = None
    ) -> tuple[str, Activity] | None:
        """The next user, by name, who has more active memories than that, of a layer or of all, with the activity."""
        ...

    async def weigh_memories(self, user_id: str, layer: Layer | None) -> list[WeighedMemory]:
        """What of each of a user's active memories, of a layer or of all, decides whether there is room for it."""
        ...

    async def lock_active(self, ids: Sequence[UUID]) -> list[Memory]:
        """Active memories by their ids, locked, in their order."""
        ...

    async def old_changes(self, before: datetime, limit: int) -> list[tuple[UUID, str]]:
        """Ids and users of changes of threads that were logged before a moment, the oldest first."""
        ...

    async def prune_changes(self, ids: Sequence[UUID]) -> None:
        """Remove changes of threads, which note the last one that they lost; their users are locked."""
        ...

    async def prune_events(self, before: datetime, limit: int) -> int:
        """Remove operational events that were noted before a moment, at most so many; how many were."""
        ...

    async def sweep_answers(self, after: datetime | None, given_by: datetime, limit: int) -> Swept:
        """Forget answers kept for idempotency keys that were given after a moment, or ever, and by another.

        Args:
            after: the moment after which they were given.
            given_by: the moment by which.
            limit: how many, and whatever was given in the same moment as the last of these.
        """
        ...

    async def sweep_proposals(self, lapsed_by: datetime, limit: int) -> int:
        """Remove proposals that lapsed by then, at most so many; how many were."""
        ...

    async def tally(self, since: datetime, user: str | None = None) -> Mapping[str, float]:
        """What was made, promoted, archived and deleted since a moment, averages, and facts lost to errors."""
        ...


class UserActivity(Protocol):
    """On which days users were active, as far as absences can be told from it; within a transaction."""

    async def note(self, user_ids: Collection[str], now: datetime, present_since: datetime, *, new: bool) -> None:
        """Note that users are active; who was not since ``present_since`` has come back from an absence.

        Args:
            user_ids: who.
            now: when.
            present_since: the moment since which a present user was active.
            new: whether users of whom nothing is noted yet are noted too.
        """
        ...

    async def of(self, user_ids: Collection[str]) -> Mapping[str, Activity]:
        """The activity of users; those of whom nothing is noted are left out."""
        ...


class Budgets(Protocol):
    """What a language model took within a day, a row for each user and one for the tenant; within a transaction."""

    async def reserve(self, user_id: str, day: date, tokens: int, cap: int) -> bool:
        """Reserve tokens, with the row locked until the transaction ends; False when the cap does not suffice."""
        ...

    async def settle(self, user_id: str, day: date, reserved: int, spent: TokensSpent) -> None:
        """Give back what was reserved, and count what was spent."""
        ...

    async def facts_extracted(self, user_ids: Collection[str], day: date) -> Mapping[str, int]:
        """How many facts were drawn with a model of what users said; none of those who are not told."""
        ...

    async def draw(self, user_id: str, day: date, facts: int) -> None:
        """Count facts that were drawn with a model."""
        ...

    async def sweep(self, before: date) -> None:
        """Remove what was counted of days before one."""
        ...


class Enrichments(Protocol):
    """The second look at memories with few entities, within a transaction."""

    async def due(self, by: str, after: UUID | None, limit: int) -> list[Memory]:
        """Active memories at which this did not look since they were written, after one, in the order of their ids."""
        ...

    async def lock(self, by: str, ids: Sequence[UUID]) -> list[Memory]:
        """Those of some memories that are still due, locked, in the order of their ids."""
        ...

    async def counts(self, ids: Sequence[UUID]) -> Mapping[UUID, int]:
        """How many entities memories mention; those without any are left out."""
        ...

    async def keep(self, user_id: str, found: Mapping[UUID, Enriched], now: datetime) -> int:
        """Link a user's memories with what they mention, and no longer with what they only seemed to.

        Returns:
            How many memories mention something that they did not before.
        """
        ...

    async def mark(self, ids: Sequence[UUID], by: str) -> None:
        """Note what looked at memories that are locked; without a version."""
        ...


class JobRuns(Protocol):
    """What of the work of the night was done, within a transaction."""

    async def find(self, name: str, period: str) -> JobRun | None:
        """The run of a period, locked until the transaction ends; or none."""
        ...

    async def by_id(self, job: UUID) -> JobRun | None:
        """A run, locked until the transaction ends; or none."""
        ...

    async def last(self, name: str) -> JobRun | None:
        """The run of the latest period; or none."""
        ...

    async def latest(self) -> list[JobRun]:
        """The run of the latest period of each job."""
        ...

    async def add(self, run: JobRun) -> bool:
        """Store a run, unless there is one of its period."""
        ...

    async def keep(self, run: JobRun) -> None:
        """Store a run; the one of its period is locked or new."""
        ...

    async def send(self, run: JobRun) -> None:
        """Tell the queue of a run that waits, when the transaction commits."""
        ...

    async def post(self, runs: Sequence[JobRun]) -> None:
        """Store new runs that wait, and tell the queue of them when the transaction commits."""
        ...

    async def remove(self, run: JobRun) -> None:
        """Delete a run."""
        ...

    async def next_due(self, now: datetime) -> JobRun | None:
        """The next run to work on, of those that wait and those whose worker is gone; or none."""
        ...

    async def lock_expired(self, now: datetime, since: datetime) -> list[JobRun]:
        """Runs whose worker's lease has ended, and those that could be begun since a moment and were not, locked."""
        ...

    async def all(self, limit: int, *, before: UUID | None = None, state: JobState | None = None) -> list[JobRun]:
        """Runs, the newest first: of those that are older than one, in a state."""
        ...


class VectorStore(Protocol):
    """The vectors of a tenant's memories and turns, many at once, within a transaction."""

    async def alone(self) -> None:
        """Wait until no other transaction writes vectors of the tenant, and let none begin until this one ends.

        Raises:
            StorageUnavailable: one takes too long.
        """
        ...

    async def count(self) -> int:
        """How many memories and turns there are, in whatever state."""
        ...

    async def without(self, kind: Kind, column: Column, after: UUID | None, limit: int) -> list[Text]:
        """Texts without a vector in a column, in the order of their ids, after one."""
        ...

    async def keep(self, kind: Kind, column: Column, vectors: Sequence[tuple[Text, Vector | None]]) -> int:
        """Store vectors in an empty column of texts that are as they were read; how many texts are not any more.

        Their users are locked.
        """
        ...

    async def holders(self, kind: Kind, column: Column, after: UUID | None, limit: int) -> list[tuple[UUID, str]]:
        """Ids, in their order, and users of what has a vector in a column, after one."""
        ...

    async def clear(self, kind: Kind, column: Column, ids: Sequence[UUID]) -> None:
        """Remove the vectors of a column; the users are locked."""
        ...
