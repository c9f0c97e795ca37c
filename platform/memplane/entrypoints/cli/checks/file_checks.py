"""What `memplane doctor` looks at where the database is one SQLite file."""

import asyncio
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from memplane.adapters.embeddings.wordllama import DIMENSIONS
from memplane.adapters.sql.schema.revisions import head
from memplane.adapters.sqlite.provisioning import checked_engine
from memplane.adapters.sqlite.storage import SqliteStorage
from memplane.domain.errors import SettingsError, StorageError
from memplane.entrypoints.cli.checks.check_results import CheckSkipped, Doubtful

SAFE_SQLITE = (3, 51, 3)
"""The first version in which several processes can reset the write-ahead log of one file without losing pages."""

Check = tuple[str, Callable[[], str], str]
"""Its name, the look, and what to do about a problem."""


def file_checks(path: Path) -> Iterator[Check]:
    """The checks of a file, and of the library that reads it."""
    yield "database", lambda: _fits(path), "run `memplane migrate --storage sqlite`, or restore the file from a backup"
    yield "integrity", lambda: _whole(path), "stop the server and restore the file from a backup"
    yield "file mode", lambda: _private(path), f"`chmod 600 {path}`"
    yield "journal", lambda: _logged(path), "let one `memplane serve` open the file on a local disk, not a network one"
    safe = ".".join(map(str, SAFE_SQLITE))
    yield "SQLite", _library, f"use a Python whose SQLite is {safe} or newer; until then, let one process use the file"


def _there(path: Path) -> Path:
    if not path.exists():
        raise CheckSkipped("not made yet; `memplane init` or `memplane serve` makes it")
    return path


def _fits(path: Path) -> str:
    checked_engine(_there(path)).dispose()
    return f"{path}, revision {head()}"


def _whole(path: Path) -> str:
    async def look() -> list[str]:
        storage = SqliteStorage(_there(path), dimensions=DIMENSIONS)
        try:
            await storage.open()
            return await storage.faults()
        finally:
            await storage.close()

    faults = asyncio.run(look())
    if faults:
        raise StorageError(f"{len(faults)} faults: {'; '.join(faults[:3])}")
    return "every page and every reference is right"


def _private(path: Path) -> str:
    mode = stat.S_IMODE(_there(path).stat().st_mode)
    if mode & 0o077:
        raise SettingsError(f"{path} has mode {mode:o}: others than its owner can read it")
    return f"{mode:o}"


def _logged(path: Path) -> str:
    with closing(sqlite3.connect(f"{_there(path).absolute().as_uri()}?mode=ro", uri=True)) as connection:
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != "wal":
        raise StorageError(f"the journal mode is '{mode}', not 'wal': readers would wait for writers")
    return "write-ahead log"


def _library() -> str:
    found = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < SAFE_SQLITE:
        raise Doubtful(
            f"{found}: several processes on one file are only safe from {'.'.join(map(str, SAFE_SQLITE))} on"
        )
    return found
