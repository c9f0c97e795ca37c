"""Import from the command line: exports, notes, what is refused, and what a kill leaves behind."""

import json
from pathlib import Path

import pytest

from integration.commands import PATIENCE, Served, reachable_folder, serving
from memplane.client import Memplane, MemplaneSync
from support.commands import Forked, clean_environment
from support.working import until

NOTES = """---
title: notes
---
# Preferences

Some words that are no item.

- The user drinks tea.
  Without sugar.
* [x] 2025-07-01: The user prefers trains.

## Music

1. The user likes jazz.

```
- code is no item
```

# Event 2025-03-04

- The user moved into a flat.
- He bought a sofa.

# Strange

- The user has a secret.
"""


def memories(served: Served, user: str) -> dict[str, dict[str, object]]:
    with MemplaneSync(served.url, served.keys["supervisor"]) as client:
        return {each.content: each.model_dump(mode="json") for each in client.list(user_id=user)}


def lines_of(number: int, **fields: object) -> str:
    made = [
        {"record": "memory", "category": "event", "content": f"Parcel {place} is at gate {place}.", "type": "episodic"}
        | fields
        for place in range(number)
    ]
    return "".join(json.dumps(each) + "\n" for each in made)


def test_an_export_comes_back_under_another_name(served: Served, user: str, tmp_path: Path) -> None:
    with MemplaneSync(served.url, served.keys["supervisor"]) as client:
        client.remember("The user owns a piano.", user_id=user, category="event", importance=5)
        gone = client.remember("The user owns a boat.", user_id=user, category="event").id
        client.delete(gone)
    file = tmp_path / "ana.jsonl"
    assert served.run("export", user, "--out", str(file)).code == 0
    other = f"{user}-copy"
    told = served.run("import", str(file), "--user", other, "--json")
    assert (told.code, told.err) == (0, "")
    assert told.document["mode"] == "restore"
    assert set(told.document["outcomes"]) == {"restored", "skipped"}
    assert memories(served, other)["The user owns a piano."]["importance"] == 5
    assert "The user owns a boat." not in memories(served, other)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["ana.jsonl"]
    assert served.run("import", str(file)).out.endswith(" skipped\n")  # to whom it is of; all is there
    assert set(memories(served, user)) == {"The user owns a piano."}


def test_notes_become_memories(served: Served, user: str, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "memory").mkdir(parents=True)
    (folder / "MEMORY.md").write_text(NOTES)
    (folder / "memory" / "2025-05-06.md").write_text("# Goals\n- The user learns Greek.\n")
    (folder / "other.md").write_text("# Goals\n- The user is not read.\n")
    told = served.run("import", str(folder), "--user", user, "--json")
    assert told.code == 1
    assert told.document["outcomes"] == {"created": 7, "refused": 1, "left_out": 6}
    found = memories(served, user)
    seen = {content: (each["category"], each["tags"], each["event_time"]) for content, each in found.items()}
    assert seen == {
        "The user drinks tea. Without sugar.": ("preferences", [], None),
        "The user prefers trains.": ("preferences", [], "2025-07-01T00:00:00Z"),
        "The user likes jazz.": ("preferences", ["music"], None),
        "The user moved into a flat.": ("event", [], "2025-03-04T00:00:00Z"),
        "He bought a sofa.": ("event", [], "2025-03-04T00:00:00Z"),
        "The user learns Greek.": ("goals", [], "2025-05-06T00:00:00Z"),
    }
    refused = [json.loads(line) for line in Path(told.document["refused_file"]).read_text().splitlines()]
    named = [(each["file"], each["line"], each["code"]) for each in refused]
    assert [each for each in named if each[2] != "left_out"] == [("MEMORY.md", 27, "invalid_line")]
    again = served.run("import", str(folder), "--user", user, "--json").document["outcomes"]
    assert again == {"duplicate": 7, "refused": 1, "left_out": 6}
    assert set(memories(served, user)) == set(found)
    assert served.run("import", str(folder), "--user", user, "--category", "event").code == 0
    assert memories(served, user)["The user has a secret."]["category"] == "event"


PROSE = """---
title: left out
---
# Deployment

The service runs on two machines in Vienna.
Both machines are replaced every three years.

> The backups are kept for a month.

Rollback
--------

The release can be rolled back within an hour.

- The user approves each release.
lazily continued

```sh
make deploy
```

| a | b |
|---|---|
<!-- a note
to nobody -->
***
## Empty

# Empty too
"""


def of_agent(served: Served, agent: str, user: str) -> list[dict[str, object]]:
    with MemplaneSync(served.url, served.keys[agent]) as client:
        return [each.model_dump(mode="json") for each in client.list(user_id=user)]


def test_prose_is_kept_as_knowledge_and_each_line_is_accounted_for(served: Served, user: str, tmp_path: Path) -> None:
    """Lines with text are stored, merged, or named as left out; each once."""
    file = tmp_path / "MEMORY.md"
    file.write_text(PROSE)
    command = ("import", str(file), "--user", user, "--category", "event", "--json")
    told = served.run(*command)
    assert (told.code, told.err) == (0, "")
    found = of_agent(served, "researcher", user)
    assert {(each["content"], each["title"], each["category"]) for each in found} == {
        ("The service runs on two machines in Vienna. Both machines are replaced every three years.", "Deployment",
         "knowledge"),
        ("The backups are kept for a month.", "Deployment", "knowledge"),
        ("The release can be rolled back within an hour.", "Rollback", "knowledge"),
    }  # fmt: skip
    items = [each["content"] for each in of_agent(served, "supervisor", user)]
    assert items == ["The user approves each release. lazily continued"]
    lines = told.document["note_lines"]
    text = [number for number, line in enumerate(PROSE.splitlines(), 1) if line.strip()]
    assert lines == {"read": len(text), "stored": 9, "merged": 0, "left_out": len(text) - 9}
    report = [json.loads(line) for line in Path(told.document["refused_file"]).read_text().splitlines()]
    named = {each["line"]: each["detail"] for each in report}
    assert len(report) == lines["left_out"] == len(named)
    kept = {4, 6, 7, 9, 11, 12, 14, 16, 17}
    assert set(named) == set(text) - kept
    assert {each["file"] for each in report} == {"MEMORY.md"}
    assert {named[number] for number in (1, 2, 3)} == {"front matter"}
    assert {named[number] for number in (19, 20, 21)} == {"code"}
    assert {named[number] for number in (23, 24)} == {"a table"}
    assert {named[number] for number in (25, 26)} == {"a comment"}
    assert named[27] == "no words"
    assert {named[number] for number in (28, 30)} == {"a heading without text below it"}
    again = served.run(*command).document["note_lines"]
    assert again == {"read": len(text), "stored": 0, "merged": 9, "left_out": len(text) - 9}


def test_with_an_agent_named_its_allowlist_holds_for_prose(served: Served, user: str, tmp_path: Path) -> None:
    file = tmp_path / "MEMORY.md"
    file.write_text("# Notes\n\nThe service runs in Vienna.\n")
    told = served.run("import", str(file), "--user", user, "--agent", "supervisor", "--json")
    assert (told.code, told.document["note_lines"]) == (1, {"read": 2, "stored": 0, "merged": 0, "left_out": 2})
    (line,) = [json.loads(line) for line in Path(told.document["refused_file"]).read_text().splitlines()]
    assert (line["line"], line["lines"], line["code"]) == (3, 2, "category_forbidden")
    researcher = served.run("import", str(file), "--user", user, "--agent", "researcher", "--json")  # the control
    assert (researcher.code, researcher.document["note_lines"]["stored"]) == (0, 2)


def test_refused_lines_stand_in_a_file_with_their_numbers(served: Served, user: str, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    good = lines_of(2).splitlines()
    file.write_bytes(
        b"\n".join([
            good[0].encode(), b"{broken", b"\xff\xfe", b"", b'{"record": "diary"}', b"x" * 5_000_000, good[1].encode(),
            b'{"record": "memory", "category": "event", "content": "  "}',
        ])
    )  # fmt: skip
    told = served.run("import", str(file), "--user", user)
    assert told.code == 1
    assert f"{file}.refused.jsonl" in told.out
    refused = [json.loads(line) for line in Path(f"{file}.refused.jsonl").read_text().splitlines()]
    assert [(each["line"], each["code"]) for each in refused] == [
        (2, "invalid_request"), (3, "invalid_line"), (5, "invalid_request"), (6, "invalid_line"),
        (8, "invalid_text"),
    ]  # fmt: skip
    assert all(each["detail"] for each in refused)
    assert len(memories(served, user)) == 2


def test_who_may_not_restore_is_told_and_nothing_is_written(served: Served, user: str, tmp_path: Path) -> None:
    file = tmp_path / "ana.jsonl"
    assert served.run("export", user, "--out", str(file)).code == 0
    told = served.run("import", str(file), "--key", served.keys["supervisor"])
    assert (told.code, "scope_forbidden" in told.err) == (1, True)
    assert served.run("import", str(file), "--add", "--agent", "supervisor").code == 0
    lines = tmp_path / "lines.jsonl"
    lines.write_text(lines_of(1))
    assert served.run("import", str(lines)).code == 2
    assert served.run("import", str(tmp_path / "none.jsonl"), "--user", user).code == 2
    (tmp_path / "empty").mkdir()
    assert served.run("import", str(tmp_path / "empty"), "--user", user).code == 2


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["--add", "--restore"])
def test_killed_at_any_moment_it_goes_on_and_nothing_is_lost_or_doubled(
    served: Served, user: str, tmp_path: Path, mode: str
) -> None:
    file = tmp_path / "lines.jsonl"
    turn = json.dumps({"record": "turn", "thread_id": "t", "role": "user", "text": "Hello {n}."})
    number = 1_500
    made = [
        line for n, line in enumerate(lines_of(number).splitlines()) for line in (line, turn.replace("{n}", str(n)))
    ]
    made[7::500] = ["{broken"] * len(made[7::500])
    file.write_text("\n".join(made))
    command = ("import", str(file), "--user", user, mode, "--url", served.url, "--data", str(served.data))
    progress = Path(f"{file}.import-progress.json")
    kills, seen = 0, -1
    while kills < 3:
        process = Forked(*command, environment=clean_environment(), errors=tmp_path / "err")
        _came_further(process, progress, seen)
        process.kill()
        process.wait()
        if not progress.exists():
            break
        kills, seen = kills + 1, max(_done(progress), seen)
    assert kills == 3, "it ended before it was killed"
    told = served.run("import", str(file), "--user", user, mode, "--json")
    assert told.code == 1
    assert told.document["lines"] == len(made)
    assert sum(told.document["outcomes"].values()) == len(made)
    refused = [json.loads(line)["line"] for line in Path(f"{file}.refused.jsonl").read_text().splitlines()]
    assert refused == list(range(8, len(made) + 1, 500))
    written = {json.loads(line)["content"] for line in made if '"memory"' in line}
    found = memories(served, user)
    assert set(found) == written
    assert {each["mention_count"] for each in found.values()} == {1}
    assert said(served, user) == [json.loads(line)["text"] for line in made if '"turn"' in line]


def turns_of(number: int) -> list[str]:
    return [
        json.dumps({"record": "turn", "thread_id": "t", "role": "user", "text": f"Hello {n}."}) for n in range(number)
    ]


def said(served: Served, user: str) -> list[str]:
    """What was said to a user, in the order of the threads."""
    lines = served.run("export", user).out.split("\n")
    return [json.loads(line)["text"] for line in lines if line.startswith('{"record":"turn"')]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["--add", "--restore"])
@pytest.mark.parametrize("storage", ["sqlite", "postgres"])
def test_a_server_that_is_killed_has_taken_whole_batches(user: str, tmp_path: Path, mode: str, storage: str) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text("\n".join(map("\n".join, zip(lines_of(1_250).splitlines(), turns_of(1_250), strict=True))))
    command = ["import", str(file), "--user", user, mode]
    arguments = ("--port", "0", "--storage", storage)
    progress = Path(f"{file}.import-progress.json")
    with reachable_folder() as folder:
        with serving(folder, *arguments) as first:
            environment = clean_environment({"MEMPLANE_URL": first.url, "MEMPLANE_DATA": str(first.data)})
            process = Forked(*command, environment=environment, errors=tmp_path / "err")
            _came_further(process, progress, 0)
            first.process.kill()
            assert process.wait(PATIENCE) == 4
            assert 0 < _done(progress) < 2_500
        with serving(folder, *arguments) as second:
            told = second.run(*command, "--json")
            assert (told.code, told.err) == (0, "")
            assert told.document["lines"] == sum(told.document["outcomes"].values()) == 2_500
            found = memories(second, user)
            assert len(found) == 1_250
            assert {each["mention_count"] for each in found.values()} == {1}
            assert said(second, user) == [f"Hello {n}." for n in range(1_250)]
            assert not progress.exists()


@pytest.mark.slow
def test_a_batch_that_fails_in_the_middle_is_followed_by_what_was_sent_ahead(user: str, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    made = turns_of(3_000)
    long = "and so on " * 20
    made[1_000:1_400] = [line.replace(".", f" {long}.") for line in made[1_000:1_400]]
    file.write_text("\n".join(made))
    with (
        reachable_folder() as folder,
        serving(
            folder, "--port", "0", "--storage", "sqlite", environment={"MEMPLANE_MAX_BODY_BYTES": "90000"}
        ) as served,
    ):
        told = served.run("import", str(file), "--user", user, "--json")
        assert (told.code, told.err) == (0, "")
        assert told.document["outcomes"] == {"created": 3_000}
        assert said(served, user) == [json.loads(line)["text"].strip() for line in made]
        again = served.run("import", str(file), "--user", user, "--json")  # the control: another run is another one
        assert again.document["outcomes"] == {"created": 3_000}


def _came_further(process: Forked, progress: Path, than: int) -> None:
    """Wait until a command has done more lines than so many, or has ended."""
    until(lambda: process.poll() is not None or _done(progress) > than, "a batch more", PATIENCE, pause=0.001)


def _done(progress: Path) -> int:
    try:
        return int(json.loads(progress.read_text())["done"])
    except FileNotFoundError:
        return -1


def test_another_file_under_the_same_name_is_noticed(served: Served, user: str, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text(lines_of(3))
    Path(f"{file}.import-progress.json").write_text(
        json.dumps({"about": {"fingerprint": "0"}, "run": "r", "done": 2, "outcomes": {}, "refused_bytes": 0})
    )
    told = served.run("import", str(file), "--user", user)
    assert (told.code, "--restart" in told.err) == (2, True)
    assert memories(served, user) == {}
    assert served.run("import", str(file), "--user", user, "--restart").code == 0
    assert len(memories(served, user)) == 3


def test_from_python(served: Served, user: str) -> None:
    async def taken() -> list[str]:
        async with Memplane(served.url, served.keys["supervisor"]) as client:
            sent = [await client.import_lines(user, lines_of(2).splitlines(), once="batch-1") for _ in range(2)]
            return [outcome for answer in sent for outcome in answer.outcomes]

    import asyncio  # noqa: PLC0415 - for this test alone

    assert asyncio.run(taken()) == ["created"] * 4
    with MemplaneSync(served.url, served.keys["supervisor"]) as client:
        answer = client.import_lines(user, ["{broken", *lines_of(1).splitlines()])
    assert (answer.outcomes, answer.refused[0].line) == (["refused", "duplicate"], 0)
