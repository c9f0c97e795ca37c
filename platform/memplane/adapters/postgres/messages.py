"""Putting a job into the queue on the transaction of a write: what is taken back leaves no message."""

import sqlalchemy as sa

from memplane.adapters.sql.session import Session
from memplane.application.jobs.records import JobRun

SCHEMA = "procrastinate"
QUEUE = "memplane"
TASK = "memplane.perform"
# By the library's own function, whose name carries its version. A message that is there twice does no harm, so none has
# a queueing lock, whose conflict would abort the transaction.
_SEND = sa.text(f"""
SELECT {SCHEMA}.procrastinate_defer_jobs_v1(ARRAY[ROW(
       CAST(:queue AS varchar), CAST(:task AS varchar), 0, NULL, NULL,
       jsonb_build_object('tenant_id', CAST(:tenant AS text), 'job', CAST(:job AS text)),
       CAST(:due_at AS timestamptz))]::{SCHEMA}.procrastinate_job_to_defer_v1[])
""")


async def send(session: Session, run: JobRun) -> None:
    """Tell the workers of a job; they hear of it when the transaction commits."""
    values = {"queue": QUEUE, "task": TASK, "tenant": session.tenant, "job": str(run.id), "due_at": run.due_at}
    await session.execute(_SEND, values)
