"""Tables beside memories and turns: keys, answers, settings, what is buried, proposed or noted of operation."""

import sqlalchemy as sa

from memplane.adapters.sql.schema.columns import (
    count_column,
    id_column,
    metadata,
    name_column,
    rows_where,
    tenant_column,
    texts_column,
    time_column,
    to_tenant,
    tokens_column,
)
from memplane.adapters.sql.schema.types import Json, JsonOrNull

events = sa.Table(
    "events",
    metadata,
    tenant_column(),
    id_column(),
    name_column("user_id"),
    name_column("thread_id"),
    sa.Column("node", sa.String(16), nullable=False),
    sa.Column("op", sa.String(16), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    id_column("memory_id", nullable=True),
    sa.Column("category", sa.String(63)),
    sa.Column("sim", sa.Float),
    time_column("ts", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    to_tenant(),
    sa.Index("ix_events_user", "tenant_id", "user_id", "ts"),
    sa.Index("ix_events_node", "tenant_id", "node", "ts"),
    sa.Index("ix_events_listed", "tenant_id", "user_id", "id"),
    sa.Index(
        "ix_events_recalled",
        "tenant_id",
        "user_id",
        "ts",
        postgresql_where=sa.text("op = 'recall_on_demand'"),
        sqlite_where=sa.text("op = 'recall_on_demand'"),
    ),
)

tombstones = sa.Table(
    "tombstones",
    metadata,
    tenant_column(),
    id_column(),
    name_column("scope", nullable=False),
    sa.Column("category", sa.String(63), nullable=False),
    sa.Column("value_hash", sa.String(64), nullable=False),
    sa.Column("reason", sa.String(63), nullable=False),
    name_column("actor", nullable=False),
    time_column("ts", nullable=False),
    id_column("verdict_id", nullable=True),  # what was rejected at once; none for what an erasure left
    id_column("subject_id", nullable=True),  # the memory, proposal or turn that it was given on
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    sa.UniqueConstraint("tenant_id", "scope", "category", "value_hash"),
    to_tenant(),
    sa.Index("ix_tombstones_verdict", "tenant_id", "verdict_id", "id"),
)

consent_proposals = sa.Table(
    "consent_proposals",
    metadata,
    tenant_column(),
    id_column(),
    name_column("user_id", nullable=False),
    sa.Column("field", sa.String(63), nullable=False),
    sa.Column("old_value", sa.Text),
    sa.Column("new_value", sa.Text, nullable=False),
    sa.Column("value_hash", sa.String(64), nullable=False),
    id_column("evidence", nullable=True),  # the turn that says it
    sa.Column("confidence", sa.Float, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    name_column("actor", nullable=False),
    sa.Column("policy_hash", sa.String(80), nullable=False),
    sa.Column("meta", Json, nullable=False),
    time_column("created_at", nullable=False),
    time_column("expires_at", nullable=False),
    time_column("decided_at"),
    sa.Column("category", sa.String(63), nullable=False, server_default="profile"),
    name_column("decided_by"),
    id_column("acknowledged_by", nullable=True),  # the turn that agrees to it
    id_column("memory_id", nullable=True),  # what it became
    sa.Column("reason", sa.String(63)),
    name_column("key_id"),  # what proposed it last; the version before notes none
    time_column("asked_at"),  # when the same was proposed again; null: it was not
    sa.Column("self_acknowledged", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    to_tenant(),
    sa.Index("ix_consent_proposals_user", "tenant_id", "user_id", "state", "id"),
)

user_context = sa.Table(
    "user_context",
    metadata,
    tenant_column(),
    name_column("user_id", nullable=False),
    sa.Column("field", sa.String(63), nullable=False),
    sa.Column("value_hash", sa.String(64), nullable=False),
    sa.Column("field_value", sa.Text, nullable=False),
    sa.Column("category", sa.String(63), nullable=False),
    id_column("memory_id"),  # holds it: who may read that one may read the field, for as long as it is active
    id_column("proposal_id", nullable=True),
    id_column("evidence", nullable=True),
    name_column("actor", nullable=False),
    sa.Column("policy_hash", sa.String(80), nullable=False),
    time_column("decided_at", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "user_id", "field", "value_hash"),
    to_tenant(),
)

context_signals = sa.Table(
    "context_signals",
    metadata,
    tenant_column(),
    name_column("user_id", nullable=False),
    sa.Column("field", sa.String(63), nullable=False),
    sa.Column("value_hash", sa.String(64), nullable=False),
    id_column("turn_id"),
    id_column("memory_id"),
    sa.Column("confidence", sa.Float, nullable=False),
    time_column("ts", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "user_id", "field", "value_hash", "turn_id"),
    to_tenant(),
)

job_runs = sa.Table(
    "job_runs",
    metadata,
    tenant_column(),
    sa.Column("name", sa.String(32), nullable=False),
    sa.Column("period", sa.String(10), nullable=False),  # the day, UTC
    time_column("as_of", nullable=False),  # the moment by which the whole run decides
    sa.Column("worker", sa.String(64)),  # who is at it, and until when nobody else is
    time_column("lease_until"),
    sa.Column("place", sa.String(300)),  # where the next batch begins
    sa.Column("counts", Json, nullable=False),
    time_column("started_at", nullable=False),
    time_column("finished_at"),
    id_column("id", nullable=True),  # the version before makes rows without
    sa.Column("state", sa.String(16), nullable=False, server_default="done"),
    count_column("attempts"),  # in a row, that came no further
    time_column("due_at"),  # not before that, of one that waits
    sa.Column("error", sa.Text),  # of the last attempt
    tokens_column("input_tokens"),
    tokens_column("output_tokens"),
    sa.Column("cost", sa.Float, nullable=False, server_default="0"),
    sa.Column("skipped", sa.String(32)),  # why a part of the work was left out
    sa.PrimaryKeyConstraint("tenant_id", "name", "period"),
    to_tenant(),
    sa.Index("uq_job_runs_tenant_id_id", "tenant_id", "id", unique=True),
    sa.Index("ix_job_runs_state", "tenant_id", "state"),
)

token_budgets = sa.Table(
    "token_budgets",
    metadata,
    tenant_column(),
    sa.Column("day", sa.String(10), nullable=False),  # UTC
    name_column("user_id", nullable=False),  # none has the name '': the tenant as a whole
    tokens_column("reserved"),
    tokens_column("input_tokens"),
    tokens_column("output_tokens"),
    count_column("drawn"),  # that were drawn with a model
    sa.PrimaryKeyConstraint("tenant_id", "day", "user_id"),
    to_tenant(),
    sa.Index("ix_token_budgets_user", "tenant_id", "user_id"),
)

job_users = sa.Table(
    "job_users",
    metadata,
    tenant_column(),
    sa.Column("name", sa.String(32), nullable=False),  # of the job
    name_column("user_id", nullable=False),
    time_column("done_at", nullable=False),  # the moment by which it was done for the user last
    sa.PrimaryKeyConstraint("tenant_id", "user_id", "name"),
    to_tenant(),
)

user_activity = sa.Table(  # stretches in which a user was never away for long
    "user_activity",
    metadata,
    tenant_column(),
    name_column("user_id", nullable=False),
    time_column("began_at", nullable=False),
    time_column("last_at", nullable=False),  # on the day of the last activity
    time_column("resumed_at"),  # the first activity after it; none for the current stretch
    sa.PrimaryKeyConstraint("tenant_id", "user_id", "began_at"),
    to_tenant(),
    sa.Index(
        "uq_user_activity_current",
        "tenant_id",
        "user_id",
        unique=True,
        postgresql_where=sa.text("resumed_at IS NULL"),
        sqlite_where=sa.text("resumed_at IS NULL"),
    ),
)

user_settings = sa.Table(
    "user_settings",
    metadata,
    tenant_column(),
    name_column("user_id", nullable=False),
    sa.Column("time_zone", sa.String(63)),
    name_column("actor", nullable=False),
    time_column("updated_at", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "user_id"),
    to_tenant(),
)

user_usage = sa.Table(  # what is stored, counted by triggers on memories and turns
    "user_usage",
    metadata,
    tenant_column(),
    name_column("user_id", nullable=False),
    sa.Column("memories", sa.BigInteger, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("day", sa.String(10), nullable=False),  # of UTC, on which the writes were made
    sa.Column("writes", sa.BigInteger, nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "user_id"),
    to_tenant(),
)

sessions = sa.Table(
    "sessions",
    metadata,
    tenant_column(),
    name_column("user_id", nullable=False),
    name_column("thread_id", nullable=False),
    name_column("agent", nullable=False),  # for whom it was closed
    time_column("first_seen", nullable=False),
    time_column("closed_at", nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),  # its last turn by then
    id_column("summary_id", nullable=True),  # the memory that sums it up
    sa.Column("facts_seq", sa.BigInteger, nullable=False, server_default="0"),  # the last turn that was consolidated
    time_column("facts_after"),  # it is not gone on with before
    sa.PrimaryKeyConstraint("tenant_id", "user_id", "thread_id"),
    sa.Index(
        "ix_sessions_unread",
        "tenant_id",
        "user_id",
        "thread_id",
        postgresql_where=sa.text("facts_seq < seq"),
        sqlite_where=sa.text("facts_seq < seq"),
    ),
    sa.ForeignKeyConstraint(
        ["tenant_id", "user_id", "thread_id"],
        ["thread_revision.tenant_id", "thread_revision.user_id", "thread_revision.thread_id"],
    ),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    tenant_column(),
    sa.Column("key_id", sa.String(32), nullable=False),
    sa.Column("secret_hash", sa.LargeBinary, nullable=False),
    name_column("agent"),
    texts_column("act_for"),
    sa.Column("users", JsonOrNull),  # null: every user of the tenant
    sa.Column("trust", sa.String(16), nullable=False),
    texts_column("scopes"),
    # the scope `turns:user`, kept apart: the version before knows no such scope and would refuse the whole key
    sa.Column("user_turns", sa.Boolean, nullable=False, server_default=sa.false()),
    name_column("label"),
    time_column("created_at", nullable=False),
    time_column("expires_at"),
    time_column("revoked_at"),
    time_column("last_used_at"),
    sa.PrimaryKeyConstraint("tenant_id", "key_id"),
    to_tenant(),
    sa.Index("ix_api_keys_key", "key_id"),
)

key_history = sa.Table(
    "key_history",
    metadata,
    tenant_column(),
    id_column(),
    sa.Column("key_id", sa.String(32), nullable=False),
    sa.Column("event", sa.String(16), nullable=False),
    name_column("actor", nullable=False),
    name_column("by_key"),
    sa.Column("meta", Json, nullable=False),
    time_column("ts", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    sa.ForeignKeyConstraint(["tenant_id", "key_id"], ["api_keys.tenant_id", "api_keys.key_id"]),
    sa.Index("ix_key_history_key", "tenant_id", "key_id", "id"),
    sa.Index("ix_key_history_by_key", "tenant_id", "by_key", "ts"),
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    tenant_column(),
    sa.Column("key_id", sa.String(32), nullable=False),
    name_column("idempotency_key", nullable=False),
    sa.Column("request_hash", sa.String(64), nullable=False),
    sa.Column("answer", Json, nullable=False),
    time_column("created_at", nullable=False),
    name_column("of_user"),  # of whom it tells; none where it may be of several, or is not known
    sa.PrimaryKeyConstraint("tenant_id", "key_id", "idempotency_key"),
    to_tenant(),
    sa.Index("ix_idempotency_keys_age", "tenant_id", "created_at"),
    sa.Index("ix_idempotency_keys_user", "tenant_id", "of_user"),
)

erasures = sa.Table(
    "erasures",
    metadata,
    tenant_column(),
    id_column(),
    sa.Column("subject", sa.String(64), nullable=False),  # the keyed hash of the user's name
    name_column("of_user"),  # while it runs, and no longer
    name_column("actor", nullable=False),
    sa.Column("policy_hash", sa.String(80), nullable=False),
    sa.Column("counts", Json, nullable=False),
    time_column("started_at", nullable=False),
    time_column("finished_at"),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    to_tenant(),
    sa.Index("ix_erasures_subject", "tenant_id", "subject"),
)

pair_checks = sa.Table(
    "pair_checks",
    metadata,
    tenant_column(),
    name_column("user_id", nullable=False),
    sa.Column("fingerprint", sa.String(64), nullable=False),  # SHA-256 of the value hashes of both memories
    sa.Column("verdict", sa.String(16), nullable=False),
    time_column("checked_at", nullable=False),
    sa.Column("prompt_version", sa.String(100)),  # none where rules have decided
    sa.PrimaryKeyConstraint("tenant_id", "user_id", "fingerprint"),
    to_tenant(),
    sa.Index("ix_pair_checks_age", "tenant_id", "checked_at"),
)

history_seals = sa.Table(
    "history_seals",
    metadata,
    tenant_column(),
    sa.Column("position", sa.BigInteger, nullable=False),  # of the last entry that it seals
    sa.Column("entries", sa.Integer, nullable=False),
    sa.Column("head", sa.LargeBinary, nullable=False),
    time_column("sealed_at", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "position"),
    to_tenant(),
)

settings = sa.Table(
    "metadata",
    metadata,
    tenant_column(),
    sa.Column("name", sa.String(63), nullable=False),
    sa.Column("value", Json, nullable=False),
    time_column("updated_at", nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "name"),
    to_tenant(),
)

undo_records = sa.Table(  # what changes changed; one that is about a memory has the id of its history entry
    "undo_records",
    metadata,
    tenant_column(),
    id_column(),
    name_column("user_id", nullable=False),
    id_column("about"),
    sa.Column("kind", sa.String(16), nullable=False),
    name_column("actor", nullable=False),
    name_column("key_id"),
    sa.Column("changes", Json, nullable=False),
    sa.Column("said", JsonOrNull),  # the memory that was counted into it
    time_column("ts", nullable=False),
    id_column("reverted_by", nullable=True),  # the receipt of what took it back
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    to_tenant(),
    sa.Index("ix_undo_records_about", "tenant_id", "about", "id"),
    sa.Index("ix_undo_records_user", "tenant_id", "user_id", "id"),
)
_BESIDE_MEMORIES = rows_where(undo_records.c.kind != "memory")
sa.Index(
    "ix_undo_records_by_key", *(undo_records.c[name] for name in ("tenant_id", "key_id", "id")), **_BESIDE_MEMORIES
)
sa.Index(
    "ix_undo_records_by_actor", *(undo_records.c[name] for name in ("tenant_id", "actor", "id")), **_BESIDE_MEMORIES
)

user_merges = sa.Table(
    "user_merges",
    metadata,
    tenant_column(),
    id_column(),
    name_column("from_user", nullable=False),
    name_column("into_user", nullable=False),
    name_column("actor", nullable=False),
    sa.Column("policy_hash", sa.String(80), nullable=False),
    sa.Column("counts", Json, nullable=False),
    time_column("merged_at", nullable=False),
    time_column("revertible_until", nullable=False),
    time_column("undone_at"),
    sa.PrimaryKeyConstraint("tenant_id", "id"),
    to_tenant(),
    sa.Index("ix_user_merges_into", "tenant_id", "into_user"),
)
sa.Index(
    "uq_user_merges_from",
    *(user_merges.c[name] for name in ("tenant_id", "from_user")),
    unique=True,
    **rows_where(user_merges.c.undone_at.is_(None)),
)

user_merge_rows = sa.Table(  # what moved in a merge, by table, until it can no longer be undone
    "user_merge_rows",
    metadata,
    tenant_column(),
    id_column("merge_id"),
    sa.Column("name", sa.String(63), nullable=False),
    sa.Column("part", sa.Integer, nullable=False),
    sa.Column("entries", Json, nullable=False),
    sa.PrimaryKeyConstraint("tenant_id", "merge_id", "name", "part"),
    sa.ForeignKeyConstraint(
        ["tenant_id", "merge_id"],
        ["user_merges.tenant_id", "user_merges.id"],
        name="fk_user_merge_rows_merge",
        ondelete="CASCADE",
    ),
)
