"""On which days users are active: an absence does not count towards the ages of memories.

What is known of the users that there are is reconstructed from turns, history, events and reads, in stretches without a
long absence, so that the first night after the upgrade forgets nothing that an absence protects.
"""

from datetime import timedelta

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import UtcTime

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_TENANT = "nullif(current_setting('memplane.tenant', true), '')"
_EVERY = "(SELECT coalesce(current_setting('memplane.users', true), '') = '')"
_BOUND = "ANY ((SELECT nullif(current_setting('memplane.users', true), '')::text[])::text[])"
_AWAY = timedelta(days=15)
"""After so long without activity there may be days to subtract, by the shipped policy."""

# what background work leaves is no activity
_STRETCHES = """
WITH seen AS (
    SELECT user_id, recorded_at AS moment FROM turns WHERE tenant_id = :tenant
    UNION SELECT user_id, recorded_at FROM memories
        WHERE tenant_id = :tenant AND source NOT IN ('consolidation', 'reflection')
    UNION SELECT user_id, last_accessed FROM memories WHERE tenant_id = :tenant AND last_accessed IS NOT NULL
    UNION SELECT user_id, last_hit_at FROM memories WHERE tenant_id = :tenant AND last_hit_at IS NOT NULL
    UNION SELECT user_id, ts FROM events WHERE tenant_id = :tenant AND user_id IS NOT NULL AND node <> 'worker'
    UNION SELECT of_user, ts FROM history
        WHERE tenant_id = :tenant AND of_user IS NOT NULL AND actor NOT LIKE 'job:%'
    UNION SELECT user_id, updated_at FROM supervisor_checkpoints WHERE tenant_id = :tenant
), followed AS (
    SELECT user_id, moment, lag(moment) OVER (PARTITION BY user_id ORDER BY moment) AS earlier FROM seen
), numbered AS (
    SELECT user_id, moment,
        sum(CASE WHEN {long} THEN 1 ELSE 0 END) OVER (PARTITION BY user_id ORDER BY moment) AS stretch
    FROM followed
), stretches AS (
    SELECT user_id, min(moment) AS began_at, max(moment) AS last_at FROM numbered GROUP BY user_id, stretch
)
INSERT INTO user_activity (tenant_id, user_id, began_at, last_at, resumed_at)
SELECT :tenant, user_id, began_at, last_at, lead(began_at) OVER (PARTITION BY user_id ORDER BY began_at)
FROM stretches
"""
_LONG = {
    "postgresql": f"moment - earlier > interval '{_AWAY.days} days'",
    "sqlite": f"julianday(moment) - julianday(earlier) > {_AWAY.days}",
}


def upgrade() -> None:
    op.create_table(
        "user_activity",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("began_at", UtcTime(), nullable=False),
        sa.Column("last_at", UtcTime(), nullable=False),
        sa.Column("resumed_at", UtcTime()),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", "began_at", name="pk_user_activity"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_user_activity_tenants"),
    )
    current = sa.text("resumed_at IS NULL")
    op.create_index(
        "uq_user_activity_current", "user_activity", ["tenant_id", "user_id"], unique=True,
        postgresql_where=current, sqlite_where=current,
    )  # fmt: skip
    if op.get_context().dialect.name == "postgresql":
        role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON user_activity TO {role}")
        op.execute("ALTER TABLE user_activity ENABLE ROW LEVEL SECURITY")
        op.execute("ALTER TABLE user_activity FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY tenant_isolation ON user_activity USING (tenant_id = {_TENANT})")
        op.execute(
            f"CREATE POLICY user_isolation ON user_activity AS RESTRICTIVE USING ({_EVERY} OR user_id = {_BOUND})"
        )
    _reconstruct()


def downgrade() -> None:
    op.drop_table("user_activity")


def _reconstruct() -> None:
    """Tenant by tenant: the owner is bound by row-level security as everybody is."""
    connection = op.get_bind()
    name, listing = (sa.text(f"SELECT set_config('memplane.{each}', :value, true)") for each in ("tenant", "listing"))
    bound = connection.dialect.name == "postgresql"
    if bound:
        connection.execute(listing, {"value": "tenants"})
    tenants = list(connection.execute(sa.text("SELECT tenant_id FROM tenants ORDER BY tenant_id")).scalars())
    if bound:
        connection.execute(listing, {"value": ""})
    statement = sa.text(_STRETCHES.format(long=_LONG[connection.dialect.name]))
    for tenant in tenants:
        if bound:
            connection.execute(name, {"value": tenant})
        connection.execute(statement, {"tenant": tenant})
    if bound:
        connection.execute(name, {"value": ""})
