"""What stands around memories, put back as it was: turns, entities, relations, histories, consents, tombstones."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from uuid import UUID

from memplane.application.limits.offload import in_thread
from memplane.application.memories.gateway import Write
from memplane.application.memories.supersession import is_erased
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import ChangeEntry, ContextField, Proposal
from memplane.application.transfer.import_records import UNCHANGED, Outcomes
from memplane.application.transfer.portable_records import MemoryRelation, NamedEntity, Tombstone
from memplane.application.transfer.restore_validation import RestoreRules
from memplane.application.transfer.restored_memories import RESTORED, deleted_turns, kin, mine
from memplane.domain.consent.consent_rules import MULTIPLE, ProposalState
from memplane.domain.errors import ConsentRequired, MemplaneError, RecordNotFound, StateConflict, ValueRejected
from memplane.domain.language.entities import key_of
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.history import HistoryEntry
from memplane.domain.memory.memory import MemoryText, Turn
from memplane.domain.memory.tombstones import said_keys
from memplane.domain.memory.turn_hashes import NAMES, name_key
from memplane.domain.privacy.erasure import TURNS, turn_key

_MISSING = "no such memory of the user here: it was refused, or is not in the file"


async def reinstate_turns(
    write: Write, rules: RestoreRules, turns: Mapping[int, tuple[Turn, SearchMaterial]], outcomes: Outcomes
) -> None:
    """Append turns to their threads, in the order of the file, as new revisions."""
    user = rules.user_id
    first: dict[UUID, int] = {}
    for place, (turn, _) in turns.items():
        if first.setdefault(turn.id, place) != place:
            outcomes.note(place, UNCHANGED)  # the same line again
    turns = {place: turns[place] for place in first.values()}
    names = {place: {turn.id, kin(turn.id, user)} for place, (turn, _) in turns.items()}
    deleted = await deleted_turns(write, user, {turn.id for turn, _ in turns.values()})
    for place in [place for place, (turn, _) in turns.items() if turn.id in deleted]:
        outcomes.refuse(place, ValueRejected("the turn was deleted; it is not stored again"))
        del turns[place], names[place]
    known = await write.uow.portable.speakers(set().union(*names.values()) if names else set())
    own = {each for each, speaker in known.items() if speaker == user}
    fresh = []
    for place, (turn, material) in turns.items():
        if names[place] & own:
            outcomes.note(place, UNCHANGED)
        else:
            fresh.append((place, replace(turn, id=kin(turn.id, user)) if turn.id in known else turn, material))
    by_thread = sorted(fresh, key=lambda each: (each[1].thread_id, each[0]))
    for thread_id, group in groupby(by_thread, key=lambda each: each[1].thread_id):
        await _spoken(write, rules, thread_id, list(group), outcomes)


async def _spoken(
    write: Write,
    rules: RestoreRules,
    thread_id: str,
    said: Sequence[tuple[int, Turn, SearchMaterial]],
    outcomes: Outcomes,
) -> None:
    threads, user = write.uow.threads, rules.user_id
    titles = [turn.external_id for _, turn, _ in said if turn.external_id is not None]
    named = await threads.existing_turns(user, thread_id, titles) if titles else {}
    keys = {name: name_key(thread_id, name) for name in titles if name not in named}
    deleted = await write.uow.removals.tombstoned_keys(user, NAMES, keys.values()) if keys else frozenset[str]()
    new = []
    for place, turn, material in said:
        if turn.external_id in named:
            outcomes.note(place, UNCHANGED)
        elif turn.external_id is not None and keys[turn.external_id] in deleted:
            outcomes.refuse(place, ValueRejected("external_id: the turn of this name was deleted"))
        elif await is_erased(write, user, TURNS, {turn_key(thread_id, turn.text)}, turn.recorded_at):
            outcomes.refuse(place, ValueRejected("text: this turn was erased with its user; it is not stored again"))
        else:
            outcomes.note(place, RESTORED)
            new.append((place, turn, material))
    if not new:
        return
    last = await threads.advance(
        user, thread_id, max(turn.recorded_at for _, turn, _ in new), revs=len(new), turns=len(new)
    )
    rows = [
        (replace(turn, seq=last.seq - len(new) + nth, rev=last.rev - len(new) + nth), material)
        for nth, (_, turn, material) in enumerate(new, 1)
    ]
    added = await write.uow.portable.add_turns(rows)
    again = [(replace(turn, id=kin(turn.id, user)), material) for turn, material in rows if turn.id not in added]
    await write.uow.portable.add_turns(again)  # their ids are those of turns that are not the user's
    stored = [turn for turn, _ in rows if turn.id in added] + [turn for turn, _ in again]
    category = write.policy.turns_category
    await threads.log(
        [
            ChangeEntry(user, thread_id, turn.rev, turn.id, ChangeEvent.TURN, category, turn.recorded_at)
            for turn in stored
        ]
    )


async def reinstate_entities(
    write: Write, rules: RestoreRules, entities: Mapping[int, NamedEntity], outcomes: Outcomes
) -> None:
    """Make entities with their aliases; those that are known by their names stay."""
    keyed = {place: replace(each, key=key_of(each.name)) for place, each in entities.items()}
    unique = {(each.kind, each.key): each for each in keyed.values() if each.key}
    ids = await write.uow.portable.add_entities(rules.user_id, list(unique.values()))
    for place, each in keyed.items():
        entity = ids.get((each.kind, each.key))
        if entity is None:
            outcomes.refuse(place, RecordNotFound("name: is none that an entity can have"))
            continue
        for alias in each.aliases:
            if key := key_of(alias):
                await write.uow.graph.name(rules.user_id, entity, alias, key)
        outcomes.note(place, RESTORED if entity == each.id else UNCHANGED)


async def reinstate_relations(
    write: Write, rules: RestoreRules, relations: Mapping[int, MemoryRelation], outcomes: Outcomes
) -> None:
    """Link the user's memories as they were."""
    ends = await mine(write, rules.user_id, {end for each in relations.values() for end in (each.from_id, each.to_id)})
    found: dict[tuple[UUID, UUID, str], MemoryRelation] = {}
    for place, each in relations.items():
        if not all(end in ends and ends[end][1].category in rules.categories for end in (each.from_id, each.to_id)):
            outcomes.refuse(place, RecordNotFound(_MISSING))
            continue
        here = replace(each, from_id=ends[each.from_id][0], to_id=ends[each.to_id][0])
        if here.from_id != here.to_id:
            found[here.from_id, here.to_id, here.relation_type] = here
        outcomes.note(place, RESTORED)
    await write.uow.portable.add_relations(list(found.values()))


async def reinstate_history(
    write: Write, rules: RestoreRules, entries: Mapping[int, HistoryEntry], outcomes: Outcomes
) -> None:
    """Append what was done to the user's memories and proposals on another server."""
    subjects = {each.memory_id for each in entries.values()}
    memories = await mine(write, rules.user_id, subjects)
    here = {name: found[0] for name, found in memories.items()}
    entries = {place: _standing(each, here.get(each.memory_id), rules.user_id) for place, each in entries.items()}
    memories = {found[0]: found for found in memories.values()}
    subjects = {each.memory_id for each in entries.values()}
    there = await write.uow.portable.known_entries({each.id for each in entries.values()})
    for place in [place for place, each in entries.items() if each.id in there]:
        outcomes.note(place, UNCHANGED)
    entries = {place: each for place, each in entries.items() if each.id not in there}
    proposals = await write.uow.portable.known_proposals(rules.user_id, subjects - set(memories))
    buried: dict[str, frozenset[str]] = {}
    wanted: dict[int, HistoryEntry] = {}
    for place, each in entries.items():
        holder = memories.get(each.memory_id)
        foreign = holder is not None and holder[1].category not in rules.categories
        if foreign or (holder is None and each.memory_id not in proposals):
            outcomes.refuse(place, RecordNotFound(_MISSING))
            continue
        if holder is not None:
            category = holder[1].category
            if category not in buried:
                buried[category] = await write.uow.tombstones.load(rules.user_id, category)
            graves = buried[category]
            repeats = await in_thread(_says, each, graves) if graves else False
            if repeats:
                outcomes.refuse(place, ValueRejected("it tells of a value that a person rejected or erased"))
                continue
        wanted[place] = replace(each, of_user=rules.user_id)  # whose words go when the user is erased
    added = await write.uow.portable.add_history(list({each.id: each for each in wanted.values()}.values()))
    for place, each in wanted.items():
        outcomes.note(place, RESTORED if each.id in added else UNCHANGED)


def _standing(entry: HistoryEntry, memory_id: UUID | None, user_id: str) -> HistoryEntry:
    """An entry as it stands here: that of a copy is a copy."""
    if memory_id is None or memory_id == entry.memory_id:
        return entry
    return replace(entry, id=kin(entry.id, user_id), memory_id=memory_id)


def _says(entry: HistoryEntry, buried: Collection[str]) -> bool:
    """Whether an entry repeats, in whatever part, what a person rejected or erased."""
    words = "\n".join(part for part in (entry.old_ref, entry.new_ref) if part)
    return any(key in buried for key in said_keys(MemoryText(content=words), entry.meta))


async def reinstate_proposals(
    write: Write, rules: RestoreRules, proposals: Mapping[int, Proposal], outcomes: Outcomes
) -> None:
    """Put proposals back, with what was decided on them."""
    named = {each.evidence for each in proposals.values() if each.state is ProposalState.PENDING and each.evidence}
    deleted = await deleted_turns(write, rules.user_id, named)
    for place, each in list(proposals.items()):
        if each.state is ProposalState.PENDING and each.evidence in deleted:
            outcomes.refuse(place, ValueRejected("the turn that says it was deleted"))
            proposals = {other: kept for other, kept in proposals.items() if other != place}
    unique = {each.id: each for each in proposals.values()}
    added = await write.uow.portable.add_proposals(list(unique.values()))
    own = await write.uow.portable.known_proposals(rules.user_id, set(unique) - added)
    for place, each in proposals.items():
        if each.id in added or each.id in own:
            outcomes.note(place, RESTORED if each.id in added else UNCHANGED)
        else:
            outcomes.refuse(place, StateConflict("the id is taken; what another user agreed to is not copied"))


async def reinstate_fields(
    write: Write, rules: RestoreRules, fields: Mapping[int, tuple[ContextField, bool]], outcomes: Outcomes
) -> None:
    """Put decided fields back, where the memory that holds them is; a sensitive one where a person agreed to it."""
    held = await mine(write, rules.user_id, {field.memory_id for field, _ in fields.values()})
    consented = await write.uow.portable.consented_fields(rules.user_id) if fields else frozenset()
    for place, (field, sensitive) in fields.items():
        try:
            if field.memory_id not in held:
                raise RecordNotFound(_MISSING)
            if sensitive and (field.field, field.value_hash, field.memory_id) not in consented:
                raise ConsentRequired("nobody agreed to this value here", fields=[field.field])
            here = replace(field, memory_id=held[field.memory_id][0])
            outcomes.note(place, await _kept(write, here))
        except MemplaneError as error:
            outcomes.refuse(place, error)


async def _kept(write: Write, field: ContextField) -> str:
    known = await write.uow.consents.fields(field.user_id, field.field)
    if any(each.value_hash == field.value_hash for each in known):
        return UNCHANGED
    if known and field.field not in MULTIPLE:
        raise StateConflict("another value of the field was decided on here")
    await write.uow.consents.keep(field, alone=False)
    return RESTORED


async def reinstate_tombstones(
    write: Write, rules: RestoreRules, tombstones: Mapping[int, Tombstone], outcomes: Outcomes
) -> None:
    """Bury what was buried."""
    await write.uow.portable.bury(rules.user_id, list(tombstones.values()))
    for place in tombstones:
        outcomes.note(place, RESTORED)
