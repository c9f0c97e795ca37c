"""The schema.

Every key starts with ``tenant_id``: a foreign key without it would accept another tenant's row, and a unique key
without it would tell a stranger that a value exists.
"""

from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.types import Embedding, Json, JsonOrNull, TextList, UtcTime

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_KEY = sa.String(255)


def _tenant() -> sa.Column[str]:
    return sa.Column("tenant_id", sa.String(63), nullable=False)


def _id(name: str = "id", *, nullable: bool = False) -> sa.Column[UUID]:
    return sa.Column(name, sa.Uuid(), nullable=nullable)


def _time(name: str, *, nullable: bool = True) -> sa.Column[object]:
    return sa.Column(name, UtcTime(), nullable=nullable)


def _key(name: str, *, nullable: bool = True) -> sa.Column[str]:
    return sa.Column(name, _KEY, nullable=nullable)


def _count(name: str, default: int = 0) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default=str(default))


def _texts(name: str) -> sa.Column[object]:
    return sa.Column(name, TextList(), nullable=False)


def _to_tenant() -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"])


def _to_memory(column: str, name: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["tenant_id", column], ["memories.tenant_id", "memories.id"], name=name, ondelete="CASCADE"
    )


tenants = sa.Table(
    "tenants",
    metadata,
    _tenant(),
    _time("created_at", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id"),
    sa.CheckConstraint("tenant_id <> ''", name="tenant_named"),
)

memories = sa.Table(
    "memories",
    metadata,
    _tenant(),
    _id(),
    # scope
    _key("user_id", nullable=False),
    _key("agent_id"),
    _key("run_id"),
    _key("actor_id"),
    sa.Column("role", sa.String(16)),
    _key("thread_id"),
    _key("external_id"),
    # kind
    sa.Column("category", sa.String(63), nullable=False),
    sa.Column("type", sa.String(16), nullable=False),
    sa.Column("visibility", sa.String(16), nullable=False),
    sa.Column("min_trust", sa.String(16), nullable=False),
    # content
    sa.Column("title", sa.Text),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("narrative", sa.Text),
    _texts("facts"),
    _texts("steps"),
    _texts("tags"),
    _texts("related_files"),
    sa.Column("lang", sa.String(8)),
    # weight
    sa.Column("importance", sa.SmallInteger, nullable=False),
    sa.Column("pinned", sa.Boolean, nullable=False),
    sa.Column("confidence", sa.Float, nullable=False),
    sa.Column("decay_rate", sa.Float, nullable=False, server_default="0"),
    _count("reinforcement"),
    _count("mention_count", 1),
    _count("access_count"),
    _count("hits"),
    sa.Column("layer", sa.String(8), nullable=False),
    # epistemic
    sa.Column("trust_state", sa.String(16), nullable=False),
    sa.Column("source", sa.String(16), nullable=False),
    _texts("source_ids"),
    sa.Column("value_hash", sa.String(64), nullable=False),
    # time: when it was true, and when the system believed it
    _time("event_time"),
    _time("valid_from"),
    _time("valid_until"),
    _time("recorded_at", nullable=False),
    _time("superseded_at"),
    _time("updated_at", nullable=False),
    _time("last_accessed"),
    _time("last_hit_at"),
    _time("expires_at"),
    # lifecycle
    sa.Column("state", sa.String(16), nullable=False),
    _time("purge_at"),
    _id("superseded_by", nullable=True),
    _count("version", 1),
    _count("token_count"),
    _texts("pii"),
    sa.Column("attributes", Json, nullable=False),
    # search material, derived from the text
    sa.Column("term_length", sa.Integer, nullable=False),
    sa.Column("terms", sa.LargeBinary, nullable=False),
    sa.Column("embedding", Embedding()),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    _to_tenant(),
    sa.CheckConstraint("importance BETWEEN 1 AND 5", name="importance"),
    sa.CheckConstraint("confidence BETWEEN 0 AND 1", name="confidence"),
)
sa.Index("ix_memories_user", memories.c.tenant_id, memories.c.user_id, memories.c.id)
sa.Index(
    "uq_memories_value",
    *(
        memories.c[name]
        for name in ("tenant_id", "user_id", "category", "type", "visibility", "min_trust", "value_hash")
    ),
    unique=True,
    postgresql_where=memories.c.state == sa.literal_column("'active'"),
    sqlite_where=memories.c.state == sa.literal_column("'active'"),
)
_NAMED_AND_ACTIVE = sa.and_(memories.c.external_id.is_not(None), memories.c.state == sa.literal_column("'active'"))
sa.Index(
    "uq_memories_external",
    *(memories.c[name] for name in ("tenant_id", "user_id", "external_id")),
    unique=True,
    postgresql_where=_NAMED_AND_ACTIVE,
    sqlite_where=_NAMED_AND_ACTIVE,
)

thread_revision = sa.Table(
    "thread_revision",
    metadata,
    _tenant(),
    _key("user_id", nullable=False),
    _key("thread_id", nullable=False),
    sa.Column("rev", sa.BigInteger, nullable=False),
    sa.Column("turns", sa.BigInteger, nullable=False),
    _time("updated_at", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "user_id", "thread_id"),
    _to_tenant(),
    sa.Index("ix_thread_revision_thread", "tenant_id", "thread_id"),
    sa.Index("ix_thread_revision_recent", "tenant_id", "user_id", "updated_at"),
)

turns = sa.Table(
    "turns",
    metadata,
    _tenant(),
    _id(),
    _key("user_id", nullable=False),
    _key("thread_id", nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("rev", sa.BigInteger, nullable=False),
    sa.Column("role", sa.String(16), nullable=False),
    _key("actor_id"),
    _key("agent_id"),
    _key("run_id"),
    _key("external_id"),
    sa.Column("text", sa.Text, nullable=False),
    _time("event_time"),
    _time("recorded_at", nullable=False),
    # which copy of the conversation this is; 0 for a thread's units in search signals means "no thread"
    sa.Column("thread_key", sa.BigInteger, nullable=False),
    sa.Column("term_length", sa.Integer, nullable=False),
    sa.Column("terms", sa.LargeBinary, nullable=False),
    sa.Column("embedding", Embedding()),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    sa.UniqueConstraint("tenant_id", "user_id", "thread_id", "seq"),
    sa.ForeignKeyConstraint(
        ["tenant_id", "user_id", "thread_id"],
        ["thread_revision.tenant_id", "thread_revision.user_id", "thread_revision.thread_id"],
    ),
)
sa.Index("ix_turns_user", turns.c.tenant_id, turns.c.user_id, turns.c.id)
sa.Index(
    "uq_turns_external",
    *(turns.c[name] for name in ("tenant_id", "user_id", "thread_id", "external_id")),
    unique=True,
    postgresql_where=turns.c.external_id.is_not(None),
    sqlite_where=turns.c.external_id.is_not(None),
)

change_log = sa.Table(
    "change_log",
    metadata,
    _tenant(),
    _id(),
    _key("user_id", nullable=False),
    _key("thread_id", nullable=False),
    sa.Column("rev", sa.BigInteger, nullable=False),
    _id("memory_id"),  # the turn's id where the event is `turn`
    sa.Column("event", sa.String(16), nullable=False),
    sa.Column("category", sa.String(63), nullable=False),
    sa.Column("meta", Json, nullable=False),
    _time("ts", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    sa.UniqueConstraint("tenant_id", "user_id", "thread_id", "rev"),
    sa.ForeignKeyConstraint(
        ["tenant_id", "user_id", "thread_id"],
        ["thread_revision.tenant_id", "thread_revision.user_id", "thread_revision.thread_id"],
    ),
)

history = sa.Table(
    "history",
    metadata,
    _tenant(),
    _id(),
    _id("memory_id"),
    sa.Column("event", sa.String(16), nullable=False),
    sa.Column("old_ref", sa.Text),
    sa.Column("new_ref", sa.Text),
    _key("actor", nullable=False),
    sa.Column("meta", Json, nullable=False),
    sa.Column("policy_hash", sa.String(80), nullable=False),
    _time("ts", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    _to_tenant(),
    sa.Index("ix_history_memory", "tenant_id", "memory_id", "id"),
)

relations = sa.Table(
    "relations",
    metadata,
    _tenant(),
    _id(),
    _id("from_id"),
    _id("to_id"),
    sa.Column("relation_type", sa.String(63), nullable=False, server_default="related_to"),
    sa.Column("strength", sa.Float, nullable=False),
    _count("co_recalls"),
    _time("created_at", nullable=False),
    _time("updated_at", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    sa.UniqueConstraint("tenant_id", "from_id", "to_id", "relation_type"),
    _to_memory("from_id", "fk_relations_from"),
    _to_memory("to_id", "fk_relations_to"),
    sa.CheckConstraint("from_id <> to_id", name="two_ends"),
    sa.Index("ix_relations_to", "tenant_id", "to_id"),
)

entities = sa.Table(
    "entities",
    metadata,
    _tenant(),
    _id(),
    _key("user_id", nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    _key("name_key", nullable=False),
    _time("created_at", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    sa.UniqueConstraint("tenant_id", "user_id", "kind", "name_key"),
    _to_tenant(),
)

entity_aliases = sa.Table(
    "entity_aliases",
    metadata,
    _tenant(),
    _id(),
    _id("entity_id"),
    sa.Column("alias", sa.Text, nullable=False),
    _key("alias_key", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    sa.UniqueConstraint("tenant_id", "entity_id", "alias_key"),
    sa.ForeignKeyConstraint(["tenant_id", "entity_id"], ["entities.tenant_id", "entities.id"], ondelete="CASCADE"),
    sa.Index("ix_entity_aliases_key", "tenant_id", "alias_key"),
)

memory_entities = sa.Table(
    "memory_entities",
    metadata,
    _tenant(),
    _id("memory_id"),
    _id("entity_id"),
    sa.PrimaryKeyConstraint("tenant_id", "memory_id", "entity_id"),
    _to_memory("memory_id", "fk_memory_entities_memory"),
    sa.ForeignKeyConstraint(
        ["tenant_id", "entity_id"],
        ["entities.tenant_id", "entities.id"],
        name="fk_memory_entities_entity",
        ondelete="CASCADE",
    ),
    sa.Index("ix_memory_entities_entity", "tenant_id", "entity_id"),
)

events = sa.Table(
    "events",
    metadata,
    _tenant(),
    _id(),
    _key("user_id"),
    _key("thread_id"),
    sa.Column("node", sa.String(16), nullable=False),
    sa.Column("op", sa.String(16), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    _id("memory_id", nullable=True),
    sa.Column("category", sa.String(63)),
    sa.Column("sim", sa.Float),
    _time("ts", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    _to_tenant(),
    sa.Index("ix_events_user", "tenant_id", "user_id", "ts"),
    sa.Index("ix_events_node", "tenant_id", "node", "ts"),
)

tombstones = sa.Table(
    "tombstones",
    metadata,
    _tenant(),
    _id(),
    _key("scope", nullable=False),
    sa.Column("category", sa.String(63), nullable=False),
    sa.Column("value_hash", sa.String(64), nullable=False),
    sa.Column("reason", sa.String(63), nullable=False),
    _key("actor", nullable=False),
    _time("ts", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    sa.UniqueConstraint("tenant_id", "scope", "category", "value_hash"),
    _to_tenant(),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    _tenant(),
    sa.Column("key_id", sa.String(32), nullable=False),
    sa.Column("secret_hash", sa.LargeBinary, nullable=False),
    _key("agent"),
    _texts("act_for"),
    sa.Column("users", JsonOrNull),  # null: every user of the tenant
    sa.Column("trust", sa.String(16), nullable=False),
    _texts("scopes"),
    _key("label"),
    _time("created_at", nullable=False),
    _time("expires_at"),
    _time("revoked_at"),
    _time("last_used_at"),
    sa.PrimaryKeyConstraint("tenant_id", "key_id"),
    _to_tenant(),
    sa.Index("ix_api_keys_key", "key_id"),
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    _tenant(),
    sa.Column("key_id", sa.String(32), nullable=False),
    _key("idempotency_key", nullable=False),
    sa.Column("request_hash", sa.String(64), nullable=False),
    sa.Column("answer", Json, nullable=False),
    _time("created_at", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "key_id", "idempotency_key"),
    _to_tenant(),
    sa.Index("ix_idempotency_keys_age", "tenant_id", "created_at"),
)

settings = sa.Table(
    "metadata",
    metadata,
    _tenant(),
    sa.Column("name", sa.String(63), nullable=False),
    sa.Column("value", Json, nullable=False),
    _time("updated_at", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "name"),
    _to_tenant(),
)

APPEND_ONLY = frozenset({"history"})
"""Tables on which the application role has neither UPDATE nor DELETE."""
