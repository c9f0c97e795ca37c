"""Every score can be worked out again from the parts that an explanation prints."""

from math import isclose
from typing import Any

import pytest

from support.callers import THREAD, Caller, Tenant

ROUNDING = 1e-6
Json = dict[str, Any]


def worked_out(item: Json) -> float:
    """score = factor · Σ weight · signal + weight · relation."""
    signals, weights = item["explain"]["signals"], dict(item["explain"]["weights"])
    linked = weights.pop("relation", 0.0) * signals.get("relation", 0.0)
    return float(signals.get("factor", 1.0) * sum(weights[name] * signals[name] for name in weights) + linked)


@pytest.fixture
def stocked(tenant: Tenant, supervisor: Caller) -> Tenant:
    """Units that differ in all that a score is made of."""
    supervisor.remember("The hall is booked for June.", importance=5, pinned=True)
    cold = supervisor.remember("The hall is cold in winter.", "preferences", importance=1)
    supervisor.remember("Ana values the hall more than the menu.", "relationship_dynamic", type="insight", importance=2)
    concert = supervisor.remember("A concert happened in the hall.", "event", event_time="2024-05-01T20:00:00Z")
    for memory, verb in ((concert, "reinforce"), (concert, "reinforce"), (cold, "reinforce"), (cold, "demote")):
        assert supervisor.post(f"/v1/memories/{memory}/{verb}", {}).status_code == 200
    supervisor.say("Which hall did Ben book?", actor_id="Ben")
    supervisor.say("The one by the river.", role="assistant", actor_id="Ana")
    return tenant


@pytest.mark.usefixtures("stocked")
@pytest.mark.parametrize("ranking", ["default", "rrf", "lexical", "semantic", "weighted", "hebbian", "layered"])
@pytest.mark.parametrize("question", ["which hall did Ben book", 'which "hall" did Ben book in May 2024', None])
def test_the_score_follows_from_the_printed_parts(supervisor: Caller, ranking: str, question: str | None) -> None:
    items = supervisor.ask(question, ranking=ranking, explain=True)["items"]
    assert len(items) >= 4
    assert len({item["score"] for item in items}) > 2
    for item in items:
        assert isclose(worked_out(item), item["score"], abs_tol=ROUNDING), item


@pytest.mark.usefixtures("stocked")
def test_every_prior_has_its_part(supervisor: Caller) -> None:
    items = supervisor.ask("which hall did Ben book", explain=True)["items"]
    parts = {item["text"]: item["explain"]["signals"] for item in items}
    pinned = parts["[tasks] The hall is booked for June."]
    assert (pinned["pinned"], pinned["importance"], pinned["factor"]) == (1, 1, 1)
    assert pinned["recency"] > 0.99
    assert parts["[relationship_dynamic] Ana values the hall more than the menu."]["factor"] < 1
    assert parts["[event] A concert happened in the hall."]["recency"] < 0.01
    assert parts["[activity] Ben: Which hall did Ben book?"]["actor"] == 1
    assert parts["[preferences] The hall is cold in winter."]["importance"] == 0


@pytest.mark.usefixtures("stocked")
def test_matched_words_are_named(supervisor: Caller) -> None:
    items = {item["text"]: item["explain"] for item in
             supervisor.ask("which halls did Ben book", explain=True)["items"]}  # fmt: skip
    assert items["[preferences] The hall is cold in winter."]["matched"] == ["hall"]
    assert set(items["[activity] Ben: Which hall did Ben book?"]["matched"]) == {"hall", "ben", "book"}
    assert items["[activity] Ana: The one by the river."]["matched"] == []


@pytest.mark.usefixtures("stocked")
def test_the_rules_that_let_it_through_are_named(supervisor: Caller) -> None:
    for item in supervisor.ask("hall", explain=True)["items"]:
        rules = item["explain"]["rules"]
        assert any("supervisor" in rule and item["category"] in rule for rule in rules)
        assert any("private" in rule for rule in rules)


@pytest.mark.usefixtures("stocked")
def test_nothing_is_explained_unless_asked(supervisor: Caller) -> None:
    assert all(item["explain"] is None for item in supervisor.ask("hall")["items"])


def test_a_related_memory_and_a_newest_one_are_explained_too(tenant: Tenant, planner: Caller) -> None:
    hall = planner.remember("The hall is booked.")
    assert [worked_out(item) for item in planner.ask(explain=True)["items"]] == [1.0]
    cake = planner.remember("Lemon tart serves twelve.", thread_id=THREAD)
    tenant.relate(hall, cake, 0.25)
    items = planner.ask("hall booked", ranking="hebbian", explain=True)["items"]
    assert [item["via"] for item in items] == [None, hall]
    for item in (*items, *planner.ask(explain=True, related=False)["items"]):
        assert isclose(worked_out(item), item["score"], abs_tol=ROUNDING), item


def test_an_explanation_holds_no_hidden_words(supervisor: Caller, planner: Caller) -> None:
    """Parts of the score speak of the scope that the caller may read: what others hold does not move them."""
    planner.remember("The hall is booked.")
    before = planner.ask("hall secret", explain=True)["items"]
    for number in range(5):
        supervisor.remember(f"The secret hall has number {number}.", "profile")
        supervisor.say(f"The secret hall has number {number}.")
    after = planner.ask("hall secret", explain=True)["items"]
    for old, new in zip(before, after, strict=True):
        assert new["explain"]["matched"] == old["explain"]["matched"]
        for name in ("lexical", "lexical_scaled", "similarity", "similarity_context"):
            assert new["explain"]["signals"][name] == old["explain"]["signals"][name]
