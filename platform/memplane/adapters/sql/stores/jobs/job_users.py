"""For which users a job was done, and for whom it is due, within a transaction."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import SqlSession
from memplane.application.jobs.user_job_records import Newcomer, News
from memplane.domain.memory.memory import RETRIEVABLE_TRUST, SHARED, State, first_id

Columns = sa.ColumnCollection[str, sa.Column[Any]]
_KEY = ("tenant_id", "user_id", "name")


class SqlJobUsers:
    """A row for each user and job."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def due(self, news: News, after: UUID | None, limit: int) -> Sequence[Newcomer]:
        """What is new of users for whom the job is due, by its ids, of what comes after one; one row for each unit.

        Ids are in the order in which they were made: what is read is what is new, by the keys of both tables.
        """
        begins = max(first_id(news.since), after or first_id(news.since))
        parts = [self._memories(news, begins, limit)]
        if news.turns:
            parts.append(self._turns(news, begins, limit))
        found = sa.union_all(*(sa.select(part.subquery()) for part in parts)).subquery()
        first = sa.select(found.c.id, found.c.user_id).order_by(found.c.id).limit(limit).subquery()
        r = tables.thread_revision.c
        latest = (
            sa.select(r.thread_id)
            .where(r.tenant_id == self._tenant, r.user_id == first.c.user_id, r.turns > 0)
            .order_by(r.updated_at.desc())
            .limit(1)
            .scalar_subquery()
        )
        statement = sa.select(first.c.id, first.c.user_id, latest.label("thread_id")).order_by(first.c.id)
        return [Newcomer(row.id, row.user_id, row.thread_id) for row in await self._session.execute(statement)]

    def _memories(self, news: News, begins: UUID, limit: int) -> sa.Select[tuple[UUID, str]]:
        m = tables.memories.c
        fits = self._fits(news)
        statement = sa.select(m.id, m.user_id).where(
            m.tenant_id == self._tenant,
            m.id > begins,
            m.recorded_at >= news.since,
            *fits,
            ~self._rests(news, m),
            m.user_id != SHARED,  # of nobody no conclusions are drawn
        )
        if news.least > 1:
            other = tables.memories.alias("other")
            o = other.c
            few = (
                sa.select(o.id)
                .where(
                    o.tenant_id == self._tenant, o.user_id == m.user_id, o.id > first_id(news.since),
                    o.recorded_at >= news.since, *self._fits(news, other),
                )
                .correlate(tables.memories)
                .limit(news.least)
                .subquery()
            )  # fmt: skip
            statement = statement.where(sa.select(sa.func.count()).select_from(few).scalar_subquery() >= news.least)
        return statement.order_by(m.id).limit(limit)

    def _turns(self, news: News, begins: UUID, limit: int) -> sa.Select[tuple[UUID, str]]:
        t = tables.turns.c
        return (
            sa.select(t.id, t.user_id)
            .where(t.tenant_id == self._tenant, t.id > begins, t.recorded_at >= news.since, t.vouched)
            .where(~self._rests(news, t))
            .order_by(t.id)
            .limit(limit)
        )

    @staticmethod
    def _fits(news: News, table: sa.FromClause = tables.memories) -> list[sa.ColumnElement[bool]]:
        m = table.c
        return [m.type.in_(news.types), m.state == State.ACTIVE, m.trust_state.in_(RETRIEVABLE_TRUST)]

    def _rests(self, news: News, of: Columns) -> sa.ColumnElement[bool]:
        """Whether the job was done for the user of a row too lately, or after the row came."""
        j = tables.job_users.c
        return sa.exists().where(
            j.tenant_id == self._tenant,
            j.user_id == of.user_id,
            j.name == news.job,
            sa.or_(j.done_at > news.rested, j.done_at >= of.recorded_at),
        )

    async def last_done(self, job: str, users: Collection[str]) -> Mapping[str, datetime]:
        """By which moments a job was done for users last."""
        j = tables.job_users.c
        statement = sa.select(j.user_id, j.done_at).where(
            j.tenant_id == self._tenant, j.user_id.in_(sorted(users)), j.name == job
        )
        return {row.user_id: row.done_at for row in await self._session.execute(statement)}

    async def keep(self, job: str, user_id: str, done_at: datetime) -> None:
        """Note that a job was done for a user."""
        values = {"tenant_id": self._tenant, "name": job, "user_id": user_id, "done_at": done_at}
        statement = self._session.insert(tables.job_users).values(values)
        await self._session.execute(
            statement.on_conflict_do_update(index_elements=_KEY, set_={"done_at": statement.excluded.done_at})
        )

    async def forget(self, job: str, user_id: str) -> None:
        """Let a job look at a user again, as if it had not been done."""
        j = tables.job_users.c
        done = (j.tenant_id == self._tenant, j.user_id == user_id, j.name == job)
        await self._session.execute(sa.delete(tables.job_users).where(*done))

    async def there(self, user_id: str, turns: Collection[UUID]) -> frozenset[UUID]:
        """Those of some turns of a user that are there."""
        t = tables.turns.c
        statement = sa.select(t.id).where(t.tenant_id == self._tenant, t.user_id == user_id, t.id.in_(sorted(turns)))
        return frozenset((await self._session.execute(statement)).scalars())
