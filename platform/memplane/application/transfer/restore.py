"""Records of an export put back as they were, by an administrator: many at once, by their kinds."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from memplane.application.erasure.user_tombstones import erased_until
from memplane.application.limits.offload import in_thread
from memplane.application.memories.gateway import Gateway, Write
from memplane.application.memories.service import NewMemory
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import ContextField, Proposal
from memplane.application.transfer.import_records import Attempt, Incoming, Outcomes, Taking
from memplane.application.transfer.portable_records import MemoryRelation, Mentioning, NamedEntity, Record, Tombstone
from memplane.application.transfer.restore_validation import RestoreRules, ValidatedRecord, validate_record
from memplane.application.transfer.restored_memories import IncomingMemory, reinstate_memories
from memplane.application.transfer.restored_records import (
    reinstate_entities,
    reinstate_fields,
    reinstate_history,
    reinstate_proposals,
    reinstate_relations,
    reinstate_tombstones,
    reinstate_turns,
)
from memplane.application.turns.new_turn import NewTurn
from memplane.domain.errors import MemplaneError, ValueRejected
from memplane.domain.identity.principal import JOB
from memplane.domain.memory.history import HistoryEntry
from memplane.domain.memory.memory import MemoryText, Source, Turn

T = TypeVar("T")
_CONCLUDED = frozenset({Source.CONSOLIDATION, Source.REFLECTION})


async def reinstating(gateway: Gateway, taking: Taking, lines: Sequence[Incoming]) -> Attempt:
    """What puts records back; whatever is referred to comes before what refers to it, as in the file.

    Raises:
        AgentForbidden: the key does not reach the agent.
    """
    rules = RestoreRules.of(taking)

    def look() -> tuple[dict[int, ValidatedRecord], dict[int, MemplaneError]]:
        found, refused = {}, {}
        for place, line in enumerate(lines):
            if line.record is None or isinstance(line.record, NewMemory | NewTurn):
                continue
            seen = validate_record(rules, line.record)
            if isinstance(seen, MemplaneError):
                refused[place] = seen
            else:
                found[place] = seen
        return found, refused

    found, refused = await in_thread(look)
    seen = found
    material = await _material(gateway, seen)

    async def attempt(write: Write, outcomes: Outcomes) -> None:
        found = await _of_the_living(write, rules, seen, outcomes)
        for place, error in refused.items():
            outcomes.refuse(place, error)
        await reinstate_proposals(write, rules, _of(found, Proposal), outcomes)
        turns = {place: (turn, material[place]) for place, turn in _of(found, Turn).items()}
        await reinstate_turns(write, rules, turns, outcomes)
        await reinstate_entities(write, rules, _of(found, NamedEntity), outcomes)
        memories = [
            IncomingMemory(place, memory, material[place], found[place])
            for place, memory in _of(found, Mentioning).items()
        ]
        await reinstate_memories(write, rules, memories, outcomes)
        await reinstate_relations(write, rules, _of(found, MemoryRelation), outcomes)
        await reinstate_history(write, rules, _of(found, HistoryEntry), outcomes)
        fields = {place: (each, bool(found[place].stated)) for place, each in _of(found, ContextField).items()}
        await reinstate_fields(write, rules, fields, outcomes)
        await reinstate_tombstones(write, rules, _of(found, Tombstone), outcomes)
        moments = [moment for each in found.values() for moment in _active_at(each.record)]
        await gateway.activity.reconstruct(write.uow, rules.user_id, moments, write.now)

    return attempt


async def _of_the_living(
    write: Write, rules: RestoreRules, found: Mapping[int, ValidatedRecord], outcomes: Outcomes
) -> Mapping[int, ValidatedRecord]:
    """The records without those that are older than the user's erasure, if there was one."""
    until = await erased_until(write.uow.erasures, rules.user_id)
    if until is None:
        return found
    gone = {place for place, each in found.items() if (made := _made(each.record)) is not None and made <= until}
    for place in gone:
        outcomes.refuse(place, ValueRejected("it is older than the erasure of its user; it is not stored again"))
    return {place: each for place, each in found.items() if place not in gone}


def _made(record: Record) -> datetime | None:
    """When what a record tells came to be known; a hash of what was rejected tells nothing."""
    match record:
        case Mentioning(memory=memory):
            return memory.recorded_at
        case Turn(recorded_at=moment) | HistoryEntry(ts=moment) | ContextField(decided_at=moment):
            return moment
        case NamedEntity(created_at=moment) | MemoryRelation(created_at=moment) | Proposal(created_at=moment):
            return moment
        case _:
            return None


def _active_at(record: Record) -> Iterator[datetime]:
    """When a record shows that its user was active: nothing that background work left does."""
    match record:
        case Mentioning(memory=memory):
            told = None if memory.source in _CONCLUDED else memory.recorded_at
            yield from filter(None, (told, memory.last_accessed, memory.last_hit_at))
        case Turn(recorded_at=moment):
            yield moment
        case HistoryEntry(ts=moment, actor=actor) if not actor.startswith(JOB):
            yield moment
        case _:
            pass


def _of(found: Mapping[int, ValidatedRecord], kind: type[T]) -> dict[int, T]:
    """The records of a kind, by their lines' places."""
    return {place: each.record for place, each in found.items() if isinstance(each.record, kind)}


async def _material(gateway: Gateway, found: Mapping[int, ValidatedRecord]) -> dict[int, SearchMaterial]:
    words: dict[int, MemoryText | str] = {}
    for place, each in found.items():
        match each.record:
            case Turn(text=said):
                words[place] = said
            case Mentioning(memory=memory):
                words[place] = memory.text
            case _:
                pass
    return dict(zip(words, await gateway.material(*words.values()), strict=True))
