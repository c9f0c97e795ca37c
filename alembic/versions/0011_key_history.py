"""What was done to API keys, by whom: rows that the application adds, and neither changes nor deletes."""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import Json, UtcTime

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "key_history",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("key_id", sa.String(length=32), nullable=False),
        sa.Column("event", sa.String(length=16), nullable=False),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("by_key", sa.String(length=255)),
        sa.Column("meta", Json, nullable=False),
        sa.Column("ts", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_key_history"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "key_id"], ["api_keys.tenant_id", "api_keys.key_id"], name="fk_key_history_api_keys"
        ),
    )
    op.create_index("ix_key_history_key", "key_history", ["tenant_id", "key_id", "id"])
    if op.get_context().dialect.name == "postgresql":
        role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
        op.execute(f"GRANT SELECT, INSERT ON key_history TO {role}")
        op.execute("ALTER TABLE key_history ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE key_history FORCE ROW LEVEL SECURITY")
        op.execute(
            "CREATE POLICY tenant_isolation ON key_history"
            " USING (tenant_id = nullif(current_setting('memplane.tenant', true), ''))"
        )


def downgrade() -> None:
    op.drop_table("key_history")
