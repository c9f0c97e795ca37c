"""Old checkpoints are deleted by age and count, thread by thread; what a kept one is rebuilt from stays."""

import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from memplane.application.checkpoints.checkpoint_service import prune_thread
from memplane.application.jobs.periodic import Periodic
from memplane.application.ports import Clock, Storage
from memplane.domain.checkpoints.lineage import Retention
from memplane.domain.errors import StorageError, TenantRemoved
from memplane.domain.identity.principal import Reach

logger = logging.getLogger("memplane.checkpoints")
EVERY_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class PruningResult:
    """How many checkpoints were deleted, of how many threads."""

    threads: int
    checkpoints: int


class PruneCheckpoints:
    """Prunes a tenant's threads when asked, and those of every tenant once an hour.

    Two servers may do it at once: each thread is locked while it is pruned.

    Args:
        storage: the database.
        clock: the time.
        keep: so many of the newest of each namespace stay; 0 for no pruning by itself.
        days: whatever is younger stays too.
    """

    def __init__(self, storage: Storage, clock: Clock, keep: int, days: float) -> None:
        self._storage = storage
        self._clock = clock
        self._keep = keep
        self._age = timedelta(days=days)
        self._periodic = Periodic("pruning checkpoints", EVERY_SECONDS, self.due, finish=True)

    def start(self) -> None:
        """Begin, if the settings say how many checkpoints are kept."""
        if self._keep:
            self._periodic.start()

    async def stop(self) -> None:
        """End."""
        await self._periodic.stop()

    async def due(self) -> PruningResult:
        """Prune every tenant; one that fails is logged, and tried again the next time."""
        threads = checkpoints = 0
        for tenant in await self._storage.tenants():
            try:
                done = await self(tenant, self._keep, self._age)
            except (StorageError, TenantRemoved) as error:
                logger.warning("checkpoints of %s not pruned: %s", tenant, error)
                continue
            threads, checkpoints = threads + done.threads, checkpoints + done.checkpoints
        return PruningResult(threads, checkpoints)

    async def __call__(self, tenant: str, keep: int, older_than: timedelta) -> PruningResult:
        """Prune every thread of a tenant.

        Args:
            tenant: whose.
            keep: so many of the newest of each namespace stay; at least the head.
            older_than: whatever is younger stays too.
        """
        reach, retention = Reach(tenant), Retention(max(keep, 1), self._clock() - older_than)
        async with self._storage.reading(reach) as reader:
            crowded = await reader.checkpoints.crowded_threads(retention)
        counts = [
            await self._storage.write(reach, partial(prune_thread, thread=each, retention=retention))
            for each in crowded
        ]
        return PruningResult(sum(count > 0 for count in counts), sum(counts))
