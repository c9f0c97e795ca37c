"""Why a memory is as it is: where it comes from, which rule decided, what it weighs, and how a question scores it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memplane.application.memories.browse import redact_entry
from memplane.application.ports import Unit
from memplane.application.recall.query_analysis import QueryContext
from memplane.application.recall.ranking import By, ScoredUnit, rank
from memplane.domain.errors import InvalidRequest, RecordNotFound
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.memory.history import HistoryEntry, HistoryEvent
from memplane.domain.memory.lifecycle import DAY, decayed_confidence, wanes
from memplane.domain.memory.memory import Memory
from memplane.domain.memory.scope import read_scope

MAX_DECISIONS = 50


@dataclass(frozen=True, slots=True)
class Decay:
    """How a memory's confidence wanes.

    Attributes:
        rate: for each day; 0 for never, as for what is pinned, confirmed, important, not semantic or not active.
        days: since it was last used; the night's work counts fewer where its user was away.
        left: the confidence that so many days leave of what it has now.
        floor: what has less is deleted.
    """

    rate: float
    days: float
    left: float
    floor: float


@dataclass(frozen=True, slots=True)
class FiredRule:
    """The rule that last decided on a memory.

    Attributes:
        event: what was done.
        ts: when.
        rule: a rule of comparison, a frame of extraction (``frame:…``), or what a person decided.
        verdict: what it came to, of a comparison.
        words: the words that it went by: ``common``, ``old`` and ``new``, or ``matched`` of a turn.
    """

    event: HistoryEvent
    ts: datetime
    rule: str
    verdict: str | None
    words: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """What a question makes of a memory: its score, the parts of it, and the question's words that it holds."""

    score: float
    parts: Mapping[str, float]
    matched: Sequence[str]


@dataclass(frozen=True, slots=True)
class MemoryExplanation:
    """Why a memory is as it is.

    Attributes:
        memory: as it is now.
        sources: the turns and memories that it was derived from, those that the reader may see.
        decisions: the last entries of its history, newest first.
        age_days: how long it is known.
        decay: how its confidence wanes.
        rule: the rule that last decided on it, as far as its last entries tell.
        score: what the question makes of it; ``None`` without one, and for what no question finds.
    """

    memory: Memory
    sources: Sequence[Unit]
    decisions: Sequence[HistoryEntry]
    age_days: float
    decay: Decay
    rule: FiredRule | None
    score: QuestionScore | None


class ExplainMemory:
    """Answers why a memory is as it is."""

    def __init__(self, asking: QueryContext) -> None:
        self._asking = asking

    async def __call__(
        self,
        principal: Principal,
        memory_id: UUID,
        *,
        query: str | None = None,
        ranking: str | None = None,
        agent: str | None = None,
    ) -> MemoryExplanation:
        """Where a memory comes from and what was decided about it, whatever state it is in.

        Args:
            principal: the caller.
            memory_id: the memory.
            query: a question that is to score it, among all of its user that the agent reads.
            ranking: the profile that the question ranks by.
            agent: the agent to act for, or none for the key's own.

        Raises:
            NotFound: absent, or not the caller's.
            UnknownRanking, InvalidText: the question cannot be asked.
            Invalid: a profile is named, and no question.
        """
        principal.require(KeyScope.READ)
        if ranking is not None and not (query or "").strip():
            raise InvalidRequest("ranking: ranks by a question; give it with `query`", field="ranking")
        asking, policy = self._asking, self._asking.policies.current
        allowed = policy.allowlist(principal.act_as(agent)).read
        scope = read_scope(principal, policy, allowed, asking.clock()).with_shared(policy.shared)
        profile = policy.ranking(ranking)
        embedded, asked = await asking.asked_of(query, profile, principal, scope)
        by = By(profile, asking.embedders.own.name, asked)
        if not asked.wordless:
            await asking.guard.check(principal.tenant)
        async with asking.storage.reading(principal.reach) as reader:
            memory = await reader.whole(scope, memory_id)
            decided = await reader.history(scope, memory_id, before=None, limit=MAX_DECISIONS)
            if memory is None or decided is None:
                raise RecordNotFound("no such memory")
            sources = await reader.units(scope, memory.source_ids)
            score = None
            if not asked.wordless:
                mine = scope.as_of(None, None).of_user(memory.user_id)
                ranked = await rank(reader, mine, embedded, by, 1, among=[memory_id])
                score = _score(ranked.standings)
        asking.activity.note_read(principal, (memory.user_id,))
        seen = tuple(redact_entry(entry, scope) for entry in decided)
        age = (scope.now - memory.recorded_at) / DAY
        decay = _decay(memory, scope.now, policy.lifecycle.floor)
        return MemoryExplanation(memory, tuple(sources.values()), seen, age, decay, fired_rule(seen), score)


def _score(standings: Sequence[ScoredUnit]) -> QuestionScore | None:
    if not standings:
        return None
    parts = standings[0].explained()
    matched = parts.get("matched")
    numbers = {name: float(value) for name, value in parts.items() if isinstance(value, int | float)}
    stems = [str(stem) for stem in matched] if isinstance(matched, list) else []
    return QuestionScore(standings[0].score, numbers, stems)


def _decay(memory: Memory, now: datetime, floor: float) -> Decay:
    used = max(filter(None, (memory.recorded_at, memory.last_accessed, memory.last_hit_at)))
    days = max((now - used) / DAY, 0.0)
    rate = memory.decay_rate if wanes(memory) else 0.0
    return Decay(rate, days, decayed_confidence(memory.confidence, rate, used, now), floor)


def fired_rule(decisions: Sequence[HistoryEntry]) -> FiredRule | None:
    """The rule of the newest entry that names one."""
    for entry in decisions:
        meta = entry.meta
        concerned = meta.get("concerns")
        about = concerned[0] if isinstance(concerned, list) and concerned else {}
        for found in (meta, about):
            if isinstance(found, Mapping) and (rule := _rule_of(found)) is not None:
                verdict = found.get("verdict")
                return FiredRule(entry.event, entry.ts, rule, str(verdict) if verdict else None, words_of(found))
    return None


def _rule_of(meta: Mapping[str, object]) -> str | None:
    if isinstance(meta.get("rule"), str):
        return str(meta["rule"])
    if isinstance(meta.get("frame"), str):
        return f"frame:{meta['frame']}"
    return str(meta["verdict"]) if isinstance(meta.get("verdict"), str) else None


def words_of(meta: Mapping[str, object]) -> Mapping[str, Sequence[str]]:
    """The words that a rule went by, as its history entry has them."""
    kept = meta.get("words")
    found = dict(kept) if isinstance(kept, Mapping) else {}
    if isinstance(meta.get("matched"), list):
        found["matched"] = meta["matched"]
    return {str(name): [str(word) for word in listed] for name, listed in found.items() if isinstance(listed, list)}
