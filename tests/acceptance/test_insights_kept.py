"""Insights that were kept: they go with what they rest on, and each is kept once whatever happens to a worker."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from memplane.application.jobs import job_runner
from memplane.application.jobs.inference import inference_job
from memplane.application.jobs.lifecycle_jobs import JobBatch
from memplane.application.memories.gateway import Write
from memplane.domain.errors import StateConflict
from memplane.domain.identity.principal import KeyScope
from support.callers import USER, Caller, Tenant
from support.insights import GOOD, age_turns, answer, insight, insights, lived
from support.killing import killed_after
from support.model_server import ModelServer
from support.nights import Night, Stopped, after_batches, state
from support.telling import say, write


@pytest.fixture
def tenant(asking: Tenant) -> Tenant:
    """One whose server has a model."""
    return asking


class TestSources:
    """What a source loses, an insight loses."""

    def made(self, caller: Caller, night: Night, model: ModelServer) -> tuple[str, list[str]]:
        lived(caller)
        model.script = [answer(insight("The user regrets the lease and plays the piano.", 1, 2, 3))]
        assert night.counts("insights")["insights"] == 1
        (found,) = insights(caller)
        sources = caller.get(f"/v1/memories/{found['id']}").json()["source_ids"]
        return found["id"], sources

    @pytest.mark.parametrize("which", [0, 1], ids=["activity", "fact"])
    def test_it_goes_with_a_source_that_is_deleted(
        self, tenant: Tenant, caller: Caller, night: Night, model: ModelServer, which: int
    ) -> None:
        memory, sources = self.made(caller, night, model)
        assert state(tenant, memory) == "active"
        assert caller.delete(f"/v1/memories/{sources[which]}").status_code == 200
        assert state(tenant, memory) == "soft_deleted"

    def test_it_goes_with_its_user(self, tenant: Tenant, caller: Caller, night: Night, model: ModelServer) -> None:
        memory, _ = self.made(caller, night, model)
        admin = tenant.caller("supervisor", act_for=["*"], scopes=tuple(KeyScope))
        assert tenant.count("job_users") == 1
        assert admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).status_code == 200
        assert state(tenant, memory) is None
        assert tenant.count("job_users") == 0

    def test_a_source_that_goes_meanwhile_takes_it_along(
        self, caller: Caller, night: Night, model: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gone = write(caller, "The user cancelled the lease on the flat.", "event", type="episodic")["id"]
        write(caller, "The user repaired the boat.", "event", type="episodic")
        model.script = [answer(insight("The user regrets the lease.", 1), insight("The user is proud of the boat.", 2))]
        kept = night.jobs._step

        async def later(*given: Any) -> Any:  # noqa: ANN401 - as it came
            step = await kept(*given)
            response = await asyncio.to_thread(caller.delete, f"/v1/memories/{gone}")
            assert response.status_code == 200
            return step

        monkeypatch.setattr(night.jobs, "_step", later)
        assert night.counts("insights") == {"users": 1, "insights": 1, "merged": 0, "dropped": 1}
        assert [each["content"] for each in insights(caller)] == ["The user is proud of the boat."]

    def test_an_erasure_meanwhile_leaves_nothing(
        self, tenant: Tenant, caller: Caller, night: Night, model: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for user in (USER, "bo"):
            lived(caller, user)
        model.script = [answer(insight(GOOD, 3))] * 2
        admin = tenant.caller("supervisor", act_for=["*"], scopes=tuple(KeyScope))
        kept = night.jobs._step

        async def later(*given: Any) -> Any:  # noqa: ANN401 - as it came
            step = await kept(*given)
            erase = partial(admin.post, f"/v1/users/{USER}/erase", {"confirm": USER})
            assert (await asyncio.to_thread(erase)).status_code == 200
            return step

        monkeypatch.setattr(night.jobs, "_step", later)
        night.now = datetime.now(UTC)
        assert night.counts("insights")["users"] == 1
        left = tenant.rows("SELECT user_id FROM memories WHERE tenant_id = %(tenant)s")
        assert {row["user_id"] for row in left} == {"bo"}
        assert [row["user_id"] for row in tenant.rows("SELECT * FROM job_users WHERE tenant_id = %(tenant)s")] == ["bo"]

    def test_what_a_person_rejected_is_not_concluded_again(
        self, caller: Caller, night: Night, model: ModelServer
    ) -> None:
        lived(caller)
        model.script = [answer(insight(GOOD, 3))]
        night.run("insights")
        (found,) = insights(caller)
        say(caller, found["id"], "reject")
        age_turns(night.tenant, night.now + timedelta(hours=1))
        later = Night(night.tenant, night.now + timedelta(days=1))
        model.script = [answer(insight(GOOD, 3), insight("The user regrets the lease on the flat.", 1))]
        assert later.counts("insights") == {"users": 1, "insights": 1, "merged": 0, "dropped": 1}
        assert [each["content"] for each in insights(caller)] == ["The user regrets the lease on the flat."]


class TestOnce:
    """Whatever happens to a worker, a user has one set of insights a day."""

    def test_killed_after_every_statement(
        self, tenant: Tenant, caller: Caller, night: Night, model: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(type(tenant.server.wired.thinking), "_reserve", _unbounded)
        lived(caller)
        tables = ("history", "events", "change_log", "memory_sources")
        before = tenant.count(*tables)
        for statements in range(200):
            model.script = [answer(insight(GOOD, 3))]
            with killed_after(statements):
                try:
                    done = night.run("insights")
                    break
                except Stopped:
                    assert insights(caller) == []
                    assert tenant.count("job_users") == 0
                    assert tenant.count(*tables) == before
        assert statements > 5
        assert done.counts == {"users": 1, "insights": 1, "merged": 0, "dropped": 0}
        assert len(insights(caller)) == 1
        night.now += timedelta(minutes=1)
        assert Night(tenant, night.now).run("insights", as_of=night.now).counts["users"] == 1  # of this day; no more
        assert len(insights(caller)) == 1

    def test_two_workers_at_once(self, tenant: Tenant, caller: Caller, night: Night, model: ModelServer) -> None:
        users = [f"user-{nth}" for nth in range(6)]
        for user in users:
            lived(caller, user)
        model.script = [answer(insight(GOOD, 3)) for _ in range(30)]
        workers = [night, *(Night(tenant) for _ in range(3))]

        def tried(worker: Night) -> str:
            try:
                return worker.run("insights").outcome
            except StateConflict:
                return "another"

        with ThreadPoolExecutor(4) as pool:
            assert "done" in list(pool.map(tried, workers))
        assert [len(insights(caller, user)) for user in users] == [1] * 6
        assert tenant.count("job_users") == 6

    def test_a_second_run_that_was_thinking_at_the_same_time(
        self, tenant: Tenant, caller: Caller, night: Night, model: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another worker concludes something of the user between the thinking and the transaction."""
        lived(caller)
        model.script = [answer(insight(GOOD, 3))] * 2
        other = Night(tenant, night.now)
        kept = night.jobs._step
        prepared = night.jobs._prepared["insights"]

        async def later(*given: Any) -> Any:  # noqa: ANN401 - as it came
            step = await kept(*given)
            principal = job_runner._principal("insights", tenant.name)
            rival = await prepared(principal, other.now, None)
            wired = tenant.server.wired

            async def work(write: Write) -> JobBatch:
                return await rival(write, other.now, None)

            done = await wired.gateway.run(principal, wired.policies.current, other.now, work)
            assert done.counts["insights"] == 1
            return step

        monkeypatch.setattr(night.jobs, "_step", later)
        assert night.counts("insights") == {"users": 0, "insights": 0, "merged": 0, "dropped": 0}
        assert len(insights(caller)) == 1
        assert len(model.asked) == 2

    def test_a_dry_run_stores_nothing(self, tenant: Tenant, caller: Caller, night: Night, model: ModelServer) -> None:
        lived(caller)
        model.script = [answer(insight(GOOD, 3))] * 2
        assert night.run("insights", dry_run=True).counts["insights"] == 1
        assert (insights(caller), tenant.count("job_users")) == ([], 0)
        assert night.counts("insights")["insights"] == 1

    def test_killed_between_two_batches_it_goes_on(
        self, caller: Caller, night: Night, model: ModelServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(inference_job, "MOST", 2)
        users = [f"user-{nth}" for nth in range(5)]
        for user in users:
            lived(caller, user)
        model.script = [answer(insight(GOOD, 3)) for _ in users]
        with pytest.raises(Stopped):
            night.run("insights", progress=after_batches(1))
        assert night.counts("insights")["users"] == 5
        assert [len(insights(caller, user)) for user in users] == [1] * 5
        assert len(model.asked) == 5


async def _unbounded(*_given: object) -> None:
    """Nothing is reserved: what killed workers reserved would use the day's tokens up."""
