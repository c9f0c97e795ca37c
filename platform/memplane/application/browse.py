"""Reads of single memories, of lists, and of histories."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar
from uuid import UUID

from memplane.application.gateway import clean_filters
from memplane.application.ports import Clock, Policies, Storage
from memplane.domain.errors import LimitExceeded, NotFound
from memplane.domain.history import HistoryEntry
from memplane.domain.memory import Memory
from memplane.domain.principal import KeyScope, Principal
from memplane.domain.scope import Filters, Scope, read_scope

MAX_PAGE = 200
T = TypeVar("T", Memory, HistoryEntry)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page, and where the next one begins, or ``None`` at the end."""

    items: Sequence[T]
    next: UUID | None


class Browse:
    """Reads without ranking."""

    def __init__(self, storage: Storage, policies: Policies, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
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
        speaker = principal.speak_as(agent)
        allowed = policy.readable(speaker, categories) if categories else policy.allowlist(speaker).read
        return read_scope(principal, policy, allowed, self._clock(), clean_filters(filters or Filters()))

    async def get(self, principal: Principal, memory_id: UUID, agent: str | None = None) -> Memory:
        """One memory.

        Raises:
            NotFound: absent, deleted, or not the caller's.
        """
        scope = self._scope(principal, agent)
        async with self._storage.reading(principal.tenant) as reader:
            found = (await reader.units(scope, [memory_id])).get(memory_id)
        if not isinstance(found, Memory):
            raise NotFound("no such memory")
        return found

    async def list(
        self,
        principal: Principal,
        *,
        categories: Sequence[str] = (),
        filters: Filters | None = None,
        before: UUID | None = None,
        limit: int = 50,
        agent: str | None = None,
    ) -> Page[Memory]:
        """A page of memories, newest first.

        Raises:
            CategoryForbidden: a named category is not the agent's to read.
            LimitExceeded: the page is too long.
        """
        scope = self._scope(principal, agent, categories, filters)
        async with self._storage.reading(principal.tenant) as reader:
            found = await reader.memories(scope, before=before, limit=_limit(limit) + 1)
        return _page(found, limit)

    async def history(
        self,
        principal: Principal,
        memory_id: UUID,
        *,
        before: UUID | None = None,
        limit: int = 50,
        agent: str | None = None,
    ) -> Page[HistoryEntry]:
        """A page of a memory's history, newest first, whatever state it is in.

        Raises:
            NotFound: absent, or not the caller's.
        """
        scope = self._scope(principal, agent)
        async with self._storage.reading(principal.tenant) as reader:
            found = await reader.history(scope, memory_id, before=before, limit=_limit(limit) + 1)
        if found is None:
            raise NotFound("no such memory")
        return _page([_told(entry, scope) for entry in found], limit)


def _told(entry: HistoryEntry, scope: Scope) -> HistoryEntry:
    """An entry, without the words that were written under a category that the reader may not read."""
    under = entry.meta.get("categories")
    if isinstance(under, list) and all(name in scope.categories for name in under):
        return entry
    return replace(entry, old_ref=None, new_ref=None)


def _limit(limit: int) -> int:
    if not 1 <= limit <= MAX_PAGE:
        raise LimitExceeded(f"limit: {limit}, it must be 1 to {MAX_PAGE}", field="limit")
    return limit


def _page(found: Sequence[T], limit: int) -> Page[T]:
    shown = found[:limit]
    return Page(shown, shown[-1].id if len(found) > limit else None)
