"""Rows for tests that are about tables and not about what stands in them."""

import sqlalchemy as sa

from memplane.adapters.sql.schema.types import Embedding, TextList, UtcTime

# by type, the most particular first
_FILLERS: tuple[tuple[type[sa.types.TypeEngine[object]], str], ...] = (
    (UtcTime, "now()"),
    (TextList, "'{}'"),
    (Embedding, "NULL"),
    (sa.JSON, "'{}'"),
    (sa.Uuid, "gen_random_uuid()"),
    (sa.LargeBinary, r"'\x'"),
    (sa.Boolean, "false"),
    (sa.Integer, "1"),
    (sa.Float, "0.5"),
    (sa.String, "'x'"),
)


def insert(table: sa.Table, source: str = "", /, **expressions: str) -> str:
    """An INSERT of a row, or of a row for each one of ``source``, whatever columns the table must have.

    Args:
        table: the table.
        source: what stands after FROM; empty for one row.
        expressions: SQL by column; a name that the table lacks or computes is passed over. The others get something
            of their type.
    """
    needed = [column for column in table.columns if not (column.nullable or column.server_default)]
    values = {column.name: _filler(column) for column in needed}
    given = {column.name for column in table.columns if column.computed is None}
    values |= {name: expression for name, expression in expressions.items() if name in given}
    selected = f"SELECT {', '.join(values.values())}{f' FROM {source}' if source else ''}"
    return f"INSERT INTO {table.name} ({', '.join(values)}) {selected}"


def _filler(column: sa.Column[object]) -> str:
    return next(filler for kind, filler in _FILLERS if isinstance(column.type, kind))
