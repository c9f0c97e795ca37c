"""Connections that the server ends while something is looked up on them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg
import pytest

from memplane.adapters.postgres.storage import PostgresStorage
from memplane.application.keys.api_keys import NewKey
from memplane.domain.errors import StorageError, StorageUnavailable
from memplane.domain.policy.policy import Trust
from support.cluster import Database
from support.serving import PATIENCE, RunningApplication
from support.working import until

TENANT = "acme"
LOOKUPS: dict[str, tuple[str, Callable[[PostgresStorage, str], Coroutine[Any, Any, object]]]] = {
    "a key": ("api_keys", lambda storage, key_id: storage.find_key(key_id)),
    "a tenant": ("tenants", lambda storage, _: storage.has_tenant(TENANT)),
    "all tenants": ("tenants", lambda storage, _: storage.tenants()),
}


class Lookup:
    """Looks something up on connections that end while it waits."""

    def __init__(self, app: RunningApplication, kind: str) -> None:
        stored, _ = app.run(app.wired.keys.create(TENANT, NewKey("supervisor", Trust.FULL)))
        self._app = app
        self._key_id = stored.key_id
        self._table, self._look = LOOKUPS[kind]

    def ending(self, times: int) -> object:
        """Look it up while that many connections end, one after the other."""
        assert isinstance(self._app.wired.storage, PostgresStorage)
        with (
            psycopg.connect(self._app.database.admin_url, autocommit=True) as admin,
            psycopg.connect(self._app.database.admin_url) as holder,
        ):
            holder.execute(f"LOCK TABLE {self._table} IN ACCESS EXCLUSIVE MODE")
            found = self._app.start(self._look(self._app.wired.storage, self._key_id))
            for _ in range(times):
                until(lambda: bool(self._waiting(admin)), "it waits")
                admin.execute("SELECT pg_terminate_backend(%s, 10000)", [self._waiting(admin)[0]])
            holder.rollback()
            return found.result(PATIENCE)

    def _waiting(self, admin: psycopg.Connection) -> list[int]:
        mine = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        waiting = f"SELECT pid FROM pg_locks WHERE relation = %s::regclass AND {mine} AND NOT granted"
        return [pid for (pid,) in admin.execute(waiting, [self._table]).fetchall()]


@pytest.fixture(params=LOOKUPS)
def lookup(application: RunningApplication, request: pytest.FixtureRequest) -> Lookup:
    return Lookup(application, request.param)


def test_what_it_was_about_is_looked_up_anew(lookup: Lookup) -> None:
    assert lookup.ending(2) == lookup.ending(0) not in (None, False, [])


def test_a_server_that_ends_each_is_told_of(lookup: Lookup) -> None:
    with pytest.raises(StorageUnavailable, match="does not answer"):
        lookup.ending(5)
    assert lookup.ending(0)


def test_a_name_that_cannot_be_sent_leaves_the_connection_whole(database: Database) -> None:
    async def work() -> None:
        storage = PostgresStorage(database.url, pool_size=2)
        await storage.open()
        try:
            for _ in range(4):
                with pytest.raises(StorageError):
                    await storage.find_key("a\0b")
            for _ in range(4):
                await storage.ready()
                assert await storage.find_key("unknown") is None
        finally:
            await storage.close()

    asyncio.run(work())
