"""Background work: what was done, what waits, what could not be done."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, StrictBool

from memplane.contracts.base import Message, Name, Request, Time
from memplane.domain.jobs.job_definitions import JobState


class JobRequest(Request):
    """A job to be done now, by a worker, for the caller's tenant."""

    name: Annotated[str, Field(min_length=1, max_length=32)]
    """Of the job: `expiry`, `decay` and so on."""


class CollectionRequest(Request):
    """Whose memories are looked through for what is kept no longer."""

    user_id: Name
    dry_run: StrictBool = False
    """Show what would be done, and change nothing."""


class CollectionRecord(Message):
    """What a collection came to."""

    outcome: Literal["collected", "dry_run"]
    user_id: str | None
    """The only user; null for the whole tenant."""
    promoted: int
    """Memories that were hit often and lately: they are settled."""
    archived: int
    """Those that there was no room for."""
    deleted: int
    """Those that expired, faded, or were not asked for in a long time; they can be restored for 30 days."""
    purged: int
    """Deleted ones whose time to be restored is over."""
    faded: int
    """Those whose confidence waned."""
    skipped: list[str]
    """What was left out, and why."""
    report: dict[str, float]
    """What was created, promoted, archived and deleted within a day, and averages of what is active."""


class JobRecord(Message):
    """One job of one period, and where it stands."""

    id: UUID
    name: str
    period: str
    """The day that it is of; what is asked for again on the same day is the same job."""
    state: JobState
    """`parked`: it failed as often as the policy allows, and waits for somebody to look at it."""
    progress: dict[str, float]
    """What was done so far, batch by batch."""
    attempts: int
    """How often in a row it was begun and came no further."""
    error: str | None
    """What was wrong with the last attempt."""
    input_tokens: int
    """What a language model read for it."""
    output_tokens: int
    """What it wrote for it."""
    cost: float
    """Of both, by the prices of the policy."""
    skipped: str | None
    """Why a part of the work was left out: `no model`, `budget spent` or `model unavailable`."""
    as_of: Time
    """The moment by which it decides."""
    started_at: Time
    due_at: Time | None
    """It is not tried before."""
    finished_at: Time | None


class JobList(Message):
    """A page of jobs, the newest first."""

    items: list[JobRecord]
    next: str | None
    """Cursor of the next page."""
