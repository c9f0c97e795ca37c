"""An admin key that is bound to agents erases all of a user, or nothing."""

from typing import Any

import pytest

from memplane.domain.identity.principal import KeyScope
from support.callers import SUPERVISING, USER, Caller, Tenant, refused
from support.telling import texts, write

SCOPES = (*SUPERVISING, KeyScope.ADMIN)
ERASE = f"/v1/users/{USER}/erase"
PIANO, TONE = "The user owns a piano.", "The user likes short answers."


@pytest.fixture(autouse=True)
def _lived(tenant: Tenant) -> None:
    """Words in a category of the supervisor's, and in one of another agent's."""
    write(tenant.caller("supervisor"), PIANO)
    write(tenant.caller("stylist"), TONE, category="tone")


def kept(admin: Caller) -> set[str]:
    return texts(admin, agent="supervisor") | texts(admin, agent="stylist", categories=["tone"])


@pytest.mark.parametrize("body", [{"confirm": USER}, {"dry_run": True}])
def test_it_is_refused_as_a_whole_and_names_what_is_missing(
    tenant: Tenant, admin: Caller, body: dict[str, Any]
) -> None:
    policy = tenant.server.wired.policies.current
    bound = tenant.caller("supervisor", scopes=SCOPES)
    answer = refused(bound.post(ERASE, body), 403, "category_forbidden")
    assert set(answer["categories"]) == {each for each in policy.categories if not policy.keeps("supervisor", each)}
    assert "tone" in answer["categories"]
    assert "event" not in answer["categories"]
    assert kept(admin) == {PIANO, TONE}
    assert tenant.count("erasures") == 0


def test_agents_that_it_acts_for_count_too(tenant: Tenant, admin: Caller) -> None:
    both = tenant.caller("supervisor", act_for=["stylist"], scopes=SCOPES)
    answer = refused(both.post(ERASE, {"confirm": USER}), 403, "category_forbidden")
    assert not {"tone", "style", "preferences"} & set(answer["categories"])
    assert answer["categories"]
    assert kept(admin) == {PIANO, TONE}


@pytest.mark.parametrize("act_for", [["*"], []])
def test_a_key_that_is_bound_to_no_agent_erases(tenant: Tenant, admin: Caller, act_for: list[str]) -> None:
    """The control."""
    operator = tenant.caller(None, act_for=act_for, scopes=SCOPES)
    assert operator.post(ERASE, {"confirm": USER}).json()["finished"]
    assert kept(admin) == set()


def test_a_key_of_an_agent_that_reads_and_writes_everything_erases(tenant: Tenant, admin: Caller) -> None:
    """The same for all agents together."""
    policy = tenant.server.wired.policies.current
    named = tenant.caller("supervisor", act_for=sorted(policy.allowlists), scopes=SCOPES)
    assert named.post(ERASE, {"confirm": USER}).json()["finished"]
    assert kept(admin) == set()
