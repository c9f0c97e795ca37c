"""kill -9 in the middle of a revert: the same request ends it, each user is reverted whole, and the receipts add up."""

import json
import shutil
import sqlite3
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.adapters.postgres.provisioning import DATABASE
from support.callers import Json
from support.process import ServeProcess
from support.working import until

USERS = [f"user-{number:02}" for number in range(40)]
KILLED_AFTER = (2, 12)
"""Users that are reverted by then."""
HOME, MOVED, PIANO = "Vera lives in Berlin.", "Vera lives in Munich.", "The user owns a piano."
HONEST, HOSTILE = {HOME}, {MOVED, PIANO}
RECEIPTS = "SELECT meta FROM history WHERE event = 'REVERT' AND of_user IS NULL"
pytestmark = pytest.mark.slow


class Server:
    """A server on a data folder, of one honest key and one that was stolen, that is killed and started again."""

    def __init__(self, folder: Path, storage: str) -> None:
        self._folder, self._storage = folder, storage
        self.start()
        made = self.ask("POST", "/v1/admin/keys", {"agent": "supervisor", "scopes": ["memory:read", "memory:write"]})
        self.body = {"key_id": made["id"], "since": "2020-01-01T00:00:00Z"}
        self._stolen = str(made["key"])

    def start(self) -> None:
        """Start it."""
        self.process = ServeProcess(self._folder, "--storage", self._storage)

    def send(self, method: str, path: str, body: Json | None = None, key: str | None = None) -> httpx2.Response:
        """Its response, to the administrator unless another key is named."""
        headers = {"Authorization": f"Bearer {key or self.process.admin}"}
        with httpx2.Client(base_url=self.process.url, headers=headers, trust_env=False, timeout=60) as client:
            return client.request(method, path, json=body)

    def ask(self, method: str, path: str, body: Json | None = None, key: str | None = None) -> Json:
        """What it answers."""
        response = self.send(method, path, body, key)
        assert response.is_success, response.text
        return dict(response.json())

    def fill(self) -> None:
        """What is so for each user, and what the stolen key made of it."""
        for user in USERS:
            for content, key in (
                (HOME, self.process.keys["supervisor"]), (MOVED, self._stolen), (PIANO, self._stolen),
            ):  # fmt: skip
                self.ask("POST", "/v1/memories", {"user_id": user, "category": "event", "content": content}, key)

    def texts(self, user: str) -> set[str]:
        """What holds of a user."""
        found = self.ask("GET", f"/v1/memories?user_id={user}", key=self.process.keys["supervisor"])
        return {each["content"] for each in found["items"]}

    def revert(self, **more: object) -> Json:
        """One request to revert."""
        return self.ask("POST", "/v1/admin/revert", self.body | more)

    def receipts(self) -> Counter[str]:
        """What all receipts in the history count together."""
        if self._storage == "sqlite":
            with closing(sqlite3.connect(self._folder / "memplane.db")) as file:
                found: list[Any] = [row[0] for row in file.execute(RECEIPTS)]
        else:
            with (
                EmbeddedPostgres.start(self._folder) as attached,
                psycopg.connect(attached.url(user="postgres", database=DATABASE)) as connection,
            ):
                found = [row[0] for row in connection.execute(RECEIPTS)]
        return sum((Counter(_read(meta)["counts"]) for meta in found), Counter())


@pytest.fixture(params=["postgres", "sqlite"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    base = Path(tempfile.mkdtemp(prefix="memplane-revert-"))
    base.chmod(0o711)  # run by root, PostgreSQL is another user, who has to pass through
    made = Server(base / "data", request.param)
    yield made
    made.process.kill()
    shutil.rmtree(base)


def test_the_same_request_ends_what_was_interrupted(server: Server) -> None:
    server.fill()
    assert [server.texts(user) for user in USERS] == [HOSTILE] * len(USERS)
    killed = 0
    for users in KILLED_AFTER:
        if server.texts(USERS[users]) == HONEST:
            continue
        asking = threading.Thread(target=_asks, args=(server,))
        asking.start()
        until(lambda last=users: server.texts(USERS[last]) == HONEST, "so many users are reverted", 60.0)  # type: ignore[misc]  # a lambda with a default
        server.process.kill()
        asking.join()
        server.start()
        killed += 1
        found = [server.texts(user) for user in USERS]
        done = found.count(HONEST)
        assert found == [HONEST] * done + [HOSTILE] * (len(USERS) - done)  # each of them whole
        assert server.receipts() == _of(done)
    assert killed > 0
    assert done < len(USERS)  # the control: it was interrupted
    reverted: Counter[str] = Counter()
    finished = False
    while not finished:
        receipt = server.revert()
        reverted.update(receipt["reverted"])
        finished = receipt["finished"]
    assert reverted == _of(len(USERS) - done)
    assert [server.texts(user) for user in USERS] == [HONEST] * len(USERS)
    assert server.receipts() == _of(len(USERS))
    assert server.revert()["outcome"] == "nothing_to_revert"


def _of(users: int) -> Counter[str]:
    """What the reverts of so many users count."""
    return Counter(memories_removed=2 * users, memories_restored=users)


def _read(meta: Any) -> Json:  # noqa: ANN401 - as the driver has it
    return dict(json.loads(meta) if isinstance(meta, str) else meta)


def _asks(server: Server) -> None:
    """Ask until it is done, or the server is gone; while its database goes it may answer that it is not there."""
    with suppress(httpx2.HTTPError):
        while not server.send("POST", "/v1/admin/revert", server.body).json().get("finished"):
            pass
