"""Several memories by their ids, and the turns of a thread, page by page."""

from typing import Any
from uuid import uuid4

import pytest

from memplane.domain.policy.capabilities import Capability
from support.callers import THREAD, USER, Caller, Tenant, refused

BATCH = "/v1/memories:batchGet"
TURNS = f"/v1/threads/{THREAD}/turns"
BEN = "ben"


def batch(caller: Caller, *ids: str) -> list[str]:
    answer = caller.post(BATCH, {"ids": list(ids)})
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


def test_memories_come_in_the_order_asked(supervisor: Caller) -> None:
    first, second, third = (supervisor.remember(f"The user paints the {what}.") for what in ("hall", "fence", "gate"))
    assert batch(supervisor, third, first, second) == [third, first, second]
    assert batch(supervisor, second, second) == [second, second]
    one = supervisor.post(BATCH, {"ids": [first]}).json()["items"][0]
    assert one == supervisor.get(f"/v1/memories/{first}").json()


def test_what_is_absent_foreign_or_forbidden_is_left_out(supervisor: Caller, planner: Caller, tenant: Tenant) -> None:
    task, profile = supervisor.remember("The user books the hall."), supervisor.remember("The user paints.", "profile")
    gone, turn = supervisor.remember("The user sells the gate."), supervisor.say("When?")["turn_id"]
    theirs = supervisor.remember("The user mends the roof.", user_id=BEN)
    assert supervisor.delete(f"/v1/memories/{gone}").status_code == 200
    asked = (profile, str(uuid4()), gone, turn, theirs, task)
    assert batch(planner, *asked) == [theirs, task]
    assert batch(supervisor, *asked) == [profile, theirs, task]  # the control
    assert batch(tenant.caller("supervisor", users=(USER,)), *asked) == [profile, task]
    assert batch(tenant.caller("supervisor", trust="familiar"), *asked) == []


@pytest.mark.needs(Capability.SEVERAL_TENANTS)
def test_another_tenant_s_memory_is_left_out(supervisor: Caller, other_tenant: Tenant) -> None:
    stranger = other_tenant.caller("supervisor")
    theirs, mine = stranger.remember("The user books the hall."), supervisor.remember("The user books the hall.")
    assert batch(supervisor, theirs, mine) == [mine]
    assert batch(stranger, theirs, mine) == [theirs]


def test_a_batch_is_bounded(supervisor: Caller) -> None:
    refused(supervisor.post(BATCH, {"ids": [str(uuid4())] * 201}), 422, "invalid_request")
    refused(supervisor.post(BATCH, {"ids": []}), 422, "invalid_request")
    assert batch(supervisor, *[str(uuid4())] * 200) == []


def turns(caller: Caller, path: str = TURNS, **asked: Any) -> dict[str, Any]:  # noqa: ANN401 - query parameters
    answer = caller.get(path, **asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def seqs(page: dict[str, Any]) -> list[int]:
    return [item["seq"] for item in page["items"]]


class TestTurns:
    """What was said in a thread."""

    @pytest.fixture(autouse=True)
    def _said(self, supervisor: Caller) -> None:
        for number in range(1, 6):
            supervisor.say(f"Number {number} is called.")

    def test_pages_go_both_ways(self, supervisor: Caller) -> None:
        newest = turns(supervisor, limit=2)
        assert (seqs(newest), newest["next"]) == ([5, 4], "4")
        earlier = turns(supervisor, limit=3, before_seq=newest["next"])
        assert (seqs(earlier), earlier["next"]) == ([3, 2, 1], None)
        first = turns(supervisor, limit=2, after_seq=0)
        assert (seqs(first), first["next"]) == ([1, 2], "2")
        assert seqs(turns(supervisor, after_seq=first["next"])) == [3, 4, 5]
        assert newest["items"][0]["text"] == "Number 5 is called."
        refused(supervisor.get(TURNS, before_seq=3, after_seq=1), 422, "invalid_request")

    def test_only_who_reads_turns_may_read_them(self, supervisor: Caller, planner: Caller, tenant: Tenant) -> None:
        problem = refused(planner.get(TURNS), 403, "category_forbidden")
        assert problem["categories"] == ["activity"]
        refused(tenant.caller("supervisor", trust="familiar").get(TURNS), 403, "trust_too_low")
        refused(tenant.caller("supervisor", users=(BEN,)).get(TURNS, user_id=USER), 403, "user_forbidden")
        assert turns(tenant.caller("supervisor", users=(BEN,)))["items"] == []
        assert len(turns(supervisor)["items"]) == 5

    def test_another_thread_or_user_is_another_thread(self, supervisor: Caller) -> None:
        supervisor.say("Ben speaks here.", user_id=BEN)
        refused(supervisor.get(TURNS), 422, "user_required")
        assert seqs(turns(supervisor, user_id=BEN)) == [1]
        assert seqs(turns(supervisor, user_id=USER)) == [5, 4, 3, 2, 1]
        absent = turns(supervisor, "/v1/threads/absent/turns")
        assert absent == {"items": [], "next": None}

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    def test_another_tenant_s_thread_has_no_turns(self, supervisor: Caller, other_tenant: Tenant) -> None:
        stranger = other_tenant.caller("supervisor")
        assert turns(stranger)["items"] == []
        assert len(turns(supervisor)["items"]) == 5
