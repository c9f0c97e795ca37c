"""Columns and keys that tables share."""

from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.schema.types import TextList, UtcTime

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

KEY = sa.String(255)


def tenant_column() -> sa.Column[str]:
    """The tenant, first in every key."""
    return sa.Column("tenant_id", sa.String(63), nullable=False)


def id_column(name: str = "id", *, nullable: bool = False) -> sa.Column[UUID]:
    """A UUID."""
    return sa.Column(name, sa.Uuid(), nullable=nullable)


def time_column(name: str, *, nullable: bool = True) -> sa.Column[object]:
    """A moment, in UTC."""
    return sa.Column(name, UtcTime(), nullable=nullable)


def name_column(name: str, *, nullable: bool = True) -> sa.Column[str]:
    """A name that callers chose."""
    return sa.Column(name, KEY, nullable=nullable)


def count_column(name: str, default: int = 0) -> sa.Column[int]:
    """A whole number with a default."""
    return sa.Column(name, sa.Integer, nullable=False, server_default=str(default))


def tokens_column(name: str) -> sa.Column[int]:
    """A number of a language model's tokens, 0 unless it is said."""
    return sa.Column(name, sa.BigInteger, nullable=False, server_default="0")


def texts_column(name: str) -> sa.Column[object]:
    """A list of texts."""
    return sa.Column(name, TextList(), nullable=False)


def to_tenant() -> sa.ForeignKeyConstraint:
    """A reference to the tenant."""
    return sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"])


def to_memory(column: str, name: str) -> sa.ForeignKeyConstraint:
    """A reference to a memory of the same tenant, which goes when the memory is purged."""
    return sa.ForeignKeyConstraint(
        ["tenant_id", column], ["memories.tenant_id", "memories.id"], name=name, ondelete="CASCADE"
    )


def rows_where(condition: sa.ColumnElement[bool]) -> dict[str, Any]:
    """Which rows an index holds, on both databases."""
    return {"postgresql_where": condition, "sqlite_where": condition}
