"""The queue of PostgreSQL: procrastinate gives jobs to workers, by a role that sees the queue and nothing else.

The queue delivers at least once; the row of the run, locked in each batch's transaction, makes one effect of it.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import procrastinate
import psycopg
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager
from procrastinate.retry import BaseRetryStrategy, RetryDecision

from memplane.adapters.postgres.job_messages import QUEUE, SCHEMA, TASK
from memplane.adapters.postgres.keepalive import watching
from memplane.application.jobs.job_records import Lease
from memplane.application.jobs.periodic import Periodic
from memplane.application.ports import Perform
from memplane.domain.errors import StorageUnavailable, UnsafeRole

logger = logging.getLogger("memplane.worker")
POLL_SECONDS = 1.0
"""A new message is told at once; one whose time has come, or whose worker is gone, is seen so late at most."""
GRACE_SECONDS = 8.0
"""A batch may take so long when the worker is told to stop; what does not end is given to another worker."""
_AFTER_FAILURE = timedelta(seconds=30)
_RESTART_SECONDS = 1.0
_OPTIONS = f"-c search_path={SCHEMA} -c timezone=UTC -c lock_timeout=10000 -c statement_timeout=30000"
# A delivery is named by how many came before it. Who was silent for too long and comes back has an earlier one, and may
# neither end the job of the one who has it now nor give it away.
_FINISH = """
DELETE FROM procrastinate_jobs WHERE id = %(id)s AND status = 'doing' AND attempts = %(attempts)s
"""
_AGAIN = """
UPDATE procrastinate_jobs SET status = 'todo', attempts = attempts + 1, worker_id = NULL, scheduled_at = %(at)s
 WHERE id = %(id)s AND status = 'doing' AND attempts = %(attempts)s
"""
_RECLAIM = """
UPDATE procrastinate_jobs SET status = 'todo', attempts = attempts + 1, worker_id = NULL, scheduled_at = now()
 WHERE id IN (SELECT j.id FROM procrastinate_jobs j LEFT JOIN procrastinate_workers w ON w.id = j.worker_id
               WHERE j.status = 'doing'
                 AND (w.id IS NULL OR w.last_heartbeat < now() - make_interval(secs => %(seconds)s))
                 FOR UPDATE OF j SKIP LOCKED)
RETURNING id
"""
_RIGHTS = """
SELECT current_user, coalesce(bool_or(r.rolsuper OR r.rolbypassrls), false),
       EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname IN ('public', %(schema)s) AND pg_has_role(current_user, c.relowner, 'MEMBER')),
       CASE WHEN EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = %(schema)s)
            THEN has_schema_privilege(%(schema)s, 'USAGE')
                 AND has_table_privilege(%(schema)s || '.procrastinate_workers', 'INSERT')
            ELSE false END
  FROM pg_roles r WHERE pg_has_role(current_user, r.oid, 'MEMBER')
"""


class _Deliveries(JobManager):
    """The library's bookkeeping, in which a delivery that was given up changes nothing any more."""

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:  # noqa: ARG002 - the library's
        """Take a message out."""
        await self.connector.execute_query_async(_FINISH, id=job.id, attempts=job.attempts)

    async def retry_job(
        self, job: Job, retry_at: datetime | None = None, priority: int | None = None, queue: str | None = None,
        lock: str | None = None,
    ) -> None:  # fmt: skip
        """Let a message be delivered again."""
        del priority, queue, lock
        at = retry_at or datetime.now(UTC)
        await self.connector.execute_query_async(_AGAIN, id=job.id, attempts=job.attempts, at=at)


class _Again(Exception):
    """The job is to be given again after some time."""

    def __init__(self, after: timedelta) -> None:
        super().__init__(f"again after {after}")
        self.after = after


class _Retry(BaseRetryStrategy):
    """Whatever happens, a message is delivered again until its job is at rest: how often it is tried, its run knows."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:  # noqa: ARG002 - the library's
        """When that is."""
        if isinstance(exception, _Again):
            after = exception.after
        else:
            after = _AFTER_FAILURE if isinstance(exception, Exception) else timedelta(0)  # else it was told to stop
        return RetryDecision(retry_at=datetime.now(UTC) + after)


class QueueWorker:
    """Takes jobs out of the queue, one at a time.

    Args:
        url: the database, as the worker's role.
        perform: does a job.
        stop: lets the job under way be handed back after its batch.
        stalled_seconds: a worker that is silent for so long has its jobs taken over.
    """

    def __init__(self, url: str, perform: Perform, stop: Callable[[], None], *, stalled_seconds: float) -> None:
        self._url = url
        self._perform = perform
        self._hand_back = stop
        self._stalled = stalled_seconds
        named = {"options": _OPTIONS} | watching(url, stalled_seconds)
        connector = procrastinate.PsycopgConnector(conninfo=url, kwargs=named, min_size=1, max_size=3, timeout=10.0)
        self._app = procrastinate.App(connector=connector)
        self._app.job_manager = _Deliveries(connector)
        self._app.task(name=TASK, queue=QUEUE, pass_context=True, retry=_Retry())(self._work)
        self._reclaiming = Periodic("taking jobs over", stalled_seconds / 2, self.reclaim, at_once=True)
        self._running: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect.

        Raises:
            StorageUnavailable: the database cannot be reached.
            UnsafeRole: it is not the worker's role, which sees the queue and nothing else.
        """
        await require_worker(self._url)
        try:
            await self._app.open_async()
        except procrastinate.exceptions.ConnectorException as error:
            raise StorageUnavailable("the queue cannot be reached") from error

    def start(self) -> None:
        """Begin."""
        self._running = asyncio.create_task(self._run(), name="memplane worker")
        self._reclaiming.start()

    async def close(self) -> None:
        """Hand the job under way back after its batch, and disconnect."""
        logger.info("the worker stops after the batch under way")
        self._hand_back()
        await self._reclaiming.stop()
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self._app.close_async()

    async def reclaim(self) -> None:
        """Let the jobs of workers that are gone be given to others."""
        found = await self._app.connector.execute_query_all_async(_RECLAIM, seconds=self._stalled)
        if found:
            logger.warning("%d jobs of workers that are gone are given to others", len(found))

    async def _run(self) -> None:
        """Work until told to stop; when the library's worker ends before, as with the database, it begins anew."""
        while True:
            try:
                await self._app.run_worker_async(
                    queues=[QUEUE],
                    install_signal_handlers=False,
                    fetch_job_polling_interval=POLL_SECONDS,
                    shutdown_graceful_timeout=GRACE_SECONDS,
                    update_heartbeat_interval=self._stalled / 4,
                    stalled_worker_timeout=self._stalled,
                )
            except (procrastinate.exceptions.ConnectorException, psycopg.Error) as error:
                logger.warning("the queue is lost, and looked for again: %s", error)
            await asyncio.sleep(_RESTART_SECONDS)

    async def _work(self, context: procrastinate.JobContext, /, **arguments: Any) -> None:  # noqa: ANN401 - of the message
        claim = Lease(f"message:{context.job.id}", context.job.attempts)
        again = await self._perform(str(arguments["tenant_id"]), UUID(str(arguments["job"])), claim)
        if again is not None:
            raise _Again(again)


async def require_worker(url: str) -> None:
    """Refuse a database role that is not the worker's.

    Raises:
        StorageUnavailable: the database cannot be reached.
        UnsafeRole: it is another role.
    """
    try:
        async with await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=15) as connection:
            row = await (await connection.execute(_RIGHTS, {"schema": SCHEMA})).fetchone()
    except psycopg.Error as error:
        raise StorageUnavailable(f"the queue cannot be reached: {error}") from error
    name, above, owner, worker = row or ("?", False, False, False)
    if above or owner or not worker:
        raise UnsafeRole(
            f"the database role '{name}' is not the worker's: it must be no superuser, no owner of tables, and "
            "have the rights that migrations give to MEMPLANE_WORKER_ROLE (memplane_worker by default). Name its "
            "URL in MEMPLANE_WORKER_URL"
        )
