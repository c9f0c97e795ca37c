"""What an administrator brings back and removes for good, and what a restore puts right."""

from datetime import UTC, datetime
from uuid import UUID

import httpx2
import pytest

from memplane.application.keys.api_keys import AGENT_SCOPES
from memplane.domain.identity.principal import KeyScope
from memplane.domain.memory.memory import new_id
from memplane.domain.policy.capabilities import Capability
from support.callers import THREAD, USER, Caller, Json, Tenant, refused
from support.nights import Night
from support.telling import events, say, texts, write

SCOPES = (*AGENT_SCOPES, KeyScope.ADMIN)
PIANO, BOAT = "The user owns a piano.", "The user sails a boat."
BERLIN, MUNICH = "Vera lives in Berlin.", "Vera lives in Munich."
LONG_AGO = "2020-01-01T00:00:00Z"


def restore(caller: Caller, **body: object) -> Json:
    response = caller.post("/v1/admin/restore", body)
    assert response.status_code == 200, response.text
    return dict(response.json())


def purge(caller: Caller, **body: object) -> Json:
    response = caller.post("/v1/admin/purge", body)
    assert response.status_code == 200, response.text
    return dict(response.json())


def delete(caller: Caller, memory: str, **params: object) -> None:
    response = caller.send("DELETE", f"/v1/memories/{memory}", params=params)
    assert response.status_code == 200, response.text


def words(tenant: Tenant, said: str) -> list[str]:
    """The events whose entries of the history hold some words."""
    rows = tenant.rows("SELECT * FROM history WHERE tenant_id = %(tenant)s")
    return [each["event"] for each in rows if said in str(each)]


def archive(tenant: Tenant, memory: str) -> None:
    tenant.rows(
        "UPDATE memories SET state = 'archived', version = version + 1, updated_at = %(now)s WHERE id = %(id)s",
        id=UUID(memory), now=datetime.now(UTC).isoformat(timespec="microseconds"),
    )  # fmt: skip


def expire(tenant: Tenant, memory: str) -> None:
    tenant.rows("UPDATE memories SET expires_at = %(then)s WHERE id = %(id)s", id=UUID(memory), then=LONG_AGO)


class TestRestore:
    """One memory by its id, or what a user lost since a moment."""

    def test_one_comes_back_as_it_was_and_its_threads_are_told(self, caller: Caller, admin: Caller) -> None:
        memory = write(caller, PIANO, thread_id=THREAD, tags=["music"], importance=4, pinned=True)["id"]
        before = caller.get(f"/v1/memories/{memory}").json()
        delete(caller, memory)
        assert texts(caller) == set()
        rev = caller.get(f"/v1/threads/{THREAD}/delta").json()["rev"]
        (done,) = restore(admin, memory_id=memory)["items"]
        assert (done["outcome"], done["id"]) == ("restored", memory)
        after = caller.get(f"/v1/memories/{memory}").json()
        changed = {name for name, value in after.items() if before[name] != value}
        assert changed == {"version", "updated_at"}
        assert texts(caller) == {PIANO}
        assert events(caller, memory) == ["RESTORE", "DELETE", "ADD"]
        delta = caller.get(f"/v1/threads/{THREAD}/delta", since=rev).json()
        assert "⟲restored: [Event] The user owns a piano." in delta["header"]

    @pytest.mark.parametrize("by", ["id", "verb"])
    def test_what_has_expired_need_not_wait_for_the_night(
        self, tenant: Tenant, caller: Caller, admin: Caller, by: str
    ) -> None:
        over, lasts = (write(caller, text, expires_at="2100-01-01T00:00:00Z")["id"] for text in (PIANO, BOAT))
        expire(tenant, over)
        assert texts(caller) == {BOAT}

        def ask(memory: str) -> httpx2.Response:
            if by == "id":
                return admin.post("/v1/admin/restore", {"memory_id": memory})
            return caller.post(f"/v1/memories/{memory}/restore", {})

        assert ask(lasts).status_code == 409  # the control: what is there cannot come back
        assert ask(over).status_code == 200
        assert texts(caller) == {PIANO, BOAT}
        assert caller.get(f"/v1/memories/{over}").json()["expires_at"] is None
        assert events(caller, over) == ["RESTORE", "TTL", "ADD"]
        assert Night(tenant).counts("expiry") == {"deleted": 0}
        assert texts(caller) == {PIANO, BOAT}

    @pytest.mark.parametrize("by", ["id", "verb"])
    def test_what_has_expired_comes_back_without_its_end(
        self, tenant: Tenant, caller: Caller, admin: Caller, by: str
    ) -> None:
        ahead = "2100-01-01T00:00:00Z"
        over, lasts = (write(caller, text, expires_at=ahead)["id"] for text in (PIANO, BOAT))
        expire(tenant, over)
        night = Night(tenant)
        assert night.counts("expiry") == {"deleted": 1}
        delete(caller, lasts)
        for each in (over, lasts):
            done = restore(admin, memory_id=each)["items"][0] if by == "id" else say(caller, each, "restore")
            assert done["outcome"] == "restored"
        assert texts(caller) == {PIANO, BOAT}
        ends = [caller.get(f"/v1/memories/{each}").json()["expires_at"] for each in (over, lasts)]
        assert ends[0] is None
        assert datetime.fromisoformat(ends[1]) == datetime.fromisoformat(ahead)
        assert night.counts("expiry") == {"deleted": 1}  # of the same night: there is no further one
        assert texts(caller) == {PIANO, BOAT}

    def test_of_several_what_has_expired_stays_gone(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        over = write(caller, PIANO, expires_at="2100-01-01T00:00:00Z")["id"]
        expire(tenant, over)
        Night(tenant).run("expiry")
        lost = write(caller, BOAT)["id"]
        delete(caller, lost)
        found = {each["id"]: each for each in restore(admin, user_id=USER, since=LONG_AGO)["items"]}
        assert found[lost]["outcome"] == "restored"
        assert "restore it by its id" in str(found[over])
        assert texts(caller) == {BOAT}

    def test_all_that_a_user_lost_since_a_moment_comes_back(
        self, tenant: Tenant, caller: Caller, admin: Caller
    ) -> None:
        early = write(caller, "The user plays chess.")["id"]
        delete(caller, early)
        tenant.rows("UPDATE memories SET updated_at = %(then)s WHERE id = %(id)s", id=UUID(early), then=LONG_AGO)
        lost = [write(caller, text)["id"] for text in (PIANO, BOAT)]
        other = write(caller, PIANO, user_id="ben")["id"]
        delete(caller, lost[0])
        archive(tenant, lost[1])
        delete(caller, other)
        assert texts(caller) == set()
        found = restore(admin, user_id=USER, since="2021-01-01T00:00:00Z")
        assert [(each["id"], each["outcome"]) for each in found["items"]] == [
            (each, "restored") for each in reversed(lost)
        ]
        assert texts(caller) == {PIANO, BOAT}
        assert restore(admin, user_id=USER, since="2021-01-01T00:00:00Z")["items"] == []
        assert len(restore(admin, user_id="ben", since=LONG_AGO)["items"]) == 1  # the control: it was left alone

    def test_page_by_page(self, caller: Caller, admin: Caller) -> None:
        words = ("piano", "boat", "horse", "garden", "canoe")
        lost = [write(caller, f"The user owns a {word}.")["id"] for word in words]
        for each in lost:
            delete(caller, each)
        found: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = restore(admin, user_id=USER, since=LONG_AGO, limit=2, **cursor)
            found += [each["id"] for each in page["items"]]
            if page["next"] is None:
                break
            cursor = {"cursor": page["next"]}
        assert found == list(reversed(lost))

    def test_several_take_nobody_s_place(self, caller: Caller, admin: Caller) -> None:
        old = write(caller, BERLIN)["id"]
        delete(caller, old)
        new = write(caller, MUNICH)["id"]
        piano = write(caller, PIANO)["id"]
        delete(caller, piano)
        done = {each["id"]: each for each in restore(admin, user_id=USER, since=LONG_AGO)["items"]}
        assert (done[old]["outcome"], done[old]["code"], done[piano]["outcome"]) == ("failed", "conflict", "restored")
        assert texts(caller) == {MUNICH, PIANO}
        (alone,) = restore(admin, memory_id=old)["items"]  # the control: by its id it does
        assert alone["overruled"] == [new]
        assert texts(caller) == {BERLIN, PIANO}

    def test_of_several_that_contradict_each_other_the_newest_comes_back(self, caller: Caller, admin: Caller) -> None:
        old = write(caller, BERLIN)["id"]
        delete(caller, old)
        new = write(caller, MUNICH)["id"]
        delete(caller, new)
        done = [(each["id"], each["outcome"]) for each in restore(admin, user_id=USER, since=LONG_AGO)["items"]]
        assert done == [(new, "restored"), (old, "failed")]
        assert texts(caller) == {MUNICH}

    def test_what_was_rejected_stays_gone(self, caller: Caller, admin: Caller) -> None:
        rejected, deleted = write(caller, PIANO)["id"], write(caller, BOAT)["id"]
        say(caller, rejected, "reject")
        delete(caller, deleted)
        found = restore(admin, user_id=USER, since=LONG_AGO)["items"]
        assert [each["id"] for each in found] == [deleted]
        refused(admin.post("/v1/admin/restore", {"memory_id": rejected}), 409, "value_rejected")
        assert texts(caller) == {BOAT}


class TestTombstones:
    """A value is buried with its memory on request, and comes back with it alone."""

    def test_a_value_that_was_buried_with_its_memory_comes_back_with_it(self, tenant: Tenant, caller: Caller) -> None:
        memory, other = write(caller, PIANO)["id"], write(caller, BOAT)["id"]
        delete(caller, other)
        assert write(caller, BOAT)["outcome"] == "created"  # the control: without a tombstone it may be said again
        delete(caller, memory, tombstone=True)
        body = {"user_id": USER, "category": "event", "content": PIANO}
        refused(caller.post("/v1/memories", body), 409, "value_rejected")
        assert say(caller, memory, "restore")["outcome"] == "restored"
        assert tenant.count("tombstones") == 0
        assert write(caller, PIANO)["outcome"] == "duplicate"

    def test_what_was_rejected_besides_stays_buried(self, caller: Caller) -> None:
        first = write(caller, PIANO)["id"]
        delete(caller, first)
        second = write(caller, PIANO)["id"]
        say(caller, second, "reject")
        refused(caller.post(f"/v1/memories/{first}/restore", {}), 409, "value_rejected")
        body = {"user_id": USER, "category": "event", "content": PIANO}
        refused(caller.post("/v1/memories", body), 409, "value_rejected")

    def test_only_a_fully_trusted_key_buries_and_lifts(self, tenant: Tenant, caller: Caller) -> None:
        inner = tenant.caller("supervisor", trust="inner")
        memory = write(inner, PIANO, visibility="shared")["id"]
        refused(inner.send("DELETE", f"/v1/memories/{memory}", params={"tombstone": True}), 403, "trust_too_low")
        delete(caller, memory, tombstone=True)
        refused(inner.post(f"/v1/memories/{memory}/restore", {}), 409, "value_rejected")
        assert say(caller, memory, "restore")["outcome"] == "restored"  # the control


class TestPurge:
    """What is deleted is removed for good when its time is over, or at once where that is said."""

    def test_only_what_is_due_unless_it_is_said(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        due, waiting = write(caller, PIANO)["id"], write(caller, BOAT)["id"]
        kept, other = write(caller, BERLIN)["id"], write(caller, PIANO, user_id="ben")["id"]
        for each in (due, waiting, other):
            delete(caller, each)
        tenant.rows("UPDATE memories SET purge_at = %(then)s WHERE id = %(id)s", id=UUID(due), then=LONG_AGO)
        assert purge(admin, user_id=USER) == {"purged": 1, "more": False, "dry_run": None}
        refused(caller.get(f"/v1/memories/{due}/history"), 404, "not_found")
        refused(admin.post("/v1/admin/restore", {"memory_id": due}), 404, "not_found")
        assert events(caller, waiting) == ["DELETE", "ADD"]
        refused(admin.post("/v1/admin/purge", {"memory_id": waiting}), 409, "conflict")
        refused(admin.post("/v1/admin/purge", {"memory_id": kept, "early": True}), 409, "conflict")
        assert purge(admin, memory_id=waiting, early=True) == {"purged": 1, "more": False, "dry_run": None}
        assert tenant.count("memories") == 2  # the controls: what is active, and another user's
        told = tenant.rows("SELECT memory_id, new_ref FROM history WHERE tenant_id = %(tenant)s AND event = 'PURGE'")
        assert {str(each["memory_id"]) for each in told} == {due, waiting}
        assert [each["new_ref"] for each in told] == [None, None]

    def test_what_hangs_on_it_goes_too_and_a_rejection_stays(
        self, tenant: Tenant, caller: Caller, admin: Caller
    ) -> None:
        memory, near = write(caller, "Ana Ruiz owns a piano.")["id"], write(caller, BOAT)["id"]
        tenant.relate(near, memory)
        assert tenant.count("relations", "memory_entities") >= 2
        say(caller, memory, "reject")
        assert purge(admin, user_id=USER, early=True)["purged"] == 1
        assert tenant.count("memory_entities") == 0
        assert caller.get(f"/v1/memories/{near}/related").json()["items"] == []
        body = {"user_id": USER, "category": "event", "content": "Ana Ruiz owns a piano."}
        refused(caller.post("/v1/memories", body), 409, "value_rejected")

    def test_who_was_given_another_name_stays(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        for name in ("Berta Lindqvist", "Yoko Aihara"):
            delete(caller, write(caller, f"The user met {name}.")["id"])
            if name == "Yoko Aihara":
                write(caller, f"The user called {name}.")
                caller.post(f"/v1/entities/{caller.entity(name)}/aliases", {"alias": "Yoyo"})
        (rest,) = caller.found("Yoyo", filters={"entity": "Yoyo"})
        delete(caller, rest)
        assert purge(admin, user_id=USER, early=True)["purged"] == 3
        names = {row["name"] for row in tenant.rows("SELECT name FROM entities WHERE tenant_id = %(tenant)s")}
        assert names == {"Yoko Aihara"}
        again = write(caller, "The user had tea with Yoyo.")["id"]
        assert caller.found("tea", filters={"entity": "Yoko Aihara"}) == [again]

    def test_its_words_leave_the_history_and_that_it_was_stays(
        self, tenant: Tenant, caller: Caller, admin: Caller
    ) -> None:
        old = write(caller, BERLIN)["id"]
        new = write(caller, MUNICH)["id"]
        say(caller, new, "correct", content="Vera lives in Hamburg.")
        delete(caller, new)
        said = [BERLIN, MUNICH]
        assert all(words(tenant, each) for each in said)
        purge(admin, memory_id=new, early=True)
        assert words(tenant, MUNICH) == []  # nor where it is told what took the older one's place
        rows = tenant.rows("SELECT event, old_ref, new_ref, meta FROM history WHERE memory_id = %(id)s", id=UUID(new))
        assert {each["event"] for each in rows} == {"ADD", "SUPERSEDE", "DELETE", "PURGE"}
        assert {each["new_ref"] for each in rows} == {None}
        assert events(caller, old) == ["SUPERSEDE", "ADD"]
        assert words(tenant, BERLIN)  # the control

    def test_what_was_proposed_of_it_goes_too(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        review = tenant.caller("supervisor", scopes=tuple(KeyScope))
        city = {"user_id": USER, "category": "profile", "content": "The user's city is Oslo."}
        proposed = caller.post("/v1/memories", city).json()
        assert proposed["outcome"] == "queued_for_consent"
        memory = review.post(f"/v1/consents/{proposed['id']}/approve", {}).json()["memory_id"]
        delete(caller, memory)
        assert tenant.count("consent_proposals") == 1
        purge(admin, memory_id=memory, early=True)
        assert tenant.count("consent_proposals", "user_context") == 0
        assert words(tenant, "Oslo") == []

    def test_in_bounded_pages(self, caller: Caller, admin: Caller) -> None:
        for word in ("piano", "boat", "horse"):
            delete(caller, write(caller, f"The user owns a {word}.")["id"])
        done = [purge(admin, user_id=USER, early=True, limit=2) for _ in range(3)]
        assert [(each["purged"], each["more"]) for each in done] == [(2, True), (1, False), (0, False)]

    def test_a_purged_memory_leaves_no_trace_in_answers(self, caller: Caller, admin: Caller) -> None:
        write(caller, BOAT)
        memory = write(caller, PIANO)["id"]
        assert texts(caller, query="piano") == {PIANO, BOAT}  # and the scope is remembered
        delete(caller, memory)
        purge(admin, memory_id=memory, early=True)
        assert texts(caller, query="piano") == {BOAT}
        assert write(caller, PIANO)["outcome"] == "created"
        assert texts(caller, query="piano") == {PIANO, BOAT}


class TestAccess:
    """Who may: a fully trusted administrator, as far as the key reaches."""

    @pytest.mark.parametrize("path", ["restore", "purge"])
    def test_trust_users_and_requests(self, tenant: Tenant, caller: Caller, path: str) -> None:
        memory = write(caller, PIANO)["id"]
        delete(caller, memory)
        url, one = f"/v1/admin/{path}", {"memory_id": memory}
        more = {"early": True} if path == "purge" else {}
        inner = tenant.caller("supervisor", trust="inner", scopes=SCOPES)
        refused(inner.post(url, one | more), 403, "trust_too_low")
        bound = tenant.caller("supervisor", users=["ben"], scopes=SCOPES)
        since = {"since": LONG_AGO} if path == "restore" else {}
        refused(bound.post(url, {"user_id": USER} | since), 403, "user_forbidden")
        refused(bound.post(url, one | more), 404, "not_found")
        supervisor = tenant.caller("supervisor", scopes=SCOPES)
        for wrong in ({}, one | {"user_id": USER}, one | {"limit": 101}, one | {"everything": True}):
            refused(supervisor.post(url, wrong), 422, "invalid_request")
        refused(supervisor.post(url, {"memory_id": str(new_id())}), 404, "not_found")
        assert supervisor.post(url, one | more).status_code == 200  # the control

    @pytest.mark.parametrize("path", ["restore", "purge"])
    def test_an_agent_s_key_reaches_its_categories_and_an_operator_s_all(self, tenant: Tenant, path: str) -> None:
        planner = tenant.caller("planner", scopes=SCOPES)
        supervisor = tenant.caller("supervisor")
        mine, theirs = write(planner, PIANO, "projects")["id"], write(supervisor, BOAT)["id"]
        delete(planner, mine)
        delete(supervisor, theirs)
        url = f"/v1/admin/{path}"
        more = {"early": True} if path == "purge" else {"since": LONG_AGO}
        refused(planner.post(url, {"memory_id": theirs, "early": True} if path == "purge" else {"memory_id": theirs}),
                404, "not_found")  # fmt: skip
        assert planner.post(url, {"user_id": USER} | more).status_code == 200
        left = tenant.rows("SELECT state FROM memories WHERE id = %(id)s", id=UUID(theirs))
        assert [each["state"] for each in left] == ["soft_deleted"]
        refused(planner.post(url, {"user_id": USER, "agent": "supervisor"} | more), 403, "agent_forbidden")
        operator = tenant.caller(None, act_for=["*"], scopes=SCOPES)
        assert operator.post(url, {"user_id": USER} | more).status_code == 200
        left = tenant.rows("SELECT state FROM memories WHERE id = %(id)s", id=UUID(theirs))
        assert [each["state"] for each in left] == ([] if path == "purge" else ["active"])
        lone = tenant.caller(None, act_for=["planner"], scopes=SCOPES)
        refused(lone.post(url, {"user_id": USER} | more), 403, "agent_forbidden")

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    @pytest.mark.parametrize("path", ["restore", "purge"])
    def test_another_tenant_s_is_absent(self, tenant: Tenant, other_tenant: Tenant, caller: Caller, path: str) -> None:
        memory = write(caller, PIANO)["id"]
        delete(caller, memory)
        stranger = other_tenant.caller("supervisor", scopes=SCOPES)
        url, early = f"/v1/admin/{path}", {"early": True} if path == "purge" else {}
        answers = [stranger.post(url, {"memory_id": each} | early) for each in (memory, str(new_id()))]
        assert refused(answers[0], 404, "not_found") == refused(answers[1], 404, "not_found")
        more = early or {"since": LONG_AGO}
        assert stranger.post(url, {"user_id": USER} | more).status_code == 200
        left = tenant.rows("SELECT state FROM memories WHERE id = %(id)s", id=UUID(memory))
        assert [each["state"] for each in left] == ["soft_deleted"]
        mine = tenant.caller("supervisor", scopes=SCOPES)
        assert mine.post(url, {"memory_id": memory} | early).status_code == 200  # the control

    def test_a_retry_has_one_effect(self, caller: Caller, admin: Caller) -> None:
        memory = write(caller, PIANO)["id"]
        delete(caller, memory)
        sent = [
            admin.send("POST", "/v1/admin/restore", json={"memory_id": memory}, headers={"Idempotency-Key": "k"})
            for _ in range(2)
        ]
        assert [each.status_code for each in sent] == [200, 200]
        assert sent[0].json() == sent[1].json()
        assert events(caller, memory) == ["RESTORE", "DELETE", "ADD"]
