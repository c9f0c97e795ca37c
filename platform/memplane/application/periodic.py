"""Work that is done again and again in the background."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

logger = logging.getLogger("memplane.periodic")


class Periodic:
    """Does some work every so many seconds, until it is told to stop.

    Args:
        name: of the work, for the log.
        seconds: how long to wait between.
        work: what to do.
        at_once: whether the first time is now, and not after the first wait.
    """

    def __init__(
        self, name: str, seconds: float, work: Callable[[], Awaitable[object]], *, at_once: bool = False
    ) -> None:
        self._name = name
        self._seconds = seconds
        self._work = work
        self._at_once = at_once
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End, whatever it is doing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        if not self._at_once:
            await asyncio.sleep(self._seconds)
        while True:
            try:
                await self._work()
            except Exception:
                logger.exception("%s failed; tried again in %g s", self._name, self._seconds)
            await asyncio.sleep(self._seconds)
