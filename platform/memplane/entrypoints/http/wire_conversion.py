"""Domain values to wire messages and back."""

from dataclasses import asdict
from typing import Any, cast

from memplane.application.memories.browse import Conflicting
from memplane.application.memories.correction import Correction
from memplane.application.memories.placement import Outcome
from memplane.application.memories.service import NewMemory
from memplane.application.recall.context import Context, ContextCall
from memplane.application.recall.recall import Question, RecallAnswer
from memplane.application.recall.threads import Delta
from memplane.application.turns.ingestion import StoredTurn
from memplane.application.turns.new_turn import NewTurn
from memplane.contracts.context import ContextAnswer, ContextRequest, ContextSection, ContextUsage
from memplane.contracts.memories import (
    ChangeRecord,
    CorrectionRequest,
    Extracted,
    HistoryRecord,
    LeftOutOfTurn,
    ListedMemory,
    MemoryRecord,
    NewMemoryRequest,
    NewTurnRequest,
    ThreadDelta,
    TurnOutcome,
    TurnRecord,
    WriteOutcome,
    WritingWarning,
)
from memplane.contracts.query import (
    DeltaHeader,
    Explanation,
    QueryAnswer,
    QueryFilters,
    QueryItem,
    QueryRequest,
    QueryUsage,
    as_list,
)
from memplane.domain.language.text import TOKEN_COUNTER
from memplane.domain.memory.delta import ChangeLogEntry
from memplane.domain.memory.history import HistoryEntry
from memplane.domain.memory.memory import Memory, MemoryText, MemoryType, Turn, Visibility
from memplane.domain.memory.scope import Filters
from memplane.domain.policy.policy import describe_speaker
from memplane.domain.ranking.rendering import RenderedItem

_TEXT = tuple(MemoryText.__slots__)
_SEVERAL = frozenset({"types", "tags"})
_ASSIGNED = frozenset({"vouched", "time_zone"})
"""What the server says of a turn, and not its caller."""
_RECORDED = tuple(name for name in MemoryRecord.model_fields if name != "possible_conflicts")

_FILTERS = tuple(name for name in Filters.__slots__ if name in QueryFilters.model_fields and name not in _SEVERAL)


def question_of(request: QueryRequest) -> Question:
    """A request as a question."""
    chosen = request.narrowing
    named = as_list(chosen.category) if request.categories is None else request.categories
    filters = Filters(
        **{name: getattr(chosen, name) for name in _FILTERS},
        types=tuple(chosen.types) if chosen.type is None else (chosen.type,),
        tags=tuple(chosen.tags),
        entities=tuple(as_list(chosen.entity)),
    )
    return Question(
        text=request.query,
        agent=request.agent,
        categories=tuple(named),
        filters=filters,
        top_k=request.top_k,
        budget_tokens=request.budget_tokens,
        threshold=request.threshold,
        ranking=request.ranking,
        full=request.return_ == "full",
        related=request.related,
        explain=request.explain,
        thread_id=request.thread_id,
        since_rev=request.since_rev,
        believed_at=request.as_of.believed_at if request.as_of else None,
        true_at=request.as_of.true_at if request.as_of else None,
        archive=request.archive,
        on_demand=request.purpose == "on_demand",
    )


def answer_of(recalled: RecallAnswer, question: Question) -> QueryAnswer:
    """A recall as an answer."""
    delta = None
    if recalled.delta is not None:
        delta = _header(recalled.delta)
    usage = QueryUsage(
        **{name: getattr(recalled.usage, name) for name in recalled.usage.__slots__}, counter=TOKEN_COUNTER
    )
    items = [_item(item, recalled, question) for item in recalled.items]
    return QueryAnswer(items=items, prompt=recalled.prompt, delta=delta, usage=usage, policy=recalled.policy)


def context_call_of(request: ContextRequest) -> ContextCall:
    """A request as a call."""
    return ContextCall(**{name: getattr(request, name) for name in ContextRequest.model_fields})


def context_of(context: Context, budget: int) -> ContextAnswer:
    """A context as an answer."""
    sections = [
        ContextSection(
            name=section.name,  # type: ignore[arg-type]  # the names are those of HEADINGS; a test compares them
            items=[_told(item) for item in section.items],
            tokens=section.tokens,
            truncated=section.truncated,
        )
        for section in context.sections
    ]
    usage = ContextUsage(
        tokens=context.tokens,
        budget=budget,
        truncated=context.truncated,
        candidates=context.candidates,
        counter=TOKEN_COUNTER,
    )
    delta = _header(context.delta)
    return ContextAnswer(delta=delta, sections=sections, prompt=context.prompt, usage=usage, policy=context.policy)


def _header(delta: Delta) -> DeltaHeader:
    return DeltaHeader(rev=delta.rev, header=delta.header, pruned=delta.pruned)


def _told(item: RenderedItem) -> QueryItem:
    """An item without its score's parts."""
    unit = item.unit
    return QueryItem(
        id=unit.id,
        category=item.category,
        type=unit.type if isinstance(unit, Memory) else MemoryType.EPISODIC,
        text=item.text,
        score=round(item.score, 6),
        external_id=unit.external_id,
        thread_id=unit.thread_id,
        event_time=unit.event_time,
        via=item.via,
        vouched=unit.vouched if isinstance(unit, Turn) else None,
    )


def _item(item: RenderedItem, recalled: RecallAnswer, question: Question) -> QueryItem:
    memory = item.unit if isinstance(item.unit, Memory) else None
    turn = item.unit if isinstance(item.unit, Turn) else None
    signals = {name: float(value) for name, value in item.parts.items() if isinstance(value, int | float)}
    more = {
        "memory": record_of(memory, recalled.conflicts) if memory and question.full else None,
        "turn": turn_record_of(turn) if turn and question.full else None,
        "score_parts": signals if question.full else None,
        "explain": _explanation(item, recalled, signals) if question.explain else None,
    }
    return _told(item).model_copy(update=more)


def _explanation(item: RenderedItem, recalled: RecallAnswer, signals: dict[str, float]) -> Explanation:
    store = item.unit.visibility if isinstance(item.unit, Memory) else Visibility.PRIVATE
    rules = [
        f"{describe_speaker(recalled.agent)} may read category '{item.category}'",
        f"this key's trust sees the store '{store}'",
    ]
    matched = item.parts.get("matched")
    stems = [str(stem) for stem in matched] if isinstance(matched, list) else []
    # what came by its time or by a relation has one part, which is its score
    weights = {part: weight for part, weight in recalled.weights.items() if part in signals}
    weights = weights or dict.fromkeys(signals, 1.0)
    return Explanation(signals=signals, weights=weights, matched=stems, rules=rules)


def new_memory_of(request: NewMemoryRequest) -> NewMemory:
    """A request as a new memory."""
    given = {name: getattr(request, name) for name in NewMemoryRequest.model_fields if name != "dry_run"}
    words: dict[str, Any] = {name: given.pop(name) for name in _TEXT}
    words |= {name: tuple(value) for name, value in words.items() if isinstance(value, list)}
    given.pop("agent")
    given["source_ids"] = tuple(given["source_ids"])
    return NewMemory(text=MemoryText(**words), **given)


def new_turn_of(request: NewTurnRequest) -> NewTurn:
    """A request as a new turn."""
    return NewTurn(**{name: getattr(request, name) for name in NewTurn.__slots__ if name not in _ASSIGNED})


def record_of(memory: Memory, conflicts: Conflicting | None = None) -> MemoryRecord:
    """A memory as a record, with what it may contradict where that was looked up."""
    return MemoryRecord(**_values(memory, conflicts or {}))


def _values(memory: Memory, conflicts: Conflicting) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(memory.text if name in _TEXT else memory, name) for name in _RECORDED}
    return values | {"possible_conflicts": list(conflicts.get(memory.id, ()))}


def listed_of(memory: Memory, conflicts: Conflicting, score: float | None) -> ListedMemory:
    """A memory as a record of a list."""
    values = _values(memory, conflicts)
    return ListedMemory(**values, score=None if score is None else round(score, 6))


def turn_record_of(turn: Turn) -> TurnRecord:
    """A turn as a record."""
    return TurnRecord(**{name: getattr(turn, name) for name in TurnRecord.model_fields})


def outcome_of(outcome: Outcome) -> WriteOutcome:
    """A write's outcome."""
    memory = outcome.memory
    return WriteOutcome(
        outcome=cast("Any", outcome.outcome),
        id=outcome.proposal or memory.id,
        version=None if outcome.proposal else memory.version,
        rev=outcome.rev,
        external_id=memory.external_id,
        overruled=list(outcome.overruled),
        possible_conflicts=list(outcome.conflicts),
        warnings=[WritingWarning(rule=each.rule, words=each.words, detail=each.detail) for each in outcome.warnings],
    )


def turn_outcome_of(stored: StoredTurn) -> TurnOutcome:
    """Where a turn stands."""
    turn = stored.turn
    return TurnOutcome(
        outcome="created" if stored.created else "duplicate",
        turn_id=turn.id,
        seq=turn.seq,
        rev=turn.rev,
        external_id=turn.external_id,
        vouched=turn.vouched,
        extracted=[Extracted(id=d.id, content=d.content, category=d.category, action=d.action) for d in stored.drawn],
        extracted_elsewhere=stored.elsewhere,
        left_out=LeftOutOfTurn(**asdict(stored.omissions)),
    )


def correction_of(request: CorrectionRequest) -> Correction:
    """A request as a correction."""
    text = MemoryText(
        request.content,
        request.title,
        request.narrative,
        tuple(request.facts),
        (),
        tuple(request.tags),
        (),
        request.lang,
    )
    return Correction(text, request.valid_from, tuple(request.source_ids))


def delta_of(delta: Delta) -> ThreadDelta:
    """A thread's delta."""
    changes = [_change(change) for change in delta.changes]
    return ThreadDelta(rev=delta.rev, header=delta.header, changes=changes, pruned=delta.pruned)


def _change(change: ChangeLogEntry) -> ChangeRecord:
    return ChangeRecord(**{name: getattr(change, name) for name in ChangeLogEntry.__slots__})


def history_record_of(entry: HistoryEntry) -> HistoryRecord:
    """An entry of a history."""
    return HistoryRecord(**{name: getattr(entry, name) for name in HistoryRecord.model_fields})
