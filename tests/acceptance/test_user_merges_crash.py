"""kill -9 in the middle of a merge: both users are as they were, or all belongs to the known one."""

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from support.callers import Json
from support.process import ServeProcess

MANY = 300
pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="mp") as made:
        Path(made).chmod(0o755)  # the embedded server runs as another user
        yield Path(made)


def ask(process: ServeProcess, method: str, path: str, body: Json | None = None, key: str = "") -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key or process.admin}"}
    with httpx2.Client(base_url=process.url, headers=headers, trust_env=False, timeout=60) as client:
        return client.request(method, path, json=body)


def stored(process: ServeProcess, user: str) -> int:
    found = ask(process, "GET", f"/v1/quotas?user_id={user}")
    return int(found.json()["user"]["bytes"]["used"]) if found.is_success else 0


@pytest.mark.parametrize("storage", ["sqlite", "postgres"])
@pytest.mark.parametrize("after", [0.05, 0.3])
def test_a_killed_merge_leaves_both_users_whole(folder: Path, storage: str, after: float) -> None:
    process = ServeProcess(folder, "--storage", storage)
    for start in range(0, MANY, 100):
        said = [
            {"user_id": "anon", "thread_id": f"t{nth % 7}", "role": "user", "text": f"My cat {nth} is called Tom."}
            for nth in range(start, start + 100)
        ]
        assert ask(process, "POST", "/v1/turns:batch", {"turns": said}, process.keys["supervisor"]).is_success
    before = stored(process, "anon")
    assert before > 0

    def merging() -> None:
        with suppress(httpx2.HTTPError):
            ask(process, "POST", "/v1/users/anon/merge", {"into": "ana"})

    running = threading.Thread(target=merging)
    running.start()
    time.sleep(after)  # how far it comes is left to chance: whatever it is, the state must be whole
    process.kill()
    running.join()
    process = ServeProcess(folder, "--storage", storage)
    try:
        assert (stored(process, "anon"), stored(process, "ana")) in {(before, 0), (0, before)}
        again = ask(process, "POST", "/v1/users/anon/merge", {"into": "ana"})  # the control: it can be ended
        assert again.status_code in {200, 409}, again.text
        assert (stored(process, "anon"), stored(process, "ana")) == (0, before)
    finally:
        process.stop()
