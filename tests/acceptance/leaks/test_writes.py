"""What a write is answered says nothing of what its writer must not see: neither by outcome nor by ids or conflicts."""

from typing import Any

import pytest

from memplane.domain.policy.capabilities import Capability
from support.callers import USER, Caller, Json, Tenant
from support.telling import say, write

PARIS, BERLIN, OSLO = (f"Vera lives in {city}." for city in ("Paris", "Berlin", "Oslo"))
HIDDEN: dict[str, Json] = {
    "store": {"visibility": "private"},
    "least trust": {"visibility": "shared", "min_trust": "full"},
    "category": {"visibility": "shared", "category": "event"},
    "user": {"visibility": "shared", "user_id": "ben"},
}


@pytest.fixture
def full(tenant: Tenant) -> Caller:
    """A supervisor, fully trusted."""
    return tenant.caller("supervisor")


@pytest.fixture
def inner(tenant: Tenant) -> Caller:
    """A planner, less trusted, of one user."""
    return tenant.caller("planner", trust="inner", users=[USER])


def shape(answer: Json) -> Json:
    """An answer, but for the id that is new each time."""
    return {name: value for name, value in answer.items() if name != "id"}


def keep(caller: Caller, content: str, **fields: Any) -> str:  # noqa: ANN401 - of the memory
    body = {"user_id": USER, "category": "tasks", "content": content} | fields
    return str(caller.post("/v1/memories", body).json()["id"])


@pytest.mark.parametrize("why", HIDDEN)
def test_to_repeat_what_is_hidden_is_to_say_something_new(full: Caller, inner: Caller, why: str) -> None:
    hidden = keep(full, PARIS, thread_id="theirs", **HIDDEN[why])
    repeated = write(inner, PARIS, "tasks")
    assert repeated["id"] != hidden
    assert shape(repeated) == shape(write(inner, "The user collects stamps.", "tasks"))
    assert write(inner, PARIS, "tasks")["outcome"] == "duplicate"  # the control: of its own it is told


@pytest.mark.parametrize("why", HIDDEN)
def test_to_contradict_what_is_hidden_is_to_say_something_new(full: Caller, inner: Caller, why: str) -> None:
    keep(full, PARIS, **HIDDEN[why])
    contradicting = write(inner, BERLIN, "tasks")
    assert shape(contradicting) == shape(write(inner, "The user collects stamps.", "tasks"))
    assert write(inner, OSLO, "tasks")["overruled"] == [contradicting["id"]]  # the control


@pytest.mark.parametrize("why", HIDDEN)
def test_to_bring_back_is_no_way_to_ask(full: Caller, inner: Caller, why: str) -> None:
    mine = write(inner, BERLIN, "tasks")["id"]
    say(inner, mine, "retract")
    hidden = keep(full, PARIS, **HIDDEN[why])
    back = say(inner, mine, "restore")
    assert (back["outcome"], back["overruled"]) == ("restored", [])
    assert hidden in str(full.get("/v1/memories").json())  # and it is still there


def test_a_history_does_not_tell_what_a_private_memory_says_instead(tenant: Tenant, full: Caller) -> None:
    reader = tenant.caller("supervisor", trust="inner")
    old = write(full, PARIS, "tasks", visibility="shared")["id"]
    new = write(full, BERLIN, "tasks", visibility="private")
    assert new["overruled"] == [old]
    for part in ("history", "why"):
        assert "Berlin" in full.get(f"/v1/memories/{old}/{part}").text  # the control
        told = reader.get(f"/v1/memories/{old}/{part}")
        assert told.status_code == 200
        assert "Berlin" not in told.text
    (entry, _) = reader.get(f"/v1/memories/{old}/history").json()["items"]
    assert entry["event"] == "SUPERSEDE"
    assert not {"said", "superseded_by"} & entry["meta"].keys()


def test_an_idempotency_key_is_each_key_s_own(full: Caller, inner: Caller) -> None:
    body = {"user_id": USER, "category": "tasks", "content": PARIS, "visibility": "shared"}
    once = {"Idempotency-Key": "one"}
    first = full.send("POST", "/v1/memories", json=body, headers=once)
    other = inner.send("POST", "/v1/memories", json=body | {"content": "The user sings."}, headers=once)
    assert (first.status_code, other.status_code) == (201, 201)
    assert other.json()["id"] != first.json()["id"]
    again = full.send("POST", "/v1/memories", json=body, headers=once)
    assert again.headers["Idempotency-Replayed"] == "true"  # the control


@pytest.mark.needs(Capability.SEVERAL_TENANTS)
def test_another_tenant_s_values_and_names_are_free(tenant: Tenant, other_tenant: Tenant) -> None:
    theirs, mine = other_tenant.caller("supervisor"), tenant.caller("supervisor")
    hidden = theirs.remember(PARIS, external_id="one", thread_id="t")
    told = write(mine, PARIS, "tasks", external_id="one", thread_id="t")
    assert (told["outcome"], told["rev"], told["overruled"]) == ("created", 1, [])
    assert told["id"] != hidden
    assert write(mine, PARIS, "tasks", external_id="one", thread_id="t")["id"] == told["id"]  # the control
