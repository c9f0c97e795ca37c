"""kill -9 of a server on a SQLite file under load: nothing acknowledged is lost, no revision comes twice.

And several servers on one file at once: they take turns, and no client hears of it. As with PostgreSQL, what clients
were told is compared with what is there, and a control shows that the comparison can fail.
"""

import os
import random
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from support.process import ServeProcess
from support.writers import Acknowledgements, Writer, gaps, stored_file, told_twice, untrue

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "3"))
WRITERS = 8
PROCESSES = 4
SECONDS = 5.0
# Acknowledgements before the kill: enough that all writers are at work, and never the same number.
LOAD = range(60, 160)
FEW = 30  # so few that the log was not folded into the file yet
pytestmark = pytest.mark.slow


class Load:
    """Writers, each at a server of one data folder, and what they were told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told = Acknowledgements()
        self._writers = [Writer(number, self.told) for number in range(WRITERS)]

    @property
    def file(self) -> Path:
        """Where everything stands."""
        return self.folder / "memplane.db"

    @contextmanager
    def on(self, servers: Sequence[ServeProcess]) -> Iterator[list[threading.Thread]]:
        """Let the writers write for as long as this lasts, spread over servers."""
        stop = threading.Event()
        credential = servers[0].keys["supervisor"]
        threads = [
            threading.Thread(target=writer.run, args=(servers[number % len(servers)].url, credential, stop))
            for number, writer in enumerate(self._writers)
        ]
        for thread in threads:
            thread.start()
        try:
            yield threads
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def faults(self) -> list[str]:
        """What is wrong with the file, and with what clients were told, since the very first."""
        with closing(sqlite3.connect(self.file)) as connection:
            checks = connection.execute("PRAGMA integrity_check").fetchall()
            broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        found = stored_file(self.file)
        wrong = [f"integrity: {row}" for row in (*checks, *broken) if row != ("ok",)]
        return wrong + untrue(self.told.told, found) + told_twice(self.told.told) + gaps(found)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    return Load(tmp_path / "data")


@pytest.fixture
def start(load: Load) -> Iterator["Start"]:
    started = Start(load.folder)
    yield started
    started.kill()


class Start:
    """Starts servers on a data folder, and ends them all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[ServeProcess] = []

    def __call__(self) -> ServeProcess:
        """Start one more."""
        self._started.append(ServeProcess(self._folder, "--storage", "sqlite"))
        return self._started[-1]

    def kill(self) -> None:
        """End all with SIGKILL."""
        while self._started:
            self._started.pop().kill()


def write_and_kill(load: Load, start: Start, acknowledged: int) -> None:
    with load.on([start()]):
        load.told.wait_for(acknowledged)
        start.kill()


def test_nothing_acknowledged_is_lost(load: Load, start: Start) -> None:
    for number in range(ROUNDS):
        write_and_kill(load, start, random.choice(LOAD))  # noqa: S311 - any moment will do
        assert load.faults() == [], f"after kill {number + 1}"


def test_a_file_that_forgets_is_found_out(load: Load, start: Start) -> None:
    """The control: a lost write-ahead log takes what was acknowledged with it, and the same comparison says so."""
    write_and_kill(load, start, FEW)
    for end in ("-wal", "-shm"):
        load.file.with_name(load.file.name + end).unlink()
    assert [fault for fault in load.faults() if fault.startswith("lost")]
    write_and_kill(load, start, FEW)  # what was lost is given out again, to other writes
    assert [fault for fault in load.faults() if fault.startswith("told")]


def test_several_processes_take_turns_and_no_client_hears_of_it(load: Load, start: Start) -> None:
    servers = [start() for _ in range(PROCESSES)]
    with load.on(servers) as threads:
        threads[0].join(SECONDS)  # a writer ends by itself only when a server could not say what became of a write
        assert [thread.is_alive() for thread in threads] == [True] * WRITERS
    assert len(load.told.told) > 10 * WRITERS
    assert {write.thread for write in load.told.told} >= {f"own-{number}" for number in range(WRITERS)}
    assert [server.stop() for server in servers] == [0] * PROCESSES
    assert load.faults() == []
