"""The work of the night: what each job does, against numbers worked out by hand, and that it does it once."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from math import exp
from typing import Any
from uuid import UUID

import pytest

from memplane.adapters.sql.stores.jobs import upkeep
from memplane.application.jobs import job_runner, lifecycle_jobs
from memplane.domain.errors import RecordNotFound, StateConflict
from memplane.domain.identity.principal import KeyScope
from memplane.domain.jobs.job_definitions import NIGHTLY, JobState
from memplane.domain.memory.lifecycle import LifecycleRules
from support.callers import THREAD, USER, Caller, Tenant, refused
from support.consenting import context, decide, lapse, queue
from support.nights import NOON, Night, Stopped, after_batches, age, ago, state
from support.promises.checks import faded_twice
from support.serving import RunningServer
from support.telling import events, say, texts, write

WORDS = ("piano", "boat", "horse", "garden", "canoe", "kite", "drum", "lamp", "clock", "flute")


def own(caller: Caller, word: str, **fields: Any) -> str:  # noqa: ANN401 - of the memory
    return str(write(caller, f"The user owns a {word}.", **fields)["id"])


def owning(*words: str) -> set[str]:
    return {f"The user owns a {word}." for word in words}


class TestTtl:
    """What nobody asked for in 60 days, and is of little importance, is deleted."""

    def test_only_what_is_idle_unimportant_and_unpinned(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        due = own(caller, "piano", importance=2, thread_id=THREAD)
        kept = {
            "young": (own(caller, "boat", importance=2), 59.99, {}),
            "important": (own(caller, "horse", importance=4), 90, {}),
            "of another category": (own(caller, "lamp", importance=2, category="tasks"), 90, {}),
            "confirmed": (own(caller, "clock", importance=1), 90, {"trust_state": "confirmed"}),
            "pinned": (own(caller, "garden", importance=1, pinned=True), 90, {}),
            "asked for": (own(caller, "canoe", importance=1), 90, {"last_accessed": ago(59)}),
            "hit": (own(caller, "kite", importance=1), 90, {"last_hit_at": ago(59)}),
            "changed": (own(caller, "drum", importance=1), 90, {"updated_at": ago(59)}),
        }
        age(tenant, due, 60.01, last_accessed=ago(60.01))
        for memory, days, columns in kept.values():
            age(tenant, memory, days, **columns)
        rev = caller.get(f"/v1/threads/{THREAD}/delta").json()["rev"]
        assert night.run("ttl", dry_run=True).counts == {"deleted": 1}
        assert state(tenant, due) == "active"
        assert night.counts("ttl") == {"deleted": 1}
        assert {why for why, (memory, _, _) in kept.items() if state(tenant, memory) != "active"} == set()
        assert state(tenant, due) == "soft_deleted"
        assert state(tenant, due, "purge_at") == NOON + timedelta(days=30)
        (told, *_) = caller.get(f"/v1/memories/{due}/history").json()["items"]
        assert (told["event"], told["actor"], told["meta"]["cause"]) == ("TTL", "job:ttl", "idle")
        assert "~soft_deleted" in caller.get(f"/v1/threads/{THREAD}/delta", since=rev).json()["header"]
        (noted,) = tenant.rows("SELECT node, op FROM events WHERE tenant_id = %(tenant)s AND node = 'worker'")
        assert noted["op"] == "ttl"

    def test_what_is_restored_is_not_taken_again_the_next_night(
        self, tenant: Tenant, caller: Caller, night: Night
    ) -> None:
        memory = own(caller, "piano", importance=1)
        age(tenant, memory, 90)
        night.run("ttl")
        assert texts(caller) == set()
        assert say(caller, memory, "restore")["outcome"] == "restored"
        night.now += timedelta(days=1)
        assert night.counts("ttl") == {"deleted": 0}
        assert texts(caller) == owning("piano")

    def test_a_decided_field_never_goes_silently(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        reviewer = tenant.caller("supervisor", scopes=[KeyScope.CONSENT])
        field = decide(reviewer, queue(caller, importance=1))["memory_id"]
        other = own(caller, "piano", importance=1)
        for each in (field, other):
            age(tenant, each, 90)
        assert night.counts("ttl") == {"deleted": 1}
        assert context(caller) == {"city": "Berlin"}
        assert state(tenant, other) == "soft_deleted"  # the control


class TestExpiry:
    """What has expired is gone from reads at once, and is swept later."""

    def test_it_is_swept(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        gone, kept = own(caller, "piano"), own(caller, "boat", expires_at=(NOON + timedelta(days=1)).isoformat())
        tenant.expire(gone)
        assert texts(caller) == owning("boat")
        assert night.counts("expiry") == {"deleted": 1}
        assert (state(tenant, gone), state(tenant, kept)) == ("soft_deleted", "active")
        assert night.counts("expiry") == {"deleted": 1}  # the same day's: no more was done
        night.now += timedelta(days=1)
        assert night.counts("expiry") == {"deleted": 1}  # the next day's: the other one


class TestDecay:
    """Confidence wanes with the days since access, once a night."""

    def decaying(self, tenant: Tenant, memory: str, rate: float, days: float, **columns: object) -> None:
        age(tenant, memory, days, decay_rate=rate, **columns)

    def test_by_the_formula_and_once_a_day(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        wanes, read, never, certain = (own(caller, word) for word in WORDS[:4])
        self.decaying(tenant, wanes, 0.1, 10)
        self.decaying(tenant, read, 0.05, 90, last_accessed=ago(2), confidence=0.8)
        self.decaying(tenant, never, 0.0, 1000)
        say(caller, certain, "confirm")
        assert night.counts("decay") == {"faded": 2, "deleted": 0}
        expected = {wanes: exp(-1), read: 0.8 * exp(-0.1), never: 1.0, certain: 1.0}
        for _ in range(2):
            assert {each: state(tenant, each, "confidence") for each in expected} == pytest.approx(expected)
            assert night.run("decay").outcome == "unchanged"
            night.now += timedelta(hours=11)
        night.now = NOON - timedelta(days=1)  # the clock is put back
        with pytest.raises(StateConflict, match="earlier day"):
            night.run("decay")
        assert state(tenant, wanes, "confidence") == pytest.approx(exp(-1))
        night.now = NOON + timedelta(days=1)  # the control: the next night
        assert night.run("decay").outcome == "done"
        assert state(tenant, wanes, "confidence") == pytest.approx(exp(-1) * exp(-1.1))
        assert state(tenant, wanes, "version") == 1  # a caller's If-Match still holds

    def test_below_the_floor_it_is_deleted(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        gone, left = own(caller, "piano"), own(caller, "boat")
        self.decaying(tenant, gone, 0.1, 30)  # e^-3 = 0.0498
        self.decaying(tenant, left, 0.1, 29.9)  # 0.0503
        assert night.counts("decay") == {"faded": 1, "deleted": 1}
        assert (state(tenant, gone), state(tenant, left)) == ("soft_deleted", "active")
        assert events(caller, gone) == ["TTL", "ADD"]

    def test_which_memories_have_a_rate(self, tenant: Tenant, caller: Caller) -> None:
        fact, episode = own(caller, "piano"), write(caller, "The user met Ana.", type="episodic")["id"]
        rates = [state(tenant, each, "decay_rate") for each in (fact, episode)]
        assert rates == [LifecycleRules().decay_rate, 0.0]
        say(caller, fact, "confirm")
        assert state(tenant, fact, "decay_rate") == 0.0


class TestLayers:
    """What is hit settles; over the capacity the lowest of the rest is archived."""

    @pytest.fixture(autouse=True)
    def small(self, night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
        """A policy with room for three."""
        self.rules(night, monkeypatch, capacity=3)

    def rules(self, night: Night, monkeypatch: pytest.MonkeyPatch, **changed: int) -> None:
        policies = night.tenant.server.wired.policies
        policy = replace(policies.current, lifecycle=LifecycleRules(**changed))
        monkeypatch.setattr(type(policies), "current", property(lambda _: policy))

    def test_promotion_and_capacity(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        settled, late, few = (own(caller, word) for word in WORDS[:3])
        age(tenant, settled, 90, hits=3, last_hit_at=ago(7))
        age(tenant, late, 90, hits=3, last_hit_at=ago(7.01))
        age(tenant, few, 90, hits=2, last_hit_at=ago(1))
        old, older, young = (own(caller, word) for word in WORDS[3:6])
        age(tenant, old, 20)  # scores 0.37
        age(tenant, older, 21)
        age(tenant, young, 1)
        other = own(caller, "lamp", user_id="ben")
        age(tenant, other, 90)
        told = night.counts("layers")
        assert told == {"promoted": 1, "archived": 2, "users": 1}
        layers = [state(tenant, each, "layer") for each in (settled, late, few)]
        assert layers == ["long", "mid", "mid"]
        assert [state(tenant, each) for each in (old, older)] == ["archived", "archived"]  # five, and room for three
        assert [state(tenant, each) for each in (late, few, young, other)] == ["active"] * 4
        assert events(caller, old)[0] == "ARCHIVE"
        assert texts(caller, filters={"user_id": USER}) == owning("piano", "boat", "horse", "kite")
        assert night.counts("layers") == told  # nothing more
        assert say(caller, older, "restore")["outcome"] == "restored"

    def test_the_size(self, tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rules(night, monkeypatch, max_size=4, prune_percent=20)
        some = [own(caller, word) for word in WORDS[:7]]
        for nth, each in enumerate(some):
            age(tenant, each, nth)
        tenant.rows("UPDATE memories SET pinned = %(yes)s WHERE id = %(id)s", yes=True, id=UUID(some[6]))
        tenant.rows("UPDATE memories SET reinforcement = 9 WHERE id = %(id)s", id=UUID(some[5]))
        told = night.counts("size")  # seven less two, less one: four are left
        assert told == {"archived": 3, "users": 1}
        gone = [each for each in some if state(tenant, each) == "archived"]
        assert gone == some[2:5]
        assert night.counts("size") == told

    def test_threads_are_told_that_it_was_archived_and_not_deleted(
        self, tenant: Tenant, caller: Caller, night: Night
    ) -> None:
        some = [own(caller, word, thread_id=THREAD) for word in WORDS[:4]]
        for each in some:
            age(tenant, each, 20)
        rev = caller.get(f"/v1/threads/{THREAD}/delta").json()["rev"]
        assert night.counts("layers")["archived"] == 1
        (gone,) = [each for each in some if state(tenant, each) == "archived"]
        told = caller.get(f"/v1/threads/{THREAD}/delta", since=rev).json()
        assert [(each["event"], each["memory_id"]) for each in told["changes"]] == [("archived", gone)]
        assert "▽archived: " in told["header"]
        assert "deleted" not in told["header"]
        (noted,) = tenant.rows("SELECT op FROM events WHERE memory_id = %(id)s AND node = 'worker'", id=UUID(gone))
        assert noted["op"] == "archive"
        assert say(caller, gone, "restore")["outcome"] == "restored"
        assert "⟲restored: " in caller.get(f"/v1/threads/{THREAD}/delta", since=rev).json()["header"]


class TestSweeping:
    """Purge removes what is due; lapsed proposals are removed when they are as old as that."""

    def test_purge(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        due, waiting, active = (own(caller, word) for word in WORDS[:3])
        for each, days in ((due, 30), (waiting, 29)):
            assert caller.delete(f"/v1/memories/{each}").status_code == 200
            tenant.rows("UPDATE memories SET purge_at = %(at)s WHERE id = %(id)s", at=ago(days - 30), id=UUID(each))
        assert night.run("purge", dry_run=True).counts == {"purged": 1, "answers": 0}
        assert state(tenant, due) == "soft_deleted"
        assert night.counts("purge") == {"purged": 1, "answers": 0}
        assert [state(tenant, each) for each in (due, waiting, active)] == [None, "soft_deleted", "active"]
        refused(caller.get(f"/v1/memories/{due}/history"), 404, "not_found")

    def test_answers(self, tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
        """An answer repeats words of memories: it is not kept longer than what is deleted."""
        monkeypatch.setattr(lifecycle_jobs, "BATCH", 2)
        body = {"user_id": USER, "category": "tasks", "content": "The user owns a piano."}

        def asked(key: str) -> bool:
            answer = caller.send("POST", "/v1/memories", json=body, headers={"Idempotency-Key": key})
            return answer.raise_for_status().headers.get("Idempotency-Replayed") == "true"

        for key, days in {"old": 30, "older": 90, "oldest": 365, "recent": 29.9}.items():
            assert not asked(key)
            tenant.rows(
                "UPDATE idempotency_keys SET created_at = %(at)s"
                " WHERE tenant_id = %(tenant)s AND idempotency_key = %(key)s",
                at=ago(days),
                key=key,
            )
        assert night.run("purge", dry_run=True).counts == {"purged": 0, "answers": 3}
        assert asked("old")
        assert night.counts("purge") == {"purged": 0, "answers": 3}
        assert asked("recent")
        assert not asked("old")

    def test_proposals(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        reviewer = tenant.caller("supervisor", scopes=[KeyScope.CONSENT])
        old, waits = queue(caller), queue(caller, "The user is called Alex.")
        decided = queue(caller, "The user's pronouns are they/them.")
        decide(reviewer, decided)
        recent = queue(caller, "The user lives in Oslo.")
        for each in (old, decided):
            lapse(tenant, each)
        tenant.rows("UPDATE consent_proposals SET expires_at = %(at)s WHERE id = %(id)s", at=ago(29), id=UUID(recent))
        assert night.counts("proposals") == {"removed": 1}
        left = {str(row["id"]) for row in tenant.rows("SELECT id FROM consent_proposals WHERE tenant_id = %(tenant)s")}
        assert left == {waits, decided, recent}

    def test_the_report(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        new, old, gone = (own(caller, word) for word in WORDS[:3])
        age(tenant, new, 0.5, importance=5)
        age(tenant, old, 5, importance=2, confidence=0.5)
        age(tenant, gone, 90, importance=1)
        night.run("ttl")
        told = night.counts("gc")
        assert (told["memories"], told["active"], told["created"], told["deleted"]) == (3, 2, 1, 1)
        assert (told["average_importance"], told["average_confidence"]) == (3.5, 0.75)
        assert night.counts("gc") == told


class TestOnce:
    """Whatever happens to a worker, what it did is done once, and what it left is done by the next."""

    @pytest.fixture
    def idle(self, tenant: Tenant, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Ten memories that are due, of three users, done in batches of three."""
        monkeypatch.setattr(lifecycle_jobs, "BATCH", 3)
        found = [
            own(caller, word, importance=1, user_id=f"user-{nth % 3}", confidence=0.9) for nth, word in enumerate(WORDS)
        ]
        for each in found:
            age(tenant, each, 70, decay_rate=0.01)
        return found

    @pytest.mark.parametrize("batches", [1, 2, 3])
    @pytest.mark.parametrize("name", ["ttl", "decay"])
    def test_a_worker_that_ends_in_the_middle(
        self, tenant: Tenant, night: Night, idle: list[str], name: str, batches: int
    ) -> None:
        with pytest.raises(Stopped):
            night.run(name, progress=after_batches(batches))
        other = Night(tenant, night.now + timedelta(minutes=1))
        with pytest.raises(StateConflict, match="another worker"):
            other.run(name)
        other.now += job_runner.LEASE
        done = other.run(name)
        assert done.counts == ({"deleted": 10} if name == "ttl" else {"faded": 10, "deleted": 0})
        if name == "ttl":
            assert {state(tenant, each) for each in idle} == {"soft_deleted"}
            assert {state(tenant, each, "version") for each in idle} == {2}
        else:  # no memory waned twice
            assert {round(state(tenant, each, "confidence"), 6) for each in idle} == {round(0.9 * exp(-0.7), 6)}
        before = tenant.count("history", "change_log", "events")
        night.now = other.now
        assert night.run(name).counts == done.counts
        assert tenant.count("history", "change_log", "events") == before

    def test_two_at_once_have_one_effect(self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lifecycle_jobs, "BATCH", 3)
        assert faded_twice(tenant, WORDS) == []

    def test_a_dry_run_changes_nothing(self, tenant: Tenant, night: Night, idle: list[str]) -> None:
        tables = ("memories", "history", "events", "change_log", "job_runs", "thread_revision")
        before = tenant.count(*tables)
        told = {name: dict(night.run(name, dry_run=True).counts) for name in NIGHTLY}
        assert (told["ttl"], told["decay"]) == ({"deleted": 10}, {"faded": 10, "deleted": 0})
        assert tenant.count(*tables) == before
        assert {state(tenant, each) for each in idle} == {"active"}
        assert night.counts("ttl") == told["ttl"]  # the control: it does what it told

    def test_the_cost_follows_batches_and_users_and_not_rows(
        self, tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for word in WORDS:
            age(tenant, own(caller, word, importance=1), 70)
        sent: list[str] = []
        for name in ("due", "lock_due", "move"):
            original = getattr(upkeep.SqlUpkeep, name)

            async def counted(*given: Any, _original: Any = original, _name: str = name) -> Any:  # noqa: ANN401 - of the store
                sent.append(_name)
                return await _original(*given)

            monkeypatch.setattr(upkeep.SqlUpkeep, name, counted)
        assert night.counts("ttl") == {"deleted": 10}
        assert sent == ["due", "lock_due", "move"]

    def test_what_there_is_not(self, night: Night) -> None:
        with pytest.raises(RecordNotFound, match="no job 'sleep'"):
            night.run("sleep")
        with pytest.raises(RecordNotFound, match="no tenant"):
            night.tenant.server.run(night.jobs.run("ttl", "nobody-here"))


class TestNight:
    """Each job is put into the queue when the policy says, once, for every tenant."""

    def test_at_its_hour_once(self, start_server: Callable[..., RunningServer]) -> None:
        tenant = Tenant(start_server())  # of a shared server the night would do every tenant that a test left there
        caller, night = tenant.caller("supervisor"), Night(tenant)
        memory = own(caller, "piano", importance=1)
        age(tenant, memory, 90)
        night.now = NOON.replace(hour=1, minute=59)
        tenant.server.run(night.queue.schedule())
        assert night.worked_off() == []
        night.now = NOON.replace(hour=5)
        tenant.server.run(night.queue.schedule())
        assert state(tenant, memory) == "active"  # it waits for a worker
        runs = night.worked_off()
        assert state(tenant, memory) == "soft_deleted"
        schedules = night.tenant.server.wired.policies.current.workers.schedules
        weekly = {name for name, each in schedules.items() if each and each.last(night.now) < NOON.replace(hour=0)}
        assert weekly <= {"reflections"}
        assert {run.name: run.state for run in runs} == dict.fromkeys(set(NIGHTLY) - weekly, JobState.DONE)
        before = tenant.count("history", "job_runs")
        for schedule in (night.queue, Night(tenant, night.now).queue):  # as another server would
            tenant.server.run(schedule.schedule())
        assert night.worked_off() == runs
        assert tenant.count("history", "job_runs") == before
        night.now += timedelta(days=1)  # the control: the next night
        tenant.server.run(night.queue.schedule())
        done = [run for run in night.worked_off() if run.name != "reflections"]  # which may be of one of the two
        assert len(done) == 2 * len([run for run in runs if run.name != "reflections"])
