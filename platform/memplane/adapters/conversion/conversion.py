"""A tenant's data copied from one kind of database to the other: whole, in order, resumable, and proved equal."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np
import sqlalchemy as sa

from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.schema.types import POSTGRESQL
from memplane.domain.errors import NotSupported, RecordNotFound, StateConflict, StorageError, StorageUnavailable

MARK = "conversion"
"""The row of the metadata table by which a target knows its conversion; it is no part of the data."""
BATCH = 500
COPIED = tuple(table for table in tables.metadata.sorted_tables if table.name not in tables.DERIVED)

Row = dict[str, Any]
Told = Callable[[str, int, int], None]
"""Hears of progress: table, rows that are there, rows that there will be."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two databases, migrated to this version's schema.

    Attributes:
        name: what to call it, without secrets.
        engine: connects as a role that may read, or write, every table.
        tenant: whose data it is on this side.
    """

    name: str
    engine: sa.Engine
    tenant: str

    @contextmanager
    def transaction(self, *, snapshot: bool = False) -> Iterator[sa.Connection]:
        """A transaction of the tenant; with ``snapshot``, all of it sees one state of the database."""
        try:
            with self.engine.connect() as connection:
                if snapshot and self.engine.dialect.name == POSTGRESQL:
                    connection.execution_options(isolation_level="REPEATABLE READ")
                with connection.begin():
                    if self.engine.dialect.name == POSTGRESQL:  # the owner too is bound by row-level security
                        connection.execute(sa.select(sa.func.set_config("memplane.tenant", self.tenant, True)))
                    yield connection
        except sa.exc.OperationalError as error:
            raise StorageUnavailable(f"{self.name}: {_first_line(error)}") from error
        except sa.exc.DBAPIError as error:
            raise StorageError(f"{self.name}: {_first_line(error)}") from error

    def binary(self, column: sa.Column[Any]) -> sa.ColumnElement[Any]:
        """A column in the order of its bytes, which is the same on both databases."""
        if self.engine.dialect.name == POSTGRESQL and isinstance(column.type, sa.String):
            return sa.collate(column, "C")
        return column


@dataclass(frozen=True, slots=True)
class TableComparison:
    """How one table came out.

    Attributes:
        table: its name.
        copied: rows that this run copied.
        source_rows, target_rows: rows on each side.
        source_hash, target_hash: SHA-256 of the content in canonical form.
    """

    table: str
    copied: int
    source_rows: int
    target_rows: int
    source_hash: str
    target_hash: str

    @property
    def equal(self) -> bool:
        """Whether both sides hold the same."""
        return (self.source_rows, self.source_hash) == (self.target_rows, self.target_hash)


@dataclass(frozen=True, slots=True)
class ConversionResult:
    """A conversion that came to its end.

    Attributes:
        source, target: names of the sides.
        resumed: whether an earlier run had begun it.
        tables: every table of the schema.
    """

    source: str
    target: str
    resumed: bool
    tables: tuple[TableComparison, ...]

    @property
    def equal(self) -> bool:
        """Whether both databases hold the same."""
        return all(each.equal for each in self.tables)


class TenantConversion:
    """Copies a tenant from a source to a target.

    Each batch is one transaction, in the order of the primary key, so an interrupted run leaves the beginning of each
    table and the next one goes on behind it. What was copied completely is only compared again, never written to.
    """

    def __init__(self, source: Side, target: Side, *, batch: int = BATCH) -> None:
        self._source = source
        self._target = target
        self._batch = batch

    def run(self, told: Told = lambda _table, _done, _rows: None) -> ConversionResult:
        """Copy what is missing, and compare everything.

        Raises:
            NotFound: the source has no such tenant.
            Conflict: the target holds data that this conversion did not bring.
            StorageUnavailable: a side cannot be reached.
            StorageError: a side refused a statement.
        """
        copied: dict[str, int] = {}
        with self._source.transaction(snapshot=True) as source:
            identity = self._identity(source)
            state = self._state(identity)
            if state is None:
                self._begin(source, identity)
            if state != "complete":
                for table in COPIED:
                    copied[table.name] = self._copy(source, table, told)
            compared = tuple(self._compare(source, copied))
        result = ConversionResult(self._source.name, self._target.name, state is not None, compared)
        if result.equal and state != "complete":
            self._mark(identity, "complete")
        return result

    def _identity(self, source: sa.Connection) -> str:
        """What tells this source from another one."""
        t = tables.tenants.c
        born = source.execute(sa.select(t.created_at).where(t.tenant_id == self._source.tenant)).scalar_one_or_none()
        if born is None:
            raise RecordNotFound(
                f"{self._source.name} has no tenant '{self._source.tenant}', or this role may not see it: "
                "name the tenant with --tenant, and connect as the owner of the schema"
            )
        told = json.dumps([self._source.name, self._source.tenant, self._target.tenant, born.isoformat()])
        return hashlib.sha256(told.encode()).hexdigest()

    def _state(self, identity: str) -> str | None:
        """How far the target is: ``None`` when it is empty."""
        s = tables.settings.c
        with self._target.transaction() as target:
            mark = target.execute(
                sa.select(s.value).where(s.tenant_id == self._target.tenant, s.name == MARK)
            ).scalar_one_or_none()
            if mark is not None and mark["source"] == identity:
                return str(mark["state"])
            held = {table.name: _count(target, self._target, table) for table in COPIED}
        if mark is None and not any(held.values()):
            return None
        what = ", ".join(f"{rows} {name}" for name, rows in held.items() if rows)
        begun = "was begun from another source" if mark is not None else "holds data already"
        raise StateConflict(
            f"{self._target.name} {begun} ({what}): nothing was written; convert into an empty database"
        )

    def _begin(self, source: sa.Connection, identity: str) -> None:
        """The tenant and the mark, in one transaction."""
        (tenant,) = source.execute(_rows_of(self._source, tables.tenants)).mappings()
        with self._target.transaction() as target:
            target.execute(sa.insert(tables.tenants), [self._moved(tables.tenants, tenant)])
            target.execute(sa.insert(tables.settings), [self._marked(identity, "begun")])

    def _mark(self, identity: str, state: str) -> None:
        s, row = tables.settings.c, self._marked(identity, state)
        with self._target.transaction() as target:
            target.execute(
                sa.update(tables.settings)
                .where(s.tenant_id == self._target.tenant, s.name == MARK)
                .values(value=row["value"], updated_at=row["updated_at"])
            )

    def _marked(self, identity: str, state: str) -> Row:
        return {
            "tenant_id": self._target.tenant,
            "name": MARK,
            "value": {"source": identity, "state": state},
            "updated_at": datetime.now(UTC),
        }

    def _copy(self, source: sa.Connection, table: sa.Table, told: Told) -> int:
        """Copy what the target does not have of a table; returns how many rows."""
        with self._target.transaction() as target:
            last = _last(target, self._target, table)
            done = _count(target, self._target, table)
        rows = _count(source, self._source, table)
        told(table.name, done, rows)
        found = source.execute(_rows_of(self._source, table, after=last).execution_options(yield_per=self._batch))
        copied = 0
        for batch in found.mappings().partitions():
            with self._target.transaction() as target:
                target.execute(sa.insert(table), [self._moved(table, row) for row in batch])
            copied += len(batch)
            told(table.name, done + copied, rows)
        return copied

    def _moved(self, table: sa.Table, row: Any) -> Row:  # noqa: ANN401 - SQLAlchemy's row mapping
        stored = {column.name: row[column.name] for column in table.columns if column.computed is None}
        return stored | {"tenant_id": self._target.tenant}

    def _compare(self, source: sa.Connection, copied: dict[str, int]) -> Iterator[TableComparison]:
        with self._target.transaction(snapshot=True) as target:
            for table in COPIED:
                source_rows, source_hash = _content(source, self._source, table)
                target_rows, target_hash = _content(target, self._target, table)
                yield TableComparison(
                    table.name, copied.get(table.name, 0), source_rows, target_rows, source_hash, target_hash
                )


def refuse_several_tenants(side: Side) -> None:
    """Refuse to guess which of several tenants is meant, as far as the role sees them.

    Raises:
        NotSupported: there are several.
    """
    with side.transaction() as connection:
        found = list(connection.scalars(sa.select(tables.tenants.c.tenant_id).order_by(tables.tenants.c.tenant_id)))
    if len(found) > 1:
        raise NotSupported(
            f"{side.name} has the tenants {', '.join(found)}, and a SQLite file holds one: choose it with --tenant"
        )


def _data_of(side: Side, table: sa.Table) -> sa.ColumnElement[bool]:
    """The rows of a side's tenant, without the mark."""
    own: sa.ColumnElement[bool] = table.c.tenant_id == side.tenant
    return sa.and_(own, table.c.name != MARK) if table is tables.settings else own


def _key(table: sa.Table) -> list[sa.Column[Any]]:
    """The primary key within a tenant."""
    return [column for column in table.primary_key.columns if column.name != "tenant_id"]


def _rows_of(side: Side, table: sa.Table, after: Sequence[Any] | None = None) -> sa.Select[Any]:
    """Rows in the order of the primary key, those behind a key."""
    key = [side.binary(column) for column in _key(table)]
    statement = sa.select(table).where(_data_of(side, table)).order_by(*key)
    if after is None:
        return statement
    if not key:  # one row for each tenant, and it is there
        return statement.where(sa.false())
    bound = [sa.literal(value, column.type) for value, column in zip(after, _key(table), strict=True)]
    return statement.where(sa.tuple_(*key) > sa.tuple_(*bound))


def _last(target: sa.Connection, side: Side, table: sa.Table) -> Sequence[Any] | None:
    """The greatest key that is there; an empty one for a table whose key is the tenant alone."""
    key = _key(table)
    ordered = (sa.desc(side.binary(column)) for column in key)
    wanted = (
        (sa.select(*key) if key else sa.select(sa.literal(1))).where(_data_of(side, table)).order_by(*ordered).limit(1)
    )
    row = target.execute(wanted.select_from(table)).first()
    return None if row is None else tuple(row) if key else ()


def _count(connection: sa.Connection, side: Side, table: sa.Table) -> int:
    statement = sa.select(sa.func.count()).select_from(table).where(_data_of(side, table))
    return connection.execute(statement).scalar_one()


def _content(connection: sa.Connection, side: Side, table: sa.Table) -> tuple[int, str]:
    """How many rows a table has, and the hash of what they say."""
    digest, count = hashlib.sha256(), 0
    names = sorted(column.name for column in table.columns if column.name != "tenant_id")
    for row in connection.execute(_rows_of(side, table).execution_options(yield_per=BATCH)).mappings():
        digest.update(json.dumps([canonical(row[name]) for name in names], sort_keys=True).encode())
        digest.update(b"\n")
        count += 1
    return count, digest.hexdigest()


def canonical(value: object) -> object:
    """A value as JSON that does not depend on the database: numbers by their value, not by how they were written."""
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            return int(value) if value.is_integer() else value
        case UUID():
            return ["uuid", value.hex]
        case datetime():
            return ["time", value.astimezone(UTC).isoformat(timespec="microseconds")]
        case bytes() | memoryview():
            return ["bytes", bytes(value).hex()]
        case np.ndarray():
            return ["vector", value.astype("<f2").tobytes().hex()]
        case list() | tuple():
            return [canonical(item) for item in value]
        case dict():
            return {str(name): canonical(item) for name, item in value.items()}
        case _:
            raise TypeError(f"no canonical form for {type(value).__name__}")


def _first_line(error: sa.exc.DBAPIError) -> str:
    """What the driver says, without the values that stand behind its first line."""
    return next(iter(str(error.orig).splitlines()), type(error.orig).__name__)
