"""What waits on a turn lapses with it; what a person decided stays; what turns corroborated needs as many still."""

import json
from uuid import UUID

import pytest

from support.callers import USER, Caller, Json, Tenant
from support.consenting import REVIEW, context, decide, listed, queue
from support.telling import texts

OTHER = "ben"


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor who decides on proposals too."""
    return tenant.caller("supervisor", scopes=REVIEW)


def said(caller: Caller, text: str, **fields: object) -> str:
    """A turn's id."""
    return str(caller.say(text, **fields)["turn_id"])


def gone(caller: Caller, turn: str) -> None:
    """Delete a turn, which must be there."""
    assert caller.delete(f"/v1/turns/{turn}").status_code == 200


def proposals(tenant: Tenant) -> list[Json]:
    return [dict(each) for each in tenant.rows("SELECT * FROM consent_proposals WHERE tenant_id = %(tenant)s")]


def lapsed(tenant: Tenant, turn: str) -> object:
    """The fields that the history says went with a turn."""
    (entry,) = tenant.rows("SELECT meta FROM history WHERE memory_id = %(id)s", id=UUID(turn))
    meta: Json = json.loads(entry["meta"]) if isinstance(entry["meta"], str) else entry["meta"]
    return meta.get("fields")


def test_a_proposal_lapses_and_a_decision_stays(tenant: Tenant, caller: Caller) -> None:
    turns = [said(caller, text) for text in ("I live in Lisbon.", "Please call me Alex.")]
    decided = said(caller, "I live in Porto.", user_id=OTHER)
    (taken,) = listed(caller, user_id=OTHER)
    decide(caller, taken["id"])
    assert {each["field"] for each in listed(caller, user_id=USER)} == {"city", "preferred_name"}
    gone(caller, turns[0])
    gone(caller, decided)
    assert {each["field"] for each in listed(caller, user_id=USER)} == {"preferred_name"}
    (stands,) = listed(caller, user_id=OTHER, state="approved")
    assert (stands["id"], stands["new_value"], stands["evidence"]) == (taken["id"], "Porto", None)
    assert context(caller, OTHER) == {"city": "Porto"}
    assert "I live" not in str(tenant.rows("SELECT * FROM consent_proposals WHERE tenant_id = %(tenant)s"))


def test_a_decided_draft_goes_with_any_of_its_turns(tenant: Tenant, caller: Caller) -> None:
    first, second, other = (said(caller, text) for text in ("Good morning.", "As I wrote to you.", "Good night."))
    for content, sources in (
        ("The user lives in Lisbon.", [first, second]),
        ("The user is called Alex.", [other]),
    ):
        decide(caller, queue(caller, content, source_ids=sources))
    gone(caller, second)
    drafted = {each["new_value"]: "source_ids" in str(each["meta"]) for each in proposals(tenant)}
    assert drafted == {"Lisbon": False, "Alex": True}
    assert context(caller, USER) == {"city": "Lisbon", "preferred_name": "Alex"}


def test_a_field_needs_its_turns(tenant: Tenant, caller: Caller) -> None:
    turns = [said(caller, "I prefer concise answers.", thread_id=f"t{nth}") for nth in range(3)]
    for nth in range(2):
        said(caller, "I prefer concise answers.", thread_id=f"t{nth}", user_id=OTHER)
    assert (context(caller), context(caller, OTHER)) == ({"tone": "concise"}, {"tone": "concise"})
    gone(caller, turns[0])
    assert context(caller) == {"tone": "concise"}  # two are left
    gone(caller, turns[1])
    assert (context(caller), context(caller, OTHER)) == ({}, {"tone": "concise"})
    assert len(tenant.rows("SELECT * FROM context_signals WHERE tenant_id = %(tenant)s")) == 3
    assert [lapsed(tenant, each) for each in turns[:2]] == [None, ["tone"]]  # the history tells with which it went
    said(caller, "I prefer concise answers.")
    assert context(caller) == {"tone": "concise"}
    assert "The user prefers concise answers." in texts(caller)
