"""Verbs, states and records that come again: what went wrong once, and does not any more."""

from datetime import UTC, datetime

import pytest

from support.callers import Caller, Tenant, refused
from support.telling import events, say, texts, write

BERLIN, MUNICH = "Vera lives in Berlin.", "Vera lives in Munich."


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor, who reads and writes profiles and preferences."""
    return tenant.caller("supervisor")


def test_a_less_trusted_key_neither_rewrites_nor_removes_nor_restores(tenant: Tenant, caller: Caller) -> None:
    memory = write(caller, BERLIN, visibility="shared")["id"]
    own = write(caller, "The user owns a piano.", visibility="shared")["id"]
    inner = tenant.caller("supervisor", trust="inner")
    path = f"/v1/memories/{memory}"
    refused(inner.patch(path, {"content": MUNICH}), 403, "trust_too_low")
    refused(inner.delete(path), 403, "trust_too_low")
    assert inner.patch(path, {"importance": 4}).status_code == 200  # the control: its words stay
    say(caller, own, "retract")
    refused(inner.post(f"/v1/memories/{own}/restore", {}), 403, "trust_too_low")
    mine = write(inner, "The user owns a boat.", visibility="shared")["id"]
    assert inner.patch(f"/v1/memories/{mine}", {"content": "The user owns a red boat."}).status_code == 200
    assert inner.delete(f"/v1/memories/{mine}").status_code == 200
    assert texts(caller) == {BERLIN}


def test_a_record_that_was_overruled_is_no_news_when_it_is_sent_again(caller: Caller) -> None:
    first = write(caller, BERLIN, external_id="m1")["id"]
    write(caller, MUNICH, external_id="m2")
    again = write(caller, BERLIN, external_id="m1")
    assert (again["outcome"], again["id"]) == ("duplicate", first)
    assert texts(caller) == {MUNICH}
    assert write(caller, BERLIN)["outcome"] == "superseded"  # the control: said anew it is news


def test_a_correction_keeps_name_and_labels(caller: Caller) -> None:
    old = write(caller, BERLIN, external_id="m1", tags=["home"])["id"]
    new = say(caller, old, "correct", content=MUNICH)["id"]
    now = caller.get(f"/v1/memories/{new}").json()
    assert (now["external_id"], now["tags"]) == ("m1", ["home"])
    again = write(caller, BERLIN, external_id="m1")
    assert (again["outcome"], again["id"]) == ("duplicate", new)
    assert say(caller, new, "correct", content=MUNICH)["outcome"] == "unchanged"


def test_what_was_corrected_never_was_so(caller: Caller) -> None:
    old = write(caller, BERLIN)["id"]
    before = datetime.now(UTC).isoformat()
    say(caller, old, "correct", content=MUNICH)
    assert texts(caller, as_of={"true_at": "2020-01-01T00:00:00Z"}) == {MUNICH}
    assert texts(caller, as_of={"believed_at": before}) == {BERLIN}  # the control: so it was believed


def test_what_comes_back_takes_its_place_again(caller: Caller) -> None:
    old = write(caller, BERLIN)["id"]
    new = write(caller, MUNICH)["id"]
    assert say(caller, old, "restore")["overruled"] == [new]
    assert texts(caller) == {BERLIN}
    assert events(caller, new)[0] == "SUPERSEDE"
    assert say(caller, new, "restore")["overruled"] == [old]
    assert texts(caller) == {MUNICH}


def test_doubt_and_absence_at_a_moment_are_remembered(caller: Caller) -> None:
    old = write(caller, BERLIN)["id"]
    say(caller, old, "confirm")
    disputed = write(caller, MUNICH)["id"]
    in_doubt = datetime.now(UTC).isoformat()
    say(caller, disputed, "confirm")
    assert texts(caller) == {MUNICH}
    assert texts(caller, as_of={"believed_at": in_doubt}) == {BERLIN}
    say(caller, disputed, "retract")
    gone = datetime.now(UTC).isoformat()
    say(caller, disputed, "restore")
    assert texts(caller, as_of={"believed_at": gone}) == set()
    assert texts(caller, as_of={"believed_at": datetime.now(UTC).isoformat()}) == {MUNICH}


@pytest.mark.parametrize("verb", ["reinforce", "demote", "pin", "confirm", "retract"])
def test_the_wrong_state_is_told(caller: Caller, verb: str) -> None:
    old = write(caller, BERLIN)["id"]
    write(caller, MUNICH)
    problem = refused(caller.post(f"/v1/memories/{old}/{verb}", {}), 409, "conflict")
    assert problem["state"] == "superseded"
    refused(caller.patch(f"/v1/memories/{old}", {"importance": 5}), 409, "conflict")
    items = caller.get(f"/v1/memories/{old}/timeline", before=1, after=1).json()["items"]
    assert [item["content"] for item in items] == [BERLIN, MUNICH]
    assert caller.delete(f"/v1/memories/{old}").status_code == 200
    refused(caller.post(f"/v1/memories/{old}/{verb}", {}), 404, "not_found")


def test_a_pin_says_which_way(caller: Caller) -> None:
    memory = write(caller, BERLIN)["id"]
    say(caller, memory, "pin")
    say(caller, memory, "pin", pinned=False)
    told = caller.get(f"/v1/memories/{memory}/history").json()["items"]
    assert [entry["meta"].get("pinned") for entry in told] == [False, True, None]
