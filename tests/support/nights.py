"""The work of the night in tests: jobs with a clock of their own, and memories of a given age."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from memplane.application.jobs.job_queue import JobQueue
from memplane.application.jobs.job_records import JobRun, Lease
from memplane.application.jobs.job_runner import Jobs, RunResult
from memplane.domain.jobs.job_definitions import JobState
from support.callers import Tenant

NOON = (datetime.now(UTC) + timedelta(days=1, hours=1)).replace(hour=12, minute=0, second=0, microsecond=0)
"""A moment that is later than whatever a test writes, by half a day and more even where the tests run over midnight."""


@dataclass
class Night:
    """Jobs of one worker for one tenant, at a moment that the test sets."""

    tenant: Tenant
    now: datetime = NOON

    def __post_init__(self) -> None:
        wired = self.tenant.server.wired
        self.jobs = Jobs(wired.storage, wired.policies, wired.gateway, lambda: self.now, wired.jobs._prepared)
        self.queue = JobQueue(wired.storage, wired.policies, lambda: self.now)

    def run(self, name: str, **more: Any) -> RunResult:  # noqa: ANN401 - of the run
        """Run a job to its end."""
        return self.tenant.server.run(self.jobs.run(name, self.tenant.name, **more))

    def ask(self, name: str) -> JobRun:
        """Put a job into the queue."""
        return self.tenant.server.run(self.queue.ask(self.tenant.name, name))

    def perform(self, job: JobRun, number: int = 0, source: str = "test") -> timedelta | None:
        """Do a job as a worker to whom the queue gave it so many times before."""
        return self.tenant.server.run(self.jobs.perform(self.tenant.name, job.id, Lease(source, number)))

    def found(self, job: JobRun) -> JobRun:
        """A job as it is now."""
        page, _ = self.tenant.server.run(self.queue.page(self.tenant.name, 1000))
        return next(each for each in page if each.id == job.id)

    def worked_off(self) -> list[JobRun]:
        """Do what waits, as a worker would, and list all jobs."""
        page, _ = self.tenant.server.run(self.queue.page(self.tenant.name, 1000, state=JobState.WAITING))
        for each in reversed(page):
            self.perform(each)
        return list(self.tenant.server.run(self.queue.page(self.tenant.name, 1000))[0])

    def counts(self, name: str, **more: Any) -> Mapping[str, float]:  # noqa: ANN401 - of the run
        """What a job did in this period."""
        return self.run(name, **more).counts


def ago(days: float, now: datetime = NOON) -> str:
    """A moment so many days before another."""
    return (now - timedelta(days=days)).isoformat(timespec="microseconds")


def age(tenant: Tenant, memory: str, days: float, **columns: object) -> None:
    """Let a memory have been recorded, and touched last, so many days ago; with other columns as they are said."""
    values = {"recorded_at": ago(days), "updated_at": ago(days)} | columns
    assigned = ", ".join(f"{name} = %({name})s" for name in values)
    tenant.rows(f"UPDATE memories SET {assigned} WHERE id = %(id)s", id=UUID(memory), **values)


def looked(tenant: Tenant, job: str, days: float, now: datetime) -> None:
    """Let a job have looked at its users last so many days before a moment."""
    statement = "UPDATE job_users SET done_at = %(then)s WHERE tenant_id = %(tenant)s AND name = %(name)s"
    tenant.rows(statement, name=job, then=ago(days, now))


def state(tenant: Tenant, memory: str, column: str = "state") -> Any:  # noqa: ANN401 - of the column
    """A column of a memory's row; ``None`` when there is none."""
    found = tenant.rows(f"SELECT {column} FROM memories WHERE id = %(id)s", id=UUID(memory))
    return found[0][column] if found else None


class Stopped(BaseException):
    """A worker that ends after a batch, and has no time to say so."""


def after_batches(count: int) -> Callable[[Mapping[str, float]], None]:
    """Ends a worker after so many batches."""
    left = [count]

    def told(_counts: Mapping[str, float]) -> None:
        left[0] -= 1
        if left[0] <= 0:
            raise Stopped

    return told
