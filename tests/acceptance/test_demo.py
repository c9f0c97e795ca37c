"""`memplane demo` tells a true story, and would notice if it were not."""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.commands import COMMAND, PATIENCE, Result, clean_environment, reachable_folder
from memplane.adapters.policy import load_policy, shipped_policies
from memplane.domain.memory.memory import MemoryText
from memplane.domain.memory.writing import constrain
from memplane.entrypoints.cli.demo.story import load


@pytest.fixture
def temporary() -> Iterator[Path]:
    """Where the demo makes its folder, so that what it leaves behind is seen."""
    with reachable_folder() as folder:
        yield folder


def demo(temporary: Path, *arguments: str) -> Result:
    environment = clean_environment(
        # an operator's own settings, which the demo's server must not follow
        {
            "TMPDIR": str(temporary),
            "MEMPLANE_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none",
            "MEMPLANE_PORT": "1",
        }
    )
    done = subprocess.run(
        [*COMMAND, "demo", *arguments], check=False, capture_output=True, text=True, timeout=PATIENCE, env=environment
    )
    return Result(done.returncode, done.stdout, done.stderr)


def test_the_story_is_told_and_true(temporary: Path) -> None:
    told = demo(temporary)
    assert (told.code, told.err) == (0, "")
    assert "403 category_forbidden" in told.out
    assert "Memory updates since rev" in told.out
    assert "✗" not in told.out
    assert told.out.count("✓") >= 20
    assert list(temporary.iterdir()) == []


def test_a_story_that_is_not_true_fails(temporary: Path) -> None:
    """The control: under a policy that lets the planner read preferences, the planner is not refused."""
    policies = shutil.copytree(shipped_policies(), temporary / "policies")
    path = policies / "categories.yaml"
    path.write_text(path.read_text().replace("planner: [goals,", "planner: [goals, preferences,"))
    result = demo(temporary, "--policies", str(policies), "--json")
    assert (result.code, result.err) == (1, "")
    summary = result.document
    assert (summary["ok"], summary["untrue"]) == (False, ["the planner was refused with 403 category_forbidden"])
    remembered, views = summary["scenes"]["remembered"], summary["scenes"]["five_views"]
    assert remembered["turns"] >= 60
    assert remembered["memories"] >= 20
    assert remembered["threads"] >= 3
    assert len(remembered["users"]) == 2
    assert len({json.dumps(views[agent]) for agent in load_policy(policies).allowlists}) == 5
    assert summary["scenes"]["another_user"]["foreign"] == 0
    users = sum(turn.role == "user" for turn in load().turns)
    asked = summary["scenes"]["on_demand"]
    assert (asked["turns"], asked["recalled"], asked["queries"], asked["share"]) == (users, 1, 2, 1 / users)


def test_an_interrupted_story_leaves_nothing_behind(temporary: Path) -> None:
    environment = clean_environment({"TMPDIR": str(temporary)})
    process = subprocess.Popen(
        [*COMMAND, "demo"], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + PATIENCE
    while not list(temporary.glob("*/data/keys.json")):  # its server and PostgreSQL run
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE)
    assert (process.returncode, told) == (130, "")
    assert list(temporary.iterdir()) == []


def test_the_memories_obey_the_writing_rules() -> None:
    rules = load_policy(shipped_policies()).writing
    story = load()
    assert len(story.memories) >= 20
    assert len({memory.category for memory in story.memories}) >= 8
    contents = [(m.content, m.type, m.steps) for m in (*story.memories, story.addition)]
    for content, kind, steps in contents:
        text = MemoryText(content=content, steps=tuple(steps))
        assert constrain(text, kind, rules).content == content
        assert len(content) <= 280
    change = MemoryText(content=story.change.content)
    assert constrain(change, story.memories[0].type, rules).content == story.change.content
