"""Who may read and write which categories, as which agent, for which users: each refusal beside what is allowed."""

import pytest

from memplane.domain.identity.principal import KeyScope
from support.access_matrix import Access, Categories, routes
from support.callers import THREAD, Caller, Tenant, refused
from support.promises.checks import written_beyond

BEN = "ben"


def categories_of(answer: dict[str, list[dict[str, str]]]) -> set[str]:
    return {item["category"] for item in answer["items"]}


@pytest.fixture
def stocked(tenant: Tenant, supervisor: Caller, planner: Caller, executor: Caller) -> Tenant:
    """A tenant with one memory about the release in each of several categories, and one turn."""
    for category in ("profile", "preferences", "goals", "tasks", "event"):
        supervisor.remember(f"The release matters to the {category}.", category)
    planner.remember("The release is a project.", "projects")
    executor.remember("The release has constraints.", "constraints")
    executor.remember("Run the release.", "procedural", type="procedural", steps=["Tag the release.", "Push it."])
    supervisor.say("When is the release?")
    return tenant


@pytest.mark.usefixtures("stocked")
def test_a_category_outside_the_allowlist_refuses_the_request_and_is_named(planner: Caller) -> None:
    problem = refused(planner.query("release", categories=["profile"]), 403, "category_forbidden")
    assert problem["categories"] == ["profile"]
    assert categories_of(planner.ask("release", categories=["tasks"])) == {"tasks"}


@pytest.mark.usefixtures("stocked")
def test_one_forbidden_category_among_allowed_ones_refuses_all(planner: Caller) -> None:
    asked = ["tasks", "profile", "goals", "event"]
    problem = refused(planner.query("release", categories=asked), 403, "category_forbidden")
    assert problem["categories"] == ["profile", "event"]
    assert categories_of(planner.ask("release", categories=["tasks", "goals"])) == {"tasks", "goals"}


@pytest.mark.usefixtures("stocked")
def test_an_unknown_category_is_refused_like_a_forbidden_one(planner: Caller) -> None:
    unknown = refused(planner.query("release", categories=["mood"]), 403, "category_forbidden")
    forbidden = refused(planner.query("release", categories=["profile"]), 403, "category_forbidden")
    assert unknown["categories"] == ["mood"]
    assert unknown["detail"].replace("mood", "profile") == forbidden["detail"]
    assert unknown.keys() == forbidden.keys()


@pytest.mark.usefixtures("stocked")
@pytest.mark.parametrize("named", [None, []])
def test_asking_for_no_category_gives_the_allowlist(
    planner: Caller, supervisor: Caller, named: list[str] | None
) -> None:
    assert categories_of(planner.ask("release", categories=named)) == {"goals", "tasks", "projects"}
    mine = {"profile", "preferences", "goals", "tasks", "event", "activity"}
    assert categories_of(supervisor.ask("release", categories=named)) == mine


@pytest.mark.usefixtures("stocked")
def test_procedures_come_only_when_asked_for(executor: Caller) -> None:
    assert categories_of(executor.ask("release")) == {"tasks", "constraints"}
    assert categories_of(executor.ask("release", categories=["procedural"])) == {"procedural"}


@pytest.mark.usefixtures("stocked")
def test_turns_come_only_to_those_who_read_activity(planner: Caller, supervisor: Caller) -> None:
    assert "activity" in categories_of(supervisor.ask("when is the release"))
    assert "activity" not in categories_of(planner.ask("when is the release"))
    refused(planner.query("release", categories=["activity"]), 403, "category_forbidden")


@pytest.mark.usefixtures("stocked")
def test_counts_say_nothing_of_what_may_not_be_read(planner: Caller, supervisor: Caller) -> None:
    assert planner.ask("release")["usage"]["candidates"] == 3
    assert supervisor.ask("release")["usage"]["candidates"] == 6


@pytest.mark.usefixtures("stocked")
def test_a_body_cannot_name_another_agent(planner: Caller) -> None:
    problem = refused(planner.query("release", agent="supervisor"), 403, "agent_forbidden")
    assert problem["agent"] == "supervisor"
    assert categories_of(planner.ask("release", agent="planner")) == {"goals", "tasks", "projects"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/memories", None),
        ("GET", "/v1/threads/planning/delta", None),
        ("POST", "/v1/memories", {"user_id": "ana", "category": "profile", "content": "Ana is tall."}),
        ("POST", "/v1/turns", {"user_id": "ana", "thread_id": THREAD, "role": "user", "text": "Hello there."}),
    ],
)
def test_no_route_lets_a_key_name_another_agent(
    tenant: Tenant, method: str, path: str, body: dict[str, str] | None
) -> None:
    def send(caller: Caller) -> int:
        if body is None:
            return caller.send(method, path, params={"agent": "supervisor"}).status_code
        return caller.send(method, path, json=body | {"agent": "supervisor"}).status_code

    assert send(tenant.caller("planner")) == 403
    assert send(tenant.caller("planner", act_for=["supervisor"])) in (200, 201)


def test_no_route_of_single_memories_lets_a_key_name_another_agent(planner: Caller) -> None:
    task = planner.remember("The user books the hall.")
    for method, path, body in (
        ("GET", f"/v1/memories/{task}", None),
        ("GET", f"/v1/memories/{task}/history", None),
        ("PATCH", f"/v1/memories/{task}", {"importance": 5}),
        ("DELETE", f"/v1/memories/{task}", None),
    ):
        named = planner.send(method, path, json=body, params={"agent": "supervisor"})
        refused(named, 403, "agent_forbidden")
        assert planner.send(method, path, json=body, params={"agent": "planner"}).status_code == 200


def test_a_key_may_act_for_the_agents_that_it_was_given(stocked: Tenant) -> None:
    delegate = stocked.caller("planner", act_for=["executor"])
    assert categories_of(delegate.ask("release", agent="executor")) == {"tasks", "constraints"}
    assert categories_of(delegate.ask("release")) == {"goals", "tasks", "projects"}
    refused(delegate.query("release", agent="supervisor"), 403, "agent_forbidden")


def test_an_operators_key_names_the_agent(stocked: Tenant) -> None:
    operator = stocked.caller(None, act_for=["*"])
    refused(operator.query("release"), 403, "agent_forbidden")
    assert categories_of(operator.ask("release", agent="planner")) == {"goals", "tasks", "projects"}
    assert operator.ask("release", agent="nobody the policy knows")["items"] == []


@pytest.mark.parametrize("access", routes(categories=Categories.REFUSED), ids=str)
def test_every_route_that_names_categories_refuses_foreign_ones(planner: Caller, access: Access) -> None:
    url = access.url("")
    problem = refused(planner.send(access.method, url, **access.request("profile")), 403, "category_forbidden")
    assert problem["categories"] == ["profile"]
    assert planner.send(access.method, url, **access.request("tasks")).status_code == 200


@pytest.mark.parametrize("access", routes(categories=Categories.NOT_WRITTEN), ids=str)
def test_every_route_that_writes_holds_to_the_write_allowlist(tenant: Tenant, access: Access) -> None:
    """Planner may write neither profile nor, with turns, activity; supervisor may."""
    assert written_beyond(tenant, access) == []


@pytest.mark.parametrize("access", routes(categories=Categories.ABSENT), ids=str)
def test_every_route_of_one_memory_takes_a_foreign_category_for_absent(
    planner: Caller, supervisor: Caller, access: Access
) -> None:
    profile = supervisor.remember("The user met Bodo Stern.", "profile")
    task = supervisor.remember("The user met Ana Ruiz.", "tasks")
    supervisor.remember("The user met Cleo Novak.", "tasks")
    there, here, other = profile, task, ""
    if access.entity:
        there, here, other = (supervisor.entity(name) for name in ("Bodo Stern", "Ana Ruiz", "Cleo Novak"))
    for memory in (profile, task) if access.deleted else ():
        assert supervisor.delete(f"/v1/memories/{memory}").status_code == 200
    before = supervisor.get(f"/v1/memories/{profile}/why").json()["memory"]
    request = access.request("", other)
    refused(planner.send(access.method, access.url(there), **request), 404, "not_found")
    assert planner.send(access.method, access.url(here), **request).status_code == 200
    assert supervisor.get(f"/v1/memories/{profile}/why").json()["memory"] == before


def test_a_memory_cannot_be_moved_to_a_foreign_category(planner: Caller) -> None:
    task = planner.remember("The user books the hall.")
    problem = refused(planner.patch(f"/v1/memories/{task}", {"category": "profile"}), 403, "category_forbidden")
    assert problem["categories"] == ["profile"]
    assert planner.patch(f"/v1/memories/{task}", {"category": "goals"}).json()["outcome"] == "updated"


@pytest.mark.usefixtures("stocked")
def test_a_list_has_the_categories_that_the_agent_reads(planner: Caller, executor: Caller) -> None:
    assert categories_of(planner.get("/v1/memories").json()) == {"goals", "tasks", "projects"}
    assert categories_of(executor.get("/v1/memories").json()) == {"tasks", "constraints", "procedural"}


class TestUsers:
    """Keys that are bound to users."""

    @pytest.fixture
    def bound(self, tenant: Tenant) -> Caller:
        return tenant.caller("supervisor", users=["ana"])

    def test_a_bound_key_reads_its_users_alone(self, supervisor: Caller, bound: Caller) -> None:
        ana = supervisor.remember("Ana books the hall.")
        ben = supervisor.remember("Ben books the hall.", user_id=BEN)
        supervisor.say("Who books the hall?", user_id=BEN)
        assert bound.found("books the hall") == [ana]
        assert bound.found() == [ana]
        assert {ana, ben} < set(supervisor.found("books the hall"))
        assert [item["id"] for item in bound.get("/v1/memories").json()["items"]] == [ana]

    def test_naming_another_user_is_refused(self, bound: Caller) -> None:
        refused(bound.query("hall", filters={"user_id": BEN}), 403, "user_forbidden")
        refused(bound.get("/v1/memories", user_id=BEN), 403, "user_forbidden")
        refused(bound.get(f"/v1/threads/{THREAD}/delta", user_id=BEN), 403, "user_forbidden")
        assert bound.query("hall", filters={"user_id": "ana"}).status_code == 200

    def test_another_users_memory_is_absent(self, supervisor: Caller, bound: Caller) -> None:
        ben = supervisor.remember("Ben books the hall.", user_id=BEN)
        ana = supervisor.remember("Ana books the hall.")
        for path in ("/v1/memories/{}", "/v1/memories/{}/history"):
            refused(bound.get(path.format(ben)), 404, "not_found")
            assert bound.get(path.format(ana)).status_code == 200
        refused(bound.patch(f"/v1/memories/{ben}", {"importance": 5}), 404, "not_found")
        refused(bound.delete(f"/v1/memories/{ben}"), 404, "not_found")
        assert bound.delete(f"/v1/memories/{ana}").status_code == 200

    def test_writing_for_another_user_is_refused(self, tenant: Tenant, bound: Caller) -> None:
        memory = {"user_id": BEN, "category": "tasks", "content": "Ben books the hall."}
        turn = {"user_id": BEN, "thread_id": THREAD, "role": "user", "text": "Ben books the hall."}
        mine = turn | {"user_id": "ana"}
        refused(bound.post("/v1/memories", memory), 403, "user_forbidden")
        refused(bound.post("/v1/turns", turn), 403, "user_forbidden")
        refused(bound.post("/v1/turns:batch", {"turns": [mine, turn]}), 403, "user_forbidden")
        assert tenant.count("memories", "turns") == 0
        assert bound.post("/v1/memories", memory | {"user_id": "ana"}).status_code == 201
        assert bound.post("/v1/turns", mine).status_code == 201

    def test_what_it_writes_is_linked_and_told_like_anybodys(self, bound: Caller) -> None:
        first = "The team ships the billing service in May."
        again = "The team ships the billing dashboard of the service in June."
        made = [
            bound.post("/v1/memories", {"user_id": "ana", "category": "tasks", "content": text, "thread_id": THREAD})
            for text in (first, again)
        ]
        assert [response.status_code for response in made] == [201, 201]
        linked = bound.get(f"/v1/memories/{made[1].json()['id']}/related").json()["items"]
        assert [item["memory"]["content"] for item in linked] == [first]
        said = "My name is Ana Ruiz. I live in Porto. I work at Initech in Porto."
        turn = {"user_id": "ana", "thread_id": THREAD, "role": "user", "text": said}
        assert bound.post("/v1/turns", turn).status_code == 201
        assert (
            bound.post("/v1/turns", turn | {"text": "I moved to Oslo. My sister Ida lives in Oslo."}).status_code == 201
        )

    def test_another_users_thread_is_as_if_it_were_not_there(self, supervisor: Caller, bound: Caller) -> None:
        supervisor.remember("Ben books the hall.", user_id=BEN, thread_id="bens")
        supervisor.remember("Ana books the hall.", thread_id="anas")
        absent = bound.get("/v1/threads/none/delta").json()
        assert (
            bound.get("/v1/threads/bens/delta").json()
            == absent
            == {"rev": 0, "header": None, "changes": [], "pruned": False}
        )
        assert bound.get("/v1/threads/anas/delta").json()["rev"] == 1
        assert bound.ask("hall", thread_id="bens", since_rev=0)["delta"] == {"rev": 0, "header": None, "pruned": False}


def test_a_key_for_reading_cannot_write_and_one_for_writing_cannot_read(tenant: Tenant) -> None:
    reader = tenant.caller("planner", scopes=[KeyScope.READ])
    writer = tenant.caller("planner", scopes=[KeyScope.WRITE])
    task = writer.remember("The user books the hall.")
    refused(
        reader.post("/v1/memories", {"user_id": "ana", "category": "tasks", "content": "No."}), 403, "scope_forbidden"
    )
    refused(reader.delete(f"/v1/memories/{task}"), 403, "scope_forbidden")
    refused(writer.query("hall"), 403, "scope_forbidden")
    refused(writer.get(f"/v1/memories/{task}"), 403, "scope_forbidden")
    assert reader.found("hall") == [task]
