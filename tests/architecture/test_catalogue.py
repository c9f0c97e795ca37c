"""What the server runs by itself cannot be shadowed: rules for every function and schema, of the next migration too."""

from collections.abc import Iterator

import psycopg
import pytest

from support.cluster import Cluster, Database

OURS = """
SELECT p.oid::regprocedure::text AS name, p.proowner::regrole::text AS owner, p.prosecdef AS definer,
       p.proconfig AS settings, p.proacl AS acl, p.pronamespace::regnamespace::text AS schema
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
   AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
"""
PATHS = {
    "public": "search_path=pg_catalog, public, pg_temp",
    "procrastinate": "search_path=procrastinate, pg_temp",  # PostgreSQL looks into its own catalogue first
}
CREATES = """
SELECT role || ': ' || n.nspname FROM unnest(%(roles)s::text[]) role, pg_namespace n
 WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
   AND n.nspname NOT LIKE 'pg\\_temp\\_%%' AND n.nspname NOT LIKE 'pg\\_toast\\_temp\\_%%'
   AND has_schema_privilege(role, n.oid, 'CREATE')
"""


@pytest.fixture
def admin(database: Database) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database.admin_url) as connection:
        yield connection
        connection.rollback()


def faults(admin: psycopg.Connection, cluster: Cluster) -> list[str]:
    """Functions that a caller could shadow, replace or misuse."""
    found = []
    for name, owner, definer, settings, acl, schema in admin.execute(OURS).fetchall():
        if PATHS.get(schema) not in (settings or []):
            found.append(f"{name}: its search path is not fixed")
        if owner != cluster.owner_role:
            found.append(f"{name}: belongs to {owner}")
        if definer and (acl is None or any(str(each).startswith("=") for each in acl)):
            found.append(f"{name}: everybody may run it with its owner's rights")
    return found


def test_every_function_is_the_owner_s_and_means_the_tables_of_its_schema(
    admin: psycopg.Connection, cluster: Cluster
) -> None:
    assert admin.execute(f"SELECT count(*) > 20, bool_or(definer) FROM ({OURS}) f").fetchone() == (
        True, True,
    )  # fmt: skip
    assert faults(admin, cluster) == []


def test_a_function_of_the_next_migration_is_found(admin: psycopg.Connection, cluster: Cluster) -> None:
    """The control."""
    admin.execute("CREATE FUNCTION public.next() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT 1::bigint'")
    assert {each.split(": ")[1].split()[0] for each in faults(admin, cluster)} == {"its", "belongs", "everybody"}


def test_the_application_creates_nothing(admin: psycopg.Connection, cluster: Cluster) -> None:
    roles = [cluster.app_role, cluster.worker_role]
    assert admin.execute(CREATES, {"roles": roles}).fetchall() == []
    assert len(admin.execute(CREATES, {"roles": [cluster.owner_role]}).fetchall()) == 2  # the control
    for right in ("TEMPORARY", "CREATE"):
        may = "SELECT has_database_privilege(role, current_database(), %s) FROM unnest(%s::text[]) role"
        assert admin.execute(may, (right, roles)).fetchall() == [(False,)] * 2
        assert admin.execute(may, (right, [cluster.owner_role])).fetchall() == [(True,)]
