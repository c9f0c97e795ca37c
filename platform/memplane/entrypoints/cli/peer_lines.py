"""The lines that a peer's export becomes, beside it on the disk, and what became of each.

All of an export is converted before any of it is sent: one that breaks off, or whose users nobody can tell apart, is
refused as a whole. Lines are in a file, so that neither the size of an export nor the order of its records matters.
"""

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import to_json

from memplane.client.errors import Invalid
from memplane.client.peers import Converted, LeftOut
from memplane.entrypoints.cli.sources import Entry

SUFFIX = ".import-lines.sqlite"
_SHOWN = 5
_TABLES = """
CREATE TABLE lines (number INTEGER PRIMARY KEY, kind TEXT, owner TEXT, labels TEXT, user TEXT, writer TEXT,
  category TEXT, turns INTEGER, thread TEXT, moment TEXT, name TEXT, line TEXT, code TEXT, detail TEXT,
  outcome TEXT, found INTEGER NOT NULL DEFAULT 0);
CREATE TABLE about (of TEXT);
CREATE TABLE unmapped (field TEXT PRIMARY KEY, records INTEGER);
CREATE INDEX by_part ON lines (user, writer, turns DESC, thread, moment, number);
CREATE INDEX by_name ON lines (user, writer, name);
"""
_STORED = "('created', 'superseded', 'disputed', 'outdated')"
"""Outcomes of lines that have a record of their own, under their own external id."""


@dataclass(frozen=True, slots=True)
class Part:
    """Lines that one agent stores for one user.

    Attributes:
        user: the user; none of what is left out.
        writer: the agent; none for the one of the command.
        size: how many lines.
    """

    user: str | None
    writer: str | None
    size: int


class PeerLines:
    """The lines of one export."""

    def __init__(self, path: Path, about: Mapping[str, str | None], *, restart: bool) -> None:
        self._path, self._of = path, json.dumps(about, sort_keys=True)
        if restart:
            self._remove()
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")  # lines are read while others are noted

    def close(self) -> None:
        """Close the file, to go on with it."""
        self._db.close()

    def end(self) -> None:
        """All is done: nothing is left to go on with."""
        self.close()
        self._remove()

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    @property
    def is_whole(self) -> bool:
        """Whether an earlier run has converted all of the same export."""
        there = self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'about'").fetchone()
        return there is not None and self._db.execute("SELECT of FROM about").fetchone() == (self._of,)

    def fill(self, records: Iterable[Converted], user: str | None, writer_of: Callable[[str], str | None]) -> None:
        """Convert an export, and say whose each line is.

        Args:
            records: its records.
            user: the user to import for; without one each record is its own user's.
            writer_of: the agent that stores lines of a category; none for the one of the command.

        Raises:
            Invalid: nobody can tell whose the records are, or they have no category.
        """
        self._db.executescript("DROP TABLE IF EXISTS lines; DROP TABLE IF EXISTS about; DROP TABLE IF EXISTS unmapped;")
        self._db.executescript(_TABLES)
        self._db.execute("BEGIN")
        unmapped: Counter[str] = Counter()
        for record in records:
            self._add(record, writer_of)
            unmapped.update(record.unmapped)
        self._db.executemany("INSERT INTO unmapped VALUES (?, ?)", unmapped.items())
        self._require_categories()
        self._assign(user)
        self._db.execute("INSERT INTO about VALUES (?)", (self._of,))
        self._db.execute("COMMIT")

    def _add(self, record: Converted, writer_of: Callable[[str], str | None]) -> None:
        line = record.line
        row: dict[str, object] = {"number": record.document.number, "kind": record.document.kind, "owner": record.owner}
        row |= {"labels": json.dumps(record.labels) if record.labels else None, "code": record.code}
        row |= {"detail": record.detail or None, "turns": int(line is not None and line["record"] == "turn")}
        if line is not None:
            category = str(line["category"]) if "category" in line else None
            row |= {"category": category, "writer": writer_of(category) if category else None}
            row |= {"thread": line.get("thread_id") if row["turns"] else None, "moment": line.get("event_time")}
            row |= {"name": line.get("external_id"), "line": to_json(line).decode()}
        names = ", ".join(row)
        self._db.execute(f"INSERT INTO lines ({names}) VALUES ({', '.join(f':{name}' for name in row)})", row)  # noqa: S608 - names of columns

    def _require_categories(self) -> None:
        rows = self._db.execute(
            "SELECT detail, count(*) FROM lines WHERE code = ? GROUP BY detail ORDER BY 2 DESC", (LeftOut.NO_CATEGORY,)
        ).fetchall()
        if rows:
            named = "; ".join(f"{count} name {detail}" for detail, count in rows[:_SHOWN])
            advice = "give them one with --category, or say which theirs are under `categories` of --map"
            raise Invalid("no_category", f"records without a category of the policy: {named}; {advice}")

    def _assign(self, user: str | None) -> None:
        """Say whose each line is.

        Raises:
            Invalid: the records are of several users of whom none is named, or name no user at all.
        """
        owners = self._distinct("owner")
        if user is None:
            if self._rows("line IS NOT NULL AND owner IS NULL"):
                raise Invalid("no_user", "records name no user: say with --user whose they become")
            self._db.execute("UPDATE lines SET user = owner WHERE line IS NOT NULL")
            return
        if not owners:
            self._assign_by_labels(user)
            return
        if len(owners) > 1 and user not in owners:
            raise _several(owners, "users", "name one of them with --user, or say under `users` of --map who they are")
        whose = owners[0] if len(owners) == 1 else user
        self._give(user, "owner IS NULL OR owner = ?" if len(owners) == 1 else "owner = ?", whose)

    def _assign_by_labels(self, user: str) -> None:
        namespaces = self._distinct("labels")
        if len(namespaces) > 1 and any(user in json.loads(each) for each in namespaces):
            self._give(user, "EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?)", user)
        elif len(namespaces) > 1:
            told = 'say where their users are as `namespace` of --map, such as ["memories", "{user}"]'
            raise _several(["/".join(json.loads(each)) for each in namespaces], "namespaces", told)
        else:
            self._db.execute("UPDATE lines SET user = ? WHERE line IS NOT NULL", (user,))

    def _give(self, user: str, whose: str, name: str) -> None:
        """Give a user the lines of one owner; those of others are left out."""
        self._db.execute(f"UPDATE lines SET user = ? WHERE line IS NOT NULL AND ({whose})", (user, name))  # noqa: S608 - a condition of this module
        self._db.execute(
            "UPDATE lines SET line = NULL, writer = NULL, code = ?, detail = 'it is of another user: '"
            " || coalesce(owner, labels, 'none is named') WHERE line IS NOT NULL AND user IS NULL",
            (LeftOut.OTHER_USER,),
        )

    def _distinct(self, column: str) -> list[str]:
        rows = self._db.execute(
            f"SELECT DISTINCT {column} FROM lines WHERE line IS NOT NULL AND {column} IS NOT NULL ORDER BY 1"  # noqa: S608 - a column
        )
        return [row[0] for row in rows]

    def _rows(self, condition: str) -> int:
        (count,) = self._db.execute(f"SELECT count(*) FROM lines WHERE {condition}").fetchone()  # noqa: S608 - a condition of this module
        return int(count)

    @property
    def count(self) -> int:
        """How many records there are."""
        return self._rows("1")

    @property
    def is_foreign(self) -> bool:
        """Whether it has records, none of which is of a kind that is known."""
        return self.count > 0 and not self._rows(f"code IS NULL OR code <> '{LeftOut.UNKNOWN_RECORD}'")

    def parts(self) -> list[Part]:
        """Lines by user and writer, in an order that does not change."""
        rows = self._db.execute("SELECT user, writer, count(*) FROM lines GROUP BY 1, 2 ORDER BY 1, 2").fetchall()
        return [Part(*row) for row in rows]

    def entries(self, part: Part, after: int) -> Iterator[Entry]:
        """The lines of a part, but for the first: messages by thread, and each kind by time."""
        with closing(sqlite3.connect(self._path)) as db:
            rows = db.execute(
                "SELECT number, kind, line, code, detail, category FROM lines WHERE user IS ? AND writer IS ?"
                " ORDER BY turns DESC, thread, moment, number LIMIT -1 OFFSET ?",
                (part.user, part.writer, after),
            )
            for number, kind, line, code, detail, category in rows:
                reason = None if line is not None else f"{code}: {detail}"
                yield Entry(kind or "records", number, line, reason, category, is_left_out=line is None)

    def note(self, became: Sequence[tuple[Entry, str]]) -> None:
        """Note what became of some lines."""
        self._db.execute("BEGIN")
        self._db.executemany(
            "UPDATE lines SET outcome = ? WHERE number = ?", [(outcome, entry.line) for entry, outcome in became]
        )
        self._db.execute("COMMIT")

    def stored(self, part: Part) -> tuple[int, list[str]]:
        """How many lines of a part were stored as memories, and the threads in which messages were."""
        where = f"user IS ? AND writer IS ? AND outcome IN {_STORED}"
        rows = self._db.execute(
            f"SELECT thread, count(*) FROM lines WHERE {where} GROUP BY thread ORDER BY 1",  # noqa: S608 - conditions of this module
            (part.user, part.writer),
        ).fetchall()
        return sum(count for thread, count in rows if thread is None), [thread for thread, _ in rows if thread]

    def found(self, part: Part, names: Iterable[str]) -> None:
        """Note which external ids are there."""
        self._db.execute("BEGIN")
        self._db.executemany(
            "UPDATE lines SET found = 1 WHERE user IS ? AND writer IS ? AND name = ?",
            ((part.user, part.writer, name) for name in names),
        )
        self._db.execute("COMMIT")

    def verified(self) -> tuple[int, int, list[str]]:
        """How many stored lines can be looked for, how many were found, and the external ids of others."""
        where = f"outcome IN {_STORED} AND name IS NOT NULL"
        missing = self._db.execute(f"SELECT name FROM lines WHERE {where} AND NOT found ORDER BY number").fetchall()  # noqa: S608 - conditions of this module
        return self._rows(where), self._rows(f"{where} AND found"), [name for (name,) in missing]

    def left_out(self) -> dict[str, int]:
        """How many records are left out, by reason."""
        rows = self._db.execute("SELECT code, count(*) FROM lines WHERE line IS NULL GROUP BY code ORDER BY code")
        return {str(code): int(count) for code, count in rows}

    def unmapped(self) -> dict[str, int]:
        """How many records have fields that are not imported, by field."""
        return dict(self._db.execute("SELECT field, records FROM unmapped ORDER BY field").fetchall())

    def users(self) -> dict[str, int]:
        """How many lines there are for each user."""
        rows = self._db.execute("SELECT user, count(*) FROM lines WHERE user IS NOT NULL GROUP BY user ORDER BY user")
        return dict(rows.fetchall())


def _several(names: Sequence[str], what: str, advice: str) -> Invalid:
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return Invalid("ambiguous_user", f"the export has {len(names)} {what} ({shown}): {advice}")
