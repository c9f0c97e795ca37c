"""kill -9 in the middle of an erasure: it goes on behind the last batch, with one receipt, and touches nobody else."""

import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from support.callers import Json
from support.process import ServeProcess
from support.working import until

ERASED, OTHER = "ana", "ben"
TURNS, EACH = 3_000, 500
KILLED_AFTER = (1, 2, 4)
"""Batches: each is noted in the ledger before it is committed."""
pytestmark = pytest.mark.slow


class Server:
    """A server on a data folder that is killed and started again."""

    def __init__(self, folder: Path, storage: str) -> None:
        self._folder, self._storage = folder, storage
        self.start()

    def start(self) -> None:
        """Start it."""
        self.process = ServeProcess(self._folder, "--storage", self._storage)

    def post(self, path: str, body: Json, agent: str | None = None) -> httpx2.Response:
        """Its response, whatever that is."""
        key = self.process.admin if agent is None else self.process.keys[agent]
        headers = {"Authorization": f"Bearer {key}"}
        with httpx2.Client(base_url=self.process.url, headers=headers, trust_env=False, timeout=60) as client:
            return client.post(path, json=body)

    def ask(self, path: str, body: Json, agent: str | None = None) -> Json:
        """What it answers to an administrator, or to an agent."""
        response = self.post(path, body, agent)
        assert response.is_success, response.text
        return dict(response.json())

    def noted(self) -> int:
        """How often the ledger tells of the erasure."""
        ledger = self._folder / "erasures.jsonl"
        return ledger.read_text().count('"erasure"') if ledger.exists() else 0

    def there(self, user: str) -> Json:
        """Of what there is how much of a user."""
        return dict(self.ask(f"/v1/users/{user}/erase", {"confirm": user, "dry_run": True})["erased"])


@pytest.fixture(params=["postgres", "sqlite"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    base = Path(tempfile.mkdtemp(prefix="memplane-erasure-"))
    base.chmod(0o711)  # run by root, PostgreSQL is another user, who has to pass through
    made = Server(base / "data", request.param)
    yield made
    made.process.kill()
    shutil.rmtree(base)


def test_it_goes_on_behind_the_last_batch(server: Server) -> None:
    for user, count in ((ERASED, TURNS), (OTHER, EACH)):
        for start in range(0, count, EACH):
            turns = [
                {"user_id": user, "thread_id": "t", "role": "user", "text": f"Remark {number} of {user}."}
                for number in range(start, start + EACH)
            ]
            server.ask("/v1/turns:batch", {"turns": turns}, "supervisor")
    before = {user: server.there(user) for user in (ERASED, OTHER)}
    assert before[ERASED]["turns"] == TURNS
    killed = 0
    for batches in KILLED_AFTER:
        if server.noted() >= batches:
            continue
        asking = threading.Thread(target=_asks, args=(server,))
        asking.start()
        until(lambda least=batches: server.noted() >= least, "so many batches are noted")  # type: ignore[misc]  # a lambda with a default
        server.process.kill()
        asking.join()
        server.start()
        killed += 1
        assert server.there(OTHER) == before[OTHER]
    assert killed > 0
    left = server.there(ERASED)["turns"]
    assert left % EACH == 0  # whole batches
    receipt = _erase(server)
    while not receipt["finished"]:
        receipt = _erase(server)
    assert receipt["erased"]["turns"] == TURNS
    assert server.there(ERASED).get("turns", 0) == 0
    assert server.there(OTHER) == before[OTHER]
    assert _erase(server)["receipt"] == receipt["receipt"]


def _erase(server: Server) -> Json:
    return server.ask(*_ERASE)


def _asks(server: Server) -> None:
    with suppress(httpx2.HTTPError):  # it may still tell that its database is gone, before it is killed itself
        server.post(*_ERASE)


_ERASE = (f"/v1/users/{ERASED}/erase", {"confirm": ERASED})
