"""What a person rejected stays gone through a kill, a restart and a rebuild of every index."""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.client import Conflict, MemplaneSync
from support.process import ServeProcess

BERLIN, PIANO = "Vera lives in Berlin.", "The user owns a piano."
TURN = "I love jazz."


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder through which PostgreSQL's own user may pass."""
    made = Path(tempfile.mkdtemp(prefix="memplane-test-"))
    made.chmod(0o711)
    yield made / "data"
    shutil.rmtree(made, ignore_errors=True)


def rebuilt(folder: Path, storage: str) -> None:
    """Rebuild every index, as an operator does after a suspicion."""
    if storage == "sqlite":
        with closing(sqlite3.connect(folder / "memplane.db", isolation_level=None)) as connection:
            connection.execute("REINDEX")
            connection.execute("VACUUM")
        return
    with EmbeddedPostgres.start(folder) as server:
        url = server.conninfo(user="postgres", database="memplane")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("REINDEX DATABASE memplane")
            connection.execute("VACUUM FULL memories")


def found(memory: MemplaneSync) -> str:
    answer = memory.query("Where does Vera live, what does the user own and love?", filters={"user_id": "u"}, top_k=50)
    return " ".join(item.text for item in answer.items if item.category != "activity")


@pytest.mark.parametrize("storage", ["sqlite", "postgres"])
def test_it_does_not_come_back(folder: Path, storage: str) -> None:
    server = ServeProcess(folder, "--storage", storage)
    try:
        with MemplaneSync(server.url, server.keys["supervisor"]) as memory:
            memory.remember(PIANO, user_id="u", category="event")
            lives = memory.remember(BERLIN, user_id="u", category="event").id
            (loves,) = memory.turn(TURN, user_id="u", thread_id="t", role="user").extracted
            assert loves.id is not None
            assert "Berlin" in found(memory)
            assert "jazz" in found(memory)
            memory.say(lives, "reject", reason="never lived there")
            memory.say(loves.id, "reject")
    finally:
        server.kill()
    rebuilt(folder, storage)
    server = ServeProcess(folder, "--storage", storage)
    try:
        with MemplaneSync(server.url, server.keys["supervisor"]) as memory:
            for words in (BERLIN, "VERA lives, in B\u0435rlin", "Vera is living in Berlin."):
                with pytest.raises(Conflict) as refused:
                    memory.remember(words, user_id="u", category="event")
                assert refused.value.code == "value_rejected"
            drawn = memory.turn(TURN, user_id="u", thread_id="t", role="user").extracted
            assert [each.action for each in drawn] == ["refused"]
            told = found(memory)
            assert "Berlin" not in told
            assert "jazz" not in told
            assert PIANO in told
    finally:
        assert server.stop() == 0
