"""The write gateway.

Every mutation, whichever way it came, passes here, in one transaction with its history, change log, revision and
events.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from memplane.application.embedding_guard import EmbeddingGuard
from memplane.application.ports import (
    ChangeEntry,
    Clock,
    Embedder,
    OperationalEvent,
    Policies,
    SearchMaterial,
    Storage,
    UnitOfWork,
)
from memplane.domain.delta import ChangeEvent
from memplane.domain.errors import LimitExceeded
from memplane.domain.history import HistoryEntry, HistoryEvent
from memplane.domain.memory import Memory, MemoryText, new_id
from memplane.domain.policy import Policy
from memplane.domain.principal import KeyScope, Principal
from memplane.domain.scope import Filters
from memplane.domain.text import normalise, terms

T = TypeVar("T")
MAX_ID_CHARS = 255
MAX_ID_BYTES = 800
"""Three such names and a tenant fit one key of a B-tree."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write under way: who, under which policy, when, and the open transaction."""

    principal: Principal
    policy: Policy
    now: datetime
    uow: UnitOfWork

    async def changed(
        self,
        event: HistoryEvent,
        change: ChangeEvent | None,
        memory: Memory,
        before: Memory | None = None,
        meta: dict[str, object] | None = None,
    ) -> int | None:
        """Record a change of a memory in history, change log and events.

        Returns:
            The thread's new revision; its present one where the change is not one that a thread is told; ``None``
            for a memory without a thread.
        """
        entry = HistoryEntry(
            id=new_id(),
            memory_id=memory.id,
            event=event,
            actor=self.principal.actor,
            policy_hash=self.policy.digest,
            ts=self.now,
            old_ref=before.text.content if before else None,
            new_ref=memory.text.content,
            meta=(meta or {}) | _categories(memory, before),
        )
        await self.uow.journal.record([entry])
        await self.uow.journal.events([self._event(change.value if change else event.value.lower(), memory)])
        if memory.thread_id is None:
            return None
        if change is None:
            return await self.uow.threads.revision(memory.user_id, memory.thread_id)
        place = await self.uow.threads.advance(memory.user_id, memory.thread_id, self.now, revs=1)
        await self.uow.threads.log(
            [ChangeEntry(memory.user_id, memory.thread_id, place.rev, memory.id, change, memory.category, self.now)]
        )
        return place.rev

    def _event(self, op: str, memory: Memory) -> OperationalEvent:
        return OperationalEvent(
            node="hotpath",
            op=op,
            status="ok",
            ts=self.now,
            user_id=memory.user_id,
            thread_id=memory.thread_id,
            memory_id=memory.id,
            category=memory.category,
        )


def _categories(memory: Memory, before: Memory | None) -> dict[str, object]:
    """The categories that an entry's words were written under: who reads them must be allowed to read each."""
    found = {memory.category} | ({before.category} if before else set())
    return {"categories": sorted(found)}


class Gateway:
    """What every write shares: the permission to write at all, search material, and the transaction."""

    def __init__(
        self, storage: Storage, policies: Policies, embedder: Embedder, guard: EmbeddingGuard, clock: Clock
    ) -> None:
        self._storage = storage
        self._guard = guard
        self._policies = policies
        self._embedder = embedder
        self._clock = clock

    def begin(self, principal: Principal) -> tuple[Policy, datetime]:
        """The policy and the moment of a write, once the key is allowed to write.

        Raises:
            ScopeForbidden: the key lacks ``memory:write``.
            VisibilityForbidden: its trust level cannot write.
        """
        principal.require(KeyScope.WRITE)
        policy = self._policies.current
        policy.write_visibility(principal.trust, None)
        return policy, self._clock()

    async def material(self, *texts: tuple[str, str]) -> list[SearchMaterial]:
        """Search material for texts, each as (words to find it by, words that carry its meaning).

        Computed before a transaction opens: no connection is held while a model works.
        """
        vectors = await self._embedder.embed([meaning for _, meaning in texts])
        found = await asyncio.to_thread(lambda: [terms(words) for words, _ in texts])
        return [SearchMaterial(*both) for both in zip(found, vectors, strict=True)]

    async def material_of(self, text: MemoryText) -> SearchMaterial:
        """Search material for a memory."""
        (material,) = await self.material((text.searchable(), text.embeddable()))
        return material

    async def run(
        self, principal: Principal, policy: Policy, now: datetime, work: Callable[[Write], Awaitable[T]]
    ) -> T:
        """Run the work in one transaction, again when the database asks for a retry."""
        await self._guard.check(principal.tenant)

        async def attempt(uow: UnitOfWork) -> T:
            return await work(Write(principal, policy, now, uow))

        return await self._storage.write(principal.tenant, attempt)


def clean_id(value: str | None, field: str) -> str | None:
    """A caller's own name for a user, thread, agent, run, actor or record: one line, at most 255 characters.

    Raises:
        InvalidText: it is empty or cannot be stored.
        LimitExceeded: it is too long.
    """
    if value is None:
        return None
    clean = " ".join(normalise(value, field).split())
    if len(clean) > MAX_ID_CHARS:
        raise LimitExceeded(f"{field}: {len(clean)} characters, at most {MAX_ID_CHARS}", field=field)
    if (size := len(clean.encode())) > MAX_ID_BYTES:
        raise LimitExceeded(f"{field}: {size} bytes, at most {MAX_ID_BYTES}", field=field)
    return clean


def clean_filters(filters: Filters) -> Filters:
    """Filters whose names are normalised as they were when they were stored, so that they compare equal.

    Raises:
        InvalidText: a name is empty or cannot be stored.
        LimitExceeded: a name is too long.
    """
    return replace(
        filters,
        user_id=clean_id(filters.user_id, "user_id"),
        agent_id=clean_id(filters.agent_id, "agent_id"),
        run_id=clean_id(filters.run_id, "run_id"),
        actor_id=clean_id(filters.actor_id, "actor_id"),
        thread_id=clean_id(filters.thread_id, "thread_id"),
        entity=clean_id(filters.entity, "entity"),
        tags=tuple(normalise(tag, "tags") for tag in filters.tags),
    )
