"""What migrations do with the rows that are there already, on both databases."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from memplane.adapters.sql.schema import migrations
from memplane.adapters.sql.schema.types import TextList
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


KEYS = {
    # id: trust, scopes, revoked; whether it could record turns by any policy
    "writer": ("full", ("memory:read", "memory:write", "checkpoint"), None, True),
    "inner": ("inner", ("memory:write",), None, True),
    "reader": ("full", ("memory:read", "checkpoint"), None, False),
    "public": ("public", ("memory:write",), None, False),
    "revoked": ("full", ("memory:write",), MOMENT, False),
}
KEY = sa.text(
    "INSERT INTO api_keys (tenant_id, key_id, secret_hash, agent, act_for, trust, scopes, created_at, revoked_at)"
    f" VALUES ('t', :key_id, :secret, 'supervisor', :act_for, :trust, :scopes, '{MOMENT}', :revoked)"
).bindparams(sa.bindparam("act_for", (), TextList()), sa.bindparam("scopes", type_=TextList()))
THREAD = sa.text(
    "INSERT INTO thread_revision (tenant_id, user_id, thread_id, rev, turns, updated_at)"
    f" VALUES ('t', 'ana', 'a', 9, 9, '{MOMENT}')"
)
TURN = sa.text(
    "INSERT INTO turns (tenant_id, id, user_id, thread_id, seq, rev, role, text, recorded_at, thread_key, term_length,"
    f" terms) VALUES ('t', :id, 'ana', 'a', :seq, :seq, 'user', 'Yes.', '{MOMENT}', 1, 0, :none)"
)


def test_turns_stay_vouched_and_keys_that_could_record_them_get_the_scope(url: str, cluster: Cluster) -> None:
    migrations.upgrade(url, cluster.app_role, "0021")
    engine = sa.create_engine(url, poolclass=sa.NullPool)

    def say(connection: sa.Connection, seq: int) -> None:
        turn = uuid4() if engine.dialect.name == "postgresql" else uuid4().hex
        connection.execute(TURN, {"id": turn, "seq": seq, "none": b""})

    with engine.begin() as connection:
        _name_tenant(connection)
        connection.execute(sa.text(f"INSERT INTO tenants (tenant_id, created_at) VALUES ('t', '{MOMENT}')"))
        for name, (trust, scopes, revoked, _) in KEYS.items():
            named = {"key_id": name, "trust": trust, "scopes": scopes, "revoked": revoked}
            connection.execute(KEY, named | {"secret": b"0"})
        connection.execute(THREAD)
        say(connection, 1)
    migrations.upgrade(url, cluster.app_role, worker_role=cluster.worker_role)
    with engine.begin() as connection:
        _name_tenant(connection)
        say(connection, 2)  # as the version before does, which knows nothing of it
        turns = connection.execute(sa.text("SELECT key_id, vouched FROM turns ORDER BY seq")).fetchall()
        keys = connection.execute(sa.text("SELECT key_id, user_turns, scopes FROM api_keys")).fetchall()
        if engine.dialect.name == "postgresql":  # the owner is bound by row-level security again
            connection.execute(sa.text("SELECT set_config('memplane.tenant', 'other', true)"))
            assert connection.execute(sa.text("SELECT 1 FROM api_keys")).fetchall() == []
    engine.dispose()
    assert [(row.key_id, bool(row.vouched)) for row in turns] == [(None, True)] * 2
    assert {row.key_id: bool(row.user_turns) for row in keys} == {name: each[-1] for name, each in KEYS.items()}
    assert not any("turns:user" in str(row.scopes) for row in keys)  # the version before would refuse such a key


BURIED = sa.text(
    "INSERT INTO tombstones (tenant_id, id, scope, category, value_hash, reason, actor, ts)"
    f" VALUES ('t', :id, :scope, 'event', :value, :reason, 'agent:x', '{MOMENT}')"
)


def test_what_was_rejected_at_once_is_one_verdict(url: str, cluster: Cluster) -> None:
    migrations.upgrade(url, cluster.app_role, "0027")
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    rows = [
        ("ana", "k1", "no"),
        ("ana", "k2", "no"),
        ("ana", "k3", "other"),
        ("ben", "k1", "no"),
        ("hash", "k1", "erased"),
    ]
    with engine.begin() as connection:
        _name_tenant(connection)
        connection.execute(sa.text(f"INSERT INTO tenants (tenant_id, created_at) VALUES ('t', '{MOMENT}')"))
        for scope, value, reason in rows:
            name = uuid4() if engine.dialect.name == "postgresql" else uuid4().hex
            connection.execute(BURIED, {"id": name, "scope": scope, "value": value, "reason": reason})
    migrations.upgrade(url, cluster.app_role, worker_role=cluster.worker_role)
    with engine.begin() as connection:
        _name_tenant(connection)
        found = connection.execute(sa.text("SELECT scope, value_hash, verdict_id FROM tombstones")).fetchall()
        if engine.dialect.name == "postgresql":  # the owner is bound by row-level security again
            connection.execute(sa.text("SELECT set_config('memplane.tenant', 'other', true)"))
            assert connection.execute(sa.text("SELECT 1 FROM tombstones")).fetchall() == []
    engine.dispose()
    verdicts = {(row.scope, row.value_hash): row.verdict_id for row in found}
    assert verdicts["ana", "k1"] == verdicts["ana", "k2"]
    assert len(set(verdicts.values())) == 4
    assert verdicts["hash", "k1"] is None


NOTED = sa.text(
    "INSERT INTO events (tenant_id, id, user_id, node, op, status, ts)"
    " VALUES ('t', :id, :user, :node, 'search', 'ok', :moment)"
)
TOLD = sa.text(
    "INSERT INTO history (tenant_id, id, memory_id, event, actor, meta, policy_hash, ts, of_user)"
    " VALUES ('t', :id, :id, 'ADD', :node, '{}', 'sha256:0', :moment, :user)"
)


def test_when_users_were_there_is_worked_out(url: str, cluster: Cluster) -> None:
    migrations.upgrade(url, cluster.app_role, "0021")
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    days = {
        (NOTED, "ana", "hotpath"): ("01-01", "01-10", "06-20", "06-21"),
        (NOTED, "ana", "worker"): ("03-01",),
        (TOLD, "ana", "agent:x"): ("01-20",),
        (TOLD, "ana", "job:insights"): ("04-01", "10-01"),
        (NOTED, "ben", "context"): ("11-01",),
    }
    with engine.begin() as connection:
        _name_tenant(connection)
        connection.execute(sa.text(f"INSERT INTO tenants (tenant_id, created_at) VALUES ('t', '{MOMENT}')"))
        for (statement, user, node), found in days.items():
            for day in found:
                moment = f"2026-{day}T04:00:00.000000+00:00"
                connection.execute(statement, {"id": uuid4().hex, "user": user, "node": node, "moment": moment})
    migrations.upgrade(url, cluster.app_role, worker_role=cluster.worker_role)
    with engine.begin() as connection:
        _name_tenant(connection)
        rows = connection.execute(
            sa.text("SELECT user_id, began_at, last_at, resumed_at FROM user_activity ORDER BY user_id, began_at")
        ).fetchall()
        if engine.dialect.name == "postgresql":  # the owner is bound by row-level security
            connection.execute(sa.text("SELECT set_config('memplane.tenant', 'other', true)"))
            assert connection.execute(sa.text("SELECT 1 FROM user_activity")).fetchall() == []
    engine.dispose()
    told = [(user, *(None if each is None else str(each)[5:10] for each in moments)) for user, *moments in rows]
    assert told == [
        ("ana", "01-01", "01-20", "06-20"),
        ("ana", "06-20", "06-21", None),
        ("ben", "11-01", "11-01", None),
    ]


def _name_tenant(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT set_config('memplane.tenant', 't', true)"))
