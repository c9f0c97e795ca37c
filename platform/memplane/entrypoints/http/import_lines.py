"""Lines as records: what cannot be read is refused for itself."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from memplane.application.memories.service import NewMemory
from memplane.application.records import ContextField, Proposal
from memplane.application.transfer.import_records import Incoming
from memplane.application.transfer.portable_records import MemoryRelation, Mentioning, NamedEntity, Record, Tombstone
from memplane.application.turns.new_turn import NewTurn
from memplane.contracts.mistakes import joined_mistakes
from memplane.contracts.transfer import (
    VERSION,
    EndLine,
    EntityLine,
    FieldLine,
    HeaderLine,
    HistoryLine,
    Line,
    MemoryLine,
    ProposalLine,
    RelationLine,
    TombstoneLine,
    TurnLine,
)
from memplane.domain.errors import InvalidRequest, MemplaneError, UnsupportedVersion
from memplane.domain.language.entities import key_of
from memplane.domain.memory.history import HistoryEntry
from memplane.domain.memory.memory import (
    FULL_AUTHORITY,
    Memory,
    MemoryText,
    Source,
    State,
    TrustState,
    Turn,
    Visibility,
    new_id,
)
from memplane.domain.policy.policy import Trust

_LINES: TypeAdapter[Any] = TypeAdapter(Line)
_TEXT = tuple(MemoryText.__slots__)
_LISTS = frozenset({"facts", "steps", "tags", "related_files"})
_OF_BOTH = (
    *("category", "type", "visibility", "agent_id", "run_id", "actor_id", "role", "thread_id", "external_id"),
    *("importance", "pinned", "confidence", "event_time", "valid_from", "valid_until", "expires_at"),
)
_OF_STATE = (
    *("trust_state", "state", "superseded_at", "superseded_by", "purge_at", "mention_count", "access_count"),
    *("reinforcement", "hits", "last_accessed", "last_hit_at", "layer", "version"),
)
_KEPT = (*_OF_BOTH, *_OF_STATE)


def incoming(lines: Sequence[str], now: datetime, *, restoring: bool) -> list[Incoming]:
    """Lines, read: to be restored as records, or to be added as new memories and turns."""
    return [_incoming(line, now, restoring=restoring) for line in lines]


def _incoming(line: str, now: datetime, *, restoring: bool) -> Incoming:
    try:
        read = _LINES.validate_python(from_json(line, allow_inf_nan=False), strict=False)
    except ValidationError as error:
        return Incoming(error=InvalidRequest(joined_mistakes(error.errors(include_input=False, include_url=False)[:5])))
    except ValueError:
        return Incoming(error=InvalidRequest("the line is no JSON document"))
    if isinstance(read, HeaderLine | EndLine):
        if isinstance(read, HeaderLine) and read.version != VERSION:
            told = f"version: the file is of version {read.version}, this server reads {VERSION}"
            return Incoming(error=UnsupportedVersion(told, field="version"))
        return Incoming()
    try:
        return Incoming(_RECORDS[type(read)](read, now) if restoring else _added(read))
    except MemplaneError as error:
        return Incoming(error=error)


def _added(line: Any) -> NewMemory | NewTurn:  # noqa: ANN401 - one of the lines of the contract
    """A line as a new memory or turn, with nothing that only the server says.

    Raises:
        Invalid: it is none, or no memory that is believed.
    """
    match line:
        case MemoryLine(state=State.ACTIVE, trust_state=TrustState.CANDIDATE | TrustState.CONFIRMED):
            given = {name: getattr(line, name) for name in _OF_BOTH}
            return NewMemory(
                **given | {"event_time": line.event_time or line.recorded_at},
                user_id=None,  # the request names it
                text=_text(line),
                min_trust=line.min_trust,
                source_ids=tuple(line.source_ids),
                attributes=line.attributes,
            )
        case MemoryLine():
            raise InvalidRequest("state: what is not believed any more is restored, not added", field="state")
        case TurnLine():
            names = (
                "thread_id",
                "role",
                "text",
                "actor_id",
                "agent_id",
                "run_id",
                "external_id",
                "vouched",
                "time_zone",
            )
            given = {name: getattr(line, name) for name in names}
            return NewTurn(user_id="", event_time=line.event_time or line.recorded_at, auto_extract=False, **given)
        case _:
            raise InvalidRequest(f"record: '{line.record}' is restored, not added", field="record")


def _text(line: MemoryLine) -> MemoryText:
    said = line.__dict__  # its fields: to ask for them one by one takes twice as long
    words: dict[str, Any] = {name: said[name] for name in _TEXT}
    return MemoryText(**words | {name: tuple(words[name]) for name in _LISTS})


def _memory(line: MemoryLine, now: datetime) -> Mentioning:
    recorded = min(line.recorded_at or now, now)  # else what is written from now on would be the older one
    said = line.__dict__
    memory = Memory(
        **{name: said[name] for name in _KEPT} | {"visibility": line.visibility or Visibility.PRIVATE},
        id=line.id or new_id(),
        user_id="",
        text=_text(line),
        value_hash="",
        source=line.source or Source.MIGRATION,
        recorded_at=recorded,
        updated_at=line.updated_at or recorded,
        asserted_at=None if line.asserted_at is None else min(line.asserted_at, now),
        decay_rate=line.decay_rate or 0.0,
        authority=FULL_AUTHORITY if line.authority is None else line.authority,
        min_trust=line.min_trust or Trust.PUBLIC,
        source_ids=tuple(line.source_ids),
        attributes=line.attributes,
    )
    return Mentioning(memory, tuple((kind, name) for kind, name in line.entities))


def _turn(line: TurnLine, now: datetime) -> Turn:
    names = (
        "thread_id",
        "role",
        "text",
        "actor_id",
        "agent_id",
        "run_id",
        "external_id",
        "event_time",
        "vouched",
        "time_zone",
    )
    given: dict[str, Any] = {name: getattr(line, name) for name in names}
    return Turn(
        id=line.id or new_id(), user_id="", seq=0, rev=0, recorded_at=min(line.recorded_at or now, now), **given
    )


def _entity(line: EntityLine, now: datetime) -> NamedEntity:
    made = line.created_at or now
    return NamedEntity(line.id or new_id(), line.kind, line.name, key_of(line.name), made, tuple(line.aliases))


def _relation(line: RelationLine, now: datetime) -> MemoryRelation:
    made = line.created_at or now
    return MemoryRelation(
        line.from_id, line.to_id, line.relation_type, line.strength, line.co_recalls, made, line.updated_at or made
    )


def _same(kind: type[Record], **more: object) -> Callable[[Any, datetime], Record]:
    """What makes a record of a line with the same fields."""
    names = tuple(name for name in kind.__slots__ if name not in more)

    def make(line: Any, _now: datetime) -> Record:  # noqa: ANN401 - a line of the contract
        return kind(**{name: getattr(line, name) for name in names}, **more)  # type: ignore[arg-type]  # as the contract has them

    return make


_RECORDS: Mapping[type[Any], Callable[[Any, datetime], Record]] = {
    MemoryLine: _memory,
    TurnLine: _turn,
    EntityLine: _entity,
    RelationLine: _relation,
    HistoryLine: _same(HistoryEntry, of_user=None),
    ProposalLine: _same(Proposal, user_id="", key_id=None),
    FieldLine: _same(ContextField, user_id=""),
    TombstoneLine: _same(Tombstone),
}
