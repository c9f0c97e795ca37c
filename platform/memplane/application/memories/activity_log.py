"""Noting on which days users are active: once a day for each of them and process."""

import logging
from collections.abc import Collection, Iterable
from datetime import date, datetime
from functools import partial

from memplane.application.erasure.user_tombstones import gone_since
from memplane.application.jobs.periodic import Periodic
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import StorageError, TenantRemoved
from memplane.domain.identity.principal import Principal, Reach
from memplane.domain.memory.active_days import present_since, stretches_of

logger = logging.getLogger("memplane.activity")
FLUSH_SECONDS = 2.0
MOST_KNOWN = 100_000
"""Users of whom a process knows that they are noted today, and users who wait to be; to note one again is no harm."""


class ActivityLog:
    """Notes writes in their own transaction, and reads every two seconds.

    A killed process loses the reads of two seconds: a user who seems away for longer loses nothing by it.
    """

    def __init__(self, storage: Storage, policies: Policies, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._clock = clock
        self._day: date | None = None
        self._noted: set[tuple[str, str]] = set()
        self._read: set[tuple[str, str]] = set()
        self._waiting: set[tuple[str, str]] = set()
        self._periodic = Periodic("writing the activity of users", FLUSH_SECONDS, self.flush, finish=True)

    def note_read(self, principal: Principal, users: Iterable[str]) -> None:
        """Remember that something of users was read, or of the one user that the key is bound to."""
        if principal.reads_for_users:
            self._wait(principal, users)

    def wrote(self, principal: Principal, users: Iterable[str]) -> None:
        """Remember that something of users was written, outside of the gateway."""
        if principal.writes_for_users:
            self._wait(principal, users)

    async def note(
        self, uow: UnitOfWork, principal: Principal, users: Collection[str], now: datetime
    ) -> Collection[str]:
        """Note within a write that users are active; those who were not noted today, for :meth:`confirm`."""
        if not principal.writes_for_users:
            return ()
        self._begin_day(now)
        new = {
            user
            for user in users
            if (principal.tenant, user) not in self._noted and (principal.users is None or user in principal.users)
        }
        if new:
            await uow.activity.note(new, now, self._present_since(now), new=True)
        return new

    def confirm(self, tenant: str, users: Collection[str], now: datetime) -> None:
        """Remember that users were noted, once that is committed."""
        self._begin_day(now)
        _add(self._noted, tenant, users)

    async def reconstruct(self, uow: UnitOfWork, user_id: str, moments: Iterable[datetime], now: datetime) -> None:
        """Note within a write when a user was active who comes from elsewhere, as far as it is not known here."""
        known = (await uow.activity.of([user_id])).get(user_id)
        last = max((each.last_at for each in known.stretches), default=None) if known else None
        later = [moment for moment in moments if moment <= now and (last is None or moment > last)]
        for first, end in stretches_of(later, self._policies.current.lifecycle.away):
            for moment in dict.fromkeys((first, end)):
                await uow.activity.note([user_id], moment, self._present_since(moment), new=True)

    def start(self) -> None:
        """Begin to write in the background."""
        self._periodic.start()

    async def stop(self) -> None:
        """Write what waits, and end."""
        await self._periodic.stop()
        await self.flush()

    async def flush(self) -> None:
        """Write what waits; a failure is logged and the reads wait for the next time."""
        taken, self._waiting = self._waiting, set()
        by_tenant: dict[str, set[str]] = {}
        for tenant, user in taken:
            by_tenant.setdefault(tenant, set()).add(user)
        for tenant, users in by_tenant.items():
            now = self._clock()
            try:
                await self._storage.write(Reach(tenant), partial(self._written, users=users, now=now))
                self._begin_day(now)
                _add(self._read, tenant, users)
            except TenantRemoved:
                logger.info("tenant %s was removed; what waited for it is dropped", tenant)
            except StorageError as error:
                logger.warning("activity of users of %s not written yet: %s", tenant, error)
                self._waiting.update((tenant, user) for user in users)

    async def _written(self, uow: UnitOfWork, users: Collection[str], now: datetime) -> None:
        gone = await gone_since(uow.erasures, dict.fromkeys(users, now))
        # nothing can be forgotten of a user who has nothing: a name that was only asked for leaves no row
        await uow.activity.note(set(users).difference(gone), now, self._present_since(now), new=False)

    def _wait(self, principal: Principal, users: Iterable[str]) -> None:
        self._begin_day(self._clock())
        for user in users or (principal.users if principal.users is not None and len(principal.users) == 1 else ()):
            each = (principal.tenant, user)
            if each not in self._noted and each not in self._read and len(self._waiting) < MOST_KNOWN:
                self._waiting.add(each)

    def _begin_day(self, now: datetime) -> None:
        """Forget who was noted on another day, a later one too when the clock was put back."""
        if now.date() != self._day:
            self._day = now.date()
            self._noted, self._read = set(), set()

    def _present_since(self, now: datetime) -> datetime:
        return present_since(now, self._policies.current.lifecycle.away)


def _add(known: set[tuple[str, str]], tenant: str, users: Collection[str]) -> None:
    if len(known) + len(users) > MOST_KNOWN:
        known.clear()
    known.update((tenant, user) for user in users)
