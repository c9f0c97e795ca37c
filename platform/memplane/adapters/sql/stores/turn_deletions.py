"""Turns that are deleted, and what else of a user points at them, on both databases."""

from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.rows import TURN_COLUMNS, proposal_of, turn_of
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import MANY, SqlSession
from memplane.application.records import Proposal
from memplane.application.turns.turn_deletion_ports import KeptAnswer
from memplane.domain.memory.memory import Turn

_CLOCKS = timedelta(days=1)
"""So far the clocks of two servers may be apart, and more."""
_TURN = [tables.turns.c[name] for name in TURN_COLUMNS]


class SqlRemovals:
    """What the deletion of a turn reads and removes."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def lock(self, user_id: str, turn_id: UUID) -> Turn | None:
        """A user's turn, locked until the transaction ends; or none."""
        t = tables.turns.c
        statement = sa.select(*_TURN).where(t.tenant_id == self._tenant, t.id == turn_id, t.user_id == user_id)
        row = (await self._session.execute(statement.with_for_update())).mappings().one_or_none()
        return None if row is None else turn_of(dict(row))

    async def turns_of(self, user_id: str, turn_ids: Collection[UUID]) -> list[Turn]:
        """Those of some turns that are there and a user's, in the order of their ids."""
        t = tables.turns.c
        found: list[Turn] = []
        wanted = sorted(turn_ids)
        for start in range(0, len(wanted), MANY):
            some = t.id.in_(wanted[start : start + MANY])
            mine = (t.tenant_id == self._tenant, t.user_id == user_id, some)
            statement = sa.select(*_TURN).where(*mine).order_by(t.id)
            found += [turn_of(dict(row)) for row in (await self._session.execute(statement)).mappings()]
        return found

    async def remove(self, turn: Turn) -> list[tuple[str, str]]:
        """Remove a locked turn with what it corroborated; the fields and keys of the values that it spoke for."""
        s, t = tables.context_signals.c, tables.turns.c
        mine = (s.tenant_id == self._tenant, s.user_id == turn.user_id, s.turn_id == turn.id)
        spoken = await self._session.execute(sa.select(s.field, s.value_hash).where(*mine))
        values = sorted((row.field, row.value_hash) for row in spoken)
        if values:
            await self._session.execute(sa.delete(tables.context_signals).where(*mine))
        await self._unsay(turn)
        gone = sa.delete(tables.turns).where(t.tenant_id == self._tenant, t.id == turn.id)
        await self._session.execute(gone)
        return values

    async def _unsay(self, turn: Turn) -> None:
        """Forget what a turn said that was counted into a memory: its words go with it."""
        o, s = tables.undo_records.c, tables.memory_sources.c
        rests = sa.select(s.memory_id).where(s.tenant_id == self._tenant, s.source_id == str(turn.id))
        mine = (o.tenant_id == self._tenant, o.user_id == turn.user_id, o.about.in_(rests), o.said.is_not(None))
        await self._session.execute(sa.delete(tables.undo_records).where(*mine))

    async def lapse(self, user_id: str, field: str, value_hash: str) -> bool:
        """Let a field's value apply no longer, if no person has decided on it; whether it did."""
        c = tables.user_context.c
        gone = sa.delete(tables.user_context).where(
            c.tenant_id == self._tenant, c.user_id == user_id, c.field == field, c.value_hash == value_hash,
            c.proposal_id.is_(None),
        )  # fmt: skip
        return (await self._session.execute(gone.returning(c.field))).first() is not None

    async def proposals(self, user_ids: Collection[str]) -> list[Proposal]:
        """Proposals of some users, in whatever state."""
        p = tables.consent_proposals.c
        statement = sa.select(tables.consent_proposals).where(
            p.tenant_id == self._tenant, p.user_id.in_(sorted(user_ids))
        )
        return [proposal_of(dict(row)) for row in (await self._session.execute(statement.order_by(p.id))).mappings()]

    async def withdraw(self, proposal_ids: Sequence[UUID]) -> None:
        """Remove proposals."""
        p = tables.consent_proposals.c
        gone = sa.delete(tables.consent_proposals).where(p.tenant_id == self._tenant, p.id.in_(sorted(proposal_ids)))
        await self._session.execute(gone)

    async def unquote(
        self, user_ids: Collection[str], proposal_ids: Sequence[UUID], evidence: Collection[UUID]
    ) -> None:
        """Let what was decided stand without its evidence: the drafts of proposals go, and what fields rest on."""
        p, c, drafted = tables.consent_proposals.c, tables.user_context.c, dict[str, Any](evidence=None, meta={})
        for start in range(0, len(proposal_ids), MANY):
            these = (p.tenant_id == self._tenant, p.id.in_(sorted(proposal_ids)[start : start + MANY]))
            await self._session.execute(sa.update(tables.consent_proposals).where(*these).values(**drafted))
        users, rested = sorted(user_ids), sorted(evidence)
        for start in range(0, len(rested), MANY):
            mine = (c.tenant_id == self._tenant, c.user_id.in_(users), c.evidence.in_(rested[start : start + MANY]))
            await self._session.execute(sa.update(tables.user_context).where(*mine).values(evidence=None))

    async def answers(self, turn: Turn) -> list[KeptAnswer]:
        """Answers since a turn was stored that tell of it, or sum its thread up."""
        k = tables.idempotency_keys.c
        body = k.answer["body"]
        tells = sa.cast(k.answer, sa.Text).contains(str(turn.id))
        closes = sa.and_(body["thread_id"].as_string() == turn.thread_id, body["summary"].as_string().is_not(None))
        statement = sa.select(k.key_id, k.idempotency_key, k.answer).where(
            k.tenant_id == self._tenant,
            sa.or_(k.of_user == turn.user_id, k.of_user.is_(None)),
            k.created_at >= turn.recorded_at - _CLOCKS,
            sa.or_(tells, closes),
        )
        return [
            KeptAnswer(row.key_id, row.idempotency_key, row.answer) for row in await self._session.execute(statement)
        ]

    async def tell_less(self, answers: Sequence[tuple[KeptAnswer, Mapping[str, object]]]) -> None:
        """Keep less of answers; of one that is empty it is only known that the request was carried out."""
        k = tables.idempotency_keys.c
        place = sa.tuple_(k.key_id, k.idempotency_key)
        empty = [(kept.key_id, kept.name) for kept, answer in answers if not answer]
        for start in range(0, len(empty), MANY):
            these = (k.tenant_id == self._tenant, place.in_(empty[start : start + MANY]))
            await self._session.execute(sa.update(tables.idempotency_keys).where(*these).values(answer={}))
        for kept, answer in answers:
            if answer:  # that of the request that stored the turn, and hardly another one
                here = (k.tenant_id == self._tenant, k.key_id == kept.key_id, k.idempotency_key == kept.name)
                await self._session.execute(sa.update(tables.idempotency_keys).where(*here).values(answer=dict(answer)))

    async def tombstoned_keys(self, user_id: str, where: str, keys: Collection[str]) -> frozenset[str]:
        """Those of some keys that are buried."""
        b = tables.tombstones.c
        wanted, found = sorted(keys), set[str]()
        for start in range(0, len(wanted), MANY):
            statement = sa.select(b.value_hash).where(
                b.tenant_id == self._tenant, b.scope == user_id, b.category == where,
                b.value_hash.in_(wanted[start : start + MANY]),
            )  # fmt: skip
            found.update((await self._session.execute(statement)).scalars())
        return frozenset(found)
