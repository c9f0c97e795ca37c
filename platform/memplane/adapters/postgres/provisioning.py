"""Roles, database and schema: what an owner prepares before the application connects."""

import psycopg
import sqlalchemy as sa
from psycopg import sql

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.adapters.postgres.keepalive import watching
from memplane.adapters.sql.schema.revisions import check_fit, current, refuse_newer
from memplane.domain.errors import SchemaMismatch, StorageError, StorageUnavailable

APP_ROLE = "memplane_app"
WORKER_ROLE = "memplane_worker"
OWNER_ROLE = "memplane_owner"
DATABASE = "memplane"
ANSWER_SECONDS = 10.0


def provision_embedded(server: EmbeddedPostgres, database: str = DATABASE) -> str:
    """Prepare an embedded server: roles, a database and the schema. Safe to run again.

    Returns:
        The URL by which the application connects.
    """
    with psycopg.connect(server.admin_conninfo, autocommit=True) as connection:
        for role in (OWNER_ROLE, APP_ROLE, WORKER_ROLE):
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (database,)).fetchone():
            statement = sql.SQL("CREATE DATABASE {} OWNER {}")
            connection.execute(statement.format(sql.Identifier(database), sql.Identifier(OWNER_ROLE)))
    with psycopg.connect(server.conninfo(user="postgres", database=database), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(sql.SQL("ALTER SCHEMA public OWNER TO {}").format(sql.Identifier(OWNER_ROLE)))
    migrate(server.url(user=OWNER_ROLE, database=database))
    return server.url(user=APP_ROLE, database=database)


def worker_url(url: str) -> str:
    """Where the worker takes jobs out of the queue of an embedded server, whose roles need no password."""
    return sa.make_url(url).set(username=WORKER_ROLE).render_as_string(hide_password=False)


def migrate(owner_url: str, app_role: str = APP_ROLE, worker_role: str = WORKER_ROLE) -> str:
    """Bring a database to this version's schema, as its owner.

    Args:
        owner_url: a PostgreSQL URL of a role that may create tables.
        app_role: the role by which the application connects; it is made, without a password, when it is missing and
            the owner may make roles.
        worker_role: the same for the role that takes jobs out of the queue.

    Returns:
        The revision that the database is at.

    Raises:
        StorageUnavailable: the database cannot be reached.
        StorageError: a role is missing and the owner may not make it.
        SchemaMismatch: a newer version made the schema.
    """
    url = sa.make_url(owner_url).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    try:
        with engine.begin() as connection:
            refuse_newer(current(connection))
            _ensure_role(connection, app_role, "application")
            _ensure_role(connection, worker_role, "worker")
        from memplane.adapters.sql.schema.migrations import upgrade  # noqa: PLC0415 - Alembic is slow to load

        upgrade(url.render_as_string(hide_password=False), app_role, worker_role=worker_role)
        with engine.begin() as connection:
            return current(connection) or ""
    except sa.exc.OperationalError as error:
        raise StorageUnavailable(f"the database cannot be reached: {error.orig}") from error
    finally:
        engine.dispose()


def _ensure_role(connection: sa.Connection, role: str, whose: str) -> None:
    if connection.execute(sa.text("SELECT 1 FROM pg_roles WHERE rolname = :role"), {"role": role}).first():
        return
    quoted = connection.dialect.identifier_preparer.quote(role)
    try:
        connection.execute(sa.text(f"CREATE ROLE {quoted} LOGIN"))
    except sa.exc.ProgrammingError as error:
        raise StorageError(
            f"the {whose}'s role '{role}' does not exist and this role may not create it; as an administrator run: "
            f"CREATE ROLE {quoted} LOGIN PASSWORD '…'"
        ) from error


def check_schema(url: str) -> None:
    """Refuse a database whose schema this version does not fit.

    Raises:
        SchemaMismatch: it has to be migrated, or is newer.
        StorageUnavailable: it cannot be reached.
    """
    named = sa.make_url(url).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(named, poolclass=sa.NullPool, connect_args=watching(url, ANSWER_SECONDS))
    try:
        with engine.connect() as connection:
            check_fit(current(connection))
    except sa.exc.OperationalError as error:
        raise StorageUnavailable(f"the database cannot be reached: {error.orig}") from error
    except sa.exc.ProgrammingError as error:
        role = sa.make_url(url).username
        raise SchemaMismatch(
            f"the role '{role}' may not read the schema: run `memplane migrate` with MEMPLANE_APP_ROLE={role}"
        ) from error
    finally:
        engine.dispose()


def checked_engine(url: str) -> sa.Engine:
    """An engine on a database whose schema this version fits, for work as its owner.

    Raises:
        SchemaMismatch: it has to be migrated, or is newer.
        StorageUnavailable: it cannot be reached.
    """
    check_schema(url)
    return sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"), hide_parameters=True)
