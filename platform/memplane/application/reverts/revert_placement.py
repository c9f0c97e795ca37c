"""What comes back finds who stands there by now: decided as if it had never been away."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

import numpy as np

from memplane.application.memories.placement import DISPUTES, SUPERSEDES
from memplane.application.memories.supersession import NEIGHBOURS
from memplane.application.recall.search_material import Vector
from memplane.application.records import Edge
from memplane.application.reverts.revert_lookup import WriterChanges, restored_ids
from memplane.domain.language.comparison.comparison import Bands
from memplane.domain.language.terms import terms
from memplane.domain.memory.conflict_verdicts import POSSIBLE_CONFLICT
from memplane.domain.memory.memory import Memory, State, TrustState, weight
from memplane.domain.memory.merging import merge_texts
from memplane.domain.memory.revert_rules import StayReason, first_version, not_ended, redone
from memplane.domain.memory.write_decisions import (
    Action,
    Neighbour,
    WriteDecision,
    compare_neighbours,
    decide,
    said_again,
    said_at,
    same_store,
)

_MAX_STEPS = 50


@dataclass(slots=True)
class PlacementAfterRevert:
    """Memories as they will be, and what links them.

    Attributes:
        found: what was done to them.
        now: what comes back, and what stands there, by id.
        away: since when what comes back was away.
        edges: relations between them.
        barred: what stays away, for another memory has its name.
    """

    found: WriterChanges
    now: dict[UUID, Memory]
    away: Mapping[UUID, datetime]
    edges: list[Edge] = field(default_factory=list)
    barred: set[UUID] = field(default_factory=set)


def settle(found: WriterChanges, vector: Callable[[Memory], Vector | None], bands: Bands, now: datetime) -> list[Edge]:
    """Let what comes back and what came meanwhile be to each other what they would have been.

    ``found.after`` holds the outcome.

    Returns:
        The relations to add.
    """
    edges = _inherited(found)
    back = [name for name in restored_ids(found) if found.after[name].trust_state is not TrustState.DISPUTED]
    away = {name: moment for name in back if (moment := found.ended_at(name)) is not None}
    there = {each.id: found.after.get(each.id, each) for each in found.others}
    there |= {name: after for name, after in found.after.items() if name in away or name in found.made}
    standing = PlacementAfterRevert(found, there, away)
    before = dict(there)
    for name in sorted(there, key=lambda each: (there[each].recorded_at, each)):
        if standing.now[name].state is not before[name].state:  # another one took its place, or joined it, before
            continue
        _arrive(standing, name, vector, bands, now)
    _one_each(standing)
    found.kept |= dict.fromkeys(standing.barred, StayReason.VALUE_STANDS)
    for name, memory in standing.now.items():
        if memory != before[name] or name in found.after:
            found.after[name] = memory
    return edges + standing.edges


def _one_each(standing: PlacementAfterRevert) -> None:
    """Of several active memories of one value or name the latest stays."""
    latest: dict[object, Memory] = {}
    for name in sorted(standing.now, key=lambda each: (standing.now[each].recorded_at, each)):
        memory = standing.now[name]
        for key in places_of(memory) if memory.state is State.ACTIVE else ():
            other = latest.get(key)
            if other is not None and other.id != name and standing.now[other.id].state is State.ACTIVE:
                standing.now[other.id] = _ended(other, memory, memory.recorded_at)
                standing.barred.add(other.id)
            latest[key] = memory


def places_of(memory: Memory) -> list[tuple[object, ...]]:
    """What only one active memory may have: its value in its store, and its name."""
    store = (memory.user_id, memory.category, memory.type, memory.visibility, memory.min_trust)
    named = [(memory.user_id, memory.external_id)] if memory.external_id is not None else []
    return [(*store, memory.value_hash), *named]


def _inherited(found: WriterChanges) -> list[Edge]:
    """What the writer's memory took the place of stays in the past where another one took that one's place in turn."""
    edges = []
    for name in restored_ids(found):
        heir = _heir(found, found.memories[name].superseded_by)
        if heir is not None:
            found.after[name] = _ended(found.after[name], heir, found.memories[name].superseded_at or heir.recorded_at)
            edges.append(Edge(heir.id, name, 1.0, SUPERSEDES))
    return edges


def _heir(found: WriterChanges, by: UUID | None) -> Memory | None:
    """Who took the place of what goes, if it was another writer who said so."""
    for _ in range(_MAX_STEPS):
        if by is None or by not in found.going:
            return None
        by = found.memories[by].superseded_by
        memory = None if by is None or by in found.going else found.memories.get(by)
        if memory is not None:
            return found.after.get(memory.id, memory)
    return None


def _arrive(
    standing: PlacementAfterRevert, name: UUID, vector: Callable[[Memory], Vector | None], bands: Bands, now: datetime
) -> None:
    """One memory meets what was away when it came: as it was then, though it may be past by now."""
    new = standing.now[name]
    if new.state not in {State.ACTIVE, State.SUPERSEDED}:
        return
    met = _met(standing, new)
    for other in met:
        if same_store(other, new) and (other.value_hash == new.value_hash or _same_name(other, new)):
            _fold(standing, other, new, newer=False)
            return
    late = [each for each in met if new.recorded_at >= standing.away[each.id] and new.recorded_at > each.recorded_at]
    deeds = standing.found.deeds.get(name, [])
    first, _ = first_version(standing.found.memories[name], deeds, standing.found.gone)
    first = new if name in standing.found.kept else first
    first = replace(first, trust_state=TrustState.CANDIDATE) if first.trust_state is TrustState.DISPUTED else first
    around = compare_neighbours(first, _nearest(first, late, vector), bands)
    decision = decide(first, around, bands, max(now, first.recorded_at))
    if decision.action in {Action.MERGE, Action.UPDATE}:
        newer = True if decision.action is Action.UPDATE else None
        _fold(standing, decision.targets[0].memory, new, newer=newer)
        return
    _decided(standing, new, decision)


def _met(standing: PlacementAfterRevert, new: Memory) -> list[Memory]:
    """What was away when a memory came, and could be the same or contradict it."""
    found: list[Memory] = []
    for name, since in standing.away.items():
        other = standing.now[name]
        if name == new.id or other.user_id != new.user_id or other.state is not State.ACTIVE or new.updated_at < since:
            continue
        if new.id in standing.away and new.recorded_at < other.recorded_at:  # which meets this one in its turn
            continue
        if (other.category, other.type) == (new.category, new.type):
            found.append(other)
        elif _same_name(other, new):  # a name leads to one memory, whatever it is
            standing.now[name] = _ended(other, new, new.recorded_at)
            standing.barred.add(name)
    return found


def _decided(standing: PlacementAfterRevert, new: Memory, decision: WriteDecision) -> None:
    """Let a memory be what it would have been beside what was away."""
    match decision.action:
        case Action.SUPERSEDE:
            if new.trust_state is TrustState.DISPUTED:
                new = replace(new, trust_state=TrustState.CANDIDATE)
                standing.now[new.id] = new
            _supersede(standing, decision.targets, new)
        case Action.OUTDATED if new.state is State.ACTIVE:
            _supersede(standing, decision.overruled, new)
            later = decision.targets[0].memory
            standing.now[new.id] = _ended(new, later, later.recorded_at)
        case Action.DISPUTE:
            _doubt(standing, new)
            standing.edges += [_edge(new.id, each, DISPUTES) for each in decision.targets]
        case _:
            pass
    if new.state is State.ACTIVE:
        standing.edges += [_edge(new.id, each, POSSIBLE_CONFLICT) for each in decision.suspected]
        standing.edges += [_edge(new.id, each, "related_to") for each in decision.links]


def _doubt(standing: PlacementAfterRevert, new: Memory) -> None:
    """What is disputed took nobody's place."""
    standing.now[new.id] = replace(new, trust_state=TrustState.DISPUTED)
    for name, other in standing.now.items():
        if other.state is State.SUPERSEDED and other.superseded_by == new.id:
            standing.now[name] = not_ended(other, standing.found.deeds.get(name, []), new.id)


def _nearest(
    new: Memory, others: Sequence[Memory], vector: Callable[[Memory], Vector | None]
) -> list[tuple[Memory, float]]:
    """The nearest by meaning, and those by words, as a write looks for them."""
    own, words = vector(new), terms(new.text.searchable(), new.text.lang).counts.keys()
    if own is None:
        return []
    found = [(each, measured) for each in others if (measured := vector(each)) is not None]
    cosine = {each.id: float(np.dot(own, measured)) for each, measured in found}
    shared = {
        each.id: float(len(words & terms(each.text.searchable(), each.text.lang).counts.keys())) for each, _ in found
    }
    near: dict[UUID, tuple[Memory, float]] = {}
    for signal in (cosine, shared):
        best = sorted((each for each, _ in found), key=lambda each: (-signal[each.id], each.id))[:NEIGHBOURS]
        near |= {each.id: (each, cosine[each.id]) for each in best if signal[each.id] > 0}
    return sorted(near.values(), key=lambda pair: (-pair[1], pair[0].id))


def _supersede(standing: PlacementAfterRevert, ended: Sequence[Neighbour], new: Memory) -> None:
    for each in ended:
        standing.now[each.memory.id] = _ended(each.memory, new, new.recorded_at)
        standing.edges.append(_edge(new.id, each, SUPERSEDES))


def _fold(standing: PlacementAfterRevert, there: Memory, new: Memory, newer: bool | None) -> None:
    """What says the same is one memory: the later one becomes what the earlier one would be by now, and keeps its id.

    Args:
        standing: what it concerns.
        there: the earlier one.
        new: the later one.
        newer: whether the newer words are taken, or neither's: ``None``.
    """
    if new.state is State.SUPERSEDED:
        standing.now[there.id] = _ended(there, new, new.recorded_at)
        return
    found = standing.found
    now = found.memories[new.id]
    first, deeds = first_version(now, found.deeds.get(new.id, []), found.gone)
    text = there.text
    if newer is not None and weight(there) <= first.authority:
        text = merge_texts(there.text, first.text, newer=newer)
    one = replace(said_again(there, first), text=text, pii=tuple(sorted({*there.pii, *first.pii})))
    one = redone(replace(one, id=new.id, external_id=there.external_id or new.external_id), deeds, found.gone, now)
    standing.now[new.id] = replace(one, version=new.version, updated_at=new.updated_at)
    standing.now[there.id] = _ended(there, new, new.recorded_at)
    standing.edges.append(Edge(new.id, there.id, 1.0, SUPERSEDES))


def _ended(old: Memory, new: Memory, moment: datetime) -> Memory:
    """A memory in whose place another one is; see ``beside.supersede``."""
    never = said_at(new) <= said_at(replace(old, asserted_at=None))
    until = None if never else min(filter(None, (old.valid_until, said_at(new))))
    return replace(
        old, state=State.SUPERSEDED, superseded_by=new.id, superseded_at=moment, valid_until=until, purge_at=None
    )


def _edge(name: UUID, other: Neighbour, kind: str) -> Edge:
    return Edge(name, other.memory.id, round(min(max(other.similarity, 0.0), 1.0), 4), kind)


def _same_name(one: Memory, other: Memory) -> bool:
    return one.external_id is not None and one.external_id == other.external_id
