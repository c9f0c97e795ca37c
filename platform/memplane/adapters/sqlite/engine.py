"""Connections to one SQLite file: durable, one writer at a time, many readers."""

import sqlite3
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

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


def reader(path: Path, size: int) -> AsyncEngine:
    """An engine of read connections, each transaction on one snapshot."""
    engine = create_async_engine(async_url(path), pool_size=size, max_overflow=0, hide_parameters=True)
    configure(engine.sync_engine, begin="BEGIN")
    return engine


def configure(engine: sa.Engine, *, begin: str) -> None:
    """Write-ahead log, full durability, foreign keys; transactions begin as said, and hold DDL too."""

    @sa.event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, _record: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # transactions are ours to begin, DDL included
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "cache_size = -65536"):
            cursor.execute(f"PRAGMA {setting}")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begun(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)
