"""The log of accesses, when the server ends."""

import time

import psycopg

from support.callers import Tenant
from support.cluster import Database
from support.serving import PATIENCE, running_server

WAITS = "SELECT count(*) FROM pg_locks WHERE relation = 'events'::regclass AND NOT granted"


def until_one_waits(connection: psycopg.Connection) -> None:
    deadline = time.monotonic() + PATIENCE
    while connection.execute(WAITS).fetchone() == (0,):
        assert time.monotonic() < deadline, "nobody writes"
        time.sleep(0.01)


def test_what_is_being_written_when_the_server_ends_is_not_lost(database: Database) -> None:
    with (
        psycopg.connect(database.admin_url) as admin,
        psycopg.connect(database.admin_url, autocommit=True) as watcher,
        running_server(database) as server,
    ):
        tenant = Tenant(server)
        caller = tenant.caller()
        memory = caller.remember("The hall is booked.")
        admin.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
        assert caller.found("hall") == [memory]
        until_one_waits(watcher)
        ending = server.start(server.wired._accesses.stop())
        caller.get("/healthz")  # the loop of the server went round: the end has begun
        assert not ending.done()
        admin.rollback()
        ending.result(PATIENCE)
        counted = tenant.rows("SELECT access_count FROM memories WHERE id = %(id)s", id=memory)
        assert counted == [{"access_count": 1}]


def test_what_waits_to_be_written_is_written_at_the_end(database: Database) -> None:
    with running_server(database) as server:
        tenant = Tenant(server)
        memory = tenant.caller().remember("The hall is booked.")
        assert tenant.caller().found("hall") == [memory]
        server.run(server.wired._accesses.stop())
        counted = tenant.rows("SELECT access_count FROM memories WHERE id = %(id)s", id=memory)
        assert counted == [{"access_count": 1}]
