"""`memplane jobs` and `memplane gc`, on the database of a server that runs."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from integration.commands import Served, run, serving

OLD = "2020-01-01T00:00:00.000000+00:00"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("jobs")
    with serving(folder, "--storage", "sqlite", "--port", "0") as server:
        for word in ("piano", "boat"):
            server.run("remember", f"The user owns a {word}.", "--user", "u1", "--category", "tasks")
        with closing(sqlite3.connect(server.data / "memplane.db")) as connection:
            connection.execute("UPDATE memories SET expires_at = ? WHERE content LIKE '%piano%'", (OLD,))
            connection.commit()
        yield server


def jobs(served: Served, *arguments: str) -> dict[str, object]:
    done = run(*arguments, "--storage", "sqlite", "--json", environment={"MEMPLANE_DATA": str(served.data)})
    assert done.code == 0, done.err
    return dict(json.loads(done.out))


def test_a_job_is_tried_done_and_listed(served: Served) -> None:
    (tried,) = jobs(served, "jobs", "run", "expiry", "--dry-run")["items"]  # type: ignore[misc]  # a list
    assert (tried["outcome"], tried["counts"]) == ("dry_run", {"deleted": 1})
    assert jobs(served, "jobs", "list")["items"] == []
    done = jobs(served, "jobs", "run", "all", "--every-tenant")["items"]
    told = {each["name"]: each for each in done}  # type: ignore[attr-defined]  # as above
    assert told["expiry"]["counts"] == {"deleted": 1}
    assert {each["outcome"] for each in told.values()} == {"done"}
    again = jobs(served, "jobs", "run", "decay")["items"]
    assert [each["outcome"] for each in again] == ["unchanged"]  # type: ignore[attr-defined]  # as above
    assert len(jobs(served, "jobs", "list")["items"]) == len(told)  # type: ignore[arg-type]  # as above
    assert jobs(served, "gc")["counts"]["active"] == 1  # type: ignore[index]  # a mapping


def test_what_cannot_be_done_is_said(served: Served) -> None:
    environment = {"MEMPLANE_DATA": str(served.data), "MEMPLANE_STORAGE": "sqlite"}
    unknown = run("jobs", "run", "sleep", environment=environment)
    assert (unknown.code, "no job 'sleep'" in unknown.err) == (2, True)
    absent = run("jobs", "run", "ttl", "--tenant", "acme", environment=environment)
    assert (absent.code, "no tenant 'acme'" in absent.err) == (1, True)
    assert "decay" in run("jobs", "run", "all", environment=environment).out
