"""Knowledge about no user (`user_id: null`): in every user's recall, written by few, and in nobody's export."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memplane.adapters.policy import shipped_policies
from memplane.domain.identity.principal import KeyScope
from memplane.domain.policy.capabilities import Capability
from support.callers import SUPERVISING, THREAD, USER, Caller, Json, Tenant, refused
from support.nights import Night
from support.serving import RunningServer
from support.telling import events, say, texts, write
from support.transfer import of

HALL, FEE = "The main hall holds ninety people.", "The booking fee is forty euros."
OWN = "The main hall was booked for the spring concert."
ADMINISTERING = (*SUPERVISING, KeyScope.ADMIN)
WRITER = "researcher"
"""An agent that reads and writes a shared category."""


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """The agent that looks after what is shared."""
    return tenant.caller(WRITER, scopes=SUPERVISING)


def share(caller: Caller, content: str = HALL, **fields: object) -> Json:
    """Store a memory about no user."""
    return write(caller, content, "knowledge", user_id=None, **fields)


def shared(caller: Caller, **params: object) -> set[str]:
    """What is shared, as a list shows it."""
    response = caller.get("/v1/memories", shared=True, **params)
    assert response.status_code == 200, response.text
    items = response.json()["items"]
    assert {item["user_id"] for item in items} <= {None}
    return {item["content"] for item in items}


def lines_of(caller: Caller, path: str) -> list[Json]:
    response = caller.get(path)
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.content.splitlines()]


class TestReading:
    """It is part of what each user's agents recall."""

    def test_it_comes_with_every_users_recall(self, tenant: Tenant, caller: Caller) -> None:
        made = share(caller)["id"]
        own = caller.remember(OWN, "history")
        caller.remember("The main hall is painted green.", "history", user_id="ben")
        assert set(caller.found("main hall", filters={"user_id": USER})) == {made, own}
        assert made in caller.found("main hall", filters={"user_id": "cleo"})  # of whom nothing is known
        bound = tenant.caller(WRITER, users=[USER])
        assert set(bound.found("main hall")) == {made, own}
        (item,) = [each for each in caller.ask("main hall", return_="full")["items"] if each["id"] == made]
        assert item["memory"]["user_id"] is None

    def test_the_best_of_both_come_first_and_top_k_counts_both(self, caller: Caller) -> None:
        for number in range(5):
            share(caller, f"Rule {number} of the archive: boxes of paper are stored in room {number}.")
            caller.remember(f"Shelf {number} of the archive was painted.", "history")
        few = caller.ask("which boxes of paper are stored in the archive", top_k=4, filters={"user_id": USER})
        assert len(few["items"]) == 4
        assert all("boxes" in item["text"] for item in few["items"][:2])

    def test_an_agent_that_may_not_read_the_category_gets_none(self, tenant: Tenant, caller: Caller) -> None:
        made = share(caller)["id"]
        stylist = tenant.caller("stylist")
        assert "knowledge" not in tenant.server.wired.policies.current.allowlist("stylist").read
        assert stylist.found("main hall") == []
        refused(stylist.get(f"/v1/memories/{made}"), 404, "not_found")
        assert caller.get(f"/v1/memories/{made}").status_code == 200

    def test_stores_and_trust_hold_for_it_too(self, tenant: Tenant, caller: Caller) -> None:
        private = share(caller, HALL, visibility="private")["id"]
        social = share(caller, FEE, visibility="social", min_trust="familiar")["id"]
        familiar = tenant.caller(WRITER, trust="familiar", users=[USER])
        assert familiar.found("booking fee of the main hall") == [social]
        assert set(caller.found("booking fee of the main hall")) == {private, social}

    def test_a_context_has_it(self, caller: Caller) -> None:
        share(caller)
        body = {"user_id": USER, "thread_id": THREAD, "message": "How many people does the main hall hold?"}
        answer = caller.post("/v1/context", body).json()
        assert HALL in json.dumps(answer["sections"])

    def test_get_history_why_and_related(self, tenant: Tenant, caller: Caller) -> None:
        made = share(caller)["id"]
        bound = tenant.caller(WRITER, users=[USER])
        for who in (caller, bound):
            assert who.get(f"/v1/memories/{made}").json()["user_id"] is None
            assert events(who, made) == ["ADD"]
            for part in ("why", "related", "timeline"):
                answer = who.get(f"/v1/memories/{made}/{part}")
                assert answer.status_code == 200, answer.text

    def test_whom_it_mentions_is_shown_to_keys_of_a_user_too(self, tenant: Tenant, caller: Caller) -> None:
        share(caller, "The archive is sponsored by Siemens.")
        caller.remember("The lamp was repaired by Bosch.", "history")
        bound = tenant.caller(WRITER, users=[USER], scopes=SUPERVISING)
        for who in (caller, bound):
            (entity,) = who.get("/v1/entities", shared=True).json()["items"]
            assert (entity["name"], entity["user_id"], entity["memories"]) == ("Siemens", None, 1)
            assert [each["name"] for each in who.get("/v1/entities", user_id=USER).json()["items"]] == ["Bosch"]
            (fact,) = who.get(f"/v1/entities/{entity['id']}").json()["facts"]
            assert fact["content"] == "The archive is sponsored by Siemens."
        path, (own,) = f"/v1/entities/{entity['id']}", bound.get("/v1/entities", user_id=USER).json()["items"]
        refused(bound.post(f"{path}/aliases", {"alias": "Simmens"}), 403, "user_forbidden")
        refused(bound.post(f"{path}/merge", {"into": own["id"]}), 403, "user_forbidden")
        assert bound.post(f"/v1/entities/{own['id']}/aliases", {"alias": "Bosh"}).status_code == 200  # the control
        assert caller.post(f"{path}/aliases", {"alias": "Simmens"}).status_code == 200
        refused(caller.get("/v1/entities"), 422, "invalid_request")
        refused(caller.get("/v1/entities", shared=True, user_id=USER), 422, "invalid_request")
        refused(tenant.caller("stylist").get(path), 404, "not_found")

    def test_lists_have_it_unless_they_are_of_a_user(self, tenant: Tenant, caller: Caller) -> None:
        share(caller)
        caller.remember(OWN, "history")

        def listed(who: Caller, **params: object) -> set[str]:
            return {item["content"] for item in who.get("/v1/memories", **params).json()["items"]}

        for who in (caller, tenant.caller(WRITER, users=[USER]), tenant.caller(WRITER, users=[USER, "ben"])):
            assert (listed(who), listed(who, user_id=USER), shared(who)) == ({OWN, HALL}, {OWN}, {HALL})
            assert listed(who, q="ninety") == {HALL}
        refused(caller.get("/v1/memories", shared=True, user_id=USER), 422, "invalid_request")

    def test_as_of_a_moment_before_it_was_known(self, caller: Caller) -> None:
        share(caller)
        early = {"believed_at": "2020-01-01T00:00:00Z"}
        assert caller.found("main hall", as_of=early, filters={"user_id": USER}) == []
        assert len(caller.found("main hall", filters={"user_id": USER})) == 1

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    def test_another_tenant_has_none_of_it(self, tenant: Tenant, caller: Caller) -> None:
        made = share(caller)["id"]
        other = Tenant(tenant.server).caller(WRITER, scopes=SUPERVISING)
        assert (other.found("main hall"), shared(other)) == ([], set())
        refused(other.get(f"/v1/memories/{made}"), 404, "not_found")
        assert caller.found("main hall") == [made]


class TestWriting:
    """Who may write it, and what it may say."""

    @pytest.mark.parametrize(
        ("key", "code"), [({"users": [USER]}, "user_forbidden"), ({"trust": "inner"}, "trust_too_low")]
    )
    def test_others_read_it_and_may_not_write(self, tenant: Tenant, caller: Caller, key: Json, code: str) -> None:
        made = share(caller, visibility="shared")["id"]
        other = tenant.caller(WRITER, **key)
        body = {"user_id": None, "category": "knowledge", "content": FEE}
        refused(other.post("/v1/memories", body), 403, code)
        assert other.found("main hall", filters={"user_id": USER}) == [made]
        assert shared(caller) == {HALL}

    @pytest.mark.parametrize("verb", ["correct", "retract", "pin", "confirm", "reject", "DELETE", "PATCH"])
    def test_a_key_that_is_bound_to_a_user_changes_nothing(self, tenant: Tenant, caller: Caller, verb: str) -> None:
        made = share(caller)["id"]
        path = f"/v1/memories/{made}"

        def done(who: Caller) -> int:
            if verb == "DELETE":
                return who.delete(path).status_code
            body = {"content": FEE} if verb in {"correct", "PATCH"} else {}
            answer = who.patch(path, body, If_Match='"1"') if verb == "PATCH" else who.post(f"{path}/{verb}", body)
            return answer.status_code

        assert done(tenant.caller(WRITER, users=[USER])) in {403, 404}
        assert caller.get(path).json()["version"] == 1
        assert done(caller) == 200  # the control

    def test_only_categories_that_the_policy_shares(self, caller: Caller) -> None:
        body = {"user_id": None, "category": "history", "content": HALL}
        told = refused(caller.post("/v1/memories", body), 422, "category_not_shared")
        assert told["categories"] == ["knowledge"]
        assert caller.post("/v1/memories", body | {"category": "knowledge"}).status_code == 201

    def test_a_policy_that_shares_nothing(self, start_server: Callable[..., RunningServer], tmp_path: Path) -> None:
        for path in shipped_policies().glob("*.yaml"):
            (tmp_path / path.name).write_text(path.read_text().replace("shared: [knowledge]", "shared: []"))
        caller = Tenant(start_server(policies=tmp_path)).caller(WRITER, scopes=SUPERVISING)
        body = {"user_id": None, "category": "knowledge", "content": HALL}
        refused(caller.post("/v1/memories", body), 422, "category_not_shared")
        assert caller.post("/v1/memories", body | {"user_id": USER}).status_code == 201

    @pytest.mark.parametrize(
        "fields",
        [
            {"content": "The user prefers the main hall."},
            {"content": "The user lives in Vienna."},
            {"thread_id": THREAD},
        ],
    )
    def test_nothing_of_a_user_or_a_conversation(self, caller: Caller, fields: Json) -> None:
        body = {"user_id": None, "category": "knowledge", "content": HALL} | fields
        answer = caller.post("/v1/memories", body)
        assert answer.status_code == 422, answer.text
        assert shared(caller) == set()
        assert caller.post("/v1/memories", body | {"user_id": USER}).status_code in {201, 202}

    def test_a_request_says_whom_it_is_about(self, caller: Caller) -> None:
        refused(caller.post("/v1/memories", {"category": "knowledge", "content": HALL}), 422, "invalid_request")
        refused(
            caller.post("/v1/memories", {"user_id": "", "category": "knowledge", "content": HALL}),
            422,
            "invalid_request",
        )

    def test_it_is_merged_and_superseded_among_itself(self, caller: Caller) -> None:
        old = share(caller, "Vera's mother is Anna.")
        own = write(caller, "Vera's mother is Anna.", "knowledge")
        assert (old["outcome"], own["outcome"]) == ("created", "created")  # a user's own stays that user's
        assert share(caller, "Vera's mother is Anna.")["outcome"] == "duplicate"
        new = share(caller, "Vera's mother is Berta.")
        assert (new["outcome"], new["overruled"]) == ("superseded", [old["id"]])
        assert caller.get(f"/v1/memories/{own['id']}").json()["state"] == "active"

    def test_what_was_rejected_stays_out(self, caller: Caller) -> None:
        made = share(caller)["id"]
        say(caller, made, "reject")
        refused(
            caller.post("/v1/memories", {"user_id": None, "category": "knowledge", "content": HALL}),
            409,
            "value_rejected",
        )
        assert write(caller, HALL, "knowledge")["outcome"] == "created"  # a user's own is not refused for it

    def test_a_users_memory_does_not_become_shared(self, caller: Caller) -> None:
        own = caller.remember(OWN, "knowledge")
        answer = caller.patch(f"/v1/memories/{own}", {"user_id": None}, If_Match='"1"')
        refused(answer, 422, "invalid_request")

    def test_a_dry_run_stores_none(self, caller: Caller) -> None:
        body = {"user_id": None, "category": "knowledge", "content": HALL}
        assert caller.post("/v1/memories", body | {"dry_run": True}).status_code == 200
        assert shared(caller) == set()
        assert caller.post("/v1/memories", body).status_code == 201
        assert shared(caller) == {HALL}


class TestRights:
    """It is not a person's: neither in an export nor gone with an erasure."""

    def test_no_users_export_has_it_and_its_own_has_nothing_else(self, caller: Caller, admin: Caller) -> None:
        share(caller)
        caller.remember(OWN, "history")
        own, alone = lines_of(admin, f"/v1/users/{USER}/export"), lines_of(admin, "/v1/shared/export")
        assert [each["content"] for each in of(own, "memory")] == [OWN]
        assert [each["content"] for each in of(alone, "memory")] == [HALL]
        assert (own[0]["user"], alone[0]["user"]) == (USER, None)

    def test_an_erasure_leaves_it(self, caller: Caller, admin: Caller) -> None:
        share(caller)
        caller.remember(OWN, "history")
        done = admin.post(f"/v1/users/{USER}/erase", {"confirm": USER})
        assert done.status_code == 200, done.text
        assert texts(caller) == {HALL}
        assert shared(caller) == {HALL}

    @pytest.mark.parametrize("source", ["turn", "memory"])
    def test_what_came_from_a_users_words_goes_with_them(
        self, start_server: Callable[..., RunningServer], tmp_path: Path, source: str
    ) -> None:
        for path in shipped_policies().glob("*.yaml"):
            read = f"{WRITER}: [knowledge, interests, history"
            (tmp_path / path.name).write_text(path.read_text().replace(read, f"{read}, activity"))
        tenant = Tenant(start_server(policies=tmp_path))
        caller = tenant.caller(WRITER, scopes=SUPERVISING)
        said = "The porter says that the hall holds ninety."
        if source == "turn":
            came_from = caller.say(said, auto_extract=False)["turn_id"]
        else:
            came_from = caller.remember(said, "history")
        share(caller, source_ids=[came_from])
        share(caller, FEE)
        assert shared(caller) == {HALL, FEE}
        admin = tenant.caller(None, act_for=["*"], scopes=tuple(KeyScope))
        done = admin.post(f"/v1/users/{USER}/erase", {"confirm": USER})
        assert done.status_code == 200, done.text
        assert shared(caller) == {FEE}

    def test_export_and_import_bring_it_back(self, caller: Caller, admin: Caller) -> None:
        made = share(caller, tags=["rooms"])["id"]
        kept = lines_of(admin, "/v1/shared/export")
        caller.delete(f"/v1/memories/{made}")
        assert shared(caller) == set()
        sent = {"lines": [json.dumps(line) for line in kept], "mode": "add"}
        done = admin.post("/v1/shared/import", sent | {"agent": WRITER})
        assert done.status_code == 200, done.text
        assert shared(caller) == {HALL}

    def test_lines_of_a_user_do_not_become_shared(self, caller: Caller, admin: Caller) -> None:
        caller.remember("The user prefers the main hall.", "interests")
        caller.remember(OWN, "history")
        admin.say("Is the hall free?", agent="supervisor", auto_extract=False)
        lines = lines_of(admin, f"/v1/users/{USER}/export")
        for mode in ("add", "restore"):
            sent = {"lines": [json.dumps(line) for line in lines], "mode": mode, "agent": WRITER}
            done = admin.post("/v1/shared/import", sent).json()
            codes = {each["code"] for each in done["refused"]}
            assert "category_not_shared" in codes
            assert {"created", "merged", "restored"}.isdisjoint(done["outcomes"])
        assert shared(caller) == set()

    def test_the_routes_are_for_administrators_of_no_user(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        share(caller)
        refused(caller.get("/v1/shared/export"), 403, "scope_forbidden")
        bound = tenant.caller(None, act_for=["*"], users=[USER], scopes=tuple(KeyScope))
        refused(bound.get("/v1/shared/export"), 403, "user_forbidden")
        refused(bound.post("/v1/shared/import", {"lines": ["{}"], "agent": WRITER}), 403, "user_forbidden")
        low = tenant.caller(None, act_for=["*"], trust="inner", scopes=tuple(KeyScope))
        refused(low.get("/v1/shared/export"), 403, "trust_too_low")
        narrow = tenant.caller("stylist", scopes=tuple(KeyScope))
        assert of(lines_of(narrow, "/v1/shared/export"), "memory") == []
        assert len(of(lines_of(admin, "/v1/shared/export"), "memory")) == 1

    def test_deleted_it_is_restored(self, caller: Caller, admin: Caller) -> None:
        made = share(caller)["id"]
        caller.delete(f"/v1/memories/{made}")
        assert shared(caller) == set()
        done = admin.post("/v1/admin/restore", {"memory_id": made})
        assert done.status_code == 200, done.text
        assert shared(caller) == {HALL}

    def test_a_revert_takes_it_back(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        thief = tenant.caller(WRITER)
        share(caller)
        share(thief, FEE)
        body = {"key_id": thief.key_id, "since": "2020-01-01T00:00:00Z"}
        bound = tenant.caller(WRITER, users=[USER], scopes=ADMINISTERING)
        told = bound.post("/v1/admin/revert", body)
        assert told.status_code == 200, told.text
        assert shared(caller) == {HALL, FEE}  # one who may not write it does not take it back
        done = admin.post("/v1/admin/revert", body)
        assert done.status_code == 200, done.text
        assert {item["user_id"] for item in done.json()["items"]} == {None}
        assert shared(caller) == {HALL}


def test_the_night_draws_no_conclusions_from_it(tenant: Tenant, caller: Caller) -> None:
    """It is nobody's life: it expires and fades like other memories, and no profile comes of it."""
    for number in range(12):
        share(caller, f"The porter has opened gate {number} for deliveries.")
    night = Night(tenant)
    for name in ("expiry", "decay", "consolidation", "insights", "reflections", "procedures", "facts"):
        night.run(name)
    assert tenant.rows("SELECT field FROM user_context WHERE tenant_id = %(tenant)s") == []
    made = {row["source"] for row in tenant.rows("SELECT source FROM memories WHERE tenant_id = %(tenant)s")}
    assert made == {"agent"}


def test_quotas_count_it_for_the_tenant_alone(start_server: Callable[..., RunningServer], tmp_path: Path) -> None:
    """A quota of each user is not one of what is about none."""
    for path in shipped_policies().glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text())
    writing = tmp_path / "writing.yaml"
    writing.write_text(writing.read_text() + "\nquotas: {user: {memories: 1}, tenant: {memories: 4}}\n")
    caller = Tenant(start_server(policies=tmp_path)).caller(WRITER, scopes=SUPERVISING)
    assert share(caller)["outcome"] == share(caller, FEE)["outcome"] == "created"
    write(caller, OWN, "history")
    answer = caller.post("/v1/memories", {"user_id": USER, "category": "history", "content": "Ben owns a boat."})
    assert refused(answer, 429, "quota_exceeded")["quota"] == "user.memories"
    write(caller, "Cleo grows roses.", "history", user_id="cleo")
    answer = caller.post("/v1/memories", {"user_id": None, "category": "knowledge", "content": "Lifts stop at nine."})
    assert refused(answer, 429, "quota_exceeded")["quota"] == "tenant.memories"
