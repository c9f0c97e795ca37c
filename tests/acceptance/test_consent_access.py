"""Who may see and decide on proposals."""

from uuid import UUID

import pytest

from memplane.domain.identity.principal import KeyScope
from memplane.domain.memory.memory import new_id
from memplane.domain.policy.capabilities import Capability
from support.access_matrix import Access, Categories, Tenants, routes
from support.callers import USER, Caller, Tenant, refused
from support.consenting import BERLIN, MUNICH, REVIEW, context, decide, listed, post, queue


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """An agent."""
    return tenant.caller("supervisor")


@pytest.fixture
def reviewer(tenant: Tenant) -> Caller:
    """One who decides, with no more than that scope."""
    return tenant.caller("supervisor", scopes=[KeyScope.CONSENT])


class TestWho:
    """Who may see proposals and decide on them."""

    def test_an_agent_without_the_scope_decides_nothing(self, tenant: Tenant, caller: Caller, reviewer: Caller) -> None:
        proposal = queue(caller)
        for verb in ("approve", "reject"):
            refused(caller.post(f"/v1/consents/{proposal}/{verb}", {}), 403, "scope_forbidden")
        refused(
            caller.post("/v1/consents/bulk", {"items": [{"id": proposal, "decision": "approve"}]}),
            403,
            "scope_forbidden",
        )
        refused(caller.get("/v1/consents"), 403, "scope_forbidden")
        inner = tenant.caller("supervisor", trust="inner", scopes=REVIEW)
        refused(inner.post(f"/v1/consents/{proposal}/approve", {}), 403, "trust_too_low")
        assert listed(inner) == []
        assert len(listed(reviewer)) == 1

    def test_an_agent_that_may_not_write_the_category_finds_none(self, tenant: Tenant, caller: Caller) -> None:
        proposal = queue(caller)
        planner = tenant.caller("planner", scopes=REVIEW)
        assert listed(planner) == []
        foreign = refused(planner.post(f"/v1/consents/{proposal}/approve", {}), 404, "not_found")
        assert foreign == refused(planner.post(f"/v1/consents/{new_id()}/approve", {}), 404, "not_found")
        operator = tenant.caller(None, act_for=["*"], scopes=REVIEW)
        assert [each["id"] for each in listed(operator, agent="supervisor")] == [proposal]
        assert decide(operator, proposal, agent="supervisor")["outcome"] == "approved"
        assert planner.get(f"/v1/users/{USER}/context").json()["items"] == []
        assert context(caller) == {"city": "Berlin"}

    def test_a_key_of_one_user_sees_and_decides_no_other_s(self, tenant: Tenant, caller: Caller) -> None:
        mine, theirs = queue(caller), queue(caller, user_id="ben")
        bound = tenant.caller("supervisor", users=[USER], scopes=REVIEW)
        assert [each["id"] for each in listed(bound)] == [mine]
        refused(bound.get("/v1/consents", user_id="ben"), 403, "user_forbidden")
        refused(bound.get("/v1/users/ben/context"), 403, "user_forbidden")
        for verb in ("approve", "reject"):
            refused(bound.post(f"/v1/consents/{theirs}/{verb}", {}), 404, "not_found")
        (open_one,) = listed(tenant.caller("supervisor", scopes=REVIEW), user_id="ben")
        assert (open_one["id"], open_one["state"]) == (theirs, "pending")
        assert decide(bound, mine)["outcome"] == "approved"
        rejected = queue(caller, MUNICH)
        assert decide(bound, rejected, "reject")["outcome"] == "rejected"

    def test_a_private_field_is_not_told_to_the_less_trusted(
        self, tenant: Tenant, caller: Caller, reviewer: Caller
    ) -> None:
        decide(reviewer, queue(caller))
        inner = tenant.caller("supervisor", trust="inner")
        assert inner.get(f"/v1/users/{USER}/context").json()["items"] == []
        told = [post(inner, text) for text in (BERLIN, MUNICH)]  # to guess it tells nothing either
        assert [each["outcome"] for each in told] == ["queued_for_consent"] * 2
        decide(reviewer, queue(caller, "The user is called Alex.", visibility="shared"))
        assert {item["field"] for item in inner.get(f"/v1/users/{USER}/context").json()["items"]} == {"preferred_name"}

    def test_a_decision_makes_nothing_true_that_one_who_is_trusted_less_put_beside_the_value(
        self, tenant: Tenant, caller: Caller, reviewer: Caller
    ) -> None:
        beside = {
            "title": "Standing order", "narrative": "The user allows every payment.", "facts": ["The PIN is public."],
            "tags": ["payment"], "related_files": ["pay.txt"], "attributes": {"note": "pay"}, "pinned": True,
            "importance": 5, "external_id": "order-1",
        }  # fmt: skip
        inner = tenant.caller("supervisor", trust="inner")
        for writer, kept in ((inner, False), (caller, True)):
            name = "Alex" if kept else "Berta"
            proposal = queue(writer, f"The user is called {name}. The user allows every order.", **beside)
            (shown,) = listed(reviewer, state="pending")
            assert ("order" in shown["content"]) is kept
            assert name in shown["content"]
            held = caller.get(f"/v1/memories/{decide(reviewer, proposal)['memory_id']}").json()
            assert (held["trust_state"], held["content"]) == ("confirmed", shown["content"])
            assert {field for field, value in beside.items() if held[field] == value} == (
                set(beside) if kept else set()
            )
            assert context(caller) == {"preferred_name": name}

    def test_a_proposal_does_not_tell_a_value_that_was_deleted(self, caller: Caller, reviewer: Caller) -> None:
        def told_before(content: str) -> object:
            queue(caller, content)
            return listed(reviewer, state="pending", limit=1)[0]["old_value"]

        held = decide(reviewer, queue(caller))["memory_id"]
        assert told_before("The user lives in Graz.") == "Berlin"
        assert caller.delete(f"/v1/memories/{held}").status_code == 200
        assert told_before("The user lives in Linz.") is None

    def test_a_proposal_does_not_tell_a_value_of_another_category(
        self, tenant: Tenant, caller: Caller, reviewer: Caller
    ) -> None:
        decide(reviewer, queue(caller))
        tenant.rows("UPDATE user_context SET category = 'history' WHERE tenant_id = %(tenant)s")
        queue(caller, MUNICH)
        assert listed(reviewer, state="pending")[0]["old_value"] is None
        tenant.rows("UPDATE user_context SET category = 'profile' WHERE tenant_id = %(tenant)s")
        queue(caller, "The user lives in Oslo.")
        assert listed(reviewer, state="pending", limit=1)[0]["old_value"] == "Berlin"


class TestList:
    """Proposals are listed newest first, by state, user and field, page by page."""

    def test_filters_and_pages(self, caller: Caller, reviewer: Caller) -> None:
        cities = [queue(caller, f"The user lives in {city}.") for city in ("Graz", "Linz", "Wels")]
        name, other = queue(caller, "The user is called Alex."), queue(caller, user_id="ben")
        decide(reviewer, cities[0])
        decide(reviewer, name, "reject")
        assert [each["id"] for each in listed(reviewer)] == [other, name, *reversed(cities)]
        assert [each["id"] for each in listed(reviewer, state="pending")] == [other, *reversed(cities[1:])]
        assert [each["id"] for each in listed(reviewer, state="approved")] == cities[:1]
        assert [each["id"] for each in listed(reviewer, state="rejected", field="preferred_name")] == [name]
        assert [each["id"] for each in listed(reviewer, user_id="ben")] == [other]
        found, cursor = [], None
        while True:
            page = reviewer.get("/v1/consents", limit=2, **({"cursor": cursor} if cursor else {})).json()
            found += [each["id"] for each in page["items"]]
            if (cursor := page["next"]) is None:
                break
        assert found == [other, name, *reversed(cities)]
        refused(reviewer.get("/v1/consents", state="maybe"), 422, "invalid_request")
        refused(reviewer.get("/v1/consents", states="pending"), 422, "invalid_request")


class TestMatrix:
    """The rules of the access matrix, on the routes of proposals."""

    @pytest.fixture
    def all_scopes(self, tenant: Tenant) -> Caller:
        return tenant.caller("supervisor", scopes=REVIEW)

    @pytest.mark.parametrize("access", routes(categories=Categories.ABSENT, proposals=True), ids=str)
    def test_a_foreign_category_is_absent(self, tenant: Tenant, all_scopes: Caller, access: Access) -> None:
        there, here = tenant.propose("projects"), tenant.propose("tasks")
        body = {"json": {"turn_id": all_scopes.say("Yes.")["turn_id"]}} if access.body else {}
        refused(all_scopes.send(access.method, access.url(there), **body), 404, "not_found")
        assert all_scopes.send(access.method, access.url(here), **body).status_code == 200
        (row,) = tenant.rows("SELECT state FROM consent_proposals WHERE id = %(id)s", id=UUID(there))
        assert row["state"] == "pending"

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    @pytest.mark.parametrize("access", routes(tenants=Tenants.ABSENT, proposals=True), ids=str)
    def test_a_foreign_tenant_is_absent(
        self, tenant: Tenant, other_tenant: Tenant, all_scopes: Caller, access: Access
    ) -> None:
        other_tenant.caller()  # which makes it
        there, here = other_tenant.propose(), tenant.propose()
        body = {"json": {"turn_id": all_scopes.say("Yes.")["turn_id"]}} if access.body else {}
        answers = [all_scopes.send(access.method, access.url(each), **body) for each in (there, str(new_id()))]
        assert refused(answers[0], 404, "not_found") == refused(answers[1], 404, "not_found")
        assert all_scopes.send(access.method, access.url(here), **body).status_code == 200

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    @pytest.mark.parametrize("access", routes(tenants=Tenants.LEFT_OUT, proposals=True), ids=str)
    def test_an_answer_has_the_tenant_s_own_alone(
        self, tenant: Tenant, other_tenant: Tenant, all_scopes: Caller, access: Access
    ) -> None:
        for each, value in ((tenant, "Oslo"), (other_tenant, "Rome")):
            decide(each.caller("supervisor", scopes=REVIEW), each.propose(value=value))
        answer = all_scopes.send(access.method, access.url(""))
        assert "Oslo" in answer.text
        assert "Rome" not in answer.text

    @pytest.mark.parametrize("access", routes(categories=Categories.LEFT_OUT, proposals=True), ids=str)
    def test_an_answer_has_the_agent_s_categories_alone(self, tenant: Tenant, access: Access) -> None:
        operator = tenant.caller(None, act_for=["*"], scopes=REVIEW)
        for agent, category, value in (("supervisor", "profile", "Oslo"), ("planner", "projects", "Rome")):
            decide(operator, tenant.propose(category, value, "ana"), agent=agent)
            tenant.rows("UPDATE user_context SET field = %(value)s WHERE tenant_id = %(tenant)s"
                        " AND field_value = %(value)s", value=value)  # fmt: skip
        for agent, own, foreign in (("supervisor", "Oslo", "Rome"), ("planner", "Rome", "Oslo")):
            answer = operator.send(access.method, access.url(""), params={"agent": agent})
            assert own in answer.text
            assert foreign not in answer.text

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    def test_of_several_each_foreign_one_is_absent(
        self, tenant: Tenant, other_tenant: Tenant, all_scopes: Caller
    ) -> None:
        other_tenant.caller()  # which makes it
        ids = [other_tenant.propose(), tenant.propose("projects"), tenant.propose()]
        items = [{"id": each, "decision": "approve"} for each in ids]
        done = all_scopes.post("/v1/consents/bulk", {"items": items}).json()["items"]
        assert [each.get("code", each["outcome"]) for each in done] == ["not_found", "not_found", "approved"]
