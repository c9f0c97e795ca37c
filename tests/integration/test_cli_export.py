"""Export from the command line and from Python, on a server that runs, and on one that breaks off."""

import asyncio
import json
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from uuid import uuid4

import pytest

from integration.commands import Served, run
from memplane.client import Forbidden, Memplane, MemplaneSync, UnexpectedAnswer, Unreachable

HEADER = (
    '{"record":"header","format":"memplane-export","version":1,"user":"u","exported_at":"2026-01-01T00:00:00Z",'
    '"policy":"sha256:0","categories":[]}\n'
)
TURN = '{"record":"turn","thread_id":"t","role":"user","text":"Hello."}\n'
BROKEN = {
    "no end": HEADER + TURN,
    "a line too few": HEADER + TURN + '{"record":"end","counts":{"turn":2}}\n',
    "cut within the end": HEADER + TURN + '{"record":"end","counts":{"turn":1}}',
    "something after the end": HEADER + '{"record":"end","counts":{}}\n' + TURN,
    "no header": TURN + '{"record":"end","counts":{"turn":1}}\n',
    "nothing": "",
    "no JSON": HEADER + "hello\n" + '{"record":"end","counts":{}}\n',
}
SEPARATED = "one\u2028two\u0085three"
WHOLE = HEADER + TURN + '{"record":"end","counts":{"turn":1}}\n'


@pytest.fixture
def user(served: Served) -> str:
    """A user with a memory and a turn; the line separators within are no ends of lines."""
    name = f"user-{uuid4().hex[:8]}"
    with MemplaneSync(served.url, served.keys["supervisor"]) as client:
        client.remember("The user owns a piano.", user_id=name, category="event", attributes={"note": SEPARATED})
        client.turn("Hello there.", user_id=name, thread_id="t", role="user")
    return name


def admin_of(served: Served) -> str:
    return str(json.loads((served.data / "keys.json").read_text())["admin"])


@pytest.fixture
def answering() -> Iterator[dict[str, str]]:
    """A server that answers what it is told to, and closes without a word when that is not all."""
    told = {"body": "", "length": ""}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", told["length"] or str(len(told["body"].encode())))
            self.end_headers()
            self.wfile.write(told["body"].encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    told["url"] = f"http://127.0.0.1:{server.server_port}"
    yield told
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_file_that_only_its_owner_reads(served: Served, user: str, tmp_path: Path) -> None:
    file = tmp_path / "ana.jsonl"
    told = served.run("export", user, "--out", str(file))
    assert (told.code, told.err) == (0, "")
    assert "1 memory" in told.out
    lines = [json.loads(line) for line in file.read_bytes().split(b"\n") if line]
    assert lines[0]["user"] == user
    assert lines[-1]["counts"]["memory"] == 1
    assert [each["attributes"] for each in lines if each["record"] == "memory"] == [{"note": SEPARATED}]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["ana.jsonl"]
    summary = served.run("export", user, "--out", str(file), "--json").document
    assert (summary["user"], summary["counts"]["turn"]) == (user, 1)
    assert served.run("export", user, "--json").code == 2


def test_standard_output(served: Served, user: str) -> None:
    told = served.run("export", user)
    assert (told.code, told.err) == (0, "")
    assert json.loads(told.out.split("\n")[0])["record"] == "header"
    assert json.loads(told.out.rstrip("\n").split("\n")[-1])["record"] == "end"


def test_a_key_that_may_not_and_a_server_that_is_not_there_leave_no_file(
    served: Served, user: str, tmp_path: Path
) -> None:
    file = tmp_path / "ana.jsonl"
    refused = served.run("export", user, "--out", str(file), "--key", served.keys["supervisor"])
    assert (refused.code, "scope_forbidden" in refused.err) == (1, True)
    away = run("export", user, "--out", str(file), "--url", "http://127.0.0.1:1", "--key", "mp_x_y")
    assert (away.code, "unreachable" in away.err) == (4, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
def test_what_is_not_whole_leaves_the_file_as_it_was(answering: dict[str, str], tmp_path: Path, body: str) -> None:
    file = tmp_path / "ana.jsonl"
    file.write_text("the one before")
    answering["body"] = body
    arguments = ("export", "u", "--out", str(file), "--url", answering["url"], "--key", "mp_x_y")
    told = run(*arguments)
    assert (told.code, "incomplete_export" in told.err) == (1, True), told.err
    assert file.read_text() == "the one before"
    assert [each.name for each in tmp_path.iterdir()] == ["ana.jsonl"]
    answering["body"] = WHOLE  # the control
    assert run(*arguments).code == 0
    assert file.read_text() == WHOLE


def test_a_connection_that_breaks_is_told(answering: dict[str, str]) -> None:
    answering |= {"body": WHOLE, "length": "100000"}
    with MemplaneSync(answering["url"], "mp_x_y") as client, pytest.raises(Unreachable):
        list(client.export("u"))


def test_from_python(served: Served, user: str, answering: dict[str, str]) -> None:
    async def asked() -> bytes:
        async with Memplane(served.url, admin_of(served)) as client:
            return b"".join([some async for some in client.export(user)])

    with MemplaneSync(served.url, admin_of(served)) as client:
        whole = b"".join(client.export(user))
    assert [json.loads(line)["record"] for line in asyncio.run(asked()).split(b"\n") if line] == [
        json.loads(line)["record"] for line in whole.split(b"\n") if line
    ]
    with MemplaneSync(served.url, served.keys["supervisor"]) as agent, pytest.raises(Forbidden):
        list(agent.export(user))
    answering["body"] = BROKEN["no end"]
    with MemplaneSync(answering["url"], "mp_x_y") as client, pytest.raises(UnexpectedAnswer):
        list(client.export("u"))
