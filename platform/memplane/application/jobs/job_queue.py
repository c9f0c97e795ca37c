"""What waits to be done in the background: put into the queue when it is due or asked for, looked at, cancelled."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from memplane.application.jobs.job_records import JobRun
from memplane.application.jobs.job_runner import LEASE, require_job
from memplane.application.jobs.job_submission import enqueue, period_of, waiting
from memplane.application.jobs.lifecycle_jobs import ONCE_A_DAY
from memplane.application.limits.idempotency import Once, run_once
from memplane.application.memories.authorization import require_full
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import LimitExceeded, MemplaneError, RecordNotFound, StateConflict, UserForbidden
from memplane.domain.identity.principal import KeyScope, Principal, Reach
from memplane.domain.jobs.job_definitions import LIVE, NIGHTLY, JobState
from memplane.domain.policy.policy import Policy

logger = logging.getLogger("memplane.jobs")
MAX_PAGE = 1000
SWEEP = 2 * LEASE
"""How often runs are looked for whose worker is gone without the queue's knowledge."""
FORGOTTEN = timedelta(hours=1)
"""Of a run that waits for so long the queue is told again; a message that comes twice does no harm."""
_Settled = tuple[str, tuple[datetime | None, ...]]


class JobQueue:
    """The jobs of each tenant that wait, are at work, or came to an end."""

    def __init__(self, storage: Storage, policies: Policies, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._clock = clock
        self._scheduled: dict[str, _Settled] = {}
        self._swept: dict[str, datetime] = {}

    async def schedule(self) -> None:
        """Put into the queue what is due by its schedule, for every tenant; what fails leaves the rest."""
        now, policy = self._clock(), self._policies.current
        due = {name: _moment(policy, name, now) for name in NIGHTLY}
        settled = (policy.digest, tuple(due.values()))
        for tenant in await self._storage.tenants():
            if self._scheduled.get(tenant) == settled and now < self._swept[tenant] + SWEEP:
                continue  # nothing became due since the last time
            try:
                await self._storage.write(Reach(tenant), lambda uow: self._scheduling(uow, due, now))
            except MemplaneError as error:
                logger.warning("the jobs of %s could not be scheduled, and are tried again: %s", tenant, error)
                continue
            self._scheduled[tenant], self._swept[tenant] = settled, now

    async def ask(self, tenant: str, name: str) -> JobRun:
        """Let a job be done by a worker, as soon as one is free.

        Returns:
            Its run: a new one, or the one of this period that waits or is at work.

        Raises:
            NotFound: there is no such job, or no such tenant.
        """
        require_job(name)
        await self._require_tenant(tenant)
        now = self._clock()
        return await self._storage.write(Reach(tenant), lambda uow: enqueue(uow, name, now))

    async def page(
        self, tenant: str, limit: int, *, before: UUID | None = None, state: JobState | None = None
    ) -> tuple[Sequence[JobRun], bool]:
        """Runs, the newest first, and whether there are more.

        Args:
            tenant: of whom.
            limit: the most.
            before: the last one of the page before.
            state: only those in it.

        Raises:
            LimitExceeded: it is too much.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise LimitExceeded(f"limit: {limit}, it must be 1 to {MAX_PAGE}", field="limit")
        found = await self._storage.write(
            Reach(tenant), lambda uow: uow.jobs.all(limit + 1, before=before, state=state)
        )
        return found[:limit], len(found) > limit

    async def cancel(self, tenant: str, job: UUID) -> JobRun:
        """Let a job that waits or is at work not be done, or not any further: what it did stays done.

        Raises:
            NotFound: there is none, or it is another tenant's.
            Conflict: it has come to its end.
        """
        return await self._changed(tenant, job, self._cancelled)

    async def retry(self, tenant: str, job: UUID) -> JobRun:
        """Let a job that was parked or cancelled be done again, from where it was left.

        Raises:
            NotFound: there is none, or it is another tenant's.
            Conflict: it is neither.
        """
        return await self._changed(tenant, job, self._retried)

    async def tenants(self) -> Sequence[str]:
        """Every tenant."""
        return await self._storage.tenants()

    async def _changed(self, tenant: str, job: UUID, change: Callable[[JobRun], JobRun]) -> JobRun:
        return await self._storage.write(Reach(tenant), lambda uow: change_run(uow, job, change))

    def _cancelled(self, run: JobRun) -> JobRun:
        return cancel_run(run, self._clock())

    def _retried(self, run: JobRun) -> JobRun:
        return retry_run(run)

    async def _require_tenant(self, tenant: str) -> None:
        if not await self._storage.has_tenant(tenant):
            raise RecordNotFound(f"there is no tenant '{tenant}'")

    async def _scheduling(self, uow: UnitOfWork, due: Mapping[str, datetime | None], now: datetime) -> None:
        # the worker is gone, and so, it may be, is the message; or it came from a database with a queue of another kind
        for run in await uow.jobs.lock_expired(now, now - FORGOTTEN):
            waiting = replace(run, state=JobState.WAITING, worker=None, lease_until=None, due_at=now)
            await uow.jobs.keep(waiting)
            await uow.jobs.send(waiting)
        latest = {run.name: run for run in await uow.jobs.latest()}
        for name, moment in due.items():
            if moment is not None and _is_due(latest.get(name), name, moment, now):
                await enqueue(uow, name, now)


class JobAdministration:
    """The same for the administrators of a tenant, by fully trusted keys with the scope ``admin``."""

    def __init__(self, storage: Storage, queue: JobQueue, clock: Clock) -> None:
        self._storage = storage
        self._queue = queue
        self._clock = clock

    async def page(
        self, principal: Principal, limit: int, *, before: UUID | None = None, state: JobState | None = None
    ) -> tuple[Sequence[JobRun], bool]:
        """Runs of the tenant's jobs, the newest first, and whether there are more.

        Raises:
            ScopeForbidden, TrustTooLow, UserForbidden: the key may not.
            LimitExceeded: it is too much.
        """
        _require_operator(principal)
        return await self._queue.page(principal.tenant, limit, before=before, state=state)

    async def ask(self, principal: Principal, name: str, *, once: Once[JobRun] | None = None) -> JobRun:
        """Let a job be done by a worker, as soon as one is free.

        Raises:
            ScopeForbidden, TrustTooLow, UserForbidden: the key may not.
            NotFound: there is no such job.
            AlreadyDone, IdempotencyMismatch: the request was carried out before; its key was used for another one.
        """
        _require_operator(principal)
        require_job(name)
        now = self._clock()
        return await run_once(self._storage, principal, lambda uow: enqueue(uow, name, now), now, once=once)

    async def cancel(self, principal: Principal, job: UUID, *, once: Once[JobRun] | None = None) -> JobRun:
        """Let a job that waits or is at work not be done, or not any further: what it did stays done.

        Raises:
            ScopeForbidden, TrustTooLow, UserForbidden: the key may not.
            NotFound: there is none, or it is another tenant's.
            Conflict: it has come to its end.
        """
        now = self._clock()
        return await self._changed(principal, job, lambda run: cancel_run(run, now), once)

    async def retry(self, principal: Principal, job: UUID, *, once: Once[JobRun] | None = None) -> JobRun:
        """Let a job that was parked or cancelled be done again, from where it was left.

        Raises:
            ScopeForbidden, TrustTooLow, UserForbidden: the key may not.
            NotFound: there is none, or it is another tenant's.
            Conflict: it is neither.
        """
        return await self._changed(principal, job, retry_run, once)

    async def _changed(
        self, principal: Principal, job: UUID, change: Callable[[JobRun], JobRun], once: Once[JobRun] | None
    ) -> JobRun:
        _require_operator(principal)
        work = lambda uow: change_run(uow, job, change)  # noqa: E731 - one line, used once
        return await run_once(self._storage, principal, work, self._clock(), once=once)


async def change_run(uow: UnitOfWork, job: UUID, change: Callable[[JobRun], JobRun]) -> JobRun:
    """Change a run, and tell the queue if it waits then.

    Raises:
        NotFound: there is none.
        Conflict: it is not in a state for that.
    """
    run = await uow.jobs.by_id(job)
    if run is None:
        raise RecordNotFound("there is no such job")
    run = change(run)
    if run.state is JobState.WAITING:
        return await waiting(uow, run)
    await uow.jobs.keep(run)
    return run


def cancel_run(run: JobRun, now: datetime) -> JobRun:
    """A run that goes no further: its worker finds out before its next batch.

    Raises:
        Conflict: it has come to its end.
    """
    if run.state not in LIVE:
        raise StateConflict(f"the job is {run.state} and cannot be cancelled", state=run.state.value)
    return replace(run, state=JobState.CANCELLED, finished_at=now, worker=None, lease_until=None, due_at=None)


def retry_run(run: JobRun) -> JobRun:
    """A run that waits again.

    Raises:
        Conflict: it was neither parked nor cancelled.
    """
    if run.state not in (JobState.PARKED, JobState.CANCELLED):
        raise StateConflict(
            f"the job is {run.state}: only one that is parked or cancelled is retried", state=run.state.value
        )
    return replace(run, state=JobState.WAITING, finished_at=None)


def _moment(policy: Policy, name: str, now: datetime) -> datetime | None:
    schedule = policy.workers.schedules.get(name)
    return None if schedule is None else schedule.last(now)


def _is_due(run: JobRun | None, name: str, moment: datetime, now: datetime) -> bool:
    """Whether a job was not begun since the moment that its schedule names; a new tenant's only on that day."""
    if run is None:
        return moment.date() == now.date()
    done_today = run.state is JobState.DONE and name in ONCE_A_DAY and run.period >= period_of(moment)
    return run.as_of < moment and run.state not in LIVE and not done_today


def _require_operator(principal: Principal) -> None:
    """Refuse who may not decide about work that concerns every user of the tenant.

    Raises:
        ScopeForbidden, TrustTooLow, UserForbidden: the key may not.
    """
    principal.require(KeyScope.ADMIN)
    require_full(principal, "see and change background work")
    if principal.users is not None:
        raise UserForbidden("background work concerns every user of the tenant: this key is bound to some")
