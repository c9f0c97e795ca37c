"""Items of LangGraph's `PostgresStore` and `SqliteStore`, read from their own tables; nothing is written to them.

The table `store` is that of langgraph-checkpoint-postgres 3.2.0 and langgraph-checkpoint-sqlite 3.1.2: prefix (the
labels of the namespace, which hold no dots, joined by dots), key, value, created_at, updated_at, expires_at.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from memplane.adapters.langgraph.postgres_source import address
from memplane.domain.errors import InvalidRequest

_CONNECT_SECONDS = 15
_PAGE = 500
_SQLITE = b"SQLite format 3\x00"
_ITEMS = "SELECT * FROM store ORDER BY prefix, key"  # the primary key; columns differ by the version of the store
_COLUMNS = ("key", "value", "created_at", "updated_at", "expires_at", "ttl_minutes")


def is_sqlite(path: Path) -> bool:
    """Whether a file is a database of SQLite."""
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def items_in_file(path: Path) -> Iterator[Mapping[str, Any]]:
    """The items of a `SqliteStore`.

    Raises:
        Invalid: the file has no table of a store.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            for row in connection.execute(_ITEMS):
                yield _item(dict(row))
    except (sqlite3.Error, ValueError) as error:
        raise InvalidRequest(f"{path.name}: cannot be read as a file of LangGraph's SqliteStore: {error}") from error


def items_in_database(source: str) -> Iterator[Mapping[str, Any]]:
    """The items of a `PostgresStore`, as they are at one moment: one transaction that only reads.

    Raises:
        Invalid: the database cannot be reached, or has no table of a store.
    """
    try:
        with psycopg.connect(source, connect_timeout=_CONNECT_SECONDS) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with connection.cursor("memplane_store_items", row_factory=dict_row) as cursor:
                cursor.itersize = _PAGE
                for row in cursor.execute(_ITEMS):
                    yield _item(row)
    except psycopg.Error as error:
        told = f"{address(source)}: cannot be read as a database of LangGraph's PostgresStore: {type(error).__name__}"
        raise InvalidRequest(told, field="source") from error


def _item(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row in the form of `Item.dict()`; SQLite has the value as JSON, in text or bytes."""
    found = {name: _plain(row[name]) for name in _COLUMNS if row.get(name) is not None}
    value = found.get("value")
    whole = json.loads(value) if isinstance(value, str | bytes) else value
    return {**found, "namespace": str(row["prefix"]).split("."), "value": whole}


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
