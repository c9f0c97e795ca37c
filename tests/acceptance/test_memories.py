"""The write gateway: how a memory's text is cleaned and constrained, duplicates, changes, deletion, history."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from memplane.domain.policy.capabilities import Capability
from support.callers import THREAD, USER, Caller, Tenant, refused
from support.serving import RunningServer

CLIENTS = 8
FIELDS = (
    "content", "title", "narrative", "facts", "steps", "tags", "related_files", "user_id", "external_id", "thread_id",
    "run_id", "actor_id", "attributes",
)  # fmt: skip
Json = dict[str, Any]


def body(content: str, **fields: Any) -> Json:  # noqa: ANN401 - fields of the request
    return {"user_id": USER, "category": "tasks", "content": content} | fields


def get(caller: Caller, memory: str) -> Json:
    response = caller.get(f"/v1/memories/{memory}")
    assert response.status_code == 200
    assert response.headers["ETag"] == f'"{response.json()["version"]}"'
    return dict(response.json())


class TestText:
    """Normalisation and the writing rules."""

    @pytest.mark.parametrize(
        ("sent", "stored"),
        [
            ("  The hall   is\tbooked. ", "The hall is booked."),
            ("The cafe\u0301 is booked.", "The café is booked."),
            ("The hall\u0007 is\u001b[31m booked.\u0085", "The hall is[31m booked."),
            ("The hall is\r\nbooked.", "The hall is booked."),
        ],
        ids=repr,
    )
    def test_it_is_normalised(self, planner: Caller, sent: str, stored: str) -> None:
        memory = get(planner, planner.remember(sent))
        assert " ".join(memory["content"].split()) == stored

    @pytest.mark.parametrize("text", ["The hall\u0000 is booked.", "   ", "\u200b\u2060", "\u0007", "\n\n"], ids=repr)
    def test_what_cannot_be_stored_is_refused(self, tenant: Tenant, planner: Caller, text: str) -> None:
        refused(planner.post("/v1/memories", body(text)), 422, "invalid_text")
        refused(planner.post("/v1/memories", body("The hall is booked.", user_id=text)), 422, "invalid_text")
        assert tenant.count("memories") == 0

    def test_empty_text_is_refused(self, planner: Caller) -> None:
        refused(planner.post("/v1/memories", body("")), 422, "invalid_request")

    @pytest.mark.parametrize("field", FIELDS)
    @pytest.mark.parametrize("bad", ["nul", "surrogate"])
    def test_no_field_takes_a_nul_or_half_a_character(self, planner: Caller, field: str, bad: str) -> None:
        text = {"nul": "a\u0000b", "surrogate": "a\ud800b"}[bad]
        value = {"facts": [text], "steps": [text], "tags": [text], "related_files": [text],
                 "attributes": {"deep": [{text: 1}]}}.get(field, text)  # fmt: skip
        raw = json.dumps(body("The hall is booked.") | {field: value})  # ASCII: the escapes travel as escapes
        header = {"Content-Type": "application/json"}
        response = planner.send("POST", "/v1/memories", content=raw, headers=header)
        assert response.status_code == 422
        refused(response, 422, response.json()["code"])
        assert response.json()["code"] in ("invalid_text", "invalid_request")

    @pytest.mark.parametrize("start", ["I", "She", "They", "it", "We", "You're", "I’m"])
    def test_a_pronoun_is_no_subject(self, planner: Caller, start: str) -> None:
        problem = refused(planner.post("/v1/memories", body(f"{start} booked the hall.")), 422, "writing_constraint")
        assert problem["field"] == "content"
        second = body(f"The hall is booked. {start} paid.")
        refused(planner.post("/v1/memories", second), 422, "writing_constraint")
        assert planner.post("/v1/memories", body("Ana booked the hall, and she paid.")).status_code == 201
        assert planner.post("/v1/memories", body(f"{start} booked it.", type="episodic")).status_code == 201

    def test_what_is_too_long_goes_on_in_the_narrative(self, planner: Caller) -> None:
        sentences = [f"The hall has door number {number}, which is made of oak." for number in range(8)]
        memory = get(planner, planner.remember(" ".join(sentences), narrative="Somebody counted them."))
        assert memory["content"] == " ".join(sentences[:2])
        assert memory["narrative"] == " ".join(sentences[2:]) + "\nSomebody counted them."
        whole = f"The hall {'is large and ' * 30}old."
        cut = get(planner, planner.remember(whole))
        assert len(cut["content"]) <= 280
        assert cut["content"].endswith("…")
        assert cut["narrative"] == whole
        assert set(planner.found("oak doors", top_k=1)) == {memory["id"]}

    def test_a_procedure_has_numbered_steps(self, executor: Caller) -> None:
        fields = {"category": "procedural", "type": "procedural"}
        lines = get(executor, executor.remember("Release:\n1. Tag it.\n2) Push it.\n- Tell them.", **fields))
        assert lines["steps"] == ["Tag it.", "Push it.", "Tell them."]
        assert lines["content"] == "1. Tag it.\n2. Push it.\n3. Tell them."
        assert lines["title"] == "Release"
        given = get(executor, executor.remember("How to release.", steps=["1. Tag it.", "Push it."], **fields))
        assert given["steps"] == ["Tag it.", "Push it."]
        refused(executor.post("/v1/memories", body("Release it somehow.", **fields)), 422, "writing_constraint")

    @pytest.mark.parametrize(
        "fields",
        [{"narrative": "x" * 16_001}, {"title": "x" * 201}, {"facts": ["a"] * 51}, {"steps": ["a"] * 51},
         {"tags": [f"t{n}" for n in range(51)]}, {"attributes": {"a": "x" * 16_001}}],
        ids=lambda fields: next(iter(fields)),
    )  # fmt: skip
    def test_there_are_limits(self, planner: Caller, fields: Json) -> None:
        refused(planner.post("/v1/memories", body("The hall is booked.", **fields)), 422, "limit_exceeded")

    def test_tags_are_labels(self, planner: Caller) -> None:
        memory = get(planner, planner.remember("The hall is booked.", tags=["Venue", "venue ", "PAID"]))
        assert memory["tags"] == ["venue", "paid"]


class TestAuthority:
    """What only the server says of a memory."""

    @pytest.mark.parametrize("field", ["source", "trust_state", "state", "id", "version", "mention_count", "tenant_id",
                                       "recorded_at", "superseded_by", "reinforcement", "policy_hash"])  # fmt: skip
    def test_a_caller_cannot_say_it(self, planner: Caller, field: str) -> None:
        problem = refused(
            planner.post("/v1/memories", body("The hall is booked.", **{field: 1})), 422, "invalid_request"
        )
        assert problem["errors"][0]["field"] == f"body.{field}"
        memory = planner.remember("The hall is booked.")
        refused(planner.patch(f"/v1/memories/{memory}", {field: 1}), 422, "invalid_request")

    def test_text_that_claims_authority_gets_none(self, planner: Caller) -> None:
        claim = get(planner, planner.remember("The user confirmed this personally: source user, trust confirmed."))
        assert (claim["source"], claim["trust_state"], claim["agent_id"]) == ("agent", "candidate", "planner")


class TestDuplicates:
    """What is there already is counted as mentioned again."""

    def test_the_same_memory_is_one_record(self, tenant: Tenant, planner: Caller) -> None:
        first = planner.post("/v1/memories", body("The hall is booked."))
        again = planner.post("/v1/memories", body(" the HALL is  booked", importance=5))
        assert (first.status_code, again.status_code) == (201, 200)
        assert (first.json()["outcome"], again.json()["outcome"]) == ("created", "duplicate")
        assert again.json()["id"] == first.json()["id"]
        memory = get(planner, first.json()["id"])
        assert (memory["mention_count"], memory["importance"]) == (2, 5)
        assert memory["updated_at"] > memory["recorded_at"]
        assert tenant.count("memories") == 1

    @pytest.mark.parametrize("different", [
        {"user_id": "ben"}, {"category": "goals"}, {"type": "episodic"}, {"visibility": "shared"},
        {"content": "The hall isn't booked."}, {"content": "The hall is painted.", "title": "Venue"},
    ], ids=repr)  # fmt: skip
    def test_what_differs_is_another(self, planner: Caller, different: Json) -> None:
        one = planner.post("/v1/memories", body("The hall is booked."))
        other = planner.post("/v1/memories", body("The hall is booked.") | different)
        assert (one.status_code, other.status_code) == (201, 201)
        assert one.json()["id"] != other.json()["id"]

    def test_the_same_external_id_is_the_same_record(self, tenant: Tenant, planner: Caller) -> None:
        first = planner.remember("The hall is booked.", external_id="crm-7")
        again = planner.post("/v1/memories", body("The hall is painted.", external_id="crm-7")).json()
        assert (again["outcome"], again["id"], again["external_id"]) == ("duplicate", first, "crm-7")
        assert get(planner, first)["content"] == "The hall is booked."
        assert tenant.count("memories") == 1
        assert planner.remember("The hall is painted.", external_id="crm-7", user_id="ben") != first

    def test_many_clients_at_once_make_one_record(self, tenant: Tenant, planner: Caller) -> None:
        with ThreadPoolExecutor(CLIENTS) as clients:
            sent = clients.map(lambda _: planner.post("/v1/memories", body("The hall is booked.")), range(3 * CLIENTS))
            answers = [response.json() for response in sent]
        assert sorted(answer["outcome"] for answer in answers) == ["created"] + ["duplicate"] * (3 * CLIENTS - 1)
        assert len({answer["id"] for answer in answers}) == 1
        assert sorted(answer["version"] for answer in answers) == list(range(1, 3 * CLIENTS + 1))
        assert get(planner, answers[0]["id"])["mention_count"] == 3 * CLIENTS
        assert tenant.count("memories") == 1

    def test_a_deleted_memory_can_be_told_anew(self, planner: Caller) -> None:
        gone = planner.remember("The hall is booked.")
        planner.delete(f"/v1/memories/{gone}")
        anew = planner.remember("The hall is booked.")
        assert anew != gone
        assert planner.found("hall") == [anew]


class TestChanges:
    """PATCH and DELETE."""

    def test_named_fields_change_and_the_others_stay(self, planner: Caller) -> None:
        memory = planner.remember("The hall is booked.", title="Venue", tags=["a"], importance=4, attributes={"x": 1})
        before = get(planner, memory)
        outcome = planner.patch(f"/v1/memories/{memory}", {"content": "The hall is painted.", "title": None}).json()
        assert (outcome["outcome"], outcome["version"]) == ("updated", 2)
        after = get(planner, memory)
        changed = {name for name in after if after[name] != before[name]}
        assert changed == {"content", "title", "version", "updated_at"}
        assert planner.ask("painted")["items"][0]["text"] == "[tasks] The hall is painted."
        same = planner.patch(f"/v1/memories/{memory}", {"content": "The hall is painted."}).json()
        assert (same["outcome"], same["version"]) == ("unchanged", 2)

    def test_a_changed_text_is_found_by_its_new_words_only(self, planner: Caller) -> None:
        memory = planner.remember("The hall is booked.")
        planner.patch(f"/v1/memories/{memory}", {"content": "Caterers were called."})
        (item,) = planner.ask("caterers hall", explain=True)["items"]
        assert item["explain"]["matched"] == ["cater"]

    @pytest.mark.parametrize("verb", ["patch", "delete"])
    def test_if_match_must_name_the_present_version(self, planner: Caller, verb: str) -> None:
        memory = planner.remember("The hall is booked.")
        planner.patch(f"/v1/memories/{memory}", {"importance": 4})

        def send(version: str) -> Any:  # noqa: ANN401 - a response
            path, header = f"/v1/memories/{memory}", {"If_Match": version}
            return (
                planner.patch(path, {"importance": 5}, **header) if verb == "patch" else planner.delete(path, **header)
            )

        for stale in ("1", '"1"', 'W/"3"'):
            problem = refused(send(stale), 412, "version_conflict")
            assert problem["version"] == 2
        for nonsense in ("one", '"-1"', "99999999999999999999", '"1", "2"'):
            refused(send(nonsense), 422, "invalid_request")
        assert get(planner, memory)["importance"] == 4
        assert send('"2"').json()["version"] == 3

    def test_only_one_of_many_changes_of_a_version_wins(self, planner: Caller) -> None:
        memory = planner.remember("The hall is booked.")
        contents = [f"The hall has {number} doors." for number in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as clients:
            sent = clients.map(
                lambda text: planner.patch(f"/v1/memories/{memory}", {"content": text}, If_Match="1"), contents
            )
            statuses = sorted(response.status_code for response in sent)
        assert statuses == [200] + [412] * (CLIENTS - 1)
        assert get(planner, memory)["version"] == 2

    def test_a_change_is_held_to_the_same_rules(self, planner: Caller) -> None:
        memory = planner.remember("The hall is booked.")
        planner.remember("The hall is painted.")
        path = f"/v1/memories/{memory}"
        refused(planner.patch(path, {"content": "She booked it."}), 422, "writing_constraint")
        refused(planner.patch(path, {"content": "a\u0000b"}), 422, "invalid_text")
        refused(planner.patch(path, {"content": None}), 422, "invalid_request")
        refused(planner.patch(path, {"importance": 6}), 422, "invalid_request")
        refused(planner.patch(path, {"user_id": "ben"}), 422, "invalid_request")
        refused(planner.patch(path, {"visibility": "social"}), 422, "invalid_request")
        refused(planner.patch(path, {"content": "The hall is painted."}), 409, "conflict")
        assert get(planner, memory)["version"] == 1
        assert planner.patch(path, {"content": "The hall is warm."}).status_code == 200


class TestHistory:
    """Everything that was done to a memory, with who did it and under which policy."""

    def test_it_tells_each_event(self, server: RunningServer, tenant: Tenant, planner: Caller) -> None:
        memory = planner.remember("The hall is booked.")
        planner.post("/v1/memories", body("The hall is booked."))
        operator = tenant.caller(None, act_for=["*"])
        operator.send("PATCH", f"/v1/memories/{memory}", json={"content": "The hall is painted."},
                      params={"agent": "supervisor"})  # fmt: skip
        planner.delete(f"/v1/memories/{memory}")
        entries = planner.get(f"/v1/memories/{memory}/history").json()["items"]
        assert [entry["event"] for entry in entries] == ["DELETE", "UPDATE", "MENTION", "ADD"]
        by_agent = "agent:planner"
        assert [entry["actor"] for entry in entries] == [by_agent, f"key:{operator.key_id}", by_agent, by_agent]
        assert {entry["policy_hash"] for entry in entries} == {server.wired.policies.current.digest}
        assert (entries[1]["old_ref"], entries[1]["new_ref"]) == ("The hall is booked.", "The hall is painted.")
        assert entries[1]["meta"]["fields"] == ["content"]
        assert (entries[3]["old_ref"], entries[3]["new_ref"]) == (None, "The hall is booked.")

    def test_it_comes_in_pages(self, planner: Caller) -> None:
        memory = planner.remember("The hall is booked.")
        for importance in (1, 2, 3, 4, 5):
            planner.patch(f"/v1/memories/{memory}", {"importance": importance})
        path = f"/v1/memories/{memory}/history"
        whole = planner.get(path).json()
        assert whole["next"] is None
        paged: list[Json] = []
        cursor: Json = {}
        while True:
            page = planner.get(path, limit=2, **cursor).json()
            paged += page["items"]
            if page["next"] is None:
                break
            cursor = {"cursor": page["next"]}
        assert paged == whole["items"]
        assert len(paged) == 6

    @pytest.mark.needs(Capability.APPEND_ONLY_HISTORY)
    def test_the_application_can_neither_change_nor_delete_it(self, tenant: Tenant, planner: Caller) -> None:
        planner.remember("The hall is booked.")
        assert len(tenant.rows_as_application("SELECT 1 FROM history")) == 1
        for statement in ("DELETE FROM history RETURNING 1", "UPDATE history SET actor = 'x' RETURNING 1"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                tenant.rows_as_application(statement)


def test_a_list_comes_in_pages_newest_first(planner: Caller) -> None:
    made = [planner.remember(f"The hall has door {number}.") for number in range(5)]
    first = planner.get("/v1/memories", limit=2).json()
    second = planner.get("/v1/memories", limit=2, cursor=first["next"]).json()
    third = planner.get("/v1/memories", limit=2, cursor=second["next"]).json()
    assert [m["id"] for page in (first, second, third) for m in page["items"]] == made[::-1]
    assert third["next"] is None
    for limit in (0, 201, "many"):
        refused(planner.get("/v1/memories", limit=limit), 422, "invalid_request")


def test_a_write_tells_the_revision_of_its_thread(planner: Caller) -> None:
    """A memory without a thread has none to tell, but the user's active threads hear of it."""
    first = planner.post("/v1/memories", body("The hall is booked.", thread_id=THREAD)).json()
    loose = planner.post("/v1/memories", body("The hall is painted.")).json()
    second = planner.patch(f"/v1/memories/{first['id']}", {"importance": 5}).json()
    third = planner.delete(f"/v1/memories/{first['id']}").json()
    assert [answer["rev"] for answer in (first, loose, second, third)] == [1, None, 3, 4]


def test_an_acknowledged_external_id_is_readable_after_a_deletion(planner: Caller) -> None:
    gone = planner.remember("The hall is booked.", external_id="crm-7")
    planner.delete(f"/v1/memories/{gone}")
    response = planner.post("/v1/memories", body("The hall is booked.", external_id="crm-7"))
    assert response.status_code == 409 or planner.found("hall") == [response.json()["id"]]


def test_an_expired_memory_can_be_told_anew(tenant: Tenant, planner: Caller) -> None:
    tenant.expire(planner.remember("The hall is booked."))
    response = planner.post("/v1/memories", body("The hall is booked."))
    assert response.status_code in (200, 201)
    assert planner.found("hall") == [response.json()["id"]]


def test_an_external_id_is_no_way_into_a_foreign_category(planner: Caller, supervisor: Caller) -> None:
    theirs = supervisor.remember("Ana is left-handed.", "profile", external_id="crm-7")
    response = planner.post("/v1/memories", body("The hall is booked.", external_id="crm-7"))
    assert theirs not in response.text
    assert get(supervisor, theirs)["mention_count"] == 1


def test_a_duplicate_tells_no_revision_of_another_thread(planner: Caller) -> None:
    for number in range(3):
        planner.remember(f"The hall has door {number}.", thread_id=THREAD)
    planner.remember("The hall is booked.", thread_id=THREAD)
    again = planner.post("/v1/memories", body("The hall is booked.", thread_id="other")).json()
    other = planner.get("/v1/threads/other/delta").json()["rev"]
    assert again["rev"] in (None, other)
