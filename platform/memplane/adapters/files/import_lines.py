"""The lines that an export of another system becomes, in a SQLite file beside it, and what became of each.

In a file, so that neither the size of an export nor the order of its records matters. It holds what its owner is about
to send, for one run: no tenant, no scope.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

_TABLES = """
CREATE TABLE lines (number INTEGER PRIMARY KEY, kind TEXT, owner TEXT, labels TEXT, user TEXT, writer TEXT,
  category TEXT, is_turn INTEGER, thread TEXT, moment TEXT, name TEXT, line TEXT, code TEXT, detail TEXT,
  outcome TEXT, found INTEGER NOT NULL DEFAULT 0);
CREATE TABLE about (of TEXT);
CREATE TABLE unmapped (field TEXT PRIMARY KEY, records INTEGER);
CREATE INDEX by_part ON lines (user, writer, is_turn DESC, thread, moment, number);
CREATE INDEX by_name ON lines (user, writer, name);
"""
_DROPPED = "DROP TABLE IF EXISTS lines; DROP TABLE IF EXISTS about; DROP TABLE IF EXISTS unmapped;"
_ADD = """
INSERT INTO lines (number, kind, owner, labels, writer, category, is_turn, thread, moment, name, line, code, detail)
VALUES (:number, :kind, :owner, :labels, :writer, :category, :is_turn, :thread, :moment, :name, :line, :code, :detail)
"""
_ENTRIES = """
SELECT number, kind, line, code, detail, category FROM lines WHERE user IS ? AND writer IS ?
 ORDER BY is_turn DESC, thread, moment, number LIMIT -1 OFFSET ?
"""
_REST_LEFT_OUT = """
UPDATE lines SET line = NULL, writer = NULL, code = ?,
  detail = 'it is of another user: ' || coalesce(owner, labels, 'none is named')
 WHERE line IS NOT NULL AND user IS NULL
"""
_STORED = "outcome IN ('created', 'superseded', 'disputed', 'outdated')"
"""Outcomes of lines that have a record of their own, under their own external id."""


@dataclass(frozen=True, slots=True)
class ImportLine:
    """A record of an export.

    Attributes:
        number: its place there.
        kind: what it is in there.
        owner: the user whom it names; or labels, a JSON list, of which one may be the user.
        writer: the agent that stores it; none for the one of the command.
        category, thread, moment, name: of the line; the thread is that of a message alone.
        line: the line; none where it is left out, for a code and a detail.
    """

    number: int
    kind: str
    owner: str | None
    labels: str | None
    writer: str | None = None
    category: str | None = None
    is_turn: bool = False
    thread: str | None = None
    moment: str | None = None
    name: str | None = None
    line: str | None = None
    code: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class ImportPart:
    """Lines that one agent stores for one user.

    Attributes:
        user: the user; none of what is left out.
        writer: the agent; none for the one of the command.
        size: how many lines.
    """

    user: str | None
    writer: str | None
    size: int


@dataclass(frozen=True, slots=True)
class Verification:
    """How many stored lines can be looked for, how many were found, and the external ids of the others."""

    checked: int
    found: int
    missing: Sequence[str]


class ImportLines:
    """The lines of one export.

    Args:
        path: the file.
        about: what is imported and how.
        restart: whether to forget what an earlier run left.
    """

    def __init__(self, path: Path, about: Mapping[str, str | None], *, restart: bool) -> None:
        self._path, self._of = path, json.dumps(about, sort_keys=True)
        if restart:
            self._remove()
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")  # lines are read while others are noted

    def close(self) -> None:
        """Close the file, to go on with it later."""
        self._db.close()

    def end(self) -> None:
        """Delete the file: nothing is left to go on with."""
        self.close()
        self._remove()

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    @property
    def is_whole(self) -> bool:
        """Whether an earlier run has put in all of the same export."""
        there = self._db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'about'").fetchone()[0]
        return bool(there) and self._db.execute("SELECT of FROM about").fetchone() == (self._of,)

    def begin(self) -> None:
        """Begin to put lines in; `commit` ends it."""
        self._db.executescript(_DROPPED + _TABLES)
        self._db.execute("BEGIN")

    def add(self, line: ImportLine) -> None:
        """Put a line in."""
        self._db.execute(_ADD, asdict(line))

    def commit(self, unmapped: Mapping[str, int]) -> None:
        """All is put in, with how many records have which fields that are not imported."""
        self._db.executemany("INSERT INTO unmapped VALUES (?, ?)", unmapped.items())
        self._db.execute("INSERT INTO about VALUES (?)", (self._of,))
        self._db.execute("COMMIT")

    def left_out(self) -> dict[str, int]:
        """How many records are left out, by code."""
        return self._counts("SELECT code, count(*) FROM lines WHERE line IS NULL GROUP BY code ORDER BY code")

    def details(self, code: str) -> dict[str, int]:
        """How many records are left out for a code, by detail, most first."""
        return self._counts(
            "SELECT detail, count(*) FROM lines WHERE code = ? GROUP BY detail ORDER BY 2 DESC, 1", code
        )

    def unmapped_fields(self) -> dict[str, int]:
        """How many records have which fields that are not imported."""
        return self._counts("SELECT field, records FROM unmapped ORDER BY field")

    def users(self) -> dict[str, int]:
        """How many lines there are for each user."""
        return self._counts("SELECT user, count(*) FROM lines WHERE user IS NOT NULL GROUP BY user ORDER BY user")

    def owners(self) -> dict[str | None, int]:
        """How many records name which user, left out or not; with none for lines to import that name nobody."""
        rows = self._db.execute(
            "SELECT owner, count(*) FROM lines WHERE line IS NOT NULL OR owner IS NOT NULL"
            " GROUP BY owner ORDER BY owner"
        )
        return dict(rows.fetchall())

    def labels(self) -> list[list[str]]:
        """The different lists of labels of lines."""
        rows = self._db.execute("SELECT DISTINCT labels FROM lines WHERE line IS NOT NULL AND labels <> '' ORDER BY 1")
        return [json.loads(labels) for (labels,) in rows]

    def assign_to_owners(self) -> None:
        """Each line is for the user whom it names."""
        self._db.execute("UPDATE lines SET user = owner WHERE line IS NOT NULL")

    def assign(self, user: str, otherwise: str, *, owner: str | None = None, label: str | None = None) -> None:
        """Give lines to a user: of one owner, or with a label, or without either all; others are left out.

        Args:
            user: the user.
            otherwise: the code of the others.
            owner: whose lines.
            label: the label that they have.
        """
        self._db.execute(
            "UPDATE lines SET user = :user WHERE line IS NOT NULL AND (:owner IS NULL OR owner = :owner) AND"
            " (:label IS NULL OR EXISTS (SELECT 1 FROM json_each(labels) l WHERE l.value = :label))",
            {"user": user, "owner": owner, "label": label},
        )
        self._db.execute(_REST_LEFT_OUT, (otherwise,))

    @property
    def count(self) -> int:
        """How many records there are."""
        return int(self._db.execute("SELECT count(*) FROM lines").fetchone()[0])

    def parts(self) -> list[ImportPart]:
        """Lines by user and writer, in an order that does not change."""
        rows = self._db.execute("SELECT user, writer, count(*) FROM lines GROUP BY 1, 2 ORDER BY 1, 2").fetchall()
        return [ImportPart(*row) for row in rows]

    def of_part(self, part: ImportPart, after: int) -> Iterator[tuple[int, str, str | None, str, str, str | None]]:
        """Number, kind, line, code, detail and category of a part's lines, but for the first so many.

        Messages come first, by thread; each kind by time.
        """
        with closing(sqlite3.connect(self._path)) as db:
            yield from db.execute(_ENTRIES, (part.user, part.writer, after))

    def note(self, outcomes: Iterable[tuple[int, str]]) -> None:
        """Note what became of lines, by number."""
        self._db.execute("BEGIN")
        self._db.executemany("UPDATE lines SET outcome = ?2 WHERE number = ?1", outcomes)
        self._db.execute("COMMIT")

    def stored_counts(self, part: ImportPart) -> tuple[int, list[str]]:
        """How many memories of a part were stored, and in which threads messages were."""
        rows = self._db.execute(
            f"SELECT thread, count(*) FROM lines WHERE user IS ? AND writer IS ? AND {_STORED} GROUP BY thread",  # noqa: S608 - a constant
            (part.user, part.writer),
        ).fetchall()
        return sum(count for thread, count in rows if thread is None), [thread for thread, _ in rows if thread]

    def note_found(self, part: ImportPart, names: Iterable[str]) -> None:
        """Note which external ids are there."""
        self._db.execute("BEGIN")
        self._db.executemany(
            "UPDATE lines SET found = 1 WHERE user IS ? AND writer IS ? AND name = ?",
            ((part.user, part.writer, name) for name in names),
        )
        self._db.execute("COMMIT")

    def verification(self) -> Verification:
        """What was looked for and found."""
        rows = f"FROM lines WHERE {_STORED} AND name IS NOT NULL"
        checked, found = self._db.execute(f"SELECT count(*), coalesce(sum(found), 0) {rows}").fetchone()
        missing = self._db.execute(f"SELECT name {rows} AND NOT found ORDER BY number").fetchall()
        return Verification(checked, found, [name for (name,) in missing])

    def _counts(self, statement: str, *values: str) -> dict[str, int]:
        return {str(name): int(count) for name, count in self._db.execute(statement, values)}
