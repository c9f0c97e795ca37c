"""The schema.

Every key starts with ``tenant_id``: a foreign key without it would accept another tenant's row, and a unique key
without it would tell a stranger that a value exists.
"""

import sqlalchemy as sa

from memplane.adapters.sql.schema.checkpoint_tables import (
    checkpoint_blobs,
    checkpoint_writes,
    checkpoints,
    supervisor_checkpoints,
)
from memplane.adapters.sql.schema.columns import (
    KEY,
    count_column,
    id_column,
    metadata,
    name_column,
    rows_where,
    tenant_column,
    texts_column,
    time_column,
    to_memory,
    to_tenant,
)
from memplane.adapters.sql.schema.service_tables import (
    api_keys,
    consent_proposals,
    context_signals,
    erasures,
    events,
    history_seals,
    idempotency_keys,
    job_runs,
    job_users,
    key_history,
    pair_checks,
    sessions,
    settings,
    token_budgets,
    tombstones,
    undo_records,
    user_activity,
    user_context,
    user_merge_rows,
    user_merges,
    user_settings,
    user_usage,
)
from memplane.adapters.sql.schema.types import Embedding, Json

__all__ = [
    "APPEND_ONLY",
    "DERIVED",
    "api_keys",
    "change_log",
    "checkpoint_blobs",
    "checkpoint_writes",
    "checkpoints",
    "consent_proposals",
    "context_signals",
    "entities",
    "entity_aliases",
    "erasures",
    "events",
    "history",
    "history_seals",
    "idempotency_keys",
    "job_runs",
    "job_users",
    "key_history",
    "memories",
    "memory_entities",
    "memory_sources",
    "metadata",
    "pair_checks",
    "relations",
    "sessions",
    "settings",
    "supervisor_checkpoints",
    "tenants",
    "thread_revision",
    "token_budgets",
    "tombstones",
    "turns",
    "undo_records",
    "user_activity",
    "user_context",
    "user_merge_rows",
    "user_merges",
    "user_settings",
    "user_usage",
]

tenants = sa.Table(
    "tenants",
    metadata,
    tenant_column(),
    time_column("created_at", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id"),
    sa.CheckConstraint("tenant_id <> ''", name="tenant_named"),
)

memories = sa.Table(
    "memories",
    metadata,
    tenant_column(),
    id_column(),
    # scope
    name_column("user_id", nullable=False),
    name_column("agent_id"),
    name_column("run_id"),
    name_column("actor_id"),
    sa.Column("role", sa.String(16)),
    name_column("thread_id"),
    name_column("external_id"),
    # kind
    sa.Column("category", sa.String(63), nullable=False),
    sa.Column("type", sa.String(16), nullable=False),
    sa.Column("visibility", sa.String(16), nullable=False),
    sa.Column("min_trust", sa.String(16), nullable=False),
    # content
    sa.Column("title", sa.Text),
    sa.Column("content", sa.Text, nullable=False),
    sa.Column("narrative", sa.Text),
    texts_column("facts"),
    texts_column("steps"),
    texts_column("tags"),
    texts_column("related_files"),
    sa.Column("lang", sa.String(8)),
    # weight
    sa.Column("importance", sa.SmallInteger, nullable=False),
    sa.Column("pinned", sa.Boolean, nullable=False),
    sa.Column("confidence", sa.Float, nullable=False),
    sa.Column("decay_rate", sa.Float, nullable=False, server_default="0"),
    count_column("reinforcement"),
    count_column("mention_count", 1),
    count_column("access_count"),
    count_column("hits"),
    sa.Column("layer", sa.String(8), nullable=False),
    # epistemic
    sa.Column("authority", sa.SmallInteger, nullable=False, server_default="3"),
    sa.Column("trust_state", sa.String(16), nullable=False),
    sa.Column("source", sa.String(16), nullable=False),
    texts_column("source_ids"),
    sa.Column("value_hash", sa.String(64), nullable=False),
    # time: when it was true, and when the system believed it
    time_column("event_time"),
    time_column("valid_from"),
    time_column("asserted_at"),  # the time of the latest statement that was merged into it
    time_column("valid_until"),
    time_column("recorded_at", nullable=False),
    time_column("superseded_at"),
    time_column("updated_at", nullable=False),
    time_column("last_accessed"),
    time_column("last_hit_at"),
    time_column("expires_at"),
    # lifecycle
    sa.Column("state", sa.String(16), nullable=False),
    time_column("purge_at"),
    id_column("superseded_by", nullable=True),
    count_column("version", 1),
    count_column("token_count"),
    texts_column("pii"),
    sa.Column("attributes", Json, nullable=False),
    # search material, derived from the text
    sa.Column("term_length", sa.Integer, nullable=False),
    sa.Column("terms", sa.LargeBinary, nullable=False),
    sa.Column("embedding", Embedding()),
    sa.Column("embedding_2", Embedding()),
    sa.Column("enriched_by", sa.String(63)),  # what looked for its entities since its text was written
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    to_tenant(),
    sa.CheckConstraint("importance BETWEEN 1 AND 5", name="importance"),
    sa.CheckConstraint("confidence BETWEEN 0 AND 1", name="confidence"),
)
_ACTIVE = memories.c.state == sa.literal_column("'active'")
_OF_USER = (memories.c.tenant_id, memories.c.user_id)
sa.Index("ix_memories_user", *_OF_USER, memories.c.id)
sa.Index("ix_memories_recorded", *_OF_USER, memories.c.recorded_at)
sa.Index(
    "uq_memories_value",
    *_OF_USER,
    *(memories.c[name] for name in ("category", "type", "visibility", "min_trust", "value_hash")),
    unique=True,
    **rows_where(_ACTIVE),
)
sa.Index("ix_memories_updated", *_OF_USER, memories.c.updated_at, **rows_where(_ACTIVE))
_NAMED_AND_ACTIVE = sa.and_(memories.c.external_id.is_not(None), _ACTIVE)
sa.Index(
    "uq_memories_external",
    *(*_OF_USER, memories.c.external_id),
    unique=True,
    **rows_where(_NAMED_AND_ACTIVE),
)

_NAMED_AND_PAST = sa.and_(
    memories.c.external_id.is_not(None),
    memories.c.state.in_([sa.literal_column("'superseded'"), sa.literal_column("'archived'")]),
)
sa.Index(
    "ix_memories_external_past",
    *(memories.c[name] for name in ("tenant_id", "user_id", "external_id")),
    **rows_where(_NAMED_AND_PAST),
)

thread_revision = sa.Table(
    "thread_revision",
    metadata,
    tenant_column(),
    name_column("user_id", nullable=False),
    name_column("thread_id", nullable=False),
    sa.Column("rev", sa.BigInteger, nullable=False),
    sa.Column("turns", sa.BigInteger, nullable=False),
    time_column("updated_at", nullable=False),
    sa.Column("pruned_rev", sa.BigInteger, nullable=False, server_default="0"),  # the last whose change was pruned
    sa.PrimaryKeyConstraint("tenant_id", "user_id", "thread_id"),
    to_tenant(),
    sa.Index("ix_thread_revision_thread", "tenant_id", "thread_id"),
    sa.Index("ix_thread_revision_recent", "tenant_id", "user_id", "updated_at"),
)

turns = sa.Table(
    "turns",
    metadata,
    tenant_column(),
    id_column(),
    name_column("user_id", nullable=False),
    name_column("thread_id", nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("rev", sa.BigInteger, nullable=False),
    sa.Column("role", sa.String(16), nullable=False),
    name_column("actor_id"),
    name_column("agent_id"),
    name_column("run_id"),
    name_column("external_id"),
    sa.Column("text", sa.Text, nullable=False),
    time_column("event_time"),
    time_column("recorded_at", nullable=False),
    name_column("key_id"),  # what recorded it; the version before notes none
    sa.Column("vouched", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("time_zone", sa.String(63)),  # by which its relative dates are resolved; none: UTC
    # which copy of the conversation this is; 0 for a thread's units in search signals means "no thread"
    sa.Column("thread_key", sa.BigInteger, nullable=False),
    sa.Column("term_length", sa.Integer, nullable=False),
    sa.Column("terms", sa.LargeBinary, nullable=False),
    sa.Column("embedding", Embedding()),
    sa.Column("embedding_2", Embedding()),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    sa.UniqueConstraint("tenant_id", "user_id", "thread_id", "seq"),
    sa.ForeignKeyConstraint(
        ["tenant_id", "user_id", "thread_id"],
        ["thread_revision.tenant_id", "thread_revision.user_id", "thread_revision.thread_id"],
    ),
)
sa.Index("ix_turns_user", turns.c.tenant_id, turns.c.user_id, turns.c.id)
sa.Index("ix_turns_by_key", turns.c.tenant_id, turns.c.key_id, turns.c.recorded_at)
sa.Index("ix_turns_by_agent", turns.c.tenant_id, turns.c.agent_id, turns.c.recorded_at)
sa.Index(
    "uq_turns_external",
    *(turns.c[name] for name in ("tenant_id", "user_id", "thread_id", "external_id")),
    unique=True,
    **rows_where(turns.c.external_id.is_not(None)),
)

change_log = sa.Table(
    "change_log",
    metadata,
    tenant_column(),
    id_column(),
    name_column("user_id", nullable=False),
    name_column("thread_id", nullable=False),
    sa.Column("rev", sa.BigInteger, nullable=False),
    id_column("memory_id"),  # the turn's id where the event is `turn`
    sa.Column("event", sa.String(16), nullable=False),
    sa.Column("category", sa.String(63), nullable=False),
    sa.Column("meta", Json, nullable=False),
    time_column("ts", nullable=False),
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
    tenant_column(),
    id_column(),
    id_column("memory_id"),
    sa.Column("event", sa.String(16), nullable=False),
    sa.Column("old_ref", sa.Text),
    sa.Column("new_ref", sa.Text),
    name_column("actor", nullable=False),
    sa.Column("meta", Json, nullable=False),
    sa.Column("policy_hash", sa.String(80), nullable=False),
    time_column("ts", nullable=False),
    name_column("of_user"),  # whose words it holds; none once they are erased
    id_column("erased_by", nullable=True),  # the entry of the purge, or the receipt, with which its words went
    # where the chain has it, and by what: the salt goes with the words, and the hash tells nothing of them then
    sa.Column("salt", sa.LargeBinary),
    sa.Column("payload_hash", sa.LargeBinary),
    sa.Column("position", sa.BigInteger),
    sa.Column("link", sa.LargeBinary),
    # a column, because row-level security lets no index on an expression serve
    sa.Column("key_id", KEY, sa.Computed("meta ->> 'key'", persisted=True)),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    to_tenant(),
    sa.Index("ix_history_memory", "tenant_id", "memory_id", "id"),
    sa.Index("ix_history_user", "tenant_id", "of_user", "event"),
    sa.Index("ix_history_by_key", "tenant_id", "key_id", "id"),
    sa.Index("ix_history_by_actor", "tenant_id", "actor", "id"),
)
_SEALED, _UNSEALED = history.c.position.is_not(None), history.c.position.is_(None)
sa.Index(
    "uq_history_position",
    history.c.tenant_id,
    history.c.position,
    unique=True,
    **rows_where(_SEALED),
)
sa.Index("ix_history_unsealed", history.c.tenant_id, history.c.id, **rows_where(_UNSEALED))

relations = sa.Table(
    "relations",
    metadata,
    tenant_column(),
    id_column(),
    id_column("from_id"),
    id_column("to_id"),
    sa.Column("relation_type", sa.String(63), nullable=False, server_default="related_to"),
    sa.Column("strength", sa.Float, nullable=False),
    count_column("co_recalls"),
    time_column("created_at", nullable=False),
    time_column("updated_at", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    sa.UniqueConstraint("tenant_id", "from_id", "to_id", "relation_type"),
    sa.Index(
        "ix_relations_conflicts",
        "tenant_id",
        "id",
        postgresql_where=sa.text("relation_type = 'possible_conflict'"),
        sqlite_where=sa.text("relation_type = 'possible_conflict'"),
    ),
    to_memory("from_id", "fk_relations_from"),
    to_memory("to_id", "fk_relations_to"),
    sa.CheckConstraint("from_id <> to_id", name="two_ends"),
    sa.Index("ix_relations_to", "tenant_id", "to_id"),
)

entities = sa.Table(
    "entities",
    metadata,
    tenant_column(),
    id_column(),
    name_column("user_id", nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    name_column("name_key", nullable=False),
    time_column("created_at", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    sa.UniqueConstraint("tenant_id", "user_id", "kind", "name_key"),
    sa.Index("ix_entities_name", "tenant_id", "user_id", "name_key"),
    to_tenant(),
)

entity_aliases = sa.Table(
    "entity_aliases",
    metadata,
    tenant_column(),
    id_column(),
    id_column("entity_id"),
    sa.Column("alias", sa.Text, nullable=False),
    name_column("alias_key", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    sa.UniqueConstraint("tenant_id", "entity_id", "alias_key"),
    sa.ForeignKeyConstraint(["tenant_id", "entity_id"], ["entities.tenant_id", "entities.id"], ondelete="CASCADE"),
    sa.Index("ix_entity_aliases_key", "tenant_id", "alias_key"),
)

memory_entities = sa.Table(
    "memory_entities",
    metadata,
    tenant_column(),
    id_column("memory_id"),
    id_column("entity_id"),
    sa.PrimaryKeyConstraint("tenant_id", "memory_id", "entity_id"),
    to_memory("memory_id", "fk_memory_entities_memory"),
    sa.ForeignKeyConstraint(
        ["tenant_id", "entity_id"],
        ["entities.tenant_id", "entities.id"],
        name="fk_memory_entities_entity",
        ondelete="CASCADE",
    ),
    sa.Index("ix_memory_entities_entity", "tenant_id", "entity_id", "memory_id"),
)

memory_sources = sa.Table(  # triggers keep it
    "memory_sources",
    metadata,
    tenant_column(),
    sa.Column("source_id", sa.Text, nullable=False),
    id_column("memory_id"),
    sa.PrimaryKeyConstraint("tenant_id", "source_id", "memory_id"),
    to_memory("memory_id", "fk_memory_sources_memory"),
    sa.Index("ix_memory_sources_memory", "tenant_id", "memory_id"),
)

APPEND_ONLY = frozenset({"history", "history_seals", "key_history"})
"""Tables on which the application role has neither UPDATE nor DELETE."""
DERIVED = frozenset({"memory_sources", "user_usage"})
"""Tables that triggers keep."""
