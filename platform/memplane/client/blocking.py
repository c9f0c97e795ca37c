"""The client for code without an event loop: one thread with a loop, which runs the asynchronous client."""

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from threading import Lock, Thread
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

import httpx2

from memplane.client.asynchronous import RETRIES, TIMEOUT_SECONDS, Memplane

P = ParamSpec("P")
R = TypeVar("R")


def _waits(method: Callable[Concatenate[Memplane, P], Coroutine[object, object, R]]) -> Callable[
    Concatenate["MemplaneSync", P], R
]:  # fmt: skip
    """The same method, which waits for its result."""

    @functools.wraps(method)
    def call(client: "MemplaneSync", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return client._run(lambda remote: method(remote, *args, **kwargs))  # noqa: SLF001 - the class below

    return call


def _iterates(method: Callable[Concatenate[Memplane, P], AsyncGenerator[R, None]]) -> Callable[
    Concatenate["MemplaneSync", P], Iterator[R]
]:  # fmt: skip
    """The same method, as an ordinary iterator."""

    @functools.wraps(method)
    def call(client: "MemplaneSync", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        made: list[AsyncGenerator[R, None]] = []

        async def step(remote: Memplane) -> tuple[R, ...]:
            if not made:
                made.append(method(remote, *args, **kwargs))
            async for item in made[0]:
                return (item,)
            return ()

        async def end(_remote: Memplane) -> None:
            for each in made:
                await each.aclose()

        try:
            while item := client._run(step):  # noqa: SLF001 - the class below
                yield item[0]
        finally:
            client._finish(end)  # noqa: SLF001 - the class below

    return call


class MemplaneSync:
    """`Memplane` for code without an event loop: the same arguments, the same methods, the same errors.

    Use it as a context manager, or call `close`. Safe to use from several threads.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = TIMEOUT_SECONDS,
        retries: int = RETRIES,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._remote = Memplane(url, key, timeout=timeout, retries=retries, transport=transport)
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._closed = False

    query = _waits(Memplane.query)
    context = _waits(Memplane.context)
    turn = _waits(Memplane.turn)
    turns = _waits(Memplane.turns)
    delete_turn = _waits(Memplane.delete_turn)
    remember = _waits(Memplane.remember)
    observe = _waits(Memplane.observe)
    get = _waits(Memplane.get)
    get_many = _waits(Memplane.get_many)
    update = _waits(Memplane.update)
    delete = _waits(Memplane.delete)
    history = _waits(Memplane.history)
    say = _waits(Memplane.say)
    correct = _waits(Memplane.correct)
    why = _waits(Memplane.why)
    timeline = _waits(Memplane.timeline)
    related = _waits(Memplane.related)
    entities = _waits(Memplane.entities)
    entity = _waits(Memplane.entity)
    alias = _waits(Memplane.alias)
    merge = _waits(Memplane.merge)
    tombstones = _waits(Memplane.tombstones)
    lift_tombstone = _waits(Memplane.lift_tombstone)
    conflicts = _waits(Memplane.conflicts)
    decide_conflict = _waits(Memplane.decide_conflict)
    consents = _waits(Memplane.consents)
    approve = _waits(Memplane.approve)
    refuse = _waits(Memplane.refuse)
    acknowledge = _waits(Memplane.acknowledge)
    decide = _waits(Memplane.decide)
    user_context = _waits(Memplane.user_context)
    set_time_zone = _waits(Memplane.set_time_zone)
    quotas = _waits(Memplane.quotas)
    recover = _waits(Memplane.recover)
    purge = _waits(Memplane.purge)
    revert = _waits(Memplane.revert)
    collect = _waits(Memplane.collect)
    import_lines = _waits(Memplane.import_lines)
    erase = _waits(Memplane.erase)
    merge_user, unmerge_user = _waits(Memplane.merge_user), _waits(Memplane.unmerge_user)
    user_merges = _waits(Memplane.user_merges)
    delta = _waits(Memplane.delta)
    thread_turns = _waits(Memplane.thread_turns)
    stats = _waits(Memplane.stats)
    events = _waits(Memplane.events)
    policy = _waits(Memplane.policy)
    check_policy = _waits(Memplane.check_policy)
    reload_policy = _waits(Memplane.reload_policy)
    close_session = _waits(Memplane.close_session)
    checkpoint = _waits(Memplane.checkpoint)
    save_checkpoint = _waits(Memplane.save_checkpoint)
    delete_checkpoints = _waits(Memplane.delete_checkpoints)
    health = _waits(Memplane.health)
    ready = _waits(Memplane.ready)
    list_page = _waits(Memplane.list_page)
    list = _iterates(Memplane.list)
    all_history = _iterates(Memplane.all_history)
    all_consents = _iterates(Memplane.all_consents)
    all_events = _iterates(Memplane.all_events)
    all_tombstones = _iterates(Memplane.all_tombstones)
    all_user_merges = _iterates(Memplane.all_user_merges)
    export = _iterates(Memplane.export)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end the thread; a second time does nothing."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    async def _end(self) -> None:
        """Stop what other threads still wait for, so that none waits for ever, and close the connections."""
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._remote.close()

    def _run(self, call: Callable[[Memplane], Coroutine[object, object, R]]) -> R:
        """Run a call in the loop's thread and wait for it; who stops waiting stops it."""

        async def called() -> R:
            return await call(self._remote)

        with self._lock:
            if self._closed:
                raise RuntimeError("this client is closed")
            future = asyncio.run_coroutine_threadsafe(called(), self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _finish(self, call: Callable[[Memplane], Coroutine[object, object, None]]) -> None:
        """Run a call that lets go of something, unless the client is closed and has let go of everything."""
        if not self._closed:
            self._run(call)

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop = asyncio.new_event_loop()
            thread = Thread(target=loop.run_forever, name="memplane-client", daemon=True)
            thread.start()
            self._loop, self._thread = loop, thread
        return self._loop
