"""When a memory was said last; no interval that is empty; and an index of possible conflicts.

What was wrong all along had an end at its beginning. It has no end instead.
"""

import sqlalchemy as sa
from alembic import op

from memplane.adapters.sql.schema.types import UtcTime

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_WAITS = sa.text("relation_type = 'possible_conflict'")


def upgrade() -> None:
    op.add_column("memories", sa.Column("asserted_at", UtcTime()))
    op.create_index(
        "ix_relations_conflicts", "relations", ["tenant_id", "id"], postgresql_where=_WAITS, sqlite_where=_WAITS
    )
    _change(
        "UPDATE memories SET valid_until = NULL"
        " WHERE superseded_at IS NOT NULL AND valid_from IS NOT NULL AND valid_until <= valid_from"
    )


def downgrade() -> None:
    _change(
        "UPDATE memories SET valid_from = coalesce(valid_from, recorded_at),"
        " valid_until = coalesce(valid_from, recorded_at)"
        " WHERE superseded_at IS NOT NULL AND valid_until IS NULL"
    )
    op.drop_index("ix_relations_conflicts", "relations")
    op.drop_column("memories", "asserted_at")


def _change(statement: str) -> None:
    """Change rows of every tenant: the owner is bound by row-level security, too."""
    bound = op.get_context().dialect.name == "postgresql"
    if bound:
        op.execute("ALTER TABLE memories NO FORCE ROW LEVEL SECURITY")
    op.execute(statement)
    if bound:
        op.execute("ALTER TABLE memories FORCE ROW LEVEL SECURITY")
