"""Writers of one user wait for each other here, and not on connections that writers of other users need."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from memplane.domain.errors import StorageUnavailable

PATIENCE_SECONDS = 10.0


class UserQueues:
    """One queue for each user that is being written; of this process alone: the database keeps processes apart."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, tenant: str, users: Collection[str]) -> AsyncIterator[None]:
        """Wait until nobody else here writes these users' memories; in the order of their names.

        Raises:
            StorageUnavailable: that takes too long.
        """
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    for user in sorted(set(users)):
                        key = (tenant, user)
                        lock = self._locks.get(key)
                        if lock is None:
                            lock = self._locks[key] = asyncio.Lock()
                        await stack.enter_async_context(lock)
            except TimeoutError as error:
                raise StorageUnavailable("a long write of the same user is under way; try again shortly") from error
            yield
