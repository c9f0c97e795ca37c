"""Column types that mean the same on both databases."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from pgvector import HalfVector
from pgvector.sqlalchemy import HALFVEC
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

POSTGRESQL = "postgresql"


class UtcTime(TypeDecorator[datetime]):
    """An instant: ``timestamptz`` on PostgreSQL, fixed-width UTC text elsewhere; naive times are refused."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The dialect's own type."""
        return sa.DateTime(timezone=True) if dialect.name == POSTGRESQL else sa.String(32)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:  # noqa: ANN401 - SQLAlchemy's signature
        """To the database."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored")
        utc = value.astimezone(UTC)
        return utc if dialect.name == POSTGRESQL else utc.isoformat(timespec="microseconds")

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ANN401 - SQLAlchemy's signature
        """From the database."""
        if value is None:
            return None
        return (value if dialect.name == POSTGRESQL else datetime.fromisoformat(value)).astimezone(UTC)


class TextList(TypeDecorator[tuple[str, ...]]):
    """A list of texts: ``text[]`` on PostgreSQL, JSON elsewhere."""

    impl = sa.JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The dialect's own type."""
        return postgresql.ARRAY(sa.Text) if dialect.name == POSTGRESQL else sa.JSON()

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: Dialect) -> Any:  # noqa: ANN401, ARG002 - SQLAlchemy's signature
        """To the database."""
        return list(value or ())

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[str, ...]:  # noqa: ANN401, ARG002 - SQLAlchemy's signature
        """From the database."""
        return tuple(value or ())


class Embedding(TypeDecorator[NDArray[np.float32]]):
    """A unit vector in half precision: ``halfvec`` on PostgreSQL, little-endian float16 bytes elsewhere.

    The column has no fixed dimension, so that a model with another one can be brought in beside the old; the
    ``metadata`` table names the model and dimension in force.
    """

    impl = sa.LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The dialect's own type."""
        return HALFVEC() if dialect.name == POSTGRESQL else sa.LargeBinary()

    def process_bind_param(self, value: NDArray[np.float32] | None, dialect: Dialect) -> Any:  # noqa: ANN401 - SQLAlchemy's signature
        """To the database."""
        if value is None:
            return None
        return HalfVector(value) if dialect.name == POSTGRESQL else value.astype("<f2").tobytes()

    def process_result_value(self, value: Any, dialect: Dialect) -> NDArray[np.float32] | None:  # noqa: ANN401 - SQLAlchemy's signature
        """From the database."""
        if value is None:
            return None
        if dialect.name == POSTGRESQL:
            return np.asarray(value.to_list() if isinstance(value, HalfVector) else value, dtype=np.float32)
        return np.frombuffer(value, "<f2").astype(np.float32)


Json = sa.JSON().with_variant(postgresql.JSONB(), POSTGRESQL)
"""A JSON object."""

JsonOrNull = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), POSTGRESQL)
"""A JSON value, or SQL NULL for ``None``."""
