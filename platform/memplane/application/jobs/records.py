"""What the work of the night hands to storage, and what it hands back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Due(StrEnum):
    """Which memories a job looks at."""

    EXPIRED = "expired"
    IDLE = "idle"
    DECAYING = "decaying"
    PURGE = "purge"
    PROMOTED = "promoted"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Memories that a job looks at.

    Attributes:
        due: which.
        moment: expired, idle or due to be purged by then; hit since then, for those to promote.
        limit: of idle ones only those of less importance; of those to promote only those with as many hits.
    """

    due: Due
    moment: datetime
    limit: int = 0


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
