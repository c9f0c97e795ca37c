"""Events are listed by their ids, on-demand recalls are counted, and threads know which changes were pruned."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_RECALLED = sa.text("op = 'recall_on_demand'")


def upgrade() -> None:
    op.create_index("ix_events_listed", "events", ["tenant_id", "user_id", "id"])
    op.create_index(
        "ix_events_recalled",
        "events",
        ["tenant_id", "user_id", "ts"],
        postgresql_where=_RECALLED,
        sqlite_where=_RECALLED,
    )
    op.add_column("thread_revision", sa.Column("pruned_rev", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("thread_revision", "pruned_rev")
    op.drop_index("ix_events_recalled", "events")
    op.drop_index("ix_events_listed", "events")
