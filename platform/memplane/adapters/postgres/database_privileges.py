"""Rights that PostgreSQL gives to everybody in a new database, and that only the owner of this one needs."""

from typing import cast

import psycopg
import sqlalchemy as sa
from psycopg import sql

_MORE = """
SELECT has_database_privilege(%(role)s, current_database(), 'TEMPORARY') AS temporary,
       has_database_privilege(%(role)s, current_database(), 'CREATE') AS schemas,
       EXISTS (SELECT 1 FROM pg_namespace n WHERE n.nspname IN ('public', 'procrastinate')
                  AND has_schema_privilege(%(role)s, n.oid, 'CREATE')) AS objects
"""
_WORDS = ("temporary tables", "schemas", "tables and functions in the application's schemas")


def withdraw_creation(connection: psycopg.Connection, *roles: str) -> None:
    """Let nobody but the owner create anything in the connection's database, temporary tables included.

    Not part of a revision, but done with each migration: a copy or a restored database has the usual rights again. The
    database's owner, or an administrator, must connect: from others PostgreSQL takes no rights away, without an error.

    Args:
        connection: as the owner.
        roles: the application's and the worker's, which may have such rights of their own.
    """
    others = "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s) AND rolname <> current_user"
    named = [sql.Identifier(role) for (role,) in connection.execute(others, (list(roles),)).fetchall()]
    everybody = sql.SQL(" FROM ") + sql.SQL(", ").join([sql.SQL("PUBLIC"), *named])
    database = sql.SQL("DATABASE {}").format(sql.Identifier(connection.info.dbname))
    connection.execute(sql.SQL("REVOKE TEMPORARY, CREATE ON ") + database + everybody)
    connection.execute(sql.SQL("REVOKE CREATE ON SCHEMA public") + everybody)


def driver_under(connection: sa.Connection) -> psycopg.Connection:
    """The driver's connection under one of SQLAlchemy's."""
    return cast("psycopg.Connection", connection.connection.driver_connection)


def may_create(connection: psycopg.Connection, role: str) -> list[str]:
    """The kinds of objects that a role may create in the connection's database; none, once all is withdrawn."""
    row = connection.execute(_MORE, {"role": role}).fetchone() or (False,) * len(_WORDS)
    return [word for word, may in zip(_WORDS, row, strict=True) if may]
