"""`memory.query`: the one read that answers with ranked memories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from memplane.application.limits.offload import offload
from memplane.application.memories.browse import Conflicting, conflicting
from memplane.application.memories.gateway import clean_filters, clean_id
from memplane.application.ports import TenantReader, Unit
from memplane.application.recall.query_analysis import ON_DEMAND, SEARCH, QueryContext, category_of, work_on
from memplane.application.recall.ranking import By, Ranking, ScoredUnit, linked_to, newest, rank
from memplane.application.recall.search_material import Query
from memplane.application.recall.threads import Delta, thread_delta, thread_user
from memplane.application.users.merged_users import require_unmerged
from memplane.domain.errors import LimitExceeded
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.memory.history import was_believed, words_before
from memplane.domain.memory.memory import Memory, MemoryText, MemoryType
from memplane.domain.memory.scope import Filters, Scope, read_scope
from memplane.domain.policy.policy import ContextMode, Policy, Speaker
from memplane.domain.ranking.fusion import printed_weights
from memplane.domain.ranking.rendering import (
    RenderedItem,
    RenderedItems,
    fit_items,
    fitted_prompt,
    item_of,
    with_related,
)

MAX_TOP_K = 200
POOL_FACTOR = 2
POOL_FLOOR = 30
SPARE = 2
"""How many more units than asked for are read at first, for those that do not fit the budget."""
_Placed = tuple[Unit, ScoredUnit]


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
        archive: what was archived is asked for, in place of what is current.
        on_demand: an agent asks in the middle of a turn for what it was not given before: this is counted.
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
    archive: bool = False
    on_demand: bool = False


@dataclass(frozen=True, slots=True)
class RecallUsage:
    """What an answer cost: tokens of the items' texts, the budget, whether something did not fit, units in scope."""

    tokens: int
    budget: int
    truncated: bool
    candidates: int
    prompt_tokens: int
    threshold_on: str | None


@dataclass(frozen=True, slots=True)
class RecallAnswer:
    """The answer of a read."""

    items: Sequence[RenderedItem]
    prompt: str | None
    delta: Delta | None
    usage: RecallUsage
    policy: str
    agent: Speaker
    weights: Mapping[str, float]
    conflicts: Conflicting = field(default_factory=dict)


class RecallMemories:
    """Answers `memory.query`."""

    def __init__(self, asking: QueryContext) -> None:
        self._asking = asking

    async def __call__(self, principal: Principal, question: Question) -> RecallAnswer:
        """Rank what the principal may read by the question, within ``top_k`` and the budget.

        Raises:
            CategoryForbidden, AgentForbidden, UserForbidden, ScopeForbidden: not allowed; nothing is answered.
            UnknownRanking, LimitExceeded, InvalidText: the question cannot be answered as it is.
        """
        principal.require(KeyScope.READ)
        policy, asking = self._asking.policies.current, self._asking
        agent = principal.act_as(question.agent)
        question = replace(
            question, filters=clean_filters(question.filters), thread_id=clean_id(question.thread_id, "thread_id")
        )
        scope = replace(
            read_scope(
                principal, policy, policy.readable(agent, question.categories), asking.clock(), question.filters
            ),
            procedures=_asks_for_procedures(question, policy),
        )
        scope = scope.with_shared(policy.shared).as_of(question.believed_at, question.true_at)
        present = scope
        if question.archive:
            scope = scope.archived_only()
        profile = policy.ranking(question.ranking)
        if not 1 <= question.top_k <= MAX_TOP_K:
            raise LimitExceeded(f"top_k: {question.top_k}, it must be 1 to {MAX_TOP_K}", field="top_k")
        query, asked = await asking.asked_of(question.text, profile, principal, scope)
        await asking.guard.check(principal.tenant)
        async with asking.storage.reading(principal.reach) as reader:
            by = By(profile, asking.embedders.own.name, asked, question.threshold)
            ranking, rendered = await self._ranked(reader, scope, query, by, question, policy)
            if not rendered.items:  # of a merged user nothing is found, so that only an empty answer has to look
                await require_unmerged(reader, principal, scope.filters.user_id)
            memories = [item.unit for item in rendered.items if question.full and isinstance(item.unit, Memory)]
            conflicts = await conflicting(reader, scope.narrowed_to_permission(), memories)
            # whatever the question narrows: else a revision passes whose change the agent was never told
            whole = replace(
                present, categories=policy.allowlist(agent).read, procedures=True, believed_at=None, true_at=None
            )
            delta = await self._delta(reader, whole, question)
            place = await _place(reader, scope, question)
        found = scope == present and not asked.wordless and scope.believed_at is None and scope.true_at is None
        asking.note(
            principal, scope, rendered.items, place, found=found, op=ON_DEMAND if question.on_demand else SEARCH
        )
        model, query = ranking.model or asking.embedders.own, query.by(ranking.model)
        weights = printed_weights(profile, model.name, asked)
        work = work_on([item.unit for item in rendered.items])
        usage, prompt = await offload(work, _usage, question, rendered, ranking.candidates, query)
        return RecallAnswer(rendered.items, prompt, delta, usage, policy.digest, agent, weights, conflicts)

    async def _ranked(
        self, reader: TenantReader, scope: Scope, query: Query, by: By, question: Question, policy: Policy
    ) -> tuple[Ranking, RenderedItems]:
        """What ranks best for the question, as items, with what is related to them."""
        limit = max(POOL_FLOOR, POOL_FACTOR * question.top_k)
        if by.asked.wordless and not by.profile.by_use:
            ranking = newest(await reader.newest(scope, limit))
        else:
            ranking = await rank(reader, scope, query, by, limit, told=question.top_k + SPARE)
        rendered = await self._rendered(reader, scope, question, ranking, policy)
        if question.related and scope.believed_at is None:  # what was related then is not known
            least = policy.merging.bands_for((ranking.model or self._asking.embedders.own).name).link_min
            returned = [item.unit for item in rendered.items]
            rendered = _with_related(question, rendered, await linked_to(reader, scope, ranking, returned, least))
        return ranking, rendered

    @staticmethod
    async def _delta(reader: TenantReader, scope: Scope, question: Question) -> Delta | None:
        if question.thread_id is None:
            return None
        user = await thread_user(reader, scope, question.thread_id, scope.filters.user_id)
        return await thread_delta(reader, scope, user, question.thread_id, question.since_rev)

    async def _rendered(
        self, reader: TenantReader, scope: Scope, question: Question, ranking: Ranking, policy: Policy
    ) -> RenderedItems:
        """The best units as items, as many as fit; the few that are likely to fit are read first."""
        best = list(ranking.standings)
        enough = question.top_k + SPARE
        units = dict(ranking.units)
        for part in (best[:enough], best) if scope.believed_at is None else (best,):
            missing = [standing.id for standing in part if standing.id not in units]
            found = await reader.units(scope, missing) if missing else {}
            units |= {each: found.get(each) for each in missing}
            there = [(unit, standing) for standing in part if (unit := units[standing.id]) is not None]
            there = await _as_believed(reader, scope, there)
            items = (_item(unit, standing, policy, question) for unit, standing in there)
            work = work_on([unit for unit, _ in there])
            rendered = await offload(work, fit_items, items, question.top_k, question.budget_tokens)
            if len(rendered.items) == question.top_k or len(part) == len(best):
                return rendered
        raise AssertionError  # the last part is all of them


async def _place(reader: TenantReader, scope: Scope, question: Question) -> tuple[str | None, str | None]:
    """Whose thread and which one an event of the question names; of an on-demand recall the user is looked up.

    A thread is named with its user alone, so that an erasure reaches it.
    """
    user, thread = scope.filters.user_id, question.thread_id or scope.filters.thread_id
    if user is None and thread is not None and question.on_demand:
        users = await reader.thread_users(scope, thread)
        user = users[0] if len(users) == 1 else None
    return user, None if user is None else thread


async def _as_believed(reader: TenantReader, scope: Scope, found: list[_Placed]) -> list[_Placed]:
    """The units with the words that they had at the moment that is asked for."""
    if scope.believed_at is None:
        return found
    later = [unit.id for unit, _ in found if isinstance(unit, Memory) and unit.updated_at > scope.believed_at]
    if not later:
        return found
    changed = await reader.changed_after(scope, later, scope.believed_at)
    told: list[_Placed] = []
    for unit, standing in found:
        if not isinstance(unit, Memory):
            told.append((unit, standing))
        elif was_believed(changed.get(unit.id, ())):
            words = words_before(changed.get(unit.id, ()), scope.categories)
            told.append((unit if words is None else replace(unit, text=MemoryText(words)), standing))
    return told


def _asks_for_procedures(question: Question, policy: Policy) -> bool:
    """Procedures come only when asked for: by their type, or by naming a category that stays out of contexts."""
    named = (policy.categories[name].context for name in question.categories)
    return MemoryType.PROCEDURAL in question.filters.types or ContextMode.NONE in named


def _usage(
    question: Question, rendered: RenderedItems, candidates: int, query: Query
) -> tuple[RecallUsage, str | None]:
    """What the answer cost, and its items as a fenced block for a prompt."""
    prompt = None if question.full else fitted_prompt(rendered.items, question.budget_tokens)
    threshold_on = None
    if question.threshold is not None and query.words:
        threshold_on = "lexical" if query.vector is None else "semantic"
    usage = RecallUsage(
        tokens=rendered.tokens,
        budget=question.budget_tokens,
        truncated=rendered.truncated,
        candidates=candidates,
        prompt_tokens=prompt.tokens if prompt else 0,
        threshold_on=threshold_on,
    )
    return usage, prompt.text if prompt else None


def _item(unit: Unit, standing: ScoredUnit, policy: Policy, question: Question) -> RenderedItem:
    return item_of(unit, category_of(unit, policy), standing.score, standing.explained(), full=question.full)


def _with_related(
    question: Question, found: RenderedItems, linked: Sequence[tuple[UUID, Memory, float]]
) -> RenderedItems:
    """The found items with one or two that relations link to them."""
    if not linked:
        return found
    items = [
        item_of(memory, memory.category, strength, {"strength": strength}, full=question.full, via=via)
        for via, memory, strength in linked
    ]
    return with_related(found, items, question.top_k, question.budget_tokens)
