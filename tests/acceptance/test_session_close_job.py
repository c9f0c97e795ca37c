"""A user begins a conversation: the others that have been quiet are closed, those that go on beside it are not."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from memplane.adapters.policy import shipped_policies
from memplane.application.jobs.job_records import JobRun, Lease
from memplane.application.jobs.job_runner import LEASE, Jobs
from memplane.domain.jobs.job_definitions import SESSION_CLOSE, JobState
from support.callers import USER, Caller, Json, Tenant, refused
from support.killing import killed_after
from support.nights import Night, Stopped
from support.serving import RunningServer

START = datetime(2026, 5, 8, 9, 0, tzinfo=UTC)
SUMMARY = "The user asked: Is the hall free?"


@dataclass
class Talk:
    """A user who talks, by a clock that the test sets, in minutes."""

    tenant: Tenant
    caller: Caller
    patched: pytest.MonkeyPatch
    night: Night = field(init=False)

    def __post_init__(self) -> None:
        self.night = Night(self.tenant, START)

    def at(self, minutes: float) -> None:
        moment = START + timedelta(minutes=minutes)
        self.patched.setattr(self.tenant.server.wired.gateway, "_clock", lambda: moment)
        self.night.now = moment

    def say(self, minutes: float, thread: str, text: str = "Is the hall free?", **fields: Any) -> Json:  # noqa: ANN401 - of the turn
        self.at(minutes)
        return self.caller.say(text, thread_id=thread, **fields)

    def waiting(self) -> list[JobRun]:
        """The runs that wait, the earliest first."""
        page, _ = self.tenant.server.run(self.night.queue.page(self.tenant.name, 1000, state=JobState.WAITING))
        return [run for run in reversed(page) if run.name == SESSION_CLOSE]

    def work(self) -> None:
        """Do what waits, as a worker would."""
        for run in self.waiting():
            assert self.night.perform(run) is None

    def closed(self, user: str = USER) -> dict[str, int]:
        """The closed conversations of a user, each with its last turn by then."""
        rows = self.tenant.rows("SELECT user_id, thread_id, seq FROM sessions WHERE tenant_id = %(tenant)s")
        return {row["thread_id"]: row["seq"] for row in rows if row["user_id"] == user}

    def runs(self) -> list[JobRun]:
        return list(self.tenant.server.run(self.night.queue.page(self.tenant.name, 1000))[0])


@pytest.fixture
def talk(tenant: Tenant, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> Talk:
    return Talk(tenant, caller, monkeypatch)


def test_one_that_is_quiet_is_closed_summed_up_and_queued_for_consolidation(talk: Talk) -> None:
    talk.say(0, "old")
    talk.work()
    talk.say(11, "new")
    assert talk.closed() == {}  # a job does it
    talk.work()
    assert talk.closed() == {"old": 1}
    (summary,) = talk.caller.get("/v1/memories", type="episodic").json()["items"]
    assert (summary["content"], summary["thread_id"]) == (SUMMARY, "old")
    history = talk.caller.get(f"/v1/memories/{summary['id']}/history").json()["items"]
    assert [(entry["event"], entry["actor"]) for entry in history] == [("ADD", "job:session_close")]
    assert [(run.name, run.state) for run in talk.runs()] == [
        ("facts", JobState.WAITING)
    ]  # and of itself no run is left
    assert talk.caller.post("/v1/sessions/old/close", {}).json()["outcome"] == "unchanged"
    assert talk.caller.post("/v1/sessions/new/close", {}).json()["outcome"] == "closed"


def test_those_that_run_side_by_side_stay_open(talk: Talk) -> None:
    talk.say(0, "a")
    talk.say(0, "b")
    for minutes in (9, 18, 27):
        talk.say(minutes, "a")
        talk.say(minutes + 0.5, "b")
        talk.say(minutes + 1, f"other-{minutes}")
        talk.work()
    assert not {"a", "b"} & set(talk.closed())
    talk.say(38.5, "last")  # the control
    talk.work()
    assert set(talk.closed()) == {"a", "b", "other-9", "other-18", "other-27"}


def test_only_the_first_turn_of_a_conversation_closes_others(talk: Talk) -> None:
    talk.say(0, "a")
    talk.say(5, "b")
    talk.work()
    talk.say(14, "b")  # it goes on; by now the other one is quiet
    assert talk.waiting() == []
    talk.say(14, "c")
    talk.work()
    assert talk.closed() == {"a": 1}


def test_what_is_said_before_the_job_comes_keeps_it_open(talk: Talk) -> None:
    talk.say(0, "a")
    talk.work()
    talk.say(11, "b")
    talk.say(12, "a")
    talk.night.now += timedelta(hours=1)  # the worker is late
    talk.work()
    assert talk.closed() == {}
    talk.say(23, "c")  # the control
    talk.work()
    assert talk.closed() == {"a": 2, "b": 1}


def test_a_later_turn_reopens_it(talk: Talk) -> None:
    talk.say(0, "a")
    talk.say(11, "b")
    talk.work()
    assert talk.closed() == {"a": 1}
    talk.say(20, "a", "It is booked.", role="assistant")
    talk.say(22, "c")
    talk.work()
    assert talk.closed() == {"a": 1, "b": 1}  # again open, since a turn of it is not closed
    talk.say(31, "d")
    talk.work()
    assert talk.closed() == {"a": 2, "b": 1}
    contents = [item["content"] for item in talk.caller.get("/v1/memories", type="episodic").json()["items"]]
    assert sorted(contents) == [SUMMARY, f"{SUMMARY} The assistant said last: It is booked."]


def test_the_rest_is_closed_by_the_night(talk: Talk) -> None:
    talk.say(0, "a")
    talk.say(5, "b")
    talk.work()
    assert talk.closed() == {}
    night = Night(talk.tenant, START + timedelta(hours=18))
    assert night.counts("sessions") == {"closed": 2, "summaries": 2}
    assert talk.closed() == {"a": 1, "b": 1}


def test_other_users_conversations_are_left(talk: Talk) -> None:
    talk.say(0, "a", user_id="ben")
    talk.say(0, "a")
    talk.work()
    bound = talk.tenant.caller("supervisor", users=[USER])
    talk.at(11)
    bound.say("Which hall?", thread_id="b")
    talk.work()
    assert (talk.closed(), talk.closed("ben")) == ({"a": 1}, {})


def test_quiet_is_counted_from_when_turns_were_recorded(talk: Talk) -> None:
    """An import tells of times long past, or to come: neither closes a conversation nor keeps it open."""
    talk.say(0, "long ago", event_time="2001-05-08T09:00:00Z")
    talk.say(5, "now", event_time="2001-05-08T09:30:00Z")
    talk.work()
    assert talk.closed() == {}
    talk.say(11, "new", event_time=(START + timedelta(days=20)).isoformat())
    talk.work()
    assert talk.closed() == {"long ago": 1}
    talk.say(22, "newer")
    talk.work()
    assert set(talk.closed()) == {"long ago", "now", "new"}


def test_of_a_batch_there_is_one_job_for_each_user(talk: Talk) -> None:
    for user in (USER, "ben"):
        talk.say(0, "old", user_id=user)
    talk.work()
    talk.at(11)
    turns = [
        {"user_id": user, "thread_id": f"thread-{n}", "role": "user", "text": f"Is hall {n} free?"}
        for user in (USER, "ben")
        for n in range(5)
    ]
    assert talk.caller.post("/v1/turns:batch", {"turns": turns}).status_code == 201
    assert [run.place for run in talk.waiting()] == [USER, "ben"]
    talk.work()
    assert (talk.closed(), talk.closed("ben")) == ({"old": 1}, {"old": 1})


def test_a_request_that_is_sent_again_has_one_effect(talk: Talk) -> None:
    talk.say(0, "old")
    talk.work()
    talk.at(11)
    turn = {"user_id": USER, "thread_id": "new", "role": "user", "text": "Hello.", "external_id": "one"}
    for name in ("first", "first", "second"):
        answer = talk.caller.send("POST", "/v1/turns", json=turn, headers={"Idempotency-Key": name})
        assert answer.is_success
    assert len(talk.waiting()) == 1


def test_a_turn_that_is_refused_asks_for_nothing(talk: Talk) -> None:
    talk.say(0, "old")
    talk.work()
    talk.at(11)
    body = {"user_id": USER, "thread_id": "new", "role": "user", "text": "Hello."}
    refused(talk.tenant.caller("planner").post("/v1/turns", body), 403, "category_forbidden")
    assert talk.waiting() == []
    statements = 0
    while True:
        with killed_after(statements, anywhere=True):
            answer = talk.caller.post("/v1/turns", body)
        turns = talk.tenant.rows("SELECT id FROM turns WHERE tenant_id = %(tenant)s AND thread_id = 'new'")
        assert len(talk.waiting()) == len(turns) == answer.is_success
        if answer.is_success:
            break
        statements += 1
    assert statements > 1


def test_ended_behind_any_statement(talk: Talk) -> None:
    talk.say(0, "old")
    talk.work()
    talk.say(11, "new")
    (run,) = talk.waiting()
    statements = 0
    while True:
        with killed_after(statements):
            try:
                assert talk.night.perform(run, statements, f"worker-{statements}") is None
                break
            except Stopped:
                statements += 1
                done = not talk.tenant.count(
                    "job_runs"
                )  # all was committed, but `facts` not asked for: the night does that
                assert (talk.closed(), talk.tenant.count("memories")) == (({"old": 1}, 1) if done else ({}, 0))
                if done:
                    break
        talk.night.now += LEASE + timedelta(seconds=1)
        talk.tenant.rows("UPDATE job_runs SET attempts = 1 WHERE tenant_id = %(tenant)s")
    assert statements > 5
    assert (talk.closed(), talk.tenant.count("memories")) == ({"old": 1}, 1)
    assert talk.waiting() == []
    assert talk.night.perform(run) is None  # a message that comes twice
    assert talk.tenant.count("memories") == 1


def test_by_two_workers(talk: Talk) -> None:
    """Each has a run of its own for the same user, and both have looked before either writes."""
    talk.say(0, "old")
    talk.work()
    talk.say(11, "new")
    talk.say(11, "newer")
    batch, both = Jobs._step, asyncio.Barrier(2)

    async def together(self: Jobs, *given: Any) -> Any:  # noqa: ANN401 - as it came
        step = await batch(self, *given)
        await both.wait()
        return step

    first, second = talk.waiting()
    others = Night(talk.tenant, talk.night.now)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Jobs, "_step", together)
        begun = [
            talk.tenant.server.start(night.jobs.perform(talk.tenant.name, run.id, claim))
            for night, run, claim in (
                (talk.night, first, Lease("one", 0)), (others, second, Lease("two", 0)),
            )
        ]  # fmt: skip
        assert [each.result(30) for each in begun] == [None, None]
    assert talk.closed() == {"old": 1}
    assert talk.tenant.count("memories") == 1


def test_an_erased_user_leaves_no_job(talk: Talk, admin: Caller) -> None:
    talk.say(0, "old")
    talk.say(11, "new")
    talk.say(11, "new", user_id="ben")
    done = admin.post(f"/v1/users/{USER}/erase", {"confirm": USER})
    assert done.status_code == 200, done.text
    assert [run.place for run in talk.waiting()] == ["ben"]
    talk.work()
    assert talk.closed() == {}


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        (None, None, {11: 1, 31: 2}),
        ("quiet_minutes: 10", "quiet_minutes: 30", {11: 0, 31: 1}),
        ("sessions: {quiet_minutes: 10}\n", "", {9: 0, 11: 1}),
        ('  sessions: "0 3 * * *"', "  sessions: off", {11: 0, 31: 0}),
    ],
)
def test_the_policy_says_what_is_quiet(
    start_server: Callable[..., RunningServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    old: str | None,
    new: str,
    after: dict[int, int],
) -> None:
    folder = Path(copytree(shipped_policies(), tmp_path / "policies"))
    if old is not None:
        text = (folder / "workers.yaml").read_text()
        assert text.count(old) == 1
        (folder / "workers.yaml").write_text(text.replace(old, new))
    tenant = Tenant(start_server(policies=folder))
    talk = Talk(tenant, tenant.caller("supervisor"), monkeypatch)
    talk.say(0, "old")
    for minutes, closed in after.items():
        talk.say(minutes, f"new-{minutes}")
        talk.work()
        assert len(talk.closed()) == closed
