"""What a language model took within a day, within a transaction."""

from collections.abc import Collection, Mapping
from datetime import date

import sqlalchemy as sa

from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import SqlSession
from memplane.application.jobs.job_records import TokensSpent


class SqlBudgets:
    """The tokens of a tenant and of its users, a row for each of them and day."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def reserve(self, user_id: str, day: date, tokens: int, cap: int) -> bool:
        """Reserve tokens, with the row locked until the transaction ends; False when the cap does not suffice."""
        if tokens > cap:
            return False
        b = tables.token_budgets.c
        key = {"tenant_id": self._tenant, "day": day.isoformat(), "user_id": user_id}
        statement = self._session.insert(tables.token_budgets).values(**key, reserved=tokens)
        # one statement looks and takes: whoever comes second waits for the row, and sees it as the first left it
        reserved = statement.on_conflict_do_update(
            index_elements=list(key),
            set_={"reserved": b.reserved + tokens},
            where=b.reserved + b.input_tokens + b.output_tokens + tokens <= cap,
        )
        return (await self._session.execute(reserved.returning(b.reserved))).first() is not None

    async def settle(self, user_id: str, day: date, reserved: int, spent: TokensSpent) -> None:
        """Give back what was reserved, and count what was spent; nothing where the user was erased meanwhile."""
        b = tables.token_budgets.c
        mine = (b.tenant_id == self._tenant, b.day == day.isoformat(), b.user_id == user_id)
        settled = {
            "reserved": b.reserved - reserved,
            "input_tokens": b.input_tokens + spent.input_tokens,
            "output_tokens": b.output_tokens + spent.output_tokens,
        }
        await self._session.execute(sa.update(tables.token_budgets).where(*mine).values(settled))

    async def facts_extracted(self, user_ids: Collection[str], day: date) -> Mapping[str, int]:
        """How many facts were drawn with a model of what users said; none of those who are not told."""
        b = tables.token_budgets.c
        statement = sa.select(b.user_id, b.drawn).where(
            b.tenant_id == self._tenant, b.day == day.isoformat(), b.user_id.in_(sorted(user_ids))
        )
        return {row.user_id: row.drawn for row in await self._session.execute(statement)}

    async def draw(self, user_id: str, day: date, facts: int) -> None:
        """Count facts that were drawn with a model."""
        b = tables.token_budgets.c
        key = {"tenant_id": self._tenant, "day": day.isoformat(), "user_id": user_id}
        statement = self._session.insert(tables.token_budgets).values(**key, drawn=facts)
        counted = statement.on_conflict_do_update(index_elements=list(key), set_={"drawn": b.drawn + facts})
        await self._session.execute(counted)

    async def sweep(self, before: date) -> None:
        """Remove what was counted of days before one."""
        b = tables.token_budgets.c
        gone = sa.delete(tables.token_budgets).where(b.tenant_id == self._tenant, b.day < before.isoformat())
        await self._session.execute(gone)
