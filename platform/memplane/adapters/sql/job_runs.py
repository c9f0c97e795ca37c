"""What of the work of the night was done, within a transaction."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from memplane.adapters.sql import tables
from memplane.adapters.sql.session import Session
from memplane.application.jobs.records import JobRun


class SqlJobRuns:
    """The runs of a tenant's jobs, a row for each period."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tenant = session.tenant

    async def find(self, name: str, period: str) -> JobRun | None:
        """The run of a period, locked until the transaction ends; or none."""
        j = tables.job_runs.c
        return await self._one(self._all().where(j.name == name, j.period == period).with_for_update())

    async def last(self, name: str) -> JobRun | None:
        """The run of the latest period; or none."""
        j = tables.job_runs.c
        return await self._one(self._all().where(j.name == name).order_by(j.period.desc()).limit(1))

    async def keep(self, run: JobRun) -> None:
        """Store a run; the one of its period is locked or new."""
        j = tables.job_runs.c
        values = {name: getattr(run, name) for name in JobRun.__slots__} | {"counts": dict(run.counts)}
        statement = self._session.insert(tables.job_runs).values(tenant_id=self._tenant, **values)
        changed = {name: value for name, value in values.items() if name not in {"name", "period"}}
        await self._session.execute(
            statement.on_conflict_do_update(index_elements=[j.tenant_id, j.name, j.period], set_=changed)
        )

    async def all(self, limit: int) -> list[JobRun]:
        """Runs, the latest period first."""
        j = tables.job_runs.c
        rows = await self._session.execute(self._all().order_by(j.period.desc(), j.name).limit(limit))
        return [_run_of(dict(row)) for row in rows.mappings()]

    def _all(self) -> sa.Select[Any]:
        return sa.select(tables.job_runs).where(tables.job_runs.c.tenant_id == self._tenant)

    async def _one(self, statement: sa.Select[Any]) -> JobRun | None:
        row = (await self._session.execute(statement)).mappings().one_or_none()
        return None if row is None else _run_of(dict(row))


def _run_of(row: Mapping[str, Any]) -> JobRun:
    return JobRun(**{name: row[name] for name in JobRun.__slots__})
