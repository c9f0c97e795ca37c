"""The embedded PostgreSQL: one server in a data folder, for `memplane serve` with nothing else installed."""

import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from subprocess import Popen
from time import monotonic, sleep
from types import TracebackType
from typing import Self

from memplane.adapters.postgres.embedded.embedded_binaries import default_caches, packaged_binaries, reachable_binaries
from memplane.adapters.postgres.embedded.embedded_files import POLL_SECONDS, USE_ANOTHER, DataFolder, FileLock
from memplane.adapters.postgres.embedded.embedded_server import (
    START_SECONDS,
    SUPERUSER,
    Cluster,
    ClusterSettings,
    answers,
    bound_log,
    server_pid,
    shut_down,
    url,
)
from memplane.domain.errors import EmbeddedPostgresError

logger = logging.getLogger("memplane.postgres")

RESTARTS = 5
RESTART_WINDOW_SECONDS = 60.0
RETRY_SECONDS = 1.0
OWNER_SECONDS = 5.0
"""How long an owner may take to end before another server refuses its folder."""
WATCH_SECONDS = 0.1


class EmbeddedPostgres:
    """One PostgreSQL server in a data folder, owned by this process, or attached to if another process owns it.

    The owner restarts a server that dies, up to five times a minute, and the server ends with its owner, however
    that ends (on Linux; elsewhere the next owner ends a server that a killed one left). An attached process uses the
    owner's server for as long as it lives; after that, a new `start` takes over.

    The server listens on a unix socket only, in a folder that nobody but its own account and root can enter; whoever
    can enter it is trusted. Use `start`, not the constructor.
    """

    def __init__(self, place: DataFolder, ownership: FileLock | None = None) -> None:
        self._place = place
        self._ownership = ownership
        self._creator = os.getpid()
        self._stopping = threading.Event()
        self._settled = threading.Event()
        self._failure: Exception | None = None
        self._process: Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    @classmethod
    def start(
        cls, folder: Path, *, durable: bool = True, options: Mapping[str, str] | None = None, attach: bool = True
    ) -> Self:
        """Start the server in `folder`, which is made if missing, or attach to the one that another process owns.

        Returns when the server answers: a second for a new folder, a tenth for an old one, up to two minutes after a
        crash.

        Args:
            folder: the data folder; the cluster goes to its subfolder `pg`.
            durable: whether acknowledged commits survive a crash of the machine. Off is for tests.
            options: PostgreSQL settings by name, over the defaults. An attached process cannot change them.
            attach: whether another process may own the server. What is attached ends with its owner, so a server that
                shall stay refuses the folder instead, after some seconds in which an owner that is ending may end.

        Raises:
            EmbeddedPostgresError: with what is wrong and what to do about it.
        """
        if os.name != "posix":
            raise EmbeddedPostgresError(
                "the embedded PostgreSQL runs on Linux and macOS: set MEMPLANE_DATABASE_URL to use another PostgreSQL"
            )
        try:
            place = DataFolder.prepare(folder)
            ownership = FileLock(place.folder / "postgres.owner.lock")
            if not _owns(place, ownership, attach=attach):
                return cls(place)
            server = cls(place, ownership)
            server._own(durable=durable, options=options or {})
        except OSError as error:
            raise EmbeddedPostgresError(f"the embedded PostgreSQL in {folder} cannot be started: {error}") from error
        return server

    @property
    def is_owner(self) -> bool:
        """Whether this process started the server, and `stop` ends it."""
        return self._ownership is not None

    @property
    def pid(self) -> int | None:
        """The server's main process, or None when there is none now."""
        if self._ownership is None:
            return server_pid(self._place)
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def admin_conninfo(self) -> str:
        """Connects the superuser to the database `postgres`."""
        return self.url(user=SUPERUSER, database="postgres")

    def conninfo(self, *, user: str, database: str) -> str:
        """What libpq and psycopg connect with: the same URL as `url`."""
        return self.url(user=user, database=database)

    def url(self, *, user: str, database: str) -> str:
        """`postgresql://user@/database?host=/socket/folder&port=5432`, percent-encoded; SQLAlchemy reads it too."""
        return url(self._sockets, user=user, database=database)

    def stop(self) -> None:
        """End an owned server and give the folder up; an attached one stays. A second call does nothing."""
        if self._ownership is None or self._creator != os.getpid():  # a forked child owns nothing
            return
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        if self._ownership.is_held:
            self._place.drop_sockets()
            self._ownership.release()
        atexit.unregister(self.stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _own(self, *, durable: bool, options: Mapping[str, str]) -> None:
        """Bring the server up in the thread that keeps it."""
        try:
            binaries = reachable_binaries(packaged_binaries(), self._place.account, default_caches(self._place))
            settings = ClusterSettings(durable=durable, options=options)
            cluster = Cluster(self._place, binaries, settings, cancelled=self._stopping.is_set)
            # PDEATHSIG fires when the thread that started the server ends, so one thread starts and keeps it.
            self._thread = threading.Thread(target=self._keep, args=(cluster,), name="memplane-postgres", daemon=True)
            self._thread.start()
            self._settled.wait()
        except BaseException:
            self.stop()
            raise
        if self._failure is not None:
            self.stop()
            raise self._failure
        atexit.register(self.stop)

    def _keep(self, cluster: Cluster) -> None:
        try:
            self._process = cluster.launch(create=True)
        except (EmbeddedPostgresError, OSError) as error:
            self._failure = error
            return
        finally:
            self._settled.set()
        deaths: deque[float] = deque(maxlen=RESTARTS)
        while self._process is not None:
            self._watch(self._process)
            if self._stopping.is_set():
                shut_down(self._process)
                return
            logger.warning("PostgreSQL (pid %s) ended with %s", self._process.pid, self._process.returncode)
            self._process = self._relaunch(cluster, deaths)

    def _watch(self, process: "Popen[bytes]") -> None:
        while process.poll() is None and not self._stopping.wait(WATCH_SECONDS):
            bound_log(self._place.log)

    def _relaunch(self, cluster: Cluster, deaths: deque[float]) -> "Popen[bytes] | None":
        """A new server for one that died, or None when too many died or the owner stops."""
        while not self._stopping.is_set():
            if len(deaths) == RESTARTS and monotonic() - deaths[0] < RESTART_WINDOW_SECONDS:
                logger.critical(
                    "PostgreSQL in %s ended %d times within %.0f s and stays down: see %s",
                    self._place.folder, RESTARTS + 1, RESTART_WINDOW_SECONDS, self._place.log,
                )  # fmt: skip
                break
            deaths.append(monotonic())
            try:
                process = cluster.launch(create=False)
            except (EmbeddedPostgresError, OSError) as error:
                place = self._place.folder
                logger.error("PostgreSQL in %s could not be restarted: %s", place, error)  # noqa: TRY400 - told by its words
                self._stopping.wait(RETRY_SECONDS)
            else:
                logger.warning("PostgreSQL in %s runs again (pid %s)", self._place.folder, process.pid)
                return process
        return None

    @property
    def _sockets(self) -> Path:
        sockets = self._place.sockets()
        if sockets is None:
            raise EmbeddedPostgresError(f"the PostgreSQL in {self._place.folder} was stopped")
        return sockets


def _owns(place: DataFolder, ownership: FileLock, *, attach: bool) -> bool:
    """Whether this process owns the folder from now on, rather than that it may attach to its owner's server.

    Raises:
        EmbeddedPostgresError: another process owns it, and its server does not answer, or shall not be attached to.
    """
    begin = monotonic()
    while not ownership.acquire():
        if attach and answers(place):
            return False
        elapsed = monotonic() - begin
        if not attach and elapsed > OWNER_SECONDS:
            raise EmbeddedPostgresError(
                f"the process {ownership.holder() or 'of another user'} runs the database in {place.folder}: stop it "
                f"first, use its server, choose another data folder, or {USE_ANOTHER}"
            )
        if elapsed > START_SECONDS:
            raise EmbeddedPostgresError(
                f"the process {ownership.holder()} owns {place.folder}, and its PostgreSQL did not answer within "
                f"{START_SECONDS:.0f} s: see {place.log}"
            )
        sleep(POLL_SECONDS)
    return True
