"""Dry runs: every write says what it would do, and stores nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from memplane.domain.identity.principal import KeyScope
from support.callers import SUPERVISING, THREAD, USER, Caller, Json, Tenant, refused
from support.consenting import listed, queue
from support.policies import changed
from support.serving import RunningServer
from support.snapshots import snapshot
from support.telling import say, texts, write

EVERYTHING = (*SUPERVISING, KeyScope.CONSENT, KeyScope.ADMIN)
BERLIN, MUNICH = "Vera lives in Berlin.", "Vera lives in Munich."
PIANO, BOAT = "The user owns a piano.", "The user sails a boat."
NIL = str(UUID(int=0))
Request = tuple[str, str, Json]


@pytest.fixture
def caller(tenant: Tenant) -> Caller:
    """A supervisor who may do everything."""
    return tenant.caller("supervisor", scopes=EVERYTHING)


def new(content: str, category: str = "event", **fields: Any) -> Json:  # noqa: ANN401 - of the memory
    return {"user_id": USER, "category": category, "content": content} | fields


def turn(text: str) -> Json:
    return {"user_id": USER, "thread_id": THREAD, "role": "user", "text": text}


def of_memory(verb: str, **body: Any) -> Callable[[Caller], Request]:  # noqa: ANN401 - of the verb
    def prepared(caller: Caller) -> Request:
        return "POST", f"/v1/memories/{write(caller, BERLIN, thread_id=THREAD)['id']}/{verb}", body

    return prepared


def of_proposal(verb: str) -> Callable[[Caller], Request]:
    return lambda caller: ("POST", f"/v1/consents/{queue(caller, thread_id=THREAD)}/{verb}", {})


def gone(caller: Caller) -> str:
    memory = str(write(caller, BERLIN, thread_id=THREAD)["id"])
    assert caller.delete(f"/v1/memories/{memory}").status_code == 200
    return memory


def bulk(caller: Caller) -> Request:
    return "POST", "/v1/consents/bulk", {"items": [{"id": queue(caller), "decision": "approve"}]}


def acknowledged(caller: Caller) -> Request:
    proposal = queue(caller, "The user lives in Berlin.")
    said = caller.say("Yes, I live in Berlin now.", auto_extract=False)
    return "POST", f"/v1/consents/{proposal}/ack", {"turn_id": said["turn_id"]}


def replacing(caller: Caller) -> Request:
    write(caller, BERLIN, thread_id=THREAD)
    return "POST", "/v1/memories", new(MUNICH, thread_id=THREAD)


def repeated(caller: Caller) -> Request:
    write(caller, BERLIN)
    return "POST", "/v1/memories", new(BERLIN)


def deleted_turn(caller: Caller) -> Request:
    return "DELETE", f"/v1/turns/{caller.say('I love cycling.')['turn_id']}", {}


WRITES: dict[str, Callable[[Caller], Request]] = {
    "create": lambda _: ("POST", "/v1/memories", new(PIANO, thread_id=THREAD)),
    "supersede": replacing,
    "repeat": repeated,
    "propose": lambda _: ("POST", "/v1/memories", new("The user lives in Berlin.", "profile")),
    "observe": lambda _: (
        "POST", "/v1/observations",
        {"user_id": USER, "category": "event", "tool": "search", "outcome": "The hall is free."},
    ),
    "turn": lambda _: ("POST", "/v1/turns", turn("I love cycling and I live in Berlin.")),
    "turns": lambda _: ("POST", "/v1/turns:batch", {"turns": [turn("I love cycling."), turn("I hate running.")]}),
    "delete a turn": deleted_turn,
    "change": lambda caller: ("PATCH", f"/v1/memories/{write(caller, BERLIN)['id']}", {"content": MUNICH}),
    "delete": lambda caller: ("DELETE", f"/v1/memories/{write(caller, BERLIN)['id']}", {}),
    **{verb: of_memory(verb) for verb in ("reinforce", "demote", "pin", "confirm", "retract", "reject")},
    "correct": of_memory("correct", content=MUNICH),
    "restore": lambda caller: ("POST", f"/v1/memories/{gone(caller)}/restore", {}),
    "approve": of_proposal("approve"),
    "refuse": of_proposal("reject"),
    "acknowledge": acknowledged,
    "decide several": bulk,
    "restore as administrator": lambda caller: ("POST", "/v1/admin/restore", {"memory_id": gone(caller)}),
    "purge": lambda caller: ("POST", "/v1/admin/purge", {"memory_id": gone(caller), "early": True}),
}  # fmt: skip


def send(caller: Caller, request: Request, *, dry_run: bool) -> Any:  # noqa: ANN401 - an answer
    method, path, body = request
    if method == "DELETE":
        return caller.send(method, path, params={"dry_run": dry_run})
    return caller.send(method, path, json=body | ({"dry_run": True} if dry_run else {}))


def tried(caller: Caller, path: str, body: Json) -> Json:
    """The answer to a dry run of a POST."""
    answer = caller.post(path, body | {"dry_run": True})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


class TestNothingIsStored:
    """Nothing but when the key was last used."""

    @pytest.mark.parametrize("name", WRITES)
    def test_a_dry_run_changes_no_row_and_says_what_the_write_does(
        self, name: str, tenant: Tenant, caller: Caller
    ) -> None:
        request = WRITES[name](caller)
        before = snapshot(tenant)
        dry = send(caller, request, dry_run=True)
        assert dry.status_code == 200, dry.text
        assert snapshot(tenant) == before
        real = send(caller, request, dry_run=False)
        assert snapshot(tenant) != before  # the control: the write itself does
        told = dry.json()
        assert told["dry_run"]["status"] == real.status_code
        assert told.get("outcome") == real.json().get("outcome")
        assert real.json()["dry_run"] is None

    def test_the_idempotency_key_of_a_dry_run_is_still_free(self, tenant: Tenant, caller: Caller) -> None:
        write(caller, BOAT)
        before = snapshot(tenant)
        headers = {"Idempotency-Key": "k1"}
        body = new(PIANO)
        dry = caller.send("POST", "/v1/memories", json=body | {"dry_run": True}, headers=headers)
        assert (dry.status_code, snapshot(tenant)) == (200, before)
        real = caller.send("POST", "/v1/memories", json=body, headers=headers)
        assert (real.status_code, real.headers.get("Idempotency-Replayed")) == (201, None)
        again = caller.send("POST", "/v1/memories", json=body, headers=headers)
        assert again.headers["Idempotency-Replayed"] == "true"  # the control

    def test_the_first_request_of_a_tenant_may_be_a_dry_run(self, tenant: Tenant, caller: Caller) -> None:
        before = snapshot(tenant)
        tried(caller, "/v1/memories", new(PIANO))
        assert snapshot(tenant) == before
        assert caller.remember(PIANO, "event")

    def test_no_revision_moves(self, caller: Caller) -> None:
        caller.say("The hall is booked.")
        rev = caller.get(f"/v1/threads/{THREAD}/delta").json()["rev"]
        dry = tried(caller, "/v1/turns", turn("The hall is free."))
        assert (dry["rev"], caller.get(f"/v1/threads/{THREAD}/delta").json()["rev"]) == (rev + 1, rev)
        assert caller.say("The hall is free.")["rev"] == rev + 1


class TestThePlan:
    """What a dry run says."""

    def test_what_would_be_superseded_by_which_rule_and_words(self, caller: Caller) -> None:
        old = write(caller, BERLIN)["id"]
        dry = tried(caller, "/v1/memories", new(MUNICH))
        assert (dry["outcome"], dry["id"], dry["overruled"]) == ("superseded", NIL, [old])
        by_event = {each["event"]: each for each in dry["dry_run"]["changes"]}
        ended, added = by_event["SUPERSEDE"], by_event["ADD"]
        assert (ended["memory_id"], ended["before"], ended["rule"]) == (old, BERLIN, "words")
        assert ended["words"] == {"common": ["vera", "lives"], "old": ["berlin"], "new": ["munich"]}
        assert (added["memory_id"], added["before"], added["after"]) == (None, None, MUNICH)
        assert texts(caller) == {BERLIN}

    def test_what_it_would_be_merged_with(self, caller: Caller) -> None:
        there = write(caller, BERLIN)["id"]
        dry = tried(caller, "/v1/memories", new(BERLIN))
        assert (dry["outcome"], dry["id"]) == ("duplicate", there)
        assert [each["event"] for each in dry["dry_run"]["changes"]] == ["MENTION"]

    def test_what_would_be_proposed(self, caller: Caller) -> None:
        dry = tried(caller, "/v1/memories", new("The user lives in Berlin.", "profile"))
        assert (dry["outcome"], dry["id"], dry["dry_run"]["status"]) == ("queued_for_consent", NIL, 202)
        assert dry["dry_run"]["proposals"] == [
            {"slot": "city", "category": "profile", "value": "Berlin", "content": "The user lives in Berlin."}
        ]
        assert listed(caller) == []
        queue(caller)
        assert len(listed(caller)) == 1  # the control

    def test_what_would_be_extracted(self, caller: Caller) -> None:
        dry = tried(caller, "/v1/turns", turn("I love cycling. I live in Berlin."))
        real = caller.say("I love cycling. I live in Berlin.")
        assert dry["turn_id"] == NIL
        drawn = [(each["content"], each["category"], each["action"]) for each in dry["extracted"]]
        assert drawn == [(each["content"], each["category"], each["action"]) for each in real["extracted"]]
        assert {each["id"] for each in dry["extracted"]} == {NIL}
        assert [each["slot"] for each in dry["dry_run"]["proposals"]] == ["city"]
        (added,) = [each for each in dry["dry_run"]["changes"] if each["event"] == "ADD"]
        assert added["rule"]

    def test_what_is_extracted_into_categories_that_the_agent_does_not_read_is_counted(self, caller: Caller) -> None:
        dry = tried(caller, "/v1/turns", turn("I'm allergic to peanuts."))
        assert (dry["extracted"], dry["extracted_elsewhere"], dry["dry_run"]["changes"]) == ([], 1, [])

    def test_ids_of_what_was_not_stored_name_nothing(self, caller: Caller) -> None:
        write(caller, BERLIN)
        dry = caller.post("/v1/memories", new(MUNICH) | {"dry_run": True}).text
        real = str(write(caller, MUNICH)["id"])
        assert real not in dry
        assert NIL in dry


class TestRefusals:
    """The same permissions and rules, and the same problems."""

    def test_a_refused_write_is_refused_in_a_dry_run(self, tenant: Tenant, caller: Caller) -> None:
        planner = tenant.caller("planner")
        refused(planner.post("/v1/memories", new(PIANO) | {"dry_run": True}), 403, "category_forbidden")
        reader = tenant.caller("supervisor", scopes=[KeyScope.READ])
        refused(reader.post("/v1/memories", new(PIANO) | {"dry_run": True}), 403, "scope_forbidden")
        assert tried(caller, "/v1/memories", new(PIANO))["outcome"] == "created"  # the control

    def test_a_rejected_value_is_refused(self, caller: Caller) -> None:
        say(caller, write(caller, BERLIN)["id"], "reject")
        answer = caller.post("/v1/memories", new(BERLIN) | {"dry_run": True})
        refused(answer, 409, "value_rejected")
        assert tried(caller, "/v1/memories", new(MUNICH))["outcome"] == "created"

    def test_a_version_that_is_gone_is_refused(self, caller: Caller) -> None:
        memory = write(caller, BERLIN)
        path = f"/v1/memories/{memory['id']}"
        refused(caller.patch(path, {"importance": 4, "dry_run": True}, if_match="9"), 412, "version_conflict")
        right = caller.patch(path, {"importance": 4, "dry_run": True}, if_match=str(memory["version"]))
        assert right.json()["outcome"] == "updated"

    def test_a_batch_is_tried_whole(self, caller: Caller) -> None:
        answer = caller.post("/v1/turns:batch", {"turns": [turn("I love cycling.") | {"dry_run": True}]})
        refused(answer, 422, "invalid_request")


class TestWhatItReveals:
    """A dry run shows no more than the caller could read once it is done."""

    def test_nothing_of_a_category_that_the_agent_only_writes(
        self, start_server: Callable[..., RunningServer], tmp_path: Path
    ) -> None:
        blind = ("  planner: [", "  blind: {read: [], write: [event]}\n  planner: [")
        tenant = Tenant(start_server(policies=changed(tmp_path, blind)))
        write(tenant.caller("supervisor"), BERLIN)
        dry = tenant.caller("blind").post("/v1/memories", new(MUNICH) | {"dry_run": True})
        assert (dry.json()["dry_run"]["changes"], dry.json()["overruled"]) == ([], [])
        assert "Berlin" not in dry.text
        seen = tenant.caller("supervisor").post("/v1/memories", new(MUNICH) | {"dry_run": True})
        assert "Berlin" in seen.text  # the control

    def test_no_words_for_a_key_that_does_not_read(self, tenant: Tenant, caller: Caller) -> None:
        write(caller, BERLIN)
        writer = tenant.caller("supervisor", scopes=[KeyScope.WRITE])
        dry = writer.post("/v1/memories", new(MUNICH) | {"dry_run": True})
        assert dry.json()["dry_run"]["changes"] == []
        assert "Berlin" not in dry.text
        assert "Berlin" in caller.post("/v1/memories", new(MUNICH) | {"dry_run": True}).text  # the control

    def test_nothing_of_another_tenant_or_store(self, tenant: Tenant, caller: Caller) -> None:
        write(caller, BERLIN, visibility="private")
        shared = tenant.caller("supervisor", trust="inner")
        dry = shared.post("/v1/memories", new(MUNICH, visibility="shared") | {"dry_run": True})
        assert "Berlin" not in dry.text
        assert dry.json()["outcome"] == "created"
