"""What the compose file would start: its roles are made by the same script here, on a server of this test's own."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
import yaml

from memplane.adapters.postgres.embedded.embedded_binaries import packaged_binaries
from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.adapters.postgres.provisioning import check_schema, migrate, worker_url
from memplane.adapters.postgres.queue import require_worker
from memplane.adapters.postgres.storage import PostgresStorage
from memplane.settings import Settings

ROOT = Path(__file__).parents[2]
ROLES = ROOT / "docker" / "roles.sh"


@pytest.fixture
def server() -> Iterator[EmbeddedPostgres]:
    """A server without our roles, which the session's server has."""
    folder = Path(tempfile.mkdtemp(prefix="memplane-test-"))
    folder.chmod(0o711)  # run by root, PostgreSQL is another user, who has to pass through
    with EmbeddedPostgres.start(folder / "data", durable=False) as started:
        yield started
    shutil.rmtree(folder)


def prepare(server: EmbeddedPostgres, **passwords: str) -> subprocess.CompletedProcess[str]:
    """Run the script as the database's image does when its cluster is new."""
    query = parse_qs(urlsplit(server.admin_conninfo).query)
    environment = {
        "PATH": f"{packaged_binaries()}{os.pathsep}{os.defpath}",
        "PGHOST": query["host"][0],
        "PGPORT": query["port"][0],
        "POSTGRES_USER": "postgres",
    }
    return subprocess.run([ROLES], check=False, capture_output=True, text=True, env=environment | passwords)


def test_the_roles_are_those_that_the_application_needs(server: EmbeddedPostgres) -> None:
    passwords = {
        "MEMPLANE_OWNER_PASSWORD": "o'w\"n$er",
        "MEMPLANE_APP_PASSWORD": "a p\\p",
        "MEMPLANE_WORKER_PASSWORD": "w'",
    }
    result = prepare(server, **passwords)
    assert (result.returncode, result.stderr) == (0, "")
    migrate(server.url(user="memplane_owner", database="memplane"))
    url = server.url(user="memplane_app", database="memplane")
    check_schema(url)

    async def opened() -> None:
        storage = PostgresStorage(url, pool_size=2)
        await storage.open()  # refuses a role that row-level security would not bind
        await storage.close()

    asyncio.run(opened())
    asyncio.run(require_worker(worker_url(url)))
    with psycopg.connect(server.admin_conninfo) as admin:
        stored = admin.execute("SELECT rolpassword FROM pg_authid WHERE rolname LIKE 'memplane%'").fetchall()
    assert len(stored) == 3
    assert all(str(password).startswith("SCRAM-SHA-256$") for (password,) in stored)


def test_a_missing_password_is_an_error(server: EmbeddedPostgres) -> None:
    assert prepare(server, MEMPLANE_OWNER_PASSWORD="secret").returncode != 0


@pytest.fixture
def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    return found


def test_every_setting_of_the_containers_is_one_that_there_is(services: dict[str, Any]) -> None:
    known = {f"MEMPLANE_{name.upper()}" for name in Settings.model_fields}
    for name in ("migrate", "server", "worker"):
        given = {setting for setting in services[name]["environment"] if setting.startswith("MEMPLANE_")}
        assert given
        assert given <= known


def test_whoever_erases_notes_it_outside_of_the_database(services: dict[str, Any]) -> None:
    for name in ("server", "worker"):
        folder = Path(services[name]["environment"]["MEMPLANE_ERASURE_LEDGER"]).parent
        assert f"ledger:{folder}" in services[name]["volumes"]
        assert f"--owner=memplane --mode=0700 {folder}\n" in (ROOT / "Dockerfile").read_text()
    assert not any("ledger" in volume for volume in services["database"]["volumes"])


def test_the_server_is_not_given_what_the_owner_has(services: dict[str, Any]) -> None:
    assert "OWNER" not in str(services["server"]) + str(services["worker"])
    assert "WORKER" not in str(services["server"])
    assert "memplane_worker:" in services["worker"]["environment"]["MEMPLANE_WORKER_URL"]
    assert "APP_PASSWORD" not in str(services["migrate"])
    assert "memplane_owner@" in services["migrate"]["environment"]["MEMPLANE_MIGRATION_URL"]
    assert "memplane_app@" in services["server"]["environment"]["MEMPLANE_DATABASE_URL"]


def test_what_the_image_copies_is_there_and_not_ignored() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = {name for line in lines if line.startswith("COPY") and "--from" not in line for name in line.split()[1:-1]}
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)
