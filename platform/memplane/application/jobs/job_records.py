"""What the work of the night hands to storage, and what it hands back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from memplane.domain.jobs.job_definitions import JobState
from memplane.domain.memory.memory import new_id


class Due(StrEnum):
    """Which memories a job looks at."""

    EXPIRED = "expired"
    IDLE = "idle"
    DECAYING = "decaying"
    PURGE = "purge"
    PROMOTED = "promoted"


@dataclass(frozen=True, slots=True)
class MemorySelection:
    """Memories that a job looks at.

    Attributes:
        due: which.
        moment: expired, idle or due to be purged by then; hit since then, for those to promote.
        limit: of idle ones only those of less importance; of those to promote only those with as many hits.
        limits: the importance for some categories, instead of ``limit``.
        present_since: of idle and decaying ones only those of users who were active since then.
        user: the only user.
    """

    due: Due
    moment: datetime
    limit: int = 0
    limits: Mapping[str, int] = field(default_factory=dict)
    present_since: datetime | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Swept:
    """What was removed of what is kept in the order of time.

    Attributes:
        count: how much.
        last: the moment after which there may be more; ``None`` at the end.
    """

    count: int = 0
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class TokensSpent:
    """Tokens that a language model took.

    Attributes:
        input_tokens: what it read.
        output_tokens: what it wrote.
    """

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "TokensSpent") -> "TokensSpent":
        """Both together."""
        return TokensSpent(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@dataclass(frozen=True, slots=True)
class JobRun:
    """What of a job was done in a period.

    Attributes:
        period: the day, as ISO 8601 has it.
        as_of: the moment by which the whole run decides.
        place: where the next batch begins; ``None`` at the beginning.
        counts: what was done so far.
        finished_at: when it came to its end; ``None`` while it has not.
        worker: who is at it, until ``lease_until``.
        id: by which the queue and an administrator name it.
        state: where it stands.
        attempts: how often in a row it was begun and came no further.
        due_at: a waiting one is not begun before; ``None`` for at once.
        error: what was wrong with the last attempt.
        input_tokens: what a language model read for the batches that were done.
        output_tokens: what it wrote for them.
        cost: of both, by the prices that were in force.
        skipped: why a part of the work was left out: ``no model``, ``budget spent`` or ``model unavailable``.
    """

    name: str
    period: str
    as_of: datetime
    started_at: datetime
    place: str | None = None
    counts: Mapping[str, float] = field(default_factory=dict)
    finished_at: datetime | None = None
    worker: str | None = None
    lease_until: datetime | None = None
    id: UUID = field(default_factory=new_id)
    state: JobState = JobState.RUNNING
    attempts: int = 0
    due_at: datetime | None = None
    error: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's claim to a job that the queue gave it.

    Attributes:
        source: what the queue delivered.
        number: how often it delivered that before.
    """

    source: str
    number: int

    @property
    def worker(self) -> str:
        """How the run names the worker."""
        return f"{self.source}/{self.number}"

    def continues(self, worker: str | None) -> bool:
        """Whether a worker has the job by an earlier delivery of the same, which the queue has given up."""
        return worker is not None and worker.startswith(f"{self.source}/") and worker != self.worker
