"""What a user set, and how much is stored of each, within a transaction."""

from collections.abc import Awaitable, Callable
from datetime import datetime

import sqlalchemy as sa

from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import SqlSession
from memplane.application.limits.usage import StoredAmounts

TenantUsage = Callable[[SqlSession, str], Awaitable[StoredAmounts]]
"""How much is stored of all users, and how many writes there were on a day."""


class SqlUserSettings:
    """One row for each user who set something."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def set_time_zone(self, user_id: str, name: str | None, actor: str, now: datetime) -> bool:
        """Store a user's time zone; False when it was that already."""
        s = tables.user_settings.c
        mine = (s.tenant_id == self._tenant, s.user_id == user_id)
        there = (await self._session.execute(sa.select(s.time_zone).where(*mine))).scalar_one_or_none()
        if there == name:
            return False
        values = {"time_zone": name, "actor": actor, "updated_at": now}
        statement = self._session.insert(tables.user_settings).values(tenant_id=self._tenant, user_id=user_id, **values)
        await self._session.execute(
            statement.on_conflict_do_update(index_elements=[s.tenant_id, s.user_id], set_=values)
        )
        return True


class SqlUsage:
    """Counters of the tenant's users; triggers keep those of what is stored."""

    def __init__(self, session: SqlSession, tenant_usage: TenantUsage) -> None:
        self._session = session
        self._tenant = session.tenant
        self._tenant_usage = tenant_usage

    async def spend(self, user_id: str, day: str, writes: int) -> StoredAmounts:
        """Count writes of a user on a day; how much there is of the user after that."""
        u = tables.user_usage.c
        row = {"tenant_id": self._tenant, "user_id": user_id, "memories": 0, "bytes": 0, "day": day, "writes": writes}
        statement = self._session.insert(tables.user_usage).values(row)
        spent = sa.case((u.day == day, u.writes + writes), else_=writes)
        statement = statement.on_conflict_do_update(
            index_elements=[u.tenant_id, u.user_id], set_={"day": day, "writes": spent}
        )
        found = (await self._session.execute(statement.returning(u.memories, u.bytes, u.writes))).one()
        return StoredAmounts(found.memories, found.bytes, found.writes)

    async def of_tenant(self, day: str) -> StoredAmounts:
        """How much there is of all users."""
        return await self._tenant_usage(self._session, day)

    async def of_user(self, user_id: str, day: str) -> StoredAmounts:
        """How much there is of a user."""
        u = tables.user_usage.c
        writes = sa.case((u.day == day, u.writes), else_=0).label("writes")
        statement = sa.select(u.memories, u.bytes, writes).where(u.tenant_id == self._tenant, u.user_id == user_id)
        found = (await self._session.execute(statement)).first()
        return StoredAmounts() if found is None else StoredAmounts(found.memories, found.bytes, found.writes)


async def tenant_usage(session: SqlSession, day: str) -> StoredAmounts:
    """The sum of a tenant's users, where nothing hides their rows from each other."""
    u = tables.user_usage.c
    writes = sa.func.sum(sa.case((u.day == day, u.writes), else_=0))
    sums = (sa.func.coalesce(each, 0) for each in (sa.func.sum(u.memories), sa.func.sum(u.bytes), writes))
    found = (await session.execute(sa.select(*sums).where(u.tenant_id == session.tenant))).one()
    return StoredAmounts(*(int(each) for each in found))
