"""On which days users were active, within a transaction."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import SqlSession
from memplane.domain.memory.active_days import Activity, Stretch

_MANY = 500


class SqlActivity:
    """A row for each stretch without a long absence: one for most users."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def note(self, user_ids: Collection[str], now: datetime, present_since: datetime, *, new: bool) -> None:
        """Note that users are active; who was not since ``present_since`` has come back from an absence.

        A stretch that resumed later than now was noted by a clock that has been put back since: it resumes now.
        """
        a = tables.user_activity.c
        users = sorted(user_ids)
        for start in range(0, len(users), _MANY):
            some = users[start : start + _MANY]
            mine = (a.tenant_id == self._tenant, a.user_id.in_(some))
            ended = sa.or_(sa.and_(a.resumed_at.is_(None), a.last_at < present_since), a.resumed_at > now)
            ending = sa.update(tables.user_activity).where(*mine, ended).values(resumed_at=now).returning(a.user_id)
            back = set((await self._session.execute(ending)).scalars())
            begun = await self._begin(some if new else sorted(back), now)
            await self._been_away(begun - back, now, present_since)
            current = sa.update(tables.user_activity).where(*mine, a.resumed_at.is_(None))
            await self._session.execute(current.values(last_at=now))

    async def _begin(self, users: Sequence[str], now: datetime) -> set[str]:
        """Begin a stretch for users who have no current one; who they are."""
        if not users:
            return set()
        rows = [{"tenant_id": self._tenant, "user_id": user, "began_at": now, "last_at": now} for user in users]
        insert = self._session.insert(tables.user_activity).values(rows).on_conflict_do_nothing()
        returned = await self._session.execute(insert.returning(tables.user_activity.c.user_id))
        return set(returned.scalars())

    async def _been_away(self, users: Collection[str], now: datetime, present_since: datetime) -> None:
        """Note as absent until now those new users who have memories from long ago: nobody noted when they left."""
        if not users:
            return
        m = tables.memories.c
        used = [sa.func.max(m[name]).label(name) for name in ("recorded_at", "last_accessed", "last_hit_at")]
        statement = sa.select(m.user_id, *used).where(
            m.tenant_id == self._tenant, m.user_id.in_(sorted(users)), m.recorded_at < present_since
        )
        rows: list[dict[str, object]] = []
        for row in await self._session.execute(statement.group_by(m.user_id)):
            last = max(filter(None, (row.recorded_at, row.last_accessed, row.last_hit_at)))
            if last < present_since:
                away = {"began_at": last, "last_at": last, "resumed_at": now}
                rows.append({"tenant_id": self._tenant, "user_id": row.user_id} | away)
        if rows:
            await self._session.execute(self._session.insert(tables.user_activity).values(rows))

    async def of(self, user_ids: Collection[str]) -> Mapping[str, Activity]:
        """The activity of users; those of whom nothing is noted are left out."""
        a = tables.user_activity.c
        users, found = sorted(user_ids), dict[str, Activity]()
        for start in range(0, len(users), _MANY):
            statement = sa.select(a.user_id, a.last_at, a.resumed_at).where(
                a.tenant_id == self._tenant, a.user_id.in_(users[start : start + _MANY])
            )
            found |= activity_of(await self._session.execute(statement))
        return found


def activity_of(rows: Iterable[sa.Row[Any]]) -> Mapping[str, Activity]:
    """The activity of users, of rows with ``user_id``, ``last_at`` (or none) and ``resumed_at``."""
    found: dict[str, list[Stretch]] = {}
    for row in rows:
        stretches = found.setdefault(row.user_id, [])
        if row.last_at is not None:
            stretches.append(Stretch(row.last_at, row.resumed_at))
    return {user: Activity(tuple(stretches)) for user, stretches in found.items()}
