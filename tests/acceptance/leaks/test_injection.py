"""Names and words that mean something to a database: each is a plain name, finds itself alone and changes nothing."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from support.callers import USER, Caller, Tenant, refused
from support.leaks.contents import contents

NAMES = [
    "' OR '1'='1", '" OR 1=1 --', "'; DROP TABLE memories; --", "ana' --", "ana'||'", "x') OR true --",
    "1 UNION SELECT 1", "%", "_", "a%", "an_", "*", "?", "an?", "[a-z]*", "{}", "{0}", "{scope}", "{tenant}",
    "%(tenant)s", "%s", "%%", "%d", ":tenant", ":now", "$1", "$tenant", "@tenant", "\\", "\\'", "a\\%", "\\x00",
    "%00", "%25", "%27", "' | ! & :* (", "ana:*", "ana & ben", "!ana", '"ana" "ben"', "NEAR(ana ben)", "title:ana",
    "ana*", "-ana", "^ana", "$.a", "$[*]", "a.b", "{ana,ben}", '{"ana","ben"}', "ARRAY['ana']", "ana,ben", "NULL",
    "true", "../ana", "ana/../ben", "/*", "--", "\uff07 OR 1=1", "ana\u200b", "<ana>", "${tenant}", "#{ana}",
    "`ana`",
]  # fmt: skip
UNSTORABLE = ["ana\x00", "\x00", "ana\ud800"]
SPEECH = ("agent_id", "run_id", "actor_id", "thread_id")


@pytest.fixture
def named(supervisor: Caller) -> dict[str, str]:
    """For each name a memory in which everything that can be named is named so, among others of plain names."""
    found = {}
    for number, name in enumerate(["ana", "ben", "a", "tenant", *NAMES]):
        fields = dict.fromkeys(SPEECH, name) | {"external_id": name, "tags": [name], "attributes": {name: name}}
        content = f"The clerk filed form {number}."
        found[name] = supervisor.remember(content, type="episodic", user_id=name, **fields)
    return found


def unchanged(tenant: Tenant, work: Callable[[], None]) -> None:
    before = contents([tenant])
    work()
    assert contents([tenant]) == before


def test_a_name_finds_what_has_it_and_nothing_else(tenant: Tenant, supervisor: Caller, named: dict[str, str]) -> None:
    def ask() -> None:
        for name, memory in named.items():
            for filters in (*({part: name} for part in (*SPEECH, "user_id")), {"tags": [name]}):
                assert supervisor.found(filters=filters) == [memory], filters
                assert supervisor.found("clerk form", filters=filters) == [memory], filters
            for params in ({"user_id": name}, {"thread_id": name}, {"tag": name}):
                items = supervisor.get("/v1/memories", **params).json()["items"]
                assert [item["id"] for item in items] == [memory], params
            stored = supervisor.get(f"/v1/memories/{memory}").json()
            assert {stored[part] for part in (*SPEECH, "external_id", "user_id")} == {name}
            assert stored["tags"] == [name.casefold()]
            assert stored["attributes"] == {name: name}

    unchanged(tenant, ask)


def test_a_key_bound_to_a_name_sees_that_user_alone(tenant: Tenant, named: dict[str, str]) -> None:
    """On PostgreSQL the names travel in a setting, as a list."""
    for name, memory in named.items():
        bound = tenant.caller("supervisor", users=[name])
        assert bound.found() == [memory], name
        assert [item["id"] for item in bound.get("/v1/memories").json()["items"]] == [memory]


def test_names_of_threads_and_entities_are_plain_names(tenant: Tenant, supervisor: Caller) -> None:
    memory = supervisor.remember("The user met Berta Lindqvist.", thread_id="plain")
    entity = supervisor.entity("Berta Lindqvist")

    def ask() -> None:
        for name in NAMES:
            thread = name.replace("%", "%25").replace("/", "%2F").replace("?", "%3F").replace("#", "%23")
            told = supervisor.get(f"/v1/threads/{thread}/delta")
            if "../" in name:  # a path that leads elsewhere
                continue
            assert told.json() == {"rev": 0, "header": None, "changes": [], "pruned": False}, name
            assert supervisor.get("/v1/entities", user_id=USER, name=name).json()["items"] == [], name
            assert supervisor.get("/v1/entities", user_id=USER, kind=name).json()["items"] == [], name
            assert supervisor.found(filters={"entity": name}) == [], name

    unchanged(tenant, ask)
    for name in NAMES:
        given = supervisor.post(f"/v1/entities/{entity}/aliases", {"alias": name})
        assert given.status_code in {200, 409, 422}
        if given.status_code == 200 and given.json()["aliases"][-1:] == [name]:
            assert supervisor.found(filters={"entity": name}) == [memory], name
    assert supervisor.found(filters={"entity": "Berta Lindqvist"}) == [memory]


def test_a_question_s_words_are_words(tenant: Tenant, supervisor: Caller, named: dict[str, str]) -> None:
    def ask() -> None:
        for text in [*NAMES, "clerk' | 'form", "clerk & !form", "clerk:* form", '"clerk form"', "clerk NEAR form"]:
            for ranking in ("default", "lexical", "rrf"):
                answer = supervisor.ask(text, ranking=ranking, top_k=200, budget_tokens=50_000)
                assert {item["id"] for item in answer["items"]} == set(named.values()), text

    unchanged(tenant, ask)


def test_what_is_chosen_by_name_must_be_known(tenant: Tenant, supervisor: Caller) -> None:
    def ask() -> None:
        for name in NAMES:
            refused(supervisor.query("form", ranking=name), 422, "unknown_ranking")
            assert refused(supervisor.query("form", categories=[name]), 403, "category_forbidden")["categories"] == [
                name
            ]
            refused(supervisor.get("/v1/memories", category=name), 403, "category_forbidden")
            refused(supervisor.query("form", agent=name), 403, "agent_forbidden")
            refused(supervisor.query("form", filters={name: "x"}), 422, "invalid_request")
            for part in ("role", "type"):
                refused(supervisor.query("form", filters={part: name}), 422, "invalid_request")
            for params in ({"cursor": name}, {"trust_state": name}, {"limit": name}):
                refused(supervisor.get("/v1/memories", **params), 422, "invalid_request")
            for unknown in (name, f"user_id{name}"):
                refused(supervisor.get("/v1/memories", limit=200, **{unknown: "x"}), 422, "invalid_request")
            new: dict[str, Any] = {"user_id": USER, "category": name, "content": "The clerk left."}
            refused(supervisor.post("/v1/memories", new), 403, "category_forbidden")

    unchanged(tenant, ask)


@pytest.mark.parametrize("name", UNSTORABLE, ids=ascii)
def test_what_no_database_can_hold_is_refused(tenant: Tenant, supervisor: Caller, name: str) -> None:
    def send(path: str, body: object) -> int:
        # as escapes, for half a character has no bytes
        headers = {"Content-Type": "application/json"}
        return supervisor.send("POST", path, content=json.dumps(body), headers=headers).status_code

    def ask() -> None:
        for part in (*SPEECH, "user_id", "entity"):
            assert send("/v1/memory/query", {"query": "form", "filters": {part: name}}) == 422, part
        assert send("/v1/memory/query", {"filters": {"tags": [name]}}) == 422
        assert send("/v1/memories", {"user_id": name, "category": "tasks", "content": "The clerk left."}) == 422

    assert send("/v1/memory/query", {"query": "form", "filters": {"user_id": "ana"}}) == 200  # the control
    unchanged(tenant, ask)
