"""Background work: what was done, what waits, what could not be done."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from memplane.contracts.base import Message, Request, Time
from memplane.domain.working import JobState


class JobRequest(Request):
    """A job to be done now, by a worker, for the caller's tenant."""

    name: Annotated[str, Field(min_length=1, max_length=32)]
    """Of the job: `expiry`, `decay` and so on."""


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
