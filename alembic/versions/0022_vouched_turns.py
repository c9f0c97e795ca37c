"""Which key recorded a turn or proposed a change, whether the turn is vouched for, and the scope `turns:user` of keys.

Turns that are there stay vouched: they were recorded under the former rule. Keys that could record turns get the scope.
"""

import sqlalchemy as sa
from alembic import op

from memplane.adapters.sql.schema.types import UtcTime

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

# Turns are private and take writing: which levels may write there, and for which agent, is the policy's to say and may
# change, so that every level that can be let write gets the scope. What the policy refuses a key stays refused.
_GRANT = """
UPDATE api_keys SET user_turns = true
 WHERE CAST(scopes AS TEXT) LIKE '%memory:write%' AND trust <> 'public' AND revoked_at IS NULL
"""


def upgrade() -> None:
    op.add_column("turns", sa.Column("key_id", sa.String(length=255)))
    op.add_column("turns", sa.Column("vouched", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.add_column("consent_proposals", sa.Column("key_id", sa.String(length=255)))
    op.add_column("consent_proposals", sa.Column("asked_at", UtcTime()))
    op.add_column(
        "consent_proposals", sa.Column("self_acknowledged", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column("api_keys", sa.Column("user_turns", sa.Boolean(), nullable=False, server_default=sa.false()))
    postgres = op.get_context().dialect.name == "postgresql"
    if postgres:  # forced row-level security binds the owner too
        op.execute("ALTER TABLE api_keys NO FORCE ROW LEVEL SECURITY")
    op.execute(_GRANT)
    if postgres:
        op.execute("ALTER TABLE api_keys FORCE ROW LEVEL SECURITY")


def downgrade() -> None:
    op.drop_column("api_keys", "user_turns")
    for name in ("self_acknowledged", "asked_at", "key_id"):
        op.drop_column("consent_proposals", name)
    for name in ("vouched", "key_id"):
        op.drop_column("turns", name)
