"""The job `procedures`: ways of working that come again and again are kept as numbered steps."""

from collections.abc import Callable, Mapping, Sequence
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
from memplane.domain.jobs.inference_checks import Piece, material, one_line
from memplane.domain.language.extraction.procedure_extraction import (
    PROCEDURAL,
    THREADS,
    Procedure,
    Run,
    workflow_fault,
    workflows,
)
from memplane.domain.memory.memory import Memory, MemoryText, MemoryType, Source

JOB = "procedures"
PAUSE = timedelta(hours=20)
"""Less than a day, so that a nightly run that begins a little earlier than the last finds everybody."""
RECENT, READ = timedelta(days=3), timedelta(days=30)
"""What is new, and what a way of working is looked for in."""
MOST_RUNS, MOST_LINES = 500, 60
TOKENS = 900
IMPORTANCE = 3
CONFIDENCE = 0.9
_DONE = (MemoryType.EPISODIC, MemoryType.OBSERVATION)


@dataclass(frozen=True, slots=True)
class Way:
    """A way of working.

    Attributes:
        title: what it is for, as "How to …", at most 100 characters.
        steps: in their order, each in the imperative; none where no way of working comes again and again.
        sources: the numbers of the lines of the material that show it.
        confidence: between 0 and 1.
    """

    title: str
    steps: tuple[str, ...]
    sources: tuple[int, ...]
    confidence: float


class ConcludeProcedures:
    """Steps that were done in one order in at least three conversations: by rule of tools, or else with a model."""

    job, category, counted, pause, by_rule = JOB, PROCEDURAL, "procedures", PAUSE, True

    def __init__(self, storage: Storage, thinking: LlmBudget, ask: Callable[[str], ModelPrompt]) -> None:
        self._storage = storage
        self._thinking = thinking
        self._ask = ask

    def news(self, as_of: datetime) -> News:
        """Users for whom something was done lately."""
        return News(JOB, _DONE, False, as_of - RECENT, as_of - PAUSE)

    async def think(self, about: About) -> InferenceNote:
        """Read what was done within a month, look for sequences of tools, and ask where there are none."""
        done = await self._read(about)
        by_rule = tuple(_by_rule(done, about))
        threads = {each.thread_id for each in done if each.thread_id}
        if by_rule or len(threads) < THREADS:
            return InferenceNote(by_rule)
        pieces = _pieces(done[-MOST_LINES:])
        if len({piece.kind for piece in pieces.values()}) < THREADS:
            return InferenceNote()
        prompt = self._ask(material(pieces))
        answer, thought = await ask_model(self._thinking, about, prompt, Way, TOKENS)
        thought = replace(thought, finished=True)  # its part by rule is done, whatever the model says
        if answer is None or not answer.steps:
            return thought
        draft = _by_model(answer, pieces, about, provenance_of(self._thinking, prompt))
        return replace(thought, dropped=1) if draft is None else replace(thought, drafts=(draft,))

    async def _read(self, about: About) -> list[Memory]:
        """What was done in the user's conversations within a month, oldest first."""
        pages = [(of_type(about.scope, kind), MOST_RUNS) for kind in _DONE]
        async with self._storage.reading(about.principal.reach) as reader:
            found, _ = await reader.pages_and_window(pages, replace(about.scope, turns=False), "", 0)
        since = about.since + RECENT - READ
        done = [each for some in found for each in some if each.thread_id and each.recorded_at >= since]
        return sorted(done, key=lambda each: (each.event_time or each.recorded_at, each.id))


def _by_rule(done: Sequence[Memory], about: About) -> list[Draft]:
    """Sequences of tools, with the runs that show each."""
    by_id = {each.id: each for each in done}
    runs = [
        Run(each.id, each.thread_id or "", str(each.attributes.get("tool", "")))
        for each in done
        if each.type is MemoryType.OBSERVATION
    ]
    drafts = []
    for found in workflows(runs):
        shown = tuple(Piece(by_id[each], by_id[each].text.content, "activity") for each in found.runs)
        new = _new(about, found.procedure, CONFIDENCE, {"rule": found.procedure.rule})
        drafts.append(Draft(new, Source.CONSOLIDATION, shown))
    return drafts


def _pieces(done: Sequence[Memory]) -> dict[int, Piece]:
    """What was done, by number; each says in which conversation."""
    places = {thread: nth for nth, thread in enumerate(dict.fromkeys(each.thread_id for each in done), 1)}
    return {
        nth: Piece(each, one_line(each.text.content), f"conversation {places[each.thread_id]}")
        for nth, each in enumerate(done, 1)
    }


def _by_model(way: Way, pieces: Mapping[int, Piece], about: About, stamp: Mapping[str, object]) -> Draft | None:
    """A way of working as a memory; none where it may not be kept."""
    found = Procedure(way.title.strip().rstrip(":"), tuple(each.strip() for each in way.steps), "procedure.model")
    named = [pieces[number] for number in dict.fromkeys(way.sources) if number in pieces]
    threads = {piece.kind for piece in named}
    strange = len(named) < len(dict.fromkeys(way.sources)) or len(threads) < THREADS
    if strange or workflow_fault(found, way.confidence, [piece.text for piece in named]) is not None:
        return None
    return Draft(_new(about, found, min(way.confidence, CONFIDENCE), stamp), Source.CONSOLIDATION, tuple(named))


def _new(about: About, found: Procedure, confidence: float, stamp: Mapping[str, object]) -> NewMemory:
    return NewMemory(
        about.user_id,
        PROCEDURAL,
        MemoryText(found.content),
        MemoryType.PROCEDURAL,
        importance=IMPORTANCE,
        confidence=confidence,
        attributes=stamp,
    )
