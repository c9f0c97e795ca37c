"""A model asked through pydantic-ai: answers are checked against a dataclass, requests are bounded in every way."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import TypeAdapter
from pydantic_ai import Agent
from pydantic_ai import exceptions as library
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from memplane.adapters.llm.endpoint import Endpoint
from memplane.adapters.llm.transport import OneEndpoint, client_of, tls_of, transport_to
from memplane.application.jobs.inference.language_model import Answer, ModelPrompt
from memplane.domain.errors import ModelAnswerInvalid, ModelFailed, ModelUnavailable

T = TypeVar("T")
Pause = Callable[[float], Awaitable[None]]
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 8.0
BYTES_A_TOKEN = 4
BYTES_A_TOKEN_AT_LEAST = 3
"""With this a question is estimated beforehand: words of no language that was measured have fewer bytes a token."""
AROUND = 100
"""Tokens of what stands around a question or an answer: roles, the tool's name, words about what was wrong."""
PASSING = (
    library.ModelRateLimitError,
    library.ModelUnavailableError,
    library.ModelServerError,
    library.ModelConnectionError,
)
"""Failures after which the same request may succeed; a refused key or an unknown model stays one."""
WITHOUT_TEMPERATURE = ("openai_supports_reasoning", "anthropic_disallows_sampling_settings")
"""What the library knows of models that refuse a temperature, as those that reason do."""
REASONS: tuple[tuple[type[Exception], str], ...] = (
    (TimeoutError, "it did not answer in time"),
    (library.ModelTimeoutError, "it did not answer in time"),
    (library.ModelConnectionError, "it cannot be reached, or broke off"),
    (library.ModelRateLimitError, "it limits the rate"),
    (library.ModelQuotaExceededError, "the account's quota is used up"),
    (library.ModelAuthenticationError, "it refuses the key"),
    (library.ModelNotFoundError, "it has no such model, or nothing at that address"),
    (library.ModelContextWindowExceededError, "the text is too long for it"),
    (library.ModelRequestRejectedError, "it refuses the request"),
    (library.ModelUnavailableError, "it is down or overloaded"),
    (library.ModelServerError, "it failed"),
    (library.ModelAPIError, "it does not answer as such an endpoint does"),
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one answer may take.

    Attributes:
        seconds: for each request; all together may take so many times as much as there may be requests.
        attempts: the most requests, whether they fail or are answered badly.
        most_output: the most tokens of an answer.
    """

    seconds: float
    attempts: int
    most_output: int


class PydanticAiModel:
    """A model behind an OpenAI-compatible address, or one of a provider that the library knows.

    It keeps no connection: a request takes seconds, a new connection a few milliseconds, and none belongs to a loop
    that has ended.

    Args:
        endpoint: where it is.
        bounds: what one answer may take.
        pause: waits so many seconds before a request that failed is sent again.

    Raises:
        SettingsError: there is no such model for the library.
    """

    def __init__(self, endpoint: Endpoint, bounds: Bounds, pause: Pause = asyncio.sleep) -> None:
        self.name = endpoint.model
        self._endpoint = endpoint
        self._bounds = bounds
        self._pause = pause
        self._url = endpoint.base_url()
        self._tls = tls_of(self._url)

    def worst(self, prompt: ModelPrompt, kind: type[object], most_tokens: int) -> int:
        """The most tokens of a question: every request made, every answer as long as it may be, and all wrong.

        A request after a wrong answer has the question, the answers before it, and what was wrong with each, which may
        quote it.
        """
        sent = prompt.render()
        shape = json.dumps(TypeAdapter(kind).json_schema())
        size = len(f"{sent.instructions}{sent.data}{shape}".encode())
        question = -(-size // BYTES_A_TOKEN_AT_LEAST) + AROUND
        written, requests = min(most_tokens, self._bounds.most_output), self._bounds.attempts
        again = requests * (requests - 1) // 2
        return requests * (question + written) + again * (2 * written + AROUND)

    async def ask(self, prompt: ModelPrompt, kind: type[T], most_tokens: int) -> Answer[T]:
        """One answer, checked; a wrong one is asked for again, with what was wrong, while there are requests left.

        Tokens are those that the endpoint told of; where it told nothing, one for each four bytes of the bodies that
        went to and fro. A request that was never answered counts nothing.

        Raises:
            ModelUnavailable: no request brought an answer within the time, or the endpoint refuses.
            ModelAnswerInvalid: no answer fits, or one was too long.
        """
        sent = prompt.render()
        bounds = self._bounds
        agent = Agent(output_type=kind, instructions=sent.instructions, retries={"output": bounds.attempts})
        transport = transport_to(self._url, self._tls)
        spent = TokenUsage()
        whole = bounds.seconds * bounds.attempts
        try:
            async with asyncio.timeout(whole), client_of(transport, bounds.seconds) as client:
                counted = MeteredModel(self._endpoint.on(client), transport, bounds, spent, self._pause)
                run = await agent.run(sent.data, model=counted, model_settings=self._settings(counted, most_tokens))
            return Answer(run.output, spent.input_tokens, spent.output_tokens, self.name, prompt.version)
        except Exception as error:  # noqa: BLE001 - whatever reading a hostile answer raises in a library is one failure
            failure = _failure(error, transport, spent)
        # raised out here, without a cause: what the library says quotes the answer, and with it what people said
        raise failure

    def _settings(self, model: LibraryModel, most_tokens: int) -> ModelSettings:
        settings = ModelSettings(
            max_tokens=min(most_tokens, self._bounds.most_output),
            timeout=self._bounds.seconds,
            max_retries=0,  # the SDK's own: what is sent again is decided and counted here
        )
        if not any(model.profile.get(trait) for trait in WITHOUT_TEMPERATURE):
            settings["temperature"] = 0.0
        return settings


@dataclass(slots=True)
class TokenUsage:
    """Tokens, over all requests for an answer."""

    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, response: ModelResponse | None, transport: OneEndpoint) -> None:
        """Count an answer, by what the endpoint says of it or else by its size."""
        usage = None if response is None else response.usage
        told = usage is not None and (usage.input_tokens > 0 or usage.output_tokens > 0)
        if usage is not None and told:
            self.input_tokens += max(0, usage.input_tokens)
            self.output_tokens += max(0, usage.output_tokens)
        else:
            self.input_tokens += -(-transport.sent // BYTES_A_TOKEN)
            self.output_tokens += -(-transport.received // BYTES_A_TOKEN)


class NoneLeft(Exception):
    """All requests for an answer were made."""


class MeteredModel(WrapperModel):
    """The library's model: each request timed, sent again where that may help, all of them counted.

    Args:
        wrapped: the library's model.
        transport: what it sends requests through.
        bounds: what one answer may take.
        spent: where tokens are counted.
        pause: waits.
    """

    def __init__(
        self, wrapped: LibraryModel, transport: OneEndpoint, bounds: Bounds, spent: TokenUsage, pause: Pause
    ) -> None:
        super().__init__(wrapped)
        self._transport = transport
        self._bounds = bounds
        self._spent = spent
        self._pause = pause
        self._left = bounds.attempts
        self._until = time.monotonic() + bounds.seconds * bounds.attempts

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """One answer of the library's model.

        Raises:
            NoneLeft: the answer before was no good, and no request is left.
            ModelAPIError, TimeoutError: it failed in a way that stays, or too often.
        """
        if not self._left:
            raise NoneLeft
        pause = FIRST_PAUSE
        while True:
            self._left -= 1
            try:
                async with asyncio.timeout(self._bounds.seconds):
                    response = await super().request(messages, model_settings, model_request_parameters)
            except (*PASSING, TimeoutError) as error:
                wait = _wait(error, pause)
                if self._transport.too_large:
                    self._spent.add(None, self._transport)
                if self._transport.too_large or not self._left or time.monotonic() + wait > self._until:
                    raise
            except library.ModelAPIError:
                raise
            except Exception:  # an answer came, and cannot be read
                self._spent.add(None, self._transport)
                raise
            else:
                self._spent.add(response, self._transport)
                if response.finish_reason == "length":  # asked again it would be cut off again
                    raise library.OutputTokenLimitExceeded("cut off")
                return response
            await self._pause(wait)
            pause = min(2 * pause, LONGEST_PAUSE)


def _wait(error: Exception, pause: float) -> float:
    """Seconds to wait after a failure: as long as the endpoint says, or as long as it is its turn."""
    told = error.retry_after if isinstance(error, library.ModelAPIError) else None
    return pause if told is None else told


def _failure(error: Exception, transport: OneEndpoint, spent: TokenUsage) -> ModelFailed:
    """What a failure is to whoever asked, in words that hold nothing of what was sent or answered."""
    kind: type[ModelFailed] = ModelAnswerInvalid
    if transport.too_large:
        detail = "the model's answer is longer than any answer can be"
    elif isinstance(error, library.OutputTokenLimitExceeded):
        detail = "the model's answer is longer than it may be"
    elif isinstance(error, library.UnexpectedModelBehavior | NoneLeft):
        detail = "the model answered nothing of the shape that was asked for"
    elif said := next((said for of, said in REASONS if isinstance(error, of)), None):
        status = f" (status {error.status_code})" if isinstance(error, library.ModelHTTPError) else ""
        kind, detail = ModelUnavailable, f"the model is not available: {said}{status}"
    else:
        detail = f"the model's answer cannot be read: {type(error).__name__}"
    return kind(detail, input_tokens=spent.input_tokens, output_tokens=spent.output_tokens)
