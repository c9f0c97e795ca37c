"""What adr005-extensions describes, each test named by its section; what needs a model has tests of its own."""

from collections.abc import Callable
from math import exp

import pytest

from memplane.domain.identity.principal import KeyScope
from support.callers import THREAD, USER, Caller, Tenant
from support.model_server import ModelServer, called
from support.nights import Night, age, ago, state
from support.serving import RunningServer
from support.telling import events, say, texts, write
from support.thinking import named

PIANO = "The user owns a piano."


def test_an_episode_is_there_at_once_and_verbatim(caller: Caller) -> None:
    """Hot path: the turn is stored and found by the next question, without a model."""
    words = "Could you move the ferry booking to the second of March?"
    told = caller.say(words)
    found = caller.ask("ferry booking", filters={"user_id": USER}, return_="full")["items"]
    assert told["turn_id"] in [each["id"] for each in found]
    assert any(words in str(each) for each in found)


def test_context_has_facts_of_other_conversations(caller: Caller) -> None:
    """Context injection: facts of earlier sessions, and the current conversation once."""
    write(caller, "The user plays the cello.", "profile", thread_id="earlier")
    caller.say("Which instrument do I play?")
    body = {"user_id": USER, "thread_id": THREAD, "message": "Which instrument do I play?"}
    items = [str(each) for part in caller.post("/v1/context", body).json()["sections"] for each in part["items"]]
    assert sum("plays the cello" in each for each in items) == 1
    assert sum("Which instrument do I play?" in each for each in items) == 1


def test_decay_is_exponential_and_once_a_night(tenant: Tenant, caller: Caller, night: Night) -> None:
    """Decay: confidence · exp(−decay_rate · days since access); the rate here is 0.0002 (decision 0033)."""
    memory = write(caller, PIANO)["id"]
    age(tenant, memory, 10, decay_rate=0.01, last_accessed=ago(10))
    night.run("decay")
    assert state(tenant, memory, "confidence") == pytest.approx(exp(-0.1), rel=1e-4)
    night.run("decay")
    assert state(tenant, memory, "confidence") == pytest.approx(exp(-0.1), rel=1e-4)


def test_below_the_threshold_a_fact_is_deleted_softly(tenant: Tenant, caller: Caller, night: Night) -> None:
    """Nightly decay: 0.05; the row stays and can be restored."""
    weak, strong = write(caller, PIANO)["id"], write(caller, "The user sails a boat.")["id"]
    age(tenant, weak, 10, decay_rate=0.31, last_accessed=ago(10))
    age(tenant, strong, 10, decay_rate=0.29, last_accessed=ago(10))
    night.run("decay")
    assert (state(tenant, weak), state(tenant, strong)) == ("soft_deleted", "active")
    assert say(caller, weak, "restore")["outcome"] == "restored"


def test_a_confirmed_fact_never_decays(tenant: Tenant, caller: Caller, night: Night) -> None:
    """Protected facts, `confirm_fact`: rate 0, confidence 1."""
    memory = write(caller, PIANO, confidence=0.6)["id"]
    say(caller, memory, "confirm")
    age(tenant, memory, 400)
    night.run("decay")
    assert (state(tenant, memory, "confidence"), state(tenant, memory, "decay_rate")) == (1.0, 0.0)


def test_a_correction_replaces_the_fact(tenant: Tenant, caller: Caller) -> None:
    """`correct_fact`: the source deletes the old one softly; SPEC 6 supersedes it."""
    memory = write(caller, PIANO)["id"]
    done = caller.post(f"/v1/memories/{memory}/correct", {"content": "The user owns a harpsichord."})
    assert done.json()["outcome"] == "superseded"
    assert state(tenant, memory) == "superseded"
    assert texts(caller, filters={"user_id": USER}) == {"The user owns a harpsichord."}


def test_soft_deletion_keeps_the_row(tenant: Tenant, caller: Caller) -> None:
    """Soft deletion: out of every query, and not removed."""
    memory = write(caller, PIANO)["id"]
    caller.delete(f"/v1/memories/{memory}")
    assert texts(caller, filters={"user_id": USER}) == set()
    assert state(tenant, memory) == "soft_deleted"
    assert events(caller, memory)[0] == "DELETE"


def test_one_entity_under_several_names(caller: Caller) -> None:
    """`entities`: found by name and by alias, and joined with what mentions it."""
    memory = write(caller, "Bo Lind plays chess on Mondays.")["id"]
    entity = caller.entity("Bo Lind")
    assert caller.post(f"/v1/entities/{entity}/aliases", {"alias": "Bobby L"}).status_code == 200
    assert caller.entity("Bobby L") == entity
    assert caller.found(None, filters={"user_id": USER, "entity": "Bobby L"}) == [memory]


def test_everything_about_one_entity(caller: Caller) -> None:
    """`get_entity_info`: the entity, and memories that mention it."""
    write(caller, "Bo Lind plays chess on Mondays.")
    told = caller.get(f"/v1/entities/{caller.entity('Bo Lind')}")
    assert told.status_code == 200
    assert "Bo Lind" in told.text


def test_rrf_merges_words_meaning_and_entities(caller: Caller) -> None:
    """RRF merge: Σ 1/(60 + rank), by the profile of that name."""
    wanted = write(caller, "Bo Lind plays chess on Mondays.")["id"]
    for word in ("piano", "boat", "horse"):
        write(caller, f"The user owns a {word}.")
    assert caller.found("When does Bo Lind play chess?", ranking="rrf", filters={"user_id": USER})[0] == wanted


def test_two_facts_in_other_words_are_one(caller: Caller) -> None:
    """`save_facts_batch`: two-level deduplication holds on every write here (SPEC 6.8)."""
    first = write(caller, "The user owns a black piano.")
    again = write(caller, "The user owns a piano that is black.")
    assert again["outcome"] in {"merged", "updated", "duplicate"}
    assert again["id"] == first["id"]


@pytest.mark.parametrize("has_model", [False, True], ids=["without", "with, the control"])
def test_without_a_model_the_rest_is_skipped_and_said(
    start_server: Callable[..., RunningServer], model: ModelServer, has_model: bool
) -> None:
    """Entity enrichment and reflection: rules do their part, the rest is skipped, and the list of jobs says why."""
    tenant = Tenant(start_server(**(named(model) if has_model else {})))
    name = {"text": 1, "name": "kolonda", "kind": "person"}
    reflection = "The user turned to the piano this week. The concert in Lisbon matters more than the canoe."
    model.script = [called({"names": [name]}), called({"text": reflection, "sources": [1, 2, 3]})]
    caller, night = tenant.caller("supervisor"), Night(tenant)
    caller.remember("the concert of kolonda moved the user to tears")
    done = {"enrichment": night.run("enrichment")}
    for fact in (PIANO, "The user plans a concert in Lisbon.", "The user sold the canoe."):
        write(caller, fact, "event")
    done["reflections"] = night.run("reflections")
    reasons = dict.fromkeys(done, None if has_model else "no model")
    assert {job: run.skipped for job, run in done.items()} == reasons
    told = tenant.caller(None, scopes=[KeyScope.ADMIN]).get("/v1/admin/jobs").json()["items"]
    assert {job["name"]: job["skipped"] for job in told if job["name"] in done} == reasons
    found = [entity["name"] for entity in caller.get("/v1/entities", user_id=USER).json()["items"]]
    reflected = caller.get("/v1/memories", user_id=USER, type="reflection").json()["items"]
    assert ("kolonda" in found, len(reflected), len(model.asked)) == ((True, 1, 2) if has_model else (False, 0, 0))
