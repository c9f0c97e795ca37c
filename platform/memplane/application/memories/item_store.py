"""A key-value store over the memory: each item is one memory, which the gateway writes and every read finds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from memplane.application.limits.offload import in_thread
from memplane.application.memories.authorization import lock_target
from memplane.application.memories.gateway import Gateway, Write, clean_id
from memplane.application.memories.placement import Outcome
from memplane.application.memories.restoration import store_change
from memplane.application.memories.service import NewMemory, Remember
from memplane.application.ports import TenantReader
from memplane.application.recall.query_analysis import QueryContext
from memplane.application.recall.ranking import By, rank
from memplane.application.records import Access, OperationalEvent
from memplane.application.users.merged_users import require_unmerged
from memplane.domain.errors import (
    ConsentRequired,
    InvalidRequest,
    PersonalDataRefused,
    RecordNotFound,
    StateConflict,
    VersionMismatch,
)
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.items import (
    Address,
    ItemMemory,
    NamespacedItem,
    attributes_of,
    checked_address,
    item_of,
    words_of,
)
from memplane.domain.memory.memory import Memory, MemoryType, State
from memplane.domain.memory.scope import Filters, Scope, read_scope
from memplane.domain.policy.policy import Policy
from memplane.domain.privacy.screening import screened_values

MAX_LIFE = timedelta(days=36_500)
_PAGE = 500
_TRIES = 20
Matches = Callable[[Mapping[str, object]], bool]


@dataclass(frozen=True, slots=True)
class NewItem:
    """A value to put.

    Attributes:
        address: where.
        value: JSON, of at most seven levels.
        texts: what of it a question finds; ``None`` for all of it.
        lives: how long after a read or a write it ends; ``None`` for never.
    """

    address: Address
    value: Mapping[str, object]
    texts: Sequence[str] | None = None
    lives: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Below:
    """A part of the store: everything that the caller may read, of a user, a category, under labels."""

    user_id: str | None = None
    category: str | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for in a part of the store.

    Attributes:
        below: the part.
        matches: whether a value is one of those that are meant.
        query: by what they are ranked; ``None`` for the order in which they were put, namespace by namespace.
        limit: the most.
        offset: how many are left out at the beginning.
    """

    below: Below
    matches: Matches | None = None
    query: str | None = None
    limit: int = 10
    offset: int = 0


class Items:
    """The use cases of the store, under the allowlist of the agent that asks."""

    def __init__(self, asking: QueryContext, gateway: Gateway, remember: Remember) -> None:
        self._asking = asking
        self._gateway = gateway
        self._remember = remember

    async def put(self, principal: Principal, new: NewItem, agent: str | None = None) -> None:
        """Store a value under its address, instead of the one that is there.

        Raises:
            CategoryForbidden, UserForbidden, VisibilityForbidden, ScopeForbidden, TrustTooLow: not allowed.
            Invalid, InvalidText, LimitExceeded: it cannot be kept.
            PersonalDataRefused, ValueRejected: the policy, or a person, does not want it.
            ConsentRequired: it would change a sensitive field, which now waits for consent.
            Conflict: the value was overruled since, or the address is taken by what the caller may not see.
        """
        policy, now = self._gateway.begin(principal)
        speaker = principal.speak_as(agent)
        address = self._writable(principal, policy, speaker, new.address)
        if new.lives is not None and not timedelta(0) < new.lives <= MAX_LIFE:
            raise InvalidRequest("ttl: more than nothing, and at most a hundred years", field="ttl")
        attributes = attributes_of(address, new.value, new.lives)
        changes: dict[str, object] = {
            "attributes": attributes, "expires_at": None if new.lives is None else now + new.lives,
        }  # fmt: skip
        text = await in_thread(words_of, address, new.value, new.texts)
        for _ in range(_TRIES):
            before = await self._known(principal, policy, address)
            if before is None:
                memory = NewMemory(
                    address.user_id, address.category, text, MemoryType.OBSERVATION, external_id=address.name,
                    expires_at=None if new.lives is None else now + new.lives, attributes=attributes,
                )  # fmt: skip
                if _done(await self._remember.create(principal, memory, agent)):
                    return
                continue  # somebody else was faster
            policy.readable(speaker, (address.category,))
            said = {"content": text.content, "title": text.title, "narrative": text.narrative}
            try:
                _done(
                    await self._remember.update(
                        principal, before.id, said | changes, version=before.version, agent=agent
                    )
                )
            except (VersionMismatch, RecordNotFound):
                continue
            return
        raise StateConflict("the item is being changed at this moment; try again")

    async def delete(self, principal: Principal, address: Address, agent: str | None = None) -> None:
        """Take an item out of the store; its memory can be restored until its purge. One that is not there is no error.

        Raises:
            CategoryForbidden, UserForbidden, ScopeForbidden, TrustTooLow: not allowed.
        """
        policy, _ = self._gateway.begin(principal)
        speaker = principal.speak_as(agent)
        address = self._writable(principal, policy, speaker, address)
        there = await self._known(principal, policy, address)
        if there is None:
            return
        policy.readable(speaker, (address.category,))
        try:
            await self._remember.delete(principal, there.id, agent=agent)
        except (RecordNotFound, StateConflict):  # somebody else was faster
            if await self._known(principal, policy, address) is not None:
                raise

    async def get(
        self, principal: Principal, address: Address, agent: str | None = None, *, refresh: bool = True
    ) -> NamespacedItem | None:
        """The item at an address; ``None`` when there is none.

        Args:
            principal: the caller.
            address: where.
            agent: the agent to act for, or none for the key's own.
            refresh: whether an item that would end lives on from now.

        Raises:
            CategoryForbidden, UserForbidden, ScopeForbidden: not allowed.
        """
        address = checked_address(address)
        scope = self._scope(principal, Below(address.user_id, address.category), agent)
        async with self._asking.storage.reading(principal.reach) as reader:
            found = [
                item for memory in await reader.memories_by_name(scope, [address.name]) if (item := item_of(memory))
            ]
            if not found:
                await require_unmerged(reader, principal, scope.filters.user_id)
        await self._read(principal, scope, found, agent, refresh=refresh)
        return found[0] if found else None

    async def search(
        self, principal: Principal, search: Search, agent: str | None = None, *, refresh: bool = True
    ) -> list[tuple[NamespacedItem, float | None]]:
        """Items of a part of the store, with their scores where a query ranks them.

        Raises:
            CategoryForbidden, UserForbidden, ScopeForbidden: not allowed.
            InvalidText: the query cannot be read.
        """
        scope = self._scope(principal, search.below, agent)
        profile, model = self._asking.policies.current.ranking(None), self._asking.embedders.own.name
        query, asked = await self._asking.asked_of(search.query, profile, principal, scope)
        await self._asking.guard.check(principal.tenant)
        found: list[tuple[NamespacedItem, float | None]]
        async with self._asking.storage.reading(principal.reach) as reader:
            ids = _by_namespace(await reader.items(scope, search.below.labels))
            if asked.wordless:
                found = [(item, None) for item in await _page(reader, scope, ids, search)]
            else:
                among = [item.memory.id for item in await _matching(reader, scope, ids, search.matches)]
                limit = search.offset + search.limit
                best = (await rank(reader, scope, query, By(profile, model, asked), limit, among=among)).standings
                shown = best[search.offset : limit]
                items = await _whole(reader, scope, [each.id for each in shown])
                found = [(items[each.id], each.score) for each in shown if each.id in items]
            if not found:
                await require_unmerged(reader, principal, scope.filters.user_id)
        await self._read(principal, scope, [item for item, _ in found], agent, refresh=refresh)
        return found

    async def namespaces(self, principal: Principal, below: Below, agent: str | None = None) -> list[tuple[str, ...]]:
        """The namespaces of a part of the store that hold items: user, category and labels; in order.

        Raises:
            CategoryForbidden, UserForbidden, ScopeForbidden: not allowed.
        """
        scope = self._scope(principal, below, agent)
        async with self._asking.storage.reading(principal.reach) as reader:
            found = await reader.items(scope, below.labels)
            if not found:
                await require_unmerged(reader, principal, scope.filters.user_id)
        return sorted({each.namespace for each in found})

    def _scope(self, principal: Principal, below: Below, agent: str | None) -> Scope:
        principal.require(KeyScope.READ)
        policy, speaker = self._asking.policies.current, principal.speak_as(agent)
        one = () if below.category is None else (below.category,)
        allowed = policy.readable(speaker, one) if one else policy.allowlist(speaker).read
        filters = Filters(user_id=_exact(below.user_id), types=(MemoryType.OBSERVATION,))
        return read_scope(principal, policy, allowed, self._asking.clock(), filters)

    def _writable(self, principal: Principal, policy: Policy, speaker: str, address: Address) -> Address:
        policy.check_write(speaker, address.category)
        principal.touch(_exact(address.user_id) or "")
        place: dict[str, object] = {"namespace": list(address.labels), "key": address.key}
        if screened_values(place, policy.category(address.category).pii, policy.find_pii) != place:
            raise PersonalDataRefused(
                "namespace, key: hold what the policy marks out in this category; leave it out", field="key"
            )
        return checked_address(address)

    async def _known(self, principal: Principal, policy: Policy, address: Address) -> Memory | None:
        """The memory of an item that the caller may write, whether the agent reads its category or not."""
        filters = Filters(user_id=address.user_id)
        scope = read_scope(principal, policy, (address.category,), self._asking.clock(), filters)
        async with self._asking.storage.reading(principal.reach) as reader:
            return next(iter(await reader.memories_by_name(scope, [address.name])), None)

    async def _read(
        self, principal: Principal, scope: Scope, found: Sequence[NamespacedItem], agent: str | None, *, refresh: bool
    ) -> None:
        """Count items as read, and let those live on that end some time after the last read."""
        event = OperationalEvent("context", "search", "ok", scope.now, scope.filters.user_id)
        self._asking.accesses.note(Access(principal.tenant, tuple(item.memory.id for item in found), event))
        named = scope.filters.user_id
        self._asking.activity.note_read(
            principal, {item.memory.user_id for item in found} if named is None else {named}
        )
        speaker = principal.speak_as(agent)
        writable = self._asking.policies.current.allowlist(speaker).write
        if not refresh or KeyScope.WRITE not in principal.scopes:
            return
        for item in found:
            end = item.end_after(scope.now)
            if end is not None and item.address.category in writable:
                await self._live_on(principal, speaker, item)

    async def _live_on(self, principal: Principal, speaker: str, item: NamespacedItem) -> None:
        policy, now = self._gateway.begin(principal)

        async def work(write: Write) -> Outcome | None:
            try:
                memory = await lock_target(write, speaker, item.memory.id)
            except RecordNotFound:  # deleted since
                return None
            end = replace(item, memory=memory).end_after(now)
            if end is None:
                return Outcome("unchanged", memory)
            done = await store_change(
                write, memory, replace(memory, expires_at=end), HistoryEvent.TTL, until=end.isoformat()
            )
            await write.settle(memory.user_id, memory.thread_id)
            return done

        await self._gateway.run(principal, policy, now, work, users=[item.memory.user_id])


def _done(outcome: Outcome) -> bool:
    """Whether a write of an item has stored it.

    Raises:
        ConsentRequired: it waits for a person.
        Conflict: it was overruled since.
    """
    if outcome.proposal is not None:
        raise ConsentRequired(
            "value: would change a sensitive field of the user; it waits for consent", proposal=str(outcome.proposal)
        )
    if outcome.memory.state is not State.ACTIVE:
        raise StateConflict("value: was corrected or retracted since; put what holds now", field="value")
    return outcome.outcome != "duplicate"


def _exact(user_id: str | None) -> str | None:
    """A user's name as it is stored; another spelling of it would be another namespace.

    Raises:
        Invalid: it is spelled otherwise.
    """
    if user_id is not None and clean_id(user_id, "user_id") != user_id:
        raise InvalidRequest("user_id: has spaces or characters that names are stored without", field="user_id")
    return user_id


def _by_namespace(found: Sequence[ItemMemory]) -> list[UUID]:
    """Ids in the order in which they were put, namespace by namespace."""
    order: dict[tuple[str, ...], list[UUID]] = {}
    for each in found:
        order.setdefault(each.namespace, []).append(each.memory_id)
    return [each for ids in order.values() for each in ids]


async def _page(reader: TenantReader, scope: Scope, ids: Sequence[UUID], search: Search) -> list[NamespacedItem]:
    """The items that are asked for; no more are read than it takes to find them."""
    last = search.offset + search.limit
    found: list[NamespacedItem] = []
    for start in range(0, len(ids), _PAGE):
        if len(found) >= last:
            break
        found += await _matching(reader, scope, ids[start : start + _PAGE], search.matches)
    return found[search.offset : last]


async def _matching(
    reader: TenantReader, scope: Scope, ids: Sequence[UUID], matches: Matches | None
) -> list[NamespacedItem]:
    found = await _whole(reader, scope, ids)
    there = (found[each] for each in ids if each in found)
    return [item for item in there if matches is None or matches(item.value)]


async def _whole(reader: TenantReader, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, NamespacedItem]:
    found: dict[UUID, NamespacedItem] = {}
    for start in range(0, len(ids), _PAGE):
        for each, unit in (await reader.units(scope, ids[start : start + _PAGE])).items():
            if isinstance(unit, Memory) and (item := item_of(unit)):
                found[each] = item
    return found
