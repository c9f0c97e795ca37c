"""A model asked over HTTP: right answers, wrong ones, every way to fail, and what each costs."""

import asyncio
import json

import pytest

from memplane.adapters.llm.endpoint import Endpoint
from memplane.adapters.llm.pydantic_ai_model import FIRST_PAUSE, Bounds, PydanticAiModel
from memplane.adapters.llm.transport import MAX_BYTES
from memplane.application.jobs.inference.language_model import Answer
from memplane.domain.errors import ModelAnswerInvalid, ModelFailed, ModelUnavailable
from support.model_asking import FACT, FOUND, HASTY, KEY, PATIENT, PROMPT, RIGHT, SAID, Asker, Facts, cost, times
from support.model_server import ModelServer, Reply, called, completion, model_server, refused, spoken

# What is asked


@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_the_worst_is_known_before_anything_is_asked(server: ModelServer, attempts: int) -> None:
    """Every answer as long as it may be, and wrong; counted as long as what went to and fro."""
    asker, most = Asker(server, attempts=attempts), 400
    wrong = called({"facts": [dict(FACT, text="x" * (most * 3))]}, usage=None)
    failed = asker.fails(*[wrong] * attempts, most_tokens=most)
    spent, worst = sum(cost(failed)), asker.model.worst(PROMPT, Facts, most)
    assert len(server.asked) == attempts
    assert worst / 3 < spent <= worst
    assert asker.model.worst(PROMPT, Facts, 10_000) == asker.model.worst(PROMPT, Facts, 500)  # the operator's bound


def test_a_right_answer_is_a_value_with_its_cost_its_model_and_its_prompt(server: ModelServer, asker: Asker) -> None:
    answer = asker.ask(RIGHT)
    assert answer == Answer(FOUND, *times(1), "small", PROMPT.version)
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["model"] == "small"
    assert asked.body["temperature"] == 0
    assert asked.body["max_tokens"] == 200
    assert asked.body["stream"] is False


def test_the_shape_goes_along_with_its_bounds(server: ModelServer, asker: Asker) -> None:
    asker.ask(RIGHT)
    (tool,) = server.asked[0].body["tools"]
    fact = tool["function"]["parameters"]["$defs"]["Fact"]
    assert set(fact["required"]) == {"text", "category", "importance", "confidence"}
    assert fact["properties"]["category"]["enum"] == ["home", "work"]
    assert server.asked[0].body["tool_choice"] == "required"


def test_instructions_and_data_go_apart(server: ModelServer, asker: Asker) -> None:
    asker.ask(RIGHT)
    ours, theirs = server.asked[0].said("system"), server.asked[0].said("user")
    assert PROMPT.instructions in ours
    assert SAID in theirs
    assert SAID not in ours
    opening = theirs.split("\n")[0]
    assert opening in ours
    assert theirs.endswith(opening.replace("<", "</"))


def test_no_answer_may_be_longer_than_the_operator_says(server: ModelServer, asker: Asker) -> None:
    asker.ask(RIGHT, most_tokens=10_000)
    assert server.asked[0].body["max_tokens"] == 500


def test_a_model_that_reasons_is_sent_no_temperature(server: ModelServer) -> None:
    for name, sent in (("small", True), ("gpt-5", False)):
        server.script = [RIGHT]
        model = PydanticAiModel(Endpoint(name, server.url, None), Bounds(PATIENT, 1, 500))
        asyncio.run(model.ask(PROMPT, Facts, 100))
        assert ("temperature" in server.asked[-1].body) is sent


# Answers that are wrong

WRONG = {
    "no JSON": called('{"facts": ['),
    "words": spoken("Gladly! The user lives in Uppsala."),
    "nothing": completion({"content": None}),
    "another shape": called({"facts": "Uppsala"}),
    "a missing field": called({"facts": [{"text": "The user lives in Uppsala."}]}),
    "a list": called([FACT]),
    "a category that there is not": called({"facts": [FACT | {"category": "secrets"}]}),
    "an importance out of bounds": called({"facts": [FACT | {"importance": 6}]}),
    "a confidence that is no number": called('{"facts": [' + json.dumps(FACT | {"confidence": float("nan")}) + "]}"),
    "a text that is too long": called({"facts": [FACT | {"text": "x" * 281}]}),
    "too many": called({"facts": [FACT | {"text": f"fact {n}"} for n in range(6)]}),
    "two that are the same": called({"facts": [FACT, FACT]}),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_answer_is_asked_for_again(server: ModelServer, asker: Asker, wrong: str) -> None:
    answer = asker.ask(WRONG[wrong], RIGHT)
    assert answer.value == FOUND
    assert cost(answer) == times(2)
    assert len(server.asked) == 2
    assert len(server.asked[1].body["messages"]) > len(server.asked[0].body["messages"])  # with what was wrong
    assert asker.paused == []


@pytest.mark.parametrize("wrong", WRONG)
def test_one_that_stays_wrong_is_given_up_and_its_cost_is_told(server: ModelServer, asker: Asker, wrong: str) -> None:
    failed = asker.fails(*[WRONG[wrong]] * 4)
    assert isinstance(failed, ModelAnswerInvalid)
    assert cost(failed) == times(3)
    assert len(server.asked) == 3


def test_a_model_with_one_attempt_is_not_asked_again(server: ModelServer) -> None:
    failed = Asker(server, attempts=1).fails(called("{"), RIGHT)
    assert isinstance(failed, ModelAnswerInvalid)
    assert (len(server.asked), cost(failed)) == (1, times(1))


def test_an_answer_that_was_cut_off_at_its_length_is_not_asked_for_again(server: ModelServer, asker: Asker) -> None:
    failed = asker.fails(called('{"facts": [{"te', finish="length"), RIGHT)
    assert isinstance(failed, ModelAnswerInvalid)
    assert "longer than it may be" in failed.detail
    assert (len(server.asked), cost(failed)) == (1, times(1))


@pytest.mark.parametrize("more", [0, 1])
def test_an_answer_is_read_up_to_a_limit(server: ModelServer, asker: Asker, more: int) -> None:
    padded = Reply(RIGHT.body + b" " * (MAX_BYTES + more - len(RIGHT.body)))
    if not more:
        assert asker.ask(padded).value == FOUND
        return
    failed = asker.fails(padded, RIGHT)
    assert isinstance(failed, ModelAnswerInvalid)
    assert "longer than any answer" in failed.detail
    assert len(server.asked) == 1
    assert failed.output_tokens > MAX_BYTES / 4


@pytest.mark.filterwarnings("ignore:Failed to extract usage")  # for the operator's eyes; the answer is told on
@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": -5, "completion_tokens": -5, "total_tokens": -10}])
def test_where_no_cost_is_told_the_bytes_are_counted(asker: Asker, usage: object) -> None:
    reply = called({"facts": [FACT]}, usage=usage)  # type: ignore[arg-type]  # what a server may say
    try:
        spent = cost(asker.ask(reply, reply, reply))
    except ModelFailed as failed:
        spent = cost(failed)
    assert spent[0] >= len(SAID) / 4
    assert spent[1] >= len(json.dumps(FACT)) / 4


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"7", b"null", b'{"choices": []}', b'{"choices": [{}]}', b"[" * 100_000, b"\xff\xfe", b"<html>"],
)
def test_what_is_no_answer_at_all_is_a_failure_like_others(server: ModelServer, asker: Asker, body: bytes) -> None:
    failed = asker.fails(*[Reply(body)] * 4)
    assert isinstance(failed, ModelAnswerInvalid | ModelUnavailable)
    assert 1 <= len(server.asked) <= 3
    assert asker.ask(RIGHT).value == FOUND


# Requests that fail


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_a_failure_that_may_pass_is_tried_again_after_a_pause(server: ModelServer, asker: Asker, status: int) -> None:
    answer = asker.ask(refused(status), refused(status), RIGHT)
    assert (answer.value, cost(answer)) == (FOUND, times(1))
    assert asker.paused == [FIRST_PAUSE, 2 * FIRST_PAUSE]
    assert server.asked[0].body == server.asked[2].body


@pytest.mark.parametrize(
    ("status", "said"),
    [(400, "refuses the request"), (401, "refuses the key"), (403, "refuses the key"), (404, "no such model")],
)
def test_a_refusal_that_stays_is_not_tried_again(server: ModelServer, asker: Asker, status: int, said: str) -> None:
    failed = asker.fails(refused(status), RIGHT)
    assert isinstance(failed, ModelUnavailable)
    assert f"{said}" in failed.detail
    assert f"(status {status})" in failed.detail
    assert (len(server.asked), asker.paused, cost(failed)) == (1, [], (0, 0))


def test_failures_that_do_not_pass_are_given_up(server: ModelServer, asker: Asker) -> None:
    failed = asker.fails(*[refused(500)] * 4)
    assert isinstance(failed, ModelUnavailable)
    assert "status 500" in failed.detail
    assert len(server.asked) == 3


def test_wrong_answers_and_failures_share_the_requests(server: ModelServer, asker: Asker) -> None:
    failed = asker.fails(called("{"), refused(500), called("{"), RIGHT)
    assert isinstance(failed, ModelAnswerInvalid)
    assert (len(server.asked), cost(failed)) == (3, times(2))
    server.asked.clear()
    failed = asker.fails(called("{"), refused(500), refused(500), RIGHT)
    assert isinstance(failed, ModelUnavailable)
    assert (len(server.asked), cost(failed)) == (3, times(1))


def test_the_endpoint_says_how_long_to_wait(asker: Asker) -> None:
    assert asker.ask(refused(429, **{"Retry-After": "7"}), RIGHT).value == FOUND
    assert asker.paused == [7.0]


def test_a_wait_beyond_the_time_is_not_begun(server: ModelServer, asker: Asker) -> None:
    failed = asker.fails(refused(429, **{"Retry-After": str(int(3 * PATIENT) + 1)}), RIGHT)
    assert isinstance(failed, ModelUnavailable)
    assert "limits the rate" in failed.detail
    assert (len(server.asked), asker.paused) == (1, [])


def test_a_connection_that_breaks_in_the_middle_is_tried_again(asker: Asker) -> None:
    cut = Reply(RIGHT.body, cut=len(RIGHT.body) // 2)
    assert asker.ask(cut, RIGHT).value == FOUND
    assert asker.paused == [FIRST_PAUSE]
    failed = asker.fails(cut, cut, cut, RIGHT)
    assert isinstance(failed, ModelUnavailable)
    assert "broke off" in failed.detail


def test_a_model_that_is_down_is_unavailable() -> None:
    with model_server() as server:
        asker = Asker(server)
        assert asker.ask(RIGHT).value == FOUND
    failed = asker.fails()
    assert isinstance(failed, ModelUnavailable)
    assert asker.paused == [FIRST_PAUSE, 2 * FIRST_PAUSE]


def test_a_request_that_takes_too_long_is_given_up_and_tried_again(server: ModelServer) -> None:
    asker = Asker(server, seconds=HASTY, attempts=2)
    held = Reply(RIGHT.body, held=True)
    failed = asker.fails(held, held)
    assert isinstance(failed, ModelUnavailable)
    assert "in time" in failed.detail
    server.gate.set()
    assert Asker(server).ask(held).value == FOUND


def test_an_answer_in_drops_is_given_up_too(server: ModelServer) -> None:
    """Each drop comes in time, the whole does not: a timeout for each read would wait for ever."""
    drops = Reply(RIGHT.body, drops=True)
    failed = Asker(server, seconds=HASTY, attempts=1).fails(drops)
    assert isinstance(failed, ModelUnavailable)
    assert "in time" in failed.detail
    asker = Asker(server, seconds=2.0)
    assert asker.ask(drops, RIGHT).value == FOUND  # the one request is given up, and not all of them
    assert asker.paused == [FIRST_PAUSE]


def test_the_whole_time_holds_whatever_the_requests_do(server: ModelServer) -> None:
    """Its pauses never end, so that nothing but the time for the whole can end it."""

    async def forever(_: float) -> None:
        await asyncio.Event().wait()

    assert Asker(server).ask(RIGHT).value == FOUND  # which has loaded all that is loaded late
    model = PydanticAiModel(Endpoint("small", server.url, None), Bounds(1.0, 3, 500), forever)
    server.script = [called("{"), refused(500)]
    with pytest.raises(ModelUnavailable, match="in time") as failed:
        asyncio.run(model.ask(PROMPT, Facts, 200))
    assert cost(failed.value) == times(1)  # what was spent before is told
