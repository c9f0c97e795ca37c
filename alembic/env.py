"""Runs the migrations: one at a time in the whole cluster, never waiting long for a lock."""

import sqlalchemy as sa
from alembic import context

from memplane.adapters.postgres.rate_buckets import PASSING
from memplane.adapters.postgres.tenant_removal import OPERATOR
from memplane.adapters.sql.schema.tables import metadata
from memplane.adapters.sqlite.engine import configure

LOCK = 0x6D656D706C616E65  # "memplane"
config = context.config
arguments = context.get_x_argument(as_dictionary=True)
url = config.attributes.get("url") or arguments.get("url")
if not url:
    raise SystemExit("name the owner's database URL: -x url=postgresql+psycopg://…")
config.attributes.setdefault("app_role", arguments.get("app_role", "memplane_app"))
config.attributes.setdefault("worker_role", arguments.get("worker_role", "memplane_worker"))


def run() -> None:
    """Migrate within one transaction, holding an advisory lock on PostgreSQL."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    if engine.dialect.name == "sqlite":  # the write lock keeps migrations apart
        configure(engine, begin="BEGIN IMMEDIATE")
    with engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("SET lock_timeout = '10s'"))
            connection.execute(sa.text("SELECT pg_advisory_lock(:key)"), {"key": LOCK})
            connection.commit()
        context.configure(connection=connection, target_metadata=[metadata, PASSING, OPERATOR], transactional_ddl=True)
        with context.begin_transaction():
            context.run_migrations()
            if connection.dialect.name == "postgresql":
                # SQLite works without the driver
                from memplane.adapters.postgres.database_privileges import driver_under, withdraw_creation  # noqa: PLC0415 - as above

                attributes = config.attributes
                withdraw_creation(driver_under(connection), attributes["app_role"], attributes["worker_role"])
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_unlock(:key)"), {"key": LOCK})
            connection.commit()
    engine.dispose()


run()
