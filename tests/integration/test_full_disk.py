"""The disk under the database is full: writes are refused by that name, reads go on, and room is enough to go on.

A small file system of its own, which only root can mount.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from support.process import ServeProcess
from support.working import until

SIZES = {"postgres": "160m", "sqlite": "8m"}
WORDS = "boat "
MOST = 2_000
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")


@contextmanager
def mounted(size: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="memplane-test-"))
    folder.chmod(0o711)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=711", "memplane-test", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        folder.rmdir()
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


@pytest.fixture(params=SIZES)
def process(request: pytest.FixtureRequest) -> Iterator[ServeProcess]:
    with mounted(SIZES[request.param]) as disk, tempfile.TemporaryDirectory(prefix="memplane-test-") as logs:
        options = [] if request.param == "postgres" else ["--storage", "sqlite"]
        server = ServeProcess(disk / "data", *options, cwd=Path(logs), environment={"MEMPLANE_JOBS": "false"})
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def client(process: ServeProcess) -> Iterator[httpx2.Client]:
    with process.client() as made:
        yield made


def say(client: httpx2.Client, number: int) -> httpx2.Response:
    text = f"{number} {WORDS * 1_500}"  # a page of the table is soon used up
    turn = {"user_id": "ana", "thread_id": "t", "role": "assistant", "text": text, "external_id": str(number)}
    return client.post("/v1/turns", json=turn)


def fill(disk: Path) -> Path:
    """A file that leaves no room."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for block in (2**20, 2**12):
            try:
                while True:
                    file.write(b"\0" * block)
            except OSError:
                continue
    return ballast


def test_it_is_named_and_nothing_acknowledged_is_lost(process: ServeProcess, client: httpx2.Client) -> None:
    assert say(client, 0).status_code == 201
    acknowledged, refused = {0}, None
    ballast = fill(process.folder.parent)
    for number in range(1, MOST):
        answer = say(client, number)
        if answer.status_code != 201:
            refused = answer
            break
        acknowledged.add(number)
    assert refused is not None
    assert (refused.status_code, refused.json()["code"]) == (503, "storage_full"), (refused.text, process.log[-2000:])
    assert "disk" in refused.json()["detail"]
    assert client.get("/readyz").status_code == 200
    assert client.post("/v1/memory/query", json={"query": "boat", "filters": {"user_id": "ana"}}).status_code == 200
    ballast.unlink()
    until(lambda: say(client, MOST).status_code in {200, 201}, "it is written again")  # the control
    # each of them is known by its name; what was refused is new
    assert {say(client, number).status_code for number in acknowledged} == {200}
    assert say(client, max(acknowledged) + 1).status_code == 201
