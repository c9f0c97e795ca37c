"""A database that stands still and closes no connection: requests end in time, and nothing acknowledged is lost."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import httpx2
import pytest

from integration.commands import reachable_folder
from support.process import ServeProcess, children, postgres_pids
from support.working import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds PostgreSQL's processes through /proc")
EXCHANGE = 1.5
"""Seconds that PostgreSQL has to answer in these tests."""
ENOUGH = EXCHANGE + 5.0 + 2.0
"""A request waits for its turn or a connection, then for one exchange; the rest is the machine's."""
AT_ONCE = 12


@pytest.fixture(scope="module")
def process() -> Iterator[ServeProcess]:
    """A server of its own."""
    with reachable_folder() as folder:
        server = ServeProcess(
            folder / "data",
            environment={"MEMPLANE_EXCHANGE_TIMEOUT": str(EXCHANGE), "MEMPLANE_POOL_SIZE": "4"},
        )
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def client(process: ServeProcess) -> Iterator[httpx2.Client]:
    with process.client() as made:
        yield made


@contextmanager
def frozen(pids: Callable[[], list[int]]) -> Iterator[None]:
    """Processes that stand still meanwhile, those that come while they are looked for too."""
    stopped: set[int] = set()
    while new := set(pids()) - stopped:
        for pid in new:
            os.kill(pid, signal.SIGSTOP)
        stopped |= new
    try:
        yield
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def remember(client: httpx2.Client, words: str) -> httpx2.Response:
    body = {"user_id": "ana", "category": "event", "content": words}
    return client.post("/v1/memories", json=body, headers={"Idempotency-Key": words})


def timed(call: Callable[[], httpx2.Response]) -> tuple[httpx2.Response, float]:
    begin = time.monotonic()
    return call(), time.monotonic() - begin


def ask(client: httpx2.Client) -> httpx2.Response:
    return client.post("/v1/memory/query", json={"query": "boat", "filters": {"user_id": "ana"}})


def stored(client: httpx2.Client) -> set[str]:
    listed = client.get("/v1/memories", params={"user_id": "ana", "limit": 100})
    assert listed.status_code == 200, listed.text
    return {each["content"] for each in listed.json()["items"]}


def test_a_frozen_server_is_answered_for_in_time_and_thaws(process: ServeProcess, client: httpx2.Client) -> None:
    acknowledged = {f"Ana owns boat number {number}." for number in range(3)}
    assert {remember(client, words).status_code for words in acknowledged} == {201}
    calls = [
        *[lambda: ask(client)] * AT_ONCE,
        *[lambda n=n: remember(client, f"Ana rents boat number {n}.") for n in range(AT_ONCE)],  # type: ignore[misc]  # a default of a lambda
    ]
    with frozen(lambda: postgres_pids(process.folder)), ThreadPoolExecutor(len(calls) + 1) as threads:
        assert client.get("/healthz").status_code == 200
        running = [threads.submit(timed, call) for call in calls]
        ready, seconds = timed(lambda: client.get("/readyz"))
        assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
        assert seconds < 3
        for answer, seconds in (each.result() for each in running):
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable"), answer.text
            assert answer.headers["Retry-After"].isdigit()
            assert seconds < ENOUGH
        again, seconds = timed(lambda: ask(client))  # with every connection given up
        assert (again.status_code, again.json()["code"]) == (503, "unavailable")
        assert seconds < ENOUGH
    until(lambda: client.get("/readyz").status_code == 200, "it is ready again")
    until(lambda: ask(client).status_code == 200, "it answers again")
    repeated = [remember(client, f"Ana rents boat number {n}.") for n in range(AT_ONCE)]
    assert {each.status_code for each in repeated} <= {200, 201}, [each.text for each in repeated]
    acknowledged |= {f"Ana rents boat number {n}." for n in range(AT_ONCE)}
    assert acknowledged <= stored(client)
    assert len(stored(client)) == len(acknowledged)  # what was refused and sent again is there once


def test_a_frozen_postmaster_alone_leaves_those_who_are_connected(process: ServeProcess, client: httpx2.Client) -> None:
    assert ask(client).status_code == 200
    with frozen(lambda: postgres_pids(process.folder)[:1]):
        assert client.get("/readyz").status_code == 200
        assert remember(client, "Ana sold a boat.").status_code == 201
    assert "Ana sold a boat." in stored(client)


def test_frozen_backends_give_their_place_to_others(process: ServeProcess, client: httpx2.Client) -> None:
    """The postmaster makes new connections in the place of those that were given up."""
    assert remember(client, "Ana paints a boat.").status_code in {200, 201}
    with frozen(lambda: children(postgres_pids(process.folder)[0])[-8:]):
        _, seconds = timed(lambda: ask(client))
        assert seconds < ENOUGH
        until(lambda: ask(client).status_code == 200, "others answer")
    assert "Ana paints a boat." in stored(client)
