"""How the stores of one write transaction reach the database."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.queries import write_statements
from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.queries.write_statements import Insert, one_or_many, upserts
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.scope import Syntax
from memplane.application.records import ChangeNotice
from memplane.domain.memory.memory import new_id
from memplane.domain.ranking.co_recall import APART, CO_RECALLED
from memplane.domain.ranking.embedding_models import InForce

Row = dict[str, Any]
Values = Mapping[str, object] | Sequence[Mapping[str, object]] | None
MANY = 500
"""Rows of one statement."""
MEMORIES = "memories"
RELATIONS = "relations"
MENTIONS = "memory_entities"
ENTITIES = "entities"
UNDO = "undo_records"
JOB_RUNS = "job_runs"


class SqlSession(ABC):
    """Sends statements, and adds rows; a database may let rows wait for the next statement.

    Attributes:
        tenant: whose transaction it is.
        in_force: what the tenant's vectors are of.
        insert: the database's own ``insert``.
        syntax: how the database's driver takes statements in its own words.
    """

    syntax: Syntax

    def __init__(self, tenant: str, insert: Insert, in_force: InForce) -> None:
        self.tenant = tenant
        self.in_force = in_force
        self.insert = insert

    @abstractmethod
    async def execute(self, statement: sa.Executable, values: Values = None) -> sa.Result[Any]:
        """Send a statement, which sees whatever was added before; its rows."""

    @abstractmethod
    async def rows_changed(self, statement: sa.Executable, values: Values = None) -> int:
        """Send a statement; how many rows it changed."""

    @abstractmethod
    async def rows_of_all(self, asked: Sequence[Statement]) -> Sequence[Sequence[Mapping[str, Any]]]:
        """The rows of several statements in the driver's own words, sent together."""

    async def send(self, asked: Sequence[Statement]) -> None:
        """Writes whose rows nobody asks for."""
        await self.rows_of_all(asked)

    def merge_statements(self, asked: Sequence[Statement]) -> list[Statement]:
        """Writes of different rows, in as few statements as the database has them run; in no order."""
        return list(asked)

    @abstractmethod
    def attempt(self) -> AbstractAsyncContextManager[object]:
        """Work within the transaction that is taken back alone when it fails."""

    async def add(self, table: str, rows: list[Row]) -> bool:
        """Add rows, all with the same columns; False when a memory of the same value or name is there already.

        A database that lets them wait begins the transaction anew instead when that shows later.
        """
        return (await self.execute(*adding(table, rows, self.insert))).first() is not None

    async def add_new(self, table: str, rows: list[Row]) -> frozenset[UUID]:
        """Add rows in whose place nothing is, all with the same columns and an id each; the ids of those added."""
        await self.flush()
        target = tables.metadata.tables[table]
        statement = self.insert(target).on_conflict_do_nothing().returning(target.c.id)
        added: set[UUID] = set()
        for start in range(0, len(rows), MANY):
            added.update((await self.execute(statement, rows[start : start + MANY])).scalars())
        return frozenset(added)

    @abstractmethod
    async def flush(self) -> None:
        """Send what waits."""

    async def tell(self, user_id: str, threads: Mapping[str, datetime], told: ChangeNotice) -> Mapping[str, int]:
        """Log changes in threads and in the user's recent ones: each thread's last revision."""
        values = {"tenant_id": self.tenant, "user_id": user_id, "since": told.since, "most": told.most}
        rows = await self.execute(write_statements.RECENT, values)
        reached = {row.thread_id: row.updated_at for row in rows} | dict(threads)
        if not reached:
            return {}
        place = {"tenant_id": self.tenant, "user_id": user_id, "rev": len(told.changes), "turns": 0}
        upserted = [place | {"thread_id": name, "updated_at": at} for name, at in sorted(reached.items())]
        last = {row.thread_id: row.rev for row in await self.execute(upserts(self.insert).thread, upserted)}
        shared = {"tenant_id": self.tenant, "user_id": user_id, "meta": {}, "ts": told.ts}
        logged = [
            {
                **shared,
                "id": new_id(),
                "thread_id": name,
                "rev": rev - len(told.changes) + nth,
                "memory_id": change.memory_id,
                "event": change.event,
                "category": change.category,
            }
            for name, rev in sorted(last.items())
            for nth, change in enumerate(told.changes, 1)
        ]
        await self.add("change_log", logged)
        return last


def adding(table: str, rows: list[Row], insert: Insert) -> tuple[sa.Executable, Row | list[Row]]:
    """The statement that adds rows to a table, and their values."""
    plain = {
        "history": write_statements.ADD_HISTORY,
        "events": write_statements.ADD_EVENTS,
        "change_log": write_statements.ADD_CHANGES,
        "turns": write_statements.ADD_TURNS,
        UNDO: write_statements.ADD_UNDO,
        JOB_RUNS: write_statements.ADD_RUNS,
    }
    if table in plain:
        return plain[table], one_or_many(rows)
    if table == MEMORIES:
        # a driver reads a statement anew each time when it has more than fifty values
        rows = [{name: value for name, value in row.items() if value is not None} for row in rows]
    statements = upserts(insert)
    if table == CO_RECALLED:
        return statements.co_recalled, [row | {"before": row["updated_at"] - APART} for row in rows]
    upsert = {
        MEMORIES: statements.memory,
        RELATIONS: statements.relations,
        MENTIONS: statements.mentions,
        ENTITIES: statements.entities,
    }
    return upsert[table], one_or_many(rows)


def table_of(name: str) -> sa.Table:
    """A table by its name."""
    return tables.metadata.tables[name]
