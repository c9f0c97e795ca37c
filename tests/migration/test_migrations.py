"""The migrations: up, down and up again, one at a time, and equal to the models."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from memplane.adapters.postgres.provisioning import check_schema, migrate
from memplane.adapters.postgres.rate_buckets import PASSING
from memplane.adapters.postgres.tenant_removal import OPERATOR
from memplane.adapters.sql.schema import migrations
from memplane.adapters.sql.schema.revisions import head
from memplane.adapters.sql.schema.tables import metadata
from memplane.domain.errors import SchemaMismatch, StorageUnavailable
from support.cluster import Cluster, Database, Databases

# All that tells one schema from another, as PostgreSQL itself writes it down.
CATALOGUE = """
SELECT c.relname::text, 'column', a.attname::text, c.relpersistence::text || ' '
       || format_type(a.atttypid, a.atttypmod) || ' ' || CASE WHEN a.attnotnull THEN 'not null' ELSE 'null' END || ' '
       || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
UNION ALL
SELECT c.relname, 'constraint', k.conname, pg_get_constraintdef(k.oid)
  FROM pg_class c JOIN pg_constraint k ON k.conrelid = c.oid WHERE c.relnamespace = 'public'::regnamespace
UNION ALL
SELECT tablename, 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
"""
NOT_OURS = "alembic_version"
POSTGRES_ALONE = {"changed_in", "ix_memories_changed", "ix_turns_changed"}
"""What the migrations make on PostgreSQL that the models do not know; triggers keep it."""


@pytest.fixture
def empty(databases: Databases) -> Iterator[Database]:
    """A database that was never migrated."""
    made = databases.create(migrated=False)
    yield made
    databases.drop(made)


@contextmanager
def connected(database: Database) -> Iterator[sa.Connection]:
    engine = sa.create_engine(driver(database.owner_url), poolclass=sa.NullPool)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def driver(url: str) -> str:
    return sa.make_url(url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def catalogue(database: Database) -> set[tuple[object, ...]]:
    with psycopg.connect(database.admin_url) as connection:
        return {row for row in connection.execute(CATALOGUE).fetchall() if row[0] != NOT_OURS}


def _in_models(_object: object, name: str | None, _kind: str, _reflected: bool, _other: object) -> bool:
    return name not in POSTGRES_ALONE


def differences(database: Database) -> list[object]:
    """What autogenerate would put into a new revision."""
    with connected(database) as connection:
        opts = {"compare_type": True, "compare_server_default": True, "include_object": _in_models}
        context = MigrationContext.configure(connection, opts=opts)
        return list(compare_metadata(context, [metadata, PASSING, OPERATOR]))


def test_up_down_and_up_again(empty: Database, cluster: Cluster) -> None:
    url = driver(empty.owner_url)
    before = catalogue(empty)
    migrations.upgrade(url, cluster.app_role, worker_role=cluster.worker_role)
    first = catalogue(empty)
    migrations.downgrade(url, cluster.app_role, "base")
    assert catalogue(empty) == before == set()
    migrations.upgrade(url, cluster.app_role, worker_role=cluster.worker_role)
    assert catalogue(empty) == first != set()


def test_each_revision_can_be_taken_back_alone(empty: Database, cluster: Cluster) -> None:
    url = driver(empty.owner_url)
    seen = [catalogue(empty)]
    while True:
        try:
            migrations.upgrade(url, cluster.app_role, "+1", worker_role=cluster.worker_role)
        except Exception as error:  # noqa: BLE001 - alembic's own, whose class is not public
            assert "Relative revision" in str(error)  # noqa: PT017 - the end of the line
            break
        seen.append(catalogue(empty))
    assert len(seen) > 1
    for expected in reversed(seen[:-1]):
        migrations.downgrade(url, cluster.app_role, "-1")
        assert catalogue(empty) == expected


def test_migrating_again_changes_nothing(database: Database, cluster: Cluster) -> None:
    before = catalogue(database)
    assert migrate(database.owner_url, cluster.app_role, cluster.worker_role) == head()
    assert catalogue(database) == before


def test_many_who_migrate_at_once_wait_for_each_other(empty: Database, cluster: Cluster) -> None:
    program = "import sys; from memplane.adapters.postgres.provisioning import migrate; print(migrate(*sys.argv[1:]))"
    command = [sys.executable, "-c", program, empty.owner_url, cluster.app_role, cluster.worker_role]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0].strip() for process in running] == [head()] * 3
    assert differences(empty) == []


def test_the_models_need_no_new_revision(database: Database) -> None:
    assert differences(database) == []


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE turns ADD COLUMN planted text",
        "ALTER TABLE memories DROP COLUMN title",
        "ALTER TABLE memories ALTER COLUMN confidence TYPE numeric",
        "ALTER TABLE memories ALTER COLUMN embedding TYPE bytea USING NULL",
        "ALTER TABLE memories ALTER COLUMN updated_at TYPE timestamp",
        "ALTER TABLE memories ALTER COLUMN tags TYPE jsonb USING to_jsonb(tags)",
        "ALTER TABLE memories ALTER COLUMN version SET DEFAULT 2",
        "DROP INDEX ix_memories_user",
        "DROP TABLE tombstones",
        "ALTER TABLE rate_limits DROP COLUMN granted",
    ],
)
def test_a_schema_that_differs_would_need_one(database: Database, change: str) -> None:
    with psycopg.connect(database.owner_url) as connection:
        connection.execute(change)
    assert differences(database) != []


def test_the_migrated_schema_is_what_the_models_would_make(database: Database, empty: Database) -> None:
    with connected(empty) as connection:
        metadata.create_all(connection)
        PASSING.create_all(connection)
        OPERATOR.create_all(connection)
        connection.commit()
    differ = catalogue(database) ^ catalogue(empty)
    assert {row for row in differ if not any(name in str(row) for name in POSTGRES_ALONE)} == set()
    assert len(differ) == 6  # a column, its constraint and its index, on two tables


def test_a_schema_that_fits_is_accepted(database: Database) -> None:
    check_schema(database.url)


def test_an_empty_database_is_refused(empty: Database) -> None:
    with pytest.raises(SchemaMismatch, match="run `memplane migrate`") as refused:
        check_schema(empty.url)
    assert refused.value.extra == {"found": None, "needed": head()}


def test_a_schema_of_a_later_version_is_refused(database: Database) -> None:
    with psycopg.connect(database.owner_url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaMismatch, match="install a newer Memplane"):
        check_schema(database.url)


def test_a_schema_of_an_earlier_version_is_refused(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memplane.adapters.sql.schema.revisions.head", lambda: "later")
    with pytest.raises(SchemaMismatch, match=r"needs later: run `memplane migrate`"):
        check_schema(database.url)


def test_a_schema_whose_rights_went_to_another_role_is_refused(empty: Database, cluster: Cluster) -> None:
    migrations.upgrade(driver(empty.owner_url), cluster.owner_role, worker_role=cluster.worker_role)
    with pytest.raises(SchemaMismatch, match=f"MEMPLANE_APP_ROLE={cluster.app_role}"):
        check_schema(empty.url)


def test_a_database_that_is_not_there_is_unavailable(database: Database) -> None:
    with pytest.raises(StorageUnavailable, match="cannot be reached"):
        check_schema(database.url.replace(database.name, "absent"))
