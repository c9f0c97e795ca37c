"""Users merged into others: which, until when it can be undone, and what moved.

A memory or turn that moves to another user is counted with that one from then on. A purge reaches the words that
history holds of a memory under the name that its user had before.
"""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import Json, UtcTime

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

_TENANT = "nullif(current_setting('memplane.tenant', true), '')"
_EVERY = "(SELECT coalesce(current_setting('memplane.users', true), '') = '')"
_BOUND = "ANY ((SELECT nullif(current_setting('memplane.users', true), '')::text[])::text[])"
_PATH = "pg_catalog, public, pg_temp"
_STANDING = sa.text("undone_at IS NULL")
_WORDLESS = "old_ref = NULL, new_ref = NULL, meta = '{}', salt = NULL"
_SAME_USER = "h.of_user = gone.of_user"
_ALIASES = (
    "(h.of_user = gone.of_user OR h.of_user IN (SELECT u.from_user FROM public.user_merges u"
    " WHERE u.tenant_id = gone.tenant_id AND u.into_user = gone.of_user AND u.undone_at IS NULL))"
)
_PURGED = """
CREATE OR REPLACE FUNCTION public.history_purged(purges uuid[]) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = {path}
AS $$
WITH gone AS (
SELECT p.tenant_id, p.id, p.memory_id, p.of_user FROM public.history p
 WHERE p.tenant_id = {tenant} AND p.id = ANY(purges) AND p.event = 'PURGE'
   AND NOT EXISTS (SELECT 1 FROM public.memories m WHERE m.tenant_id = p.tenant_id AND m.id = p.memory_id)),
own AS (
UPDATE public.history h SET {wordless}, erased_by = gone.id FROM gone
 WHERE h.tenant_id = gone.tenant_id AND h.memory_id = gone.memory_id AND h.id <> gone.id AND h.erased_by IS NULL
RETURNING 1),
quoting AS (
UPDATE public.history h SET {wordless}, erased_by = gone.id FROM gone
 WHERE h.tenant_id = gone.tenant_id AND {whose} AND h.event = 'SUPERSEDE'
   AND h.meta ->> 'superseded_by' = gone.memory_id::text AND h.memory_id <> gone.memory_id AND h.erased_by IS NULL
RETURNING 1)
SELECT (SELECT count(*) FROM own) + (SELECT count(*) FROM quoting) $$"""
# what a unit adds to the usage of its user, as in 0030
_BYTES = {
    "memories": (
        "octet_length({row}.content) + coalesce(octet_length({row}.title), 0)"
        " + coalesce(octet_length({row}.narrative), 0) + octet_length(array_to_string({row}.facts, ''))"
        " + octet_length(array_to_string({row}.steps, ''))"
    ),
    "turns": "octet_length({row}.text)",
}
_SQLITE_BYTES = {
    "memories": (
        "length(CAST({row}.content AS BLOB)) + coalesce(length(CAST({row}.title AS BLOB)), 0)"
        " + coalesce(length(CAST({row}.narrative AS BLOB)), 0)"
        " + (SELECT coalesce(sum(length(CAST(value AS BLOB))), 0) FROM json_each({row}.facts))"
        " + (SELECT coalesce(sum(length(CAST(value AS BLOB))), 0) FROM json_each({row}.steps))"
    ),
    "turns": "length(CAST({row}.text AS BLOB))",
}
_COUNTS = {"memories": "{row}.state <> 'soft_deleted'", "turns": "true"}
_ROWS = {"memories": "1", "turns": "0"}
_ADD = """
INSERT INTO public.user_usage AS u (tenant_id, user_id, memories, bytes, day, writes)
SELECT {row}.tenant_id, {row}.user_id, {sign}({rows}), {sign}({size}), '', 0 WHERE {counts}
    ON CONFLICT (tenant_id, user_id)
    DO UPDATE SET memories = u.memories + excluded.memories, bytes = u.bytes + excluded.bytes"""
_SQLITE_ADD = (
    "INSERT INTO user_usage (tenant_id, user_id, memories, bytes, day, writes)"
    " SELECT {row}.tenant_id, {row}.user_id, {sign}({rows}), {sign}({size}), '', 0 WHERE {counts}"
    " ON CONFLICT (tenant_id, user_id) DO UPDATE SET"
    " memories = memories + excluded.memories, bytes = bytes + excluded.bytes;"
)


def upgrade() -> None:
    op.create_table(
        "user_merges",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("from_user", sa.String(length=255), nullable=False),
        sa.Column("into_user", sa.String(length=255), nullable=False),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("policy_hash", sa.String(length=80), nullable=False),
        sa.Column("counts", Json, nullable=False),
        sa.Column("merged_at", UtcTime(), nullable=False),
        sa.Column("revertible_until", UtcTime(), nullable=False),
        sa.Column("undone_at", UtcTime()),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_user_merges"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_user_merges_tenants"),
    )
    op.create_index(
        "uq_user_merges_from", "user_merges", ["tenant_id", "from_user"], unique=True,
        postgresql_where=_STANDING, sqlite_where=_STANDING,
    )  # fmt: skip
    op.create_index("ix_user_merges_into", "user_merges", ["tenant_id", "into_user"])
    op.create_table(
        "user_merge_rows",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("merge_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("entries", Json, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "merge_id", "name", "part", name="pk_user_merge_rows"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "merge_id"], ["user_merges.tenant_id", "user_merges.id"], name="fk_user_merge_rows_merge",
            ondelete="CASCADE",
        ),
    )  # fmt: skip
    if op.get_context().dialect.name == "postgresql":
        _postgresql()
        return
    for table in _BYTES:
        added, removed = (_one(table, row, sign) for row, sign in (("NEW", ""), ("OLD", "-")))
        op.execute(
            f"CREATE TRIGGER {table}_moved_usage AFTER UPDATE OF user_id ON {table}"
            f" WHEN OLD.user_id <> NEW.user_id BEGIN {removed} {added} END"
        )


def _one(table: str, row: str, sign: str) -> str:
    size, counts = (part[table].format(row=row) for part in (_SQLITE_BYTES, _COUNTS))
    return _SQLITE_ADD.format(row=row, sign=sign, rows=_ROWS[table], size=size, counts=counts)


def _added(table: str, row: str, sign: str) -> str:
    size, counts = (part[table].format(row=row) for part in (_BYTES, _COUNTS))
    return _ADD.format(row=row, sign=sign, rows=_ROWS[table], size=size, counts=counts)


def _postgresql() -> None:
    role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
    either = f"{_EVERY} OR into_user = {_BOUND} OR from_user = {_BOUND}"
    there = "EXISTS (SELECT 1 FROM user_merges o WHERE o.tenant_id = user_merge_rows.tenant_id AND o.id = merge_id)"
    for table, condition in (("user_merges", either), ("user_merge_rows", f"{_EVERY} OR {there}")):
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {role}")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY tenant_isolation ON {table} USING (tenant_id = {_TENANT})")
        op.execute(f"CREATE POLICY user_isolation ON {table} AS RESTRICTIVE USING ({condition})")
    for table in _BYTES:
        op.execute(
            f"CREATE FUNCTION public.{table}_moved_counted() RETURNS trigger LANGUAGE plpgsql SET search_path = {_PATH}"
            f"\nAS $$\nBEGIN{_added(table, 'OLD', '-')};{_added(table, 'NEW', '')};\n  RETURN NULL;\nEND $$"
        )
        op.execute(
            f"CREATE TRIGGER {table}_moved_usage AFTER UPDATE OF user_id ON {table} FOR EACH ROW"
            f" WHEN (OLD.user_id IS DISTINCT FROM NEW.user_id) EXECUTE FUNCTION {table}_moved_counted()"
        )
    op.execute(_PURGED.format(path=_PATH, tenant=_TENANT, wordless=_WORDLESS, whose=_ALIASES))


def downgrade() -> None:
    postgresql = op.get_context().dialect.name == "postgresql"
    if postgresql:
        op.execute(_PURGED.format(path=_PATH, tenant=_TENANT, wordless=_WORDLESS, whose=_SAME_USER))
    for table in _BYTES:
        op.execute(f"DROP TRIGGER {table}_moved_usage{f' ON {table}' if postgresql else ''}")
        if postgresql:
            op.execute(f"DROP FUNCTION public.{table}_moved_counted()")
    op.drop_table("user_merge_rows")
    op.drop_table("user_merges")
