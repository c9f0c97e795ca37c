"""How much of its rate each key has left: shared by all servers, and not worth writing ahead."""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import UtcTime

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return  # a file is one person's: each process counts for itself
    op.create_table(
        "rate_limits",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("key_id", sa.String(length=255), nullable=False),
        sa.Column("tokens", sa.Double(), nullable=False),
        sa.Column("granted", sa.Integer(), nullable=False),
        sa.Column("refilled_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "key_id", name="pk_rate_limits"),
        prefixes=["UNLOGGED"],
    )
    role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON rate_limits TO {role}")
    op.execute("ALTER TABLE rate_limits ENABLE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE rate_limits FORCE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY tenant_isolation ON rate_limits"
        " USING (tenant_id = nullif(current_setting('memplane.tenant', true), ''))"
    )


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.drop_table("rate_limits")
