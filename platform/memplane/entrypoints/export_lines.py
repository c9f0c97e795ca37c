"""An export as lines of JSON, for HTTP and for the command line."""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing

from pydantic_core import to_json

from memplane.application.records import ContextField, Proposal
from memplane.application.transfer.exports import Exports, ExportStream
from memplane.application.transfer.portable_records import MemoryRelation, Mentioning, NamedEntity, Record, Tombstone
from memplane.contracts.transfer import END, FORMAT, HEADER, VERSION
from memplane.domain.memory.history import HistoryEntry
from memplane.domain.memory.memory import Turn

_NAMES: Mapping[type[Record], str] = {
    Turn: "turn",
    NamedEntity: "entity",
    Mentioning: "memory",
    MemoryRelation: "relation",
    HistoryEntry: "history",
    Proposal: "proposal",
    ContextField: "field",
    Tombstone: "tombstone",
}
_LEFT_OUT = frozenset({"user_id", "of_user", "text", "value_hash", "rev", "key", "key_id"})
"""The user is said once, and hashes, revisions and the ids of keys are the server's own."""
_USUAL: Mapping[str, object] = {"vouched": True, "self_acknowledged": False}
"""Left out where it is so: a version that does not know these fields takes every other line."""
_KEPT: Mapping[type[Record], frozenset[str]] = {
    Turn: frozenset({"text"}),
    ContextField: frozenset({"value_hash"}),
    Tombstone: frozenset({"value_hash"}),
}


async def export_lines(exports: Exports, export: ExportStream) -> AsyncGenerator[bytes, None]:
    """A header, records, and an end that counts them; several lines at a time.

    Raises:
        StorageUnavailable: the database does not answer any more.
    """
    counts: Counter[str] = Counter()
    yield _header_of(export)
    async with aclosing(exports.pages(export)) as pages:
        async for page in pages:
            counts[_record_of(page[0])] += len(page)
            yield await asyncio.to_thread(_lines_of, page)  # where it holds nobody up
    yield _line({"record": END, "counts": dict(counts)})


def _record_of(record: Record) -> str:
    """What a line calls a record."""
    return _NAMES[type(record)]


def _lines_of(page: Sequence[Record]) -> bytes:
    """Records of one kind as lines."""
    return b"".join(_line(_fields(record)) for record in page)


def _header_of(export: ExportStream) -> bytes:
    """The first line."""
    about = {"user": export.user_id or None, "exported_at": export.exported_at, "policy": export.policy}
    return _line(
        {"record": HEADER, "format": FORMAT, "version": VERSION, **about, "categories": list(export.categories)}
    )


def _line(fields: Mapping[str, object]) -> bytes:
    return to_json(fields) + b"\n"


def _fields(record: Record) -> dict[str, object]:
    found: dict[str, object] = {"record": _record_of(record)}
    if isinstance(record, Mentioning):
        found |= _told(record.memory) | _told(record.memory.text)
        return found | ({"entities": record.entities} if record.entities else {})
    return found | _told(record, _KEPT.get(type(record), frozenset()))


def _told(record: object, kept: frozenset[str] = frozenset()) -> dict[str, object]:
    """The fields of a record that say something; the others are as in a new one."""
    return {
        name: value
        for name, value in _values(record)
        if (name not in _LEFT_OUT or name in kept) and _says(value) and _USUAL.get(name) is not value
    }


def _values(record: object) -> Iterator[tuple[str, object]]:
    for field in dataclasses.fields(record):  # type: ignore[arg-type]  # records are dataclasses
        yield field.name, getattr(record, field.name)


def _says(value: object) -> bool:
    return value is not None and value not in ((), {})
