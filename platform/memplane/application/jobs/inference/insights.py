"""The job `insights`: what a person seems to feel, trust and prefer, concluded from what they did and said lately."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memplane.application.jobs.inference.inference_job import (
    About,
    Draft,
    InferenceNote,
    ask_model,
    of_type,
    provenance_of,
)
from memplane.application.jobs.inference.language_model import ModelPrompt
from memplane.application.jobs.inference.llm_budget import LlmBudget
from memplane.application.jobs.user_job_records import News
from memplane.application.memories.service import NewMemory
from memplane.application.ports import Storage
from memplane.domain.jobs.inference_checks import INSIGHT, RELATIONSHIP, Piece, conversation, fault, material, one_line
from memplane.domain.memory.memory import Memory, MemoryText, MemoryType, Source

JOB = "insights"
PAUSE = timedelta(hours=24)
RECENT = timedelta(days=3)
"""What is older counts as new no more."""
ACTIVITIES, FACTS, INSIGHTS = 5, 3, 3
LOOKED_AT = 20
"""Insights of one answer that are looked at, for the first three that are fit."""
WINDOW = 50
"""Turns of the conversation that are read, for the last of them."""
TOKENS = 500
IMPORTANCE = 2
SUREST = 0.8
"""What is concluded is never as sure as what was said."""
_ACTIVITY = (MemoryType.EPISODIC, MemoryType.OBSERVATION)


@dataclass(frozen=True, slots=True)
class Insight:
    """One insight about the person.

    Attributes:
        text: one or two sentences in the third person, at most 280 characters.
        sources: the numbers of the lines of the material that it rests on.
        confidence: between 0 and 1.
    """

    text: str
    sources: tuple[int, ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class Insights:
    """One to three insights, the surest first; none where the material supports none."""

    insights: tuple[Insight, ...]


class ConcludeInsights:
    """Theory of mind: at most three insights of a user, with a model, at least a day after the last."""

    job, category, counted, pause, by_rule = JOB, RELATIONSHIP, "insights", PAUSE, False

    def __init__(self, storage: Storage, thinking: LlmBudget, ask: Callable[[str], ModelPrompt]) -> None:
        self._storage = storage
        self._thinking = thinking
        self._ask = ask

    def news(self, as_of: datetime) -> News:
        """Users who did, said or stated something since their last insights."""
        return News(JOB, (*_ACTIVITY, MemoryType.SEMANTIC), True, as_of - RECENT, as_of - PAUSE)

    async def think(self, about: About) -> InferenceNote:
        """Read the last activities, the new facts and the end of a conversation of the user, and ask about them."""
        pieces, heard = await self._read(about)
        if not pieces:
            return InferenceNote()
        prompt = self._ask(material(pieces, heard))
        answer, thought = await ask_model(self._thinking, about, prompt, Insights, TOKENS)
        if answer is None:
            return thought
        drafts = [_draft(each, pieces, about) for each in answer.insights[:LOOKED_AT]]
        stamp = provenance_of(self._thinking, prompt)
        fit = [replace(each, new=replace(each.new, attributes=stamp)) for each in drafts if each is not None]
        kept = tuple(fit[:INSIGHTS])
        return replace(thought, drafts=kept, dropped=len(answer.insights) - len(kept))

    async def _read(self, about: About) -> tuple[dict[int, Piece], list[str]]:
        """What the model is given: pieces by number, and lines of the conversation that it may not rest on."""
        pages = [(of_type(about.scope, kind), ACTIVITIES) for kind in _ACTIVITY]
        facts = of_type(about.scope, MemoryType.SEMANTIC)
        new = replace(facts, filters=replace(facts.filters, updated_after=about.since))
        async with self._storage.reading(about.principal.reach) as reader:
            found, turns = await reader.pages_and_window(
                [*pages, (new, FACTS)], about.scope, about.thread_id or "", WINDOW if about.thread_id else 0
            )
        *activities, stated = found
        done = sorted((each for some in activities for each in some), key=lambda each: each.id)[-ACTIVITIES:]
        told = conversation(turns)
        pieces = [Piece(each, one_line(each.text.content), "activity") for each in done]
        pieces += [Piece(each, one_line(each.text.content), "fact") for each in _oldest_first(stated)]
        pieces += [each for each in told if isinstance(each, Piece)]
        return dict(enumerate(pieces, 1)), [each for each in told if isinstance(each, str)]


def _oldest_first(memories: Sequence[Memory]) -> list[Memory]:
    return sorted(memories, key=lambda each: each.id)


def _draft(insight: Insight, pieces: dict[int, Piece], about: About) -> Draft | None:
    """An insight as a memory; none where it may not be kept."""
    text = insight.text.strip()
    if not 0 <= insight.confidence <= 1 or fault(text, insight.sources, pieces, INSIGHT) is not None:
        return None
    new = NewMemory(
        about.user_id,
        RELATIONSHIP,
        MemoryText(text),
        MemoryType.INSIGHT,
        importance=IMPORTANCE,
        confidence=min(insight.confidence, SUREST),
    )
    rests_on = tuple(pieces[number] for number in dict.fromkeys(insight.sources))
    return Draft(new, Source.REFLECTION, rests_on)
