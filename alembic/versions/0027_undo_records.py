"""What each change changed, so that the changes of one key or agent can be taken back."""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import Json, JsonOrNull, UtcTime

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_TENANT = "nullif(current_setting('memplane.tenant', true), '')"
_EVERY = "(SELECT coalesce(current_setting('memplane.users', true), '') = '')"
_BOUND = "ANY ((SELECT nullif(current_setting('memplane.users', true), '')::text[])::text[])"


def upgrade() -> None:
    op.create_table(
        "undo_records",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("about", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("key_id", sa.String(length=255)),
        sa.Column("changes", Json, nullable=False),
        sa.Column("said", JsonOrNull),
        sa.Column("ts", UtcTime(), nullable=False),
        sa.Column("reverted_by", sa.Uuid()),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_undo_records"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_undo_records_tenants"),
    )
    op.create_index("ix_undo_records_about", "undo_records", ["tenant_id", "about", "id"])
    op.create_index("ix_undo_records_user", "undo_records", ["tenant_id", "user_id", "id"])
    if op.get_context().dialect.name == "postgresql":
        role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON undo_records TO {role}")
        op.execute("ALTER TABLE undo_records ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE undo_records FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY tenant_isolation ON undo_records USING (tenant_id = {_TENANT})")
        op.execute(
            f"CREATE POLICY user_isolation ON undo_records AS RESTRICTIVE USING ({_EVERY} OR user_id = {_BOUND})"
        )


def downgrade() -> None:
    op.drop_table("undo_records")
