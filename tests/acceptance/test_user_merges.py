"""An anonymous user merged into a known one: everything moves, nothing is lost, and it can be undone."""

from typing import Any

import pytest

from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.capabilities import Capability
from support.callers import SUPERVISING, THREAD, USER, Caller, Json, Tenant, refused
from support.telling import texts, write

SCOPES = (*SUPERVISING, KeyScope.ADMIN)
ANON, OTHER = "anon-7f3", "ben"
PIANO, BOAT, CHESS = "The user owns a piano.", "The user sails a boat.", "Ana Ruiz plays chess with Bo Lind."
BAKER, NURSE = "The user's mother is Rosa.", "The user's mother is Irma."


def merge(admin: Caller, user: str = ANON, into: str = USER, **body: Any) -> Json:  # noqa: ANN401 - of the request
    response = admin.post(f"/v1/users/{user}/merge", {"into": into} | body)
    assert response.status_code == 200, response.text
    return dict(response.json())


def unmerge(admin: Caller, user: str = ANON, **body: Any) -> Json:  # noqa: ANN401 - of the request
    response = admin.post(f"/v1/users/{user}/unmerge", body)
    assert response.status_code == 200, response.text
    return dict(response.json())


def of(caller: Caller, user: str) -> set[str]:
    return texts(caller, filters={"user_id": user})


def rows(tenant: Tenant, table: str, column: str, user: str) -> int:
    statement = f"SELECT count(*) AS n FROM {table} WHERE tenant_id = %(tenant)s AND {column} = %(user)s"
    return int(tenant.rows(statement, user=user)[0]["n"])


def lived(caller: Caller, user: str) -> None:
    """Let a user have some of everything that the interface makes."""
    write(caller, f"The user keeps {user} as a nickname.", user_id=user, thread_id=f"talk-{user}")
    write(caller, CHESS, user_id=user)
    caller.say("I moved to Lisbon, and my favourite colour is green.", user_id=user, thread_id=f"talk-{user}")
    saved = caller.send(
        "PUT", f"/v1/checkpoints/talk-{user}", json={"user_id": user, "agents": {"planner": {"step": 1}}}
    )
    assert saved.status_code in {200, 201}, saved.text


class TestMerge:
    """What moves."""

    def test_everything_belongs_to_the_known_user(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        lived(caller, ANON)
        lived(caller, OTHER)
        write(caller, PIANO)
        receipt = merge(admin)
        assert receipt["tables"]["memories"]["moved"] > 0
        assert receipt["tables"]["turns"] == {"moved": 1, "folded": 0, "before": 0, "after": 1}
        assert {CHESS, PIANO, f"The user keeps {ANON} as a nickname."} <= of(caller, USER)
        for table in ("memories", "turns", "thread_revision", "change_log", "entities", "events", "user_usage"):
            assert rows(tenant, table, "user_id", ANON) == 0, table
            assert rows(tenant, table, "user_id", OTHER) > 0, table  # the control
        state = caller.get(f"/v1/checkpoints/talk-{ANON}", user_id=USER)
        assert state.status_code == 200, state.text
        assert CHESS in of(caller, OTHER)

    def test_a_dry_run_changes_nothing(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        lived(caller, ANON)
        told = merge(admin, dry_run=True)
        assert told["tables"]["turns"]["moved"] == 1
        assert CHESS in of(caller, ANON)
        assert of(caller, USER) == set()
        assert rows(tenant, "user_merges", "from_user", ANON) == 0
        assert merge(admin)["tables"]["turns"]["moved"] == 1  # the control

    def test_the_same_value_is_counted_into_the_one_that_is_there(self, caller: Caller, admin: Caller) -> None:
        there = write(caller, PIANO)["id"]
        write(caller, PIANO, user_id=ANON)
        write(caller, PIANO, user_id=ANON)
        assert merge(admin)["outcomes"]["same_value"] == 1
        assert caller.get(f"/v1/memories/{there}").json()["mention_count"] == 3
        assert of(caller, USER) == {PIANO}

    def test_the_same_external_id_stays_with_the_known_user(self, caller: Caller, admin: Caller) -> None:
        there = write(caller, PIANO, external_id="one")["id"]
        moved = write(caller, BOAT, user_id=ANON, external_id="one")["id"]
        assert merge(admin)["outcomes"]["external_ids_dropped"] == 1
        assert caller.get(f"/v1/memories/{there}").json()["external_id"] == "one"
        assert caller.get(f"/v1/memories/{moved}").json()["external_id"] is None
        assert of(caller, USER) == {PIANO, BOAT}

    def test_threads_of_one_name_stay_apart(self, caller: Caller, admin: Caller) -> None:
        caller.say("Hello from the known user.", user_id=USER, thread_id=THREAD)
        caller.say("Hello from the anonymous one.", user_id=ANON, thread_id=THREAD)
        receipt = merge(admin)["receipt"]
        renamed = f"{THREAD}%23{receipt.replace('-', '')[-12:]}"
        own = caller.get(f"/v1/threads/{THREAD}/turns", user_id=USER).json()["items"]
        moved = caller.get(f"/v1/threads/{renamed}/turns", user_id=USER).json()["items"]
        assert [each["text"] for each in own] == ["Hello from the known user."]
        assert [each["text"] for each in moved] == ["Hello from the anonymous one."]

    def test_the_newer_fact_holds_whoever_said_it(self, caller: Caller, admin: Caller) -> None:
        write(caller, BAKER, category="relationships", user_id=ANON)
        write(caller, NURSE, category="relationships")
        done = merge(admin)["outcomes"]
        assert done["superseded"] == 1
        assert of(caller, USER) == {NURSE}

    def test_what_either_user_rejected_stays_rejected(self, caller: Caller, admin: Caller) -> None:
        gone = write(caller, PIANO)["id"]
        assert caller.post(f"/v1/memories/{gone}/reject", {}).status_code == 200
        write(caller, PIANO, user_id=ANON)
        other = write(caller, BOAT, user_id=ANON)["id"]
        assert caller.post(f"/v1/memories/{other}/reject", {}).status_code == 200
        write(caller, BOAT)
        write(caller, CHESS)
        assert merge(admin)["outcomes"]["rejected"] == 2
        assert of(caller, USER) == {CHESS}
        for content in (PIANO, BOAT):
            body = {"user_id": USER, "category": "event", "content": content}
            refused(caller.post("/v1/memories", body), 409, "value_rejected")

    def test_it_needs_both_users_and_every_category(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO, user_id=ANON)
        path, body = f"/v1/users/{ANON}/merge", {"into": USER}
        for users in ([ANON], [USER]):
            bound = tenant.caller(None, act_for=["*"], scopes=SCOPES, users=users)
            refused(bound.post(path, body), 403, "user_forbidden")
        refused(tenant.caller("supervisor", scopes=SCOPES).post(path, body), 403, "category_forbidden")
        refused(caller.post(path, body), 403, "scope_forbidden")
        inner = tenant.caller(None, act_for=["*"], scopes=SCOPES, trust="inner")
        refused(inner.post(path, body), 403, "trust_too_low")
        refused(admin.post("/v1/users/nobody/merge", body), 404, "not_found")
        refused(admin.post(path, {"into": ANON}), 422, "invalid_request")
        both = tenant.caller(None, act_for=["*"], scopes=SCOPES, users=[ANON, USER])
        assert merge(both)["tables"]["memories"]["moved"] == 1  # the control
        assert of(caller, USER) == {PIANO}


class TestAlias:
    """What the former name is answered."""

    def test_writes_and_reads_of_the_former_name_are_refused(
        self, tenant: Tenant, caller: Caller, admin: Caller
    ) -> None:
        write(caller, PIANO, user_id=ANON, thread_id=THREAD)
        merge(admin)
        body = {"user_id": ANON, "category": "event", "content": BOAT}
        assert refused(caller.post("/v1/memories", body), 409, "user_merged")["into"] == USER
        turn = {"user_id": ANON, "thread_id": THREAD, "role": "user", "text": "Hello."}
        refused(caller.post("/v1/turns", turn), 409, "user_merged")
        checkpoint = caller.send("PUT", f"/v1/checkpoints/{THREAD}", json={"user_id": ANON, "agents": {}})
        refused(checkpoint, 409, "user_merged")
        refused(caller.query("piano", filters={"user_id": ANON}), 409, "user_merged")
        asked = {"user_id": ANON, "thread_id": THREAD, "message": "piano"}
        refused(caller.post("/v1/context", asked), 409, "user_merged")
        for path, params in READS:
            refused(admin.get(path, **params), 409, "user_merged")
        refused(admin.post(f"/v1/users/{ANON}/erase", {"confirm": ANON}), 409, "user_merged")
        refused(admin.post(f"/v1/users/{ANON}/merge", {"into": OTHER}), 409, "user_merged")
        bound = tenant.caller("supervisor", users=[ANON])
        assert "into" not in refused(bound.query("piano", filters={"user_id": ANON}), 409, "user_merged")
        assert write(caller, BOAT)["outcome"] == "created"  # the controls
        assert of(caller, USER) == {PIANO, BOAT}


READS = (
    ("/v1/memories", {"user_id": ANON}),
    (f"/v1/users/{ANON}/export", {}),
    (f"/v1/users/{ANON}/context", {}),
    ("/v1/entities", {"user_id": ANON}),
    (f"/v1/threads/{THREAD}/turns", {"user_id": ANON}),
    (f"/v1/threads/{THREAD}/delta", {"user_id": ANON}),
    (f"/v1/checkpoints/{THREAD}", {"user_id": ANON}),
    ("/v1/events", {"user_id": ANON}),
    ("/v1/stats", {"user_id": ANON}),
    ("/v1/tombstones", {"user_id": ANON}),
    ("/v1/consents", {"user_id": ANON}),
    ("/v1/conflicts", {"user_id": ANON}),
    ("/v1/quotas", {"user_id": ANON}),
)
"""Reads that name a user, with what they need besides."""


class TestUndone:
    """What goes back, and what stays."""

    def test_everything_goes_back(self, caller: Caller, admin: Caller) -> None:
        lived(caller, ANON)
        there = write(caller, CHESS)["id"]
        write(caller, BAKER, category="relationships", user_id=ANON)
        write(caller, NURSE, category="relationships")
        before = {
            user: (of(caller, user), caller.get(f"/v1/memories/{there}").json()["mention_count"])
            for user in (ANON, USER)
        }
        merge(admin)
        done = unmerge(admin)
        assert done["kept"] == {}
        assert {
            user: (of(caller, user), caller.get(f"/v1/memories/{there}").json()["mention_count"])
            for user in (ANON, USER)
        } == before
        assert caller.get(f"/v1/checkpoints/talk-{ANON}", user_id=ANON).status_code == 200
        assert write(caller, BOAT, user_id=ANON)["outcome"] == "created"
        assert caller.say("Hello again.", user_id=ANON, thread_id=f"talk-{ANON}")["seq"] == 2

    def test_what_was_changed_since_stays(self, caller: Caller, admin: Caller) -> None:
        changed = write(caller, PIANO, user_id=ANON)["id"]
        write(caller, BOAT, user_id=ANON)
        caller.say("Hello.", user_id=ANON, thread_id="continued")
        merge(admin)
        assert caller.patch(f"/v1/memories/{changed}", {"importance": 5}).status_code == 200
        caller.say("Hello, it is me.", user_id=USER, thread_id="continued")
        done = unmerge(admin)
        assert done["kept"]["memories"] == 1
        assert done["kept"]["threads"] == 1
        assert PIANO in of(caller, USER)
        assert BOAT in of(caller, ANON)
        assert BOAT not in of(caller, USER)

    def test_it_can_be_undone_for_as_long_as_the_policy_says(
        self, tenant: Tenant, caller: Caller, admin: Caller
    ) -> None:
        write(caller, PIANO, user_id=ANON)
        refused(admin.post(f"/v1/users/{ANON}/unmerge", {}), 404, "not_found")
        merge(admin)
        past = "2020-01-01T00:00:00.000000+00:00"
        tenant.rows("UPDATE user_merges SET revertible_until = %(past)s WHERE tenant_id = %(tenant)s", past=past)
        refused(admin.post(f"/v1/users/{ANON}/unmerge", {}), 409, "conflict")
        assert of(caller, USER) == {PIANO}

    def test_a_second_merge_is_undone_first(self, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO, user_id=ANON)
        merge(admin)
        merge(admin, USER, OTHER)
        refused(admin.post(f"/v1/users/{ANON}/unmerge", {}), 409, "conflict")
        assert refused(caller.query(filters={"user_id": ANON}), 409, "user_merged")["into"] == OTHER
        unmerge(admin, USER)
        assert of(caller, USER) == {PIANO}
        unmerge(admin, ANON)
        assert of(caller, ANON) == {PIANO}


class TestListed:
    """Which users were merged, and until when each merge can be undone."""

    def test_standing_and_undone_ones_newest_first(self, caller: Caller, admin: Caller) -> None:
        receipts = []
        for user, into in ((ANON, USER), (OTHER, "cem"), ("anon-2", USER)):
            write(caller, PIANO, user_id=user)
            receipts.append(merge(admin, user, into))
        undone = unmerge(admin, OTHER)
        found = admin.get(LIST).json()
        assert [each["receipt"] for each in found["items"]] == [each["receipt"] for each in reversed(receipts)]
        assert found["next"] is None
        (last, second, first) = found["items"]
        assert {name: first[name] for name in receipts[0]} == receipts[0]
        assert [each["undone_at"] for each in (last, second, first)] == [None, undone["undone_at"], None]
        assert first["actor"] == f"key:{admin.key_id}"
        for user, expected in ((USER, [last, first]), (ANON, [first]), ("cem", [second]), ("nobody", [])):
            assert admin.get(LIST, user_id=user).json()["items"] == expected
        page = admin.get(LIST, limit=2).json()
        assert page["items"] == [last, second]
        assert admin.get(LIST, limit=2, cursor=page["next"]).json() == {"items": [first], "next": None}

    def test_a_dry_run_is_not_in_it(self, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO, user_id=ANON)
        merge(admin, dry_run=True)
        assert admin.get(LIST).json()["items"] == []
        merge(admin)
        unmerge(admin, dry_run=True)
        assert [each["undone_at"] for each in admin.get(LIST).json()["items"]] == [None]  # the control

    def test_a_key_sees_those_of_which_it_reaches_both(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO, user_id=ANON)
        merge(admin)
        refused(caller.get(LIST), 403, "scope_forbidden")
        for users in ([ANON], [USER], [OTHER]):
            bound = tenant.caller(None, act_for=["*"], scopes=SCOPES, users=users)
            assert bound.get(LIST).json()["items"] == []
        refused(bound.get(LIST, user_id=USER), 403, "user_forbidden")
        both = tenant.caller(None, act_for=["*"], scopes=SCOPES, users=[ANON, USER])
        assert len(both.get(LIST).json()["items"]) == 1  # the controls
        assert len(both.get(LIST, user_id=USER).json()["items"]) == 1

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    def test_another_tenant_sees_none(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO, user_id=ANON)
        merge(admin)
        stranger = Tenant(tenant.server).caller(None, act_for=["*"], scopes=SCOPES)
        assert stranger.get(LIST).json()["items"] == []
        assert len(admin.get(LIST).json()["items"]) == 1  # the control

    def test_its_receipt_counts_what_moved_alone(self, caller: Caller, admin: Caller) -> None:
        lived(caller, ANON)
        told = merge(admin)["tables"]
        assert "history" not in told  # which keeps the former name
        assert all(each["moved"] + each["before"] == each["after"] for name, each in told.items() if name in WHOLE)


LIST = "/v1/admin/user-merges"
WHOLE = {"memories", "turns", "thread_revision", "change_log", "events"}
"""Tables of which every row moves."""


class TestErased:
    """What an erasure of the known user reaches."""

    def test_the_alias_goes_with_the_user(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        lived(caller, ANON)
        write(caller, PIANO)
        write(caller, PIANO, user_id=OTHER)
        merge(admin)
        receipt = admin.post(f"/v1/users/{USER}/erase", {"confirm": USER})
        assert receipt.json()["finished"], receipt.text
        for table, column in (("history", "of_user"), ("user_merges", "from_user"), ("memories", "user_id")):
            assert rows(tenant, table, column, ANON) == rows(tenant, table, column, USER) == 0, table
        assert tenant.rows("SELECT count(*) AS n FROM user_merge_rows WHERE tenant_id = %(tenant)s")[0]["n"] == 0
        words = tenant.rows("SELECT old_ref, new_ref, meta FROM history WHERE tenant_id = %(tenant)s")
        assert ANON not in str(words)
        assert of(caller, ANON) == set()
        assert of(caller, OTHER) == {PIANO}  # the control

    def test_after_an_undone_merge_the_name_is_nowhere(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO, user_id=ANON)
        write(caller, PIANO)
        merge(admin)
        unmerge(admin)
        assert admin.post(f"/v1/users/{ANON}/erase", {"confirm": ANON}).json()["finished"]
        rows_left = tenant.rows("SELECT * FROM history WHERE tenant_id = %(tenant)s")
        assert ANON not in str(rows_left)
        assert USER in str(rows_left)  # the control
        assert of(caller, USER) == {PIANO}

    def test_a_merge_brings_nothing_back_that_the_known_user_erased(self, caller: Caller, admin: Caller) -> None:
        for user in (USER, ANON):
            write(caller, PIANO, user_id=user)
        rejected = write(caller, BAKER, category="relationships")["id"]
        assert caller.post(f"/v1/memories/{rejected}/reject", {}).status_code == 200
        assert admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).json()["finished"]
        write(caller, BAKER, category="relationships", user_id=ANON)
        write(caller, BOAT, user_id=ANON)
        assert merge(admin)["outcomes"]["rejected"] == 2
        assert of(caller, USER) == {BOAT}
        unmerge(admin)
        assert of(caller, ANON) == {BOAT, PIANO, BAKER}

    def test_what_was_said_anew_after_the_erasure_is_merged(self, caller: Caller, admin: Caller) -> None:
        """The control."""
        write(caller, PIANO)
        assert admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).json()["finished"]
        write(caller, PIANO, user_id=ANON)
        assert merge(admin)["outcomes"] == {}
        assert of(caller, USER) == {PIANO}

    @pytest.mark.parametrize("mode", ["add", "restore"])
    def test_what_was_erased_of_the_former_name_stays_refused_under_the_known_one(
        self, caller: Caller, admin: Caller, mode: str
    ) -> None:
        write(caller, PIANO, user_id=ANON)
        caller.say("I keep a llama.", user_id=ANON, thread_id=THREAD)
        lines = admin.get(f"/v1/users/{ANON}/export").text.splitlines()
        assert admin.post(f"/v1/users/{ANON}/erase", {"confirm": ANON}).json()["finished"]
        write(caller, BOAT, user_id=ANON)
        merge(admin)
        body = {"mode": mode, "lines": lines} | ({"agent": "supervisor"} if mode == "add" else {})
        done = admin.post(f"/v1/users/{USER}/import", body).json()
        assert of(caller, USER) == {BOAT}, done
        assert write(caller, PIANO)["outcome"] == "created"  # the control: the person says it anew

    @pytest.mark.parametrize("mode", ["add", "restore"])
    def test_what_was_said_under_the_former_name_stays_refused_under_it(
        self, caller: Caller, admin: Caller, mode: str
    ) -> None:
        write(caller, PIANO, user_id=ANON)
        caller.say("I keep a llama.", user_id=ANON, thread_id=THREAD)
        caller.say("It rains.", thread_id=THREAD)  # so that the other thread is renamed
        lines = admin.get(f"/v1/users/{ANON}/export").text.splitlines()
        merge(admin)
        write(caller, BOAT)
        assert admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).json()["finished"]
        for user in (ANON, USER):
            body = {"mode": mode, "lines": lines} | ({"agent": "supervisor"} if mode == "add" else {})
            done = admin.post(f"/v1/users/{user}/import", body).json()
            assert {"created", "restored"}.isdisjoint(done["outcomes"]), (user, done)
            assert of(caller, user) == set()
        done = admin.post(f"/v1/users/{OTHER}/import", body).json()  # the control
        assert {PIANO, "user: I keep a llama."} <= of(caller, OTHER), done


class TestAfterwards:
    """Exports, restored exports, reverts, purges and bound keys after a merge."""

    def test_an_export_has_all_and_is_restored_under_the_known_name(self, caller: Caller, admin: Caller) -> None:
        lived(caller, ANON)
        write(caller, PIANO)
        merge(admin)
        lines = admin.get(f"/v1/users/{USER}/export").text.splitlines()
        exported = "\n".join(lines)
        assert CHESS in exported
        assert "I moved to Lisbon" in exported
        done = admin.post(f"/v1/users/{OTHER}/import", {"mode": "add", "lines": lines[:500], "agent": "supervisor"})
        assert done.status_code == 200, done.text
        assert {CHESS, PIANO} <= of(caller, OTHER)
        refused(
            admin.post(f"/v1/users/{ANON}/import", {"mode": "add", "lines": lines[:500], "agent": "supervisor"}),
            409,
            "user_merged",
        )

    def test_a_revert_reaches_what_was_written_before_the_merge(
        self, tenant: Tenant, caller: Caller, admin: Caller
    ) -> None:
        hostile = tenant.caller("supervisor")
        write(hostile, BOAT, user_id=ANON)
        write(caller, PIANO, user_id=ANON)
        write(caller, CHESS)
        merge(admin)
        body = {"since": "2020-01-01T00:00:00Z", "key_id": hostile.key_id}
        receipt = admin.post("/v1/admin/revert", body)
        assert receipt.status_code == 200, receipt.text
        assert receipt.json()["reverted"]["memories_removed"] == 1
        assert of(caller, USER) == {PIANO, CHESS}

    def test_a_purge_reaches_the_words_that_history_holds(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        memory = write(caller, PIANO, user_id=ANON)["id"]
        merge(admin)
        assert caller.delete(f"/v1/memories/{memory}").status_code == 200
        assert admin.post("/v1/admin/purge", {"memory_id": memory, "early": True}).status_code == 200
        words = tenant.rows("SELECT new_ref FROM history WHERE tenant_id = %(tenant)s AND new_ref IS NOT NULL")
        assert PIANO not in str(words)

    def test_the_chain_over_the_history_holds(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO, user_id=ANON)
        tenant.server.run(tenant.server.wired.jobs.run("seal", tenant.name))
        merge(admin)
        tenant.server.run(tenant.server.wired.jobs.run("seal", tenant.name))
        answer = admin.get("/v1/admin/audit").json()
        assert answer["fault"] is None, answer

    def test_a_key_of_the_known_user_sees_what_moved(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        bound = tenant.caller("supervisor", users=[USER])
        stranger = tenant.caller("supervisor", users=[OTHER])
        memory = write(caller, PIANO, user_id=ANON)["id"]
        refused(bound.get(f"/v1/memories/{memory}"), 404, "not_found")
        merge(admin)
        assert of(bound, USER) == {PIANO}
        assert bound.get(f"/v1/memories/{memory}/history").status_code == 200
        refused(stranger.get(f"/v1/memories/{memory}"), 404, "not_found")

    def test_what_is_stored_is_counted_with_the_known_user(self, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO, user_id=ANON)
        write(caller, BOAT)
        caller.say("Hello.", user_id=ANON, thread_id="talk")

        def used(user: str) -> tuple[int, int]:
            found = admin.get("/v1/quotas", user_id=user).json()["user"]
            return found["memories"]["used"], found["bytes"]["used"]

        before = [used(user) for user in (ANON, USER)]
        merge(admin)
        assert used(USER) == tuple(map(sum, zip(*before, strict=True)))
        unmerge(admin)
        assert [used(user) for user in (ANON, USER)] == before

    def test_the_same_request_again_has_the_same_receipt(self, caller: Caller, admin: Caller) -> None:
        write(caller, PIANO, user_id=ANON)
        answers = [
            admin.send("POST", f"/v1/users/{ANON}/merge", json={"into": USER}, headers={"Idempotency-Key": "once"})
            for _ in range(2)
        ]
        assert [each.status_code for each in answers] == [200, 200]
        assert answers[0].json() == answers[1].json()
