"""Memories put back as they were: their ids where these are free, their states, their times."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from memplane.application.consent.proposals import require_consent
from memplane.application.memories.gateway import Write
from memplane.application.memories.placement import OUTRANKED
from memplane.application.memories.supersession import is_rejected, rejection_error, supersede
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.transfer.import_records import UNCHANGED, Outcomes
from memplane.application.transfer.portable_records import Holder, Mentioning, NamedEntity
from memplane.application.transfer.restore_validation import RestoreRules, ValidatedRecord
from memplane.domain.errors import MemplaneError, ValueRejected
from memplane.domain.language.entities import key_of
from memplane.domain.memory.derivation import Fate, fate, without
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import FULL_AUTHORITY, Memory, State, new_id, weight
from memplane.domain.memory.turn_hashes import IDS, id_key

DUPLICATE = "duplicate"
RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class IncomingMemory:
    """A memory with its line's place, its search material, and what of it needs consent."""

    place: int
    mentioning: Mentioning
    material: SearchMaterial
    admitted: ValidatedRecord

    @property
    def memory(self) -> Memory:
        """The memory."""
        return self.mentioning.memory


def kin(record_id: UUID, user_id: str) -> UUID:
    """The id of a user's copy of a record whose own id is another's: always the same one, of the same time."""
    digest = hashlib.sha256(record_id.bytes + user_id.encode()).digest()
    middle = bytes([0x70 | (digest[0] & 0x0F), digest[1], 0x80 | (digest[2] & 0x3F)])
    return UUID(bytes=record_id.bytes[:6] + middle + digest[3:10])


async def mine(write: Write, user_id: str, ids: Collection[UUID]) -> Mapping[UUID, tuple[UUID, Holder]]:
    """The user's memories that some ids of a file stand for, each with the id that it has here."""
    kins = {each: kin(each, user_id) for each in ids}
    found = await write.uow.portable.holders({*ids, *kins.values()})
    own = {each: holder for each, holder in found.items() if holder.user_id == user_id}
    here = {each: each if each in own else kins[each] for each in ids}
    return {each: (name, own[name]) for each, name in here.items() if name in own}


async def deleted_turns(write: Write, user_id: str, ids: Collection[UUID]) -> frozenset[UUID]:
    """Those of some ids of a file that stand for turns of the user that were deleted."""
    keys = {id_key(name): each for each in ids for name in (each, kin(each, user_id))}
    if not keys:
        return frozenset()
    return frozenset(keys[key] for key in await write.uow.removals.tombstoned_keys(user_id, IDS, keys))


async def reinstate_memories(
    write: Write, rules: RestoreRules, arriving: Sequence[IncomingMemory], outcomes: Outcomes
) -> None:
    """Put memories back; those that are there already stay as they are."""
    there = await mine(write, rules.user_id, {each.memory.id for each in arriving})
    named = {source for each in arriving for source in each.memory.source_ids}
    lost = await deleted_turns(write, rules.user_id, named)
    fresh: dict[UUID, IncomingMemory] = {}
    buried: dict[str, frozenset[str]] = {}
    consented: frozenset[tuple[str, str, UUID]] | None = None
    for each in arriving:
        if each.memory.id in there or each.memory.id in fresh:
            outcomes.note(each.place, UNCHANGED)
            continue
        if not lost.isdisjoint(each.memory.source_ids):
            if fate(each.memory, lost, FULL_AUTHORITY) is Fate.GOES:
                outcomes.refuse(each.place, ValueRejected("the turn that it was derived from was deleted"))
                continue
            each = _with(each, without(each.memory, lost))  # noqa: PLW2901 - as it stands here
        if each.admitted.stated and consented is None:
            consented = await write.uow.portable.consented_fields(rules.user_id)
        category = each.memory.category
        if category not in buried:
            buried[category] = await write.uow.tombstones.load(rules.user_id, category)
        try:
            done = await _held(write, rules, each, buried[category], consented or frozenset())
        except MemplaneError as error:
            outcomes.refuse(each.place, error)
            continue
        if done is None:
            fresh[each.memory.id] = each
        else:
            outcomes.note(each.place, done)
    placed = await _placed(write, rules.user_id, list(fresh.values()), outcomes)
    await _mention(write, rules, placed)
    for each in placed:
        _noted(write, each.memory)
        outcomes.note(each.place, RESTORED)


async def _held(
    write: Write,
    rules: RestoreRules,
    each: IncomingMemory,
    buried: frozenset[str],
    consented: Collection[tuple[str, str, UUID]],
) -> str | None:
    """What holds a memory back: a person who rejected its value, or has not agreed to it.

    Raises:
        ValueRejected: a person rejected or erased it.
    """
    memory = each.memory
    if await is_rejected(write, memory, buried):
        raise rejection_error()
    unknown = [stated for stated in each.admitted.stated if (*stated.key, memory.id) not in consented]
    if not unknown:
        return None
    done = await require_consent(write, memory, unknown, rules.categories)
    return None if done is None else done.outcome


async def _placed(
    write: Write, user_id: str, fresh: Sequence[IncomingMemory], outcomes: Outcomes
) -> list[IncomingMemory]:
    """Those of some memories that were stored, with the ids that they have now."""
    active = [each.memory for each in fresh if each.memory.state is State.ACTIVE]
    rivals = await write.uow.portable.rivals(active)
    wanted = []
    for each in fresh:
        rival = rivals.get(each.memory.id)
        if rival is not None and rival >= weight(each.memory):
            outcomes.note(each.place, DUPLICATE)
            continue
        if rival is not None:
            await _outranked(write, each.memory)
        wanted.append(each)
    left = await _referring(write, user_id, wanted)
    stored: list[IncomingMemory] = []
    for _ in range(2):
        added = await write.uow.portable.add_memories([(each.memory, each.material) for each in left])
        stored += [each for each in left if each.memory.id in added]
        # the ids of the others are those of memories that are not the user's
        left = [_renamed(each, user_id) for each in left if each.memory.id not in added]
        if not left:
            break
    for each in left:
        outcomes.note(each.place, DUPLICATE)
    return stored


async def _outranked(write: Write, memory: Memory) -> None:
    """Let less trusted memories of a memory's name or value give way to it: they absorb no more trusted one."""
    while (there := await write.uow.memories.find_duplicate(memory)) is not None:
        await supersede(write, there, memory, {"verdict": OUTRANKED})


def _renamed(each: IncomingMemory, user_id: str) -> IncomingMemory:
    return _with(each, replace(each.memory, id=kin(each.memory.id, user_id)))


def _with(each: IncomingMemory, memory: Memory) -> IncomingMemory:
    return replace(each, mentioning=replace(each.mentioning, memory=memory))


async def _referring(write: Write, user_id: str, wanted: Sequence[IncomingMemory]) -> list[IncomingMemory]:
    """The same, referring to the user's own copies of what else belongs to others."""
    named = {name for each in wanted for name in (*each.memory.source_ids, each.memory.superseded_by) if name}
    if not named:
        return list(wanted)
    store = write.uow.portable
    spoken, held = await store.speakers(named), await store.holders(named)
    others = {each for each, user in spoken.items() if user != user_id}
    others |= {each for each, holder in held.items() if holder.user_id != user_id}
    if not others:
        return list(wanted)

    def own(name: UUID) -> UUID:
        return kin(name, user_id) if name in others else name

    found = []
    for each in wanted:
        by = each.memory.superseded_by
        memory = replace(
            each.memory,
            source_ids=tuple(own(name) for name in each.memory.source_ids),
            superseded_by=None if by is None else own(by),
        )
        found.append(_with(each, memory))
    return found


async def _mention(write: Write, rules: RestoreRules, placed: Sequence[IncomingMemory]) -> None:
    wanted = {
        (kind, key): NamedEntity(new_id(), kind, name, key, rules.now)
        for each in placed
        for kind, name in each.mentioning.entities
        if (key := key_of(name))
    }
    if not wanted:
        return
    ids = await write.uow.portable.add_entities(rules.user_id, list(wanted.values()))
    pairs = {
        (each.memory.id, ids[kind, key_of(name)])
        for each in placed
        for kind, name in each.mentioning.entities
        if (kind, key_of(name)) in ids
    }
    await write.uow.portable.add_mentions(pairs)


def _noted(write: Write, memory: Memory) -> None:
    """Who brought it back stands in its history; no thread is told of it, for it is no news."""
    write.record_change(HistoryEvent.ADD, None, memory, None, {"imported": True, "state": memory.state.value})
