"""What callers say of a memory: that it helped, that it is right, wrong, or no longer so."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from memplane.application.gateway import Gateway, Once, Write
from memplane.application.placing import (
    CORRECTED,
    DISPUTES,
    RESTORED,
    SUPERSEDES,
    Outcome,
    deleted,
    rejected,
    supersede,
)
from memplane.application.records import Burial, Edge, Held
from memplane.application.remember import NewMemory, prepare
from memplane.application.targets import LASTING, locked, require_weight, writable_scope
from memplane.domain.delta import ChangeEvent
from memplane.domain.entities import mentions
from memplane.domain.errors import Conflict, TrustTooLow, ValueRejected
from memplane.domain.history import HistoryEvent
from memplane.domain.lifecycle import check_transition
from memplane.domain.memory import Memory, MemoryText, State, TrustState
from memplane.domain.policy import Trust
from memplane.domain.principal import Principal
from memplane.domain.tombstones import rejected_keys, said_keys

REINFORCED = 3
DEMOTED = -1
MAX_REASON = 63


@dataclass(frozen=True, slots=True)
class Verb:
    """A call that says something of one memory.

    Attributes:
        memory_id: which.
        agent: the agent to act for, or none for the key's own.
        version: the version that the caller holds, or none.
        once: what to keep of the outcome, so that the same request has no second effect.
    """

    memory_id: UUID
    agent: str | None = None
    version: int | None = None
    once: Once[Outcome] | None = None


@dataclass(frozen=True, slots=True)
class Correction:
    """What is right instead: the new words, and since when."""

    text: MemoryText
    valid_from: datetime | None = None
    source_ids: tuple[UUID, ...] = ()


Change = Callable[[Write, Memory], Awaitable[Outcome]]


class Feedback:
    """The feedback verbs; each leaves an entry in the history and is told to the threads that it concerns."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def _run(self, principal: Principal, verb: Verb, change: Change, states: tuple[State, ...] = ()) -> Outcome:
        policy, now = self._gateway.begin(principal)
        speaker = principal.speak_as(verb.agent)

        async def work(write: Write) -> Outcome:
            memory = await _target(write, speaker, verb, states)
            done = await change(write, memory)
            return replace(done, rev=await write.settle(memory.user_id, memory.thread_id))

        return await self._gateway.run(principal, policy, now, work, once=verb.once)

    async def reinforce(self, principal: Principal, verb: Verb) -> Outcome:
        """The memory helped: it counts for more.

        Raises:
            NotFound: absent, or not the caller's; for every verb.
            VersionConflict: it changed since; for every verb.
        """

        async def change(write: Write, memory: Memory) -> Outcome:
            more = replace(
                memory, reinforcement=memory.reinforcement + REINFORCED, hits=memory.hits + 1, last_hit_at=write.now
            )
            return await _kept(write, memory, more, HistoryEvent.REINFORCE)

        return await self._run(principal, verb, change)

    async def demote(self, principal: Principal, verb: Verb) -> Outcome:
        """The memory did not help: it counts for less."""

        async def change(write: Write, memory: Memory) -> Outcome:
            less = replace(memory, reinforcement=memory.reinforcement + DEMOTED)
            return await _kept(write, memory, less, HistoryEvent.DEMOTE)

        return await self._run(principal, verb, change)

    async def pin(self, principal: Principal, verb: Verb, *, pinned: bool) -> Outcome:
        """Keep the memory whatever its age, or no longer."""

        async def change(write: Write, memory: Memory) -> Outcome:
            if memory.pinned == pinned:
                return Outcome("unchanged", memory)
            return await _kept(write, memory, replace(memory, pinned=pinned), HistoryEvent.PIN, pinned=pinned)

        return await self._run(principal, verb, change)

    async def confirm(self, principal: Principal, verb: Verb) -> Outcome:
        """The memory is right: believed without doubt. One that was disputed takes the place of what it disputes.

        Raises:
            TrustTooLow: the key is not fully trusted.
        """
        _require_full(principal, "confirm")

        async def change(write: Write, memory: Memory) -> Outcome:
            sure = replace(memory, trust_state=TrustState.CONFIRMED, confidence=1.0)
            overruled: list[UUID] = []
            if memory.trust_state is TrustState.DISPUTED:
                for rival in await write.uow.graph.linked(memory.id, DISPUTES):
                    older = await write.uow.memories.lock(writable_scope(write, _speaker(principal, verb)), rival)
                    if older is not None and older.state is State.ACTIVE:
                        await supersede(write, older, memory, {"verdict": "confirmed"})
                        overruled.append(rival)
                edges = [Edge(memory.id, rival, 1.0, SUPERSEDES) for rival in overruled]
                await write.uow.graph.link(edges, write.now)
            told = ChangeEvent.CREATED if memory.trust_state is TrustState.DISPUTED else None
            done = await _kept(write, memory, sure, HistoryEvent.CONFIRM, told, was=memory.trust_state.value)
            return replace(done, overruled=tuple(overruled))

        return await self._run(principal, verb, change, (State.ACTIVE,))

    async def retract(self, principal: Principal, verb: Verb) -> Outcome:
        """The memory is no longer so, and nothing takes its place.

        Raises:
            TrustTooLow: a more trusted writer stands behind it.
        """

        async def change(write: Write, memory: Memory) -> Outcome:
            require_weight(principal, memory)
            return Outcome("retracted", await supersede(write, memory, None, {}))

        return await self._run(principal, verb, change)

    async def reject(self, principal: Principal, verb: Verb, reason: str | None = None) -> Outcome:
        """A person says that the memory is wrong: it is gone, and its value does not come back, whoever says it.

        Raises:
            TrustTooLow: the key is not fully trusted.
        """
        _require_full(principal, "reject")

        async def change(write: Write, memory: Memory) -> Outcome:
            check_transition(memory.state, State.SOFT_DELETED)
            gone = replace(deleted(write, memory), trust_state=TrustState.REJECTED)
            await write.uow.memories.replace(gone, None)
            burial = Burial((reason or "rejected")[:MAX_REASON], principal.actor, write.now)
            await write.uow.tombstones.bury(memory.user_id, memory.category, rejected_keys(memory.text), burial)
            write.changed(HistoryEvent.REJECT, ChangeEvent.SOFT_DELETED, gone, memory, {"reason": burial.reason})
            return Outcome("rejected", gone)

        return await self._run(principal, verb, change, LASTING)

    async def restore(self, principal: Principal, verb: Verb) -> Outcome:
        """Bring a superseded, archived or deleted memory back, in the place of the one that took its place.

        Not one that a person rejected.

        Raises:
            ValueRejected: a person rejected the value.
            Conflict: it is active, or another memory says exactly this now.
            TrustTooLow: a more trusted writer stands behind it, or behind what took its place.
        """

        async def change(write: Write, memory: Memory) -> Outcome:
            require_weight(principal, memory)
            check_transition(memory.state, State.ACTIVE)
            keys = said_keys(memory.text)
            held = await write.uow.tombstones.held(memory.user_id, memory.category, keys)
            if memory.trust_state is TrustState.REJECTED or held is Held.THESE:
                raise ValueRejected("a person rejected or erased this value; it is not brought back")
            overruled = await _undone(write, principal, _speaker(principal, verb), memory)
            back = replace(
                memory, state=State.ACTIVE, purge_at=None, superseded_at=None, superseded_by=None, valid_until=None
            )
            done = await _kept(write, memory, back, HistoryEvent.RESTORE, ChangeEvent.RESTORED)
            return replace(done, outcome="restored", overruled=overruled)

        return await self._run(principal, verb, change, (State.SUPERSEDED, State.ARCHIVED, State.SOFT_DELETED))

    async def correct(self, principal: Principal, verb: Verb, correction: Correction) -> Outcome:
        """The memory is wrong and this is right: the old one is superseded, the new one keeps its place and weight.

        Raises:
            TrustTooLow: a more trusted writer stands behind the old one.
            ValueRejected: a person rejected the new value.
            InvalidText, LimitExceeded, WritingConstraintViolated: the new text cannot be stored as it is.
        """
        policy, now = self._gateway.begin(principal)
        speaker = principal.speak_as(verb.agent)
        await self._gateway.replayed(principal, verb.once)
        before = await self._gateway.run(principal, policy, now, lambda write: _target(write, speaker, verb, ()))
        require_weight(principal, before)
        said = NewMemory(
            before.user_id, before.category, correction.text, before.type, visibility=before.visibility,
            source_ids=correction.source_ids, valid_from=correction.valid_from,
        )  # fmt: skip
        right = _in_place_of(before, prepare(principal, policy, said, now, speaker))
        if right.value_hash == before.value_hash and right.text == before.text:
            return Outcome("unchanged", before)
        material = await self._gateway.material_of(right.text)

        async def work(write: Write) -> Outcome:
            old = await _target(write, speaker, replace(verb, version=before.version), ())
            held = await write.uow.tombstones.held(right.user_id, right.category, said_keys(right.text))
            if held is Held.THESE:
                raise rejected()
            there = await write.uow.memories.find_duplicate(right)
            if there is not None and there.id != old.id:
                return await _already(write, old, there)
            await supersede(write, old, right, {"verdict": CORRECTED})
            if not await write.uow.memories.add(right, material):
                raise Conflict("another memory of this user and category says exactly this already")
            await write.uow.graph.mention(right, mentions(right.text.searchable()), write.now)
            await write.uow.graph.link([Edge(right.id, old.id, 1.0, SUPERSEDES)], write.now)
            write.changed(HistoryEvent.ADD, ChangeEvent.CREATED, right, None, {"corrects": str(old.id)})
            rev = await write.settle(right.user_id, right.thread_id)
            return Outcome("superseded", right, rev, (old.id,))

        return await self._gateway.run(principal, policy, now, work, once=verb.once)


async def _already(write: Write, old: Memory, there: Memory) -> Outcome:
    """What is right is known already, perhaps as disputed: it takes the place of what is wrong."""
    await supersede(write, old, there, {"verdict": CORRECTED})
    told = None
    if there.trust_state is TrustState.DISPUTED:
        there, told = replace(there, trust_state=TrustState.CANDIDATE), ChangeEvent.CREATED
    again = replace(there, mention_count=there.mention_count + 1)
    done = await _kept(write, there, again, HistoryEvent.MERGE, told)
    await write.uow.graph.link([Edge(there.id, old.id, 1.0, SUPERSEDES)], write.now)
    rev = await write.settle(there.user_id, there.thread_id)
    return Outcome("superseded", done.memory, rev, (old.id,))


async def _undone(write: Write, principal: Principal, agent: str, memory: Memory) -> tuple[UUID, ...]:
    """Let what took a memory's place be a thing of the past, now that the memory comes back."""
    if memory.state is not State.SUPERSEDED or memory.superseded_by is None:
        return ()
    newer = await write.uow.memories.lock(writable_scope(write, agent), memory.superseded_by)
    if newer is None or newer.state is not State.ACTIVE:
        return ()
    require_weight(principal, newer)
    await supersede(write, newer, memory, {"verdict": RESTORED})
    return (newer.id,)


def _in_place_of(old: Memory, new: Memory) -> Memory:
    return replace(
        new,
        min_trust=old.min_trust,
        text=new.text if new.text.tags else replace(new.text, tags=old.text.tags),
        external_id=old.external_id,
        agent_id=old.agent_id,
        run_id=old.run_id,
        actor_id=old.actor_id,
        role=old.role,
        thread_id=old.thread_id,
        importance=old.importance,
        pinned=old.pinned,
        attributes=old.attributes,
        authority=max(old.authority, new.authority),
    )


async def _target(write: Write, agent: str, verb: Verb, states: tuple[State, ...]) -> Memory:
    """The memory, locked, in one of some states: active and believed or disputed, unless others are named."""
    return await locked(write, agent, verb.memory_id, verb.version, states or (State.ACTIVE,))


async def _kept(
    write: Write, before: Memory, after: Memory, event: HistoryEvent, told: ChangeEvent | None = None, **meta: object
) -> Outcome:
    changed = replace(after, updated_at=write.now, version=before.version + 1)
    if not await write.uow.memories.replace(changed, None):
        raise Conflict("another memory of this user and category says exactly this already")
    write.changed(event, told, changed, before, meta)
    return Outcome("updated", changed)


def _speaker(principal: Principal, verb: Verb) -> str:
    return principal.speak_as(verb.agent)


def _require_full(principal: Principal, verb: str) -> None:
    if principal.trust is not Trust.FULL:
        raise TrustTooLow(f"only a fully trusted key may {verb}", trust=principal.trust.value)
