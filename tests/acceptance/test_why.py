"""Why a memory is as it is: the rule that fired with its words, what it weighs, and how a question scores it."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.callers import THREAD, USER, Caller, Tenant, refused

Json = dict[str, Any]


def why(caller: Caller, memory: str, **params: str) -> Json:
    """What is told of a memory."""
    response = caller.get(f"/v1/memories/{memory}/why", **params)
    assert response.status_code == 200, response.text
    body: Json = response.json()
    return body


def write(caller: Caller, content: str, **fields: Any) -> Json:  # noqa: ANN401 - of the memory
    body = {"user_id": USER, "category": "profile", "content": content} | fields
    stored: Json = caller.post("/v1/memories", body).json()
    return stored


def test_what_was_superseded_names_the_rule_and_the_words(caller: Caller) -> None:
    old = write(caller, "The user's employer is Siemens.")["id"]
    assert why(caller, old)["rule"] is None, "nothing decided on it yet"
    new = write(caller, "The user's employer is Bosch.")
    assert (new["outcome"], new["overruled"]) == ("superseded", [old])
    rule = why(caller, old)["rule"]
    assert (rule["event"], rule["verdict"]) == ("SUPERSEDE", "updated")
    assert rule["rule"] in {"words", "aligned_words", "replaced_name"}
    assert (rule["words"]["old"], rule["words"]["new"]) == (["siemens"], ["bosch"])
    assert "employer" in rule["words"]["common"]
    told = why(caller, new["id"])["rule"]
    assert (told["event"], told["rule"], told["verdict"]) == ("ADD", rule["rule"], "updated")
    assert told["words"] == {"common": rule["words"]["common"], "new": ["bosch"]}, "its own words alone"
    history = caller.get(f"/v1/memories/{old}/history").json()["items"]
    assert history[0]["meta"]["rule"] == rule["rule"], "kept when it was decided, not worked out now"


def test_what_was_merged_names_the_rule_and_the_words(caller: Caller) -> None:
    first = write(caller, "The user likes hiking in the mountains.", category="event")
    again = write(caller, "The user enjoys hiking in the mountains.", category="event")
    assert (again["outcome"], again["id"]) in {("merged", first["id"]), ("updated", first["id"])}
    rule = why(caller, first["id"])["rule"]
    assert rule["event"] in {"MERGE", "UPDATE"}
    assert rule["verdict"] == "same"
    assert {"hiking", "mountains"} <= set(rule["words"]["common"])


def test_what_was_drawn_names_its_frame_and_the_words_of_the_turn(caller: Caller) -> None:
    stored = caller.say("Good morning! I work as a carpenter.")
    (drawn,) = stored["extracted"]
    rule = why(caller, drawn["id"])["rule"]
    assert (rule["event"], rule["verdict"]) == ("ADD", None)
    assert rule["rule"].startswith("frame:")
    assert "carpenter" in rule["words"]["matched"]
    assert "morning" not in rule["words"]["matched"], "it is no part of what was drawn"


def test_what_a_person_decided_is_the_rule(caller: Caller) -> None:
    memory = write(caller, "The user's employer is Siemens.")["id"]
    corrected = caller.post(f"/v1/memories/{memory}/correct", {"content": "The user's employer is Bosch."})
    assert corrected.status_code in {200, 201}
    assert why(caller, memory)["rule"]["verdict"] in {"corrected", "updated"}


def test_words_of_a_store_that_the_reader_does_not_see_are_left_out(tenant: Tenant, caller: Caller) -> None:
    old = write(caller, "The user's employer is Siemens.", visibility="social", min_trust="familiar")["id"]
    new = write(caller, "The user's employer is Bosch.", visibility="private")
    assert new["overruled"] == [old]
    assert "bosch" in str(why(caller, old)).lower()
    seen = why(tenant.caller("supervisor", trust="familiar"), old)
    assert "bosch" not in str(seen).lower()
    assert seen["rule"]["words"] == {}
    assert seen["rule"]["verdict"] == "updated"


def test_it_tells_layer_hits_and_decay(tenant: Tenant, caller: Caller) -> None:
    memory = write(caller, "The hall is booked.", category="tasks")["id"]
    tenant.rows(
        "UPDATE memories SET hits = 4, layer = 'long', decay_rate = 0.1, confidence = 0.8,"
        " last_hit_at = recorded_at WHERE id = %(id)s",
        id=memory,
    )
    told = why(caller, memory)
    assert (told["hits"], told["layer"]) == (4, "long")
    assert told["last_hit_at"] == told["memory"]["recorded_at"]
    assert told["decay"]["rate"] == pytest.approx(0.1)
    assert told["decay"]["left"] == pytest.approx(0.8, abs=0.01)
    assert 0 <= told["decay"]["days"] < 1
    assert told["decay"]["floor"] == pytest.approx(0.05)


@pytest.mark.parametrize(
    "kept", ["pinned = true", "importance = 4", "trust_state = 'confirmed'", "type = 'episodic'", "state = 'archived'"]
)
def test_what_no_night_takes_confidence_from_does_not_wane(tenant: Tenant, caller: Caller, kept: str) -> None:
    wanes, stays = caller.remember("The hall is booked."), caller.remember("The menu is chosen.")
    long_ago = (datetime.now(UTC) - timedelta(days=10)).isoformat(timespec="microseconds")
    for memory, more in ((wanes, ""), (stays, f", {kept}")):
        tenant.rows(
            f"UPDATE memories SET decay_rate = 0.1, confidence = 0.8, recorded_at = %(then)s{more} WHERE id = %(id)s",
            id=memory, then=long_ago,
        )  # fmt: skip
    told = why(caller, wanes)["decay"]  # the control
    assert (told["rate"], told["left"]) == (pytest.approx(0.1), pytest.approx(0.8 / math.e, abs=0.01))
    told = why(caller, stays)["decay"]
    assert (told["rate"], told["left"]) == (0, pytest.approx(0.8))
    assert told["days"] == pytest.approx(10, abs=0.1)


def test_a_profile_without_a_question_is_refused(caller: Caller) -> None:
    memory = caller.remember("The hall is booked.")
    path = f"/v1/memories/{memory}/why"
    for query in ({}, {"query": " "}):
        refused(caller.get(path, ranking="lexical", **query), 422, "invalid_request")
    assert caller.get(path, ranking="lexical", query="hall").status_code == 200
    assert caller.get(path).status_code == 200


def test_a_question_scores_it_as_the_query_does(caller: Caller) -> None:
    memory = caller.remember("The hall by the river has a stage.")
    other = caller.remember("The menu is chosen.")
    assert why(caller, memory)["score"] is None, "without a question"
    for ranking in (None, "lexical"):
        more = {} if ranking is None else {"ranking": ranking}
        told = why(caller, memory, query="Which hall has a stage?", **more)["score"]
        asked = caller.ask("Which hall has a stage?", filters={"user_id": USER}, return_="full", **more)
        (item,) = [item for item in asked["items"] if item["id"] == memory]
        assert told["score"] == pytest.approx(item["score"], abs=1e-5)
        assert told["parts"]["lexical"] == pytest.approx(item["score_parts"]["lexical"])
        assert set(told["matched"]) == {"hall", "stage"}
    assert why(caller, other, query="Which hall has a stage?")["score"]["score"] < told["score"]
    caller.delete(f"/v1/memories/{memory}")
    assert why(caller, memory, query="Which hall has a stage?")["score"] is None, "no question finds it"
    refused(caller.get(f"/v1/memories/{other}/why", query="hall", ranking="best"), 422, "unknown_ranking")


def test_another_callers_memory_is_absent_with_a_question_too(tenant: Tenant, caller: Caller) -> None:
    memory = caller.remember("The hall is booked.", "profile", thread_id=THREAD)
    for stranger in (tenant.caller("stylist"), tenant.caller("supervisor", users=["ben"])):
        refused(stranger.get(f"/v1/memories/{memory}/why", query="hall"), 404, "not_found")
    assert why(caller, memory, query="hall")["score"] is not None
