"""`memplane worker` as a process of its own, to be killed, paused and looked at."""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.cluster import Database
from support.commands import Forked, clean_environment
from support.process import PATIENCE

STALLED_SECONDS = 2.0
IDLE_MS = 1500
"""A transaction of a paused worker holds its locks for so long; tests cannot wait for a minute."""


class WorkerProcess:
    """A worker on a database of PostgreSQL, in a process of its own.

    Attributes:
        pid: of the process.
    """

    def __init__(self, database: Database, log: Path, **settings: str) -> None:
        self._log = log
        environment = {
            "MEMPLANE_DATABASE_URL": database.url,
            "MEMPLANE_WORKER_URL": database.worker_url,
            "MEMPLANE_WORKER_STALLED_SECONDS": str(STALLED_SECONDS),
            "MEMPLANE_IDLE_TRANSACTION_MS": str(IDLE_MS),
            "MEMPLANE_LOG_LEVEL": "INFO",
            "MEMPLANE_POOL_SIZE": "2",
        }
        whole = clean_environment() | environment | settings
        self._process = Forked("worker", environment=whole, errors=log, cwd=log.parent)
        self.pid = self._process.pid
        readable, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        line = self._process.stdout.readline() if readable else ""
        if line.strip() != "ready":
            self.kill()
            raise RuntimeError(f"the worker did not start: {line!r}\n{self.log}")

    @property
    def log(self) -> str:
        """What it has written to standard error."""
        return self._log.read_text()

    def kill(self) -> None:
        """End it with SIGKILL, paused or not."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._end()

    def pause(self) -> None:
        """Let it do nothing until it is resumed."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on, as if no time had passed."""
        os.kill(self.pid, signal.SIGCONT)

    def tell_to_stop(self) -> None:
        """Send what an operator's tools send, and wait for nothing."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait until it has ended, and get its exit code."""
        return self._end()

    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def _end(self) -> int:
        return self._process.wait(PATIENCE)


@contextmanager
def worker(database: Database, log: Path, **settings: str) -> Iterator[WorkerProcess]:
    """A worker that is gone at the end."""
    started = WorkerProcess(database, log, **settings)
    try:
        yield started
    finally:
        started.kill()


def until(holds: Callable[[], bool], what: str, patience: float = 20.0, *, pause: float = 0.02) -> None:
    """Wait for something that another process does.

    Raises:
        AssertionError: it does not come about.
    """
    end = time.monotonic() + patience
    while not holds():
        assert time.monotonic() < end, f"did not come about: {what}"
        time.sleep(pause)
