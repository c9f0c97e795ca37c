"""When keys were last used: noted in memory, written in batches, about once a minute for each key."""

import logging
from datetime import datetime, timedelta
from functools import partial

from memplane.application.jobs.periodic import Periodic
from memplane.application.ports import Clock, Storage
from memplane.application.records import StoredKey
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import StorageError, TenantRemoved
from memplane.domain.identity.principal import Reach

logger = logging.getLogger("memplane.keys")
FLUSH_SECONDS = 10.0
PRECISION = timedelta(minutes=1)
"""A use this soon after the one that is stored is not stored."""
MAX_WAITING = 10_000


class KeyUses:
    """Collects the last use of keys; a killed process loses those of the last ten seconds."""

    def __init__(self, storage: Storage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._waiting: dict[str, dict[str, datetime]] = {}
        self._periodic = Periodic("writing when keys were used", FLUSH_SECONDS, self.flush, finish=True)

    def note(self, key: StoredKey) -> None:
        """Remember that a key was used now, unless that was stored less than a minute ago.

        Past ten thousand unwritten keys of a tenant further ones are not remembered.
        """
        now = self._clock()
        if key.last_used_at is not None and now - key.last_used_at < PRECISION:
            return
        waiting = self._waiting.setdefault(key.tenant, {})
        if key.key_id in waiting or len(waiting) < MAX_WAITING:
            waiting[key.key_id] = now

    def start(self) -> None:
        """Begin to write in the background."""
        self._periodic.start()

    async def stop(self) -> None:
        """Write what waits, and end."""
        await self._periodic.stop()
        await self.flush()

    async def flush(self) -> None:
        """Write what waits; a failure is logged, and the next use is noted anew."""
        taken, self._waiting = self._waiting, {}
        for tenant, moments in taken.items():
            try:
                await self._storage.write(Reach(tenant), partial(_written, moments=moments))
            except TenantRemoved:
                logger.info("tenant %s was removed; what waited for it is dropped", tenant)
            except StorageError as error:
                logger.warning("last use of keys of %s not written: %s", tenant, error)


async def _written(uow: UnitOfWork, moments: dict[str, datetime]) -> None:
    await uow.keys.note_uses(moments)
