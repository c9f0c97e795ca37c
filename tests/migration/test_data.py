"""What migrations do with the rows that are there already, on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from memplane.adapters.sql import migrations
from memplane.adapters.sqlite.engine import sync_url
from support.cluster import Cluster, Databases

MOMENT = "2026-11-20T04:00:00.000000+00:00"
RUN = sa.text(
    "INSERT INTO job_runs (tenant_id, name, period, as_of, counts, started_at, finished_at)"
    f" VALUES ('t', :name, '2026-11-20', '{MOMENT}', '{{}}', '{MOMENT}', :finished_at)"
)


@pytest.fixture(params=["postgres", "sqlite"])
def url(request: pytest.FixtureRequest, databases: Databases, tmp_path: Path) -> Iterator[str]:
    """An empty database, as its owner."""
    if request.param == "sqlite":
        yield sync_url(tmp_path / "memory.db")
        return
    made = databases.create(migrated=False)
    yield sa.make_url(made.owner_url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)
    databases.drop(made)


def test_runs_of_jobs_get_names_and_states(url: str, cluster: Cluster) -> None:
    migrations.upgrade(url, cluster.app_role, "0012")
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        _name_tenant(connection)
        connection.execute(sa.text(f"INSERT INTO tenants (tenant_id, created_at) VALUES ('t', '{MOMENT}')"))
        for name, finished_at in (("ttl", MOMENT), ("decay", None)):
            connection.execute(RUN, {"name": name, "finished_at": finished_at})
    migrations.upgrade(url, cluster.app_role, worker_role=cluster.worker_role)
    with engine.begin() as connection:
        _name_tenant(connection)
        rows = connection.execute(sa.text("SELECT id, name, state, attempts FROM job_runs ORDER BY name")).fetchall()
        if engine.dialect.name == "postgresql":  # the owner is bound by row-level security again
            connection.execute(sa.text("SELECT set_config('memplane.tenant', 'other', true)"))
            assert connection.execute(sa.text("SELECT 1 FROM job_runs")).fetchall() == []
    engine.dispose()
    assert [row[1:] for row in rows] == [("decay", "running", 0), ("ttl", "done", 0)]
    assert len({row.id for row in rows} - {None}) == 2


def _name_tenant(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT set_config('memplane.tenant', 't', true)"))
