"""What a language model took: by tenant, user and day, and of each run of a job."""

import sqlalchemy as sa
from alembic import context, op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_TENANT = "nullif(current_setting('memplane.tenant', true), '')"
_EVERY = "(SELECT coalesce(current_setting('memplane.users', true), '') = '')"
_BOUND = "ANY ((SELECT nullif(current_setting('memplane.users', true), '')::text[])::text[])"


def _tokens(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False, server_default="0")


def upgrade() -> None:
    op.create_table(
        "token_budgets",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        _tokens("reserved"),
        _tokens("input_tokens"),
        _tokens("output_tokens"),
        sa.PrimaryKeyConstraint("tenant_id", "day", "user_id", name="pk_token_budgets"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_token_budgets_tenants"),
    )
    op.create_index("ix_token_budgets_user", "token_budgets", ["tenant_id", "user_id"])
    op.add_column("job_runs", _tokens("input_tokens"))
    op.add_column("job_runs", _tokens("output_tokens"))
    op.add_column("job_runs", sa.Column("cost", sa.Float(), nullable=False, server_default="0"))
    op.add_column("job_runs", sa.Column("skipped", sa.String(length=32)))
    if op.get_context().dialect.name == "postgresql":
        role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON token_budgets TO {role}")
        op.execute("ALTER TABLE token_budgets ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE token_budgets FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY tenant_isolation ON token_budgets USING (tenant_id = {_TENANT})")
        op.execute(
            f"CREATE POLICY user_isolation ON token_budgets AS RESTRICTIVE USING ({_EVERY} OR user_id = {_BOUND})"
        )


def downgrade() -> None:
    for name in ("skipped", "cost", "output_tokens", "input_tokens"):
        op.drop_column("job_runs", name)
    op.drop_table("token_budgets")
