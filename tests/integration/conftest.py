"""A filled database, and what explains the plans of statements in it."""

from collections.abc import Iterator

import psycopg
import pytest
from pgvector.psycopg import register_vector

from memplane.adapters.postgres.arrays import register_arrays
from memplane.adapters.sql.tables import metadata
from support.busy import FILLING
from support.cluster import Database, Databases
from support.filling import insert
from support.plans import OTHER, TENANT, Explainer


@pytest.fixture(scope="module")
def busy(databases: Databases) -> Iterator[Database]:
    """A database with twenty users of twenty thousand memories and turns in each of two tenants."""
    made = databases.create()
    with psycopg.connect(made.admin_url, autocommit=True) as connection:
        for tenant in (TENANT, OTHER):
            for name, (rows, expressions) in FILLING.items():
                given = {column: text.format(tenant=f"'{tenant}'", rows=rows) for column, text in expressions.items()}
                given["tenant_id"] = f"'{tenant}'"
                connection.execute(insert(metadata.tables[name], f"generate_series(0, {rows - 1}) n", **given))
        connection.execute("VACUUM ANALYZE")
    yield made
    databases.drop(made)


@pytest.fixture
def explainer(busy: Database) -> Iterator[Explainer]:
    with psycopg.connect(busy.url, autocommit=True) as connection:
        register_vector(connection)
        register_arrays(connection)
        yield Explainer(connection)
