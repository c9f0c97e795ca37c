"""What a decision on a proposal does: a memory that holds the field, or a value that does not come back."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal
from uuid import UUID

from memplane.application.consent.corroboration import note_fields
from memplane.application.consent.proposals import draft_of, field_namespace, require_unchanged, seen_in
from memplane.application.memories.authorization import writable_scope
from memplane.application.memories.gateway import Write
from memplane.application.memories.placement import SUPERSEDES, note_mentions
from memplane.application.memories.supersession import (
    PendingWrites,
    after,
    is_over,
    is_rejected,
    neighbours,
    overrule,
    rejection_error,
    retire,
    supersede,
)
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import ContextField, Edge, Proposal, TombstoneOrigin
from memplane.domain.consent.agreement import names
from memplane.domain.consent.consent_rules import MULTIPLE, Verdict, decides, state_at
from memplane.domain.errors import NotAnAgreement, RecordNotFound, StateConflict
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import Memory, State, TrustState, Turn, weight
from memplane.domain.memory.tombstones import spelled_keys, value_key
from memplane.domain.memory.write_decisions import count_hit, is_more, is_to_come, later
from memplane.domain.policy.policy import Speaker

MISSING = "no such proposal"
CONSENTED = "consented"


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision on one proposal.

    Attributes:
        proposal_id: which.
        verdict: what is decided.
        reason: why, for a rejection.
        acknowledgement: the turn in which the user agreed, if it was in the chat.
    """

    proposal_id: UUID
    verdict: Verdict
    reason: str | None = None
    acknowledgement: Turn | None = None


@dataclass(frozen=True, slots=True)
class DecisionResult:
    """What a decision did.

    Attributes:
        outcome: ``approved``, ``rejected``, or ``unchanged`` when it was decided so before.
        proposal: as it is now.
        rev: the revision of the thread in which the value was said, if there is one.
        overruled: memories that the new one took the place of.
    """

    outcome: Literal["approved", "rejected", "unchanged"]
    proposal: Proposal
    rev: int | None = None
    overruled: tuple[UUID, ...] = ()


async def decide(write: Write, agent: Speaker, ruling: Decision, material: SearchMaterial | None) -> DecisionResult:
    """Carry out a decision; its user is locked.

    Args:
        write: the write under way.
        agent: who decides: it must read and write the field's category.
        ruling: the decision.
        material: search material of what the proposal says, for an approval.

    Raises:
        NotFound: no such proposal, or not the caller's.
        ProposalExpired: its time is over.
        AlreadyDecided: the opposite was decided.
        ValueRejected: the value was rejected elsewhere since.
        ProposalOutdated: its words state another field besides, which has another value by now.
        NotAnAgreement: the turn that acknowledges it agreed to another one, or to one that was asked later.
    """
    stored = await write.uow.consents.lock(ruling.proposal_id)
    scope = writable_scope(write, agent)
    if stored is None or stored.category not in scope.categories:
        raise RecordNotFound(MISSING)
    if scope.users is not None and stored.user_id not in scope.users:
        raise RecordNotFound(MISSING)
    proposal = replace(stored, state=state_at(stored.state, stored.expires_at, write.now))
    if ruling.acknowledgement is not None:
        await _require_meant(write, proposal, ruling.acknowledgement)
    if not decides(proposal.state, ruling.verdict):
        return DecisionResult("unchanged", proposal)
    decided = replace(
        proposal,
        state=ruling.verdict.state,
        decided_at=write.now,
        decided_by=write.principal.actor,
        acknowledged_by=None if ruling.acknowledgement is None else ruling.acknowledgement.id,
        reason=ruling.reason,
        self_acknowledged=await _is_own(write, proposal, ruling.acknowledgement),
    )
    if ruling.verdict is Verdict.REJECT:
        return await _rejected(write, decided)
    if material is None:
        raise StateConflict("the proposal is being changed at this moment; try again")
    return await _approved(write, agent, decided, material)


async def _require_meant(write: Write, proposal: Proposal, turn: Turn) -> None:
    """Stop here when a turn that agrees did not mean this proposal: a bare yes answers what was asked last.

    What else waits is counted whoever may see it: the user may have been asked by anybody.

    Raises:
        NotAnAgreement: it was taken for another one's, or names no value and another one was asked later.
    """
    consents = write.uow.consents
    if await consents.acknowledges_other(proposal, turn.id):
        raise NotAnAgreement("turn_id: the turn agreed to another proposal; ask the user again", field="turn_id")
    if not names(turn.text, proposal.new_value) and await consents.asked_later(proposal, turn.recorded_at):
        raise NotAnAgreement(
            "turn_id: the turn names no value, and another proposal was asked later; ask the user again, so that the "
            "answer names the value",
            field="turn_id",
        )


async def _is_own(write: Write, proposal: Proposal, turn: Turn | None) -> bool:
    """Whether the key that recorded an acknowledging turn proposed the change itself, or recorded its evidence."""
    if turn is None or turn.key_id is None:
        return False
    if turn.key_id == proposal.key_id or proposal.evidence is None:
        return turn.key_id == proposal.key_id
    said = await write.uow.removals.turns_of(proposal.user_id, [proposal.evidence])
    return any(each.key_id == turn.key_id for each in said)


async def _rejected(write: Write, decided: Proposal) -> DecisionResult:
    """The value does not come back for that field, whoever says it."""
    burial = TombstoneOrigin(decided.reason or "consent refused", write.principal.actor, write.now, decided.id)
    await write.uow.tombstones.add(
        decided.user_id, field_namespace(decided.field), spelled_keys(decided.new_value), burial
    )
    await write.uow.consents.decide(decided)
    write.record_dismissal(decided.id, decided.user_id, _meta(decided))
    await write.settle(decided.user_id, None)
    return DecisionResult("rejected", decided)


async def _approved(write: Write, agent: Speaker, decided: Proposal, material: SearchMaterial) -> DecisionResult:
    """The value holds: in a memory that nothing but another decision overrules, and as a field of the profile."""
    memory = await _draft(write, decided)
    if decided.acknowledged_by is not None:
        memory = replace(memory, source_ids=tuple(dict.fromkeys((*memory.source_ids, decided.acknowledged_by))))
    keys = spelled_keys(decided.new_value)
    if not keys.isdisjoint(await write.uow.tombstones.load(decided.user_id, field_namespace(decided.field))):
        raise rejection_error()
    if await is_rejected(write, memory):
        raise rejection_error()
    await require_unchanged(write, memory, decided.field)
    there = await _standing(write, memory)
    if there is not None and there.value_hash != memory.value_hash:  # another record has the name by now
        memory = replace(memory, external_id=None)
        there = await _standing(write, memory)
    ahead = is_to_come(memory, write.now)  # it takes nothing from what holds until then
    rivals = [] if ahead else await _rivals(write, agent, decided, memory, material)
    if there is not None and weight(there) < memory.authority and is_more(there, memory):
        rivals, there = [*rivals, there], None  # it says more than was decided on
    why: dict[str, object] = {"verdict": CONSENTED, "proposal": str(decided.id)}
    if there is None:
        held, gone = await _stored(write, memory, material, rivals, why, _meta(decided))
    else:
        held, gone = await _confirmed(write, there, memory, rivals, why, _meta(decided))
    await write.uow.graph.link([Edge(held.id, each, 1.0, SUPERSEDES) for each in gone], write.now)
    decided = replace(decided, memory_id=held.id)
    await write.uow.consents.decide(decided)
    field = ContextField(
        decided.user_id, decided.field, value_key(decided.new_value), decided.new_value, decided.category, held.id,
        decided.id, decided.acknowledged_by or decided.evidence, write.principal.actor, write.policy.digest, write.now,
    )  # fmt: skip
    if not ahead:
        note_fields(write, field, await write.uow.consents.fields(decided.user_id, decided.field))
        await write.uow.consents.keep(field, alone=decided.field not in MULTIPLE)
    return DecisionResult("approved", decided, await write.settle(held.user_id, held.thread_id), gone)


async def _draft(write: Write, decided: Proposal) -> Memory:
    """The memory that a proposal becomes: whatever time it names, a person agrees to it now."""
    draft = draft_of(decided, write.now)
    memory = after(draft, await write.uow.memories.last_recorded(draft.user_id))
    return replace(memory, asserted_at=memory.recorded_at)


async def _standing(write: Write, memory: Memory) -> Memory | None:
    """The active memory of a memory's name or value, once what is over has made room: in it the field would be lost."""
    while (there := await write.uow.memories.find_duplicate(memory)) is not None and is_over(there, memory, write.now):
        await retire(write, there)
    return there


async def _stored(
    write: Write, memory: Memory, material: SearchMaterial, rivals: Sequence[Memory], why: dict[str, object],
    meta: dict[str, object],
) -> tuple[Memory, tuple[UUID, ...]]:  # fmt: skip
    """Put a new memory in the place of what it overrules."""
    ruled = await overrule(write, memory, material, why, rivals, forgiving=True)
    memory = ruled.memory
    if not await write.uow.memories.add(memory, material):
        raise StateConflict("another memory of this user and category says exactly this already")
    await note_mentions(write, memory)
    write.record_change(HistoryEvent.CONSENT, ChangeEvent.CREATED, memory, next(iter(rivals), None), meta)
    return memory, ruled.overruled


async def _confirmed(
    write: Write, there: Memory, memory: Memory, rivals: Sequence[Memory], why: dict[str, object],
    meta: dict[str, object],
) -> tuple[Memory, tuple[UUID, ...]]:  # fmt: skip
    """Let a memory that says the same already hold the field."""
    held = replace(
        count_hit(there, memory),
        trust_state=TrustState.CONFIRMED,
        confidence=1.0,
        decay_rate=0.0,
        authority=max(there.authority, memory.authority),
        asserted_at=memory.asserted_at,
        mention_count=there.mention_count + 1,
        expires_at=later(there.expires_at, memory.expires_at),
        valid_until=later(there.valid_until, memory.valid_until),
        source_ids=tuple(dict.fromkeys((*there.source_ids, *memory.source_ids))),
        updated_at=write.now,
        version=there.version + 1,
    )
    for rival in rivals:
        await supersede(write, rival, held, why)
    await write.uow.memories.replace(held, None)
    told = ChangeEvent.CREATED if there.trust_state is TrustState.DISPUTED else ChangeEvent.UPDATED
    write.record_change(HistoryEvent.CONSENT, told, held, there, meta)
    return held, tuple(rival.id for rival in rivals)


async def _rivals(
    write: Write, agent: Speaker, decided: Proposal, memory: Memory, material: SearchMaterial
) -> list[Memory]:
    """What held another value of the field: by decision, as the target of the change, or in words that are near."""
    ids = [] if decided.field in MULTIPLE else [
        row.memory_id for row in await write.uow.consents.fields(decided.user_id, decided.field)
    ]  # fmt: skip
    target = decided.meta.get("target")
    ids += [UUID(target)] if isinstance(target, str) else []
    scope = writable_scope(write, agent)
    found = {each: await write.uow.memories.lock(scope, each) for each in dict.fromkeys(ids)}
    for near in await neighbours(write, memory, material, PendingWrites()):
        if any(each.field == decided.field for each in await seen_in(write.policy, near.memory)):
            found.setdefault(near.memory.id, near.memory)
    same = memory.value_hash
    return [
        each
        for each in found.values()
        if each is not None
        and each.state is State.ACTIVE
        and each.user_id == decided.user_id
        and each.value_hash != same
    ]


def _meta(decided: Proposal) -> dict[str, object]:
    """What the history keeps of a decision; the words stand in the memory."""
    told = {
        "proposal": str(decided.id),
        "field": decided.field,
        "decision": decided.state.value,
        "evidence": [str(decided.evidence)] if decided.evidence else None,
        "acknowledged_by": str(decided.acknowledged_by) if decided.acknowledged_by else None,
        "self_acknowledged": decided.self_acknowledged or None,
        "reason": decided.reason,
    }
    return {name: value for name, value in told.items() if value is not None}
