"""A change of the embedding model while eight clients read and write, its worker killed with SIGKILL in the middle."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row

from memplane.application.jobs.reembed_job import BATCH
from support.callers import USER, Caller, Tenant
from support.cluster import Database
from support.serving import RunningServer, running_server
from support.working import until, worker

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="kills processes by signals")]
NEXT = {"MEMPLANE_NEXT_EMBEDDING_MODEL": "wordllama-128"}
COPIES = 8 * BATCH
CLIENTS = 8
PATIENCE = 300.0
SAID = ("Vance repaired the harpsichord", "Anna sold her old bicycle", "rain in the garden", "soup with the dog")
QUESTIONS = (*SAID, "Who fixed the instrument?", "a meal", "weather outside")


@pytest.fixture
def server(database: Database) -> Iterator[RunningServer]:
    with running_server(database, next_embedding_model="wordllama-128") as started:
        yield started


class Client(threading.Thread):
    """Asks, writes, and asks for what it wrote, until told to stop."""

    def __init__(self, caller: Caller, number: int, stop: threading.Event) -> None:
        super().__init__()
        self._caller, self._stop_it, self._user = caller, stop, f"client-{number}"
        self.answers: list[tuple[str, frozenset[str]]] = []
        self.failures: list[str] = []
        self.written = 0

    def run(self) -> None:
        turn = 0
        while not self._stop_it.is_set():
            question = QUESTIONS[turn % len(QUESTIONS)]
            turn += 1
            try:
                self.answers.append((question, found(self._caller, question)))
                text = f"note {turn} of {self._user}"
                new = self._caller.remember(text, "event", user_id=self._user)
                asked = self._caller.found(text, ranking="semantic", top_k=50, filters={"user_id": self._user})
                if new not in asked:
                    self.failures.append(f"{text} was not found")
                self.written += 1
            except AssertionError as error:
                self.failures.append(str(error)[:300])


def found(caller: Caller, question: str) -> frozenset[str]:
    return frozenset(caller.found(question, ranking="semantic", top_k=len(SAID), filters={"user_id": USER}))


def test_a_change_under_load_whose_worker_is_killed(server: RunningServer, database: Database, tmp_path: Path) -> None:
    tenant = Tenant(server)
    caller = tenant.caller()
    first, *_ = [caller.remember(f"{text}, as a note", "event") for text in SAID]
    with psycopg.connect(database.admin_url, autocommit=True, row_factory=dict_row) as admin:
        admin.execute(
            "INSERT INTO memories SELECT (jsonb_populate_record(m, jsonb_build_object('id', uuidv7(), 'value_hash',"
            " md5(n::text), 'user_id', 'other'))).* FROM memories m, generate_series(1, %(copies)s) n"
            " WHERE m.id = %(id)s",
            {"copies": COPIES, "id": UUID(first)},
        )

        def recorded(name: str) -> dict[str, Any]:
            asked = "SELECT value FROM metadata WHERE tenant_id = %(tenant)s AND name = %(name)s"
            (row,) = tenant.rows(asked, name=name)
            return dict(row["value"])

        def progress() -> int:
            (row,) = tenant.rows(
                "SELECT value FROM metadata WHERE tenant_id = %(tenant)s AND name = 'embedding_progress'"
            )
            return int(row["value"]["done"])

        def phase() -> str:
            return str(recorded("embedding").get("change", {}).get("phase"))

        before = {question: found(caller, question) for question in QUESTIONS}
        stop = threading.Event()
        clients = [Client(caller, number, stop) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            server.run(server.wired.reembedding.start(tenant.name))
            with worker(database, tmp_path / "first.log", **NEXT) as one:
                until(lambda: progress() >= BATCH, "the first batches are done", PATIENCE)
                one.kill()
            assert phase() == "filling", "it was killed in the middle"
            with worker(database, tmp_path / "second.log", **NEXT):
                until(lambda: phase() == "None", "the change is through", PATIENCE)
        finally:
            stop.set()
            for client in clients:
                client.join()
        after = {question: found(caller, question) for question in QUESTIONS}
    assert [failure for client in clients for failure in client.failures] == []
    answers = [each for client in clients for each in client.answers]
    assert len(answers) > CLIENTS
    assert all(ids in (before[question], after[question]) for question, ids in answers), "each by one model, whole"
    assert all(client.written for client in clients)
    (left,) = tenant.rows(
        "SELECT count(*) AS rows, count(embedding) AS old, count(embedding_2) AS new FROM memories"
        " WHERE tenant_id = %(tenant)s"
    )
    assert (left["old"], left["new"]) == (0, left["rows"])
    assert left["rows"] > COPIES
