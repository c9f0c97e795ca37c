"""The work of the night: what of it was done, who is at it, and the names of the tenants for whom it is done."""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import Json, UtcTime

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "job_runs",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("period", sa.String(length=10), nullable=False),
        sa.Column("as_of", UtcTime(), nullable=False),
        sa.Column("worker", sa.String(length=64)),
        sa.Column("lease_until", UtcTime()),
        sa.Column("place", sa.String(length=300)),
        sa.Column("counts", Json, nullable=False),
        sa.Column("started_at", UtcTime(), nullable=False),
        sa.Column("finished_at", UtcTime()),
        sa.PrimaryKeyConstraint("tenant_id", "name", "period", name="pk_job_runs"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_job_runs_tenants"),
    )
    if op.get_context().dialect.name == "postgresql":
        role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON job_runs TO {role}")
        op.execute("ALTER TABLE job_runs ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE job_runs FORCE ROW LEVEL SECURITY")
        op.execute(
            "CREATE POLICY tenant_isolation ON job_runs"
            " USING (tenant_id = nullif(current_setting('memplane.tenant', true), ''))"
        )
        # whoever does the work of the night has to know for whom: a transaction that asks sees the names
        op.execute(
            "CREATE POLICY tenant_listing ON tenants FOR SELECT"
            " USING (current_setting('memplane.listing', true) = 'tenants')"
        )


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute("DROP POLICY tenant_listing ON tenants")
    op.drop_table("job_runs")
