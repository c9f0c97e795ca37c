"""Who runs a tenant is no agent: such a key reaches every category, and a key that is bound to an agent does not."""

from typing import Any

import pytest

from memplane.domain.identity.principal import KeyScope
from support.access_matrix import ACCESS, Access, Categories, routes
from support.callers import THREAD, USER, Caller, Tenant, refused

EVERY = tuple(KeyScope)
WORDLESS = tuple(scope for scope in KeyScope if scope is not KeyScope.READ)
WORDS = {"profile": "Bodo Stern", "projects": "Ana Ruiz"}
"""No agent of the shipped policy reads both of these categories."""
LISTS = [
    access
    for access in ACCESS
    if access.scope is KeyScope.READ and access.categories in {Categories.LEFT_OUT, Categories.REFUSED}
]
TRACKING = ("/v1/stats", "/v1/events")
READS = [access for access in ACCESS if access.scope is KeyScope.READ and access.path not in TRACKING]
"""What answers with words."""


@pytest.fixture(params=[(), ("*",)], ids=["of no agent", "that may act for all"])
def operator(tenant: Tenant, request: pytest.FixtureRequest) -> Caller:
    """A key that is bound to no agent, with every scope."""
    return tenant.caller(None, act_for=request.param, scopes=EVERY)


@pytest.fixture
def bound(tenant: Tenant) -> Caller:
    """The control: an agent's key with every scope."""
    return tenant.caller("planner", scopes=EVERY)


def stocked(tenant: Tenant) -> dict[str, str]:
    """A memory of each category, by its writer."""
    writers = {"profile": "supervisor", "projects": "planner"}
    return {
        category: tenant.caller(writers[category], scopes=EVERY).remember(
            f"The release matters to {name}.", category, thread_id=THREAD
        )
        for category, name in WORDS.items()
    }


def words_in(text: str) -> list[str]:
    return [category for category, name in WORDS.items() if name in text or category in text]


def asked(caller: Caller, access: Access) -> Any:  # noqa: ANN401 - a response
    """The answer to a question that names no category."""
    body = {"json": access.body("")} if access.body else {}
    body.get("json", {}).pop("categories", None)
    params = {} if access.params is None else {k: v for k, v in access.params("").items() if k != "category"}
    return caller.send(access.method, access.url(""), **body, params=params)


class TestReads:
    """What an operator reads, without naming an agent."""

    @pytest.mark.parametrize("access", [each for each in LISTS if not each.proposal and not each.conflict], ids=str)
    def test_every_list_has_every_category(
        self, tenant: Tenant, operator: Caller, bound: Caller, access: Access
    ) -> None:
        stocked(tenant)
        told = asked(operator, access)
        assert told.status_code == 200, told.text
        assert words_in(told.text) == ["profile", "projects"]
        assert words_in(asked(bound, access).text) == ["projects"]

    @pytest.mark.parametrize("access", routes(categories=Categories.REFUSED), ids=str)
    def test_every_category_of_the_policy_may_be_named(
        self, tenant: Tenant, operator: Caller, bound: Caller, access: Access
    ) -> None:
        stocked(tenant)
        for category in WORDS:
            answer = operator.send(access.method, access.url(""), **access.request(category))
            assert words_in(answer.text) == [category]
        unknown = operator.send(access.method, access.url(""), **access.request("mood"))
        assert refused(unknown, 403, "category_forbidden")["categories"] == ["mood"]
        refused(bound.send(access.method, access.url(""), **access.request("profile")), 403, "category_forbidden")

    @pytest.mark.parametrize("access", routes(categories=Categories.ABSENT), ids=str)
    def test_every_route_of_one_record_finds_every_category(
        self, tenant: Tenant, operator: Caller, bound: Caller, access: Access
    ) -> None:
        ids = stocked(tenant)
        for category in ("profile",) if access.entity else WORDS:
            there, other = ids[category], ""
            if access.entity:
                operator.patch(f"/v1/memories/{ids['projects']}", {"facts": ["The user met Cleo Novak."]})
                there, other = operator.entity(WORDS[category]), operator.entity("Cleo Novak")
            if access.deleted:
                assert operator.delete(f"/v1/memories/{there}").status_code == 200
            sent = {"method": access.method, "path": access.url(there)} | access.request("", other)
            method, path = sent.pop("method"), sent.pop("path")
            if category == "profile":
                refused(bound.send(method, path, **sent), 404, "not_found")
            assert operator.send(method, path, **sent).status_code == 200

    def test_it_sees_what_its_trust_sees(self, tenant: Tenant) -> None:
        writer = tenant.caller(scopes=EVERY)
        private = writer.remember("The user likes the hall.", "profile")
        shared = writer.remember("The team likes the barn.", "profile", visibility="shared")
        inner = tenant.caller(None, trust="inner", scopes=EVERY)
        assert inner.found() == [shared]
        refused(inner.get(f"/v1/memories/{private}"), 404, "not_found")
        assert set(tenant.caller(None, scopes=EVERY).found()) == {private, shared}

    def test_it_reaches_its_users_alone(self, tenant: Tenant) -> None:
        writer = tenant.caller(scopes=EVERY)
        mine = writer.remember("Ana likes the hall.", "profile")
        theirs = writer.remember("Ben likes the barn.", "profile", user_id="ben")
        bound = tenant.caller(None, users=[USER], scopes=EVERY)
        assert bound.found() == [mine]
        refused(bound.get(f"/v1/memories/{theirs}"), 404, "not_found")

    def test_an_agent_that_it_names_narrows_it(self, tenant: Tenant) -> None:
        ids = stocked(tenant)
        operator = tenant.caller(None, act_for=["*"], scopes=EVERY)
        assert operator.found("release", agent="planner") == [ids["projects"]]
        assert set(operator.found("release")) == set(ids.values())
        refused(tenant.caller(None, scopes=EVERY).query("release", agent="planner"), 403, "agent_forbidden")

    def test_explain_names_no_agent(self, tenant: Tenant, operator: Caller) -> None:
        stocked(tenant)
        rules = operator.ask("release", explain=True)["items"][0]["explain"]["rules"]
        assert rules[0].startswith("an operator may read category")


class TestWithoutReading:
    """A key without ``memory:read`` reads no words."""

    @pytest.mark.parametrize("access", READS, ids=str)
    def test_no_read_is_answered(self, tenant: Tenant, access: Access) -> None:
        ids = stocked(tenant)
        wordless = tenant.caller(None, scopes=WORDLESS)
        path = access.url(ids["profile"])
        refused(wordless.send(access.method, path, **access.request("profile")), 403, "scope_forbidden")

    def test_no_export_is_given(self, tenant: Tenant) -> None:
        stocked(tenant)
        path = f"/v1/users/{USER}/export"
        assert refused(tenant.caller(None, scopes=WORDLESS).get(path), 403, "scope_forbidden")["scope"] == "memory:read"
        assert words_in(tenant.caller(None, scopes=EVERY).get(path).text) == ["profile", "projects"]

    @pytest.mark.parametrize("path", ["/v1/admin/jobs", *TRACKING])
    def test_it_sees_what_happens(self, tenant: Tenant, path: str) -> None:
        assert tenant.caller(None, scopes=[KeyScope.ADMIN]).get(path).status_code == 200


class TestReviews:
    """What an operator decides, without naming an agent."""

    def test_it_reviews_every_field(self, tenant: Tenant, operator: Caller, bound: Caller) -> None:
        proposal = tenant.propose("profile", "Oslo", USER)
        assert bound.get("/v1/consents").json()["items"] == []
        assert [each["id"] for each in operator.get("/v1/consents").json()["items"]] == [proposal]
        assert operator.post(f"/v1/consents/{proposal}/approve", {}).json()["outcome"] == "approved"

    def test_without_the_scope_it_does_not(self, tenant: Tenant) -> None:
        scopes = [scope for scope in EVERY if scope is not KeyScope.CONSENT]
        operator = tenant.caller(None, scopes=scopes)
        tenant.propose("profile", "Oslo", USER)
        refused(operator.get("/v1/consents"), 403, "scope_forbidden")

    def test_it_restores(self, tenant: Tenant, operator: Caller, bound: Caller) -> None:
        ids = stocked(tenant)
        for each in ids.values():
            assert operator.delete(f"/v1/memories/{each}").status_code == 200
        lost = {"user_id": USER, "since": "2020-01-01T00:00:00Z"}
        done = bound.post("/v1/admin/restore", lost).json()["items"]
        assert [each["id"] for each in done] == [ids["projects"]]
        done = operator.post("/v1/admin/restore", lost).json()["items"]
        assert [each["id"] for each in done] == [ids["profile"]]


class TestWrites:
    """Something new is said by somebody: an operator names the agent."""

    def test_what_is_new_needs_an_agent(self, tenant: Tenant) -> None:
        operator = tenant.caller(None, act_for=["*"], scopes=EVERY)
        memory = {"user_id": USER, "category": "tasks", "content": "The user books the hall."}
        turn = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": "Hello there."}
        for path, body in (("/v1/memories", memory), ("/v1/turns", turn)):
            refused(operator.post(path, body), 403, "agent_forbidden")
            assert operator.post(path, body | {"agent": "supervisor"}).status_code == 201

    def test_its_changes_bear_its_own_name(self, tenant: Tenant, operator: Caller) -> None:
        ids = stocked(tenant)
        right = operator.post(f"/v1/memories/{ids['profile']}/correct", {"content": "The release matters to Cleo."})
        history = operator.get(f"/v1/memories/{right.json()['id']}/history").json()["items"]
        assert history[0]["actor"] == f"key:{operator.key_id}"
        assert operator.get(f"/v1/memories/{right.json()['id']}").json()["agent_id"] == "supervisor"


class TestKeys:
    """Nobody becomes an operator by making a key."""

    def test_a_bound_key_makes_no_operators_key(self, tenant: Tenant) -> None:
        wanted = {"scopes": [KeyScope.ADMIN, KeyScope.READ]}
        wide = tenant.caller("planner", act_for=["*"], scopes=EVERY)
        for asked_for in (wanted, wanted | {"act_for": ["*"]}):
            refused(wide.post("/v1/admin/keys", asked_for), 403, "agent_forbidden")
            assert tenant.caller(None, act_for=["*"], scopes=EVERY).post("/v1/admin/keys", asked_for).status_code == 201

    def test_a_key_of_no_agent_administers(self, tenant: Tenant) -> None:
        operator = tenant.caller(None, act_for=["*"], scopes=EVERY)
        refused(operator.post("/v1/admin/keys", {"scopes": [KeyScope.READ]}), 422, "invalid_request")

    def test_a_key_for_some_agents_names_one(self, tenant: Tenant) -> None:
        stocked(tenant)
        some = tenant.caller(None, act_for=["planner"], scopes=EVERY)
        refused(some.query("release"), 403, "agent_forbidden")
        assert words_in(some.query("release", agent="planner").text) == ["projects"]

    def test_without_the_scope_admin_it_names_one(self, tenant: Tenant) -> None:
        stocked(tenant)
        reader = tenant.caller(None, act_for=["*"], scopes=[KeyScope.READ])
        refused(reader.query("release"), 403, "agent_forbidden")
        assert words_in(reader.query("release", agent="planner").text) == ["projects"]
