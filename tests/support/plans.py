"""Statements as the application sends them, and the plans that PostgreSQL makes of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg

TENANT, OTHER = "busy", "other"
GROWING = {
    "memories", "turns", "change_log", "history", "relations", "thread_revision", "api_keys", "events", "tombstones",
    "entities", "entity_aliases", "memory_entities", "memory_sources", "idempotency_keys", "consent_proposals",
    "checkpoints", "checkpoint_blobs", "checkpoint_writes", "supervisor_checkpoints",
    "user_context", "context_signals", "key_history", "sessions", "token_budgets", "pair_checks", "job_users",
    "user_activity", "undo_records", "user_settings",
}  # fmt: skip


@dataclass
class Sent:
    """The statements that a connection sent, with their values."""

    statements: list[tuple[str, Any]] = field(default_factory=list)

    def cursor_class(self) -> type[psycopg.AsyncCursor[Any]]:
        """A cursor that notes what it sends."""
        statements = self.statements

        class Noting(psycopg.AsyncCursor[Any]):
            async def execute(self, query: Any, params: Any = None, **options: Any) -> Any:  # noqa: ANN401 - psycopg's own types
                statements.append((query if isinstance(query, str) else query.as_string(self), params))
                return await super().execute(query, params, **options)

        return Noting


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def told(plan: dict[str, Any]) -> str:
    """A plan in short, for a failed test."""
    parts = ("Node Type", "Relation Name", "Index Name", "Index Cond", "Filter")
    return "\n".join(" | ".join(str(node[part]) for part in parts if part in node) for node in nodes(plan))


def of_policies(node: dict[str, Any]) -> bool:
    """Whether a node is of row-level security alone: a statement of ours names the tenant itself."""
    condition = f"{node.get('Index Cond', '')} {node.get('Filter', '')}"
    return "current_setting('memplane.tenant'" in condition and f"'{TENANT}'" not in condition and "$" not in condition


def unserved(plan: dict[str, Any], *, beyond_tenant: bool, bound: bool = True) -> list[str]:
    """Tables that a plan reads whole, or whole tenants of which it reads.

    Args:
        plan: of the statement.
        beyond_tenant: whether more than the tenant is to be looked up by.
        bound: whether what row-level security would look up for a caller who is bound to users counts.
    """
    found = []
    for node in nodes(plan):
        if not bound and of_policies(node):
            continue
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] in GROWING:
            found.append(node["Relation Name"])
        if "Index Name" in node:
            columns = set(re.findall(r"\(\"?(\w+)\"?\)?(?:::\w+)? (?:=|<|>|IS NULL)", node.get("Index Cond", "")))
            leading = "key_id" if node["Index Name"] == "ix_api_keys_key" else "tenant_id"
            if leading not in columns or (beyond_tenant and columns == {"tenant_id"}):
                found.append(node["Index Name"])
    return found


class Explainer:
    """Explains statements as the application's role, within a tenant."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def plans(self, statement: str, values: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - whatever was sent
        """The plan for these values, and the one for any."""
        with self._connection.transaction(force_rollback=True):
            self._connection.execute("SELECT set_config('memplane.tenant', %s, true)", (TENANT,))
            self._connection.execute("SELECT set_config('memplane.key', %s, true)", (f"{TENANT}7",))
            yield self._plan(f"EXPLAIN (FORMAT JSON) {statement}", values)
            if values:
                yield self._plan(f"EXPLAIN (FORMAT JSON, GENERIC_PLAN) {numbered(statement)}", None)

    def _plan(self, explain: str, values: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever was sent
        return planned(self._connection, explain, values)


def planned(connection: psycopg.Connection, explain: str, values: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever was sent
    row = connection.execute(explain, values).fetchone()
    assert row is not None
    plan: dict[str, Any] = row[0][0]["Plan"]
    return plan


def numbered(statement: str) -> str:
    """A statement with psycopg's placeholders as PostgreSQL's own."""
    names: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        key = match.group(1) or f"#{len(names)}"
        return names.setdefault(key, f"${len(names) + 1}")

    return re.sub(r"%(?:\((\w+)\))?s", number, statement).replace("%%", "%")
