"""Consent within a write: proposals, the fields that were decided on, and what corroborates benign ones."""

from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.rows import context_field_of, proposal_of
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import SqlSession
from memplane.application.records import ContextField, Proposal, Signal
from memplane.domain.consent.consent_rules import ProposalState
from memplane.domain.memory.tombstones import value_key

_DECIDED = ("state", "decided_at", "decided_by", "acknowledged_by", "memory_id", "reason", "self_acknowledged")


class SqlConsents:
    """Proposals, decided fields and signals within a transaction."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def propose(self, proposal: Proposal, value_key: str) -> UUID | None:
        """Store a proposal, or note that the open one of the same writer, field and value was asked again.

        One whose words state other fields besides is another one: it may be outdated, and this one may not.

        Returns:
            The id of the open one, or ``None`` when it is new.
        """
        p = tables.consent_proposals.c
        statement = sa.select(tables.consent_proposals).where(
            p.tenant_id == self._tenant,
            p.user_id == proposal.user_id,
            p.state == ProposalState.PENDING,
            p.field == proposal.field,
            p.value_hash == value_key,
            p.actor == proposal.actor,
            p.expires_at > proposal.created_at,
        )
        open_ones = [proposal_of(dict(row)) for row in (await self._session.execute(statement)).mappings()]
        besides = proposal.says_besides()
        there = next((each.id for each in open_ones if each.says_besides() == besides), None)
        if there is None:
            values = {name: getattr(proposal, name) for name in Proposal.__slots__} | {"meta": dict(proposal.meta)}
            await self._session.execute(
                sa.insert(tables.consent_proposals).values(tenant_id=self._tenant, value_hash=value_key, **values)
            )
        else:
            again = sa.update(tables.consent_proposals).where(p.tenant_id == self._tenant, p.id == there)
            await self._session.execute(again.values(asked_at=proposal.created_at, key_id=proposal.key_id))
        return there

    async def lock(self, proposal_id: UUID) -> Proposal | None:
        """A proposal, locked until the transaction ends; or none."""
        p = tables.consent_proposals.c
        statement = sa.select(tables.consent_proposals).where(p.tenant_id == self._tenant, p.id == proposal_id)
        row = (await self._session.execute(statement.with_for_update())).mappings().one_or_none()
        return proposal_of(dict(row)) if row else None

    async def acknowledges_other(self, proposal: Proposal, turn_id: UUID) -> bool:
        """Whether a turn of the proposal's user was taken for the agreement to another one."""
        return await self._any_other(proposal, tables.consent_proposals.c.acknowledged_by == turn_id)

    async def asked_later(self, proposal: Proposal, moment: datetime) -> bool:
        """Whether of what waited at a moment for the user's consent another field or value was asked after this one.

        Of one that was asked again after the moment it is not known when it was asked last before: this one counts as
        asked when it was made, the others as asked later.
        """
        p = tables.consent_proposals.c
        again = proposal.asked_at
        mine = proposal.created_at if again is None or again > moment else again
        asked = sa.func.coalesce(p.asked_at, p.created_at)
        return await self._any_other(
            proposal,
            p.created_at <= moment,
            p.expires_at > moment,
            p.decided_at.is_(None) | (p.decided_at > moment),
            (p.field != proposal.field) | (p.value_hash != value_key(proposal.new_value)),
            (asked > mine) | ((asked == mine) & (p.id > proposal.id)),
        )

    async def _any_other(self, proposal: Proposal, *conditions: sa.ColumnElement[bool]) -> bool:
        p = tables.consent_proposals.c
        statement = sa.select(p.id).where(
            p.tenant_id == self._tenant, p.user_id == proposal.user_id, p.id != proposal.id, *conditions
        )
        return (await self._session.execute(statement.limit(1))).first() is not None

    async def decide(self, decided: Proposal) -> None:
        """Store what became of a locked proposal."""
        p = tables.consent_proposals.c
        statement = sa.update(tables.consent_proposals).where(p.tenant_id == self._tenant, p.id == decided.id)
        await self._session.execute(statement.values({name: getattr(decided, name) for name in _DECIDED}))

    async def fields(self, user_id: str, field: str) -> list[ContextField]:
        """The values of a field that were decided on, the newest first, whatever became of their memories."""
        c = tables.user_context.c
        statement = sa.select(tables.user_context).where(
            c.tenant_id == self._tenant, c.user_id == user_id, c.field == field
        )
        rows = (await self._session.execute(statement.order_by(c.decided_at.desc()))).mappings()
        return [context_field_of(dict(row)) for row in rows]

    async def keep(self, decided: ContextField, *, alone: bool) -> None:
        """Store a field's value, instead of every other one when it stands alone."""
        c = tables.user_context.c
        values = {name: getattr(decided, name) for name in ContextField.__slots__}
        if alone:
            others = sa.delete(tables.user_context).where(
                c.tenant_id == self._tenant,
                c.user_id == decided.user_id,
                c.field == decided.field,
                c.value_hash != decided.value_hash,
            )
            await self._session.execute(others)
        statement = self._session.insert(tables.user_context).values(tenant_id=self._tenant, **values)
        await self._session.execute(
            statement.on_conflict_do_update(
                index_elements=[c.tenant_id, c.user_id, c.field, c.value_hash],
                set_={name: value for name, value in values.items() if name not in {"user_id", "field", "value_hash"}},
            )
        )

    async def signal(self, signal: Signal) -> None:
        """Note that a turn says a value; the same turn counts once."""
        values = {name: getattr(signal, name) for name in Signal.__slots__}
        statement = self._session.insert(tables.context_signals).values(tenant_id=self._tenant, **values)
        await self._session.execute(statement.on_conflict_do_nothing())

    async def signals(self, user_id: str, field: str, value_hash: str, since: datetime | None) -> list[UUID]:
        """The turns that said a value after a moment."""
        s = tables.context_signals.c
        statement = sa.select(s.turn_id).where(
            s.tenant_id == self._tenant, s.user_id == user_id, s.field == field, s.value_hash == value_hash
        )
        if since is not None:
            statement = statement.where(s.ts > since)
        return list((await self._session.execute(statement.order_by(s.ts))).scalars())
