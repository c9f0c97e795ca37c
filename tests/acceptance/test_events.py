"""`/v1/events`: what was done, within what the caller may read, and without words."""

from typing import Any

import pytest

from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.capabilities import Capability
from support.callers import THREAD, USER, Caller, Tenant, refused
from support.nights import Night

BEN = "ben"
PATH = "/v1/events"
Json = dict[str, Any]


def events(caller: Caller, **asked: Any) -> list[Json]:  # noqa: ANN401 - query parameters
    answer = caller.get(PATH, **asked)
    assert answer.status_code == 200, answer.text
    found: list[Json] = answer.json()["items"]
    return found


def ops(caller: Caller, **asked: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - query parameters
    """Nodes and ops, oldest first."""
    return [(each["node"], each["op"]) for each in reversed(events(caller, **asked))]


@pytest.fixture
def operator(tenant: Tenant, supervisor: Caller) -> Caller:
    """An administrator's key of no agent."""
    del supervisor
    return tenant.caller(None, scopes=(KeyScope.ADMIN,))


def test_what_is_done_has_the_names_of_the_source(supervisor: Caller, operator: Caller) -> None:
    supervisor.say("When is the hall free?")
    first = supervisor.remember("The user books the large hall.", thread_id=THREAD)
    supervisor.patch(f"/v1/memories/{first}", {"importance": 5})
    supervisor.delete(f"/v1/memories/{first}")
    supervisor.ask("hall", filters={"user_id": USER})
    supervisor.ask("hall", filters={"user_id": USER}, thread_id=THREAD, purpose="on_demand")
    found = ops(operator, user_id=USER)
    assert found == [
        ("hotpath", "turn"), ("hotpath", "classify"), ("hotpath", "create"), ("hotpath", "update"),
        ("hotpath", "delete"), ("context", "search"), ("context", "recall_on_demand"),
    ]  # fmt: skip
    assert {each["status"] for each in events(operator, op="classify")} == {"skipped"}
    supervisor.say("I hate coffee.")
    assert events(operator, op="classify")[0]["status"] == "ok"


def test_a_similarity_that_decided_is_told(supervisor: Caller, operator: Caller) -> None:
    first = supervisor.remember("The user books the large hall for the concert on Friday.")
    again = supervisor.post(
        "/v1/memories",
        {"user_id": USER, "category": "tasks", "content": "On Friday the user books the large hall for the concert."},
    ).json()
    assert again["outcome"] in {"merged", "updated", "duplicate"}, again
    (created,) = events(operator, op="create")
    assert created["sim"] is None  # nothing was near
    decided = [each for each in events(operator, memory_id=first) if each["op"] in {"merge", "update"}]
    assert [0 < each["sim"] <= 1.0001 for each in decided] == [True]


def test_what_is_created_tells_how_similar_the_nearest_was(supervisor: Caller, operator: Caller) -> None:
    first = supervisor.remember("The user's employer is Siemens.", "profile")
    second = supervisor.remember("The user's employer is Bosch.", "profile")
    other = supervisor.remember("The cactus blooms in June.")
    created = {each["memory_id"]: each["sim"] for each in events(operator, op="create")}
    (ended,) = events(operator, op="supersede")
    assert (created[first], created[other]) == (None, None)  # nothing was near
    assert created[second] == pytest.approx(ended["sim"], abs=1e-4)
    friends = [supervisor.remember(f"The user books the {size} hall for the concert.") for size in ("large", "small")]
    (linked,) = events(operator, op="link", memory_id=friends[1])
    (made,) = events(operator, op="create", memory_id=friends[1])
    assert made["sim"] == linked["sim"]


def test_links_are_told_with_the_strongest(supervisor: Caller, operator: Caller) -> None:
    supervisor.remember("The user books the large hall for the concert.")
    second = supervisor.remember("The user invites guests to the concert in the large hall.")
    (linked,) = events(operator, op="link")
    assert (linked["memory_id"], linked["node"]) == (second, "hotpath")
    assert 0 < linked["sim"] <= 1


def test_a_similarity_to_what_another_store_holds_is_not_told(supervisor: Caller, tenant: Tenant) -> None:
    supervisor.remember("The user books the large hall for the concert.")
    second = supervisor.remember("The user invites guests to the concert in the large hall.", visibility="shared")
    inner = tenant.caller("supervisor", trust="inner")
    for caller, told in ((inner, False), (supervisor, True)):
        found = events(caller, memory_id=second)
        assert {each["op"] for each in found} >= {"create"}
        assert any(each["sim"] is not None for each in found) is told


def test_the_work_of_the_night_is_the_worker_s(supervisor: Caller, operator: Caller, tenant: Tenant) -> None:
    tenant.expire(supervisor.remember("The user books the hall."))
    Night(tenant).run("expiry")
    assert ops(operator, node="worker") == [("worker", "ttl")]


def test_an_agent_sees_events_of_what_it_may_read(
    supervisor: Caller, planner: Caller, operator: Caller, tenant: Tenant
) -> None:
    supervisor.remember("The user is a painter.", "profile")
    supervisor.say("When is the hall free?")
    assert events(planner) == []
    task = planner.remember("The user books the hall.")
    assert {each["memory_id"] for each in events(planner)} == {task}
    seen = events(supervisor)
    assert {each["category"] for each in seen} == {"profile", "tasks", "activity"}  # the control
    assert events(tenant.caller("supervisor", trust="familiar")) == []  # nothing of the private store
    supervisor.ask("hall")
    assert "search" in {each["op"] for each in events(operator)}  # about no category: the operator's to see
    assert "search" not in {each["op"] for each in events(supervisor)}


def test_a_memory_that_moved_hides_what_was_noted_under_its_category(supervisor: Caller, planner: Caller) -> None:
    memory = supervisor.remember("The user books the hall.", "profile")
    assert supervisor.patch(f"/v1/memories/{memory}", {"category": "tasks"}).status_code == 200
    assert ops(planner, memory_id=memory) == [("hotpath", "update")]
    assert ("hotpath", "create") in ops(supervisor, memory_id=memory)


def test_a_bound_key_sees_its_users(supervisor: Caller, tenant: Tenant) -> None:
    supervisor.remember("The user books the hall.")
    theirs = supervisor.remember("The user paints the fence.", user_id=BEN)
    bound = tenant.caller("supervisor", users=(BEN,))
    assert {each["memory_id"] for each in events(bound)} == {theirs}
    refused(bound.get(PATH, user_id=USER), 403, "user_forbidden")
    operator = tenant.caller(None, users=(BEN,), scopes=(KeyScope.ADMIN,))
    assert {each["user_id"] for each in events(operator)} == {BEN}


@pytest.mark.needs(Capability.SEVERAL_TENANTS)
def test_another_tenant_s_events_are_not_there(operator: Caller, supervisor: Caller, other_tenant: Tenant) -> None:
    theirs = other_tenant.caller("supervisor").remember("The user books the hall.")
    assert events(operator, memory_id=theirs) == events(operator) == []
    mine = supervisor.remember("The user books the hall.")
    assert {each["memory_id"] for each in events(operator)} == {mine}


def test_filters_narrow_and_pages_are_whole(supervisor: Caller, operator: Caller) -> None:
    for number in range(5):
        supervisor.say(f"Number {number} is called.", thread_id=f"thread-{number % 2}", role="assistant")
    assert len(events(operator, thread_id="thread-0")) == 3
    middle = events(operator)[2]
    assert len(events(operator, since=middle["ts"])) == 3
    assert len(events(operator, until=middle["ts"])) == 2
    whole, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        page = operator.get(PATH, limit=2, **({"cursor": cursor} if cursor else {})).json()
        whole, cursor, pages = [*whole, *page["items"]], page["next"], pages + 1
    assert (whole, pages) == (events(operator), 3)
    refused(operator.get(PATH, op="Nonsense!"), 422, "invalid_request")
    refused(operator.get(PATH, node="nowhere"), 422, "invalid_request")


def test_events_have_no_words(supervisor: Caller, operator: Caller) -> None:
    supervisor.remember("The user orders marzipan.", title="Marzipan", tags=["marzipan"])
    supervisor.say("Order the marzipan.")
    assert "arzipan" not in operator.get(PATH).text
    assert events(operator)
