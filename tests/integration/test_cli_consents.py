"""Consent from the command line and from Python, on a server that runs."""

import asyncio
from collections.abc import Iterator

import pytest

from integration.commands import Served
from memplane.client import Conflict, Forbidden, Invalid, Memplane, MemplaneSync, NotFound

NOBODY = "01a1fef2-3d7c-72cb-8310-291b06c831c6"


@pytest.fixture
def agent(served: Served) -> Iterator[MemplaneSync]:
    with MemplaneSync(served.url, served.keys["supervisor"]) as client:
        yield client


def propose(served: Served, user: str, city: str = "Berlin") -> str:
    told = served.run("remember", f"The user lives in {city}.", "--user", user, "--category", "profile", "--json")
    assert told.document["outcome"] == "queued_for_consent", told.err
    return str(told.document["id"])


def reviewer(served: Served) -> MemplaneSync:
    """A key of its own that may decide."""
    scopes = [part for scope in ("memory:read", "consent:review") for part in ("--scope", scope)]
    made = served.run("keys", "create", "--storage", "sqlite", "--agent", "supervisor", *scopes, "--json")
    return MemplaneSync(served.url, str(made.document["key"]))


def test_a_person_decides_with_the_administrator_s_key(served: Served, user: str) -> None:
    city, other = propose(served, user), propose(served, user, "Munich")
    told = served.run("consents", "list", "--user", user, "--state", "pending")
    assert told.code == 0, told.err
    assert all(word in told.out for word in (city, other, "Berlin", "Munich", "pending"))
    done = served.run("consents", "approve", city)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"approved: {city} is approved\n  memory ")
    refused = served.run("consents", "reject", other, "--yes", "--reason", "moved away", "--json").document
    assert (refused["outcome"], refused["state"]) == ("rejected", "rejected")
    assert served.run("consents", "approve", city, "--json").document["outcome"] == "unchanged"
    profile = served.run("profile", user)
    assert (profile.code, "Berlin" in profile.out, "Munich" in profile.out) == (0, True, False)
    listed = served.run("consents", "list", "--user", user, "--field", "city", "--json").document["items"]
    assert [(each["id"], each["state"]) for each in listed] == [(other, "rejected"), (city, "approved")]
    assert served.run("consents", "list", "--user", user, "--limit", "1").out.count("--cursor") == 1


def test_what_waits_is_told_as_waiting(served: Served, user: str) -> None:
    told = served.run("remember", "The user lives in Graz.", "--user", user, "--category", "profile")
    assert told.out.startswith("queued_for_consent: ")
    assert "waits until a person agrees" in told.out
    assert served.run("profile", user).out == "No field is decided that this key may read.\n"
    nobody = served.run("consents", "list", "--user", "a stranger")
    assert (nobody.code, nobody.out) == (0, "No proposal that this key may decide on.\n")


def test_what_cannot_be_decided_says_why(served: Served, user: str) -> None:
    absent = served.run("consents", "approve", NOBODY)
    assert (absent.code, absent.out) == (1, "")
    assert absent.err.startswith("memplane: not_found: no such proposal (`memplane consents list`")
    assert served.run("consents", "approve", "nonsense").code == 2
    proposal = propose(served, user)
    forbidden = served.run("consents", "approve", proposal, "--key", served.keys["supervisor"])
    assert forbidden.code == 1
    assert "`memplane keys create --scope consent:review`" in forbidden.err
    assert served.run("consents", "reject", proposal, "--yes").code == 0
    assert served.run("consents", "approve", proposal, "--json").document["error"]["code"] == "already_decided"


def test_from_python(served: Served, agent: MemplaneSync, user: str) -> None:
    turn = agent.turn("I live in Oslo.", user_id=user, thread_id=user, role="user")
    proposal = turn.extracted[0].id
    assert proposal is not None
    with pytest.raises(Forbidden):
        agent.approve(proposal)
    with pytest.raises(Forbidden):
        agent.consents()
    no = agent.turn("Not at all.", user_id=user, thread_id=user, role="user")
    with pytest.raises(Invalid) as refused:
        agent.acknowledge(proposal, no.turn_id)
    assert refused.value.code == "not_an_agreement"
    yes = agent.turn("Yes, please.", user_id=user, thread_id=user, role="user")
    assert agent.acknowledge(proposal, yes.turn_id).outcome == "approved"
    (field,) = agent.user_context(user).items
    assert (field.field, field.value, field.evidence) == ("city", "Oslo", yes.turn_id)
    waiting = [agent.remember(f"The user lives in {c}.", user_id=user, category="profile").id for c in ("Rome", "Bonn")]
    with reviewer(served) as person:
        found = person.consents(user_id=user, state="pending", limit=1)
        assert ([each.id for each in found.items], found.next) == ([waiting[1]], str(waiting[1]))
        assert [each.id for each in person.consents(user_id=user, state="pending", cursor=found.next).items] == waiting[
            :1
        ]
        decided = person.decide([{"id": waiting[0], "decision": "approve"}, {"id": NOBODY, "decision": "reject"}])
        assert [each.outcome for each in decided.items] == ["approved", "failed"]
        assert person.refuse(waiting[1], reason="no").state == "rejected"
        with pytest.raises(Conflict):
            person.approve(waiting[1])
        with pytest.raises(NotFound):
            person.approve(NOBODY)
        assert person.approve(waiting[0]).outcome == "unchanged"
    assert [each.value for each in agent.user_context(user).items] == ["Rome"]


def test_the_asynchronous_client_has_them_too(served: Served, user: str) -> None:
    proposal = propose(served, user)

    async def run() -> str:
        async with Memplane(served.url, served.keys["supervisor"]) as client:
            yes = await client.turn("Yes.", user_id=user, thread_id=user, role="user")
            return (await client.acknowledge(proposal, yes.turn_id)).outcome

    assert asyncio.run(run()) == "approved"


def test_every_proposal_comes_over_its_pages(served: Served, user: str) -> None:
    made = [propose(served, user, city) for city in ("Berlin", "Munich", "Oslo")]
    propose(served, f"{user}-2", "Rome")
    with reviewer(served) as client:
        found = [str(each.id) for each in client.all_consents(user_id=user, page_size=1)]
        assert found == made[::-1]
        assert len(client.consents(user_id=user, limit=1).items) == 1
        client.refuse(made[0])
        assert [str(each.id) for each in client.all_consents(user_id=user, state="pending")] == made[:0:-1]
