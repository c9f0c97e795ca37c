"""The embedded PostgreSQL in its folder: who may reach what, and what is refused with which words."""

import os
import pwd
import sys
from pathlib import Path

import psycopg
import pytest

from integration.commands import start_embedded
from memplane.adapters.postgres.embedded import embedded_binaries, embedded_postgres, embedded_server
from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.domain.errors import EmbeddedPostgresError

ROOT = os.geteuid() == 0
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes through /proc")
needs_root = pytest.mark.skipif(not ROOT, reason="only root runs PostgreSQL as another user")


def service_ids() -> dict[str, int]:
    entry = pwd.getpwnam("nobody")
    return {"user": entry.pw_uid, "group": entry.pw_gid} if ROOT else {}


def test_only_postgresql_gets_what_postgresql_needs(data: Path) -> None:
    with start_embedded(data):
        owner = pwd.getpwnam("nobody").pw_uid if ROOT else os.geteuid()
        modes = {path.name: (path.stat().st_uid, path.stat().st_mode & 0o777) for path in data.iterdir()}
    assert modes.pop("pg") == (owner, 0o700)
    assert modes.pop("run") == (owner, 0o700)
    for read in ("pg_hba.conf", "pg_ident.conf"):  # by PostgreSQL, and written by nobody but this user
        assert modes.pop(read) == (os.geteuid(), 0o640 if ROOT else 0o600)
    assert modes
    assert set(modes.values()) == {(os.geteuid(), 0o600)}
    assert data.stat().st_uid == os.geteuid()


def test_settings_that_would_break_the_launcher_are_refused(data: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match="listen_addresses"):
        EmbeddedPostgres.start(data, options={"listen_addresses": "*"})
    start_embedded(data).stop()  # the refusal gave the folder up


@needs_root
def test_a_folder_that_keeps_postgresql_out_is_named(base: Path) -> None:
    blocker = base / "closed"
    blocker.mkdir(mode=0o700)
    (blocker / "open").mkdir()
    (blocker / "open").chmod(0o755)  # whatever the umask leaves
    folder = blocker / "open" / "data"
    with pytest.raises(
        EmbeddedPostgresError, match=rf"^{blocker} keeps .*chmod o\+x {blocker}`, .*MEMPLANE_DATABASE_URL"
    ):
        start_embedded(folder)
    assert blocker.stat().st_mode & 0o777 == 0o700
    blocker.chmod(0o711)
    start_embedded(folder).stop()


@needs_root
def test_binaries_that_postgresql_cannot_reach_are_copied_once(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, cache, data = base / "closed", base / "cache", base / "data"
    closed.mkdir(mode=0o700)
    package = embedded_binaries.packaged_binaries().parent.parent
    for name in (package.name, f"{package.name}.libs"):
        (closed / name).symlink_to(package.with_name(name))
    binaries = closed / package.name / "pginstall18" / "bin"
    monkeypatch.setattr(embedded_postgres, "packaged_binaries", lambda: binaries)
    monkeypatch.setattr(embedded_postgres, "default_caches", lambda _: (cache,))
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.raises(EmbeddedPostgresError, match="can reach neither"):  # anybody could plant a binary there
        start_embedded(data)
    assert not list(cache.iterdir())
    cache.chmod(0o755)
    copied = start_and_find(data, cache)
    before = copied.stat().st_ino
    assert start_and_find(data, cache).stat().st_ino == before
    os.truncate(copied, 100)  # a power cut in the middle
    assert start_and_find(data, cache).stat().st_size > 100


def start_and_find(data: Path, cache: Path) -> Path:
    with start_embedded(data) as server:
        binary = Path(f"/proc/{server.pid}/exe").resolve()
    assert binary.is_relative_to(cache)
    return binary


def test_files_that_are_no_cluster_are_not_touched(data: Path) -> None:
    (data / "pg").mkdir(parents=True)
    data.chmod(0o711)
    (data / "pg" / "letter").write_text("dear")
    if ROOT:
        with pytest.raises(EmbeddedPostgresError, match="belongs to root"):
            start_embedded(data)
        os.chown(data / "pg", service_ids()["user"], -1)
    with pytest.raises(EmbeddedPostgresError, match="no PostgreSQL cluster"):
        start_embedded(data)
    assert (data / "pg" / "letter").read_text() == "dear"
    (data / "pg" / "letter").unlink()
    start_embedded(data).stop()


def test_a_cluster_of_another_version_is_refused(data: Path) -> None:
    start_embedded(data).stop()
    version = data / "pg" / "PG_VERSION"
    version.write_text("17\n")
    with pytest.raises(EmbeddedPostgresError, match="made by PostgreSQL 17"):
        start_embedded(data)
    version.write_text("18\n")
    start_embedded(data).stop()


def test_a_missing_package_is_named(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setattr(embedded_binaries, "_PACKAGE", "memplane_has_no_such_package")
        with pytest.raises(EmbeddedPostgresError, match=r'pip install "memplane\[embedded\]".*MEMPLANE_DATABASE_URL'):
            start_embedded(data)
    assert embedded_binaries.packaged_binaries().is_dir()


def test_the_log_stays_short(base: Path) -> None:
    log = base / "postgres.log"
    log.write_text("short")
    embedded_server.bound_log(log)
    assert log.read_text() == "short"
    os.truncate(log, embedded_server.LOG_LIMIT + 1)
    with log.open("a") as running:
        embedded_server.bound_log(log)
        running.write("next")
    assert log.read_text() == "next"
    assert (base / "postgres.log.1").stat().st_size == embedded_server.LOG_LIMIT + 1


def test_the_log_keeps_no_statement(data: Path) -> None:
    with start_embedded(data) as server, psycopg.connect(server.admin_conninfo, autocommit=True) as connection:
        connection.execute("CREATE TABLE once (word text PRIMARY KEY)")
        connection.execute("INSERT INTO once VALUES ('secretword')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("INSERT INTO once VALUES ('secretword')")
    log = (data / "postgres.log").read_text()
    assert "duplicate key" in log
    assert "secretword" not in log
