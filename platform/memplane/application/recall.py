"""`memory.query`: the one read that answers with ranked memories."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

import numpy as np

from memplane.application.embedding_guard import EmbeddingGuard
from memplane.application.gateway import clean_filters, clean_id
from memplane.application.offload import offload
from memplane.application.ports import Accesses, Clock, Embedder, Policies, Reader, Storage, Unit
from memplane.application.records import Access, Candidates, OperationalEvent, Query
from memplane.application.threads import Delta, thread_delta, thread_user
from memplane.domain.errors import LimitExceeded
from memplane.domain.history import was_believed, words_before
from memplane.domain.memory import Memory, MemoryText, MemoryType
from memplane.domain.policy import ContextMode, Policy, RankingProfile
from memplane.domain.principal import KeyScope, Principal
from memplane.domain.priors import Prior, explained, printed_weights, with_priors
from memplane.domain.ranking import Scored, score
from memplane.domain.rendering import Item, Rendered, fit, fitted_prompt, item_of
from memplane.domain.scope import Filters, Scope, read_scope
from memplane.domain.surroundings import Floats, Places
from memplane.domain.text import first, normalise, terms, words

MAX_TOP_K = 200
MAX_RELATED = 2
MAX_QUERY_TERMS = 64
POOL_FACTOR = 2
POOL_FLOOR = 30


@dataclass(frozen=True, slots=True)
class Question:
    """A read, as asked.

    Attributes:
        text: what is looked for; ``None`` for the newest.
        agent: the agent to speak as, or none for the key's own.
        categories: the only categories; none for all that the agent reads by default.
        filters: further narrowing.
        top_k: the most items in the answer, related ones included.
        budget_tokens: the most tokens that the items' texts may take together.
        threshold: the least similarity, 0…1, of an item.
        ranking: a profile's name.
        full: whole records rather than bullets.
        related: add memories that a relation links to the found ones.
        explain: say how each score came about.
        thread_id: the thread whose changes are told.
        since_rev: the revision after which they are told.
        believed_at: what the system believed then is asked for.
        true_at: what was true then is asked for.
    """

    text: str | None
    agent: str | None = None
    categories: tuple[str, ...] = ()
    filters: Filters = field(default_factory=Filters)
    top_k: int = 10
    budget_tokens: int = 4096
    threshold: float | None = None
    ranking: str | None = None
    full: bool = False
    related: bool = True
    explain: bool = False
    thread_id: str | None = None
    since_rev: int | None = None
    believed_at: datetime | None = None
    true_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer cost: tokens of the items' texts, the budget, whether something did not fit, units in scope."""

    tokens: int
    budget: int
    truncated: bool
    candidates: int
    prompt_tokens: int
    threshold_on: str | None


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer of a read."""

    items: Sequence[Item]
    prompt: str | None
    delta: Delta | None
    usage: Usage
    policy: str
    agent: str
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Ranked:
    """Units in the order of their final score, before the budget."""

    units: Sequence[tuple[Unit, Prior]]
    candidates: int


class RecallMemories:
    """Answers `memory.query`."""

    def __init__(
        self,
        storage: Storage,
        policies: Policies,
        embedder: Embedder,
        guard: EmbeddingGuard,
        accesses: Accesses,
        clock: Clock,
    ) -> None:
        self._storage = storage
        self._policies = policies
        self._embedder = embedder
        self._guard = guard
        self._accesses = accesses
        self._clock = clock

    async def __call__(self, principal: Principal, question: Question) -> Recalled:
        """Rank what the principal may read by the question, within ``top_k`` and the budget.

        Raises:
            CategoryForbidden, AgentForbidden, UserForbidden, ScopeForbidden: not allowed; nothing is answered.
            UnknownRanking, LimitExceeded, InvalidText: the question cannot be answered as it is.
        """
        principal.require(KeyScope.READ)
        policy = self._policies.current
        agent = principal.speak_as(question.agent)
        question = replace(
            question, filters=clean_filters(question.filters), thread_id=clean_id(question.thread_id, "thread_id")
        )
        scope = replace(
            read_scope(principal, policy, policy.readable(agent, question.categories), self._clock(), question.filters),
            procedures=_asks_for_procedures(question, policy),
        ).as_of(question.believed_at, question.true_at)
        profile = policy.ranking(question.ranking)
        if not 1 <= question.top_k <= MAX_TOP_K:
            raise LimitExceeded(f"top_k: {question.top_k}, it must be 1 to {MAX_TOP_K}", field="top_k")
        query = await self._query(question.text)
        await self._guard.check(principal.tenant)
        async with self._storage.reading(principal.reach) as reader:
            ranked = await self._ranked(reader, scope, question, query, profile)
            ranked = await _as_believed(reader, scope, ranked)
            items = (_item(unit, prior, policy, question) for unit, prior in ranked.units)
            rendered = await offload(_work(ranked), fit, items, question.top_k, question.budget_tokens)
            if question.related and scope.believed_at is None:  # what was related then is not known
                rendered = await _with_related(reader, scope, question, rendered)
            # whatever the question narrows: else a revision passes whose change the agent was never told
            whole = replace(
                scope, categories=policy.allowlist(agent).read, procedures=True, believed_at=None, true_at=None
            )
            delta = await self._delta(reader, whole, question)
        self._note(principal, scope, rendered)
        weights = printed_weights(profile, self._embedder.model)
        usage, prompt = await offload(_work(ranked), _usage, question, rendered, ranked, query)
        return Recalled(rendered.items, prompt, delta, usage, policy.digest, agent, weights)

    @staticmethod
    async def _delta(reader: Reader, scope: Scope, question: Question) -> Delta | None:
        if question.thread_id is None:
            return None
        user = await thread_user(reader, scope, question.thread_id, scope.filters.user_id)
        return await thread_delta(reader, scope, user, question.thread_id, question.since_rev)

    async def _query(self, text: str | None) -> Query | None:
        if text is None or not text.strip():
            return None
        clean = normalise(text, "query")
        (vector,) = await self._embedder.embed([clean])
        return Query(
            terms=first(terms(clean), MAX_QUERY_TERMS), words=tuple(dict.fromkeys(words(clean))), embedding=vector
        )

    async def _ranked(
        self, reader: Reader, scope: Scope, question: Question, query: Query | None, profile: RankingProfile
    ) -> _Ranked:
        limit = max(POOL_FLOOR, POOL_FACTOR * question.top_k)
        if query is None:
            ids = await reader.newest(scope, limit)
            found = await reader.units(scope, ids)
            newest = [(found[i], Prior.newest(place)) for place, i in enumerate(ids) if i in found]
            return _Ranked(newest, len(newest))
        candidates = await reader.candidates(scope, query)
        pool = await asyncio.to_thread(self._pool, candidates, question, query, profile, limit)
        found = await reader.units(scope, list(pool))
        model = self._embedder.model
        priced = [(unit, with_priors(unit, pool[key], profile, model, scope.now)) for key, unit in found.items()]
        priced.sort(key=lambda pair: (-pair[1].score, pair[0].id))
        return _Ranked(priced, len(candidates.ids))

    def _pool(
        self, candidates: Candidates, question: Question, query: Query, profile: RankingProfile, limit: int
    ) -> Mapping[UUID, Mapping[str, object]]:
        """The best units by their signals, each with the parts of its score; runs in a worker thread."""
        scored = score(candidates.signals, profile, self._embedder.model)
        eligible = _best(scored.score, limit)
        if question.threshold is not None:
            allowed = np.flatnonzero(_above(scored, question.threshold, lexical=query.embedding is None))
            eligible = allowed[_best(scored.score[allowed], limit)]
        matched = candidates.signals.matched(eligible)
        return {
            candidates.ids[int(i)]: explained(scored, int(i), holds, query.terms.stems)
            for i, holds in zip(eligible, matched, strict=True)
        }

    def _note(self, principal: Principal, scope: Scope, rendered: Rendered) -> None:
        best = rendered.items[0].parts.get("similarity") if rendered.items else None
        event = OperationalEvent(
            node="context",
            op="search",
            status="ok",
            ts=scope.now,
            user_id=scope.filters.user_id,
            thread_id=scope.filters.thread_id,
            sim=best if isinstance(best, float) else None,
        )
        returned = tuple(item.unit.id for item in rendered.items if isinstance(item.unit, Memory))
        self._accesses.note(Access(principal.tenant, returned, event))


async def _as_believed(reader: Reader, scope: Scope, ranked: _Ranked) -> _Ranked:
    """The units with the words that they had at the moment that is asked for."""
    if scope.believed_at is None:
        return ranked
    later = [unit.id for unit, _ in ranked.units if isinstance(unit, Memory) and unit.updated_at > scope.believed_at]
    if not later:
        return ranked
    changed = await reader.changed_after(scope, later, scope.believed_at)
    told: list[tuple[Unit, Prior]] = []
    for unit, prior in ranked.units:
        if not isinstance(unit, Memory):
            told.append((unit, prior))
        elif was_believed(changed.get(unit.id, ())):
            words = words_before(changed.get(unit.id, ()), scope.categories)
            told.append((unit if words is None else replace(unit, text=MemoryText(words)), prior))
    return _Ranked(told, ranked.candidates)


def _work(ranked: _Ranked) -> int:
    """How much text is rendered, in short texts' characters: to look at one is a tenth of the work of reading it."""
    return sum(len(unit.text.content if isinstance(unit, Memory) else unit.text) for unit, _ in ranked.units) // 10


def _asks_for_procedures(question: Question, policy: Policy) -> bool:
    """Procedures come only when asked for: by their type, or by naming a category that stays out of contexts."""
    named = (policy.categories[name].context for name in question.categories)
    return question.filters.type is MemoryType.PROCEDURAL or ContextMode.NONE in named


def _usage(question: Question, rendered: Rendered, ranked: _Ranked, query: Query | None) -> tuple[Usage, str | None]:
    """What the answer cost, and its items as a fenced block for a prompt."""
    prompt = None if question.full else fitted_prompt(rendered.items, question.budget_tokens)
    threshold_on = None
    if question.threshold is not None and query is not None:
        threshold_on = "lexical" if query.embedding is None else "semantic"
    usage = Usage(
        tokens=rendered.tokens,
        budget=question.budget_tokens,
        truncated=rendered.truncated,
        candidates=ranked.candidates,
        prompt_tokens=prompt.tokens if prompt else 0,
        threshold_on=threshold_on,
    )
    return usage, prompt.text if prompt else None


def _item(unit: Unit, prior: Prior, policy: Policy, question: Question) -> Item:
    category = unit.category if isinstance(unit, Memory) else policy.turns_category
    return item_of(unit, category, prior.score, prior.parts, full=question.full)


def _best(scores: Floats, limit: int) -> Places:
    """Where the highest scores stand, in no order."""
    if len(scores) <= limit:
        return np.arange(len(scores))
    return np.argpartition(scores, len(scores) - limit)[-limit:]


def _above(scored: Scored, threshold: float, *, lexical: bool) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which units reach the threshold by their own similarity, or by the scaled text score without an embedding."""
    reached: np.ndarray[tuple[int], np.dtype[np.bool_]] = (
        scored.lexical_scaled if lexical else scored.similarity
    ) >= threshold
    return reached


async def _with_related(reader: Reader, scope: Scope, question: Question, rendered: Rendered) -> Rendered:
    """Add one or two memories that relations link to the found ones, where k and budget leave room."""
    found = [item.unit.id for item in rendered.items if isinstance(item.unit, Memory)]
    room = min(MAX_RELATED, question.top_k - len(rendered.items))
    if not found or room <= 0:
        return rendered
    linked: dict[UUID, Item] = {}
    for via, memory, strength in await reader.related(scope, found, room + len(found)):
        item = item_of(memory, memory.category, strength, {"relation": strength}, full=question.full, via=via)
        linked.setdefault(memory.id, item)
    return fit([*rendered.items, *list(linked.values())[:room]], question.top_k, question.budget_tokens, rendered)
