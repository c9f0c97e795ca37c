"""The command line as real processes: run to their end, or serving until told to stop."""

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 120.0
"""Seconds after which something that never happens has failed."""

COMMAND = [sys.executable, "-m", "memplane.entrypoints.cli"]


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:  # noqa: ANN401 - any document there is
        """What `--json` printed: the whole of standard output."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Served:
    """A server that runs, and its data folder."""

    url: str
    data: Path
    process: "subprocess.Popen[str]"

    @property
    def keys(self) -> dict[str, str]:
        return dict(json.loads((self.data / "keys.json").read_text())["agents"])

    def run(self, *arguments: str, stdin: str | None = None) -> Result:
        """Run a command on this server and its data folder."""
        return run(*arguments, stdin=stdin, environment={"MEMPLANE_URL": self.url, "MEMPLANE_DATA": str(self.data)})


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This environment without the operator's settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MEMPLANE_")} | dict(extra or {})


def run(*arguments: str, stdin: str | None = None, environment: Mapping[str, str] | None = None) -> Result:
    """Run a command to its end."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        check=False, capture_output=True, text=True, timeout=PATIENCE, input=stdin or "",
        env=clean_environment(environment),
    )  # fmt: skip
    return Result(done.returncode, done.stdout, done.stderr)


@contextmanager
def reachable_folder() -> Iterator[Path]:
    """A folder that PostgreSQL's own user can pass through, as pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="memplane-test-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[Served]:
    """`memplane serve` in a data folder, from its ready line until the end."""
    command = [*COMMAND, "serve", "--data", str(folder / "data"), *arguments]
    process = subprocess.Popen(
        command, env=clean_environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            line = first_line(process)
            assert line.startswith("ready http://"), line
            yield Served(line.removeprefix("ready ").strip(), folder / "data", process)
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)


def first_line(process: "subprocess.Popen[str]") -> str:
    """The first line that a process prints."""
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], PATIENCE)[0], "nothing was printed"
    return process.stdout.readline()
