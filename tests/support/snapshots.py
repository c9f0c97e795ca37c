"""All rows of a tenant, to see that nothing was stored."""

from typing import Any

from memplane.adapters.sql.schema.tables import metadata
from support.callers import Tenant

_APART = frozenset({"tenant_id"})
_OF_USE: dict[str, frozenset[str]] = {"api_keys": frozenset({"last_used_at"})}
"""Columns that every request writes, whatever it asks for."""


def snapshot(tenant: Tenant) -> dict[str, list[str]]:
    """Every row of every table of the tenant, but for when its keys were last used."""
    found: dict[str, list[str]] = {}
    for table in metadata.sorted_tables:
        if "tenant_id" not in table.c:
            continue
        rows = tenant.rows(f"SELECT * FROM {table.name} WHERE tenant_id = %(tenant)s")  # our own names
        found[table.name] = sorted(_text(row, _OF_USE.get(table.name, _APART)) for row in rows)
    return found


def _text(row: dict[str, Any], without: frozenset[str]) -> str:
    return repr(sorted((name, str(value)) for name, value in row.items() if name not in without))
