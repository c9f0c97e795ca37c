"""The queue of jobs: what is asked for is done once, what fails is tried again and then parked, and who may say so."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from memplane.application.jobs import job_queue, job_runner, lifecycle_jobs
from memplane.application.jobs.job_records import Lease
from memplane.application.jobs.job_runner import Jobs
from memplane.domain.errors import StateConflict, StorageUnavailable
from memplane.domain.identity.principal import KeyScope, Reach
from memplane.domain.jobs.job_definitions import NIGHTLY, ON_DEMAND, JobState
from memplane.domain.policy.capabilities import Capability
from support.access_matrix import Access, Tenants, routes
from support.callers import Caller, Tenant, refused
from support.nights import NOON, Night, age, state
from support.serving import RunningServer
from support.telling import write

WORDS = ("piano", "boat", "horse", "garden", "canoe", "kite", "drum", "lamp", "clock", "flute")
ADMIN = "/v1/admin/jobs"


@pytest.fixture
def idle(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ten memories of three users that decay and that nobody asked for, done in batches of three."""
    monkeypatch.setattr(lifecycle_jobs, "BATCH", 3)
    caller = tenant.caller("supervisor")
    found = []
    for nth, word in enumerate(WORDS):
        told = write(caller, f"The user owns a {word}.", importance=1, user_id=f"user-{nth % 3}", confidence=0.9)
        found.append(str(told["id"]))
        age(tenant, found[-1], 70, decay_rate=0.01)
    return found


READ_ALL, WEEKLY = frozenset({"decay", "enrichment", "ttl"}), frozenset({"reflections"})
"""Jobs that read the poisoned memory, and those that are not due on any day."""


def poison(tenant: Tenant, memory: str) -> None:
    """Let a memory be what no code of ours makes, and none can read."""
    tenant.rows("UPDATE memories SET layer = 'odd' WHERE id = %(id)s", id=UUID(memory))


def cure(tenant: Tenant, memory: str) -> None:
    tenant.rows("UPDATE memories SET layer = 'mid' WHERE id = %(id)s", id=UUID(memory))


def test_the_jobs_of_the_policy_are_those_that_there_are(night: Night) -> None:
    assert {*lifecycle_jobs.STEPS, *night.jobs._prepared} == {*NIGHTLY, *ON_DEMAND}
    assert lifecycle_jobs.STEPS.keys().isdisjoint(night.jobs._prepared)


class TestAsking:
    """What is asked for is one job a day, however often, and done once."""

    def test_once_however_often(self, tenant: Tenant, night: Night, idle: list[str]) -> None:
        job = night.ask("decay")
        assert (job.state, night.ask("decay").id) == (JobState.WAITING, job.id)
        assert {state(tenant, each, "confidence") for each in idle} == {0.9}
        for delivery in range(3):  # the queue gives a job at least once
            assert night.perform(job, delivery) is None
        done = night.found(job)
        assert (done.state, done.counts, done.error) == (JobState.DONE, {"faded": 10, "deleted": 0}, None)
        assert len({state(tenant, each, "confidence") for each in idle}) == 1
        assert night.ask("decay").state is JobState.DONE  # its work is not done twice
        assert night.ask("ttl").state is JobState.WAITING  # the control

    def test_what_is_taken_back_leaves_nothing_in_the_queue(self, tenant: Tenant, night: Night) -> None:
        async def taken_back() -> None:
            async def work(uow: Any) -> None:  # noqa: ANN401 - a unit of work
                await job_queue.enqueue(uow, "ttl", night.now)
                raise StateConflict("taken back")

            await tenant.server.wired.storage.write(Reach(tenant.name), work)

        with pytest.raises(StateConflict):
            tenant.server.run(taken_back())
        assert night.worked_off() == []
        night.ask("ttl")
        assert [job.name for job in night.worked_off()] == ["ttl"]

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    def test_a_message_reaches_the_jobs_of_its_own_tenant_alone(self, tenant: Tenant, night: Night) -> None:
        other = Tenant(tenant.server)
        other.caller("supervisor")
        job = night.ask("ttl")
        assert Night(other).perform(job) is None
        assert night.found(job).state is JobState.WAITING
        assert night.perform(job) is None
        assert night.found(job).state is JobState.DONE


class TestClaims:
    """Of two workers one has the job; who lost it changes nothing any more."""

    @pytest.fixture
    def tenant(self, start_server: Callable[..., RunningServer]) -> Tenant:
        """On a server of its own: what is due is put into the queue for every tenant that a server has."""
        return Tenant(start_server())

    def test_who_comes_second_waits(self, night: Night, idle: list[str]) -> None:
        job, other = night.ask("decay"), Night(night.tenant)
        between: list[timedelta | None] = []

        async def second(_counts: Mapping[str, float]) -> None:
            between.append(await other.jobs.perform(night.tenant.name, job.id, Lease("another", 0)))

        night.tenant.server.run(interrupted(night.jobs, night, job.id, second))
        assert len(idle) == 10
        assert between.pop() is None  # after the last batch there is nothing to wait for
        assert between
        assert all(pause is not None and pause <= job_runner.LEASE for pause in between)
        assert night.found(job).counts == {"faded": 10, "deleted": 0}

    def test_who_was_given_up_commits_nothing(self, tenant: Tenant, night: Night, idle: list[str]) -> None:
        job, other = night.ask("decay"), Night(tenant)
        took: list[timedelta | None] = []

        async def later(_counts: Mapping[str, float]) -> None:
            if not took:  # the queue gives the same message to another worker, which comes to the end
                took.append(await other.jobs.perform(tenant.name, job.id, Lease("test", 1)))

        assert tenant.server.run(interrupted(night.jobs, night, job.id, later)) is None
        done = night.found(job)
        assert took == [None]
        assert (done.state, done.counts, done.error) == (JobState.DONE, {"faded": 10, "deleted": 0}, None)
        assert len({state(tenant, each, "confidence") for each in idle}) == 1

    def test_who_is_told_to_stop_hands_back(self, night: Night, idle: list[str]) -> None:
        job = night.ask("decay")

        async def stop(_counts: Mapping[str, float]) -> None:
            night.jobs.stop()

        again = night.tenant.server.run(interrupted(night.jobs, night, job.id, stop))
        half = night.found(job)
        assert (again, half.state, half.counts["faded"], half.attempts) == (timedelta(0), JobState.WAITING, 3, 0)
        assert Night(night.tenant).perform(job, 1) is None
        assert night.found(job).counts["faded"] == len(idle)

    def test_a_run_whose_worker_is_gone_without_a_word_is_given_again(self, tenant: Tenant, night: Night) -> None:
        job = night.ask("ttl")
        tenant.rows("UPDATE job_runs SET state = 'running', worker = 'gone/0', lease_until = %(at)s WHERE id = %(id)s",
                    id=job.id, at=(NOON + timedelta(minutes=1)).isoformat())  # fmt: skip
        tenant.server.run(night.queue.schedule())
        assert night.found(job).state is JobState.RUNNING
        night.now += timedelta(hours=1)
        tenant.server.run(Night(tenant, night.now).queue.schedule())
        assert night.found(job).state is JobState.WAITING
        assert night.perform(job) is None
        assert night.found(job).state is JobState.DONE


async def interrupted(jobs: Jobs, night: Night, job: UUID, between: Any) -> timedelta | None:  # noqa: ANN401 - a coroutine function
    """Do a job, and something else after each of its batches."""
    original = jobs._batch

    async def batch(*given: Any) -> Any:  # noqa: ANN401 - of the method
        run = await original(*given)
        await between(run.counts)
        return run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "_batch", batch)
        return await jobs.perform(night.tenant.name, job, Lease("test", 0))


class TestFailing:
    """A job that fails is tried again, later each time, and then parked; the others go on."""

    @pytest.fixture
    def tenant(self, start_server: Callable[..., RunningServer]) -> Tenant:
        """On a server of its own: what is due is put into the queue for every tenant that a server has."""
        return Tenant(start_server())

    def test_a_poison_job_is_parked(self, tenant: Tenant, night: Night, idle: list[str]) -> None:
        poison(tenant, idle[4])
        job, rules = night.ask("decay"), tenant.server.wired.policies.current.workers
        pauses = []
        while (pause := night.perform(job, len(pauses))) is not None:
            assert night.found(job).state is JobState.WAITING
            early = night.perform(job, 50)
            assert early is not None
            assert early == pause  # before its time it is not tried
            pauses.append(pause)
            night.now += pause
        parked = night.found(job)
        assert pauses == [rules.pause_after(nth) for nth in range(1, rules.attempts)]
        assert (parked.state, parked.attempts) == (JobState.PARKED, rules.attempts)
        assert parked.error == "unexpected ValueError; the worker's log has the rest"
        assert parked.counts == {"faded": 3, "deleted": 0}  # the batch before stays
        assert night.perform(job, 9) is None
        assert night.worked_off() == [parked]
        assert night.perform(night.ask("gc")) is None
        night.now += timedelta(days=1)  # what is parked keeps nothing from being due
        tenant.server.run(night.queue.schedule())
        done = {job.name for job in night.worked_off() if job.state is JobState.DONE}
        assert done >= set(NIGHTLY) - READ_ALL - WEEKLY
        cure(tenant, idle[4])
        assert tenant.server.run(night.queue.retry(tenant.name, parked.id)).state is JobState.WAITING

    def test_a_parked_job_goes_on_from_where_it_was_left(self, tenant: Tenant, night: Night, idle: list[str]) -> None:
        poison(tenant, idle[4])
        job = night.ask("decay")
        while (pause := night.perform(job)) is not None:
            night.now += pause
        cure(tenant, idle[4])
        tenant.server.run(night.queue.retry(tenant.name, job.id))
        assert night.perform(job) is None
        assert night.found(job).counts == {"faded": 10, "deleted": 0}
        assert len({round(state(tenant, each, "confidence"), 9) for each in idle}) == 1

    def test_a_job_that_kills_its_workers_is_parked(self, tenant: Tenant, night: Night) -> None:
        job, rules = night.ask("ttl"), tenant.server.wired.policies.current.workers

        class Killed(BaseException):
            pass

        async def killed(*_given: object) -> None:
            raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(night.jobs, "_batch", killed)
            for delivery in range(rules.attempts):
                with pytest.raises(Killed):
                    night.perform(job, delivery)
        assert night.perform(job, rules.attempts) is None
        parked = night.found(job)
        assert (parked.state, parked.error) == (
            JobState.PARKED, f"its worker was gone {rules.attempts} times in the middle of it"
        )  # fmt: skip

    def test_what_is_wrong_with_the_database_parks_nothing(self, tenant: Tenant, night: Night) -> None:
        job, rules = night.ask("ttl"), tenant.server.wired.policies.current.workers

        async def away(*_given: object) -> None:
            raise StorageUnavailable("away")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(night.jobs, "_batch", away)
            for delivery in range(2 * rules.attempts):
                pause = night.perform(job, delivery)
                assert pause is not None
                night.now += pause
        assert night.perform(job, 99) is None
        assert night.found(job).state is JobState.DONE


class TestAdministration:
    """Administrators list, run, cancel and retry the jobs of their own tenant."""

    def test_run_list_cancel_and_retry(self, admin: Caller, night: Night) -> None:
        asked = admin.post(ADMIN, {"name": "ttl"})
        assert asked.status_code == 202, asked.text
        job = asked.json()
        assert (job["name"], job["state"], job["progress"]) == ("ttl", "waiting", {})
        assert admin.post(ADMIN, {"name": "ttl"}).json()["id"] == job["id"]
        assert admin.post(f"{ADMIN}/{job['id']}/cancel", {}).json()["state"] == "cancelled"
        refused(admin.post(f"{ADMIN}/{job['id']}/cancel", {}), 409, "conflict")
        assert [each.state for each in night.worked_off()] == [JobState.CANCELLED]
        assert admin.post(f"{ADMIN}/{job['id']}/retry", {}).json()["state"] == "waiting"
        refused(admin.post(f"{ADMIN}/{job['id']}/retry", {}), 409, "conflict")
        night.worked_off()
        (listed,) = admin.get(ADMIN).json()["items"]
        assert (listed["state"], listed["progress"]) == ("done", {"deleted": 0})
        refused(admin.post(ADMIN, {"name": "sleep"}), 404, "not_found")
        refused(admin.post(f"{ADMIN}/{uuid4()}/retry", {}), 404, "not_found")

    def test_a_job_at_work_ends_before_its_next_batch(self, admin: Caller, night: Night, idle: list[str]) -> None:
        job = night.ask("decay")

        async def cancel(_counts: Mapping[str, float]) -> None:
            await night.queue.cancel(night.tenant.name, job.id)

        assert night.tenant.server.run(interrupted(night.jobs, night, job.id, cancel)) is None
        found = night.found(job)
        assert (found.state, found.counts["faded"]) == (JobState.CANCELLED, 3)
        assert admin.post(f"{ADMIN}/{job.id}/retry", {}).json()["state"] == "waiting"
        night.worked_off()
        assert night.found(job).counts["faded"] == len(idle)

    def test_pages(self, admin: Caller, night: Night) -> None:
        for name in NIGHTLY:
            night.ask(name)
        names: list[str] = []
        page = admin.get(ADMIN, limit=3).json()
        while True:
            names += [each["name"] for each in page["items"]]
            if page["next"] is None:
                break
            page = admin.get(ADMIN, limit=3, cursor=page["next"]).json()
        assert names == [*reversed(NIGHTLY)]
        assert admin.get(ADMIN, state="parked").json()["items"] == []
        assert len(admin.get(ADMIN, state="waiting").json()["items"]) == len(NIGHTLY)

    def test_the_same_request_sent_again_has_no_second_effect(self, admin: Caller, night: Night) -> None:
        sent = {"json": {"name": "ttl"}, "headers": {"Idempotency-Key": "once"}}
        first = admin.send("POST", ADMIN, **sent)
        night.worked_off()
        again = admin.send("POST", ADMIN, **sent)
        assert (again.status_code, again.json()) == (202, first.json())
        assert [each.state for each in night.worked_off()] == [JobState.DONE]
        assert admin.post(ADMIN, {"name": "ttl"}).json()["state"] == "waiting"  # the control

    @pytest.mark.parametrize("bound", [{"users": ["user-1"]}, {"trust": "inner"}], ids=str)
    def test_who_speaks_for_some_decides_nothing_for_all(self, tenant: Tenant, night: Night, bound: Any) -> None:  # noqa: ANN401 - of a key
        caller = tenant.caller(None, act_for=["*"], scopes=tuple(KeyScope), **bound)
        job = night.ask("ttl")
        for answer in (
            caller.get(ADMIN), caller.post(ADMIN, {"name": "ttl"}), caller.post(f"{ADMIN}/{job.id}/cancel", {}),
        ):  # fmt: skip
            assert answer.status_code == 403, answer.text
        assert night.found(job).state is JobState.WAITING


@pytest.mark.needs(Capability.SEVERAL_TENANTS)
@pytest.mark.parametrize("access", routes(tenants=Tenants.JOBS), ids=str)
def test_another_tenant_s_jobs_are_not_there(tenant: Tenant, night: Night, access: Access) -> None:
    other = Tenant(tenant.server)
    stranger = other.caller(None, act_for=["*"], scopes=tuple(KeyScope))
    job = night.ask("ttl")
    answer = stranger.send(access.method, access.url(str(job.id)), **access.request("tasks"))
    if "{job_id}" in access.path:
        refused(answer, 404, "not_found")
    else:
        assert str(job.id) not in answer.text
    assert night.found(job).state is JobState.WAITING
    mine = tenant.caller(None, act_for=["*"], scopes=tuple(KeyScope))  # the control
    assert str(job.id) in mine.get(ADMIN).text
