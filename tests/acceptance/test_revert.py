"""What one key or agent did is taken back: what it wrote goes, what it ended comes back, what others did stays."""

from datetime import UTC, datetime
from typing import Any

import pytest

from memplane.adapters.postgres.session import PostgresSession
from memplane.adapters.sqlite.session import SqliteSession
from memplane.application.reverts import revert_service
from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.capabilities import Capability
from support.callers import SUPERVISING, THREAD, USER, Caller, Json, Tenant, refused
from support.consenting import context, decide, listed, queue
from support.telling import events, say, texts, write

EVERYTHING = (*SUPERVISING, KeyScope.CONSENT, KeyScope.ADMIN)
LONG_AGO = "2020-01-01T00:00:00Z"
PIANO, BOAT, HORSE = "The user owns a piano.", "The user sails a boat.", "The user rides a horse."
BERLIN, MUNICH, OSLO = (f"Vera lives in {city}." for city in ("Berlin", "Munich", "Oslo"))


@pytest.fixture
def honest(tenant: Tenant) -> Caller:
    """A supervisor."""
    return tenant.caller("supervisor", scopes=EVERYTHING)


@pytest.fixture
def thief(tenant: Tenant) -> Caller:
    """Another key of the same agent, which was stolen."""
    return tenant.caller("supervisor", scopes=EVERYTHING)


def revert(admin: Caller, stolen: Caller, since: str = LONG_AGO, **fields: Any) -> Json:  # noqa: ANN401 - of the request
    response = admin.post("/v1/admin/revert", {"key_id": stolen.key_id, "since": since} | fields)
    assert response.status_code == 200, response.text
    return dict(response.json())


def record(caller: Caller, memory: str) -> Json:
    return dict(caller.get(f"/v1/memories/{memory}").json())


def beside(one: Json, other: Json) -> set[str]:
    """The fields in which two versions of a memory differ, but for what every change counts."""
    return {name for name, value in one.items() if other[name] != value} - {"version", "updated_at"}


class TestMemories:
    """What the key wrote and changed."""

    def test_what_it_wrote_goes_and_what_others_wrote_stays(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        write(honest, PIANO, thread_id=THREAD)
        poison = write(thief, BOAT, thread_id=THREAD)["id"]
        rev = honest.get(f"/v1/threads/{THREAD}/delta").json()["rev"]
        done = revert(admin, thief)
        assert (done["outcome"], done["finished"], done["conflicts"]) == ("reverted", True, 0)
        assert done["reverted"] == {"memories_removed": 1}
        assert done["items"] == [{"kind": "memory", "id": poison, "user_id": USER, "what": "removed", "reason": None}]
        assert texts(honest) == {PIANO}
        assert events(honest, poison) == ["REVERT", "ADD"]
        delta = honest.get(f"/v1/threads/{THREAD}/delta", since=rev).json()
        assert [each["event"] for each in delta["changes"]] == ["soft_deleted"]

    def test_a_dry_run_says_the_same_and_changes_nothing(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        memory = write(honest, PIANO)["id"]
        write(thief, BOAT)
        say(thief, memory, "retract")
        told = revert(admin, thief, dry_run=True)
        assert told["receipt"] is None
        assert texts(honest) == {BOAT}
        done = revert(admin, thief)
        assert {name: done[name] for name in ("reverted", "items", "conflicts")} == {
            name: told[name] for name in ("reverted", "items", "conflicts")
        }
        assert texts(honest) == {PIANO}

    def test_a_second_revert_changes_nothing(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        write(honest, PIANO)
        write(thief, BOAT)
        assert revert(admin, thief)["outcome"] == "reverted"
        again = revert(admin, thief)
        assert (again["outcome"], again["reverted"], again["items"]) == ("nothing_to_revert", {}, [])

    def test_what_was_done_before_stays(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        write(thief, PIANO)
        since = datetime.now(UTC).isoformat()
        write(thief, BOAT)
        revert(admin, thief, since)
        assert texts(honest) == {PIANO}

    def test_what_it_superseded_comes_back_as_it_was(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        memory = write(honest, BERLIN, importance=4)["id"]
        before = record(honest, memory)
        assert write(thief, MUNICH)["outcome"] == "superseded"
        assert texts(honest) == {MUNICH}
        done = revert(admin, thief)
        assert done["reverted"] == {"memories_removed": 1, "memories_restored": 1}
        assert done["not_reverted"] == {}  # exact: nobody else changed it meanwhile
        assert texts(honest) == {BERLIN}
        assert beside(record(honest, memory), before) == set()

    def test_what_others_put_in_its_place_since_stays(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        first = write(honest, BERLIN)["id"]
        write(thief, MUNICH)
        last = write(honest, OSLO)["id"]
        revert(admin, thief)
        assert texts(honest) == {OSLO}
        why = honest.get(f"/v1/memories/{first}/why").json()["memory"]
        assert (why["state"], why["superseded_by"]) == ("superseded", last)

    @pytest.mark.parametrize("verb", ["retract", "reject", "pin", "confirm", "demote", "reinforce"])
    def test_what_it_said_of_a_memory_is_unsaid(self, honest: Caller, thief: Caller, admin: Caller, verb: str) -> None:
        memory = write(honest, PIANO)["id"]
        before = record(honest, memory)
        say(thief, memory, verb)
        revert(admin, thief)
        assert beside(record(honest, memory), before) == set()
        assert write(honest, PIANO)["outcome"] == "duplicate"  # and is refused no longer

    def test_a_deleted_memory_comes_back_and_its_value_is_refused_no_longer(
        self, honest: Caller, thief: Caller, admin: Caller
    ) -> None:
        memory = write(honest, PIANO)["id"]
        assert thief.send("DELETE", f"/v1/memories/{memory}", params={"tombstone": True}).status_code == 200
        refused(
            honest.post("/v1/memories", {"user_id": USER, "category": "event", "content": PIANO}), 409, "value_rejected"
        )
        done = revert(admin, thief)
        assert done["reverted"]["tombstones_lifted"] == 1
        assert done["not_reverted"] == {"writes_refused_since": 1}
        assert texts(honest) == {PIANO}
        assert write(honest, PIANO)["outcome"] == "duplicate"

    def test_what_another_rejected_too_stays_rejected(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        shared, social, other = (
            write(honest, words, visibility=store)["id"]
            for words, store in ((PIANO, "shared"), (PIANO, "social"), (BOAT, "shared"))
        )
        for each in (shared, other):
            assert thief.send("DELETE", f"/v1/memories/{each}", params={"tombstone": True}).status_code == 200
        say(honest, social, "reject")
        done = revert(admin, thief)
        assert [each["reason"] for each in done["items"] if each["id"] == shared] == ["rejected"]
        assert texts(honest) == {BOAT}
        assert write(honest, BOAT, visibility="shared")["outcome"] == "duplicate"
        body = {"user_id": USER, "category": "event", "content": PIANO}
        refused(honest.post("/v1/memories", body), 409, "value_rejected")

    def test_words_come_back_with_their_weight_and_the_changes_of_others_stay(
        self, honest: Caller, thief: Caller, admin: Caller
    ) -> None:
        memory = write(honest, PIANO, tags=["music"])["id"]
        thief.patch(f"/v1/memories/{memory}", {"content": "The user sold the piano.", "importance": 5})
        honest.patch(f"/v1/memories/{memory}", {"tags": ["music", "wood"]})
        say(honest, memory, "pin")
        done = revert(admin, thief)
        now = record(honest, memory)
        assert (now["content"], now["tags"], now["pinned"], now["importance"]) == (PIANO, ["music", "wood"], True, 3)
        assert done["not_reverted"] == {"memories_rebuilt": 1}
        assert texts(honest) == {PIANO}
        (item,) = honest.ask("sold", return_="full", explain=True)["items"]
        assert not item["explain"]["matched"]

    def test_what_another_writer_says_too_becomes_that_writers(
        self, tenant: Tenant, thief: Caller, admin: Caller
    ) -> None:
        inner = tenant.caller("supervisor", trust="inner")
        fields: Json = {"visibility": "shared"}
        memory = write(thief, PIANO, importance=5, pinned=True, **fields)["id"]
        assert write(inner, PIANO, **fields)["outcome"] == "duplicate"
        revert(admin, thief)
        now = record(inner, memory)
        assert (now["content"], now["importance"], now["pinned"], now["mention_count"]) == (PIANO, 3, False, 1)
        assert tenant.rows("SELECT authority FROM memories WHERE id = %(id)s", id=memory) == [{"authority": 2}]

    def test_what_another_one_rewrote_stays_and_is_listed(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        memory = write(thief, PIANO)["id"]
        honest.patch(f"/v1/memories/{memory}", {"content": HORSE})
        done = revert(admin, thief)
        assert done["conflicts"] == 1
        assert done["items"] == [
            {"kind": "memory", "id": memory, "user_id": USER, "what": "kept", "reason": "rewritten"}
        ]
        assert texts(honest) == {HORSE}
        assert revert(admin, thief)["outcome"] == "nothing_to_revert"

    def test_a_value_that_stands_again_takes_what_comes_back(
        self, honest: Caller, thief: Caller, admin: Caller
    ) -> None:
        memory = write(honest, PIANO, importance=5)["id"]
        thief.send("DELETE", f"/v1/memories/{memory}")
        again = write(honest, PIANO)["id"]
        assert again != memory
        done = revert(admin, thief)
        assert done["not_reverted"] == {"memories_rebuilt": 1}
        (found,) = honest.get("/v1/memories").json()["items"]
        assert (found["id"], found["importance"], found["mention_count"]) == (again, 5, 2)

    def test_what_disputed_nothing_else_is_believed(self, tenant: Tenant, thief: Caller, admin: Caller) -> None:
        inner = tenant.caller("supervisor", trust="inner")
        write(thief, MUNICH, visibility="shared")
        assert write(inner, BERLIN, visibility="shared")["outcome"] == "disputed"
        revert(admin, thief)
        assert texts(inner) == {BERLIN}

    def test_names_that_were_taken_are_free_again(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        write(thief, PIANO, external_id="goal-1")
        revert(admin, thief)
        assert write(honest, BOAT, external_id="goal-1")["outcome"] == "created"
        assert texts(honest) == {BOAT}

    def test_the_changes_of_an_agent_are_those_of_all_its_keys(
        self, tenant: Tenant, honest: Caller, thief: Caller, admin: Caller
    ) -> None:
        planner = tenant.caller("planner")
        write(planner, "The user books the hall.", "tasks")
        write(thief, PIANO)
        write(honest, BOAT)
        body = {"of_agent": "supervisor", "since": LONG_AGO}
        assert admin.post("/v1/admin/revert", body).json()["reverted"] == {"memories_removed": 2}
        assert texts(honest) == {"The user books the hall."}


class TestTurns:
    """What the key recorded, and what was drawn from it."""

    def test_turns_go_with_what_was_drawn_from_them(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        kept = honest.say("I own a piano.")["turn_id"]
        thief.say("I sail a boat every summer.", thread_id="other")
        assert any("boat" in each for each in texts(honest))
        done = revert(admin, thief)
        assert done["reverted"]["turns_removed"] == 1
        assert not any("boat" in each for each in texts(honest))
        assert kept in honest.found("piano")

    def test_what_others_said_too_stays(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        thief.say("I own a piano.")
        honest.say("I own a piano.")
        facts = honest.get("/v1/memories").json()["items"]
        revert(admin, thief)
        now = honest.get("/v1/memories").json()["items"]
        assert [each["content"] for each in now] == [each["content"] for each in facts] != []
        assert [len(each["source_ids"]) for each in now] == [1] * len(now)


class TestDecisions:
    """What the key proposed and decided."""

    def test_an_approved_field_goes_back_to_its_former_value(
        self, honest: Caller, thief: Caller, admin: Caller
    ) -> None:
        decide(honest, queue(honest, "The user lives in Berlin."))
        proposal = queue(honest, "The user lives in Munich.")
        decide(thief, proposal)
        assert context(honest) == {"city": "Munich"}
        done = revert(admin, thief)
        assert context(honest) == {"city": "Berlin"}
        assert [each["id"] for each in listed(honest, state="pending")] == [proposal]
        assert done["reverted"]["proposals_reopened"] == 1
        assert texts(honest) == {"The user lives in Berlin."}

    def test_a_refused_value_can_be_proposed_again(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        proposal = queue(honest, "The user lives in Munich.")
        decide(thief, proposal, "reject")
        revert(admin, thief)
        assert [each["id"] for each in listed(honest, state="pending")] == [proposal]
        decide(honest, proposal)
        assert context(honest) == {"city": "Munich"}

    def test_its_own_proposals_go_unless_another_one_made_them_too(
        self, tenant: Tenant, honest: Caller, thief: Caller, admin: Caller
    ) -> None:
        queue(thief, "The user lives in Munich.")
        shared = queue(thief, "The user lives in Oslo.")
        assert queue(honest, "The user lives in Oslo.") == shared
        revert(admin, thief)
        assert [each["id"] for each in listed(honest, state="pending")] == [shared]
        assert tenant.count("consent_proposals") == 1

    def test_what_another_one_approved_stays_and_is_listed(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        decide(honest, queue(thief, "The user lives in Munich."))
        done = revert(admin, thief)
        assert {each["reason"] for each in done["items"]} == {"approved"}
        assert context(honest) == {"city": "Munich"}

    def test_what_others_said_of_a_value_that_it_approved_waits_for_consent(
        self, honest: Caller, thief: Caller, admin: Caller
    ) -> None:
        decide(thief, queue(thief, "The user lives in Munich."))
        assert write(honest, "The user lives in Munich.", "profile")["outcome"] == "duplicate"
        revert(admin, thief)
        assert [each["new_value"] for each in listed(honest, state="pending")] == ["Munich"]
        assert (context(honest), texts(honest)) == ({}, set())

    def test_what_was_approved_since_waits_no_more(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        """Said while the key's approval held, and again later: without the key both would have been one proposal."""
        porto = "The user lives in Porto."
        decide(thief, queue(thief, porto))
        assert write(honest, porto, "profile")["outcome"] == "duplicate"
        decide(thief, queue(thief, "The user lives in Oslo."))
        decide(honest, queue(honest, porto))
        revert(admin, thief)
        assert context(honest) == {"city": "Porto"}
        assert listed(honest, state="pending") == []

    @pytest.mark.parametrize("verdict", ["keep_both", "newer", "older"])
    def test_a_verdict_on_a_conflict_is_open_again(
        self, tenant: Tenant, honest: Caller, thief: Caller, admin: Caller, verdict: str
    ) -> None:
        first, last = write(honest, PIANO)["id"], write(honest, BOAT)["id"]
        relate(tenant, first, last)
        (conflict,) = honest.get("/v1/conflicts").json()["items"]
        body = {"verdict": verdict}
        assert thief.post(f"/v1/conflicts/{conflict['id']}/decide", body).status_code == 200
        assert honest.get("/v1/conflicts").json()["items"] == []
        done = revert(admin, thief)
        assert done["reverted"]["conflicts_reopened"] == 1
        (again,) = honest.get("/v1/conflicts").json()["items"]
        assert (again["older"]["id"], again["newer"]["id"]) == (first, last)
        assert texts(honest) == {PIANO, BOAT}


def relate(tenant: Tenant, first: str, last: str) -> None:
    """List two memories as a possible conflict."""
    tenant.relate(last, first)
    tenant.rows("UPDATE relations SET relation_type = 'possible_conflict' WHERE tenant_id = %(tenant)s")


class TestEntities:
    """Names that the key gave, and entities that it merged."""

    def test_a_name_is_taken_away(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        write(honest, "The user met Bodo Stern.")
        entity = honest.entity("Bodo Stern")
        assert thief.post(f"/v1/entities/{entity}/aliases", {"alias": "The Boss"}).status_code == 200
        assert honest.entity("The Boss") == entity
        revert(admin, thief)
        assert honest.get("/v1/entities", user_id=USER, name="The Boss").json()["items"] == []
        assert honest.entity("Bodo Stern") == entity

    def test_a_merge_is_taken_apart(self, honest: Caller, thief: Caller, admin: Caller) -> None:
        bodo, ana = write(honest, "The user met Bodo Stern.")["id"], write(honest, "The user met Ana Ruiz.")["id"]
        one, other = honest.entity("Bodo Stern"), honest.entity("Ana Ruiz")
        assert thief.post(f"/v1/entities/{one}/merge", {"into": other}).status_code == 200
        assert honest.entity("Bodo Stern") == other
        revert(admin, thief)
        assert (honest.entity("Bodo Stern"), honest.entity("Ana Ruiz")) == (one, other)
        assert honest.found("met", filters={"user_id": USER, "entity": "Bodo Stern"}) == [bodo]
        assert honest.found("met", filters={"user_id": USER, "entity": "Ana Ruiz"}) == [ana]


class TestRights:
    """Who may take back, and how far."""

    def test_only_a_fully_trusted_administrator(self, tenant: Tenant, thief: Caller, admin: Caller) -> None:
        write(thief, PIANO)
        body = {"key_id": thief.key_id, "since": LONG_AGO}
        refused(tenant.caller("supervisor").post("/v1/admin/revert", body), 403, "scope_forbidden")
        inner = tenant.caller("supervisor", trust="inner", scopes=EVERYTHING)
        refused(inner.post("/v1/admin/revert", body), 403, "trust_too_low")
        assert revert(admin, thief)["outcome"] == "reverted"

    def test_a_key_of_an_agent_reaches_what_the_agent_reads_and_writes(
        self, tenant: Tenant, honest: Caller, thief: Caller, admin: Caller
    ) -> None:
        write(thief, "The user books the hall.", "tasks")
        write(thief, PIANO, "profile")
        thief.say("Which hall?")
        planner = tenant.caller("planner", scopes=EVERYTHING)
        done = revert(planner, thief)
        assert done["reverted"] == {"memories_removed": 1}
        assert PIANO in texts(honest)
        assert revert(planner, thief)["outcome"] == "nothing_to_revert"
        assert revert(admin, thief)["reverted"] == {"memories_removed": 1, "turns_removed": 1}
        assert texts(honest) == set()

    def test_what_it_does_not_reach_is_not_counted(
        self, tenant: Tenant, honest: Caller, thief: Caller, admin: Caller
    ) -> None:
        write(thief, "The user books the hall.", "tasks")
        say(thief, write(honest, PIANO, "profile")["id"], "reject")
        body = {"user_id": USER, "category": "profile", "content": PIANO}
        refused(honest.post("/v1/memories", body), 409, "value_rejected")
        planner = tenant.caller("planner", scopes=EVERYTHING)
        assert revert(planner, thief, dry_run=True)["not_reverted"] == {}
        assert revert(admin, thief, dry_run=True)["not_reverted"] == {"writes_refused_since": 1}  # the control

    def test_a_key_bound_to_users_reaches_these(self, tenant: Tenant, honest: Caller, thief: Caller) -> None:
        write(thief, PIANO)
        write(thief, BOAT, user_id="ben")
        bound = tenant.caller(None, act_for=["*"], scopes=EVERYTHING, users=["ben"])
        revert(bound, thief)
        assert texts(honest) == {PIANO}

    def test_a_receipt_tells_nothing_of_categories_beyond_the_callers(
        self, tenant: Tenant, honest: Caller, thief: Caller, admin: Caller
    ) -> None:
        """Derived memories of every category are removed; the receipt shows those that the caller reaches."""
        turn = thief.say("Which hall?")["turn_id"]
        task = write(honest, "The user books the hall.", "tasks", source_ids=[turn])["id"]
        write(tenant.caller("executor"), PIANO, "constraints", source_ids=[task])
        body = {"user_id": USER, "category": "style", "content": "The user prefers short answers."}
        stylist = tenant.caller("stylist")
        rejected = write(stylist, body["content"], "style")["id"]
        say(stylist, rejected, "reject")
        refused(stylist.post("/v1/memories", body), 409, "value_rejected")
        supervisor = tenant.caller("supervisor", scopes=EVERYTHING)  # its categories have neither constraints nor style
        told, all_of_it = (revert(caller, thief, dry_run=True) for caller in (supervisor, admin))
        assert told["reverted"] == {"memories_removed": 1, "turns_removed": 1}
        assert all_of_it["reverted"] == {"memories_removed": 2, "turns_removed": 1}
        assert (told["not_reverted"], all_of_it["not_reverted"]) == ({}, {"writes_refused_since": 1})
        shown = {each["id"] for each in told["items"]}
        assert len(shown) == 2
        assert shown < {each["id"] for each in all_of_it["items"]}

    def test_a_receipt_tells_nothing_of_users_beyond_the_callers(
        self, tenant: Tenant, honest: Caller, thief: Caller, admin: Caller
    ) -> None:
        turn = thief.say("Which hall?")["turn_id"]
        copy = write(honest, PIANO, user_id="ben", source_ids=[turn])["id"]
        bound = tenant.caller(None, act_for=["*"], scopes=EVERYTHING, users=[USER])
        told, all_of_it = (revert(caller, thief, dry_run=True) for caller in (bound, admin))
        assert (told["reverted"], [each["id"] for each in told["items"]]) == ({"turns_removed": 1}, [turn])
        whose = {each["id"]: each["user_id"] for each in all_of_it["items"]}
        assert whose == {turn: USER, copy: "ben"}  # the control

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    def test_another_tenants_key_finds_nothing(self, other_tenant: Tenant, thief: Caller, admin: Caller) -> None:
        write(thief, PIANO)
        stranger = other_tenant.caller(None, act_for=["*"], scopes=EVERYTHING)
        theirs, unknown = (
            stranger.post("/v1/admin/revert", {"key_id": each, "since": LONG_AGO})
            for each in (thief.key_id, "0" * len(thief.key_id))
        )
        refused(theirs, 404, "not_found")
        assert theirs.json()["detail"] == unknown.json()["detail"]
        agent = stranger.post("/v1/admin/revert", {"of_agent": "supervisor", "since": LONG_AGO}).json()
        assert (agent["outcome"], agent["items"]) == ("nothing_to_revert", [])
        assert revert(admin, thief)["outcome"] == "reverted"  # the control

    def test_an_unknown_key_is_not_found_and_one_of_both_is_named(self, thief: Caller, admin: Caller) -> None:
        write(thief, PIANO)
        refused(admin.post("/v1/admin/revert", {"key_id": "nokey", "since": LONG_AGO}), 404, "not_found")
        for body in ({}, {"key_id": thief.key_id, "of_agent": "supervisor"}):
            refused(admin.post("/v1/admin/revert", body | {"since": LONG_AGO}), 422, "invalid_request")

    def test_the_keys_that_it_made_are_named(self, thief: Caller, admin: Caller) -> None:
        made = thief.post("/v1/admin/keys", {"agent": "supervisor", "scopes": ["memory:read"]})
        assert made.status_code == 201, made.text
        assert revert(admin, thief)["keys"] == [made.json()["id"]]

    def test_the_same_request_again_has_the_same_answer(self, thief: Caller, admin: Caller) -> None:
        write(thief, PIANO)
        body, header = {"key_id": thief.key_id, "since": LONG_AGO}, {"Idempotency-Key": "once"}
        first = admin.send("POST", "/v1/admin/revert", json=body, headers=header)
        again = admin.send("POST", "/v1/admin/revert", json=body, headers=header)
        assert (first.json(), again.headers["Idempotency-Replayed"]) == (again.json(), "true")


class TestOlderHistory:
    """Changes that were made before undo records were kept: only what the history tells comes back."""

    @pytest.mark.parametrize("recorded", [True, False])
    def test_they_come_back_as_far_as_the_history_tells_and_are_counted(
        self, tenant: Tenant, honest: Caller, thief: Caller, admin: Caller, *, recorded: bool
    ) -> None:
        memory, ended = write(honest, PIANO, importance=2)["id"], write(honest, BOAT)["id"]
        before = [record(honest, each) for each in (memory, ended)]
        assert write(thief, PIANO, importance=5)["outcome"] == "duplicate"
        say(thief, ended, "retract")
        write(thief, HORSE)  # a new memory needs no undo record
        if not recorded:
            tenant.rows("DELETE FROM undo_records WHERE tenant_id = %(tenant)s")
        done = revert(admin, thief)
        assert done["not_reverted"] == ({} if recorded else {"changes_inexact": 2})
        assert texts(honest) == {PIANO, BOAT}
        after = [record(honest, each) for each in (memory, ended)]
        changed = set().union(*(beside(now, then) for now, then in zip(after, before, strict=True)))
        assert changed == (set() if recorded else {"importance"})
        assert revert(admin, thief)["outcome"] == "nothing_to_revert"


class TestCheckpoints:
    """Checkpoints that the key saved are not reverted, and the receipt says so."""

    def test_those_that_it_saved_are_counted_with_the_reason(
        self, tenant: Tenant, honest: Caller, thief: Caller, admin: Caller
    ) -> None:
        def save(caller: Caller, thread: str) -> None:
            body = {"user_id": USER, "memory": {"by": caller.key_id}}
            assert caller.send("PUT", f"/v1/checkpoints/{thread}", json=body).is_success

        for caller, thread in ((thief, "first"), (thief, "second"), (honest, "second"), (honest, "third")):
            save(caller, thread)
        left = {"count": 1, "reason": "whole_state"}
        assert revert(admin, honest)["checkpoints"] == left | {"count": 2}  # the control
        since = datetime.now(UTC).isoformat()
        assert revert(admin, thief, since)["checkpoints"] is None
        assert revert(admin, thief, dry_run=True)["checkpoints"] == left
        assert revert(tenant.caller("planner", scopes=EVERYTHING), thief)["checkpoints"] is None  # it reads no turns
        bound = tenant.caller(None, act_for=["*"], scopes=EVERYTHING, users=["ben"])
        assert revert(bound, thief)["checkpoints"] is None
        assert revert(admin, thief)["checkpoints"] == left
        state = honest.get("/v1/checkpoints/first", user_id=USER).json()["memory"]
        assert state == {"by": thief.key_id}


THINGS = ("piano", "boat", "horse", "kite", "drum", "lamp", "clock", "flute", "canoe", "tent", "sled", "harp")


class TestCourse:
    """Much to take back: part by part, and in as many statements as little."""

    def test_it_is_done_part_by_part_and_goes_on_where_it_ended(
        self, honest: Caller, thief: Caller, admin: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(revert_service, "MOST", 3)
        monkeypatch.setattr(revert_service, "MOST_BATCHES", 2)
        kept = [write(honest, f"The user owns a {thing}.")["id"] for thing in THINGS[:6]]
        for memory in kept:
            say(thief, memory, "retract")
        for thing in THINGS[6:]:
            write(thief, f"The user owns a {thing}.")
        parts = [revert(admin, thief)]
        assert (parts[0]["finished"], len(texts(honest))) == (False, 0)
        while not parts[-1]["finished"]:
            parts.append(revert(admin, thief))
        assert len(parts) > 1
        assert texts(honest) == {f"The user owns a {thing}." for thing in THINGS[:6]}
        assert sum(part["reverted"].get("memories_restored", 0) for part in parts) == 6

    def test_statements_do_not_grow_with_the_memories(
        self, honest: Caller, thief: Caller, admin: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent: list[int] = []
        for kind in (PostgresSession, SqliteSession):
            monkeypatch.setattr(kind, "execute", _counting(kind.execute, sent))
        counts = []
        for user, things in (("ana", THINGS[:3]), ("ben", THINGS)):
            for thing in things:
                memory = write(honest, f"The user owns a {thing}.", user_id=user)["id"]
                say(thief, memory, "retract")
                write(thief, f"The user sold a {thing}.", user_id=user)
            del sent[:]
            assert revert(admin, thief)["finished"]
            counts.append(len(sent))
        assert counts[0] == counts[1] > 0


def _counting(execute: Any, sent: list[int]) -> Any:  # noqa: ANN401 - of the session
    async def counted(self: object, *args: object) -> object:
        if "last_used_at" not in str(args[0]):  # the server notes beside, once in a while, which keys were used
            sent.append(1)
        return await execute(self, *args)

    return counted
