"""kill -9 of the server and of PostgreSQL under load: nothing that was acknowledged is lost, no revision comes twice.

Gaps alone would not show a loss: a database that forgets its last writes gives their revisions out again. So what
clients were told is compared with what is there. The last test shows that the comparison can fail.
"""

import os
import random
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psycopg
import pytest

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.adapters.postgres.provisioning import DATABASE
from support.process import ServeProcess
from support.writers import USER, Acknowledgements, Stored, Writer, gaps, stored, told_twice, untrue

ROUNDS = int(os.environ.get("CRASH_ROUNDS", "3"))
WRITERS = 8
# Acknowledgements before the kill: enough that all writers are at work, and never the same number.
LOAD = range(60, 160)
SAMPLE = 40
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="finds PostgreSQL's processes through /proc"),
]


class Crashes:
    """A data folder whose server is started, loaded and killed again and again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._told = Acknowledgements()
        self._writers = [Writer(number, self._told) for number in range(WRITERS)]
        self.server = ServeProcess(folder)

    def load_and_kill(self) -> None:
        """Let all writers write, and kill everything at some moment."""
        stop = threading.Event()
        credential = self.server.keys["supervisor"]
        threads = [
            threading.Thread(target=each.run, args=(self.server.url, credential, stop)) for each in self._writers
        ]
        for thread in threads:
            thread.start()
        try:
            self._told.wait_for(random.choice(LOAD))  # noqa: S311 - any moment will do
            self.server.kill()
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def restart(self) -> None:
        """Start the server that was killed."""
        self.server = ServeProcess(self._folder)

    def found(self) -> Stored:
        """What the database holds now."""
        with EmbeddedPostgres.start(self._folder) as attached:
            assert not attached.is_owner
            return stored(attached.url(user="postgres", database=DATABASE))

    def faults(self) -> list[str]:
        """What is wrong with what clients were told, since the very first."""
        found = self.found()
        return untrue(self._told.told, found) + told_twice(self._told.told) + gaps(found)

    def unanswered(self) -> list[str]:
        """Acknowledged memories and revisions that the server does not give, of the last."""
        headers = {"Authorization": f"Bearer {self.server.keys['supervisor']}"}
        faults = []
        with httpx2.Client(base_url=self.server.url, headers=headers, trust_env=False, verify=False) as client:
            for write in self._told.told[-SAMPLE:]:
                if write.kind == "memory":
                    answer = client.get(f"/v1/memories/{write.id}")
                    held = answer.status_code == 200 and answer.json()["content"] == write.text
                else:
                    answer = client.get(f"/v1/threads/{write.thread}/delta", params={"user_id": USER})
                    held = answer.status_code == 200 and answer.json()["rev"] >= (write.rev or 0)
                if not held:
                    faults.append(f"{write}: {answer.text}")
        return faults


@pytest.fixture
def crashes() -> Iterator[Crashes]:
    base = Path(tempfile.mkdtemp(prefix="memplane-crash-"))
    base.chmod(0o711)  # run by root, PostgreSQL is another user, who has to pass through
    made = Crashes(base / "data")
    yield made
    made.server.kill()
    shutil.rmtree(base)


def test_nothing_acknowledged_is_lost(crashes: Crashes) -> None:
    for number in range(ROUNDS):
        crashes.load_and_kill()
        crashes.restart()
        assert crashes.faults() == [], f"after kill {number + 1}"
        assert crashes.unanswered() == [], f"after kill {number + 1}"


@pytest.mark.breaks
def test_a_database_that_acknowledges_too_early_is_found_out(crashes: Crashes) -> None:
    """The control: commits that do not wait for the disk are lost, and the same comparison says so."""
    with (
        EmbeddedPostgres.start(crashes.server.folder) as attached,
        psycopg.connect(attached.admin_conninfo, autocommit=True) as admin,
    ):
        for setting in (
            "synchronous_commit = off",
            "wal_writer_delay = '10s'",  # and nothing else writes the log sooner
            "wal_writer_flush_after = '1GB'",
            "bgwriter_lru_maxpages = 0",
        ):
            admin.execute(f"ALTER SYSTEM SET {setting}")
        admin.execute("SELECT pg_reload_conf()")
    crashes.load_and_kill()
    crashes.restart()
    assert [fault for fault in crashes.faults() if fault.startswith("lost")]
    crashes.load_and_kill()  # what was lost is given out again, to other writes
    crashes.restart()
    assert [fault for fault in crashes.faults() if fault.startswith("told")]
