"""Work that is done again and again in the background."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

logger = logging.getLogger("memplane.periodic")


class Periodic:
    """Does some work every so many seconds, until it is told to stop.

    Args:
        name: of the work, for the log.
        seconds: how long to wait between.
        work: what to do.
        at_once: whether the first time is now, and not after the first wait.
        finish: whether what is being done when it is told to stop is let come to its end.
    """

    def __init__(
        self,
        name: str,
        seconds: float,
        work: Callable[[], Awaitable[object]],
        *,
        at_once: bool = False,
        finish: bool = False,
    ) -> None:
        self._name = name
        self._seconds = seconds
        self._work = work
        self._at_once = at_once
        self._finish = finish
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._ending.clear()
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End."""
        self._ending.set()
        if self._task is not None:
            if not self._finish:
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        if not self._at_once:
            await self._pause()
        while not self._ending.is_set():
            try:
                await self._work()
            except Exception:
                logger.exception("%s failed; tried again in %g s", self._name, self._seconds)
            await self._pause()

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ending.wait(), self._seconds)
