"""Checkpoints of graphs: LangGraph's own tables for PostgreSQL, keyed by tenant and user, and a supervisor's state.

The columns of the first three, and what stands in them, are those of `langgraph-checkpoint-postgres`. Added are the
tenant, the user, which checkpoint is the head of its lineage, and when and by which key a checkpoint was stored.
"""

import sqlalchemy as sa

from memplane.adapters.sql.schema.columns import (
    count_column,
    id_column,
    metadata,
    name_column,
    tenant_column,
    time_column,
    to_tenant,
)
from memplane.adapters.sql.schema.types import Json


def _place() -> tuple[sa.Column[str], ...]:
    """Where a checkpoint belongs; the namespace is that of a subgraph, '' for the graph itself."""
    return (
        tenant_column(),
        name_column("user_id", nullable=False),
        name_column("thread_id", nullable=False),
        sa.Column("checkpoint_ns", sa.Text, nullable=False),
    )


_PLACE = ("tenant_id", "user_id", "thread_id", "checkpoint_ns")

checkpoints = sa.Table(
    "checkpoints",
    metadata,
    *_place(),
    sa.Column("checkpoint_id", sa.String(64), nullable=False),
    sa.Column("parent_checkpoint_id", sa.String(64)),
    sa.Column("checkpoint", Json, nullable=False),
    sa.Column("metadata", Json, nullable=False),
    sa.Column("head", sa.Boolean, nullable=False),
    time_column("created_at", nullable=False),
    name_column("key_id"),  # what saved it; the version before notes none
    sa.PrimaryKeyConstraint(*_PLACE, "checkpoint_id"),
    to_tenant(),
    sa.Index("ix_checkpoints_by_key", "tenant_id", "key_id", "created_at"),
)
_IS_HEAD = sa.text("head")
sa.Index(
    "uq_checkpoints_head",
    *(checkpoints.c[name] for name in _PLACE),
    unique=True,
    postgresql_where=_IS_HEAD,
    sqlite_where=_IS_HEAD,
)

checkpoint_blobs = sa.Table(
    "checkpoint_blobs",
    metadata,
    *_place(),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("version", sa.String(64), nullable=False),
    sa.Column("type", sa.String(32), nullable=False),
    sa.Column("blob", sa.LargeBinary),
    sa.PrimaryKeyConstraint(*_PLACE, "channel", "version"),
    to_tenant(),
)

checkpoint_writes = sa.Table(
    "checkpoint_writes",
    metadata,
    *_place(),
    sa.Column("checkpoint_id", sa.String(64), nullable=False),
    sa.Column("task_id", sa.String(128), nullable=False),
    sa.Column("task_path", sa.Text, nullable=False),
    sa.Column("idx", sa.Integer, nullable=False),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("type", sa.String(32), nullable=False),
    sa.Column("blob", sa.LargeBinary, nullable=False),
    # no reference to the checkpoint: a run saves in the background, and a task's writes may come first
    sa.PrimaryKeyConstraint(*_PLACE, "checkpoint_id", "task_id", "idx"),
    to_tenant(),
)

supervisor_checkpoints = sa.Table(
    "supervisor_checkpoints",
    metadata,
    tenant_column(),
    id_column(),
    name_column("user_id", nullable=False),
    name_column("thread_id", nullable=False),
    sa.Column("checkpoint_data", Json, nullable=False),
    count_column("version"),
    time_column("created_at", nullable=False),
    time_column("updated_at", nullable=False),
    name_column("key_id"),  # what changed it last
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    sa.UniqueConstraint("tenant_id", "user_id", "thread_id"),
    to_tenant(),
    sa.Index("ix_supervisor_checkpoints_thread", "tenant_id", "thread_id"),
    sa.Index("ix_supervisor_checkpoints_by_key", "tenant_id", "key_id", "updated_at"),
)
