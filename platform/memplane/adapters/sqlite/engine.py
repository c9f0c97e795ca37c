"""Connections to one SQLite file: durable, one writer at a time, many readers."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

SETTINGS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "cache_size = -65536")
BUSY_MS = 30_000
"""How long a statement waits for another process before it gives up."""


def async_url(path: Path) -> str:
    """The file as an asynchronous SQLAlchemy URL."""
    return f"sqlite+aiosqlite:///{path}"


def sync_url(path: Path) -> str:
    """The file as a synchronous SQLAlchemy URL, for migrations."""
    return f"sqlite:///{path}"


def writer(path: Path) -> AsyncEngine:
    """An engine of one connection whose transactions take the write lock when they begin.

    A transaction that begins deferred and writes later fails at once when another one wrote in between, whatever the
    busy timeout; one that begins immediate waits its turn.
    """
    engine = create_async_engine(async_url(path), pool_size=1, max_overflow=0, hide_parameters=True)
    configure(engine.sync_engine, begin="BEGIN IMMEDIATE")
    return engine


class Readers:
    """A few connections for reading, each transaction on one snapshot; whoever comes when all are taken waits.

    They are driven directly: a transaction through SQLAlchemy's asynchronous engine costs 1 ms of thread changes.
    """

    def __init__(self, path: Path, size: int) -> None:
        self._path = path
        self._size = size
        self._free: asyncio.LifoQueue[aiosqlite.Connection] = asyncio.LifoQueue()
        self._all: list[aiosqlite.Connection] = []

    async def open(self) -> None:
        """Connect."""
        for _ in range(self._size):
            connection = await aiosqlite.connect(self._path, isolation_level=None)
            self._all.append(connection)
            for setting in (f"busy_timeout = {BUSY_MS}", *SETTINGS, "query_only = ON"):
                await connection.execute_fetchall(f"PRAGMA {setting}")
            self._free.put_nowait(connection)

    async def close(self) -> None:
        """Disconnect."""
        while self._all:
            await self._all.pop().close()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[aiosqlite.Connection]:
        """A read transaction."""
        connection = await self._free.get()
        try:
            await connection.execute_fetchall("BEGIN")
            try:
                yield connection
            finally:
                await connection.rollback()
        finally:
            self._free.put_nowait(connection)


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
