"""The embedded PostgreSQL outlives what happens to processes: real servers, real kills."""

import json
import logging
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy

from integration.commands import start_embedded
from memplane.adapters.postgres.embedded import embedded_binaries, embedded_files, embedded_postgres, embedded_server
from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.domain.errors import EmbeddedPostgresError

ROOT = os.geteuid() == 0
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")

# Starts (or attaches to) the server in argv[1], says so, and keeps it until its standard input ends.
KEEPER = """
import json, sys
from pathlib import Path
from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
with EmbeddedPostgres.start(Path(sys.argv[1]), durable=False) as server:
    print(json.dumps({"owned": server.is_owner, "pid": server.pid, "url": server.admin_conninfo}), flush=True)
    sys.stdin.read()
"""


def query(url: str, sql: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql)
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def answers(url: str) -> bool:
    try:
        return query(url, "SELECT 1") == 1
    except psycopg.OperationalError:
        return False


class Keeper:
    """Another process that has the server."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", KEEPER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def report(self) -> dict[str, object]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.close()

    def close(self) -> None:
        self.process.communicate(timeout=30)


@pytest.fixture
def keep() -> Iterator[Callable[[Path], Keeper]]:
    keepers: list[Keeper] = []

    def make(folder: Path) -> Keeper:
        keepers.append(Keeper(folder))
        return keepers[-1]

    yield make
    for keeper in keepers:
        if keeper.process.poll() is None:
            keeper.close()


def service_ids() -> dict[str, int]:
    entry = pwd.getpwnam("nobody")
    return {"user": entry.pw_uid, "group": entry.pw_gid} if ROOT else {}


def by_hand(folder: Path) -> "subprocess.Popen[bytes]":
    """PostgreSQL on the cluster without memplane, as its user, with binaries that this user can reach."""
    place = embedded_files.DataFolder.prepare(folder)
    binaries = embedded_binaries.reachable_binaries(
        embedded_binaries.packaged_binaries(), place.account, embedded_binaries.default_caches(place)
    )
    command = [str(binaries / "postgres"), "-D", str(place.cluster), "-k", str(folder / "run"), "-h", ""]
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        **service_ids(),
    )


def test_a_first_start_makes_a_server_and_a_later_one_finds_its_data(base: Path) -> None:
    folder = base / "new" / "a data ü"
    with EmbeddedPostgres.start(folder, options={"work_mem": "5MB"}) as server:
        assert server.is_owner
        assert server.pid is not None
        url = server.admin_conninfo
        names = ("fsync", "synchronous_commit", "jit", "listen_addresses", "work_mem", "server_encoding", "datlocale")
        shown = [query(url, f"SELECT current_setting('{name}')") for name in names[:-1]]
        assert shown == ["on", "on", "off", "", "5MB", "UTF8"]
        assert query(url, "SELECT lower('ÄÖ')") == "äö"
        query(url, "CREATE TABLE kept AS SELECT 7 AS n")
        query(url, "CREATE ROLE somebody LOGIN")
        first = server.pid
    assert not alive(first)
    server.stop()  # a second stop does nothing
    assert server.pid is None

    with start_embedded(folder) as server:
        assert query(server.conninfo(user="somebody", database="postgres"), "SELECT current_user") == "somebody"
        assert query(server.admin_conninfo, "SELECT n FROM kept") == 7
        assert query(server.admin_conninfo, "SHOW fsync") == "off"
        engine = sqlalchemy.create_engine(
            server.url(user="postgres", database="postgres").replace("postgresql:", "postgresql+psycopg:")
        )
        with engine.connect() as connection:
            assert connection.execute(sqlalchemy.text("SELECT n FROM kept")).scalar_one() == 7
        engine.dispose()


def test_a_server_ends_with_its_killed_owner_and_the_next_one_has_its_data(
    data: Path, keep: Callable[[Path], Keeper]
) -> None:
    keeper = keep(data)
    report = keeper.report()
    query(str(report["url"]), "CREATE TABLE kept AS SELECT 7 AS n")
    keeper.kill()
    with start_embedded(data) as server:  # at once, while the old one is still ending
        assert server.is_owner
        assert server.pid != report["pid"]
        assert not alive(int(str(report["pid"])))
        assert query(server.admin_conninfo, "SELECT n FROM kept") == 7


def test_an_earlier_server_that_does_not_end_is_named(
    data: Path, keep: Callable[[Path], Keeper], monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper = keep(data)
    pid = int(str(keeper.report()["pid"]))
    os.kill(pid, signal.SIGSTOP)
    try:
        keeper.kill()
        with monkeypatch.context() as short:
            short.setattr(embedded_server, "STOP_SECONDS", 0.3)
            with pytest.raises(EmbeddedPostgresError, match=rf"\b{pid}\b"):
                start_embedded(data)
    finally:
        os.kill(pid, signal.SIGCONT)
    with start_embedded(data) as server:
        assert server.is_owner


def test_a_killed_server_is_restarted_although_a_busy_backend_outlives_it(data: Path) -> None:
    with start_embedded(data) as server:
        url = server.admin_conninfo
        query(url, "CREATE TABLE kept AS SELECT 7 AS n")
        first = server.pid
        assert first is not None
        busy = psycopg.connect(url, autocommit=True)
        orphan = busy.info.backend_pid
        busy.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 100000000000)")
        until(lambda: query(url, f"SELECT state FROM pg_stat_activity WHERE pid = {orphan}") == "active")
        os.kill(first, signal.SIGKILL)
        until(lambda: server.pid not in {None, first} and answers(url))
        assert query(url, "SELECT n FROM kept") == 7
        assert not alive(orphan)
        busy.close()


def test_a_killed_backend_is_the_servers_own_affair(data: Path) -> None:
    with start_embedded(data) as server:
        first = server.pid
        with psycopg.connect(server.admin_conninfo) as victim:
            os.kill(victim.info.backend_pid, signal.SIGKILL)
            with pytest.raises(psycopg.OperationalError):
                victim.execute("SELECT 1")
        until(lambda: answers(server.admin_conninfo))
        assert server.pid == first


def test_a_server_that_keeps_dying_stays_down(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(embedded_postgres, "RESTARTS", 1)
    with start_embedded(data) as server:
        first = server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        until(lambda: server.pid not in {None, first} and answers(server.admin_conninfo))
        second = server.pid
        assert second is not None
        os.kill(second, signal.SIGKILL)
        until(lambda: any(record.levelno == logging.CRITICAL for record in caplog.records))
        assert "stays down" in caplog.text
        assert server.pid is None
    start_embedded(data).stop()  # the next owner may try again


def test_a_pid_file_whose_pid_was_reused_does_not_hinder(data: Path) -> None:
    start_embedded(data).stop()
    stranger = subprocess.Popen(["sleep", "60"], **service_ids())
    try:
        pid_file, socket_file = data / "pg" / "postmaster.pid", data / "run" / ".s.PGSQL.5432.lock"
        pid_file.write_text(f"{stranger.pid}\n{data / 'pg'}\n1700000000\n5432\n{data / 'run'}\n\n\nready   \n")
        socket_file.write_text(pid_file.read_text())
        for file in (pid_file, socket_file):
            shutil.chown(file, (data / "pg").stat().st_uid)
        assert by_hand(data).wait(10) != 0  # PostgreSQL alone takes the stranger for its server
        with start_embedded(data) as server:
            assert answers(server.admin_conninfo)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_server_started_by_hand_is_left_alone(data: Path) -> None:
    start_embedded(data).stop()
    foreign = by_hand(data)
    try:
        written = data / "pg" / "postmaster.pid"  # it has the cluster's own rules, by which no test connects
        until(lambda: written.exists() and written.read_text().rstrip().endswith("ready"))
        with pytest.raises(EmbeddedPostgresError, match=rf"pid {foreign.pid}\b"):
            start_embedded(data)
        assert foreign.poll() is None
    finally:
        foreign.send_signal(signal.SIGINT)
        foreign.wait(20)
    start_embedded(data).stop()


def test_another_process_attaches_and_leaves_the_server_running(data: Path, keep: Callable[[Path], Keeper]) -> None:
    with start_embedded(data) as server:
        query(server.admin_conninfo, "CREATE TABLE kept AS SELECT 7 AS n")
        keeper = keep(data)
        report = keeper.report()
        assert report["owned"] is False
        assert report["pid"] == server.pid
        assert query(str(report["url"]), "SELECT n FROM kept") == 7
        keeper.close()
        with start_embedded(data) as again:  # this very process may do so, too
            assert not again.is_owner
        assert answers(server.admin_conninfo)
    keeper = keep(data)
    assert keeper.report()["owned"] is True


def test_a_forked_child_neither_owns_nor_stops(data: Path) -> None:
    server = start_embedded(data)
    ready, done = os.pipe(), os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads and fork: what this is about
        child = os.fork()
    if child == 0:
        server.stop()
        os.write(ready[1], b"x")
        os.close(done[1])
        os.read(done[0], 1)
        os._exit(0)
    try:
        os.read(ready[0], 1)
        assert answers(server.admin_conninfo)
        server.stop()
        with start_embedded(data) as again:
            assert again.is_owner  # although the child still lives
    finally:
        os.close(done[1])
        os.waitpid(child, 0)
        for fd in (*ready, done[0]):
            os.close(fd)


def test_an_initdb_killed_in_the_middle_leaves_nothing(data: Path, keep: Callable[[Path], Keeper]) -> None:
    keeper = keep(data)
    until(lambda: bool(list(data.glob("pg.init-*/base"))))
    keeper.kill()
    assert not (data / "pg").exists()
    with start_embedded(data) as server:
        assert answers(server.admin_conninfo)
    assert not list(data.glob("pg.init-*"))


def test_a_path_too_long_for_a_socket_gets_a_short_one(base: Path, keep: Callable[[Path], Keeper]) -> None:
    data = base / ("long" * 20) / ("longer" * 10)
    keeper = keep(data)
    sockets = embedded_files.DataFolder.prepare(data)
    report = keeper.report()
    used = sockets.sockets()
    assert used is not None
    assert not used.is_relative_to(base)
    assert used.stat().st_mode & 0o777 == 0o700
    with start_embedded(data) as attached:
        assert not attached.is_owner
        assert attached.admin_conninfo == report["url"]
        assert answers(attached.admin_conninfo)
    keeper.kill()
    with start_embedded(data) as server:
        assert answers(server.admin_conninfo)
        assert sockets.sockets() == used  # used again, not left behind
    assert not used.exists()
