"""The PostgreSQL server that a test session runs on, with a migrated template to copy databases from."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import sql
from psycopg.rows import dict_row

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.adapters.postgres.provisioning import APP_ROLE, OWNER_ROLE, WORKER_ROLE, migrate, provision_embedded
from support.looks import Rows

SELECTION = "MEMPLANE_TEST_POSTGRES"
"""Environment variable that chooses the server: unset or `embedded`, `testcontainers`, or an administrator's URL."""
IMAGE = "pgvector/pgvector:pg18"


@dataclass(frozen=True)
class Database:
    """One database, as each role connects to it.

    Attributes:
        name: the database.
        url: the application's role, which row-level security binds.
        owner_url: the schema's owner, which migrates.
        worker_url: the worker's role, which takes jobs out of the queue.
        admin_url: the administrator, whom row-level security does not bind when it is a superuser.
    """

    name: str
    url: str
    owner_url: str
    worker_url: str
    admin_url: str

    def new_tenant(self) -> str:
        """A name that no tenant has yet."""
        return f"t-{secrets.token_hex(8)}"

    def rows(self, tenant: str, statement: str, values: Mapping[str, object]) -> list[dict[str, Any]]:
        """Run SQL as the administrator, for a tenant."""
        with self.looking() as rows:
            return rows(tenant, statement, values)

    @contextmanager
    def looking(self) -> Iterator[Rows]:
        """The same, as often as one likes on one connection."""
        with psycopg.connect(self.admin_url, autocommit=True, row_factory=dict_row) as connection:

            def rows(tenant: str, statement: str, values: Mapping[str, object]) -> list[dict[str, Any]]:
                with connection.transaction():
                    connection.execute("SELECT set_config('memplane.tenant', %s, true)", (tenant,))
                    cursor = connection.execute(statement, {"tenant": tenant} | dict(values))
                    return cursor.fetchall() if cursor.description else []

            yield rows


@dataclass(frozen=True)
class Cluster:
    """A running server, as values that can travel to another process.

    Attributes:
        admin_url: connects an administrator, to a database that is not touched.
        template: a migrated database to copy.
        owner_role: owner of the schema.
        app_role: role of the application.
        worker_role: role of the worker.
        password: of these roles; empty where the server asks for none.
    """

    admin_url: str
    template: str
    owner_role: str
    app_role: str
    worker_role: str
    password: str

    def database(self, name: str) -> Database:
        """The URLs of a database."""
        login = {"password": self.password or None, "database": name}
        return Database(
            name=name,
            url=_changed(self.admin_url, username=self.app_role, **login),
            owner_url=_changed(self.admin_url, username=self.owner_role, **login),
            worker_url=_changed(self.admin_url, username=self.worker_role, **login),
            admin_url=_changed(self.admin_url, database=name),
        )


class Databases:
    """Makes and drops databases, over one connection that is kept."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._admin = psycopg.connect(cluster.admin_url, autocommit=True)

    def create(self, *, migrated: bool = True) -> Database:
        """A new database of the schema's owner: a copy of the template, or an empty one that has only pgvector."""
        name = f"{self._cluster.template}_{secrets.token_hex(6)}"
        if migrated:
            copy = "CREATE DATABASE {} OWNER {} TEMPLATE {} STRATEGY file_copy"
            self._run(copy, name, self._cluster.owner_role, self._cluster.template)
            # a copy has the rows of its template, and the rights of a new database
            self._run("REVOKE TEMPORARY, CREATE ON DATABASE {} FROM PUBLIC", name)
        else:
            self._run("CREATE DATABASE {} OWNER {}", name, self._cluster.owner_role)
            _prepare(self._cluster.database(name).admin_url, self._cluster.owner_role)
        return self._cluster.database(name)

    def drop(self, database: Database) -> None:
        """Drop a database, whoever is connected to it."""
        self._run("DROP DATABASE {} WITH (FORCE)", database.name)

    def break_connections(self, database: Database) -> None:
        """Let nobody connect any more, and end the connections that there are."""
        self._run("ALTER DATABASE {} WITH ALLOW_CONNECTIONS false", database.name)
        self._admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (database.name,)
        )

    def mend_connections(self, database: Database) -> None:
        """Take :meth:`break_connections` back."""
        self._run("ALTER DATABASE {} WITH ALLOW_CONNECTIONS true", database.name)

    def close(self) -> None:
        """Give the connection up."""
        self._admin.close()

    def _run(self, statement: str, *names: str) -> None:
        self._admin.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@contextmanager
def selected_cluster() -> Iterator[Cluster]:
    """The server that the environment selects, prepared; what was made of it is gone afterwards."""
    choice = os.environ.get(SELECTION, "embedded")
    if choice == "embedded":
        with _embedded() as cluster:
            yield cluster
    elif choice == "testcontainers":
        with _container_url() as url, _prepared(url) as cluster:
            yield cluster
    else:
        with _prepared(choice) as cluster:
            yield cluster


@contextmanager
def _embedded() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="memplane-test-"))
    folder.chmod(0o711)  # run by root, PostgreSQL is another user, who has to pass through
    try:
        with EmbeddedPostgres.start(folder / "data", durable=False, options={"max_connections": "200"}) as server:
            template = "memplane_test"
            provision_embedded(server, template)
            yield Cluster(server.admin_conninfo, template, OWNER_ROLE, APP_ROLE, WORKER_ROLE, "")
    finally:
        shutil.rmtree(folder)


@contextmanager
def _container_url() -> Iterator[str]:
    from testcontainers.community.postgres import PostgresContainer  # noqa: PLC0415 - needs Docker, and is slow to import

    options = "-c fsync=off -c full_page_writes=off -c max_connections=200"
    with PostgresContainer(IMAGE, driver=None).with_command(f"postgres {options}") as container:
        yield container.get_connection_url()


@contextmanager
def _prepared(admin_url: str) -> Iterator[Cluster]:
    """Somebody's server: roles and databases of our own, under names that this session alone has."""
    mark = secrets.token_hex(4)
    template, owner, app, worker = (f"memplane_test_{mark}{part}" for part in ("", "_owner", "_app", "_worker"))
    cluster = Cluster(_changed(admin_url), template, owner, app, worker, secrets.token_urlsafe(24))
    with psycopg.connect(cluster.admin_url, autocommit=True) as admin:
        try:
            for role in (owner, app, worker):
                made = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
                admin.execute(made.format(sql.Identifier(role), sql.Literal(cluster.password)))
            admin.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(owner)))
            admin.execute(
                sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(template), sql.Identifier(owner))
            )
            _prepare(cluster.database(template).admin_url, owner)
            migrate(cluster.database(template).owner_url, app, worker)
            yield cluster
        finally:
            left = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
            for (name,) in admin.execute(left, (template,)).fetchall():
                admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
            for role in (owner, app, worker):
                admin.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))


def _prepare(admin_url: str, owner: str) -> None:
    """What an administrator does in a database before its owner can migrate it."""
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(sql.SQL("ALTER SCHEMA public OWNER TO {}").format(sql.Identifier(owner)))


def _changed(url: str, **parts: str | None) -> str:
    chosen = {name: value for name, value in parts.items() if value is not None}
    return sa.make_url(url).set(drivername="postgresql", **chosen).render_as_string(hide_password=False)
