"""The first schema: every table keyed by tenant, row-level security forced from the start."""

import sqlalchemy as sa
from alembic import context, op

from memplane.adapters.sql.schema.types import Embedding, Json, JsonOrNull, TextList, UtcTime

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

APPEND_ONLY = ("history",)
TABLES = (
    "tenants",
    "metadata",
    "api_keys",
    "idempotency_keys",
    "thread_revision",
    "turns",
    "change_log",
    "memories",
    "relations",
    "entities",
    "entity_aliases",
    "memory_entities",
    "history",
    "events",
    "tombstones",
)


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    _tenancy()
    _threads()
    _memories()
    _entities()
    _audit()
    if op.get_context().dialect.name == "postgresql":
        _secure(context.config.attributes["app_role"])


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)


def _secure(role: str) -> None:
    """The application sees one tenant at a time: the one that its transaction named."""
    quoted = op.get_context().dialect.identifier_preparer.quote(role)
    op.execute(f"GRANT SELECT ON alembic_version TO {quoted}")
    for table in TABLES:
        rights = "SELECT, INSERT" if table in APPEND_ONLY else "SELECT, INSERT, UPDATE, DELETE"
        op.execute(f"GRANT {rights} ON {table} TO {quoted}")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        # after a commit the setting is '' and not NULL; no tenant may be named ''
        op.execute(
            f"CREATE POLICY tenant_isolation ON {table}"
            " USING (tenant_id = nullif(current_setting('memplane.tenant', true), ''))"
        )
    # before a key is checked no tenant is known: its caller sees that one row
    op.execute(
        "CREATE POLICY key_lookup ON api_keys FOR SELECT"
        " USING (key_id = nullif(current_setting('memplane.key', true), ''))"
    )


def _tenancy() -> None:
    op.create_table(
        "tenants",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.CheckConstraint("tenant_id <> ''", name=op.f("ck_tenants_tenant_named")),
        sa.PrimaryKeyConstraint("tenant_id", name="pk_tenants"),
    )
    op.create_table(
        "metadata",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("value", Json, nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_metadata_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "name", name="pk_metadata"),
    )
    op.create_table(
        "api_keys",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("key_id", sa.String(length=32), nullable=False),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        sa.Column("agent", sa.String(length=255), nullable=True),
        sa.Column("act_for", TextList(), nullable=False),
        sa.Column("users", JsonOrNull, nullable=True),
        sa.Column("trust", sa.String(length=16), nullable=False),
        sa.Column("scopes", TextList(), nullable=False),
        sa.Column("label", sa.String(length=255), nullable=True),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("expires_at", UtcTime(), nullable=True),
        sa.Column("revoked_at", UtcTime(), nullable=True),
        sa.Column("last_used_at", UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_api_keys_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "key_id", name="pk_api_keys"),
    )
    op.create_index("ix_api_keys_key", "api_keys", ["key_id"], unique=False)
    op.create_table(
        "idempotency_keys",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("key_id", sa.String(length=32), nullable=False),
        sa.Column("idempotency_key", sa.String(length=255), nullable=False),
        sa.Column("request_hash", sa.String(length=64), nullable=False),
        sa.Column("answer", Json, nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_idempotency_keys_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "key_id", "idempotency_key", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_age", "idempotency_keys", ["tenant_id", "created_at"], unique=False)


def _threads() -> None:
    op.create_table(
        "thread_revision",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("thread_id", sa.String(length=255), nullable=False),
        sa.Column("rev", sa.BigInteger(), nullable=False),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_thread_revision_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", "thread_id", name="pk_thread_revision"),
    )
    op.create_index(
        "ix_thread_revision_recent", "thread_revision", ["tenant_id", "user_id", "updated_at"], unique=False
    )
    op.create_index("ix_thread_revision_thread", "thread_revision", ["tenant_id", "thread_id"], unique=False)
    op.create_table(
        "turns",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("thread_id", sa.String(length=255), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("rev", sa.BigInteger(), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("actor_id", sa.String(length=255), nullable=True),
        sa.Column("agent_id", sa.String(length=255), nullable=True),
        sa.Column("run_id", sa.String(length=255), nullable=True),
        sa.Column("external_id", sa.String(length=255), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("event_time", UtcTime(), nullable=True),
        sa.Column("recorded_at", UtcTime(), nullable=False),
        sa.Column("thread_key", sa.BigInteger(), nullable=False),
        sa.Column("term_length", sa.Integer(), nullable=False),
        sa.Column("terms", sa.LargeBinary(), nullable=False),
        sa.Column("embedding", Embedding(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id", "thread_id"],
            ["thread_revision.tenant_id", "thread_revision.user_id", "thread_revision.thread_id"],
            name="fk_turns_thread_revision",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_turns"),
        sa.UniqueConstraint(
            "tenant_id", "user_id", "thread_id", "seq", name="uq_turns_tenant_id_user_id_thread_id_seq"
        ),
    )
    op.create_index("ix_turns_user", "turns", ["tenant_id", "user_id", "id"], unique=False)
    op.create_index(
        "uq_turns_external",
        "turns",
        ["tenant_id", "user_id", "thread_id", "external_id"],
        unique=True,
        postgresql_where=sa.text("external_id IS NOT NULL"),
        sqlite_where=sa.text("external_id IS NOT NULL"),
    )
    op.create_table(
        "change_log",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("thread_id", sa.String(length=255), nullable=False),
        sa.Column("rev", sa.BigInteger(), nullable=False),
        sa.Column("memory_id", sa.Uuid(), nullable=False),
        sa.Column("event", sa.String(length=16), nullable=False),
        sa.Column("category", sa.String(length=63), nullable=False),
        sa.Column("meta", Json, nullable=False),
        sa.Column("ts", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id", "thread_id"],
            ["thread_revision.tenant_id", "thread_revision.user_id", "thread_revision.thread_id"],
            name="fk_change_log_thread_revision",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_change_log"),
        sa.UniqueConstraint(
            "tenant_id", "user_id", "thread_id", "rev", name="uq_change_log_tenant_id_user_id_thread_id_rev"
        ),
    )


def _memories() -> None:
    op.create_table(
        "memories",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("agent_id", sa.String(length=255), nullable=True),
        sa.Column("run_id", sa.String(length=255), nullable=True),
        sa.Column("actor_id", sa.String(length=255), nullable=True),
        sa.Column("role", sa.String(length=16), nullable=True),
        sa.Column("thread_id", sa.String(length=255), nullable=True),
        sa.Column("external_id", sa.String(length=255), nullable=True),
        sa.Column("category", sa.String(length=63), nullable=False),
        sa.Column("type", sa.String(length=16), nullable=False),
        sa.Column("visibility", sa.String(length=16), nullable=False),
        sa.Column("min_trust", sa.String(length=16), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("narrative", sa.Text(), nullable=True),
        sa.Column("facts", TextList(), nullable=False),
        sa.Column("steps", TextList(), nullable=False),
        sa.Column("tags", TextList(), nullable=False),
        sa.Column("related_files", TextList(), nullable=False),
        sa.Column("lang", sa.String(length=8), nullable=True),
        sa.Column("importance", sa.SmallInteger(), nullable=False),
        sa.Column("pinned", sa.Boolean(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("decay_rate", sa.Float(), server_default="0", nullable=False),
        sa.Column("reinforcement", sa.Integer(), server_default="0", nullable=False),
        sa.Column("mention_count", sa.Integer(), server_default="1", nullable=False),
        sa.Column("access_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("hits", sa.Integer(), server_default="0", nullable=False),
        sa.Column("layer", sa.String(length=8), nullable=False),
        sa.Column("trust_state", sa.String(length=16), nullable=False),
        sa.Column("source", sa.String(length=16), nullable=False),
        sa.Column("source_ids", TextList(), nullable=False),
        sa.Column("value_hash", sa.String(length=64), nullable=False),
        sa.Column("event_time", UtcTime(), nullable=True),
        sa.Column("valid_from", UtcTime(), nullable=True),
        sa.Column("valid_until", UtcTime(), nullable=True),
        sa.Column("recorded_at", UtcTime(), nullable=False),
        sa.Column("superseded_at", UtcTime(), nullable=True),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.Column("last_accessed", UtcTime(), nullable=True),
        sa.Column("last_hit_at", UtcTime(), nullable=True),
        sa.Column("expires_at", UtcTime(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("purge_at", UtcTime(), nullable=True),
        sa.Column("superseded_by", sa.Uuid(), nullable=True),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        sa.Column("token_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("pii", TextList(), nullable=False),
        sa.Column("attributes", Json, nullable=False),
        sa.Column("term_length", sa.Integer(), nullable=False),
        sa.Column("terms", sa.LargeBinary(), nullable=False),
        sa.Column("embedding", Embedding(), nullable=True),
        sa.CheckConstraint("confidence BETWEEN 0 AND 1", name=op.f("ck_memories_confidence")),
        sa.CheckConstraint("importance BETWEEN 1 AND 5", name=op.f("ck_memories_importance")),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_memories_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_memories"),
    )
    op.create_index("ix_memories_user", "memories", ["tenant_id", "user_id", "id"], unique=False)
    op.create_index(
        "uq_memories_external",
        "memories",
        ["tenant_id", "user_id", "external_id"],
        unique=True,
        postgresql_where=sa.text("external_id IS NOT NULL AND state = 'active'"),
        sqlite_where=sa.text("external_id IS NOT NULL AND state = 'active'"),
    )
    op.create_index(
        "uq_memories_value",
        "memories",
        ["tenant_id", "user_id", "category", "type", "visibility", "min_trust", "value_hash"],
        unique=True,
        postgresql_where=sa.text("state = 'active'"),
        sqlite_where=sa.text("state = 'active'"),
    )
    op.create_table(
        "relations",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("from_id", sa.Uuid(), nullable=False),
        sa.Column("to_id", sa.Uuid(), nullable=False),
        sa.Column("relation_type", sa.String(length=63), server_default="related_to", nullable=False),
        sa.Column("strength", sa.Float(), nullable=False),
        sa.Column("co_recalls", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.Column("updated_at", UtcTime(), nullable=False),
        sa.CheckConstraint("from_id <> to_id", name=op.f("ck_relations_two_ends")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "from_id"],
            ["memories.tenant_id", "memories.id"],
            name="fk_relations_from",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "to_id"], ["memories.tenant_id", "memories.id"], name="fk_relations_to", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_relations"),
        sa.UniqueConstraint(
            "tenant_id", "from_id", "to_id", "relation_type", name="uq_relations_tenant_id_from_id_to_id_relation_type"
        ),
    )
    op.create_index("ix_relations_to", "relations", ["tenant_id", "to_id"], unique=False)


def _entities() -> None:
    op.create_table(
        "entities",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.String(length=255), nullable=False),
        sa.Column("created_at", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_entities_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_entities"),
        sa.UniqueConstraint(
            "tenant_id", "user_id", "kind", "name_key", name="uq_entities_tenant_id_user_id_kind_name_key"
        ),
    )
    op.create_table(
        "entity_aliases",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("entity_id", sa.Uuid(), nullable=False),
        sa.Column("alias", sa.Text(), nullable=False),
        sa.Column("alias_key", sa.String(length=255), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "entity_id"],
            ["entities.tenant_id", "entities.id"],
            name="fk_entity_aliases_entities",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_entity_aliases"),
        sa.UniqueConstraint(
            "tenant_id", "entity_id", "alias_key", name="uq_entity_aliases_tenant_id_entity_id_alias_key"
        ),
    )
    op.create_index("ix_entity_aliases_key", "entity_aliases", ["tenant_id", "alias_key"], unique=False)
    op.create_table(
        "memory_entities",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("memory_id", sa.Uuid(), nullable=False),
        sa.Column("entity_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "entity_id"],
            ["entities.tenant_id", "entities.id"],
            name="fk_memory_entities_entity",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "memory_id"],
            ["memories.tenant_id", "memories.id"],
            name="fk_memory_entities_memory",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "memory_id", "entity_id", name="pk_memory_entities"),
    )
    op.create_index("ix_memory_entities_entity", "memory_entities", ["tenant_id", "entity_id"], unique=False)


def _audit() -> None:
    op.create_table(
        "history",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("memory_id", sa.Uuid(), nullable=False),
        sa.Column("event", sa.String(length=16), nullable=False),
        sa.Column("old_ref", sa.Text(), nullable=True),
        sa.Column("new_ref", sa.Text(), nullable=True),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("meta", Json, nullable=False),
        sa.Column("policy_hash", sa.String(length=80), nullable=False),
        sa.Column("ts", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_history_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_history"),
    )
    op.create_index("ix_history_memory", "history", ["tenant_id", "memory_id", "id"], unique=False)
    op.create_table(
        "events",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=True),
        sa.Column("thread_id", sa.String(length=255), nullable=True),
        sa.Column("node", sa.String(length=16), nullable=False),
        sa.Column("op", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("memory_id", sa.Uuid(), nullable=True),
        sa.Column("category", sa.String(length=63), nullable=True),
        sa.Column("sim", sa.Float(), nullable=True),
        sa.Column("ts", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_events_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_events"),
    )
    op.create_index("ix_events_node", "events", ["tenant_id", "node", "ts"], unique=False)
    op.create_index("ix_events_user", "events", ["tenant_id", "user_id", "ts"], unique=False)
    op.create_table(
        "tombstones",
        sa.Column("tenant_id", sa.String(length=63), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("scope", sa.String(length=255), nullable=False),
        sa.Column("category", sa.String(length=63), nullable=False),
        sa.Column("value_hash", sa.String(length=64), nullable=False),
        sa.Column("reason", sa.String(length=63), nullable=False),
        sa.Column("actor", sa.String(length=255), nullable=False),
        sa.Column("ts", UtcTime(), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="fk_tombstones_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "id", name="pk_tombstones"),
        sa.UniqueConstraint(
            "tenant_id", "scope", "category", "value_hash", name="uq_tombstones_tenant_id_scope_category_value_hash"
        ),
    )
