"""Reads of single memories, of lists, and of histories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar
from uuid import UUID

from memplane.application.limits.offload import offload
from memplane.application.memories.activity_log import ActivityLog
from memplane.application.memories.authorization import require_full
from memplane.application.memories.gateway import clean_filters
from memplane.application.ports import Clock, Policies, Storage, TenantReader, Unit
from memplane.application.recall.query_analysis import MAX_QUERY_TERMS
from memplane.application.recall.search_material import Candidates, Query
from memplane.application.users.merged_users import require_unmerged
from memplane.domain.errors import InvalidRequest, LimitExceeded, RecordNotFound
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.language.terms import parse_query
from memplane.domain.language.text import normalise, words
from memplane.domain.memory.history import HistoryEntry, HistoryEvent
from memplane.domain.memory.memory import Memory, State, TrustState, Visibility
from memplane.domain.memory.scope import Filters, Scope, read_scope
from memplane.domain.memory.write_decisions import MAX_CONFLICTS
from memplane.domain.policy.policy import Trust
from memplane.domain.ranking.signals import by_words

MAX_PAGE = 200
T = TypeVar("T", Memory, HistoryEntry)
Conflicting = Mapping[UUID, Sequence[UUID]]
"""By memory, those that it may contradict."""


@dataclass(frozen=True, slots=True)
class BrowsePage(Generic[T]):
    """One page, and where the next one begins, or ``None`` at the end."""

    items: Sequence[T]
    next: UUID | None


@dataclass(frozen=True, slots=True)
class Listing:
    """Which memories are listed.

    Attributes:
        categories: the only categories; none for all that the agent reads.
        filters: further narrowing.
        state: the only lifecycle state.
        trust_state: the only state of trust; ``None`` for what is believed.
        words: only those that hold one of these words.
        shared: those about no user alone.
    """

    categories: Sequence[str] = ()
    filters: Filters = field(default_factory=Filters)
    state: State = State.ACTIVE
    trust_state: TrustState | None = None
    words: str | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class MemoryPage(BrowsePage[Memory]):
    """One page of memories, with how well each matches the words of the request, 0…1, where it has some."""

    scores: Mapping[UUID, float] = field(default_factory=dict)


class Browse:
    """Reads without ranking."""

    def __init__(self, storage: Storage, policies: Policies, activity: ActivityLog, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._activity = activity
        self._clock = clock

    def _scope(
        self,
        principal: Principal,
        agent: str | None,
        categories: Sequence[str] = (),
        filters: Filters | None = None,
    ) -> Scope:
        principal.require(KeyScope.READ)
        policy = self._policies.current
        speaker = principal.act_as(agent)
        allowed = policy.readable(speaker, categories) if categories else policy.allowlist(speaker).read
        scope = read_scope(principal, policy, allowed, self._clock(), clean_filters(filters or Filters()))
        return scope.with_shared(policy.shared)

    async def get(self, principal: Principal, memory_id: UUID, agent: str | None = None) -> Memory:
        """One memory.

        Raises:
            NotFound: absent, deleted, or not the caller's.
        """
        scope = self._scope(principal, agent)
        async with self._storage.reading(principal.reach) as reader:
            found = (await reader.units(scope, [memory_id])).get(memory_id)
        if not isinstance(found, Memory):
            raise RecordNotFound("no such memory")
        self._activity.note_read(principal, (found.user_id,))
        return found

    async def batch(self, principal: Principal, ids: Sequence[UUID], agent: str | None = None) -> list[Memory]:
        """Several memories in the order asked; one that is absent or not the caller's is left out.

        Raises:
            LimitExceeded: too many are asked for.
        """
        _limit(len(ids))
        scope = self._scope(principal, agent)
        async with self._storage.reading(principal.reach) as reader:
            units = await reader.units(scope, list(dict.fromkeys(ids)))
        found = [unit for each in ids if isinstance(unit := units.get(each), Memory)]
        self._activity.note_read(principal, {each.user_id for each in found})
        return found

    async def conflicting(
        self, principal: Principal, memories: Sequence[Memory], agent: str | None = None
    ) -> Conflicting:
        """What memories may contradict, of what the agent may read."""
        scope = self._scope(principal, agent)
        async with self._storage.reading(principal.reach) as reader:
            return await conflicting(reader, scope, memories)

    async def list(
        self,
        principal: Principal,
        wanted: Listing,
        *,
        before: UUID | None = None,
        limit: int = 50,
        agent: str | None = None,
    ) -> MemoryPage:
        """A page of memories, newest first; of what is active and believed, unless other states are asked for.

        Raises:
            CategoryForbidden: a named category is not the agent's to read.
            TrustTooLow: deleted memories are listed for fully trusted keys alone.
            LimitExceeded: the page is too long.
            Invalid: those about no user are asked for, and a user is named.
            InvalidText: the words cannot be read.
        """
        if wanted.shared and wanted.filters.user_id is not None:
            raise InvalidRequest("shared: what is about no user has no user_id; leave one of them out", field="shared")
        scope = _listed(self._scope(principal, agent, wanted.categories, wanted.filters), wanted)
        if wanted.state is State.SOFT_DELETED:
            require_full(principal, "list what was deleted")
        limit = _limit(limit)
        query = _words_of(wanted.words)
        scores: Mapping[UUID, float] = {}
        async with self._storage.reading(principal.reach) as reader:
            if query is None:
                found = await reader.memories(scope, before=before, limit=limit + 1)
            else:
                candidates = await reader.candidates(scope, query)
                scores = await offload(len(candidates.ids), _matching, candidates)
                ids = sorted((each for each in scores if before is None or each < before), reverse=True)[: limit + 1]
                units = await reader.units(scope, ids)
                found = [unit for each in ids if isinstance(unit := units.get(each), Memory)]
            if not found:
                await require_unmerged(reader, principal, scope.filters.user_id)
        page, named = _page(found, limit), scope.filters.user_id
        self._activity.note_read(principal, {each.user_id for each in page.items} if named is None else {named})
        return MemoryPage(page.items, page.next, {each.id: scores[each.id] for each in page.items if each.id in scores})

    async def timeline(
        self, principal: Principal, memory_id: UUID, before: int = 5, after: int = 5, agent: str | None = None
    ) -> Sequence[Unit]:
        """What was recorded of the same user before and after a memory or turn, oldest first, it among them.

        Raises:
            NotFound: absent, or not the caller's.
            LimitExceeded: too many are asked for.
        """
        scope = self._scope(principal, agent)
        async with self._storage.reading(principal.reach) as reader:
            known = (await reader.units(scope, [memory_id])).get(memory_id)
            anchor = known or await reader.whole(scope, memory_id)
            if anchor is None or (isinstance(anchor, Memory) and anchor.state is State.SOFT_DELETED):
                raise RecordNotFound("no such memory")
            mine = scope.of_user(anchor.user_id)
            found = await reader.around(mine, memory_id, _limit(before, 0), _limit(after, 0))
        self._activity.note_read(principal, (anchor.user_id,))
        if known is not None:
            return found
        earlier = [unit for unit in found if unit.id < memory_id]
        return [*earlier[len(earlier) - before :], anchor, *(unit for unit in found if unit.id > memory_id)]

    async def related(
        self, principal: Principal, memory_id: UUID, limit: int = 10, agent: str | None = None
    ) -> Sequence[tuple[Memory, float]]:
        """Memories that relations link to one, strongest first, with the strength.

        Raises:
            NotFound: absent, or not the caller's.
        """
        scope = self._scope(principal, agent)
        async with self._storage.reading(principal.reach) as reader:
            memory = (await reader.units(scope, [memory_id])).get(memory_id)
            if not isinstance(memory, Memory):
                raise RecordNotFound("no such memory")
            found = await reader.related_memories(scope, [memory_id], 2 * _limit(limit))
        self._activity.note_read(principal, (memory.user_id,))
        by_id = {memory.id: (memory, strength) for _, memory, strength in reversed(found)}
        return sorted(by_id.values(), key=lambda pair: (-pair[1], pair[0].id))[:limit]

    async def history(
        self,
        principal: Principal,
        memory_id: UUID,
        *,
        before: UUID | None = None,
        limit: int = 50,
        agent: str | None = None,
    ) -> BrowsePage[HistoryEntry]:
        """A page of a memory's history, newest first, whatever state it is in.

        Raises:
            NotFound: absent, or not the caller's.
        """
        scope = self._scope(principal, agent)
        async with self._storage.reading(principal.reach) as reader:
            found = await reader.history(scope, memory_id, before=before, limit=_limit(limit) + 1)
        if found is None:
            raise RecordNotFound("no such memory")
        self._activity.note_read(principal, {each.of_user for each in found if each.of_user is not None})
        return _page([redact_entry(entry, scope) for entry in found], limit)


async def conflicting(reader: TenantReader, scope: Scope, memories: Sequence[Memory]) -> Conflicting:
    """What memories may contradict, of what a scope covers."""
    found: dict[UUID, list[UUID]] = {each.id: [] for each in memories}
    if found:
        for pair in await reader.conflicts(scope, sorted(found), limit=2 * MAX_CONFLICTS * len(found)):
            for one, other in ((pair.from_id, pair.to_id), (pair.to_id, pair.from_id)):
                if one in found:
                    found[one].append(other)
    return found


def redact_entry(entry: HistoryEntry, scope: Scope) -> HistoryEntry:
    """An entry, without the words that were written under a category, or for a store, that the reader may not read."""
    under = entry.meta.get("categories")
    if not isinstance(under, list) or not all(name in scope.categories for name in under):
        return replace(entry, old_ref=None, new_ref=None, meta={})
    if entry.event is HistoryEvent.SUPERSEDE and not _reaches(scope, entry.meta.get("said_in")):
        return replace(entry, meta={name: value for name, value in entry.meta.items() if name not in _OF_THE_NEWER})
    links = entry.meta.get("links")
    if entry.event is HistoryEvent.LINK and isinstance(links, list):
        seen = [
            {name: link[name] for name in link if name != "in"} for link in links if _reaches(scope, link.get("in"))
        ]
        return replace(entry, meta={**entry.meta, "links": seen})
    return entry


_OF_THE_NEWER = frozenset({"said", "said_in", "superseded_by", "evidence", "source", "words"})


def _reaches(scope: Scope, store: object) -> bool:
    """Whether a scope covers a store; one that an entry does not name may be any."""
    if isinstance(store, dict):
        return store.get("visibility") in scope.visibilities and store.get("min_trust") in scope.trust_levels
    return scope.visibilities == frozenset(Visibility) and len(scope.trust_levels) == len(Trust)


def _listed(scope: Scope, wanted: Listing) -> Scope:
    """The scope of a list; what is not active any more is told of in whatever trust it was, unless it was rejected."""
    believed = scope.trust_states if wanted.state is State.ACTIVE else (*scope.trust_states, TrustState.DISPUTED)
    trust = believed if wanted.trust_state is None else (wanted.trust_state,)
    if wanted.shared:
        scope = scope.shared_alone
    elif scope.filters.user_id is not None:
        scope = scope.without_shared
    return replace(scope, turns=False, states=(wanted.state,), trust_states=trust)


def _words_of(text: str | None) -> Query | None:
    """The words of a list as a question; ``None`` where it has none.

    Raises:
        InvalidText: they cannot be read.
    """
    if text is None or not text.strip():
        return None
    clean = normalise(text, "q")
    return Query(terms=parse_query(clean, MAX_QUERY_TERMS), words=tuple(dict.fromkeys(words(clean))), embedding=None)


def _matching(candidates: Candidates) -> Mapping[UUID, float]:
    return {candidates.ids[place]: score for place, score in by_words(candidates.signals)}


def _limit(limit: int, least: int = 1) -> int:
    if not least <= limit <= MAX_PAGE:
        raise LimitExceeded(f"limit: {limit}, it must be {least} to {MAX_PAGE}", field="limit")
    return limit


def _page(found: Sequence[T], limit: int) -> BrowsePage[T]:
    shown = found[:limit]
    return BrowsePage(shown, shown[-1].id if len(found) > limit else None)
