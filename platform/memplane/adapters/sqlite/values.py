"""Values as SQLite keeps them, to and from Python."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy.dialects import sqlite

from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.schema.types import UtcTime

_ANY_OF = "{column} IN (SELECT value FROM json_each(:{name}))"
_HOLDS_ALL = """NOT EXISTS (
SELECT 1 FROM json_each(:{name}) wanted WHERE wanted.value NOT IN (SELECT value FROM json_each({column})))"""
_DIALECT = sqlite.dialect()
_TIME = UtcTime()


class SqliteSyntax:
    """How SQLite writes the scope predicate; lists are bound as JSON."""

    def value(self, name: str) -> str:
        """A bound value."""
        return f":{name}"

    def any_of(self, column: str, name: str) -> str:
        """The column's value is one of a bound list."""
        return _ANY_OF.format(column=column, name=name)

    def holds_all(self, column: str, name: str) -> str:
        """The list column holds every item of a bound list."""
        return _HOLDS_ALL.format(column=column, name=name)

    def rows_by_ids(self, table: str, alias: str, name: str) -> tuple[str, str]:
        """Rows of a table by a bound list of ids; the list leads, or the planner would walk the whole scope."""
        return f"json_each(:{name}) wanted CROSS JOIN {table} {alias}", f"{alias}.id = wanted.value"

    def pack_ids(self, column: str) -> str:
        """All ids of a column as one value."""
        return f"group_concat({column}, '')"

    def bind_values(self, values: Mapping[str, object]) -> dict[str, object]:
        """Values as SQLite takes them: ids as hex, times as text, lists as JSON."""
        return {name: _bound(value) for name, value in values.items()}

    def json(self, name: str) -> str:
        """A bound JSON document, which is text."""
        return self.value(name)

    def members(self, column: str, member: str) -> str:
        """The members of an object in a JSON column."""
        return f"json_each({column}, '$.{member}') AS e"

    @property
    def shared_lock(self) -> str:
        """Nothing: a transaction that writes is the only one."""
        return "SELECT :name AS locked"

    @property
    def for_update(self) -> str:
        """Nothing: a transaction that writes is the only one."""
        return ""


def _bound(value: object) -> object:
    match value:
        case UUID():
            return value.hex
        case datetime():
            return _TIME.process_bind_param(value, _DIALECT)
        case np.ndarray():
            return value.astype("<f2").tobytes()
        case str() | bytes():
            return str(value) if isinstance(value, str) else value
        case Sequence():
            return json.dumps([_bound(item) for item in value])
        case _:
            return value


def _processors() -> dict[str, Callable[[Any], Any]]:
    """How a raw column becomes a Python value, by its name, which has one type in all tables."""
    found: dict[str, Callable[[Any], Any]] = {}
    for table in tables.metadata.sorted_tables:
        for column in table.columns:
            kind = column.type.dialect_impl(_DIALECT)
            processor = kind.result_processor(_DIALECT, None)
            if processor is not None:
                found[column.name] = processor
    found["via"] = found["id"]
    return found


PROCESSORS = _processors()


@lru_cache(maxsize=256)
def _converted(names: tuple[str, ...]) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """Those of some columns whose raw values are not their values."""
    return tuple((name, PROCESSORS[name]) for name in names if name in PROCESSORS)


def rows_of(names: tuple[str, ...], raw: Iterable[Sequence[object]]) -> list[dict[str, Any]]:
    """Raw rows as Python values by name."""
    converted = _converted(names)
    rows = [dict(zip(names, values, strict=True)) for values in raw]
    for row in rows:
        for name, processor in converted:
            if row[name] is not None:
                row[name] = processor(row[name])
    return rows
