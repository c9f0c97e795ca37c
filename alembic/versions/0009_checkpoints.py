"""Checkpoints: the tables of LangGraph's saver by tenant and user, and a supervisor's state by thread."""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import Json, UtcTime

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "supervisor_checkpoints")
PLACE = ("tenant_id", "user_id", "thread_id", "checkpoint_ns")
# as in 0004: '' is every user
_EVERY = "(SELECT coalesce(current_setting('memplane.users', true), '') = '')"
_BOUND = "ANY ((SELECT nullif(current_setting('memplane.users', true), '')::text[])::text[])"


def upgrade() -> None:
    op.create_table(
        "checkpoints",
        *_place(),
        sa.Column("checkpoint_id", sa.String(length=64), nullable=False),
        sa.Column("parent_checkpoint_id", sa.String(length=64)),
        sa.Column("checkpoint", Json, nullable=False),
        sa.Column("metadata", Json, nullable=False),
        sa.Column("head", sa.Boolean(), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        *_keys("checkpoints", *PLACE, "checkpoint_id"),
    )
    # a lineage has one head, whoever writes
    head = sa.text("head")
    op.create_index(
        "uq_checkpoints_head", "checkpoints", list(PLACE), unique=True, postgresql_where=head, sqlite_where=head
    )
    op.create_table(
        "checkpoint_blobs",
        *_place(),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("blob", sa.LargeBinary()),
        *_keys("checkpoint_blobs", *PLACE, "channel", "version"),
    )
    op.create_table(
        "checkpoint_writes",
        *_place(),
        sa.Column("checkpoint_id", sa.String(length=64), nullable=False),
        sa.Column("task_id", sa.String(length=128), nullable=False),
        sa.Column("task_path", sa.Text(), nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("blob", sa.LargeBinary(), nullable=False),
        *_keys("checkpoint_writes", *PLACE, "checkpoint_id", "task_id", "idx"),
    )
    op.create_table(
        "supervisor_checkpoints",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("thread_id", sa.String(length=255), nullable=False),
        sa.Column("checkpoint_data", Json, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        *_keys("supervisor_checkpoints", "tenant_id", "id"),
        sa.UniqueConstraint(
            "tenant_id", "user_id", "thread_id", name="uq_supervisor_checkpoints_tenant_id_user_id_thread_id"
        ),
    )
    op.create_index("ix_supervisor_checkpoints_thread", "supervisor_checkpoints", ["tenant_id", "thread_id"])
    if op.get_context().dialect.name == "postgresql":
        for table in TABLES:
            _secure(table)


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)


def _place() -> tuple[sa.Column[str], ...]:
    return (
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("thread_id", sa.String(length=255), nullable=False),
        sa.Column("checkpoint_ns", sa.Text(), nullable=False),
    )


def _keys(table: str, *primary: str) -> tuple[sa.Constraint, ...]:
    return (
        sa.PrimaryKeyConstraint(*primary, name=f"pk_{table}"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=f"fk_{table}_tenants"),
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
    op.execute(f"CREATE POLICY user_isolation ON {table} AS RESTRICTIVE USING ({_EVERY} OR user_id = {_BOUND})")
