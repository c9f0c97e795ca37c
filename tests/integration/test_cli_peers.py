"""Import from other memory systems: what is read is stored, counted and found again, and nothing is lost silently."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore

from integration.commands import PATIENCE, Served
from memplane.adapters.files.import_lines import ImportLines, Verification
from memplane.client import MemplaneSync
from memplane.client.peers import Conversion, Peer, convert_records, documents
from memplane.entrypoints.cli.imports.peer_lines import entries, fill
from support.cluster import Databases
from support.commands import Forked, Result, clean_environment
from support.peer_exports import archive, export, written
from support.working import until

COUNTS = ("created", "duplicate", "merged", "waiting", "refused", "left_out")


@pytest.fixture(params=["served", "served_by_postgres"])
def server(request: pytest.FixtureRequest) -> Served:
    """A server on each database."""
    made: Served = request.getfixturevalue(request.param)
    return made


def imported(server: Served, *arguments: str, code: int = 0) -> dict[str, Any]:
    """The report of an import, whose counts add up."""
    told = server.run("import", *arguments, "--json")
    assert (told.code, told.err) == (code, ""), told.err
    document: dict[str, Any] = told.document
    assert document["read"] == sum(document[name] for name in COUNTS)
    return document


def memories(server: Served, user: str, agent: str = "supervisor") -> dict[str, dict[str, Any]]:
    with MemplaneSync(server.url, server.keys[agent]) as client:
        return {each.external_id or "": each.model_dump(mode="json") for each in client.list(user_id=user)}


def refused(told: Result, code: str) -> bool:
    """Whether a command ended with a code before it sent anything."""
    return told.code == 2 and told.err.startswith(f"memplane: {code}: ")


class TestMem0:
    def test_memories_keep_ids_times_agents_and_runs(self, server: Served, user: str, tmp_path: Path) -> None:
        file = export(tmp_path, "mem0")
        report = imported(server, str(file), "--user", user, "--category", "event")
        assert (report["from"], report["users"], report["created"], report["left_out"]) == ("mem0", {user: 3}, 3, 0)
        assert report["verified"] == {"checked": 3, "found": 3, "missing": []}
        assert report["unmapped_fields"] == {"hash": 3}
        found = memories(server, user)
        tea = found["mem0:6ce490b5-1083-4623-8210-6885769baa83"]
        assert tea["content"] == "I drink green tea in the morning."
        assert {name: tea[name] for name in ("category", "agent_id", "run_id", "actor_id", "role", "event_time")} == {
            "category": "preferences", "agent_id": "barista", "run_id": "r1", "actor_id": "Ana", "role": "user",
            "event_time": "2026-11-23T19:02:31.497768Z",
        }  # fmt: skip
        viola = found["mem0:f73447de-7c5e-41d2-a23b-b601991f6f36"]  # changed once: its words are as old as the change
        assert viola["event_time"] == "2026-11-23T19:02:31.519798Z"
        assert viola["attributes"]["mem0"]["created_at"] == "2026-11-23T19:02:31.506468+00:00"
        with MemplaneSync(server.url, server.keys["supervisor"]) as client:
            answer = client.query("viola", filters={"user_id": user})
        assert answer.items[0].text == "[event] I play the viola on Sundays."

    def test_a_second_run_stores_nothing_new(self, server: Served, user: str, tmp_path: Path) -> None:
        file = export(tmp_path, "mem0")
        command = (str(file), "--user", user, "--category", "event")
        assert imported(server, *command)["created"] == 3
        before = set(memories(server, user))
        again = imported(server, *command)
        assert (again["created"], again["duplicate"]) == (0, 3)
        assert set(memories(server, user)) == before
        assert sorted(each.name for each in tmp_path.iterdir()) == ["mem0.json"]

    def test_without_a_user_each_memory_is_its_own_user_s(self, server: Served, user: str, tmp_path: Path) -> None:
        items = [{"id": f"{user}{n}", "memory": f"Fact {n} of it.", "user_id": f"{user}-{n % 2}"} for n in range(4)]
        file = written(tmp_path, items)
        assert refused(server.run("import", str(file), "--user", user, "--category", "event"), "ambiguous_user")
        report = imported(server, str(file), "--user", f"{user}-1", "--category", "event")
        assert (report["created"], report["left_out_because"]) == (2, {"other_user": 2})
        assert len(memories(server, f"{user}-0")) == 0
        report = imported(server, str(file), "--category", "event")  # the control: of everybody
        assert (report["created"], report["duplicate"]) == (2, 2)
        assert len(memories(server, f"{user}-0")) == 2
        names = tmp_path / "map.yaml"
        names.write_text(f"users: {{{user}-0: {user}-a, {user}-1: {user}-a}}\n")
        assert imported(server, str(file), "--category", "event", "--map", str(names))["users"] == {f"{user}-a": 4}

    def test_a_user_whose_records_are_all_left_out_is_another_user(
        self, server: Served, user: str, tmp_path: Path
    ) -> None:
        items = [
            {"id": f"{user}1", "memory": "Runs every day.", "user_id": f"{user}-0"},
            {
                "id": f"{user}2",
                "memory": "An offer of the past.",
                "user_id": f"{user}-1",
                "expiration_date": "2020-01-01",
            },
        ]
        file = written(tmp_path, items)
        assert refused(server.run("import", str(file), "--user", user, "--category", "event"), "ambiguous_user")
        assert memories(server, user) == {}
        alone = written(tmp_path, items[:1], "alone.json")
        assert imported(server, str(alone), "--user", user, "--category", "event")["created"] == 1  # the control

    def test_what_is_no_memory_is_named(self, server: Served, user: str, tmp_path: Path) -> None:
        items = [
            {"id": "1", "memory": "Kept with care.", "metadata": {"deep": [[[[[[[[[1]]]]]]]]]}},
            {"id": "2", "memory": "  "},
            {"id": "3", "memory": "An offer of the past.", "expiration_date": "2020-01-01"},
            {"id": "4", "memory": "An offer of the future.", "expiration_date": "2999-01-01"},
            {"id": "5", "text": "of an older release"},
            {"id": "6", "memory": "x" * 200_000},
        ]
        file = written(tmp_path, {"results": items, "relations": [{"source": "ana"}], "next": "https://page.2"})
        report = imported(server, str(file), "--user", user, "--category", "event", code=1)
        assert {name: report[name] for name in ("created", "refused", "left_out")} == {
            "created": 2, "refused": 1, "left_out": 4,
        }  # fmt: skip
        assert report["left_out_because"] == {"expired": 1, "no_text": 1, "not_a_memory": 1, "unknown_record": 1}
        assert report["unmapped_fields"] == {"metadata": 1}
        assert report["is_one_page"] is True
        assert memories(server, user)["mem0:4"]["expires_at"] == "2999-01-02T00:00:00Z"
        lines = [json.loads(line) for line in Path(report["refused_file"]).read_text().splitlines()]
        assert [(each["line"], each["code"]) for each in lines if each["code"] != "left_out"] == [
            (6, "invalid_request")
        ]
        assert {each["line"]: each["detail"].partition(":")[0] for each in lines if each["code"] == "left_out"} == {
            2: "no_text", 3: "expired", 5: "unknown_record", 7: "not_a_memory",
        }  # fmt: skip

    def test_categories_are_mapped_or_asked_for(self, server: Served, user: str, tmp_path: Path) -> None:
        file = written(tmp_path, [{"id": "1", "memory": "Runs every day.", "categories": ["sport", "health"]}])
        told = server.run("import", str(file), "--user", user)
        assert refused(told, "no_category")
        assert "sport, health" in told.err
        assert memories(server, user) == {}
        names = tmp_path / "map.yaml"
        names.write_text("categories: {sport: goals}\nagents: {}\n")
        imported(server, str(file), "--user", user, "--map", str(names))
        kept = memories(server, user)["mem0:1"]
        assert (kept["category"], kept["tags"]) == ("goals", ["health"])

    def test_a_category_of_another_agent_is_written_by_it(self, server: Served, user: str, tmp_path: Path) -> None:
        file = written(tmp_path, [{"id": "1", "memory": "Basalt is a volcanic rock."}])
        report = imported(server, str(file), "--user", user, "--category", "knowledge")
        assert (report["created"], report["verified"]["found"]) == (1, 1)
        assert set(memories(server, user, "researcher")) == {"mem0:1"}
        assert memories(server, user) == {}
        told = imported(server, str(file), "--user", user, "--category", "knowledge", "--agent", "supervisor", code=1)
        assert (told["refused"], told["created"]) == (1, 0)  # permissions are those of any import


def filled(store: BaseStore) -> None:
    """What an application keeps in a store: memories of two people, one of them as LangMem writes it, and settings."""
    store.put(("memories", "ana"), "k1", {"kind": "Memory", "content": {"content": "Ana grows tomatoes."}})
    store.put(("memories", "ana"), "k2", {"text": "Ana has a greenhouse.", "confidence": 0.5})
    store.put(("memories", "ben"), "k1", {"data": "Ben owns a boat."})
    store.put(("settings", "ana"), "ui", {"theme": "dark"})


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Path:
    file = tmp_path / "store.sqlite"
    with SqliteStore.from_conn_string(str(file)) as store:
        store.setup()
        filled(store)
    return file


@pytest.fixture
def postgres_store(databases: Databases) -> Iterator[str]:
    """The address of a database of a PostgresStore."""
    made = databases.create()
    with PostgresStore.from_conn_string(made.admin_url) as store:
        store.setup()
        filled(store)
    yield made.admin_url
    databases.drop(made)


class TestLangGraph:
    def check(self, server: Served, source: str) -> None:
        """Of a store with memories of Ana and Ben, Ana's are imported."""
        report = imported(server, source, "--user", "ana", "--category", "event")
        assert report["from"] == "langgraph"
        assert (report["read"], report["created"] + report["duplicate"], report["left_out"]) == (4, 2, 2)
        assert report["left_out_because"] == {"no_text": 1, "other_user": 1}
        assert report["verified"]["found"] == report["created"]
        found = memories(server, "ana")
        tomatoes = found["langgraph:memories/ana/k1"]
        assert (tomatoes["content"], bool(tomatoes["event_time"])) == ("Ana grows tomatoes.", True)
        assert found["langgraph:memories/ana/k2"]["attributes"]["langgraph"]["value"] == {"confidence": 0.5}
        assert not [each for each in found.values() if "Ben" in each["content"]]

    def test_a_dump_of_a_store_in_memory(self, server: Served, tmp_path: Path) -> None:
        store = InMemoryStore()
        filled(store)
        file = tmp_path / "dump.jsonl"
        file.write_text("".join(json.dumps(item.dict()) + "\n" for item in store.search((), limit=100)))
        self.check(server, str(file))

    def test_the_file_of_a_sqlite_store(self, server: Served, sqlite_store: Path) -> None:
        self.check(server, str(sqlite_store))

    def test_the_database_of_a_postgres_store(
        self, server: Served, postgres_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        self.check(server, postgres_store)
        told = server.run("import", postgres_store, "--from", "mem0", "--user", "ana")
        assert refused(told, "unsupported_export")
        names = [each.name for each in tmp_path.iterdir()]
        assert [name for name in names if name.startswith("store-") and "@" not in name] == names

    def test_namespaces_are_told_apart_or_mapped(self, server: Served, user: str, sqlite_store: Path) -> None:
        told = server.run("import", str(sqlite_store), "--user", user, "--category", "event")
        assert refused(told, "ambiguous_user")
        assert "memories/ana, memories/ben" in told.err
        names = sqlite_store.with_name("map.yaml")
        names.write_text(f'namespace: [memories, "{{user}}"]\nusers: {{ana: {user}-a, ben: {user}-b}}\n')
        report = imported(server, str(sqlite_store), "--category", "event", "--map", str(names))
        assert report["users"] == {f"{user}-a": 2, f"{user}-b": 1}
        assert report["left_out_because"] == {"other_user": 1}
        assert [each["content"] for each in memories(server, f"{user}-b").values()] == ["Ben owns a boat."]

    def test_the_field_with_the_words_is_named(self, server: Served, user: str, tmp_path: Path) -> None:
        item = {"namespace": ["profile"], "key": "p", "value": {"about": {"summary": "Likes quiet mornings."}}}
        file, names = written(tmp_path, [item]), tmp_path / "map.yaml"
        assert imported(server, str(file), "--user", user, "--category", "event")["left_out_because"] == {"no_text": 1}
        names.write_text("content: about.summary\n")
        imported(server, str(file), "--user", user, "--category", "event", "--map", str(names))
        assert memories(server, user)["langgraph:profile/p"]["content"] == "Likes quiet mornings."


class TestZep:
    def test_edges_have_their_validity_and_threads_their_messages(
        self, server: Served, user: str, tmp_path: Path
    ) -> None:
        file = export(tmp_path, "zep")
        report = imported(server, str(file), "--user", user, "--category", "event")
        assert (report["from"], report["read"], report["created"]) == ("zep", 7, 5)
        assert report["left_out_because"] == {"no_text": 1, "not_a_memory": 1}
        assert report["verified"] == {"checked": 5, "found": 5, "missing": []}
        found = memories(server, user)
        acme = found["zep:e1"]
        assert (acme["valid_from"], acme["valid_until"]) == ("2023-01-01T00:00:00Z", "2024-06-01T00:00:00Z")
        assert (acme["tags"], acme["attributes"]["zep"]["relation"]) == (["ana ruiz", "acme"], "WORKED_AT")
        assert (found["zep:n2"]["title"], found["zep:n2"]["content"]) == ("Acme", "Acme builds bridges.")
        with MemplaneSync(server.url, server.keys["supervisor"]) as client:
            turns = client.thread_turns("t1", user_id=user, after_seq=0).items
            entities = client.entities(user).items
        assert [(each.text, each.role, each.actor_id) for each in turns] == [
            ("I practised for an hour.", "user", "Ana"), ("Which piece do you practise?", "assistant", "coach"),
        ]  # fmt: skip
        assert {"Ana Ruiz", "Acme"} <= {each.name for each in entities}
        again = imported(server, str(file), "--user", user, "--category", "event")
        assert (again["created"], again["duplicate"]) == (0, 5)

    def test_sessions_and_facts_of_the_community_edition(self, server: Served, user: str, tmp_path: Path) -> None:
        file, names = export(tmp_path, "zep_python"), tmp_path / "map.yaml"
        report = imported(server, str(file), "--user", user, "--category", "event")
        assert report["left_out_because"] == {"not_a_memory": 1, "unknown_role": 1}
        assert report["created"] == 3
        assert {each["content"]: each["thread_id"] for each in memories(server, user).values()} == {
            "Ana keeps bees.": "s1", "Ana sells honey.": "s1",
        }  # fmt: skip
        names.write_text("roles: {norole: system}\n")
        report = imported(server, str(file), "--user", user, "--category", "event", "--map", str(names))
        assert (report["created"], report["duplicate"]) == (1, 3)

    def test_edges_of_graphiti(self, server: Served, user: str, tmp_path: Path) -> None:
        report = imported(server, str(export(tmp_path, "graphiti")), "--user", user, "--category", "event")
        assert (report["from"], report["created"], report["unmapped_fields"]) == ("zep", 1, {"fact_embedding": 1})
        assert memories(server, user)["zep:g1"]["valid_from"] == "2024-01-01T00:00:00Z"


class TestHindsight:
    def test_memory_units_become_memories_of_their_type(self, server: Served, user: str, tmp_path: Path) -> None:
        report = imported(server, str(export(tmp_path, "hindsight")), "--user", user, "--category", "event")
        assert (report["from"], report["created"], report["left_out_because"]) == ("hindsight", 3, {"not_believed": 1})
        found = memories(server, user)
        assert {name: each["type"] for name, each in found.items()} == {
            "hindsight:h1": "episodic", "hindsight:h2": "semantic", "hindsight:h3": "semantic",
        }  # fmt: skip
        rome = found["hindsight:h1"]
        assert (rome["event_time"], rome["tags"]) == ("2024-05-02T00:00:00Z", ["travel", "ana ruiz", "rome"])
        assert rome["attributes"]["hindsight"]["occurred_end"] == "2024-05-09T00:00:00+00:00"
        assert found["hindsight:h3"]["tags"] == ["opinion"]

    def test_the_archive_of_a_bank(self, server: Served, user: str, tmp_path: Path) -> None:
        file = archive(tmp_path)
        report = imported(server, str(file), "--user", user, "--category", "event")
        assert (report["created"], report["left_out_because"]) == (3, {"not_a_memory": 2})
        assert report["unmapped_fields"] == {"causal_relations": 1, "sources": 1}
        assert {name: each["type"] for name, each in memories(server, user).items() if name != ""} == {
            "hindsight:a1": "episodic", "hindsight:b1": "insight",
        } | {name: "semantic" for name in memories(server, user) if len(name) > 20}  # fmt: skip
        file.write_bytes(file.read_bytes()[:-200])
        told = server.run("import", str(file), "--from", "hindsight", "--user", user, "--category", "event")
        assert told.code == 2


def records(number: int) -> list[dict[str, str]]:
    return [{"id": str(n), "memory": f"Parcel {n} is at gate {n}."} for n in range(number)]


@pytest.mark.slow
def test_killed_it_goes_on_and_all_is_verified(server: Served, user: str, tmp_path: Path) -> None:
    file = written(tmp_path, {"results": [*records(1_200), {"id": "none", "memory": ""}]})
    progress = Path(f"{file}.import-progress.json")
    command = ("import", str(file), "--user", user, "--category", "event")
    environment = clean_environment({"MEMPLANE_URL": server.url, "MEMPLANE_DATA": str(server.data)})
    process = Forked(*command, environment=environment, errors=tmp_path / "err")
    until(
        lambda: process.poll() is not None or (progress.exists() and json.loads(progress.read_text())["done"] > 1),
        "a batch", PATIENCE, pause=0.001,
    )  # fmt: skip
    process.kill()
    process.wait()
    assert progress.exists(), "it ended before it was killed"
    report = imported(server, *command[1:])
    assert (report["read"], report["created"], report["left_out"]) == (1_201, 1_200, 1)
    assert report["verified"] == {"checked": 1_200, "found": 1_200, "missing": []}
    assert {each["mention_count"] for each in memories(server, user).values()} == {1}
    left = sorted(each.name for each in tmp_path.iterdir())
    assert left == ["err", "export.json", "export.json.refused.jsonl"]


def test_what_is_gone_again_is_missed(user: str, tmp_path: Path) -> None:
    """The control of the verification: a stored memory that is not there any more is named."""
    lines = ImportLines(tmp_path / "lines", {}, restart=True)
    by = Conversion(datetime.now(UTC), {"event"}, "event")
    fill(lines, convert_records(Peer.MEM0, documents(written(tmp_path, records(3))), by), user, lambda _category: None)
    (part,) = lines.parts()
    numbers = [entry.line for entry in entries(lines, part, 0)]
    lines.note(zip(numbers, ("created", "merged", "created"), strict=True))
    lines.note_found(part, ["mem0:0", "mem0:7"])
    assert lines.verification() == Verification(2, 1, ["mem0:2"])
    lines.end()


class TestBadInput:
    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ('{"results": [{"id": "a", "memory": "Known."}, {"id": "b", "mem', "truncated_export"),
            ('[{"id": "a", "memory": "Known."}, {"id": "b" "memory": 1}]', "invalid_export"),
            ('{"id": "a", "memory": "Known."}\n{"id": "b"', "truncated_export"),
            ("no JSON at all", "invalid_export"),
            ('[{"name": "Ana"}]', "unknown_export"),
        ],
    )
    def test_nothing_of_a_broken_file_is_stored(
        self, served: Served, user: str, tmp_path: Path, text: str, code: str
    ) -> None:
        file = tmp_path / "export.json"
        file.write_text(text)
        command = ("import", str(file), "--from", "mem0", "--user", user, "--category", "event")
        told = served.run(*command)
        assert refused(told, code), told.err
        assert memories(served, user) == {}
        assert [each.name for each in tmp_path.iterdir()] == ["export.json"]

    def test_an_ambiguous_file_is_refused_until_somebody_says_what_it_is(
        self, served: Served, user: str, tmp_path: Path
    ) -> None:
        file = written(tmp_path, [{"id": "1", "memory": "Known.", "text": "Known.", "type": "world"}])
        command = ("import", str(file), "--user", user, "--category", "event")
        assert refused(served.run(*command), "ambiguous_export")
        assert imported(served, *command[1:], "--from", "mem0")["created"] == 1

    def test_a_map_with_a_mistake_is_refused(self, served: Served, user: str, tmp_path: Path) -> None:
        file, names = export(tmp_path, "mem0"), tmp_path / "map.yaml"
        for text in ("user: ana", "users: [ana]", "- a", "{"):
            names.write_text(text)
            told = served.run("import", str(file), "--user", user, "--category", "event", "--map", str(names))
            assert refused(told, "invalid_map"), text

    def test_another_database_is_refused(self, served: Served, user: str, tmp_path: Path) -> None:
        import sqlite3  # noqa: PLC0415 - for this test alone

        file = tmp_path / "history.db"
        with sqlite3.connect(file) as connection:
            connection.execute("CREATE TABLE history (id TEXT, memory_id TEXT)")
        assert served.run("import", str(file), "--user", user).code == 1
        assert refused(served.run("import", str(file), "--from", "mem0", "--user", user), "unsupported_export")
        assert served.run("import", "postgresql://nobody:secret@127.0.0.1:1/none", "--user", user).code == 1
