"""Checkpoints of LangGraph's `PostgresSaver`, read from its own tables; nothing is written to them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg.rows import namedtuple_row

from memplane.adapters.langgraph.serializer import StrictSerializer
from memplane.adapters.langgraph.sources import ABSENT, FoundCheckpoint, Typed, readable
from memplane.application.checkpoints.checkpoint_records import TaskWrite
from memplane.domain.errors import InvalidRequest

SCHEMES = frozenset({"postgres", "postgresql"})
_CONNECT_SECONDS = 15
# Each is served by the primary key of its table, which begins with the thread.
_THREADS = "SELECT DISTINCT thread_id FROM checkpoints ORDER BY thread_id"
_CHECKPOINTS = """
SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata FROM checkpoints
 WHERE thread_id = %s ORDER BY checkpoint_ns, checkpoint_id"""
_BLOBS = "SELECT checkpoint_ns, channel, version, type, blob FROM checkpoint_blobs WHERE thread_id = %s"
_WRITES = """
SELECT checkpoint_ns, checkpoint_id, task_id, {path} AS task_path, idx, channel, type, blob FROM checkpoint_writes
 WHERE thread_id = %s ORDER BY checkpoint_ns, checkpoint_id, task_id, idx"""
_HAS_PATH = """
SELECT count(*) FROM pg_attribute
 WHERE attrelid = to_regclass('checkpoint_writes') AND attname = 'task_path' AND NOT attisdropped"""


def is_database(source: str) -> bool:
    """Whether a source is the address of a PostgreSQL database."""
    return urlsplit(source).scheme in SCHEMES


def address(source: str) -> str:
    """A source as it may be shown: without a user's name, password and further settings."""
    if not is_database(source):
        return source
    parts = urlsplit(source)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def threads_in_database(source: str, serde: StrictSerializer) -> Iterator[tuple[str, list[FoundCheckpoint]]]:
    """The threads of a `PostgresSaver`, one after the other, each with its checkpoints, oldest first.

    All of them as they are at one moment, though graphs go on: one transaction that only reads.

    Raises:
        Invalid: the database cannot be reached, or has no tables of a saver.
        UndeclaredType, CheckpointMismatch: a value is of a type that is not declared, or no longer fits it.
    """
    try:
        with psycopg.connect(source, connect_timeout=_CONNECT_SECONDS) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            (has_path,) = connection.execute(_HAS_PATH).fetchone() or (0,)
            writes = _WRITES.format(path="task_path" if has_path else "''")
            for (thread,) in connection.execute(_THREADS).fetchall():
                yield thread, _Thread.read(connection, thread, writes).found(serde)
    except psycopg.Error as error:
        told = f"{address(source)}: cannot be read as a database of LangGraph's PostgresSaver: {type(error).__name__}"
        raise InvalidRequest(told, field="from") from error


@dataclass(frozen=True, slots=True)
class _Thread:
    """The rows of one thread: its checkpoints; the values of channels; and what tasks wrote, by checkpoint."""

    checkpoints: Sequence[Any]
    blobs: Mapping[tuple[str, str, str], Typed]
    writes: Mapping[tuple[str, str], Sequence[TaskWrite]]

    @classmethod
    def read(cls, connection: psycopg.Connection[Any], thread: str, writes: str) -> "_Thread":
        """A thread, from the database."""
        cursor: psycopg.Cursor[Any] = connection.cursor(row_factory=namedtuple_row)
        checkpoints = cursor.execute(_CHECKPOINTS, (thread,)).fetchall()
        blobs = {
            (row.checkpoint_ns, row.channel, row.version): (row.type, bytes(row.blob or b""))
            for row in cursor.execute(_BLOBS, (thread,))
        }
        written: dict[tuple[str, str], list[TaskWrite]] = {}
        for row in cursor.execute(writes.encode(), (thread,)):
            write = TaskWrite(
                row.task_id, row.task_path, row.idx, row.channel, row.type or "null", bytes(row.blob or b"")
            )
            written.setdefault((row.checkpoint_ns, row.checkpoint_id), []).append(write)
        return cls(checkpoints, blobs, written)

    def found(self, serde: StrictSerializer) -> list[FoundCheckpoint]:
        """The checkpoints, with whole values: small ones stand in the checkpoint, others in rows of their own."""
        return [self._whole(row, serde) for row in self.checkpoints]

    def _whole(self, row: Any, serde: StrictSerializer) -> FoundCheckpoint:  # noqa: ANN401 - a row
        values = dict(row.checkpoint.get("channel_values") or {})
        for channel, version in row.checkpoint["channel_versions"].items():
            blob = self.blobs.get((row.checkpoint_ns, channel, str(version)))
            if blob is not None and blob[0] != ABSENT:
                values[channel] = serde.loads_typed(blob)
        writes = readable(self.writes.get((row.checkpoint_ns, row.checkpoint_id), ()), serde)
        whole = {**row.checkpoint, "channel_values": values}
        return FoundCheckpoint(
            row.checkpoint_ns, row.checkpoint_id, row.parent_checkpoint_id or None, whole, row.metadata or {}, writes
        )
