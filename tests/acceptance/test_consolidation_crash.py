"""The consolidation, killed with -9 after each of its statements: its effects are there once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.callers import Caller, Tenant
from support.consolidating import checks, planted, superseding
from support.nights import NOON

pytestmark = pytest.mark.slow
TESTS = Path(__file__).resolve().parents[1]
MOST = 200
TABLES = ("history", "events", "change_log", "relations", "pair_checks", "memories")


def workers(tenant: Tenant) -> subprocess.Popen[str]:
    """What begins a worker for each line that it is sent, and tells how it ended."""
    command = [sys.executable, "-m", "support.killed", tenant.server.database.url, tenant.name, NOON.isoformat()]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def begun(process: subprocess.Popen[str]) -> str:
    """How the next worker ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def test_killed_after_each_statement_its_effects_are_once(tenant: Tenant, supervisor: Caller) -> None:
    first, second = planted(tenant, supervisor, "The user owns a piano.", "The user has a piano.", thread_id="t")
    old, new = planted(tenant, supervisor, "The user rents a boat.", "The user no longer rents a boat.", thread_id="t")
    before = tenant.count(*TABLES)
    effects, ends = [], []
    with workers(tenant) as process:
        while len(ends) < MOST and (not ends or ends[-1] == "killed"):
            ends.append(begun(process))
            effects.append(tenant.count(*TABLES) - before)
        process.kill()
    assert ends[-1] == "ended 0"
    assert len(ends) > 10
    assert sorted(set(effects)) == [0, effects[-1]]  # all of it or nothing, whenever it was killed
    assert effects.count(0) > 5  # the control: most of them were killed before the commit
    assert superseding(tenant) == sorted([(first, second), (new, old)])
    assert checks(tenant) == [("contradiction", None), ("same", None)]
    rows = tenant.rows("SELECT content, state, version, mention_count FROM memories WHERE tenant_id = %(tenant)s")
    assert sorted((row["content"], row["state"], row["version"], row["mention_count"]) for row in rows) == [
        ("The user has a piano.", "superseded", 2, 1),
        ("The user no longer rents a boat.", "active", 2, 1),
        ("The user owns a piano.", "active", 2, 2),
        ("The user rents a boat.", "superseded", 2, 1),
    ]
    (run,) = tenant.rows("SELECT state, counts FROM job_runs WHERE tenant_id = %(tenant)s")
    counts = run["counts"] if isinstance(run["counts"], dict) else json.loads(run["counts"])
    assert run["state"] == "done"
    assert (counts["pairs"], counts["merged"], counts["superseded"]) == (2, 1, 1)
