"""Up to which turn a closed conversation was consolidated, and how many facts were drawn of a user's words in a day."""

import sqlalchemy as sa
from alembic import op

from memplane.adapters.sql.schema.types import UtcTime

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_UNREAD = sa.text("facts_seq < seq")


def upgrade() -> None:
    op.add_column("sessions", sa.Column("facts_seq", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("sessions", sa.Column("facts_after", UtcTime()))
    op.create_index(
        "ix_sessions_unread",
        "sessions",
        ["tenant_id", "user_id", "thread_id"],
        postgresql_where=_UNREAD,
        sqlite_where=_UNREAD,
    )
    op.add_column("token_budgets", sa.Column("drawn", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("token_budgets", "drawn")
    op.drop_index("ix_sessions_unread", "sessions")
    op.drop_column("sessions", "facts_after")
    op.drop_column("sessions", "facts_seq")
