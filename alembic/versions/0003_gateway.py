"""What the write gateway keeps: how far a memory's writer was trusted, and proposals that wait for consent."""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import Json, UtcTime

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("memories", sa.Column("authority", sa.SmallInteger(), nullable=False, server_default="3"))
    _authority_by_store()
    op.create_table(
        "consent_proposals",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("field", sa.String(length=63), nullable=False),
        sa.Column("old_value", sa.Text()),
        sa.Column("new_value", sa.Text(), nullable=False),
        sa.Column("value_hash", sa.String(length=64), nullable=False),
        sa.Column("evidence", sa.Uuid()),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("policy_hash", sa.String(length=80), nullable=False),
        sa.Column("meta", Json, nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("expires_at", UtcTime(), nullable=False),
        sa.Column("decided_at", UtcTime()),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_consent_proposals"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_consent_proposals_tenants"),
    )
    op.create_index("ix_consent_proposals_user", "consent_proposals", ["tenant_id", "user_id", "state", "id"])
    past = sa.text("external_id IS NOT NULL AND state IN ('superseded', 'archived')")
    op.create_index(
        "ix_memories_external_past",
        "memories",
        ["tenant_id", "user_id", "external_id"],
        postgresql_where=past,
        sqlite_where=past,
    )
    if op.get_context().dialect.name == "postgresql":
        _secure("consent_proposals")
    else:
        _scope_index("expires_at, valid_until, version")


def _authority_by_store() -> None:
    """How far the writers of older memories were trusted is not known; their store shows the least that it was."""
    forced = op.get_context().dialect.name == "postgresql"  # even their owner sees no rows without a tenant
    if forced:
        op.execute("ALTER TABLE memories NO FORCE ROW LEVEL SECURITY")
    op.execute("UPDATE memories SET authority = CASE visibility WHEN 'private' THEN 3 WHEN 'shared' THEN 2 ELSE 1 END")
    if forced:
        op.execute("ALTER TABLE memories FORCE ROW LEVEL SECURITY")


def _scope_index(last: str) -> None:
    """SQLite reads a whole scope from this index, without touching the rows."""
    op.execute("DROP INDEX ix_memories_scope")
    op.execute(
        "CREATE INDEX ix_memories_scope ON memories"
        f" (tenant_id, user_id, state, trust_state, category, visibility, min_trust, {last})"
    )


def _secure(table: str) -> None:
    role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {role}")
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    op.execute(
        f"CREATE POLICY tenant_isolation ON {table}"
        " USING (tenant_id = nullif(current_setting('memplane.tenant', true), ''))"
    )


def downgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        _scope_index("expires_at, version")
    op.drop_index("ix_memories_external_past", "memories")
    op.drop_table("consent_proposals")
    op.drop_column("memories", "authority")
