"""The vectors of memories and turns within a transaction, many at once: for the jobs that give and remove them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.rows import TEXT_COLUMNS, text_of
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import SqlSession
from memplane.application.jobs.vector_records import Kind, Text
from memplane.application.recall.search_material import Vector
from memplane.domain.ranking.embedding_models import Column

Alone = Callable[[SqlSession], Awaitable[None]]
_MANY = 500


def vectors_of(tenant: str) -> str:
    """By what a tenant's vectors are locked: users have no control characters in their names."""
    return f"{tenant}/\x01vectors"


class SqlVectors:
    """All of a tenant's vectors, whatever state their texts are in."""

    def __init__(self, session: SqlSession, alone: Alone | None) -> None:
        self._session = session
        self._tenant = session.tenant
        self._alone = alone

    async def alone(self) -> None:
        """Wait until no other transaction writes vectors of the tenant, and let none begin until this one ends."""
        if self._alone is not None:
            await self._alone(self._session)

    async def count(self) -> int:
        """How many memories and turns there are, in whatever state."""
        counts = (
            sa.select(sa.func.count()).where(table.c.tenant_id == self._tenant).scalar_subquery()
            for table in (tables.memories, tables.turns)
        )
        found: int = (await self._session.execute(sa.select(sum(counts, sa.literal(0))))).scalar_one()
        return found

    async def without(self, kind: Kind, column: Column, after: UUID | None, limit: int) -> list[Text]:
        """Texts without a vector in a column, in the order of their ids, after one."""
        table = _TABLES[kind]
        statement = sa.select(*_READ[kind]).where(table.c[column].is_(None))
        rows = await self._session.execute(self._page(table, statement, after, limit))
        return [_text(kind, dict(row)) for row in rows.mappings()]

    async def keep(self, kind: Kind, column: Column, vectors: Sequence[tuple[Text, Vector | None]]) -> int:
        """Store vectors in an empty column of texts that are as they were read; how many texts are not any more."""
        left = 0
        for start in range(0, len(vectors), _MANY):
            left += await self._keep(_TABLES[kind], column, vectors[start : start + _MANY])
        return left

    async def _keep(self, table: sa.Table, column: Column, vectors: Sequence[tuple[Text, Vector | None]]) -> int:
        ids = [text.id for text, _ in vectors]
        version = table.c.version if "version" in table.c else sa.literal(0).label("version")
        locked = sa.select(table.c.id, version).where(
            table.c.tenant_id == self._tenant, table.c.id.in_(ids), table.c[column].is_(None)
        )
        rows = await self._session.execute(locked.order_by(table.c.id).with_for_update())
        versions = {row.id: row.version for row in rows}
        new = [(text.id, vector) for text, vector in vectors if versions.get(text.id) == text.version]
        found = [(each, vector) for each, vector in new if vector is not None]
        if found:
            values = sa.values(sa.column("id", table.c.id.type), sa.column("vector", table.c[column].type), name="v")
            given = values.data(found).cte("given")
            statement = sa.update(table).where(table.c.tenant_id == self._tenant, table.c.id == given.c.id)
            await self._session.execute(statement.values({column: sa.cast(given.c.vector, table.c[column].type)}))
        return len(versions) - len(new)

    async def holders(self, kind: Kind, column: Column, after: UUID | None, limit: int) -> list[tuple[UUID, str]]:
        """Ids, in their order, and users of what has a vector in a column, after one."""
        table = _TABLES[kind]
        statement = sa.select(table.c.id, table.c.user_id).where(table.c[column].is_not(None))
        rows = await self._session.execute(self._page(table, statement, after, limit))
        return [(row.id, row.user_id) for row in rows]

    async def clear(self, kind: Kind, column: Column, ids: Sequence[UUID]) -> None:
        """Remove the vectors of a column; the users are locked."""
        table = _TABLES[kind]
        for start in range(0, len(ids), _MANY):
            some = (table.c.tenant_id == self._tenant, table.c.id.in_(ids[start : start + _MANY]))
            # rows in one order, as who counts accesses has them
            await self._session.execute(sa.select(table.c.id).where(*some).order_by(table.c.id).with_for_update())
            await self._session.execute(sa.update(table).where(*some).values({column: None}))

    def _page(self, table: sa.Table, statement: sa.Select[Any], after: UUID | None, limit: int) -> sa.Select[Any]:
        statement = statement.where(table.c.tenant_id == self._tenant)
        if after is not None:
            statement = statement.where(table.c.id > after)
        return statement.order_by(table.c.id).limit(limit)


_TABLES: Mapping[Kind, sa.Table] = {Kind.MEMORIES: tables.memories, Kind.TURNS: tables.turns}
_READ: Mapping[Kind, Sequence[sa.ColumnElement[Any]]] = {
    Kind.MEMORIES: [tables.memories.c[name] for name in ("id", "user_id", "version", *TEXT_COLUMNS)],
    Kind.TURNS: [tables.turns.c[name] for name in ("id", "user_id", "text")],
}


def _text(kind: Kind, row: Mapping[str, Any]) -> Text:
    if kind is Kind.TURNS:
        return Text(row["id"], row["user_id"], 0, row["text"])
    return Text(row["id"], row["user_id"], row["version"], text_of(row))
