"""For which users a job was done, and by which moment: what is done for each of them once in a while."""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import UtcTime

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_TENANT = "nullif(current_setting('memplane.tenant', true), '')"
_EVERY = "(SELECT coalesce(current_setting('memplane.users', true), '') = '')"
_BOUND = "ANY ((SELECT nullif(current_setting('memplane.users', true), '')::text[])::text[])"


def upgrade() -> None:
    op.create_table(
        "job_users",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("done_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", "name", name="pk_job_users"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_job_users_tenants"),
    )
    if op.get_context().dialect.name == "postgresql":
        role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON job_users TO {role}")
        op.execute("ALTER TABLE job_users ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE job_users FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY tenant_isolation ON job_users USING (tenant_id = {_TENANT})")
        op.execute(f"CREATE POLICY user_isolation ON job_users AS RESTRICTIVE USING ({_EVERY} OR user_id = {_BOUND})")


def downgrade() -> None:
    op.drop_table("job_users")
