"""Shared knowledge by the command line: stored, listed, exported and imported about no user."""

import json
from pathlib import Path

import pytest

from integration.commands import Served

HALL = "The main hall of Siemens holds ninety people."
STORE = ("remember", HALL, "--category", "knowledge")


@pytest.fixture(scope="module")
def sharer(served: Served) -> str:
    """A fully trusted key of the agent that looks after shared knowledge."""
    scopes = ("--scope", "memory:read", "--scope", "memory:write", "--scope", "admin")
    made = served.run("keys", "create", "--storage", "sqlite", "--agent", "researcher", *scopes, "--json")
    return str(made.document["key"])


def test_it_is_stored_listed_exported_and_imported(served: Served, sharer: str, user: str, tmp_path: Path) -> None:
    stored = served.run(*STORE, "--shared", "--key", sharer, "--json")
    assert stored.code == 0, stored.err
    memory = stored.document["id"]
    listed = served.run("list", "--shared", "--key", sharer)
    assert "The main hall" in listed.out
    assert "(shared)" in listed.out
    assert "Siemens" in served.run("entities", "--shared", "--key", sharer).out
    assert [
        each["id"]
        for each in served.run("query", "main hall", "--user", user, "--key", sharer, "--json").document["items"]
    ] == [memory]

    out = tmp_path / "shared.jsonl"
    exported = served.run("export", "--shared", "--out", str(out), "--key", sharer)
    assert exported.code == 0, exported.err
    assert "all that is shared" in exported.out
    assert HALL in [json.loads(line).get("content") for line in out.read_text().splitlines()]
    assert served.run("forget", memory, "--key", sharer).code == 0
    assert served.run("list", "--shared", "--key", sharer, "--json").document["items"] == []
    taken = served.run("import", str(out), "--shared", "--add", "--key", sharer)
    assert "1 created" in taken.out  # as new memories; the entity and the history are of the former one
    assert len(served.run("list", "--shared", "--key", sharer, "--json").document["items"]) == 1


@pytest.mark.parametrize("command", [STORE, ("export",), ("entities",)], ids=lambda command: command[0])
def test_one_of_the_two_is_named(served: Served, sharer: str, command: tuple[str, ...]) -> None:
    user = ("vera",) if command[0] == "export" else ("--user", "vera")
    for named in ((), (*user, "--shared")):
        done = served.run(*command, *named, "--key", sharer)
        assert done.code == 2, done.out
        assert "--shared" in done.err


def test_a_key_that_is_not_fully_trusted_is_refused(served: Served, sharer: str) -> None:
    made = served.run("keys", "create", "--storage", "sqlite", "--agent", "researcher", "--trust", "inner", "--json")
    refused = served.run(*STORE, "--shared", "--key", str(made.document["key"]), "--json")
    assert refused.code != 0
    assert refused.document["error"]["code"] == "trust_too_low"
    assert (
        served.run("remember", "The side hall is closed.", "--category", "knowledge", "--shared", "--key", sharer).code
        == 0
    )
