"""How much is stored of each user, counted as it is written, and what a user set: the time zone.

A turn keeps the time zone by which its relative dates were resolved, so that they are resolved alike when it is read
again.
"""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import UtcTime

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_TENANT = "nullif(current_setting('memplane.tenant', true), '')"
_EVERY = "(SELECT coalesce(current_setting('memplane.users', true), '') = '')"
_BOUND = "ANY ((SELECT nullif(current_setting('memplane.users', true), '')::text[])::text[])"
_PATH = "pg_catalog, public, pg_temp"
TABLES = ("user_settings", "user_usage")

# the UTF-8 bytes of all texts, and whether a memory counts: a deleted one does not, though it can still be restored
_BYTES = {
    "memories": (
        "octet_length({row}.content) + coalesce(octet_length({row}.title), 0)"
        " + coalesce(octet_length({row}.narrative), 0) + octet_length(array_to_string({row}.facts, ''))"
        " + octet_length(array_to_string({row}.steps, ''))"
    ),
    "turns": "octet_length({row}.text)",
}
_COUNTS = {"memories": "{row}.state <> 'soft_deleted'", "turns": "true"}
_ROWS = {"memories": "1", "turns": "0"}
_ADD = """
INSERT INTO public.user_usage AS u (tenant_id, user_id, memories, bytes, day, writes)
SELECT n.tenant_id, n.user_id, {sign}sum({rows}), {sign}sum({size}), '', 0 FROM {source} n
 WHERE {counts} GROUP BY n.tenant_id, n.user_id ORDER BY n.tenant_id, n.user_id
    ON CONFLICT (tenant_id, user_id)
    DO UPDATE SET memories = u.memories + excluded.memories, bytes = u.bytes + excluded.bytes"""
_FUNCTION = """
CREATE FUNCTION public.{table}_{event}_counted() RETURNS trigger LANGUAGE plpgsql SET search_path = {path}
AS $$
BEGIN{body};
  RETURN NULL;
END $$"""
# a key that is bound to users sees their rows alone; of the others it learns the sum
_TENANT_USAGE = f"""
CREATE FUNCTION public.tenant_usage(today text) RETURNS TABLE (memories bigint, bytes bigint, writes bigint)
LANGUAGE plpgsql SET search_path = {_PATH}
AS $$
DECLARE bound text := coalesce(current_setting('memplane.users', true), '');
BEGIN
  PERFORM set_config('memplane.users', '', true);
  RETURN QUERY SELECT coalesce(sum(u.memories), 0)::bigint, coalesce(sum(u.bytes), 0)::bigint,
       coalesce(sum(u.writes) FILTER (WHERE u.day = today), 0)::bigint
    FROM public.user_usage u WHERE u.tenant_id = {_TENANT};
  PERFORM set_config('memplane.users', bound, true);
END $$"""  # noqa: S608 - our own names

_SQLITE_BYTES = {
    "memories": (
        "length(CAST({row}.content AS BLOB)) + coalesce(length(CAST({row}.title AS BLOB)), 0)"
        " + coalesce(length(CAST({row}.narrative AS BLOB)), 0)"
        " + (SELECT coalesce(sum(length(CAST(value AS BLOB))), 0) FROM json_each({row}.facts))"
        " + (SELECT coalesce(sum(length(CAST(value AS BLOB))), 0) FROM json_each({row}.steps))"
    ),
    "turns": "length(CAST({row}.text AS BLOB))",
}
_SQLITE_ADD = (
    "INSERT INTO user_usage (tenant_id, user_id, memories, bytes, day, writes)"
    " SELECT {row}.tenant_id, {row}.user_id, {sign}{rows}, {sign}({size}), '', 0 WHERE {counts}"
    " ON CONFLICT (tenant_id, user_id) DO UPDATE SET"
    " memories = memories + excluded.memories, bytes = bytes + excluded.bytes;"
)
_TEXTS = ("content", "title", "narrative", "facts", "steps")


def upgrade() -> None:
    op.add_column("turns", sa.Column("time_zone", sa.String(length=63)))
    op.create_table(
        "user_settings",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("time_zone", sa.String(length=63)),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", name="pk_user_settings"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_user_settings_tenants"),
    )
    op.create_table(
        "user_usage",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("memories", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("writes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", name="pk_user_usage"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_user_usage_tenants"),
    )
    if op.get_context().dialect.name == "postgresql":
        _postgresql()
    else:
        _sqlite()


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute("DROP FUNCTION public.tenant_usage(text)")
        for table in _BYTES:
            for event in ("added", "removed", *(("changed",) if table == "memories" else ())):
                op.execute(f"DROP TRIGGER {table}_{event}_usage ON {table}")
                op.execute(f"DROP FUNCTION public.{table}_{event}_counted()")
    else:
        for table in _BYTES:
            for event in ("added", "removed", *(("changed",) if table == "memories" else ())):
                op.execute(f"DROP TRIGGER {table}_{event}_usage")
    for table in TABLES:
        op.drop_table(table)
    op.drop_column("turns", "time_zone")


def _added(table: str, source: str, sign: str = "") -> str:
    size, counts = (part[table].format(row="n") for part in (_BYTES, _COUNTS))
    return _ADD.format(sign=sign, rows=_ROWS[table], size=size, counts=counts, source=source)


def _postgresql() -> None:
    for table in _BYTES:  # forced row-level security binds the owner too
        op.execute(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY")
        op.execute(_added(table, f"public.{table}"))
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
    for table in TABLES:
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {role}")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY tenant_isolation ON {table} USING (tenant_id = {_TENANT})")
        op.execute(f"CREATE POLICY user_isolation ON {table} AS RESTRICTIVE USING ({_EVERY} OR user_id = {_BOUND})")
    op.execute(_TENANT_USAGE)
    for table in _BYTES:
        for event, source, sign, timing in (
            ("added", "added", "", "INSERT ON {table} REFERENCING NEW TABLE AS added"),
            ("removed", "removed", "-", "DELETE ON {table} REFERENCING OLD TABLE AS removed"),
        ):
            op.execute(_FUNCTION.format(table=table, event=event, path=_PATH, body=_added(table, source, sign)))
            op.execute(
                f"CREATE TRIGGER {table}_{event}_usage AFTER {timing.format(table=table)}"
                f" FOR EACH STATEMENT EXECUTE FUNCTION {table}_{event}_counted()"
            )
    # looked at within: a condition of the trigger would keep the columns from being dropped
    changed = " OR ".join(f"OLD.{name} IS DISTINCT FROM NEW.{name}" for name in _TEXTS)
    moved = "(OLD.state = 'soft_deleted') <> (NEW.state = 'soft_deleted')"
    both = f"{_added('memories', '(SELECT OLD.*)', '-')};{_added('memories', '(SELECT NEW.*)')}"
    body = f"\n  IF {moved} OR {changed} THEN{both};\n  END IF"
    op.execute(_FUNCTION.format(table="memories", event="changed", path=_PATH, body=body))
    op.execute(
        "CREATE TRIGGER memories_changed_usage AFTER UPDATE ON memories FOR EACH ROW"
        " EXECUTE FUNCTION memories_changed_counted()"
    )


def _sqlite() -> None:
    for table in _BYTES:
        for row, event, verb, sign in (("NEW", "added", "INSERT", ""), ("OLD", "removed", "DELETE", "-")):
            op.execute(
                f"CREATE TRIGGER {table}_{event}_usage AFTER {verb} ON {table} BEGIN {_one(table, row, sign)} END"
            )
        size, counts = (part[table].format(row="n") for part in (_SQLITE_BYTES, _COUNTS))
        op.execute(
            "INSERT INTO user_usage (tenant_id, user_id, memories, bytes, day, writes)"  # noqa: S608 - our own names
            f" SELECT n.tenant_id, n.user_id, sum({_ROWS[table]}), sum({size}), '', 0 FROM {table} n"
            f" WHERE {counts} GROUP BY n.tenant_id, n.user_id"
            " ON CONFLICT (tenant_id, user_id) DO UPDATE SET"
            " memories = memories + excluded.memories, bytes = bytes + excluded.bytes"
        )
    changed = " OR ".join(f"OLD.{name} IS NOT NEW.{name}" for name in _TEXTS)
    op.execute(
        "CREATE TRIGGER memories_changed_usage AFTER UPDATE ON memories"
        f" WHEN (OLD.state = 'soft_deleted') <> (NEW.state = 'soft_deleted') OR {changed}"
        f" BEGIN {_one('memories', 'OLD', '-')} {_one('memories', 'NEW')} END"
    )


def _one(table: str, row: str, sign: str = "") -> str:
    size, counts = (part[table].format(row=row) for part in (_SQLITE_BYTES, _COUNTS))
    return _SQLITE_ADD.format(row=row, sign=sign, rows=_ROWS[table], size=size, counts=counts)
