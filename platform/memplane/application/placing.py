"""Where a new memory goes: beside what is known, into it, or in its place."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np

from memplane.application.gateway import Write
from memplane.application.records import Edge, Held, SearchMaterial
from memplane.domain.delta import ChangeEvent
from memplane.domain.entities import mentions
from memplane.domain.errors import Conflict, ValueRejected
from memplane.domain.history import HistoryEvent
from memplane.domain.lifecycle import PURGE_AFTER, check_transition
from memplane.domain.memory import RETRIEVABLE_TRUST, Memory, State, TrustState
from memplane.domain.merging import value_hash
from memplane.domain.reconciling import Action, Decision, Neighbour, compared, decide, said_at
from memplane.domain.scope import Filters, Scope, read_scope
from memplane.domain.tombstones import said_keys

NEIGHBOURS = 10
DISPUTES = "disputes"
SUPERSEDES = "supersedes"
CORRECTED = "corrected"
RESTORED = "restored"
_NEVER_SO = (CORRECTED, RESTORED)
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a write did.

    Attributes:
        outcome: ``created``, ``updated``, ``merged``, ``duplicate``, ``superseded``, ``disputed``, ``outdated``,
            ``refused``, ``deleted``, ``retracted``, ``rejected``, ``restored`` or ``unchanged``.
        memory: the memory as it is now.
        rev: the thread's revision, for a memory with a thread.
        overruled: memories that this one took the place of, or that it disputes.
    """

    outcome: str
    memory: Memory
    rev: int | None = None
    overruled: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Fresh:
    """A new memory with its search material, and what was placed before it in the same transaction."""

    memory: Memory
    material: SearchMaterial
    agent: str
    before: Sequence[tuple[Memory, SearchMaterial]] = ()


async def place(write: Write, fresh: Fresh) -> Outcome:
    """Store a new memory as the rules of merging want it; the caller settles the write.

    Raises:
        Conflict: its external id is taken by a record of another category.
    """
    memory = fresh.memory
    held = await write.uow.tombstones.held(memory.user_id, memory.category, said_keys(memory.text))
    if held is Held.THESE:
        return _refused(write, memory)
    for _ in range(_TRIES):
        there = await write.uow.memories.find_duplicate(memory)
        if there is not None and there.expires_at is not None and there.expires_at <= write.now:
            await retire(write, there)
        elif there is not None:
            return await _mentioned(write, there, fresh)
        elif past := await write.uow.memories.find_past(memory):
            return await _told_before(write, past, fresh)
        decision = await _decided(write, fresh, rejected=held is Held.OTHERS)
        if decision.action is Action.REFUSE:
            return _refused(write, memory)
        if decision.action in {Action.MERGE, Action.UPDATE}:
            return await _merged(write, fresh, decision)
        stored = await _stored(write, fresh, decision)
        if stored is not None:
            return stored
    raise Conflict("the same memory is being changed at this moment; try again")


async def _decided(write: Write, fresh: Fresh, *, rejected: bool) -> Decision:
    memory, embedding = fresh.memory, fresh.material.embedding
    if embedding is None:
        return Decision(Action.CREATE)
    found = [
        (other, float(np.dot(material.embedding, embedding)))
        for other, material in fresh.before
        if material.embedding is not None and _comparable(other, memory)
    ]
    known = {other.id for other, _ in found}
    near = await write.uow.memories.nearest(_beside(write, memory), fresh.material, NEIGHBOURS)
    if rejected:  # what a person rejected is not said again in other words
        gone = _beside(write, memory, (State.SOFT_DELETED,), (TrustState.REJECTED,))
        near += await write.uow.memories.nearest(gone, fresh.material, NEIGHBOURS)
    found += [(other, similarity) for other, similarity in near if other.id not in known]
    bands = write.policy.merging.bands_for(write.model)
    nearest_first = sorted(found, key=lambda pair: -pair[1])
    neighbours = await asyncio.to_thread(compared, memory, nearest_first, bands)
    return decide(memory, neighbours, bands, write.now)


def _comparable(other: Memory, memory: Memory) -> bool:
    names = ("user_id", "category", "visibility", "min_trust")
    return all(getattr(other, name) == getattr(memory, name) for name in names)


def _beside(
    write: Write,
    memory: Memory,
    states: tuple[State, ...] = (State.ACTIVE,),
    trust_states: tuple[TrustState, ...] = RETRIEVABLE_TRUST,
) -> Scope:
    """The memories that a new one may be compared with: of the same person, category, store and readers."""
    return Scope(
        tenant=write.principal.tenant,
        categories=(memory.category,),
        visibilities=frozenset({memory.visibility}),
        trust_levels=(memory.min_trust,),
        users=None,
        now=write.now,
        turns=False,
        states=states,
        trust_states=trust_states,
        filters=Filters(user_id=memory.user_id, type=memory.type),
    )


def rejected() -> ValueRejected:
    """Why a memory is not stored."""
    return ValueRejected("content: a person rejected or erased this value; it is not stored again", field="content")


def _refused(write: Write, memory: Memory) -> Outcome:
    write.refused(memory)
    return Outcome("refused", memory)


async def _mentioned(write: Write, there: Memory, fresh: Fresh) -> Outcome:
    if there.value_hash != fresh.memory.value_hash:
        await _require_readable(write, there, fresh)
    again = _counted(write, there, fresh.memory)
    await write.uow.memories.replace(again, None)
    write.changed(HistoryEvent.MENTION, None, again, there, _evidence(fresh.memory, mention_count=again.mention_count))
    return Outcome("duplicate", again)


async def _told_before(write: Write, past: Memory, fresh: Fresh) -> Outcome:
    """A record that was overruled since is no news when it is sent again."""
    await _require_readable(write, past, fresh)
    return Outcome("duplicate", past)


async def _require_readable(write: Write, there: Memory, fresh: Fresh) -> None:
    """What was found by its name alone must not open another category."""
    allowed = write.policy.allowlist(fresh.agent).read
    scope = read_scope(write.principal, write.policy, allowed, write.now)
    scope = replace(scope, states=(there.state,), trust_states=tuple(TrustState))
    if await write.uow.memories.find(scope, there.id) is None:
        raise Conflict("external_id: is taken; choose another", field="external_id")


async def _merged(write: Write, fresh: Fresh, decision: Decision) -> Outcome:
    """Count the memory into the one that says the same, which takes the newer words if they may replace its own."""
    (target,) = decision.targets
    there, new = target.memory, fresh.memory
    again = _counted(write, there, new)
    meta = _evidence(new, similarity=round(target.similarity, 4), said=new.text.content)
    if decision.action is Action.UPDATE:
        text = replace(new.text, tags=tuple(dict.fromkeys((*there.text.tags, *new.text.tags))))
        changed = replace(again, text=text, value_hash=value_hash(text), pii=new.pii)
        if await write.uow.memories.replace(changed, fresh.material):
            await write.uow.graph.mention(changed, mentions(text.searchable()), write.now)
            write.changed(HistoryEvent.UPDATE, ChangeEvent.UPDATED, changed, there, meta)
            return Outcome("updated", changed)
    await write.uow.memories.replace(again, None)
    write.changed(HistoryEvent.MERGE, ChangeEvent.MERGED, again, there, meta)
    return Outcome("merged", again)


def _counted(write: Write, there: Memory, new: Memory) -> Memory:
    sources = tuple(dict.fromkeys((*there.source_ids, *new.source_ids)))[-100:]
    counted = replace(there, mention_count=there.mention_count + 1, source_ids=sources)
    return replace(counted, updated_at=write.now, version=there.version + 1)


def _evidence(memory: Memory, **more: object) -> dict[str, object]:
    sources = {"evidence": [str(source) for source in memory.source_ids]} if memory.source_ids else {}
    return {"source": memory.source.value, **sources, **more}


async def _stored(write: Write, fresh: Fresh, decision: Decision) -> Outcome | None:
    """Insert the memory, with what it does to others; ``None`` when another one of its value or name came first."""
    memory, targets = fresh.memory, decision.targets
    first = targets[0].memory if targets else None
    match decision.action:
        case Action.DISPUTE:
            memory = replace(memory, trust_state=TrustState.DISPUTED)
        case Action.OUTDATED if first is not None:
            until = memory.valid_until or first.valid_from or said_at(first)
            memory = replace(
                memory, state=State.SUPERSEDED, superseded_by=first.id, superseded_at=write.now, valid_until=until
            )
        case Action.SUPERSEDE:
            memory = replace(memory, valid_from=memory.valid_from or said_at(memory))
        case _:
            pass
    if not await write.uow.memories.add(memory, fresh.material):
        return None
    await write.uow.graph.mention(memory, mentions(memory.text.searchable()), write.now)
    edges = [Edge(memory.id, n.memory.id, _strength(n)) for n in decision.links]
    outcome: str = "created"
    change: ChangeEvent | None = ChangeEvent.CREATED
    match decision.action:
        case Action.SUPERSEDE:
            for target in targets:
                await supersede(write, target.memory, memory, _why(target))
            edges += [Edge(memory.id, n.memory.id, _strength(n), SUPERSEDES) for n in targets]
            outcome = "superseded"
        case Action.DISPUTE:
            edges += [Edge(memory.id, n.memory.id, _strength(n), DISPUTES) for n in targets]
            outcome, change = "disputed", None
        case Action.OUTDATED:
            outcome, change = "outdated", None
        case _:
            pass
    await write.uow.graph.link(edges, write.now)
    event = HistoryEvent.DISPUTE if outcome == "disputed" else HistoryEvent.ADD
    about = {"concerns": [{"id": str(n.memory.id), **_why(n)} for n in targets]} if targets else {}
    write.changed(event, change, memory, None, _evidence(memory, **about))
    return Outcome(outcome, memory, overruled=tuple(n.memory.id for n in targets))


def _strength(neighbour: Neighbour) -> float:
    return round(min(max(neighbour.similarity, 0.0), 1.0), 4)


def _why(neighbour: Neighbour) -> dict[str, object]:
    return {"verdict": neighbour.verdict.value, "similarity": round(neighbour.similarity, 4)}


async def supersede(write: Write, old: Memory, new: Memory | None, why: dict[str, object]) -> Memory:
    """Let a memory be a thing of the past: it is no longer believed, and no longer true since the new one was said."""
    check_transition(old.state, State.SUPERSEDED)
    said = write.now if new is None else new.valid_from or said_at(new)
    start = old.valid_from or said_at(old)
    never = why.get("verdict") in _NEVER_SO
    if never:
        said = start
    gone = replace(
        old,
        valid_from=start if never else old.valid_from,
        state=State.SUPERSEDED,
        superseded_by=None if new is None else new.id,
        superseded_at=write.now,
        valid_until=min(filter(None, (old.valid_until, max(said, start)))),
        updated_at=write.now,
        version=old.version + 1,
    )
    await write.uow.memories.replace(gone, None)
    event = HistoryEvent.RETRACT if new is None else HistoryEvent.SUPERSEDE
    by = {} if new is None else {"superseded_by": str(new.id), "said": new.text.content}
    write.changed(event, ChangeEvent.SUPERSEDED, gone, old, why | by | ({} if new is None else _evidence(new)))
    return gone


async def retire(write: Write, expired: Memory) -> None:
    """Take an expired memory out of the way of one that says the same anew."""
    gone = deleted(write, expired)
    await write.uow.memories.replace(gone, None)
    write.changed(HistoryEvent.TTL, ChangeEvent.SOFT_DELETED, gone, expired)


def deleted(write: Write, memory: Memory) -> Memory:
    """A memory that is out of every read, and can be restored until its purge."""
    return replace(
        memory,
        state=State.SOFT_DELETED,
        purge_at=write.now + PURGE_AFTER,
        updated_at=write.now,
        version=memory.version + 1,
    )
