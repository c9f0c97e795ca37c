"""Putting a job into the queue on the transaction of a write: what is taken back leaves no message."""

from collections.abc import Sequence

import sqlalchemy as sa

from memplane.adapters.sql.session import SqlSession
from memplane.application.jobs.job_records import JobRun

SCHEMA = "procrastinate"
QUEUE = "memplane"
TASK = "memplane.perform"
# By the library's own function, whose name carries its version. A message that is there twice does no harm, so none has
# a queueing lock, whose conflict would abort the transaction.
_SEND = sa.text(f"""
SELECT {SCHEMA}.procrastinate_defer_jobs_v1(array_agg(ROW(
       CAST(:queue AS varchar), CAST(:task AS varchar), 0, NULL, NULL,
       jsonb_build_object('tenant_id', CAST(:tenant AS text), 'job', run.job),
       run.due_at)::{SCHEMA}.procrastinate_job_to_defer_v1))
  FROM unnest(CAST(:jobs AS text[]), CAST(:due AS timestamptz[])) AS run (job, due_at)
""")  # noqa: S608 - our own name


async def send(session: SqlSession, runs: Sequence[JobRun]) -> None:
    """Tell the workers of jobs; they hear of them when the transaction commits."""
    values = {"queue": QUEUE, "task": TASK, "tenant": session.tenant}
    each = {"jobs": [str(run.id) for run in runs], "due": [run.due_at for run in runs]}
    await session.execute(_SEND, values | each)
