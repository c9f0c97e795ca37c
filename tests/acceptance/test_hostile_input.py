"""Whatever is sent, the answer is a problem document of the 4xx kind, and the server goes on serving."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest

from support.callers import THREAD, USER, Caller, Tenant, refused
from support.serving import RunningServer

Json = dict[str, Any]
QUERY, TURNS, MEMORIES = "/v1/memory/query", "/v1/turns", "/v1/memories"
MEMORY = {"user_id": USER, "category": "tasks", "content": "The hall is booked."}
TURN = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": "Which hall?"}
DEEP = 100_000


def nested(opening: str, closing: str, depth: int = DEEP) -> str:
    return opening * depth + closing * depth


def problem_of(response: httpx2.Response) -> Json:
    assert 400 <= response.status_code < 500, response.text
    return refused(response, response.status_code, response.json()["code"])


def send_raw(caller: Caller, path: str, raw: bytes | str, content_type: str = "application/json") -> httpx2.Response:
    return caller.send("POST", path, content=raw, headers={"Content-Type": content_type})


@pytest.fixture(autouse=True)
def _still_serves(supervisor: Caller) -> Iterator[None]:
    yield
    assert supervisor.query("hall").status_code == 200


BODIES: dict[str, bytes | str] = {
    "empty": "",
    "no JSON": "hello",
    "half": '{"query": "hall"',
    "a list": "[]",
    "a text": '"hall"',
    "a number": "1",
    "null": "null",
    "invalid UTF-8": b'{"query": "\xff\xfe"}',
    "NUL bytes": b"\x00" * 64,
    "lists without end": nested("[", "]"),
    "objects without end": nested('{"a":', "}").replace(":}", ":1}", 1),
    "lists in attributes": json.dumps(MEMORY)[:-1] + ', "attributes": {"a": ' + nested("[", "]") + "}}",
    "a number of 5000 digits": '{"top_k": ' + "9" * 5_000 + "}",
    "a number beyond floats": '{"threshold": 1e999}',
    "not a number": '{"threshold": NaN}',
    "infinity": '{"threshold": -Infinity}',
    "half a character": '{"query": "\\ud800"}',
    "half a character as a key": '{"\\udfff": 1}',
    "100 000 categories": json.dumps({"categories": ["tasks"] * 100_000}),
    "100 000 tags": json.dumps({"filters": {"tags": ["a"] * 100_000}}),
    "100 000 turns": json.dumps({"turns": [{}] * 100_000}),
    "100 000 unknown fields": json.dumps({f"f{n}": n for n in range(100_000)}),
    "a text of 3 MB": json.dumps({"query": "h" * 3_000_000}),
}


DEEP_BODIES = {"lists without end", "objects without end", "lists in attributes"}


@pytest.mark.parametrize("path", [QUERY, TURNS, MEMORIES, "/v1/turns:batch"])
@pytest.mark.parametrize("name", BODIES)
def test_a_broken_body_is_refused(supervisor: Caller, path: str, name: str) -> None:
    if (path, name) == (QUERY, "empty"):
        assert problem_of(send_raw(supervisor, path, ""))["code"] == "invalid_request"
        return
    problem = problem_of(send_raw(supervisor, path, BODIES[name]))
    assert problem["code"] == ("limit_exceeded" if name in DEEP_BODIES else "invalid_request")
    assert len(json.dumps(problem)) < 20_000


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
                                          "application/xml", "nonsense", ""])  # fmt: skip
def test_a_body_of_another_kind_is_refused(supervisor: Caller, content_type: str) -> None:
    for path, body in ((QUERY, {}), (MEMORIES, MEMORY)):
        problem_of(send_raw(supervisor, path, json.dumps(body), content_type))
        assert send_raw(supervisor, path, json.dumps(body)).status_code < 300


WRONG_FIELDS: list[tuple[str, Json, Json]] = [
    (path, valid, {field: value})
    for path, valid, fields in (
        (MEMORIES, MEMORY, ("event_time", "valid_from", "valid_until", "expires_at")),
        (TURNS, TURN, ("event_time",)),
        (QUERY, {}, ("updated_after", "updated_before")),
    )
    for field in fields
    for value in (
        "infinity", "-infinity", "20000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+14:00",
        "0000-01-01T00:00:00Z", "2025-02-30", "now", "", 1e300, -1e300, 2**70, [], "2025-07-01T10:00:00+99:99",
    )
] + [
    (MEMORIES, MEMORY, fields)
    for fields in (
        {"importance": 2**70}, {"importance": 0}, {"importance": 6}, {"importance": 2.5}, {"importance": "3"},
        {"confidence": 1.1}, {"confidence": -0.1}, {"confidence": "high"}, {"lang": "english"}, {"lang": "E1"},
        {"source_ids": ["no id"]}, {"source_ids": ["01890000-0000-7000-8000-000000000000"] * 101},
        {"attributes": {"a": 2**70}}, {"attributes": {str(n): n for n in range(101)}}, {"attributes": []},
        {"attributes": {"a": [0] * 1_001}}, {"attributes": {"a": [[[[[[[[1]]]]]]]]}}, {"facts": [""]},
        {"facts": [None]}, {"facts": "one"}, {"content": "h" * 100_001}, {"category": "c" * 64},
        {"visibility": "secret"}, {"min_trust": "absolute"}, {"type": "fact"}, {"external_id": "e" * 256},
        {"external_id": ""},
    )
]  # fmt: skip


@pytest.mark.parametrize(("path", "valid", "wrong"), WRONG_FIELDS, ids=lambda value: repr(value)[:50])
def test_a_wrong_value_is_refused(supervisor: Caller, path: str, valid: Json, wrong: Json) -> None:
    body = {"filters": wrong} if path == QUERY else valid | wrong
    response = supervisor.post(path, body)
    if next(iter(wrong.values())) == "0001-01-01T00:00:00+14:00" and response.status_code < 300:
        pytest.fail("the first moment of the calendar is in the year 0 in UTC")
    problem_of(response)


def test_numbers_that_are_none_are_refused_in_attributes(supervisor: Caller) -> None:
    for number in ("NaN", "Infinity", "-Infinity", "1e999"):
        raw = json.dumps(MEMORY)[:-1] + f', "attributes": {{"a": {number}}}}}'
        problem_of(send_raw(supervisor, MEMORIES, raw))


@pytest.mark.parametrize("year", ["0002-01-01T00:00:00Z", "1066-10-14T09:00:00Z", "9998-12-31T23:59:59Z"])
def test_far_times_come_back_as_they_were_sent(supervisor: Caller, year: str) -> None:
    memory = supervisor.remember("The hall is booked.", event_time=year)
    assert supervisor.get(f"{MEMORIES}/{memory}").json()["event_time"] == year
    assert supervisor.found("hall") == [memory]


class TestNames:
    """Ids and names, in bodies, filters, paths and query strings."""

    HOSTILE = ("a\u0000b", "\u0000", "' OR 1=1 --", "%", "_", "\\", "{}", "%s", ":tenant", "../..", "\u202e", "é" * 200)

    @pytest.mark.parametrize("name", HOSTILE, ids=ascii)
    @pytest.mark.parametrize("field", ["user_id", "agent_id", "run_id", "actor_id", "thread_id", "entity", "tags"])
    def test_in_filters(self, supervisor: Caller, field: str, name: str) -> None:
        memory = supervisor.remember("The hall is booked.")
        response = supervisor.query("hall", filters={field: [name] if field == "tags" else name})
        if "\u0000" in name:
            refused(response, 422, "invalid_text")
        elif name == "\u202e":
            assert response.status_code in (200, 422)
        else:
            assert response.json()["items"] == []
        assert supervisor.found("hall") == [memory]

    @pytest.mark.parametrize("name", HOSTILE, ids=ascii)
    def test_elsewhere_in_a_query(self, supervisor: Caller, name: str) -> None:
        supervisor.remember("The hall is booked.")
        for body in ({"thread_id": name, "since_rev": 0}, {"ranking": name}, {"agent": name}, {"categories": [name]}):
            response = supervisor.query("hall", **body)
            if response.status_code != 200:
                problem_of(response)
            else:
                assert response.json()["delta"] == {"rev": 0, "header": None, "pruned": False}
        response = supervisor.query(name)
        assert response.status_code == 200 or problem_of(response)["code"] == "invalid_text"

    @pytest.mark.parametrize("name", HOSTILE, ids=ascii)
    @pytest.mark.parametrize("param", ["user_id", "thread_id", "tag", "category", "agent", "cursor", "type", "limit"])
    def test_in_a_query_string(self, supervisor: Caller, param: str, name: str) -> None:
        supervisor.remember("The hall is booked.")
        response = supervisor.get(MEMORIES, **{param: name})
        assert response.json().get("items") == [] if response.status_code == 200 else problem_of(response)

    @pytest.mark.parametrize("path", ["/v1/threads/{}/delta", "/v1/memories/{}", "/v1/memories/{}/history"])
    @pytest.mark.parametrize(
        "name", ["%00", "a%00b", "%ff%fe", "%ED%A0%80", "%27%20OR%201=1", "x" * 300, "%2e%2e", "%0a"]
    )
    def test_in_a_path(self, supervisor: Caller, path: str, name: str) -> None:
        response = supervisor.send("GET", path.format(name))
        if response.status_code != 200:
            problem_of(response)
        else:
            assert response.json() == {"rev": 0, "header": None, "changes": [], "pruned": False}

    def test_long_names_of_wide_characters_are_stored_or_refused(self, supervisor: Caller) -> None:
        """The keys of an index may not grow beyond what its pages hold."""
        dice = random.Random(7)  # noqa: S311 - a text that does not compress, the same each time
        wide = ["".join(chr(dice.randrange(0x20000, 0x2A000)) for _ in range(255)) for _ in range(4)]
        names = dict(zip(("user_id", "thread_id", "external_id", "actor_id"), wide, strict=True))
        for path, body in ((TURNS, TURN), (MEMORIES, MEMORY)):
            response = supervisor.post(path, body | names)
            if response.status_code == 201:
                assert len(supervisor.found(filters={"user_id": names["user_id"]})) > 0
            else:
                assert problem_of(response)["code"] == "limit_exceeded"
        ordinary = {name: value[:120] for name, value in names.items()}
        assert supervisor.post(TURNS, TURN | ordinary).status_code == 201
        assert supervisor.post(MEMORIES, MEMORY | ordinary).status_code == 201


class TestSizes:
    """Bodies that are too large."""

    @pytest.fixture
    def small(self, start_server: Callable[..., RunningServer]) -> Caller:
        return Tenant(start_server(max_body_bytes=2_000)).caller()

    def test_a_large_body_is_refused(self, small: Caller) -> None:
        assert small.query("h" * 1_000).status_code == 200
        problem = refused(small.query("h" * 3_000), 413, "body_too_large")
        assert "2000" in problem["detail"]
        assert small.query("hall").status_code == 200

    def test_a_large_body_without_a_length_is_refused(self, small: Caller) -> None:
        def pieces(number: int) -> Iterator[bytes]:
            yield b'{"query": "'
            yield from [b"h" * 100] * number
            yield b'"}'

        header = {"Content-Type": "application/json"}
        assert small.send("POST", QUERY, content=pieces(5), headers=header).status_code == 200
        refused(small.send("POST", QUERY, content=pieces(100), headers=header), 413, "body_too_large")
        assert small.query("hall").status_code == 200

    def test_the_limit_holds_without_a_key_too(self, small: Caller) -> None:
        problem_of(Caller(small.client).query("h" * 3_000))

    def test_a_large_honest_batch_fits(self, supervisor: Caller) -> None:
        turns = [TURN | {"text": f"{number} " + "hall " * 60} for number in range(1_000)]
        assert supervisor.post("/v1/turns:batch", {"turns": turns}).status_code == 201


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v2/memory/query", 404, "not_found"),
        ("GET", "/v1/memory/query", 405, "method_not_allowed"),
        ("PUT", "/v1/memories", 405, "method_not_allowed"),
        ("DELETE", "/v1/turns", 405, "method_not_allowed"),
        ("POST", "/healthz", 405, "method_not_allowed"),
    ],
)
def test_what_there_is_not_is_a_problem_too(nobody: Caller, method: str, path: str, status: int, code: str) -> None:
    response = nobody.send(method, path)
    refused(response, status, code)
    assert ("Allow" in response.headers) == (status == 405)


def test_a_method_that_there_is_not_is_answered_with_all_that_there_are(nobody: Caller) -> None:
    record = f"{MEMORIES}/01890000-0000-7000-8000-000000000000"
    assert nobody.send("PUT", record).headers["Allow"] == "DELETE, GET, PATCH"
    assert nobody.send("PUT", MEMORIES).headers["Allow"] == "GET, POST"


def test_an_id_that_is_none_is_refused(supervisor: Caller) -> None:
    for record in ("1", "null", "01890000-0000-7000-8000-00000000000g"):
        refused(supervisor.get(f"{MEMORIES}/{record}"), 422, "invalid_request")


def test_a_very_long_query_string_and_header_are_refused(supervisor: Caller) -> None:
    assert supervisor.get(MEMORIES, user_id="u" * 20_000).status_code == 422
    response = supervisor.send("PATCH", f"{MEMORIES}/01890000-0000-7000-8000-000000000000", json={},
                               headers={"If-Match": "9" * 5_000})  # fmt: skip
    problem_of(response)
