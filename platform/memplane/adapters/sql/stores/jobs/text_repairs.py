"""Texts with what was derived from them, read to be checked and put right, within a transaction."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

from memplane.adapters.sql.queries import write_statements
from memplane.adapters.sql.rows import TERM, TEXT_COLUMNS, material_values, memory_of, text_of
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.schema.types import POSTGRESQL, Embedding
from memplane.adapters.sql.session import MANY, SqlSession
from memplane.application.jobs.reconciliation.reconcile_records import DerivedText
from memplane.application.jobs.vector_records import Kind
from memplane.application.recall.search_material import SearchMaterial
from memplane.domain.memory.memory import Memory, State

Freshen = Callable[[SqlSession, Kind, Sequence[UUID]], Awaitable[None]]
_HALF = 2
T = TypeVar("T")


class StoredEmbedding(Embedding):
    """An embedding as it is stored, in whatever form: bytes that no vector has are not one of the right length."""

    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> NDArray[np.float32] | None:  # noqa: ANN401 - SQLAlchemy's signature
        """From the database."""
        if isinstance(value, bytes) and len(value) % _HALF:
            return np.zeros(0, dtype=np.float32)
        return super().process_result_value(value, dialect)


class BinaryEmbedding(TypeDecorator[NDArray[np.float32]]):
    """An embedding as the database sends it in binary: to take it out of the answer costs nothing, unlike its text."""

    impl = sa.LargeBinary
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> NDArray[np.float32] | None:  # noqa: ANN401 - SQLAlchemy's signature
        """From the database."""
        if dialect.name == POSTGRESQL and value is not None:  # its length and a reserved number come first
            return np.frombuffer(value, ">f2", offset=4).astype(np.float32)
        if value is None or len(value) % _HALF:
            return np.zeros(0, dtype=np.float32)
        return np.frombuffer(value, "<f2").astype(np.float32)


class binary_embedding(FunctionElement[Any]):  # noqa: N801 - as a function is named
    """An embedding of a column, to be read as :class:`BinaryEmbedding`."""

    type = BinaryEmbedding()
    inherit_cache = True


@compiles(binary_embedding)
def _as_it_is(element: binary_embedding, compiler: SQLCompiler, **given: Any) -> str:  # noqa: ANN401 - SQLAlchemy's signature
    return compiler.process(element.clauses, **given)


@compiles(binary_embedding, POSTGRESQL)
def _sent(element: binary_embedding, compiler: SQLCompiler, **given: Any) -> str:  # noqa: ANN401 - SQLAlchemy's signature
    return f"halfvec_send({compiler.process(element.clauses, **given)})"


class SqlTextRepairs:
    """Memories and turns with their search material, sources and mentions."""

    def __init__(self, session: SqlSession, freshen: Freshen) -> None:
        self._session = session
        self._tenant = session.tenant
        self._freshen = freshen

    async def derived_texts(self, kind: Kind, after: UUID | None, limit: int) -> list[DerivedText]:
        """Memories that are not deleted, or turns, in the order of their ids, after one."""
        table, statement = self._held(kind)
        if after is not None:
            statement = statement.where(table.c.id > after)
        return await self._read(kind, statement.limit(limit))

    async def lock(self, kind: Kind, ids: Collection[UUID]) -> list[DerivedText]:
        """Some of them as they are now, locked, in the order of their ids."""
        table, statement = self._held(kind)
        found: list[DerivedText] = []
        for some in parts(sorted(ids)):
            found += await self._read(kind, statement.where(table.c.id.in_(some)).with_for_update())
        return found

    def _held(self, kind: Kind) -> tuple[sa.Table, sa.Select[Any]]:
        table = _TABLES[kind]
        vector = sa.type_coerce(table.c[self._session.in_force.column], StoredEmbedding()).label("vector")
        statement = sa.select(*_READ[kind], table.c.terms, table.c.term_length, vector)
        statement = statement.where(table.c.tenant_id == self._tenant)
        if kind is Kind.MEMORIES:
            statement = statement.where(table.c.state != State.SOFT_DELETED)
        return table, statement.order_by(table.c.id)

    async def _read(self, kind: Kind, statement: sa.Select[Any]) -> list[DerivedText]:
        rows = [dict(row) for row in (await self._session.execute(statement)).mappings()]
        if kind is Kind.TURNS:
            return [DerivedText(row["id"], row["user_id"], row["text"], *_material(row)) for row in rows]
        ids = [row["id"] for row in rows]
        noted, mentions = await self._noted(ids), await self._mentioned(ids)
        return [
            DerivedText(
                row["id"], row["user_id"], text_of(row), *_material(row), row["category"], State(row["state"]),
                row["source_ids"], frozenset(noted.get(row["id"], ())), mentions.get(row["id"], 0),
            )
            for row in rows
        ]  # fmt: skip

    async def _noted(self, ids: Sequence[UUID]) -> Mapping[UUID, list[str]]:
        s = tables.memory_sources.c
        found: dict[UUID, list[str]] = {}
        for some in parts(ids):
            statement = sa.select(s.memory_id, s.source_id).where(s.tenant_id == self._tenant, s.memory_id.in_(some))
            for row in await self._session.execute(statement):
                found.setdefault(row.memory_id, []).append(row.source_id)
        return found

    async def _mentioned(self, ids: Sequence[UUID]) -> Mapping[UUID, int]:
        j = tables.memory_entities.c
        found: dict[UUID, int] = {}
        for some in parts(ids):
            statement = sa.select(j.memory_id, sa.func.count().label("entities")).where(
                j.tenant_id == self._tenant, j.memory_id.in_(some)
            )
            rows = await self._session.execute(statement.group_by(j.memory_id))
            found |= {row.memory_id: row.entities for row in rows}
        return found

    async def refit(self, kind: Kind, found: Sequence[tuple[UUID, SearchMaterial]]) -> None:
        """Store other search material of what is locked, and have every cache read it anew; without a version."""
        table = _TABLES[kind]
        for some in parts(found):
            values = [{"id": each} | material_values(material, self._session.in_force) for each, material in some]
            names = list(values[0])
            given = sa.values(*(sa.column(name, table.c[name].type) for name in names), name="v")
            rows = given.data([tuple(row[name] for name in names) for row in values]).cte("given")
            statement = sa.update(table).where(table.c.tenant_id == self._tenant, table.c.id == rows.c.id)
            stored = {name: sa.cast(rows.c[name], table.c[name].type) for name in names if name != "id"}
            await self._session.execute(statement.values(**stored))
            await self._freshen(self._session, kind, [each for each, _ in some])

    async def find_vanished(self, named: Collection[UUID]) -> frozenset[UUID]:
        """Those of some ids that were memories of the tenant once, and are not there any more."""
        m, h = tables.memories.c, tables.history.c
        found: set[UUID] = set()
        for some in parts(sorted(named)):
            here = sa.select(m.id).where(m.tenant_id == self._tenant, m.id.in_(some))
            missing = set(some) - set((await self._session.execute(here)).scalars())
            if missing:
                once = sa.select(h.memory_id).where(h.tenant_id == self._tenant, h.memory_id.in_(missing)).distinct()
                found.update((await self._session.execute(once)).scalars())
        return frozenset(found)

    async def rest_on(self, sources: Mapping[UUID, tuple[Sequence[str], int]]) -> list[Memory]:
        """Let memories that are locked name these sources alone, and be said as many times less as others went."""
        m = tables.memories.c
        for some in parts(sorted(sources)):
            named = sa.case(*[(m.id == each, sa.literal(tuple(sources[each][0]), m.source_ids.type)) for each in some])
            fewer = sa.case(*[(m.id == each, m.mention_count - sources[each][1]) for each in some], else_=1)
            values = {"source_ids": named, "mention_count": sa.case((fewer > 1, fewer), else_=1)}
            statement = sa.update(tables.memories).where(m.tenant_id == self._tenant, m.id.in_(some))
            await self._session.execute(statement.values(**values, version=m.version + 1))
        return await self._memories(sorted(sources))

    async def note_sources(self, sources: Mapping[UUID, Sequence[str]]) -> None:
        """Let what leads from sources to memories that are locked be what the memories name."""
        s = tables.memory_sources.c
        for some in parts(sorted(sources)):
            mine = (s.tenant_id == self._tenant, s.memory_id.in_(some))
            await self._session.execute(sa.delete(tables.memory_sources).where(*mine))
        rows = [
            {"tenant_id": self._tenant, "source_id": name, "memory_id": each}
            for each in sorted(sources)
            for name in sorted(set(sources[each]))
        ]
        insert = self._session.insert(tables.memory_sources).on_conflict_do_nothing()
        for part in parts(rows):
            await self._session.execute(insert, part)

    async def memories(self, ids: Collection[UUID]) -> list[Memory]:
        """Memories that are read, by their ids, in the order of these."""
        return await self._memories(sorted(ids), tables.memories.c.state == State.ACTIVE)

    async def _memories(self, ids: Sequence[UUID], *conditions: sa.ColumnElement[bool]) -> list[Memory]:
        m = tables.memories.c
        found: list[Memory] = []
        for some in parts(ids):
            statement = sa.select(*write_statements.MEMORY).where(
                m.tenant_id == self._tenant, m.id.in_(some), *conditions
            )
            rows = await self._session.execute(statement.order_by(m.id))
            found += [memory_of(dict(row)) for row in rows.mappings()]
        return found


def parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many as one statement takes."""
    return (values[start : start + MANY] for start in range(0, len(values), MANY))


_TABLES: Mapping[Kind, sa.Table] = {Kind.MEMORIES: tables.memories, Kind.TURNS: tables.turns}
_READ: Mapping[Kind, Sequence[sa.ColumnElement[Any]]] = {
    Kind.MEMORIES: [
        tables.memories.c[name] for name in ("id", "user_id", "category", "state", "source_ids", *TEXT_COLUMNS)
    ],
    Kind.TURNS: [tables.turns.c[name] for name in ("id", "user_id", "text")],
}


def _material(row: Mapping[str, Any]) -> tuple[Mapping[int, int] | None, int, NDArray[np.float32] | None]:
    packed = bytes(row["terms"])
    terms = None if len(packed) % TERM.itemsize else dict(np.frombuffer(packed, dtype=TERM).tolist())
    return terms, row["term_length"], row["vector"]
