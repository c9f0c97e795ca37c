"""Connections to one SQLite file: durable, one writer at a time, many readers."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import ConnectionPoolEntry

T = TypeVar("T")
SETTINGS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "cache_size = -65536",
    "secure_delete = ON",  # what is deleted is overwritten, and does not stay in the file
)
BUSY_MS = 30_000
"""How long a migration, or another command by itself, waits for another process before it gives up."""


def sync_url(path: Path) -> str:
    """The file as a SQLAlchemy URL."""
    return f"sqlite:///{path}"


class WriteConnection:
    """One connection whose transactions take the write lock when they begin, with its own thread.

    A transaction that begins deferred and writes later fails at once when another one wrote in between, whatever the
    busy timeout; one that begins immediate waits its turn.
    """

    def __init__(self, path: Path) -> None:
        self._engine = sa.create_engine(
            sync_url(path),
            poolclass=sa.StaticPool,
            connect_args={"check_same_thread": False},  # it is used by one thread, but not by that which closes it
            hide_parameters=True,
        )
        configure(self._engine, begin="BEGIN IMMEDIATE")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite-writer")
        self._open: sa.Connection | None = None

    async def run(self, work: Callable[..., T], *given: object) -> T:
        """What ``work`` does in the connection's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *given)

    @asynccontextmanager
    async def begin(self, wait: float) -> AsyncIterator[sa.Connection]:
        """A transaction, committed at the end; taken back when it fails or is cancelled, wherever that was.

        Args:
            wait: seconds to wait while another process writes.
        """
        try:
            connection = await self.run(self._begun, wait)
            yield connection
            await self.run(connection.commit)
        finally:
            self._thread.submit(self._end)  # without waiting: the thread does one thing after the other

    def _begun(self, wait: float) -> sa.Connection:
        self._open = self._engine.connect()
        driver = self._open.connection.driver_connection
        if isinstance(driver, sqlite3.Connection):
            driver.execute(f"PRAGMA busy_timeout = {_milliseconds(wait)}")
        self._open.begin()
        return self._open

    def _end(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            connection.close()  # takes back what was not committed

    async def checkpoint(self) -> bool:
        """Fold the write-ahead log into the file and empty it; False when somebody still reads what was before."""
        return await self.run(self._checkpointed)

    def _checkpointed(self) -> bool:
        with self._engine.connect() as connection:
            driver = connection.connection.driver_connection
            if not isinstance(driver, sqlite3.Connection):
                return False
            busy, *_ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy

    async def close(self) -> None:
        """Disconnect, when what is being written was written."""
        await self.run(self._engine.dispose)
        self._thread.shutdown()


class Snapshot:
    """A read transaction, in the thread of its connection."""

    def __init__(self, connection: sqlite3.Connection, thread: ThreadPoolExecutor) -> None:
        self._connection = connection
        self._thread = thread

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What ``work`` reads; everything that it asks is answered from one state of the file."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._within, work)

    def _within(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN")
        return work(self._connection)

    def end(self) -> None:
        """End the transaction; without waiting, since the thread does one thing after the other."""
        self._thread.submit(self._connection.rollback)


class Readers:
    """A few connections for reading, each with its own thread; whoever comes when all are taken waits a while.

    A change of threads costs more than most statements, so a reader hands over work and not single statements.
    """

    def __init__(self, path: Path, size: int, wait: float) -> None:
        self._path = path
        self._size = size
        self._wait = wait
        self._free: asyncio.LifoQueue[Snapshot] = asyncio.LifoQueue()
        self._all: list[tuple[sqlite3.Connection, ThreadPoolExecutor]] = []

    async def open(self) -> None:
        """Connect."""
        for number in range(self._size):
            thread = ThreadPoolExecutor(1, thread_name_prefix=f"sqlite-reader-{number}")
            connection = await asyncio.get_running_loop().run_in_executor(thread, self._connected)
            self._all.append((connection, thread))
            self._free.put_nowait(Snapshot(connection, thread))

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None)
        for setting in (f"busy_timeout = {_milliseconds(self._wait)}", *SETTINGS, "query_only = ON"):
            connection.execute(f"PRAGMA {setting}")
        return connection

    async def close(self) -> None:
        """Disconnect, when what is being read was read."""
        while self._all:
            connection, thread = self._all.pop()
            await asyncio.get_running_loop().run_in_executor(thread, connection.close)
            thread.shutdown()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """A read transaction, which begins with the first work and ends after the last, cancelled or not.

        Raises:
            TimeoutError: no connection came free in time.
        """
        snapshot = await within(self._wait, self._free.get())
        try:
            yield snapshot
        finally:
            snapshot.end()
            self._free.put_nowait(snapshot)


def _milliseconds(seconds: float) -> int:
    return max(round(seconds * 1000), 1)


async def within(seconds: float, waited_for: Awaitable[T]) -> T:
    """What comes, if it comes in time.

    Raises:
        TimeoutError: it does not.
    """
    async with asyncio.timeout(seconds):
        return await waited_for


def configure(engine: sa.Engine, *, begin: str) -> None:
    """Write-ahead log, full durability, foreign keys; transactions begin as said, and hold DDL too."""

    @sa.event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, _record: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # transactions are ours to begin, DDL included
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        for setting in SETTINGS:
            cursor.execute(f"PRAGMA {setting}")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begun(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)
