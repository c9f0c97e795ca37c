"""The functions of the history that run with its owner's rights: what the application can do by them, and cannot."""

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID, uuid4

import psycopg
import pytest

from support.cluster import Database

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def app(database: Database) -> Iterator[psycopg.Connection]:
    """The application's role, with entries of two tenants."""
    with psycopg.connect(database.admin_url, autocommit=True) as owner:
        for tenant in ("a", "b"):
            owner.execute("INSERT INTO tenants VALUES (%s, now())", (tenant,))
            for event in ("ADD", "PURGE"):
                owner.execute(
                    "INSERT INTO history (tenant_id, id, memory_id, event, new_ref, actor, meta, policy_hash, ts,"
                    " of_user)"
                    " VALUES (%s, %s, %s, %s, 'words', 'x', '{}', 'sha256:0', %s, 'ana')",
                    (tenant, entry(tenant, event), entry(tenant, "memory"), event, NOW),
                )
    with psycopg.connect(database.url) as connection:
        connection.execute("SELECT set_config('memplane.tenant', 'a', false)")
        yield connection
        connection.rollback()


def entry(tenant: str, what: str) -> UUID:
    return UUID(int=int.from_bytes(f"{tenant}{what}".encode()))


def words(app: psycopg.Connection) -> int:
    found = app.execute("SELECT count(*) FROM history WHERE new_ref = 'words'").fetchone()
    assert found is not None
    return int(found[0])


def done(app: psycopg.Connection, call: str, *values: object) -> int:
    found = app.execute(f"SELECT {call}", values).fetchone()
    assert found is not None
    return int(found[0])


def test_only_the_words_of_a_memory_that_is_purged_and_gone(app: psycopg.Connection) -> None:
    assert words(app) == 2
    assert done(app, "history_purged(%s)", [entry("a", "ADD")]) == 0  # no purge
    assert done(app, "history_purged(%s)", [entry("b", "PURGE")]) == 0  # another tenant's
    assert words(app) == 2
    assert done(app, "history_purged(%s)", [entry("a", "PURGE")]) == 1
    assert words(app) == 1


def test_not_those_of_a_memory_that_is_there(app: psycopg.Connection) -> None:
    app.execute(
        "INSERT INTO memories (tenant_id, id, user_id, category, type, visibility, min_trust, content, facts, steps,"
        " tags, related_files, importance, pinned, confidence, layer, trust_state, source, source_ids, value_hash,"
        " recorded_at, updated_at, state, pii, attributes, term_length, terms) VALUES ('a', %s, 'ana', 'tasks',"
        " 'semantic', 'private', 'public', 'x', '{}', '{}', '{}', '{}', 3, false, 1, 'mid', 'candidate', 'agent', '{}',"
        " 'x', now(), now(), 'active', '{}', '{}', 1, '')",
        (entry("a", "memory"),),
    )
    assert done(app, "history_purged(%s)", [entry("a", "PURGE")]) == 0
    assert words(app) == 2


@pytest.mark.parametrize(("of_user", "finished", "count"), [("ana", None, 2), ("ben", None, 0), (None, NOW, 0)])
def test_only_of_whom_an_erasure_is_under_way(
    app: psycopg.Connection, of_user: str | None, finished: datetime | None, count: int
) -> None:
    receipt = uuid4()
    assert done(app, "history_erased(%s, '{}', 100)", receipt) == 0  # there is none
    app.execute(
        "INSERT INTO erasures (tenant_id, id, subject, of_user, actor, policy_hash, counts, started_at, finished_at)"
        " VALUES ('a', %s, 'x', %s, 'x', 'sha256:0', '{}', %s, %s)",
        (receipt, of_user, NOW, finished),
    )
    assert done(app, "history_erased(%s, '{}', 100)", receipt) == count
    assert words(app) == 2 - count


def test_an_entry_that_has_its_place_keeps_it(app: psycopg.Connection) -> None:
    sealing = "history_sealed(%s, %s, %s, %s, %s)"
    for position, count in ((1, 1), (7, 0)):
        values = ([entry("a", "ADD")], [b"s"], [b"h"], [b"l"], position)
        assert done(app, sealing, *values) == count
    assert done(app, sealing, [entry("b", "ADD")], [b"s"], [b"h"], [b"l"], 1) == 0  # another tenant's
    assert app.execute("SELECT position FROM history WHERE position IS NOT NULL").fetchall() == [(1,)]


def test_nobody_else_may_call_them(database: Database) -> None:
    with psycopg.connect(database.admin_url) as connection:
        granted = connection.execute(
            "SELECT p.proname::text, has_function_privilege('public', p.oid, 'EXECUTE') FROM pg_proc p"
            " WHERE p.prosecdef AND p.pronamespace = 'public'::regnamespace ORDER BY 1"
        ).fetchall()
    assert granted == [("history_erased", False), ("history_purged", False), ("history_sealed", False)]
