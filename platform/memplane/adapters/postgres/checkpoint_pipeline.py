"""A transaction of checkpoints on PostgreSQL: two exchanges from its beginning to its commit, few statements in it.

A save waits for its locks once, for its writes and the commit once, and for nothing else.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection as SqlConnection

from memplane.adapters.postgres.pipeline import WRITING, Pipeline, as_dicts
from memplane.adapters.postgres.session import driver_of
from memplane.adapters.postgres.syntax import SYNTAX
from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.rows import Row
from memplane.adapters.sql.stores.checkpoints import SqlCheckpoints

T = TypeVar("T")
MOST = 16
"""More statements than these travel beside one another: one of all would be read anew for every number of them."""
_VALUE = re.compile(r"%\((\w+)\)s")


class CheckpointPipeline:
    """Statements of one tenant within an open transaction."""

    syntax = SYNTAX

    def __init__(self, exchange: Pipeline, tenant: str) -> None:
        self.tenant = tenant
        self._exchange = exchange

    async def rows_of_all(self, asked: Sequence[Statement]) -> list[list[Row]]:
        """The rows of several statements, sent together and then waited for."""
        return await self._exchange.rows(asked, as_dicts) if asked else []

    async def send(self, asked: Sequence[Statement]) -> None:
        """Writes whose rows nobody asks for: they travel with what is waited for next, be it the commit."""
        self._exchange.send(asked)

    def merge_statements(self, asked: Sequence[Statement]) -> list[Statement]:
        """Writes that do not concern one another, as one statement: each costs more to send than to run."""
        if not 1 < len(asked) <= MOST:
            return list(asked)
        values = {f"s{nth}_{name}": value for nth, each in enumerate(asked) for name, value in each.values.items()}
        return [Statement(_together(tuple(each.sql for each in asked)), values)]


@lru_cache(maxsize=256)
def _together(statements: tuple[str, ...]) -> str:
    parts = (
        f"s{nth} AS ({_VALUE.sub(lambda found, nth=nth: f'%(s{nth}_{found[1]})s', sql)})"  # type: ignore[misc]  # bound at once
        for nth, sql in enumerate(statements)
    )
    return f"WITH {', '.join(parts)} SELECT 1 AS done"


async def by_exchanges(
    connection: SqlConnection, beginning: Statement, tenant: str, work: Callable[[SqlCheckpoints], Awaitable[T]]
) -> T:
    """Work on checkpoints, as a transaction of exchanges; whatever goes wrong, the pool gets no half-used connection.

    Raises:
        psycopg.Error: the database refuses something; nothing of it is kept.
    """
    exchange = Pipeline(await driver_of(connection), beginning, WRITING)
    whole = False
    try:
        try:
            done = await work(SqlCheckpoints(CheckpointPipeline(exchange, tenant)))
        except Exception:
            if not exchange.broken:
                await exchange.end(keep=False)
                whole = True
            raise
        await exchange.end()
        whole = True
    finally:
        if not whole:
            await connection.invalidate()
    return done
