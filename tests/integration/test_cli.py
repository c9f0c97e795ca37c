"""The command line, as real processes: what it prints, where, and with which exit code."""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

import memplane
from integration.commands import (
    COMMAND,
    PATIENCE,
    Served,
    clean_environment,
    first_line,
    reachable_folder,
    run,
)
from memplane.adapters.policy import shipped_policies
from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.adapters.postgres.provisioning import DATABASE


@pytest.fixture
def served(served_by_postgres: Served) -> Served:
    return served_by_postgres


# serve


def test_serve_says_one_line_and_ends_well_when_told_to() -> None:
    with reachable_folder() as folder:
        command = [*COMMAND, "serve", "--data", str(folder / "data"), "--port", "0"]
        process = subprocess.Popen(
            command, env=clean_environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        line = first_line(process)
        assert line.startswith("ready http://127.0.0.1:")
        mode = (folder / "data" / "keys.json").stat().st_mode
        assert stat.S_IMODE(mode) == 0o600
        process.send_signal(signal.SIGTERM)
        rest, told = process.communicate(timeout=PATIENCE)
        assert (process.returncode, rest, told) == (0, "", "")


def test_a_port_in_use_is_told_before_anything_is_made(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = run("serve", "--data", str(tmp_path / "data"), "--port", port)
    assert (result.code, result.out) == (3, "")
    assert f"port {port} of 127.0.0.1 is in use" in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("environment", "code", "told"),
    [
        ({"MEMPLANE_DATABASE_URL": "postgresql://ana:secret@127.0.0.1:9/x"}, 3, "unavailable: the database cannot"),
        ({"MEMPLANE_DATABASE_URL": "nonsense-secret"}, 2, "settings_invalid: MEMPLANE_DATABASE_URL"),
        ({"MEMPLANE_OIDC_AUDIENCE": "m"}, 2, "settings_invalid: MEMPLANE_OIDC_AUDIENCE is set without"),
        ({"MEMPLANE_LOG_LEVEL": "secret"}, 2, "settings_invalid: MEMPLANE_LOG_LEVEL"),
        ({"MEMPLANE_POLICIES": "/nowhere"}, 3, "policy_invalid"),
    ],
)
def test_a_server_that_cannot_start_says_why_in_one_line(environment: dict[str, str], code: int, told: str) -> None:
    with reachable_folder() as folder:
        result = run("serve", "--port", "0", "--data", str(folder / "data"), environment=environment)
    assert (result.code, result.out) == (code, "")
    assert told in result.err
    assert result.err.count("\n") == 1
    assert "secret" not in result.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as somebody else")
def test_a_folder_that_postgresql_cannot_reach_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    result = run("init", "--data", str(tmp_path / "data"))
    assert (result.code, result.out) == (3, "")
    assert "embedded_postgres" in result.err
    assert "chmod o+x" in result.err


# The memory, over HTTP


def test_what_is_stored_is_found_again(served: Served, user: str) -> None:
    turn = served.run("turn", "--user", user, "--thread", user, "--json", stdin="The launch moved to May.\n")
    assert turn.document["seq"] == 1
    words = "The user has to book a hall [by May] for the launch."
    made = served.run("remember", words, "--user", user, "--category", "tasks", "--thread", user, "--json").document
    assert made["outcome"] == "created"
    answer = served.run("query", "launch", "--user", user, "--thread", user, "--since", "0", "--json").document
    assert {item["id"] for item in answer["items"]} == {turn.document["turn_id"], made["id"]}
    assert "+created: [Tasks]" in answer["delta"]["header"]
    table = served.run("query", "launch", "--user", user)
    assert table.code == 0
    assert words in table.out
    assert served.run("get", made["id"], "--json").document["content"] == words
    listed = served.run("list", "--user", user, "--all", "--json").document
    assert [item["id"] for item in listed["items"]] == [made["id"]]
    history = served.run("history", made["id"], "--json").document
    assert [(entry["event"], entry["actor"]) for entry in history["items"]] == [("ADD", "agent:supervisor")]


def test_an_agent_is_refused_what_is_not_its_own(served: Served, user: str) -> None:
    asked = ("--user", user, "--category", "tone", "The user's letters sound warm.", "--json")
    refused = served.run("remember", "--agent", "planner", *asked)
    assert (refused.code, refused.document["error"]["code"]) == (1, "category_forbidden")
    assert refused.document["error"]["status"] == 403
    assert refused.err.startswith("memplane: category_forbidden: ")
    assert served.run("remember", "--agent", "stylist", *asked).document["outcome"] == "created"


def test_a_key_says_who_speaks(served: Served, user: str) -> None:
    stylist = served.keys["stylist"]
    with_key = served.run("query", "x", "--key", stylist, "--category", "tone", "--user", user, "--json")
    assert (with_key.code, with_key.document["items"]) == (0, [])
    as_planner = served.run("query", "x", "--key", stylist, "--agent", "planner", "--json")
    assert (as_planner.code, as_planner.document["error"]["code"]) == (1, "agent_forbidden")
    wrong = served.run("query", user, "--key", "mp_0123456789ab_wrong")
    assert (wrong.code, wrong.out) == (1, "")
    assert "unauthenticated" in wrong.err


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("query", "x", "--url", "http://127.0.0.1:9"), 4, "unreachable"),
        (("query", "x", "--url", "nonsense"), 2, "invalid_url"),
        (("query", "x", "--since", "3"), 2, "invalid_request"),
        (("query", "x", "--agent", "nobody"), 2, "has no key for agent 'nobody'"),
        (("query", "x", "--data", "/nowhere"), 2, "no key"),
        (("get", str(UUID(int=0))), 1, "not_found"),
    ],
)
def test_an_exit_code_says_what_kind_of_failure_it_was(
    served: Served, arguments: tuple[str, ...], code: int, told: str
) -> None:
    result = served.run(*arguments)
    assert (result.code, result.out) == (code, "")
    assert told in result.err
    assert "Traceback" not in result.err


# Keys


def test_keys_are_made_listed_and_revoked_beside_a_running_server(served: Served, user: str) -> None:
    served.run("turn", "--user", user, "--thread", user, "Hello.")
    made = served.run(
        "keys", "create", "--agent", "planner", "--user", user, "--trust", "inner", "--expires", "90d", "--json"
    ).document
    credential, key_id = made["key"], made["id"]
    assert credential.startswith(f"mp_{key_id}_")
    assert (made["agent"], made["users"], made["trust"]) == ("planner", [user], "inner")
    assert served.run("query", "hello", "--key", credential).code == 0
    other = served.run("query", "hello", "--key", credential, "--user", "somebody-else", "--json")
    assert (other.code, other.document["error"]["code"]) == (1, "user_forbidden")

    listed = served.run("keys", "list", "--json")
    assert key_id in [key["id"] for key in listed.document["items"]]
    assert credential.split("_", 2)[2] not in listed.out
    assert served.run("keys", "revoke", key_id, "--json").document == {"revoked": key_id}
    assert served.run("query", "hello", "--key", credential).code == 1


def test_a_key_is_rotated_beside_a_running_server(served: Served, user: str) -> None:
    def works(credential: str) -> bool:
        return served.run("query", "hello", "--key", credential).code == 0

    old = served.run("keys", "create", "--agent", "planner", "--user", f" {user} ", "--label", "ci", "--json").document
    assert old["users"] == [user]
    new = served.run("keys", "rotate", old["id"], "--grace", "24h", "--json").document
    assert (new["replaces"], new["users"], new["label"], new["in_key_file"]) == (old["id"], [user], "ci", False)
    assert works(old["key"])
    assert works(new["key"])
    last = served.run("keys", "rotate", new["id"], "--expires", "90d", "--json").document
    assert last["expires_at"] is not None
    assert works(last["key"])
    assert not works(new["key"])
    told = served.run("keys", "history", new["id"], "--json").document["items"]
    assert [(each["event"], each["actor"]) for each in told] == [("rotated", "operator"), ("created", "operator")]
    assert served.run("keys", "history", "a" * 12, "--json").document == {"items": []}
    assert last["id"] in served.run("keys", "history", "--limit", "5").out
    again = served.run("keys", "rotate", new["id"], "--json")
    assert (again.code, again.document["error"]["code"]) == (1, "not_found")
    assert served.run("keys", "rotate", last["id"], "--grace", "soon").code == 2


def test_a_rotated_key_takes_its_place_in_the_key_file(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path), "--storage", "sqlite")
    assert run("init", *data).code == 0
    file = tmp_path / "keys.json"
    before = json.loads(file.read_text())
    key_id = before["agents"]["planner"].split("_")[1]
    new = run("keys", "rotate", key_id, *data, "--json").document
    after = json.loads(file.read_text())
    assert new["in_key_file"] is True
    assert after == before | {"agents": before["agents"] | {"planner": new["key"]}}
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ((), 2, "--agent"),
        (("--agent", "nobody"), 1, "the policy has no agent"),
        (("--agent", "planner", "--expires", "2020-01-01"), 2, "not in the future"),
        (("--agent", "planner", "--expires", "soon"), 2, "is no time"),
    ],
)
def test_a_key_that_cannot_be_made_is_refused(served: Served, arguments: tuple[str, ...], code: int, told: str) -> None:
    result = served.run("keys", "create", *arguments)
    assert (result.code, result.out) == (code, "")
    assert told in " ".join(result.err.replace("│", " ").split())


def test_a_mistyped_folder_becomes_no_database(tmp_path: Path) -> None:
    result = run("keys", "list", "--data", str(tmp_path / "none"))
    assert result.code == 2
    assert "there is no database" in result.err
    assert not (tmp_path / "none").exists()


def test_a_turn_is_dated_and_what_is_refused_has_no_id(served: Served, user: str) -> None:
    place = ("--user", user, "--thread", user)
    dated = served.run("turn", "My sister lives in Porto.", *place, "--event-time", "2020-03-01T10:00Z")
    assert (dated.code, dated.err) == (0, "")
    (memory,) = served.run("list", "--user", user, "--json").document["items"]
    assert memory["valid_from"].startswith("2020-03-01")
    assert f", {memory['id']})" in dated.out  # the control: what is stored has one
    served.run("reject", memory["id"], "--yes")
    again = served.run("turn", "My sister lives in Porto.", *place, "--event-time", "2021-03-01")
    assert "(refused)" in again.out
    assert "None" not in again.out
    wrong = served.run("turn", "Hello.", *place, "--event-time", "yesterday")
    assert (wrong.code, "'yesterday' is no time" in " ".join(wrong.err.split())) == (2, True)


# Preparing and examining


def checks(document: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {each["check"]: each["status"] for each in document["checks"]}


def test_a_folder_is_prepared_migrated_and_examined() -> None:
    with reachable_folder() as folder:
        data = ("--data", str(folder / "data"))
        before = run("doctor", *data, "--json")
        assert before.code == 0
        assert checks(before.document)["database"] == "skipped"
        assert not (folder / "data").exists()

        made = run("init", *data, "--json").document
        keys = json.loads((folder / "data" / "keys.json").read_text())
        assert made["agents"] == sorted(keys["agents"])
        assert run("migrate", *data, "--json").document["revision"] == made["revision"]

        good = run("doctor", *data, "--json")
        assert good.code == 0
        assert set(checks(good.document).values()) == {"ok"}
        held = {key["id"]: key["scopes"] for key in run("keys", "list", *data, "--json").document["items"]}
        supervisor = keys["agents"]["supervisor"].split("_")[1]
        assert [key for key, scopes in held.items() if "turns:user" in scopes] == [supervisor]  # it alone of those made
        assert len(held) == len(keys["agents"]) + 1
        told = {each["check"]: each["found"] for each in good.document["checks"]}
        assert told["keys with turns:user"] == f"default/{supervisor} (supervisor)"

        (folder / "data" / "keys.json").chmod(0o644)
        policies = shutil.copytree(shipped_policies(), folder / "policies")
        (policies / "trust.yaml").write_text("levels: {}\n")
        bad = run("doctor", *data, "--json", environment={"MEMPLANE_POLICIES": str(policies)})
        assert bad.code == 1
        assert {name for name, status in checks(bad.document).items() if status == "problem"} == {"policy", "keys.json"}
        assert "chmod 600" in bad.document["checks"][-1]["advice"]


def test_a_folder_with_one_file_is_examined_as_such() -> None:
    with reachable_folder() as folder:
        data = ("--data", str(folder / "data"))
        assert run("init", *data, "--storage", "sqlite").code == 0
        found = run("doctor", *data, "--json")
        assert found.code == 0
        assert checks(found.document) == checks(run("doctor", *data, "--storage", "sqlite", "--json").document)
        assert {"integrity", "journal"} <= checks(found.document).keys()
        assert not (folder / "data" / "pg").exists()
        named = run("doctor", *data, "--storage", "postgres", "--json")  # the control: what is named counts
        assert "embedded PostgreSQL" in checks(named.document)


def test_another_database_is_migrated_by_its_owner_and_used_by_the_application() -> None:
    with reachable_folder() as folder, EmbeddedPostgres.start(folder / "data", durable=False) as server:
        with psycopg.connect(server.admin_conninfo, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        owner = server.url(user="postgres", database=DATABASE)
        application = {"MEMPLANE_DATABASE_URL": server.url(user="memplane_app", database=DATABASE)}
        with psycopg.connect(owner, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")

        refused = run("migrate", environment={"MEMPLANE_DATABASE_URL": owner})
        assert refused.code == 2
        assert "MEMPLANE_MIGRATION_URL" in refused.err
        unmade = run("serve", "--port", "0", environment={"MEMPLANE_DATABASE_URL": owner})
        assert unmade.code == 3
        assert "memplane migrate" in unmade.err

        assert run("migrate", environment={"MEMPLANE_MIGRATION_URL": owner}).code == 0
        good = run("doctor", "--json", environment=application)
        found = checks(good.document)
        assert (good.code, found.pop("worker role"), set(found.values())) == (0, "skipped", {"ok"})  # none is named
        unsafe = run("doctor", "--json", environment={"MEMPLANE_DATABASE_URL": owner})
        assert (unsafe.code, checks(unsafe.document)["database role"]) == (1, "problem")


# The policy, without a server


def test_the_shipped_policy_is_valid_and_shown() -> None:
    good = run("policy", "check", "--json").document
    assert (good["ok"], good["agents"]) == (True, 5)
    planner = run("policy", "show", "--agent", "planner", "--json").document
    assert planner["read"] == ["goals", "tasks", "projects"]
    assert planner["policy"] == good["policy"]
    matrix = run("policy", "show")
    assert (matrix.code, "relationship_dynamic" in matrix.out) == (0, True)
    assert "By consent only, within 7 days: preferred_name, pronouns, city, language." in matrix.out
    consent = run("policy", "show", "--json").document["consent"]
    assert (consent["proposal_days"], consent["corroboration"]["turns"]) == (7, 2)
    assert "Facts drawn from turns go to: profile, preferences, goals, tasks, projects, event" in matrix.out
    assert run("policy", "show", "--json").document["extraction"]["write"][-1] == "procedural"
    assert planner["drawn_into"] == []
    told = run("policy", "show", "--agent", "supervisor").out
    assert "Facts drawn from the turns that it records go to: profile, preferences, goals" in told
    assert "Changes by consent only: preferred_name (profile), pronouns (profile)" in told
    assert "Changes by consent only: nothing" in run("policy", "show", "--agent", "planner").out
    unknown = run("policy", "show", "--agent", "nobody")
    assert (unknown.code, unknown.out) == (1, "")


def test_every_mistake_of_a_policy_is_told(tmp_path: Path) -> None:
    policies = shutil.copytree(shipped_policies(), tmp_path / "policies")
    path = policies / "categories.yaml"
    path.write_text(
        path.read_text().replace("planner: [goals", "planner: [goalz").replace("activity, context", "a, context")
    )
    bad = run("policy", "check", "--policies", str(policies), "--json")
    assert (bad.code, bad.document["ok"]) == (1, False)
    assert any("goalz" in error["message"] and error["line"] > 1 for error in bad.document["errors"])
    told = run("policy", "check", "--policies", str(policies))
    assert told.code == 1
    assert "categories.yaml:" in told.out


# All of it


def test_the_command_line_explains_itself() -> None:
    assert run("--version").out == f"memplane {memplane.__version__}\n"
    told = " ".join(run("--help").out.split())
    assert "3 the server could not start" in told
    for name in ("serve", "init", "migrate", "doctor", "keys", "policy", "query", "turn", "remember", "demo"):
        assert f" {name} " in told
