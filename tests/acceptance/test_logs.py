"""What the server's log tells, and what no log, error, listing or command line ever shows."""

import io
import json
import logging
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from memplane.adapters.files.key_file import KeyFile
from memplane.bootstrap import PreparedDatabase
from memplane.domain.memory.memory import new_id
from memplane.entrypoints import logs
from memplane.entrypoints.redaction import without_secrets
from memplane.settings import Settings
from support.callers import Caller, Tenant, refused
from support.commands import run
from support.process import COMMAND, ServeProcess
from support.serving import RunningServer

Json = dict[str, Any]
USER, THREAD, WORDS, ASKED, NOTE = "canary-user", "canary-thread", "canaryword", "canaryquestion", "canarynote"
SAID = (USER, THREAD, WORDS, ASKED, NOTE)
PASSWORD = "canary-Passw0rd"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that PostgreSQL's own user can reach."""
    base = Path(tempfile.mkdtemp(prefix="memplane-logs-"))
    base.chmod(0o711)
    yield base / "data"
    shutil.rmtree(base)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """The log of this process, as the server writes it, of everything."""
    kept = (logging.getLogger().handlers[:], logging.getLogger().level)
    written = io.StringIO()
    logs.configure("DEBUG", "json", written)
    yield written
    logging.getLogger().handlers[:] = kept[0]
    logging.getLogger().setLevel(kept[1])
    for name in logs.OURS:
        logging.getLogger(name).setLevel(logging.NOTSET)


def lines(log: str) -> list[Json]:
    """Every line, which must be a document of its own."""
    return [json.loads(line) for line in log.splitlines()]


def everything(caller: Caller) -> None:
    """Requests of every kind: right ones, wrong ones, forbidden ones."""
    memory = {"user_id": USER, "category": "tasks", "content": f"The {WORDS} is booked.", "thread_id": THREAD}
    kept = caller.post("/v1/memories", memory).json()["id"]
    turn = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": f"The {WORDS} is booked."}
    assert caller.post("/v1/turns", turn).status_code == 201
    assert caller.query(ASKED, filters={"user_id": USER}, explain=True).status_code == 200
    assert caller.get("/v1/memories", user_id=USER, thread_id=THREAD).status_code == 200
    assert caller.get(f"/v1/threads/{THREAD}/delta", user_id=USER).status_code == 200
    caller.get(f"/v1/memories/{kept}/why")
    caller.post(f"/v1/memories/{kept}/reject", {"reason": NOTE})
    caller.post("/v1/memories", memory | {"content": f"The {WORDS}\u0000"})
    caller.post("/v1/memories", memory | {"category": NOTE})
    caller.post("/v1/memories", memory | {"importance": WORDS})
    caller.post("/v1/memories", memory | {NOTE: 1})
    caller.query(ASKED, agent=NOTE)
    caller.get(f"/v1/{NOTE}")
    headers = {"Content-Type": "application/json", "Idempotency-Key": NOTE, "X-Request-Id": f"{NOTE};"}
    caller.send("POST", "/v1/memories", content=f'{{"{WORDS}', headers=headers)
    Caller(caller.client, f"{caller.credential}x").query(ASKED)
    Caller(caller.client, f"mp_{NOTE}_{WORDS}").query(ASKED)


def test_each_request_is_one_line(start_server: Callable[..., RunningServer], log: io.StringIO) -> None:
    tenant = Tenant(start_server())
    caller = tenant.caller("planner")
    caller.query("hall")
    refused(caller.get(f"/v1/memories/{new_id()}"), 404, "not_found")
    Caller(caller.client).query("hall")
    found = [line for line in lines(log.getvalue()) if line["event"] == "request"]
    who = {"tenant": tenant.name, "agent": "planner", "key": caller.key_id}
    assert [(line["method"], line["route"], line["status"]) for line in found] == [
        ("POST", "/v1/memory/query", 200),
        ("GET", "/v1/memories/{memory_id}", 404),
        ("POST", "/v1/memory/query", 401),
    ]
    assert [{name: line.get(name) for name in who} for line in found] == [who, who, dict.fromkeys(who)]
    assert all(line["ms"] >= 0 and line["level"] == "info" and line["timestamp"].endswith("Z") for line in found)
    assert len({line["request_id"] for line in found}) == 3


@pytest.mark.parametrize("sent", ["abc-123", "A.b_c", "x" * 64])
def test_a_plain_request_id_is_taken(supervisor: Caller, sent: str) -> None:
    response = supervisor.send("GET", f"/v1/memories/{new_id()}", headers={"X-Request-Id": sent})
    assert response.headers["X-Request-Id"] == response.json()["request_id"] == sent


@pytest.mark.parametrize("sent", ["", "x" * 65, "a b", "a;b", "mp_1/2", '{"a":1}', "%0a", "../.."])
def test_another_one_is_replaced(supervisor: Caller, sent: str) -> None:
    response = supervisor.send("GET", f"/v1/memories/{new_id()}", headers={"X-Request-Id": sent})
    made = response.headers["X-Request-Id"]
    assert made != sent
    assert made == response.json()["request_id"]
    assert len(made) == 32


@pytest.mark.untold("POST /v1/memory/query: 500")
def test_a_crash_is_told_by_its_place_and_found_by_its_id(
    start_server: Callable[..., RunningServer], log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server()
    caller = Tenant(server).caller()

    async def crash(*_: object) -> None:
        secret = caller.credential
        raise RuntimeError(f"{WORDS} {secret} {ASKED}")

    monkeypatch.setattr(type(server.wired.recall), "__call__", crash)
    response = caller.query(ASKED, filters={"user_id": USER})
    problem = response.json()
    assert (response.status_code, problem["code"]) == (500, "internal_error")
    assert problem["request_id"] == response.headers["X-Request-Id"]
    (told,) = [line for line in lines(log.getvalue()) if line["event"] == "unexpected error"]
    assert (told["error"], told["request_id"]) == ("RuntimeError", problem["request_id"])
    assert (told["route"], told["level"]) == ("/v1/memory/query", "error")
    assert "in crash" in told["where"]
    for canary in (*SAID, str(caller.credential).split("_", 2)[2]):
        assert canary not in log.getvalue()
        assert canary not in response.text


def test_nothing_that_was_said_is_logged(start_server: Callable[..., RunningServer], log: io.StringIO) -> None:
    caller = Tenant(start_server()).caller()
    everything(caller)
    written = log.getvalue()
    assert written.count('"request"') >= 15
    for canary in (*SAID, str(caller.credential).split("_", 2)[2]):
        assert canary not in written


def test_a_library_s_exception_is_told_without_its_words(log: io.StringIO) -> None:
    try:
        int(WORDS)
    except ValueError:
        logging.getLogger("some.library").exception("it failed")
        logs.logger_of("memplane.test").exception("it failed too")
    first, second = lines(log.getvalue())
    assert [first["error"], second["error"]] == ["ValueError", "ValueError"]
    assert "test_logs" in first["where"]
    assert WORDS not in log.getvalue()


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_secret_in_a_message_is_crossed_out(form: str, log: io.StringIO) -> None:
    del log  # restores what stands here
    written = io.StringIO()
    logs.configure("INFO", form, written)  # type: ignore[arg-type]  # of the two words
    logging.getLogger("memplane").info("key mp_0123456789ab_%s of postgresql://app:%s@host/db", "s" * 43, PASSWORD)
    assert "mp_0123456789ab_…" in written.getvalue()
    assert "postgresql://app:…@host/db" in written.getvalue()
    assert "sss" not in written.getvalue()
    assert PASSWORD not in written.getvalue()
    assert without_secrets(f"host=h password='{PASSWORD} x' user=u") == "host=h password=… user=u"
    assert without_secrets("http://127.0.0.1:7077/a@b") == "http://127.0.0.1:7077/a@b"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_server_shows_no_secret_and_nothing_that_was_said(storage: str, folder: Path) -> None:
    environment = {"MEMPLANE_LOG_LEVEL": "DEBUG", "MEMPLANE_LOG_FORMAT": "json"}
    server = ServeProcess(folder, "--storage", storage, command=COMMAND, environment=environment)
    try:
        credential = server.keys["supervisor"]
        with httpx2.Client(base_url=server.url, trust_env=False, verify=False, timeout=30) as client:
            everything(Caller(client, credential))
        arguments = Path(f"/proc/{server.pid}/cmdline").read_bytes().decode()
        doctor = command("doctor", "--data", str(folder), "--storage", storage)
    finally:
        assert server.stop() == 0
    told = [line["event"] for line in lines(server.log)]
    assert told.count("request") >= 15
    secrets = [key.split("_", 2)[2] for key in server.keys.values()]
    for shown in (server.log, arguments, doctor):
        for canary in (*SAID, *secrets):
            assert canary not in shown
    assert "serve" in arguments


def command(*arguments: str, **environment: str) -> str:
    """All that a command prints, and how it ended."""
    done = run(*arguments, environment=environment)
    return f"{done.out}{done.err}{done.code}"


URLS = (
    f"postgresql://memplane_app:{PASSWORD}@127.0.0.1:1/memplane",
    f"postgresql://memplane_app:{PASSWORD}%zz@127.0.0.1:1/memplane",
    f"postgresql://memplane_app:{PASSWORD}@127.0.0.1:port/memplane",
    f"postgresql://memplane_app:{PASSWORD}@/memplane?host=/nowhere&nonsense=1",
    f"mysql://memplane_app:{PASSWORD}@127.0.0.1/memplane",
)


STARTED = (("serve", "--port", "0"), ("doctor",), ("migrate",), ("keys", "list"))


@pytest.mark.slow
@pytest.mark.parametrize("place", range(len(URLS)))
def test_a_failure_to_start_shows_no_password(place: int, tmp_path: Path) -> None:
    """Each address with two of the commands, one for people and one for programs; each command with two or three."""
    for turn, more in enumerate(((), ("--json",))):
        arguments = STARTED[(place + turn) % len(STARTED)]
        told = command(*arguments, *more, MEMPLANE_DATABASE_URL=URLS[place], MEMPLANE_MIGRATION_URL=URLS[place],
                       MEMPLANE_DATA=str(tmp_path), MEMPLANE_LOG_LEVEL="DEBUG")  # fmt: skip
        assert not told.endswith("0")
        assert len(told) > 20
        assert PASSWORD not in told


def test_no_object_shows_its_secrets() -> None:
    key = f"mp_0123456789ab_{'s' * 43}"
    url = URLS[0]
    settings = Settings(database_url=url, migration_url=url)  # type: ignore[arg-type]  # pydantic makes them secret
    for shown in (settings, KeyFile(key, {"planner": key}), PreparedDatabase(url, lambda: None)):
        for told in (repr(shown), str(shown)):
            assert "sss" not in told
            assert PASSWORD not in told
    assert PASSWORD in url
