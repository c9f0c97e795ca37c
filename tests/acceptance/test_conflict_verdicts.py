"""What a verdict on a possible conflict leaves behind, and what later changes make of it."""

import pytest

from memplane.domain.memory.memory import new_id
from support.callers import Caller, Json, Tenant, refused
from support.nights import Night
from support.telling import say, texts, write

MORNING, EVENING = "The user takes 5 mg of ramipril every morning.", "The user takes 10 mg of ramipril in the evening."
UNRELATED = "The user owns a red bicycle."


def listed(caller: Caller) -> list[Json]:
    response = caller.get("/v1/conflicts")
    assert response.status_code == 200, response.text
    return list(response.json()["items"])


def pairs(caller: Caller) -> set[frozenset[str]]:
    return {frozenset((each["older"]["id"], each["newer"]["id"])) for each in listed(caller)}


def suspected(caller: Caller) -> tuple[str, str, str]:
    """Two memories that may contradict each other: the id of the conflict, of the older and of the newer one."""
    older = write(caller, MORNING)["id"]
    newer = write(caller, EVENING)["id"]
    (conflict,) = listed(caller)
    return conflict["id"], older, newer


def decide(caller: Caller, conflict: str, verdict: str) -> Json:
    response = caller.post(f"/v1/conflicts/{conflict}/decide", {"verdict": verdict})
    assert response.status_code == 200, response.text
    return dict(response.json())


def related(caller: Caller, memory: str) -> dict[str, float]:
    items = caller.get(f"/v1/memories/{memory}/related").json()["items"]
    return {item["memory"]["id"]: item["strength"] for item in items}


def suspect(tenant: Tenant, one: str, other: str) -> None:
    """List two memories as a possible conflict, whatever they say."""
    tenant.rows(
        "INSERT INTO relations (tenant_id, id, from_id, to_id, relation_type, strength, created_at, updated_at)"
        " VALUES (%(tenant)s, %(id)s, %(one)s, %(other)s, 'possible_conflict', 0.5, now(), now())",
        id=new_id(), one=one, other=other,
    )  # fmt: skip


class TestCap:
    """At most three open conflicts a memory; what was decided takes no room."""

    def test_what_was_decided_leaves_room(self, caller: Caller) -> None:
        last = {}
        for user in ("ben", "cleo"):
            cello = write(caller, "The user plays the cello.", user_id=user)["id"]
            for instrument in ("piano", "harp", "guitar"):
                done = write(caller, f"The user now plays the {instrument}.", user_id=user)
                assert done["possible_conflicts"] == [cello]
                if user == "ben":
                    (conflict,) = listed(caller)
                    decide(caller, conflict["id"], "keep_both")
            drums = write(caller, "The user now plays the drums.", user_id=user)
            last[user] = (drums["possible_conflicts"], cello)
        assert last["ben"][0] == [last["ben"][1]]
        assert last["cleo"][0] == []  # the control: while they are open, they take the room

    def test_a_memory_with_room_is_found_behind_those_without(self, tenant: Tenant, caller: Caller) -> None:
        """The three most similar ones have three each already, the fourth has none."""
        instruments, against = ("cello", "violin", "flute", "viola"), {}
        for user in ("ben", "cleo"):
            played = [write(caller, f"The user plays the {each}.", user_id=user)["id"] for each in instruments]
            if user == "cleo":
                full = [played[each] for each in against["ben"]]
                others = [write(caller, each, user_id=user)["id"] for each in ("Ana owns a car.", UNRELATED, MORNING)]
                for one in full:
                    for other in others:
                        suspect(tenant, one, other)
            found = write(caller, "The user now plays the piano.", user_id=user)["possible_conflicts"]
            against[user] = [played.index(each) for each in found]
        assert len(against["ben"]) == 3  # the control: with room everywhere, the most similar are taken
        assert set(against["cleo"]) == {0, 1, 2, 3} - set(against["ben"])


class TestRewrite:
    """When the words of a side change, what was suspected or decided of the older words holds no longer."""

    def test_what_no_longer_conflicts_is_not_listed(self, caller: Caller) -> None:
        conflict, older, newer = suspected(caller)
        assert caller.patch(f"/v1/memories/{newer}", {"importance": 4}).status_code == 200
        assert [each["id"] for each in listed(caller)] == [conflict]  # the control
        assert caller.patch(f"/v1/memories/{newer}", {"content": UNRELATED}).status_code == 200
        assert listed(caller) == []
        refused(caller.post(f"/v1/conflicts/{conflict}/decide", {"verdict": "newer"}), 404, "not_found")
        assert caller.get(f"/v1/memories/{older}").json()["possible_conflicts"] == []
        assert texts(caller) == {MORNING, UNRELATED}

    def test_what_still_conflicts_keeps_its_id(self, caller: Caller) -> None:
        conflict, _, newer = suspected(caller)
        other = "The user takes 20 mg of ramipril in the evening."
        done = caller.patch(f"/v1/memories/{newer}", {"content": other}).json()
        assert done["overruled"] == []
        assert [(each["id"], each["newer"]["content"]) for each in listed(caller)] == [(conflict, other)]

    @pytest.mark.parametrize("side", [0, 1])
    def test_a_verdict_does_not_outlive_its_words(self, caller: Caller, side: int) -> None:
        conflict, *both = suspected(caller)
        decide(caller, conflict, "keep_both")
        words = (MORNING, EVENING)[side]
        assert caller.patch(f"/v1/memories/{both[side]}", {"content": UNRELATED}).status_code == 200
        assert related(caller, both[0]).get(both[1], 0.0) == 0.0
        assert caller.patch(f"/v1/memories/{both[side]}", {"content": words}).status_code == 200
        assert pairs(caller) == {frozenset(both)}

    def test_a_verdict_holds_where_the_words_say_the_same(self, tenant: Tenant, caller: Caller) -> None:
        conflict, older, newer = suspected(caller)
        decide(caller, conflict, "keep_both")
        same = EVENING.replace("takes", "is taking").rstrip(".")
        assert caller.patch(f"/v1/memories/{newer}", {"content": f"{same}."}).status_code == 200
        Night(tenant).run("consolidation")
        assert listed(caller) == []
        assert older in related(caller, newer)


class TestKeptBoth:
    """Both hold, and stay linked."""

    def test_they_stay_linked(self, caller: Caller) -> None:
        conflict, older, newer = suspected(caller)
        other = write(caller, UNRELATED)["id"]
        decide(caller, conflict, "keep_both")
        assert related(caller, older)[newer] > 0.3
        assert other not in related(caller, older)  # the control
        found = caller.ask("ramipril in the evening", top_k=4, threshold=0.0)["items"]
        assert {older, newer} <= {item["id"] for item in found}

    def test_the_same_verdict_again_changes_nothing(self, caller: Caller) -> None:
        conflict, older, newer = suspected(caller)
        decide(caller, conflict, "keep_both")
        again = decide(caller, conflict, "keep_both")
        assert (again["outcome"], set(again["kept"]), again["superseded"]) == ("unchanged", {older, newer}, None)
        versions = [caller.get(f"/v1/memories/{each}").json()["version"] for each in (older, newer)]
        assert versions == [1, 1]
        told = refused(caller.post(f"/v1/conflicts/{conflict}/decide", {"verdict": "newer"}), 409, "already_decided")
        assert told["verdict"] == "keep_both"
        assert "keep_both" in told["detail"]
        assert texts(caller) == {MORNING, EVENING}


class TestOneHolds:
    """One memory is superseded by a verdict."""

    @pytest.mark.parametrize("verdict", ["newer", "older"])
    def test_the_same_verdict_again_changes_nothing(self, caller: Caller, verdict: str) -> None:
        conflict, older, newer = suspected(caller)
        kept, gone = (newer, older) if verdict == "newer" else (older, newer)
        decide(caller, conflict, verdict)
        again = decide(caller, conflict, verdict)
        assert (again["outcome"], again["kept"], again["superseded"]) == ("unchanged", [kept], gone)
        told = refused(
            caller.post(f"/v1/conflicts/{conflict}/decide", {"verdict": "keep_both"}), 409, "already_decided"
        )
        assert told["verdict"] == verdict

    @pytest.mark.parametrize("verdict", ["newer", "older"])
    def test_restoring_brings_both_back(self, tenant: Tenant, caller: Caller, verdict: str) -> None:
        conflict, older, newer = suspected(caller)
        gone = decide(caller, conflict, verdict)["superseded"]
        done = say(caller, gone, "restore")
        assert (done["outcome"], done["overruled"]) == ("restored", [])
        assert texts(caller) == {MORNING, EVENING}
        Night(tenant).run("consolidation")
        assert listed(caller) == []
        assert related(caller, older)[newer] > 0.3
        told = refused(caller.post(f"/v1/conflicts/{conflict}/decide", {"verdict": verdict}), 409, "already_decided")
        assert told["verdict"] == "keep_both"

    def test_restoring_what_words_overruled_swaps(self, caller: Caller) -> None:
        """The control: where the words prove it, one of both holds."""
        old = write(caller, "The user's gym membership costs 40 euros a month.")["id"]
        new = write(caller, "The user's gym membership now costs 45 euros a month.")["id"]
        assert say(caller, old, "restore")["overruled"] == [new]

    def test_several_at_once(self, tenant: Tenant, caller: Caller) -> None:
        """An administrator who restores all that was superseded brings back what a verdict ended, beside the other."""
        admin = tenant.caller("supervisor", scopes=None)
        conflict, *_ = suspected(caller)
        gone = decide(admin, conflict, "newer")["superseded"]
        assert say(admin, gone, "restore")["outcome"] == "restored"
        assert texts(caller) == {MORNING, EVENING}


class TestOver:
    """Nothing is decided about a memory that does not hold any more."""

    @pytest.mark.parametrize("verdict", ["keep_both", "newer", "older"])
    @pytest.mark.parametrize("end", ["deleted", "retracted", "expired", "ended"])
    def test_a_verdict_on_what_is_over_is_refused(self, tenant: Tenant, caller: Caller, verdict: str, end: str) -> None:
        conflict, older, newer = suspected(caller)
        match end:
            case "deleted":
                assert caller.delete(f"/v1/memories/{older}").status_code == 200
            case "retracted":
                say(caller, older, "retract")
            case "expired":
                tenant.expire(older)
            case _:
                past = "2020-01-01T00:00:00.000000+00:00"
                tenant.rows("UPDATE memories SET valid_until = %(past)s WHERE id = %(id)s", past=past, id=older)
        assert listed(caller) == []
        told = refused(caller.post(f"/v1/conflicts/{conflict}/decide", {"verdict": verdict}), 409, "conflict")
        assert "older" in told["detail"]
        assert told["memory_id"] == older
        assert caller.get(f"/v1/memories/{newer}").status_code == 200

    def test_what_is_restored_can_be_decided_on(self, caller: Caller) -> None:
        """The control; who restores a memory says it again, so that it is the newer one."""
        conflict, older, newer = suspected(caller)
        assert caller.delete(f"/v1/memories/{older}").status_code == 200
        say(caller, older, "restore")
        assert decide(caller, conflict, "newer")["superseded"] == newer


def test_a_listed_record_names_its_conflicts(caller: Caller) -> None:
    _, older, newer = suspected(caller)
    (item,) = listed(caller)
    assert (item["older"]["possible_conflicts"], item["newer"]["possible_conflicts"]) == ([newer], [older])
    timeline = {each["id"]: each for each in caller.get(f"/v1/memories/{older}/timeline").json()["items"]}
    assert timeline[newer]["possible_conflicts"] == [older]
    linked = caller.get(f"/v1/memories/{older}/related").json()["items"]
    assert [each["memory"]["possible_conflicts"] for each in linked] == [[older]]
