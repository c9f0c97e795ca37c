"""Values that are refused: who sees the verdicts, who lifts them, and what that brings back."""

import json

import pytest

from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.capabilities import Capability
from support.access_matrix import ACCESS, Access, routes
from support.callers import THREAD, USER, Caller, Json, Tenant, refused
from support.consenting import BERLIN, REVIEW, decide, listed, queue
from support.telling import events, say, texts, write

LIST = "/v1/tombstones"
PIANO = "The user owns a piano."
LIKE = "THE user  owns a Piano"
OTHER = "ben"


@pytest.fixture
def reviewer(tenant: Tenant) -> Caller:
    """A person who may decide, and acts for every agent."""
    return tenant.caller("supervisor", act_for=["*"], scopes=REVIEW)


def verdicts(caller: Caller, **params: object) -> list[Json]:
    response = caller.get(LIST, **params)
    assert response.status_code == 200, response.text
    return list(response.json()["items"])


def lift(caller: Caller, verdict: str, **body: object) -> Json:
    response = caller.post(f"{LIST}/{verdict}/lift", body)
    assert response.status_code == 200, response.text
    return dict(response.json())


def rejected(caller: Caller, content: str = PIANO, category: str = "event", **fields: object) -> str:
    """A rejected memory."""
    memory = str(write(caller, content, category, **fields)["id"])
    say(caller, memory, "reject", reason="never owned one")
    return memory


class TestList:
    """What is shown of a verdict."""

    def test_who_rejected_what_where_when_and_why(self, caller: Caller, reviewer: Caller) -> None:
        memory = rejected(caller)
        (found,) = verdicts(reviewer)
        shown = {name: found[name] for name in ("user_id", "categories", "fields", "turns", "reason", "actor")}
        assert shown == {
            "user_id": USER, "categories": ["event"], "fields": [], "turns": False, "reason": "never owned one",
            "actor": "agent:supervisor",
        }  # fmt: skip
        assert (found["memory_id"], found["words"], found["subject"]) == (memory, PIANO, None)
        assert found["values"] >= 1
        assert found["rejected_at"].endswith("Z")

    def test_a_refused_proposal_and_a_deleted_turn_are_there_too(self, caller: Caller, reviewer: Caller) -> None:
        decide(reviewer, queue(caller), "reject", reason="moved away")
        turn = caller.say("The sea was rough on Sunday.", external_id="m-1")["turn_id"]
        assert caller.delete(f"/v1/turns/{turn}").status_code == 200
        memory = write(caller, PIANO)["id"]
        assert caller.send("DELETE", f"/v1/memories/{memory}", params={"tombstone": "true"}).status_code == 200
        found = {each["reason"] + str(each["turns"]): each for each in verdicts(reviewer)}
        assert found.keys() == {"moved awayFalse", "deletedTrue", "deletedFalse"}
        proposal = found["moved awayFalse"]
        assert (proposal["fields"], proposal["categories"], proposal["words"]) == (["city"], [], "Berlin")
        assert found["deletedFalse"]["memory_id"] == memory
        assert found["deletedTrue"]["words"] is None

    def test_the_words_are_gone_with_the_memory_and_the_verdict_is_not(
        self, caller: Caller, reviewer: Caller, admin: Caller
    ) -> None:
        memory = rejected(caller)
        assert admin.post("/v1/admin/purge", {"memory_id": memory, "early": True}).status_code == 200
        (found,) = verdicts(reviewer)
        assert (found["memory_id"], found["words"], found["categories"]) == (None, None, ["event"])

    def test_pages_are_newest_first_and_by_user(self, caller: Caller, reviewer: Caller) -> None:
        owned = [rejected(caller, f"The user owns a {word}.") for word in ("piano", "boat", "horse")]
        other = rejected(caller, user_id=OTHER)
        seen: list[str] = []
        cursor: str | None = None
        for _ in range(4):
            page = reviewer.get(LIST, limit=1, **({"cursor": cursor} if cursor else {})).json()
            seen += [each["memory_id"] for each in page["items"]]
            cursor = page["next"]
        assert (seen, cursor) == ([other, *reversed(owned)], None)
        assert [each["memory_id"] for each in verdicts(reviewer, user_id=OTHER)] == [other]

    def test_values_of_erased_users_are_hashes(self, caller: Caller, reviewer: Caller, admin: Caller) -> None:
        write(caller, PIANO)
        write(caller, PIANO, user_id=OTHER)
        receipt = admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).json()
        found = verdicts(admin, user_id=USER, erased=True)
        assert {(each["user_id"], each["subject"], each["words"]) for each in found} == {
            (None, receipt["subject"], None)
        }
        assert {each["reason"] for each in found} == {"erased"}
        assert verdicts(admin, user_id=OTHER, erased=True) == []
        assert verdicts(reviewer) == []  # the control: nobody rejected anything


class TestLift:
    """A verdict is taken back as a whole."""

    def test_its_values_can_be_stored_again_in_every_spelling(self, caller: Caller, reviewer: Caller) -> None:
        memory = rejected(caller)
        body = {"user_id": USER, "category": "event", "content": LIKE}
        refused(caller.post("/v1/memories", body), 409, "value_rejected")  # the control
        (verdict,) = verdicts(reviewer)
        done = lift(reviewer, verdict["id"], reason="it was mine")
        assert (done["outcome"], done["memories"]) == ("lifted", [memory])
        assert done["values"] == verdict["values"]
        assert verdicts(reviewer) == []
        assert write(caller, LIKE)["outcome"] == "created"
        assert texts(caller, filters={"user_id": USER}) == {" ".join(LIKE.split()) + "."}

    def test_the_rejected_memory_itself_can_be_restored(self, caller: Caller, reviewer: Caller) -> None:
        memory = rejected(caller)
        refused(caller.post(f"/v1/memories/{memory}/restore", {}), 409, "value_rejected")  # the control
        lift(reviewer, verdicts(reviewer)[0]["id"])
        assert texts(caller, filters={"user_id": USER}) == set()  # it stays deleted until then
        assert say(caller, memory, "restore")["outcome"] == "restored"
        assert texts(caller, filters={"user_id": USER}) == {PIANO}
        assert events(caller, memory) == ["RESTORE", "LIFT", "REJECT", "ADD"]

    def test_other_verdicts_stay(self, caller: Caller, reviewer: Caller) -> None:
        rejected(caller, "The user owns a boat.")
        rejected(caller)
        (newest, _) = verdicts(reviewer)
        lift(reviewer, newest["id"])
        body = {"user_id": USER, "category": "event", "content": "The user owns a boat."}
        refused(caller.post("/v1/memories", body), 409, "value_rejected")
        assert write(caller, PIANO)["outcome"] == "created"  # the control

    def test_a_refused_value_of_a_field_can_be_proposed_again(self, caller: Caller, reviewer: Caller) -> None:
        decide(reviewer, queue(caller), "reject")
        body = {"user_id": USER, "category": "tasks", "content": BERLIN}
        refused(caller.post("/v1/memories", body), 409, "value_rejected")  # the control: in every category
        lift(reviewer, verdicts(reviewer)[0]["id"])
        assert decide(reviewer, queue(caller))["outcome"] == "approved"

    def test_a_verdict_on_a_memory_of_a_field_is_lifted_for_the_field_too(
        self, caller: Caller, reviewer: Caller
    ) -> None:
        memory = decide(reviewer, queue(caller))["memory_id"]
        say(caller, memory, "reject")
        (verdict,) = verdicts(reviewer)
        assert (verdict["categories"], verdict["fields"]) == (["profile"], ["city"])
        lift(reviewer, verdict["id"])
        assert decide(reviewer, queue(caller))["outcome"] == "approved"

    def test_a_deleted_turn_may_come_back_under_its_name(self, caller: Caller, reviewer: Caller) -> None:
        turn = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": "Hello there.", "external_id": "m-1"}
        made = caller.post("/v1/turns", turn).json()["turn_id"]
        caller.delete(f"/v1/turns/{made}")
        refused(caller.post("/v1/turns", turn), 409, "value_rejected")  # the control
        lift(reviewer, verdicts(reviewer)[0]["id"])
        assert caller.post("/v1/turns", turn).status_code == 201

    def test_an_erased_value_is_lifted_one_by_one(self, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO)
        admin.post(f"/v1/users/{USER}/erase", {"confirm": USER})
        line = json.dumps({"record": "memory", "category": "event", "content": PIANO})
        asked = {"mode": "add", "lines": [line]}
        done = caller.post(f"/v1/users/{USER}/import", asked).json()
        assert done["refused"][0]["code"] == "value_rejected"  # the control
        for each in verdicts(admin, erased=True):
            assert lift(admin, each["id"])["values"] == 1
        assert caller.post(f"/v1/users/{USER}/import", asked).json()["outcomes"] == ["created"]

    def test_twice_is_unchanged_and_the_same_request_is_answered_as_before(
        self, caller: Caller, reviewer: Caller
    ) -> None:
        rejected(caller)
        (verdict,) = verdicts(reviewer)
        path, send = f"{LIST}/{verdict['id']}/lift", {"json": {}, "headers": {"Idempotency-Key": "l-1"}}
        first = reviewer.send("POST", path, **send)
        again = reviewer.send("POST", path, **send)
        assert (again.json(), again.headers["Idempotency-Replayed"]) == (first.json(), "true")
        assert lift(reviewer, verdict["id"])["outcome"] == "unchanged"
        refused(reviewer.post(f"{LIST}/{memory_id()}/lift", {}), 404, "not_found")

    def test_a_revert_of_who_lifted_it_takes_it_back(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        memory = rejected(caller)
        thief = tenant.caller("supervisor", act_for=["*"], scopes=REVIEW)
        lift(thief, verdicts(thief)[0]["id"])
        done = admin.post("/v1/admin/revert", {"key_id": thief.key_id, "since": "2020-01-01T00:00:00Z"}).json()
        assert done["reverted"]["tombstones_restored"] >= 1
        body = {"user_id": USER, "category": "event", "content": PIANO}
        refused(caller.post("/v1/memories", body), 409, "value_rejected")
        refused(caller.post(f"/v1/memories/{memory}/restore", {}), 409, "value_rejected")

    def test_an_exported_verdict_is_one_where_it_is_restored(
        self, caller: Caller, reviewer: Caller, admin: Caller
    ) -> None:
        rejected(caller)
        lines = admin.get(f"/v1/users/{USER}/export").text.splitlines()
        assert sum('"tombstone"' in each for each in lines) >= 1
        admin.post(f"/v1/users/{OTHER}/import", {"mode": "restore", "lines": lines})
        (copy,) = verdicts(reviewer, user_id=OTHER)
        assert (copy["categories"], copy["reason"]) == (["event"], "never owned one")
        lift(reviewer, copy["id"])
        assert write(caller, PIANO, user_id=OTHER)["outcome"] == "created"


class TestAccess:
    """Fully trusted persons alone, within what they reach."""

    def test_a_less_trusted_key_is_refused(self, tenant: Tenant, caller: Caller, reviewer: Caller) -> None:
        rejected(caller)
        (verdict,) = verdicts(reviewer)
        inner = tenant.caller("supervisor", trust="inner", scopes=REVIEW)
        refused(inner.get(LIST), 403, "trust_too_low")
        refused(inner.post(f"{LIST}/{verdict['id']}/lift", {}), 403, "trust_too_low")
        refused(caller.get(LIST), 403, "scope_forbidden")
        refused(caller.post(f"{LIST}/{verdict['id']}/lift", {}), 403, "scope_forbidden")
        assert lift(reviewer, verdict["id"])["outcome"] == "lifted"  # the control

    def test_only_within_the_agent_s_categories(self, tenant: Tenant, caller: Caller, reviewer: Caller) -> None:
        rejected(caller)
        (verdict,) = verdicts(reviewer)
        stylist = tenant.caller("stylist", scopes=REVIEW)
        assert verdicts(stylist) == []
        refused(stylist.post(f"{LIST}/{verdict['id']}/lift", {}), 404, "not_found")
        lift(reviewer, verdict["id"])
        refused(stylist.post(f"{LIST}/{verdict['id']}/lift", {}), 404, "not_found")  # nor that it was there
        own = rejected(tenant.caller("stylist"), "The user likes short answers.", "style")
        assert [each["memory_id"] for each in verdicts(stylist)] == [own]  # the control

    def test_a_verdict_that_reaches_further_is_not_there(
        self, tenant: Tenant, caller: Caller, reviewer: Caller
    ) -> None:
        memory = decide(reviewer, queue(caller))["memory_id"]
        say(caller, memory, "reject")
        planner = tenant.caller("planner", scopes=REVIEW)
        (verdict,) = verdicts(reviewer)
        assert verdicts(planner) == []
        refused(planner.post(f"{LIST}/{verdict['id']}/lift", {}), 404, "not_found")

    def test_only_the_key_s_users(self, tenant: Tenant, caller: Caller, reviewer: Caller) -> None:
        rejected(caller)
        own = rejected(caller, user_id=OTHER)
        bound = tenant.caller("supervisor", users=[OTHER], act_for=["*"], scopes=REVIEW)
        assert [each["memory_id"] for each in verdicts(bound)] == [own]
        foreign = next(each for each in verdicts(reviewer) if each["user_id"] == USER)
        refused(bound.get(LIST, user_id=USER), 403, "user_forbidden")
        refused(bound.get(LIST, erased=True), 403, "user_forbidden")
        refused(bound.post(f"{LIST}/{foreign['id']}/lift", {}), 404, "not_found")
        assert lift(bound, verdicts(bound)[0]["id"])["outcome"] == "lifted"  # the control
        assert len(verdicts(reviewer)) == 1

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    def test_another_tenant_s_are_absent(self, other_tenant: Tenant, caller: Caller, reviewer: Caller) -> None:
        rejected(caller)
        (verdict,) = verdicts(reviewer)
        stranger = other_tenant.caller("supervisor", act_for=["*"], scopes=tuple(KeyScope))
        assert verdicts(stranger) == []
        refused(stranger.post(f"{LIST}/{verdict['id']}/lift", {}), 404, "not_found")
        assert lift(reviewer, verdict["id"])["outcome"] == "lifted"  # the control

    def test_an_operator_s_key_needs_no_agent(self, caller: Caller, admin: Caller) -> None:
        rejected(caller)
        (verdict,) = verdicts(admin)
        assert lift(admin, verdict["id"])["outcome"] == "lifted"

    def test_each_route_is_tried_here(self) -> None:
        assert {str(each) for each in routes(verdicts=True)} == {f"GET {LIST}", f"POST {LIST}/{{tombstone_id}}/lift"}
        assert all(isinstance(each, Access) for each in ACCESS)


def memory_id() -> str:
    """An id that nobody has."""
    return "01a1ff17-b5e4-727e-b6d5-dfbc32519911"


def test_what_waits_is_not_a_tombstone(caller: Caller, reviewer: Caller) -> None:
    queue(caller)
    assert verdicts(reviewer) == []
    assert len(listed(reviewer)) == 1
