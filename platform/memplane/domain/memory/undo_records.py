"""What a change of a memory changed: kept beside the history, so that one writer's changes can be taken back."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from memplane.domain.language.text import instant
from memplane.domain.memory.memory import (
    Layer,
    Memory,
    MemoryText,
    MemoryType,
    Role,
    Source,
    State,
    TrustState,
    Visibility,
)

Fields = Mapping[str, object]
"""Fields of a memory and of its text by name, as JSON has them."""
TEXT = frozenset(MemoryText.__slots__)
_BESIDE = frozenset({"id", "user_id", "text", "updated_at", "version", "access_count", "last_accessed"})
"""Fields that are never taken back: what a memory is called, and what is counted with every change or read."""
RECORD = tuple(name for name in Memory.__slots__ if name not in _BESIDE)
TIMES = frozenset(
    {"recorded_at", "event_time", "valid_from", "valid_until", "asserted_at", "superseded_at", "expires_at", "purge_at"}
    | {"last_hit_at"}
)
_TUPLES = frozenset({"facts", "steps", "tags", "related_files", "pii"})
_ENUMS: Mapping[str, type[StrEnum]] = {
    "type": MemoryType, "visibility": Visibility, "source": Source, "role": Role, "trust_state": TrustState,
    "state": State, "layer": Layer,
}  # fmt: skip


class UndoKind(StrEnum):
    """What an undo record is about."""

    MEMORY = "memory"
    FIELD = "field"
    PROPOSAL = "proposal"
    ALIAS = "alias"
    FOLD = "fold"
    VERDICT = "verdict"


class Joining(StrEnum):
    """How what was said again was joined with the memory that says it."""

    MENTION = "mention"
    MERGE = "merge"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class Restatement:
    """A memory that was not stored but counted into another one, and how."""

    memory: Memory
    how: Joining


@dataclass(frozen=True, slots=True)
class UndoRecord:
    """What one change changed.

    Attributes:
        id: of the history entry, for a memory.
        about: the memory, proposal or entity.
        changes: for a memory its fields with their values before and after; else what there was before.
        said: the memory that was counted into it, and how; none for any other change.
        reverted_by: the receipt of what took it back already.
    """

    id: UUID
    user_id: str
    about: UUID
    kind: UndoKind
    actor: str
    key_id: str | None
    ts: datetime
    changes: Mapping[str, Any] = field(default_factory=dict)
    said: Mapping[str, Any] | None = None
    reverted_by: UUID | None = None


def plain(value: object) -> object:
    """A value as JSON has it."""
    match value:
        case datetime():
            return value.isoformat()
        case UUID():
            return str(value)
        case StrEnum():
            return value.value
        case tuple() | list():
            return [plain(each) for each in value]
        case Mapping():
            return dict(value)
        case _:
            return value


def fields_of(memory: Memory) -> dict[str, object]:
    """The fields of a memory that can be taken back."""
    found = {name: plain(getattr(memory, name)) for name in RECORD}
    return found | {name: plain(getattr(memory.text, name)) for name in TEXT}


def difference(before: Memory, after: Memory) -> dict[str, list[object]]:
    """The fields in which two versions of a memory differ, with both values."""
    found: dict[str, list[object]] = {}
    for of, other, names in ((before, after, RECORD), (before.text, after.text, MemoryText.__slots__)):
        for name in names:
            old, new = getattr(of, name), getattr(other, name)
            if old != new:
                found[name] = [plain(old), plain(new)]
    return found


def with_fields(memory: Memory, fields: Fields) -> Memory:
    """A memory with some of its fields as they are given."""
    words: dict[str, Any] = {name: _read(name, value) for name, value in fields.items() if name in TEXT}
    record: dict[str, Any] = {name: _read(name, value) for name, value in fields.items() if name in RECORD}
    return replace(memory, text=replace(memory.text, **words), **record)


def restatement_of(record: Mapping[str, Any] | None, memory: Memory) -> Restatement | None:
    """What was said again, as an undo record has it, under the name of the memory that it was counted into."""
    if not record:
        return None
    return Restatement(with_fields(memory, record["memory"]), Joining(record["how"]))


def kept_of(said: Restatement) -> dict[str, object]:
    """What was said again, as an undo record keeps it."""
    return {"how": said.how.value, "memory": fields_of(said.memory)}


def _read(name: str, value: Any) -> object:  # noqa: ANN401 - JSON
    if value is None:
        return None
    if name in TIMES:
        return instant(value)
    if name in _ENUMS:
        return _ENUMS[name](value)
    if name == "source_ids":
        return tuple(UUID(each) for each in value)
    if name == "superseded_by":
        return UUID(value)
    return tuple(value) if name in _TUPLES else value
