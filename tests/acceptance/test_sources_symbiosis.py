"""The examples of symbiosis-layers, each named by its section; its promotion is in test_hits.py."""

from dataclasses import replace

import pytest

from memplane.domain.memory.lifecycle import LifecycleRules
from support.callers import THREAD, USER, Caller, Tenant
from support.nights import Night, age, ago, state
from support.telling import say, texts, write


def test_the_sample_turn(caller: Caller) -> None:
    """HTTP API, sample curl: a liking is drawn at once; the name is sensitive and waits for consent (SPEC 9)."""
    drawn = caller.say("I like JRPGs and my name is Alex", auto_extract=True)
    assert drawn["turn_id"]
    told = {each["action"]: each["content"] for each in drawn["extracted"]}
    assert "JRPGs" in told["created"]
    assert "Alex" in told["queued_for_consent"]


def test_no_extract(caller: Caller) -> None:
    """CLI, `--no-extract`: the turn alone is stored."""
    assert caller.say("I like JRPGs and my name is Alex", auto_extract=False)["extracted"] == []
    assert texts(caller, filters={"user_id": USER, "type": "semantic"}) == set()


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("I love hiking.", "hiking"), ("I prefer trains.", "trains"), ("I hate mushrooms.", "mushrooms"),
        ("I no longer eat meat.", "meat"), ("I'm flying to Oslo on 3 March.", "Oslo"),
    ],
)  # fmt: skip
def test_the_heuristic_rules(caller: Caller, said: str, word: str) -> None:
    """Optimistic Extraction: identity and preferences, state changes, time and place."""
    drawn = caller.say(said)["extracted"]
    assert any(word in each["content"] for each in drawn), drawn


@pytest.mark.parametrize("said", ["Thanks!", 'He said: "I love hiking."', "If I loved hiking, I would go."])
def test_a_trivial_quoted_or_hypothetical_turn_extracts_nothing(caller: Caller, said: str) -> None:
    """SPEC 10.1 narrows the source's patterns, which would match the last two."""
    assert caller.say(said)["extracted"] == []


def test_what_is_similar_is_merged_and_hit(tenant: Tenant, caller: Caller) -> None:
    """Dedup & merge: normalised and compared, a repeat hits what is there instead of being inserted."""
    (first,) = caller.say("I like JRPGs.")["extracted"]
    (again,) = caller.say("i like  JRPGs!!", thread_id="another")["extracted"]
    assert again["id"] == first["id"]
    assert state(tenant, first["id"], "hits") == 1


def test_a_contradiction_ends_the_old_fact_and_keeps_it(tenant: Tenant, caller: Caller) -> None:
    """Conflicts: the source archives the old one; SPEC 6.9 supersedes it, with its history and its source turn."""
    first = write(caller, "Hana works at Acme.", "profile")["id"]
    second = write(caller, "Hana works at Initech.", "profile")
    assert (second["outcome"], second["overruled"]) == ("superseded", [first])
    assert state(tenant, first) == "superseded"
    assert "Hana works at Acme." not in texts(caller, filters={"user_id": USER})
    assert caller.get(f"/v1/memories/{first}/why").json()["memory"]["content"] == "Hana works at Acme."


def test_a_memory_is_traced_to_its_turn(caller: Caller) -> None:
    """memory_links: a memory names the turn it came from."""
    told = caller.say("I love hiking.")
    record = caller.get(f"/v1/memories/{told['extracted'][0]['id']}").json()
    assert record["source_ids"] == [told["turn_id"]]


def test_the_short_term_window_and_the_best_of_the_rest(caller: Caller) -> None:
    """GET /context: the conversation so far, and memories beside it."""
    write(caller, "The user plays the cello.", "profile")
    for number in range(3):
        caller.say(f"Shall we meet at gate {number}?")
    body = {"user_id": USER, "thread_id": THREAD, "message": "What do I play?", "k": 20}
    told = caller.post("/v1/context", body)
    assert told.status_code == 200, told.text
    for words in ("gate 0", "gate 2", "plays the cello"):
        assert words in told.text


def test_score_of_a_layer(tenant: Tenant, caller: Caller) -> None:
    """Scoring: ln(1 + hits) + exp(−0.05 · days) + 2 · importance; 4 and 5 are important (decision 0033)."""
    plain, hit, important = (write(caller, f"Gate {name} opens at seven.")["id"] for name in ("A1", "B2", "C3"))
    age(tenant, plain, 20, version=2)
    age(tenant, hit, 20, hits=1, version=2)
    age(tenant, important, 20, importance=5, version=2)
    ask = {"ranking": "layered", "filters": {"user_id": USER}, "related": False}
    assert caller.found("gate opens", **ask) == [important, hit, plain]


def test_over_capacity_the_lowest_of_mid_goes_and_long_stays(
    tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Policies: score below 0.5, or 30 days without a hit; SPEC 8: archived, and only beyond the capacity."""
    long, low, fresh = (write(caller, f"The user owns a {word}.")["id"] for word in ("piano", "boat", "horse"))
    age(tenant, long, 90, layer="long")
    age(tenant, low, 40)
    age(tenant, fresh, 1, hits=1, last_hit_at=ago(1))
    policies = tenant.server.wired.policies
    policy = replace(policies.current, lifecycle=LifecycleRules(capacity=1))
    monkeypatch.setattr(type(policies), "current", property(lambda _: policy))
    assert night.counts("layers")["archived"] == 1
    assert [state(tenant, each) for each in (long, low, fresh)] == ["active", "archived", "active"]
    assert night.counts("gc")["archived"] == 1  # "Observability": counts of what was collected


def test_why(caller: Caller) -> None:
    """Explain: what it rests on and what was last done to it."""
    memory = write(caller, "The user owns a piano.")["id"]
    say(caller, memory, "reinforce")
    told = caller.get(f"/v1/memories/{memory}/why")
    assert told.status_code == 200
    assert told.json()["memory"]["id"] == memory
    assert "REINFORCE" in told.text


def test_personal_data_is_tagged(caller: Caller) -> None:
    """Failure, Safety, Privacy: basic detectors."""
    memory = write(caller, "The user's accountant answers at books@example.org.")["id"]
    assert "email" in caller.get(f"/v1/memories/{memory}").json()["pii"]


def test_forget(caller: Caller) -> None:
    """CLI, `forget`: the source deletes for good; SPEC 8 deletes softly, with a history."""
    memory = write(caller, "The user owns a piano.")["id"]
    assert caller.delete(f"/v1/memories/{memory}").status_code == 200
    assert texts(caller, filters={"user_id": USER}) == set()
    assert say(caller, memory, "restore")["outcome"] == "restored"
