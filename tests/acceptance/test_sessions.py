"""Closing a conversation: its summary is a memory, made anew when more was said, and nobody else's to see."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from memplane.application.jobs import session_jobs
from memplane.application.jobs.lifecycle_jobs import JobBatch
from memplane.application.memories.gateway import Write
from memplane.application.turns import session_close
from memplane.application.turns.session_close import SessionCloseResult, SessionReading
from memplane.domain.errors import PersonalDataRefused, StateConflict
from memplane.domain.identity.principal import KeyScope
from support.callers import THREAD, USER, Caller, Json, Tenant, refused
from support.nights import NOON, Night, Stopped, after_batches

TALK = (
    ("user", "Can you plan the move to Lisbon?"),
    ("assistant", "Of course, I will."),
    ("user", "We decided to sell the piano. I still need to cancel the lease."),
    ("assistant", "The van is booked for Monday."),
)
SUMMARY = {
    "request": "Can you plan the move to Lisbon?",
    "outcome": "The van is booked for Monday.",
    "decisions": ["We decided to sell the piano."],
    "open_items": ["I still need to cancel the lease."],
}


def talk(caller: Caller, *turns: tuple[str, str], **fields: str) -> list[Json]:
    return [caller.say(text, role=role, **fields) for role, text in (turns or TALK)]


def close(caller: Caller, thread: str = THREAD, **fields: object) -> Json:
    response = caller.post(f"/v1/sessions/{thread}/close", fields)
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_a_conversation_is_summed_up_as_a_memory(supervisor: Caller) -> None:
    said = talk(supervisor)
    closed = close(supervisor)
    assert closed["summary"] == SUMMARY
    assert (closed["outcome"], closed["user_id"], closed["thread_id"]) == ("closed", USER, THREAD)
    assert closed["rev"] == said[-1]["rev"] + 1
    record = supervisor.get(f"/v1/memories/{closed['memory_id']}").json()
    assert record["type"] == "episodic"
    assert (record["category"], record["visibility"], record["source"]) == ("activity", "private", "consolidation")
    assert record["content"] == (
        "The user asked: Can you plan the move to Lisbon? The assistant said last: The van is booked for Monday."
    )
    assert record["facts"] == [
        "Decided: We decided to sell the piano.",
        "Open: I still need to cancel the lease.",
    ]
    assert record["source_ids"] == [said[place]["turn_id"] for place in (0, 2, 3)]
    found = supervisor.ask("What was decided about the piano?", filters={"type": "episodic"}, return_="full")["items"]
    assert closed["memory_id"] in [item["id"] for item in found]
    delta = supervisor.get(f"/v1/threads/{THREAD}/delta", since=said[-1]["rev"]).json()
    assert "+created" in delta["header"]


def test_closed_again_nothing_changes_until_more_is_said(tenant: Tenant, supervisor: Caller) -> None:
    talk(supervisor)
    first = close(supervisor)
    again = close(supervisor)
    assert again == first | {"outcome": "unchanged"}
    assert tenant.count("memories") == 1
    supervisor.say("The piano is sold.", role="assistant")
    later = close(supervisor)
    assert later["outcome"] == "closed"
    assert later["summary"]["outcome"] == "The piano is sold."
    assert later["first_seen"] == first["first_seen"]
    assert later["memory_id"] == first["memory_id"]
    record = supervisor.get(f"/v1/memories/{later['memory_id']}").json()
    assert record["content"].endswith("The assistant said last: The piano is sold.")
    history = supervisor.get(f"/v1/memories/{later['memory_id']}/history").json()["items"]
    assert [entry["event"] for entry in history] == ["UPDATE", "ADD"]
    assert history[0]["old_ref"].endswith("The van is booked for Monday.")


def test_a_summary_that_a_person_deleted_or_corrected_is_made_anew(supervisor: Caller) -> None:
    talk(supervisor)
    first = close(supervisor)
    memory = f"/v1/memories/{first['memory_id']}"
    assert supervisor.send("DELETE", memory).status_code == 200
    supervisor.say("The piano is sold.", role="assistant")
    second = close(supervisor)
    assert second["memory_id"] != first["memory_id"]
    right = supervisor.post(f"/v1/memories/{second['memory_id']}/correct", {"content": "The piano was given away."})
    assert right.status_code == 200, right.text
    supervisor.say("The keys are handed over.", role="assistant")
    third = close(supervisor)
    assert third["memory_id"] not in {first["memory_id"], second["memory_id"]}
    assert supervisor.get(f"/v1/memories/{right.json()['id']}").json()["content"] == "The piano was given away."


def test_two_conversations_that_went_alike_have_two_summaries(supervisor: Caller) -> None:
    talk(supervisor)
    talk(supervisor, thread_id="other")
    one, two = close(supervisor), close(supervisor, "other")
    assert one["summary"] == two["summary"]
    assert one["memory_id"] != two["memory_id"]


def test_what_a_person_rejected_is_not_summed_up_again(supervisor: Caller) -> None:
    talk(supervisor)
    first = close(supervisor)
    assert supervisor.post(f"/v1/memories/{first['memory_id']}/reject", {}).status_code == 200
    assert close(supervisor)["outcome"] == "unchanged"
    talk(supervisor, ("assistant", "The van is booked for Monday."))
    again = close(supervisor)
    assert (again["outcome"], again["memory_id"]) == ("closed", None)
    talk(supervisor, ("user", "Which hall is free?"), thread_id="other")
    assert close(supervisor, "other")["memory_id"] is not None  # what nobody rejected is


def test_a_conversation_of_nothing_but_greetings_has_no_summary(supervisor: Caller) -> None:
    talk(supervisor, ("user", "Hello!"), ("assistant", "…"))
    closed = close(supervisor)
    assert (closed["outcome"], closed["summary"], closed["memory_id"]) == ("closed", None, None)


def test_many_close_it_at_once_and_there_is_one_summary(tenant: Tenant, supervisor: Caller) -> None:
    talk(supervisor)
    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(lambda _: close(supervisor), range(6)))
    assert sorted(each["outcome"] for each in told) == ["closed", *["unchanged"] * 5]
    assert len({each["memory_id"] for each in told}) == 1
    assert tenant.count("sessions") == 1


def test_the_same_request_has_one_effect(supervisor: Caller) -> None:
    talk(supervisor)
    path, once = f"/v1/sessions/{THREAD}/close", {"Idempotency-Key": "close-1"}
    first = supervisor.send("POST", path, json={}, headers=once)
    supervisor.say("The piano is sold.", role="assistant")
    again = supervisor.send("POST", path, json={}, headers=once)
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    assert close(supervisor)["outcome"] == "closed"  # another request sees what was said since


def test_who_may_not_hear_the_talk_may_not_close_it(supervisor: Caller, planner: Caller, tenant: Tenant) -> None:
    talk(supervisor)
    path = f"/v1/sessions/{THREAD}/close"
    refused(planner.post(path, {}), 403, "category_forbidden")
    writer = tenant.caller("supervisor", scopes=(KeyScope.WRITE,))
    refused(writer.post(path, {}), 403, "scope_forbidden")
    reader = tenant.caller("supervisor", scopes=(KeyScope.READ,))
    refused(reader.post(path, {}), 403, "scope_forbidden")
    low = tenant.caller("supervisor", trust="inner")
    refused(low.post(path, {}), 403, "visibility_forbidden")
    bound = tenant.caller("supervisor", users=("bo",))
    refused(bound.post(path, {"user_id": USER}), 403, "user_forbidden")
    refused(bound.post(path, {}), 404, "not_found")
    refused(supervisor.post("/v1/sessions/nowhere/close", {}), 404, "not_found")
    assert tenant.count("sessions") == 0
    assert close(supervisor)["outcome"] == "closed"


@pytest.mark.needs("several_tenants")
def test_another_tenants_conversation_is_not_there(supervisor: Caller, other_tenant: Tenant) -> None:
    talk(supervisor)
    stranger = other_tenant.caller("supervisor")
    refused(stranger.post(f"/v1/sessions/{THREAD}/close", {}), 404, "not_found")
    refused(stranger.post(f"/v1/sessions/{THREAD}/close", {"user_id": USER}), 404, "not_found")
    assert close(supervisor)["outcome"] == "closed"


def test_of_two_users_with_such_a_thread_one_is_named(supervisor: Caller) -> None:
    talk(supervisor)
    talk(supervisor, ("user", "Which hall?"), user_id="ben")
    refused(supervisor.post(f"/v1/sessions/{THREAD}/close", {}), 422, "user_required")
    assert close(supervisor, user_id="ben")["summary"]["request"] == "Which hall?"
    assert close(supervisor, user_id=USER)["summary"] == SUMMARY


def test_a_long_conversation_was_first_seen_at_its_beginning(
    supervisor: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = supervisor.say("Which hall is free?")
    talk(supervisor)
    monkeypatch.setattr(session_close, "MOST", 3)  # the last turns alone are read
    closed = close(supervisor)
    assert closed["summary"]["request"] == "We decided to sell the piano."
    recorded = supervisor.get(f"/v1/memories/{closed['memory_id']}/timeline", before=10).json()["items"]
    (begun,) = [item["recorded_at"] for item in recorded if item["id"] == first["turn_id"]]
    assert closed["first_seen"] == begun


def test_a_thread_may_have_any_name(supervisor: Caller) -> None:
    for name in ("a/b", "ünï", "t" * 255):
        talk(supervisor, thread_id=name)
        closed = close(supervisor, name)
        assert closed["thread_id"] == name
        title = supervisor.get(f"/v1/memories/{closed['memory_id']}").json()["title"]
        assert title.startswith("Conversation ")
        assert len(title) <= 200


class TestNight:
    """What rests is closed by itself."""

    def test_a_conversation_that_rests_is_summed_up_once(self, tenant: Tenant, supervisor: Caller) -> None:
        talk(supervisor)
        night = Night(tenant)
        assert night.counts("sessions") == {"closed": 1, "summaries": 1}
        (summary,) = supervisor.get("/v1/memories", type="episodic").json()["items"]
        assert summary["content"].startswith("The user asked: Can you plan the move to Lisbon?")
        history = supervisor.get(f"/v1/memories/{summary['id']}/history").json()["items"]
        assert [(entry["event"], entry["actor"]) for entry in history] == [("ADD", "job:sessions")]
        night.now += timedelta(days=1)
        assert night.counts("sessions") == {"closed": 0, "summaries": 0}
        assert close(supervisor)["outcome"] == "unchanged"

    def test_one_that_goes_on_is_left_and_a_later_word_is_told(self, tenant: Tenant, supervisor: Caller) -> None:
        talk(supervisor)
        early = Night(tenant, datetime.now(UTC) + timedelta(hours=11))
        assert early.counts("sessions") == {"closed": 0, "summaries": 0}
        assert early.counts("sessions", as_of=early.now + timedelta(hours=2)) == {"closed": 1, "summaries": 1}
        supervisor.say("The piano is sold.", role="assistant")
        later = Night(tenant, datetime.now(UTC) + timedelta(days=2))
        assert later.counts("sessions") == {"closed": 1, "summaries": 1}
        (summary,) = supervisor.get("/v1/memories", type="episodic").json()["items"]
        assert summary["content"].endswith("The piano is sold.")

    def test_a_dry_run_tells_and_does_nothing(self, tenant: Tenant, supervisor: Caller) -> None:
        talk(supervisor)
        assert Night(tenant).counts("sessions", dry_run=True) == {"closed": 1, "summaries": 1}
        assert tenant.count("sessions") == 0
        assert tenant.count("memories") == 0
        assert Night(tenant).counts("sessions")["closed"] == 1

    def test_many_come_in_batches_and_each_once(self, tenant: Tenant, supervisor: Caller) -> None:
        many = session_jobs.MOST * 2 + 3
        turns = [
            {"user_id": f"user-{n % 7}", "thread_id": f"thread-{n}", "role": "user", "text": f"Is hall {n} free?"}
            for n in range(many)
        ]
        assert supervisor.post("/v1/turns:batch", {"turns": turns}).status_code == 201
        assert Night(tenant).counts("sessions") == {"closed": many, "summaries": many}
        assert tenant.count("sessions") == many
        assert tenant.count("memories") == many

    @pytest.mark.needs("several_machines")  # a file has one writer: who closes waits for the job
    def test_closed_meanwhile_it_is_not_closed_twice(
        self, tenant: Tenant, supervisor: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Somebody closes it between the look and the transaction."""
        talk(supervisor)
        kept = session_jobs._close

        async def later(write: Write, found: object, agent: str) -> JobBatch:
            await asyncio.to_thread(close, supervisor)
            return await kept(write, found, agent)  # type: ignore[arg-type]  # handed on as it came

        night = Night(tenant)
        monkeypatch.setattr(session_jobs, "_close", later)
        assert night.counts("sessions") == {"closed": 1, "summaries": 0}
        assert tenant.count("memories") == 1

    @pytest.mark.parametrize("where", ["read", "closed"])
    def test_one_that_cannot_be_summed_up_keeps_no_other_from_it(
        self, tenant: Tenant, supervisor: Caller, monkeypatch: pytest.MonkeyPatch, where: str
    ) -> None:
        for thread in ("a", "b", "c"):
            talk(supervisor, ("user", f"Is hall {thread} free?"), thread_id=thread)
        close(supervisor, "b")
        kept = supervisor.get("/v1/memories", type="episodic").json()["items"][0]["id"]
        supervisor.say("And the other one?", thread_id="b")
        wired = tenant.server.wired.close_session
        read, done = wired.read_session, session_jobs.note_close

        async def refusing(*given: Any) -> Any:  # noqa: ANN401 - as it came
            if given[3][0] == "b":
                raise PersonalDataRefused("title: holds email", field="title")
            return await read(*given)

        async def taken(write: Write, found: SessionReading, thread: str, agent: str) -> SessionCloseResult:
            if thread == "b":
                await done(write, found, thread, agent)
                raise StateConflict("another memory says exactly this already")
            return await done(write, found, thread, agent)

        with monkeypatch.context() as patched:
            patched.setattr(
                *((wired, "read_session", refusing) if where == "read" else (session_jobs, "note_close", taken))
            )
            assert Night(tenant).counts("sessions") == {"closed": 3, "summaries": 2}
        (row,) = tenant.rows("SELECT * FROM sessions WHERE tenant_id = %(tenant)s AND thread_id = 'b'")
        assert (row["seq"], UUID(str(row["summary_id"]))) == (2, UUID(kept))  # what it was summed up as before stays
        assert supervisor.get(f"/v1/memories/{kept}").json()["content"] == "The user asked: Is hall b free?"
        assert Night(tenant).counts("sessions", as_of=NOON + timedelta(days=1))["closed"] == 0

    def test_an_erased_user_s_conversations_are_gone(self, tenant: Tenant, supervisor: Caller) -> None:
        talk(supervisor)
        talk(supervisor, ("user", "Which hall?"), user_id="ben")
        assert Night(tenant).counts("sessions")["closed"] == 2
        admin = tenant.caller("supervisor", act_for=["*"], scopes=tuple(KeyScope))
        done = admin.post(f"/v1/users/{USER}/erase", {"confirm": USER})
        assert done.status_code == 200, done.text
        assert [row["user_id"] for row in tenant.rows("SELECT user_id FROM sessions WHERE tenant_id = %(tenant)s")] == [
            "ben"
        ]

    def test_killed_between_two_batches_it_goes_on(self, tenant: Tenant, supervisor: Caller) -> None:
        many = session_jobs.MOST + 5
        turns = [
            {"user_id": USER, "thread_id": f"thread-{n}", "role": "user", "text": f"Is hall {n} free?"}
            for n in range(many)
        ]
        assert supervisor.post("/v1/turns:batch", {"turns": turns}).status_code == 201
        night = Night(tenant)
        with pytest.raises(Stopped):
            night.run("sessions", progress=after_batches(1))
        assert tenant.count("sessions") == session_jobs.MOST
        assert night.counts("sessions") == {"closed": many, "summaries": many}
        assert tenant.count("memories") == many
