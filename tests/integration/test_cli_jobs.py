"""`memplane jobs` and `memplane gc`, on the database of a server that runs."""

import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from integration.commands import Served, clean_environment, reachable_folder, run, serving
from support.process import COMMAND, PATIENCE
from support.working import until

OLD = "2020-01-01T00:00:00.000000+00:00"


IDLE = {"MEMPLANE_JOBS": "false"}
"""A server that leaves its jobs to others: else it does them itself once a minute has gone."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("jobs")
    with serving(folder, "--storage", "sqlite", "--port", "0", environment=IDLE) as server:
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


def listed(served: Served, *arguments: str) -> list[dict[str, object]]:
    found = jobs(served, "jobs", "list", *arguments)["items"]
    assert isinstance(found, list)
    return found


def test_a_job_is_tried_done_and_listed(served: Served) -> None:
    (tried,) = jobs(served, "jobs", "run", "expiry", "--dry-run")["items"]  # type: ignore[misc]  # a list
    assert (tried["outcome"], tried["counts"]) == ("dry_run", {"deleted": 1})
    whole, mine, others = (jobs(served, "gc", "--dry-run", *more) for more in ((), ("--user", "u1"), ("--user", "u2")))
    assert [(each["outcome"], each["deleted"]) for each in (whole, mine, others)] == [
        ("dry_run", 1), ("dry_run", 1), ("dry_run", 0),
    ]  # fmt: skip
    assert listed(served) == []
    done = jobs(served, "jobs", "run", "all", "--every-tenant")["items"]
    told = {each["name"]: each for each in done}  # type: ignore[attr-defined]  # as above
    assert told["expiry"]["counts"] == {"deleted": 1}
    assert {each["outcome"] for each in told.values()} == {"done"}
    again = jobs(served, "jobs", "run", "decay")["items"]
    assert [each["outcome"] for each in again] == ["unchanged"]  # type: ignore[attr-defined]  # as above
    assert len(listed(served)) == len(told)
    assert listed(served, "--state", "parked") == []
    collected = jobs(served, "gc")
    assert (collected["outcome"], collected["deleted"]) == ("collected", 0), "it was done today"
    assert collected["report"]["active"] == 1  # type: ignore[index]  # a mapping


def test_gc_collects(tmp_path: Path) -> None:
    with serving(tmp_path, "--storage", "sqlite", "--port", "0", environment=IDLE) as served:
        for word, user in (("piano", "u1"), ("horse", "u1"), ("kite", "u2")):
            served.run("remember", f"The user owns a {word}.", "--user", user, "--category", "tasks")
        with closing(sqlite3.connect(served.data / "memplane.db")) as connection:
            connection.execute("UPDATE memories SET expires_at = ? WHERE content NOT LIKE '%horse%'", (OLD,))
            connection.commit()
        assert jobs(served, "gc", "--user", "u1")["deleted"] == 1
        whole = jobs(served, "gc")
        assert (whole["outcome"], whole["deleted"]) == ("collected", 1)
        assert whole["report"]["deleted"] == 2  # type: ignore[index]  # a mapping


def park(data: Path, name: str) -> None:
    with closing(sqlite3.connect(data / "memplane.db")) as connection:
        connection.execute("UPDATE job_runs SET state = 'parked', error = 'broken' WHERE name = ?", (name,))
        connection.commit()


def test_a_server_of_one_person_does_what_waits(tmp_path: Path) -> None:
    with serving(tmp_path, "--storage", "sqlite", "--port", "0") as served:
        _does_what_waits(served)


def _does_what_waits(served: Served) -> None:
    jobs(served, "jobs", "run", "ttl")
    job = next(str(each["id"]) for each in listed(served) if each["name"] == "ttl")
    park(served.data, "ttl")
    environment = {"MEMPLANE_DATA": str(served.data), "MEMPLANE_STORAGE": "sqlite"}
    assert "broken" in run("jobs", "list", environment=environment).out
    assert jobs(served, "jobs", "retry", job)["state"] == "waiting"
    until(lambda: job in {each["id"] for each in listed(served, "--state", "done")}, "the server does it")
    refused = run("jobs", "cancel", job, environment=environment)
    assert (refused.code, "cannot be cancelled" in refused.err) == (1, True)


def test_an_embedded_server_does_what_is_asked_of_it() -> None:
    with reachable_folder() as folder, serving(folder, "--port", "0") as server:
        key = json.loads((server.data / "keys.json").read_text())["admin"]
        headers = {"Authorization": f"Bearer {key}"}
        with httpx2.Client(base_url=server.url, headers=headers, trust_env=False, verify=False) as client:
            asked = client.post("/v1/admin/jobs", json={"name": "gc"})
            assert asked.status_code == 202, asked.text

            def done() -> bool:
                (found,) = client.get("/v1/admin/jobs").json()["items"]
                assert found["id"] == asked.json()["id"]
                return bool(found["state"] == "done")

            until(done, "the server does it")
        looked = server.run("doctor", "--json")
        assert "sees the queue and nothing else" in looked.out, looked.out


def test_a_worker_does_what_waits(tmp_path: Path) -> None:
    environment = {"MEMPLANE_DATA": str(tmp_path), "MEMPLANE_STORAGE": "sqlite"}

    def said(*arguments: str) -> dict[str, Any]:
        done = run(*arguments, "--json", environment=environment)
        assert done.code == 0, done.err
        return dict(json.loads(done.out))

    said("init")
    said("jobs", "run", "ttl")
    ((job,),) = ([each["id"] for each in said("jobs", "list")["items"]],)
    park(tmp_path, "ttl")
    for verb, state in (("retry", "waiting"), ("cancel", "cancelled"), ("retry", "waiting")):
        assert said("jobs", verb, job)["state"] == state
    command = [*COMMAND, "worker"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean_environment(environment)) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        until(lambda: said("jobs", "list", "--state", "done")["items"] != [], "it is done")
        worker.terminate()
        assert worker.wait(PATIENCE) == 0


def test_what_cannot_be_done_is_said(served: Served) -> None:
    environment = {"MEMPLANE_DATA": str(served.data), "MEMPLANE_STORAGE": "sqlite"}
    unknown = run("jobs", "run", "sleep", environment=environment)
    assert (unknown.code, "no job 'sleep'" in unknown.err) == (2, True)
    absent = run("jobs", "run", "ttl", "--tenant", "acme", environment=environment)
    assert (absent.code, "no tenant 'acme'" in absent.err) == (1, True)
    assert "decay" in run("jobs", "run", "all", environment=environment).out
