"""The chain over a tenant's history, within a transaction, on both databases."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import SqlSession
from memplane.application.operations.audit_chain_ports import SealState
from memplane.domain.errors import StateConflict
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.privacy.audit_chain import ChainEntry, ChainSeal, Head, seal_entries

_H, _S = tables.history.c, tables.history_seals.c
_ENTRY = [_H[name] for name in ChainEntry.__slots__]
_PUT = (
    sa.update(tables.history)
    .where(_H.tenant_id == sa.bindparam("tenant"), _H.id == sa.bindparam("entry"), _H.position.is_(None))
    .values(
        salt=sa.bindparam("new_salt"),
        payload_hash=sa.bindparam("new_hash"),
        link=sa.bindparam("new_link"),
        position=sa.bindparam("place"),
    )
)
"""Sent with the values of many entries at once."""


class SqlChain:
    """The chain over the history."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def state(self) -> SealState:
        """How far it goes."""
        when = sa.select(sa.func.max(_S.sealed_at)).where(_S.tenant_id == self._tenant)
        sealed_at: datetime | None = (await self._session.execute(when)).scalar_one_or_none()
        left = (
            sa.select(sa.func.count())
            .select_from(tables.history)
            .where(_H.tenant_id == self._tenant, _H.position.is_(None))
        )
        unsealed: int = (await self._session.execute(left)).scalar_one()
        return SealState(await self.head(), sealed_at, unsealed)

    async def head(self) -> Head:
        """Its end."""
        last = sa.select(_H.position, _H.link).where(_H.tenant_id == self._tenant, _H.position.is_not(None))
        row = (await self._session.execute(last.order_by(_H.position.desc()).limit(1))).first()
        return Head() if row is None else Head(row.position, row.link or b"")

    async def at(self, position: int) -> Head:
        """The chain's end, had it that many entries."""
        found = sa.select(_H.link).where(_H.tenant_id == self._tenant, _H.position == position)
        link = (await self._session.execute(found)).scalar_one_or_none()
        return Head() if position == 0 else Head(position, link or b"")

    async def next_unsealed(self, limit: int) -> list[ChainEntry]:
        """Entries that no seal covers, by their ids."""
        statement = sa.select(*_ENTRY).where(_H.tenant_id == self._tenant, _H.position.is_(None))
        rows = await self._session.execute(statement.order_by(_H.id).limit(limit))
        return [_entry_of(dict(row)) for row in rows.mappings()]

    async def seal(self, after: Head, entries: Sequence[ChainEntry], now: datetime) -> int:
        """Put entries at the end of the chain, and seal it; how many.

        Raises:
            Conflict: some of them lie in the chain already.
        """
        links = seal_entries(after, entries)
        if await self._put(after.position + 1, links) != len(links):
            raise StateConflict("others seal the history at this moment; try again")
        row = {
            "tenant_id": self._tenant, "position": after.position + len(links), "entries": len(links),
            "head": links[-1].link, "sealed_at": now,
        }  # fmt: skip
        await self._session.execute(sa.insert(tables.history_seals).values(row))
        return len(links)

    async def _put(self, first: int, links: Sequence[ChainSeal]) -> int:
        rows = [
            {
                "tenant": self._tenant,
                "entry": each.id,
                "place": place,
                "new_salt": each.salt,
                "new_hash": each.payload_hash,
                "new_link": each.link,
            }
            for place, each in enumerate(links, first)
        ]
        return await self._session.rows_changed(_PUT, rows)

    async def entries(self, after: int, limit: int) -> list[ChainEntry]:
        """Entries of the chain in order."""
        statement = sa.select(*_ENTRY).where(_H.tenant_id == self._tenant, _H.position > after)
        rows = await self._session.execute(statement.order_by(_H.position).limit(limit))
        return [_entry_of(dict(row)) for row in rows.mappings()]

    async def seals(self, after: int, limit: int) -> list[Head]:
        """The heads that were sealed in a part of the chain."""
        part = sa.select(_S.position, _S.head).where(_S.tenant_id == self._tenant, _S.position > after)
        rows = await self._session.execute(part.where(_S.position <= after + limit).order_by(_S.position))
        return [Head(row.position, row.head) for row in rows]

    async def last_seal(self) -> Head | None:
        """The last head that was sealed."""
        last = sa.select(_S.position, _S.head).where(_S.tenant_id == self._tenant).order_by(_S.position.desc())
        row = (await self._session.execute(last.limit(1))).first()
        return None if row is None else Head(row.position, row.head)

    async def erasers(self, ids: Collection[UUID]) -> Mapping[UUID, str]:
        """Which of some ids are those of a purge, or of a receipt that the history tells of; and the event."""
        if not ids:
            return {}
        wanted = sorted(ids)
        purges = sa.select(_H.id, _H.event).where(
            _H.tenant_id == self._tenant, _H.id.in_(wanted), _H.event == HistoryEvent.PURGE
        )
        receipts = sa.select(_H.memory_id, _H.event).where(
            _H.tenant_id == self._tenant, _H.memory_id.in_(wanted), _H.event == HistoryEvent.ERASE
        )
        found = {row.id: row.event for row in await self._session.execute(purges)}
        return found | {row.memory_id: row.event for row in await self._session.execute(receipts)}


def _entry_of(row: Mapping[str, Any]) -> ChainEntry:
    return ChainEntry(**row)
