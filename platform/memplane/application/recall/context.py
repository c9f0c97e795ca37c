"""The context call: what an agent is told before it answers a message, in sections that fit one budget."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memplane.application.limits.offload import offload
from memplane.application.memories.gateway import clean_id
from memplane.application.ports import TenantReader, Unit
from memplane.application.recall.query_analysis import QueryContext, category_of, work_on
from memplane.application.recall.ranking import By, Ranking, ScoredUnit, linked_to, rank
from memplane.application.recall.search_material import Query
from memplane.application.recall.threads import Delta, thread_delta
from memplane.application.users.merged_users import require_unmerged
from memplane.domain.errors import LimitExceeded
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.language.text import estimate_tokens
from memplane.domain.memory.memory import Memory, MemoryType, Turn
from memplane.domain.memory.scope import Filters, Scope, read_scope
from memplane.domain.policy.policy import ContextMode, Policy
from memplane.domain.ranking.budgets import SectionDemand, SectionShare, share_budget
from memplane.domain.ranking.fencing import escape_line, fence, new_delimiter
from memplane.domain.ranking.rendering import RenderedItem, entry, item_of, reached_from, related_places

WINDOW = 100
"""The most turns of the thread itself."""
MOST_STANDING = 500
MOST_K = 200
POOL = 3
TOLD = 2
"""How many times as many units as are told are read at first, for those that are left out."""
LEAST_LINE = 12
"""Tokens that no line comes below, its provenance included: more than the budget of such lines is never told."""
HEADINGS: Mapping[str, str] = {
    "standing": "## What is always told",
    "recalled": "## What fits the message",
    "window": "## The conversation so far",
    "reflection": "## The latest reflection",
    "related": "## Related",
}
"""The sections after the delta, in the order in which they are told, which is also that of their priority."""
SHARES: Mapping[str, float] = {"standing": 0.3, "recalled": 0.35, "window": 0.25, "reflection": 0.05, "related": 0.05}


@dataclass(frozen=True, slots=True)
class ContextCall:
    """What an agent asks to be told.

    Attributes:
        user_id: whom the memory is about.
        thread_id: the conversation.
        message: what the user has just said; ``None``: nothing is recalled by it.
        agent: the agent to speak as, or none for the key's own.
        since_rev: the revision of the thread after which changes are told.
        budget_tokens: the most tokens of the whole block.
        k: the most items that are recalled by the message.
    """

    user_id: str
    thread_id: str
    message: str | None
    agent: str | None = None
    since_rev: int | None = None
    budget_tokens: int = 4096
    k: int = 20


@dataclass(frozen=True, slots=True)
class Section:
    """A labelled part of a context; its items in the order in which they are told."""

    name: str
    items: Sequence[RenderedItem]
    tokens: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class Context:
    """What an agent is told.

    Attributes:
        sections: those that hold something.
        prompt: all of it as one fenced block, or none when there is nothing to tell.
        tokens: of the block.
        truncated: whether something did not fit.
        candidates: how many memories and turns were in scope of the message.
    """

    sections: Sequence[Section]
    prompt: str | None
    delta: Delta
    tokens: int
    truncated: bool
    candidates: int
    policy: str


@dataclass(frozen=True, slots=True)
class _Found:
    """The units of each section, the most wanted first, with their scores, and what brought those that are related."""

    units: Mapping[str, Sequence[tuple[Unit, float, UUID | None]]]
    candidates: int


class TellContext:
    """Answers `/v1/context`."""

    def __init__(self, asking: QueryContext) -> None:
        self._asking = asking

    async def __call__(self, principal: Principal, call: ContextCall) -> Context:
        """What the agent should know before it answers.

        First what changed in the thread; then everything of the categories that are always told, the pinned and the
        important first; what fits the message, of each category at most its ``rag_length``; the thread's last turns;
        the latest reflection; and what relations link to what fits. Nothing is told twice.

        Raises:
            AgentForbidden, UserForbidden, ScopeForbidden: not allowed; nothing is answered.
            LimitExceeded, InvalidText: it cannot be answered as it is.
        """
        principal.require(KeyScope.READ)
        policy, asking = self._asking.policies.current, self._asking
        agent = principal.act_as(call.agent)
        if not 1 <= call.k <= MOST_K:
            raise LimitExceeded(f"k: {call.k}, it must be 1 to {MOST_K}", field="k")
        user = clean_id(call.user_id, "user_id") or ""
        call = replace(call, user_id=user, thread_id=clean_id(call.thread_id, "thread_id") or "")
        categories = policy.readable(agent, ())
        scope = replace(
            read_scope(principal, policy, categories, asking.clock(), Filters(user_id=user)), procedures=False
        )
        scope = scope.with_shared(policy.shared).as_of(None, None)
        profile = policy.ranking(None)
        query, asked = await asking.asked_of(call.message, profile, principal, scope)
        by = By(profile, asking.embedders.own.name, asked)
        await asking.guard.check(principal.tenant)
        async with asking.storage.reading(principal.reach) as reader:
            whole = replace(scope, categories=policy.allowlist(agent).read, procedures=True)
            delta = await thread_delta(reader, whole, user, call.thread_id, call.since_rev)
            found = await _found(reader, scope, policy, call, (query, by))
            if not any(found.units.values()):  # as in a question
                await require_unmerged(reader, principal, user)
        work = work_on([unit for units in found.units.values() for unit, _, _ in units])
        context = await offload(work, _told, found, delta, call, policy)
        told = [item for part in context.sections for item in part.items]
        asking.note(principal, scope, told, (scope.filters.user_id, call.thread_id))
        return context


async def _found(
    reader: TenantReader, scope: Scope, policy: Policy, call: ContextCall, asked: tuple[Query, By]
) -> _Found:
    """Everything that could be told, section by section."""
    lanes = _lanes(scope, policy)
    reflections = replace(scope.without_shared, filters=replace(scope.filters, types=(MemoryType.REFLECTION,)))
    most = min(MOST_STANDING, call.budget_tokens // LEAST_LINE + 1)
    pages = [*((lane, most) for lane in lanes), (reflections, 1)]
    (*always, reflection), window = await reader.pages_and_window(pages, scope, call.thread_id, WINDOW)
    ranking, (_, by) = await _ranked(reader, scope, policy, call.k, asked), asked
    recalled = await _recalled(reader, scope, policy, call, ranking, {turn.id for turn in window})
    standing = _weightiest(always)
    least = policy.merging.bands_for(by.model if ranking.model is None else ranking.model.name).link_min
    units = [unit for unit, _ in recalled]
    linked = await linked_to(reader, scope, ranking, units, least, there=[*standing, *reflection])
    sections: dict[str, Sequence[tuple[Unit, float, UUID | None]]] = {
        "standing": [(memory, 0.0, None) for memory in standing],
        "recalled": [(unit, score, None) for unit, score in recalled],
        "window": [(turn, 0.0, None) for turn in window],
        "reflection": [(memory, 0.0, None) for memory in reflection],
        "related": [(memory, strength, via) for via, memory, strength in linked],
    }
    return _Found(sections, ranking.candidates)


async def _ranked(reader: TenantReader, scope: Scope, policy: Policy, k: int, asked: tuple[Query, By]) -> Ranking:
    """What fits the message, among the categories that are searched."""
    query, by = asked
    searched = tuple(name for name in scope.categories if policy.categories[name].context is ContextMode.RAG)
    if by.asked.wordless or not searched:
        return Ranking((), 0, links=())
    narrowed = replace(scope, categories=searched, turns=policy.turns_category in searched).with_shared(scope.shared)
    # more than asked for: what stands in the window, or is over a category's length, is left out
    return await rank(reader, narrowed, query, by, POOL * k + WINDOW, told=TOLD * k)


def _lanes(scope: Scope, policy: Policy) -> list[Scope]:
    """What is always told: the pinned, the important, all; so that what is weighty is not behind what is newer."""
    always = tuple(name for name in scope.categories if policy.categories[name].context is ContextMode.ALL)
    if not always:
        return []
    own = replace(scope, categories=always, turns=False).with_shared(scope.shared)
    wholes = [own.without_shared, *([] if (beside := own.of_shared) is None else [beside])]
    narrower: list[dict[str, Any]] = [{"pinned": True}, {"importance_min": 4}, {}]
    return [replace(whole, filters=replace(whole.filters, **each)) for whole in wholes for each in narrower]


def _weightiest(lanes: Iterable[Sequence[Memory]]) -> list[Memory]:
    """Memories once each: the pinned first, then the important, then the newest."""
    found = {each.id: each for lane in lanes for each in lane}
    return sorted(found.values(), key=lambda memory: (not memory.pinned, -memory.importance, -_time(memory.updated_at)))


def _time(moment: datetime) -> float:
    return moment.timestamp()


async def _recalled(
    reader: TenantReader, scope: Scope, policy: Policy, call: ContextCall, ranking: Ranking, heard: set[UUID]
) -> list[tuple[Unit, float]]:
    """The best units for the message: of each category at most its length, and nothing of what was just heard."""
    wanted = [standing for standing in ranking.standings if standing.id not in heard]
    units, chosen = dict(ranking.units), list[tuple[Unit, float]]()
    for part in (wanted[: TOLD * call.k], wanted):
        missing = [standing.id for standing in part if standing.id not in units]
        units |= await reader.units(scope, missing) if missing else {}
        chosen = _chosen(part, units, policy, scope, call.k)
        if len(chosen) == call.k:
            break
    return chosen


def _chosen(
    wanted: Sequence[ScoredUnit], units: Mapping[UUID, Unit | None], policy: Policy, scope: Scope, k: int
) -> list[tuple[Unit, float]]:
    """The first of the best units, of each category at most its length."""
    room = {name: policy.categories[name].rag_length for name in scope.categories}
    chosen: list[tuple[Unit, float]] = []
    for standing in wanted:
        unit = units.get(standing.id)
        if unit is None or (isinstance(unit, Memory) and unit.type is MemoryType.REFLECTION):
            continue
        category = category_of(unit, policy)
        left = room[category]
        if left is not None:
            if not left:
                continue
            room[category] = left - 1
        chosen.append((unit, standing.score))
        if len(chosen) == k:
            break
    return chosen


def _once(sections: Mapping[str, Sequence[RenderedItem]]) -> dict[str, list[RenderedItem]]:
    """The sections without what an earlier one has, the same record or the same words."""
    seen: set[object] = set()
    kept: dict[str, list[RenderedItem]] = {}
    for name, items in sections.items():
        kept[name] = []
        for item in items:
            words = " ".join(item.text.casefold().split())
            # the same words twice in a conversation were said twice
            if item.unit.id in seen or (words in seen and not isinstance(item.unit, Turn)):
                continue
            seen |= {item.unit.id, words}
            kept[name].append(item)
    return kept


def _items(name: str, found: _Found, policy: Policy) -> list[RenderedItem]:
    """The units of a section as lines."""
    return [item_of(unit, category_of(unit, policy), score, {}, via=via) for unit, score, via in found.units[name]]


def _told(found: _Found, delta: Delta, call: ContextCall, policy: Policy) -> Context:
    """As much of it as fits the budget, fence, headings and provenance included."""
    budget, delimiter = call.budget_tokens, new_delimiter()
    head = list(delta.fenced)
    fixed = estimate_tokens(fence([*head, ""], delimiter))
    if fixed > budget:
        head, fixed = [], estimate_tokens(fence([""], delimiter))
    items, given = _fitting(_once({name: _items(name, found, policy) for name in HEADINGS}), call.k, budget - fixed)
    sections = [_section(name, items[name], given[name]) for name in HEADINGS if given[name].places]
    written = [*head]
    for section in sections:
        written += [HEADINGS[section.name], *(entry(item) for item in section.items)]
    prompt = fence(written, delimiter) if written else None
    return Context(
        sections,
        prompt,
        delta,
        0 if prompt is None else estimate_tokens(prompt),
        any(each.truncated for each in given.values()) or (delta.header is not None and not head),
        found.candidates,
        policy.digest,
    )


def _fitting(
    items: Mapping[str, Sequence[RenderedItem]], k: int, budget: int
) -> tuple[Mapping[str, Sequence[RenderedItem]], Mapping[str, SectionShare]]:
    """The items of each section, and which of them fit; what is recalled leaves its places only to what fits."""
    costs = {item.unit.id: estimate_tokens(escape_line(entry(item))) + 1 for part in items.values() for item in part}
    heading = max(estimate_tokens(heading) for heading in HEADINGS.values()) + 1
    truncated = False
    for count in range(related_places(k, len(items["recalled"])), -1, -1):
        recalled = items["recalled"][: k - count]
        linked = reached_from(recalled, items["related"])[:count]
        chosen = {**items, "recalled": recalled, "related": linked}
        wanted = [
            SectionDemand(name, [costs[item.unit.id] for item in chosen[name]], SHARES[name], unbroken=name == "window")
            for name in HEADINGS
        ]
        given = dict(share_budget(wanted, max(budget, 0), heading))
        truncated |= given["related"].truncated
        if len(given["related"].places) == count:
            break
    given["related"] = replace(given["related"], truncated=truncated)
    return chosen, given


def _section(name: str, items: Sequence[RenderedItem], given: SectionShare) -> Section:
    """A section as it is told; a conversation from its beginning."""
    chosen: Iterable[RenderedItem] = [items[place] for place in given.places]
    told = list(reversed(list(chosen))) if name == "window" else list(chosen)
    return Section(name, told, given.tokens, given.truncated)
