"""What the rules suspect and cannot prove: both memories stay, and wait for a verdict."""

from collections import Counter
from typing import Any

import httpx2
import pytest

from memplane.domain.identity.principal import KeyScope
from memplane.domain.memory.memory import new_id
from memplane.domain.policy.capabilities import Capability
from support.access_matrix import Access, Categories, Tenants, routes
from support.callers import USER, Caller, Json, Tenant, refused
from support.nights import Night
from support.telling import events, say, texts, write

MORNING, EVENING = "The user takes 5 mg of ramipril every morning.", "The user takes 10 mg of ramipril in the evening."
UNRELATED = "The user owns a red bicycle."


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor, who reads and writes events and preferences."""
    return tenant.caller("supervisor")


def listed(caller: Caller, **params: Any) -> list[Json]:  # noqa: ANN401 - query parameters
    response = caller.get("/v1/conflicts", **params)
    assert response.status_code == 200, response.text
    return list(response.json()["items"])


def suspected(caller: Caller, category: str = "event", user: str = USER) -> tuple[str, str, str]:
    """Two memories that may contradict each other: the id of the conflict, of the older and of the newer one."""
    older = write(caller, MORNING, category, user_id=user)["id"]
    newer = write(caller, EVENING, category, user_id=user)
    assert (newer["outcome"], newer["possible_conflicts"]) == ("created", [older])
    (conflict,) = [each for each in listed(caller) if each["older"]["id"] == older]
    return conflict["id"], older, newer["id"]


def decide(caller: Caller, conflict: str, verdict: str) -> Json:
    response = caller.post(f"/v1/conflicts/{conflict}/decide", {"verdict": verdict})
    assert response.status_code == 200, response.text
    return dict(response.json())


def test_both_stay_and_both_name_the_other(caller: Caller) -> None:
    conflict, older, newer = suspected(caller)
    other = write(caller, UNRELATED)
    assert texts(caller) == {MORNING, EVENING, UNRELATED}
    (item,) = listed(caller, user_id=USER)
    assert (item["id"], item["user_id"]) == (conflict, USER)
    assert (item["older"]["content"], item["newer"]["content"]) == (MORNING, EVENING)
    for one, against in ((older, [newer]), (newer, [older]), (other["id"], [])):
        assert caller.get(f"/v1/memories/{one}").json()["possible_conflicts"] == against
        assert caller.get(f"/v1/memories/{one}/why").json()["memory"]["possible_conflicts"] == against
    told = {item["id"]: item["memory"] for item in caller.ask("ramipril", return_="full")["items"]}
    assert told[older]["possible_conflicts"] == [newer]
    pages = {item["id"]: item["possible_conflicts"] for item in caller.get("/v1/memories").json()["items"]}
    assert pages == {older: [newer], newer: [older], other["id"]: []}


def test_what_is_proven_is_no_conflict(caller: Caller) -> None:
    """The control: another value of the same slot ends the old one."""
    old = write(caller, "The user's gym membership costs 40 euros a month.")
    new = write(caller, "The user's gym membership now costs 45 euros a month.")
    assert (new["outcome"], new["overruled"], new["possible_conflicts"]) == ("superseded", [old["id"]], [])
    assert listed(caller) == []


def test_both_are_kept_by_verdict_and_not_listed_again(tenant: Tenant, caller: Caller) -> None:
    conflict, older, newer = suspected(caller)
    done = decide(caller, conflict, "keep_both")
    assert (done["outcome"], set(done["kept"]), done["superseded"]) == ("kept_both", {older, newer}, None)
    assert texts(caller) == {MORNING, EVENING}
    assert listed(caller) == []
    assert caller.get(f"/v1/memories/{older}").json()["possible_conflicts"] == []
    assert [events(caller, each)[0] for each in (older, newer)] == ["LINK", "LINK"]
    caller.patch(f"/v1/memories/{newer}", {"importance": 4})
    Night(tenant).run("consolidation")
    assert listed(caller) == []


@pytest.mark.parametrize(("verdict", "left"), [("newer", EVENING), ("older", MORNING)])
def test_one_holds_by_verdict_and_the_other_can_be_restored(caller: Caller, verdict: str, left: str) -> None:
    conflict, older, newer = suspected(caller)
    kept, gone = (newer, older) if verdict == "newer" else (older, newer)
    done = decide(caller, conflict, verdict)
    assert (done["outcome"], done["kept"], done["superseded"]) == ("superseded", [kept], gone)
    assert texts(caller) == {left}
    assert events(caller, gone)[0] == "SUPERSEDE"
    assert listed(caller) == []
    assert say(caller, gone, "restore")["outcome"] == "restored"


def test_the_same_request_again_is_answered_the_same(caller: Caller) -> None:
    conflict, *_ = suspected(caller)
    path, headers = f"/v1/conflicts/{conflict}/decide", {"Idempotency-Key": "once"}
    first = caller.send("POST", path, json={"verdict": "newer"}, headers=headers)
    again = caller.send("POST", path, json={"verdict": "newer"}, headers=headers)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()


def test_wrong_input_has_a_name(tenant: Tenant, caller: Caller) -> None:
    conflict, *_ = suspected(caller)
    refused(caller.post(f"/v1/conflicts/{conflict}/decide", {"verdict": "both"}), 422, "invalid_request")
    refused(caller.post(f"/v1/conflicts/{new_id()}/decide", {"verdict": "newer"}), 404, "not_found")
    refused(caller.get("/v1/conflicts", limit=0), 422, "invalid_request")
    inner = tenant.caller("supervisor", trust="inner")
    refused(inner.post(f"/v1/conflicts/{conflict}/decide", {"verdict": "newer"}), 403, "trust_too_low")
    reader = tenant.caller("supervisor", scopes=[KeyScope.READ])
    refused(reader.post(f"/v1/conflicts/{conflict}/decide", {"verdict": "newer"}), 403, "scope_forbidden")
    assert len(listed(reader)) == 1
    assert texts(caller) == {MORNING, EVENING}


def test_a_memory_has_three_at_most(caller: Caller) -> None:
    played = [write(caller, f"The user plays the {each}.")["id"] for each in ("cello", "violin", "flute", "trumpet")]
    first = write(caller, "The user now plays the piano.")
    assert len(first["possible_conflicts"]) == 3
    assert set(first["possible_conflicts"]) < set(played)
    for instrument in ("harp", "guitar", "drums"):
        write(caller, f"The user now plays the {instrument}.")
    counts = Counter(item[side]["id"] for item in listed(caller) for side in ("older", "newer"))
    assert max(counts.values()) == 3


def test_pages_follow_one_another(caller: Caller) -> None:
    for user in ("ana", "ben", "cleo"):
        suspected(caller, user=user)
    first = caller.get("/v1/conflicts", limit=2).json()
    rest = caller.get("/v1/conflicts", limit=2, cursor=first["next"]).json()
    assert [len(first["items"]), len(rest["items"]), rest["next"]] == [2, 1, None]
    assert {item["user_id"] for item in (*first["items"], *rest["items"])} == {"ana", "ben", "cleo"}
    assert [item["user_id"] for item in listed(caller, user_id="ben")] == ["ben"]


def test_what_was_changed_is_looked_at_at_once(caller: Caller) -> None:
    older = write(caller, MORNING)["id"]
    newer = write(caller, UNRELATED)["id"]
    done = caller.patch(f"/v1/memories/{newer}", {"content": EVENING})
    assert (done.status_code, done.json()["possible_conflicts"]) == (200, [older])
    (item,) = listed(caller)
    assert {item["older"]["id"], item["newer"]["id"]} == {older, newer}


def test_what_was_corrected_is_looked_at_in_the_night(tenant: Tenant, caller: Caller) -> None:
    older = write(caller, MORNING)["id"]
    wrong = write(caller, UNRELATED)["id"]
    newer = say(caller, wrong, "correct", content=EVENING)["id"]
    assert listed(caller) == []
    assert Night(tenant).counts("consolidation")["conflicts"] == 1
    (item,) = listed(caller)
    assert {item["older"]["id"], item["newer"]["id"]} == {older, newer}


class TestAccess:
    """Who sees and decides."""

    @pytest.mark.parametrize("access", routes(categories=Categories.LEFT_OUT, conflicts=True), ids=str)
    def test_what_an_agent_may_not_read_is_left_out(self, tenant: Tenant, caller: Caller, access: Access) -> None:
        planner = tenant.caller("planner")
        theirs, *_ = suspected(caller, "preferences")
        mine, *_ = suspected(tenant.caller("planner"), "tasks", "ben")
        answer = planner.send(access.method, access.path)
        assert [item["id"] for item in answer.json()["items"]] == [mine]
        assert theirs not in answer.text

    @pytest.mark.parametrize("access", routes(categories=Categories.ABSENT, conflicts=True), ids=str)
    def test_a_foreign_one_is_absent(self, tenant: Tenant, caller: Caller, access: Access) -> None:
        planner = tenant.caller("planner")
        theirs, *_ = suspected(caller, "preferences")
        mine, *_ = suspected(planner, "tasks", "ben")
        refused(planner.send(access.method, access.url(theirs), **access.request("")), 404, "not_found")
        assert len(listed(caller, user_id=USER)) == 1
        assert planner.send(access.method, access.url(mine), **access.request("")).status_code == 200

    def test_a_memory_does_not_name_what_its_reader_may_not_see(self, tenant: Tenant, caller: Caller) -> None:
        older = write(caller, MORNING)["id"]
        newer = write(caller, EVENING, visibility="shared")["id"]
        inner = tenant.caller("supervisor", trust="inner")
        assert inner.get(f"/v1/memories/{newer}").json()["possible_conflicts"] == []
        assert listed(inner) == []
        assert caller.get(f"/v1/memories/{newer}").json()["possible_conflicts"] == [older]

    def test_a_key_of_one_user_sees_its_own(self, tenant: Tenant, caller: Caller) -> None:
        for user in ("ana", "ben"):
            suspected(caller, user=user)
        bound = tenant.caller("supervisor", users=["ben"])
        assert [item["user_id"] for item in listed(bound)] == ["ben"]
        refused(bound.get("/v1/conflicts", user_id="ana"), 403, "user_forbidden")

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    @pytest.mark.parametrize("access", routes(tenants=Tenants.ABSENT, conflicts=True), ids=str)
    def test_another_tenants_is_absent(self, caller: Caller, other_tenant: Tenant, access: Access) -> None:
        stranger = other_tenant.caller("supervisor")
        theirs, *_ = suspected(stranger)
        mine, *_ = suspected(caller)

        def tried(conflict: str) -> httpx2.Response:
            return caller.send(access.method, access.url(conflict), **access.request(""))

        foreign, absent = tried(theirs), tried(str(new_id()))
        assert (foreign.status_code, foreign.json()["detail"]) == (absent.status_code, absent.json()["detail"])
        refused(foreign, 404, "not_found")
        assert [item["id"] for item in listed(caller)] == [mine]
        assert [item["id"] for item in listed(stranger)] == [theirs]
        assert tried(mine).status_code == 200
