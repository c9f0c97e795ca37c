"""What the system holds and does, in numbers: statistics, and the operational events."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from memplane.application.memories.browse import MAX_PAGE
from memplane.application.memories.gateway import clean_id
from memplane.application.operations.tracking_records import (
    AGES,
    EventFilters,
    EventPageQuery,
    MemoryGroup,
    Statistics,
    StoredEvent,
)
from memplane.application.ports import Accesses, Clock, Policies, Storage
from memplane.application.users.merged_users import require_unmerged
from memplane.domain.errors import LimitExceeded
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.memory.memory import State, Visibility
from memplane.domain.memory.scope import Filters, Scope, read_scope
from memplane.domain.policy.policy import Operator, Policy, Trust

DAYS = 30
"""The window of on-demand recall, unless another one is asked for."""
MAX_DAYS = 365
MOST = 100_000
"""How many memories are counted: the newest, where there are more."""


@dataclass(frozen=True, slots=True)
class EventPage:
    """One page, newest first, and where the next one begins, or ``None`` at the end."""

    items: Sequence[StoredEvent]
    next: UUID | None


class Tracking:
    """Reads of statistics and events, within the same permissions as reads of memories."""

    def __init__(self, storage: Storage, policies: Policies, accesses: Accesses, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._accesses = accesses
        self._clock = clock

    async def events(
        self,
        principal: Principal,
        filters: EventFilters,
        *,
        before: UUID | None = None,
        limit: int = 50,
        agent: str | None = None,
    ) -> EventPage:
        """A page of events: of memories and turns that the caller may read; an operator's key sees those of its tenant.

        Raises:
            ScopeForbidden, AgentForbidden, UserForbidden: the key may not.
            LimitExceeded: the page is too long.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise LimitExceeded(f"limit: {limit}, it must be 1 to {MAX_PAGE}", field="limit")
        user, thread = clean_id(filters.user_id, "user_id"), clean_id(filters.thread_id, "thread_id")
        _, every, scope = self._scope(principal, agent, user)
        query = EventPageQuery(
            filters=replace(filters, user_id=user, thread_id=thread),
            every=every and _every_store(scope),
            stores=_every_store(scope),
            before=before,
            limit=limit + 1,
        )
        await self._accesses.flush()  # what this process has seen so far is told too
        async with self._storage.reading(principal.reach) as reader:
            await require_unmerged(reader, principal, user)
            found = await reader.tracking.events(scope, query)
        shown = found[:limit]
        if not query.stores:  # what it was similar to may be in a store that the reader does not see
            shown = [replace(each, sim=None) for each in shown]
        return EventPage(shown, shown[-1].id if len(found) > limit else None)

    async def statistics(
        self, principal: Principal, user_id: str | None = None, days: int = DAYS, agent: str | None = None
    ) -> Statistics:
        """What there is of a user, or of all that the caller may see, and how often recall on demand was needed.

        Args:
            principal: the caller; an operator's key sees its tenant.
            user_id: the only user.
            days: the window of on-demand recall; never longer than events are kept.
            agent: the agent to speak as, or none for the key's own.

        Raises:
            ScopeForbidden, AgentForbidden, UserForbidden: the key may not.
            LimitExceeded: the window is too long.
        """
        if not 1 <= days <= MAX_DAYS:
            raise LimitExceeded(f"days: {days}, it must be 1 to {MAX_DAYS}", field="days")
        policy, _, scope = self._scope(principal, agent, clean_id(user_id, "user_id"))
        since = scope.now - min(timedelta(days=days), policy.lifecycle.keep_events)
        await self._accesses.flush()
        async with self._storage.reading(principal.reach) as reader:
            await require_unmerged(reader, principal, scope.filters.user_id)
            groups, complete = await reader.tracking.memories(scope, MOST)
            seen = scope.turns and Visibility.PRIVATE in scope.visibilities
            asked = await reader.tracking.on_demand(scope, since) if seen else None
        return replace(_summed(groups, policy.digest), complete=complete, on_demand=asked)

    def _scope(self, principal: Principal, agent: str | None, user_id: str | None) -> tuple[Policy, bool, Scope]:
        """The policy, whether the caller operates the tenant and names no agent, and what it may see."""
        if not principal.is_operator:  # it may see what happens where it may not read: none of this holds words
            principal.require(KeyScope.READ)
        policy = self._policies.current
        speaker = principal.act_as(agent)
        operator = isinstance(speaker, Operator)
        allowed = policy.allowlist(speaker).read
        return policy, operator, read_scope(principal, policy, allowed, self._clock(), Filters(user_id=user_id))


def _every_store(scope: Scope) -> bool:
    return scope.visibilities == frozenset(Visibility) and len(scope.trust_levels) == len(Trust)


def _summed(groups: Sequence[MemoryGroup], policy: str) -> Statistics:
    states, layers, categories, types = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    active = [each for each in groups if each.state == State.ACTIVE]
    for each in groups:
        states[each.state] += each.memories
    for each in active:
        layers[each.layer] += each.memories
        categories[each.category] += each.memories
        types[each.type] += each.memories
    return Statistics(
        policy=policy,
        states=states,
        layers=layers,
        categories=categories,
        types=types,
        hits=sum(each.hits for each in active),
        hit=sum(each.hit for each in active),
        accesses=sum(each.accesses for each in active),
        ages=_ages(active),
        oldest=min((each.oldest for each in active), default=None),
    )


def _ages(active: Sequence[MemoryGroup]) -> dict[str, int]:
    """How many memories are in each bucket: younger than its bound, and not than the one before."""
    found, before = {}, 0
    for place, name in enumerate(AGES):
        younger = sum(each.newer[place] if AGES[name] else each.memories for each in active)
        found[name], before = younger - before, younger
    return found


def bounds(now: datetime) -> list[datetime]:
    """When a memory was recorded at the earliest that is no older than each bound of :data:`AGES`."""
    return [now - timedelta(days=days) for days in AGES.values() if days is not None]
