"""Checkpoints of other savers: an export of one in memory, or the file of `SqliteSaver`; never a pickle."""

import base64
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from memplane.adapters.langgraph.serializer import StrictSerializer
from memplane.application.checkpoints.checkpoint_records import TaskWrite
from memplane.domain.errors import CheckpointMismatch, InvalidRequest, RecordNotFound, UndeclaredType

FORMAT = "memplane-checkpoints-1"
_SQLITE = b"SQLite format 3\x00"
_READABLE = frozenset({"msgpack", "null", "bytes", "bytearray"})
ABSENT = "empty"
"""How a saver notes that a channel has no value."""
Typed = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint as another saver has it; values are whole."""

    namespace: str
    id: str
    parent: str | None
    checkpoint: Mapping[str, Any]
    metadata: Mapping[str, Any]
    writes: Sequence[TaskWrite]


def export_checkpoints(saver: InMemorySaver, file: Path) -> int:
    """Write all that a saver in memory holds to a file, for `memplane checkpoints migrate`.

    Values stay in LangGraph's own format; the file holds no pickle, and nothing in it is executed when it is read.

    Returns:
        How many checkpoints there are.

    Raises:
        UndeclaredType: a value is kept as a pickle.
        OSError: the file is there already, or cannot be written.
    """
    count = 0
    with file.open("x", encoding="utf-8") as out:
        out.write(json.dumps({"format": FORMAT}) + "\n")
        for thread_id, by_namespace in sorted(saver.storage.items()):
            for namespace, stored in sorted(by_namespace.items()):
                for checkpoint_id, (checkpoint, metadata, parent) in sorted(stored.items()):
                    versions = saver.serde.loads_typed(checkpoint)["channel_versions"]
                    blobs = {
                        channel: saver.blobs[thread_id, namespace, channel, version]
                        for channel, version in versions.items()
                        if (thread_id, namespace, channel, version) in saver.blobs
                    }
                    writes = saver.writes.get((thread_id, namespace, checkpoint_id), {})
                    line = {
                        "thread_id": thread_id,
                        "namespace": namespace,
                        "id": checkpoint_id,
                        "parent": parent,
                        "checkpoint": _coded(checkpoint),
                        "metadata": _coded(metadata),
                        "values": {name: _coded(each) for name, each in blobs.items() if each[0] != ABSENT},
                        "writes": [
                            [task, path, idx, channel, *_coded(value)]
                            for (_, idx), (task, channel, value, path) in writes.items()
                        ],
                    }
                    out.write(json.dumps(line) + "\n")
                    count += 1
    return count


def threads_in(file: Path, serde: StrictSerializer) -> "Iterator[tuple[str, list[FoundCheckpoint]]]":
    """The threads of a file, one after the other, each with its checkpoints, oldest first.

    Raises:
        NotFound: there is no such file.
        Invalid: it is neither an export nor the file of a saver.
        UndeclaredType, CheckpointMismatch: a value is of a type that is not declared, or no longer fits it.
    """
    if not file.is_file():
        raise RecordNotFound(f"{file}: there is no such file")
    with file.open("rb") as begin:
        sqlite = begin.read(len(_SQLITE)) == _SQLITE
    return _in_database(file, serde) if sqlite else _in_export(file, serde)


def _in_export(file: Path, serde: StrictSerializer) -> Iterator[tuple[str, list[FoundCheckpoint]]]:
    try:
        with file.open(encoding="utf-8") as lines:
            if json.loads(next(lines, "null")) != {"format": FORMAT}:
                raise InvalidRequest(f"{file}: neither an export of checkpoints nor a SQLite file", field="from")
            thread, found = "", list[FoundCheckpoint]()
            for line in lines:
                row = json.loads(line)
                if row["thread_id"] != thread and found:
                    yield thread, found
                    found = []
                thread = row["thread_id"]
                found.append(_of_line(row, serde))
            if found:
                yield thread, found
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(f"{file}: is no export of checkpoints, or is cut short: {error}", field="from") from error


def _of_line(row: Mapping[str, Any], serde: StrictSerializer) -> FoundCheckpoint:
    values = {name: serde.loads_typed(_decoded(each)) for name, each in row["values"].items()}
    checkpoint = serde.loads_typed(_decoded(row["checkpoint"]))
    writes = [
        TaskWrite(task, path, idx, channel, *_decoded((kind, data)))
        for task, path, idx, channel, kind, data in row["writes"]
    ]
    metadata = serde.loads_typed(_decoded(row["metadata"]))
    whole = {**checkpoint, "channel_values": {**checkpoint.get("channel_values", {}), **values}}
    return FoundCheckpoint(row["namespace"], row["id"], row["parent"], whole, metadata, readable(writes, serde))


def _in_database(file: Path, serde: StrictSerializer) -> Iterator[tuple[str, list[FoundCheckpoint]]]:
    address = f"{file.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.execute("BEGIN")  # one look at a file that a graph may be writing
            path = "task_path" if _has_path(connection) else "''"
            for (thread,) in connection.execute("SELECT DISTINCT thread_id FROM checkpoints ORDER BY 1").fetchall():
                yield thread, [_of_row(connection, thread, path, row, serde) for row in _rows(connection, thread)]
    except sqlite3.Error as error:
        raise InvalidRequest(f"{file}: is no file of LangGraph's SqliteSaver: {error}", field="from") from error


def _has_path(connection: sqlite3.Connection) -> bool:
    """Whether writes say where their task stands; older savers did not."""
    return any(column[1] == "task_path" for column in connection.execute("PRAGMA table_info(writes)"))


def _rows(connection: sqlite3.Connection, thread: str) -> list[tuple[Any, ...]]:
    return connection.execute(
        "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints"
        " WHERE thread_id = ? ORDER BY checkpoint_ns, checkpoint_id",
        (thread,),
    ).fetchall()


def _of_row(
    connection: sqlite3.Connection, thread: str, path: str, row: tuple[Any, ...], serde: StrictSerializer
) -> FoundCheckpoint:
    namespace, checkpoint_id, parent, kind, checkpoint, metadata = row
    written = connection.execute(
        f"SELECT task_id, {path}, idx, channel, type, value FROM writes"  # noqa: S608 - one of two words of this module
        " WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?",
        (thread, namespace, checkpoint_id),
    ).fetchall()
    writes = [
        TaskWrite(task, where, idx, channel, form or "null", bytes(value or b""))
        for task, where, idx, channel, form, value in written
    ]
    whole = serde.loads_typed((kind, checkpoint))
    told = {} if metadata is None else json.loads(metadata)
    return FoundCheckpoint(namespace, checkpoint_id, parent or None, whole, told, readable(writes, serde))


def readable(writes: Sequence[TaskWrite], serde: StrictSerializer) -> Sequence[TaskWrite]:
    """What tasks wrote, as it stands, once it is known that it can be read.

    Raises:
        UndeclaredType, CheckpointMismatch: it cannot.
    """
    for write in writes:
        serde.loads_typed((write.type, write.blob))
    return writes


def _coded(value: Typed) -> tuple[str, str]:
    kind, data = value
    if kind not in _READABLE | {ABSENT}:
        raise UndeclaredType(f"a value is kept as {kind}, which is not exported; keep a type that LangGraph knows")
    return kind, base64.b64encode(data).decode()


def _decoded(value: Sequence[str]) -> Typed:
    kind, data = value
    if kind not in _READABLE:
        raise CheckpointMismatch(f"the export holds a value in the format '{kind}', which is not read")
    return kind, base64.b64decode(data, validate=True)
