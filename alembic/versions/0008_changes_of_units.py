"""When a unit was last changed, in transactions: what is remembered of a scope can then be kept right under writes.

On PostgreSQL alone. A snapshot sees every change of transactions below its horizon; whatever was changed at or above
the horizon of an earlier look may be new to the next one.
"""

import sqlalchemy as sa
from alembic import context, op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

TABLES = ("memories", "turns")
_EVERY = "(SELECT coalesce(current_setting('memplane.users', true), '') = '')"
_BOUND = "ANY ((SELECT nullif(current_setting('memplane.users', true), '')::text[])::text[])"
CHANGED = """
CREATE FUNCTION unit_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.changed_in := pg_current_xact_id()::text::bigint;
  RETURN NEW;
END $$"""
REMOVED = """
CREATE FUNCTION units_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO unit_removals (tenant_id, user_id, removed_in)
  SELECT DISTINCT tenant_id, user_id, pg_current_xact_id()::text::bigint FROM removed ORDER BY tenant_id, user_id
      ON CONFLICT (tenant_id, user_id) DO UPDATE SET removed_in = excluded.removed_in;
  RETURN NULL;
END $$"""


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return
    op.create_table(
        "unit_removals",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("removed_in", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", name="pk_unit_removals"),
    )
    role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
    op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON unit_removals TO {role}")
    op.execute("ALTER TABLE unit_removals ENABLE ROW LEVEL SECURITY")
    op.execute("ALTER TABLE unit_removals FORCE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY tenant_isolation ON unit_removals"
        " USING (tenant_id = nullif(current_setting('memplane.tenant', true), ''))"
    )
    op.execute(f"CREATE POLICY user_isolation ON unit_removals AS RESTRICTIVE USING ({_EVERY} OR user_id = {_BOUND})")
    op.execute(CHANGED)
    op.execute(REMOVED)
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} ADD COLUMN changed_in bigint NOT NULL DEFAULT 0")
        op.create_index(f"ix_{table}_changed", table, ["tenant_id", "user_id", "changed_in"])
        op.execute(
            f"CREATE TRIGGER {table}_added BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION unit_changed()"
        )
        op.execute(
            f"CREATE TRIGGER {table}_removed AFTER DELETE ON {table} REFERENCING OLD TABLE AS removed"
            " FOR EACH STATEMENT EXECUTE FUNCTION units_removed()"
        )
    op.execute(  # what is counted beside, without a version, moves no score
        "CREATE TRIGGER memories_changed BEFORE UPDATE ON memories FOR EACH ROW"
        " WHEN (OLD.version IS DISTINCT FROM NEW.version) EXECUTE FUNCTION unit_changed()"
    )


def downgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return
    op.execute("DROP TRIGGER memories_changed ON memories")
    for table in TABLES:
        op.execute(f"DROP TRIGGER {table}_added ON {table}")
        op.execute(f"DROP TRIGGER {table}_removed ON {table}")
        op.drop_index(f"ix_{table}_changed", table)
        op.drop_column(table, "changed_in")
    op.execute("DROP FUNCTION unit_changed()")
    op.execute("DROP FUNCTION units_removed()")
    op.drop_table("unit_removals")
