"""One write transaction of one tenant."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memplane.adapters.sql import tables
from memplane.adapters.sql.gateway_stores import SqlAnswers, SqlConsents, SqlGraph, SqlTombstones
from memplane.adapters.sql.prepared import Insert
from memplane.adapters.sql.scope import Syntax
from memplane.adapters.sql.stores import FindCandidates, ReadMemories, SqlJournal, SqlKeys, SqlMemories, SqlThreads
from memplane.application.ports import Answers, Consents, Graph, Journal, KeyStore, MemoryStore, ThreadStore, Tombstones


@dataclass(frozen=True, slots=True)
class Ways:
    """What each database does in its own way within a write.

    Attributes:
        candidates: finds the signals of everything in scope.
        read: reads memories by their ids, where there is a faster way than that of every database.
        lock: lets no other transaction take the same names until this one ends.
    """

    candidates: FindCandidates
    lock: Callable[[AsyncConnection, Sequence[str]], Awaitable[None]]
    read: ReadMemories | None = None


def lock_names(tenant: str, users: Iterable[str]) -> list[str]:
    """By what users are locked, in one order for every writer."""
    return [f"{tenant}/{user}" for user in sorted(set(users))]


class SqlUnitOfWork:
    """The stores of one open transaction; whoever opened the transaction commits it."""

    def __init__(self, connection: AsyncConnection, tenant: str, insert: Insert, syntax: Syntax, ways: Ways) -> None:
        self._connection = connection
        self._tenant = tenant
        self._insert = insert
        self._ways = ways
        self.memories: MemoryStore = SqlMemories(connection, tenant, insert, syntax, ways.candidates, ways.read)
        self.threads: ThreadStore = SqlThreads(connection, tenant, insert)
        self.journal: Journal = SqlJournal(connection, tenant)
        self.keys: KeyStore = SqlKeys(connection, tenant)
        self.tombstones: Tombstones = SqlTombstones(connection, tenant, insert)
        self.graph: Graph = SqlGraph(connection, tenant, insert)
        self.answers: Answers = SqlAnswers(connection, tenant, insert)
        self.consents: Consents = SqlConsents(connection, tenant)

    def attempt(self) -> AbstractAsyncContextManager[object]:
        """Work within the transaction that is taken back alone when it fails."""
        return self._connection.begin_nested()

    async def lock_users(self, user_ids: Iterable[str]) -> None:
        """Let no other transaction write these users' memories until this one ends; in the order of their names."""
        await self._ways.lock(self._connection, lock_names(self._tenant, user_ids))

    async def ensure_tenant(self, now: datetime) -> None:
        """Make the tenant if it is new."""
        statement = self._insert(tables.tenants).values(tenant_id=self._tenant, created_at=now)
        await self._connection.execute(statement.on_conflict_do_nothing())

    async def setting(self, name: str) -> object | None:
        """A value of the metadata table."""
        s = tables.settings.c
        statement = sa.select(s.value).where(s.tenant_id == self._tenant, s.name == name)
        value: object | None = (await self._connection.execute(statement)).scalar_one_or_none()
        return value

    async def keep_setting(self, name: str, value: object, now: datetime) -> None:
        """Store a value in the metadata table."""
        s = tables.settings.c
        statement = self._insert(tables.settings).values(tenant_id=self._tenant, name=name, value=value, updated_at=now)
        await self._connection.execute(
            statement.on_conflict_do_update(
                index_elements=[s.tenant_id, s.name], set_={"value": value, "updated_at": now}
            )
        )
