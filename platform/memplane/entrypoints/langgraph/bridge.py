"""Work in the event loop of the database, asked for from any loop or from none."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from threading import Thread
from typing import Any, TypeVar

from memplane.bootstrap import Application, open_application
from memplane.domain.errors import InvalidRequest
from memplane.domain.identity.principal import Principal

T = TypeVar("T")
Caller = Callable[[], Awaitable[Principal]]


class Bridge:
    """Hands work to the event loop in which it was made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def there(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of some work, from whichever loop it is asked for."""
        if asyncio.get_running_loop() is self._loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """The same for code without a loop.

        Raises:
            RuntimeError: asked for in the very thread that would do the work, which would wait for ever.
        """
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            work.close()
            raise RuntimeError("this is its own event loop: use the asynchronous methods here, or open_sync")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


@asynccontextmanager
async def application_of(
    database: str, key: str | None, principal: Principal | None
) -> AsyncIterator[tuple[Application, Principal | Caller]]:
    """An application on a database, and who calls it.

    Raises:
        Invalid: neither a key nor a principal is given, or both are.
        Unauthenticated: the key does not hold.
        StorageUnavailable, SchemaMismatch: the database cannot be used.
    """
    if (key is None) == (principal is None):
        raise InvalidRequest("open it with an API key, or with a principal")
    async with open_application(database) as application:
        if principal is not None:
            await application.ensure_tenant(principal.tenant)
            yield application, principal
        else:

            async def caller() -> Principal:
                return await application.authenticate(key)

            await caller()
            yield application, caller


@contextmanager
def in_thread(opening: AbstractAsyncContextManager[T], name: str) -> Iterator[T]:
    """What is opened in an event loop of its own, in a thread that does its work."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name=name, daemon=True)
    thread.start()
    try:
        made = asyncio.run_coroutine_threadsafe(opening.__aenter__(), loop).result()
        try:
            yield made
        finally:
            asyncio.run_coroutine_threadsafe(opening.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
