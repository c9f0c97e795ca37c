"""The command line as real processes: run to their end, or serving until told to stop."""

import json
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from support.commands import Forked, Result, clean_environment, run

PATIENCE = 120.0
"""Seconds after which something that never happens has failed."""

COMMAND = [sys.executable, "-m", "memplane.entrypoints.cli"]
__all__ = ["Result", "clean_environment", "run"]


@dataclass(frozen=True)
class Served:
    """A server that runs, and its data folder."""

    url: str
    data: Path
    process: Forked

    @property
    def keys(self) -> dict[str, str]:
        return dict(json.loads((self.data / "keys.json").read_text())["agents"])

    def run(self, *arguments: str, stdin: str | None = None, terminal: bool = False) -> Result:
        """Run a command on this server and its data folder."""
        environment = {"MEMPLANE_URL": self.url, "MEMPLANE_DATA": str(self.data)}
        return run(*arguments, stdin=stdin, environment=environment, terminal=terminal)


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """A folder that PostgreSQL's own user can pass through, as pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="memplane-test-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def start_embedded(folder: Path) -> EmbeddedPostgres:
    """The embedded PostgreSQL in a folder, without waiting for the disk."""
    return EmbeddedPostgres.start(folder, durable=False)


@contextmanager
def serving(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Served]:
    """`memplane serve` in a data folder, from its ready line until the end."""
    command = ("serve", "--data", str(folder / "data"), *arguments)
    log = folder / "served.log"
    process = Forked(*command, environment=clean_environment(environment), errors=log)
    try:
        line = first_line(process)
        assert line.startswith("ready http://"), log.read_text()
        yield Served(line.removeprefix("ready ").strip(), folder / "data", process)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def first_line(process: "Forked | subprocess.Popen[str]") -> str:
    """The first line that a process prints."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], PATIENCE)[0], "nothing was printed"
    return process.stdout.readline()
