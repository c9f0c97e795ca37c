"""Where a new memory goes: beside what is known, into it, or in its place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from memplane.application.limits.offload import offload
from memplane.application.memories.gateway import Write
from memplane.application.memories.supersession import (
    FACT_TIMES,
    NEIGHBOURS,
    PendingWrites,
    adjust,
    after,
    as_outdated,
    evidence,
    exact,
    fact_times,
    is_over,
    is_rejected,
    later_superseded,
    neighbour_scope,
    neighbours,
    own_end,
    retire,
    supersede,
    suspect,
)
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import Edge, LinkChange, LookupResult, WriteLookup
from memplane.domain.errors import StateConflict
from memplane.domain.language.entities import Mention, mentions
from memplane.domain.language.terms import terms
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.items import is_item
from memplane.domain.memory.memory import RETRIEVABLE_TRUST, Memory, State, TrustState, weight
from memplane.domain.memory.merging import merge_texts, value_hash
from memplane.domain.memory.scope import read_scope
from memplane.domain.memory.undo_records import Joining, Restatement
from memplane.domain.memory.write_decisions import (
    Action,
    Neighbour,
    WriteDecision,
    compared_in,
    decide,
    first_said,
    is_more,
    said_again,
    said_at,
    same_store,
)
from memplane.domain.memory.writing import StyleWarning

DISPUTES = "disputes"
RELATED = "related_to"
SUPERSEDES = "supersedes"
OUTRANKED = "outranked"
STORED = frozenset({"created", "superseded", "disputed", "outdated", "updated"})
"""Outcomes by which more is stored than before."""
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a write did.

    Attributes:
        outcome: ``created``, ``updated``, ``merged``, ``duplicate``, ``superseded``, ``disputed``, ``outdated``,
            ``refused``, ``deleted``, ``retracted``, ``rejected``, ``restored``, ``unchanged`` or
            ``queued_for_consent``.
        memory: the memory as it is now; as it would be, when it waits for consent.
        rev: the thread's revision, for a memory with a thread.
        overruled: memories that this one took the place of, or that it disputes.
        proposal: what waits for consent, instead of the memory.
        conflicts: memories that it may contradict, though their words do not prove it.
        warnings: rules of style that the words break, and for which they are not refused.
    """

    outcome: str
    memory: Memory
    rev: int | None = None
    overruled: tuple[UUID, ...] = ()
    proposal: UUID | None = None
    conflicts: tuple[UUID, ...] = ()
    warnings: tuple[StyleWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A new memory with its search material, and what was placed before it in the same transaction.

    Attributes:
        drawn_by: for the history, which frame drew it from a turn, by which of the turn's words.
    """

    memory: Memory
    material: SearchMaterial
    agent: str
    placed: PendingWrites = field(default_factory=PendingWrites)
    drawn_by: Mapping[str, object] = field(default_factory=dict)


async def place(write: Write, fresh: Candidate) -> Outcome:
    """Store a new memory as the rules of merging want it; the caller settles the write.

    Raises:
        Conflict: its external id is taken by a record of another category or type.
    """
    mentioned = await _mentions(fresh.memory)
    outranked: list[Memory] = []
    for _ in range(_TRIES):
        seen = await _looked(write, fresh, mentioned)
        fresh = replace(fresh, memory=after(fresh.memory, seen.last))
        if await is_rejected(write, fresh.memory, seen.buried):
            return _refused(write, fresh.memory)
        cleared = False
        while seen.there is not None and await _makes_room(write, seen.there, fresh, outranked):
            cleared, seen = True, await _looked(write, fresh, mentioned)
        outcome = await _placed(write, fresh, replace(seen, past=None) if cleared else seen, mentioned)
        if outcome is not None:
            return await _instead(write, outcome, outranked)
    raise StateConflict("the same memory is being changed at this moment; try again")


async def _placed(write: Write, fresh: Candidate, seen: LookupResult, mentioned: tuple[Mention, ...]) -> Outcome | None:
    """Count the memory into one that is there, or store it; ``None`` when another one came first."""
    memory, past, decision = fresh.memory, seen.past, None
    if seen.there is not None:
        decision = await _in_time(write, seen.there, fresh)
        if decision is None or not _is_apart(decision, seen.there):
            return await _promoted(write, seen.there, fresh) or await _mentioned(write, seen.there, fresh, decision)
    if past is not None and not _put_anew(past, memory) and weight(past) >= memory.authority:
        return await _told_before(write, past, fresh)
    decision = decision or await _decided(write, fresh, None if seen.there or past else seen.near)
    if decision.action in {Action.MERGE, Action.UPDATE}:
        return await _merged(write, fresh, decision)
    named = await write.uow.graph.entities(memory.user_id, mentioned, write.now, seen.known)
    return await _stored(write, fresh, decision, named)


async def _makes_room(write: Write, there: Memory, fresh: Candidate, outranked: list[Memory]) -> bool:
    """Take a memory of the new one's value or name out of its way when it is over, or is outranked: noted for later."""
    if is_over(there, fresh.memory, write.now):
        await retire(write, there)
    elif _outranks(fresh.memory, there):
        await write.uow.memories.replace(replace(there, state=State.SUPERSEDED), None)
        outranked.append(there)
    else:
        return False
    fresh.placed.forget([there.id])
    return True


def _outranks(new: Memory, there: Memory) -> bool:
    """Whether a memory takes the name or value of a less trusted one, which says something else or something besides.

    Authority rises only for words that the more trusted writer wrote.
    """
    if (there.category, there.type) != (new.category, new.type) or weight(there) >= new.authority:
        return False
    return there.value_hash != new.value_hash or not same_store(there, new) or is_more(there, new)


async def _instead(write: Write, outcome: Outcome, outranked: Sequence[Memory]) -> Outcome:
    """Tell of the less trusted memories that a new one took the place of."""
    if not outranked:
        return outcome
    for each in outranked:
        await supersede(write, each, outcome.memory, {"verdict": OUTRANKED})
    edges = [Edge(outcome.memory.id, each.id, 1.0, SUPERSEDES) for each in outranked]
    await write.uow.graph.link(edges, write.now)
    done = "superseded" if outcome.outcome == "created" else outcome.outcome
    return replace(outcome, outcome=done, overruled=(*(each.id for each in outranked), *outcome.overruled))


async def _looked(write: Write, fresh: Candidate, mentioned: tuple[Mention, ...]) -> LookupResult:
    memory = fresh.memory
    return await write.uow.look(
        WriteLookup(memory, fresh.material, neighbour_scope(write, memory), NEIGHBOURS, mentioned)
    )


def _put_anew(past: Memory, new: Memory) -> bool:
    """Whether an item of a store gets another value than the one that was overruled."""
    return is_item(new.external_id) and past.value_hash != new.value_hash


async def _decided(write: Write, fresh: Candidate, near: Sequence[tuple[Memory, float]] | None = None) -> WriteDecision:
    around = await neighbours(write, fresh.memory, fresh.material, fresh.placed, near)
    now = max(write.now, fresh.memory.recorded_at)  # which is ahead of a clock that was put back
    past = await later_superseded(write, fresh.memory, fresh.material, fresh.placed)
    decision = decide(fresh.memory, around, write.policy.merging.bands_for(write.model), now, past=past)
    return await exact(write, decision, said_at(fresh.memory))


async def _in_time(write: Write, there: Memory, fresh: Candidate) -> WriteDecision | None:
    """What to do with a memory of an active one's value that was said before that one; ``None`` for any other."""
    new = fresh.memory
    named = there.external_id is not None and there.external_id == new.external_id
    if named or there.value_hash != new.value_hash or first_said(there) <= said_at(new):
        return None
    if there.trust_state not in RETRIEVABLE_TRUST or not same_store(there, new):
        return None
    return await _decided(write, fresh)


def _is_apart(decision: WriteDecision, there: Memory) -> bool:
    """Whether another value held between a late memory and the active one of its value."""
    if decision.action is Action.MERGE:
        return decision.targets[0].memory.id != there.id
    return decision.action is Action.OUTDATED


def _refused(write: Write, memory: Memory) -> Outcome:
    write.record_refusal(memory)
    return Outcome("refused", memory)


async def _promoted(write: Write, there: Memory, fresh: Candidate) -> Outcome | None:
    """Believe what was disputed, when somebody says it who outweighs what it disputes."""
    if there.trust_state is not TrustState.DISPUTED or not same_store(there, fresh.memory):
        return None
    again = _counted(write, there, fresh.memory)
    decision = await _decided(write, replace(fresh, memory=replace(again, recorded_at=write.now)))
    if decision.action not in {Action.SUPERSEDE, Action.CREATE}:
        return None
    sure = replace(again, trust_state=TrustState.CANDIDATE)
    await write.uow.memories.replace(sure, None)
    gone = tuple(target.memory.id for target in decision.targets)
    for target in decision.targets:
        await supersede(write, target.memory, sure, _why(target))
    fresh.placed.forget(gone)
    said = Restatement(fresh.memory, Joining.MENTION)
    told = evidence(fresh.memory, was="disputed")
    write.record_change(HistoryEvent.CONFIRM, ChangeEvent.CREATED, sure, there, told, said=said)
    return Outcome("superseded" if gone else "updated", sure, overruled=gone)


async def _mentioned(write: Write, there: Memory, fresh: Candidate, decision: WriteDecision | None = None) -> Outcome:
    """Count the memory into the one of its value or name, which takes what the new one says besides."""
    new = fresh.memory
    if not same_store(there, new) or (there.category, there.type) != (new.category, new.type):
        raise StateConflict("external_id: is taken; choose another", field="external_id")
    if there.value_hash != new.value_hash:
        await _require_readable(write, there, fresh)
    again = _counted(write, there, new)
    if decision is not None:
        await adjust(write, again, said_at(new), decision, fresh.placed)
    if there.value_hash == new.value_hash and weight(there) == new.authority:
        text = merge_texts(there.text, new.text)
        if text != again.text:
            return await _rewritten(write, there, replace(again, text=text), fresh, _times(there, new), Joining.MENTION)
    await write.uow.memories.replace(again, None)
    fresh.placed.note(again, None)
    meta = evidence(new, mention_count=again.mention_count, **fresh.drawn_by, **_times(there, new))
    write.record_change(HistoryEvent.MENTION, None, again, there, meta, said=Restatement(new, Joining.MENTION))
    return Outcome("duplicate", again)


async def _told_before(write: Write, past: Memory, fresh: Candidate) -> Outcome:
    """A record that was overruled since is no news when it is sent again."""
    await _require_readable(write, past, fresh)
    return Outcome("duplicate", past)


async def _require_readable(write: Write, there: Memory, fresh: Candidate) -> None:
    """What was found by its name alone must not open another category."""
    allowed = write.policy.allowlist(fresh.agent).read
    scope = read_scope(write.principal, write.policy, allowed, write.now)
    scope = replace(scope, states=(there.state,), trust_states=tuple(TrustState))
    if await write.uow.memories.find(scope, there.id) is None:
        raise StateConflict("external_id: is taken; choose another", field="external_id")


async def _merged(write: Write, fresh: Candidate, decision: WriteDecision) -> Outcome:
    """Count the memory into the one that says the same, which takes the newer words if they may replace its own."""
    (target,) = decision.targets
    there, new = target.memory, fresh.memory
    again = _counted(write, there, new)
    await adjust(write, again, said_at(new), decision, fresh.placed)
    meta = _times(there, new) | _why(target) | {"said": new.text.content, "words": compared_in(there, new)}
    meta |= fresh.drawn_by
    if decision.action is Action.UPDATE:
        text = merge_texts(there.text, new.text, newer=True)
        return await _rewritten(write, there, replace(again, text=text), fresh, meta, Joining.UPDATE)
    await write.uow.memories.replace(again, None)
    fresh.placed.note(again, None)
    told = ChangeEvent.MERGED if again.state is State.ACTIVE else None
    write.record_change(
        HistoryEvent.MERGE, told, again, there, evidence(new, **meta), said=Restatement(new, Joining.MERGE)
    )
    return Outcome("duplicate" if there.value_hash == new.value_hash else "merged", again)


async def _rewritten(
    write: Write, there: Memory, again: Memory, fresh: Candidate, meta: dict[str, object], how: Joining
) -> Outcome:
    """Give a memory the joined words; it is only counted when another one has exactly these."""
    kinds = tuple(sorted({*there.pii, *fresh.memory.pii}))
    changed = replace(again, value_hash=value_hash(again.text, again.external_id), pii=kinds)
    searchable = changed.text.searchable()
    words = await offload(len(searchable), terms, searchable, changed.text.lang)
    material = SearchMaterial(words, fresh.material.embedding)
    told = evidence(fresh.memory, **meta)
    if not await write.uow.memories.replace(changed, material):
        same = replace(again, text=there.text)
        await write.uow.memories.replace(same, None)
        write.record_change(
            HistoryEvent.MERGE, ChangeEvent.MERGED, same, there, told, said=Restatement(fresh.memory, Joining.MERGE)
        )
        return Outcome("merged", same)
    await note_mentions(write, changed)
    fresh.placed.note(changed, write.vector(material))
    write.record_change(
        HistoryEvent.UPDATE, ChangeEvent.UPDATED, changed, there, told, said=Restatement(fresh.memory, how)
    )
    return Outcome("updated", changed)


async def note_mentions(write: Write, memory: Memory) -> None:
    """Link a memory with the entities that it mentions."""
    graph = write.uow.graph
    await graph.mention(memory, await graph.entities(memory.user_id, await _mentions(memory), write.now))


async def _mentions(memory: Memory) -> tuple[Mention, ...]:
    words = memory.text.searchable()
    return await offload(len(words), mentions, words)


def _times(there: Memory, new: Memory) -> dict[str, object]:
    """For the history, when a memory was said that is said again at another time than its own."""
    told = first_said(there) <= said_at(new) <= said_at(there) and first_said(there) == said_at(there)
    return {} if told else {FACT_TIMES: fact_times(there, new)}


def _counted(write: Write, there: Memory, new: Memory) -> Memory:
    return replace(said_again(there, new), updated_at=write.now, version=there.version + 1)


async def _stored(write: Write, fresh: Candidate, decision: WriteDecision, named: Sequence[UUID]) -> Outcome | None:
    """Insert the memory, with what it does to others; ``None`` when another one of its value or name came first."""
    memory, targets = _as_decided(write, fresh.memory, decision), decision.targets
    graph = write.uow.graph
    if not await write.uow.memories.add(memory, fresh.material):
        return None
    await graph.mention(memory, named)
    edges = [Edge(memory.id, n.memory.id, _strength(n), RELATED) for n in decision.links]
    conflicts = await suspect(write, memory, decision.suspected)
    outcome: str = "created"
    change: ChangeEvent | None = ChangeEvent.CREATED
    match decision.action:
        case Action.SUPERSEDE:
            for target in targets:
                await supersede(write, target.memory, memory, _why(target))
            fresh.placed.forget([target.memory.id for target in targets])
            edges += [Edge(memory.id, n.memory.id, _strength(n), SUPERSEDES) for n in targets]
            outcome = "superseded"
        case Action.DISPUTE:
            edges += [Edge(memory.id, n.memory.id, _strength(n), DISPUTES) for n in targets]
            outcome, change = "disputed", None
        case Action.OUTDATED:
            for each in decision.overruled:
                await supersede(write, each.memory, memory, _why(each))
            fresh.placed.forget([each.memory.id for each in decision.overruled])
            edges += [Edge(memory.id, n.memory.id, _strength(n), SUPERSEDES) for n in decision.overruled]
            outcome, change = "outdated", None
        case _:
            pass
    await adjust(write, memory, said_at(memory), decision, fresh.placed)
    await graph.link(edges, write.now)
    fresh.placed.note(memory, write.vector(fresh.material))
    event = HistoryEvent.DISPUTE if outcome == "disputed" else HistoryEvent.ADD
    about: dict[str, object] = {"concerns": [_concerning(memory, n) for n in targets]} if targets else {}
    if outcome == "outdated":
        about |= own_end(fresh.memory)
    write.record_change(event, change, memory, None, evidence(memory, **fresh.drawn_by, **about))
    if near := (*decision.links, *targets, *decision.overruled, *decision.suspected):
        write.record_similarity(max(_strength(each) for each in near))
    write.record_links(memory, [LinkChange(n.memory, RELATED, _strength(n)) for n in decision.links])
    return Outcome(
        outcome, memory, overruled=tuple(n.memory.id for n in (*targets, *decision.overruled)), conflicts=conflicts
    )


def _as_decided(write: Write, memory: Memory, decision: WriteDecision) -> Memory:
    match decision.action:
        case Action.DISPUTE:
            return replace(memory, trust_state=TrustState.DISPUTED)
        case Action.OUTDATED:
            return as_outdated(write, memory, decision)
        case Action.SUPERSEDE:
            return replace(memory, valid_from=memory.valid_from or said_at(memory))
        case _:
            return memory


def _strength(neighbour: Neighbour) -> float:
    return round(min(max(neighbour.similarity, 0.0), 1.0), 4)


def _why(neighbour: Neighbour) -> dict[str, object]:
    return {
        "verdict": neighbour.verdict.value,
        "rule": neighbour.rule.value,
        "similarity": round(neighbour.similarity, 4),
    }


def _concerning(memory: Memory, neighbour: Neighbour) -> dict[str, object]:
    """Why a memory concerns another one, in words that are its own: the other one's may not be for every reader."""
    words = compared_in(neighbour.memory, memory)
    own = {name: words[name] for name in ("common", "new")}
    return {"id": str(neighbour.memory.id), **_why(neighbour), "words": own}
