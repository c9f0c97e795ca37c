"""What stands beside a memory: its neighbours, what it overrules, and values that a person rejected."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memplane.application.limits.offload import in_thread, offload
from memplane.application.memories.authorization import AUTHORITY, require_weight
from memplane.application.memories.gateway import Write
from memplane.application.recall.search_material import SearchMaterial, Vector
from memplane.application.records import Edge, LinkChange, SuspectedConflicts
from memplane.domain.errors import StateConflict, ValueRejected
from memplane.domain.language.comparison.comparison import ComparisonVerdict
from memplane.domain.language.terms import Terms
from memplane.domain.language.text import instant
from memplane.domain.memory.conflict_verdicts import POSSIBLE_CONFLICT
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.lifecycle import check_transition
from memplane.domain.memory.memory import (
    CONFIRMED_WEIGHT,
    FULL_AUTHORITY,
    RETRIEVABLE_TRUST,
    Memory,
    Source,
    State,
    new_id,
)
from memplane.domain.memory.scope import Filters, Scope, trust_levels
from memplane.domain.memory.tombstones import said_keys
from memplane.domain.memory.write_decisions import (
    COMPARED,
    MAX_CONFLICTS,
    OVERRULES,
    Action,
    Neighbour,
    WriteDecision,
    compare_neighbours,
    compared_in,
    decide,
    first_said,
    is_ended,
    is_to_come,
    next_said,
    said_at,
    same_store,
    says_again,
)
from memplane.domain.policy.policy import Trust

NEIGHBOURS = 5
"""As many by meaning, and as many by words."""
CORRECTED = "corrected"
RESTORED = "restored"
_NEVER_SO = (CORRECTED, RESTORED)
PAST = 20
"""As many superseded memories, either way."""
FACT_TIMES = "fact_times"
"""In the history: when a memory was said that was said several times."""
OWN_END = "own_end"
"""In the history: until when a superseded memory was said to be so."""
_TICK = timedelta(microseconds=1)
_MAX_REJECTED = 200


@dataclass(slots=True)
class PendingWrites:
    """Memories that were placed earlier in the same transaction, which a search may not see yet."""

    _memories: dict[UUID, Memory] = field(default_factory=dict)
    _vectors: dict[UUID, NDArray[np.float32]] = field(default_factory=dict)
    _past: dict[UUID, NDArray[np.float32]] = field(default_factory=dict)

    def note(self, memory: Memory, vector: Vector | None) -> None:
        """Remember a memory as it is now; of one that is no longer believed only what it is found by."""
        if memory.state is not State.ACTIVE or memory.trust_state not in RETRIEVABLE_TRUST:
            self.forget([memory.id])
            if vector is not None:
                self._past[memory.id] = vector
        elif vector is not None:
            self._memories[memory.id] = memory
            self._vectors[memory.id] = vector
        elif memory.id in self._memories:
            self._memories[memory.id] = memory

    def forget(self, ids: Sequence[UUID]) -> None:
        """These are no longer believed."""
        for memory_id in ids:
            self._memories.pop(memory_id, None)
            if (vector := self._vectors.pop(memory_id, None)) is not None:
                self._past[memory_id] = vector

    def divide(self, part: UUID, whole: UUID) -> None:
        """A memory became a part of another one's time."""
        vector = self._vectors.get(whole, self._past.get(whole))
        if vector is not None:
            self._past[part] = vector

    def clear(self) -> None:
        """Forget all of them."""
        self._memories.clear()
        self._vectors.clear()
        self._past.clear()

    def past(self, vector: NDArray[np.float32]) -> dict[UUID, float]:
        """Those that may be superseded by now, with their cosine; the nearest ones."""
        if not self._past:
            return {}
        cosines = np.stack(list(self._past.values())) @ vector
        found = sorted(zip(self._past, cosines.tolist(), strict=True), key=lambda pair: -pair[1])
        return dict(found[:PAST])

    def near(self, memory: Memory, vector: NDArray[np.float32]) -> list[tuple[Memory, float]]:
        """The nearest of the same user, category and type, with their cosine."""
        if not self._vectors:
            return []
        cosines = np.stack(list(self._vectors.values())) @ vector
        found = [
            (other, float(cosine))
            for other, cosine in zip(self._memories.values(), cosines, strict=True)
            if (other.user_id, other.category, other.type) == (memory.user_id, memory.category, memory.type)
        ]
        return sorted(found, key=lambda pair: -pair[1])[:NEIGHBOURS]


async def neighbours(
    write: Write,
    memory: Memory,
    material: SearchMaterial,
    placed: PendingWrites,
    near: Sequence[tuple[Memory, float]] | None = None,
) -> list[Neighbour]:
    """What a memory is to those of the same user and category that its writer sees; most similar first.

    Args:
        write: the write under way.
        memory: the memory.
        material: its search material.
        placed: what was placed in the same transaction.
        near: its nearest, when they were looked up before.
    """
    vector = write.vector(material)
    if vector is None:
        return []
    found = placed.near(memory, vector)
    known = {other.id for other, _ in found} | {memory.id}
    if near is None:
        near = await write.uow.memories.nearest(neighbour_scope(write, memory), material, NEIGHBOURS)
    found += [(other, similarity) for other, similarity in near if other.id not in known]
    if memory.authority < FULL_AUTHORITY:
        # whoever is trusted less could surround what he contradicts with harmless neighbours of his own
        known |= {other.id for other, _ in near}
        heavier = replace(neighbour_scope(write, memory), outweighing=memory.authority)
        more = await write.uow.memories.nearest(heavier, material, NEIGHBOURS)
        found += [(other, similarity) for other, similarity in more if other.id not in known]
    bands = write.policy.merging.bands_for(write.model)
    size = len(memory.text.content) + sum(len(other.text.content) for other, _ in found)
    return await offload(size, compare_neighbours, memory, sorted(found, key=lambda pair: -pair[1]), bands)


def neighbour_scope(write: Write, memory: Memory) -> Scope:
    """Where the neighbours of a memory are looked for."""
    principal, policy = write.principal, write.policy
    return Scope(
        tenant=principal.tenant,
        categories=(memory.category,),
        visibilities=policy.trust[principal.trust].sees | {memory.visibility},
        trust_levels=trust_levels(principal.trust),
        users=None,
        now=write.now,
        turns=False,
        filters=Filters(user_id=memory.user_id, types=(memory.type,)),
    )


async def is_rejected(write: Write, memory: Memory, buried: frozenset[str] | None = None) -> bool:
    """Whether a memory says, in whatever words or field, what a person rejected or erased.

    Args:
        write: the write under way.
        memory: the memory.
        buried: keys of such values, when they were looked up before.
    """
    if buried is None:
        buried = await write.uow.tombstones.load(memory.user_id, memory.category)
    graves = await write.graves(memory.user_id)
    if not buried and not graves:
        return False
    said = await in_thread(said_keys, memory.text, memory.attributes)
    since = restated_at(write, memory)
    if not buried.isdisjoint(said) or await is_erased(write, memory.user_id, memory.category, said, since):
        return True
    if not buried:
        return False
    gone = await write.uow.memories.rejected_texts(memory.user_id, memory.category, _MAX_REJECTED)
    bands = write.policy.merging.bands_for(write.model)
    return bool(gone) and await in_thread(says_again, memory.text, gone, bands)


async def is_erased(
    write: Write, user_id: str, where: str, values: Collection[str], said: datetime | None = None
) -> bool:
    """Whether one of some values, by their keys, was erased with its user.

    Args:
        write: the write under way.
        user_id: the user.
        where: the category, or field, or what else the values are of.
        values: their keys.
        said: when the person said them anew: what was erased before counts again, and what was rejected does not.
    """
    for grave in await write.graves(user_id):
        if await write.uow.erasures.has_tombstone(grave.subject, where, grave.hashes(values), said):
            return True
    return False


def restated_at(write: Write, memory: Memory) -> datetime | None:
    """When a person said what a memory says; ``None`` for what a file, a job or a less trusted writer says.

    A vouched turn is drawn from at its own time, and the word of a fully trusted key is of now, or of the time that it
    names: an older source stays refused after an erasure.
    """
    if write.imported or write.principal.is_job:
        return None
    if memory.source is Source.EXTRACTION:
        return memory.valid_from or write.now
    if memory.source in {Source.AGENT, Source.USER} and write.principal.trust is Trust.FULL:
        return memory.event_time or write.now
    return None


async def refuse_rejected(write: Write, memory: Memory) -> None:
    """Stop here when a memory says what a person rejected.

    Raises:
        ValueRejected: it does.
    """
    if await is_rejected(write, memory):
        raise rejection_error()


def rejection_error() -> ValueRejected:
    """Why a memory is not stored."""
    return ValueRejected("content: a person rejected or erased this value; it is not stored again", field="content")


@dataclass(frozen=True, slots=True)
class OverruleResult:
    """A memory as it is stored once it has its place in time.

    Attributes:
        memory: the memory.
        overruled: memories that it took the place of.
        newer: for one that is outdated, the later facts.
    """

    memory: Memory
    overruled: tuple[UUID, ...] = ()
    newer: tuple[UUID, ...] = ()

    @property
    def memory_ids(self) -> tuple[UUID, ...]:
        """What an outcome names."""
        return (*self.newer, *self.overruled)


async def overrule(
    write: Write,
    memory: Memory,
    material: SearchMaterial,
    why: dict[str, object],
    others: Sequence[Memory] = (),
    *,
    forgiving: bool = False,
) -> OverruleResult:
    """Let a memory that somebody decided on overrule what it contradicts, as far as its own time goes.

    What a later fact overrules becomes outdated, as a new memory would; one that has ended or is to come overrules
    nothing.

    Args:
        write: the write under way.
        memory: what is to hold.
        material: its search material.
        why: for the history.
        others: memories that it overrules besides, whatever their time.
        forgiving: another memory may say the same.

    Raises:
        TrustTooLow: a more trusted writer stands behind one of them.
        Conflict: another memory says the same already.
    """
    around = await neighbours(write, memory, material, PendingWrites())
    giving_way = {each.id for each in others}
    same = [n.memory for n in around if n.verdict is ComparisonVerdict.SAME and same_store(n.memory, memory)]
    if not forgiving and (rest := [each for each in same if each.id not in giving_way]):
        raise StateConflict("another memory of this user and category says this already", memory_id=str(rest[0].id))
    contradicting = [n for n in around if n.verdict in OVERRULES and n.memory.id not in giving_way]
    past = [n for n in await later_superseded(write, memory, material, PendingWrites()) if n.verdict in OVERRULES]
    past = [n for n in past if n.memory.id not in giving_way]
    most = CONFIRMED_WEIGHT if write.principal.trust is Trust.FULL else AUTHORITY[write.principal.trust]
    bands = write.policy.merging.bands_for(write.model)
    decision = decide(memory, contradicting, bands, write.now, past=past, overrules=most)
    if decision.action is Action.DISPUTE:
        for each in decision.targets:
            require_weight(write.principal, each.memory)
    if is_ended(memory, write.now) or is_to_come(memory, write.now):  # there is room for one of a value alone
        others = [each for each in others if each.value_hash == memory.value_hash]
        decision = WriteDecision(Action.CREATE)
    decision = await exact(write, decision, said_at(memory))
    if decision.action is Action.OUTDATED:
        memory = as_outdated(write, memory, decision)
        await adjust(write, memory, said_at(memory), decision)
        rivals = [n.memory for n in decision.overruled]
    else:
        await adjust(write, memory, said_at(memory), decision)
        rivals = [*others, *(n.memory for n in decision.targets)]
        memory = _holding(memory, rivals, why)
    for rival in rivals:
        require_weight(write.principal, rival)
        await _overruled(write, rival, memory, why)
    newer = tuple(n.memory.id for n in decision.targets) if memory.state is State.SUPERSEDED else ()
    return OverruleResult(memory, tuple(rival.id for rival in rivals if rival.state is State.ACTIVE), newer)


async def _overruled(write: Write, rival: Memory, memory: Memory, why: dict[str, object]) -> None:
    """End a memory that another one overrules; one of the past that a restored one followed never was so."""
    if rival.state is not State.ACTIVE:
        await end_earlier(write, rival, memory, first_said(rival))
        return
    earlier = said_at(rival) < first_said(memory)
    wrong = why.get("verdict") == RESTORED and not earlier
    in_time = why.get("verdict") in _NEVER_SO and not wrong
    await supersede(write, rival, memory, why | {"verdict": ComparisonVerdict.UPDATED.value} if in_time else why)


def _holding(memory: Memory, rivals: Sequence[Memory], why: dict[str, object]) -> Memory:
    """A memory that begins where what it overrules ends; one that is brought back holds from when it did before."""
    if not rivals or why.get("verdict") == RESTORED:
        return memory
    if any(said_at(each) >= first_said(memory) for each in rivals):
        return replace(memory, valid_from=said_at(memory), asserted_at=said_at(memory))
    return replace(memory, valid_from=memory.valid_from or first_said(memory))


async def later_superseded(
    write: Write, memory: Memory, material: SearchMaterial, placed: PendingWrites
) -> list[Neighbour]:
    """For a memory that arrives late, the superseded ones that ended after it began; else none."""
    moment = said_at(memory)
    vector = write.vector(material)
    if moment >= write.now or vector is None or memory.type not in COMPARED:
        return []
    scope = replace(neighbour_scope(write, memory), states=(State.SUPERSEDED,), lasting_beyond=moment)
    near = await write.uow.memories.nearest(scope, material, PAST, placed.past(vector))
    found = [pair for pair in near if pair[0].id != memory.id]
    bands = write.policy.merging.bands_for(write.model)
    size = len(memory.text.content) + sum(len(other.text.content) for other, _ in found)
    return await offload(size, compare_neighbours, memory, found, bands)


def as_outdated(write: Write, memory: Memory, decision: WriteDecision) -> Memory:
    """A memory that a later fact ended before it arrived."""
    until = min(filter(None, (memory.valid_until, decision.until)), default=None)
    return replace(
        memory,
        state=State.SUPERSEDED,
        superseded_by=decision.targets[0].memory.id,
        superseded_at=write.now,
        valid_until=until,
    )


async def exact(write: Write, decision: WriteDecision, moment: datetime) -> WriteDecision:
    """A decision by when the memories that it splits were said again, which their history tells."""
    if not decision.split:
        return decision
    again = {each.memory.id: (await _times(write, each.memory, moment))[1] for each in decision.split}
    begins = {n.memory.id: again.get(n.memory.id, next_said(n.memory, moment)) for n in decision.targets}
    targets = tuple(sorted(decision.targets, key=lambda n: begins[n.memory.id]))
    return replace(decision, targets=targets, until=begins[targets[0].memory.id])


async def adjust(
    write: Write, new: Memory, moment: datetime, decision: WriteDecision, placed: PendingWrites | None = None
) -> None:
    """End what a late memory overrules where that one begins: what was ended later, and what it comes between."""
    for each in decision.cut:
        await end_earlier(write, each.memory, new, moment)
    for each in decision.split:
        part, rest = await _split(write, each.memory, new, moment)
        if placed is not None:
            placed.divide(part.id, rest.id)
            placed.note(rest, None)


async def end_earlier(write: Write, old: Memory, new: Memory, moment: datetime) -> None:
    """Let a superseded memory end earlier; one that would have an empty interval never was so."""
    until = None if moment <= first_said(old) else moment
    shorter = replace(old, valid_until=until, superseded_by=new.id, updated_at=write.now, version=old.version + 1)
    await write.uow.memories.replace(shorter, None)
    write.record_change(HistoryEvent.UPDATE, None, shorter, old, {"verdict": "cut", "superseded_by": str(new.id)})


async def _split(write: Write, old: Memory, new: Memory, moment: datetime) -> tuple[Memory, Memory]:
    """Divide a memory that was said before another one and again after it: a new one holds what was said before."""
    before, again = await _times(write, old, moment)
    part = replace(
        old, id=new_id(), state=State.SUPERSEDED, superseded_by=new.id, superseded_at=write.now, valid_until=moment,
        asserted_at=before[-1] if len(before) > 1 else None, external_id=None, mention_count=len(before),
        updated_at=write.now, version=1,
    )  # fmt: skip
    rest = replace(old, valid_from=again, asserted_at=said_at(old), updated_at=write.now, version=old.version + 1)
    await write.uow.memories.add(part, SearchMaterial(Terms({}, 0, {}), None))
    await write.uow.memories.share_material(part.id, old.id)
    await write.uow.memories.replace(rest, None)
    noted: dict[str, object] = {"part_of": str(old.id), FACT_TIMES: [each.isoformat() for each in before]}
    write.record_change(HistoryEvent.ADD, None, part, None, evidence(part, **noted))
    write.record_change(HistoryEvent.UPDATE, None, rest, old, {"verdict": "split", "part": str(part.id)})
    return part, rest


async def _times(write: Write, memory: Memory, moment: datetime) -> tuple[list[datetime], datetime]:
    """When a memory was said until a moment, and when for the first time after it."""
    first, last = first_said(memory), said_at(memory)
    times = {first, last, *_moments(await write.notes(memory.id))}
    before = sorted(each for each in times if first <= each <= moment)
    return before, min(each for each in times if moment < each <= last)


def _moments(notes: Sequence[Mapping[str, object]]) -> Iterable[datetime]:
    """When a memory was said, by what its history notes."""
    for note in notes:
        times = note.get(FACT_TIMES)
        for each in times if isinstance(times, list) else ():
            yield instant(each)


def fact_times(*said: Memory) -> list[str]:
    """The times of memories that become one, for the history: a fact that comes between divides them again."""
    return [each.isoformat() for each in sorted({at for one in said for at in (first_said(one), said_at(one))})]


def own_end(memory: Memory) -> dict[str, object]:
    """For the history of one that is superseded, until when it was said to be so, for who restores it."""
    return {OWN_END: None if memory.valid_until is None else memory.valid_until.isoformat()}


def after(memory: Memory, last: datetime | None) -> Memory:
    """Within a user recorded time never runs back, though a clock was put back: else what is new arrived outdated."""
    if last is None or last < memory.recorded_at:
        return memory
    moment = last + _TICK
    since = moment if memory.valid_from == memory.recorded_at else memory.valid_from
    said = moment if memory.asserted_at == memory.recorded_at else memory.asserted_at
    return replace(memory, recorded_at=moment, valid_from=since, asserted_at=said)


def has_own_time(memory: Memory) -> bool:
    """Whether a memory holds since a time that somebody named, and not since it was stored or decided on."""
    return memory.valid_from not in (None, memory.recorded_at, memory.asserted_at)


async def said_now(write: Write, memory: Memory) -> Memory:
    """A memory that somebody decides on now: with no time of its own, it is said now."""
    if has_own_time(memory):
        return memory
    last = await write.uow.memories.last_recorded(memory.user_id)
    moment = write.now if last is None or last < write.now else last + _TICK
    return replace(memory, asserted_at=max(moment, said_at(memory)))


async def suspect(write: Write, memory: Memory, suspected: Sequence[Neighbour]) -> tuple[UUID, ...]:
    """List a memory and those that it may contradict as possible conflicts; neither has more than three open ones.

    A pair of which it was decided that both hold is not listed again.

    Returns:
        The memories that it is newly listed with.
    """
    if not suspected:
        return ()
    graph = write.uow.graph
    known = await graph.conflicts([memory.id, *(n.memory.id for n in suspected)])
    mine = known.get(memory.id, SuspectedConflicts())
    chosen = [
        n
        for n in suspected
        if n.memory.id not in mine.open | mine.compatible
        and len(known.get(n.memory.id, SuspectedConflicts()).open) < MAX_CONFLICTS
    ][: max(MAX_CONFLICTS - len(mine.open), 0)]
    await graph.link([Edge(memory.id, n.memory.id, n.similarity, POSSIBLE_CONFLICT) for n in chosen], write.now)
    write.record_links(memory, [LinkChange(n.memory, POSSIBLE_CONFLICT, n.similarity) for n in chosen])
    return tuple(n.memory.id for n in chosen)


async def supersede(write: Write, old: Memory, new: Memory | None, why: dict[str, object]) -> Memory:
    """Let a memory be a thing of the past: it is no longer believed, and no longer true since the new one was said.

    One that was wrong all along has no end: it was true at no time, see ``Scope.true_at``.
    """
    check_transition(old.state, State.SUPERSEDED)
    said = write.now if new is None else next_said(new, said_at(old))
    never = why.get("verdict") in _NEVER_SO or said <= first_said(old)
    gone = replace(
        old,
        state=State.SUPERSEDED,
        superseded_by=None if new is None else new.id,
        superseded_at=write.now,
        valid_until=None if never else min(filter(None, (old.valid_until, said))),
        updated_at=write.now,
        version=old.version + 1,
    )
    await write.uow.memories.replace(gone, None)
    event = HistoryEvent.RETRACT if new is None else HistoryEvent.SUPERSEDE
    by = own_end(old)
    if new is not None:
        # the new words may lie in another store: who reads this entry must be allowed to read these too
        kept_in = {"visibility": new.visibility.value, "min_trust": new.min_trust}
        by |= {"superseded_by": str(new.id), "said": new.text.content, "said_in": kept_in} | evidence(new)
        if "rule" in why:
            by["words"] = compared_in(old, new)
    write.record_change(event, ChangeEvent.SUPERSEDED, gone, old, why | by)
    return gone


def is_over(there: Memory, new: Memory, now: datetime) -> bool:
    """Whether a memory is no longer read while the new one, which says the same, would be."""
    if there.expires_at is not None and there.expires_at <= now:
        return True
    ended = there.valid_until is not None and there.valid_until <= now
    return ended and (new.valid_until is None or new.valid_until > now)


async def retire(write: Write, over: Memory) -> None:
    """Take a memory that expired, or is true no longer, out of the way of one that says the same anew."""
    if over.expires_at is None or over.expires_at > write.now:
        await supersede(write, over, None, {"verdict": "ended"})
        return
    await expire(write, over)


async def expire(write: Write, over: Memory) -> Memory:
    """Delete a memory that expired, as the night would."""
    gone = as_deleted(write, over)
    await write.uow.memories.replace(gone, None)
    write.record_change(HistoryEvent.TTL, ChangeEvent.SOFT_DELETED, gone, over)
    return gone


def as_deleted(write: Write, memory: Memory) -> Memory:
    """A memory that is out of every read, and can be restored until its purge."""
    return replace(
        memory,
        state=State.SOFT_DELETED,
        purge_at=write.now + write.policy.lifecycle.purge_after,
        updated_at=write.now,
        version=memory.version + 1,
    )


def evidence(memory: Memory, **more: object) -> dict[str, object]:
    """What stands behind a memory, for the history."""
    sources = {"evidence": [str(source) for source in memory.source_ids]} if memory.source_ids else {}
    return {"source": memory.source.value, **sources, **more}
