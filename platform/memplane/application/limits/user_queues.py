"""Writers of one user wait for each other here, and not on connections that writers of other users need."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
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


class UnderWay:
    """Requests that are being carried out, by their names: what comes after one waits for it, with nothing in hand.

    Of this process alone, and for the sake of speed alone: whether it was carried out the database says.
    """

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str], list[asyncio.Event]] = {}

    @contextmanager
    def under_name(self, name: tuple[str, str]) -> Iterator[None]:
        """Be under way by a name; several may be by one, as when a request is sent again."""
        end = asyncio.Event()
        self._ends.setdefault(name, []).append(end)
        try:
            yield
        finally:
            end.set()
            self._ends[name].remove(end)
            if not self._ends[name]:
                del self._ends[name]

    async def over(self, name: tuple[str, str]) -> None:
        """Wait until nothing is under way by a name.

        Raises:
            StorageUnavailable: that takes too long.
        """
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                for end in tuple(self._ends.get(name, ())):
                    await end.wait()
        except TimeoutError as error:
            raise StorageUnavailable("the request before is still under way; try again shortly") from error
