"""The layout of the source tree: what is a package, what must never become one, and how large things grow."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLATFORM = ROOT / "platform"
PACKAGE = PLATFORM / "memplane"
LAYERS = {"domain", "application", "contracts", "client", "adapters", "entrypoints"}
MODULES = {"__init__", "bootstrap", "settings"}
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers", "data", "lib", "shared"}
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60

# Prints where a module comes from when a folder stands first on the path.
ORIGIN = """
import importlib, sys
name, folder = sys.argv[1:]
sys.path.insert(0, folder)
print(importlib.import_module(name).__file__)
"""


def sources(folder: Path = PLATFORM) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts)


def origin(name: str, folder: Path) -> Path:
    command = [sys.executable, "-c", ORIGIN, name, str(folder)]
    # what measures coverage imports libraries before the program begins
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    told = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return Path(told.stdout.strip())


def test_the_folders_named_like_libraries_are_no_packages() -> None:
    assert not (PLATFORM / "__init__.py").exists()
    assert not list((ROOT / "alembic").rglob("__init__.py"))


@pytest.mark.parametrize("name", ["platform", "alembic"])
def test_the_library_wins_with_the_root_first_on_the_path(name: str) -> None:
    assert not origin(name, ROOT).is_relative_to(ROOT / name)


@pytest.mark.parametrize("name", ["platform", "alembic"])
def test_an_init_file_in_the_folder_would_hide_the_library(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    assert origin(name, tmp_path).is_relative_to(tmp_path)


def test_there_is_no_package_beside_the_layers() -> None:
    assert {path.name for path in PLATFORM.iterdir() if path.name != "__pycache__"} == {"memplane"}
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(sources(path))}
    assert folders == LAYERS
    assert {path.stem for path in PACKAGE.glob("*.py")} <= MODULES | {"__main__"}


def test_every_folder_of_the_package_is_a_package_with_a_word_for_itself() -> None:
    for path in sources(PACKAGE):
        assert (path.parent / "__init__.py").exists(), path
        assert path.stem not in VAGUE, path
        assert path.parent.name not in VAGUE, path


def test_no_file_is_too_long_to_read_in_one_sitting() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in sources()}
    assert {path: length for path, length in lengths.items() if length > MAX_FILE_LINES} == {}


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_function_is_longer_than_a_screen() -> None:
    lengths = {
        f"{path.relative_to(ROOT)}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in sources()
        for node in functions(path)
    }
    assert len(lengths) > 100  # the search does find functions
    assert {name: length for name, length in lengths.items() if length > MAX_FUNCTION_LINES} == {}


def test_every_folder_of_tests_is_run_by_ci_once() -> None:
    """`make check` runs some, and `.ci/run` names the others."""
    checked = re.search(r"^check:.*?\n\n", (ROOT / "Makefile").read_text(), re.DOTALL | re.MULTILINE)
    assert checked is not None
    named = re.findall(r"tests/(\w+)", checked[0] + (ROOT / ".ci" / "run").read_text())
    there = [path.name for path in (ROOT / "tests").iterdir() if any(path.rglob("test_*.py"))]
    assert sorted(named) == sorted(there)
