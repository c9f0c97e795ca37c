"""What callers say of a memory: that it helped, that it is right, wrong, or no longer so."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from memplane.application.consent.proposals import claims_of, require_consent
from memplane.application.limits.idempotency import Once
from memplane.application.memories.authorization import (
    LASTING,
    find_target,
    lock_target,
    require_full,
    require_weight,
    writable_scope,
)
from memplane.application.memories.cascade_delete import cascade_delete
from memplane.application.memories.gateway import Gateway, Write
from memplane.application.memories.placement import DISPUTES, SUPERSEDES, Outcome
from memplane.application.memories.restoration import RESTORABLE, active, add_tombstones, bring_back, store_change
from memplane.application.memories.supersession import (
    PendingWrites,
    as_deleted,
    neighbours,
    overrule,
    own_end,
    said_now,
    supersede,
)
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import Edge
from memplane.domain.errors import StateConflict
from memplane.domain.identity.principal import Principal
from memplane.domain.language.comparison.comparison import ComparisonVerdict
from memplane.domain.language.text import normalise
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.lifecycle import check_transition
from memplane.domain.memory.memory import Layer, Memory, State, TrustState
from memplane.domain.memory.tombstones import rejected_keys, said_keys
from memplane.domain.memory.write_decisions import said_at
from memplane.domain.policy.policy import Speaker

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


Change = Callable[[Write, Memory], Awaitable[Outcome]]
ChangeWithMaterial = Callable[[Write, Memory, SearchMaterial], Awaitable[Outcome]]


class Feedback:
    """The feedback verbs; each leaves an entry in the history and is told to the threads that it concerns."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def _run(self, principal: Principal, verb: Verb, change: Change, states: tuple[State, ...] = ()) -> Outcome:
        policy, now = self._gateway.begin(principal)
        speaker = principal.act_as(verb.agent)

        async def work(write: Write) -> Outcome:
            memory = await target(write, speaker, verb, states)
            done = await change(write, memory)
            return replace(done, rev=await write.settle(memory.user_id, memory.thread_id))

        return await self._gateway.run(principal, policy, now, work, once=verb.once)

    async def _run_with_material(
        self, principal: Principal, verb: Verb, change: ChangeWithMaterial, states: tuple[State, ...]
    ) -> Outcome:
        """The same with search material of the memory, made before the transaction opens."""
        policy, now = self._gateway.begin(principal)
        speaker = principal.act_as(verb.agent)
        await self._gateway.raise_if_done(principal, verb.once)
        read = partial(find_target, agent=speaker, memory_id=verb.memory_id, version=verb.version, states=states)
        before = await self._gateway.run(principal, policy, now, read)
        material = await self._gateway.material_of(before.text)

        async def with_material(write: Write, memory: Memory) -> Outcome:
            if memory.text != before.text:
                raise StateConflict("the memory is being changed at this moment; try again")
            return await change(write, memory, material)

        return await self._run(principal, verb, with_material, states)

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
            return await store_change(write, memory, more, HistoryEvent.REINFORCE)

        return await self._run(principal, verb, change)

    async def demote(self, principal: Principal, verb: Verb) -> Outcome:
        """The memory did not help: it counts for less, and is no longer settled once that outweighs what helped.

        When it was hit last stays: it was of no use now.
        """

        async def change(write: Write, memory: Memory) -> Outcome:
            score = memory.reinforcement + DEMOTED
            layer = Layer.MID if score < 0 else memory.layer
            less = replace(memory, reinforcement=score, layer=layer)
            return await store_change(write, memory, less, HistoryEvent.DEMOTE)

        return await self._run(principal, verb, change)

    async def pin(self, principal: Principal, verb: Verb, *, pinned: bool) -> Outcome:
        """Keep the memory whatever its age, or no longer."""

        async def change(write: Write, memory: Memory) -> Outcome:
            if memory.pinned == pinned:
                return Outcome("unchanged", memory)
            return await store_change(write, memory, replace(memory, pinned=pinned), HistoryEvent.PIN, pinned=pinned)

        return await self._run(principal, verb, change)

    async def confirm(self, principal: Principal, verb: Verb) -> Outcome:
        """The memory is right: believed without doubt. One that was disputed takes the place of what contradicts it.

        Raises:
            TrustTooLow: the key is not fully trusted.
            Conflict: it is not active, or another memory says the same.
        """
        require_full(principal, "confirm")

        async def change(write: Write, memory: Memory, material: SearchMaterial) -> Outcome:
            sure = replace(memory, trust_state=TrustState.CONFIRMED, confidence=1.0, decay_rate=0.0)
            doubted = memory.trust_state is TrustState.DISPUTED
            readable = write.policy.allowlist(principal.act_as(verb.agent)).read
            if doubted and (waiting := await require_consent(write, memory, await claims_of(write, memory), readable)):
                return waiting
            if not doubted:
                return await store_change(write, memory, sure, HistoryEvent.CONFIRM, was=memory.trust_state.value)
            scope = writable_scope(write, principal.act_as(verb.agent))
            disputed = await active(write, scope, await write.uow.graph.linked_ids(memory.id, DISPUTES))
            sure = await said_now(write, sure)
            rivals = [each for each in disputed if said_at(each) <= said_at(sure)]
            ruled = await overrule(write, sure, material, {"verdict": "confirmed"}, rivals)
            edges = [Edge(memory.id, each, 1.0, SUPERSEDES) for each in ruled.overruled]
            await write.uow.graph.link(edges, write.now)
            over = ruled.memory.state is State.SUPERSEDED
            told, end = (None, own_end(memory)) if over else (ChangeEvent.CREATED, {})
            done = await store_change(
                write, memory, ruled.memory, HistoryEvent.CONFIRM, told, was=memory.trust_state.value, **end
            )
            return replace(done, outcome="outdated" if over else done.outcome, overruled=ruled.memory_ids)

        return await self._run_with_material(principal, verb, change, (State.ACTIVE,))

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
        require_full(principal, "reject")

        why = normalise(reason, "reason")[:MAX_REASON] if reason else "rejected"

        async def change(write: Write, memory: Memory, material: SearchMaterial) -> Outcome:
            check_transition(memory.state, State.SOFT_DELETED)
            keys = rejected_keys(memory.text)
            await add_tombstones(write, memory, why)
            gone = await _rejected(write, memory, why)
            # what says the same elsewhere in the category goes too: another type, store or wording
            copies = [
                n.memory
                for n in await neighbours(write, memory, material, PendingWrites())
                if n.verdict is ComparisonVerdict.SAME or not keys.isdisjoint(said_keys(n.memory.text))
            ]
            for copy in copies:
                await _rejected(write, copy, why)
            ended = [gone.id, *(copy.id for copy in copies)]
            await cascade_delete(write, ended)
            return Outcome("rejected", gone, overruled=tuple(ended[1:]))

        return await self._run_with_material(principal, verb, change, LASTING)

    async def restore(self, principal: Principal, verb: Verb) -> Outcome:
        """Bring a superseded, archived, expired or deleted memory back, in the place of what contradicts it by now.

        Not one that a person rejected.

        Raises:
            ValueRejected: a person rejected the value.
            Conflict: it is active, or another memory says the same now.
            TrustTooLow: a more trusted writer stands behind it, or behind what took its place.
        """

        async def change(write: Write, memory: Memory, material: SearchMaterial) -> Outcome:
            return await bring_back(write, writable_scope(write, principal.act_as(verb.agent)), memory, material)

        return await self._run_with_material(principal, verb, change, RESTORABLE)


async def _rejected(write: Write, memory: Memory, reason: str) -> Memory:
    gone = replace(as_deleted(write, memory), trust_state=TrustState.REJECTED)
    await write.uow.memories.replace(gone, None)
    meta = {"reason": reason, "was": memory.trust_state.value}
    write.record_change(HistoryEvent.REJECT, ChangeEvent.SOFT_DELETED, gone, memory, meta)
    return gone


async def target(write: Write, agent: Speaker, verb: Verb, states: tuple[State, ...]) -> Memory:
    """The memory, locked, in one of some states: active and believed or disputed, unless others are named."""
    return await lock_target(write, agent, verb.memory_id, verb.version, states or (State.ACTIVE,))
