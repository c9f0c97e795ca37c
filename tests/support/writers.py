"""Concurrent clients that write and remember what they were told, and what a database must hold for it to be true."""

import secrets
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from psycopg.rows import dict_row

from memplane.adapters.sqlite.values import rows_of

USER = "ana"
SHARED = ("shared-1", "shared-2")
PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class Written:
    """A write that a server acknowledged: what was sent, and what was told of it."""

    kind: str
    thread: str | None
    text: str
    id: str
    rev: int | None
    seq: int | None = None


@dataclass
class Acknowledgements:
    """What all clients were told, in the order in which they heard it."""

    told: list[Written] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def note(self, written: Written) -> None:
        """Remember one."""
        with self._changed:
            self.told.append(written)
            self._changed.notify_all()

    def wait_for(self, more: int) -> None:
        """Wait until so many more have come."""
        with self._changed:
            wanted = len(self.told) + more
            assert self._changed.wait_for(lambda: len(self.told) >= wanted, PATIENCE), f"{len(self.told)} of {wanted}"


class Writer:
    """One client: turns in threads of its own and in shared ones, and memories with and without a thread.

    A turn that got no answer is sent again, under the same external id, by the next :meth:`run`.
    """

    def __init__(self, number: int, told: Acknowledgements) -> None:
        self._told = told
        self._kinds = cycle(("own turn", "shared turn", "memory", "shared turn", "memory in a thread"))
        self._own = f"own-{number}"
        self._shared = SHARED[number % len(SHARED)]
        self._pending: dict[str, Any] | None = None

    def run(self, url: str, credential: str, stop: threading.Event) -> None:
        """Write until told to stop, or until the server does not answer any more."""
        headers = {"Authorization": f"Bearer {credential}"}
        # no proxy of the environment stands between a test and its server; nothing here is encrypted
        with httpx2.Client(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False, verify=False) as client:
            while not stop.is_set():
                try:
                    if self._pending is not None:
                        self._say(client, self._pending)
                    self._write(client, next(self._kinds))
                except (httpx2.TransportError, _Unanswered):
                    return

    def _write(self, client: httpx2.Client, kind: str) -> None:
        word = secrets.token_hex(8)
        if kind.endswith("turn"):
            thread = self._own if kind.startswith("own") else self._shared
            self._say(client, {"thread_id": thread, "text": f"I saw parcel {word} today.", "external_id": word})
        else:
            self._remember(client, f"Parcel {word} is blue.", self._shared if kind.endswith("thread") else None)

    def _say(self, client: httpx2.Client, turn: dict[str, Any]) -> None:
        self._pending = turn
        answer = _answer(client.post("/v1/turns", json={"user_id": USER, "role": "user"} | turn))
        self._pending = None
        self._told.note(
            Written("turn", turn["thread_id"], turn["text"], answer["turn_id"], answer["rev"], answer["seq"])
        )

    def _remember(self, client: httpx2.Client, content: str, thread: str | None) -> None:
        body = {"user_id": USER, "category": "tasks", "content": content, "thread_id": thread}
        answer = _answer(client.post("/v1/memories", json=body))
        assert answer["outcome"] == "created", answer
        self._told.note(Written("memory", thread, content, answer["id"], answer["rev"]))


class _Unanswered(Exception):
    """The server could not say what became of the write."""


def _answer(response: httpx2.Response) -> dict[str, Any]:
    if response.status_code >= 500:
        raise _Unanswered
    assert response.status_code in {200, 201}, response.text
    answer: dict[str, Any] = response.json()
    return answer


@dataclass(frozen=True, slots=True)
class Stored:
    """What a database holds: turns and memories by id, and threads by name."""

    turns: Mapping[str, Mapping[str, Any]]
    memories: Mapping[str, Mapping[str, Any]]
    threads: Mapping[str, Mapping[str, Any]]
    changes: Sequence[Mapping[str, Any]]


def stored(url: str) -> Stored:
    """Read a database as its administrator."""
    with psycopg.connect(url, row_factory=dict_row) as connection:

        def rows(statement: str) -> list[dict[str, Any]]:
            return connection.execute(statement).fetchall()  # type: ignore[arg-type]  # the constants of `_stored`

        return _stored(rows)


def stored_file(path: Path) -> Stored:
    """Read a SQLite file, as :func:`stored` reads a database."""
    with closing(sqlite3.connect(path)) as connection:

        def rows(statement: str) -> list[dict[str, Any]]:
            cursor = connection.execute(statement)
            names = [column[0] for column in cursor.description]
            return rows_of(tuple(names), cursor)

        return _stored(rows)


def _stored(rows: Callable[[str], list[dict[str, Any]]]) -> Stored:
    return Stored(
        turns={str(row["id"]): row for row in rows("SELECT id, thread_id, seq, rev, text FROM turns")},
        memories={str(row["id"]): row for row in rows("SELECT id, thread_id, content FROM memories")},
        threads={row["thread_id"]: row for row in rows("SELECT thread_id, rev, turns FROM thread_revision")},
        changes=rows("SELECT thread_id, rev, memory_id FROM change_log ORDER BY thread_id, rev"),
    )


def untrue(told: Iterable[Written], found: Stored) -> list[str]:
    """What clients were told that the database does not bear out; what it holds besides may be there."""
    changed = {(row["thread_id"], row["rev"]): str(row["memory_id"]) for row in found.changes}
    faults = []
    for write in told:
        if write.kind == "turn":
            row = found.turns.get(write.id)
            expected = {"thread_id": write.thread, "seq": write.seq, "rev": write.rev, "text": write.text}
        else:
            row = found.memories.get(write.id)
            expected = {"thread_id": write.thread, "content": write.text}
        if row is None:
            faults.append(f"lost: {write}")
        elif {name: row[name] for name in expected} != expected:
            faults.append(f"changed: {write} is {row}")
        elif write.thread is not None and changed.get((write.thread, write.rev or 0)) != write.id:
            faults.append(f"not in the change log: {write}")
    return faults


def told_twice(told: Iterable[Written]) -> list[str]:
    """Revisions of a thread, and places in it, that were told of two different writes."""
    writes = {(write.id, write.thread, write.rev, write.seq) for write in told if write.thread is not None}
    revs = Counter((thread, "rev", rev) for _, thread, rev, _ in writes)
    seqs = Counter((thread, "seq", seq) for _, thread, _, seq in writes if seq is not None)
    return [f"told {times} times: {what}" for what, times in (revs + seqs).items() if times > 1]


def gaps(found: Stored) -> list[str]:
    """Threads whose revisions or turns do not count from one to their last."""
    faults = []
    for name, thread in found.threads.items():
        revs = [row["rev"] for row in found.changes if row["thread_id"] == name]
        seqs = sorted(row["seq"] for row in found.turns.values() if row["thread_id"] == name)
        if revs != list(range(1, thread["rev"] + 1)):
            faults.append(f"{name}: revisions {revs} up to {thread['rev']}")
        if seqs != list(range(1, thread["turns"] + 1)):
            faults.append(f"{name}: turns {seqs} up to {thread['turns']}")
    return faults
