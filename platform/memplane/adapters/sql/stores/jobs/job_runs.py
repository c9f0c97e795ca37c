"""What of background work was done and is to be done, within a transaction."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import JOB_RUNS, SqlSession
from memplane.application.jobs.job_records import JobRun
from memplane.domain.jobs.job_definitions import JobState
from memplane.domain.memory.memory import new_id

Send = Callable[[SqlSession, Sequence[JobRun]], Awaitable[None]]
_KEY = {"name", "period", "id"}


class SqlJobRuns:
    """The runs of a tenant's jobs, a row for each period."""

    def __init__(self, session: SqlSession, send: Send | None) -> None:
        self._session = session
        self._tenant = session.tenant
        self._send = send

    async def find(self, name: str, period: str) -> JobRun | None:
        """The run of a period, locked until the transaction ends; or none."""
        j = tables.job_runs.c
        return await self._one(self._all().where(j.name == name, j.period == period).with_for_update())

    async def by_id(self, job: UUID) -> JobRun | None:
        """A run, locked until the transaction ends; or none."""
        return await self._one(self._all().where(tables.job_runs.c.id == job).with_for_update())

    async def last(self, name: str) -> JobRun | None:
        """The run of the latest period; or none."""
        j = tables.job_runs.c
        return await self._one(self._all().where(j.name == name).order_by(j.period.desc()).limit(1))

    async def latest(self) -> list[JobRun]:
        """The run of the latest period of each job."""
        j = tables.job_runs.c
        last = sa.select(j.name, sa.func.max(j.period)).where(j.tenant_id == self._tenant).group_by(j.name)
        return await self._many(self._all().where(sa.tuple_(j.name, j.period).in_(last)))

    async def add(self, run: JobRun) -> bool:
        """Store a run, unless there is one of its period."""
        statement = self._session.insert(tables.job_runs).values(tenant_id=self._tenant, **_values(run))
        added = await self._session.execute(statement.on_conflict_do_nothing().returning(tables.job_runs.c.name))
        return added.first() is not None

    async def keep(self, run: JobRun) -> None:
        """Store a run; the one of its period is locked or new."""
        j = tables.job_runs.c
        values = _values(run)
        statement = self._session.insert(tables.job_runs).values(tenant_id=self._tenant, **values)
        changed: dict[str, object] = {name: value for name, value in values.items() if name not in _KEY}
        changed["id"] = sa.func.coalesce(j.id, statement.excluded.id)  # rows of the version before have none
        await self._session.execute(
            statement.on_conflict_do_update(index_elements=[j.tenant_id, j.name, j.period], set_=changed)
        )

    async def send(self, run: JobRun) -> None:
        """Tell the queue of a run that waits, when the transaction commits."""
        if self._send is not None:
            await self._send(self._session, [run])

    async def post(self, runs: Sequence[JobRun]) -> None:
        """Store new runs that wait, and tell the queue of them when the transaction commits."""
        await self._session.add(JOB_RUNS, [{"tenant_id": self._tenant, **_values(run)} for run in runs])
        if self._send is not None:
            await self._send(self._session, runs)

    async def remove(self, run: JobRun) -> None:
        """Delete a run."""
        j = tables.job_runs.c
        await self._session.execute(sa.delete(tables.job_runs).where(j.tenant_id == self._tenant, j.id == run.id))

    async def next_due(self, now: datetime) -> JobRun | None:
        """The next run to work on, of those that wait and those whose worker is gone; or none."""
        j = tables.job_runs.c
        waits = sa.and_(j.state == JobState.WAITING.value, sa.or_(j.due_at.is_(None), j.due_at <= now))
        found = await self._many(self._all().where(sa.or_(waits, self._abandoned(now))).order_by(j.id).limit(1))
        return found[0] if found else None

    async def lock_expired(self, now: datetime, since: datetime) -> list[JobRun]:
        """Runs whose worker's lease has ended, and those that could be begun since a moment and were not, locked."""
        j = tables.job_runs.c
        waits = sa.and_(j.state == JobState.WAITING.value, sa.func.coalesce(j.due_at, j.started_at) < since)
        found = self._all().where(sa.or_(waits, self._abandoned(now)))
        return await self._many(found.with_for_update(skip_locked=True))

    async def all(self, limit: int, *, before: UUID | None = None, state: JobState | None = None) -> list[JobRun]:
        """Runs, the newest first: of those that are older than one, in a state."""
        j = tables.job_runs.c
        statement = self._all().order_by(j.id.desc()).limit(limit)
        if before is not None:
            statement = statement.where(j.id < before)
        if state is not None:
            statement = statement.where(j.state == state.value)
        return await self._many(statement)

    def _abandoned(self, now: datetime) -> sa.ColumnElement[bool]:
        j = tables.job_runs.c
        return sa.and_(j.state == JobState.RUNNING.value, sa.or_(j.lease_until.is_(None), j.lease_until <= now))

    def _all(self) -> sa.Select[Any]:
        return sa.select(tables.job_runs).where(tables.job_runs.c.tenant_id == self._tenant)

    async def _one(self, statement: sa.Select[Any]) -> JobRun | None:
        found = await self._many(statement)
        return found[0] if found else None

    async def _many(self, statement: sa.Select[Any]) -> list[JobRun]:
        rows = await self._session.execute(statement)
        return [_run_of(dict(row)) for row in rows.mappings()]


def _values(run: JobRun) -> dict[str, object]:
    return {name: getattr(run, name) for name in JobRun.__slots__} | {
        "counts": dict(run.counts),
        "state": run.state.value,
    }


def _run_of(row: Mapping[str, Any]) -> JobRun:
    values = {name: row[name] for name in JobRun.__slots__}
    return JobRun(**values | {"id": row["id"] or new_id(), "state": JobState(row["state"])})
