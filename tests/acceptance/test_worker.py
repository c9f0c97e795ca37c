"""Workers as processes of their own, killed and paused in the middle of jobs: effects are exactly once.

A test holds a lock that the worker needs, so that it stands at a known statement when it is killed or paused.
"""

import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from math import exp
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row

from memplane.adapters.policy import shipped_policies
from memplane.application.jobs.job_records import JobRun
from memplane.application.jobs.lifecycle_jobs import BATCH
from memplane.domain.jobs.job_definitions import NIGHTLY, JobState
from support.callers import Tenant
from support.cluster import Database, Databases
from support.process import PATIENCE
from support.serving import RunningServer, running_server
from support.telling import write
from support.working import WorkerProcess, until, worker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="pauses processes by signals"),
]
COPIES = 2 * BATCH + 100
RATE, DAYS = 0.01, 70
ATTEMPTS = 3
OFF = "".join(f"  {name}: off\n" for name in NIGHTLY)  # nothing is done that the test did not ask for
MODEL = re.search(r"^model:\n(.*\n)+", (shipped_policies() / "workers.yaml").read_text(), re.MULTILINE)
assert MODEL is not None
WORKERS = f"schedules:\n{OFF}attempts: {ATTEMPTS}\npause_seconds: 1\nlongest_pause_seconds: 2\n{MODEL[0]}"


class Site:
    """A database with tenants whose memories decay, a server that puts jobs into its queue, and its workers."""

    def __init__(self, database: Database, server: RunningServer, folder: Path) -> None:
        self.database = database
        self.server = server
        self.folder = folder
        self.policies = folder / "policies"
        shutil.copytree(shipped_policies(), self.policies)
        (self.policies / "workers.yaml").write_text(WORKERS)
        self._workers = 0

    def tenant(self, copies: int = COPIES) -> Tenant:
        """A tenant with as many memories that were touched last 70 days ago."""
        made = Tenant(self.server)
        first = write(made.caller(), "The user owns a boat.", confidence=0.9)["id"]
        with self.admin() as connection:
            connection.execute(
                "UPDATE memories SET recorded_at = now() - make_interval(days => %(days)s), decay_rate = %(rate)s,"
                " updated_at = now() - make_interval(days => %(days)s) WHERE id = %(id)s",
                {"days": DAYS, "rate": RATE, "id": UUID(str(first))},
            )
            connection.execute(
                "INSERT INTO memories SELECT (jsonb_populate_record(m, jsonb_build_object('id', uuidv7(), 'value_hash',"
                " md5(n::text)))).* FROM memories m, generate_series(2, %(copies)s) n WHERE m.id = %(id)s",
                {"copies": copies, "id": UUID(str(first))},
            )
        return made

    @contextmanager
    def admin(self) -> Iterator[psycopg.Connection[dict[str, Any]]]:
        with psycopg.connect(self.database.admin_url, autocommit=True, row_factory=dict_row) as connection:
            yield connection

    def rows(self, statement: str, *values: object) -> list[dict[str, Any]]:
        with self.admin() as connection:
            return connection.execute(statement, values).fetchall()

    def job(self, job: JobRun) -> dict[str, Any]:
        (found,) = self.rows("SELECT * FROM job_runs WHERE id = %s", job.id)
        return found

    def state(self, job: JobRun) -> str:
        return str(self.job(job)["state"])

    def waits(self, table: str) -> bool:
        """Whether a worker waits for a lock that is held, at a statement on a table."""
        return bool(
            self.rows(
                "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock' AND query ILIKE %s",
                self.database.name, f"%{table}%",
            )
        )  # fmt: skip

    @contextmanager
    def held(self, statement: str, *values: object) -> Iterator[None]:
        """Rows locked, until the end of the block."""
        with psycopg.connect(self.database.admin_url) as connection:
            assert connection.execute(statement, values).fetchall()
            yield
            connection.rollback()

    @contextmanager
    def asked_for(self, statement: str, *values: object) -> Iterator[Callable[[], object]]:
        """The same for rows that somebody else has locked; what is yielded waits until they are ours."""
        with psycopg.connect(self.database.admin_url) as connection, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(lambda: connection.execute(statement, values).fetchall())
            until(lambda: self.waits("job_runs"), "the lock is asked for")
            yield lambda: waiting.result(PATIENCE)
            waiting.result(PATIENCE)
            connection.rollback()

    def worker(self, **settings: str) -> AbstractContextManager[WorkerProcess]:
        self._workers += 1
        chosen = {"MEMPLANE_POLICIES": str(self.policies)} | settings
        return worker(self.database, self.folder / f"worker-{self._workers}.log", **chosen)

    def confidences(self, tenant: Tenant) -> Counter[float]:
        found = self.rows("SELECT confidence FROM memories WHERE tenant_id = %s", tenant.name)
        return Counter(round(row["confidence"], 6) for row in found)

    def ask(self, tenant: Tenant, name: str) -> JobRun:
        """Put a job into the queue."""
        return self.server.run(self.server.wired.queue.ask(tenant.name, name))

    def messages(self) -> int:
        return len(self.rows("SELECT 1 FROM procrastinate.procrastinate_jobs"))

    def worked_off(self, *jobs: JobRun) -> None:
        """Wait until workers have done some jobs and the queue is empty."""
        wanted = [job.id for job in jobs]
        left = "SELECT 1 FROM job_runs WHERE id = ANY (%s) AND state <> 'done'"
        until(lambda: self.rows(left, wanted) == [], "the jobs are done")
        until(lambda: self.messages() == 0, "the queue is empty")


@pytest.fixture
def site(databases: Databases, tmp_path: Path) -> Iterator[Site]:
    made = databases.create()
    with running_server(made) as server:
        yield Site(made, server, tmp_path)
    databases.drop(made)


def decayed_once(found: Counter[float], copies: int) -> bool:
    """Whether every memory decayed once; the days are a little more, by how long it took to make them."""
    expected = 0.9 * exp(-RATE * DAYS)
    return sum(found.values()) == copies and all(abs(each - expected) < 1e-3 for each in found)


# the choice stands within: what an OFFSET passes over would be locked too
NTH = (
    "SELECT 1 FROM memories WHERE id = (SELECT id FROM memories WHERE tenant_id = %s ORDER BY id OFFSET %s LIMIT 1)"
    " FOR UPDATE"
)
RUN = "SELECT 1 FROM job_runs WHERE id = %s FOR UPDATE"
MESSAGE = "SELECT 1 FROM procrastinate.procrastinate_jobs WHERE args ->> 'job' = %s FOR UPDATE"
BATCHES = {"the first batch": 0, "the second batch": BATCH + 1, "the last batch": 2 * BATCH + 1}


@contextmanager
def standing(site: Site, tenant: Tenant, job: JobRun, place: str, left: ExitStack) -> Iterator[WorkerProcess]:
    """A worker that stands in the middle of a job, until the end of the block; it lives on in the stack."""
    with ExitStack() as locks:
        if place == "its claim":
            locks.enter_context(site.held(RUN, job.id))
            begun = left.enter_context(site.worker())
            until(lambda: site.waits("job_runs"), "the worker claims the job")
        elif place == "its end":
            with site.held(NTH, tenant.name, BATCHES["the last batch"]):
                begun = left.enter_context(site.worker())
                until(lambda: site.waits("memories"), "the worker is at the last batch")
                locks.enter_context(site.held(MESSAGE, str(job.id)))
            until(lambda: site.waits("procrastinate_jobs"), "the worker takes the message out")
        elif place == "between two batches":
            with site.held(NTH, tenant.name, BATCHES["the first batch"]):
                begun = left.enter_context(site.worker())
                until(lambda: site.waits("memories"), "the worker is at the first batch")
                next_in_line = locks.enter_context(site.asked_for(RUN, job.id))
            next_in_line()  # the batch has ended, and the worker comes second for the next one
            until(lambda: site.waits("job_runs"), "the worker is at the second batch")
        else:
            locks.enter_context(site.held(NTH, tenant.name, BATCHES[place]))
            begun = left.enter_context(site.worker())
            until(lambda: site.waits("memories"), f"the worker is at {place}")
        yield begun


@pytest.mark.parametrize("place", ["its claim", *BATCHES, "between two batches", "its end"])
def test_killed_in_the_middle_of_a_job_its_effects_are_once(site: Site, place: str) -> None:
    tenant = site.tenant()
    job = site.ask(tenant, "decay")
    with ExitStack() as left, standing(site, tenant, job, place, left) as first:
        first.kill()
        assert (site.state(job) == JobState.DONE) is (place == "its end")
    assert site.messages() == 1
    with site.worker():
        site.worked_off(job)
    assert site.job(job)["counts"] == {"faded": COPIES, "deleted": 0}
    assert decayed_once(site.confidences(tenant), COPIES)


def test_told_to_stop_it_hands_the_job_back_after_its_batch(site: Site) -> None:
    tenant = site.tenant()
    job = site.ask(tenant, "decay")
    with ExitStack() as left:
        with standing(site, tenant, job, "the second batch", left) as first:
            first.tell_to_stop()
            until(lambda: "stops after" in first.log, "it has heard")
        assert first.wait() == 0, first.log
    half = site.job(job)
    assert (half["state"], half["counts"]["faded"], half["attempts"]) == (JobState.WAITING, 2 * BATCH, 0)
    with site.worker():
        site.worked_off(job)
    assert site.job(job)["counts"]["faded"] == COPIES
    assert decayed_once(site.confidences(tenant), COPIES)


def test_two_workers_never_have_the_same_job(site: Site) -> None:
    tenants = [site.tenant(copies=3) for _ in range(25)]
    with site.worker() as one, site.worker() as other:
        jobs = [site.ask(tenant, name) for tenant in tenants for name in ("decay", "gc", "expiry")]
        site.worked_off(*jobs)
        shares = [each.log.count("decay of ") for each in (one, other)]
    assert sum(shares) == len(tenants)
    assert min(shares) > 0, shares  # the control: both were at work
    assert {site.job(job)["attempts"] for job in jobs} == {1}  # each was claimed once
    assert all(decayed_once(site.confidences(tenant), 3) for tenant in tenants)


@pytest.mark.parametrize("place", ["its claim", "between two batches"])
def test_paused_past_its_lease_it_commits_nothing_afterwards(site: Site, place: str) -> None:
    tenant, later = site.tenant(), site.tenant(copies=3)
    job = site.ask(tenant, "decay")
    with ExitStack() as left:
        with standing(site, tenant, job, place, left) as paused:
            paused.pause()
        # what it waited for it has now, in a transaction that stands open
        with site.worker() as second:
            site.worked_off(job)
            assert "given to others" in second.log
        done, found = site.job(job), site.confidences(tenant)
        paused.resume()
        site.worked_off(site.ask(later, "decay"))  # the control: it works again, and nobody else is there
    assert site.job(job) == done
    assert site.confidences(tenant) == found
    assert done["counts"] == {"faded": COPIES, "deleted": 0}
    assert decayed_once(found, COPIES)
    assert decayed_once(site.confidences(later), 3)


def test_a_poison_job_is_parked_and_the_others_go_on(site: Site) -> None:
    ill, well = site.tenant(copies=3), [site.tenant(copies=3) for _ in range(4)]
    spoilt = "UPDATE memories SET layer = %s WHERE tenant_id = %s"
    site.rows(f"{spoilt} RETURNING 1", "odd", ill.name)
    with site.worker():
        poison = site.ask(ill, "decay")
        others = [site.ask(tenant, "decay") for tenant in well]
        site.worked_off(*others)
        until(lambda: site.state(poison) == JobState.PARKED, "the job is parked")
        until(lambda: site.messages() == 0, "its message is gone")
        parked = site.job(poison)
        assert (parked["attempts"], parked["error"]) == (
            ATTEMPTS, "unexpected ValueError; the worker's log has the rest"
        )  # fmt: skip
        assert {round(each, 6) for each in site.confidences(ill)} == {0.9}
        assert all(decayed_once(site.confidences(tenant), 3) for tenant in well)
        site.rows(f"{spoilt} RETURNING 1", "mid", ill.name)
        site.server.run(site.server.wired.queue.retry(ill.name, poison.id))
        site.worked_off(poison)
    assert decayed_once(site.confidences(ill), 3)


def test_a_worker_outlives_its_connections(site: Site) -> None:
    tenant = site.tenant(copies=3)
    with site.worker() as begun:
        site.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND usename <> current_user",
            site.database.name,
        )
        job = site.ask(tenant, "decay")
        site.worked_off(job)
        assert begun.runs()
    assert decayed_once(site.confidences(tenant), 3)


@pytest.mark.parametrize("role", ["app", "owner"])
def test_another_role_is_refused(site: Site, role: str) -> None:
    url = site.database.url if role == "app" else site.database.owner_url
    with pytest.raises(RuntimeError, match="is not the worker's"), site.worker(MEMPLANE_WORKER_URL=url):
        pass
