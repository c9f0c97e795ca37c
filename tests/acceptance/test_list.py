"""Lists of memories by state, by layer and by words; what stays by default is what is active and believed."""

import pytest

from support.callers import USER, Caller, Tenant, refused

LIST = "/v1/memories"
STATES = ("superseded", "archived", "soft_deleted")


def listed(caller: Caller, **params: object) -> list[str]:
    """The ids of one page."""
    response = caller.get(LIST, **params)
    assert response.status_code == 200, response.text
    return [item["id"] for item in response.json()["items"]]


@pytest.fixture
def by_state(tenant: Tenant, supervisor: Caller) -> dict[str, str]:
    """A memory in each state."""
    what = {"active": "booked", "superseded": "painted", "archived": "heated", "soft_deleted": "cleaned"}
    found = {state: supervisor.remember(f"The hall is {done}.") for state, done in what.items()}
    for state, memory in found.items():
        tenant.rows("UPDATE memories SET state = %(state)s WHERE id = %(id)s", state=state, id=memory)
    return found


def test_a_state_lists_what_is_in_it_alone(supervisor: Caller, by_state: dict[str, str]) -> None:
    assert listed(supervisor) == [by_state["active"]]
    for state, memory in by_state.items():
        assert listed(supervisor, state=state) == [memory], state
        assert listed(supervisor, state=state, user_id=USER, category="tasks") == [memory], state
        assert listed(supervisor, state=state, category="goals") == [], state


def test_what_was_deleted_is_listed_for_full_trust_alone(
    tenant: Tenant, supervisor: Caller, by_state: dict[str, str]
) -> None:
    for trust in ("inner", "familiar"):
        less = tenant.caller("supervisor", trust=trust)
        refused(less.get(LIST, state="soft_deleted"), 403, "trust_too_low")
        assert listed(less, state="archived") == [], "it is in the private store"
    assert listed(supervisor, state="soft_deleted") == [by_state["soft_deleted"]]


def test_what_a_person_rejected_is_in_no_list(supervisor: Caller) -> None:
    gone, rejected = supervisor.remember("The hall is cold."), supervisor.remember("The stage of the hall is round.")
    assert supervisor.delete(f"{LIST}/{gone}").status_code == 200
    assert supervisor.post(f"{LIST}/{rejected}/reject", {}).status_code == 200
    assert listed(supervisor, state="soft_deleted") == [gone]


@pytest.mark.parametrize("state", STATES)
def test_another_agent_and_another_users_key_list_none_of_it(
    tenant: Tenant, supervisor: Caller, by_state: dict[str, str], state: str
) -> None:
    assert listed(tenant.caller("stylist"), state=state) == []
    assert listed(tenant.caller("supervisor", users=["somebody"]), state=state) == []
    assert listed(supervisor, state=state) == [by_state[state]]


@pytest.mark.needs("several_tenants")
def test_another_tenant_lists_none_of_it(tenant: Tenant, supervisor: Caller, by_state: dict[str, str]) -> None:
    other = Tenant(tenant.server).caller()
    for state, memory in by_state.items():
        assert listed(other, state=state) == listed(other, state=state, q="hall") == []
        assert listed(supervisor, state=state, q="hall") == [memory]


def test_a_layer_lists_what_is_on_it(tenant: Tenant, supervisor: Caller) -> None:
    mid, long = supervisor.remember("The hall is booked."), supervisor.remember("The hall is painted.")
    tenant.rows("UPDATE memories SET layer = 'long' WHERE id = %(id)s", id=long)
    assert set(listed(supervisor)) == {mid, long}
    assert listed(supervisor, layer="mid") == [mid]
    assert listed(supervisor, layer="long") == [long]


def test_words_narrow_a_list_and_score_what_is_left(tenant: Tenant, supervisor: Caller) -> None:
    both = supervisor.remember("The hall by the river has a stage.")
    supervisor.remember("The menu is chosen.", "goals")
    one = supervisor.remember("The hall is cold.")
    supervisor.say("Which hall has a stage?")
    answer = supervisor.get(LIST, q="hall stage").json()
    assert [item["id"] for item in answer["items"]] == [one, both], "newest first, and no turn"
    scores = {item["id"]: item["score"] for item in answer["items"]}
    assert scores[both] == 1.0
    assert 0 < scores[one] < 1
    assert all(item["score"] is None for item in supervisor.get(LIST).json()["items"])
    assert listed(supervisor, q="orchid") == []
    assert len(listed(supervisor, q=" ")) == 3, "without words, everything"
    tenant.rows("UPDATE memories SET state = 'archived' WHERE id = %(id)s", id=one)
    assert listed(supervisor, q="hall") == [both]
    assert listed(supervisor, q="hall", state="archived") == [one]


def test_words_of_others_are_no_matter(tenant: Tenant, supervisor: Caller) -> None:
    mine = supervisor.remember("The hall is booked.")
    tone = tenant.caller("stylist").remember("The hall speaks softly.", "tone")
    assert listed(supervisor, q="hall") == [mine]
    assert listed(tenant.caller("stylist"), q="hall") == [tone]


@pytest.mark.parametrize("more", [{}, {"q": "hall"}, {"state": "archived"}, {"state": "archived", "q": "hall"}])
def test_pages_of_any_list_bring_each_once(tenant: Tenant, supervisor: Caller, more: dict[str, str]) -> None:
    made = [supervisor.remember(f"Hall {number} is booked for {number} people.") for number in range(7)]
    if "state" in more:
        tenant.rows("UPDATE memories SET state = 'archived' WHERE tenant_id = %(tenant)s")
    seen, cursor = [], None
    for _ in range(4):
        page = supervisor.get(LIST, limit=2, **more, **({"cursor": cursor} if cursor else {})).json()
        seen += [item["id"] for item in page["items"]]
        cursor = page["next"]
        if len(seen) == 2:  # what comes later is not on a later page
            newer = supervisor.remember("A newer hall is booked.")
            tenant.rows("UPDATE memories SET state = %(s)s WHERE id = %(id)s", s=more.get("state", "active"), id=newer)
    assert cursor is None
    assert seen == made[::-1]


@pytest.mark.parametrize("params", [{"state": "purged"}, {"state": ""}, {"layer": "short"}, {"q": "x" * 8_001}])
def test_a_value_of_the_wrong_kind_is_refused(supervisor: Caller, params: dict[str, str]) -> None:
    refused(supervisor.get(LIST, **params), 422, "invalid_request")
    assert supervisor.get(LIST, state="archived", layer="mid", q="x").status_code == 200
