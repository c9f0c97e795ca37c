"""PostgreSQL as the storage: pools, transactions with their tenant, retries, and the refusal of unsafe roles."""

import asyncio
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, TypeVar
from uuid import UUID

import psycopg
import sqlalchemy as sa
from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg.sql import SQL
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from sqlalchemy.dialects.postgresql.psycopg import AsyncAdapt_psycopg_connection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from memplane.adapters.postgres.active_embedding import Known, alone
from memplane.adapters.postgres.arrays import register_arrays
from memplane.adapters.postgres.checkpoint_pipeline import by_exchanges
from memplane.adapters.postgres.job_messages import send
from memplane.adapters.postgres.keepalive import watching
from memplane.adapters.postgres.pipeline import AnswerTimeout, Pipeline, PipelineConnection, as_dicts
from memplane.adapters.postgres.rate_buckets import DRAW
from memplane.adapters.postgres.scope_cache import ScopeCache, freshen, reread
from memplane.adapters.postgres.search import PostgresReader
from memplane.adapters.postgres.session import BegunAnew, PostgresSession
from memplane.adapters.postgres.syntax import TEXT_SYNTAX
from memplane.adapters.postgres.tenant_removal import REFUSED, REQUIRE_TENANT
from memplane.adapters.postgres.unit_of_work import PostgresUnitOfWork
from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.rows import key_of
from memplane.adapters.sql.session import SqlSession
from memplane.adapters.sql.stores.vectors import vectors_of
from memplane.adapters.sql.unit_of_work import DialectOps, lock_names
from memplane.application.limits.usage import StoredAmounts
from memplane.application.ports import TenantReader
from memplane.application.recall.search_material import Candidates, Query
from memplane.application.records import Draw, Rate, StoredKey, TokenGrant
from memplane.application.transaction import CheckpointStore, TransactionInterrupted, UnitOfWork
from memplane.domain.errors import StorageError, StorageFull, StorageUnavailable, TenantRemoved, UnsafeRole
from memplane.domain.identity.principal import Reach
from memplane.domain.memory.memory import Memory
from memplane.domain.memory.scope import Scope
from memplane.domain.policy.capabilities import POSTGRES

T = TypeVar("T")
_ATTEMPTS = 5
READY_SECONDS = 2.0
"""The longest that it takes to say whether the database answers."""
_SOON_SECONDS = 0.1
_RECONNECT_SECONDS = 5.0
"""A connection that cannot be made for so long is given up; the next request tries another one."""
_AGAIN = ("40001", "40P01")  # serialization failure, deadlock
_SESSION = (
    "-c timezone=UTC -c statement_timeout={ms} -c lock_timeout={ms} -c idle_in_transaction_session_timeout={idle}"
)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long the database may take.

    Attributes:
        statement_ms: for a statement, or a lock: the server ends what takes longer.
        idle_ms: between two statements of a transaction: the server ends the connection.
        exchange: seconds in which something must be answered: here the connection is given up.
    """

    statement_ms: int = 10_000
    idle_ms: int = 60_000
    exchange: float = 12.0


_USUAL = Timeouts()


class PostgresStorage:
    """A PostgreSQL database, reached as a role that row-level security binds.

    Reads go through raw psycopg, writes through SQLAlchemy Core; each transaction sets its tenant for itself alone.
    """

    capabilities = POSTGRES

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 8,
        pool_wait: float = 5.0,
        timeouts: Timeouts = _USUAL,
        scopes: ScopeCache | None = None,
    ) -> None:
        self._scopes = scopes
        self._known: Known = {}
        options = _SESSION.format(ms=timeouts.statement_ms, idle=timeouts.idle_ms)
        watched = watching(url, timeouts.exchange)

        async def configure(connection: PipelineConnection) -> None:
            connection.deadline = timeouts.exchange
            await _taught(connection)

        async def connect(*given: Any, **named: Any) -> PipelineConnection:  # noqa: ANN401 - as the driver's
            connection = await PipelineConnection.connect(*given, **named)
            connection.deadline = timeouts.exchange
            return connection

        self._readers: AsyncConnectionPool[PipelineConnection] = AsyncConnectionPool(
            url,
            connection_class=PipelineConnection,
            min_size=2,
            max_size=pool_size,
            timeout=pool_wait,
            open=False,
            reconnect_timeout=_RECONNECT_SECONDS,
            configure=configure,
            kwargs={"autocommit": True, "options": options, "row_factory": dict_row} | watched,
        )
        self._engine: AsyncEngine = create_async_engine(
            sa.make_url(url).set(drivername="postgresql+psycopg"),
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=pool_wait,
            hide_parameters=True,  # what people said must not reach a log through an error
            connect_args={"options": options, "async_creator_fn": connect} | watched,
        )
        sa.event.listen(self._engine.sync_engine, "connect", _connected)
        sa.event.listen(self._engine.sync_engine, "checkout", _still_there)

    async def open(self) -> None:
        """Connect.

        Raises:
            StorageUnavailable: the database cannot be reached.
            UnsafeRole: the role could bypass row-level security.
        """
        try:
            await self._readers.open(wait=True, timeout=15)
        except PoolTimeout as error:
            raise StorageUnavailable(f"the database cannot be reached: {error}") from error
        await self._refuse_unsafe_role()

    async def close(self) -> None:
        """Close every connection."""
        await self._readers.close()
        await self._engine.dispose()

    async def _refuse_unsafe_role(self) -> None:
        async with self._connection() as connection:
            row = await (
                await connection.execute(
                    # of every role that it is or can become
                    "SELECT current_user AS rolname, bool_or(r.rolsuper) AS rolsuper,"
                    " bool_or(r.rolbypassrls) AS rolbypassrls, EXISTS (SELECT 1 FROM pg_class c"
                    " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')"
                    " AND pg_has_role(current_user, c.relowner, 'MEMBER')) AS owner"
                    " FROM pg_roles r WHERE pg_has_role(current_user, r.oid, 'MEMBER')"
                )
            ).fetchone()
        faults = [name for name in ("rolsuper", "rolbypassrls", "owner") if row and row[name]]
        if row is None or faults:
            what = {"rolsuper": "a superuser", "rolbypassrls": "allowed to bypass row-level security"}
            told = " and ".join(what.get(fault, "the owner of tables") for fault in faults) or "unknown"
            name = row["rolname"] if row else "?"
            raise UnsafeRole(
                f"the database role '{name}' is {told}: tenants would not be kept apart. Connect as the application "
                f"role (memplane_app by default); migrations use MEMPLANE_MIGRATION_URL."
            )

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[PipelineConnection]:
        async with self._lent() as connection, connection:
            yield connection

    @asynccontextmanager
    async def _lent(self, wait: float | None = None) -> AsyncIterator[PipelineConnection]:
        """A connection of the pool; what its database refuses is told as an error of ours."""
        try:
            connection = await self._taken(wait)
            try:
                yield connection
            finally:
                await self._readers.putconn(connection)
        except PoolTimeout as error:
            raise StorageUnavailable("all database connections are busy; try again shortly") from error
        except psycopg.errors.QueryCanceled as error:
            raise StorageUnavailable("the database took too long; narrow the request or try again") from error
        except psycopg.Error as error:
            raise _translated(error) from error

    async def _taken(self, wait: float | None) -> PipelineConnection:
        """A connection of the pool that the server has not ended, as all are when it was started again.

        The pool's own check waits for seconds between one that was ended and the next.
        """
        while True:
            connection = await self._readers.getconn(wait)
            if not _ended(connection):
                return connection
            await connection.close()
            await self._readers.putconn(connection)

    @asynccontextmanager
    async def reading(self, reach: Reach) -> AsyncIterator[TenantReader]:
        """A read-only transaction of a tenant, or of some of its users."""
        async with self._lent() as connection:
            # BEGIN and the tenant travel with the first statement that is waited for
            exchange = Pipeline(connection, Statement(f"SELECT {_NAMED}", _named(reach.with_shared)))
            whole = False
            try:
                try:
                    yield PostgresReader(exchange.rows, reach.tenant, self._scopes, self._known)
                finally:
                    if not exchange.broken:
                        await exchange.end()
                        whole = True
            finally:
                if not whole:
                    await connection.close()

    async def write(self, reach: Reach, work: Callable[[UnitOfWork], Awaitable[T]], users: Collection[str] = ()) -> T:
        """Run ``work`` in one transaction and commit; again when the database asks for a retry."""
        beginning = Statement(
            _BEGIN,
            {
                **_named(reach),
                "names": lock_names(reach.tenant, users),
                "vectors": vectors_of(reach.tenant),
            },
        )

        async def once() -> T:
            async with self._engine.begin() as connection:
                session = PostgresSession(connection, reach.tenant, beginning, self._known)
                await session.learn()
                done = await work(PostgresUnitOfWork(session, TEXT_SYNTAX, WAYS))
                await session.flush()
                return done

        return await _tried(once)

    async def write_checkpoints(self, reach: Reach, work: Callable[[CheckpointStore], Awaitable[T]]) -> T:
        """The same for work on checkpoints alone: by exchanges, the last with the commit."""
        beginning = Statement(f"SELECT {_NAMED}", _named(reach))

        async def once() -> T:
            async with self._engine.connect() as connection:
                return await by_exchanges(connection, beginning, reach.tenant, work)

        return await _tried(once)

    async def find_key(self, key_id: str) -> StoredKey | None:
        """An API key by its public id: row-level security shows a caller without tenant only the key that it names."""
        asked = Statement("SELECT * FROM api_keys WHERE key_id = %(key_id)s", {"key_id": key_id})
        rows = await self._shown("memplane.key", key_id, asked)
        return key_of(rows[0]) if rows else None

    async def has_tenant(self, tenant: str) -> bool:
        """Whether there is such a tenant: row-level security shows the one that is named."""
        asked = Statement(f"{_LISTED} AND t.tenant_id = %(tenant)s", {"tenant": tenant})
        return bool(await self._shown("memplane.tenant", tenant, asked))

    async def tenants(self) -> list[str]:
        """The names of every tenant: row-level security shows them to a transaction that asks for the list."""
        asked = Statement(f"{_LISTED} ORDER BY t.tenant_id", {})
        return [row["tenant_id"] for row in await self._shown("memplane.listing", "tenants", asked)]

    async def _shown(self, setting: str, value: str, asked: Statement) -> list[dict[str, Any]]:
        """Rows that row-level security shows by a setting; looked up anew when the connection was lost meanwhile."""
        beginning = Statement(_SHOWN, {"setting": setting, "value": value})
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                async with self._lent() as connection:
                    exchange = Pipeline(connection, beginning)
                    try:
                        return await exchange.at_once(asked, as_dicts)
                    finally:
                        if exchange.broken:
                            await connection.close()
            except StorageUnavailable as error:
                if attempt == _ATTEMPTS or not _lost(error.__cause__):
                    raise
                await asyncio.sleep(_pause(attempt))
        raise AssertionError  # the loop returns or raises

    async def scrub(self, tenant: str) -> None:
        """Forget what is remembered of scopes; the rows themselves go with the next vacuum, which is their owner's."""
        del tenant
        if self._scopes is not None:
            self._scopes.clear()

    async def draw(self, draw: Draw, rate: Rate) -> TokenGrant:
        """Take tokens of a key's bucket, which all servers share."""
        values = {
            "tenant": draw.tenant,
            "key": draw.key_id,
            "needed": draw.needed,
            "wanted": draw.wanted,
            "rate": rate.per_second,
            "burst": rate.burst,
        }
        async with self._connection() as connection:  # one statement outside a transaction: it may write
            row = await (await connection.execute(SQL(DRAW), values)).fetchone()
        if row is None:
            raise StorageError("the bucket gave no answer")
        return TokenGrant(row["granted"], row["left"])

    async def ready(self) -> None:
        """Return when the database answers.

        Raises:
            StorageUnavailable: it does not within two seconds.
        """
        end = monotonic() + READY_SECONDS
        async with self._lent(READY_SECONDS) as connection:
            usual, connection.deadline = connection.deadline, max(end - monotonic(), _SOON_SECONDS)
            try:
                await connection.execute("SELECT 1")
            finally:
                connection.deadline = usual


async def _tried(once: Callable[[], Awaitable[T]]) -> T:
    """A transaction, again when the database asks for it."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return await once()
        except BegunAnew as error:
            if attempt == _ATTEMPTS:
                raise StorageUnavailable("others change the same at this moment; try again") from error
            await asyncio.sleep(_pause(attempt))
        except sa.exc.TimeoutError as error:
            raise StorageUnavailable("all database connections are busy; try again shortly") from error
        except (
            sa.exc.DBAPIError,
            psycopg.Error,
            TransactionInterrupted,
        ) as error:  # of a statement, a search, a savepoint
            cause = getattr(error, "orig", error)
            if getattr(cause, "sqlstate", None) not in _AGAIN or attempt == _ATTEMPTS:
                raise _translated(cause) from error
            await asyncio.sleep(_pause(attempt))
    raise AssertionError  # the loop returns or raises


_NAMED = (
    "set_config('memplane.tenant', %(tenant)s, true),"
    " set_config('memplane.users', coalesce(%(users)s::text[]::text, ''), true),"
    " set_config('memplane.caller', %(caller)s, true),"
    f" {REQUIRE_TENANT}"  # after the tenant is set, for row-level security
)
_LISTED = (
    "SELECT t.tenant_id FROM tenants t"
    " WHERE NOT EXISTS (SELECT 1 FROM tenant_removals r WHERE r.tenant_id = t.tenant_id)"
)
_SHOWN = "SELECT set_config(%(setting)s, %(value)s, true)"
_LOCKED = "SELECT count(pg_advisory_xact_lock(hashtextextended(name, 0))) FROM unnest(%(names)s::text[]) AS name"
# whoever changes the embedding model waits for those who write by the old one, and these for him: before any user
_VECTORS = "pg_advisory_xact_lock_shared(hashtextextended(%(vectors)s, 0))"
_BEGIN = f"SELECT {_NAMED}, {_VECTORS}, ({_LOCKED})"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(name, 0)) FROM unnest(CAST(:names AS text[])) AS name"


async def _candidates(session: SqlSession, scope: Scope, query: Query) -> Candidates:
    """Within a write: what the transaction sees, its own rows among them."""
    return await (await _reader(session)).candidates(scope, query)


async def _memories(session: SqlSession, scope: Scope, ids: Sequence[UUID]) -> list[Memory]:
    """Within a write: memories as the transaction has them."""
    found = await (await _reader(session)).units(replace(scope, turns=False), ids)
    return [unit for unit in found.values() if isinstance(unit, Memory)]


async def _reader(session: SqlSession) -> PostgresReader:
    if not isinstance(session, PostgresSession):
        raise StorageError("the session is not PostgreSQL's")
    return await session.reader()


async def _lock(session: SqlSession, names: Sequence[str]) -> None:
    await session.execute(sa.text(_LOCK), {"names": list(names)})


async def _widen(session: SqlSession) -> None:
    await session.execute(sa.text("SELECT set_config('memplane.users', '', true)"))


async def _tenant_usage(session: SqlSession, day: str) -> StoredAmounts:
    """The sum of all users, of a transaction that may be bound to some of them."""
    found = (await session.execute(sa.text("SELECT * FROM tenant_usage(:day)"), {"day": day})).one()
    return StoredAmounts(found.memories, found.bytes, found.writes)


WAYS = DialectOps(
    _candidates, _lock, freshen, reread, _memories, send=send, alone=alone, widen=_widen, tenant_usage=_tenant_usage
)  # fmt: skip


def _pause(attempt: int) -> float:
    """Seconds before a transaction is tried again; longer each time."""
    return float(0.005 * 2**attempt)


def _named(reach: Reach) -> dict[str, object]:
    """What row-level security goes by."""
    users = None if reach.users is None else sorted(reach.users)
    return {"tenant": reach.tenant, "users": users, "caller": reach.caller}


def _connected(connection: AsyncAdapt_psycopg_connection, _record: ConnectionPoolEntry) -> None:
    connection.run_async(_taught)


async def _taught(connection: AsyncConnection[Any]) -> None:
    """Vectors and lists as the statements bind them."""
    await register_vector_async(connection)
    register_arrays(connection)


def _ended(connection: AsyncConnection[Any]) -> bool:
    """Whether the server has ended an idle connection: to one that it has not it says nothing.

    Looking costs two microseconds; asking the server would cost each request an exchange.
    """
    if connection.closed:
        return True
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def _still_there(connection: AsyncAdapt_psycopg_connection, _record: ConnectionPoolEntry, _proxy: object) -> None:
    """The same for connections that write, of which the pool makes another one at once."""
    driver = connection.driver_connection
    if not isinstance(driver, AsyncConnection) or _ended(driver):
        raise sa.exc.DisconnectionError


def _lost(error: BaseException | None) -> bool:
    """Whether a connection broke, rather than that the database refused or took too long."""
    if isinstance(error, PoolTimeout | AnswerTimeout) or not isinstance(error, psycopg.OperationalError):
        return False
    return error.sqlstate is None or isinstance(error, psycopg.errors.AdminShutdown | psycopg.errors.CrashShutdown)


def _translated(error: object) -> StorageError | TenantRemoved:
    if getattr(error, "sqlstate", None) == REFUSED:
        return TenantRemoved("this tenant was removed: its keys, tokens and data are no longer valid")
    if isinstance(error, psycopg.errors.QueryCanceled | psycopg.errors.LockNotAvailable):
        return StorageUnavailable("the database took too long; try again shortly")
    if isinstance(error, AnswerTimeout):
        return StorageUnavailable(f"the database did not answer within {error.seconds:g} s; try again shortly")
    if isinstance(error, psycopg.errors.DiskFull):
        return StorageFull("the disk of the database is full: nothing was stored; free space, then try again")
    if isinstance(error, psycopg.OperationalError):
        return StorageUnavailable("the database does not answer; try again shortly")
    return StorageError(f"the database refused the statement ({getattr(error, 'sqlstate', None)})")
