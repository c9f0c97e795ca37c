"""The queue of a SQLite file: the table of jobs itself, worked off one by one by the process that serves the file."""

import asyncio
from collections.abc import Callable
from uuid import uuid4

from memplane.adapters.sqlite.storage import TENANT, SqliteStorage
from memplane.application.jobs.job_records import Lease
from memplane.application.jobs.periodic import Periodic
from memplane.application.ports import Clock, Perform
from memplane.domain.identity.principal import Reach

POLL_SECONDS = 1.0
"""How often the table is looked at; what is due is done one after another until nothing is."""


class LocalWorker:
    """Does the jobs of one file.

    Args:
        storage: the file.
        perform: does a job.
        clock: the time.
        stop: lets the job under way be handed back after its batch.
    """

    def __init__(self, storage: SqliteStorage, perform: Perform, clock: Clock, stop: Callable[[], None]) -> None:
        self._storage = storage
        self._perform = perform
        self._clock = clock
        self._hand_back = stop
        self._ending = asyncio.Event()
        self._loop = Periodic("the queue of jobs", POLL_SECONDS, self.drain, finish=True)

    async def open(self) -> None:
        """Nothing is needed: the file is open."""

    def start(self) -> None:
        """Begin."""
        self._loop.start()

    async def close(self) -> None:
        """End after the batch under way."""
        self._ending.set()
        self._hand_back()
        await self._loop.stop()

    async def drain(self) -> None:
        """Do what is due, until nothing is."""
        while not self._ending.is_set():
            run = await self._storage.write(Reach(TENANT), lambda uow: uow.jobs.next_due(self._clock()))
            if run is None:
                return
            await self._perform(TENANT, run.id, Lease(f"local:{uuid4()}", 0))
