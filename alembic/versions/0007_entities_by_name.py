"""Entities are found by their name alone, of whatever kind they are."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_entities_name", "entities", ["tenant_id", "user_id", "name_key"])


def downgrade() -> None:
    op.drop_index("ix_entities_name", table_name="entities")
