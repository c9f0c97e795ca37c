"""The example runs offline, in two processes on one file, and what it tells is true."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def played(data: Path, *more: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    environment["PYTHONPATH"] = str(ROOT / "platform")
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "supervisor"), "--data", str(data), *more]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_supervisor_refuses_asks_remembers_and_tells_what_changed(tmp_path: Path) -> None:
    first: dict[str, Any] = json.loads(played(tmp_path, "--act", "1", "--json"))
    assert [(agent, tool) for agent, tool, _ in first["refused"]] == [("stylist", "memory_query")]
    assert "category_forbidden" in first["refused"][0][2]
    assert first["before consent"] == []  # nothing is kept before the user has agreed
    assert first["consent"] == ["approved"]
    assert first["profile"] == ["[profile] The user's preferred name is Annie."]
    assert not any("29 May" in header for header in first["deltas"])
    assert any("The bee app ships on 15 May." in header for header in first["deltas"])
    second: dict[str, Any] = json.loads(played(tmp_path, "--act", "2", "--json"))
    assert second["remembered messages"] > 10
    assert "The bee app ships on 29 May." in second["deltas"][0]
    (said,) = second["said"]
    assert "changed" in said
    assert "Annie, the bee app ships on 29 May." in said


def test_on_a_file_of_its_own_nothing_is_remembered(tmp_path: Path) -> None:
    """The control: the second act alone has no first one to remember; its planner has no date to put right."""
    with pytest.raises(AssertionError, match="IndexError"):
        played(tmp_path, "--act", "2", "--json")


@pytest.mark.slow
def test_the_story_is_told_in_words(tmp_path: Path) -> None:
    told = played(tmp_path)
    for words in ("ACT 1.", "refused (category_forbidden)", "may I remember this?", "ACT 2.", "Memory updates since"):
        assert words in told
