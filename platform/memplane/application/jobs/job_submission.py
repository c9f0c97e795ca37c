"""Putting a job into the queue, within a transaction."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from memplane.application.jobs.job_records import JobRun
from memplane.application.jobs.lifecycle_jobs import ONCE_A_DAY
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import StateConflict
from memplane.domain.jobs.job_definitions import LIVE, JobState
from memplane.domain.memory.memory import new_id

_PERIOD = 10
"""Characters of a period: of a run on demand, the random end of its id."""


async def enqueue(uow: UnitOfWork, name: str, now: datetime) -> JobRun:
    """Put a job into the queue on the transaction that is open: a run for each period, however often it is asked for.

    Returns:
        The run: one that waits or is at work stays as it is, and so does one whose work is not done twice.
    """
    new = JobRun(name, period_of(now), now, now, state=JobState.WAITING)
    if await uow.jobs.add(new):
        await uow.jobs.send(new)
        return new
    run = await uow.jobs.find(name, new.period)
    if run is None:
        raise StateConflict(f"{name} was changed at this moment; try again")
    if run.state in LIVE or (run.state is JobState.DONE and name in ONCE_A_DAY):
        return run
    if run.state is JobState.DONE:
        run = replace(run, as_of=now, started_at=now, skipped=None)
    return await waiting(uow, replace(run, finished_at=None))


async def enqueue_for(uow: UnitOfWork, name: str, users: Collection[str], now: datetime) -> None:
    """Put a job on demand into the queue on the transaction that is open: a run of its own for each user.

    No run of another write is looked at or locked: a worker locks a run before its user, a write its user first.
    """
    ids = [(user, new_id()) for user in sorted(users)]
    runs = [JobRun(name, job.hex[-_PERIOD:], now, now, place=user, id=job, state=JobState.WAITING) for user, job in ids]
    if runs:
        await uow.jobs.post(runs)


async def waiting(uow: UnitOfWork, run: JobRun) -> JobRun:
    """Let a run wait from the beginning of its attempts, and tell the queue."""
    run = replace(run, state=JobState.WAITING, attempts=0, error=None, worker=None, lease_until=None, due_at=None)
    await uow.jobs.keep(run)
    await uow.jobs.send(run)
    return run


def period_of(moment: datetime) -> str:
    """The day of a moment, as ISO 8601 has it."""
    return moment.date().isoformat()
