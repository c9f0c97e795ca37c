"""Places of an answer are kept for what a relation links to it, and for nothing else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from memplane.adapters.sql.queries.reader import SqlReader
from support.callers import USER, Caller, Json, Tenant

QUESTION = "Which hall is booked?"
SUBJECT = "The hall is booked."
CAKES = ("Lemon tart serves twelve.", "Cream puffs serve nine.", "Plum torte serves ten.")
LEAST = 0.25
"""`link_min` of the embedding model that the tests run."""


@pytest.fixture
def hall(supervisor: Caller) -> str:
    """What the question finds first, before a dozen turns that it finds too."""
    subject = supervisor.remember(SUBJECT, "tasks")
    turns = [
        {"user_id": USER, "thread_id": f"talk-{n}", "role": "assistant", "text": f"Hall number {n} costs {n}0 euros."}
        for n in range(1, 25)
    ]
    assert supervisor.post("/v1/turns:batch", {"turns": turns}).status_code == 201
    assert supervisor.found(QUESTION, related=False, top_k=1) == [subject]
    return subject


@pytest.fixture
def cakes(tenant: Tenant, supervisor: Caller, hall: str) -> list[str]:
    """Three memories that the question does not find, linked to the one that it finds first."""
    made = [supervisor.remember(text, "event") for text in CAKES]
    for place, cake in enumerate(made):
        tenant.relate(hall, cake, 0.9 - place / 10)
    return made


def brought(items: list[Json]) -> list[tuple[str, str]]:
    """The items that relations brought, with what brought them."""
    return [(item["id"], item["via"]) for item in items if item["via"] is not None]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Which reads are sent for units and relations."""
    sent: list[str] = []

    def counting(name: str) -> Callable[..., Any]:
        before = getattr(SqlReader, name)

        def read(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as it came
            sent.append(name)
            return before(*given, **named)

        return read

    with monkeypatch.context() as patched:
        for name in ("units", "related_memories", "edges_and_units"):
            patched.setattr(SqlReader, name, counting(name))
        yield sent


@pytest.mark.parametrize(("top_k", "places"), [(1, 0), (3, 0), (4, 1), (7, 1), (8, 2), (20, 2)])
def test_so_many_places_are_kept(supervisor: Caller, hall: str, cakes: list[str], top_k: int, places: int) -> None:
    ranked = supervisor.found(QUESTION, top_k=top_k, related=False)
    items = supervisor.ask(QUESTION, top_k=top_k)["items"]
    assert len(ranked) == len(items) == top_k
    assert brought(items) == [(cake, hall) for cake in cakes[:places]]
    assert [item["id"] for item in items[: top_k - places]] == ranked[: top_k - places]
    assert not set(ranked) & set(cakes)


def test_a_relation_at_the_least_strength_is_enough(tenant: Tenant, supervisor: Caller, hall: str) -> None:
    cake = supervisor.remember(CAKES[0], "event")
    tenant.relate(cake, hall, LEAST)
    assert brought(supervisor.ask(QUESTION, top_k=4)["items"]) == [(cake, hall)]


class TestNoPlace:
    """What takes no place leaves all of them to the ranked items."""

    def unchanged(self, caller: Caller, top_k: int = 8) -> bool:
        items = caller.ask(QUESTION, top_k=top_k)["items"]
        assert len(items) == top_k
        return [item["id"] for item in items] == caller.found(QUESTION, top_k=top_k, related=False)

    def test_what_nothing_links(self, tenant: Tenant, supervisor: Caller, hall: str) -> None:
        cake = supervisor.remember(CAKES[0], "event")
        assert self.unchanged(supervisor)
        tenant.relate(hall, cake)
        assert not self.unchanged(supervisor)  # the control

    def test_what_is_linked_too_weakly(self, tenant: Tenant, supervisor: Caller, hall: str) -> None:
        weak, strong = (supervisor.remember(text, "event") for text in CAKES[:2])
        tenant.relate(hall, weak, LEAST - 0.01)
        assert self.unchanged(supervisor)
        tenant.relate(hall, strong, LEAST + 0.01)
        assert brought(supervisor.ask(QUESTION, top_k=8)["items"]) == [(strong, hall)]  # the control

    def test_what_is_linked_to_something_that_is_not_returned(
        self, tenant: Tenant, supervisor: Caller, hall: str
    ) -> None:
        cake, puffs = (supervisor.remember(text, "event") for text in CAKES[:2])
        tenant.relate(cake, puffs)
        assert self.unchanged(supervisor)
        tenant.relate(hall, puffs)
        assert brought(supervisor.ask(QUESTION, top_k=8)["items"]) == [(puffs, hall)]  # the control

    def test_what_is_there_already(self, tenant: Tenant, supervisor: Caller, hall: str) -> None:
        other = supervisor.remember("The hall is booked by Ben, and paid.", "event")
        assert other in supervisor.found(QUESTION, top_k=8, related=False)
        tenant.relate(hall, other)
        assert self.unchanged(supervisor)
        cake = supervisor.remember(CAKES[0], "event")
        tenant.relate(other, cake)
        assert brought(supervisor.ask(QUESTION, top_k=8)["items"]) == [(cake, other)]  # the control

    @pytest.mark.parametrize("hidden", ["category", "deleted", "user"])
    def test_what_may_not_be_read(self, tenant: Tenant, supervisor: Caller, hall: str, hidden: str) -> None:
        writer = tenant.caller(None, act_for=["*"])
        fields = {"category": {"category": "knowledge"}, "user": {"user_id": "ben"}}.get(hidden, {})
        body = {"agent": "researcher" if hidden == "category" else "supervisor", "content": CAKES[0]}
        made = writer.post("/v1/memories", {"user_id": USER, "category": "event"} | body | fields)
        assert made.status_code == 201, made.text
        tenant.relate(hall, made.json()["id"])
        if hidden == "deleted":
            assert supervisor.delete(f"/v1/memories/{made.json()['id']}").status_code == 200
        reader = tenant.caller("supervisor", users=[USER])
        assert self.unchanged(reader)
        seen = supervisor.remember(CAKES[1], "event")
        tenant.relate(hall, seen, 0.3)
        assert brought(reader.ask(QUESTION, top_k=8)["items"]) == [(seen, hall)]  # the control

    def test_what_does_not_fit_the_budget(self, tenant: Tenant, supervisor: Caller, hall: str) -> None:
        tokens = supervisor.ask(QUESTION, top_k=8, related=False)["usage"]["tokens"]
        long = supervisor.remember(f"{CAKES[0][:-1]} guests, {'who come from far away and eat a lot, ' * 6}.", "event")
        tenant.relate(hall, long, 0.9)
        answer = supervisor.ask(QUESTION, top_k=8, budget_tokens=tokens)
        assert [item["id"] for item in answer["items"]] == supervisor.found(QUESTION, top_k=8, related=False)
        assert answer["usage"]["truncated"]
        short = supervisor.remember(CAKES[1], "event")
        tenant.relate(hall, short, 0.5)
        answer = supervisor.ask(QUESTION, top_k=8, budget_tokens=tokens)  # the control: a weaker one that fits
        assert brought(answer["items"]) == [(short, hall)]
        assert answer["usage"]["tokens"] <= tokens

    def test_what_does_not_reach_the_threshold(self, tenant: Tenant, supervisor: Caller, hall: str) -> None:
        near = supervisor.remember("The ballroom was reserved.", "event")
        far = supervisor.remember(CAKES[0], "event")
        for each, strength in ((far, 0.9), (near, 0.5)):
            tenant.relate(hall, each, strength)
        answer = supervisor.ask(QUESTION, top_k=50, related=False, explain=True)
        similar = {item["id"]: item["explain"]["signals"]["similarity"] for item in answer["items"]}
        assert similar[near] > similar[far]
        between = (similar[near] + similar[far]) / 2
        assert brought(supervisor.ask(QUESTION, top_k=4)["items"]) == [(far, hall)]
        items = supervisor.ask(QUESTION, top_k=4, threshold=between)["items"]
        assert len(items) == 4
        assert brought(items) == [(near, hall)]
        assert brought(supervisor.ask(QUESTION, top_k=4, threshold=between + 0.5)["items"]) == []


def test_a_question_without_words_keeps_places_too(tenant: Tenant, supervisor: Caller) -> None:
    old = supervisor.remember(CAKES[0], "event")
    weak = supervisor.remember(CAKES[1], "event")
    rest = [supervisor.remember(f"Guest {n} sings.", "event", user_id=f"guest-{n}") for n in range(8)]
    tenant.relate(rest[-1], weak, LEAST - 0.01)
    assert supervisor.found(top_k=4) == rest[:-5:-1]
    tenant.relate(rest[-1], old, LEAST)
    items = supervisor.ask(top_k=4)["items"]
    assert [item["id"] for item in items] == [*rest[:-4:-1], old]
    assert brought(items) == [(old, rest[-1])]


def test_many_relations_take_no_more_reads(
    tenant: Tenant, supervisor: Caller, hall: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    for part in (range(1), range(1, 30)):
        for n in part:
            tenant.relate(hall, supervisor.remember(CAKES[0], "event", user_id=f"guest-{n}"))
        with counted(monkeypatch) as reads:
            assert len(brought(supervisor.ask(QUESTION, top_k=8)["items"])) == min(len(part), 2)
        sent.append(sorted(reads))
    assert sent == [["edges_and_units", "units"]] * 2


class TestContext:
    """The same in the context call, where what is related has a section."""

    @pytest.fixture
    def sections(self, supervisor: Caller) -> Callable[..., dict[str, list[Json]]]:
        def told(**fields: object) -> dict[str, list[Json]]:
            body = {"user_id": USER, "thread_id": "now", "message": QUESTION} | fields
            answer = supervisor.post("/v1/context", body)
            assert answer.status_code == 200, answer.text
            return {section["name"]: section["items"] for section in answer.json()["sections"]}

        return told

    @pytest.mark.parametrize(("k", "places"), [(3, 0), (4, 1), (7, 1), (8, 2), (20, 2)])
    def test_so_many_places_are_kept(
        self, sections: Callable[..., dict[str, list[Json]]], hall: str, cakes: list[str], k: int, places: int
    ) -> None:
        found = sections(k=k)
        assert brought(found.get("related", [])) == [(cake, hall) for cake in cakes[:places]]
        assert len(found["recalled"]) == k - places

    def test_what_is_linked_too_weakly_or_does_not_fit_takes_no_place(
        self, tenant: Tenant, sections: Callable[..., dict[str, list[Json]]], supervisor: Caller, hall: str
    ) -> None:
        cake = supervisor.remember(CAKES[0], "event")
        tenant.relate(hall, cake, LEAST - 0.01)
        found = sections(k=8)
        assert ("related" in found, len(found["recalled"])) == (False, 8)
        long = supervisor.remember(f"{CAKES[1][:-1]} guests, {'who come from far away and eat a lot, ' * 6}.", "event")
        tenant.relate(hall, long)
        assert brought(sections(k=8)["related"]) == [(long, hall)]  # the control
        tight = sections(k=8, budget_tokens=150)
        assert "related" not in tight

    def test_what_is_told_always_is_not_related_too(
        self, tenant: Tenant, sections: Callable[..., dict[str, list[Json]]], supervisor: Caller, hall: str
    ) -> None:
        always = supervisor.remember("Ana owns a piano.", "profile")
        tenant.relate(hall, always)
        found = sections(k=8)
        assert [item["id"] for item in found["standing"]] == [always]
        assert ("related" in found, len(found["recalled"])) == (False, 8)
