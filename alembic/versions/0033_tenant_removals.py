"""Tenants that were removed: a receipt for each, by which every transaction of the tenant is refused."""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import Json, UtcTime

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

_TENANT = "nullif(current_setting('memplane.tenant', true), '')"
_REFUSED = """
CREATE FUNCTION public.tenant_refused(name text) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'the tenant was removed' USING ERRCODE = 'MP001';
END $$"""
_MESSAGES = "procrastinate.procrastinate_jobs"


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return  # a SQLite file holds one tenant: it is removed with the file
    op.create_table(
        "tenant_removals",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("counts", Json, nullable=False),
        sa.Column("head", sa.String(length=100), nullable=False),
        sa.Column("unsealed", sa.BigInteger(), nullable=False),
        sa.Column("started_at", UtcTime(), nullable=False),
        sa.Column("finished_at", UtcTime()),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_tenant_removals"),
    )
    role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
    # the application reads them, and neither makes nor undoes one
    op.execute(f"GRANT SELECT ON tenant_removals TO {role}")
    op.execute("ALTER TABLE tenant_removals ENABLE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE tenant_removals FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY tenant_isolation ON tenant_removals USING (tenant_id = {_TENANT})")
    op.execute(
        "CREATE POLICY tenant_listing ON tenant_removals FOR SELECT"
        " USING (current_setting('memplane.listing', true) = 'tenants')"
    )
    op.execute(_REFUSED)
    # the owner removes a tenant's messages, and sees no other's
    op.execute(f"CREATE POLICY tenant_removal ON {_MESSAGES} TO CURRENT_USER USING (args ->> 'tenant_id' = {_TENANT})")


def downgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return
    op.execute(f"DROP POLICY tenant_removal ON {_MESSAGES}")
    op.execute("DROP FUNCTION public.tenant_refused(text)")
    op.drop_table("tenant_removals")
