"""What a tenant's vectors are of, as a transaction on PostgreSQL sees it.

A process remembers it, so that a statement can be made before the answer is there. Each transaction asks anew with its
first statement: where it is not what was remembered, the transaction begins again, or asks again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.session import SqlSession
from memplane.adapters.sql.stores.vectors import vectors_of
from memplane.domain.ranking.embedding_models import InForce

Known = dict[str, InForce]
"""What is remembered, by tenant."""
# served by pk_metadata
_ASKED = "SELECT value FROM metadata WHERE tenant_id = %(tenant)s AND name = 'embedding'"
_ALONE = "SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"
_PATIENCE = "SET LOCAL lock_timeout = 2000"
"""Who waits to be alone keeps every other write of the tenant waiting: not for longer than these milliseconds."""


def active_embedding_statement(tenant: str) -> Statement:
    """The statement that asks for it."""
    return Statement(_ASKED, {"tenant": tenant})


def active_embedding_of(rows: Sequence[Mapping[str, Any] | Sequence[Any]]) -> InForce:
    """What it answers, row by name or by place.

    Raises:
        EmbeddingMismatch: it was recorded in another form.
    """
    return InForce.of(next((row["value"] if isinstance(row, Mapping) else row[0] for row in rows), None))


async def alone(session: SqlSession) -> None:
    """Wait until no other transaction writes vectors of the tenant, and let none begin until this one ends."""
    await session.execute(sa.text(_PATIENCE))
    await session.execute(sa.text(_ALONE), {"name": vectors_of(session.tenant)})
