"""Every key of the schema begins with the tenant."""

import pytest
import sqlalchemy as sa

from memplane.adapters.postgres.rate_buckets import PASSING
from memplane.adapters.postgres.tenant_removal import OPERATOR
from memplane.adapters.sql.schema.tables import metadata

NOT_BY_TENANT = {
    "ix_api_keys_key": "finds a caller's key before its tenant is known; row-level security shows that row alone"
}
TABLES = {
    "tenants", "memories", "turns", "relations", "entities", "entity_aliases", "memory_entities", "history",
    "thread_revision", "change_log", "events", "api_keys", "idempotency_keys", "job_runs", "tombstones", "metadata",
    "consent_proposals", "checkpoints", "checkpoint_blobs", "checkpoint_writes", "supervisor_checkpoints",
    "user_context", "context_signals", "key_history", "erasures", "history_seals", "memory_sources",
    "sessions", "token_budgets", "pair_checks", "job_users", "user_activity", "undo_records",
    "user_merge_rows", "user_merges", "user_settings", "user_usage",
}  # fmt: skip


def first(columns: object) -> str:
    return next(iter(columns)).name  # type: ignore[call-overload]  # SQLAlchemy's collections are not typed as iterable


def faults(table: sa.Table) -> list[str]:
    """Keys and indexes of a table that another tenant's rows could answer to."""
    found = []
    for constraint in table.constraints:
        if isinstance(constraint, sa.PrimaryKeyConstraint | sa.UniqueConstraint) and first(constraint) != "tenant_id":
            found.append(f"{table.name}: {constraint.name} does not begin with tenant_id")
        if isinstance(constraint, sa.ForeignKeyConstraint):
            pair = constraint.elements[0]
            if (pair.parent.name, pair.target_fullname.rpartition(".")[2]) != ("tenant_id", "tenant_id"):
                found.append(f"{table.name}: {constraint.name} does not join by tenant_id")
    return found + [
        f"{table.name}: {index.name} does not begin with tenant_id"
        for index in table.indexes
        if first(index.columns) != "tenant_id" and (index.unique or index.name not in NOT_BY_TENANT)
    ]


def test_the_schema_has_the_tables_that_it_should() -> None:
    assert set(metadata.tables) == TABLES
    assert set(PASSING.tables) == {"rate_limits", "unit_removals"}
    assert set(OPERATOR.tables) == {"tenant_removals"}


EVERY = [*metadata.sorted_tables, *PASSING.sorted_tables, *OPERATOR.sorted_tables]


@pytest.mark.parametrize("table", EVERY, ids=lambda table: table.name)
def test_every_key_begins_with_the_tenant(table: sa.Table) -> None:
    assert not table.c.tenant_id.nullable
    assert faults(table) == []


def test_keys_without_the_tenant_are_found() -> None:
    planted = sa.MetaData()
    parent = sa.Table("parent", planted, sa.Column("tenant_id", sa.Text), sa.Column("id", sa.Text, primary_key=True))
    child = sa.Table(
        "child",
        planted,
        sa.Column("tenant_id", sa.Text, primary_key=True),
        sa.Column("parent_id", sa.Text, sa.ForeignKey("parent.id"), unique=True),
        sa.Column("name", sa.Text, index=True),
    )
    assert len(faults(parent)) == 1
    assert len(faults(child)) == 3
