"""Indexes by which what one key or agent wrote is found, and which key saved a checkpoint."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

_CHECKPOINTS = {"checkpoints": "created_at", "supervisor_checkpoints": "updated_at"}
_BESIDE = sa.text("kind <> 'memory'")


def upgrade() -> None:
    stored = op.get_context().dialect.name == "postgresql"  # SQLite adds no stored columns to a table
    key = sa.Column("key_id", sa.String(length=255), sa.Computed("meta ->> 'key'", persisted=stored))
    op.add_column("history", key)
    op.create_index("ix_history_by_key", "history", ["tenant_id", "key_id", "id"])
    op.create_index("ix_history_by_actor", "history", ["tenant_id", "actor", "id"])
    for name, column in (("ix_undo_records_by_key", "key_id"), ("ix_undo_records_by_actor", "actor")):
        columns = ["tenant_id", column, "id"]
        op.create_index(name, "undo_records", columns, postgresql_where=_BESIDE, sqlite_where=_BESIDE)
    op.create_index("ix_turns_by_key", "turns", ["tenant_id", "key_id", "recorded_at"])
    op.create_index("ix_turns_by_agent", "turns", ["tenant_id", "agent_id", "recorded_at"])
    op.create_index("ix_key_history_by_key", "key_history", ["tenant_id", "by_key", "ts"])
    for table, moment in _CHECKPOINTS.items():
        op.add_column(table, sa.Column("key_id", sa.String(length=255)))
        op.create_index(f"ix_{table}_by_key", table, ["tenant_id", "key_id", moment])
    _by_entity("entity_id", "memory_id")  # with both, or SQLite reads all mentions from the key that has them


def _by_entity(*columns: str) -> None:
    op.drop_index("ix_memory_entities_entity", "memory_entities")
    op.create_index("ix_memory_entities_entity", "memory_entities", ["tenant_id", *columns])


def downgrade() -> None:
    _by_entity("entity_id")
    for table in _CHECKPOINTS:
        op.drop_index(f"ix_{table}_by_key", table)
        op.drop_column(table, "key_id")
    op.drop_index("ix_key_history_by_key", "key_history")
    op.drop_index("ix_turns_by_agent", "turns")
    op.drop_index("ix_turns_by_key", "turns")
    op.drop_index("ix_undo_records_by_actor", "undo_records")
    op.drop_index("ix_undo_records_by_key", "undo_records")
    op.drop_index("ix_history_by_actor", "history")
    op.drop_index("ix_history_by_key", "history")
    op.drop_column("history", "key_id")
