"""Pairs of memories that were compared, and an index over when a user's memories changed."""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import UtcTime

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_TENANT = "nullif(current_setting('memplane.tenant', true), '')"
_EVERY = "(SELECT coalesce(current_setting('memplane.users', true), '') = '')"
_BOUND = "ANY ((SELECT nullif(current_setting('memplane.users', true), '')::text[])::text[])"
_ACTIVE = sa.text("state = 'active'")


def upgrade() -> None:
    op.create_table(
        "pair_checks",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("checked_at", UtcTime(), nullable=False),
        sa.Column("prompt_version", sa.String(length=100)),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", "fingerprint", name="pk_pair_checks"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_pair_checks_tenants"),
    )
    op.create_index("ix_pair_checks_age", "pair_checks", ["tenant_id", "checked_at"])
    op.create_index(
        "ix_memories_updated",
        "memories",
        ["tenant_id", "user_id", "updated_at"],
        postgresql_where=_ACTIVE,
        sqlite_where=_ACTIVE,
    )
    if op.get_context().dialect.name == "postgresql":
        role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON pair_checks TO {role}")
        op.execute("ALTER TABLE pair_checks ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE pair_checks FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY tenant_isolation ON pair_checks USING (tenant_id = {_TENANT})")
        op.execute(f"CREATE POLICY user_isolation ON pair_checks AS RESTRICTIVE USING ({_EVERY} OR user_id = {_BOUND})")


def downgrade() -> None:
    op.drop_index("ix_memories_updated", "memories")
    op.drop_table("pair_checks")
