"""Erasure: receipts, whose words a row of history holds, what came of what; and the seals of the history."""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import Json, UtcTime

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

TABLES = ("erasures", "history_seals", "memory_sources")
HISTORY = ("of_user", "erased_by", "salt", "payload_hash", "position", "link")
_TENANT = "nullif(current_setting('memplane.tenant', true), '')"
_EVERY = "(SELECT coalesce(current_setting('memplane.users', true), '') = '')"
_BOUND = "ANY ((SELECT nullif(current_setting('memplane.users', true), '')::text[])::text[])"
_WORDLESS = "old_ref = NULL, new_ref = NULL, meta = '{}', salt = NULL"

# They run as the owner, for the application may not change history; they can do these things and nothing else.
PURGED = f"""
CREATE FUNCTION history_purged(purges uuid[]) RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
WITH gone AS (
SELECT p.tenant_id, p.id, p.memory_id, p.of_user FROM history p
 WHERE p.tenant_id = {_TENANT} AND p.id = ANY(purges) AND p.event = 'PURGE'
   AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.tenant_id = p.tenant_id AND m.id = p.memory_id)),
own AS (
UPDATE history h SET {_WORDLESS}, erased_by = gone.id FROM gone
 WHERE h.tenant_id = gone.tenant_id AND h.memory_id = gone.memory_id AND h.id <> gone.id AND h.erased_by IS NULL
RETURNING 1),
quoting AS (
UPDATE history h SET {_WORDLESS}, erased_by = gone.id FROM gone
 WHERE h.tenant_id = gone.tenant_id AND h.of_user = gone.of_user AND h.event = 'SUPERSEDE'
   AND h.meta ->> 'superseded_by' = gone.memory_id::text AND h.memory_id <> gone.memory_id AND h.erased_by IS NULL
RETURNING 1)
SELECT (SELECT count(*) FROM own) + (SELECT count(*) FROM quoting) $$"""  # noqa: S608 - our own names
ERASED = f"""
CREATE FUNCTION history_erased(receipt uuid, memory_ids uuid[], most integer) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
WITH running AS (
SELECT e.tenant_id, e.id, e.of_user FROM erasures e
 WHERE e.tenant_id = {_TENANT} AND e.id = receipt AND e.finished_at IS NULL AND e.of_user IS NOT NULL),
wanted AS (
(SELECT h.id FROM history h JOIN running r ON h.tenant_id = r.tenant_id AND h.of_user = r.of_user LIMIT most)
 UNION
SELECT h.id FROM history h JOIN running r ON h.tenant_id = r.tenant_id
  JOIN memories m ON m.tenant_id = h.tenant_id AND m.id = h.memory_id AND m.user_id = r.of_user
 WHERE h.memory_id = ANY(memory_ids)),
done AS (
UPDATE history h SET {_WORDLESS}, of_user = NULL, erased_by = coalesce(h.erased_by, r.id),
       actor = CASE WHEN position(r.of_user IN h.actor) > 0 THEN 'erased' ELSE h.actor END
  FROM running r, wanted w WHERE h.tenant_id = r.tenant_id AND h.id = w.id AND h.id <> r.id
RETURNING 1)
SELECT count(*) FROM done $$"""  # noqa: S608 - our own names
SEALED = f"""
CREATE FUNCTION history_sealed(ids uuid[], salts bytea[], hashes bytea[], links bytea[], first bigint) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
WITH done AS (
UPDATE history h SET salt = s.salt, payload_hash = s.hash, link = s.link, position = first + s.place - 1
  FROM unnest(ids, salts, hashes, links) WITH ORDINALITY AS s (id, salt, hash, link, place)
 WHERE h.tenant_id = {_TENANT} AND h.id = s.id AND h.position IS NULL
RETURNING 1)
SELECT count(*) FROM done $$"""  # noqa: S608 - our own names
FUNCTIONS = {
    "history_purged(uuid[])": PURGED,
    "history_erased(uuid, uuid[], integer)": ERASED,
    "history_sealed(uuid[], bytea[], bytea[], bytea[], bigint)": SEALED,
}
SOURCES = """
CREATE FUNCTION sources_noted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    DELETE FROM memory_sources s WHERE s.tenant_id = NEW.tenant_id AND s.memory_id = NEW.id
       AND s.source_id <> ALL (NEW.source_ids);
  END IF;
  INSERT INTO memory_sources (tenant_id, source_id, memory_id)
  SELECT DISTINCT NEW.tenant_id, s, NEW.id FROM unnest(NEW.source_ids) s ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$"""
_NOTED = (
    "INSERT OR IGNORE INTO memory_sources (tenant_id, source_id, memory_id)"
    " SELECT NEW.tenant_id, s.value, NEW.id FROM json_each(NEW.source_ids) s"
)
SQLITE = {
    "memory_sources_noted": f"AFTER INSERT ON memories WHEN NEW.source_ids <> '[]' BEGIN {_NOTED}; END",
    "memory_sources_changed": "AFTER UPDATE OF source_ids ON memories WHEN NEW.source_ids <> OLD.source_ids"  # noqa: S608 - our own names
    " BEGIN DELETE FROM memory_sources WHERE tenant_id = NEW.tenant_id AND memory_id = NEW.id;"
    f" {_NOTED}; END",
}


def upgrade() -> None:
    op.add_column("idempotency_keys", sa.Column("of_user", sa.String(length=255)))
    op.create_index("ix_idempotency_keys_user", "idempotency_keys", ["tenant_id", "of_user"])
    op.add_column("history", sa.Column("of_user", sa.String(length=255)))
    op.add_column("history", sa.Column("erased_by", sa.Uuid()))
    op.add_column("history", sa.Column("salt", sa.LargeBinary()))
    op.add_column("history", sa.Column("payload_hash", sa.LargeBinary()))
    op.add_column("history", sa.Column("position", sa.BigInteger()))
    op.add_column("history", sa.Column("link", sa.LargeBinary()))
    sealed, unsealed = sa.text("position IS NOT NULL"), sa.text("position IS NULL")
    op.create_index("ix_history_user", "history", ["tenant_id", "of_user", "event"])
    op.create_index(
        "uq_history_position", "history", ["tenant_id", "position"], unique=True,
        postgresql_where=sealed, sqlite_where=sealed,
    )  # fmt: skip
    op.create_index(
        "ix_history_unsealed", "history", ["tenant_id", "id"], postgresql_where=unsealed, sqlite_where=unsealed
    )
    _tables()
    if op.get_context().dialect.name == "postgresql":
        _postgresql()
    else:
        for name, body in SQLITE.items():
            op.execute(f"CREATE TRIGGER {name} {body}")
        op.execute(
            "INSERT OR IGNORE INTO memory_sources (tenant_id, source_id, memory_id)"
            " SELECT m.tenant_id, s.value, m.id FROM memories m, json_each(m.source_ids) s"
        )
        _whose()


def _tables() -> None:
    op.create_table(
        "erasures",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("subject", sa.String(length=64), nullable=False),
        sa.Column("of_user", sa.String(length=255)),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("policy_hash", sa.String(length=80), nullable=False),
        sa.Column("counts", Json, nullable=False),
        sa.Column("started_at", UtcTime(), nullable=False),
        sa.Column("finished_at", UtcTime()),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_erasures"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_erasures_tenants"),
    )
    op.create_index("ix_erasures_subject", "erasures", ["tenant_id", "subject"])
    op.create_table(
        "history_seals",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("entries", sa.Integer(), nullable=False),
        sa.Column("head", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_at", UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "position", name="pk_history_seals"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_history_seals_tenants"),
    )
    op.create_table(
        "memory_sources",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("memory_id", sa.Uuid(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "source_id", "memory_id", name="pk_memory_sources"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "memory_id"], ["memories.tenant_id", "memories.id"], name="fk_memory_sources_memory",
            ondelete="CASCADE",
        ),
    )  # fmt: skip
    op.create_index("ix_memory_sources_memory", "memory_sources", ["tenant_id", "memory_id"])


def _whose() -> None:
    """Whose words the entries hold that there are: their memories tell, or what was noted of those that are gone."""
    op.execute(
        "UPDATE history SET of_user = (SELECT m.user_id FROM memories m"
        " WHERE m.tenant_id = history.tenant_id AND m.id = history.memory_id)"
    )
    for table, key in (("events", "memory_id"), ("consent_proposals", "id")):
        op.execute(
            f"UPDATE history SET of_user = (SELECT max(o.user_id) FROM {table} o"  # noqa: S608 - our own names
            f" WHERE o.tenant_id = history.tenant_id AND o.{key} = history.memory_id) WHERE of_user IS NULL"
        )


def _postgresql() -> None:
    role = op.get_context().dialect.identifier_preparer.quote(context.config.attributes["app_role"])
    rights = {"history_seals": "SELECT, INSERT"}
    for table in TABLES:
        op.execute(f"GRANT {rights.get(table, 'SELECT, INSERT, UPDATE, DELETE')} ON {table} TO {role}")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(f"CREATE POLICY tenant_isolation ON {table} USING (tenant_id = {_TENANT})")
    there = "EXISTS (SELECT 1 FROM memories o WHERE o.tenant_id = memory_sources.tenant_id AND o.id = memory_id)"
    for command in ("SELECT", "UPDATE", "DELETE"):
        op.execute(
            f"CREATE POLICY user_{command.lower()} ON memory_sources AS RESTRICTIVE FOR {command}"
            f" USING ({_EVERY} OR {there})"
        )
    # '' is no user: its row tells every one of the tenant that somebody was erased
    op.execute("DROP POLICY user_isolation ON unit_removals")
    op.execute(
        "CREATE POLICY user_isolation ON unit_removals AS RESTRICTIVE"
        f" USING ({_EVERY} OR user_id = '' OR user_id = {_BOUND})"
    )
    op.execute(SOURCES)
    op.execute(
        "CREATE TRIGGER memories_sources_added AFTER INSERT ON memories FOR EACH ROW"
        " WHEN (NEW.source_ids <> '{}') EXECUTE FUNCTION sources_noted()"
    )
    op.execute(
        "CREATE TRIGGER memories_sources_changed AFTER UPDATE ON memories FOR EACH ROW"
        " WHEN (NEW.source_ids IS DISTINCT FROM OLD.source_ids) EXECUTE FUNCTION sources_noted()"
    )
    _forced(False)
    op.execute(
        "INSERT INTO memory_sources (tenant_id, source_id, memory_id)"
        " SELECT DISTINCT m.tenant_id, s, m.id FROM memories m, unnest(m.source_ids) s"
    )
    _whose()
    _forced(True)
    for name, body in FUNCTIONS.items():
        op.execute(body)
        op.execute(f"REVOKE ALL ON FUNCTION {name} FROM PUBLIC")
        op.execute(f"GRANT EXECUTE ON FUNCTION {name} TO {role}")


def _forced(forced: bool) -> None:
    """Even their owner sees no rows without a tenant, while row-level security is forced."""
    for table in ("history", "memories", "events", "consent_proposals", "memory_sources"):
        op.execute(f"ALTER TABLE {table} {'' if forced else 'NO '}FORCE ROW LEVEL SECURITY")


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        for name in FUNCTIONS:
            op.execute(f"DROP FUNCTION {name}")
        for trigger in ("memories_sources_added", "memories_sources_changed"):
            op.execute(f"DROP TRIGGER {trigger} ON memories")
        op.execute("DROP FUNCTION sources_noted()")
        op.execute("DELETE FROM unit_removals WHERE user_id = ''")
        op.execute("DROP POLICY user_isolation ON unit_removals")
        op.execute(
            f"CREATE POLICY user_isolation ON unit_removals AS RESTRICTIVE USING ({_EVERY} OR user_id = {_BOUND})"
        )
    else:
        for name in SQLITE:
            op.execute(f"DROP TRIGGER {name}")
    for table in reversed(TABLES):
        op.drop_table(table)
    for index in ("ix_history_unsealed", "uq_history_position", "ix_history_user"):
        op.drop_index(index, "history")
    for column in reversed(HISTORY):
        op.drop_column("history", column)
    op.drop_index("ix_idempotency_keys_user", "idempotency_keys")
    op.drop_column("idempotency_keys", "of_user")
