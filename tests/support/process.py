"""`memplane serve` as a process of its own, with its database, to be killed."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import httpx2

from support.commands import Forked, clean_environment

COMMAND = (sys.executable, "-m", "memplane.entrypoints.cli")
PATIENCE = 60.0
"""Seconds after which something that never happens has failed."""


class ServeProcess:
    """A server on a data folder.

    Args:
        folder: the data folder.
        options: of `memplane serve`.
        command: what to start in place of the command line of this tree, which is forked.
        cwd: where it is started.
        environment: its settings.

    Attributes:
        folder: the data folder.
        url: where it listens.
        seconds: how long it took to be ready.
    """

    def __init__(
        self,
        folder: Path,
        *options: str,
        command: Sequence[str] | None = None,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self._log = folder.with_name(f"{folder.name}.log")
        begun = time.monotonic()
        arguments = ("serve", "--data", str(folder), "--port", "0", *options)
        settings = clean_environment() | {"MEMPLANE_RATE_PER_SECOND": "0"} | dict(environment or {})
        place = cwd or folder.parent
        self._process: Forked | subprocess.Popen[str]
        if command is None:
            self._process = Forked(*arguments, environment=settings, errors=self._log, cwd=place)
        else:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    [*command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, cwd=place,
                    env=settings, text=True,
                )  # fmt: skip
        try:
            self.url = self._told()
        except BaseException:
            self.kill()
            raise
        self.seconds = time.monotonic() - begun

    @property
    def keys(self) -> dict[str, str]:
        """The credentials that it made, by agent."""
        found: dict[str, str] = json.loads((self.folder / "keys.json").read_text())["agents"]
        return found

    @property
    def admin(self) -> str:
        """The administrator's credential that it made."""
        return str(json.loads((self.folder / "keys.json").read_text())["admin"])

    def client(self) -> httpx2.Client:
        """A client with the supervisor's credential, which waits longer than the server does."""
        headers = {"Authorization": f"Bearer {self.keys['supervisor']}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False, verify=False)

    def kill(self) -> None:
        """End the server and every process of its PostgreSQL with SIGKILL, PostgreSQL first: it writes nothing more."""
        server = [self._process.pid] if self._process.poll() is None else []
        for pid in (*postgres_pids(self.folder), *server):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._close()

    def stop(self) -> int:
        """End the server as an operator does, and get its exit code."""
        self.tell_to_stop()
        return self.wait()

    def tell_to_stop(self) -> None:
        """Send what an operator's tools send, and wait for nothing."""
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait until the server has ended, and get its exit code."""
        self._process.wait(PATIENCE)
        return self._close()

    def runs(self) -> bool:
        """Whether the server has not ended."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    @property
    def log(self) -> str:
        """What it has written to standard error."""
        return self._log.read_text()

    def _close(self) -> int:
        code = self._process.wait(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code

    def _told(self) -> str:
        """The address in the line that says that it is ready."""
        output = self._process.stdout
        assert output is not None
        readable, _, _ = select.select([output], [], [], PATIENCE)
        line = output.readline() if readable else ""
        if not line.startswith("ready http://"):
            raise RuntimeError(f"the server did not start: {line!r}\n{self._log.read_text()}")
        return line.split()[1]


def postgres_pids(folder: Path) -> list[int]:
    """The main process of the PostgreSQL in a data folder, then its children; empty when none runs."""
    cluster = folder / "pg"
    with suppress(OSError, IndexError, ValueError):
        postmaster = int((cluster / "postmaster.pid").read_text().split("\n", 1)[0])
        # the file of a killed one stays, and its number may be another program's by now
        if os.fsencode(cluster.resolve()) in Path(f"/proc/{postmaster}/cmdline").read_bytes():
            return [postmaster, *children(postmaster)]
    return []


def children(parent: int) -> list[int]:
    """Processes that a process started, from Linux's own list of them."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry.name))
    return found
