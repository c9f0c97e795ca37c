"""Conversations that were closed, within a transaction."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.rows import TURN_COLUMNS, turn_of
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import SqlSession
from memplane.application.turns.session_records import Closing, Resting, Unread

_TURN = [tables.turns.c[name] for name in TURN_COLUMNS]
_KEY = ("tenant_id", "user_id", "thread_id")


class SqlClosings:
    """What is noted of conversations when they are closed, a row for each."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def resting(self, since: datetime, limit: int, user_id: str | None = None) -> list[Resting]:
        """Conversations, of a user or of all, that have rested since a moment and were not closed as they are."""
        r, s = tables.thread_revision.c, tables.sessions.c
        closed = sa.exists().where(
            s.tenant_id == self._tenant, s.user_id == r.user_id, s.thread_id == r.thread_id, s.seq >= r.turns
        )
        statement = (
            sa.select(r.user_id, r.thread_id, r.turns, r.updated_at)
            .where(r.tenant_id == self._tenant, r.turns > 0, r.updated_at < since, ~closed)
            .order_by(r.user_id, r.thread_id)
            .limit(limit)
        )
        if user_id is not None:
            statement = statement.where(r.user_id == user_id)
        return [Resting(**row) for row in (await self._session.execute(statement)).mappings()]

    async def began_at(self, user_id: str, thread_id: str) -> datetime | None:
        """When the first turn of a conversation was recorded; ``None`` when none is there."""
        t = tables.turns.c
        statement = (
            sa.select(t.recorded_at)
            .where(t.tenant_id == self._tenant, t.user_id == user_id, t.thread_id == thread_id)
            .order_by(t.seq)
            .limit(1)
        )
        found: datetime | None = (await self._session.execute(statement)).scalar_one_or_none()
        return found

    async def find(self, user_id: str, thread_id: str) -> Closing | None:
        """The last closing of a conversation; or none."""
        s = tables.sessions.c
        statement = sa.select(tables.sessions).where(
            s.tenant_id == self._tenant, s.user_id == user_id, s.thread_id == thread_id
        )
        row = (await self._session.execute(statement)).mappings().one_or_none()
        return None if row is None else Closing(**{name: row[name] for name in Closing.__slots__})

    async def keep(self, closing: Closing) -> None:
        """Note a closing, in place of the one before."""
        values = {name: getattr(closing, name) for name in Closing.__slots__}
        statement = self._session.insert(tables.sessions).values(tenant_id=self._tenant, **values)
        changed = {name: value for name, value in values.items() if name not in _KEY}
        await self._session.execute(statement.on_conflict_do_update(index_elements=_KEY, set_=changed))

    async def unread(self, moment: datetime, limit: int, part: int) -> list[Unread]:
        """Closed conversations to go on with by a moment, by their names, each with its next so many turns."""
        s, t = tables.sessions.c, tables.turns.c
        end = sa.case((s.seq < s.facts_seq + part, s.seq), else_=s.facts_seq + part)
        due = (
            sa.select(s.user_id, s.thread_id, s.agent, s.facts_seq.label("seq"), end.label("until"))
            .where(s.tenant_id == self._tenant, s.facts_seq < s.seq)
            .where(sa.or_(s.facts_after.is_(None), s.facts_after <= moment))
            .order_by(s.user_id, s.thread_id)
            .limit(limit)
        )
        found = [Unread(**row) for row in (await self._session.execute(due)).mappings()]
        if not found:
            return []
        parts = sa.or_(
            *(
                sa.and_(t.user_id == each.user_id, t.thread_id == each.thread_id, t.seq > each.seq, t.seq <= each.until)
                for each in found
            )
        )
        said = sa.select(*_TURN).where(t.tenant_id == self._tenant, parts)
        said = said.order_by(t.user_id, t.thread_id, t.seq)
        rows = [turn_of(dict(row)) for row in (await self._session.execute(said)).mappings()]
        turns = {key: tuple(own) for key, own in groupby(rows, key=lambda turn: (turn.user_id, turn.thread_id))}
        return [replace(each, turns=turns.get(each.key, ())) for each in found]

    async def read_to(self, keys: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], int]:
        """Up to which turn closed conversations were consolidated."""
        s = tables.sessions.c
        statement = sa.select(s.user_id, s.thread_id, s.facts_seq).where(*self._these(keys))
        return {(row.user_id, row.thread_id): row.facts_seq for row in await self._session.execute(statement)}

    async def mark_consolidated(self, parts: Sequence[Unread]) -> None:
        """Note that parts of conversations were consolidated."""
        if not parts:
            return
        s = tables.sessions.c
        until = sa.case(
            *[(sa.and_(s.user_id == each.user_id, s.thread_id == each.thread_id), each.until) for each in parts],
            else_=s.facts_seq,
        )
        statement = sa.update(tables.sessions).where(*self._these([each.key for each in parts]))
        await self._session.execute(statement.values(facts_seq=until, facts_after=None))

    async def postpone(self, keys: Sequence[tuple[str, str]], until: datetime) -> None:
        """Let closed conversations not be gone on with before a moment."""
        if keys:
            await self._session.execute(sa.update(tables.sessions).where(*self._these(keys)).values(facts_after=until))

    async def remaining(self, turn_ids: Sequence[UUID]) -> frozenset[UUID]:
        """Those of some turns that are there."""
        t = tables.turns.c
        statement = sa.select(t.id).where(t.tenant_id == self._tenant, t.id.in_(sorted(turn_ids)))
        return frozenset((await self._session.execute(statement)).scalars())

    def _these(self, keys: Iterable[tuple[str, str]]) -> tuple[sa.ColumnElement[bool], ...]:
        s = tables.sessions.c
        return s.tenant_id == self._tenant, sa.tuple_(s.user_id, s.thread_id).in_(sorted(keys))
