"""What taking a writer's changes back does to a user: worked out before anything is written, and told in a receipt."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from memplane.application.consent.proposals import draft_of
from memplane.application.recall.search_material import Vector
from memplane.application.records import ContextField, Edge, Proposal
from memplane.application.reverts.revert_lookup import WriterChanges, restored_ids
from memplane.application.reverts.revert_placement import settle
from memplane.application.reverts.revert_ports import RejectedValue, RevertedWriter
from memplane.domain.consent.consent_rules import MULTIPLE, ConsentRules, ProposalState
from memplane.domain.language.comparison.comparison import Bands
from memplane.domain.language.text import instant
from memplane.domain.memory.conflict_verdicts import POSSIBLE_CONFLICT, ConflictVerdict
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import Memory, State, TrustState
from memplane.domain.memory.revert_rules import StayReason, first_said, known_changes
from memplane.domain.memory.tombstones import rejected_keys, said_keys, value_key
from memplane.domain.memory.undo_records import UndoKind, UndoRecord
from memplane.domain.memory.write_decisions import said_again

MOST_ITEMS = 200
"""Items of a receipt; the counts have all of them."""
_BURIES = frozenset({HistoryEvent.REJECT, HistoryEvent.DELETE, HistoryEvent.CONSENT, HistoryEvent.PURGE})
_CERTAIN = frozenset(
    {HistoryEvent.ADD, HistoryEvent.DISPUTE, HistoryEvent.PURGE, HistoryEvent.LINK, HistoryEvent.REVERT}
)


@dataclass(frozen=True, slots=True)
class RevertItem:
    """One thing that is taken back, or stays.

    Attributes:
        what: ``removed``, ``restored``, ``changed``, ``ended``, ``withdrawn``, ``reopened``, ``lifted`` or ``kept``.
        reason: why it stays.
    """

    kind: str
    id: UUID
    user_id: str
    what: str
    reason: StayReason | None = None


@dataclass(slots=True)
class RevertPlan:
    """What is done to a user.

    Attributes:
        stored: memories as they will be, with how they are.
        derived: of these, those that rested on what goes.
        withdrawn: proposals that go.
        reopened: proposals that wait again.
        fields_gone: decided fields that hold no more.
        fields_back: those that hold again.
        reconciled: pairs that are a possible conflict again.
        linked: relations to add.
        lifted: values that are refused no longer.
        buried_again: values of verdicts that the writer lifted.
        entities: changes of entities, newest first.
    """

    found: WriterChanges
    stored: dict[UUID, tuple[Memory, Memory]] = field(default_factory=dict)
    withdrawn: list[Proposal] = field(default_factory=list)
    reopened: list[Proposal] = field(default_factory=list)
    fields_gone: list[ContextField] = field(default_factory=list)
    fields_back: list[ContextField] = field(default_factory=list)
    reconciled: list[tuple[UUID, UUID]] = field(default_factory=list)
    linked: list[Edge] = field(default_factory=list)
    lifted: list[RejectedValue] = field(default_factory=list)
    buried_again: list[Mapping[str, str]] = field(default_factory=list)
    entities: list[UndoRecord] = field(default_factory=list)
    items: list[RevertItem] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)

    def note(
        self, kind: str, name: UUID, what: str, reason: StayReason | None = None, *, of: str | None = None
    ) -> None:
        """Add an item to the receipt, unless the caller does not reach its category."""
        if of is None or self.found.within.shows(of):
            self._add(RevertItem(kind, name, self.found.user, what, reason))

    def note_memory(self, memory: Memory, what: str, reason: StayReason | None = None) -> None:
        """Add a memory to the receipt, unless the caller does not reach it: a derived one may be another user's."""
        if self.found.within.has(memory):
            self._add(RevertItem("memory", memory.id, memory.user_id, what, reason))

    def _add(self, item: RevertItem) -> None:
        if item.reason is None:
            self.counts[f"{_PLURAL.get(item.kind, item.kind + 's')}_{item.what}"] += 1
        self.items.append(item)


_PLURAL = {"memory": "memories", "entity": "entities"}


@dataclass(frozen=True, slots=True)
class RevertRules:
    """By what it is decided.

    Attributes:
        writer: whose changes are taken back.
        vector: a memory's vector by its words.
        now: the moment.
        purge_after: how long what goes can be restored.
    """

    writer: RevertedWriter
    vector: Callable[[Memory], Vector | None]
    bands: Bands
    consent: ConsentRules
    now: datetime
    purge_after: timedelta


def plan_revert(found: WriterChanges, rules: RevertRules) -> RevertPlan:
    """What to do with what was found."""
    plan = RevertPlan(found)
    _graves(plan)
    plan.linked = settle(found, rules.vector, rules.bands, rules.now)
    _fields(plan, rules)
    _proposals(plan, rules)
    _once(plan, rules.writer)
    _memories(plan, rules)
    if rebuilt := _rebuilt(plan):
        plan.lost["memories_rebuilt"] = rebuilt
    _believed(plan)
    for turn in found.turns:
        plan.note("turn", turn.id, "removed")
    _conflicts(plan)
    plan.entities = [each for each in found.noted if each.kind in {UndoKind.ALIAS, UndoKind.FOLD}]
    for each in plan.entities:
        plan.note("entity", each.about, "changed")
    for deed in found.own:
        if deed.event is HistoryEvent.PURGE:
            plan.lost["turns_deleted" if "turn" in deed.meta else "memories_purged"] += 1
        elif deed.event not in _CERTAIN and deed.changes is None and known_changes(deed, None):
            plan.lost["changes_inexact"] += 1
    if found.refused:
        plan.lost["writes_refused_since"] = found.refused
    return plan


def _memories(plan: RevertPlan, rules: RevertRules) -> None:
    found = plan.found
    for name in sorted(found.going):
        memory = found.memories[name]
        if memory.state is not State.SOFT_DELETED:
            gone = replace(memory, state=State.SOFT_DELETED, purge_at=rules.now + rules.purge_after)
            plan.stored[name] = (memory, gone)
            plan.note_memory(memory, "removed")
    for name in sorted(found.after):
        memory, after = found.memories[name], found.after[name]
        if after.state is State.SOFT_DELETED and after.purge_at is None:
            after = replace(after, purge_at=rules.now + rules.purge_after)
        if after == memory:
            continue
        plan.stored[name] = (memory, after)
        back = after.state is State.ACTIVE and memory.state is not State.ACTIVE
        ended = memory.state is State.ACTIVE and after.state is not State.ACTIVE
        plan.note_memory(memory, "restored" if back else "ended" if ended else "changed")
    for name, why in sorted(found.kept.items()):
        plan.note_memory(found.memories[name], "kept", why)


def _rebuilt(plan: RevertPlan) -> int:
    """How many memories get what others did to them, or said of them, done again without the writer's part."""
    found, count = plan.found, 0
    for name in plan.stored.keys() - found.going:
        deeds = [deed for deed in found.deeds.get(name, ()) if not deed.is_reverted]
        first = min((deed.id for deed in deeds if deed.id in found.gone), default=None)
        later = (deed for deed in deeds if first is not None and deed.id > first and deed.id not in found.gone)
        built_on = first is None or any(deed.event is not HistoryEvent.REVERT for deed in later)
        count += built_on and found.within.has(found.memories[name])
    return count


def _believed(plan: RevertPlan) -> None:
    """What disputed nothing but what goes is believed."""
    found = plan.found
    for name, disputed in sorted(found.disputes.items()):
        memory = found.memories.get(name)
        if memory is None or name in plan.stored or name in found.going:
            continue
        standing = [
            each
            for each in disputed
            if each not in found.going and (other := found.memories.get(each)) and other.state is State.ACTIVE
        ]
        if memory.state is State.ACTIVE and memory.trust_state is TrustState.DISPUTED and not standing:
            plan.stored[name] = (memory, replace(memory, trust_state=TrustState.CANDIDATE))
            plan.note_memory(memory, "restored")


def _proposals(plan: RevertPlan, rules: RevertRules) -> None:
    """Proposals of the writer's go, its decisions are open again, and what rests on what goes waits no more."""
    found, writer = plan.found, rules.writer
    decided = {
        (str(deed.meta["proposal"]), deed.ts)
        for deed in found.own
        if deed.event is HistoryEvent.CONSENT and "proposal" in deed.meta
    }
    named = {str(each) for each in found.lost_ids}
    for each in found.proposals:
        asked = found.asked.get(each.id) or []
        begun = [note for note in asked if note.ts >= writer.since]
        others = [note for note in asked if not writer.wrote(note.key_id, note.actor) and note.reverted_by is None]
        mine = bool(begun) and not others and len(begun) == len(asked)
        if not asked:  # of the version before: only who asked last is noted
            mine = each.created_at >= writer.since and writer.wrote(each.key_id, each.actor)
        mine = mine and each.memory_id not in found.repeated
        reopened = (str(each.id), each.decided_at) in decided
        waits = each.state is ProposalState.PENDING or reopened
        rests = not named.isdisjoint(_evidence(each)) and each.memory_id not in found.repeated
        if waits and (mine or rests or _is_known(plan, each, rules)):
            _withdraw(plan, each)
        elif reopened:
            plan.reopened.append(each)
            plan.note("proposal", each.id, "reopened", of=each.category)
        elif mine and each.state is ProposalState.APPROVED and any(note in found.noted for note in begun):
            plan.note("proposal", each.id, "kept", StayReason.APPROVED, of=each.category)


def _once(plan: RevertPlan, writer: RevertedWriter) -> None:
    """A value waits once: what was proposed again since would have been the same proposal, asked again."""
    reopened, gone = {each.id for each in plan.reopened}, {each.id for each in plan.withdrawn}
    there = [each for each in plan.found.proposals if each.id not in gone]
    for each in plan.reopened:
        same = [
            other
            for other in there
            if other.id != each.id
            and (other.field, value_key(other.new_value)) == (each.field, value_key(each.new_value))
        ]
        mine = writer.wrote(each.key_id, each.actor)
        actor, asked = _asked(plan.found, each)
        later = [one for one in same if one.actor == actor and one.created_at > asked]
        decided = any(one.state is not ProposalState.PENDING and one.id not in reopened for one in later)
        waiting = [one for one in same if one.state is ProposalState.PENDING or one.id in reopened]
        if decided or (mine and waiting):
            _withdraw(plan, each)
            reopened.discard(each.id)
            continue
        for one in waiting:
            if one in later and one.says_besides() == each.says_besides():
                _withdraw(plan, one)
                reopened.discard(one.id)
    withdrawn = {each.id for each in plan.withdrawn}
    plan.reopened = [each for each in plan.reopened if each.id not in withdrawn]


def _asked(found: WriterChanges, proposal: Proposal) -> tuple[str, datetime]:
    """Who would have proposed a value, and when: who said it too, for one that the writer approved."""
    if proposal.memory_id in found.repeated:
        said = first_said(found.deeds[proposal.memory_id], found.gone)
        if said is not None:
            return said.actor, said.ts
    return proposal.actor, proposal.created_at


def _withdraw(plan: RevertPlan, proposal: Proposal) -> None:
    if proposal.id not in {each.id for each in plan.withdrawn}:
        plan.withdrawn.append(proposal)
        plan.note("proposal", proposal.id, "withdrawn", of=proposal.category)


def _is_known(plan: RevertPlan, proposal: Proposal, rules: RevertRules) -> bool:
    """Whether what waits would have been known when it was said, and counted into the memory that holds it."""
    found, key = plan.found, value_key(proposal.new_value)
    repeated = proposal.memory_id in found.repeated
    if not repeated and proposal.created_at < rules.writer.since:
        return False
    moment = (proposal.decided_at or rules.now) if repeated else proposal.created_at
    row = next((row for row in _in_force(found, proposal.field, moment) if row.value_hash == key), None)
    if row is None:
        return False
    holder = found.after.get(row.memory_id) or found.memories.get(row.memory_id)
    if holder is not None and holder.state is State.ACTIVE and not repeated:
        found.after[holder.id] = said_again(holder, draft_of(proposal, rules.now))
    return True


def _in_force(found: WriterChanges, name: str, moment: datetime) -> list[ContextField]:
    """The values that a field had at a moment, but for those that the writer decided on."""
    mine = {each.ts for each in found.noted if each.kind is UndoKind.FIELD}
    rows = [row for row in found.fields if row.field == name]
    rows += [_field_of(row) for each in found.decided for row in each.changes["before"] if row["field"] == name]
    then = sorted((row for row in rows if row.decided_at < moment and row.decided_at not in mine), key=_when)
    return then if name in MULTIPLE else then[-1:]


def _when(row: ContextField) -> datetime:
    return row.decided_at


def _evidence(proposal: Proposal) -> set[str]:
    """The units that a proposal rests on."""
    drafted: Any = proposal.meta.get("memory") or {}
    return {str(proposal.evidence), *(drafted.get("source_ids") or ())}


def _fields(plan: RevertPlan, rules: RevertRules) -> None:
    """Fields have the values again that they had before, unless another one decided on them since."""
    found = plan.found
    rows = {(row.field, row.value_hash): row for row in found.fields}
    then = dict(rows)
    lapsed = _lapsed(found, rules.consent)
    for place in lapsed & rows.keys():
        if rows[place].proposal_id is None:
            del rows[place]
    for note in (each for each in found.noted if each.kind is UndoKind.FIELD):
        place = (note.changes["field"], note.changes["value_hash"])
        row = rows.get(place) or (then.get(place) if place in lapsed else None)
        if row is None or row.decided_at != note.ts:
            continue
        rows.pop(place, None)
        for before in map(_field_of, note.changes["before"]):
            same = (before.field, before.value_hash)
            if same == place or (before.field not in MULTIPLE and same not in lapsed):
                rows.setdefault(same, before)
    plan.fields_gone = [row for place, row in then.items() if rows.get(place) != row]
    plan.fields_back = [row for place, row in rows.items() if then.get(place) != row]
    for row in plan.fields_gone:
        plan.note("field", row.memory_id, "changed", of=row.category)


def _lapsed(found: WriterChanges, rules: ConsentRules) -> set[tuple[str, str]]:
    """Values of benign fields that too few turns speak for, without those that go."""
    gone = {turn.id for turn in found.turns}
    touched = {(field_, key) for field_, key, turn in found.spoken if turn in gone}
    left = {place: [turn for *at, turn in found.spoken if tuple(at) == place and turn not in gone] for place in touched}
    return {place for place, turns in left.items() if not rules.is_corroborated(turns)}


def _field_of(kept: Mapping[str, Any]) -> ContextField:
    ids = {name: None if kept[name] is None else UUID(kept[name]) for name in ("memory_id", "proposal_id", "evidence")}
    return ContextField(**{**kept, **ids, "decided_at": instant(kept["decided_at"])})


def _conflicts(plan: RevertPlan) -> None:
    """Pairs on which the writer decided wait for a verdict again."""
    for deed in plan.found.own:
        other = deed.meta.get("compatible_with")
        if deed.event is HistoryEvent.SUPERSEDE and "conflict" in deed.meta:
            other = deed.meta.get("superseded_by")
        elif deed.meta.get("verdict") != ConflictVerdict.KEEP_BOTH:
            continue
        if not isinstance(other, str) or not plan.found.lost_ids.isdisjoint({deed.memory_id, UUID(other)}):
            continue
        pair = (deed.memory_id, UUID(other))
        if pair not in plan.reconciled and pair[::-1] not in plan.reconciled:
            plan.reconciled.append(pair)
            plan.linked.append(Edge(*pair, 0.5, POSSIBLE_CONFLICT))
            plan.note("conflict", pair[0], "reopened")


def _graves(plan: RevertPlan) -> None:
    """Lift what the writer buried; what another one rejected too stays so, and does not come back."""
    found = plan.found
    mine = {(deed.actor, deed.ts) for deed in found.own if deed.event in _BURIES}
    others = {
        (each.category, key): each.updated_at
        for each in found.rejected
        if not any(deed.id in found.gone for deed in found.deeds.get(each.id, ()))
        for key in rejected_keys(each.text)
    }
    stays = dict(others)
    for each in found.buried:
        place = (each.category, each.key)
        if (each.actor, each.ts) in mine and place not in others:
            plan.lifted.append(each)
        elif (each.actor, each.ts) not in mine:
            stays.setdefault(place, each.ts)
    if plan.lifted:
        plan.counts["tombstones_lifted"] = len(plan.lifted)
    verdicts = (each for each in found.noted if each.kind is UndoKind.VERDICT)
    plan.buried_again = [row for each in verdicts for row in each.changes["rows"]]
    if plan.buried_again:
        plan.counts["tombstones_restored"] = len(plan.buried_again)
    for name in restored_ids(found) if stays else ():
        after, ended = found.after[name], found.ended_at(name)
        said = (stays.get((after.category, key)) for key in said_keys(after.text, after.attributes))
        if ended is not None and any(moment is not None and moment >= ended for moment in said):
            found.after.pop(name)
            found.kept[name] = StayReason.REJECTED


def texts_of(found: WriterChanges) -> list[Memory]:
    """Memories whose words are compared, or are other words than before: their search material is needed."""
    changed = [
        after
        for name, after in found.after.items()
        if after.state is State.ACTIVE or after.text != found.memories[name].text
    ]
    kinds = {(each.user_id, each.category, each.type) for each in changed}
    return [*changed, *(each for each in found.others if (each.user_id, each.category, each.type) in kinds)]
