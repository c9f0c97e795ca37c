"""What would change a sensitive field is held back, as a proposal that waits for a person's consent."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memplane.application.limits.offload import offload
from memplane.application.memories.gateway import Write
from memplane.application.memories.placement import Outcome
from memplane.application.memories.supersession import (
    is_erased,
    is_rejected,
    neighbour_scope,
    refuse_rejected,
    rejection_error,
    restated_at,
)
from memplane.application.records import BESIDES, ContextField, Proposal
from memplane.domain.consent.consent_rules import MULTIPLE
from memplane.domain.errors import ConsentRequired, ProposalOutdated
from memplane.domain.language.profile_statements import Sought, Stated, stated_fields
from memplane.domain.language.profile_subjects import Voice, words_of
from memplane.domain.language.profile_wording import core
from memplane.domain.language.text import instant
from memplane.domain.memory.memory import (
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
from memplane.domain.memory.merging import value_hash
from memplane.domain.memory.scope import trust_levels
from memplane.domain.memory.undo_records import UndoKind
from memplane.domain.policy.policy import Policy, Trust
from memplane.domain.privacy.screening import screen_text, screened_values

MOST_PROPOSED = 20
"""The most proposals that one memory makes: of a field of several values, one for each."""
QUEUED = "queued_for_consent"
PREFERRED_NAME = "preferred_name"
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
    """The sensitive fields that a memory states, of whatever category."""
    own = policy.sensitive_fields(memory.category)
    names = words_of(memory.user_id)
    if memory.role is Role.USER and memory.actor_id:
        names |= words_of(memory.actor_id)
    sought = Sought(own, frozenset(policy.consent.sensitive) - own, names, memory.recorded_at.year)
    return stated_fields(memory.text, memory.attributes, sought)


async def seen_in(policy: Policy, memory: Memory) -> tuple[Stated, ...]:
    """The same, off the event loop for long texts."""
    size = sum(len(part) for part in (memory.text.searchable(), memory.text.narrative or "", *memory.text.steps))
    return await offload(size, stated_in, policy, memory)


async def claims_of(write: Write, memory: Memory) -> tuple[Stated, ...]:
    """The sensitive fields that a memory states of its user."""
    return await _of_user(write, memory.user_id, await seen_in(write.policy, memory))


async def require_consent(
    write: Write, memory: Memory, stated: Sequence[Stated], readable: Collection[str], target: UUID | None = None
) -> Outcome | None:
    """Make a proposal of a memory that would change a sensitive field; ``None`` when it changes none.

    The proposal belongs to the category of the field: who reads and writes that one decides, and there the memory is
    stored. Whoever wrote it learns that it waits, and nothing else. A text that changes several fields waits whole with
    the first of them, and each other one waits by itself: the text can be approved once these are decided on.

    Args:
        write: the write under way, with the memory's user locked.
        memory: the memory, as it would be stored.
        stated: the sensitive fields that it states.
        readable: the categories that the writer may read: of a value that lies elsewhere he is not told that it holds.
        target: the memory that it was meant to take the place of.

    Raises:
        ValueRejected: a person refused the value.
        PersonalDataRefused: the field's category takes no such words.
    """
    found = await _of_user(write, memory.user_id, stated)
    known = await known_values(write, memory, {each.field for each in found}, readable)
    news = [each for each in found if each.key not in known]
    if not news:
        return None
    await refuse_rejected_fields(write, memory, found)
    # of a story that gives a field one value after another, the last one is to hold
    changes = {each.key if each.field in MULTIPLE else each.field: each for each in news}
    proposed: list[UUID] = []
    await refuse_rejected(write, memory)
    looked = {memory.category}
    for change in list(changes.values())[:MOST_PROPOSED]:
        home = _at_home(write, memory, change.field)
        if home.category not in looked and await is_rejected(write, home):
            raise rejection_error()
        looked.add(home.category)
        besides = [each for each in found if each.field != change.field] if not proposed else []
        proposal = await _proposal(write, home, change, besides, whole=not proposed)
        if target is not None and not proposed:
            proposal = replace(proposal, meta={**proposal.meta, "target": str(target)})
        there = await write.uow.consents.propose(proposal, change.key[1])
        write.record_proposal(proposal, is_new=there is None)
        proposed.append(there or proposal.id)
        write.undoing(UndoKind.PROPOSAL, memory.user_id, proposed[-1], {"category": home.category})
    write.record_queued(memory)
    return Outcome(QUEUED, memory, proposal=proposed[0])


async def _proposal(write: Write, home: Memory, change: Stated, besides: Sequence[Stated], *, whole: bool) -> Proposal:
    """What is asked of a person: a field's new value, with the memory's words, or by itself."""
    known = await write.uow.consents.fields(home.user_id, change.field)
    return Proposal(
        id=new_id(),
        user_id=home.user_id,
        field=change.field,
        new_value=core(change.field, change.value),
        evidence=home.source_ids[0] if home.source_ids else None,
        confidence=home.confidence,
        actor=write.principal.actor,
        policy_hash=write.policy.digest,
        created_at=write.now,
        expires_at=write.now + write.policy.consent.life,
        category=home.category,
        old_value=await _told_before(write, home, known),
        key_id=write.principal.key_id,
        meta={
            "memory": _drafted(home, whole=whole),
            BESIDES: [list(key) for key in sorted({each.key for each in besides})[:MOST_PROPOSED]],
        },
    )


async def require_consent_to_change(
    write: Write, before: Memory, after: Memory, readable: Collection[str]
) -> Outcome | None:
    """The same for a memory that is put in the place of another, or is changed in place.

    Raises:
        ConsentRequired: a sensitive field that was stated in its own category would be gone from there.
        ValueRejected, PersonalDataRefused: as :func:`require_consent`.
    """
    was, will = await claims_of(write, before), await claims_of(write, after)
    own, then = write.policy.sensitive_fields(before.category), write.policy.sensitive_fields(after.category)
    gone = {each.field for each in was if each.field in own} - {each.field for each in will if each.field in then}
    if gone:
        raise ConsentRequired(
            f"this memory states the sensitive field {', '.join(sorted(gone))}, and would no longer: state its new "
            "value, or retract, reject or delete the memory",
            fields=sorted(gone),
        )
    # what was stated elsewhere was never agreed to: moved to the field's category it is news
    moved = before.category != after.category
    known = {each.key for each in was if not moved or each.field in own}
    news = [each for each in will if each.key not in known]
    return await require_consent(write, after, news, readable, before.id)


async def require_unchanged(write: Write, memory: Memory, decided: str) -> None:
    """Stop here when what an approved memory states besides was decided otherwise since.

    Raises:
        ProposalOutdated: another field than the decided one holds another value now; nobody has agreed to that.
        ValueRejected: a person refused a value that it states.
    """
    found = await claims_of(write, memory)
    known = await known_values(write, memory, {each.field for each in found} - {decided}, write.policy.categories)
    for stated in found:
        if stated.field != decided and stated.key not in known:
            raise ProposalOutdated(
                f"the proposal's words state the field {stated.field} too, which does not hold that value: decide on "
                f"that first, or let the {decided} be stated again on its own",
                field=stated.field,
            )
    await refuse_rejected_fields(write, memory, found)


async def refuse_rejected_fields(write: Write, memory: Memory, stated: Sequence[Stated]) -> None:
    """Stop here when a person refused, or erased, a value that a memory states: in whatever category that was.

    Raises:
        ValueRejected: a person did.
    """
    for field in sorted({each.field for each in stated}):
        where = field_namespace(field)
        keys = frozenset[str]().union(*(each.keys for each in stated if each.field == field))
        held = await write.uow.tombstones.load(memory.user_id, where)
        since = restated_at(write, memory)
        if not held.isdisjoint(keys) or await is_erased(write, memory.user_id, where, keys, since):
            raise rejection_error()


async def _of_user(write: Write, user_id: str, stated: Sequence[Stated]) -> tuple[Stated, ...]:
    """Those of some statements that are about the user, as far as the name tells that was decided on."""
    if all(each.of is None for each in stated):
        return tuple(stated)
    decided = await write.uow.consents.fields(user_id, PREFERRED_NAME)
    names = frozenset[str]().union(*(words_of(row.field_value) for row in decided))
    voice = Voice(names)
    known = (replace(each, of=None) for each in stated if each.of is None or voice.knows(each.of))
    return tuple({each.key: each for each in known}.values())


def _at_home(write: Write, memory: Memory, field: str) -> Memory:
    """A memory as it would be stored in a field's category.

    Raises:
        PersonalDataRefused: that category takes no such words.
    """
    policy, category = write.policy, write.policy.home_of(field, memory.category)
    if category == memory.category:
        return memory
    rules = policy.category(category).pii
    text = screen_text(memory.text, rules, policy.find_pii)
    attributes = screened_values(memory.attributes, rules, policy.find_pii)
    return replace(
        memory, category=category, text=text, attributes=attributes, value_hash=value_hash(text, memory.external_id)
    )


async def known_values(
    write: Write, memory: Memory, fields: Collection[str], readable: Collection[str]
) -> frozenset[tuple[str, str]]:
    """The values of some fields that were decided on, for a writer who may see the memories that hold them."""
    found: set[tuple[str, str]] = set()
    for field in sorted(fields):
        category = write.policy.home_of(field, memory.category)
        if category not in readable:
            continue
        home = replace(memory, category=category)
        rows = await write.uow.consents.fields(memory.user_id, field)
        found |= {Stated(field, row.field_value).key for row in rows if await _holds(write, home, row)}
    return frozenset(found)


async def _told_before(write: Write, memory: Memory, known: Sequence[ContextField]) -> str | None:
    """The value until now, for who decides: not one of another category, nor one whose memory is gone."""
    near = neighbour_scope(write, memory)
    scope = replace(
        near,
        visibilities=frozenset(Visibility),
        trust_levels=trust_levels(Trust.FULL),
        filters=replace(near.filters, types=()),
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
    now = neighbour_scope(write, memory).as_of(None, None)  # what was true once holds no more
    scope = replace(now, filters=replace(now.filters, types=()))
    holder = await write.uow.memories.find(scope, row.memory_id)
    return holder is not None and holder.state is State.ACTIVE


def field_namespace(field: str) -> str:
    """Where the refused values of a field are buried, beside those of categories."""
    return f"field:{field}"[:63]


def _drafted(memory: Memory, *, whole: bool) -> dict[str, object]:
    """What a memory says, as a proposal keeps it; of one who is less trusted, or beside another, the value alone.

    A decision on a value makes all that its memory says a person's word, and nobody has decided on the rest.
    """
    always = {"visibility": memory.visibility.value, "min_trust": memory.min_trust, "pii": list(memory.pii)}
    if memory.authority < FULL_AUTHORITY or not whole:
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
