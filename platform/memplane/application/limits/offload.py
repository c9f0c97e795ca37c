"""Work on texts, where it holds nobody up: here for short ones, in a worker thread for long ones."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from memplane.application.limits.admission import Admission
from memplane.domain.errors import Busy, DeadlineExceeded, StorageUnavailable

P = ParamSpec("P")
T = TypeVar("T")
SHORT = 2_000
"""Characters up to which handing a text to a thread takes longer than the work on it."""
THREADS = 4


async def offload(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do work on so many characters of text.

    Raises:
        Busy, DeadlineExceeded: as :func:`in_thread`.
    """
    return work(*args, **kwargs) if size <= SHORT else await in_thread(work, *args, **kwargs)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do work in a thread: for a request in its tenant's share of threads, for anything else as the event loop does.

    Raises:
        Busy: the tenant's share was taken for too long.
        DeadlineExceeded: the work takes too long; it goes on, and takes its place of the share for as long.
    """
    share = _SHARE.get()
    if share is None:
        return await asyncio.to_thread(work, *args, **kwargs)
    return await share.workers.run(share.tenant, lambda: work(*args, **kwargs))


@dataclass(frozen=True, slots=True)
class _Share:
    workers: "Workers"
    tenant: str


_SHARE: contextvars.ContextVar[_Share | None] = contextvars.ContextVar("share of threads", default=None)


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[], Any]
    context: contextvars.Context
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]


class Workers:
    """Threads for the work of requests, shared fairly between tenants as requests are: see :class:`Admission`.

    A thread cannot be stopped: work beyond its time is not waited for, but keeps its place until it ends, so a tenant
    never has more threads at work than its share. The threads are daemons: the end of the process waits for none.

    Args:
        share: 0: any tenant may take all threads; else one has a single thread while others ask too, and all but one
            while they do not.
        seconds: the longest that work waits for its turn, and the longest that it may take then.
    """

    def __init__(self, share: int, seconds: float) -> None:
        self._admission = Admission(THREADS, min(share, 1), seconds)
        self._seconds = seconds
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads = 0

    @contextmanager
    def serving(self, tenant: str) -> Iterator[None]:
        """What is put off in here is the work of a tenant's request."""
        token = _SHARE.set(_Share(self, tenant))
        try:
            yield
        finally:
            _SHARE.reset(token)

    async def run(self, tenant: str, work: Callable[[], T]) -> T:
        """Do a tenant's work when it is its turn.

        Raises:
            Busy: it was not its turn in time.
            DeadlineExceeded: it takes longer than it may.
        """
        try:
            leave = await self._admission.enter(tenant)
        except StorageUnavailable as late:
            detail = f"other work of this tenant took more than {self._seconds:g} seconds; try again"
            raise Busy(detail) from late
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        done.add_done_callback(lambda ended: (leave(), ended.exception()))  # also one that nobody waits for any more
        self._jobs.put(_Job(work, contextvars.copy_context(), loop, done))
        self._start()
        await asyncio.wait([done], timeout=self._seconds)
        if not done.done():
            raise DeadlineExceeded(f"the work on this text took more than {self._seconds:g} seconds; send less at once")
        return done.result()

    def close(self) -> None:
        """Let the threads end that have nothing to do; none is waited for."""
        for _ in range(self._threads):
            self._jobs.put(None)
        self._threads = 0

    def _start(self) -> None:
        if self._threads < THREADS:
            self._threads += 1
            threading.Thread(target=_work, args=(self._jobs,), name=f"work-{self._threads}", daemon=True).start()


def _work(jobs: "SimpleQueue[_Job | None]") -> None:
    """Do jobs until there are no more."""
    while (job := jobs.get()) is not None:
        try:
            answer, error = job.context.run(job.work), None
        except BaseException as raised:  # noqa: BLE001 - raised again where it is waited for
            answer, error = None, raised
        try:
            job.loop.call_soon_threadsafe(_tell, job.done, answer, error)
        except RuntimeError:  # the loop has ended meanwhile
            return
        del job, answer, error


def _tell(done: asyncio.Future[Any], answer: object, error: BaseException | None) -> None:
    if error is None:
        done.set_result(answer)
    else:
        done.set_exception(error)
