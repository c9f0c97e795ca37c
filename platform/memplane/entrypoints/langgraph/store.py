"""LangGraph's long-term memory on Memplane: a `BaseStore` whose items are memories."""

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any, Self

from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
)
from langgraph.store.base import Item as StoreItem
from langgraph.store.memory import _compare_values, _does_match

from memplane.application.memories.item_store import Below, Items, NewItem, Search
from memplane.domain.errors import InvalidRequest
from memplane.domain.identity.principal import Principal
from memplane.domain.memory.items import Address, NamespacedItem, checked_address
from memplane.entrypoints.langgraph.bridge import Bridge, Caller, application_of, in_thread

Namespace = tuple[str, ...]
_PLACE = ("the user", "the category")


@dataclass(frozen=True, slots=True)
class Ground:
    """Who uses a store, and where.

    Attributes:
        agent: the agent to act for; ``None`` for the key's own.
        root: what every namespace of the store begins with, which a graph neither writes nor sees: nothing, the user,
            or the user and the category.
    """

    agent: str | None = None
    root: Namespace = ()


class MemplaneStore(BaseStore):
    """LangGraph's store on Memplane: ``builder.compile(store=store)``.

    A namespace is a user, a category of the policy, and whatever a graph likes: ``("ana", "tasks", "today")``. A store
    that is opened for a user, or for a user and a category, has namespaces without them. Each item is one memory: the
    gateway screens it, `memory.query` finds it by its text, and `get` gives its value back as it was put.

    Every method raises `MemplaneError`; its ``code`` says exactly what: ``category_forbidden`` where the agent's
    allowlist does not have the category.

    Args:
        items: the use cases, of an application that is open in the running event loop.
        caller: who calls, or what finds out at every call.
        ground: the agent to act for, and what all namespaces begin with.
        ttl: how long items live unless `put` says it, and whether reading lets them live on.
    """

    supports_ttl = True
    __slots__ = ("_bridge", "_caller", "_ground", "_items", "ttl_config")

    def __init__(
        self, items: Items, caller: Principal | Caller, ground: Ground | None = None, *, ttl: TTLConfig | None = None
    ) -> None:
        self._items = items
        self._caller = caller
        self._ground = ground or Ground()
        self._bridge = Bridge()
        self.ttl_config = ttl

    @classmethod
    @asynccontextmanager
    async def open(  # noqa: PLR0913 - where, who, and what a store may be opened for
        cls,
        database: str,
        *,
        key: str | None = None,
        principal: Principal | None = None,
        agent: str | None = None,
        user_id: str | None = None,
        category: str | None = None,
        ttl: TTLConfig | None = None,
    ) -> AsyncIterator[Self]:
        """A store on a database: ``postgresql://…`` as the application's role, or the path of a SQLite file.

        Args:
            database: where it is.
            key: an API key with the scopes `memory:read` and `memory:write`; looked up at every call.
            principal: who calls, for code that has authenticated the caller itself; instead of a key.
            agent: the agent to act for; the key's own unless it may act for others.
            user_id: the user, whom namespaces then leave out; other users are refused.
            category: the category, which they leave out too; with a user alone.
            ttl: how long items live unless `put` says it, and whether reading lets them live on.

        Raises:
            Invalid: neither a key nor a principal is given, or both are; or a category without a user.
            Unauthenticated: the key does not hold.
            StorageUnavailable, SchemaMismatch: the database cannot be used.
        """
        if category is not None and user_id is None:
            raise InvalidRequest("a store that is opened for a category is opened for a user too", field="user_id")
        root = tuple(each for each in (user_id, category) if each is not None)
        async with application_of(database, key, principal) as (application, caller):
            yield cls(application.items, caller, Ground(agent, root), ttl=ttl)

    @classmethod
    @contextmanager
    def open_sync(cls, database: str, **given: Any) -> Iterator[Self]:  # noqa: ANN401 - the arguments of `open`
        """The same for code without an event loop: one thread with a loop does the work."""
        with in_thread(cls.open(database, **given), "memplane-store") as store:
            yield store

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """`abatch`, waited for."""
        return self._bridge.wait_for(self._batch(tuple(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several operations: what they read is as it was before what they write, of which the last counts.

        Raises:
            MemplaneError: one of them is refused; those before it are done.
        """
        return await self._bridge.there(self._batch(tuple(ops)))

    async def _batch(self, ops: Collection[Op]) -> list[Result]:
        principal = self._caller if isinstance(self._caller, Principal) else await self._caller()
        if self._ground.root:
            principal = replace(principal, users=frozenset({principal.touch(self._ground.root[0])}))
        results: list[Result] = []
        puts: dict[tuple[Namespace, str], PutOp] = {}
        for op in ops:
            match op:
                case GetOp():
                    results.append(await self._get(principal, op))
                case SearchOp():
                    results.append(await self._search(principal, op))
                case ListNamespacesOp():
                    results.append(await self._list(principal, op))
                case PutOp():
                    puts.pop((op.namespace, op.key), None)
                    puts[op.namespace, op.key] = op
                    results.append(None)
                case _:
                    raise InvalidRequest(f"{type(op).__name__} is no operation of a store")
        for op in puts.values():
            await self._put(principal, op)
        return results

    async def _get(self, principal: Principal, op: GetOp) -> StoreItem | None:
        address = self._address(op.namespace, op.key)
        found = await self._items.get(principal, address, self._ground.agent, refresh=op.refresh_ttl)
        return None if found is None else StoreItem(**self._told(found))

    async def _search(self, principal: Principal, op: SearchOp) -> list[SearchItem]:
        if min(op.limit, op.offset) < 0:
            raise InvalidRequest("limit, offset: neither is below zero")
        matches = partial(_matches, op.filter) if op.filter else None
        search = Search(self._below(op.namespace_prefix), matches, op.query or None, op.limit, op.offset)
        found = await self._items.search(principal, search, self._ground.agent, refresh=op.refresh_ttl)
        return [SearchItem(**self._told(item), score=score) for item, score in found]

    async def _list(self, principal: Principal, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        found = await self._items.namespaces(principal, self._below(_shared(conditions)), self._ground.agent)
        seen = (each[len(self._ground.root) :] for each in found)
        meant = [each for each in seen if all(_does_match(condition, each) for condition in conditions)]
        if op.max_depth is not None:
            meant = sorted({each[: op.max_depth] for each in meant})
        return meant[op.offset : op.offset + op.limit]

    async def _put(self, principal: Principal, op: PutOp) -> None:
        address = self._address(op.namespace, op.key)
        if op.value is None:
            await self._items.delete(principal, address, self._ground.agent)
            return
        lives = None if op.ttl is None else timedelta(minutes=op.ttl)
        new = NewItem(address, op.value, _texts(op), lives)
        await self._items.put(principal, new, self._ground.agent)

    def _address(self, namespace: Namespace, key: str) -> Address:
        whole = self._whole(namespace)
        if len(whole) < len(_PLACE):
            missing = " and ".join(_PLACE[len(whole) :])
            raise InvalidNamespaceError(f"the namespace {namespace} lacks {missing}: name them, or open the store so")
        return Address(whole[0], whole[1], whole[2:], key)

    def _below(self, prefix: Namespace) -> Below:
        whole = self._whole(prefix)
        user, category = (*whole[:2], None, None)[:2]
        found = Below(user, category, whole[2:])
        checked_address(Address("", "", found.labels, ""))
        return found

    def _whole(self, namespace: Namespace) -> Namespace:
        if not all(isinstance(each, str) for each in namespace):
            raise InvalidNamespaceError(f"a label of {namespace} is no text")
        return (*self._ground.root, *namespace)

    def _told(self, item: NamespacedItem) -> dict[str, Any]:
        """An item as LangGraph has it."""
        address, memory = item.address, item.memory
        whole = (address.user_id, address.category, *address.labels)
        return {
            "namespace": whole[len(self._ground.root) :],
            "key": address.key,
            "value": item.value,
            "created_at": memory.recorded_at,
            "updated_at": memory.updated_at,
        }


def _matches(filters: Mapping[str, Any], value: Mapping[str, object]) -> bool:
    """Whether a value passes a filter, by the very rules of LangGraph's own store.

    Raises:
        Invalid: there is no such operator.
    """
    try:
        return all(_compare_values(value.get(key), wanted) for key, wanted in filters.items())
    except (TypeError, ValueError) as error:
        if str(error).startswith("Unsupported operator"):
            raise InvalidRequest(f"filter: {error}", field="filter") from error
        return False  # what is no number is neither greater nor less


def _shared(conditions: Iterable[MatchCondition]) -> Namespace:
    """What every namespace that meets the conditions begins with."""
    longest: Namespace = ()
    for condition in conditions:
        if condition.match_type == "prefix":
            first = tuple(condition.path)
            exact = first[: first.index("*")] if "*" in first else first
            longest = max(longest, exact, key=len)
    return longest


def _texts(op: PutOp) -> list[str] | None:
    """What of a value is to be found by its text; ``None`` for all of it."""
    if op.index is None or op.value is None:
        return None
    if op.index is False:
        return []
    return [text for path in op.index for text in get_text_at_path(dict(op.value), tokenize_path(path))]
