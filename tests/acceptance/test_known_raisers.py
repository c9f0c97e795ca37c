"""Input that is known to raise in a database, a driver or a parser: each has its answer, and none of them is a 500."""

import json
import math
from typing import Any

import pytest

from support.callers import THREAD, USER, Caller

QUERY, TURNS, MEMORIES = "/v1/memory/query", "/v1/turns", "/v1/memories"
MEMORY = {"user_id": USER, "category": "tasks", "content": "The hall is booked."}
TURN = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": "Which hall?"}
FULL: dict[str, dict[str, Any]] = {QUERY: {}, TURNS: TURN, MEMORIES: MEMORY}


def raw(path: str, field: str, literal: str) -> str:
    """A right body but for one field, whose value is written as it stands."""
    rest = {name: value for name, value in FULL[path].items() if name != field}
    return json.dumps(rest)[:-1] + (", " if rest else "") + f'"{field}": {literal}}}'


WORDS = json.dumps(" ".join(f"w{number:x}" for number in range(200_000)))
RAISERS = {
    # NUL, in text and in JSON
    "NUL in a question": (QUERY, "query", '"a\\u0000b"', "invalid_text"),
    "NUL in a memory": (MEMORIES, "content", '"a\\u0000b"', "invalid_text"),
    "NUL in a turn": (TURNS, "text", '"a\\u0000b"', "invalid_text"),
    "NUL in a name": (TURNS, "thread_id", '"a\\u0000b"', "invalid_text"),
    "NUL in a tag": (MEMORIES, "tags", '["a\\u0000b"]', "invalid_text"),
    "NUL in JSON": (MEMORIES, "attributes", '{"a": "\\u0000"}', "invalid_request"),
    "NUL in a key of JSON": (MEMORIES, "attributes", '{"\\u0000": 1}', "invalid_request"),
    # half characters
    "a lone surrogate in a question": (QUERY, "query", '"\\ud800"', "invalid_request"),
    "a lone surrogate in a memory": (MEMORIES, "content", '"a \\udfff b"', "invalid_request"),
    "a lone surrogate in a name": (MEMORIES, "user_id", '"\\ud83d"', "invalid_request"),
    "a lone surrogate in JSON": (MEMORIES, "attributes", '{"a": "\\ud800"}', "invalid_request"),
    # sizes that an index, a search vector or a parser does not take
    "1 MB of different words": (MEMORIES, "content", WORDS, "invalid_request"),
    "1 MB of different words in a turn": (TURNS, "text", WORDS, "invalid_request"),
    "a name of 10 KB": (TURNS, "thread_id", json.dumps("n" * 10_000), "invalid_request"),
    "a name of wide characters": (MEMORIES, "external_id", json.dumps("\U00020001" * 255), None),
    "JSON nested 100 000 deep": (MEMORIES, "attributes", '{"a":' * 100_000 + "1" + "}" * 100_000, "limit_exceeded"),
    "lists nested 100 000 deep": (QUERY, "query", "[" * 100_000 + "]" * 100_000, "limit_exceeded"),
    # numbers
    "a number of 5 000 digits": (QUERY, "top_k", "9" * 5_000, "invalid_request"),
    "a number beyond 64 bits": (QUERY, "since_rev", str(2**64), "invalid_request"),
    "a number beyond 64 bits in JSON": (MEMORIES, "attributes", f'{{"a": {2**63}}}', "invalid_request"),
    "not a number": (MEMORIES, "confidence", "NaN", "invalid_request"),
    "infinity": (QUERY, "threshold", "Infinity", "invalid_request"),
    "not a number in JSON": (MEMORIES, "attributes", '{"a": NaN}', "invalid_request"),
    # vectors are the server's own
    "a vector": (MEMORIES, "embedding", "[NaN, 1.0]", "invalid_request"),
    # times that a database takes and a program cannot read
    "a time without end": (MEMORIES, "valid_until", '"infinity"', "invalid_request"),
    "the year 20000": (MEMORIES, "event_time", '"20000-01-01T00:00:00Z"', "invalid_request"),
    "the year 0": (TURNS, "event_time", '"0000-01-01T00:00:00Z"', "invalid_request"),
    "the last moment, west of UTC": (MEMORIES, "valid_from", '"9999-12-31T23:59:59-01:00"', "invalid_request"),
    "the first moment, east of UTC": (MEMORIES, "valid_from", '"0001-01-01T00:00:00+01:00"', "invalid_request"),
}


@pytest.mark.parametrize("name", RAISERS)
def test_each_is_refused_and_leaves_nothing(supervisor: Caller, name: str) -> None:
    path, field, literal, code = RAISERS[name]
    body = raw(path, field, literal)
    response = supervisor.send("POST", path, content=body, headers={"Content-Type": "application/json"})
    if code is None:  # it depends on how well it compresses
        assert response.status_code in (201, 422), response.text
    else:
        assert (response.status_code, response.json()["code"]) == (422, code), response.text
        assert supervisor.found() == []
    assert supervisor.post(path, FULL[path]).status_code in (200, 201)  # the same without it


SYNTAX = [
    "&",
    "a & | b",
    "!(",
    "a:*",
    "'",
    "<->",
    "a <-> ",
    ":",
    "\\",
    '"',
    "NEAR(",
    "a* OR",
    "^",
    "-a",
    "%",
    "_",
    "()",
]


@pytest.mark.parametrize("text", SYNTAX)
def test_the_syntax_of_a_search_is_plain_text(supervisor: Caller, text: str) -> None:
    memory = supervisor.remember("The hall is booked.")
    assert supervisor.query(text).status_code == 200
    assert supervisor.found(f"hall {text}") == [memory]


@pytest.mark.parametrize("text", ["…", "!!!", "\u200b\u200b?", "—"])
def test_a_text_that_has_no_vector_has_scores_that_are_numbers(supervisor: Caller, text: str) -> None:
    kept = supervisor.remember("The hall is booked.")
    supervisor.say(text)
    for question in (text, "hall"):
        items = supervisor.ask(question, return_="full")["items"]
        assert all(math.isfinite(item["score"]) for item in items)
    assert kept in supervisor.found("hall")
