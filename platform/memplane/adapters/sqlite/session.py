"""A write transaction on SQLite, in the thread of its connection.

A change of threads costs more than most statements: rows to add wait for the next statement and go with it.
"""

import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.engine.result import IteratorResult, SimpleResultMetaData

from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.session import MEMORIES, Row, SqlSession, Values, adding
from memplane.adapters.sqlite.engine import WriteConnection
from memplane.adapters.sqlite.search import SYNTAX, fetch_rows
from memplane.application.transaction import TransactionInterrupted
from memplane.domain.errors import StorageError, StorageFull, StorageUnavailable
from memplane.domain.ranking.embedding_models import InForce


class SqliteSession(SqlSession):
    """Rows wait until a statement could see them."""

    syntax = SYNTAX

    def __init__(self, connection: sa.Connection, writer: WriteConnection, tenant: str, in_force: InForce) -> None:
        super().__init__(tenant, insert, in_force)
        self._connection = connection
        self._writer = writer
        self._waiting: list[tuple[str, list[Row]]] = []

    async def execute(self, statement: sa.Executable, values: Values = None) -> sa.Result[Any]:
        """Send a statement, which sees whatever was added before; its rows."""
        return await self._writer.run(self._fetched, self._taken(), statement, values)

    async def rows_changed(self, statement: sa.Executable, values: Values = None) -> int:
        """Send a statement; how many rows it changed."""
        return await self._writer.run(self._counted, self._taken(), statement, values)

    async def rows(self, statement: Statement) -> list[Mapping[str, Any]]:
        """The rows of a statement in the driver's own words, which sees whatever was added before."""
        (rows,) = await self.rows_of_all([statement])
        return rows

    async def rows_of_all(self, asked: Sequence[Statement]) -> list[list[Mapping[str, Any]]]:
        """The rows of several statements in the driver's own words, in one change of threads."""
        return await self._writer.run(self._read, self._taken(), asked)

    def _read(self, waiting: list[tuple[str, list[Row]]], asked: Sequence[Statement]) -> list[list[Mapping[str, Any]]]:
        self._send(waiting)
        driver = self._connection.connection.driver_connection
        if not isinstance(driver, sqlite3.Connection):
            raise StorageError("the connection is not sqlite3's")
        return [list(fetch_rows(driver, statement)) for statement in asked]

    @asynccontextmanager
    async def _attempt(self) -> AsyncIterator[None]:
        await self.flush()
        savepoint = await self._writer.run(self._connection.begin_nested)
        try:
            yield
            await self.flush()
        except (sa.exc.DBAPIError, sqlite3.Error) as error:
            await self._taken_back(savepoint)
            if isinstance(translate_error(error), StorageUnavailable):
                raise TransactionInterrupted(getattr(error, "orig", error)) from error
            raise
        except BaseException:
            await self._taken_back(savepoint)
            raise
        await self._writer.run(savepoint.commit)

    async def _taken_back(self, savepoint: sa.NestedTransaction) -> None:
        self._waiting.clear()
        await self._writer.run(savepoint.rollback)

    def attempt(self) -> AbstractAsyncContextManager[object]:
        """Work within the transaction that is taken back alone when it fails."""
        return self._attempt()

    async def add(self, table: str, rows: list[Row]) -> bool:
        """Add rows, all with the same columns; False when a memory of the same value or name is there already."""
        if table == MEMORIES:
            return await super().add(table, rows)
        self._waiting.append((table, rows))
        return True

    async def flush(self) -> None:
        """Send what waits."""
        if self._waiting:
            await self._writer.run(self._send, self._taken())

    def _taken(self) -> list[tuple[str, list[Row]]]:
        taken, self._waiting = self._waiting, []
        return taken

    def _send(self, waiting: list[tuple[str, list[Row]]]) -> None:
        for table, rows in waiting:
            self._connection.execute(*adding(table, rows, self.insert)).close()  # an open one would stop the commit

    def _fetched(
        self, waiting: list[tuple[str, list[Row]]], statement: sa.Executable, values: Values
    ) -> sa.Result[Any]:
        self._send(waiting)
        result = self._connection.execute(statement, values)
        return result.freeze()() if result.returns_rows else IteratorResult(SimpleResultMetaData([]), iter(()))

    def _counted(self, waiting: list[tuple[str, list[Row]]], statement: sa.Executable, values: Values) -> int:
        self._send(waiting)
        return self._connection.execute(statement, values).rowcount


def translate_error(error: Exception) -> StorageError:
    """What the database refused, as an error of ours."""
    origin = getattr(error, "orig", error)
    name = getattr(origin, "sqlite_errorname", type(origin).__name__)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StorageUnavailable("another process holds the file's write lock; try again shortly")
    if name.startswith("SQLITE_FULL"):
        return StorageFull("the disk of the database is full: nothing was stored; free space, then try again")
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_NOTADB", "SQLITE_IOERR", "SQLITE_READONLY")):
        return StorageUnavailable(f"the file cannot be used ({name})")
    return StorageError(f"the database refused the statement ({name})")
