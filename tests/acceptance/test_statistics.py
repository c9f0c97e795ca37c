"""`/v1/stats`: what there is, of what the caller may see, and how many turns needed recall on demand."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.capabilities import Capability
from support.callers import THREAD, USER, Caller, Tenant, refused

BEN = "ben"
PATH = "/v1/stats"


def stats(caller: Caller, **asked: Any) -> dict[str, Any]:  # noqa: ANN401 - query parameters
    answer = caller.get(PATH, **asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def why(caller: Caller, memory: str) -> dict[str, Any]:
    answer: dict[str, Any] = caller.get(f"/v1/memories/{memory}/why").json()
    return answer


def recalled(caller: Caller, **asked: Any) -> tuple[int, int, float | None]:  # noqa: ANN401 - query parameters
    found = stats(caller, **asked)["on_demand"]
    return found["recalled"], found["turns"], found["share"]


def test_memories_are_counted_by_state_layer_category_and_type(supervisor: Caller, tenant: Tenant) -> None:
    kept = supervisor.remember("The user books the hall.")
    supervisor.remember("The user prefers a quiet room.", "goals")
    supervisor.remember("The user visited the harbour in May.", "event", type="episodic")
    gone = supervisor.remember("The user paints the fence.")
    past = supervisor.remember("The user waters the plants.")
    assert supervisor.delete(f"/v1/memories/{gone}").status_code == 200
    tenant.expire(past)
    assert supervisor.post(f"/v1/memories/{kept}/reinforce", {}).status_code == 200
    found = stats(supervisor)
    assert found["states"] == {"active": 3, "soft_deleted": 1, "expired": 1}
    assert found["layers"] == {"mid": 3}
    assert found["categories"] == {"tasks": 1, "goals": 1, "event": 1}
    assert found["types"] == {"semantic": 2, "episodic": 1}
    assert (found["hits"]["hits"], found["hits"]["memories"]) == (1, 1)
    again = {"user_id": USER, "category": "tasks", "content": "The user books the hall."}
    assert supervisor.post("/v1/memories", again).json()["outcome"] == "duplicate"
    assert (stats(supervisor)["hits"]["hits"], why(supervisor, kept)["hits"]) == (2, 2)
    assert kept in supervisor.found("hall", filters={"user_id": USER})  # the control: to be found is no hit
    assert stats(supervisor)["hits"]["hits"] == 2
    assert found["complete"] is True


def test_ages_are_counted_in_buckets(supervisor: Caller, tenant: Tenant) -> None:
    for days, words in enumerate(("hall", "room", "fence")):
        memory = supervisor.remember(f"The user paints the {words}.")
        moment = (datetime.now(UTC) - timedelta(days=20 * days)).isoformat(timespec="microseconds")
        tenant.rows("UPDATE memories SET recorded_at = %(then)s WHERE id = %(id)s", then=moment, id=UUID(memory))
    age = stats(supervisor)["age"]
    assert age["buckets"] == {"1d": 1, "7d": 0, "30d": 1, "90d": 1, "365d": 0, "older": 0}
    assert datetime.now(UTC) - datetime.fromisoformat(age["oldest"]) > timedelta(days=39)


def test_an_agent_counts_what_it_may_read_and_no_more(supervisor: Caller, planner: Caller, tenant: Tenant) -> None:
    planner.remember("The user books the hall.")
    before = stats(planner)
    supervisor.remember("The user is a painter.", "profile")
    outside = stats(planner)
    assert outside == before
    assert outside["categories"] == {"tasks": 1}
    assert outside["on_demand"] is None  # it reads no turns
    assert stats(supervisor)["categories"] == {"tasks": 1, "profile": 1}  # the control
    trusted_less = tenant.caller("supervisor", trust="familiar")
    assert stats(trusted_less)["states"] == {}
    assert stats(trusted_less)["on_demand"] is None


def test_a_user_is_counted_alone_and_a_bound_key_counts_its_users(supervisor: Caller, tenant: Tenant) -> None:
    supervisor.remember("The user books the hall.")
    supervisor.remember("The user paints the fence.", user_id=BEN)
    assert stats(supervisor, user_id=BEN)["states"] == {"active": 1}
    assert stats(supervisor)["states"] == {"active": 2}
    bound = tenant.caller("supervisor", users=(BEN,))
    assert stats(bound)["states"] == {"active": 1}
    refused(bound.get(PATH, user_id=USER), 403, "user_forbidden")


def test_an_administrator_counts_the_tenant(supervisor: Caller, executor: Caller, tenant: Tenant) -> None:
    supervisor.remember("The user is a painter.", "profile")
    executor.remember("The hall closes at nine.", "constraints")
    operator = tenant.caller(None, scopes=(KeyScope.ADMIN,))
    assert stats(operator)["categories"] == {"profile": 1, "constraints": 1}
    agent = tenant.caller("executor", scopes=tuple(KeyScope))
    assert stats(agent)["categories"] == {"constraints": 1}  # a key of an agent stays within its allowlist
    refused(tenant.caller(None, scopes=(KeyScope.WRITE,)).get(PATH), 403, "scope_forbidden")


@pytest.mark.needs(Capability.SEVERAL_TENANTS)
def test_another_tenant_is_not_counted(supervisor: Caller, other_tenant: Tenant, tenant: Tenant) -> None:
    other_tenant.caller("supervisor").remember("The user books the hall.")
    other_tenant.caller("supervisor").say("The hall is booked.")
    operator = tenant.caller(None, scopes=(KeyScope.ADMIN,))
    assert (stats(operator)["states"], recalled(operator)[1]) == ({}, 0)
    supervisor.remember("The user books the hall.")
    assert stats(operator)["states"] == {"active": 1}


class TestOnDemand:
    """The share of turns of users after which, before the user's next turn, somebody asked on demand."""

    @staticmethod
    def ask(caller: Caller, thread: str | None = THREAD, **more: Any) -> None:  # noqa: ANN401 - of the request
        caller.ask("hall", purpose="on_demand", top_k=3, **({"thread_id": thread} if thread else {}), **more)

    def test_the_share_is_that_of_turns_that_needed_it(self, supervisor: Caller) -> None:
        assert recalled(supervisor) == (0, 0, None)
        supervisor.say("When is the hall free?")
        self.ask(supervisor)
        self.ask(supervisor)  # the same turn once more
        supervisor.say("On Monday.", role="assistant")
        supervisor.say("And the small room?")
        supervisor.ask("room", thread_id=THREAD)  # the control: an ordinary query
        supervisor.say("Is the roof mended?")
        supervisor.say("It is.", role="assistant")
        self.ask(supervisor)  # the assistant's words are part of the user's turn
        supervisor.say("Good.")
        assert recalled(supervisor) == (2, 4, 0.5)
        found = stats(supervisor)["on_demand"]
        assert (found["queries"], found["unplaced"]) == (3, 0)

    def test_each_thread_and_user_is_counted_for_itself(self, supervisor: Caller) -> None:
        supervisor.say("When is the hall free?")
        supervisor.say("When is the hall free?", thread_id="other")
        supervisor.say("When is the hall free?", user_id=BEN)
        self.ask(supervisor, filters={"user_id": BEN})
        assert recalled(supervisor) == (1, 3, pytest.approx(1 / 3))
        assert recalled(supervisor, user_id=BEN) == (1, 1, 1.0)
        assert recalled(supervisor, user_id=USER) == (0, 2, 0.0)
        self.ask(supervisor, "other")  # one user alone has it
        assert recalled(supervisor, user_id=USER) == (1, 2, 0.5)

    def test_what_belongs_to_no_turn_is_told_apart(self, supervisor: Caller) -> None:
        self.ask(supervisor, None)
        self.ask(supervisor, "nobody-spoke", filters={"user_id": USER})
        supervisor.say("When is the hall free?")
        found = stats(supervisor)["on_demand"]
        assert (found["queries"], found["unplaced"], found["recalled"], found["turns"]) == (2, 2, 0, 1)

    def test_turns_before_the_window_do_not_count(self, supervisor: Caller, tenant: Tenant) -> None:
        supervisor.say("When is the hall free?")
        old = (datetime.now(UTC) - timedelta(days=10)).isoformat(timespec="microseconds")
        tenant.rows("UPDATE turns SET recorded_at = %(old)s WHERE tenant_id = %(tenant)s", old=old)
        self.ask(supervisor)
        assert recalled(supervisor, days=7)[:2] == (0, 0)
        assert recalled(supervisor, days=30) == (1, 1, 1.0)

    def test_an_unknown_purpose_is_refused(self, supervisor: Caller) -> None:
        refused(supervisor.query("hall", purpose="other"), 422, "invalid_request")
        refused(supervisor.get(PATH, days=0), 422, "invalid_request")
