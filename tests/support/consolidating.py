"""Memories that say the same and were stored apart all the same, as the consolidation of the night finds them."""

from typing import Any
from uuid import UUID

from support.callers import Caller, Tenant
from support.telling import write

OTHER = "goals"


def planted(tenant: Tenant, caller: Caller, *contents: str, category: str = "event", **fields: Any) -> list[str]:  # noqa: ANN401 - of the memory
    """Ids of memories of one category that were not compared when they were written, for they came from another."""
    found = []
    for number, content in enumerate(contents):
        if number == 0:
            found.append(str(write(caller, content, category, **fields)["id"]))
            continue
        made = write(caller, content, OTHER, **fields)
        assert made["outcome"] == "created", made
        tenant.rows("UPDATE memories SET category = %(to)s WHERE id = %(id)s", id=UUID(made["id"]), to=category)
        found.append(str(made["id"]))
    return found


def checks(tenant: Tenant) -> list[tuple[str, str | None]]:
    """What was noted of the pairs that were compared: verdicts and the names of prompts."""
    rows = tenant.rows("SELECT verdict, prompt_version FROM pair_checks WHERE tenant_id = %(tenant)s ORDER BY verdict")
    return [(row["verdict"], row["prompt_version"] and row["prompt_version"].split("/")[0]) for row in rows]


def superseding(tenant: Tenant) -> list[tuple[str, str]]:
    """Which memory took which one's place, as the relations have it."""
    rows = tenant.rows(
        "SELECT from_id, to_id FROM relations WHERE tenant_id = %(tenant)s AND relation_type = 'supersedes'"
    )
    return sorted((str(UUID(str(row["from_id"]))), str(UUID(str(row["to_id"])))) for row in rows)
