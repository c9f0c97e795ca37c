"""What one writer did to a user's memories, and what rests on it; no statement is for one memory."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from memplane.application.memories.authorization import LASTING
from memplane.application.records import ContextField, Proposal
from memplane.application.reverts.revert_ports import RejectedValue, RevertedWriter
from memplane.application.transaction import UnitOfWork
from memplane.domain.memory.derivation import Fate, fate
from memplane.domain.memory.derivation import without as without_sources
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import FULL_AUTHORITY, Memory, State, Turn, weight
from memplane.domain.memory.revert_rules import (
    RecordedChange,
    StayReason,
    creates,
    first_said,
    known_changes,
    stay_reason,
    without,
)
from memplane.domain.memory.undo_records import TEXT, UndoRecord

MOST = 2_000
"""Entries of the history that one transaction takes back, the newest first."""
_MAX_STEPS = 30
_STANDING = TEXT | {"state", "category", "trust_state", "authority"}
"""What of a memory decides whether another one takes its place, or is one with it."""
_QUOTES = ("merged", "supersedes")
"""By what the history of a memory names another one that background work counted into it."""


@dataclass(frozen=True, slots=True)
class Within:
    """What the caller reaches.

    Attributes:
        categories: of memories.
        turns: whether turns are among it.
        whole: whether it is everything, and with it what has no category.
        users: the users that the caller is bound to; ``None``: not bound.
    """

    categories: frozenset[str]
    turns: bool
    whole: bool
    users: frozenset[str] | None = None

    def shows(self, category: str | None) -> bool:
        """Whether the receipt may show items of a category; ``None``, of none, only where the caller reaches all."""
        return self.whole or category in self.categories

    def has(self, memory: Memory) -> bool:
        """Whether the receipt may show a memory."""
        return self.shows(memory.category) and (self.users is None or memory.user_id in self.users)

    def covers(self, deed: RecordedChange) -> bool:
        """Whether an entry's words were written under these categories alone."""
        named = deed.meta.get("categories")
        return self.whole or (isinstance(named, list) and self.categories.issuperset(named))


@dataclass(slots=True)
class WriterChanges:
    """A user's memories that a writer changed, with all that was done to them, and what else the writer did.

    Attributes:
        within: what the caller reaches.
        own: the writer's entries that are taken back.
        more: whether there are older ones.
        gone: these, and those of others that rest on what goes.
        memories: by id, as they are now.
        deeds: by memory, oldest first.
        going: the memories that go; those that only rest on such as are ``derived``.
        repeated: memories of values that the writer approved, and that others said too.
        kept: memories that the writer made and that stay, and why.
        after: the others as they are without the writer.
    """

    user: str
    within: Within
    own: list[RecordedChange] = field(default_factory=list)
    more: bool = False
    turns: list[Turn] = field(default_factory=list)
    noted: list[UndoRecord] = field(default_factory=list)
    gone: set[UUID] = field(default_factory=set)
    memories: dict[UUID, Memory] = field(default_factory=dict)
    deeds: dict[UUID, list[RecordedChange]] = field(default_factory=dict)
    made: set[UUID] = field(default_factory=set)
    going: set[UUID] = field(default_factory=set)
    derived: set[UUID] = field(default_factory=set)
    repeated: set[UUID] = field(default_factory=set)
    kept: dict[UUID, StayReason] = field(default_factory=dict)
    after: dict[UUID, Memory] = field(default_factory=dict)
    others: list[Memory] = field(default_factory=list)
    disputes: Mapping[UUID, frozenset[UUID]] = field(default_factory=dict)
    proposals: list[Proposal] = field(default_factory=list)
    asked: Mapping[UUID, list[UndoRecord]] = field(default_factory=dict)
    fields: list[ContextField] = field(default_factory=list)
    decided: list[UndoRecord] = field(default_factory=list)
    spoken: list[tuple[str, str, UUID]] = field(default_factory=list)
    rejected: list[Memory] = field(default_factory=list)
    buried: list[RejectedValue] = field(default_factory=list)
    refused: int = 0

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take back."""
        return not (self.own or self.turns or self.noted)

    @property
    def undone(self) -> frozenset[UUID]:
        """Receipts of what the writer took back, which holds again."""
        return frozenset(_receipt(deed) for deed in self.own if deed.event is HistoryEvent.REVERT)

    @property
    def lost_ids(self) -> frozenset[UUID]:
        """Memories and turns that go."""
        return frozenset({*self.going, *(turn.id for turn in self.turns)})

    def ended_at(self, memory_id: UUID) -> datetime | None:
        """When the writer first took a memory out of its place, or gave it other words."""
        moments = [
            deed.ts
            for deed in self.deeds[memory_id]
            if deed.id in self.gone and _STANDING & known_changes(deed, None).keys()
        ]
        return min(moments, default=None)


async def look(uow: UnitOfWork, writer: RevertedWriter, user: str, within: Within, most: int = MOST) -> WriterChanges:
    """What a writer did to a user, the newest first, and what rests on it; the memories are locked."""
    found = WriterChanges(user, within)
    since = await _window(uow, writer, found, within, most)
    found.turns = await uow.reverts.turns(writer, user, since) if within.turns else []
    noted = await uow.reverts.writer_records(writer, user, since)
    found.noted = [each for each in noted if within.shows(each.changes.get("category"))]
    if found.empty:
        return found
    found.gone = {deed.id for deed in found.own}
    await _closure(uow, found, since, {deed.memory_id for deed in found.own})
    await _beside(uow, found, since, within)
    return found


async def _window(uow: UnitOfWork, writer: RevertedWriter, found: WriterChanges, within: Within, most: int) -> datetime:
    """The writer's newest entries, so many as one transaction takes; from when on they are."""
    before: UUID | None = None
    while len(found.own) < most:
        page = await uow.reverts.deeds_of(writer, found.user, before, most)
        found.own += [deed for deed in page if within.covers(deed)]
        if len(page) < most:
            break
        before = page[-1].id
    found.more = len(found.own) >= most
    return found.own[-1].ts if found.more else writer.since


async def _closure(uow: UnitOfWork, found: WriterChanges, since: datetime, wanted: set[UUID]) -> None:
    """Load memories, decide which go, and follow what rests on them, until nothing is added."""
    undone = found.undone
    for _ in range(_MAX_STEPS):
        new = wanted - found.deeds.keys()
        for memory in await uow.reverts.memories(new):
            found.memories[memory.id] = memory
        for name, deeds in (await uow.reverts.deeds_on(new, since)).items():
            found.deeds[name] = [replace(d, reverted_by=None) if d.reverted_by in undone else d for d in deeds]
        before = (set(found.gone), set(found.going))
        _decide(found)
        lost = found.lost_ids
        wanted = set(await uow.reverts.ended_by(found.user, found.going))
        wanted |= {by for each in found.going if (by := found.memories[each].superseded_by) is not None}
        if lost:
            await uow.lock_users(await uow.upkeep.users_of_derived(sorted(lost)))
            wanted |= {each.id for each in await uow.upkeep.lock_derived(sorted(lost))}
        if wanted <= found.deeds.keys() and before == (found.gone, found.going):
            return


def _decide(found: WriterChanges) -> None:
    """Which of the memories that are loaded go, and how the others are without the writer."""
    lost = found.lost_ids
    for name, memory in found.memories.items():
        deeds = found.deeds[name]
        found.gone |= {deed.id for deed in deeds if not deed.is_reverted and _rests(deed, lost)}
        mine = [deed for deed in deeds if deed.id in found.gone]
        after = memory
        begun = next((deed for deed in mine if creates(deed, memory)), None)
        if begun is not None:
            found.made.add(name)
            said = first_said(deeds, found.gone) is not None
            # what another one said of an approved value was not held back: it is to be decided on like any other
            unasked = said and begun.event is HistoryEvent.CONSENT
            why = None if said else stay_reason(deeds, found.gone)
            if why is not None:  # it sheds what the writer did to it since
                found.kept[name] = why
                after = without(memory, deeds, {deed.id for deed in mine if not creates(deed, memory)})
                found.after |= {name: after} if after != memory else {}
                continue
            if unasked or not said:
                found.going.add(name)
                found.repeated |= {name} if unasked else set()
                continue
        if mine:
            after = without(memory, deeds, found.gone)
        if not lost.isdisjoint(after.source_ids):
            if after.state in LASTING and fate(after, lost, FULL_AUTHORITY) is Fate.GOES:
                found.going.add(name)
                found.derived.add(name)
                continue
            after = without_sources(after, lost)
        if after != memory:
            found.after[name] = after
        else:
            found.after.pop(name, None)
    for each in found.going:
        found.after.pop(each, None)


def _rests(deed: RecordedChange, lost: Collection[UUID]) -> bool:
    """Whether what somebody did rests on what goes alone: it was said by it, or was done in favour of it."""
    named = {str(each) for each in lost}
    if deed.said is not None:
        memory = deed.said.get("memory")
        sources = memory.get("source_ids") if isinstance(memory, dict) else None
        if sources and named.issuperset(sources):
            return True
    if deed.event is HistoryEvent.SUPERSEDE:
        return deed.meta.get("superseded_by") in named
    return any(deed.meta.get(name) in named for name in _QUOTES)


async def _beside(uow: UnitOfWork, found: WriterChanges, since: datetime, within: Within) -> None:
    """What stands beside what comes back, and what else of the user the writer may have decided on."""
    store = uow.reverts
    back = {name for name in found.after if found.memories[name].user_id == found.user}
    moments = [moment for name in back if (moment := found.ended_at(name)) is not None]
    if moments:
        changed = await store.changed_since(found.user, min(moments))
        found.others = [each for each in changed if each.id not in found.going]
        unknown = {each.id for each in found.others} - found.deeds.keys()
        found.deeds |= await store.deeds_on(unknown, min(since, *moments))
    found.disputes = await store.disputes(found.going)
    missing = found.disputes.keys() - found.memories.keys()
    for memory in await store.memories({*missing, *(each for ids in found.disputes.values() for each in ids)}):
        found.memories.setdefault(memory.id, memory)
    for memory in found.others:
        found.memories.setdefault(memory.id, memory)
    found.proposals = await uow.removals.proposals([found.user])
    found.asked = await store.proposal_records([each.id for each in found.proposals])
    found.fields = await store.fields(found.user)
    found.decided = await store.decision_records(found.user, since)
    found.spoken = await store.corroborations(found.user) if found.turns else []
    found.rejected = await store.rejected_memories(found.user, found.going) if found.own else []
    found.buried = await store.tombstones_since(found.user, since) if found.own else []
    within = found.within
    found.refused = await store.count_refused(found.user, since, None if within.whole else within.categories)


def _receipt(deed: RecordedChange) -> UUID:
    return UUID(str(deed.meta["receipt"]))


def restored_ids(found: WriterChanges) -> Sequence[UUID]:
    """Memories that come back to their place, or to words that they had: others may stand there by now."""
    return [
        name
        for name, after in found.after.items()
        if after.state is State.ACTIVE
        and (found.memories[name].state is not State.ACTIVE or _stands_otherwise(found.memories[name], after))
    ]


def _stands_otherwise(before: Memory, after: Memory) -> bool:
    """Whether a memory says something else now, or weighs less."""
    return (before.text, before.category) != (after.text, after.category) or weight(after) < weight(before)
