"""Another process holds the SQLite file: a request is answered within the documented five seconds, and then works."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest

from memplane.settings import Settings
from support.callers import Caller, Tenant, refused
from support.files import File
from support.serving import RunningServer
from support.telling import texts

DOCUMENTED = 5.0
SLACK = 2.0
"""What a busy machine adds to it."""


@pytest.fixture
def storage() -> str:
    return "sqlite"


@contextmanager
def locked(path: Path, how: str) -> Iterator[None]:
    """The file, held by another connection as by another process."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        for statement in how.split(";"):
            other.execute(statement)
        yield
        other.rollback()


def remember(caller: Caller, words: str) -> httpx2.Response:
    return caller.post("/v1/memories", {"user_id": "ana", "category": "event", "content": words})


def timed(call: Callable[[], httpx2.Response]) -> tuple[httpx2.Response, float]:
    begin = time.monotonic()
    return call(), time.monotonic() - begin


def test_writers_are_refused_in_time_and_readers_go_on(start_server: Callable[..., RunningServer]) -> None:
    server = start_server()
    assert Settings().pool_wait == DOCUMENTED
    caller = Tenant(server).caller("supervisor")
    assert remember(caller, "The user owns a boat.").status_code == 201
    assert isinstance(server.database, File)
    words = [f"The user rents boat number {number}." for number in range(4)]
    with locked(server.database.path, "BEGIN IMMEDIATE"), ThreadPoolExecutor(len(words)) as threads:
        running = [threads.submit(timed, lambda each=each: remember(caller, each)) for each in words]  # type: ignore[misc]  # a default of a lambda
        assert texts(caller) == {"The user owns a boat."}
        assert caller.get("/readyz").status_code == 200
        for answer, seconds in (each.result() for each in running):
            assert DOCUMENTED - 0.5 < seconds < DOCUMENTED + SLACK
            told = refused(answer, 503, "unavailable")["detail"]
            assert "another process" in told or "others write" in told
            assert answer.headers["Retry-After"].isdigit()
    assert [remember(caller, each).status_code for each in words] == [201] * 4  # the control


def test_the_wait_is_the_operator_s(start_server: Callable[..., RunningServer]) -> None:
    server = start_server(pool_wait=0.3)
    caller = Tenant(server).caller("supervisor")
    assert isinstance(server.database, File)
    with locked(server.database.path, "BEGIN IMMEDIATE"):
        answer, seconds = timed(lambda: remember(caller, "The user owns a boat."))
        refused(answer, 503, "unavailable")
        assert seconds < 0.3 + SLACK
    assert remember(caller, "The user owns a boat.").status_code == 201
