"""What decisions and acknowledgements do, and that each does it once."""

import json
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from memplane.domain.identity.principal import KeyScope
from memplane.domain.memory.memory import new_id
from support.callers import THREAD, USER, Caller, Tenant, refused
from support.consenting import BERLIN, MUNICH, OSLO, PIANO, context, decide, lapse, listed, post, queue
from support.telling import events, texts


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """An agent."""
    return tenant.caller("supervisor")


@pytest.fixture
def reviewer(tenant: Tenant) -> Caller:
    """One who decides, with no more than that scope."""
    return tenant.caller("supervisor", scopes=[KeyScope.CONSENT])


class TestDecisions:
    """What approval and refusal do."""

    def test_an_approval_makes_a_confirmed_memory_and_a_field(self, caller: Caller, reviewer: Caller) -> None:
        said = caller.say("I live in Berlin.")
        proposal = said["extracted"][0]["id"]
        assert context(caller) == {}
        done = decide(reviewer, proposal)
        assert (done["outcome"], done["state"], done["id"]) == ("approved", "approved", proposal)
        memory = caller.get(f"/v1/memories/{done['memory_id']}").json()
        assert (memory["content"], memory["category"], memory["trust_state"]) == (BERLIN, "profile", "confirmed")
        assert (memory["source"], memory["source_ids"]) == ("user", [said["turn_id"]])
        assert memory["id"] in caller.found("Where does the user live?", categories=["profile"])
        (field,) = caller.get(f"/v1/users/{USER}/context").json()["items"]
        assert (field["field"], field["value"], field["decided"]) == ("city", "Berlin", "consent")
        assert (field["memory_id"], field["proposal_id"], field["evidence"]) == (
            memory["id"],
            proposal,
            said["turn_id"],
        )
        (entry,) = caller.get(f"/v1/memories/{memory['id']}/history").json()["items"]
        assert (entry["event"], entry["new_ref"], entry["actor"]) == ("CONSENT", BERLIN, "agent:supervisor")
        assert entry["policy_hash"].startswith("sha256:")
        assert (entry["meta"]["proposal"], entry["meta"]["evidence"]) == (proposal, [said["turn_id"]])
        assert f"+created: [Profile] {BERLIN}" in caller.get(f"/v1/threads/{THREAD}/delta", since=1).json()["header"]

    def test_the_next_approval_takes_the_place_of_the_last(self, caller: Caller, reviewer: Caller) -> None:
        first = decide(reviewer, queue(caller))["memory_id"]
        second = queue(caller, "Ana's home is in Munich.")
        assert [each["old_value"] for each in listed(reviewer, state="pending")] == ["Berlin"]
        done = decide(reviewer, second)
        assert done["overruled"] == [first]
        assert context(caller) == {"city": "Munich"}
        assert texts(caller) == {"Ana's home is in Munich."}
        assert events(caller, first) == ["SUPERSEDE", "CONSENT"]

    def test_a_refused_value_does_not_come_back_for_that_field(
        self, tenant: Tenant, caller: Caller, reviewer: Caller
    ) -> None:
        done = decide(reviewer, queue(caller), "reject", reason="never been there")
        assert (done["outcome"], done["memory_id"]) == ("rejected", None)
        for content in (BERLIN, "The user lives in B\u0435rlin!", "Ana has moved to BERLIN."):
            body = {"user_id": USER, "category": "profile", "content": content}
            refused(caller.post("/v1/memories", body), 409, "value_rejected")
        (drawn,) = caller.say("I live in Berlin.")["extracted"]
        assert (drawn["action"], drawn["id"]) == ("refused", None)
        (buried,) = tenant.rows("SELECT category, reason FROM tombstones WHERE tenant_id = %(tenant)s")
        assert (buried["category"], buried["reason"]) == ("field:city", "never been there")
        (told,) = tenant.rows("SELECT event, actor, policy_hash FROM history WHERE tenant_id = %(tenant)s")
        assert (told["event"], told["actor"]) == ("CONSENT", "agent:supervisor")
        queue(caller, MUNICH)  # the controls: another value, and another field
        queue(caller, "The user is called Berlin.")

    def test_a_rejected_memory_of_a_field_refuses_its_value_too(self, caller: Caller, reviewer: Caller) -> None:
        memory = decide(reviewer, queue(caller))["memory_id"]
        assert caller.post(f"/v1/memories/{memory}/reject", {}).status_code == 200
        assert context(caller) == {}
        body = {"user_id": USER, "category": "profile", "content": "Ana has moved to Berlin."}
        refused(caller.post("/v1/memories", body), 409, "value_rejected")
        queue(caller, MUNICH)

    @pytest.mark.parametrize("verb", ["approve", "reject"])
    def test_to_decide_twice_is_to_decide_once(
        self, tenant: Tenant, caller: Caller, reviewer: Caller, verb: str
    ) -> None:
        proposal = queue(caller)
        first = decide(reviewer, proposal, verb)
        before = tenant.count("memories", "history", "tombstones", "user_context")
        again = decide(reviewer, proposal, verb)
        assert (again["outcome"], again["state"], again["memory_id"]) == (
            "unchanged",
            first["state"],
            first["memory_id"],
        )
        other = "reject" if verb == "approve" else "approve"
        problem = refused(reviewer.post(f"/v1/consents/{proposal}/{other}", {}), 409, "already_decided")
        assert problem["state"] == first["state"]
        assert tenant.count("memories", "history", "tombstones", "user_context") == before

    @pytest.mark.parametrize("verb", ["approve", "reject"])
    def test_what_has_lapsed_applies_nothing(self, tenant: Tenant, caller: Caller, reviewer: Caller, verb: str) -> None:
        lapsed, open_one = queue(caller), queue(caller, MUNICH)
        lapse(tenant, lapsed)
        refused(reviewer.post(f"/v1/consents/{lapsed}/{verb}", {}), 409, "proposal_expired")
        assert tenant.count("memories", "tombstones", "user_context") == 0
        assert [each["id"] for each in listed(reviewer, state="expired")] == [lapsed]
        assert [each["id"] for each in listed(reviewer, state="pending")] == [open_one]
        decide(reviewer, open_one, verb)  # the control
        assert queue(caller) != lapsed  # said again, it is another proposal

    def test_an_old_proposal_without_its_words_can_be_decided(
        self, tenant: Tenant, caller: Caller, reviewer: Caller
    ) -> None:
        proposal = queue(caller, "The user is called Alex.")
        tenant.rows("UPDATE consent_proposals SET meta = '{}' WHERE tenant_id = %(tenant)s")
        memory = decide(reviewer, proposal)["memory_id"]
        assert caller.get(f"/v1/memories/{memory}").json()["content"] == "The user's preferred name is Alex."

    def test_each_of_several_is_named(self, tenant: Tenant, caller: Caller, reviewer: Caller) -> None:
        city, name, late = queue(caller), queue(caller, "The user is called Alex."), queue(caller, OSLO)
        lapse(tenant, late)
        absent = str(new_id())
        items = [{"id": city, "decision": "approve"}, {"id": name, "decision": "reject", "reason": "no"},
                 {"id": late, "decision": "approve"}, {"id": absent, "decision": "approve"}]  # fmt: skip
        answer = reviewer.post("/v1/consents/bulk", {"items": items})
        assert answer.status_code == 200, answer.text
        done = answer.json()["items"]
        assert [each["id"] for each in done] == [city, name, late, absent]
        assert [each["outcome"] for each in done] == ["approved", "rejected", "failed", "failed"]
        assert [each["code"] for each in done[2:]] == ["proposal_expired", "not_found"]
        assert context(caller) == {"city": "Berlin"}
        refused(reviewer.post("/v1/consents/bulk", {"items": items[:1] * 2}), 422, "invalid_request")
        refused(reviewer.post("/v1/consents/bulk", {"items": []}), 422, "invalid_request")
        refused(reviewer.post("/v1/consents/bulk", {"items": [{"id": city}]}), 422, "invalid_request")

    def test_of_two_values_in_one_request_the_later_one_stays(
        self, tenant: Tenant, caller: Caller, reviewer: Caller
    ) -> None:
        first, second = queue(caller), queue(caller, MUNICH)
        items = [{"id": each, "decision": "approve"} for each in (first, second)]
        done = reviewer.post("/v1/consents/bulk", {"items": items}).json()["items"]
        assert [each["outcome"] for each in done] == ["approved", "approved"]
        assert done[1]["overruled"] == [done[0]["memory_id"]]
        assert context(caller) == {"city": "Munich"}
        assert texts(caller) == {MUNICH}
        assert tenant.count("user_context") == 1

    @pytest.mark.parametrize("verdicts", [["approve"] * 8, ["reject"] * 8, ["approve", "reject"] * 4], ids=str)
    def test_of_many_who_decide_at_once_one_does(
        self, tenant: Tenant, caller: Caller, reviewer: Caller, verdicts: list[str]
    ) -> None:
        proposal = queue(caller)
        with ThreadPoolExecutor(8) as pool:
            sent = list(pool.map(lambda verb: reviewer.post(f"/v1/consents/{proposal}/{verb}", {}), verdicts))
        told = [(each.status_code, each.json().get("outcome") or each.json()["code"]) for each in sent]
        effects = [each for each in told if each in {(200, "approved"), (200, "rejected")}]
        assert len(effects) == 1, told
        assert set(told) - set(effects) <= {(200, "unchanged"), (409, "already_decided")}
        approved = effects[0][1] == "approved"
        assert tenant.count("memories") == tenant.count("user_context") == int(approved)
        assert tenant.count("tombstones") == int(not approved)
        assert tenant.count("history") == 1

    def test_two_values_at_once_leave_one(self, tenant: Tenant, caller: Caller, reviewer: Caller) -> None:
        proposals = [queue(caller, f"The user lives in {city}.") for city in ("Graz", "Linz", "Wels", "Bonn")]
        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda each: reviewer.post(f"/v1/consents/{each}/approve", {}), proposals))
        assert [each.status_code for each in done] == [200] * 4
        (row,) = tenant.rows("SELECT field_value FROM user_context WHERE tenant_id = %(tenant)s")
        active = "SELECT content FROM memories WHERE tenant_id = %(tenant)s AND state = 'active'"
        assert [each["content"] for each in tenant.rows(active)] == [f"The user lives in {row['field_value']}."]
        assert context(caller) == {"city": row["field_value"]}


class TestAcknowledgement:
    """What a user says in the chat counts as consent, when it is the user who says it, later and plainly."""

    def test_a_later_yes_of_the_user_approves(self, caller: Caller) -> None:
        proposal = caller.say("I live in Berlin.")["extracted"][0]["id"]
        caller.say("Shall I remember Berlin as your city?", role="assistant")
        turn = caller.say("Yes, please do.")["turn_id"]
        done = decide(caller, proposal, "ack", turn_id=turn)
        assert (done["outcome"], context(caller)) == ("approved", {"city": "Berlin"})
        (entry,) = caller.get(f"/v1/memories/{done['memory_id']}/history").json()["items"]
        assert entry["meta"]["acknowledged_by"] == turn
        assert turn in caller.get(f"/v1/memories/{done['memory_id']}").json()["source_ids"]
        assert decide(caller, proposal, "ack", turn_id=turn)["outcome"] == "unchanged"

    def test_what_is_no_acknowledgement(self, tenant: Tenant, caller: Caller) -> None:
        before = caller.say("Yes.")["turn_id"]
        said = caller.say("I live in Berlin.")
        proposal, path = said["extracted"][0]["id"], f"/v1/consents/{said['extracted'][0]['id']}/ack"
        others = {
            "before": before,
            "the evidence itself": said["turn_id"],
            "the assistant": caller.say("Yes.", role="assistant")["turn_id"],
            "no agreement": caller.say("No, I do not want that.")["turn_id"],
            "another value": caller.say("Yes, Munich.")["turn_id"],
            "an old message": caller.say("Yes.", event_time="2020-01-01T00:00:00Z")["turn_id"],
        }
        for why, turn in others.items():
            assert refused(caller.post(path, {"turn_id": turn}), 422, "not_an_agreement"), why
        foreign = caller.say("Yes.", user_id="ben")["turn_id"]
        problems = [
            refused(caller.post(path, {"turn_id": each}), 404, "not_found") for each in (foreign, str(new_id()))
        ]
        assert problems[0] == problems[1]
        memory = post(caller, PIANO)["id"]
        refused(caller.post(path, {"turn_id": memory}), 404, "not_found")
        assert tenant.count("user_context") == 0
        yes = caller.say("Yes, Berlin.")["turn_id"]
        assert decide(caller, proposal, "ack", turn_id=yes)["outcome"] == "approved"  # the control

    def test_one_who_is_trusted_less_cannot_acknowledge(self, tenant: Tenant, caller: Caller) -> None:
        proposal = caller.say("I live in Berlin.")["extracted"][0]["id"]
        turn = caller.say("Yes.")["turn_id"]
        inner = tenant.caller("supervisor", trust="inner")
        refused(inner.post(f"/v1/consents/{proposal}/ack", {"turn_id": turn}), 403, "trust_too_low")
        assert decide(caller, proposal, "ack", turn_id=turn)["outcome"] == "approved"

    def test_a_lapsed_proposal_is_not_acknowledged(self, tenant: Tenant, caller: Caller) -> None:
        proposal = caller.say("I live in Berlin.")["extracted"][0]["id"]
        turn = caller.say("Yes.")["turn_id"]
        lapse(tenant, proposal)
        refused(caller.post(f"/v1/consents/{proposal}/ack", {"turn_id": turn}), 409, "proposal_expired")

    def test_a_bare_yes_agrees_only_to_what_was_asked_last(self, caller: Caller) -> None:
        city = caller.say("I live in Berlin.")["extracted"][0]["id"]
        name = caller.say("Please call me Alex.")["extracted"][0]["id"]
        bare = caller.say("Yes, please do.")["turn_id"]
        refused(caller.post(f"/v1/consents/{city}/ack", {"turn_id": bare}), 422, "not_an_agreement")
        assert context(caller) == {}
        named = caller.say("Yes, call me Alex.")["turn_id"]
        assert decide(caller, name, "ack", turn_id=named)["outcome"] == "approved"  # the control: it is said
        # what was asked later when it was said still was then
        refused(caller.post(f"/v1/consents/{city}/ack", {"turn_id": bare}), 422, "not_an_agreement")
        late = caller.say("Yes, please do.")["turn_id"]
        assert decide(caller, city, "ack", turn_id=late)["outcome"] == "approved"  # the control: it waits alone
        assert context(caller) == {"city": "Berlin", "preferred_name": "Alex"}

    def test_what_waits_for_others_makes_no_yes_doubtful(self, tenant: Tenant, caller: Caller) -> None:
        proposal = caller.say("I live in Berlin.")["extracted"][0]["id"]
        queue(caller, "The user is called Sam.", user_id="ben")
        lapse(tenant, queue(caller, "The user is called Alex."))
        queue(tenant.caller("supervisor", trust="inner"))  # another writer's, for the same value
        turn = caller.say("Yes.")["turn_id"]
        queue(caller, "The user is called Kim.")  # later than the yes
        assert decide(caller, proposal, "ack", turn_id=turn)["outcome"] == "approved"

    def test_one_turn_agrees_to_one_proposal(self, caller: Caller) -> None:
        city, name = queue(caller), queue(caller, "The user is called Berlin.")
        turn = caller.say("Yes, Berlin.")["turn_id"]
        assert decide(caller, city, "ack", turn_id=turn)["outcome"] == "approved"
        refused(caller.post(f"/v1/consents/{name}/ack", {"turn_id": turn}), 422, "not_an_agreement")
        assert context(caller) == {"city": "Berlin"}
        assert decide(caller, city, "ack", turn_id=turn)["outcome"] == "unchanged"
        other = caller.say("Yes, Berlin.")["turn_id"]
        assert decide(caller, name, "ack", turn_id=other)["outcome"] == "approved"  # the control

    def test_of_proposals_that_a_turn_is_sent_for_at_once_one_is_approved(self, tenant: Tenant, caller: Caller) -> None:
        proposals = [queue(caller), queue(caller, "The user is called Berlin.")]
        turn = caller.say("Yes, Berlin.")["turn_id"]
        with ThreadPoolExecutor(2) as pool:
            sent = list(pool.map(lambda each: caller.post(f"/v1/consents/{each}/ack", {"turn_id": turn}), proposals))
        assert sorted(each.status_code for each in sent) == [200, 422]
        assert tenant.count("user_context") == 1


class TestSince:
    """What became of things between a proposal and its approval."""

    def test_an_approval_changes_no_other_field(self, caller: Caller, reviewer: Caller) -> None:
        decide(reviewer, queue(caller))
        both = queue(caller, f"The user is called Alex. {BERLIN}")  # says again what holds, so that it can wait
        decide(reviewer, queue(caller, MUNICH))
        refused(reviewer.post(f"/v1/consents/{both}/approve", {}), 409, "proposal_outdated")
        assert context(caller) == {"city": "Munich"}
        assert MUNICH in texts(caller)
        (waiting,) = listed(reviewer, state="pending")
        assert waiting["id"] == both
        bulk = reviewer.post("/v1/consents/bulk", {"items": [{"id": both, "decision": "approve"}]}).json()["items"]
        assert [each["code"] for each in bulk] == ["proposal_outdated"]
        said_now = queue(caller, f"The user is called Kim. {MUNICH}")
        assert decide(reviewer, said_now)["outcome"] == "approved"  # the control: it says what holds
        assert context(caller) == {"city": "Munich", "preferred_name": "Kim"}
        assert decide(reviewer, both, "reject")["outcome"] == "rejected"

    def test_nor_one_whose_memory_is_gone(self, caller: Caller, reviewer: Caller) -> None:
        city = decide(reviewer, queue(caller))["memory_id"]
        both = queue(caller, f"The user is called Alex. {BERLIN}")
        assert caller.delete(f"/v1/memories/{city}").status_code == 200
        refused(reviewer.post(f"/v1/consents/{both}/approve", {}), 409, "proposal_outdated")
        assert context(caller) == {}
        assert caller.post(f"/v1/memories/{city}/restore", {}).json()["outcome"] == "restored"
        assert decide(reviewer, both)["outcome"] == "approved"  # the control: it holds again

    def test_a_value_whose_memory_has_expired_holds_anew(
        self, tenant: Tenant, caller: Caller, reviewer: Caller
    ) -> None:
        first = decide(reviewer, queue(caller))["memory_id"]
        tenant.expire(first)
        assert context(caller) == {}
        again = decide(reviewer, queue(caller))
        assert context(caller) == {"city": "Berlin"}
        assert again["memory_id"] != first
        assert texts(caller, categories=["profile"]) == {BERLIN}

    def test_a_value_that_is_true_no_longer_holds_anew(self, tenant: Tenant, caller: Caller, reviewer: Caller) -> None:
        first = decide(reviewer, queue(caller))["memory_id"]
        past = "2024-01-01T00:00:00.000000+00:00"
        tenant.rows("UPDATE memories SET valid_until = %(past)s WHERE id = %(id)s", past=past, id=UUID(first))
        assert context(caller) == {}
        again = decide(reviewer, queue(caller))
        assert context(caller) == {"city": "Berlin"}
        assert events(caller, first)[0] == "RETRACT"
        assert again["memory_id"] != first

    def test_an_end_that_has_passed_meanwhile_is_none(self, tenant: Tenant, caller: Caller, reviewer: Caller) -> None:
        ends = {"expires_at": "2120-01-01T00:00:00Z", "valid_until": "2120-01-01T00:00:00Z"}
        lasting, proposal = queue(caller, "The user is called Alex.", **ends), queue(caller, **ends)
        written = tenant.rows("SELECT meta FROM consent_proposals WHERE id = %(id)s", id=UUID(proposal))[0]["meta"]
        meta = (
            json.dumps(written).replace("2120-", "2020-")
            if isinstance(written, dict)
            else written.replace("2120-", "2020-")
        )
        tenant.rows("UPDATE consent_proposals SET meta = %(meta)s WHERE id = %(id)s", meta=meta, id=UUID(proposal))
        for each in (lasting, proposal):
            decide(reviewer, each)
        assert context(caller) == {"city": "Berlin", "preferred_name": "Alex"}
        found = {item["field"]: item["memory_id"] for item in caller.get(f"/v1/users/{USER}/context").json()["items"]}
        kept = {name: caller.get(f"/v1/memories/{each}").json()["valid_until"] for name, each in found.items()}
        assert (kept["city"], kept["preferred_name"] is None) == (None, False)
