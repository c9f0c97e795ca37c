"""Asking a model what a person stated in a part of a conversation, and believing of its answer what was really said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, datetime, time, timedelta
from functools import cache
from typing import Any, Literal

from memplane.application.jobs.inference.language_model import Instructions
from memplane.application.jobs.inference.llm_budget import LlmBudget
from memplane.application.jobs.job_records import TokensSpent
from memplane.application.limits.offload import offload
from memplane.application.turns.extraction import speaker_name
from memplane.application.turns.session_records import Unread
from memplane.domain.errors import BudgetSpent, ModelFailed, ModelUnavailable
from memplane.domain.jobs.job_definitions import FactMode, FactRules
from memplane.domain.language.extraction.fact_grounding import (
    MOST_FACTS,
    Noted,
    assertions,
    distinct,
    is_borne_out,
    is_worth_asking,
)
from memplane.domain.memory.memory import Role, Turn
from memplane.domain.ranking.fencing import quote_text

NO_MODEL, SPENT, UNAVAILABLE = "no model", "budget spent", "model unavailable"
MOST_TOKENS = 1_000
"""Of an answer: five facts have about four hundred."""
SHOWN = {Role.USER: 1_500, Role.ASSISTANT: 300}
"""Characters of a turn that a model reads; what the assistant says is only there to understand the person."""
_NAMES = {Role.USER: "person", Role.ASSISTANT: "assistant"}
LATER = timedelta(hours=1)
"""After so long a model that was not available is asked again."""
MAX_CHARS = 280


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact about the person, and the numbers of the person's turns that say it."""

    text: str
    importance: int
    confidence: float
    turns: tuple[int, ...]

    def __post_init__(self) -> None:
        """Bounds that a schema need not tell.

        Raises:
            ValueError: something is out of them.
        """
        if not 0 < len(self.text) <= MAX_CHARS or not 1 <= self.importance <= 5 or not 0 <= self.confidence <= 1:
            raise ValueError("text has 1 to 280 characters, importance is 1 to 5, confidence 0 to 1")
        if not self.turns:
            raise ValueError("turns names at least one turn of the person")


@dataclass(frozen=True, slots=True)
class FactAnswer:
    """What came of asking.

    Attributes:
        facts: what the person stated, the most important first.
        spent: what the model took.
        skipped: why it was not asked, or its answer not used.
        again: when to ask again; ``None`` when it need not be.
        asked: whether it was.
    """

    facts: tuple[Noted, ...] = ()
    spent: TokensSpent = field(default_factory=TokensSpent)
    skipped: str | None = None
    again: datetime | None = None
    asked: bool = False


class Notes:
    """Asks a model about parts of conversations.

    Args:
        thinking: the model within its budgets.
        instructions: what it is told to do.
    """

    def __init__(self, thinking: LlmBudget, instructions: Instructions) -> None:
        self._thinking = thinking
        self._instructions = instructions

    @property
    def drawn_with(self) -> Mapping[str, object]:
        """What is stamped on a fact: the prompt and the model."""
        return {"prompt": self._instructions.version, "model": self._thinking.name}

    async def of(
        self, tenant: str, unread: Unread, categories: Sequence[str], rules: FactRules, room: int, as_of: datetime
    ) -> FactAnswer:
        """What a person stated in a part of a conversation, as far as a model says so and the words bear it out.

        Args:
            tenant: whose tokens are spent.
            unread: the part.
            categories: into which facts may be put.
            rules: whether a model is asked.
            room: how many more facts of the user may be drawn on this day; without any, nobody asks.
            as_of: the moment by which the run decides.
        """
        size = sum(len(turn.text) for turn in unread.turns)
        stated = await offload(size, _stated, unread.turns)
        if rules.mode is FactMode.RULES or not categories or not is_worth_asking(stated.values()):
            return FactAnswer()
        if self._thinking.name is None:
            return FactAnswer(skipped=NO_MODEL)
        tomorrow = datetime.combine(as_of.date() + timedelta(days=1), time(), UTC)
        if room <= 0:
            return FactAnswer(skipped=SPENT, again=tomorrow if rules.user_per_day else None)
        prompt = self._instructions.about(_shown(unread.turns))
        try:
            answer = await self._thinking.ask(
                tenant, unread.user_id, prompt, answer_kind(tuple(categories)), MOST_TOKENS
            )
        except BudgetSpent as error:  # one that no day's budget suffices for is never asked
            never = int(str(error.extra["needed"])) > int(str(error.extra["cap"]))
            return FactAnswer(skipped=SPENT, again=None if never else tomorrow)
        except ModelFailed as error:
            spent = TokensSpent(error.input_tokens, error.output_tokens)
            again = as_of + LATER if isinstance(error, ModelUnavailable) else None  # else it would say it again
            return FactAnswer(spent=spent, skipped=UNAVAILABLE, again=again, asked=True)
        spent = TokensSpent(answer.input_tokens, answer.output_tokens)
        facts = await offload(size, _believed, answer.value.facts, unread.turns, stated)
        return FactAnswer(tuple(facts), spent, asked=True)


@cache
def answer_kind(categories: tuple[str, ...]) -> Any:  # noqa: ANN401 - a dataclass that is made here
    """The shape of an answer: at most five facts, each of one of some categories."""
    category = Literal.__getitem__(categories)
    fact = make_dataclass("Fact", [("category", category)], bases=(Fact,), frozen=True)
    fact.__doc__ = Fact.__doc__

    def bounded(self: Any) -> None:  # noqa: ANN401 - of the class that is made here
        if len(self.facts) > MOST_FACTS:
            raise ValueError(f"at most {MOST_FACTS} facts")

    facts = tuple.__class_getitem__((fact, ...))
    made = make_dataclass("Facts", [("facts", facts)], frozen=True, namespace={"__post_init__": bounded})
    made.__doc__ = "What the person stated; none where nothing is worth it."
    return made


def _stated(turns: Sequence[Turn]) -> dict[int, list[str]]:
    """What the person states in each of their turns, by the number under which a model is shown it."""
    return {number: assertions(turn.text) for number, turn in enumerate(turns, 1) if turn.is_persons_word}


def _shown(turns: Sequence[Turn]) -> str:
    """A part as a model reads it: a line for each turn, which no turn can begin; without what nobody vouched for."""
    lines = []
    for number, turn in enumerate(turns, 1):
        if turn.role in SHOWN and turn.vouched:
            words = " ".join(turn.text.split())[: SHOWN[turn.role]]
            lines.append(
                f"[{number}] {_NAMES[turn.role]}, {turn.event_time or turn.recorded_at:%Y-%m-%d}: {quote_text(words)}"
            )
    return "\n".join(lines)


def _believed(facts: Sequence[Any], turns: Sequence[Turn], stated: Mapping[int, list[str]]) -> list[Noted]:
    """Those of a model's facts that the turns that it names bear out, each once."""
    noted = [Noted(each.text, each.category, each.importance, each.confidence, each.turns) for each in facts]
    names = {name for turn in turns if turn.is_persons_word and (name := speaker_name(turn.actor_id)) is not None}
    return distinct([each for each in noted if is_borne_out(each, stated, names)])
