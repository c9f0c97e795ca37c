"""Which table a merge of users handles in which way, and rows as JSON records them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.schema.types import UtcTime
from memplane.adapters.sql.session import MANY

THREADED = (tables.turns, tables.change_log, tables.sessions)
"""Tables that refer to a thread."""
CHECKPOINTS = (
    tables.checkpoints,
    tables.checkpoint_blobs,
    tables.checkpoint_writes,
    tables.supervisor_checkpoints,
)
LISTED: Mapping[sa.Table, sa.Column[Any]] = {
    tables.consent_proposals: tables.consent_proposals.c.user_id,
    tables.context_signals: tables.context_signals.c.user_id,
    tables.events: tables.events.c.user_id,
    tables.undo_records: tables.undo_records.c.user_id,
    tables.idempotency_keys: tables.idempotency_keys.c.of_user,
    tables.user_merges: tables.user_merges.c.into_user,
}
"""Tables whose rows move as they are, with the column that names the user."""
FOLDED: Mapping[sa.Table, tuple[sa.Column[Any], tuple[str, ...]]] = {
    tables.tombstones: (tables.tombstones.c.scope, ("category", "value_hash")),
    tables.pair_checks: (tables.pair_checks.c.user_id, ("fingerprint",)),
    tables.user_context: (tables.user_context.c.user_id, ("field", "value_hash")),
    tables.user_settings: (tables.user_settings.c.user_id, ()),
    tables.job_users: (tables.job_users.c.user_id, ("name",)),
}
"""Tables of which the other user may have the same row already, and by which columns that shows."""
ADDED_UP = (tables.token_budgets, tables.user_activity, tables.user_usage)
"""Counters, which are added to those of the other user and are not divided again."""
OTHERWISE = (tables.memories, tables.thread_revision, tables.entities, tables.job_runs)
"""Tables that are handled one by one."""
LEFT: Mapping[str, str] = {
    "history": "append-only, and chained over the user's name; readers look up aliases",
    "api_keys": "a key that is bound to the former name must not reach the other user",
    "erasures": "there is none under way of either user",
    "tenants": "of the tenant",
    "metadata": "of the tenant",
    "history_seals": "of the tenant",
    "key_history": "of keys",
    "relations": "of memories",
    "memory_entities": "of memories and entities",
    "memory_sources": "of memories",
    "entity_aliases": "of entities",
    "user_merge_rows": "of a merge",
}
"""Tables that a merge leaves alone, and why."""
HANDLED = frozenset(
    table.name for table in (*THREADED, *CHECKPOINTS, *LISTED, *FOLDED, *ADDED_UP, *OTHERWISE)
)  # fmt: skip


def key_columns(table: sa.Table, user: sa.Column[Any]) -> list[sa.Column[Any]]:
    """The primary key but for the tenant and the user."""
    return [column for column in table.primary_key.columns if column.name not in {"tenant_id", user.name}]


def row_to_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as JSON has it, without its tenant."""
    return {name: _plain(value) for name, value in row.items() if name != "tenant_id"}


def row_from_json(table: sa.Table, row: Mapping[str, Any]) -> dict[str, Any]:
    """A recorded row as the table has it, without its tenant."""
    return {name: _read(table.c[name], value) for name, value in row.items()}


def key_of(columns: Sequence[sa.Column[Any]], entry: Sequence[Any]) -> tuple[Any, ...]:
    """A recorded key as the table has it."""
    return tuple(_read(column, value) for column, value in zip(columns, entry, strict=True))


def plain_key(values: Iterable[Any]) -> list[Any]:
    """A key as JSON has it."""
    return [_plain(value) for value in values]


def parts(values: Sequence[Any], most: int = MANY) -> Iterable[Sequence[Any]]:
    """The values in the order that they have, so many at a time."""
    for start in range(0, len(values), most):
        yield values[start : start + most]


def _plain(value: Any) -> Any:  # noqa: ANN401 - of any column
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def _read(column: sa.Column[Any], value: Any) -> Any:  # noqa: ANN401 - of any column
    if value is None:
        return None
    if isinstance(column.type, UtcTime):
        return datetime.fromisoformat(value)
    return UUID(value) if isinstance(column.type, sa.Uuid) else value
