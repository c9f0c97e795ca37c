"""Derived data that is damaged past the gateway, for the job `reconcile` to put right."""

import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg

from memplane.application.jobs.reconciliation.reconcile_job import KINDS
from memplane.domain.memory.memory import new_id
from support.callers import USER, Caller, Tenant
from support.cluster import Database
from support.nights import Night

FIDDLE, BICYCLE = "Vance repaired the harpsichord of the user.", "Anna sold the user her old bicycle."
MOMENT = "2026-01-01T00:00:00.000000+00:00"
ENTITY = (
    "INSERT INTO entities (tenant_id, id, user_id, kind, name, name_key, created_at)"
    " VALUES (%(tenant)s, %(id)s, %(user)s, 'person', 'Berta', 'berta', %(now)s)"
)
PIANO = ("The user plays the piano.", "The user practises the piano in the evening.")


def repaired(night: Night, **more: Any) -> Mapping[str, float]:  # noqa: ANN401 - of the run
    """What a night put right, each kind of which there was any."""
    found = night.counts("reconcile", **more)
    assert set(found) == set(KINDS)
    night.now += timedelta(days=1)
    return {kind: count for kind, count in found.items() if count and kind != "seen"}


def past_the_rules(tenant: Tenant, *statements: str, **values: object) -> None:
    """Run SQL as an operator may: past foreign keys and triggers, as a restored backup is read in."""
    database = tenant.server.database
    given = {"tenant": tenant.name} | values
    if isinstance(database, Database):
        with psycopg.connect(database.admin_url, autocommit=True) as connection:
            connection.execute("SET session_replication_role = replica")
            for statement in statements:
                connection.execute(statement, given)
        return
    bound = {name: value.hex if isinstance(value, UUID) else value for name, value in given.items()}
    with closing(sqlite3.connect(database.path)) as connection:
        for statement in statements:
            connection.execute(re.sub(r"%\((\w+)\)s", r":\1", statement), bound)
        connection.commit()


def by_meaning(caller: Caller, text: str, user: str = USER) -> list[str]:
    return caller.found(text, ranking="semantic", threshold=0.3, related=False, filters={"user_id": user})


def by_words(caller: Caller, text: str) -> list[str]:
    items = caller.ask(text, ranking="lexical", related=False, explain=True, top_k=50)["items"]
    return [item["id"] for item in items if item["explain"]["matched"]]


def edges(tenant: Tenant) -> set[tuple[str, str, str]]:
    rows = tenant.rows("SELECT from_id, to_id, relation_type FROM relations WHERE tenant_id = %(tenant)s")
    return {(str(row["from_id"]), str(row["to_id"]), row["relation_type"]) for row in rows}


def relate(tenant: Tenant, ends: Sequence[str], strength: float = 0.9, kind: str = "related_to") -> None:
    past_the_rules(
        tenant,
        "INSERT INTO relations (tenant_id, id, from_id, to_id, relation_type, strength, created_at, updated_at)"
        " VALUES (%(tenant)s, %(id)s, %(from_id)s, %(to_id)s, %(kind)s, %(strength)s, %(now)s, %(now)s)",
        id=new_id(), from_id=UUID(ends[0]), to_id=UUID(ends[1]), kind=kind, strength=strength,
        now=MOMENT,
    )  # fmt: skip


BAD_VECTORS = ["none", "longer", "zero"]


def spoil(tenant: Tenant, table: str, ident: str, how: str) -> None:
    """Take the vector of a row away, or put one there with which no question can be compared."""
    values = {"none": None, "longer": [0.05] * 300, "zero": [0.0] * 256}[how]
    where = f"UPDATE {table} SET embedding = %(vector)s WHERE id = %(id)s"
    if isinstance(tenant.server.database, Database):
        given: object = None if values is None else str(values)
        where = where.replace("%(vector)s", "CAST(%(vector)s AS halfvec)")
    else:
        given = None if values is None else b"\x00\x00" * len(values)
    past_the_rules(tenant, where, id=UUID(ident), vector=given)


def damaged(tenant: Tenant, caller: Caller) -> dict[str, int]:
    """One of each kind is damaged; what a night puts right of it."""
    one, other = (caller.remember(text, "goals") for text in PIANO)
    source = caller.remember("The user bought a boat.", "event")
    copied = caller.remember("The user has room for a boat.", source_ids=[source])
    caller.remember("The user met Yoko Aihara.", "relationships")
    turn = caller.say("Vance repaired the harpsichord")["turn_id"]
    past_the_rules(tenant, "DELETE FROM relations WHERE tenant_id = %(tenant)s")
    past_the_rules(tenant, "DELETE FROM memory_entities WHERE tenant_id = %(tenant)s")
    past_the_rules(tenant, "DELETE FROM memory_sources WHERE tenant_id = %(tenant)s")
    past_the_rules(tenant, "DELETE FROM memories WHERE id = %(id)s", id=UUID(source))
    past_the_rules(tenant, ENTITY, id=new_id(), user=USER, now=MOMENT)
    spoil(tenant, "memories", one, "none")
    spoil(tenant, "turns", turn, "none")
    past_the_rules(tenant, "UPDATE memories SET term_length = 0 WHERE id = %(id)s", id=UUID(other))
    relate(tenant, (copied, str(new_id())))
    return {
        "terms": 1, "vectors": 2, "sources": 1, "relations": 1, "mentions": 1, "entities": 1, "links": 2,
    }  # fmt: skip


def everything(tenant: Tenant) -> dict[str, Any]:
    """All that the job may change."""
    found: dict[str, Any] = {"relations": edges(tenant)}
    for table in ("entities", "memory_entities", "memory_sources", "memories", "turns"):
        found[table] = tenant.count(table)
    for table in ("memories", "turns"):
        rows = tenant.rows(
            f"SELECT id, terms, term_length, embedding FROM {table} WHERE tenant_id = %(tenant)s ORDER BY id"
        )
        found[table] = [
            (str(row["id"]), bytes(row["terms"]), row["term_length"], str(row["embedding"])) for row in rows
        ]
    told = tenant.rows("SELECT count(*) AS told FROM history WHERE tenant_id = %(tenant)s AND actor = 'job:reconcile'")
    return found | {
        "told": told[0]["told"],
        "versions": sum(
            row["version"] for row in tenant.rows("SELECT version FROM memories WHERE tenant_id = %(tenant)s")
        ),
    }
