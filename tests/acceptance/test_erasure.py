"""Erasing a user: everything goes, somebody else's stays, the receipt tells how much, and nothing comes back."""

import json
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from memplane.application.keys.api_keys import AGENT_SCOPES
from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.capabilities import Capability
from support.callers import SUPERVISING, THREAD, USER, Caller, Json, Tenant, refused
from support.consenting import BERLIN, decide, queue
from support.telling import texts, write

SCOPES = (*SUPERVISING, KeyScope.ADMIN)
PIANO, BOAT = "The user owns a piano.", "The user sails a boat."
OTHER = "ben"
ERASE = f"/v1/users/{USER}/erase"


def erase(caller: Caller, user: str = USER, **body: object) -> Json:
    response = caller.post(f"/v1/users/{user}/erase", {"confirm": user} | body)
    assert response.status_code == 200, response.text
    return dict(response.json())


def lived(caller: Caller, user: str) -> None:
    """Let a user have some of everything that the interface makes."""
    write(caller, PIANO, user_id=user, thread_id=THREAD)
    write(caller, "Ana Ruiz plays chess with Bo Lind.", user_id=user)
    caller.say("I moved to Lisbon, and my favourite colour is green.", user_id=user)
    caller.send("PUT", f"/v1/checkpoints/{THREAD}", json={"user_id": user, "agents": {"planner": {"step": 1}}})
    assert texts(caller, query="piano", filters={"user_id": user})


class TestErase:
    """What goes, what stays, and what is told."""

    def test_everything_of_the_user_goes_and_another_s_stays(
        self, tenant: Tenant, caller: Caller, admin: Caller
    ) -> None:
        for user in (USER, OTHER):
            lived(caller, user)
        before = {user: everything(tenant, user) for user in (USER, OTHER)}
        assert min(before[USER].values()) > 0
        receipt = erase(admin)
        assert everything(tenant, USER) == dict.fromkeys(before[USER], 0)
        assert everything(tenant, OTHER) == before[OTHER]  # the control
        assert receipt["finished"]
        assert receipt["policy"].startswith("sha256:")
        told = {name: receipt["erased"][name] for name in ("memories", "turns", "events", "change_log", "history")}
        assert told == {name: before[USER][name] for name in told}
        assert USER not in str(receipt)
        assert texts(caller, filters={"user_id": USER}) == set()
        assert PIANO in texts(caller, filters={"user_id": OTHER})

    def test_what_happened_stays_without_its_words(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        memory = write(caller, PIANO)["id"]
        receipt = erase(admin)
        rows = tenant.rows("SELECT * FROM history WHERE memory_id = %(id)s", id=UUID(memory))
        assert [(each["event"], each["old_ref"], each["new_ref"], each["meta"]) for each in rows] == [
            ("ADD", None, None, {})
        ]
        assert [(each["of_user"], str(each["erased_by"])) for each in rows] == [(None, receipt["receipt"])]
        (told,) = tenant.rows("SELECT * FROM history WHERE memory_id = %(id)s", id=UUID(receipt["receipt"]))
        assert (told["event"], told["meta"]["counts"]) == ("ERASE", receipt["erased"])

    def test_a_dry_run_counts_and_changes_nothing(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        lived(caller, USER)
        before = everything(tenant, USER)
        found = erase(admin, dry_run=True)
        assert (found["receipt"], found["finished"]) == (None, False)
        assert {name: found["erased"][name] for name in before if name in found["erased"]} == {
            name: count for name, count in before.items() if name in found["erased"]
        }
        assert found["erased"]["memories"] == before["memories"] > 0
        assert everything(tenant, USER) == before
        assert PIANO in texts(caller)

    def test_asked_for_again_it_is_the_same_receipt(self, caller: Caller, admin: Caller) -> None:
        lived(caller, USER)
        first = erase(admin)
        assert erase(admin) == first
        write(caller, "The user collects stamps.")
        second = erase(admin)
        assert second["receipt"] != first["receipt"]
        assert second["erased"]["memories"] == 1


class TestGone:
    """What was erased does not come back, but in the person's own new words."""

    def test_a_value_is_refused_where_nobody_says_it_anew(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO)
        write(caller, PIANO, user_id=OTHER)
        erase(admin)
        body = {"user_id": USER, "category": "event", "content": "THE  USER owns a Piano", "visibility": "shared"}
        inner = tenant.caller("supervisor", trust="inner")
        refused(inner.post("/v1/memories", body), 409, "value_rejected")
        older = {"event_time": "2025-01-01T00:00:00Z"}
        refused(caller.post("/v1/memories", body | older), 409, "value_rejected")
        assert write(caller, BOAT)["outcome"] == "created"  # the controls
        assert write(caller, PIANO, user_id=OTHER)["outcome"] == "duplicate"
        assert texts(caller, filters={"user_id": USER}) == {BOAT}

    def test_a_fully_trusted_key_s_new_words_count_again(self, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO)
        erase(admin)
        assert write(caller, PIANO)["outcome"] == "created"
        assert texts(caller, filters={"user_id": USER}) == {PIANO}

    def test_imports_and_restored_exports_stay_refused(self, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO)
        exported = admin.get(f"/v1/users/{USER}/export").text.splitlines()
        erase(admin)
        line = json.dumps({"record": "memory", "category": "event", "content": PIANO})
        for who, mode, lines in ((caller, "add", [line]), (admin, "restore", exported)):
            done = who.post(f"/v1/users/{USER}/import", {"mode": mode, "lines": lines}).json()
            assert {each["code"] for each in done["refused"]} == {"value_rejected"}, mode
        assert texts(caller, filters={"user_id": USER}) == set()
        other = json.dumps({"record": "memory", "category": "event", "content": BOAT})  # the control
        done = caller.post(f"/v1/users/{USER}/import", {"mode": "add", "lines": [other]}).json()
        assert done["outcomes"] == ["created"]

    def test_what_a_person_says_anew_is_drawn(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        said = "I like jazz."
        assert caller.say(said)["extracted"]
        erase(admin)
        unvouched = tenant.caller("supervisor", scopes=AGENT_SCOPES)
        turn = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": said}
        refused(unvouched.post("/v1/turns", turn), 409, "value_rejected")
        older = {"thread_id": "another", "event_time": "2025-01-01T00:00:00Z"}
        (drawn,) = caller.say(said, **older)["extracted"]
        assert drawn["action"] == "refused"
        (drawn,) = caller.say(said)["extracted"]
        assert drawn["action"] == "created"
        assert "The user likes jazz." in texts(caller, filters={"user_id": USER, "type": "semantic"})

    def test_a_sensitive_value_said_anew_waits_for_consent_as_ever(self, caller: Caller, admin: Caller) -> None:
        decide(admin, queue(caller), agent="supervisor")
        erase(admin)
        line = json.dumps({"record": "memory", "category": "profile", "content": BERLIN})
        done = caller.post(f"/v1/users/{USER}/import", {"mode": "add", "lines": [line]}).json()
        assert done["refused"][0]["code"] == "value_rejected"  # the control
        assert decide(admin, queue(caller), agent="supervisor")["outcome"] == "approved"

    def test_erased_again_it_is_refused_up_to_the_second_erasure(self, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO)
        first = erase(admin)["finished_at"]
        write(caller, PIANO)
        erase(admin)
        body = {"user_id": USER, "category": "event", "content": PIANO}
        between = {"event_time": (datetime.fromisoformat(first) + timedelta(microseconds=1)).isoformat()}
        refused(caller.post("/v1/memories", body | between), 409, "value_rejected")
        assert write(caller, PIANO)["outcome"] == "created"  # the control

    def test_a_turn_is_refused_in_its_thread_until_the_user_says_it_again(self, caller: Caller, admin: Caller) -> None:
        turn = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": "The sea was rough on Sunday."}
        assert caller.post("/v1/turns", turn).status_code == 201
        assert caller.post("/v1/turns", turn | {"role": "assistant", "text": "Indeed."}).status_code == 201
        erase(admin)
        older = {"event_time": "2025-01-01T00:00:00Z"}
        refused(caller.post("/v1/turns", turn | older), 409, "value_rejected")
        refused(caller.post("/v1/turns", turn | {"role": "assistant", "text": "Indeed."}), 409, "value_rejected")
        line = json.dumps({"record": "turn", "thread_id": THREAD, "role": "user", "text": turn["text"], **older})
        done = caller.post(f"/v1/users/{USER}/import", {"mode": "add", "lines": [line]}).json()
        assert done["refused"][0]["code"] == "value_rejected"
        for text, thread in (("The sea was calm.", THREAD), (turn["text"], "another"), (turn["text"], THREAD)):
            assert caller.post("/v1/turns", turn | {"text": text, "thread_id": thread}).status_code == 201

    def test_what_was_rejected_before_stays_rejected(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        memory = write(caller, PIANO)["id"]
        assert caller.post(f"/v1/memories/{memory}/reject", {}).status_code == 200
        erase(admin)
        scopes = {row["scope"] for row in tenant.rows("SELECT scope FROM tombstones WHERE tenant_id = %(tenant)s")}
        assert scopes
        assert USER not in scopes
        body = {"user_id": USER, "category": "event", "content": PIANO}
        refused(caller.post("/v1/memories", body), 409, "value_rejected")

    def test_an_answer_that_was_kept_goes_and_its_request_has_no_second_effect(
        self, tenant: Tenant, caller: Caller, admin: Caller
    ) -> None:
        turns = [
            {"user_id": user, "thread_id": THREAD, "role": "user", "text": f"The {user} boat is blue."}
            for user in (USER, OTHER)
        ]
        send = {"json": {"turns": turns}, "headers": {"Idempotency-Key": "both"}}
        assert caller.send("POST", "/v1/turns:batch", **send).status_code == 201
        erase(admin)
        refused(caller.send("POST", "/v1/turns:batch", **send), 409, "user_erased")
        assert tenant.count("turns") == 1


class TestAccess:
    """Who may."""

    def test_scope_trust_users_and_confirmation(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO)
        refused(caller.post(ERASE, {"confirm": USER}), 403, "scope_forbidden")
        inner = tenant.caller("supervisor", trust="inner", scopes=SCOPES)
        refused(inner.post(ERASE, {"confirm": USER}), 403, "trust_too_low")
        bound = tenant.caller("supervisor", users=[OTHER], scopes=SCOPES)
        refused(bound.post(ERASE, {"confirm": USER}), 403, "user_forbidden")
        for wrong in ({}, {"confirm": OTHER}, {"confirm": f"{USER}x"}, {"confirm": USER, "everything": True}):
            refused(admin.post(ERASE, wrong), 422, "invalid_request")
        assert texts(caller) == {PIANO}
        assert erase(admin)["erased"]["memories"] == 1

    def test_a_key_of_the_user_erases_what_is_the_user_s_and_ends(self, tenant: Tenant, caller: Caller) -> None:
        for user in (USER, OTHER):
            lived(caller, user)
        memory = write(caller, BOAT)["id"]
        own = tenant.caller("supervisor", act_for=["*"], users=[USER], scopes=SCOPES)
        both = tenant.caller("supervisor", users=[USER, OTHER], scopes=SCOPES)
        caller.delete(f"/v1/memories/{memory}")
        own.post("/v1/admin/purge", {"memory_id": memory, "early": True})
        assert erase(own)["finished"]
        assert set(everything(tenant, USER).values()) == {0}
        refused(own.post(ERASE, {"confirm": USER}), 401, "unauthenticated")
        refused(both.post(ERASE, {"confirm": USER}), 403, "user_forbidden")
        assert PIANO in texts(both, filters={"user_id": OTHER})

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    def test_another_tenant_s_user_of_the_same_name_stays(self, other_tenant: Tenant, caller: Caller) -> None:
        write(caller, PIANO)
        stranger = other_tenant.caller("supervisor", act_for=["*"], scopes=SCOPES)
        write(stranger, PIANO)
        erase(stranger)
        assert texts(caller) == {PIANO}
        assert write(caller, PIANO)["outcome"] == "duplicate"


def everything(tenant: Tenant, user: str) -> dict[str, int]:
    """How many rows there are of a user, in the tables whose rows one can tell them of."""
    tenant.server.run(tenant.server.wired._accesses.flush())  # what was asked is noted a while later
    found = {}
    tables = ("memories", "turns", "thread_revision", "change_log", "entities", "events", "supervisor_checkpoints")
    for table, column in (*((each, "user_id") for each in tables), ("history", "of_user")):
        statement = f"SELECT count(*) AS n FROM {table} WHERE tenant_id = %(tenant)s AND {column} = %(user)s"
        found[table] = tenant.rows(statement, user=user)[0]["n"]
    return found
