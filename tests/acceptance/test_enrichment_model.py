"""Names that the language model finds: what stands in the text alone, within its budget; nothing is lost without it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from memplane.adapters.policy import shipped_policies
from support.callers import USER, Caller, Tenant
from support.model_server import ModelServer, called, refused, spoken
from support.nights import Night, state
from support.serving import RunningServer
from support.thinking import named, of_tenant

SAID = "the concert of kolonda moved the user to tears"


@pytest.fixture
def asking(model: ModelServer, start_server: Callable[..., RunningServer]) -> Tenant:
    """A tenant of a server with that model."""
    made = Tenant(start_server(**named(model)))
    made.caller()
    return made


def answer(*names: tuple[int, str, str]) -> object:
    return {"names": [{"text": text, "name": name, "kind": kind} for text, name, kind in names]}


def names(caller: Caller, user: str = USER) -> dict[str, str]:
    found = caller.get("/v1/entities", user_id=user, limit=200).json()["items"]
    return {entity["name"]: entity["kind"] for entity in found}


def links(tenant: Tenant, memory: str) -> int:
    rows = tenant.rows("SELECT count(*) AS found FROM memory_entities WHERE memory_id = %(id)s", id=UUID(memory))
    return int(rows[0]["found"])


def test_what_it_finds_is_linked_and_what_it_makes_up_is_not(asking: Tenant, model: ModelServer) -> None:
    caller = asking.caller("supervisor")
    memory = caller.remember(SAID)
    other = caller.remember("the user's boss karim likes tea")
    model.script = [
        called(
            answer(
                (1, "kolonda", "person"),
                (1, "Kolonda Quartet", "organisation"),
                (1, "cert", "name"),
                (1, "karim", "person"),
                (2, "tea", "name"),
                (7, "kolonda", "place"),
                (1, "?", "name"),
            )
        )
    ]
    night = Night(asking)
    done = night.run("enrichment")
    assert (done.counts, done.skipped) == ({"seen": 2, "enriched": 2}, None)
    assert names(caller) == {"kolonda": "person", "karim": "person", "tea": "name"}
    assert (links(asking, memory), links(asking, other)) == (1, 2)
    (asked,) = model.asked
    assert SAID in asked.said("user")
    assert SAID not in asked.said("system")
    assert of_tenant(asking)[1] == done.input_tokens > 0
    assert Night(asking, night.now + timedelta(days=1)).counts("enrichment") == {"seen": 0, "enriched": 0}
    assert len(model.asked) == 1


@pytest.mark.parametrize("wrong", ["down", "nonsense"])
def test_the_rules_do_not_wait_for_it(asking: Tenant, model: ModelServer, wrong: str) -> None:
    caller = asking.caller("supervisor")
    memory = caller.remember(SAID)
    small = caller.remember("the user's boss karim likes tea")
    model.script = [refused(503) if wrong == "down" else spoken("no idea")] * 9
    night = Night(asking)
    done = night.run("enrichment")
    assert done.counts == {"seen": 2, "enriched": 1}
    assert names(caller) == {"karim": "person"}
    assert done.skipped == ("model unavailable" if wrong == "down" else None)
    asked = len(model.asked)
    model.script = [called(answer((1, "kolonda", "person")))]
    again = Night(asking, night.now + timedelta(days=1)).run("enrichment")
    if wrong == "down":  # it is asked about them when it is back
        assert again.counts == {"seen": 2, "enriched": 1}
        assert set(names(caller)) == {"kolonda", "karim"}
    else:  # this model can make nothing of them
        assert again.counts == {"seen": 0, "enriched": 0}
        assert len(model.asked) == asked
    assert state(asking, memory, "enriched_by") == state(asking, small, "enriched_by") is not None


def test_each_user_is_asked_about_alone(asking: Tenant, model: ModelServer) -> None:
    caller = asking.caller("supervisor")
    for user in (USER, "ben"):
        caller.remember(f"{SAID}, said {user}", user_id=user)
    model.script = [called(answer((1, "kolonda", "person")))] * 2
    Night(asking).run("enrichment")
    told = [asked.said("user") for asked in model.asked]
    assert len(told) == 2
    assert all((f"said {USER}" in text) != ("said ben" in text) for text in told)
    assert names(caller) == names(caller, "ben") == {"kolonda": "person"}


def test_a_spent_budget_is_told_and_made_up_for(
    model: ModelServer, start_server: Callable[..., RunningServer], tmp_path: Path
) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    for file in shipped_policies().iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    workers = folder / "workers.yaml"
    capped = workers.read_text().replace("user_tokens_per_day: 200000", "user_tokens_per_day: 10")
    workers.write_text(capped)
    tenant = Tenant(start_server(policies=folder, **named(model)))
    caller = tenant.caller("supervisor")
    caller.remember(SAID)
    done = Night(tenant).run("enrichment")
    assert (done.counts, done.skipped, model.asked) == ({"seen": 1, "enriched": 0}, "budget spent", [])


def test_without_a_model_the_run_says_so(tenant: Tenant) -> None:
    caller = tenant.caller("supervisor")
    caller.remember("the user's boss karim likes tea")
    done = Night(tenant).run("enrichment")
    assert (done.counts, done.skipped) == ({"seen": 1, "enriched": 1}, "no model")
    assert names(caller) == {"karim": "person"}


def test_the_fast_way_asks_nobody(asking: Tenant, model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    caller = asking.caller("supervisor")
    caller.remember(SAID)
    policies = asking.server.wired.policies
    slow = policies.current
    fast = replace(slow, workers=replace(slow.workers, entities="fast"))
    monkeypatch.setattr(type(policies), "current", property(lambda _: fast))
    done = Night(asking).run("enrichment")
    assert (done.counts, done.skipped, model.asked) == ({"seen": 1, "enriched": 0}, None, [])
    monkeypatch.undo()
    model.script = [called(answer((1, "kolonda", "person")))]
    assert Night(asking).run("enrichment").counts == {"seen": 2, "enriched": 1}  # of this period, both
    assert names(caller) == {"kolonda": "person"}
