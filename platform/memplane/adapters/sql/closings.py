"""Conversations that were closed, within a transaction."""

from datetime import datetime

import sqlalchemy as sa

from memplane.adapters.sql import tables
from memplane.adapters.sql.session import Session
from memplane.application.session_records import Closing, Resting

_KEY = ("tenant_id", "user_id", "thread_id")


class SqlClosings:
    """What is noted of conversations when they are closed, a row for each."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tenant = session.tenant

    async def resting(self, since: datetime, limit: int) -> list[Resting]:
        """Conversations that have rested since a moment and were not closed as they are, by their names."""
        r, s = tables.thread_revision.c, tables.sessions.c
        closed = sa.exists().where(
            s.tenant_id == self._tenant, s.user_id == r.user_id, s.thread_id == r.thread_id, s.seq >= r.turns
        )
        statement = (
            sa.select(r.user_id, r.thread_id, r.turns, r.updated_at)
            .where(r.tenant_id == self._tenant, r.turns > 0, r.updated_at < since, ~closed)
            .order_by(r.user_id, r.thread_id)
            .limit(limit)
        )
        return [Resting(**row) for row in (await self._session.execute(statement)).mappings()]

    async def begun(self, user_id: str, thread_id: str) -> datetime | None:
        """When the first turn of a conversation was recorded; ``None`` when none is there."""
        t = tables.turns.c
        statement = (
            sa.select(t.recorded_at)
            .where(t.tenant_id == self._tenant, t.user_id == user_id, t.thread_id == thread_id)
            .order_by(t.seq)
            .limit(1)
        )
        found: datetime | None = (await self._session.execute(statement)).scalar_one_or_none()
        return found

    async def find(self, user_id: str, thread_id: str) -> Closing | None:
        """The last closing of a conversation; or none."""
        s = tables.sessions.c
        statement = sa.select(tables.sessions).where(
            s.tenant_id == self._tenant, s.user_id == user_id, s.thread_id == thread_id
        )
        row = (await self._session.execute(statement)).mappings().one_or_none()
        return None if row is None else Closing(**{name: row[name] for name in Closing.__slots__})

    async def keep(self, closing: Closing) -> None:
        """Note a closing, in place of the one before."""
        values = {name: getattr(closing, name) for name in Closing.__slots__}
        statement = self._session.insert(tables.sessions).values(tenant_id=self._tenant, **values)
        changed = {name: value for name, value in values.items() if name not in _KEY}
        await self._session.execute(statement.on_conflict_do_update(index_elements=_KEY, set_=changed))
