"""Memories that were recalled together, within a transaction: relations of a kind of their own."""

from collections.abc import Collection, Mapping
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql import tables
from memplane.adapters.sql.repairs import parts
from memplane.adapters.sql.session import Session
from memplane.domain.co_recall import APART, CO_RECALLED, Counted
from memplane.domain.memory import new_id


class SqlCoRecalls:
    """Counts of pairs, and what they come to."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._tenant = session.tenant

    async def note(self, pairs: Mapping[tuple[UUID, UUID], str], now: datetime) -> None:
        """Count pairs of memories, each of a user, as recalled together; those that are not the user's are left."""
        m, r = tables.memories.c, tables.relations.c
        for some in parts(sorted(pairs)):
            ids = sorted({end for pair in some for end in pair})
            asked = sa.select(m.id, m.user_id).where(m.tenant_id == self._tenant, m.id.in_(ids))
            users = {row.id: row.user_id for row in await self._session.execute(asked)}
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
                insert = self._session.insert(tables.relations).values(rows)
                counted = insert.on_conflict_do_update(
                    index_elements=[r.tenant_id, r.from_id, r.to_id, r.relation_type],
                    set_={"co_recalls": r.co_recalls + 1, "updated_at": now},
                    where=r.updated_at <= now - APART,
                )
                await self._session.execute(counted)

    async def users(self, after: str | None, limit: int) -> list[str]:
        """Users who have memories, in the order of their names, after one."""
        m = tables.memories.c
        statement = sa.select(m.user_id).where(m.tenant_id == self._tenant).distinct()
        if after is not None:
            statement = statement.where(m.user_id > after)
        return list((await self._session.execute(statement.order_by(m.user_id).limit(limit))).scalars())

    async def of(self, users: Collection[str]) -> list[Counted]:
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
                Counted(row.id, row.user_id, row.from_id, row.to_id, row.strength, row.co_recalls, row.updated_at)
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
