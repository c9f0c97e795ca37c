"""An index by which the memory of a user that was recorded last is found, whatever its id."""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_memories_recorded", "memories", ["tenant_id", "user_id", "recorded_at"])


def downgrade() -> None:
    op.drop_index("ix_memories_recorded", "memories")
