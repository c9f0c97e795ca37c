"""Who and what memories mention: found by rule, named anew and put together by hand, seen by whom it concerns."""

from typing import Any

from memplane.domain.memory.memory import new_id
from support.callers import USER, Caller, Tenant, refused

Json = dict[str, Any]


def entities(caller: Caller, **asked: Any) -> list[Json]:  # noqa: ANN401 - of the request
    return list(caller.get("/v1/entities", **({"user_id": USER} | asked)).json()["items"])


def names(caller: Caller, **asked: Any) -> list[str]:  # noqa: ANN401 - of the request
    return [entity["name"] for entity in entities(caller, **asked)]


def test_what_memories_mention_is_known(caller: Caller) -> None:
    caller.remember("The user met Berta Lindqvist at Siemens.")
    caller.remember("Berta Lindqvist reads mail at berta@example.org.")
    found = {entity["name"]: entity for entity in entities(caller)}
    assert found["Berta Lindqvist"]["memories"] == 2
    assert (found["Berta Lindqvist"]["kind"], found["berta@example.org"]["kind"]) == ("person", "email")
    assert names(caller)[0] == "Berta Lindqvist"
    assert names(caller, kind="email") == ["berta@example.org"]
    assert names(caller, name="BERTA  lindqvist") == ["Berta Lindqvist"]
    one = caller.get(f"/v1/entities/{found['Siemens']['id']}").json()
    assert found["Siemens"].items() <= one.items()
    assert len(entities(caller, limit=1)) == 1


def test_a_profile_has_the_facts_the_related_and_the_last_mention(caller: Caller) -> None:
    first = caller.remember("The user met Berta Lindqvist at Siemens.")
    second = caller.remember("Berta Lindqvist tunes the piano of Carl Ohm.", "goals")
    third = caller.remember("Carl Ohm had lunch with Berta Lindqvist.", "goals", type="episodic")
    caller.remember("Yoko Aihara sails to Oslo.")
    profile = caller.get(f"/v1/entities/{caller.entity('Berta Lindqvist')}").json()
    assert [fact["id"] for fact in profile["facts"]] == [third, second, first]
    related = {each["name"]: each["memories"] for each in profile["related"]}
    assert next(iter(related)) == "Carl Ohm", "most mentioned first"
    assert related["Carl Ohm"] == 2
    assert related["Siemens"] == 1
    assert not {"Berta Lindqvist", "Yoko Aihara", "Oslo"} & related.keys()
    assert profile["last_mentioned"] == profile["facts"][0]["recorded_at"]
    assert profile["next"] is None


def test_a_profile_holds_what_may_be_read_alone(tenant: Tenant, caller: Caller) -> None:
    task = caller.remember("Berta Lindqvist tunes the piano.")
    private = caller.remember("Berta Lindqvist met Carl Ohm in Oslo.", "profile")
    entity = caller.entity("Berta Lindqvist")
    whole = caller.get(f"/v1/entities/{entity}").json()
    assert {fact["id"] for fact in whole["facts"]} == {task, private}
    assert "Carl Ohm" in {each["name"] for each in whole["related"]}
    seen = tenant.caller("planner").get(f"/v1/entities/{entity}").json()
    assert [fact["id"] for fact in seen["facts"]] == [task]
    assert seen["related"] == []
    assert seen["last_mentioned"] == seen["facts"][0]["recorded_at"]
    assert seen["memories"] == 1
    refused(tenant.caller("stylist").get(f"/v1/entities/{entity}"), 404, "not_found")
    caller.delete(f"/v1/memories/{private}")
    assert [fact["id"] for fact in caller.get(f"/v1/entities/{entity}").json()["facts"]] == [task]


def test_a_long_profile_comes_in_pages(caller: Caller) -> None:
    made = [caller.remember(f"Berta Lindqvist plays concert {number} in spring.") for number in range(5)]
    path, seen, cursor = f"/v1/entities/{caller.entity('Berta Lindqvist')}", [], None
    for _ in range(3):
        page = caller.get(path, limit=2, **({"cursor": cursor} if cursor else {})).json()
        seen += [fact["id"] for fact in page["facts"]]
        cursor = page["next"]
    assert cursor is None
    assert seen == made[::-1]
    refused(caller.get(path, limit=201), 422, "invalid_request")


def test_it_goes_when_no_memory_mentions_it(caller: Caller) -> None:
    memory = caller.remember("The user met Berta Lindqvist.")
    entity = caller.entity("Berta Lindqvist")
    caller.patch(f"/v1/memories/{memory}", {"content": "The user met Carl Ohm."})
    assert names(caller) == ["Carl Ohm"]
    refused(caller.get(f"/v1/entities/{entity}"), 404, "not_found")
    caller.delete(f"/v1/memories/{memory}")
    assert names(caller) == []


def test_it_is_seen_through_memories_that_may_be_read(tenant: Tenant, caller: Caller) -> None:
    caller.remember("The user met Berta Lindqvist.", "profile")
    caller.remember("Carl Ohm tunes the piano.", "tasks")
    planner = tenant.caller("planner")
    assert names(planner) == ["Carl Ohm"]
    assert sorted(names(caller)) == ["Berta Lindqvist", "Carl Ohm"]
    bound = tenant.caller("supervisor", users=["ben"])
    refused(bound.get("/v1/entities", user_id=USER), 403, "user_forbidden")
    refused(bound.get(f"/v1/entities/{caller.entity('Carl Ohm')}"), 404, "not_found")


def test_another_name_leads_to_it(caller: Caller) -> None:
    old = caller.remember("The user met Berta Lindqvist.")
    entity = caller.entity("Berta Lindqvist")
    named = caller.post(f"/v1/entities/{entity}/aliases", {"alias": "Betty Lind"}).json()
    assert named["aliases"] == ["Betty Lind"]
    new = caller.remember("The user had lunch with Betty Lind.")
    assert names(caller) == ["Berta Lindqvist"]
    for name in ("Betty Lind", "Berta Lindqvist"):
        assert set(caller.found("user", filters={"entity": name})) == {old, new}
    again = caller.post(f"/v1/entities/{entity}/aliases", {"alias": "betty  LIND"}).json()
    assert again["aliases"] == ["Betty Lind"]
    for wrong in ("", "  ", "’s", "x" * 201, 7):
        assert caller.post(f"/v1/entities/{entity}/aliases", {"alias": wrong}).status_code == 422


def test_a_name_belongs_to_one(caller: Caller) -> None:
    caller.remember("The user met Berta Lindqvist and Carl Ohm.")
    berta, carl = caller.entity("Berta Lindqvist"), caller.entity("Carl Ohm")
    problem = refused(caller.post(f"/v1/entities/{berta}/aliases", {"alias": "Carl Ohm"}), 409, "conflict")
    assert "merge" in problem["detail"]
    assert caller.post(f"/v1/entities/{carl}/aliases", {"alias": "Carlo"}).status_code == 200
    refused(caller.post(f"/v1/entities/{berta}/aliases", {"alias": "Carlo"}), 409, "conflict")
    # another user's name is another's
    caller.remember("The user met Dora Stern.", user_id="ben")
    assert caller.post(f"/v1/entities/{berta}/aliases", {"alias": "Dora Stern"}).status_code == 200


def test_two_that_are_one_are_put_together(caller: Caller) -> None:
    memories = {caller.remember("The user met Berta Lindqvist."), caller.remember("Betty Lind plays the cello.")}
    kept, gone = caller.entity("Berta Lindqvist"), caller.entity("Betty Lind")
    caller.post(f"/v1/entities/{gone}/aliases", {"alias": "Bettina"})
    merged = caller.post(f"/v1/entities/{gone}/merge", {"into": kept}).json()
    assert (merged["id"], merged["name"], merged["memories"]) == (kept, "Berta Lindqvist", None)
    assert merged["aliases"] == ["Betty Lind", "Bettina"]
    profile = caller.get(f"/v1/entities/{kept}").json()
    assert (merged | {"memories": 2}).items() <= profile.items()
    assert {fact["id"] for fact in profile["facts"]} == memories
    for name in ("Berta Lindqvist", "Betty Lind", "Bettina"):
        assert set(caller.found("user cello", filters={"entity": name})) == memories
    refused(caller.get(f"/v1/entities/{gone}"), 404, "not_found")
    memories.add(caller.remember("The user called Betty Lind on Monday."))
    assert set(caller.found("user cello", filters={"entity": "Berta Lindqvist"})) == memories


def test_what_cannot_be_put_together(caller: Caller) -> None:
    caller.remember("The user met Berta Lindqvist.")
    caller.remember("The user met Dora Stern.", user_id="ben")
    berta, dora = caller.entity("Berta Lindqvist"), caller.entity("Dora Stern", user="ben")
    refused(caller.post(f"/v1/entities/{berta}/merge", {"into": berta}), 422, "invalid_request")
    refused(caller.post(f"/v1/entities/{berta}/merge", {"into": dora}), 422, "invalid_request")
    refused(caller.post(f"/v1/entities/{berta}/merge", {"into": str(new_id())}), 404, "not_found")
    assert names(caller) == ["Berta Lindqvist"]
    assert names(caller, user_id="ben") == ["Dora Stern"]


def test_the_same_request_again_has_one_effect(caller: Caller) -> None:
    caller.remember("The user met Berta Lindqvist.")
    caller.remember("Betty Lind plays the cello.")
    kept, gone = caller.entity("Berta Lindqvist"), caller.entity("Betty Lind")
    path, once = f"/v1/entities/{gone}/merge", {"Idempotency-Key": "merge-1"}
    answers = [caller.send("POST", path, json={"into": kept}, headers=once) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    refused(caller.send("POST", path, json={"into": kept}), 404, "not_found")
