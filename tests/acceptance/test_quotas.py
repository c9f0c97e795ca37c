"""Quotas of tenants and users: what exceeds them is refused, and what takes something away never is."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memplane.adapters.policy.loading import shipped_policies
from memplane.domain.identity.principal import KeyScope
from support.callers import SUPERVISING, THREAD, USER, Caller, Json, Tenant, refused
from support.consenting import decide, queue
from support.serving import RunningServer
from support.telling import say, texts, write

EVERYTHING = (*SUPERVISING, KeyScope.CONSENT, KeyScope.ADMIN)
PIANO, BOAT, HORSE = "The user owns a piano.", "The user sails a boat.", "The user rides a horse."
BERLIN, MUNICH = "Vera lives in Berlin.", "Vera lives in Munich."
Limited = Callable[..., Tenant]


@pytest.fixture
def limited(start_server: Callable[..., RunningServer], tmp_path: Path) -> Limited:
    """A tenant of a server whose policy has quotas."""

    def started(**quotas: dict[str, int]) -> Tenant:
        for file in shipped_policies().glob("*.yaml"):
            (tmp_path / file.name).write_text(file.read_text())
        writing = tmp_path / "writing.yaml"
        writing.write_text(f"{writing.read_text()}\nquotas: {json.dumps(quotas)}\n")
        return Tenant(start_server(policies=tmp_path))

    return started


def supervisor(tenant: Tenant) -> Caller:
    return tenant.caller("supervisor", act_for=["*"], scopes=EVERYTHING)


def post(caller: Caller, content: str, user: str = USER) -> Any:  # noqa: ANN401 - an answer
    return caller.post("/v1/memories", {"user_id": user, "category": "event", "content": content})


def exceeded(answer: Any, quota: str, limit: int) -> Json:  # noqa: ANN401 - an answer
    problem = refused(answer, 429, "quota_exceeded")
    assert (problem["quota"], problem["limit"]) == (quota, limit)
    assert int(answer.headers["Retry-After"]) == problem["retry_after"] > 0
    return problem


class TestStored:
    """How much may be stored."""

    def test_one_memory_more_than_a_user_may_have_is_refused(self, limited: Limited) -> None:
        caller = supervisor(limited(user={"memories": 2}))
        write(caller, PIANO)
        write(caller, BOAT)
        problem = exceeded(post(caller, HORSE), "user.memories", 2)
        assert problem["resets_at"] is None
        assert texts(caller) == {PIANO, BOAT}
        assert post(caller, HORSE, user="bo").status_code == 201  # the control: another user has room

    def test_what_is_known_already_needs_no_room(self, limited: Limited) -> None:
        caller = supervisor(limited(user={"memories": 1}))
        write(caller, PIANO)
        assert write(caller, PIANO)["outcome"] == "duplicate"
        exceeded(post(caller, BOAT), "user.memories", 1)

    def test_a_deletion_makes_room_and_is_never_refused(self, limited: Limited) -> None:
        caller = supervisor(limited(user={"memories": 1}))
        first = write(caller, PIANO)["id"]
        exceeded(post(caller, BOAT), "user.memories", 1)
        assert caller.delete(f"/v1/memories/{first}").status_code == 200
        assert post(caller, BOAT).status_code == 201

    def test_bytes_of_texts_are_limited(self, limited: Limited) -> None:
        caller = supervisor(limited(user={"bytes": 60}))
        write(caller, PIANO)
        write(caller, BOAT)
        exceeded(post(caller, HORSE), "user.bytes", 60)
        memory = caller.get("/v1/memories", user_id=USER).json()["items"][0]["id"]
        longer = caller.patch(f"/v1/memories/{memory}", {"content": f"{BOAT} The boat is blue and very long."})
        exceeded(longer, "user.bytes", 60)
        assert caller.patch(f"/v1/memories/{memory}", {"importance": 5}).status_code == 200
        assert caller.patch(f"/v1/memories/{memory}", {"content": "The user sails."}).status_code == 200

    def test_a_tenant_has_a_quota_of_its_own(self, limited: Limited) -> None:
        tenant = limited(tenant={"memories": 2}, user={"memories": 10})
        caller = supervisor(tenant)
        write(caller, PIANO)
        write(caller, BOAT, user_id="bo")
        exceeded(post(caller, HORSE, user="cy"), "tenant.memories", 2)
        bound = tenant.caller("supervisor", users=["cy"])  # who sees no row of the others
        exceeded(post(bound, HORSE, user="cy"), "tenant.memories", 2)

    def test_a_turn_stays_when_there_is_no_room_for_what_it_states(self, limited: Limited) -> None:
        caller = supervisor(limited(user={"memories": 1}))
        write(caller, PIANO)
        done = caller.say("I love cycling.")
        assert [(each["id"], each["action"]) for each in done["extracted"]] == [(None, "refused")]
        caller.delete(f"/v1/memories/{caller.found('piano')[0]}")
        assert [each["action"] for each in caller.say("I love sailing.")["extracted"]] == ["created"]  # the control

    def test_a_correction_needs_room(self, limited: Limited) -> None:
        caller = supervisor(limited(user={"memories": 1}))
        memory = write(caller, BERLIN)["id"]
        exceeded(caller.post(f"/v1/memories/{memory}/correct", {"content": MUNICH}), "user.memories", 1)
        assert texts(caller) == {BERLIN}

    def test_verdicts_and_consent_are_never_refused(self, limited: Limited) -> None:
        caller = supervisor(limited(user={"memories": 0}))
        proposal = queue(caller, "The user lives in Berlin.")
        done = decide(caller, proposal)
        assert done["outcome"] == "approved"
        assert say(caller, done["memory_id"], "reject")["outcome"] == "rejected"
        exceeded(post(caller, PIANO), "user.memories", 0)  # the control

    def test_an_erasure_is_never_refused_and_leaves_nothing_counted(self, limited: Limited) -> None:
        tenant = limited(user={"memories": 1})
        caller = supervisor(tenant)
        write(caller, PIANO)
        exceeded(post(caller, BOAT), "user.memories", 1)
        admin = tenant.caller(None, act_for=["*"], scopes=tuple(KeyScope))
        assert admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).status_code == 200
        assert tenant.count("user_usage") == 0

    def test_an_import_reports_how_many_were_refused(self, limited: Limited) -> None:
        caller = supervisor(limited(user={"memories": 2}))
        lines = [
            json.dumps({"record": "memory", "category": "event", "content": text}) for text in (PIANO, BOAT, HORSE)
        ]
        done = caller.post(f"/v1/users/{USER}/import", {"lines": lines}).json()
        assert done["outcomes"] == ["created", "created", "refused"]
        assert [each["code"] for each in done["refused"]] == ["quota_exceeded"]
        assert texts(caller) == {PIANO, BOAT}


class TestWrites:
    """How much may be written in a day."""

    def test_one_write_more_than_a_day_has_is_refused_until_the_next(self, limited: Limited) -> None:
        caller = supervisor(limited(user={"writes_per_day": 2}))
        write(caller, PIANO)
        caller.say("The hall is booked.")
        problem = exceeded(post(caller, BOAT), "user.writes_per_day", 2)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00\+00:00", str(problem["resets_at"]))
        assert 0 < problem["retry_after"] <= 86_400
        exceeded(caller.post("/v1/turns", {"user_id": USER, "thread_id": THREAD, "role": "user", "text": "Yes."}),
                 "user.writes_per_day", 2)  # fmt: skip
        assert post(caller, BOAT, user="bo").status_code == 201  # the control

    def test_the_next_day_begins_anew(self, limited: Limited) -> None:
        tenant = limited(user={"writes_per_day": 1})
        caller = supervisor(tenant)
        write(caller, PIANO)
        exceeded(post(caller, BOAT), "user.writes_per_day", 1)
        tenant.rows("UPDATE user_usage SET day = '2020-01-01' WHERE tenant_id = %(tenant)s")
        assert post(caller, BOAT).status_code == 201

    def test_a_refused_write_and_a_dry_run_count_nothing(self, limited: Limited) -> None:
        tenant = limited(user={"writes_per_day": 2})
        caller = supervisor(tenant)
        write(caller, PIANO)
        body = {"user_id": USER, "category": "event", "content": BOAT}
        assert caller.post("/v1/memories", body | {"dry_run": True}).status_code == 200
        refused(caller.post("/v1/memories", body | {"category": "style"}), 403, "category_forbidden")
        assert caller.post("/v1/memories", body).status_code == 201
        exceeded(caller.post("/v1/memories", body | {"content": HORSE, "dry_run": True}), "user.writes_per_day", 2)

    def test_what_takes_something_away_is_no_write(self, limited: Limited) -> None:
        caller = supervisor(limited(user={"writes_per_day": 2}))
        one, other = write(caller, PIANO)["id"], write(caller, BOAT)["id"]
        assert say(caller, one, "retract")["outcome"] == "retracted"
        assert caller.delete(f"/v1/memories/{other}").status_code == 200
        assert say(caller, other, "restore")["outcome"] == "restored"
        exceeded(post(caller, HORSE), "user.writes_per_day", 2)

    def test_a_batch_of_turns_is_as_many_writes(self, limited: Limited) -> None:
        caller = supervisor(limited(user={"writes_per_day": 2}))
        batch = [
            {"user_id": USER, "thread_id": THREAD, "role": "user", "text": f"Yes {n}.", "external_id": str(n)}
            for n in range(3)
        ]
        exceeded(caller.post("/v1/turns:batch", {"turns": batch}), "user.writes_per_day", 2)
        assert caller.post("/v1/turns:batch", {"turns": batch[:2]}).status_code == 201
        assert caller.post("/v1/turns:batch", {"turns": batch[:2]}).status_code == 200  # there already: no write


class TestStanding:
    """What an administrator sees."""

    def test_use_and_limits_are_shown(self, limited: Limited) -> None:
        tenant = limited(tenant={"memories": 9}, user={"writes_per_day": 5})
        caller = supervisor(tenant)
        write(caller, PIANO)
        write(caller, BOAT, user_id="bo")
        shown = caller.get("/v1/quotas", user_id=USER).json()
        assert shown["tenant"]["memories"] == {"used": 2, "limit": 9}
        assert shown["tenant"]["bytes"] == {"used": len(PIANO) + len(BOAT), "limit": None}
        assert shown["user"]["memories"] == {"used": 1, "limit": None}
        assert shown["user"]["writes_per_day"] == {"used": 1, "limit": 5}
        assert caller.get("/v1/quotas").json()["user"] is None

    def test_only_an_administrator_sees_it(self, tenant: Tenant) -> None:
        refused(tenant.caller("supervisor").get("/v1/quotas"), 403, "scope_forbidden")
        bound = tenant.caller(None, act_for=["*"], users=["bo"], scopes=EVERYTHING)
        refused(bound.get("/v1/quotas", user_id=USER), 403, "user_forbidden")
        assert bound.get("/v1/quotas", user_id="bo").json()["user"]["memories"] == {"used": 0, "limit": None}

    def test_no_count_tells_more_than_its_reader_reaches(self, tenant: Tenant) -> None:
        write(supervisor(tenant), PIANO)
        bound = tenant.caller(None, act_for=["*"], users=["bo"], scopes=EVERYTHING)
        assert bound.get("/v1/quotas").json()["tenant"] is None
        stylist = tenant.caller("stylist", scopes=EVERYTHING)
        refused(stylist.get("/v1/quotas", user_id=USER), 403, "category_forbidden")
        inner = tenant.caller(None, act_for=["*"], scopes=EVERYTHING, trust="inner")
        refused(inner.get("/v1/quotas"), 403, "trust_too_low")
        whole = tenant.caller(None, act_for=["*"], scopes=EVERYTHING)
        assert whole.get("/v1/quotas").json()["tenant"]["memories"]["used"] == 1  # the control

    def test_use_is_counted_by_tenant(self, tenant: Tenant) -> None:
        caller = supervisor(tenant)
        write(caller, PIANO)
        other = Tenant(tenant.server)
        if other.name != tenant.name:  # SQLite has one
            write(supervisor(other), BOAT)
        assert caller.get("/v1/quotas").json()["tenant"]["memories"]["used"] == 1

    @pytest.mark.parametrize("how", ["purge", "turns", "change"])
    def test_the_counters_follow_what_is_stored(self, tenant: Tenant, how: str) -> None:
        caller = supervisor(tenant)
        memory = write(caller, PIANO)["id"]
        turn = caller.say("The hall is booked.", auto_extract=False)["turn_id"]
        match how:
            case "purge":
                caller.delete(f"/v1/memories/{memory}")
                assert caller.post("/v1/admin/purge", {"memory_id": memory, "early": True}).status_code == 200
            case "turns":
                assert caller.delete(f"/v1/turns/{turn}").status_code == 200
            case _:
                assert caller.patch(f"/v1/memories/{memory}", {"content": "The user owns a cello.", "title": "É"})
        (counted,) = tenant.rows("SELECT memories, bytes FROM user_usage WHERE tenant_id = %(tenant)s")
        memories = tenant.rows(
            "SELECT content, title FROM memories WHERE tenant_id = %(tenant)s AND state <> 'soft_deleted'"
        )
        said = tenant.rows("SELECT text FROM turns WHERE tenant_id = %(tenant)s")
        size = sum(len((row["content"] + (row["title"] or "")).encode()) for row in memories)
        assert counted == {"memories": len(memories), "bytes": size + sum(len(row["text"].encode()) for row in said)}
