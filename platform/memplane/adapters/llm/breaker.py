"""A model that failed again and again is left alone for a while."""

import logging
from collections.abc import Callable
from typing import TypeVar

from memplane.application.jobs.inference.language_model import Answer, Model, ModelPrompt
from memplane.domain.errors import ModelAnswerInvalid, ModelUnavailable

logger = logging.getLogger("memplane.models")
T = TypeVar("T")


class Breaker:
    """A model behind a circuit breaker.

    After so many calls in a row that ended with :class:`ModelUnavailable` it opens: calls are refused at once and
    cost nothing. After a pause one call is let through, while others are still refused. An answer closes the circuit,
    another failure opens it for a further pause.

    An invalid answer is no failure here. It came from a model that is there, so it closes the circuit like a good one;
    what it costs is bounded by the re-asks and by the budget of whoever asks.

    Args:
        model: the model.
        clock: seconds that only grow, as ``time.monotonic``.
        failures: how many in a row open it.
        pause: seconds for which it stays open.
    """

    def __init__(self, model: Model, clock: Callable[[], float], failures: int = 5, pause: float = 60.0) -> None:
        self._model = model
        self._clock = clock
        self._most = failures
        self._pause = pause
        self._failed = 0
        self._shut_until: float | None = None
        self._trying = False

    @property
    def name(self) -> str:
        """The model's."""
        return self._model.name

    def worst(self, prompt: ModelPrompt, kind: type[object], most_tokens: int) -> int:
        """As the model's own."""
        return self._model.worst(prompt, kind, most_tokens)

    async def ask(self, prompt: ModelPrompt, kind: type[T], most_tokens: int) -> Answer[T]:
        """As the model's own.

        Raises:
            ModelUnavailable: the circuit is open, or the model is unavailable.
            ModelAnswerInvalid: as the model's own.
        """
        trial = self._admit()
        try:
            answer = await self._model.ask(prompt, kind, most_tokens)
        except ModelUnavailable:
            self._failure(trial=trial)
            raise
        except ModelAnswerInvalid:
            self._answered(trial=trial)
            raise
        finally:  # a call that was cancelled says nothing of the model, but the next one may try
            self._trying = self._trying and not trial
        self._answered(trial=trial)
        return answer

    def _admit(self) -> bool:
        """Whether this call is the one that tries an open circuit.

        Raises:
            ModelUnavailable: it is open, and this one may not.
        """
        if self._shut_until is None:
            return False
        left = self._shut_until - self._clock()
        if left > 0:
            raise ModelUnavailable(f"the model failed {self._most} times in a row and is left alone for {left:.0f} s")
        if self._trying:
            raise ModelUnavailable("the model failed before, and is being tried by another call")
        self._trying = True
        return True

    def _failure(self, *, trial: bool) -> None:
        self._failed += 1
        if trial or (self._shut_until is None and self._failed >= self._most):
            self._shut_until = self._clock() + self._pause
            logger.warning("the model failed %d times in a row: not asked for %g s", self._failed, self._pause)

    def _answered(self, *, trial: bool) -> None:
        if trial:
            logger.warning("the model answers again")
        elif self._shut_until is not None:
            return  # begun before the circuit opened: those that failed since know better
        self._failed = 0
        self._shut_until = None
