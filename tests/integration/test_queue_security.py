"""Who may do what with the queue of jobs: a tenant puts messages in, the worker's role takes them out, nobody else."""

from collections.abc import Iterator
from importlib.resources import files

import psycopg
import pytest
from psycopg import sql

from memplane.adapters.sql.schema.revisions import scripts_folder
from support.cluster import Cluster, Database

SCHEMA = "procrastinate"
TABLES = {"procrastinate_jobs", "procrastinate_events", "procrastinate_workers", "procrastinate_periodic_defers"}
SEND = """
SELECT procrastinate.procrastinate_defer_jobs_v1(ARRAY[ROW('memplane', 'memplane.perform', 0, NULL, NULL,
       jsonb_build_object('tenant_id', %s::text, 'job', 'x'), NULL)]::procrastinate.procrastinate_job_to_defer_v1[])
"""
FETCH = "SELECT id FROM procrastinate.procrastinate_fetch_job_v2(NULL, %s)"


@pytest.fixture
def app(database: Database) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database.url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def worker(database: Database) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database.worker_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def filled(app: psycopg.Connection) -> None:
    """A message of each of two tenants."""
    for tenant in ("a", "b"):
        sent(app, tenant, tenant)


def sent(app: psycopg.Connection, named: str, tenant: str) -> None:
    with app.transaction():
        app.execute("SELECT set_config('memplane.tenant', %s, true)", (named,))
        app.execute(SEND, (tenant,))


def seen(app: psycopg.Connection, tenant: str, table: str = "procrastinate_jobs") -> int:
    with app.transaction():
        app.execute("SELECT set_config('memplane.tenant', %s, true)", (tenant,))
        counted = sql.SQL("SELECT count(*) FROM {}.{}").format(sql.Identifier(SCHEMA), sql.Identifier(table))
        (found,) = app.execute(counted).fetchone() or (None,)
        assert isinstance(found, int)
        return found


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("table", ["procrastinate_jobs", "procrastinate_events"])
def test_a_tenant_sees_its_own_messages_alone(app: psycopg.Connection, table: str) -> None:
    assert [seen(app, tenant, table) for tenant in ("a", "b", "c", "")] == [1, 1, 0, 0]


def test_no_message_is_sent_in_another_s_name(app: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        sent(app, "a", "b")
    sent(app, "a", "a")  # the control
    assert (seen(app, "a"), seen(app, "b")) == (1, 0)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE procrastinate.procrastinate_jobs SET status = 'doing'",
        "DELETE FROM procrastinate.procrastinate_jobs",
        "SELECT id FROM procrastinate.procrastinate_fetch_job_v2(NULL, 1)",
        "SELECT procrastinate.procrastinate_register_worker_v1()",
        "SELECT 1 FROM procrastinate.procrastinate_workers",
        "SELECT 1 FROM procrastinate.procrastinate_periodic_defers",
    ],
)
def test_the_application_takes_nothing_out(app: psycopg.Connection, statement: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
        app.execute(statement)


@pytest.mark.usefixtures("filled")
def test_the_worker_takes_out_what_every_tenant_sent(worker: psycopg.Connection) -> None:
    (number,) = worker.execute("SELECT procrastinate.procrastinate_register_worker_v1()").fetchone() or (None,)
    fetched = [worker.execute(FETCH, (number,)).fetchone() for _ in range(3)]
    assert [row is not None and row[0] is not None for row in fetched] == [True, True, False]


def test_the_worker_s_role_sees_nothing_but_the_queue(worker: psycopg.Connection) -> None:
    ours = worker.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')"
    ).fetchall()
    assert len(ours) > 20
    for (table,) in ours:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            worker.execute(sql.SQL("SELECT 1 FROM {}").format(sql.Identifier(table)))
    worker.execute("SELECT 1 FROM procrastinate.procrastinate_jobs")  # the control


def test_the_catalogue_has_no_wider_rights(database: Database, cluster: Cluster) -> None:
    with psycopg.connect(database.admin_url) as admin:
        flags = admin.execute(
            "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class"
            " WHERE relnamespace = 'procrastinate'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')"
        ).fetchall()
        functions = admin.execute(
            "SELECT count(*), bool_or(prosecdef), bool_and('search_path=procrastinate, pg_temp' = ANY (proconfig))"
            " FROM pg_proc WHERE pronamespace = 'procrastinate'::regnamespace"
        ).fetchone()
        policies = admin.execute(
            "SELECT tablename, policyname, roles::text[] FROM pg_policies WHERE schemaname = 'procrastinate'"
        ).fetchall()
        powers = admin.execute(
            "SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb OR rolreplication"
            " OR EXISTS (SELECT 1 FROM pg_class WHERE relowner = r.oid)"
            " OR EXISTS (SELECT 1 FROM pg_auth_members WHERE member = r.oid) FROM pg_roles r WHERE rolname = %s",
            (cluster.worker_role,),
        ).fetchall()
    assert dict(flags) == dict.fromkeys(TABLES, True)
    assert functions is not None
    assert functions[0] > 10
    assert functions[1:] == (False, True)
    expected = {(table, "worker", (cluster.worker_role,)) for table in TABLES}
    expected |= {
        (table, "tenant_isolation", (cluster.app_role,)) for table in ("procrastinate_jobs", "procrastinate_events")
    }
    expected.add(("procrastinate_jobs", "tenant_removal", (cluster.owner_role,)))
    assert {(table, name, tuple(roles)) for table, name, roles in policies} == expected
    assert powers == [(False,)]


def test_the_migration_has_the_schema_of_the_library_that_is_installed() -> None:
    """A release with another schema comes with a migration of its own."""
    ours = (scripts_folder() / "versions" / "0014_procrastinate_3_10.sql").read_text()
    assert ours == files("procrastinate").joinpath("sql", "schema.sql").read_text()
