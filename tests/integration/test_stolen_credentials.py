"""Somebody has a database role's password: what can be created, changed or taken over with it, tried as SQL.

Each attempt is judged by the catalogue before and after, and shown to have an effect where the owner makes it.
"""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from support.catalogue import catalogue, changes
from support.cluster import Cluster, Database

ENTRY = "00000000-0000-0000-0000-000000000001"
FUNCTION = "LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$"
CREATED = {
    "a table": "CREATE TABLE public.memories_2 (x int)",
    "a table of a query": "CREATE TABLE public.memories_2 AS SELECT 1 AS x",
    "a view": "CREATE VIEW public.memories_2 AS SELECT 1 AS x",
    "a materialised view": "CREATE MATERIALIZED VIEW public.memories_2 AS SELECT 1 AS x",
    "a sequence": "CREATE SEQUENCE public.memories_2",
    "a function": f"CREATE FUNCTION public.unit_changed_2() RETURNS trigger {FUNCTION}",
    "a function in place of one": f"CREATE OR REPLACE FUNCTION public.unit_changed() RETURNS trigger {FUNCTION}",
    "a procedure": "CREATE PROCEDURE public.p() LANGUAGE sql AS 'SELECT 1'",
    "an aggregate": "CREATE AGGREGATE public.a(int) (sfunc = int4pl, stype = int)",
    "an operator": "CREATE OPERATOR public.=== (leftarg = uuid, rightarg = uuid, function = uuid_eq)",
    "a type": "CREATE TYPE public.pair AS (a int, b int)",
    "an enum": "CREATE TYPE public.kind AS ENUM ('a')",
    "a domain": "CREATE DOMAIN public.short AS text",
    "a schema": "CREATE SCHEMA memplane_app",
    "an object of the queue": "CREATE TABLE procrastinate.procrastinate_jobs_2 (x int)",
    "a temporary table": "CREATE TEMP TABLE history (x int); CREATE TABLE public.history_2 (x int)",
    "a trigger": "CREATE TRIGGER t BEFORE UPDATE ON public.history FOR EACH ROW EXECUTE FUNCTION public.unit_changed()",
    "a rule": "CREATE RULE r AS ON INSERT TO public.history DO INSTEAD NOTHING",
    "a policy": "CREATE POLICY p ON public.history USING (true)",
    "an index": "CREATE INDEX ON public.history (actor)",
    "a foreign key": "CREATE TABLE public.m (a text, b uuid, FOREIGN KEY (a, b) REFERENCES public.history)",
    "an inherited table": "CREATE TABLE public.m () INHERITS (public.history)",
    "a block": "DO $$ BEGIN EXECUTE 'CREATE TABLE public.m (x int)'; END $$",
}
TEMPORARY = {
    "a table": "CREATE TEMP TABLE history (x int)",
    "a table of a query": "CREATE TEMP TABLE history AS SELECT 1 AS x",
    "a view": "CREATE TEMP VIEW history AS SELECT 1 AS x",
    "a sequence": "CREATE TEMP SEQUENCE history",
    "a function": f"CREATE FUNCTION pg_temp.unit_changed() RETURNS trigger {FUNCTION}",
    "an operator": "CREATE OPERATOR pg_temp.= (leftarg = uuid, rightarg = uuid, function = uuid_ne)",
    "a type": "CREATE TYPE pg_temp.history AS (x int)",
    "a domain": "CREATE DOMAIN pg_temp.uuid AS text",
    "into": "SELECT 1 AS x INTO TEMP history",
    "a cast": "CREATE TYPE pg_temp.t AS (x int); CREATE CAST (pg_temp.t AS text) WITH INOUT",
    "a block": "DO $$ BEGIN CREATE TEMP TABLE history (x int); END $$",
}
CHANGED = {
    "no row security": "ALTER TABLE public.history DISABLE ROW LEVEL SECURITY",
    "row security unforced": "ALTER TABLE public.history NO FORCE ROW LEVEL SECURITY",
    "a column dropped": "ALTER TABLE public.history DROP COLUMN actor",
    "a search path": "ALTER FUNCTION public.history_purged(uuid[]) RESET search_path",
    "an owner's rights": "ALTER FUNCTION public.unit_changed() SECURITY DEFINER",
    "a trigger off": "ALTER TABLE public.memories DISABLE TRIGGER USER",
    "a trigger dropped": "DROP TRIGGER memories_added ON public.memories",
    "a policy changed": "ALTER POLICY tenant_isolation ON public.history USING (true)",
    "a policy dropped": "DROP POLICY tenant_isolation ON public.history",
    "a function dropped": "DROP FUNCTION public.history_purged(uuid[])",
    "a table dropped": "DROP TABLE public.job_runs",
    "a grant of a table": "GRANT UPDATE ON public.history TO {role}",
    "a grant to all": "GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC",
    "a grant of a function": "GRANT EXECUTE ON FUNCTION public.history_purged(uuid[]) TO PUBLIC",
    "a grant of the schema": "GRANT CREATE ON SCHEMA public TO {role}",
    "history changed": "SET LOCAL memplane.tenant = 'a'; UPDATE public.history SET actor = 'me'",
    "history deleted": "SET LOCAL memplane.tenant = 'a'; DELETE FROM public.history",
    "history emptied": "TRUNCATE public.history",
    "history locked and emptied": "LOCK TABLE public.history IN ACCESS EXCLUSIVE MODE; TRUNCATE public.history",
    "the revision": "UPDATE public.alembic_version SET version_num = '0001'",
    "the owner's role": "SET ROLE {owner}; TRUNCATE public.history",
    "the owner's role, by a function": "SELECT set_config('role', '{owner}', false); TRUNCATE public.history",
    "default rights": "SET ROLE {owner}; GRANT ALL ON public.history TO {role}",
}
ADMINISTERED = {
    "owned by another": "REASSIGN OWNED BY {owner} TO {role}",
    "another owner of a function": "ALTER FUNCTION public.history_purged(uuid[]) OWNER TO {role}",
    "another owner": "ALTER TABLE public.history OWNER TO {role}",
    "an extension": "DROP EXTENSION vector CASCADE",
    "another extension": "ALTER EXTENSION plpgsql SET SCHEMA public",
    "an event trigger": "CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION public.unit_changed()",
    "a cast": "CREATE CAST (text AS uuid) WITH INOUT AS IMPLICIT",
    "a language": "CREATE LANGUAGE memplane_x HANDLER plpgsql_call_handler",
    "a base type": "CREATE TYPE public.base",
    "a program": "COPY public.history TO PROGRAM 'true'",
    "a program's rows": "COPY public.history FROM PROGRAM 'true'",
    "a file": "COPY public.history TO '/tmp/memplane-history'",
    "a file read": "SELECT pg_read_file('/etc/passwd')",
    "a file as a large object": "SELECT lo_import('/etc/passwd')",
    "a large object as a file": "SELECT lo_export(lo_create(0), '/tmp/memplane-object')",
    "a role": "CREATE ROLE memplane_x SUPERUSER",
    "a member of the owner": "GRANT {owner} TO {role}",
    "a superuser": "ALTER ROLE {role} SUPERUSER",
    "beyond row security": "ALTER ROLE {role} BYPASSRLS",
    "the owner's password": "ALTER ROLE {owner} PASSWORD 'x'",
    "the owner's settings": "ALTER ROLE {owner} SET search_path = pg_temp",
    "the database's settings": "ALTER DATABASE {database} SET search_path = pg_temp",
    "a database": "CREATE DATABASE memplane_x",
    "the server's settings": "ALTER SYSTEM SET log_statement = 'all'",
    "a server": "CREATE FOREIGN DATA WRAPPER memplane_x",
    "a publication": "CREATE PUBLICATION memplane_x FOR ALL TABLES",
    "a library": "LOAD '/tmp/memplane.so'",
    "a session of a superuser": "SET SESSION AUTHORIZATION postgres",
    "replication": "SELECT pg_create_logical_replication_slot('x', 'test_decoding')",
    "a replica's triggers": "SET session_replication_role = replica",
}
HARMLESS = {
    "a block": "DO $$ BEGIN PERFORM 1; END $$",
    "a large object": "SELECT lo_create(0)",
    "a path": "SET search_path = pg_temp, public",
    "row security off": "SET row_security = off",
    "another tenant": "SELECT set_config('memplane.tenant', 'b', false)",
    "a sealing of another tenant": "SELECT set_config('memplane.tenant', 'b', false); SELECT public.history_sealed("
    f"ARRAY['{ENTRY}'::uuid], ARRAY[''::bytea], ARRAY[''::bytea], ARRAY[''::bytea], 1)",
    "a purge of what is there": "SELECT set_config('memplane.tenant', 'a', false);"
    f" SELECT public.history_purged(ARRAY['{ENTRY}'::uuid])",
    "an erasure without a receipt": "SELECT set_config('memplane.tenant', 'a', false);"
    f" SELECT public.history_erased('{ENTRY}', '{{}}', 100)",
    "own default rights": "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC",
    "maintenance": "ANALYZE public.history",
}
SHADOWS = [
    """CREATE TEMP TABLE history (tenant_id text, id uuid, memory_id uuid, of_user text, event text, position bigint,
    salt bytea, payload_hash bytea, link bytea, old_ref text, new_ref text, meta jsonb, erased_by uuid, actor text)""",
    """CREATE FUNCTION pg_temp.taken() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN GRANT UPDATE, DELETE ON public.history TO PUBLIC; RETURN NEW; END $$""",
    "CREATE TRIGGER taken BEFORE UPDATE ON pg_temp.history FOR EACH ROW EXECUTE FUNCTION pg_temp.taken()",
    "GRANT ALL ON pg_temp.history TO PUBLIC",
    f"INSERT INTO pg_temp.history (tenant_id, id) VALUES ('a', '{ENTRY}')",
]
SEAL = f"""
SELECT public.history_sealed(ARRAY['{ENTRY}'::uuid], ARRAY[''::bytea], ARRAY[''::bytea], ARRAY[''::bytea], 1)
"""


@pytest.fixture
def admin(database: Database) -> Iterator[psycopg.Connection]:
    """A superuser, on a database with an entry of history."""
    with psycopg.connect(database.admin_url, autocommit=True) as connection:
        if connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone() != (True,):
            pytest.skip("only a superuser sees all")
        connection.execute("INSERT INTO public.tenants VALUES ('a', now())")
        connection.execute(
            "INSERT INTO public.history (tenant_id, id, memory_id, event, new_ref, actor, meta, policy_hash, ts)"
            " VALUES ('a', %s, %s, 'ADD', 'words', 'x', '{}', 'sha256:0', now())",
            (ENTRY, ENTRY),
        )
        yield connection


class Thief:
    """Who has a role's password."""

    def __init__(self, database: Database, cluster: Cluster, role: str) -> None:
        self.url = {cluster.app_role: database.url, cluster.worker_role: database.worker_url}[role]
        self.role = role
        self._names = {"role": role, "owner": cluster.owner_role, "database": database.name}

    def statements(self, attempt: str) -> str:
        """An attempt, with the names of this server."""
        for name, value in self._names.items():
            attempt = attempt.replace(f"{{{name}}}", value)
        return attempt

    def attempt(self, attempt: str) -> psycopg.Error | None:
        """Make it in a connection of its own, and keep what comes of it; what it was refused with."""
        try:
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute(self.statements(attempt))  # type: ignore[arg-type]  # constants of this file
        except psycopg.Error as error:
            return error
        return None


@pytest.fixture(params=["app_role", "worker_role"])
def thief(database: Database, cluster: Cluster, request: pytest.FixtureRequest) -> Thief:
    return Thief(database, cluster, getattr(cluster, request.param))


@pytest.mark.parametrize("attempts", [CREATED, TEMPORARY, CHANGED, ADMINISTERED], ids=["new", "temp", "old", "admin"])
def test_nothing_can_be_created_changed_or_taken_over(
    admin: psycopg.Connection, thief: Thief, attempts: dict[str, str]
) -> None:
    before = catalogue(admin)
    for name, attempt in attempts.items():
        refused = thief.attempt(attempt)
        # a grant by somebody with other rights on the object grants nothing, with a warning
        assert isinstance(refused, psycopg.errors.InsufficientPrivilege) or name.startswith("a grant"), name
        assert changes(before, catalogue(admin)) == {}, name


def test_what_is_allowed_changes_nothing_of_the_database(admin: psycopg.Connection, thief: Thief) -> None:
    before = catalogue(admin)
    for name, attempt in HARMLESS.items():
        thief.attempt(attempt)
        assert changes(before, catalogue(admin)) == {}, name


@pytest.mark.parametrize("attempts", [CREATED, CHANGED], ids=["new", "old"])
def test_the_owner_can(admin: psycopg.Connection, thief: Thief, cluster: Cluster, attempts: dict[str, str]) -> None:
    """The control: each attempt is right SQL, and the comparison sees what comes of it."""
    before = catalogue(admin)
    for name, attempt in attempts.items():
        with admin.transaction(force_rollback=True):
            admin.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(cluster.owner_role)))
            admin.execute(thief.statements(attempt))  # type: ignore[arg-type]  # constants of this file
            admin.execute("RESET ROLE")
            assert changes(before, catalogue(admin)) != {}, name
    assert changes(before, catalogue(admin)) == {}


def test_temporary_objects_are_right_sql(admin: psycopg.Connection) -> None:
    for name, attempt in TEMPORARY.items():
        with admin.transaction(force_rollback=True):
            admin.execute(attempt)  # type: ignore[arg-type]  # constants of this file
            found = admin.execute("SELECT pg_my_temp_schema() <> 0").fetchone()
            assert found == (True,), name


@pytest.mark.breaks
def test_functions_of_the_owner_cannot_be_shadowed(
    admin: psycopg.Connection, database: Database, cluster: Cluster
) -> None:
    """Not even by a role that may create temporary tables, as in a database that was restored by hand."""
    app = sql.Identifier(cluster.app_role)
    where = sql.Identifier(database.name)
    admin.execute(sql.SQL("GRANT TEMPORARY ON DATABASE {} TO {}").format(where, app))
    before = catalogue(admin)
    with psycopg.connect(database.url, autocommit=True) as connection:
        for statement in SHADOWS:
            connection.execute(statement)  # type: ignore[arg-type]  # constants of this file
        connection.execute("SELECT set_config('memplane.tenant', 'a', false)")
        assert connection.execute(SEAL).fetchone() == (1,)
        assert connection.execute("SELECT position FROM pg_temp.history").fetchone() == (None,)
        assert set(changes(before, catalogue(admin))) == {"history"}  # it was sealed, as asked
        # the control: with the path of the first release, the same lines make the caller's code the owner's
        admin.execute(
            'ALTER FUNCTION public.history_sealed(uuid[], bytea[], bytea[], bytea[], bigint) SET search_path = "$user",'
            " public"
        )
        admin.execute(
            "CREATE OR REPLACE FUNCTION public.history_sealed(ids uuid[], salts bytea[], hashes bytea[],"
            ' links bytea[], first bigint) RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = "$user",'
            " public AS $$ WITH done AS (UPDATE history SET position = first RETURNING 1)"
            " SELECT count(*) FROM done $$"
        )
        assert connection.execute(SEAL).fetchone() == (1,)
    assert {"relations"} <= set(changes(before, catalogue(admin)))
