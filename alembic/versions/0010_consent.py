"""Consent: what became of a proposal, the decided fields of each user, and what corroborates the others."""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import UtcTime

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_EVERY = "(SELECT coalesce(current_setting('memplane.users', true), '') = '')"
_BOUND = "ANY ((SELECT nullif(current_setting('memplane.users', true), '')::text[])::text[])"
_DECIDED = ("category", "decided_by", "acknowledged_by", "memory_id", "reason")


def upgrade() -> None:
    # with a default: the version before, which knows no other category of the profile, goes on proposing
    op.add_column(
        "consent_proposals", sa.Column("category", sa.String(length=63), nullable=False, server_default="profile")
    )
    op.add_column("consent_proposals", sa.Column("decided_by", sa.String(length=255)))
    op.add_column("consent_proposals", sa.Column("acknowledged_by", sa.Uuid()))
    op.add_column("consent_proposals", sa.Column("memory_id", sa.Uuid()))
    op.add_column("consent_proposals", sa.Column("reason", sa.String(length=63)))
    op.create_table(
        "user_context",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("field", sa.String(length=63), nullable=False),
        sa.Column("value_hash", sa.String(length=64), nullable=False),
        sa.Column("field_value", sa.Text(), nullable=False),
        sa.Column("category", sa.String(length=63), nullable=False),
        sa.Column("memory_id", sa.Uuid(), nullable=False),
        sa.Column("proposal_id", sa.Uuid()),
        sa.Column("evidence", sa.Uuid()),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("policy_hash", sa.String(length=80), nullable=False),
        sa.Column("decided_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", "field", "value_hash", name="pk_user_context"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_user_context_tenants"),
    )
    op.create_table(
        "context_signals",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("field", sa.String(length=63), nullable=False),
        sa.Column("value_hash", sa.String(length=64), nullable=False),
        sa.Column("turn_id", sa.Uuid(), nullable=False),
        sa.Column("memory_id", sa.Uuid(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("ts", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", "field", "value_hash", "turn_id", name="pk_context_signals"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_context_signals_tenants"),
    )
    if op.get_context().dialect.name == "postgresql":
        for table in ("user_context", "context_signals"):
            _secure(table)


def _secure(table: str) -> None:
    role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {role}")
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    op.execute(
        f"CREATE POLICY tenant_isolation ON {table}"
        " USING (tenant_id = nullif(current_setting('memplane.tenant', true), ''))"
    )
    op.execute(f"CREATE POLICY user_isolation ON {table} AS RESTRICTIVE USING ({_EVERY} OR user_id = {_BOUND})")


def downgrade() -> None:
    op.drop_table("context_signals")
    op.drop_table("user_context")
    for column in reversed(_DECIDED):
        op.drop_column("consent_proposals", column)
