"""What a caller is told of a wrong request: the field, the mistake and what is allowed, in the words of this API."""

import json
import re
from typing import Any

import pytest

from support.callers import USER, Caller, refused

FOREIGN = re.compile(
    r"Input should|Extra inputs|Field required|(String|List) should|Value error|valid (integer|string|dict)|JSON decode"
)
MEMORY = {"user_id": USER, "category": "tasks", "content": "The user owns a boat."}
TURN = {"user_id": USER, "thread_id": "t", "role": "user", "text": "Hello."}
WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("/v1/memories", {"contnt": "x"}, "contnt", "unknown field; did you mean 'content'?"),
    ("/v1/turns", {"zzz": 1}, "zzz", "unknown field; known are actor_id, agent, agent_id, auto_extract, dry_run"),
    ("/v1/memory/query", {"filters": {"user": USER}}, "filters.user", "unknown field; did you mean 'user_id'?"),
    ("/v1/memories", {"content": 7}, "content", "must be a string"),
    ("/v1/memories", {"content": ""}, "content", "must not be empty"),
    ("/v1/memories", {"user_id": "u" * 256}, "user_id", "has too many characters: at most 255"),
    ("/v1/memories", {"importance": 9}, "importance", "must be at most 5"),
    ("/v1/memories", {"importance": "high"}, "importance", "must be a whole number"),
    ("/v1/memories", {"pinned": "perhaps"}, "pinned", "must be true or false"),
    ("/v1/memories", {"confidence": 2}, "confidence", "must be at most 1"),
    ("/v1/memories", {"tags": "one"}, "tags", "must be a list"),
    ("/v1/memories", {"type": "poem"}, "type", "must be 'semantic', 'episodic'"),
    ("/v1/memories", {"source_ids": ["x"]}, "source_ids.0", "must be a UUID"),
    ("/v1/memories", {"valid_from": "soon"}, "valid_from", "a time is written as RFC 3339 has it"),
    ("/v1/memories", {"attributes": []}, "attributes", "must be an object"),
    ("/v1/turns", {"role": "friend"}, "role", "must be 'user', 'assistant'"),
    ("/v1/memory/query", {"top_k": 0}, "top_k", "must be at least 1"),
    ("/v1/memory/query", {"filters": 3}, "filters", "must be an object"),
    ("/v1/memory/query", {"filters": {"entity": ""}}, "filters.entity", "must not be empty or must be a list"),
    ("/v1/memory/query", {"filters": {"entity": ["Ana", ""]}}, "filters.entity.1", "must not be empty"),
    ("/v1/memory/query", {"filters": {"category": 5}}, "filters.category", "must be a string or must be a list"),
    (
        "/v1/memory/query",
        {"filters": {"entity": ["x"] * 51}},
        "filters.entity",
        "must be a string or has too many items",
    ),
    ("/v1/turns:batch", {"turns": []}, "turns", "must not be empty"),
]


@pytest.mark.parametrize(("path", "change", "field", "told"), WRONG, ids=lambda each: str(each)[:40])
def test_a_mistake_is_named(caller: Caller, path: str, change: dict[str, Any], field: str, told: str) -> None:
    right = {"/v1/memories": MEMORY, "/v1/turns": TURN}.get(path, {})
    problem = refused(caller.post(path, right | change), 422, "invalid_request")
    (mistake,) = problem["errors"]
    assert mistake["field"] == f"body.{field}"
    assert mistake["message"].startswith(told)
    assert problem["detail"] == f"body.{field}: {mistake['message']}"


def test_what_is_right_is_accepted(caller: Caller) -> None:
    """The control."""
    assert caller.post("/v1/memories", MEMORY).status_code == 201
    assert caller.post("/v1/turns", TURN).status_code == 201


def test_no_words_of_the_library(caller: Caller) -> None:
    bodies: list[Any] = [None, 3, "x", [], {}, {"user_id": None}, MEMORY | {"content": None}, MEMORY | {"facts": [1]}]
    for path in ("/v1/memories", "/v1/turns", "/v1/turns:batch", "/v1/memory/query", "/v1/context", "/v1/observations"):
        for body in bodies:
            answer = caller.post(path, body)
            assert not FOREIGN.search(answer.text), answer.text
    for path in ("/v1/memories?limit=0", "/v1/memories/x", "/v1/conflicts?cursor=x", "/v1/memories?type=poem"):
        answer = caller.send("GET", path)
        assert answer.status_code in {404, 422}
        assert not FOREIGN.search(answer.text), answer.text
    broken = caller.send("POST", "/v1/memories", content=b'{"user_id": ', headers={"Content-Type": "application/json"})
    assert refused(broken, 422, "invalid_request")
    assert not FOREIGN.search(broken.text), broken.text


def test_a_line_of_an_import_says_what_is_wrong(admin: Caller) -> None:
    lines = [json.dumps({"record": "memory", "importance": 9}), json.dumps({"record": "poem"}), "{"]
    told = admin.post(f"/v1/users/{USER}/import", {"lines": lines, "mode": "add", "agent": "supervisor"})
    assert told.status_code == 200, told.text
    assert len(told.json()["refused"]) == 3, told.text
    assert "importance: must be at most 5" in told.text
    assert not FOREIGN.search(told.text), told.text
