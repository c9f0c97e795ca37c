"""Memories that may be the same, and what was compared of them, on both databases."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

import numpy as np
import sqlalchemy as sa

from memplane.adapters.sql.queries import write_statements
from memplane.adapters.sql.rows import TERM, memory_of
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import SqlSession
from memplane.application.jobs.pair_records import PairCheck
from memplane.domain.jobs.pair_selection import Glance, PairCandidate
from memplane.domain.memory.items import PREFIX
from memplane.domain.memory.memory import RETRIEVABLE_TRUST, State
from memplane.domain.memory.write_decisions import COMPARED

_MANY = 500


class SqlPairs:
    """What the nightly consolidation reads, a few statements for each user, and notes."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def next_user(self, after: str | None, since: datetime) -> str | None:
        """The next user, by name, of whom an active memory changed since a moment; or none."""
        m = tables.memories.c
        statement = sa.select(m.user_id).where(m.tenant_id == self._tenant, _ACTIVE, m.updated_at >= since)
        if after is not None:
            statement = statement.where(m.user_id > after)
        found: str | None = (await self._session.execute(statement.order_by(m.user_id).limit(1))).scalar_one_or_none()
        return found

    async def recent_facts(self, user_id: str, since: datetime, now: datetime, limit: int) -> list[Glance]:
        """What decides which of a user's facts are compared, the newest first; served by ix_memories_updated."""
        m = tables.memories.c
        statement = sa.select(m.id, m.importance, m.access_count, m.updated_at).where(
            m.tenant_id == self._tenant,
            m.user_id == user_id,
            _ACTIVE,
            m.updated_at >= since,
            m.type.in_(sorted(COMPARED)),
            m.trust_state.in_(RETRIEVABLE_TRUST),
            m.expires_at.is_(None) | (m.expires_at > now),
            m.valid_until.is_(None) | (m.valid_until > now),
            m.valid_from.is_(None) | (m.valid_from <= now),
            m.external_id.is_(None) | ~m.external_id.startswith(PREFIX, autoescape=True),
        )
        rows = await self._session.execute(statement.order_by(m.updated_at.desc()).limit(limit))
        return [Glance(row.id, row.importance, row.access_count, row.updated_at) for row in rows]

    async def candidates(self, user_id: str, ids: Sequence[UUID]) -> list[PairCandidate]:
        """Some of a user's active memories with what makes them findable, in the order of their ids."""
        m = tables.memories.c
        vector = m[self._session.in_force.column].label("vector")
        found: list[PairCandidate] = []
        for some in _parts(ids):
            statement = sa.select(*write_statements.MEMORY, vector, m.terms).where(
                m.tenant_id == self._tenant, m.user_id == user_id, m.id.in_(some), _ACTIVE
            )
            for row in (await self._session.execute(statement)).mappings():
                words = frozenset(np.frombuffer(row["terms"], dtype=TERM)["term"].tolist())
                found.append(PairCandidate(memory_of(dict(row)), row["vector"], words))
        return sorted(found, key=lambda each: each.memory.id)

    async def related_pairs(self, ids: Sequence[UUID], kind: str) -> set[frozenset[UUID]]:
        """Between which of some memories there is a relation of a kind, whichever way it leads."""
        r, wanted = tables.relations.c, set(ids)
        found: set[frozenset[UUID]] = set()
        for some in _parts(ids):
            statement = sa.select(r.from_id, r.to_id).where(
                r.tenant_id == self._tenant, r.from_id.in_(some), r.relation_type == kind
            )
            for row in await self._session.execute(statement):
                if row.to_id in wanted:
                    found.add(frozenset((row.from_id, row.to_id)))
        return found

    async def field_holders(self, user_id: str) -> frozenset[UUID]:
        """The memories that hold a decided field of a user's profile."""
        c = tables.user_context.c
        statement = sa.select(c.memory_id).where(c.tenant_id == self._tenant, c.user_id == user_id)
        return frozenset((await self._session.execute(statement)).scalars())

    async def past_checks(self, user_id: str, since: datetime) -> list[PairCheck]:
        """The pairs of a user that were compared since a moment."""
        c = tables.pair_checks.c
        statement = sa.select(tables.pair_checks).where(
            c.tenant_id == self._tenant, c.user_id == user_id, c.checked_at >= since
        )
        rows = (await self._session.execute(statement)).mappings()
        return [PairCheck(**{name: row[name] for name in PairCheck.__slots__}) for row in rows]

    async def note(self, user_id: str, checks: Collection[PairCheck]) -> None:
        """Note pairs that were compared; one that was compared before is noted anew."""
        if not checks:
            return
        c = tables.pair_checks.c
        rows = {
            each.fingerprint: {"tenant_id": self._tenant, "user_id": user_id}
            | {name: getattr(each, name) for name in PairCheck.__slots__}
            for each in checks
        }
        statement = self._session.insert(tables.pair_checks).values([rows[name] for name in sorted(rows)])
        anew = {name: statement.excluded[name] for name in ("verdict", "checked_at", "prompt_version")}
        await self._session.execute(
            statement.on_conflict_do_update(index_elements=[c.tenant_id, c.user_id, c.fingerprint], set_=anew)
        )

    async def sweep(self, before: datetime, limit: int) -> None:
        """Forget pairs, of whichever user, that were compared before a moment; at most so many."""
        c = tables.pair_checks.c
        key = (c.tenant_id, c.user_id, c.fingerprint)
        old = sa.select(*key).where(c.tenant_id == self._tenant, c.checked_at < before).limit(limit)
        gone = sa.delete(tables.pair_checks).where(c.tenant_id == self._tenant, sa.tuple_(*key).in_(old))
        await self._session.execute(gone)


# written out, as the partial index has it
_ACTIVE = tables.memories.c.state == sa.literal_column(f"'{State.ACTIVE}'")


def _parts(ids: Sequence[UUID]) -> list[Sequence[UUID]]:
    return [ids[start : start + _MANY] for start in range(0, len(ids), _MANY)]
