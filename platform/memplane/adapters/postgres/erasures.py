"""Erasing and sealing on PostgreSQL, where the application may not change history: its owner's functions do."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from memplane.adapters.sql.stores.audit_chain import SqlChain
from memplane.adapters.sql.stores.erasures import SqlErasures
from memplane.adapters.sql.stores.memory_stores import SqlJournal
from memplane.application.erasure.erasure_ports import Counts
from memplane.domain.privacy.audit_chain import ChainSeal

_FORGET = sa.text("SELECT history_erased(:receipt, :ids, :most)").bindparams(
    sa.bindparam("ids", type_=ARRAY(sa.Uuid()))
)
_EVERYBODY = sa.text(
    "INSERT INTO unit_removals (tenant_id, user_id, removed_in)"
    " VALUES (:tenant, '', pg_current_xact_id()::text::bigint)"
    " ON CONFLICT (tenant_id, user_id) DO UPDATE SET removed_in = excluded.removed_in"
)
_NOBODY = sa.text("DELETE FROM unit_removals WHERE tenant_id = :tenant AND user_id = :user")


_FORGET_PURGED = sa.text("SELECT history_purged(:ids)").bindparams(sa.bindparam("ids", type_=ARRAY(sa.Uuid())))


class PostgresJournal(SqlJournal):
    """History and operational events."""

    async def forget(self, purges: Sequence[UUID]) -> None:
        """Take the words of memories that are gone out of the history, by the entries that tell of their purge."""
        await self._session.execute(_FORGET_PURGED, {"ids": list(purges)})


_SEAL = sa.text("SELECT history_sealed(:ids, :salts, :hashes, :links, :first)").bindparams(
    sa.bindparam("ids", type_=ARRAY(sa.Uuid())),
    *(sa.bindparam(name, type_=ARRAY(sa.LargeBinary())) for name in ("salts", "hashes", "links")),
)


class PostgresChain(SqlChain):
    """The chain over the history."""

    async def _put(self, first: int, links: Sequence[ChainSeal]) -> int:
        values = {
            "ids": [each.id for each in links],
            "salts": [each.salt for each in links],
            "hashes": [each.payload_hash for each in links],
            "links": [each.link for each in links],
            "first": first,
        }
        found: int = (await self._session.execute(_SEAL, values)).scalar_one()
        return found


class PostgresErasures(SqlErasures):
    """Receipts, keyed tombstones, and whatever there is of one user."""

    async def forget_history(self, receipt: UUID, memory_ids: Sequence[UUID], limit: int) -> int:
        """Take the words of a user out of the history, of some memories and of others; how many entries."""
        values = {"receipt": receipt, "ids": list(memory_ids), "most": limit}
        found: int = (await self._session.execute(_FORGET, values)).scalar_one()
        return found

    async def finish(self, user_id: str, now: datetime) -> Counts:
        """Remove what there is one of for a thread or a user, once the rest is gone."""
        counts = await super().finish(user_id, now)
        # the name goes; that somebody's rows were removed is told to every remembered scope of the tenant
        await self._session.execute(_EVERYBODY, {"tenant": self._tenant})
        await self._session.execute(_NOBODY, {"tenant": self._tenant, "user": user_id})
        return counts
