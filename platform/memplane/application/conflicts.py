"""Possible conflicts: listed, and decided on by a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from memplane.application.beside import supersede
from memplane.application.gateway import Gateway, Write, clean_id
from memplane.application.once import Once
from memplane.application.placing import SUPERSEDES
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.records import Edge
from memplane.application.restoring import active
from memplane.application.targets import require_full, require_weight, writable_scope
from memplane.domain.conflicts import ConflictVerdict
from memplane.domain.errors import LimitExceeded, NotFound
from memplane.domain.history import HistoryEvent
from memplane.domain.memory import Memory
from memplane.domain.principal import KeyScope, Principal
from memplane.domain.reconciling import said_at
from memplane.domain.scope import Filters, Scope, read_scope

MAX_PAGE = 200
MISSING = "no such conflict"
_DECIDED = "decided"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two memories of one user that may contradict each other.

    Attributes:
        id: of the relation between them.
        noted_at: when it was noted.
        older: the one whose fact is older, by its own time.
        newer: the other.
    """

    id: UUID
    noted_at: datetime
    older: Memory
    newer: Memory


@dataclass(frozen=True, slots=True)
class Settled:
    """What a verdict did.

    Attributes:
        outcome: ``kept_both``, or ``superseded``.
        id: of the conflict.
        kept: the memories that hold.
        superseded: the memory that does not hold any longer; ``None`` when both hold.
        rev: the revision of the thread of the memory that was superseded, if it has one.
    """

    outcome: Literal["kept_both", "superseded"]
    id: UUID
    kept: tuple[UUID, ...]
    superseded: UUID | None = None
    rev: int | None = None


class Conflicts:
    """What the rules suspect and cannot prove. Both memories stay until a person decides."""

    def __init__(self, storage: Storage, policies: Policies, gateway: Gateway, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._gateway = gateway
        self._clock = clock

    async def list(
        self, principal: Principal, user_id: str | None = None, *, before: UUID | None = None, limit: int = 50,
        agent: str | None = None,
    ) -> tuple[Sequence[Conflict], UUID | None]:  # fmt: skip
        """A page of conflicts, newest first, and where the next one begins; both memories are the agent's to read.

        Raises:
            ScopeForbidden: the key lacks ``memory:read``.
            UserForbidden: it may not touch the user.
            LimitExceeded: the page is too long.
        """
        principal.require(KeyScope.READ)
        if not 1 <= limit <= MAX_PAGE:
            raise LimitExceeded(f"limit: {limit}, it must be 1 to {MAX_PAGE}", field="limit")
        policy = self._policies.current
        allowed = policy.allowlist(principal.speak_as(agent)).read
        filters = Filters(user_id=clean_id(user_id, "user_id"))
        scope = read_scope(principal, policy, allowed, self._clock(), filters).as_of(None, None)
        async with self._storage.reading(principal.reach) as reader:
            found = await reader.conflicts(scope, before=before, limit=limit + 1)
            ids = sorted({each for pair in found[:limit] for each in (pair.from_id, pair.to_id)})
            units = await reader.units(scope, ids) if ids else {}
        shown = []
        for pair in found[:limit]:
            one, other = units.get(pair.from_id), units.get(pair.to_id)
            if isinstance(one, Memory) and isinstance(other, Memory):
                older, newer = _by_time(one, other)
                shown.append(Conflict(pair.id, pair.noted_at, older, newer))
        return shown, found[limit - 1].id if len(found) > limit else None

    async def decide(
        self, principal: Principal, conflict_id: UUID, verdict: ConflictVerdict, agent: str | None = None,
        *, once: Once[Settled] | None = None,
    ) -> Settled:  # fmt: skip
        """Keep both memories, or let one of them be a thing of the past. The other can be restored.

        Raises:
            ScopeForbidden: the key lacks ``memory:write``.
            TrustTooLow: it is not fully trusted.
            NotFound: no such conflict, it was decided on, or the agent may not read and write both memories.
        """
        policy, now = self._gateway.begin(principal)
        require_full(principal, "decide on conflicts")
        speaker = principal.speak_as(agent)
        await self._gateway.replayed(principal, once)

        async def work(write: Write) -> Settled:
            older, newer = await _pair(write, writable_scope(write, speaker), conflict_id)
            return await _settled(write, conflict_id, verdict, older, newer)

        return await self._gateway.run(principal, policy, now, work, once=once)


async def _pair(write: Write, scope: Scope, conflict_id: UUID) -> tuple[Memory, Memory]:
    """Both memories, locked, the older one first.

    Raises:
        NotFound: there is no such conflict, or one of them is not the caller's.
    """
    ends = await write.uow.graph.conflict(conflict_id)
    seen = None if ends is None else await write.uow.memories.find(scope, ends[0])
    if ends is None or seen is None:
        raise NotFound(MISSING)
    await write.uow.lock_users([seen.user_id])
    if await write.uow.graph.conflict(conflict_id) != ends:
        raise NotFound(MISSING)
    both = await active(write, scope, ends)
    if len(both) < len(ends):
        raise NotFound(MISSING)
    return _by_time(*both)


async def _settled(
    write: Write, conflict_id: UUID, verdict: ConflictVerdict, older: Memory, newer: Memory
) -> Settled:  # fmt: skip
    """Carry out a verdict on two locked memories."""
    write.about([older.user_id])
    if verdict is ConflictVerdict.KEEP_BOTH:
        await write.uow.graph.reconcile(newer.id, older.id, write.now)
        for one, other in ((older, newer), (newer, older)):
            meta = {"verdict": verdict.value, "compatible_with": str(other.id)}
            write.changed(HistoryEvent.LINK, None, one, one, meta)
        rev = await write.settle(older.user_id, None)
        return Settled("kept_both", conflict_id, (older.id, newer.id), None, rev)
    gone, kept = (older, newer) if verdict is ConflictVerdict.NEWER else (newer, older)
    require_weight(write.principal, gone)
    await write.uow.graph.unlink(conflict_id)
    await supersede(write, gone, kept, {"verdict": _DECIDED, "conflict": verdict.value})
    await write.uow.graph.link([Edge(kept.id, gone.id, 1.0, SUPERSEDES)], write.now)
    rev = await write.settle(gone.user_id, gone.thread_id)
    return Settled("superseded", conflict_id, (kept.id,), gone.id, rev)


def _by_time(one: Memory, other: Memory) -> tuple[Memory, Memory]:
    """The older fact first."""
    first, second = sorted((one, other), key=lambda each: (said_at(each), each.id))
    return first, second
