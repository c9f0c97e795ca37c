"""What an administrator brings back of a user at once, and what he removes for good."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from memplane.application.limits.idempotency import Once
from memplane.application.memories.authorization import MISSING, has_expired, require_full
from memplane.application.memories.gateway import Gateway, Write, clean_id
from memplane.application.memories.placement import Outcome
from memplane.application.memories.restoration import RESTORABLE, bring_back
from memplane.application.memories.supersession import PendingWrites
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.users.merged_users import require_unmerged
from memplane.domain.errors import InvalidRequest, LimitExceeded, MemplaneError, RecordNotFound, StateConflict
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.memory.memory import Memory, State, TrustState
from memplane.domain.memory.scope import Filters, Scope, read_scope
from memplane.domain.policy.policy import Policy

MAX_PAGE = 100
_LOST = (State.ARCHIVED, State.SOFT_DELETED)
"""What went without anything in its place: what was superseded is brought back one by one."""
_OF_ONE = frozenset({"conflict", "value_rejected", "trust_too_low", "invalid_request", "not_found"})
"""What goes wrong with one memory of several and concerns no other."""


@dataclass(frozen=True, slots=True)
class RecoverySelection:
    """One memory, or those of a user.

    Attributes:
        memory_id: the one.
        user_id: whose.
        since: of these, what was deleted or archived from then on.
        before: of these, those older than one: where the page before ended.
        limit: the most of one call.
        agent: the agent to act for; ``None`` for the key's own, or for all where it has none and may act for each.
    """

    memory_id: UUID | None = None
    user_id: str | None = None
    since: datetime | None = None
    before: UUID | None = None
    limit: int = MAX_PAGE
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class RecoveryFailure:
    """A memory that could not be brought back, and why."""

    memory_id: UUID
    error: MemplaneError


@dataclass(frozen=True, slots=True)
class RecoveryPage:
    """What was brought back; ``next`` is where the next page begins."""

    done: Sequence[Outcome | RecoveryFailure]
    next: UUID | None = None


@dataclass(frozen=True, slots=True)
class PurgeResult:
    """How many memories were removed for good, and whether more are left of those that were asked for."""

    count: int
    more: bool


class Recovery:
    """Restoring and purging, for fully trusted keys with the scope ``admin``, as far as their agents reach."""

    def __init__(self, storage: Storage, policies: Policies, gateway: Gateway, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._gateway = gateway
        self._clock = clock

    async def restore(
        self, principal: Principal, chosen: RecoverySelection, *, once: Once[RecoveryPage] | None = None
    ) -> RecoveryPage:
        """Bring one memory back, or those of a user that were deleted or archived since a moment.

        The one takes the place of what contradicts it; several do not, and the newer ones come first. What a person
        rejected stays gone.

        Raises:
            ScopeForbidden: the key lacks ``admin``.
            TrustTooLow: it is not fully trusted.
            AgentForbidden, UserForbidden: it does not reach the agent or the user.
            NotFound: no such memory, or not the caller's.
            Conflict, ValueRejected: the one cannot be brought back.
            Invalid, LimitExceeded: it is not said what, or too much.
        """
        policy, now, scope = self._begin(principal, chosen)
        await self._gateway.raise_if_done(principal, once)
        page, more = await self._page(principal, scope, chosen)
        materials = await self._gateway.material(*(each.text for each in page))
        alone = chosen.memory_id is not None

        async def work(write: Write) -> RecoveryPage:
            done: list[Outcome | RecoveryFailure] = []
            several = None if alone else PendingWrites()
            for each, material in zip(page, materials, strict=True):
                try:
                    async with write.attempt():
                        done.append(await _restored(write, scope, each, material, several))
                except MemplaneError as error:
                    if alone or error.code not in _OF_ONE:
                        raise
                    done.append(RecoveryFailure(each.id, error))
            for user in sorted({each.user_id for each in page}):
                await write.settle(user, None)
            return RecoveryPage(done, page[-1].id if more else None)

        users = {each.user_id for each in page}
        return await self._gateway.run(principal.as_operator(), policy, now, work, users=users, once=once)

    async def purge(
        self,
        principal: Principal,
        chosen: RecoverySelection,
        *,
        early: bool = False,
        once: Once[PurgeResult] | None = None,
    ) -> PurgeResult:
        """Remove one deleted memory for good, or those of a user: what is due, or all that is deleted.

        Args:
            principal: the caller.
            chosen: which.
            early: whether what could still be restored goes too.
            once: what to keep of the outcome.

        Raises:
            ScopeForbidden, TrustTooLow, AgentForbidden, UserForbidden, Invalid, LimitExceeded: as :meth:`restore`.
            NotFound: no such memory, or not the caller's.
            Conflict: the one is not deleted, or not due.
        """
        policy, now, scope = self._begin(principal, chosen)
        await self._gateway.raise_if_done(principal, once)
        users: frozenset[str] = frozenset(() if chosen.user_id is None else (scope.filters.user_id or "",))
        if chosen.memory_id is not None:
            users = frozenset({(await self._one(principal, scope, chosen.memory_id)).user_id})

        async def work(write: Write) -> PurgeResult:
            due = None if early else now
            found = await write.uow.upkeep.lock_deleted(scope, chosen.memory_id, due, chosen.limit + 1)
            if chosen.memory_id is not None and not found:
                raise StateConflict("the memory is not deleted, or can still be restored; the latter goes with `early`")
            gone = found[: chosen.limit]
            for each in gone:
                write.record_purge(each)
            await write.uow.upkeep.purge(gone)
            for user in users:
                await write.settle(user, None)
            return PurgeResult(len(gone), len(found) > len(gone))

        return await self._gateway.run(principal.as_operator(), policy, now, work, users=users, once=once)

    def _begin(self, principal: Principal, chosen: RecoverySelection) -> tuple[Policy, datetime, Scope]:
        policy, now = self._gateway.begin(principal, KeyScope.ADMIN)
        require_full(principal, "restore and purge what is another's")
        if (chosen.memory_id is None) == (chosen.user_id is None):
            raise InvalidRequest("memory_id, user_id: name one of the two", field="memory_id")
        if not 1 <= chosen.limit <= MAX_PAGE:
            raise LimitExceeded(f"limit: {chosen.limit}, it must be 1 to {MAX_PAGE}", field="limit")
        filters = Filters(user_id=clean_id(chosen.user_id, "user_id"))
        scope = read_scope(principal, policy, reachable(principal, policy, chosen.agent), now, filters)
        whole = replace(scope, turns=False, states=tuple(State), trust_states=tuple(TrustState), expired=True)
        return policy, now, whole

    async def _page(
        self, principal: Principal, scope: Scope, chosen: RecoverySelection
    ) -> tuple[Sequence[Memory], bool]:
        if chosen.memory_id is not None:
            return [await self._one(principal, scope, chosen.memory_id)], False
        since = replace(scope.filters, updated_after=chosen.since)
        believed = tuple(each for each in TrustState if each is not TrustState.REJECTED)
        wanted = replace(scope, states=_LOST, trust_states=believed, filters=since)
        async with self._storage.reading(principal.reach) as reader:
            await require_unmerged(reader, principal, scope.filters.user_id)
            found = await reader.memories(wanted, before=chosen.before, limit=chosen.limit + 1)
        return found[: chosen.limit], len(found) > chosen.limit

    async def _one(self, principal: Principal, scope: Scope, memory_id: UUID) -> Memory:
        async with self._storage.reading(principal.reach) as reader:
            memory = await reader.whole(scope, memory_id)
        if memory is None:
            raise RecordNotFound(MISSING)
        return memory


async def _restored(
    write: Write, scope: Scope, memory: Memory, material: SearchMaterial, several: PendingWrites | None
) -> Outcome:
    now = await write.uow.memories.lock(scope, memory.id)
    if now is None:
        raise RecordNotFound(MISSING)
    lost = now.state in RESTORABLE or has_expired(now, write.now)
    if not lost or now.text != memory.text:
        raise StateConflict(f"the memory is {now.state}, or is being changed at this moment", state=now.state.value)
    return await bring_back(write, scope, now, material, several)


def reachable(principal: Principal, policy: Policy, agent: str | None) -> tuple[str, ...]:
    """What the caller may both read and write."""
    allowed = policy.allowlist(principal.act_as(agent))
    return tuple(name for name in allowed.read if name in allowed.write)
