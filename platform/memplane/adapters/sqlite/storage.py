"""One SQLite file as the storage of one person."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TypeVar
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.queries.read_statements import Statement, memories_by_id
from memplane.adapters.sql.rows import key_of, memory_of
from memplane.adapters.sql.session import SqlSession
from memplane.adapters.sql.unit_of_work import DialectOps, SqlUnitOfWork
from memplane.adapters.sqlite import engine
from memplane.adapters.sqlite.backup import copy
from memplane.adapters.sqlite.engine import Snapshot
from memplane.adapters.sqlite.rate_buckets import LocalBuckets
from memplane.adapters.sqlite.search import (
    SYNTAX,
    CachesInForce,
    SqliteReader,
    fetch_rows,
    freshen,
    in_force_of,
    reread,
)
from memplane.adapters.sqlite.session import SqliteSession, translate_error
from memplane.application.ports import TenantReader
from memplane.application.recall.search_material import Candidates, Query
from memplane.application.records import Draw, Rate, StoredKey, TokenGrant
from memplane.application.transaction import CheckpointStore, TransactionInterrupted, UnitOfWork
from memplane.domain.errors import StorageError, StorageUnavailable
from memplane.domain.identity.principal import Reach
from memplane.domain.memory.memory import Memory, State
from memplane.domain.memory.scope import Scope
from memplane.domain.policy.capabilities import SQLITE, Capability
from memplane.domain.ranking.embedding_models import InForce

logger = logging.getLogger("memplane.sqlite")
T = TypeVar("T")
TENANT = "default"
_KEY = "SELECT * FROM api_keys WHERE key_id = :key_id"
_TENANT = "SELECT 1 FROM tenants WHERE tenant_id = :tenant"


class SqliteStorage:
    """A SQLite file: readers on snapshots, one writer at a time, one tenant.

    Several processes may use the file at once; whoever has to wait, waits for as long as ``wait`` says in all: for its
    turn in this process, and for the other processes.
    """

    capabilities = SQLITE

    def __init__(self, path: Path, *, dimensions: int, readers: int = 4, wait: float = 5.0) -> None:
        self._path = path
        self._writer = engine.WriteConnection(path)
        self._readers = engine.Readers(path, readers, wait)
        self._turn = asyncio.Lock()
        self._wait = wait
        self._buckets = LocalBuckets()
        self._caches = CachesInForce(dimensions)

    async def open(self) -> None:
        """Open the file.

        Raises:
            StorageUnavailable: it cannot be opened.
        """
        try:
            await self._readers.open()
        except sqlite3.Error as error:
            raise translate_error(error) from error
        await self.ready()

    async def close(self) -> None:
        """Close every connection; the last one to leave folds the write-ahead log into the file."""
        await self._readers.close()
        async with self._turn:  # a transaction that is open ends first
            await self._writer.close()

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[Snapshot]:
        try:
            async with self._readers.snapshot() as snapshot:
                yield snapshot
        except TimeoutError as error:
            raise StorageUnavailable("all connections to the file are busy; try again shortly") from error
        except sqlite3.Error as error:
            raise translate_error(error) from error

    @asynccontextmanager
    async def reading(self, reach: Reach) -> AsyncIterator[TenantReader]:
        """A read-only transaction on one snapshot."""
        _refuse_other(reach.tenant)
        async with self._reading() as snapshot:
            yield SqliteReader(snapshot, self._caches, reach.tenant)

    async def write(self, reach: Reach, work: Callable[[UnitOfWork], Awaitable[T]], users: Collection[str] = ()) -> T:
        """Run ``work`` in one transaction and commit; nobody else writes until it ends."""
        del users
        _refuse_other(reach.tenant)
        end = monotonic() + self._wait
        try:
            async with self._alone(), self._writer.begin(end - monotonic()) as connection:
                in_force = await self._writer.run(_in_force, connection, reach.tenant)
                session = SqliteSession(connection, self._writer, reach.tenant, in_force)
                done = await work(
                    SqlUnitOfWork(
                        session,
                        SYNTAX,
                        DialectOps(self._candidates, _alone, freshen, reread, _memories, row_locks=False),
                    )
                )
                await session.flush()
                return done
        except (sa.exc.DBAPIError, sqlite3.Error, TransactionInterrupted) as error:
            raise translate_error(error) from error

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        try:
            await engine.within(self._wait, self._turn.acquire())
        except TimeoutError as error:
            raise StorageUnavailable("too many others write to the file; try again shortly") from error
        try:
            yield
        finally:
            self._turn.release()

    async def _candidates(self, _session: SqlSession, scope: Scope, query: Query) -> Candidates:
        """Within a write: what the file holds, for nobody else can write now; not what this transaction has written."""
        if scope.lasting_beyond is not None:  # what it has superseded itself is found as it was, and read as it is
            scope = replace(scope, lasting_beyond=None, states=(State.ACTIVE, State.SUPERSEDED))
        async with self._reading() as snapshot:
            return await SqliteReader(snapshot, self._caches, TENANT).candidates(scope, query)

    async def write_checkpoints(self, reach: Reach, work: Callable[[CheckpointStore], Awaitable[T]]) -> T:
        """The same for work on checkpoints alone."""
        return await self.write(reach, lambda uow: work(uow.checkpoints))

    async def find_key(self, key_id: str) -> StoredKey | None:
        """An API key by its public id."""
        statement = Statement(_KEY, {"key_id": key_id})
        async with self._reading() as snapshot:
            found = await snapshot.run(lambda connection: fetch_rows(connection, statement))
        return key_of(found[0]) if found else None

    async def has_tenant(self, tenant: str) -> bool:
        """Whether it is the file's one tenant, and was made."""
        if tenant != TENANT:
            return False
        statement = Statement(_TENANT, {"tenant": tenant})
        async with self._reading() as snapshot:
            return bool(await snapshot.run(lambda connection: fetch_rows(connection, statement)))

    async def tenants(self) -> list[str]:
        """The file's one tenant, once it was made."""
        return [TENANT] if await self.has_tenant(TENANT) else []

    async def scrub(self, tenant: str) -> None:
        """Forget what is remembered, and empty the write-ahead log, which holds what rows were before."""
        _refuse_other(tenant)
        self._caches.clear()
        async with self._alone():
            emptied = await self._writer.checkpoint()
        if not emptied:
            logger.warning("the write-ahead log is being read, and is emptied later: it may hold what was erased")

    async def draw(self, draw: Draw, rate: Rate) -> TokenGrant:
        """Take tokens of a key's bucket, which this process keeps."""
        return self._buckets.draw(draw, rate)

    async def ready(self) -> None:
        """Return when the file answers."""
        async with self._reading() as snapshot:
            await snapshot.run(lambda connection: connection.execute("SELECT 1 FROM alembic_version").fetchall())

    async def backup(self, target: Path) -> None:
        """A consistent copy of the file, made while it is in use.

        Raises:
            StorageUnavailable: the target is there already, or the copy cannot be written.
        """
        await asyncio.to_thread(copy, self._path, target)

    async def faults(self) -> list[str]:
        """What SQLite's own integrity check and foreign keys find wrong; empty when all is well."""
        async with self._reading() as snapshot:
            return await snapshot.run(_faults)


def _in_force(connection: sa.Connection, tenant: str) -> InForce:
    driver = connection.connection.driver_connection
    if not isinstance(driver, sqlite3.Connection):
        raise StorageError("the connection is not sqlite3's")
    return in_force_of(driver, tenant)


def _faults(connection: sqlite3.Connection) -> list[str]:
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
    broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    return [fault for fault in found if fault != "ok"] + [f"a row of {row[0]} refers to none" for row in broken]


async def _memories(session: SqlSession, scope: Scope, ids: Sequence[UUID]) -> list[Memory]:
    """Within a write: memories as the transaction has them."""
    if not isinstance(session, SqliteSession):
        raise StorageError("the session is not SQLite's")
    return [memory_of(row) for row in await session.rows(memories_by_id(scope, SYNTAX, ids))]


async def _alone(_session: SqlSession, _names: Sequence[str]) -> None:
    """A transaction that writes is the only one."""


def _refuse_other(tenant: str) -> None:
    if tenant != TENANT:
        SQLITE.require(Capability.SEVERAL_TENANTS)
