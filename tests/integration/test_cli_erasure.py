"""`memplane erase` and `memplane audit` as processes, on each kind of database."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from uuid import UUID

import psycopg
import pytest

from integration.commands import Served, reachable_folder, serving
from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.adapters.postgres.provisioning import DATABASE


@pytest.fixture(scope="module", params=["postgres", "sqlite"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    with reachable_folder() as folder, serving(folder, "--storage", request.param, "--port", "0") as running:
        yield running


def remembered(served: Served, user: str, *words: str) -> None:
    for word in words:
        done = served.run("remember", f"The user owns a {word}.", "--user", user, "--category", "event")
        assert done.code == 0, done.err


def test_a_user_is_erased_and_the_chain_verifies(served: Served, request: pytest.FixtureRequest) -> None:
    storage = ("--storage", request.node.callspec.params["served"])
    remembered(served, "ana", "piano", "boat")
    remembered(served, "ben", "piano")
    assert served.run("jobs", "run", "seal", *storage).code == 0
    anchor = served.run("audit", "head", *storage, "--json").document["head"]
    dry = served.run("erase", "ana", "--dry-run", "--json").document
    assert (dry["erased"]["memories"], dry["receipt"]) == (2, None)
    asked = served.run("erase", "ana")
    assert (asked.code, "--yes" in asked.err) == (2, True)  # nobody is there to type the name
    done = served.run("erase", "ana", "--yes", "--json").document
    assert (done["finished"], done["erased"]["memories"]) == (True, 2)
    assert served.run("list", "--user", "ana", "--json").document["items"] == []
    nobody = served.run("erase", "anna", "--dry-run")
    assert (nobody.code, "Nothing is stored about 'anna'" in nobody.out) == (0, True)
    assert "Nothing is stored" not in served.run("erase", "ben", "--dry-run").out  # the control
    assert len(served.run("list", "--user", "ben", "--json").document["items"]) == 1  # the control
    verified = served.run("audit", "verify", "--anchor", anchor, *storage, "--json")
    assert (verified.code, verified.document["ok"], verified.document["anchored"]) == (0, True, True)
    wrong = served.run("audit", "verify", "--anchor", f"99:{'0' * 64}", *storage)
    assert (wrong.code, "truncated" in wrong.out) == (1, True)
    assert served.run("audit", "verify", "--anchor", "nonsense", *storage).code == 1


def test_what_a_job_erases_is_in_the_ledger_too(served: Served, request: pytest.FixtureRequest) -> None:
    kind = request.node.callspec.params["served"]
    remembered(served, "dora", "tent")
    receipt = served.run("erase", "dora", "--yes", "--json").document["receipt"]
    begun_again = "UPDATE erasures SET finished_at = NULL, of_user = 'dora' WHERE id = "
    if kind == "sqlite":
        with closing(sqlite3.connect(served.data / "memplane.db")) as connection:
            connection.execute(f"{begun_again} ?", (UUID(receipt).hex,))
            assert connection.total_changes == 1
            connection.commit()
    else:
        with (
            EmbeddedPostgres.start(served.data) as server,
            psycopg.connect(server.conninfo(user="postgres", database=DATABASE)) as postgres,
        ):
            assert postgres.execute(f"{begun_again} %s", (receipt,)).rowcount == 1
    noted = len((served.data / "erasures.jsonl").read_text().splitlines())
    done = served.run("jobs", "run", "erasures", "--storage", kind)
    assert done.code == 0, done.err
    lines = (served.data / "erasures.jsonl").read_text().splitlines()
    assert receipt in {json.loads(line)["receipt"] for line in lines[noted:]}


def test_the_ledger_is_kept_saved_and_replayed(served: Served, request: pytest.FixtureRequest) -> None:
    storage = ("--storage", request.node.callspec.params["served"])
    remembered(served, "cara", "kite")
    receipt = served.run("erase", "cara", "--yes", "--json").document["receipt"]
    lines = (served.data / "erasures.jsonl").read_text().splitlines()
    assert receipt in {json.loads(line)["receipt"] for line in lines}
    assert (served.data / "erasures.jsonl").stat().st_mode & 0o777 == 0o600
    saved = served.data / "saved.jsonl"
    assert served.run("erase", "--save", str(saved), *storage).code == 0
    for given in ((), ("--receipts", str(saved))):
        items = served.run("erase", "--replay", *given, *storage, "--json").document["items"]
        assert {item["outcome"] for item in items} == {"known"}
        assert receipt in {item["receipt"] for item in items}
    assert served.run("erase", "--replay", "cara").code == 2
    torn = served.data / "torn.jsonl"
    torn.write_text("no line\n")
    assert served.run("erase", "--replay", "--receipts", str(torn), *storage).code == 1
