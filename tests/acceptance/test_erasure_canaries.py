"""Canaries: what a user said and was called is in no table, no dump and no file after the erasure; a sibling's is."""

import json
import logging
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from memplane.adapters.postgres.embedded.embedded_binaries import packaged_binaries
from memplane.domain.identity.principal import KeyScope
from memplane.entrypoints.langgraph import MemplaneSaver
from support.callers import Caller, Tenant
from support.cluster import Database
from support.files import File
from support.graphs import at, counting, principal
from support.serving import RunningServer
from support.telling import write
from support.transfer import exported, restored

GONE, STAYS = "quokka", "wombat"
SCOPES = tuple(KeyScope)


@pytest.fixture
def server(start_server: Callable[..., RunningServer], tmp_path: Path) -> RunningServer:
    return start_server(erasure_ledger=tmp_path / "erasures.jsonl")


def lived(admin: Caller, name: str) -> list[str]:
    """Plant a user's name, thread, words and vectors wherever the interface puts any; the ids of memories."""
    user, thread = f"user-{name}", f"thread-{name}"
    more = {"user_id": user, "thread_id": thread}
    said = write(
        admin, f"Mara {name.title()} owns a {name} piano.", title=f"{name} title", tags=[f"{name}-tag"],
        external_id=f"ext-{name}", facts=[f"The {name} piano is black."], attributes={"shade": f"{name}-ish"}, **more,
    )["id"]  # fmt: skip
    old = write(admin, f"Vera lives in {name}ville.", "relationships", **more)["id"]
    admin.post(f"/v1/memories/{old}/correct", {"content": f"Vera lives in {name}burgh."})
    gone = write(admin, f"The user has a {name} boat.", **more)["id"]
    admin.post(f"/v1/memories/{gone}/reject", {"reason": f"no {name}"})
    purged = write(admin, f"The user has a {name} kite.", **more)["id"]
    admin.delete(f"/v1/memories/{purged}")
    admin.post("/v1/admin/purge", {"memory_id": purged, "early": True})
    admin.say(f"I moved to {name}town, and my favourite colour is {name} green.", **more, actor_id=f"{name}-actor")
    admin.say(f"Please call me {name.title()}.", **more)
    city = {"category": "profile", "content": f"The user's city is {name.title()}."} | more
    proposed = admin.post("/v1/memories", city).json()
    assert proposed["outcome"] == "queued_for_consent", proposed
    assert admin.post(f"/v1/consents/{proposed['id']}/approve", {}).status_code == 200
    admin.post("/v1/memories", city | {"content": f"The user's preferred name is {name.title()}."})
    state = {"user_id": user, "agents": {"planner": {"note": f"{name} note"}}}
    admin.send("PUT", f"/v1/checkpoints/{thread}", json=state)
    entity = admin.entity(f"Mara {name.title()}", user)
    admin.post(f"/v1/entities/{entity}/aliases", {"alias": f"{name} alias"})
    admin.send(
        "POST", "/v1/turns:batch", headers={"Idempotency-Key": f"key-{name}"},
        json={"turns": [{**more, "role": "user", "text": f"The {name} sea is calm."}]},
    )  # fmt: skip
    admin.ask(f"{name} piano", filters={"user_id": user})
    admin.post("/v1/context", {**more, "message": f"{name} piano"})
    return [said, old]


def ran(tenant: Tenant, name: str) -> None:
    """Let a graph of LangGraph keep a user's words in its checkpoints."""

    async def run() -> None:
        saver = MemplaneSaver(tenant.server.wired.checkpoints, principal(tenant.name))
        given = {"count": 0, "messages": [f"The {name} is on the roof."]}
        await counting(saver).ainvoke(given, at(f"graph-{name}", f"user-{name}"))

    tenant.server.run(run())


@pytest.fixture
def tenant(server: RunningServer) -> Iterator[Tenant]:
    made = Tenant(server)
    admin = made.caller(None, act_for=["*"], scopes=SCOPES)
    agent = made.caller("supervisor", act_for=["*"], scopes=SCOPES)
    for name in (GONE, STAYS):
        made.caller("supervisor", users=[f"user-{name}"])
        lived(agent, name)
        ran(made, name)
    server.run(server.wired._accesses.flush())
    for name in (GONE, STAYS):
        assert held(made, name) >= EVERYWHERE, name  # the planting reached them
    answer = admin.post(f"/v1/users/user-{GONE}/erase", {"confirm": f"user-{GONE}"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["finished"]
    assert GONE not in answer.text
    return made


EVERYWHERE = {
    "memories", "turns", "thread_revision", "change_log", "history", "entities", "entity_aliases", "events",
    "consent_proposals", "user_context", "supervisor_checkpoints", "checkpoints",
    "checkpoint_blobs", "checkpoint_writes", "tombstones", "idempotency_keys", "api_keys",
}  # fmt: skip


def held(tenant: Tenant, name: str) -> set[str]:
    """The tables that hold a name anywhere, by the catalogue."""
    database = tenant.server.database
    if isinstance(database, File):
        listed = tenant.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND %(tenant)s <> ''")
        tables = [row["name"] for row in listed if not row["name"].startswith("sqlite_")]
        columns = {t: [c["name"] for c in tenant.rows(f"PRAGMA table_info({t}) -- %(tenant)s")] for t in tables}
        found = set()
        for table, names in columns.items():
            texts = " || ' ' || ".join(
                f"coalesce(CASE typeof({each}) WHEN 'blob' THEN hex({each}) ELSE {each} END, '')" for each in names
            )
            like = (
                f"SELECT count(*) AS n FROM (SELECT lower({texts}) AS t FROM {table} WHERE %(tenant)s <> '')"
                " WHERE t LIKE %(like)s OR t LIKE %(hex)s"
            )
            if tenant.rows(like, like=f"%{name}%", hex=f"%{name.encode().hex()}%")[0]["n"]:
                found.add(table)
        return found
    with psycopg.connect(database.admin_url) as connection:
        tables = [
            row[0]
            for row in connection.execute(
                "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace"
                " AND c.relkind IN ('r', 'p')"
            )
        ]
        return {
            table
            for table in tables
            if connection.execute(
                f"SELECT 1 FROM {table} t WHERE t::text ILIKE ANY (%s) LIMIT 1",
                ([f"%{name}%", f"%{name.encode().hex()}%"],),
            ).fetchone()
        }


def test_no_table_of_the_catalogue_holds_it(tenant: Tenant) -> None:
    assert held(tenant, GONE) == set()
    assert held(tenant, STAYS) >= EVERYWHERE
    removed = "SELECT count(*) AS n FROM memories WHERE tenant_id = %(tenant)s AND user_id LIKE %(like)s"
    assert tenant.rows(removed, like=f"%{STAYS}")[0]["n"] > 0


def test_no_file_of_the_database_holds_it(tenant: Tenant, tmp_path: Path) -> None:
    """PostgreSQL's dump after a vacuum; SQLite's own bytes at once."""
    database = tenant.server.database
    content = b"".join(
        path.read_bytes() for path in database.path.parent.glob(f"{database.path.name}*") if "shm" not in path.name
    ) if isinstance(database, File) else dump(database, tmp_path)  # fmt: skip
    assert STAYS.encode() in content.lower()
    assert GONE.encode() not in content.lower()


def dump(database: Database, tmp_path: Path) -> bytes:
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        connection.execute("VACUUM FULL")
    target = tmp_path / "dump.sql"
    program = packaged_binaries() / "pg_dump"
    if not program.exists():
        pytest.skip("pg_dump is not here")
    subprocess.run([program, "--file", target, database.admin_url], check=True)
    return target.read_bytes()


def test_the_ledger_and_the_log_tell_no_name(tenant: Tenant, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ledger = (tmp_path / "erasures.jsonl").read_text()
    assert [json.loads(line)["type"] for line in ledger.splitlines()].count("erasure") >= 1
    assert GONE not in ledger.lower()
    with caplog.at_level(logging.DEBUG):
        admin = tenant.caller(None, act_for=["*"], scopes=SCOPES)
        admin.post(f"/v1/users/user-{STAYS}/erase", {"confirm": f"user-{STAYS}"})
        told = [record.getMessage() for record in caplog.records if record.name.startswith("memplane")]
    assert told
    assert not any(STAYS in each.lower() for each in told)


def test_an_export_from_before_brings_nothing_back(server: RunningServer) -> None:
    made, other = Tenant(server), (Tenant(server) if server_holds_several(server) else None)
    admin = made.caller(None, act_for=["*"], scopes=SCOPES)
    lived(made.caller("supervisor", act_for=["*"], scopes=SCOPES), GONE)
    lines = exported(admin, f"user-{GONE}")
    assert {line["record"] for line in lines} >= {"turn", "memory", "history", "entity", "proposal", "field"}
    assert admin.post(f"/v1/users/user-{GONE}/erase", {"confirm": f"user-{GONE}"}).json()["finished"]
    outcomes = restored(admin, lines, f"user-{GONE}")
    assert outcomes["restored"] == sum(line["record"] == "tombstone" for line in lines)
    assert (
        outcomes["refused"] == len(lines) - outcomes["restored"] - 2
    )  # header and end say something of the file alone
    assert held(made, GONE) <= {"tombstones"}
    if other is not None:  # the control
        there = other.caller(None, act_for=["*"], scopes=SCOPES)
        assert restored(there, lines, f"user-{GONE}")["restored"] > outcomes["restored"]
        assert "turns" in held(other, GONE)


def server_holds_several(server: RunningServer) -> bool:
    """Whether its database holds several tenants."""
    return isinstance(server.database, Database)


def test_a_remembered_scope_is_forgotten(tenant: Tenant) -> None:
    agent = tenant.caller("supervisor")
    assert agent.ask("piano", filters={"user_id": f"user-{GONE}"})["items"] == []
    assert agent.ask("piano", filters={"user_id": f"user-{STAYS}"})["items"]
    assert UUID(int=0) not in {UUID(each) for each in agent.found("piano", filters={"user_id": f"user-{STAYS}"})}
