"""What an import takes, from whom, and that what is restored is as it was."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from memplane.application.keys.api_keys import AGENT_SCOPES
from memplane.domain.identity.principal import KeyScope
from memplane.domain.memory.memory import new_id
from memplane.domain.policy.capabilities import Capability
from support.callers import THREAD, USER, Caller, Json, Tenant, refused
from support.cluster import Databases
from support.files import Files
from support.promises.checks import BOAT, HORSE, PIANO, restored_rejected
from support.serving import running_server
from support.telling import events, say, texts, write
from support.transfer import OPERATING, exported, of, restored, taken, whole_life


@pytest.fixture
def elsewhere(storage: str, request: pytest.FixtureRequest) -> Iterator[Tenant]:
    """A tenant on another server, which nobody has written to."""
    makes: Databases | Files = request.getfixturevalue("databases" if storage == "postgres" else "files")
    made = makes.create()
    with running_server(made) as server:
        yield Tenant(server)
    makes.drop(made)  # type: ignore[arg-type]  # what it made


def memory(content: str = PIANO, category: str = "event", **fields: Any) -> Json:  # noqa: ANN401 - of the line
    return {"record": "memory", "category": category, "content": content} | fields


def operator(tenant: Tenant) -> Caller:
    return tenant.caller(None, act_for=["*"], scopes=OPERATING)


def states(tenant: Tenant) -> list[tuple[str, str]]:
    rows = tenant.rows("SELECT content, state FROM memories WHERE tenant_id = %(tenant)s")
    return sorted((row["content"], row["state"]) for row in rows)


def without_own(lines: list[Json]) -> list[Json]:
    """Lines without what each server says of itself: its moment, and who brought what to it."""
    found = []
    for line in lines[1:-1]:
        if line["record"] == "history":
            if line["meta"].get("imported"):
                continue
            brought = ("imported_by", "imported_key")
            line = line | {"meta": {name: value for name, value in line["meta"].items() if name not in brought}}  # noqa: PLW2901 - the same line
        found.append(line)
    return found


class TestRestore:
    """An administrator brings a user to another server as he was."""

    def test_export_and_import_give_the_same_records_and_answers(
        self, tenant: Tenant, caller: Caller, admin: Caller, elsewhere: Tenant
    ) -> None:
        whole_life(tenant, caller, admin)
        write(caller, "The garden gate is green.", importance=4, pinned=True, thread_id=THREAD, lang="en")
        tenant.caller("executor").remember("Run it.", "procedural", type="procedural", steps=["Tag it.", "Push it."])
        lines = exported(admin)
        there = operator(elsewhere)
        outcomes = restored(there, lines, size=7)
        assert set(outcomes) == {"restored", "skipped"}, outcomes
        assert outcomes["restored"] == len(lines) - 2
        assert without_own(exported(there)) == without_own(lines)
        mine, theirs = caller, elsewhere.caller("supervisor")
        for asked in (
            {"query": "piano"}, {"query": "green gate", "return": "full"}, {"query": "release", "threshold": 0.0},
            {"query": "who is Annie", "ranking": "rrf"}, {"categories": ["event"], "top_k": 50},
        ):  # fmt: skip
            answers = [each.post("/v1/memory/query", asked).json() for each in (mine, theirs)]
            kept = [_timeless(each["items"]) for each in answers]
            scores = [[item["score"] for item in each["items"]] for each in answers]
            assert kept[0] == kept[1]
            assert scores[0] == pytest.approx(scores[1], abs=1e-4)
            assert kept[0]

    def test_it_is_stored_with_what_makes_it_findable(self, elsewhere: Tenant) -> None:
        there = operator(elsewhere)
        restored(there, [memory("Ana Ruiz owns a grand piano.", entities=[["person", "Ana Ruiz"]])])
        supervisor = elsewhere.caller("supervisor")
        assert texts(supervisor, query="piano") == {"Ana Ruiz owns a grand piano."}
        assert len(supervisor.found("grand", filters={"entity": "Ana Ruiz"})) == 1

    def test_once_more_changes_nothing(self, tenant: Tenant, caller: Caller, admin: Caller, elsewhere: Tenant) -> None:
        whole_life(tenant, caller, admin)
        lines, there = exported(admin), operator(elsewhere)
        restored(there, lines)
        first = exported(there)
        outcomes = restored(there, lines, size=3)
        assert outcomes["unchanged"] + outcomes["restored"] == len(lines) - 2
        assert exported(there)[1:] == first[1:]

    def test_into_the_same_server_it_changes_nothing(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        whole_life(tenant, caller, admin)
        before = exported(admin)
        restored(admin, before)
        assert exported(admin)[1:] == before[1:]

    def test_another_user_s_export_becomes_copies(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        made = whole_life(tenant, caller, admin)
        source = caller.say("I bought a canoe.", auto_extract=False)["turn_id"]
        write(caller, "The user owns a canoe.", source_ids=[source])
        lines = exported(admin)
        outcomes = restored(admin, lines, "ben")
        copies = exported(admin, "ben")
        assert exported(admin)[1:-1] == lines[1:-1]
        oslo = [line["memory_id"] for line in of(lines, "field")]  # what its user agreed to nobody else did
        contents = [
            sorted((m["content"], m["state"]) for m in of(each, "memory") if m["id"] not in oslo)
            for each in (lines, copies)
        ]
        assert contents[0] == contents[1]
        assert outcomes["queued_for_consent"] == 1
        assert of(copies, "field") == []
        ids = {m["id"] for m in of(copies, "memory")}
        assert ids.isdisjoint(m["id"] for m in of(lines, "memory"))
        assert {m["superseded_by"] for m in of(copies, "memory") if "superseded_by" in m} < ids
        assert all(each["from_id"] in ids and each["to_id"] in ids for each in of(copies, "relation"))
        assert len(of(copies, "relation")) == len(of(lines, "relation"))
        (canoe,) = [m for m in of(copies, "memory") if "canoe" in m["content"]]
        assert canoe["source_ids"] != [source]
        assert set(canoe["source_ids"]) <= {turn["id"] for turn in of(copies, "turn")}
        assert made["active"] not in ids

    @pytest.mark.needs(Capability.ROW_LEVEL_SECURITY)
    def test_an_id_that_a_bound_key_cannot_see_is_not_told(self, tenant: Tenant, caller: Caller) -> None:
        theirs = write(caller, PIANO, user_id="zoe")["id"]
        bound = tenant.caller("supervisor", users=[USER], scopes=OPERATING)
        answers = [restored(bound, [memory(text, id=each)]) for text, each in ((BOAT, theirs), (HORSE, str(new_id())))]
        assert answers[0] == answers[1] == {"restored": 1}
        assert [m["content"] for m in of(exported(bound), "memory")] == [BOAT, HORSE]
        assert caller.get(f"/v1/memories/{theirs}").json()["content"] == PIANO

    def test_a_deleted_one_comes_back_and_purges_as_it_would_have(
        self, tenant: Tenant, caller: Caller, admin: Caller, elsewhere: Tenant
    ) -> None:
        made = whole_life(tenant, caller, admin)
        there, supervisor = operator(elsewhere), elsewhere.caller("supervisor")
        restored(there, exported(admin))
        assert say(supervisor, made["deleted"], "restore")["outcome"] == "restored"
        refused(supervisor.post(f"/v1/memories/{made['rejected']}/restore", {}), 409, "value_rejected")
        body = {"user_id": USER, "category": "event", "content": "The user owns a horse."}
        refused(supervisor.post("/v1/memories", body), 409, "value_rejected")
        assert events(supervisor, made["deleted"])[-2:] == ["DELETE", "ADD"]


class TestAccess:
    """Nobody writes by an import what he could not write otherwise."""

    def test_to_restore_takes_an_administrator_who_is_fully_trusted(self, tenant: Tenant) -> None:
        path, body = f"/v1/users/{USER}/import", {"lines": [json.dumps(memory())], "mode": "restore"}
        refused(tenant.caller("supervisor").post(path, body), 403, "scope_forbidden")
        inner = tenant.caller("supervisor", trust="inner", scopes=OPERATING)
        refused(inner.post(path, body), 403, "trust_too_low")
        bound = tenant.caller("supervisor", users=["ben"], scopes=OPERATING)
        refused(bound.post(path, body), 403, "user_forbidden")
        refused(bound.post(path, body | {"mode": "add"}), 403, "user_forbidden")
        refused(tenant.caller("planner", scopes=OPERATING).post(path, body | {"agent": "supervisor"}), 403,
                "agent_forbidden")  # fmt: skip
        assert tenant.count("memories") == 0
        assert restored(tenant.caller("supervisor", scopes=OPERATING), [memory()]) == {"restored": 1}  # the control

    @pytest.mark.parametrize("mode", ["add", "restore"])
    def test_an_agent_s_categories_bound_it_line_by_line(self, tenant: Tenant, mode: str) -> None:
        planner = tenant.caller("planner", scopes=OPERATING)
        lines = [memory(), memory("The user plans a trip.", "tasks"), memory(category="mood")]
        turn = {"record": "turn", "thread_id": THREAD, "role": "user", "text": "Hello."}
        done = taken(planner, [*lines, turn], mode=mode)
        assert done["outcomes"][1] in {"created", "restored"}
        assert [(each["line"], each["code"]) for each in done["refused"]] == [
            (0, "category_forbidden"), (2, "category_forbidden"), (3, "category_forbidden"),
        ]  # fmt: skip
        assert states(tenant) == [("The user plans a trip.", "active")]
        assert tenant.count("turns") == 0

    def test_what_is_added_has_the_writer_s_weight_and_nothing_that_it_claims(
        self, tenant: Tenant, caller: Caller
    ) -> None:
        inner = tenant.caller("supervisor", trust="inner")
        line = memory(
            visibility="shared", trust_state="confirmed", authority=3, source="user", mention_count=99, version=7,
            id=str(new_id()), decay_rate=0, reinforcement=50,
        )  # fmt: skip
        assert taken(inner, [line])["outcomes"] == ["created"]
        (found,) = tenant.rows("SELECT * FROM memories WHERE tenant_id = %(tenant)s")
        told = {name: found[name] for name in ("trust_state", "authority", "source", "mention_count", "version")}
        assert told == {"trust_state": "candidate", "authority": 2, "source": "migration", "mention_count": 1,
                        "version": 1}  # fmt: skip
        assert str(found["id"]) != line["id"]
        assert found["reinforcement"] == 0
        done = taken(inner, [memory(BOAT, visibility="private")])
        assert [each["code"] for each in done["refused"]] == ["visibility_forbidden"]
        assert taken(caller, [memory(BOAT, visibility="private")])["outcomes"] == ["created"]  # the control

    def test_only_what_is_believed_is_added(self, tenant: Tenant, caller: Caller, admin: Caller) -> None:
        whole_life(tenant, caller, admin)
        lines = exported(admin)
        before = exported(admin)
        done = taken(caller, lines, "ben")
        by_record = {(line["record"], outcome) for line, outcome in zip(lines, done["outcomes"], strict=True)}
        assert {record for record, outcome in by_record if outcome == "refused"} == {
            "memory", "entity", "relation", "history", "proposal", "field", "tombstone",
        }  # fmt: skip
        assert {("header", "skipped"), ("turn", "created"), ("memory", "created"), ("end", "skipped")} <= by_record
        assert exported(admin)[1:] == before[1:]
        assert "The user sails a boat." not in str(of(exported(admin, "ben"), "memory"))

    @pytest.mark.needs(Capability.SEVERAL_TENANTS)
    def test_another_tenant_s_export_is_a_new_copy_here(
        self, other_tenant: Tenant, caller: Caller, admin: Caller
    ) -> None:
        theirs = operator(other_tenant)
        write(other_tenant.caller("supervisor"), PIANO)
        before = exported(theirs)
        assert restored(admin, before)["restored"] == len(before) - 2
        assert texts(caller, query="piano") == {PIANO}
        for each in of(exported(admin), "memory"):
            assert caller.delete(f"/v1/memories/{each['id']}").status_code == 200
        assert exported(theirs)[1:] == before[1:]


class TestGateway:
    """Every line goes the way of every other write."""

    @pytest.mark.parametrize("mode", ["add", "restore"])
    def test_a_tombstoned_value_stays_out_in_whatever_state(self, tenant: Tenant, mode: str) -> None:
        assert restored_rejected(tenant, mode) == []

    @pytest.mark.parametrize("mode", ["add", "restore"])
    def test_a_sensitive_field_waits_for_consent(self, tenant: Tenant, mode: str) -> None:
        supervisor = tenant.caller("supervisor", scopes=OPERATING)
        line = memory("The user lives in Oslo.", "profile")
        assert taken(supervisor, [line], mode=mode)["outcomes"] == ["queued_for_consent"]
        assert tenant.count("memories", "user_context") == 0
        (waiting,) = supervisor.get("/v1/consents", user_id=USER).json()["items"]
        assert (waiting["field"], waiting["new_value"], waiting["state"]) == ("city", "Oslo", "pending")
        other = memory("The user likes opera.", "profile")
        assert taken(supervisor, [other], mode=mode)["outcomes"][0] in {"created", "restored"}  # the control

    def test_a_decision_is_restored_by_who_may_decide(
        self, tenant: Tenant, caller: Caller, admin: Caller, elsewhere: Tenant
    ) -> None:
        proposal = tenant.propose()
        assert admin.post(f"/v1/consents/{proposal}/approve", {"agent": "supervisor"}).status_code == 200
        lines = exported(admin)
        other = elsewhere.caller(None, act_for=["*"], scopes=(*AGENT_SCOPES, KeyScope.ADMIN))
        done = taken(other, lines, mode="restore")
        told = {line["record"]: outcome for line, outcome in zip(lines, done["outcomes"], strict=True)}
        assert (told["proposal"], told["memory"], told["field"]) == ("refused", "queued_for_consent", "refused")
        assert elsewhere.count("memories", "user_context") == 0
        reviewer = operator(elsewhere)
        assert restored(reviewer, lines)["refused"] == 0
        assert [f["field_value"] for f in of(exported(reviewer), "field")] == ["Oslo"]
        assert [f["value"] for f in caller.get(f"/v1/users/{USER}/context").json()["items"]] == ["Oslo"]

    def test_a_field_that_was_decided_otherwise_here_stays(
        self, tenant: Tenant, admin: Caller, elsewhere: Tenant
    ) -> None:
        for where, value in ((tenant, "Oslo"), (elsewhere, "Rome")):
            decider = operator(where)
            proposal = where.propose(value=value)
            done = decider.post(f"/v1/consents/{proposal}/approve", {"agent": "supervisor"})
            assert done.status_code == 200
        there = operator(elsewhere)
        restored(there, exported(admin))
        assert [f["field_value"] for f in of(exported(there), "field")] == ["Rome"]

    def test_words_are_held_to_the_limits_and_to_no_rule_of_style(self, caller: Caller) -> None:
        lines = [memory("He owns a piano."), memory("x\x00y"), memory("  "), memory(PIANO + " " + "Long. " * 100)]
        done = taken(caller, lines)
        assert done["outcomes"] == ["created", "refused", "refused", "created"]
        codes = [each["code"] for each in done["refused"]]
        assert codes == ["invalid_text", "invalid_text"]
        agents = caller.post("/v1/memories", {"user_id": "ben", "category": "event", "content": "He owns a piano."})
        refused(agents, 422, "writing_constraint")  # the control

    def test_the_same_again_is_merged_and_told(self, caller: Caller) -> None:
        assert taken(caller, [memory(), memory(), memory(BOAT)])["outcomes"] == ["created", "duplicate", "created"]
        assert texts(caller) == {PIANO, BOAT}

    def test_a_batch_that_is_sent_again_has_one_effect(self, tenant: Tenant, caller: Caller) -> None:
        body = {"lines": [json.dumps(memory()), "broken", json.dumps({"record": "turn", "thread_id": "t",
                                                                     "role": "user", "text": "Hello."})]}  # fmt: skip
        path = f"/v1/users/{USER}/import"
        sent = [caller.send("POST", path, json=body, headers={"Idempotency-Key": "k"}) for _ in range(3)]
        assert [each.status_code for each in sent] == [200] * 3
        assert sent[0].json() == sent[1].json() == sent[2].json()
        (found,) = tenant.rows("SELECT mention_count FROM memories WHERE tenant_id = %(tenant)s")
        assert found["mention_count"] == 1
        assert tenant.count("turns") == 1


BAD = {
    "broken JSON": '{"record": "memory", "content"',
    "no object": "[1, 2]",
    "nothing": "",
    "unknown kind": '{"record": "diary", "text": "Dear diary"}',
    "no kind": '{"category": "event", "content": "The user owns a piano."}',
    "unknown field": json.dumps(memory(tenant_id="t")),
    "too deep": '{"record":"memory","category":"event","content":"A piano.","attributes":' + '{"a":' * 500 + "1"
    + "}" * 501,
    "not finite": '{"record": "memory", "category": "event", "content": "A piano.", "confidence": NaN}',
    "bad time": json.dumps(memory(event_time="yesterday")),
    "too long": json.dumps(memory("word " * 25_000)),
    "bad id": json.dumps(memory(id="1")),
    "purged": json.dumps(memory(state="purged")),
    "lone surrogate": '{"record": "memory", "category": "event", "content": "\\ud800"}',
    "history of nothing": json.dumps({
        "record": "history", "id": str(UUID(int=5)), "memory_id": str(UUID(int=6)), "event": "ADD", "actor": "x",
        "policy_hash": "x", "ts": "2026-01-01T00:00:00Z",
    }),
    "relation to nothing": json.dumps({"record": "relation", "from_id": str(UUID(int=5)), "to_id": str(UUID(int=6))}),
}  # fmt: skip
VERSION_2 = json.dumps({
    "record": "header", "format": "memplane-export", "version": 2, "user": "u", "policy": "p", "categories": [],
    "exported_at": "2026-01-01T00:00:00Z",
})  # fmt: skip


class TestBadLines:
    """A line that cannot be read is refused for what it is, and the others are taken."""

    @pytest.mark.parametrize("mode", ["add", "restore"])
    @pytest.mark.parametrize("line", BAD.values(), ids=BAD)
    def test_it_is_refused_and_the_others_are_not(self, admin: Caller, line: str, mode: str) -> None:
        extra = {"agent": "supervisor"} if mode == "add" else {}
        done = taken(admin, [memory(), line, memory(BOAT)], mode=mode, **extra)
        assert done["outcomes"] in (["created", "refused", "created"], ["restored", "refused", "restored"])
        (why,) = done["refused"]
        assert why["line"] == 1
        assert why["code"] in {"invalid_request", "invalid_text", "limit_exceeded", "not_found"}
        assert why["detail"]

    def test_another_version_is_told(self, admin: Caller) -> None:
        done = taken(admin, [VERSION_2, memory()], mode="restore")
        assert [(each["line"], each["code"]) for each in done["refused"]] == [(0, "unsupported_version")]

    def test_a_request_is_bounded(self, caller: Caller) -> None:
        path = f"/v1/users/{USER}/import"
        for body in ({"lines": []}, {"lines": ["x"] * 501}, {"lines": ["x"], "mode": "replace"}, {"lines": [1]}):
            refused(caller.post(path, body), 422, "invalid_request")
        assert caller.post(path, {"lines": ["x"] * 500}).status_code == 200  # the control


def _timeless(items: list[Json]) -> list[Json]:
    """Items without what is counted as they are read, and without their scores, which fade with time."""
    counted = {"access_count", "last_accessed"}
    found = []
    for item in items:
        kept = {k: v for k, v in item.items() if k not in {"score", "score_parts"}}
        if kept.get("memory"):
            kept["memory"] = {k: v for k, v in kept["memory"].items() if k not in counted}
        found.append(kept)
    return found
