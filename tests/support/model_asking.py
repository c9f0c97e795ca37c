"""Facts that a model of the tests is asked for, and somebody who asks."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from annotated_types import Interval, Len
from pydantic import SecretStr

from memplane.adapters.llm.endpoint import Endpoint
from memplane.adapters.llm.prompt_files import prompt_file
from memplane.adapters.llm.pydantic_ai_model import Bounds, PydanticAiModel
from memplane.application.jobs.inference.language_model import Answer
from memplane.domain.errors import ModelFailed
from support.model_server import INPUT_TOKENS, OUTPUT_TOKENS, ModelServer, Reply, called

KEY = "sk-planted-4711"
SAID = "I moved to Uppsala in May."
PROMPT = prompt_file("facts").about(SAID)
PATIENT, HASTY = 30.0, 0.2
"""Seconds that nobody waits for, and seconds that a held answer outlasts."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact; a text that is too long is a wrong shape."""

    text: Annotated[str, Len(1, 280)]
    category: Literal["home", "work"]
    importance: Annotated[int, Interval(ge=1, le=5)]
    confidence: Annotated[float, Interval(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts that were found."""

    facts: Annotated[tuple[Fact, ...], Len(0, 5)]

    def __post_init__(self) -> None:
        """No two are the same.

        Raises:
            ValueError: two are.
        """
        if len({fact.text for fact in self.facts}) < len(self.facts):
            raise ValueError("two facts are the same")


FACT = {"text": "The user lives in Uppsala.", "category": "home", "importance": 4, "confidence": 0.9}
RIGHT = called({"facts": [FACT]})
FOUND = Facts((Fact("The user lives in Uppsala.", "home", 4, 0.9),))


class Asker:
    """A model on a server, with its pauses noted and not waited for."""

    def __init__(self, server: ModelServer, seconds: float = PATIENT, attempts: int = 3) -> None:
        self.paused: list[float] = []
        endpoint = Endpoint("small", server.url, SecretStr(KEY))
        self.model = PydanticAiModel(endpoint, Bounds(seconds, attempts, 500), self._pause)
        self._server = server

    async def _pause(self, seconds: float) -> None:
        self.paused.append(seconds)

    def ask(self, *script: Reply, most_tokens: int = 200) -> Answer[Facts]:
        """Ask, with a script for the answers."""
        self._server.script = list(script)
        return asyncio.run(self.model.ask(PROMPT, Facts, most_tokens))

    def fails(self, *script: Reply, most_tokens: int = 200) -> ModelFailed:
        """Ask, and fail."""
        with pytest.raises(ModelFailed) as failed:
            self.ask(*script, most_tokens=most_tokens)
        return failed.value


def cost(of: Answer[Facts] | ModelFailed) -> tuple[int, int]:
    """Tokens read and written."""
    return of.input_tokens, of.output_tokens


def times(requests: int) -> tuple[int, int]:
    """What so many answers of the server cost."""
    return requests * INPUT_TOKENS, requests * OUTPUT_TOKENS
