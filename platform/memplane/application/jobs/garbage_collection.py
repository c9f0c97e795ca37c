"""Collecting what a tenant, or one user, keeps no longer: the lifecycle jobs of the night, at once and by hand."""

from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from memplane.application.jobs.job_runner import Jobs
from memplane.application.jobs.job_submission import period_of
from memplane.application.jobs.lifecycle_jobs import JobBatch, expiry, layers, purge, size, ttl
from memplane.application.limits.idempotency import Once
from memplane.application.memories.authorization import require_every_category, require_full
from memplane.application.memories.gateway import Gateway, Write, clean_id
from memplane.application.ports import Clock, Policies, Storage
from memplane.domain.identity.principal import KeyScope, Principal, Reach
from memplane.domain.memory.lifecycle import DAY
from memplane.domain.policy.policy import Policy

COLLECTING = ("expiry", "decay", "ttl", "layers", "size", "purge")
"""The jobs that collect, in the order of a night."""
DECAY_IS_DAILY = "decay: confidence wanes once a day, for the whole tenant"


class _UserStep(Protocol):
    def __call__(
        self, write: Write, as_of: datetime, place: str | None, user: str | None = None
    ) -> Awaitable[JobBatch]: ...


_OF_USER: Sequence[_UserStep] = (expiry, ttl, layers, size, purge)


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """What a collection came to.

    Attributes:
        outcome: ``collected``, or ``dry_run``: then everything stays, and the counts tell what would be done.
        user_id: the only user, or ``None`` for the tenant.
        promoted, archived, deleted, purged, faded: how many memories.
        skipped: what was left out, and why.
        report: of the last day, with what was made, and averages of what is active.
    """

    outcome: str
    user_id: str | None
    promoted: int = 0
    archived: int = 0
    deleted: int = 0
    purged: int = 0
    faded: int = 0
    skipped: tuple[str, ...] = ()
    report: Mapping[str, float] = field(default_factory=dict)


class _Undone(Exception):
    """A collection that is taken back."""

    def __init__(self, counts: Mapping[str, float]) -> None:
        super().__init__("dry run")
        self.counts = counts


class CollectGarbage:
    """Does the lifecycle jobs of the night at once."""

    def __init__(self, storage: Storage, policies: Policies, gateway: Gateway, jobs: Jobs, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._gateway = gateway
        self._jobs = jobs
        self._clock = clock

    async def tenant(self, tenant: str, *, dry_run: bool = False) -> CollectionResult:
        """Collect for a whole tenant, job by job, as the night does.

        In a dry run each job decides by what is there now: what two of them would take is counted twice.

        Raises:
            NotFound: there is no such tenant.
            Conflict: a worker is at one of the jobs.
        """
        counts: Counter[str] = Counter()
        now = self._clock()
        for name in COLLECTING:
            before = {} if dry_run else await self._done_today(tenant, name, now)
            done = await self._jobs.run(name, tenant, dry_run=dry_run)
            counts.update({what: int(count - before.get(what, 0)) for what, count in done.counts.items()})
        report = await self._storage.write(Reach(tenant), lambda uow: uow.upkeep.tally(now - DAY))
        return _come_to(counts, None, report, dry_run=dry_run)

    async def user(
        self, principal: Principal, user_id: str, *, dry_run: bool = False, once: Once[CollectionResult] | None = None
    ) -> CollectionResult:
        """Collect for one user, whatever the categories; a dry run is exact.

        Raises:
            ScopeForbidden, TrustTooLow, UserForbidden: the key may not.
        """
        policy, now = self._policies.current, self._clock()
        user = require_collector(principal, policy, user_id)
        if once is not None and not dry_run:
            await self._gateway.raise_if_done(principal, once)
        counts: Counter[str] = Counter()
        operator = principal.as_operator()
        if dry_run:
            counts.update(await self._tried(operator, policy, now, user))
        else:
            for step in _OF_USER:
                await self._worked(operator, policy, now, (step, user), counts)

        async def told(write: Write) -> CollectionResult:
            report = await write.uow.upkeep.tally(now - DAY, user)
            return _come_to(counts, user, report, dry_run=dry_run, skipped=(DECAY_IS_DAILY,))

        return await self._gateway.run(operator, policy, now, told, once=None if dry_run else once)

    async def _worked(
        self, operator: Principal, policy: Policy, now: datetime, step: tuple[_UserStep, str], counts: Counter[str]
    ) -> None:
        """One step, batch by batch, each in a transaction of its own."""
        doing, user = step
        place: str | None = None

        async def work(write: Write) -> JobBatch:
            return await doing(write, now, place, user)

        while True:
            batch = await self._gateway.run(operator, policy, now, work)
            counts.update({name: int(count) for name, count in batch.counts.items()})
            if batch.place is None:
                return
            place = batch.place

    async def _tried(self, operator: Principal, policy: Policy, now: datetime, user: str) -> Mapping[str, float]:
        """All steps in one transaction, which is taken back."""

        async def work(write: Write) -> None:
            counts: Counter[str] = Counter()
            for doing in _OF_USER:
                batch = JobBatch(place="")
                while batch.place is not None:
                    batch = await doing(write, now, batch.place or None, user)
                    counts.update({name: int(count) for name, count in batch.counts.items()})
            raise _Undone(counts)

        try:
            await self._gateway.run(operator, policy, now, work)
        except _Undone as undone:
            return undone.counts
        raise AssertionError  # the work always ends so

    async def _done_today(self, tenant: str, name: str, now: datetime) -> Mapping[str, float]:
        run = await self._storage.write(Reach(tenant), lambda uow: uow.jobs.find(name, period_of(now)))
        return {} if run is None else run.counts


def _come_to(
    counts: Counter[str], user: str | None, report: Mapping[str, float], *, dry_run: bool, skipped: tuple[str, ...] = ()
) -> CollectionResult:
    moved = {name: counts[name] for name in ("promoted", "archived", "deleted", "purged", "faded")}
    return CollectionResult("dry_run" if dry_run else "collected", user, **moved, skipped=skipped, report=report)


def require_collector(principal: Principal, policy: Policy, user_id: str) -> str:
    """The user, for one who may collect for them, in every category.

    Raises:
        ScopeForbidden, TrustTooLow, UserForbidden, CategoryForbidden: the key may not.
    """
    principal.require(KeyScope.ADMIN)
    require_full(principal, "collect what a user keeps no longer")
    require_every_category(principal, policy, "a collection")
    return principal.touch(clean_id(user_id, "user_id") or "")
