"""Counting reads off the hot path: noted in memory, written in batches."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from functools import partial
from uuid import UUID

from memplane.application.erasure.user_tombstones import gone_since
from memplane.application.jobs.periodic import Periodic
from memplane.application.ports import Clock, Storage
from memplane.application.records import Access
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import StorageError, TenantRemoved
from memplane.domain.identity.principal import Reach
from memplane.domain.ranking.co_recall import APART, pairs_of

logger = logging.getLogger("memplane.accesses")
FLUSH_SECONDS = 2.0
BATCH = 200
MAX_WAITING = 10_000
MOST_TOGETHER = 500
"""Pairs of one user that a process counts within a day (UTC): as many rows may come to be."""
MOST_KNOWN = 100_000
"""Pairs of which a process knows that they were counted within the hour; to count one again writes nothing."""
_Pairs = dict[tuple[UUID, UUID], str]


class AccessLog:
    """Collects accesses and writes them every two seconds; a killed process loses at most those.

    Args:
        storage: where they are counted.
        clock: the time.
        together: whether it is counted, too, what is recalled together.
    """

    def __init__(self, storage: Storage, clock: Clock, together: Callable[[], bool] = lambda: False) -> None:
        self._storage = storage
        self._clock = clock
        self._together = together
        self._paired: Counter[tuple[str, str]] = Counter()
        self._day: date | None = None
        self._known: dict[tuple[str, UUID, UUID], datetime] = {}
        self._waiting: list[Access] = []
        self._writing = asyncio.Lock()
        self._periodic = Periodic("writing accesses", FLUSH_SECONDS, self.flush, finish=True)

    def note(self, access: Access) -> None:
        """Remember an access; past ten thousand unwritten ones the oldest are dropped."""
        self._waiting.append(access)
        if len(self._waiting) > MAX_WAITING:
            del self._waiting[0]

    def start(self) -> None:
        """Begin to write in the background."""
        self._periodic.start()

    async def stop(self) -> None:
        """Write what waits, and end."""
        await self._periodic.stop()
        await self.flush()

    async def flush(self) -> None:
        """Write what waits; a failure is logged and the accesses wait for the next time.

        When it returns, what another flush had taken before is written too.
        """
        async with self._writing:
            await self._flush()

    async def _flush(self) -> None:
        taken, self._waiting = self._waiting, []
        by_tenant: dict[str, list[Access]] = {}
        for access in taken:
            by_tenant.setdefault(access.tenant, []).append(access)
        batches = [
            (tenant, found[i : i + BATCH]) for tenant, found in by_tenant.items() for i in range(0, len(found), BATCH)
        ]
        for tenant, accesses in batches:
            try:
                self._counted(
                    tenant, await self._storage.write(Reach(tenant), partial(self._written, accesses=accesses))
                )
            except TenantRemoved:
                logger.info("tenant %s was removed; what waited for it is dropped", tenant)
            except StorageError as error:
                logger.warning("accesses of %s not written yet: %s", tenant, error)
                self._waiting = [*accesses, *self._waiting][-MAX_WAITING:]

    async def _written(self, uow: UnitOfWork, accesses: list[Access]) -> _Pairs:
        """What was counted as recalled together; it is noted once it is committed, for this may be run again."""
        first: dict[str, datetime] = {}
        for event in (access.event for access in accesses):
            if event.user_id is not None:
                first[event.user_id] = min(event.ts, first.get(event.user_id, event.ts))
        gone = await gone_since(uow.erasures, first)
        accesses = [access for access in accesses if access.event.user_id not in gone]
        counts: Counter[UUID] = Counter(unit for access in accesses for unit in access.ids)
        await uow.journal.count_accesses(counts, self._clock())
        await uow.journal.events([access.event for access in accesses])
        pairs = self._pairs(accesses) if self._together() else {}
        if pairs:
            await uow.co_recalls.note(pairs, self._clock())
        return pairs

    def _pairs(self, accesses: list[Access]) -> _Pairs:
        """What was recalled together of each user, as far as there is room for it on this day.

        What was counted within the hour takes no room: storage counts it once.
        """
        now = self._clock()
        self._forget(now)
        found: _Pairs = {}
        taken: Counter[str] = Counter()
        for access in accesses:
            user = access.event.user_id
            if user is None:
                continue
            for pair in pairs_of(access.found):
                if pair in found:
                    continue
                is_new = (access.tenant, *pair) not in self._known
                if is_new and self._paired[access.tenant, user] + taken[user] >= MOST_TOGETHER:
                    continue
                taken[user] += is_new
                found[pair] = user
        return found

    def _counted(self, tenant: str, pairs: _Pairs) -> None:
        """Remember what was counted, and for whom."""
        now = self._clock()
        for pair, user in pairs.items():
            if (tenant, *pair) not in self._known:
                self._known[tenant, *pair] = now
                self._paired[tenant, user] += 1

    def _forget(self, now: datetime) -> None:
        """Let go of what was counted on another day, or more than an hour ago; the oldest comes first."""
        if now.date() != self._day:
            self._paired.clear()
            self._day = now.date()
        for known in list(self._known):
            if len(self._known) <= MOST_KNOWN and self._known[known] > now - APART:
                break
            del self._known[known]
