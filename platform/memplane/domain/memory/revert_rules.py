"""What a memory would be without the changes of one writer: pure decisions over its history.

The fields that the writer changed go back to what they were before, and what others changed since is done again on
that: a value that another one set stays, a counter loses what the writer added, what another one said again is joined
again. Fields that the writer left alone stay as they are.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import Memory, State, TrustState, weight
from memplane.domain.memory.merging import merge_texts, value_hash
from memplane.domain.memory.undo_records import (
    RECORD,
    TEXT,
    Joining,
    Restatement,
    fields_of,
    plain,
    restatement_of,
    with_fields,
)
from memplane.domain.memory.write_decisions import said_again

COUNTERS = frozenset({"mention_count", "reinforcement", "hits"})
LIFE = frozenset({"state", "superseded_by", "superseded_at", "valid_until", "purge_at"})
"""Fields that change with the state of a memory, and only together."""
_VOUCHES = frozenset({HistoryEvent.CONFIRM, HistoryEvent.CONSENT, HistoryEvent.RESTORE})
"""What another writer does who stands behind a memory from then on."""

_ENDS = {
    HistoryEvent.SUPERSEDE: State.SUPERSEDED, HistoryEvent.RETRACT: State.SUPERSEDED,
    HistoryEvent.DELETE: State.SOFT_DELETED, HistoryEvent.TTL: State.SOFT_DELETED,
    HistoryEvent.REJECT: State.SOFT_DELETED, HistoryEvent.ARCHIVE: State.ARCHIVED,
}  # fmt: skip
_COUNTS: Mapping[HistoryEvent, Mapping[str, int]] = {
    HistoryEvent.REINFORCE: {"reinforcement": 3, "hits": 1}, HistoryEvent.DEMOTE: {"reinforcement": -1},
    HistoryEvent.MENTION: {"mention_count": 1}, HistoryEvent.MERGE: {"mention_count": 1},
}  # fmt: skip


class StayReason(StrEnum):
    """Why something of a writer stays as it is."""

    REWRITTEN = "rewritten"
    VOUCHED = "vouched"
    VALUE_STANDS = "value_stands"
    REJECTED = "rejected"
    APPROVED = "approved"
    MERGED_SINCE = "merged_since"


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """One entry of a memory's history, with what it changed.

    Attributes:
        memory_id: the memory, or the proposal that was decided on.
        key_id: of the writer.
        changes: fields with their values before and after; ``None`` where that was not kept.
        said: what it counted into the memory, as its undo record has it.
        reverted_by: the receipt of what took it back already.
    """

    id: UUID
    memory_id: UUID
    user_id: str
    event: HistoryEvent
    actor: str
    key_id: str | None
    ts: datetime
    old: str | None = None
    new: str | None = None
    meta: Mapping[str, object] = field(default_factory=dict)
    changes: Mapping[str, Sequence[object]] | None = None
    said: Mapping[str, object] | None = None
    reverted_by: UUID | None = None

    @property
    def is_reverted(self) -> bool:
        """Whether it was taken back already."""
        return self.reverted_by is not None

    @property
    def rewrites(self) -> bool:
        """Whether it gave the memory other words of its own."""
        own = self.event is HistoryEvent.UPDATE and self.said is None
        return own and ("content" in self.changes if self.changes is not None else self.old != self.new)


def creates(deed: RecordedChange, memory: Memory) -> bool:
    """Whether an entry is the one with which a memory began."""
    if deed.event in {HistoryEvent.ADD, HistoryEvent.DISPUTE}:
        return True
    return deed.event is HistoryEvent.CONSENT and not deed.changes and memory.recorded_at == deed.ts


def known_changes(deed: RecordedChange, memory: Memory | None) -> Mapping[str, Sequence[object]]:
    """What an entry changed: as it was kept, else as far as the history and the memory as it is now tell."""
    return _told(deed, memory) if deed.changes is None else deed.changes


def _told(deed: RecordedChange, memory: Memory | None) -> Mapping[str, Sequence[object]]:
    """What an entry changed of which no undo record was kept, as the version before left it."""
    meta, event = deed.meta, deed.event
    now = {} if memory is None else fields_of(memory)
    found: dict[str, Sequence[object]] = {}
    if event in _ENDS:
        found["state"] = ["active", _ENDS[event].value]
    if event in {HistoryEvent.SUPERSEDE, HistoryEvent.RETRACT}:
        found["superseded_by"] = [None, meta.get("superseded_by")]
        found["superseded_at"] = [None, plain(deed.ts)]
        found["valid_until"] = [None, now.get("valid_until")]
    elif event is HistoryEvent.REJECT:
        found["trust_state"] = ["candidate", "rejected"]
    elif event is HistoryEvent.RESTORE:
        found["state"] = ["soft_deleted", "active"]
    elif event is HistoryEvent.PIN:
        found["pinned"] = [not meta.get("pinned"), bool(meta.get("pinned"))]
    elif event is HistoryEvent.CONFIRM:
        was = meta.get("was", "candidate")
        found["trust_state"] = [was, "candidate" if was == "disputed" else "confirmed"]
    elif event in _COUNTS:
        found |= {name: [0, step] for name, step in _COUNTS[event].items()}
        found |= {"source_ids": [[], meta["evidence"]]} if "evidence" in meta else {}
    elif event is HistoryEvent.UPDATE:
        was = meta.get("was")
        found |= {name: [value, now.get(name)] for name, value in was.items()} if isinstance(was, dict) else {}
        found |= {"content": [deed.old, deed.new]} if deed.old not in (None, deed.new) else {}
    return found


def stay_reason(deeds: Sequence[RecordedChange], gone: Collection[UUID]) -> StayReason | None:
    """Why a memory that a writer made stays: another one rewrote it or stands behind it.

    What another one said again makes it that one's memory: see :func:`without`.
    """
    for deed in deeds:
        if deed.id in gone or deed.is_reverted or deed.said is not None or deed.event is HistoryEvent.REVERT:
            continue
        if deed.rewrites:
            return StayReason.REWRITTEN
        if deed.event in _VOUCHES:
            return StayReason.VOUCHED
    return None


def first_said(deeds: Sequence[RecordedChange], gone: Collection[UUID]) -> RecordedChange | None:
    """The first entry by which another writer said what a memory says."""
    kept = (deed for deed in deeds if deed.id not in gone and not deed.is_reverted and deed.said is not None)
    return next(kept, None)


def without(memory: Memory, deeds: Sequence[RecordedChange], gone: Collection[UUID]) -> Memory:
    """A memory without some of its changes, as others would have left it.

    Args:
        memory: as it is now.
        deeds: its history, oldest first, at least from the first of those on.
        gone: which entries are taken back.
    """
    if any(deed.id in gone and creates(deed, memory) for deed in deeds):
        if first_said(deeds, gone) is None:
            return memory
        first, rest = first_version(memory, deeds, gone)
        return redone(first, rest, gone, memory)
    changes = {deed.id: known_changes(deed, memory) for deed in deeds}
    touched = {name for deed in deeds if deed.id in gone for name in changes[deed.id]}
    if touched & TEXT:  # what is made of the words goes with them
        touched |= {"value_hash", "pii"}
    if touched & LIFE:
        touched |= LIFE
    began = before_all(memory, deeds)
    after, now = fields_of(redone(began, deeds, gone, memory)), fields_of(memory)
    # what others said may have been joined otherwise for the writer's sake
    otherwise = fields_of(redone(began, deeds, (), memory))
    touched |= {name for name, value in after.items() if value != otherwise[name]} - COUNTERS
    for name in touched & COUNTERS:
        taken = sum(_step(changes[deed.id][name]) for deed in deeds if deed.id in gone and name in changes[deed.id])
        after[name] = _number(now[name]) - taken
    chosen = {name: after[name] for name in touched if name in TEXT or name in RECORD}
    return _fitting(with_fields(memory, chosen))


def first_version(
    memory: Memory, deeds: Sequence[RecordedChange], gone: Collection[UUID]
) -> tuple[Memory, Sequence[RecordedChange]]:
    """How a memory began without some of its changes, and what was done to it since.

    What was made by one of them began when another writer said it.
    """
    if not any(deed.id in gone and creates(deed, memory) for deed in deeds):
        return before_all(memory, deeds), deeds
    deed = first_said(deeds, gone)
    said = None if deed is None else restatement_of(deed.said, memory)
    if deed is None or said is None:
        return memory, ()
    doubt = memory.trust_state is TrustState.DISPUTED and deed.event is not HistoryEvent.CONFIRM
    first = replace(said.memory, trust_state=TrustState.DISPUTED) if doubt else said.memory
    return first, deeds[deeds.index(deed) + 1 :]


def before_all(memory: Memory, deeds: Sequence[RecordedChange]) -> Memory:
    """A memory before what was done to it."""
    fields = fields_of(memory)
    for deed in reversed(deeds):
        _back(fields, known_changes(deed, memory))
    return with_fields(memory, fields)


def redone(memory: Memory, deeds: Sequence[RecordedChange], gone: Collection[UUID], named: Memory) -> Memory:
    """What others did, done again on a memory that is as it was before.

    Args:
        memory: as it was.
        deeds: what was done to it since, oldest first.
        gone: what of it is not done again.
        named: the memory as it is now.
    """
    for deed in deeds:
        if deed.id in gone or deed.is_reverted or deed.event is HistoryEvent.REVERT:
            continue
        said = restatement_of(deed.said, named)
        memory = _changed(memory, known_changes(deed, named)) if said is None else _joined(memory, said)
    return _fitting(memory)


def _joined(memory: Memory, said: Restatement) -> Memory:
    """A memory into which what was said again is counted, and joined as it was then."""
    counted = said_again(memory, said.memory)
    if said.how is Joining.MENTION and (
        memory.trust_state is TrustState.DISPUTED or weight(memory) != said.memory.authority
    ):
        return counted
    if said.how is Joining.MERGE or weight(memory) > said.memory.authority:
        return counted
    text = merge_texts(memory.text, said.memory.text, newer=said.how is Joining.UPDATE)
    if text == memory.text:
        return counted
    return replace(counted, text=text, pii=tuple(sorted({*memory.pii, *said.memory.pii})))


def _changed(memory: Memory, changes: Mapping[str, Sequence[object]]) -> Memory:
    """A memory with what one entry changed."""
    now = fields_of(memory)
    ends = "state" in changes
    if ends and changes["state"][1] == now["state"]:  # it is there, or gone, already
        changes = {name: values for name, values in changes.items() if name not in LIFE}
    for name, (old, new) in changes.items():
        if name in COUNTERS:
            now[name] = _number(now[name]) + _step((old, new))
        elif name == "source_ids":
            now[name] = _exchanged(_texts(now[name]), _texts(old), _texts(new))
        else:
            now[name] = new
    return with_fields(memory, now)


def not_ended(memory: Memory, deeds: Sequence[RecordedChange], by: UUID) -> Memory:
    """A memory that another one would not have taken the place of."""
    for deed in reversed(deeds):
        if deed.event is HistoryEvent.SUPERSEDE and deed.meta.get("superseded_by") == str(by):
            changes = known_changes(deed, memory)
            ends = {name: values[0] for name, values in changes.items() if name in LIFE}
            return _fitting(with_fields(memory, ends | {"state": State.ACTIVE.value}))
    return memory


def _back(fields: dict[str, object], changes: Mapping[str, Sequence[object]]) -> None:
    for name, (old, new) in changes.items():
        if name in COUNTERS:
            fields[name] = _number(fields[name]) - _step((old, new))
        elif name == "source_ids":
            fields[name] = _exchanged(_texts(fields[name]), _texts(new), _texts(old))
        else:
            fields[name] = old


def _exchanged(there: Sequence[str], old: Sequence[str], new: Sequence[str]) -> list[str]:
    """A list in which what one change took out and put in is taken out and put in."""
    left = [each for each in there if each not in old or each in new]
    return [*left, *(each for each in new if each not in old and each not in left)]


def _fitting(memory: Memory) -> Memory:
    """A memory whose hash is that of its words, and whose ends are those of its state."""
    fitting = replace(memory, value_hash=value_hash(memory.text, memory.external_id))
    if memory.state is State.ACTIVE:
        fitting = replace(fitting, superseded_by=None, superseded_at=None)
    return fitting if memory.state is State.SOFT_DELETED else replace(fitting, purge_at=None)


def _step(change: Sequence[object]) -> int:
    return _number(change[1]) - _number(change[0])


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list | tuple) else []
