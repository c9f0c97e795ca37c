"""A second server on one embedded folder refuses to start, and names who has it; commands and a next server work."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from integration.commands import reachable_folder
from support.commands import run
from support.process import ServeProcess


@pytest.fixture
def folder() -> Iterator[Path]:
    with reachable_folder() as made:
        yield made / "data"


def ready(server: ServeProcess) -> int:
    return httpx2.get(f"{server.url}/readyz", timeout=30, trust_env=False, verify=False).status_code


def test_it_names_the_first_one_and_its_folder(folder: Path) -> None:
    first = ServeProcess(folder)
    try:
        refused = run("serve", "--data", str(folder), "--port", "0")
        assert refused.code != 0
        assert f"the process {first.pid} runs the database in {folder.resolve()}" in refused.err
        assert "Traceback" not in refused.err
        assert ready(first) == 200
        attached = run("migrate", "--data", str(folder))
        assert attached.code == 0, attached.err  # commands use the first one's
    finally:
        first.stop()
    second = ServeProcess(folder)  # the control: the folder is free again
    try:
        assert ready(second) == 200
    finally:
        second.stop()


def test_a_killed_one_is_no_obstacle_nor_is_its_number(folder: Path) -> None:
    first = ServeProcess(folder)
    first.kill()
    lock = folder / "postgres.owner.lock"
    assert json.loads(lock.read_text()) == first.pid
    lock.write_text(str(os.getpid()))  # a process that lives, and has nothing to do with it
    second = ServeProcess(folder)
    try:
        assert ready(second) == 200
    finally:
        second.stop()


def test_one_that_ends_is_waited_for(folder: Path) -> None:
    first = ServeProcess(folder)
    first.tell_to_stop()
    second = ServeProcess(folder)
    try:
        assert ready(second) == 200
    finally:
        first.wait()
        second.stop()
