"""SQLite files for tests: copies of a migrated one, and their rows as whoever can open the file sees them."""

import re
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

from memplane.adapters.sqlite.provisioning import migrate
from memplane.adapters.sqlite.storage import TENANT
from memplane.adapters.sqlite.values import SqliteSyntax, rows_of
from support.looks import Rows

_SYNTAX = SqliteSyntax()
_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\S+(Z|[+-]\d\d:\d\d)")


@dataclass(frozen=True)
class File:
    """One SQLite file.

    Attributes:
        path: where it lies.
    """

    path: Path

    @property
    def url(self) -> str:
        """The file as the application is told of it."""
        return f"sqlite:///{self.path}"

    def new_tenant(self) -> str:
        """The one tenant that the file has."""
        return TENANT

    def rows(self, tenant: str, statement: str, values: Mapping[str, object]) -> list[dict[str, Any]]:
        """Run SQL with psycopg's placeholders; ids and times may be text, as a client has them."""
        with self.looking() as rows:
            return rows(tenant, statement, values)

    @contextmanager
    def looking(self) -> Iterator[Rows]:
        """The same, as often as one likes on one connection."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.create_function("now", 0, lambda: datetime.now(UTC).isoformat(timespec="microseconds"))

            def rows(tenant: str, statement: str, values: Mapping[str, object]) -> list[dict[str, Any]]:
                given = {"tenant": tenant} | dict(values)
                bound = _SYNTAX.bind_values({name: _typed(value) for name, value in given.items()})
                cursor = connection.execute(_PLACEHOLDER.sub(r":\1", statement), bound)
                found = rows_of(tuple(column[0] for column in cursor.description or ()), cursor.fetchall())
                connection.commit()
                return found

            yield rows


class Files:
    """Makes files and removes them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)
        self._template = folder / "template.db"
        migrate(self._template)

    def create(self) -> File:
        """A new file: a copy of a migrated one."""
        return File(Path(shutil.copyfile(self._template, self._folder / f"{next(self._numbers)}.db")))

    def drop(self, file: File) -> None:
        """Remove a file that nobody has open, and what a writer may have left beside it."""
        for path in (file.path, *(file.path.with_name(file.path.name + end) for end in ("-wal", "-shm"))):
            path.unlink(missing_ok=True)


def _typed(value: object) -> object:
    if isinstance(value, str) and _ID.fullmatch(value):
        return UUID(value)
    if isinstance(value, str) and _TIME.fullmatch(value):
        return datetime.fromisoformat(value)
    return value
