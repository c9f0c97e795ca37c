"""By what the entities of a memory were looked for last, beside the rules of its write."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("memories", sa.Column("enriched_by", sa.String(length=63)))


def downgrade() -> None:
    op.drop_column("memories", "enriched_by")
