"""The Python client when something goes wrong: what it repeats, how often, and which error tells of it."""

import pickle
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from uuid import uuid4

import httpx2
import pytest

from integration.answers import ANSWER, TURN, WRITTEN, Answers, ok, problem
from memplane.client import (
    Conflict,
    Forbidden,
    Invalid,
    Memplane,
    MemplaneClientError,
    NotFound,
    RateLimited,
    ServerFailed,
    Unauthenticated,
    Unavailable,
    UnexpectedAnswer,
    VersionConflict,
    connection,
    fields,
)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between attempts, which take no time here."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(connection, "sleep", sleep)  # its own alone: a server in this process sleeps too
    return found


# What goes wrong


def test_a_busy_server_is_asked_again(waits: list[float]) -> None:
    answers = Answers(problem(503, Retry_After="2"), problem(503), ok())
    assert answers.ask(lambda m: m.query("x")).policy == "sha256:0"
    assert len(answers.requests) == 3
    assert waits[0] == 2.0
    assert 0 < waits[1] < 1


def test_a_server_that_has_had_enough_of_the_key_is_asked_again_when_it_says(waits: list[float]) -> None:
    answers = Answers(
        problem(429, "rate_limited", Retry_After="3"), problem(429, "rate_limited", Retry_After="1"), ok()
    )
    assert answers.ask(lambda m: m.query("x")).policy == "sha256:0"
    assert (len(answers.requests), waits) == (3, [3.0, 1.0])


def test_one_that_wants_more_patience_than_there_is_is_told_at_once(waits: list[float]) -> None:
    answers = Answers(problem(429, "rate_limited", Retry_After="11"))
    with pytest.raises(RateLimited) as refused:
        answers.ask(lambda m: m.query("x"))
    assert (refused.value.code, refused.value.retry_after) == ("rate_limited", 11)
    assert (len(answers.requests), waits) == (1, [])


def test_a_lost_connection_is_tried_again(waits: list[float]) -> None:
    answers = Answers(httpx2.ConnectError("refused"), httpx2.RemoteProtocolError("hung up"), ok())
    answers.ask(lambda m: m.query("x"))
    assert (len(answers.requests), len(waits)) == (3, 2)


def test_the_attempts_are_bounded(waits: list[float]) -> None:
    answers = Answers(problem(503))
    with pytest.raises(Unavailable) as refused:
        answers.ask(lambda m: m.query("x"))
    assert (refused.value.status, refused.value.code, refused.value.detail) == (503, "unavailable", "d")
    assert refused.value.extra["limit"] == 7
    assert (len(answers.requests), len(waits)) == (4, 3)


def test_a_server_that_asks_for_patience_beyond_measure_is_not_asked_again(waits: list[float]) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    answers = Answers(problem(503, Retry_After=later))
    with pytest.raises(Unavailable) as refused:
        answers.ask(lambda m: m.query("x"))
    assert refused.value.retry_after is not None
    assert 3500 < refused.value.retry_after <= 3600
    assert (len(answers.requests), waits) == (1, [])


TURN_FIELDS: fields.TurnFields = {"user_id": "u", "thread_id": "t", "role": "user"}


@pytest.mark.parametrize(
    ("call", "answer", "again"),
    [
        (lambda m: m.query("x"), ANSWER, True),
        (lambda m: m.delta("t"), {"rev": 0, "header": None, "changes": []}, True),
        (lambda m: m.health(), {"status": "ok", "version": "1"}, True),
        (lambda m: m.turn("x", **TURN_FIELDS), TURN, True),
        (lambda m: m.turn("x", **TURN_FIELDS, external_id="e"), TURN, True),
        (lambda m: m.turns([{"text": "x", **TURN_FIELDS}]), {"items": [TURN]}, True),
        (lambda m: m.turns([{"text": "x", **TURN_FIELDS, "external_id": "e"}]), {"items": [TURN]}, True),
        (lambda m: m.remember("x", user_id="u", category="c"), WRITTEN, True),
        (lambda m: m.say(uuid4(), "confirm"), WRITTEN, True),
        (lambda m: m.correct(uuid4(), "x"), WRITTEN, True),
        (lambda m: m.remember("x", user_id="u", category="c", external_id="e"), WRITTEN, True),
        (lambda m: m.update(uuid4(), content="x"), WRITTEN, False),
        (lambda m: m.delete(uuid4()), WRITTEN, False),
    ],
)
@pytest.mark.usefixtures("waits")
def test_only_what_is_safe_to_repeat_is_repeated(
    call: Callable[[Memplane], Awaitable[object]], answer: object, again: bool
) -> None:
    for failure in (problem(503), problem(429, "rate_limited"), httpx2.ReadError("lost")):
        answers = Answers(failure, ok(answer))
        if again:
            answers.ask(call)
        else:
            with pytest.raises(Unavailable):
                answers.ask(call)
        assert len(answers.requests) == 1 + again
        names = {request.headers.get("Idempotency-Key") for request in answers.requests}
        assert len(names) == 1
        if answers.requests[0].method == "POST" and "query" not in answers.requests[0].url.path:
            assert None not in names


@pytest.mark.parametrize(
    "failure", [problem(500, "internal_error"), problem(422, "limit_exceeded"), httpx2.ReadTimeout("slow")]
)
def test_what_another_attempt_does_not_help_is_told_at_once(
    failure: httpx2.Response | Exception, waits: list[float]
) -> None:
    answers = Answers(failure)
    with pytest.raises(MemplaneClientError) as refused:
        answers.ask(lambda m: m.query("x"))
    assert refused.value.code in {"internal_error", "limit_exceeded", "timeout"}
    assert (len(answers.requests), waits) == (1, [])


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (problem(400), Invalid),
        (problem(401), Unauthenticated),
        (problem(403), Forbidden),
        (problem(404), NotFound),
        (problem(409), Conflict),
        (problem(412), VersionConflict),
        (problem(413), Invalid),
        (problem(422), Invalid),
        (problem(429), RateLimited),
        (problem(500), ServerFailed),
        (httpx2.Response(404, html="<h1>not here</h1>"), UnexpectedAnswer),
        (httpx2.Response(301, headers={"Location": "http://elsewhere/"}), UnexpectedAnswer),
        (httpx2.Response(502, html="<h1>bad gateway</h1>"), Unavailable),
        (httpx2.Response(200, html="<h1>welcome</h1>"), UnexpectedAnswer),
        (httpx2.Response(200, json={"items": 3}), UnexpectedAnswer),
    ],
)
def test_every_answer_has_its_error(answer: httpx2.Response, kind: type[MemplaneClientError]) -> None:
    with pytest.raises(MemplaneClientError) as refused:
        Answers(answer).ask(lambda m: m.query("x"))
    assert type(refused.value) is kind or (kind is Invalid and isinstance(refused.value, Invalid))
    assert refused.value.status == answer.status_code


def test_a_server_that_is_not_ready_is_an_answer(waits: list[float]) -> None:
    answers = Answers(httpx2.Response(503, json={"status": "unavailable", "version": "1", "policy": None}))
    assert answers.ask(lambda m: m.ready()).status == "unavailable"
    assert waits == []


def test_a_newer_server_may_say_more() -> None:
    assert Answers(ok({**ANSWER, "news": 1})).ask(lambda m: m.query("x")).items == []


def test_an_error_survives_a_process_boundary() -> None:
    error = pickle.loads(pickle.dumps(NotFound("not_found", "no such memory", 404, {"a": 1})))  # noqa: S301 - our own bytes
    assert (str(error), error.status, error.extra) == ("not_found: no such memory", 404, {"a": 1})


# Certificates


def test_certificates_that_cannot_be_read_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent/ca.pem")
    connection._trusted.cache_clear()
    try:
        Memplane("http://127.0.0.1:1", "mp_x_y")  # of this machine's own servers the environment says nothing
        with pytest.raises(Invalid, match="SSL_CERT_FILE"):
            Memplane("https://memory.example", "mp_x_y")
    finally:
        connection._trusted.cache_clear()
