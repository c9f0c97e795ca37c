"""The job `reflections`: once a week, what the facts of the week come to."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from memplane.application.jobs.inference.inference_job import About, Draft, InferenceNote, ask_model, provenance_of
from memplane.application.jobs.inference.language_model import ModelPrompt
from memplane.application.jobs.inference.llm_budget import LlmBudget
from memplane.application.jobs.user_job_records import News
from memplane.application.memories.service import NewMemory
from memplane.application.ports import Storage
from memplane.domain.jobs.inference_checks import REFLECTION, RELATIONSHIP, Piece, fault, material, one_line
from memplane.domain.memory.memory import MemoryText, MemoryType, Source

JOB = "reflections"
PAUSE, WEEK = timedelta(days=6), timedelta(days=7)
FEWEST, MOST_FACTS = 3, 40
TOKENS = 700
IMPORTANCE = 3
"""Nothing of that importance goes because nobody asks for it."""
CONFIDENCE = 0.8
TAG = "weekly"


@dataclass(frozen=True, slots=True)
class Reflection:
    """What the week's facts come to.

    Attributes:
        text: two to eight sentences in the third person, at most 1000 characters; empty where they come to nothing.
        sources: the numbers of the lines of the material that it rests on, two at least.
    """

    text: str
    sources: tuple[int, ...]


class ConcludeReflections:
    """One reflection of a user, with a model: of at least three facts of the last week, six days after the last."""

    job, category, counted, pause, by_rule = JOB, RELATIONSHIP, "reflections", PAUSE, False

    def __init__(self, storage: Storage, thinking: LlmBudget, ask: Callable[[str], ModelPrompt]) -> None:
        self._storage = storage
        self._thinking = thinking
        self._ask = ask

    def news(self, as_of: datetime) -> News:
        """Users of whom there are at least three facts of the last week, one since their last reflection."""
        return News(JOB, (MemoryType.SEMANTIC,), False, as_of - WEEK, as_of - PAUSE, FEWEST)

    async def think(self, about: About) -> InferenceNote:
        """Read the facts of the week, and ask what they come to."""
        filters = replace(about.scope.filters, types=(MemoryType.SEMANTIC,))
        facts = replace(about.scope, turns=False, filters=filters)
        async with self._storage.reading(about.principal.reach) as reader:
            found = await reader.memories(facts, before=None, limit=MOST_FACTS)
        new = sorted((each for each in found if each.recorded_at >= about.since), key=lambda each: each.id)
        if len(new) < FEWEST:  # others may be of categories that not everybody reads who would read the reflection
            return InferenceNote()
        pieces = {nth: Piece(each, one_line(each.text.content), "fact") for nth, each in enumerate(new, 1)}
        prompt = self._ask(material(pieces))
        answer, thought = await ask_model(self._thinking, about, prompt, Reflection, TOKENS)
        if answer is None or not answer.text.strip():
            return thought
        text = answer.text.strip()
        if fault(text, answer.sources, pieces, REFLECTION) is not None:
            return replace(thought, dropped=1)
        stamp = provenance_of(self._thinking, prompt)
        memory = NewMemory(
            about.user_id,
            RELATIONSHIP,
            MemoryText(text, tags=(TAG,)),
            MemoryType.REFLECTION,
            importance=IMPORTANCE,
            confidence=CONFIDENCE,
            attributes=stamp,
        )
        rests_on = tuple(pieces[number] for number in dict.fromkeys(answer.sources))
        return replace(thought, drafts=(Draft(memory, Source.REFLECTION, rests_on),))
