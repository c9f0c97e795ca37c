"""The circuit breaker: when a model is left alone, and when it is asked again."""

import asyncio
from typing import TypeVar

import pytest

from memplane.adapters.llm.breaker import Breaker
from memplane.application.jobs.inference.language_model import Answer, ModelPrompt
from memplane.domain.errors import ModelAnswerInvalid, ModelUnavailable

T = TypeVar("T")
PROMPT = ModelPrompt("facts", "facts/1:0123456789ab", "Do it.", "I like tea.")


class Scripted:
    """A model that does what it is told, one entry for each call; a port's other side, as a job's tests have it."""

    name = "scripted"

    def __init__(self, *script: Exception | None) -> None:
        self.script = list(script)
        self.calls = 0
        self.gate: asyncio.Event | None = None
        self.begun = asyncio.Event()

    def worst(self, asked: ModelPrompt, kind: type[object], most_tokens: int) -> int:
        del asked, kind
        return 3 + most_tokens

    async def ask(self, asked: ModelPrompt, kind: type[T], most_tokens: int) -> Answer[T]:
        del most_tokens
        self.calls += 1
        told = self.script.pop(0)
        self.begun.set()
        if self.gate is not None:
            await self.gate.wait()
        if told is not None:
            raise told
        return Answer(kind(), 3, 2, self.name, asked.version)


class Clock:
    """Seconds that pass when they are told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def ask(breaker: Breaker) -> str:
    """How a call ended."""
    try:
        await breaker.ask(PROMPT, int, 10)
    except (ModelUnavailable, ModelAnswerInvalid) as error:
        return error.code
    return "answered"


DOWN, WRONG = ModelUnavailable("down"), ModelAnswerInvalid("wrong")


def test_a_model_that_fails_again_and_again_is_left_alone_for_a_while() -> None:
    async def course() -> None:
        model, clock = Scripted(*[DOWN] * 4, None, *[DOWN] * 3, None), Clock()
        breaker = Breaker(model, clock, failures=3, pause=60)
        assert [await ask(breaker) for _ in range(3)] == ["model_unavailable"] * 3
        assert model.calls == 3
        with pytest.raises(ModelUnavailable, match="left alone for 60 s"):
            await breaker.ask(PROMPT, int, 10)
        clock.now += 59.9
        assert await ask(breaker) == "model_unavailable"
        assert model.calls == 3  # refused, and not asked
        clock.now += 0.2
        assert await ask(breaker) == "model_unavailable"
        assert model.calls == 4  # one that tries
        assert await ask(breaker) == "model_unavailable"
        assert model.calls == 4  # shut again, at its first failure
        clock.now += 60
        assert await ask(breaker) == "answered"
        assert [await ask(breaker) for _ in range(2)] == ["model_unavailable"] * 2
        assert model.calls == 7  # closed: it takes three again
        assert (breaker.name, breaker.worst(PROMPT, int, 10)) == ("scripted", 13)

    asyncio.run(course())


@pytest.mark.parametrize(("between", "calls"), [(None, 5), (WRONG, 5), (DOWN, 3)])
def test_any_answer_between_failures_keeps_the_circuit_closed(between: Exception | None, calls: int) -> None:
    async def course() -> int:
        model = Scripted(DOWN, DOWN, between, DOWN, DOWN)
        breaker = Breaker(model, Clock(), failures=3)
        for _ in range(5):
            await ask(breaker)
        return model.calls

    assert asyncio.run(course()) == calls


def test_wrong_answers_alone_never_open_it() -> None:
    async def course() -> int:
        model = Scripted(*[WRONG] * 20)
        breaker = Breaker(model, Clock(), failures=3)
        assert {await ask(breaker) for _ in range(20)} == {"model_answer_invalid"}
        return model.calls

    assert asyncio.run(course()) == 20


def test_a_wrong_answer_closes_an_open_one() -> None:
    async def course() -> list[str]:
        clock = Clock()
        breaker = Breaker(Scripted(DOWN, WRONG, None), clock, failures=1)
        ends = [await ask(breaker)]
        clock.now += 60
        return ends + [await ask(breaker) for _ in range(2)]

    assert asyncio.run(course()) == ["model_unavailable", "model_answer_invalid", "answered"]


def test_one_call_at_a_time_tries_an_open_circuit_and_one_that_is_cancelled_lets_the_next() -> None:
    async def course() -> None:
        model, clock = Scripted(DOWN, None, None), Clock()
        breaker = Breaker(model, clock, failures=1)
        await ask(breaker)
        clock.now += 60
        model.gate = asyncio.Event()
        model.begun.clear()
        trying = asyncio.create_task(ask(breaker))
        await model.begun.wait()
        assert await ask(breaker) == "model_unavailable"
        assert model.calls == 2  # the other was not asked
        trying.cancel()
        await asyncio.gather(trying, return_exceptions=True)
        model.gate.set()
        assert await ask(breaker) == "answered"
        assert model.calls == 3

    asyncio.run(course())


@pytest.mark.parametrize("late", [None, DOWN])
def test_a_call_from_before_it_opened_says_nothing_of_now(late: Exception | None) -> None:
    async def course() -> None:
        model, clock = Scripted(late, DOWN, None), Clock()
        breaker = Breaker(model, clock, failures=1)
        model.gate = asyncio.Event()
        early = asyncio.create_task(ask(breaker))
        await model.begun.wait()
        gate, model.gate = model.gate, None
        await ask(breaker)  # opens it
        clock.now += 30
        gate.set()
        await early
        assert await ask(breaker) == "model_unavailable"
        assert model.calls == 2  # still open
        clock.now += 30
        assert await ask(breaker) == "answered"  # and not for longer

    asyncio.run(course())
