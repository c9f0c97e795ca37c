"""A transaction of checkpoints on PostgreSQL: one pipeline from its beginning to its commit, few statements in it.

A save waits for its locks once, for its writes and the commit once, and for nothing else.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from psycopg import AsyncConnection
from psycopg.rows import DictRow
from psycopg.sql import SQL

from memplane.adapters.postgres.search import PostgresReader, by_cursors
from memplane.adapters.postgres.syntax import SYNTAX
from memplane.adapters.sql.rows import Row
from memplane.adapters.sql.statements import Statement

MOST = 16
"""More statements than these travel beside one another: one of all would be read anew for every number of them."""
_VALUE = re.compile(r"%\((\w+)\)s")


class CheckpointExchange:
    """Statements of one tenant within an open pipeline and transaction."""

    syntax = SYNTAX

    def __init__(self, connection: AsyncConnection[DictRow], tenant: str) -> None:
        self.tenant = tenant
        self._connection = connection
        self._reader = PostgresReader(by_cursors(connection), tenant)

    async def rows_of_all(self, asked: Sequence[Statement]) -> list[list[Row]]:
        """The rows of several statements, sent together and then waited for."""
        return await self._reader.rows_of_all(asked)

    async def send(self, asked: Sequence[Statement]) -> None:
        """Writes whose rows nobody asks for: they travel with what is waited for next, be it the commit."""
        for statement in asked:
            await self._connection.execute(SQL(statement.sql), statement.values, binary=True)

    def merged(self, asked: Sequence[Statement]) -> list[Statement]:
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
