"""Put right what is wrong: the old memory is superseded, the new one keeps its place and weight."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from uuid import UUID

from memplane.application.consent.proposals import require_consent_to_change
from memplane.application.limits.offload import in_thread
from memplane.application.limits.quotas import charge
from memplane.application.memories.authorization import find_target, require_weight
from memplane.application.memories.feedback import Verb, target
from memplane.application.memories.gateway import Gateway, Write
from memplane.application.memories.placement import SUPERSEDES, Outcome, note_mentions
from memplane.application.memories.restoration import store_change
from memplane.application.memories.service import NewMemory, prepare, require_interval, sources_scope
from memplane.application.memories.supersession import (
    CORRECTED,
    after,
    has_own_time,
    overrule,
    own_end,
    refuse_rejected,
    supersede,
)
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import Edge
from memplane.domain.errors import StateConflict
from memplane.domain.identity.principal import Principal
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.items import no_item
from memplane.domain.memory.memory import Memory, MemoryText, State, TrustState, weight
from memplane.domain.memory.write_decisions import count_hit, is_more
from memplane.domain.memory.writing import style_warnings
from memplane.domain.policy.policy import Policy, Speaker


@dataclass(frozen=True, slots=True)
class Correction:
    """What is right instead: the new words, and since when."""

    text: MemoryText
    valid_from: datetime | None = None
    source_ids: tuple[UUID, ...] = ()


class Correct:
    """Replaces a memory that is wrong by one that is right."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, principal: Principal, verb: Verb, correction: Correction) -> Outcome:
        """The memory is wrong and this is right: the old one is superseded, the new one keeps its place and weight.

        Raises:
            TrustTooLow: a more trusted writer stands behind the old one.
            ValueRejected: a person rejected the new value.
            ConsentRequired: a sensitive field that the memory states would be gone.
            InvalidText, LimitExceeded, WritingConstraintViolated: the new text cannot be stored as it is.
            UnknownSource: a source is nothing that the writer may read.
        """
        policy, now = self._gateway.begin(principal)
        speaker = principal.act_as(verb.agent)
        await self._gateway.raise_if_done(principal, verb.once)
        read = partial(find_target, agent=speaker, memory_id=verb.memory_id, version=verb.version)
        before = await self._gateway.run(principal, policy, now, read)
        require_weight(principal, before)
        right = await in_thread(_right, principal, policy, before, correction, now, speaker)
        await self._gateway.require_sources(sources_scope(principal, policy, speaker, now), right.source_ids)
        if right.text == before.text:
            return Outcome("unchanged", before)
        material = await self._gateway.material_of(right.text)

        async def work(write: Write) -> Outcome:
            old = await target(write, speaker, replace(verb, version=before.version), ())
            done = await _corrected(write, speaker, old, right, material)
            return replace(done, warnings=style_warnings(right.text, right.type, policy.writing))

        return await self._gateway.run(principal, policy, now, work, once=verb.once)


def _right(
    principal: Principal, policy: Policy, before: Memory, correction: Correction, now: datetime, speaker: Speaker
) -> Memory:
    said = NewMemory(
        before.user_id or None, before.category, correction.text, before.type, visibility=before.visibility,
        source_ids=correction.source_ids, valid_from=correction.valid_from,
    )  # fmt: skip
    right = _in_place_of(before, prepare(principal, policy, said, now, speaker))
    require_interval(right.valid_from, right.valid_until)
    return right


async def _corrected(write: Write, speaker: Speaker, old: Memory, right: Memory, material: SearchMaterial) -> Outcome:
    await refuse_rejected(write, right)
    waiting = await require_consent_to_change(write, old, right, write.policy.allowlist(speaker).read)
    if waiting is not None:
        return replace(waiting, rev=await write.settle(right.user_id, right.thread_id))
    # by its value: by its name it would find the one that is wrong
    there = await write.uow.memories.find_duplicate(replace(right, external_id=None))
    besides = []
    if there is not None and there.id != old.id:
        if weight(there) >= right.authority or not is_more(there, right):
            return await _already(write, old, there, right)
        besides = [there]  # it says more than its corrector vouches for
    right = after(right, await write.uow.memories.last_recorded(right.user_id))
    await supersede(write, old, right, {"verdict": CORRECTED})
    ruled = await overrule(write, right, material, {"verdict": CORRECTED}, besides, forgiving=True)
    right = ruled.memory
    if not await write.uow.memories.add(right, material):
        raise StateConflict("another memory of this user and category says exactly this already")
    await charge(write, right.user_id)
    await note_mentions(write, right)
    gone = (old.id, *ruled.overruled)
    await write.uow.graph.link([Edge(right.id, each, 1.0, SUPERSEDES) for each in gone], write.now)
    over = right.state is State.SUPERSEDED
    told = None if over else ChangeEvent.CREATED
    end = own_end(old) if over else {}  # which the right one has from it
    write.record_change(HistoryEvent.ADD, told, right, None, {"corrects": str(old.id), **end})
    rev = await write.settle(right.user_id, right.thread_id)
    return Outcome("outdated" if over else "superseded", right, rev, (*ruled.newer, *gone))


async def _already(write: Write, old: Memory, there: Memory, right: Memory) -> Outcome:
    """What is right is known already, perhaps as disputed: it takes the place of what is wrong."""
    await supersede(write, old, there, {"verdict": CORRECTED})
    event, told = HistoryEvent.MERGE, None
    again = replace(
        count_hit(there, right), mention_count=there.mention_count + 1, authority=max(there.authority, right.authority)
    )
    if there.trust_state is TrustState.DISPUTED:
        event, told = HistoryEvent.CONFIRM, ChangeEvent.CREATED
        again = replace(again, trust_state=TrustState.CANDIDATE)
    done = await store_change(write, there, again, event, told, was=there.trust_state.value)
    await write.uow.graph.link([Edge(there.id, old.id, 1.0, SUPERSEDES)], write.now)
    rev = await write.settle(there.user_id, there.thread_id)
    return Outcome("superseded", done.memory, rev, (old.id,))


def _in_place_of(old: Memory, new: Memory) -> Memory:
    """The new memory with what the old one had besides its words; nothing that a less trusted writer said."""
    ours = weight(old) >= new.authority
    return replace(
        new,
        min_trust=old.min_trust,
        text=replace(new.text, tags=old.text.tags) if ours and not new.text.tags else new.text,
        external_id=no_item(old).external_id,
        agent_id=old.agent_id,
        run_id=old.run_id,
        actor_id=old.actor_id,
        role=old.role,
        thread_id=old.thread_id,
        importance=old.importance,
        pinned=old.pinned,
        reinforcement=old.reinforcement,
        hits=old.hits,
        last_hit_at=old.last_hit_at,
        layer=old.layer,
        event_time=old.event_time,
        valid_from=new.valid_from or old.valid_from,
        valid_until=old.valid_until,
        expires_at=old.expires_at,
        attributes=no_item(old).attributes if ours else {},
        asserted_at=None if new.valid_from else _asserted(old, new),
        authority=max(old.authority, new.authority),
    )


def _asserted(old: Memory, new: Memory) -> datetime | None:
    """When what is right was said last: what had no time of its own is said now."""
    return old.asserted_at if has_own_time(old) else new.recorded_at
