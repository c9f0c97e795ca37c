"""What fills the tables of a busy database: twenty users of twenty thousand memories and turns in each tenant."""

USERS, THREADS, TURNS = 20, 50, 10

# Rows for each tenant: (table, number of rows, expressions of n).
USER = {"user_id": f"'user-' || n % {USERS}", "thread_id": f"'thread-' || n / {USERS} % {THREADS}"}
WRITER = {"actor": "'agent:agent-' || n % 100"}
NTH = "md5({tenant} || n)::uuid"
FILLING: dict[str, tuple[int, dict[str, str]]] = {
    "tenants": (1, {}),
    "thread_revision": (USERS * THREADS, USER),
    "turns": (
        USERS * THREADS * TURNS,
        USER | {"id": NTH, "seq": f"n / {USERS * THREADS}", "external_id": "'turn-' || n", "role": "'user'"}
        | {"key_id": "'key-' || n % 100", "agent_id": "'agent-' || n % 100"},
    ),
    "sessions": (USERS * THREADS, USER),
    "change_log": (
        USERS * THREADS * TURNS,
        USER | {"rev": f"n / {USERS * THREADS}", "memory_id": NTH, "event": "'created'"},
    ),
    "memories": (
        USERS * THREADS * TURNS,
        USER | {"id": NTH, "value_hash": "'value-' || n", "external_id": "'memory-' || n", "category": "'tasks'"}
        | {"state": "'active'", "trust_state": "'confirmed'", "type": "'semantic'", "visibility": "'private'"}
        | {"source": "'user'", "layer": "'mid'", "role": "'user'"},
    ),
    "memory_sources": (USERS * THREADS * TURNS, {"source_id": "'source-' || n", "memory_id": NTH}),
    "history": (
        USERS * THREADS * TURNS,
        {"memory_id": NTH, "event": "'ADD'", "meta": "jsonb_build_object('key', 'key-' || n % 100)"} | WRITER,
    ),
    "undo_records": (
        USERS * THREADS * TURNS,
        USER | {"id": NTH, "about": NTH, "key_id": "'key-' || n % 100"} | WRITER
        | {"kind": "CASE n % 4 WHEN 0 THEN 'field' ELSE 'memory' END"},
    ),
    "relations": (USERS * THREADS * TURNS, {"from_id": NTH, "to_id": "md5({tenant} || (n + 1) % {rows})::uuid"}),
    "events": (USERS * THREADS * TURNS, USER),
    "tombstones": (
        USERS * 500,
        {"scope": f"'user-' || n % {USERS}", "category": "'tasks'", "value_hash": "'value-' || n"},
    ),
    "entities": (USERS * 500, USER | {"id": NTH, "kind": "'person'", "name_key": "'name-' || n"}),
    "entity_aliases": (USERS * 500, {"entity_id": NTH, "alias_key": "'alias-' || n"}),
    "memory_entities": (USERS * 500, {"memory_id": NTH, "entity_id": NTH}),
    "idempotency_keys": (
        USERS * 500,
        {"key_id": f"'key-' || n % {USERS}", "idempotency_key": "'once-' || n", "of_user": f"'user-' || n % {USERS}"},
    ),
    "checkpoints": (
        USERS * THREADS * TURNS,
        USER | {"checkpoint_id": "lpad(n::text, 8, '0')", "checkpoint_ns": "''", "metadata": "'{{}}'"}
        | {"checkpoint": "'{{}}'", "head": f"n / {USERS * THREADS} = {TURNS - 1}", "key_id": "'key-' || n % 100"},
    ),
    "checkpoint_blobs": (
        USERS * THREADS * TURNS, USER | {"checkpoint_ns": "''", "channel": "'messages'", "version": "n::text"},
    ),
    "checkpoint_writes": (
        USERS * THREADS * TURNS,
        USER | {"checkpoint_ns": "''", "checkpoint_id": "lpad(n::text, 8, '0')", "channel": "'messages'"},
    ),
    "supervisor_checkpoints": (
        USERS * THREADS, USER | {"id": NTH, "checkpoint_data": "'{{}}'", "key_id": "'key-' || n % 100"},
    ),
    "consent_proposals": (USERS * 500, USER | {"id": NTH, "state": "'pending'", "value_hash": "'value-' || n"}
        | {"expires_at": "'2026-06-01'::timestamptz + n * interval '1 hour' - interval '7 days'"}),
    "user_context": (USERS * 500, USER | {"field": "'city'", "value_hash": "'value-' || n", "memory_id": NTH}),
    "context_signals": (USERS * 500, USER | {"field": "'tone'", "value_hash": "'value-' || n", "turn_id": NTH}),
    "job_users": (
        USERS * 90,
        {"user_id": f"'user-' || n % {USERS}", "name": f"'job-' || n / {USERS}"},
    ),
    "user_activity": (
        USERS * 500,
        {"user_id": f"'user-' || n % {USERS}", "began_at": "'2026-06-01'::timestamptz - n * interval '1 hour'"}
        | {"resumed_at": f"CASE WHEN n >= {USERS} THEN '2026-06-01'::timestamptz - n * interval '30 minutes' END"},
    ),
    "user_settings": (2_000, {"user_id": "'user-' || n", "time_zone": "'Europe/Berlin'"}),
    "token_budgets": (USERS * 90, {"user_id": f"'user-' || n % {USERS}", "day": f"'day-' || n / {USERS}"}),
    "pair_checks": (
        USERS * 500,
        {"user_id": f"'user-' || n % {USERS}", "fingerprint": "'pair-' || n"}
        | {"checked_at": "'2026-06-01'::timestamptz + n * interval '1 minute'"},
    ),
    "job_runs": (365, {"name": "'ttl'", "period": "n::text"}),
    "api_keys": (2_000, {"key_id": "{tenant} || n", "trust": "'full'"}),
    "key_history": (
        20_000,
        {"id": NTH, "key_id": "{tenant} || n % 2000", "event": "'rotated'", "by_key": "'key-' || n % 100"},
    ),
}  # fmt: skip
