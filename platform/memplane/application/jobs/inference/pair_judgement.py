"""What a language model holds two memories for, where the rules cannot tell: asked in batches, outside transactions."""

import json
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Interval, Len

from memplane.application.jobs.inference.language_model import ModelPrompt
from memplane.application.jobs.inference.llm_budget import LlmBudget, TokensSpent
from memplane.domain.errors import BudgetSpent, ModelAnswerInvalid, ModelUnavailable, NoModel
from memplane.domain.jobs.pair_selection import Pair, PairRelation

logger = logging.getLogger("memplane.jobs")
TOGETHER = 10
"""The most pairs of one question."""
_TOKENS_EACH, _TOKENS_BESIDE = 30, 100
_MAX_CHARS = 600
"""So much of a memory's content is told."""


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """The verdict for one pair.

    Attributes:
        pair: its number.
        verdict: what the second note is to the first.
    """

    pair: Annotated[int, Interval(ge=1, le=TOGETHER)]
    verdict: Literal["same", "update", "contradiction", "different", "unsure"]


@dataclass(frozen=True, slots=True)
class JudgedPairs:
    """A verdict for each pair, each pair once."""

    verdicts: Annotated[tuple[JudgedPair, ...], Len(1, TOGETHER)]

    def __post_init__(self) -> None:
        """No pair has two.

        Raises:
            ValueError: one has.
        """
        if len({each.pair for each in self.verdicts}) < len(self.verdicts):
            raise ValueError("a pair has two verdicts")


@dataclass(frozen=True, slots=True)
class PairJudgement:
    """What was made of a pair, and by which prompt; by rules without one."""

    pair: Pair
    judgement: PairRelation
    prompt: str | None = None


@dataclass(frozen=True, slots=True)
class PairAnswers:
    """What a model answered, what that took, and why it was asked no further."""

    judged: tuple[PairJudgement, ...] = ()
    spent: TokensSpent = field(default_factory=TokensSpent)
    skipped: str | None = None


async def judge_pairs(
    thinking: LlmBudget, about: Callable[[str], ModelPrompt], whose: tuple[str, str], pairs: Sequence[Pair]
) -> PairAnswers:
    """A model's word on pairs; what it has none on is left for another night.

    Args:
        thinking: the model within its budgets.
        about: makes the prompt, about a text.
        whose: the tenant and the user.
        pairs: what is asked about.
    """
    found: list[PairJudgement] = []
    spent = TokensSpent()
    for batch in batches(pairs):
        try:
            answer = await thinking.ask(*whose, about(pairs_as_text(batch)), JudgedPairs, most_tokens(len(batch)))
        except NoModel:
            return PairAnswers(tuple(found), spent, "no model")
        except BudgetSpent:
            return PairAnswers(tuple(found), spent, "budget spent")
        except (ModelUnavailable, ModelAnswerInvalid) as error:
            logger.warning("pairs were not compared by the model: %s", error.code)
            spent += TokensSpent(error.input_tokens, error.output_tokens)
            return PairAnswers(tuple(found), spent, "model unavailable")
        spent += TokensSpent(answer.input_tokens, answer.output_tokens)
        said = {each.pair: PairRelation(each.verdict) for each in answer.value.verdicts}
        found += [
            PairJudgement(pair, said.get(number, PairRelation.UNSURE), answer.prompt)
            for number, pair in enumerate(batch, 1)
        ]
    return PairAnswers(tuple(found), spent)


def batches(pairs: Sequence[Pair]) -> list[Sequence[Pair]]:
    """Pairs in batches of like size; apart from those in which somebody speaks who is trusted less.

    What one writes is read beside the other pairs of a batch, and could be written to sway what is said of them.
    """
    found: list[Sequence[Pair]] = []
    for trusted in sorted({pair.least_trust for pair in pairs}, reverse=True):
        alike = [pair for pair in pairs if pair.least_trust == trusted]
        count = math.ceil(len(alike) / TOGETHER)
        size = math.ceil(len(alike) / count)
        found += [alike[start : start + size] for start in range(0, len(alike), size)]
    return found


def pairs_as_text(batch: Sequence[Pair]) -> str:
    """Pairs as a model reads them: one line each, in which no text can look like another pair."""
    return "\n".join(
        json.dumps(
            {"pair": number, "first": _words(pair.earlier.text.content), "second": _words(pair.later.text.content)},
            ensure_ascii=False,
        )
        for number, pair in enumerate(batch, 1)
    )


def most_tokens(pairs: int) -> int:
    """The most that the answer about so many pairs may have."""
    return _TOKENS_BESIDE + _TOKENS_EACH * pairs


def _words(content: str) -> str:
    return content if len(content) <= _MAX_CHARS else content[:_MAX_CHARS] + "…"
