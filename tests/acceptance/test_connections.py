"""Connections that send or read nothing: each is given up in time, and what it held is given back."""

import contextlib
import resource
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memplane.entrypoints.connections import within_file_limit
from support.callers import Tenant
from support.process import ServeProcess
from support.serving import RunningServer
from support.sockets import Raw, connections, until

Start = Callable[..., RunningServer]
QUERY, MEMORIES = "/v1/memory/query", "/v1/memories"
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = "Transfer-Encoding: chunked"
MB = 2**20


class TestHeads:
    """A request line and headers have to arrive in time, and within bounds."""

    def test_an_unfinished_head_is_given_up(self, start_server: Start) -> None:
        server = start_server(header_seconds=1)
        caller = Tenant(server).caller()
        with connections(server.url, 30) as made:
            for number, each in enumerate(made):
                each.send(GET[: number % 20 + 1])
            told = Counter((*each.answer()[:1], each.ends()) for each in made)
            assert told == {(408, True): 30}
            assert caller.remember("The hall is booked.")

    def test_neither_drops_nor_blank_lines_prolong_it(self, start_server: Start) -> None:
        server = start_server(header_seconds=1)
        with connections(server.url, 2) as (drops, blank):
            drops.send(b"GET / HTTP/1.1\r\n")
            until(lambda: drops.answered(0.1) or not drops.send(b"a: b\r\n"))
            until(lambda: blank.answered(0.1) or not blank.send(b"\r\n"))
            assert drops.ends()
            assert blank.ends()

    def test_one_that_says_nothing_is_closed(self, start_server: Start) -> None:
        server = start_server(header_seconds=1)
        with connections(server.url, 10) as made:
            assert [each.answer() for each in made] == [(0, {})] * 10

    def test_a_slow_head_within_its_time_is_read(self, start_server: Start) -> None:
        """The control; the connection is then kept for further requests longer than a head may take."""
        server = start_server(header_seconds=20)
        with connections(server.url, 1) as (slow,):
            for letter in GET:
                slow.send(bytes([letter]))
            assert slow.answer()[0] == 200
            assert not slow.answered(2)
            slow.send(GET)
            assert slow.answer()[0] == 200

    @pytest.mark.parametrize("where", ["headers", "one header", "trailers", "chunk extension"])
    def test_an_endless_head_is_refused(self, start_server: Start, where: str) -> None:
        server = start_server()
        caller = Tenant(server).caller()
        line = b"a: " + b"b" * 1_000 + b"\r\n"
        with connections(server.url, 1) as (endless,):
            if where in ("headers", "one header"):
                endless.send(b"GET / HTTP/1.1\r\n" + (b"a: " if where == "one header" else b""))
            else:
                endless.head(MEMORIES, caller.credential, CHUNKED)
                endless.send(b"0\r\n" if where == "trailers" else b"1;")
            line = line if where in ("headers", "trailers") else b"b" * 1_000
            until(lambda: not endless.send(line * 100))
        assert caller.query("hall").status_code == 200

    def test_what_is_not_http_is_refused_with_a_document(self, start_server: Start) -> None:
        server = start_server()
        with connections(server.url, 1) as (wrong,):
            wrong.send(b"HELO x\r\n\r\n")
            status, problem = wrong.answer()
            assert (status, problem["code"]) == (400, "invalid_request")
            assert wrong.ends()


class TestNumbers:
    """There are no more connections than there may be."""

    def test_one_address_has_its_share(self, start_server: Start) -> None:
        server = start_server(connections_per_address=10, header_seconds=60)
        with connections(server.url, 10), connections(server.url, 1) as (late,):
            status, problem = late.answer()
            assert (status, problem["code"]) == (503, "too_many_connections")
        with connections(server.url, 1) as (again,):
            until(lambda: (again.send(GET) and again.answer()[0] == 200) or reopened(again))

    def test_an_idle_one_makes_room(self, start_server: Start) -> None:
        server = start_server(connections=5, header_seconds=60)
        with connections(server.url, 5) as made:
            for each in made:
                each.send(GET)
                assert each.answer()[0] == 200
            with connections(server.url, 1) as (new,):
                new.send(GET)
                assert new.answer()[0] == 200
                assert made[0].ends()  # the one that was idle for longest
                made[1].send(GET)
                assert made[1].answer()[0] == 200

    def test_without_idle_ones_the_next_is_refused(self, start_server: Start) -> None:
        """The control: what is at work makes no room."""
        server = start_server(connections=5, header_seconds=60)
        with connections(server.url, 5) as made:
            for each in made:
                each.send(GET[:5])
            with connections(server.url, 1) as (late,):
                assert late.answer()[1]["code"] == "too_many_connections"
            for each in made:
                each.send(GET[5:])
                assert each.answer()[0] == 200


def reopened(each: Raw) -> bool:
    """Connect once more; what was asked is not answered by that."""
    each.close()
    each.connect()
    return False


@pytest.fixture(params=["postgres", "sqlite"])
def process(request: pytest.FixtureRequest) -> Iterator[Callable[..., ServeProcess]]:
    """Starts a server in a process of its own."""
    base = Path(tempfile.mkdtemp(prefix="memplane-lines-"))
    base.chmod(0o711)  # run by root, PostgreSQL is another user, who has to pass through
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, base)

        def start(**settings: object) -> ServeProcess:
            told = {f"MEMPLANE_{name.upper()}": str(value) for name, value in settings.items()}
            made = ServeProcess(base / "data", "--storage", request.param, environment=told)
            stack.callback(made.kill)
            return made

        yield start


def files_of(server: ServeProcess) -> int:
    return len(list(Path(f"/proc/{server.pid}/fd").iterdir()))


def resident(server: ServeProcess) -> int:
    """Bytes of memory that a server has now."""
    told = Path(f"/proc/{server.pid}/status").read_text()
    (line,) = (line for line in told.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1_024


def unfinished(server: ServeProcess, count: int, megabytes: int) -> Counter[object]:
    """Send so many chunked bodies without an end; the codes of the answers that come."""
    credential = server.keys["supervisor"]
    with connections(server.url, count) as made:
        for each in made:
            each.head(MEMORIES, credential, CHUNKED)
            for _ in range(megabytes * 16):
                if each.answered(0) or not each.chunk(b" " * 65_536):
                    break
        told = Counter(each.answer()[1].get("code") if each.answered(0.01) else None for each in made)
        with asking(server) as other:  # another key, meanwhile
            assert other.answer()[0] == 200
        told["grown"] = resident(server)
    return told


@contextlib.contextmanager
def asking(server: ServeProcess) -> Iterator[Raw]:
    with connections(server.url, 1) as (made,):
        body = b'{"query": "hall"}'
        made.head(QUERY, server.keys["planner"], f"Content-Length: {len(body)}")
        made.send(body)
        yield made


@pytest.mark.slow
class TestProcess:
    """A server's memory and its file descriptors."""

    def test_unfinished_bodies_take_little_memory(self, process: Callable[..., ServeProcess]) -> None:
        server = process(uploads_mb_per_key=16)
        before = resident(server)
        told = unfinished(server, 120, 4)
        grown = told.pop("grown") - before
        assert told["uploads_limited"] >= 110
        assert grown < 80 * MB

    @pytest.mark.breaks
    def test_without_a_limit_they_take_all_that_they_send(self, process: Callable[..., ServeProcess]) -> None:
        """The control."""
        server = process(uploads_mb=0, uploads_mb_per_key=0, uploads_mb_per_address=0)
        before = resident(server)
        assert unfinished(server, 60, 4)["grown"] - before > 200 * MB

    def test_file_descriptors_are_given_back(self, process: Callable[..., ServeProcess]) -> None:
        server = process(header_seconds=2, body_seconds=2, connections_per_address=0)
        with asking(server) as first:
            assert first.answer()[0] == 200
        before = files_of(server)
        with connections(server.url, 200) as made:
            for number, each in enumerate(made):
                if number % 4 == 1:
                    each.send(GET[:9])
                elif number % 4 == 2:
                    each.head(MEMORIES, server.keys["supervisor"], CHUNKED)
                elif number % 4 == 3:
                    each.head(MEMORIES, server.keys["supervisor"], "Content-Length: 100")
            until(lambda: files_of(server) >= before + 100)  # the control
            until(lambda: files_of(server) <= before + 4)
            assert all(each.ends() for each in made)

    def test_a_client_that_reads_nothing_is_given_up(self, process: Callable[..., ServeProcess]) -> None:
        server = process(send_seconds=2)
        with asking(server) as first:
            assert first.answer()[0] == 200
        deaf = [Raw(server.url, small=True) for _ in range(5)]
        for each in deaf:
            each.send(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        until(lambda: all(each.answered(0) for each in deaf))
        most = files_of(server)
        until(lambda: files_of(server) <= most - 5)
        assert "Traceback" not in server.log
        with asking(server) as last:
            assert last.answer()[0] == 200
        for each in deaf:
            each.close()


def test_no_more_connections_than_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, 4_096))
    assert [within_file_limit(most) for most in (100, 5_000, 0)] == [100, 896, 896]
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, 100))
    assert within_file_limit(1_000) == 50
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert [within_file_limit(most) for most in (1_000, 0)] == [1_000, 0]
