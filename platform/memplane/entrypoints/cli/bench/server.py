"""A throw-away server to measure, and a lean connection to it."""

import http.client
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

READY_SECONDS = 120
STOP_SECONDS = 30
ATTEMPTS = 20
IDLE_SECONDS = 2.0
AGAIN = (429, 503)


class BenchServerFailed(Exception):
    """The server did not start, or refused a request that it should have served."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server.

    Attributes:
        url: where it listens.
        data: its data folder, with its embedded PostgreSQL or its SQLite file.
        keys: credentials by agent.
        started_in: seconds from the start of the process to its word that it is ready.
    """

    url: str
    data: Path
    keys: Mapping[str, str]
    started_in: float

    def connect(self, agent: str) -> "BenchConnection":
        """A connection that speaks as an agent."""
        return BenchConnection(self.url, self.keys[agent])


@contextmanager
def throwaway_server(
    policies: Path | None = None, storage: str = "postgres", settings: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Start a server on a new data folder and a free port of the loopback; end it and remove the folder after.

    Args:
        policies: folder of the policy files; the shipped ones without it. The operator's own settings do not count.
        storage: ``postgres`` or ``sqlite``.
        settings: of the server, as environment variables.

    Raises:
        ServerFailed: it did not become ready.
    """
    folder = Path(tempfile.mkdtemp(prefix="memplane-bench-"))
    folder.chmod(0o711)  # PostgreSQL's own user must be able to pass through
    try:
        with running_server(folder / "data", policies, storage, settings) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_server(
    data: Path, policies: Path | None = None, storage: str = "postgres", settings: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Start a server on a data folder and a free port of the loopback; end it after, and leave the folder.

    Args:
        data: the folder.
        policies: folder of the policy files.
        storage: ``postgres`` or ``sqlite``.
        settings: of the server, as environment variables; the operator's own do not count.

    Raises:
        ServerFailed: it did not become ready.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMPLANE_")}
    environment["MEMPLANE_RATE_PER_SECOND"] = "0"  # one key asks as fast as it can
    environment |= settings or {}
    if policies is not None:
        environment["MEMPLANE_POLICIES"] = str(policies.resolve())
    command = [sys.executable, "-m", "memplane.entrypoints.cli", "serve", "--storage", storage]
    command += ["--data", str(data), "--port", "0"]
    log_file = data.with_name("server.log")
    started = time.perf_counter()
    with log_file.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - this program itself
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=environment, text=True
        )
    try:
        url = _ready(process, log_file)
        started_in = time.perf_counter() - started
        keys = json.loads((data / "keys.json").read_text(encoding="utf-8"))["agents"]
        yield Server(url, data, keys, started_in)
    finally:
        _end(process)


def _ready(process: "subprocess.Popen[str]", log: Path) -> str:
    deadline = time.monotonic() + READY_SECONDS
    while process.stdout is not None and (left := deadline - time.monotonic()) > 0:
        if not select.select([process.stdout], [], [], left)[0]:
            break
        line = process.stdout.readline()
        if not line:
            break
        if line.startswith("ready "):
            return line.split()[1]
    tail = log.read_text(encoding="utf-8", errors="replace")[-2000:].strip()
    raise BenchServerFailed(f"the server did not become ready within {READY_SECONDS} s{': ' + tail if tail else ''}")


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


class BenchConnection:
    """One keep-alive connection that speaks as one key; for one thread at a time.

    The standard library's client, because a richer one takes a millisecond of its own, which would be counted as the
    server's.
    """

    def __init__(self, url: str, key: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
        self._used = time.monotonic()
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def post(self, path: str, body: object) -> bytes:
        """Send a body as JSON; the answer's bytes."""
        return self.send("POST", path, json.dumps(body).encode())

    def send(self, method: str, path: str, payload: bytes | None = None) -> bytes:
        """Send a request, again while the server asks to try later; the answer's bytes.

        Raises:
            ServerFailed: it was refused.
        """
        if time.monotonic() - self._used > IDLE_SECONDS:
            self._connection.close()  # the server may have, too; the next request opens it again
        for _ in range(ATTEMPTS):
            self._used = time.monotonic()
            self._connection.request(method, path, payload, self._headers)
            answer = self._connection.getresponse()
            content = answer.read()
            if answer.status < 300:
                return content
            if answer.status not in AGAIN:
                break
            time.sleep(float(answer.headers.get("Retry-After") or 0.1))
        raise BenchServerFailed(f"{method} {path}: {answer.status} {content[:500].decode(errors='replace')}")

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()
