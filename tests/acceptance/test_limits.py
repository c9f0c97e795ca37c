"""What a request may hold, and in which order it is looked at: the key first, then the rate, then the body."""

import json
from typing import Any

import httpx2
import pytest

from support.callers import USER, Caller, refused

QUERY, MEMORIES = "/v1/memory/query", "/v1/memories"
MEMORY = {"user_id": USER, "category": "tasks", "content": "The hall is booked."}
BROKEN = ["{", "nothing", "", b"\xff\xfe", "[" * 100_000, '{"top_k": 0}']


def send(caller: Caller, raw: str | bytes, path: str = QUERY) -> httpx2.Response:
    return caller.send("POST", path, content=raw, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("raw", BROKEN, ids=lambda raw: repr(raw)[:20])
def test_who_has_no_key_hears_nothing_of_the_body(nobody: Caller, supervisor: Caller, raw: str | bytes) -> None:
    for path in (QUERY, MEMORIES):
        refused(send(nobody, raw, path), 401, "unauthenticated")
        assert send(supervisor, raw, path).status_code == 422


class TestDepth:
    """How deeply lists and objects may be nested."""

    @staticmethod
    def nested(depth: int) -> str:
        """A body of such a depth."""
        return '{"query": "hall", "unknown": ' + "[" * (depth - 1) + "]" * (depth - 1) + "}"

    def test_a_deep_body_is_refused_before_it_is_parsed(self, supervisor: Caller) -> None:
        assert refused(send(supervisor, self.nested(64)), 422, "invalid_request")["errors"]
        problem = refused(send(supervisor, self.nested(65)), 422, "limit_exceeded")
        assert problem["limit"] == 64

    @pytest.mark.parametrize(
        "text", ["[" * 100, "{" * 100, '\\"[' * 100, "\\\\" + "[" * 100, '"' * 5 + "[" * 100, "]" * 100, "ä[" * 100]
    )
    def test_brackets_in_a_text_are_no_depth(self, supervisor: Caller, text: str) -> None:
        assert supervisor.query(text).status_code == 200
        refused(send(supervisor, json.dumps({"query": text})[:-1] + ', "b": ' + "[" * 65 + "]" * 65 + "}"), 422,
                "limit_exceeded")  # fmt: skip

    def test_a_wide_body_is_not_deep(self, supervisor: Caller) -> None:
        attributes = {f"list {n}": [[n], [n], {"n": [n]}] for n in range(40)}
        assert supervisor.post(MEMORIES, MEMORY | {"attributes": attributes}).status_code == 201

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-32-be"])
    def test_a_body_in_another_encoding_hides_nothing(self, supervisor: Caller, encoding: str) -> None:
        for raw in ('{"query": "hall"}', self.nested(1_000)):
            assert "UTF-8" in refused(send(supervisor, raw.encode(encoding)), 422, "invalid_request")["detail"]
        assert send(supervisor, b'{"query": "hall"}').status_code == 200


class TestTimes:
    """Times are written as RFC 3339 has it, within the calendar."""

    NUMBERS: tuple[Any, ...] = (123, 1_700_000_000, 1.5, "123", "1700000000", True, "1e9")

    @pytest.mark.parametrize("value", NUMBERS, ids=repr)
    def test_a_number_is_no_time(self, supervisor: Caller, value: object) -> None:
        for response in (
            supervisor.query("hall", filters={"updated_after": value}),
            supervisor.query("hall", as_of={"true_at": value}),
            supervisor.post(MEMORIES, MEMORY | {"event_time": value}),
        ):
            assert "RFC 3339" in refused(response, 422, "invalid_request")["detail"]

    @pytest.mark.parametrize("value", ["2025-07-01", "2025-07-01T10:00:00Z", "2025-07-01T10:00:00.25+02:00"])
    def test_a_day_or_a_time_is_one(self, supervisor: Caller, value: str) -> None:
        assert supervisor.query("hall", filters={"updated_after": value}).status_code == 200
        assert supervisor.post(MEMORIES, MEMORY | {"event_time": value}).status_code == 201


@pytest.mark.parametrize("wrong", [0, 201, -1, 2**63, 1.5, "3", None, True])
def test_top_k_is_bounded(supervisor: Caller, wrong: object) -> None:
    refused(supervisor.query("hall", top_k=wrong), 422, "invalid_request")
    assert supervisor.query("hall", top_k=200).status_code == 200


def test_lists_in_a_query_string_are_bounded(supervisor: Caller) -> None:
    for name, value in (("category", "tasks"), ("tag", "a")):
        assert supervisor.send("GET", MEMORIES, params=[(name, value)] * 50).status_code == 200
        refused(supervisor.send("GET", MEMORIES, params=[(name, value)] * 101), 422, "invalid_request")
