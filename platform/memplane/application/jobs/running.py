"""Running jobs: batch by batch, each in one transaction with its note, so that nothing is done twice or left out."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import uuid4

from memplane.application.gateway import Gateway, Write
from memplane.application.jobs.records import JobRun
from memplane.application.jobs.steps import JOBS, ONCE_A_DAY, Batch, Step
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import Conflict, LimitExceeded, MemplaneError, NotFound
from memplane.domain.policy import Trust
from memplane.domain.principal import JOB, KeyScope, Principal, Reach

logger = logging.getLogger("memplane.jobs")
LEASE = timedelta(minutes=5)
"""For so long after its last batch nobody else takes a job from a worker: a killed one is waited for no longer."""
MAX_RUNS = 1000
Progress = Callable[[Mapping[str, float]], None]


@dataclass(frozen=True, slots=True)
class Done:
    """What a run of a job came to.

    Attributes:
        outcome: ``done``; ``unchanged`` when it was done in this period before; ``dry_run``.
        counts: what was done in this period, or would be.
    """

    name: str
    tenant: str
    outcome: str
    period: str
    counts: Mapping[str, float]


class _Undone(Exception):
    """A batch that is taken back."""

    def __init__(self, batch: Batch) -> None:
        super().__init__("dry run")
        self.batch = batch


class Jobs:
    """The work of the night, for one tenant or for all; by hand, or by the server at its hour."""

    def __init__(self, storage: Storage, policies: Policies, gateway: Gateway, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._gateway = gateway
        self._clock = clock
        self._worker = str(uuid4())

    async def run(
        self, name: str, tenant: str, *, dry_run: bool = False, as_of: datetime | None = None,
        progress: Progress = lambda _: None,
    ) -> Done:  # fmt: skip
        """Do a job for a tenant, from where it was left in this period.

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
        step = JOBS.get(name)
        if step is None:
            raise NotFound(f"there is no job '{name}'; there are {', '.join(JOBS)}")
        if not await self._storage.has_tenant(tenant):
            raise NotFound(f"there is no tenant '{tenant}'")
        moment = as_of or self._clock()
        if dry_run:
            return await self._dry(name, tenant, step, moment, progress)
        principal = _principal(name, tenant)
        run = await self._storage.write(Reach(tenant), lambda uow: self._begun(uow, name, moment))
        outcome = "unchanged" if _ended(run) else "done"
        while not _ended(run):
            run = await self._batch(principal, step, run)
            progress(run.counts)
        return Done(name, tenant, outcome, run.period, run.counts)

    async def due(self) -> None:
        """Do what of the night's work this day has not seen yet, for every tenant; what fails leaves the rest."""
        now = self._clock()
        if now.hour < self._policies.current.lifecycle.hour:
            return
        period = _period(now)
        for tenant in await self._storage.tenants():
            last = await self._storage.write(Reach(tenant), lambda uow: uow.jobs.all(len(JOBS) * 2))
            done = {run.name for run in last if run.period >= period and run.finished_at is not None}
            for name in JOBS:
                if name not in done:
                    await self._tried(name, tenant)

    async def runs(self, tenant: str, limit: int = 100) -> Sequence[JobRun]:
        """What was done for a tenant, the latest day first.

        Raises:
            LimitExceeded: it is too much.
        """
        if not 1 <= limit <= MAX_RUNS:
            raise LimitExceeded(f"limit: {limit}, it must be 1 to {MAX_RUNS}", field="limit")
        return await self._storage.write(Reach(tenant), lambda uow: uow.jobs.all(limit))

    async def tenants(self) -> Sequence[str]:
        """Every tenant."""
        return await self._storage.tenants()

    async def _tried(self, name: str, tenant: str) -> None:
        try:
            done = await self.run(name, tenant)
        except Conflict:
            return  # another server is at it
        except MemplaneError as error:
            logger.warning("%s of %s failed, and is tried again: %s", name, tenant, error)
            return
        if done.outcome == "done" and any(done.counts.values()):
            logger.info("%s of %s: %s", name, tenant, dict(done.counts))

    async def _begun(self, uow: UnitOfWork, name: str, moment: datetime) -> JobRun:
        """The run of this period, with the lease taken: begun, gone on with, or found to be finished."""
        now, period = self._clock(), _period(moment)
        last = await uow.jobs.last(name)
        if last is not None and last.period > period and name in ONCE_A_DAY:
            raise Conflict(f"{name} was done for {last.period} already: it is not done for an earlier day after that")
        run = await uow.jobs.find(name, period)
        if run is not None and run.finished_at is not None and name in ONCE_A_DAY:
            return run
        if run is not None and run.worker != self._worker and _leased(run, now):
            raise Conflict(f"another worker is at {name} for {period}; it is waited for until {run.lease_until}")
        if run is None or run.finished_at is not None:
            counts = {} if run is None else run.counts
            run = JobRun(name, period, moment, now, counts=counts)
        run = replace(run, worker=self._worker, lease_until=now + LEASE)
        await uow.jobs.keep(run)
        return run

    async def _batch(self, principal: Principal, step: Step, run: JobRun) -> JobRun:
        """One batch, and the note of it in the same transaction."""
        now = self._clock()

        async def work(write: Write) -> JobRun:
            here = await write.uow.jobs.find(run.name, run.period)
            if here is None or here.worker != self._worker or here.finished_at is not None:
                raise Conflict(f"another worker took {run.name} over")
            batch = await step(write, here.as_of, here.place)
            after = replace(
                here,
                place=batch.place,
                counts=_added(here.counts, batch.counts, run.name),
                finished_at=now if batch.place is None else None,
                worker=None if batch.place is None else self._worker,
                lease_until=None if batch.place is None else now + LEASE,
            )
            await write.uow.jobs.keep(after)
            return after

        return await self._gateway.run(principal, self._policies.current, now, work)

    async def _dry(self, name: str, tenant: str, step: Step, moment: datetime, progress: Progress) -> Done:
        """Each batch is done and taken back; the next begins where it ended."""
        counts: Mapping[str, float] = {}
        batch = Batch()

        async def work(write: Write) -> None:
            raise _Undone(await step(write, moment, batch.place))

        while True:
            try:
                await self._gateway.run(_principal(name, tenant), self._policies.current, self._clock(), work)
            except _Undone as undone:
                batch = undone.batch
            counts = _added(counts, batch.counts, name)
            progress(counts)
            if batch.place is None or batch.place == "again":
                return Done(name, tenant, "dry_run", _period(moment), counts)


def _principal(name: str, tenant: str) -> Principal:
    """Who does the work of the night, as history names it."""
    return Principal(tenant, None, Trust.FULL, frozenset(KeyScope), f"{JOB}{name}")


def _period(moment: datetime) -> str:
    return moment.date().isoformat()


def _ended(run: JobRun) -> bool:
    return run.finished_at is not None


def _leased(run: JobRun, now: datetime) -> bool:
    """Whether somebody is at it; a lease that ends later than any could is of a clock that was put back since."""
    return run.finished_at is None and run.lease_until is not None and now < run.lease_until <= now + LEASE


def _added(before: Mapping[str, float], more: Mapping[str, float], name: str) -> Mapping[str, float]:
    """Counts of a period so far; a report is as of now, and not a sum."""
    if name == "gc":
        return dict(more)
    return {each: before.get(each, 0) + more.get(each, 0) for each in {**before, **more}}
