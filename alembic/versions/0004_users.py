"""Row-level security by user: a key that is bound to users reaches their rows alone, whatever a statement asks for."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# each setting is looked at once for a statement, not for each row; '' is every user, as after a commit
_EVERY = "(SELECT coalesce(current_setting('memplane.users', true), '') = '')"
_BOUND = "ANY ((SELECT nullif(current_setting('memplane.users', true), '')::text[])::text[])"
COMMANDS = ("SELECT", "UPDATE", "DELETE")
OWNED = {
    "memories": "user_id",
    "turns": "user_id",
    "thread_revision": "user_id",
    "change_log": "user_id",
    "entities": "user_id",
    "events": "user_id",
    "consent_proposals": "user_id",
    "tombstones": "scope",
}
"""Tables with the name of the user, and its column."""
BELONGING = {
    "history": (("memories", "memory_id"),),
    "memory_entities": (("memories", "memory_id"), ("entities", "entity_id")),
    "relations": (("memories", "from_id"), ("memories", "to_id")),
    "entity_aliases": (("entities", "entity_id"),),
}
"""Tables whose rows belong to rows of another, which the same rule covers."""


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return
    for table, column in OWNED.items():
        op.execute(f"CREATE POLICY user_isolation ON {table} AS RESTRICTIVE USING ({_EVERY} OR {column} = {_BOUND})")
    for table, owners in BELONGING.items():
        there = (
            f"EXISTS (SELECT 1 FROM {owner} o WHERE o.tenant_id = {table}.tenant_id AND o.id = {table}.{key})"  # noqa: S608 - our own names
            for owner, key in owners
        )
        condition = f"{_EVERY} OR ({' AND '.join(there)})"
        # not for INSERT: a new row comes in one statement with the row that it belongs to, which would not be seen yet
        for command in COMMANDS:
            op.execute(
                f"CREATE POLICY user_{command.lower()} ON {table} AS RESTRICTIVE FOR {command} USING ({condition})"
            )
    op.execute(
        "CREATE POLICY caller_isolation ON idempotency_keys AS RESTRICTIVE"
        f" USING ({_EVERY} OR key_id = (SELECT current_setting('memplane.caller', true)))"
    )


def downgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return
    for table in OWNED:
        op.execute(f"DROP POLICY user_isolation ON {table}")
    for table in BELONGING:
        for command in COMMANDS:
            op.execute(f"DROP POLICY user_{command.lower()} ON {table}")
    op.execute("DROP POLICY caller_isolation ON idempotency_keys")
