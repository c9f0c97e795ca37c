"""Running jobs: batch by batch, each in one transaction with its note, so that nothing is done twice or left out."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from memplane.application.erasure.erasure_ports import NoLedger
from memplane.application.jobs.job_records import JobRun, Lease
from memplane.application.jobs.job_submission import enqueue, period_of
from memplane.application.jobs.lifecycle_jobs import AGAIN, ONCE_A_DAY, STEPS, JobBatch, Prepare, Step
from memplane.application.memories.gateway import Gateway, Write
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import MemplaneError, RecordNotFound, StateConflict, StorageUnavailable, TenantRemoved
from memplane.domain.identity.principal import JOB, KeyScope, Principal, Reach
from memplane.domain.jobs.job_definitions import (
    LIVE,
    NIGHTLY,
    ON_DEMAND,
    SESSION_CLOSE,
    JobState,
    ModelRules,
    WorkerRules,
)
from memplane.domain.policy.policy import Trust

logger = logging.getLogger("memplane.jobs")
LEASE = timedelta(minutes=5)
"""For so long after its last batch nobody else takes a job from a worker, unless the queue knows that it is gone."""
AT_ONCE = timedelta(0)
FOLLOWED_BY = {"sessions": "facts", SESSION_CLOSE: "facts"}
"""Jobs that find work where another one has done its own."""
Progress = Callable[[Mapping[str, float]], None]


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run of a job came to.

    Attributes:
        outcome: ``done``; ``unchanged`` when it was done in this period before; ``dry_run``.
        counts: what was done in this period, or would be.
        input_tokens: what a language model read for it.
        output_tokens: what it wrote for it.
        cost: of both, by the policy's prices.
        skipped: why a part of the work was left out.
    """

    name: str
    tenant: str
    outcome: str
    period: str
    counts: Mapping[str, float]
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    skipped: str | None = None


class _Undone(Exception):
    """A batch that is taken back."""

    def __init__(self, batch: JobBatch) -> None:
        super().__init__("dry run")
        self.batch = batch


class Jobs:
    """Doing a job for a tenant: by hand, or because the queue gave it to a worker.

    Args:
        storage: where the tenant's memories are.
        policies: says how it is done.
        gateway: through which everything is written.
        clock: the time.
        prepared: by name, the jobs that read and think before the transaction of a batch opens.
    """

    def __init__(
        self, storage: Storage, policies: Policies, gateway: Gateway, clock: Clock, prepared: Mapping[str, Prepare]
    ) -> None:
        self._storage = storage
        self._policies = policies
        self._prepared = prepared
        self._gateway = gateway
        self._clock = clock
        self._worker = str(uuid4())
        self._stopping = False

    def stop(self) -> None:
        """Hand back, after the batch under way, what the queue gave."""
        self._stopping = True

    async def run(
        self, name: str, tenant: str, *, dry_run: bool = False, as_of: datetime | None = None,
        progress: Progress = lambda _: None,
    ) -> RunResult:  # fmt: skip
        """Do a job for a tenant here and now, from where it was left in this period.

        Args:
            name: of the job.
            tenant: for whom.
            dry_run: whether everything is taken back; it tells what would be done.
            as_of: the moment by which it decides; now, unless it is said.
            progress: hears what was done so far after each batch.

        Raises:
            NotFound: there is no such job, or no such tenant.
            Conflict: another worker is at it, or has done it for a later day.
        """
        require_job(name)
        if not await self._storage.has_tenant(tenant):
            raise RecordNotFound(f"there is no tenant '{tenant}'")
        moment = as_of or self._clock()
        if dry_run:
            return await self._dry(name, tenant, moment, progress)
        run = await self._storage.write(Reach(tenant), lambda uow: self._begun(uow, name, moment))
        outcome = "unchanged" if run.state is JobState.DONE else "done"
        try:
            while run.state is not JobState.DONE:
                run = await self._batch(_principal(name, tenant), run, self._worker)
                progress(run.counts)
        except Exception as error:
            await self._failed(tenant, run, self._worker, error, None)
            raise
        return _come_to(run, tenant, outcome)

    async def perform(self, tenant: str, job: UUID, claim: Lease) -> timedelta | None:
        """Do a job that the queue gave to a worker.

        Returns:
            After how long the queue is to give it again; ``None`` when it need not.

        Raises:
            StorageError: what became of it cannot be noted.
        """
        try:
            taken = await self._storage.write(Reach(tenant), lambda uow: self._taken(uow, job, claim))
        except TenantRemoved:
            return None  # nothing is left to do
        if not isinstance(taken, JobRun):
            return taken
        run = taken
        try:
            require_job(run.name, (*NIGHTLY, *ON_DEMAND))
            while run.state is JobState.RUNNING:
                if self._stopping:
                    return await self._handed_back(tenant, run, claim.worker)
                run = await self._batch(_principal(run.name, tenant), run, claim.worker)
        except TenantRemoved:
            return None
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one job, the worker goes on with the next
            return await self._failed(tenant, run, claim.worker, error, self._policies.current.workers)
        if any(run.counts.values()):
            logger.info("%s of %s: %s", run.name, tenant, dict(run.counts))
            await self._followed(tenant, run.name)
        return None

    async def _followed(self, tenant: str, name: str) -> None:
        """Put what goes on with a job's work into the queue; should that fail, the schedule does it."""
        if self._policies.current.workers.schedules.get(FOLLOWED_BY.get(name, "")) is None:
            return  # nothing does, or it is switched off
        now, following = self._clock(), FOLLOWED_BY[name]
        try:
            await self._storage.write(Reach(tenant), lambda uow: enqueue(uow, following, now))
        except MemplaneError as error:
            logger.warning("%s of %s waits for its schedule: %s", following, tenant, error.code)

    async def _begun(self, uow: UnitOfWork, name: str, moment: datetime) -> JobRun:
        """The run of this period, with the lease taken: begun, gone on with, or found to be finished."""
        now, period = self._clock(), period_of(moment)
        last = await uow.jobs.last(name)
        if _overtaken(last, name, period):
            raise StateConflict(
                f"{name} was done for a later day already: it is not done for an earlier day after that"
            )
        run = await uow.jobs.find(name, period)
        if run is not None and run.state is JobState.DONE and name in ONCE_A_DAY:
            return run
        if run is not None and run.worker != self._worker and _leased(run, now):
            raise StateConflict(f"another worker is at {name} for {period}; it is waited for until {run.lease_until}")
        if run is None:
            run = JobRun(name, period, moment, now)
        elif run.state is JobState.DONE:
            run = replace(run, as_of=moment, started_at=now, finished_at=None, attempts=0, error=None, skipped=None)
        run = replace(
            run,
            state=JobState.RUNNING,
            worker=self._worker,
            lease_until=now + LEASE,
            due_at=None,
            finished_at=None,
        )
        await uow.jobs.keep(run)
        return run

    async def _taken(self, uow: UnitOfWork, job: UUID, claim: Lease) -> JobRun | timedelta | None:
        """The run with the lease taken; or how long somebody else has it, or what it waits for; or none at rest."""
        run, now = await uow.jobs.by_id(job), self._clock()
        if run is None or run.state not in LIVE:
            return None
        if _leased(run, now) and run.lease_until is not None and not claim.continues(run.worker):
            return run.lease_until - now
        if run.due_at is not None and now < run.due_at:
            return run.due_at - now
        ended = replace(run, finished_at=now, worker=None, lease_until=None, due_at=None)
        if run.attempts >= self._policies.current.workers.attempts:
            told = run.error or f"its worker was gone {run.attempts} times in the middle of it"
            logger.error("%s (%s) is parked: %s", run.name, run.id, told)
            await uow.jobs.keep(replace(ended, state=JobState.PARKED, error=told))
            return None
        if _overtaken(await uow.jobs.last(run.name), run.name, run.period):
            await uow.jobs.keep(replace(ended, state=JobState.CANCELLED, error="it was done for a later day already"))
            return None
        run = replace(
            run,
            state=JobState.RUNNING,
            attempts=run.attempts + 1,
            started_at=run.started_at if run.place is not None else now,
            worker=claim.worker,
            lease_until=now + LEASE,
            due_at=None,
        )
        await uow.jobs.keep(run)
        return run

    async def _batch(self, principal: Principal, run: JobRun, worker: str) -> JobRun:
        """One batch, and the note of it in the same transaction."""
        step = await self._step(principal, run.name, run.as_of, run.place)
        now, scrub = self._clock(), False

        async def work(write: Write) -> JobRun:
            nonlocal scrub
            here = await write.uow.jobs.find(run.name, run.period)
            if here is None or here.worker != worker or here.state is not JobState.RUNNING:
                raise StateConflict(f"another worker took {run.name} over")
            batch = await step(write, here.as_of, here.place)
            scrub, more = batch.scrub, batch.place is not None
            after = replace(
                _counted(here, batch, write.policy.workers.model),
                place=batch.place,
                state=JobState.RUNNING if more else JobState.DONE,
                finished_at=None if more else now,
                worker=worker if more else None,
                lease_until=now + LEASE if more else None,
                attempts=1 if more else here.attempts,
                error=None,
            )
            if more or run.name not in ON_DEMAND:
                await write.uow.jobs.keep(after)
            else:
                await write.uow.jobs.remove(after)
            return after

        done = await self._gateway.run(principal, self._policies.current, now, work)
        if scrub:
            await self._storage.scrub(principal.tenant)
        return done

    async def _step(self, principal: Principal, name: str, as_of: datetime, place: str | None) -> Step:
        """The next batch, with what it needs beside its transaction."""
        prepare = self._prepared.get(name)
        return STEPS[name] if prepare is None else await prepare(principal, as_of, place)

    async def _failed(
        self, tenant: str, run: JobRun, worker: str, error: Exception, rules: WorkerRules | None
    ) -> timedelta | None:
        """Note what was wrong, unless somebody else has the job by now: it waits for its next attempt, or is parked.

        By hand there is none who would try it again: it is parked at once.
        """

        async def noted(uow: UnitOfWork) -> timedelta | None:
            here, now = await uow.jobs.by_id(run.id), self._clock()
            if here is None or here.worker != worker or here.state is not JobState.RUNNING:
                return None
            passing = isinstance(error, StorageUnavailable)  # of the database, and not of the job
            here = replace(here, worker=None, lease_until=None, error=_told(error))
            if rules is None or (here.attempts >= rules.attempts and not passing):
                await uow.jobs.keep(replace(here, state=JobState.PARKED, finished_at=now))
                logger.error("%s of %s is parked after %d attempts: %s", run.name, tenant, here.attempts, here.error)
                return None
            pause = rules.pause_after(max(here.attempts, 1))
            attempted = max(here.attempts - passing, 0)
            here = replace(here, state=JobState.WAITING, due_at=now + pause, attempts=attempted)
            await uow.jobs.keep(here)
            return pause

        pause = await self._storage.write(Reach(tenant), noted)
        if pause is not None:
            logger.warning("%s of %s failed, and is tried again in %s: %s", run.name, tenant, pause, _told(error))
        if not isinstance(error, MemplaneError):
            logger.error("%s of %s met what it does not expect", run.name, tenant, exc_info=error)
        return pause

    async def _handed_back(self, tenant: str, run: JobRun, worker: str) -> timedelta:
        """Let another worker go on at once."""

        async def back(uow: UnitOfWork) -> None:
            here = await uow.jobs.by_id(run.id)
            if here is not None and here.worker == worker and here.state is JobState.RUNNING:
                attempts = max(here.attempts - 1, 0)
                await uow.jobs.keep(
                    replace(here, state=JobState.WAITING, worker=None, lease_until=None, attempts=attempts)
                )

        await self._storage.write(Reach(tenant), back)
        return AT_ONCE

    async def _dry(self, name: str, tenant: str, moment: datetime, progress: Progress) -> RunResult:
        """Each batch is done and taken back; the next begins where it ended."""
        run = JobRun(name, period_of(moment), moment, moment)
        batch, principal = JobBatch(), _principal(name, tenant)

        async def work(write: Write) -> None:
            raise _Undone(await step(replace(write, ledger=NoLedger()), moment, batch.place))

        while True:
            place = batch.place
            step = await self._step(principal, name, moment, place)
            try:
                await self._gateway.run(principal, self._policies.current, self._clock(), work)
            except _Undone as undone:
                batch = undone.batch
            run = _counted(run, batch, self._policies.current.workers.model)
            progress(run.counts)
            if batch.place in {None, AGAIN, place}:  # taken back, the same would be done for ever
                return _come_to(run, tenant, "dry_run")


def require_job(name: str, names: Collection[str] = NIGHTLY) -> None:
    """Stop where there is no such job among those that may be asked for, or among others.

    Raises:
        NotFound: there is none.
    """
    if name not in names:
        raise RecordNotFound(f"there is no job '{name}'; there are {', '.join(NIGHTLY)}")


def _principal(name: str, tenant: str) -> Principal:
    """Who does background work, as history names it."""
    return Principal(tenant, None, Trust.FULL, frozenset(KeyScope), f"{JOB}{name}")


def _overtaken(last: JobRun | None, name: str, period: str) -> bool:
    """Whether a job that is not done twice was done for a later day."""
    return last is not None and name in ONCE_A_DAY and last.period > period and last.state is not JobState.WAITING


def _leased(run: JobRun, now: datetime) -> bool:
    """Whether somebody is at it; a lease that ends later than any could is of a clock that was put back since."""
    return run.state is JobState.RUNNING and run.lease_until is not None and now < run.lease_until <= now + LEASE


def _told(error: Exception) -> str:
    """What an administrator may read of it: what an unexpected error says may be of somebody's memories."""
    if isinstance(error, MemplaneError):
        return f"{error.code}: {error.detail}"[:500]
    return f"unexpected {type(error).__name__}; the worker's log has the rest"


def _come_to(run: JobRun, tenant: str, outcome: str) -> RunResult:
    tokens = run.input_tokens, run.output_tokens
    return RunResult(run.name, tenant, outcome, run.period, run.counts, *tokens, run.cost, run.skipped)


def _counted(run: JobRun, batch: JobBatch, rules: ModelRules) -> JobRun:
    """A run with what a batch did, and what that took of a language model."""
    spent = batch.spent
    return replace(
        run,
        counts=_added(run.counts, batch.counts, run.name),
        input_tokens=run.input_tokens + spent.input_tokens,
        output_tokens=run.output_tokens + spent.output_tokens,
        cost=run.cost + rules.cost(spent.input_tokens, spent.output_tokens),
        skipped=batch.skipped or run.skipped,
    )


def _added(before: Mapping[str, float], more: Mapping[str, float], name: str) -> Mapping[str, float]:
    """Counts of a period so far; a report is as of now, and not a sum."""
    if name == "gc":
        return dict(more)
    return {each: before.get(each, 0) + more.get(each, 0) for each in {**before, **more}}
