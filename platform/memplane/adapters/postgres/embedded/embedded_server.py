"""One cluster's server processes: making the cluster, launching the server, and clearing what a killed one left."""

import logging
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from urllib.parse import quote

import psycopg

from memplane.adapters.postgres.embedded.embedded_binaries import MAJOR
from memplane.adapters.postgres.embedded.embedded_files import POLL_SECONDS, PORT, DataFolder, FileLock
from memplane.domain.errors import EmbeddedPostgresError

logger = logging.getLogger("memplane.postgres")

SUPERUSER = "postgres"
START_SECONDS = 120.0  # a start after a crash replays up to max_wal_size
STOP_SECONDS = 30.0
ORPHAN_GRACE_SECONDS = 1.0
LOG_LIMIT = 10 * 1024 * 1024  # bytes; one older file of that size is kept

_DEFAULTS = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "autovacuum_naptime": "5s",  # what is new in a folder grows by leaps, and is planned for by what was analysed
    "jit": "off",  # costs more than it brings for short queries
    "timezone": "UTC",
    "log_timezone": "UTC",
    # Statements and row values are people's memories: the application gets the error, the log must not keep the text.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}  # a commit still outlives a killed process

# Runs between fork and exec, in a fresh interpreter: code run in a fork of a process with threads can deadlock.
# Imports come first, for the account may not reach Python's own files; PR_SET_PDEATHSIG (1) comes last, for a change
# of user clears it; and the owner may have died before it was set.
_LAUNCHER = """
import os, sys
signal, owner, uid, gid = map(int, sys.argv[1:5])
if sys.platform == "linux":
    import ctypes
    prctl = ctypes.CDLL(None).prctl
if uid >= 0:
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
os.umask(0o077)
if sys.platform == "linux":
    prctl(1, signal)
    if os.getppid() != owner:
        sys.exit("the owner is gone")
os.execv(sys.argv[5], sys.argv[5:])
"""


@dataclass(frozen=True)
class ClusterSettings:
    """How the server runs: durable or fast, and PostgreSQL's own settings over the defaults."""

    durable: bool
    options: Mapping[str, str]


class Cluster:
    """A cluster in a place, and the means to run it. Only the place's owner may use it."""

    def __init__(
        self, place: DataFolder, binaries: Path, settings: ClusterSettings, *, cancelled: Callable[[], bool]
    ) -> None:
        self._place = place
        self._binaries = binaries
        self._durable = settings.durable
        self._cancelled = cancelled
        self._sockets = place.make_sockets()
        ours = {
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": '"{}"'.format(str(self._sockets).replace('"', '""')),
            "unix_socket_permissions": "0700",
            "hba_file": str(place.access_rules),
            "ident_file": str(place.user_map),
        }
        if taken := sorted((ours.keys() | {"cluster_name"}) & settings.options.keys()):
            raise EmbeddedPostgresError(f"options of the embedded PostgreSQL that cannot be set: {', '.join(taken)}")
        self._settings = _DEFAULTS | ({} if settings.durable else _NOT_DURABLE) | dict(settings.options) | ours

    def launch(self, *, create: bool) -> "subprocess.Popen[bytes]":
        """Start the server and wait until it answers, or until `cancelled`; make the cluster first if `create`.

        The server dies with the calling thread on Linux, so that thread must live as long as the server shall.

        Raises:
            EmbeddedPostgresError: an earlier server does not end, the cluster is unfit, or PostgreSQL gave up.
        """
        lock = FileLock(self._place.folder / "postgres.server.lock")
        self._outlive_previous(lock)
        try:
            if create and not (self._place.cluster / "PG_VERSION").exists():
                self._create(lock)
            self._check_version()
            self._remove_stale_files()
            self._place.write_access_rules()
            bound_log(self._place.log)
            start = self._place.log.stat().st_size if self._place.log.exists() else 0
            settings = self._settings | {"cluster_name": self._place.tag}
            arguments = [f"-c{name}={value}" for name, value in settings.items()]
            process = self._spawn(["postgres", "-D", str(self._place.cluster), *arguments], lock, signal.SIGINT)
        finally:
            lock.release()
        deadline = monotonic() + START_SECONDS
        while not (self._cancelled() or answers(self._place, process.pid)):
            if process.poll() is not None:
                raise EmbeddedPostgresError(
                    f"PostgreSQL did not start (status {process.returncode}): {self._log_since(start)}"
                )
            if monotonic() > deadline:
                shut_down(process)
                raise EmbeddedPostgresError(
                    f"PostgreSQL did not answer within {START_SECONDS:.0f} s: {self._log_since(start)}"
                )
            sleep(POLL_SECONDS)
        return process

    def _spawn(self, command: list[str], lock: FileLock, death: signal.Signals) -> "subprocess.Popen[bytes]":
        account = self._place.account
        ids = (account.uid, account.gid) if account else (-1, -1)
        name, *arguments = command
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        log = os.open(self._place.log, flags, 0o600)
        try:
            return subprocess.Popen(  # noqa: S603 - our own interpreter, no shell
                [sys.executable, "-I", "-S", "-c", _LAUNCHER, *map(str, (int(death), os.getpid(), *ids)),
                 str(self._binaries / name), *arguments],
                pass_fds=(lock.fileno(),),  # held until the last process of the server is gone
                env={"LC_ALL": "C", "PATH": os.defpath},  # the environment holds secrets, and PG* changes behaviour
                cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(log)

    def _create(self, lock: FileLock) -> None:
        """Make the cluster beside its place and rename it: a killed initdb leaves nothing that looks like one."""
        cluster = self._place.cluster
        for leftover in self._place.folder.glob("pg.init-*"):
            shutil.rmtree(leftover)
        if cluster.exists() and any(cluster.iterdir()):
            raise EmbeddedPostgresError(f"{cluster} holds files that are no PostgreSQL cluster: move them away")
        made = self._place.folder / f"pg.init-{secrets.token_hex(4)}"
        self._place.private_folder(made)
        start = self._place.log.stat().st_size if self._place.log.exists() else 0
        command = ["initdb", "-D", str(made), "-U", SUPERUSER, "-A", "peer", "-E", "UTF8", "--locale=C",
                   "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-instructions"]  # fmt: skip
        if not self._durable:
            command.append("--no-sync")
        if self._spawn(command, lock, signal.SIGKILL).wait() != 0:
            shutil.rmtree(made, ignore_errors=True)
            raise EmbeddedPostgresError(f"the cluster could not be made: {self._log_since(start)}")
        made.rename(cluster)
        if self._durable:
            folder = os.open(self._place.folder, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)

    def _check_version(self) -> None:
        try:
            found = (self._place.cluster / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise EmbeddedPostgresError(f"the cluster {self._place.cluster} is gone") from None
        if found != str(MAJOR):
            raise EmbeddedPostgresError(
                f"{self._place.cluster} was made by PostgreSQL {found}, and this is {MAJOR}: export with the version "
                "of memplane that made it, then import into a new folder"
            )

    def _outlive_previous(self, lock: FileLock) -> None:
        """Take the server's lock, which the processes of an earlier server hold until the last of them is gone.

        One whose owner was killed is shutting down; one whose postmaster was killed has left backends that notice
        it only when they are idle, and shared memory that forbids a new server until they are gone.
        """
        begin = monotonic()
        while not lock.acquire():
            if self._cancelled():
                raise EmbeddedPostgresError("stopped while an earlier PostgreSQL was ending")
            elapsed = monotonic() - begin
            running = dict(self._running())
            postmaster = _read_pid(self._place.cluster)
            if elapsed > STOP_SECONDS:
                pids = ", ".join(map(str, running)) or "unknown"
                raise EmbeddedPostgresError(
                    f"an earlier PostgreSQL (pid {pids}) in {self._place.folder} did not end within "
                    f"{STOP_SECONDS:.0f} s: end it, then start again"
                )
            if postmaster in running:
                _send(postmaster, signal.SIGINT)  # where no PDEATHSIG told it; again, it changes nothing
            elif elapsed > ORPHAN_GRACE_SECONDS:
                for pid in running:
                    _send(pid, signal.SIGKILL)
            sleep(POLL_SECONDS)

    def _running(self) -> Iterator[tuple[int, str]]:
        if self._place.cluster.exists():
            tag = self._place.tag
            yield from (each for each in _processes() if tag in each[1] and _is_postgres(each[1]))

    def _remove_stale_files(self) -> None:
        """Remove pid files: we hold the server's lock, so whatever process has such a pid now is not this server.

        Raises:
            EmbeddedPostgresError: somebody started a server here by hand, past the lock.
        """
        cluster = self._place.cluster
        pid = _read_pid(cluster)
        for found, command in _processes() if pid is not None else ():
            if found == pid and _is_postgres(command) and str(cluster) in command:
                raise EmbeddedPostgresError(
                    f"a PostgreSQL that memplane did not start (pid {pid}) runs in {cluster}: stop it first"
                )
        (cluster / "postmaster.pid").unlink(missing_ok=True)
        for name in (f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock"):
            (self._sockets / name).unlink(missing_ok=True)

    def _log_since(self, start: int) -> str:
        try:
            with self._place.log.open("rb") as log:
                log.seek(max(start, log.seek(0, os.SEEK_END) - 2000))
                text = log.read().decode(errors="replace").strip()
        except OSError:
            text = ""
        return f"{text or 'it printed nothing'} ({self._place.log})"


def url(sockets: Path, *, user: str, database: str) -> str:
    """A URL that libpq reads, and SQLAlchemy too."""
    return f"postgresql://{quote(user, safe='')}@/{quote(database, safe='')}?host={quote(str(sockets))}&port={PORT}"


def answers(place: DataFolder, pid: int | None = None) -> bool:
    """Whether the server in `place` (the one with this pid, if given) accepts connections."""
    with suppress(OSError, IndexError):
        lines = (place.cluster / "postmaster.pid").read_text().splitlines()
        sockets = place.sockets()
        # Its own word first: every refused connection is a line in its log.
        if sockets is not None and lines[7].strip() == "ready" and pid in {None, int(lines[0])}:
            with suppress(psycopg.OperationalError):
                psycopg.connect(url(sockets, user=SUPERUSER, database="postgres"), connect_timeout=5).close()
                return True
    return False


def server_pid(place: DataFolder) -> int | None:
    """The pid that the server in `place` wrote down, if it did."""
    return _read_pid(place.cluster)


def shut_down(process: "subprocess.Popen[bytes]") -> None:
    """End the server: sessions are cut, what they committed is written; harder when it does not end in time."""
    for sent, seconds in ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, 5.0), (signal.SIGKILL, None)):
        process.send_signal(sent)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            logger.warning("PostgreSQL (pid %s) did not end within %s s after %s", process.pid, seconds, sent.name)
        else:
            return


def bound_log(log: Path) -> None:
    """Keep the log short, also under a running server: it appends, so the file can be cut in place."""
    with suppress(FileNotFoundError):
        if log.stat().st_size > LOG_LIMIT:
            shutil.copy(log, log.with_name(f"{log.name}.1"))
            os.truncate(log, 0)


def _read_pid(cluster: Path) -> int | None:
    with suppress(OSError, IndexError, ValueError):
        return int((cluster / "postmaster.pid").read_text().splitlines()[0])
    return None


def _send(pid: int, sent: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, sent)


def _is_postgres(command: str) -> bool:
    return Path(command.split(" ", 1)[0].rstrip(":")).name == "postgres"


def _processes() -> Iterator[tuple[int, str]]:
    """Every process's pid and command line; PostgreSQL writes its cluster's name into its own."""
    if Path("/proc/self/cmdline").exists():
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):  # it ended meanwhile
                    title = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    yield int(entry.name), title.decode(errors="replace")
        return
    ps = ["ps", "-axww", "-o", "pid=,command="]  # from the PATH: systems keep it in different folders
    listing = subprocess.run(ps, capture_output=True, text=True, check=False)  # noqa: S603 - a constant, no shell
    for line in listing.stdout.splitlines():
        pid, _, command = line.strip().partition(" ")
        yield int(pid), command.strip()
