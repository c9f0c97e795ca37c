"""What would change a sensitive field is held back, as a proposal that waits for a person's consent."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memplane.application.beside import beside, is_erased, is_rejected, rejected
from memplane.application.gateway import Write
from memplane.application.placing import Outcome
from memplane.application.records import ContextField, Proposal
from memplane.domain.errors import ConsentRequired, Invalid, ProposalOutdated
from memplane.domain.memory import (
    FULL_AUTHORITY,
    Memory,
    MemoryText,
    MemoryType,
    Role,
    Source,
    State,
    TrustState,
    Visibility,
    new_id,
)
from memplane.domain.merging import value_hash
from memplane.domain.policy import Policy, Trust
from memplane.domain.profile_statements import Stated, stated_fields
from memplane.domain.scope import trust_levels
from memplane.domain.text import instant
from memplane.domain.tombstones import value_key

QUEUED = "queued_for_consent"
_TIMES = ("event_time", "valid_from", "valid_until", "expires_at")
_ENDS = frozenset({"valid_until", "expires_at"})
_PLAIN = (
    "min_trust",
    "agent_id",
    "run_id",
    "actor_id",
    "thread_id",
    "external_id",
    "importance",
    "pinned",
)
_LISTS = ("facts", "steps", "tags", "related_files")


def stated_in(policy: Policy, memory: Memory) -> tuple[Stated, ...]:
    """The sensitive fields of its category that a memory states."""
    return stated_fields(memory.text, memory.attributes, policy.sensitive_fields(memory.category))


async def seen_in(policy: Policy, memory: Memory) -> tuple[Stated, ...]:
    """The same, off the event loop where there is something to look for."""
    if not policy.sensitive_fields(memory.category):
        return ()
    return await asyncio.to_thread(stated_in, policy, memory)


async def held_back(
    write: Write, memory: Memory, stated: Sequence[Stated], target: UUID | None = None
) -> Outcome | None:
    """Make a proposal of a memory that would change a sensitive field; ``None`` when it changes none.

    Args:
        write: the write under way, with the memory's user locked.
        memory: the memory, as it would be stored.
        stated: the sensitive fields that it states.
        target: the memory that it was meant to take the place of.

    Raises:
        ValueRejected: a person refused the value.
        Invalid: it changes several fields, on which nobody could decide one by one.
    """
    news = [(each, known) for each in stated if (known := await _changed(write, memory, each)) is not None]
    if not news:
        return None
    if len(news) > 1:
        named = ", ".join(sorted({each.field for each, _ in news}))
        raise Invalid(
            f"content: states more than one sensitive value ({named}); send one memory for each", field="content"
        )
    ((change, known),) = news
    key = value_key(change.value)
    where = grave(change.field)
    if key in await write.uow.tombstones.held(memory.user_id, where) or await is_rejected(write, memory):
        raise rejected()
    if await is_erased(write, memory.user_id, where, [key]):
        raise rejected()
    proposal = Proposal(
        id=new_id(),
        user_id=memory.user_id,
        field=change.field,
        new_value=change.value,
        evidence=memory.source_ids[0] if memory.source_ids else None,
        confidence=memory.confidence,
        actor=write.principal.actor,
        policy_hash=write.policy.digest,
        created_at=write.now,
        expires_at=write.now + write.policy.consent.life,
        category=memory.category,
        old_value=await _told_before(write, memory, known),
        key_id=write.principal.key_id,
        meta={"memory": _drafted(memory), **({"target": str(target)} if target else {})},
    )
    there = await write.uow.consents.propose(proposal, key)
    write.queued(memory)
    return Outcome(QUEUED, memory, proposal=there or proposal.id)


async def change_held_back(write: Write, before: Memory, after: Memory) -> Outcome | None:
    """The same for a memory that is put in the place of another, or is changed in place.

    Raises:
        ConsentRequired: a sensitive field that was stated would be gone.
        ValueRejected, Invalid: as :func:`held_back`.
    """
    was, will = await seen_in(write.policy, before), await seen_in(write.policy, after)
    gone = {each.field for each in was} - {each.field for each in will}
    if gone:
        raise ConsentRequired(
            f"this memory states the sensitive field {', '.join(sorted(gone))}, and would no longer: state its new "
            "value, or retract, reject or delete the memory",
            fields=sorted(gone),
        )
    known = {each.key for each in was}
    return await held_back(write, after, [each for each in will if each.key not in known], before.id)


async def require_unchanged(write: Write, memory: Memory, decided: str) -> None:
    """Stop here when an approved memory states another field than the decided one, and that holds another value now.

    Raises:
        ProposalOutdated: it does; nobody has agreed to that.
    """
    for stated in await seen_in(write.policy, memory):
        if stated.field != decided and await _changed(write, memory, stated) is not None:
            raise ProposalOutdated(
                f"the proposal's words state the field {stated.field} too, which has another value by now: refuse it, "
                f"and let the {decided} be said again in words of its own",
                field=stated.field,
            )


async def _changed(write: Write, memory: Memory, stated: Stated) -> list[ContextField] | None:
    """The field's values until now, if this is another one; ``None`` when it is what was decided."""
    known = await write.uow.consents.fields(memory.user_id, stated.field)
    for row in known:
        if row.value_hash == stated.key[1] and await _holds(write, memory, row):
            return None
    return known


async def _told_before(write: Write, memory: Memory, known: Sequence[ContextField]) -> str | None:
    """The value until now, for who decides: not one of another category, nor one whose memory is gone."""
    near = beside(write, memory)
    scope = replace(
        near,
        visibilities=frozenset(Visibility),
        trust_levels=trust_levels(Trust.FULL),
        filters=replace(near.filters, type=None),
    )
    for row in known:
        holder = await write.uow.memories.find(scope, row.memory_id) if row.category == memory.category else None
        if holder is not None and holder.state is State.ACTIVE:
            return row.field_value
    return None


async def _holds(write: Write, memory: Memory, row: ContextField) -> bool:
    """Whether the memory that holds a field is there, for one who may see it: nobody else is told what is known."""
    if row.memory_id == memory.id:
        return True
    now = beside(write, memory).as_of(None, None)  # what was true once holds no more
    scope = replace(now, filters=replace(now.filters, type=None))
    holder = await write.uow.memories.find(scope, row.memory_id)
    return holder is not None and holder.state is State.ACTIVE


def grave(field: str) -> str:
    """Where the refused values of a field are buried, beside those of categories."""
    return f"field:{field}"[:63]


def _drafted(memory: Memory) -> dict[str, object]:
    """What a memory says, as a proposal keeps it; of one who is less trusted the value alone.

    A decision on a value makes all that its memory says a person's word, and nobody has decided on the rest.
    """
    always = {"visibility": memory.visibility.value, "min_trust": memory.min_trust, "pii": list(memory.pii)}
    if memory.authority < FULL_AUTHORITY:
        return always | {"agent_id": memory.agent_id, "thread_id": memory.thread_id}
    times = {name: moment.isoformat() for name in _TIMES if (moment := getattr(memory, name)) is not None}
    text = {name: value for name in MemoryText.__slots__ if (value := getattr(memory.text, name))}
    return {
        "text": {name: list(value) if isinstance(value, tuple) else value for name, value in text.items()},
        "type": memory.type.value,
        "role": memory.role.value if memory.role else None,
        "source_ids": [str(each) for each in memory.source_ids],
        "attributes": dict(memory.attributes),
        **always,
        **{name: getattr(memory, name) for name in _PLAIN},
        **times,
    }


def draft_of(proposal: Proposal, now: datetime) -> Memory:
    """The memory that a proposal becomes: believed without doubt, for a person has decided.

    An end that has passed while it waited is none: what a person agrees to now holds now.
    """
    kept: Any = proposal.meta.get("memory") or {}
    said = {"content": f"The user's {proposal.field.replace('_', ' ')} is {proposal.new_value}."}
    words: dict[str, Any] = {
        name: tuple(value) if name in _LISTS else value for name, value in (kept.get("text") or said).items()
    }
    rest: dict[str, Any] = {name: instant(kept[name]) for name in _TIMES if kept.get(name)}
    rest = {name: moment for name, moment in rest.items() if name not in _ENDS or moment > now}
    rest |= {name: kept[name] for name in _PLAIN if name in kept}
    text = MemoryText(**words)
    sources = [UUID(each) for each in kept.get("source_ids", ())] or [each for each in (proposal.evidence,) if each]
    return Memory(
        id=new_id(),
        user_id=proposal.user_id,
        category=proposal.category,
        type=MemoryType(kept.get("type", MemoryType.SEMANTIC)),
        visibility=Visibility(kept.get("visibility", Visibility.PRIVATE)),
        text=text,
        value_hash=value_hash(text, rest.get("external_id")),
        source=Source.USER,
        recorded_at=now,
        updated_at=now,
        authority=FULL_AUTHORITY,
        role=Role(kept["role"]) if kept.get("role") else None,
        confidence=1.0,
        trust_state=TrustState.CONFIRMED,
        source_ids=tuple(sources),
        pii=tuple(kept.get("pii", ())),
        attributes=_attributes(kept),
        **rest,
    )


def _attributes(kept: Mapping[str, object]) -> Mapping[str, object]:
    found = kept.get("attributes")
    return found if isinstance(found, dict) else {}
