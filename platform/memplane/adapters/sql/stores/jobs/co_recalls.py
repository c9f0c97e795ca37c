"""Memories that were recalled together, within a transaction: relations of a kind of their own."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import SqlSession
from memplane.adapters.sql.stores.jobs.text_repairs import parts
from memplane.domain.memory.memory import new_id
from memplane.domain.ranking.co_recall import CO_RECALLED, CoRecallCount

# Served by pk_memories.
_USERS = "SELECT m.id, m.user_id FROM memories m WHERE m.tenant_id = {tenant} AND {listed}"


class SqlCoRecalls:
    """Counts of pairs, and what they come to."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def note(self, pairs: Mapping[tuple[UUID, UUID], str], now: datetime) -> None:
        """Count pairs of memories, each of a user, as recalled together; those that are not the user's are left."""
        for some in parts(sorted(pairs)):
            ids = sorted({end for pair in some for end in pair})
            users = await self._users(ids)
            rows = [
                {
                    "tenant_id": self._tenant, "id": new_id(), "from_id": one, "to_id": other,
                    "relation_type": CO_RECALLED, "strength": 0.0, "co_recalls": 1, "created_at": now,
                    "updated_at": now,
                }
                for one, other in some
                if users.get(one) == users.get(other) == pairs[one, other]
            ]  # fmt: skip
            if rows:
                await self._session.add(CO_RECALLED, rows)

    async def _users(self, ids: Sequence[UUID]) -> dict[UUID, str]:
        """Whose memories these are."""
        syntax = self._session.syntax
        values: dict[str, object] = {"tenant": self._tenant, "ids": ids}
        sql = _USERS.format(tenant=syntax.value("tenant"), listed=syntax.any_of("m.id", "ids"))
        (rows,) = await self._session.rows_of_all([Statement(sql, values)])
        return {row["id"]: row["user_id"] for row in rows}

    async def users(self, after: str | None, limit: int) -> list[str]:
        """Users who have memories, in the order of their names, after one."""
        m = tables.memories.c
        statement = sa.select(m.user_id).where(m.tenant_id == self._tenant).distinct()
        if after is not None:
            statement = statement.where(m.user_id > after)
        return list((await self._session.execute(statement.order_by(m.user_id).limit(limit))).scalars())

    async def of(self, users: Collection[str]) -> list[CoRecallCount]:
        """All that was recalled together of some users."""
        m, r, found = tables.memories.c, tables.relations.c, []
        for some in parts(sorted(users)):
            joined = tables.memories.join(tables.relations, sa.and_(r.tenant_id == m.tenant_id, r.from_id == m.id))
            statement = (
                sa.select(r.id, m.user_id, r.from_id, r.to_id, r.strength, r.co_recalls, r.updated_at)
                .select_from(joined)
                .where(m.tenant_id == self._tenant, m.user_id.in_(some), r.relation_type == CO_RECALLED)
            )
            found += [
                CoRecallCount(row.id, row.user_id, row.from_id, row.to_id, row.strength, row.co_recalls, row.updated_at)
                for row in await self._session.execute(statement.order_by(r.id))
            ]
        return found

    async def strengthen(self, strengths: Mapping[UUID, float]) -> None:
        """Give relations other strengths; their users are locked."""
        r = tables.relations.c
        for some in parts(sorted(strengths)):
            await self._lock(some)
            by_id = sa.case(*[(r.id == each, strengths[each]) for each in some], else_=r.strength)
            statement = sa.update(tables.relations).where(r.tenant_id == self._tenant, r.id.in_(some))
            await self._session.execute(statement.values(strength=by_id))

    async def forget(self, ids: Collection[UUID]) -> None:
        """Remove relations; their users are locked."""
        r = tables.relations.c
        for some in parts(sorted(ids)):
            await self._lock(some)
            await self._session.execute(sa.delete(tables.relations).where(r.tenant_id == self._tenant, r.id.in_(some)))

    async def _lock(self, ids: Collection[UUID]) -> None:
        """Rows in the order in which who counts takes them."""
        r = tables.relations.c
        statement = sa.select(r.id).where(r.tenant_id == self._tenant, r.id.in_(ids))
        await self._session.execute(statement.order_by(r.from_id, r.to_id).with_for_update())
