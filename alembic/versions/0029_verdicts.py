"""Which verdict a tombstone belongs to, and what it was given on, so that a verdict can be lifted as a whole."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

# what one person rejected at one moment is one verdict; what an erasure left belongs to none
_GROUP = """
UPDATE tombstones SET verdict_id = (
    SELECT first.id FROM tombstones AS first
    WHERE first.tenant_id = tombstones.tenant_id AND first.scope = tombstones.scope
      AND first.reason = tombstones.reason AND first.actor = tombstones.actor AND first.ts = tombstones.ts
    ORDER BY first.id LIMIT 1)
WHERE reason <> 'erased'"""


def upgrade() -> None:
    op.add_column("tombstones", sa.Column("verdict_id", sa.Uuid()))
    op.add_column("tombstones", sa.Column("subject_id", sa.Uuid()))
    op.create_index("ix_tombstones_verdict", "tombstones", ["tenant_id", "verdict_id", "id"])
    bound = op.get_context().dialect.name == "postgresql"
    if bound:
        op.execute("ALTER TABLE tombstones NO FORCE ROW LEVEL SECURITY")
    op.execute(_GROUP)
    if bound:
        op.execute("ALTER TABLE tombstones FORCE ROW LEVEL SECURITY")


def downgrade() -> None:
    op.drop_index("ix_tombstones_verdict", "tombstones")
    op.drop_column("tombstones", "subject_id")
    op.drop_column("tombstones", "verdict_id")
