"""What tables hold, to be compared before and after something that must change nothing."""

import hashlib
from collections.abc import Iterable

from memplane.adapters.sql.schema.tables import metadata
from support.callers import Tenant

COUNTED = {"access_count", "last_accessed", "last_used_at"}
"""Reads are counted beside, whenever there is time."""
NOTED = {"events"}
"""Every read leaves an event."""


def contents(tenants: Iterable[Tenant]) -> dict[str, tuple[int, str]]:
    """By tenant and table, how many rows there are, and a hash of them all."""
    found = {}
    for tenant in tenants:
        for table in metadata.sorted_tables:
            if table.name in NOTED:
                continue
            rows = tenant.rows(f"SELECT * FROM {table.name} WHERE tenant_id = %(tenant)s")
            lines = sorted(repr(sorted((k, str(v)) for k, v in row.items() if k not in COUNTED)) for row in rows)
            found[f"{tenant.name} {table.name}"] = len(rows), hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return found
