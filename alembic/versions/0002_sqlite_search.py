"""What SQLite alone needs to search: indexes that hold the whole scope predicate, and counts of changes."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

REMOVED = "CREATE TRIGGER {name} AFTER DELETE ON {table} BEGIN {count}, removals = removals + 1; END"
ADDED = "CREATE TRIGGER {name} AFTER INSERT ON {table} BEGIN {count}; END"
CHANGED = "CREATE TRIGGER {name} AFTER UPDATE OF version ON {table} BEGIN {count}; END"
COUNT = "UPDATE search_epoch SET changes = changes + 1"
TRIGGERS = {
    name: form.format(name=name, table=table, count=COUNT)
    for name, form, table in (
        ("memories_removed", REMOVED, "memories"),
        ("memories_added", ADDED, "memories"),
        ("memories_changed", CHANGED, "memories"),
        ("turns_removed", REMOVED, "turns"),
        ("turns_added", ADDED, "turns"),
    )
}
SCOPES = {
    "ix_memories_scope": "memories (tenant_id, user_id, state, trust_state, category, visibility, min_trust,"
    " expires_at, version)",
    "ix_turns_scope": "turns (tenant_id, user_id)",
}


def upgrade() -> None:
    if op.get_context().dialect.name != "sqlite":
        return
    for name, columns in SCOPES.items():
        op.execute(f"CREATE INDEX {name} ON {columns}")
    # who remembers rows must hear of changes; a rowid is even given out again after its row was removed
    op.execute(
        "CREATE TABLE search_epoch"
        " (one INTEGER PRIMARY KEY CHECK (one = 1), removals INTEGER NOT NULL, changes INTEGER NOT NULL)"
    )
    op.execute("INSERT INTO search_epoch VALUES (1, 0, 0)")
    for trigger in TRIGGERS.values():
        op.execute(trigger)


def downgrade() -> None:
    if op.get_context().dialect.name != "sqlite":
        return
    for name in TRIGGERS:
        op.execute(f"DROP TRIGGER {name}")
    op.execute("DROP TABLE search_epoch")
    for name in SCOPES:
        op.execute(f"DROP INDEX {name}")
