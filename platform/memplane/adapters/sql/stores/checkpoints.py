"""Checkpoints in the database: within a write, and as a read sees them."""

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Protocol

from memplane.adapters.sql.queries import checkpoint_statements as sql
from memplane.adapters.sql.queries.checkpoint_statements import Statements
from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.scope import Syntax
from memplane.application.checkpoints.checkpoint_records import (
    ArrivalContext,
    Blob,
    CheckpointQuery,
    Namespace,
    NewCheckpoint,
    StoredCheckpoint,
    SupervisorState,
    TaskWrite,
    Thread,
)
from memplane.domain.checkpoints.lineage import ExistingCheckpoint, Key, Node, Placement, Retention
from memplane.domain.memory.memory import new_id
from memplane.domain.privacy.erasure import TombstoneKeyring, checkpoint_lock

_STATE = ("version", "created_at", "updated_at", "key_id")
RowsOfAll = Callable[[Sequence[Statement]], Awaitable[Sequence[Sequence[Mapping[str, Any]]]]]


class SqlCheckpointReader:
    """Checkpoints of one tenant, as one read-only transaction sees them."""

    def __init__(self, tenant: str, syntax: Syntax, rows_of_all: RowsOfAll) -> None:
        self._say = Statements(tenant, syntax)
        self._rows_of_all = rows_of_all

    async def find(self, wanted: CheckpointQuery) -> list[StoredCheckpoint]:
        """Checkpoints, newest first, with the values of their channels and what tasks have written since."""
        if wanted.one is not None:
            return await self._one(wanted, *wanted.one)
        (rows,) = await self._rows_of_all([self._say.find_checkpoints(wanted)])
        by_place: dict[Namespace, list[Mapping[str, Any]]] = defaultdict(list)
        for row in rows:
            by_place[_place(row)].append(row)
        details = await self._rows_of_all(
            [each for of in by_place.items() for each in self._detailed(*of, wanted.channels)]
        )
        values: dict[tuple[Namespace, str, str], Blob] = {}
        written: dict[tuple[Namespace, str], list[TaskWrite]] = defaultdict(list)
        for nth, place in enumerate(by_place):
            for row in details[2 * nth]:
                blob = Blob(row["channel"], row["version"], row["type"], row["blob"] or b"")
                values[place, blob.channel, blob.version] = blob
            for row in details[2 * nth + 1]:
                write = TaskWrite(**{name: row[name] for name in TaskWrite.__slots__})
                written[place, row["checkpoint_id"]].append(write)
        return [_stored(row, values, written) for row in rows]

    async def _one(
        self, wanted: CheckpointQuery, place: Namespace, checkpoint_id: str | None
    ) -> list[StoredCheckpoint]:
        """One checkpoint with all that belongs to it, in one exchange."""
        named = {} if checkpoint_id is None else {"id": checkpoint_id}
        details = sql.DETAILS_OF_HEAD if checkpoint_id is None else sql.DETAILS_OF_NAMED
        rows, blobs, writes = await self._rows_of_all(
            [
                self._say.find_checkpoints(wanted),
                *(self._say.of(each, place.thread, place.namespace, **named) for each in details),
            ]
        )
        values = {
            (place, row["channel"], row["version"]): Blob(
                row["channel"], row["version"], row["type"], row["blob"] or b""
            )
            for row in blobs
            if row["type"] is not None  # a channel without a value of its own has none
        }
        written = [TaskWrite(**{name: row[name] for name in TaskWrite.__slots__}) for row in writes]
        return [_stored(row, values, {(place, row["checkpoint_id"]): written}) for row in rows]

    def _detailed(
        self, place: Namespace, rows: Sequence[Mapping[str, Any]], only: Sequence[str] | None
    ) -> tuple[Statement, Statement]:
        """What asks for the values and the writes of some checkpoints of a namespace."""
        named = {each for row in rows for each in _versions(row).items() if only is None or each[0] in only}
        channels, versions = sorted({channel for channel, _ in named}), sorted({str(version) for _, version in named})
        ids = [row["checkpoint_id"] for row in rows]
        where = (place.thread, place.namespace)
        return (
            self._say.of(sql.BLOBS, *where, channels=channels, versions=versions),
            self._say.of(sql.WRITES, *where, ids=ids)
            if only is None
            else self._say.of(sql.WRITES_TO, *where, ids=ids, channels=list(only)),
        )

    async def metadata(self, wanted: CheckpointQuery) -> list[tuple[tuple[Namespace, str], Mapping[str, object]]]:
        """Where checkpoints stand, their ids and their metadata, newest first; without a limit."""
        (rows,) = await self._rows_of_all([self._say.checkpoint_metadata(wanted)])
        return [((_place(row), row["checkpoint_id"]), row["metadata"]) for row in rows]

    async def users(self, thread_id: str, users: frozenset[str] | None) -> list[str]:
        """The users, of some or of all, that have a thread of a name; at most two."""
        (rows,) = await self._rows_of_all([self._say.users(thread_id, users)])
        return [row["user_id"] for row in rows]

    async def crowded_threads(self, retention: Retention) -> list[Thread]:
        """The threads that may have more checkpoints than are kept, in one order."""
        (rows,) = await self._rows_of_all([self._say.crowded_threads(retention.last, retention.since)])
        return [Thread(row["user_id"], row["thread_id"]) for row in rows]

    async def supervisor_state(self, thread: Thread) -> SupervisorState | None:
        """The state of a supervisor in a thread."""
        (rows,) = await self._rows_of_all([self._say.of(sql.SUPERVISED, thread)])
        return _supervised(thread, rows[0]) if rows else None


class CheckpointStatements(Protocol):
    """How statements reach the database within a transaction."""

    @property
    def tenant(self) -> str:
        """Whose transaction it is."""
        ...

    @property
    def syntax(self) -> Syntax:
        """How the driver takes statements."""
        ...

    async def rows_of_all(self, asked: Sequence[Statement]) -> Sequence[Sequence[Mapping[str, Any]]]:
        """The rows of several statements, sent together."""
        ...

    async def send(self, asked: Sequence[Statement]) -> None:
        """Writes whose rows nobody asks for; one that fails may tell no sooner than the commit."""
        ...

    def merge_statements(self, asked: Sequence[Statement]) -> list[Statement]:
        """Writes of different rows, in as few statements as the database has them run; in no order."""
        ...


class SqlCheckpoints:
    """Checkpoints within a write transaction."""

    def __init__(self, session: CheckpointStatements) -> None:
        self._session = session
        self._say = Statements(session.tenant, session.syntax)

    async def erasure_times(self, user_id: str) -> list[datetime | None]:
        """When the user was erased, ``None`` for an erasure under way; none begins until the transaction ends."""
        _, keys = await self._session.rows_of_all(self._fencing(user_id))
        return await self._erasures(user_id, keys)

    def _fencing(self, user_id: str) -> list[Statement]:
        """What lets no erasure of a user begin, and then asks for the tenant's keys of erasures."""
        name = f"{self._session.tenant}/{checkpoint_lock(user_id)}"
        lock = Statement(self._session.syntax.shared_lock, {"name": name})
        return [lock, self._say.of(sql.ERASURE_KEYS, Thread(user_id, ""))]

    async def _erasures(self, user_id: str, keys: Sequence[Mapping[str, Any]]) -> list[datetime | None]:
        subjects = [TombstoneKeyring.of(bytes.fromhex(key), user_id).subject for row in keys for key in row["value"]]
        if not subjects:
            return []
        found = self._say.of(sql.ERASED, Thread(user_id, ""), subjects=subjects)
        (rows,) = await self._session.rows_of_all([found])
        return [row["finished_at"] for row in rows]

    async def merged_into(self, user_id: str) -> str | None:
        """The user that another one was merged into, once no merge can begin; ``None`` for one that was not."""
        (rows,) = await self._session.rows_of_all([self._say.of(sql.MERGED_INTO, Thread(user_id, ""))])
        return str(rows[0]["into_user"]) if rows else None

    async def open(self, thread: Thread, now: datetime) -> SupervisorState:
        """The state of a supervisor in a thread, made if new; the thread is locked until the transaction ends."""
        (rows,) = await self._session.rows_of_all([self._opening(thread, now)])
        return _supervised(thread, rows[0])

    def _opening(self, thread: Thread, now: datetime) -> Statement:
        return self._say.of(sql.OPEN, thread, id=new_id(), data="{}", now=now)

    async def lock(self, thread: Thread) -> SupervisorState | None:
        """The state of a supervisor in a thread, if it is there, locked until the transaction ends."""
        (rows,) = await self._session.rows_of_all([self._say.of(sql.LOCK, thread)])
        return _supervised(thread, rows[0]) if rows else None

    async def arrive(self, place: Namespace, checkpoint_id: str, now: datetime) -> ArrivalContext:
        """What a new checkpoint finds; the supervisor's state is locked, and no erasure of the user begins."""
        # what stands there is looked at after the lock, by a statement of its own: one that waited saw what was before
        look = self._say.of(sql.THERE, place.thread, place.namespace, id=checkpoint_id)
        fencing, locking = self._fencing(place.thread.user_id), self._say.of(sql.LOCK, place.thread)
        merging = self._say.of(sql.MERGED_INTO, place.thread)
        _, keys, merged, state, there = await self._session.rows_of_all([*fencing, merging, locking, look])
        if merged:
            return ArrivalContext(SupervisorState(place.thread), (), 0, (), merged[0]["into_user"])
        erased = await self._erasures(place.thread.user_id, keys)
        if not state:  # the first of its thread; others lock the row that is there, and do not write it for that
            state, there = await self._session.rows_of_all([self._opening(place.thread, now), look])
        standing = [ExistingCheckpoint(row["checkpoint_id"], row["parent_checkpoint_id"], row["head"]) for row in there]
        return ArrivalContext(_supervised(place.thread, state[0]), standing, state[0]["rev"] or 0, erased)

    async def add(self, place: Namespace, new: NewCheckpoint, placement: Placement, after: SupervisorState) -> None:
        """Store a checkpoint with its values, and the supervisor's state after it."""
        head = placement is Placement.HEAD
        where = (place.thread, place.namespace)
        beside = [self._say.of(sql.NO_LONGER_HEAD, *where)] if head else []
        beside += [self._say.of(sql.ADD_BLOB, *where, **asdict(blob)) for blob in new.blobs]
        beside.append(self._keeping(after))
        # after the others: there is one head at any time
        asked = [
            *self._session.merge_statements(beside),
            self._say.of(
                sql.ADD_CHECKPOINT,
                *where,
                id=new.id,
                parent=new.parent,
                checkpoint=_json(new.checkpoint),
                metadata=_json(new.metadata),
                head=head,
                now=after.updated_at,
                by_key=new.key_id,
            ),
        ]
        await self._session.send(asked)

    async def add_writes(self, place: Namespace, checkpoint_id: str, writes: Sequence[TaskWrite]) -> None:
        """Store what a task wrote: once, but for what is replaced."""
        one_each = len({(write.task_id, write.idx) for write in writes}) == len(writes)
        asked = [
            self._say.of(
                sql.REPLACE_WRITE if write.idx < 0 else sql.ADD_WRITE,
                place.thread,
                place.namespace,
                id=checkpoint_id,
                task=write.task_id,
                path=write.task_path,
                idx=write.idx,
                channel=write.channel,
                type=write.type,
                blob=write.blob,
            )
            for write in writes
        ]
        await self._session.send(self._session.merge_statements(asked) if one_each else asked)

    async def keep(self, state: SupervisorState) -> None:
        """Store the state of a supervisor in a thread that is locked."""
        await self._session.rows_of_all([self._keeping(state)])

    def _keeping(self, state: SupervisorState) -> Statement:
        values = {"version": state.version, "now": state.updated_at, "by_key": state.key_id}
        return self._say.of(sql.KEEP, state.thread, data=_json(state.data), **values)

    async def nodes(self, thread: Thread) -> list[Node]:
        """Every checkpoint of a thread, as far as its lineage concerns it."""
        rows, blobs, sending = await self._session.rows_of_all(
            [self._say.of(template, thread) for template in (sql.NODES, sql.BLOB_KEYS, sql.SENDING)]
        )
        values = {(row["checkpoint_ns"], row["channel"], row["version"]) for row in blobs}
        senders = {(row["checkpoint_ns"], row["checkpoint_id"]) for row in sending}
        return [_node(row, values, senders) for row in rows]

    async def threads_of(self, run_ids: Sequence[str], users: frozenset[str] | None) -> list[Thread]:
        """The threads, of some users or of all, that runs have stored checkpoints in."""
        (rows,) = await self._session.rows_of_all([self._say.of_runs(run_ids, users)])
        return [Thread(row["user_id"], row["thread_id"]) for row in rows]

    async def remove(
        self, thread: Thread, gone: Sequence[Key], parents: Mapping[Key, str | None], heads: Sequence[Key]
    ) -> None:
        """Delete checkpoints, their writes, and the values that no other one holds; mend those that stay."""
        by_namespace: dict[str, list[str]] = defaultdict(list)
        for namespace, checkpoint_id in gone:
            by_namespace[namespace].append(checkpoint_id)
        asked: list[Statement] = []
        for namespace, ids in by_namespace.items():
            asked += [self._say.of(each, thread, namespace, ids=ids) for each in (sql.REMOVE_WRITES, sql.REMOVE)]
            asked.append(self._say.of(sql.REMOVE_BLOBS, thread, namespace))
        asked += [
            self._say.of(sql.PARENT, thread, namespace, id=checkpoint_id, parent=parent)
            for (namespace, checkpoint_id), parent in parents.items()
        ]
        asked += [self._say.of(sql.HEAD, thread, namespace, id=checkpoint_id) for namespace, checkpoint_id in heads]
        await self._session.rows_of_all(asked)

    async def copy(self, source: Thread, target: Thread, now: datetime) -> bool:
        """Copy all of a thread to another one; False when there is nothing to copy."""
        to = {"to_user": target.user_id, "to_thread": target.thread_id, "now": now}
        state, *copied = await self._session.rows_of_all(
            [
                self._say.of(sql.SUPERVISED, source),
                *(self._say.of(each, source, **to) for each in (sql.COPY_CHECKPOINTS, sql.COPY_BLOBS, sql.COPY_WRITES)),
            ]
        )
        if state:
            there = await self.open(target, now)
            await self.keep(SupervisorState(target, state[0]["checkpoint_data"], there.version + 1, updated_at=now))
        return bool(state or any(copied))

    async def delete(self, thread: Thread) -> bool:
        """Delete all of a thread; False when there was nothing."""
        return any(await self._session.rows_of_all([self._say.of(each, thread) for each in sql.DELETIONS]))

    async def erase(self, user_id: str) -> Mapping[str, int]:
        """Delete all of a user's threads, once nobody writes them; how many rows, by table."""
        whose = Thread(user_id, "")
        await self._session.rows_of_all([self._say.of(sql.LOCK_USER, whose)])
        deleted = await self._session.rows_of_all([self._say.of(each, whose) for each in sql.ERASURES.values()])
        return {name: len(rows) for name, rows in zip(sql.ERASURES, deleted, strict=True)}


def _stored(
    row: Mapping[str, Any],
    values: Mapping[tuple[Namespace, str, str], Blob],
    written: Mapping[tuple[Namespace, str], Sequence[TaskWrite]],
) -> StoredCheckpoint:
    place = _place(row)
    held = (values.get((place, channel, str(version))) for channel, version in _versions(row).items())
    return StoredCheckpoint(
        place,
        row["checkpoint_id"],
        row["parent_checkpoint_id"],
        row["checkpoint"],
        row["metadata"],
        tuple(blob for blob in held if blob is not None),
        tuple(written.get((place, row["checkpoint_id"]), ())),
    )


def _versions(row: Mapping[str, Any]) -> Mapping[str, object]:
    versions: Mapping[str, object] = row["checkpoint"].get("channel_versions") or {}
    return versions


def _place(row: Mapping[str, Any]) -> Namespace:
    return Namespace(Thread(row["user_id"], row["thread_id"]), row["checkpoint_ns"])


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _supervised(thread: Thread, row: Mapping[str, Any]) -> SupervisorState:
    return SupervisorState(thread, row["checkpoint_data"], *(row[name] for name in _STATE))


def _node(row: Mapping[str, Any], values: set[tuple[str, str, str]], senders: set[Key]) -> Node:
    namespace, checkpoint, metadata = row["checkpoint_ns"], row["checkpoint"], row["metadata"]
    versions = checkpoint.get("channel_versions") or {}
    inline = {name for name, value in (checkpoint.get("channel_values") or {}).items() if value is not None}
    stored = {name for name, version in versions.items() if (namespace, name, str(version)) in values}
    deltas = set(metadata.get("counters_since_delta_snapshot") or ())
    if "delta_writes_versioned" in metadata:  # LangGraph.js does not say which channels: all ancestors are needed
        deltas.add("*")
    return Node(
        namespace,
        row["checkpoint_id"],
        row["parent_checkpoint_id"],
        row["head"],
        row["created_at"],
        deltas=frozenset(deltas),
        stored=frozenset(stored | inline),
        format=checkpoint.get("v") or 0,
        sends=(namespace, row["checkpoint_id"]) in senders,
        root=(metadata.get("parents") or {}).get(""),
        run_id=metadata.get("run_id"),
    )
