"""The second look at memories with few entities: what it links, once, and whose it leaves alone."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from memplane.adapters.ner.rules import RuleExtractor
from memplane.application.jobs import enrichment_job, job_runner
from memplane.domain.errors import StateConflict
from memplane.domain.identity.principal import KeyScope
from memplane.domain.language import enrichment_rules
from support.callers import USER, Caller, Tenant
from support.nights import Night, Stopped, after_batches, state

NAMES = ("Aroha", "Thandiwe", "Priyanka", "Tadeusz", "Ottokar", "Ximena", "Wiremu", "Gesine", "Renske", "Mbali")


def names(caller: Caller, user: str = USER) -> dict[str, str]:
    found = caller.get("/v1/entities", user_id=user, limit=200).json()["items"]
    return {entity["name"]: entity["kind"] for entity in found}


def links(tenant: Tenant, memory: str) -> set[str]:
    found = tenant.rows(
        "SELECT e.name FROM memory_entities me JOIN entities e ON e.tenant_id = me.tenant_id AND e.id = me.entity_id"
        " WHERE me.memory_id = %(id)s",
        id=UUID(memory),
    )
    return {row["name"] for row in found}


def friends(caller: Caller) -> list[str]:
    return [
        caller.remember(f"{name} is the user's friend number {nth}.", user_id=f"user-{nth % 3}")
        for nth, name in enumerate(NAMES)
    ]


def test_names_that_the_write_left_out_are_linked(tenant: Tenant, caller: Caller, night: Night) -> None:
    small = caller.remember("the user's friend siobhan wants a boat")
    shown = caller.remember("The user had dinner with Yoko Aihara.")
    none = caller.remember("The user wants a boat.")
    assert names(caller) == {"Yoko Aihara": "name"}
    assert caller.found("boat", filters={"entity": "Siobhan"}) == []
    assert night.run("enrichment", dry_run=True).counts == {"seen": 3, "enriched": 1}
    assert (names(caller), state(tenant, small, "enriched_by")) == ({"Yoko Aihara": "name"}, None)
    assert night.counts("enrichment") == {"seen": 3, "enriched": 1}
    assert names(caller) == {"siobhan": "person", "Yoko Aihara": "person"}
    assert caller.found("boat", filters={"entity": "Siobhan"}) == [small]
    assert [links(tenant, each) for each in (small, shown, none)] == [{"siobhan"}, {"Yoko Aihara"}, set()]
    assert {state(tenant, each, "version") for each in (small, shown, none)} == {1}


def test_what_only_seemed_to_be_a_name_goes(tenant: Tenant, caller: Caller, night: Night) -> None:
    few = caller.remember("Flatmates Thandiwe and Rolf share the car.")
    enough = caller.remember("Flatmates Thandiwe, Dov, Wiremu and Gesine share the boat.")
    before = links(tenant, enough)
    assert links(tenant, few) == {"Flatmates Thandiwe", "Rolf"}
    assert (len(before), "Flatmates Thandiwe" in before) == (4, True)
    assert night.counts("enrichment") == {"seen": 2, "enriched": 1}
    assert links(tenant, few) == {"Thandiwe", "Rolf"}
    assert links(tenant, enough) == before  # it mentions more than two


def test_each_memory_once_and_again_when_it_changes(
    tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = caller.remember("the user's friend siobhan wants a boat")
    assert night.counts("enrichment") == {"seen": 1, "enriched": 1}
    marked = state(tenant, memory, "enriched_by")
    assert marked is not None
    again = Night(tenant, night.now + timedelta(days=1))
    assert again.counts("enrichment") == {"seen": 0, "enriched": 0}
    assert caller.post(f"/v1/memories/{memory}/pin", {}).status_code == 200
    assert again.counts("enrichment") == {"seen": 0, "enriched": 0}  # its words are what they were
    caller.patch(f"/v1/memories/{memory}", {"content": "the user's friend karim wants a boat"})
    assert (links(tenant, memory), state(tenant, memory, "enriched_by")) == (set(), None)
    assert again.counts("enrichment") == {"seen": 1, "enriched": 1}
    assert (links(tenant, memory), state(tenant, memory, "enriched_by")) == ({"karim"}, marked)
    monkeypatch.setattr(enrichment_rules, "VERSION", "rules/next")
    assert Night(tenant, again.now + timedelta(days=1)).counts("enrichment") == {"seen": 1, "enriched": 0}
    assert state(tenant, memory, "enriched_by") != marked


def test_other_names_of_an_entity_lead_to_it(tenant: Tenant, caller: Caller, night: Night) -> None:
    caller.remember("The user met Berta Lindqvist.")
    entity = caller.entity("Berta Lindqvist")
    assert caller.post(f"/v1/entities/{entity}/aliases", {"alias": "siobhan"}).status_code == 200
    memory = caller.remember("the user's friend siobhan wants a boat")
    night.run("enrichment")
    assert (links(tenant, memory), set(names(caller))) == ({"Berta Lindqvist"}, {"Berta Lindqvist"})


def test_users_have_entities_of_their_own(tenant: Tenant, caller: Caller, night: Night) -> None:
    for user in (USER, "ben"):
        caller.remember("the user's friend siobhan wants a boat", user_id=user)
    caller.remember("the user's boss karim wants a boat", user_id="ben")
    assert night.counts("enrichment")["enriched"] == 3
    assert (set(names(caller)), set(names(caller, "ben"))) == ({"siobhan"}, {"siobhan", "karim"})
    rows = tenant.rows("SELECT id FROM entities WHERE tenant_id = %(tenant)s AND name_key = 'siobhan'")
    assert len(rows) == 2


def test_one_entity_where_two_texts_show_different_much(tenant: Tenant, caller: Caller, night: Night) -> None:
    caller.remember("The user drew Kolonda in the rain.")
    caller.remember("The user's cousin kolonda sails.")
    night.run("enrichment")
    assert {kind for name, kind in names(caller).items() if name.lower() == "kolonda"} == {"person"}
    assert len(tenant.rows("SELECT id FROM entities WHERE tenant_id = %(tenant)s AND name_key = 'kolonda'")) == 1


def test_deleted_memories_are_left_alone(tenant: Tenant, caller: Caller, night: Night) -> None:
    gone = caller.remember("the user's friend siobhan wants a boat")
    kept = caller.remember("the user's boss karim wants a boat")
    caller.delete(f"/v1/memories/{gone}")
    assert night.counts("enrichment") == {"seen": 1, "enriched": 1}
    assert (links(tenant, gone), links(tenant, kept)) == (set(), {"karim"})


def test_an_erased_user_leaves_no_name(tenant: Tenant, caller: Caller, night: Night) -> None:
    for user in (USER, "ben"):
        caller.remember("the user's friend siobhan wants a boat", user_id=user)
    night.run("enrichment")
    admin = tenant.caller("supervisor", act_for=["*"], scopes=tuple(KeyScope))
    assert admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).status_code == 200
    found = tenant.rows("SELECT user_id FROM entities WHERE tenant_id = %(tenant)s")
    assert [row["user_id"] for row in found] == ["ben"]
    assert Night(tenant, night.now + timedelta(days=1)).counts("enrichment") == {"seen": 0, "enriched": 0}


class TestOnce:
    """Whatever happens to a worker, each memory is looked at once."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Batches of three."""
        monkeypatch.setattr(RuleExtractor, "most", 3)

    def told(self, tenant: Tenant) -> list[tuple[Any, ...]]:
        rows = tenant.rows(
            "SELECT e.user_id, e.name, me.memory_id FROM memory_entities me JOIN entities e"
            " ON e.tenant_id = me.tenant_id AND e.id = me.entity_id WHERE me.tenant_id = %(tenant)s"
        )
        return sorted(tuple(map(str, row.values())) for row in rows)

    @pytest.mark.parametrize("batches", [1, 2, 3])
    def test_a_worker_that_ends_in_the_middle(self, tenant: Tenant, caller: Caller, night: Night, batches: int) -> None:
        ids = friends(caller)
        with pytest.raises(Stopped):
            night.run("enrichment", progress=after_batches(batches))
        assert len({row[2] for row in self.told(tenant)}) == 3 * batches
        other = Night(tenant, night.now + timedelta(minutes=1))
        with pytest.raises(StateConflict, match="another worker"):
            other.run("enrichment")
        other.now += job_runner.LEASE
        assert other.counts("enrichment") == {"seen": 10, "enriched": 10}
        told = self.told(tenant)
        assert {row[1] for row in told} == set(NAMES)
        assert sorted(row[2] for row in told) == sorted(ids)
        night.now = other.now
        night.run("enrichment")
        assert self.told(tenant) == told

    def test_two_at_once_have_one_effect(self, tenant: Tenant, caller: Caller, night: Night) -> None:
        ids = friends(caller)
        workers = [night, *(Night(tenant) for _ in range(3))]

        def tried(worker: Night) -> str:
            try:
                return worker.run("enrichment").outcome
            except StateConflict:
                return "another"

        with ThreadPoolExecutor(4) as pool:
            outcomes = list(pool.map(tried, workers))
        assert "done" in outcomes
        told = self.told(tenant)
        assert sorted(row[2] for row in told) == sorted(ids)
        assert len({row[:2] for row in told}) == len(NAMES)

    def test_what_changed_meanwhile_is_due_again(
        self, tenant: Tenant, caller: Caller, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        memory = caller.remember("the user's friend siobhan wants a boat")
        other = caller.remember("the user's friend aroha wants a kite")
        looked = enrichment_job.mentions_of

        def change(*args: Any) -> Any:  # noqa: ANN401 - of the function
            if caller.get(f"/v1/memories/{memory}").json()["version"] == 1:
                caller.patch(f"/v1/memories/{memory}", {"content": "the user's friend karim wants a boat"})
            return looked(*args)

        monkeypatch.setattr(enrichment_job, "mentions_of", change)
        monkeypatch.setattr(
            "memplane.application.limits.offload.SHORT", -1
        )  # in a thread: the server answers meanwhile
        assert night.counts("enrichment") == {"seen": 1, "enriched": 1}
        assert (links(tenant, memory), links(tenant, other)) == (set(), {"aroha"})
        assert Night(tenant, night.now + timedelta(days=1)).counts("enrichment") == {"seen": 1, "enriched": 1}
        assert links(tenant, memory) == {"karim"}
