"""A filled database, and what explains the plans of statements in it; servers as processes of their own."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from pgvector.psycopg import register_vector

from integration.commands import Served, reachable_folder, serving
from memplane.adapters.postgres.arrays import register_arrays
from memplane.adapters.sql.schema.tables import metadata
from support.busy import FILLING
from support.cluster import Database, Databases
from support.filling import insert
from support.plans import OTHER, TENANT, Explainer


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    """`memplane serve` on SQLite, which the tests of one process share: each has users of its own on it."""
    with reachable_folder() as folder, serving(folder, "--storage", "sqlite", "--port", "0") as server:
        yield server


@pytest.fixture(scope="session")
def served_by_postgres() -> Iterator[Served]:
    """The same on a PostgreSQL of its own."""
    with reachable_folder() as folder, serving(folder, "--port", "0") as server:
        yield server


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that PostgreSQL's own user can pass through."""
    with reachable_folder() as folder:
        yield folder


@pytest.fixture
def data(base: Path) -> Path:
    """A data folder that is not made yet."""
    return base / "data"


@pytest.fixture
def user() -> str:
    """A user of this test alone."""
    return f"user-{uuid4().hex[:8]}"
