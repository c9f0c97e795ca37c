"""Bringing memories back: as they were, in the place of what contradicts them by now, or not at all."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from memplane.application.consent.proposals import claims_of, field_namespace, require_consent
from memplane.application.memories.authorization import has_expired, require_weight
from memplane.application.memories.gateway import Write
from memplane.application.memories.placement import Outcome
from memplane.application.memories.supersession import (
    OWN_END,
    RESTORED,
    PendingWrites,
    expire,
    is_rejected,
    neighbours,
    overrule,
    own_end,
    said_now,
)
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import TombstoneOrigin
from memplane.domain.errors import StateConflict, ValueRejected
from memplane.domain.language.comparison.comparison import ComparisonVerdict
from memplane.domain.language.text import instant
from memplane.domain.memory.conflict_verdicts import ConflictVerdict
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.lifecycle import check_transition
from memplane.domain.memory.memory import Memory, State, TrustState
from memplane.domain.memory.scope import Scope
from memplane.domain.memory.tombstones import rejected_keys
from memplane.domain.memory.write_decisions import OVERRULES, is_ended, is_to_come, same_store
from memplane.domain.policy.policy import Trust

RESTORABLE = (State.SUPERSEDED, State.ARCHIVED, State.SOFT_DELETED)
_MAX_STEPS = 20


async def bring_back(
    write: Write, scope: Scope, memory: Memory, material: SearchMaterial, several: PendingWrites | None = None
) -> Outcome:
    """Make a locked memory active again, in the place of what contradicts it by now; the caller settles the write.

    One that has expired since has no end any more: with it, the next night would take it again.

    Args:
        write: the write under way.
        scope: what the caller may change.
        memory: the memory.
        material: its search material.
        several: what was brought back before it in the same transaction, where it is one of several: it takes nobody's
            place then, and stays gone where it contradicts another one or has expired.

    Raises:
        ValueRejected: a person rejected the value.
        Conflict: it is active, another memory says the same now, or contradicts it and stays; one of several expired.
        TrustTooLow: a more trusted writer stands behind it, or behind what took its place.
    """
    require_weight(write.principal, memory)
    if has_expired(memory, write.now) and several is None:
        memory = await expire(write, memory)
    check_transition(memory.state, State.ACTIVE)
    expired = memory.expires_at is not None and memory.expires_at <= write.now
    if expired and several is not None:
        raise StateConflict("it has expired; to keep it from now on, restore it by its id")
    await _require_unrejected(write, memory)
    if waiting := await require_consent(write, memory, await claims_of(write, memory), scope.categories):
        return waiting
    until = memory.valid_until if memory.superseded_at is None else await _own_end(write, memory)
    back = replace(
        memory, state=State.ACTIVE, purge_at=None, superseded_at=None, superseded_by=None, valid_until=until,
        expires_at=None if expired else memory.expires_at,
    )  # fmt: skip
    overruled: tuple[UUID, ...] = ()
    if memory.trust_state is not TrustState.DISPUTED:
        later = await _locked(write, scope, await _successors(write, scope, memory))
        if several is None:
            ruled = await overrule(write, await said_now(write, back), material, {"verdict": RESTORED}, later)
            back, overruled = ruled.memory, ruled.memory_ids
        else:
            await _require_unrivalled(write, back, material, later, several)
    if back.state is State.SUPERSEDED:
        end = own_end(replace(back, valid_until=until))
        done = await store_change(write, memory, back, HistoryEvent.RESTORE, None, **end)
        return replace(done, outcome="outdated", overruled=overruled)
    done = await store_change(write, memory, back, HistoryEvent.RESTORE, ChangeEvent.RESTORED)
    await _reconcile(write, memory, overruled)
    if several is not None:
        several.note(done.memory, write.vector(material))
    return replace(done, outcome="restored", overruled=overruled)


async def add_tombstones(write: Write, memory: Memory, reason: str) -> None:
    """Let the values that a memory states be refused from now on, whoever says them."""
    from_now = TombstoneOrigin(reason, write.principal.actor, write.now, memory.id)
    await write.uow.tombstones.add(memory.user_id, memory.category, rejected_keys(memory.text), from_now)
    for stated in await claims_of(write, memory):
        await write.uow.tombstones.add(memory.user_id, field_namespace(stated.field), [stated.key[1]], from_now)


async def _require_unrejected(write: Write, memory: Memory) -> None:
    """Stop here when a person rejected the value, and not just deleted the memory."""
    if memory.trust_state is not TrustState.REJECTED:
        await _lift(write, memory)
    if memory.trust_state is TrustState.REJECTED or await is_rejected(write, memory):
        raise ValueRejected("a person rejected or erased this value; it is not brought back")


async def _lift(write: Write, memory: Memory) -> None:
    """Take back what was buried with a memory when it was deleted; what somebody rejected besides stays buried.

    Only for a fully trusted caller: others do not undo a person's word.
    """
    if memory.state is not State.SOFT_DELETED or write.principal.trust is not Trust.FULL:
        return
    tombstones, then = write.uow.tombstones, memory.updated_at  # nothing changes a deleted memory
    await tombstones.lift(memory.user_id, memory.category, rejected_keys(memory.text), then)
    for stated in await claims_of(write, memory):
        await tombstones.lift(memory.user_id, field_namespace(stated.field), [stated.key[1]], then)


async def _require_unrivalled(
    write: Write, back: Memory, material: SearchMaterial, later: Sequence[Memory], several: PendingWrites
) -> None:
    around = await neighbours(write, back, material, several)
    if any(n.verdict is ComparisonVerdict.SAME and same_store(n.memory, back) for n in around):
        raise StateConflict("another memory of this user and category says this already")
    if is_ended(back, write.now) or is_to_come(back, write.now):
        return
    if any(each.state is State.ACTIVE for each in later) or any(n.verdict in OVERRULES for n in around):
        raise StateConflict("another memory contradicts it by now; to put it in that one's place, restore it by its id")


async def _successors(write: Write, scope: Scope, memory: Memory) -> list[UUID]:
    """What took a memory's place, and what took the place of that; a verdict on a possible conflict proves nothing."""
    found: list[UUID] = []
    at, following = memory.id, memory.superseded_by
    while following is not None and following not in found and len(found) < _MAX_STEPS:
        if following in await write.uow.graph.ended_by_verdict(at):
            break
        found.append(following)
        after = await write.uow.memories.find(scope, following)
        at, following = following, None if after is None else after.superseded_by
    return found


async def _reconcile(write: Write, memory: Memory, overruled: Sequence[UUID]) -> None:
    """Who restores what a verdict ended decides that both hold."""
    strength = write.policy.merging.bands_for(write.model).link_min
    for other, conflict in (await write.uow.graph.ended_by_verdict(memory.id)).items():
        if other not in overruled:
            await write.uow.graph.settle_conflict(conflict, ConflictVerdict.KEEP_BOTH, write.now, strength)


async def _own_end(write: Write, memory: Memory) -> datetime | None:
    """Until when a superseded memory was said to be so: what its history noted when it was superseded last."""
    for note in reversed(await write.notes(memory.id)):
        if OWN_END in note:
            end = note[OWN_END]
            return instant(end) if isinstance(end, str) else None
    return None


async def active(write: Write, scope: Scope, ids: Sequence[UUID]) -> list[Memory]:
    """Those of the memories that are active and the caller's to change."""
    return [each for each in await _locked(write, scope, ids) if each.state is State.ACTIVE]


async def _locked(write: Write, scope: Scope, ids: Sequence[UUID]) -> list[Memory]:
    """Those of the memories that are the caller's to change, and active or superseded."""
    found = [await write.uow.memories.lock(scope, each) for each in ids]
    return [each for each in found if each is not None and each.state in (State.ACTIVE, State.SUPERSEDED)]


async def store_change(
    write: Write, before: Memory, after: Memory, event: HistoryEvent, told: ChangeEvent | None = None, **meta: object
) -> Outcome:
    """Store a changed memory, and note why.

    Raises:
        Conflict: another active memory says exactly this.
    """
    changed = replace(after, updated_at=write.now, version=before.version + 1)
    if not await write.uow.memories.replace(changed, None):
        raise StateConflict("another memory of this user and category says exactly this already")
    write.record_change(event, told, changed, before, meta)
    return Outcome("updated", changed)
