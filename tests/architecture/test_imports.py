"""The import rules are configured, and a broken one is found."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLANTED = {
    "a rule that imports an adapter": ("domain/planted.py", "import memplane.adapters.sql.schema.tables"),
    "a use case that imports the wiring": ("application/planted.py", "import memplane.bootstrap"),
    "a use case that imports a driver": ("application/planted.py", "import psycopg"),
    "a rule that looks at the system": ("domain/planted.py", "import os"),
    "an entrypoint that imports another": ("entrypoints/http/planted.py", "import memplane.entrypoints.cli.main"),
    "an adapter that imports an entrypoint": ("adapters/sql/planted.py", "import memplane.entrypoints.cli.main"),
    "a package that no layer knows": ("utils/__init__.py", ""),
}


def lint(copy: Path) -> subprocess.CompletedProcess[str]:
    """import-linter over a copy of the source tree."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "platform")}
    program = "import sys; from importlinter.cli import lint_imports_command as main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache"],
        check=False, capture_output=True, text=True, cwd=copy, env=environment,
    )  # fmt: skip


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "platform", tmp_path / "platform", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_layers_are_complete_and_in_order() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract for contract in contracts if contract["type"] == "layers"]
    assert layers["exhaustive"] is True
    assert layers["layers"] == [
        "entrypoints", "bootstrap", "adapters | client", "application | contracts", "settings", "domain",
    ]  # fmt: skip
    assert {"independence", "forbidden"} <= {contract["type"] for contract in contracts}


def test_the_imports_keep_the_rules(copy: Path) -> None:
    result = lint(copy)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.parametrize("violation", PLANTED)
def test_a_planted_violation_is_found(copy: Path, violation: str) -> None:
    path, text = PLANTED[violation]
    planted = copy / "platform" / "memplane" / path
    planted.parent.mkdir(exist_ok=True)
    planted.write_text(f'"""Planted."""\n\n{text}\n')
    result = lint(copy)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "BROKEN" in result.stdout
