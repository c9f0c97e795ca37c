"""The language model as an extractor: what it names must stand in the text, word for word."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Interval, Len

from memplane.adapters.llm.prompt_files import prompt_file
from memplane.application.jobs.enrichment_job import ExtractorResult
from memplane.application.jobs.inference.llm_budget import LlmBudget
from memplane.application.jobs.job_records import TokensSpent
from memplane.domain.errors import ModelAnswerInvalid
from memplane.domain.language.enrichment import Span
from memplane.domain.ranking.fencing import quote_text

CONFIDENCE = 0.75
"""Beside that of the rules: more than what the letters of a name show, less than what the words around it say."""
MOST_TOKENS = 1_000
MAX_NAMES = 80
MAX_CHARS = 100
AT_ONCE = 8
"""Texts of one question; and memories of one batch, for a model may take minutes for each question."""
_TEXT_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class NamedEntityAnswer:
    """A name, letter for letter as the text has it, with the number of the text and its kind."""

    text: Annotated[int, Interval(ge=1, le=AT_ONCE)]
    name: Annotated[str, Len(1, MAX_CHARS)]
    kind: Literal["person", "organisation", "place", "project", "name"]


@dataclass(frozen=True, slots=True)
class NamedEntityAnswers:
    """The names in all texts; none where there are none."""

    names: Annotated[tuple[NamedEntityAnswer, ...], Len(0, MAX_NAMES)]


class ModelExtractor:
    """Finds names by asking the model that is configured, within its budgets; a question for eight texts of a user."""

    most = AT_ONCE
    thinks = True

    def __init__(self, thinking: LlmBudget) -> None:
        self._thinking = thinking
        self._prompt = prompt_file("entities")

    @property
    def version(self) -> str:
        """Which model, and which words it is asked with."""
        return f"{self._prompt.version}@{self._thinking.name}"

    async def find(self, tenant: str, user_id: str, texts: Sequence[str]) -> ExtractorResult:
        """The names in each text; none in one to which the model gives no answer of the right shape.

        Raises:
            NoModel, BudgetSpent, ModelUnavailable: it cannot look at present.
        """
        spans: list[Sequence[Span]] = []
        spent = TokensSpent()
        for start in range(0, len(texts), AT_ONCE):
            found = await self._asked(tenant, user_id, texts[start : start + AT_ONCE])
            spans += found.spans
            spent += found.spent
        return ExtractorResult(spans, spent)

    async def _asked(self, tenant: str, user_id: str, texts: Sequence[str]) -> ExtractorResult:
        told = "\n".join(
            f"[{nth}] {quote_text(' '.join(text[:_TEXT_CHARS].split()))}" for nth, text in enumerate(texts, 1)
        )
        try:
            answer = await self._thinking.ask(
                tenant, user_id, self._prompt.about(told), NamedEntityAnswers, MOST_TOKENS
            )
        except ModelAnswerInvalid as error:
            spent = TokensSpent(error.input_tokens, error.output_tokens)
            if len(texts) == 1:
                return ExtractorResult([()], spent)
            alone = [await self._asked(tenant, user_id, [text]) for text in texts]  # one keeps no other from being read
            return ExtractorResult([one.spans[0] for one in alone], sum((one.spent for one in alone), spent))
        spans: list[list[Span]] = [[] for _ in texts]
        for named in answer.value.names:
            if named.text <= len(texts):
                spans[named.text - 1] += _standing(texts[named.text - 1], named)
        return ExtractorResult(spans, TokensSpent(answer.input_tokens, answer.output_tokens))


def _standing(text: str, named: NamedEntityAnswer) -> Iterator[Span]:
    """Where a name stands in a text as whole words; nowhere, if the model made it up."""
    name = named.name.strip()
    if any(c.isalnum() for c in name):
        for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text):
            yield Span(*match.span(), named.kind, CONFIDENCE)
