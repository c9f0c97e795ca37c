"""One write transaction of one tenant."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from memplane.adapters.sql import tables
from memplane.adapters.sql.scope import Syntax
from memplane.adapters.sql.stores import Insert, SqlJournal, SqlKeys, SqlMemories, SqlThreads
from memplane.application.ports import Journal, KeyStore, MemoryStore, ThreadStore


class SqlUnitOfWork:
    """The stores of one open transaction; whoever opened the transaction commits it."""

    def __init__(self, connection: AsyncConnection, tenant: str, insert: Insert, syntax: Syntax) -> None:
        self._connection = connection
        self._tenant = tenant
        self._insert = insert
        self.memories: MemoryStore = SqlMemories(connection, tenant, insert, syntax)
        self.threads: ThreadStore = SqlThreads(connection, tenant, insert)
        self.journal: Journal = SqlJournal(connection, tenant)
        self.keys: KeyStore = SqlKeys(connection, tenant)

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
