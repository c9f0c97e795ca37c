"""Possible conflicts: listed, decided on by a person, and judged again when the words of a side change."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from memplane.application.limits.idempotency import Once
from memplane.application.memories.authorization import has_expired, require_full, require_weight, writable_scope
from memplane.application.memories.browse import Conflicting, conflicting
from memplane.application.memories.gateway import Gateway, Write, clean_id
from memplane.application.memories.placement import SUPERSEDES
from memplane.application.memories.supersession import PendingWrites, neighbours, supersede, suspect
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import Edge
from memplane.application.users.merged_users import require_unmerged
from memplane.domain.errors import AlreadyDecided, LimitExceeded, RecordNotFound, StateConflict
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.language.comparison.comparison import ComparisonVerdict, ParsedStatement, compare
from memplane.domain.memory.conflict_verdicts import ConflictVerdict
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import RETRIEVABLE_TRUST, Memory, State
from memplane.domain.memory.scope import Filters, Scope, read_scope
from memplane.domain.memory.write_decisions import said_at

MAX_PAGE = 200
MISSING = "no such conflict"
_DECIDED = "decided"
_STATES = {State.SUPERSEDED: "superseded", State.ARCHIVED: "archived", State.SOFT_DELETED: "deleted"}


@dataclass(frozen=True, slots=True)
class PossibleConflict:
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
class ConflictPage:
    """A page of conflicts, where the next one begins, and all that their memories may contradict."""

    items: Sequence[PossibleConflict]
    next: UUID | None
    conflicting: Conflicting


@dataclass(frozen=True, slots=True)
class DecidedConflict:
    """What a verdict did.

    Attributes:
        outcome: ``kept_both``, ``superseded``, or ``unchanged`` when the same was decided before.
        id: of the conflict.
        kept: the memories that hold.
        superseded: the memory that does not hold any longer; ``None`` when both hold.
        rev: the revision of the thread of the memory that was superseded, if it has one.
    """

    outcome: Literal["kept_both", "superseded", "unchanged"]
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
    ) -> ConflictPage:  # fmt: skip
        """A page of open conflicts, newest first; both memories are the agent's to read.

        Raises:
            ScopeForbidden: the key lacks ``memory:read``.
            UserForbidden: it may not touch the user.
            LimitExceeded: the page is too long.
        """
        principal.require(KeyScope.READ)
        if not 1 <= limit <= MAX_PAGE:
            raise LimitExceeded(f"limit: {limit}, it must be 1 to {MAX_PAGE}", field="limit")
        policy = self._policies.current
        allowed = policy.allowlist(principal.act_as(agent)).read
        filters = Filters(user_id=clean_id(user_id, "user_id"))
        scope = read_scope(principal, policy, allowed, self._clock(), filters).as_of(None, None)
        async with self._storage.reading(principal.reach) as reader:
            await require_unmerged(reader, principal, scope.filters.user_id)
            found = await reader.conflicts(scope, before=before, limit=limit + 1)
            ids = sorted({each for pair in found[:limit] for each in (pair.from_id, pair.to_id)})
            units = await reader.units(scope, ids) if ids else {}
            memories = [each for each in units.values() if isinstance(each, Memory)]
            marks = await conflicting(reader, scope, memories)
        shown = []
        for pair in found[:limit]:
            one, other = units.get(pair.from_id), units.get(pair.to_id)
            if isinstance(one, Memory) and isinstance(other, Memory):
                older, newer = _by_time(one, other)
                shown.append(PossibleConflict(pair.id, pair.noted_at, older, newer))
        return ConflictPage(shown, found[limit - 1].id if len(found) > limit else None, marks)

    async def decide(
        self, principal: Principal, conflict_id: UUID, verdict: ConflictVerdict, agent: str | None = None,
        *, once: Once[DecidedConflict] | None = None,
    ) -> DecidedConflict:  # fmt: skip
        """Keep both memories, or supersede one of them. It can be restored: then both hold.

        Raises:
            ScopeForbidden: the key lacks ``memory:write``.
            TrustTooLow: it is not fully trusted.
            NotFound: no such conflict, or the agent may not read and write both memories.
            AlreadyDecided: another verdict was given before.
            Conflict: one of the memories is not active any more.
        """
        policy, now = self._gateway.begin(principal)
        require_full(principal, "decide on conflicts")
        speaker = principal.act_as(agent)
        await self._gateway.raise_if_done(principal, once)

        async def work(write: Write) -> DecidedConflict:
            return await _decided(write, writable_scope(write, speaker, expired=True), conflict_id, verdict)

        return await self._gateway.run(principal, policy, now, work, once=once)


async def rejudge(write: Write, before: Memory, after: Memory, material: SearchMaterial) -> tuple[UUID, ...]:
    """Look again for what a memory may contradict when it says something else than before.

    What was suspected of the older words and is not of the new ones is dropped, and so is a verdict that it holds
    beside another memory. Words that say the same leave all as it is.

    Returns:
        The memories that it is newly listed with.
    """
    old, new = before.text.content, after.text.content
    bands = write.policy.merging.bands_for(write.model)
    if old == new or compare(ParsedStatement.of(old), ParsedStatement.of(new), 1.0, bands) is ComparisonVerdict.SAME:
        return ()
    believed = after.trust_state in RETRIEVABLE_TRUST
    around = await neighbours(write, after, material, PendingWrites()) if believed else []
    suspected = [each for each in around if each.verdict is ComparisonVerdict.SUSPECTED]
    await write.uow.graph.drop_conflicts(after.id, {each.memory.id for each in suspected})
    return await suspect(write, after, suspected)


async def _decided(write: Write, scope: Scope, conflict_id: UUID, verdict: ConflictVerdict) -> DecidedConflict:
    """Carry out a verdict, once.

    Raises:
        NotFound: there is no such conflict, or one of its memories is not the caller's.
        AlreadyDecided: another verdict was given before.
        Conflict: one of the memories is not active any more.
        TrustTooLow: a more trusted writer stands behind what would be superseded.
    """
    graph = write.uow.graph
    state = await graph.conflict(conflict_id)
    seen = None if state is None else await write.uow.memories.find(scope, state.ends[0])
    if state is None or seen is None:
        raise RecordNotFound(MISSING)
    await write.uow.lock_users([seen.user_id])
    if (state := await graph.conflict(conflict_id)) is None:
        raise RecordNotFound(MISSING)
    one, other = [await write.uow.memories.lock(scope, each) for each in state.ends]
    if one is None or other is None:
        raise RecordNotFound(MISSING)
    older, newer = _by_time(one, other)
    if state.verdict is not None:
        return _again(conflict_id, state.verdict, verdict, (older, newer))
    for name, memory in (("older", older), ("newer", newer)):
        _require_active(name, memory, write.now)
    write.about([older.user_id])
    strength = write.policy.merging.bands_for(write.model).link_min
    await graph.settle_conflict(conflict_id, verdict, write.now, strength)
    if verdict is ConflictVerdict.KEEP_BOTH:
        return await _kept_both(write, conflict_id, older, newer)
    gone, kept = (older, newer) if verdict is ConflictVerdict.NEWER else (newer, older)
    require_weight(write.principal, gone)
    await supersede(write, gone, kept, {"verdict": _DECIDED, "conflict": verdict.value})
    await graph.link([Edge(kept.id, gone.id, 1.0, SUPERSEDES)], write.now)
    rev = await write.settle(gone.user_id, gone.thread_id)
    return DecidedConflict("superseded", conflict_id, (kept.id,), gone.id, rev)


async def _kept_both(write: Write, conflict_id: UUID, older: Memory, newer: Memory) -> DecidedConflict:
    for one, other in ((older, newer), (newer, older)):
        meta = {"verdict": ConflictVerdict.KEEP_BOTH.value, "compatible_with": str(other.id)}
        write.record_change(HistoryEvent.LINK, None, one, one, meta)
    rev = await write.settle(older.user_id, None)
    return DecidedConflict("kept_both", conflict_id, (older.id, newer.id), None, rev)


def _again(
    conflict_id: UUID, given: ConflictVerdict, asked: ConflictVerdict, both: tuple[Memory, Memory]
) -> DecidedConflict:
    """The answer to a verdict on a conflict that was decided before.

    Raises:
        AlreadyDecided: it was decided otherwise.
    """
    if given is not asked:
        raise AlreadyDecided(f"the conflict was decided already: {given.value}", verdict=given.value)
    older, newer = both
    if given is ConflictVerdict.KEEP_BOTH:
        return DecidedConflict("unchanged", conflict_id, (older.id, newer.id))
    # not by the verdict: the older one may have been said again since
    gone, kept = both if older.superseded_by == newer.id else (newer, older)
    return DecidedConflict("unchanged", conflict_id, (kept.id,), gone.id)


def _require_active(name: str, memory: Memory, now: datetime) -> None:
    """Refuse a verdict on a memory that is not believed any more.

    Raises:
        Conflict: it is not.
    """
    over = _STATES.get(memory.state)
    if has_expired(memory, now):
        over = "expired"
    elif over is None and memory.valid_until is not None and memory.valid_until <= now:
        over = "no longer true"
    if over is not None:
        raise StateConflict(
            f"the {name} memory is {over}, so there is nothing to decide; to decide on it, restore it first",
            memory_id=str(memory.id),
            state=over,
        )


def _by_time(one: Memory, other: Memory) -> tuple[Memory, Memory]:
    """The older fact first."""
    first, second = sorted((one, other), key=lambda each: (said_at(each), each.id))
    return first, second
