"""Removing a tenant as the schema's owner: every table, in batches, through kill -9, and one process at a time."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from integration.commands import Served, clean_environment, run
from integration.test_convert import fill, held
from memplane.adapters.conversion.conversion import Side
from memplane.adapters.postgres import provisioning, tenant_removal
from memplane.adapters.postgres.rate_buckets import PASSING
from memplane.adapters.postgres.tenant_removal import BATCH, DELETED, RemoveTenant
from memplane.adapters.sql.schema import tables
from memplane.bootstrap import now
from memplane.domain.errors import StateConflict, StorageUnavailable
from support.cluster import Database
from support.commands import Forked
from support.filling import insert
from support.working import until

GONE, STAYS = "gone", "stays"
MANY = 30_000
Sides = Callable[[str], Side]
Notes = list[object]


@pytest.fixture
def sides(database: Database) -> Iterator[Sides]:
    """A database as its owner, by the tenant."""
    engine = provisioning.checked_engine(database.owner_url)
    yield lambda tenant: Side("server", engine, tenant)
    engine.dispose()


def remove(side: Side, notes: Notes) -> RemoveTenant:
    return RemoveTenant(side, notes.append, now)


def test_every_table_with_tenants_is_emptied(sides: Sides, database: Database) -> None:
    """A table of the next migration is covered as soon as the models know it; this finds one that they do not know."""
    gone, stays = sides(GONE), sides(STAYS)
    for side in (gone, stays):
        fill(side)
        with side.transaction() as connection:
            for table in PASSING.sorted_tables:
                statement = insert(table, tenant_id=f"'{side.tenant}'", user_id="'late'", key_id="'k'")
                connection.execute(sa.text(statement))
    before = held(stays)
    notes: Notes = []
    done = remove(gone, notes).run("olga")
    assert set(done.counts) >= {each.name for each in (*tables.metadata.sorted_tables, *PASSING.sorted_tables)}
    with psycopg.connect(database.admin_url) as connection:
        named = connection.execute(
            "SELECT c.table_name FROM information_schema.columns c JOIN pg_class t ON t.relname = c.table_name"
            " WHERE c.column_name = 'tenant_id' AND c.table_schema = 'public' AND t.relkind IN ('r', 'p')"
        ).fetchall()
        left = {name for (name,) in named if rows_of(connection, name, GONE)}
        assert {name for (name,) in named} == {each.name for each in DELETED} | {"tenants", "tenant_removals"}
        assert left == {"tenant_removals"}
        assert {name for (name,) in named if rows_of(connection, name, STAYS)} == {name for (name,) in named} - left
    assert held(stays) == before
    assert len(notes) == 2


def rows_of(connection: psycopg.Connection, table: str, tenant: str) -> int:
    found = connection.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = %s", (tenant,)).fetchone()  # type: ignore[arg-type]  # our own names
    return int(found[0]) if found else 0


def plant(database: Database, tenant: str, count: int) -> None:
    """A tenant with many memories."""
    with psycopg.connect(database.admin_url) as connection:
        connection.execute("INSERT INTO tenants VALUES (%s, now())", (tenant,))
        given = {"tenant_id": f"'{tenant}'", "user_id": "'ana'", "value_hash": "n::text", "importance": "3"}
        connection.execute(insert(tables.memories, f"generate_series(1, {count}) n", **given))


def test_each_batch_is_a_transaction_and_a_killed_removal_goes_on(
    database: Database, sides: Sides, tmp_path: Path
) -> None:
    for tenant in (GONE, STAYS):
        plant(database, tenant, MANY)
    ledger = tmp_path / "ledger.jsonl"
    named = {
        "MEMPLANE_DATABASE_URL": database.url, "MEMPLANE_MIGRATION_URL": database.owner_url,
        "MEMPLANE_ERASURE_LEDGER": str(ledger),
    }  # fmt: skip
    command = ("tenants", "remove", GONE, "--yes", "--json")
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        process = Forked(*command, environment=clean_environment(named), errors=tmp_path / "errors")
        until(lambda: rows_of(connection, "memories", GONE) < MANY, "a batch is deleted")
        process.kill()
        process.wait()
        left = rows_of(connection, "memories", GONE)
        assert 0 < left < MANY  # else it was too fast to be killed
        assert (MANY - left) % BATCH == 0
        begun = sides(GONE)
        noted = remove(begun, []).preview("olga")
        assert (noted.finished_at, noted.counts["memories"]) == (None, left)
        done = run(*command, environment=named)
        assert done.code == 0, done.err
        assert done.document["counts"]["memories"] == MANY  # both parts
        assert rows_of(connection, "memories", GONE) == 0
        assert rows_of(connection, "memories", STAYS) == MANY
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert {line["receipt"] for line in lines} == {done.document["receipt"]}
    assert [line["finished_at"] is None for line in lines] == [True, False]


def test_others_write_while_it_runs(database: Database, sides: Sides) -> None:
    """No transaction holds more than a batch, and none holds what another tenant needs."""
    for tenant in (GONE, STAYS):
        plant(database, tenant, BATCH * 2)
    written = 0

    def write(_table: str, _rows: int) -> None:
        nonlocal written
        with psycopg.connect(database.url, options="-c lock_timeout=1000") as connection:
            connection.execute("SELECT set_config('memplane.tenant', %s, true)", (STAYS,))
            connection.execute("UPDATE memories SET access_count = access_count + 1 WHERE tenant_id = %s", (STAYS,))
            written += 1

    assert remove(sides(GONE), []).run("olga", write).counts["memories"] == BATCH * 2
    assert written >= 2


def test_a_failing_ledger_leaves_everything_as_it_was(database: Database, sides: Sides) -> None:
    plant(database, GONE, 3)

    def full(_note: object) -> None:
        raise StorageUnavailable("the disk is full")

    with pytest.raises(StorageUnavailable):
        RemoveTenant(sides(GONE), full, now).run("olga")
    with psycopg.connect(database.admin_url) as connection:
        assert rows_of(connection, "memories", GONE) == 3
        assert rows_of(connection, "tenant_removals", GONE) == 0
    assert remove(sides(GONE), []).run("olga").counts["memories"] == 3  # the control


def test_two_processes_do_not_remove_one_tenant(database: Database, sides: Sides) -> None:
    plant(database, GONE, 3)
    refused: list[StateConflict] = []

    def again(_table: str, _rows: int) -> None:
        if not refused:
            with pytest.raises(StateConflict) as caught:
                remove(sides(GONE), []).run("olga")
            refused.append(caught.value)

    assert remove(sides(GONE), []).run("olga", again).finished_at
    assert "another process" in refused[0].detail


def test_a_transaction_that_never_ends_stops_it_before_anything_is_deleted(
    database: Database, sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(database, GONE, 3)
    with monkeypatch.context() as hurried, psycopg.connect(database.url) as reading:
        hurried.setattr(tenant_removal, "WAIT_SECONDS", 0.2)
        reading.execute("SELECT 1")
        with pytest.raises(StorageUnavailable, match="nothing was deleted"):
            remove(sides(GONE), []).run("olga")
        with psycopg.connect(database.admin_url) as connection:
            assert rows_of(connection, "memories", GONE) == 3
    assert remove(sides(GONE), []).run("olga").counts["memories"] == 3


def test_batches_are_found_by_an_index(database: Database) -> None:
    for tenant in (GONE, STAYS):
        plant(database, tenant, MANY)
    with psycopg.connect(database.owner_url) as connection:
        connection.execute("SELECT set_config('memplane.tenant', %s, true)", (GONE,))
        statement = (
            "EXPLAIN DELETE FROM memories WHERE ctid = ANY (ARRAY(SELECT ctid FROM memories"
            f" WHERE tenant_id = '{GONE}' LIMIT {BATCH}))"
        )
        plan = "\n".join(row[0] for row in connection.execute(statement).fetchall())
    assert "Tid Scan on memories" in plan


class TestData:
    """The databases of a data folder."""

    def test_an_embedded_server_loses_another_tenant_and_keeps_its_own(self, served_by_postgres: Served) -> None:
        served = served_by_postgres
        made = served.run("keys", "create", "--tenant", GONE, "--agent", "supervisor", "--json")
        assert made.code == 0, made.err
        key = ("--key", made.document["key"])
        assert served.run("remember", "The user owns a piano.", "--user", "u", "--category", "event", *key).code == 0
        done = served.run("tenants", "remove", GONE, "--yes", "--json")
        assert (done.code, done.document["counts"]["memories"]) == (0, 1)
        assert served.run("list", "--user", "u", *key).code == 1
        assert served.run("list", "--user", "u").code == 0
        assert '"tenant_removal"' in (served.data / "erasures.jsonl").read_text()
        assert served.run("erase", "--replay").code == 0
        own = served.run("tenants", "remove", "default", "--yes")
        assert (own.code, "delete" in own.err) == (1, True)

    def test_a_file_is_exported_and_its_removal_says_what_to_do(
        self, served: Served, user: str, tmp_path: Path
    ) -> None:
        assert served.run("remember", "The user owns a piano.", "--user", user, "--category", "event").code == 0
        out = tmp_path / "export"
        done = served.run("tenants", "export", "default", "--out", str(out), "--json")
        assert done.code == 0, done.err
        (each,) = [each for each in json.loads((out / "manifest.json").read_text())["users"] if each["user"] == user]
        assert each["counts"]["memory"] == 1
        alone = served.run("export", user).out.splitlines()
        assert (out / each["file"]).read_text().splitlines()[1:] == alone[1:]  # but for the moment
        refused = served.run("tenants", "remove", "default", "--yes", "--json")
        assert (refused.code, refused.document["error"]["code"]) == (1, "not_supported")
        assert "delete" in refused.document["error"]["detail"]
