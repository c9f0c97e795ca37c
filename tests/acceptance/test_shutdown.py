"""The end of a server: what it has taken it answers, more it does not take, and it ends in time."""

import shutil
import socket
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2
import psycopg
import pytest

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.adapters.postgres.provisioning import DATABASE
from support.process import PATIENCE, ServeProcess

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="ends a server with SIGTERM")]
MEMORY = {"user_id": "ana", "category": "tasks"}
WITHIN = 20.0


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL's own user can reach."""
    base = Path(tempfile.mkdtemp(prefix="memplane-stop-"))
    base.chmod(0o711)
    yield base / "data"
    shutil.rmtree(base)


@contextmanager
def held_up_postgres(folder: Path) -> Iterator[Callable[[], bool]]:
    """Nobody can store a memory; tells whether somebody tries."""
    with EmbeddedPostgres.start(folder) as server:
        url = server.url(user="postgres", database=DATABASE)
        with psycopg.connect(url) as holder, psycopg.connect(url, autocommit=True) as watcher:
            holder.execute("LOCK TABLE memories IN EXCLUSIVE MODE")
            waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'memories'::regclass AND NOT granted"
            yield lambda: watcher.execute(waiting).fetchone() != (0,)
            holder.rollback()


@contextmanager
def held_up_sqlite(folder: Path) -> Iterator[Callable[[], bool]]:
    """Nobody can store a memory; tells whether somebody tries, as far as can be seen from outside."""
    holder = sqlite3.connect(folder / "memplane.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    begun = time.monotonic()
    yield lambda: time.monotonic() > begun + 1
    holder.rollback()
    holder.close()


HELD_UP = {"postgres": held_up_postgres, "sqlite": held_up_sqlite}


def takes_connections(url: str) -> bool:
    host, port = url.removeprefix("http://").split(":")
    with suppress(OSError), socket.create_connection((host, int(port)), 1):
        return True
    return False


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_was_taken_is_answered_and_no_more_is_taken(storage: str, folder: Path) -> None:
    server = ServeProcess(folder, "--storage", storage)
    headers = {"Authorization": f"Bearer {server.keys['planner']}"}
    answers: list[httpx2.Response] = []

    def store(number: int) -> None:
        body = MEMORY | {"content": f"Hall {number} is booked."}
        with httpx2.Client(base_url=server.url, timeout=PATIENCE, trust_env=False, verify=False) as client:
            answers.append(client.post("/v1/memories", json=body, headers=headers))

    try:
        writers = [threading.Thread(target=store, args=(number,)) for number in range(4)]
        with HELD_UP[storage](folder) as somebody_tries:
            for writer in writers:
                writer.start()
            until(somebody_tries)
            assert takes_connections(server.url)
            server.tell_to_stop()
            begun = time.monotonic()
            until(lambda: not takes_connections(server.url))
            assert server.runs()  # what it has taken is not done
        code = server.wait()
        assert code == 0
        assert time.monotonic() - begun < WITHIN
        for writer in writers:
            writer.join(PATIENCE)
        assert [answer.status_code for answer in answers] == [201] * 4
    finally:
        server.kill()
    again = ServeProcess(folder, "--storage", storage)
    try:
        asked = httpx2.get(f"{again.url}/v1/memories", headers=headers, trust_env=False, verify=False)
        kept = {item["id"] for item in asked.json()["items"]}
        assert kept == {answer.json()["id"] for answer in answers}
    finally:
        assert again.stop() == 0


def test_a_server_ends_in_time_whoever_holds_on(storage: str, folder: Path) -> None:
    """A client that keeps its connection open, and one that never finishes its request, hold nobody up."""
    server = ServeProcess(folder, "--storage", storage)
    host, port = server.url.removeprefix("http://").split(":")
    try:
        with socket.create_connection((host, int(port))) as idle, socket.create_connection((host, int(port))) as slow:
            idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
            assert b"200" in idle.recv(1_000)
            slow.sendall(
                b"POST /v1/memory/query HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nAuthorization: Bearer "
                + server.keys["planner"].encode()
                + b"\r\nContent-Length: 1000\r\n\r\n{"
            )
            begun = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - begun < WITHIN
    finally:
        server.kill()
