"""Conversations that were closed: when, up to which turn, and the memory that sums each of them up."""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import UtcTime

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_TENANT = "nullif(current_setting('memplane.tenant', true), '')"
_EVERY = "(SELECT coalesce(current_setting('memplane.users', true), '') = '')"
_BOUND = "ANY ((SELECT nullif(current_setting('memplane.users', true), '')::text[])::text[])"


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("thread_id", sa.String(length=255), nullable=False),
        sa.Column("agent", sa.String(length=255), nullable=False),
        sa.Column("first_seen", UtcTime(), nullable=False),
        sa.Column("closed_at", UtcTime(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("summary_id", sa.Uuid()),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", "thread_id", name="pk_sessions"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id", "thread_id"],
            ["thread_revision.tenant_id", "thread_revision.user_id", "thread_revision.thread_id"],
            name="fk_sessions_thread_revision",
        ),
    )
    if op.get_context().dialect.name == "postgresql":
        role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON sessions TO {role}")
        op.execute("ALTER TABLE sessions ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE sessions FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY tenant_isolation ON sessions USING (tenant_id = {_TENANT})")
        op.execute(f"CREATE POLICY user_isolation ON sessions AS RESTRICTIVE USING ({_EVERY} OR user_id = {_BOUND})")


def downgrade() -> None:
    op.drop_table("sessions")
