"""The database roles: an application's one that row-level security would not bind is refused, a missing one is made."""

import asyncio
import secrets
from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from memplane.adapters.postgres.provisioning import check_schema, migrate
from memplane.adapters.postgres.storage import PostgresStorage
from memplane.domain.errors import StorageError, UnsafeRole
from support.cluster import Cluster, Database, Databases


class Roles:
    """Makes roles for one test."""

    def __init__(self, admin: psycopg.Connection) -> None:
        self._admin = admin
        self.named: list[str] = []

    def name(self) -> str:
        """A name for a role that is dropped with the test."""
        self.named.append(f"memplane_test_{secrets.token_hex(6)}")
        return self.named[-1]

    def make(self, *attributes: str, inherits: str | None = None) -> str:
        """A role with attributes, a member of another if that is named."""
        name = self.name()
        statement = sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'secret'").format(sql.Identifier(name))
        statement = sql.SQL(" ").join([statement, *map(sql.SQL, attributes)])  # type: ignore[arg-type]  # constants of this file
        if inherits is not None:
            statement += sql.SQL(" IN ROLE {}").format(sql.Identifier(inherits))
        self._admin.execute(statement)
        return name


@pytest.fixture
def roles(cluster: Cluster) -> Iterator[Roles]:
    with psycopg.connect(cluster.admin_url, autocommit=True) as admin:
        if admin.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone() != (True,):
            pytest.skip("only a superuser makes such roles")
        made = Roles(admin)
        yield made
        for name in made.named:
            admin.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))


def as_role(url: str, role: str) -> str:
    return sa.make_url(url).set(username=role, password="secret").render_as_string(hide_password=False)


def open_as(url: str) -> None:
    async def opened() -> None:
        storage = PostgresStorage(url, pool_size=2)
        try:
            await storage.open()
        finally:
            await storage.close()

    asyncio.run(opened())


def test_the_application_s_own_role_is_accepted(database: Database) -> None:
    open_as(database.url)


def test_an_ordinary_role_is_accepted(database: Database, roles: Roles) -> None:
    open_as(as_role(database.url, roles.make()))


@pytest.mark.parametrize(
    ("attribute", "told"), [("SUPERUSER", "a superuser"), ("BYPASSRLS", "bypass row-level security")]
)
def test_a_role_above_row_security_is_refused(database: Database, roles: Roles, attribute: str, told: str) -> None:
    with pytest.raises(UnsafeRole, match=told):
        open_as(as_role(database.url, roles.make(attribute)))


def test_the_owner_is_refused(database: Database) -> None:
    with pytest.raises(UnsafeRole, match="the owner of tables"):
        open_as(database.owner_url)


@pytest.mark.parametrize("attribute", ["INHERIT", "NOINHERIT"])
def test_a_role_that_can_become_the_owner_is_refused(
    database: Database, cluster: Cluster, roles: Roles, attribute: str
) -> None:
    with pytest.raises(UnsafeRole, match="the owner of tables"):
        open_as(as_role(database.url, roles.make(attribute, inherits=cluster.owner_role)))


@pytest.mark.parametrize("attribute", ["SUPERUSER", "BYPASSRLS"])
def test_a_role_that_can_become_one_above_row_security_is_refused(
    database: Database, roles: Roles, attribute: str
) -> None:
    with pytest.raises(UnsafeRole):
        open_as(as_role(database.url, roles.make(inherits=roles.make(attribute))))


def test_a_missing_application_role_is_asked_for(databases: Databases, cluster: Cluster, roles: Roles) -> None:
    made, name = databases.create(migrated=False), roles.name()
    try:
        with pytest.raises(StorageError, match=f"CREATE ROLE {name} LOGIN PASSWORD"):
            migrate(made.owner_url, name, cluster.worker_role)
    finally:
        databases.drop(made)


def test_a_missing_application_role_is_made_by_an_owner_who_may(databases: Databases, roles: Roles) -> None:
    made, name, worker = databases.create(migrated=False), roles.name(), roles.name()
    try:
        with psycopg.connect(made.admin_url, autocommit=True) as admin:
            owner = roles.make("CREATEROLE")
            admin.execute(sql.SQL("ALTER SCHEMA public OWNER TO {}").format(sql.Identifier(owner)))
            may = sql.SQL("GRANT CREATE ON DATABASE {} TO {}")
            admin.execute(may.format(sql.Identifier(made.name), sql.Identifier(owner)))
        migrate(as_role(made.owner_url, owner), name, worker)
        with psycopg.connect(made.admin_url, autocommit=True) as admin:
            assert admin.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (worker,)).fetchone()
            admin.execute(sql.SQL("ALTER ROLE {} PASSWORD 'secret'").format(sql.Identifier(name)))
        check_schema(as_role(made.url, name))
        open_as(as_role(made.url, name))
    finally:
        databases.drop(made)
