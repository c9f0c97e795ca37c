"""SQLite reads a whole scope from its index: the type of a memory, by which procedures stay out, is in it."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_SCOPE = "tenant_id, user_id, state, trust_state, category, visibility, min_trust, expires_at, valid_until, version"


def upgrade() -> None:
    _index(f"{_SCOPE}, type")


def downgrade() -> None:
    _index(_SCOPE)


def _index(columns: str) -> None:
    if op.get_context().dialect.name == "sqlite":
        op.execute("DROP INDEX ix_memories_scope")
        op.execute(f"CREATE INDEX ix_memories_scope ON memories ({columns})")
