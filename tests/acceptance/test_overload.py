"""More than the server can do at once: it answers what it can, refuses the rest, and is whole afterwards."""

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from memplane.application.memories.service import NewMemory
from memplane.application.recall.recall import Question
from memplane.client import Memplane, Unavailable
from memplane.domain.memory.memory import MemoryText
from memplane.domain.policy.capabilities import Capability
from support.callers import USER, Caller, Tenant, refused
from support.cluster import Database
from support.serving import PATIENCE, RunningServer

Start = Callable[..., RunningServer]
CLIENTS, ROUNDS = 200, 2
pytestmark = pytest.mark.slow
MEMORY = {"user_id": USER, "category": "tasks"}


async def _at_once(server: RunningServer, caller: Caller) -> Counter[int]:
    """Every client asks and stores at the same moment, several times; how many answers of each status."""
    told: Counter[int] = Counter()

    async def one(number: int) -> None:
        async with Memplane(server.url, caller.credential or "", retries=0, timeout=PATIENCE) as memory:
            for turn in range(ROUNDS):
                try:
                    if number % 4:
                        await memory.query("hall")
                    else:
                        await memory.remember(f"Hall {number} has door {turn}.", user_id=USER, category="tasks")
                    told[200] += 1
                except Unavailable as failure:
                    told[failure.status or 0 if failure.retry_after else 0] += 1  # 0: not told when to come again

    await asyncio.gather(*(one(number) for number in range(CLIENTS)))
    return told


@pytest.mark.parametrize("share", [0, 2])
def test_two_hundred_clients_share_four_connections(start_server: Start, share: int) -> None:
    tenant = Tenant(start_server(pool_size=4, pool_wait=PATIENCE, rate_per_second=0, tenant_share=share))
    caller = tenant.caller()
    told = asyncio.run(_at_once(tenant.server, caller))
    assert told == {200: CLIENTS * ROUNDS}
    assert tenant.count("memories") == CLIENTS / 4 * ROUNDS


@pytest.mark.parametrize("share", [0, 2])
def test_who_waits_too_long_is_told_to_come_again(start_server: Start, share: int) -> None:
    """For a connection, or for a turn before that."""
    tenant = Tenant(start_server(pool_size=2, pool_wait=0.05, rate_per_second=0, tenant_share=share))
    caller = tenant.caller()
    told = asyncio.run(_at_once(tenant.server, caller))
    assert set(told) == {200, 503}
    assert sum(told.values()) == CLIENTS * ROUNDS
    for _ in range(20):  # the pool is whole: as many as there are connections find one at once
        with ThreadPoolExecutor(2) as pool:
            assert [r.status_code for r in pool.map(lambda _: caller.query("hall"), range(2))] == [200, 200]


def raw(server: RunningServer, path: str, body: bytes, caller: Caller, said: int) -> socket.socket:
    """A request on a connection of its own, of whose body so many bytes are sent, and not waited for."""
    host, port = server.url.removeprefix("http://").split(":")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {caller.credential}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection = socket.create_connection((host, int(port)), 30)
    connection.sendall(head.encode() + body[:said])
    return connection


def test_clients_that_hang_up_leave_nothing_behind(start_server: Start) -> None:
    """Two thousand hang up while they are read to or written for, some before they have said all."""
    tenant = Tenant(start_server(pool_size=4, rate_per_second=0))
    caller, stranger = tenant.caller(), Caller(tenant.server.client)
    server = tenant.server

    def hang_up(number: int) -> None:
        body = (
            b'{"query": "hall"}'
            if number % 2
            else (b'{"user_id": "ana", "category": "tasks", "content": "Hall %d is booked."}' % number)
        )
        path = "/v1/memory/query" if number % 2 else "/v1/memories"
        raw(server, path, body, caller, said=len(body) if number % 5 else len(body) // 2).close()

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(hang_up, range(2_000)))
    refused(stranger.query("hall"), 401, "unauthenticated")
    assert asyncio.run(_at_once(server, caller)).keys() <= {200, 503}
    for _ in range(4):
        assert caller.query("hall").status_code == 200


@pytest.mark.needs(Capability.SEVERAL_TENANTS)
class TestTenantsInTurn:
    """One tenant whose requests go on forever, and another."""

    def test_one_whose_writes_wait_leaves_connections_to_another(self, start_server: Start) -> None:
        server = start_server(pool_size=4, pool_wait=20.0, tenant_share=2)
        loud, quiet = Tenant(server), Tenant(server)
        sender, other = loud.caller(), quiet.caller()
        users = [f"user {number}" for number in range(20)]  # writers of one user wait for each other anyway
        for user in users:
            sender.say("Where is the hall?", user_id=user)
        other.remember("The hall is booked.")
        with ThreadPoolExecutor(len(users)) as pool, _held(loud) as waiting:
            sent = [pool.submit(sender.say, "Where is the door?", user_id=user) for user in users]
            _until(lambda: waiting() >= 2)
            for number in range(4):
                other.remember(f"Hall {number} has a door.")
                assert other.query("hall").status_code == 200
            assert waiting() == 2  # the control: they still wait
            assert not any(each.done() for each in sent)
        assert [each.result()["seq"] for each in sent] == [2] * len(users)


@contextmanager
def _held(tenant: Tenant) -> Iterator[Callable[[], int]]:
    """Nobody can write to a tenant's threads; how many statements wait for that."""
    database = tenant.server.database
    assert isinstance(database, Database)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
    with (
        psycopg.connect(database.admin_url) as holding,
        psycopg.connect(database.admin_url, autocommit=True) as looking,
    ):
        holding.execute("SELECT 1 FROM thread_revision WHERE tenant_id = %s FOR UPDATE", (tenant.name,))

        def count() -> int:
            row = looking.execute(waiting, (database.name,)).fetchone()
            assert row is not None
            return int(row[0])

        yield count
        holding.rollback()


def _until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.needs(Capability.ROW_LEVEL_SECURITY)
class TestCancelled:
    """Requests that are cancelled at any moment, by whoever runs the application."""

    def test_two_thousand_leave_no_tenant_and_take_no_connection(self, start_server: Start) -> None:
        server = start_server(pool_size=4, rate_per_second=0)
        tenant, other = Tenant(server), Tenant(server)
        caller = tenant.caller()
        for number in range(20):
            caller.remember(f"Hall {number} is booked.")
        wired = server.wired

        async def cancelled() -> int:
            principal = await wired.keys.authenticate(caller.credential)
            ended = 0
            for batch in range(40):
                tasks = [
                    asyncio.create_task(
                        wired.recall(principal, Question(text="hall"))
                        if number % 2
                        else wired.remember.create(principal, NewMemory(USER, "tasks", MemoryText("A hall is red.")))
                    )
                    for number in range(50)
                ]
                for number, task in enumerate(tasks):
                    await asyncio.sleep(0)
                    if (number + batch) % 3:
                        task.cancel()
                done = await asyncio.gather(*tasks, return_exceptions=True)
                ended += sum(isinstance(each, asyncio.CancelledError) for each in done)
            return ended

        assert server.run(cancelled()) > 500
        assert isinstance(server.database, Database)
        with psycopg.connect(server.database.admin_url) as connection:
            left = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND state LIKE 'idle in transaction%%'"
            assert connection.execute(left, (server.database.name,)).fetchone() == (0,)
        assert other.caller().found("hall") == []
        assert len(caller.found("hall", top_k=50)) in (20, 21)  # one may have been stored before it was cancelled


@pytest.mark.needs(Capability.SEVERAL_MACHINES)
class TestEndedConnections:
    """Connections that the database has ended, as when it was started again."""

    @staticmethod
    def end_all(server: RunningServer) -> int:
        """End every connection of the server, and wait until each is gone."""
        assert isinstance(server.database, Database)
        with psycopg.connect(server.database.admin_url, autocommit=True) as connection:
            ended = connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = %s"
                " AND pid <> pg_backend_pid()",
                (server.database.name,),
            ).fetchall()
        return len(ended)

    @pytest.mark.parametrize("kind", ["read", "write"])
    def test_nobody_is_given_one(self, start_server: Start, kind: str) -> None:
        tenant = Tenant(start_server(pool_size=4))
        caller = tenant.caller()
        for turn in range(5):
            with ThreadPoolExecutor(8) as pool:  # fill the pools
                list(pool.map(lambda n: caller.query(f"hall {n}"), range(16)))
            caller.remember(f"Hall {turn} is booked.")
            assert self.end_all(tenant.server) >= 2
            if kind == "write":
                assert caller.post("/v1/memories", MEMORY | {"content": f"Hall {turn} is red."}).status_code == 201
            told = [caller.query("hall") for _ in range(6)]
            assert [(r.status_code, r.text) for r in told if r.status_code != 200] == []
