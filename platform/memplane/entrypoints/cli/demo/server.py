"""A server for the length of a story: its own folder, a free port, gone afterwards."""

import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from memplane.adapters.files.key_file import KeyFile
from memplane.domain.errors import EmbeddedPostgresError
from memplane.entrypoints.cli.admin.signals import Interrupts

START_SECONDS = 60
STOP_SECONDS = 30
READY = "ready "


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that serves."""

    url: str
    data: Path
    keys: KeyFile


@contextmanager
def throwaway_server(policies: Path | None, interrupts: Interrupts) -> Iterator[RunningServer]:
    """Run a server that nothing else knows of, whatever the operator's own settings are.

    Args:
        policies: folder of the policy files; the shipped ones, unless said.
        interrupts: signals, of which none may fall between the server's start and the promise to end it.

    Raises:
        EmbeddedPostgresError: it did not start; the detail has its own words.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMPLANE_")}
    if policies is not None:
        environment["MEMPLANE_POLICIES"] = str(policies.absolute())
    with ExitStack() as cleanup:
        with interrupts.kept_back():
            folder = Path(tempfile.mkdtemp(prefix="memplane-demo-"))
            cleanup.callback(_remove, folder)
            folder.chmod(0o711)  # for root, PostgreSQL runs as another user, who must pass through
            data, log = folder / "data", folder / "server.log"
            process = cleanup.enter_context(_started(data, environment, log))
        url = _ready(process, log)
        keys = KeyFile.read(data)
        if keys is None:
            raise EmbeddedPostgresError("the demo's server made no keys")
        yield RunningServer(url, data, keys)


def _remove(folder: Path) -> None:
    """Remove the folder, also when a PostgreSQL whose owner had to be killed is still ending in it."""
    deadline = time.monotonic() + STOP_SECONDS
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)
    if folder.exists():
        shutil.rmtree(folder)


@contextmanager
def _started(data: Path, environment: dict[str, str], log: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "memplane.entrypoints.cli", "serve", "--data", str(data), "--port", "0"]
    with log.open("w") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter, no shell
            command, env=environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            start_new_session=True,  # Ctrl-C is for the story-teller, who ends the server in its turn
        )  # fmt: skip
    with process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _ready(process: "subprocess.Popen[str]", log: Path) -> str:
    """The server's URL, once it serves."""
    output = process.stdout
    line = ""
    if output is not None and select.select([output], [], [], START_SECONDS)[0]:
        line = output.readline().strip()
    if not line.startswith(READY):
        words = " ".join(log.read_text(errors="replace").split()[-60:])
        raise EmbeddedPostgresError(f"the demo's server did not start: {words or f'no answer in {START_SECONDS} s'}")
    return line.removeprefix(READY)
