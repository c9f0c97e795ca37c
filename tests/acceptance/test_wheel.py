"""The wheel stands by itself: installed elsewhere it serves, with the migrations and policies that lie inside it."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from support.process import ServeProcess

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="runs the embedded PostgreSQL")]

# Prints where the installed package and what it carries lie.
ORIGINS = """
import json, memplane
from memplane.adapters.policy import shipped_policies
from memplane.adapters.sql.schema.revisions import scripts_folder
print(json.dumps([str(memplane.__file__), str(scripts_folder()), str(shipped_policies())]))
"""


def files(folder: Path) -> set[str]:
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix() for path in found}


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    """A folder outside the repository that PostgreSQL's own user can pass through."""
    folder = Path(tempfile.mkdtemp(prefix="memplane-wheel-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def wheel(base: Path) -> Path:
    """The wheel, built offline from the sources as they are."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(base / "dist"), str(ROOT)], check=True, cwd=base)
    (built,) = (base / "dist").glob("memplane-*.whl")
    return built


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel."""

    folder: Path

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    @property
    def packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found


@pytest.fixture
def installed(base: Path, wheel: Path, tmp_path: Path) -> Iterator[Installed]:
    """A new environment with the wheel, whose requirements are borrowed from this one: tests need no network.

    Only the folder of this environment's packages is lent, so the link to the sources that lies in it has no effect.
    """
    made = Installed(base / tmp_path.name)
    venv.create(made.folder, with_pip=False)
    (made.packages / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    command = [sys.executable, "-m", "pip", "--python", str(made.programs / "python"), "install", "--quiet"]
    subprocess.run([*command, "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)
    yield made
    shutil.rmtree(made.folder)


def test_the_wheel_holds_every_file_of_the_package_and_what_it_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {f"memplane/{name}" for name in files(ROOT / "platform" / "memplane")}
    for folder in ("alembic", "policies"):
        expected |= {f"memplane/_data/{folder}/{name}" for name in files(ROOT / folder)}
    assert held == expected
    assert {"memplane/_data/alembic/env.py", "memplane/_data/policies/categories.yaml"} <= held


def test_it_serves_from_elsewhere(base: Path, installed: Installed) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    python = str(installed.programs / "python")
    told = subprocess.run([python, "-c", ORIGINS], check=True, capture_output=True, cwd=base, env=environment)
    for origin in json.loads(told.stdout):
        assert Path(origin).is_relative_to(installed.packages / "memplane")

    server = ServeProcess(base / "data", command=[str(installed.programs / "memplane")], cwd=base)
    try:
        headers = {"Authorization": f"Bearer {server.keys['supervisor']}"}
        with httpx2.Client(base_url=server.url, headers=headers, trust_env=False) as client:
            memory = {"user_id": "ana", "category": "tasks", "content": "The release is on Friday."}
            assert client.post("/v1/memories", json=memory).status_code == 201
            answer = client.post("/v1/memory/query", json={"query": "When is the release?"}).json()
            assert "Friday" in json.dumps(answer)
    finally:
        assert server.stop() == 0


@pytest.mark.parametrize("missing", ["alembic", "policies"])
def test_without_what_it_carries_it_would_not(base: Path, installed: Installed, missing: str) -> None:
    shutil.rmtree(installed.packages / "memplane" / "_data" / missing)
    with pytest.raises(RuntimeError, match="did not start"):
        ServeProcess(base / f"without-{missing}", command=[str(installed.programs / "memplane")], cwd=base).kill()
