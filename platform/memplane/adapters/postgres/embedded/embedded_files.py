"""Where the embedded PostgreSQL lives: its folders, the account that it runs as, and the locks that guard both."""

import errno
import hashlib
import os
import stat
import subprocess
import tempfile
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from memplane.domain.errors import EmbeddedPostgresError

with suppress(ImportError):  # Windows has neither: EmbeddedPostgres.start refuses there before they are used
    import fcntl
    import pwd

PORT = 5432  # names the socket file; nothing listens on TCP
POLL_SECONDS = 0.02
_SERVICE_USER = "nobody"
_SOCKET_PATH_LIMIT = 103  # bytes without the final NUL: macOS has 104 in all, Linux 108
_MAP = "memplane"
_ACCESS_RULES = f"""# Written by memplane at each start, in place of the cluster's own file.
local all all peer map={_MAP}
local replication all peer map={_MAP}
"""
USE_ANOTHER = "set MEMPLANE_DATABASE_URL to use another PostgreSQL"


class FileLock:
    """An exclusive lock on a file, held by every process that inherits `fileno()`, until the last of them is gone.

    A process that the holder forks without meaning to (multiprocessing) does not keep it.
    """

    _all: ClassVar["weakref.WeakSet[FileLock]"] = weakref.WeakSet()

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        FileLock._all.add(self)

    def acquire(self) -> bool:
        """Try once; say whether the lock is now held."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                return False
            raise
        self._fd = fd
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)  # for those who find it locked
        return True

    def holder(self) -> int | None:
        """The process that took the lock last, as it says itself."""
        with suppress(OSError, ValueError):
            return int(self.path.read_text())
        return None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._fd is not None

    def fileno(self) -> int:
        """The descriptor to pass to a child that shall hold the lock too."""
        if self._fd is None:
            raise ValueError(f"{self.path} is not locked")
        return self._fd

    def release(self) -> None:
        """Let go of this process's share. Closing, not unlocking: an unlock would take it from the children too."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    @classmethod
    def release_all(cls) -> None:
        """Let go of everything: what a forked child does first."""
        for lock in list(cls._all):
            lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=FileLock.release_all)


@dataclass(frozen=True)
class Account:
    """The system user that PostgreSQL runs as when this process is root."""

    uid: int
    gid: int
    name: str

    def can(self, script: str, *arguments: Path) -> bool:
        """Whether a shell script succeeds as this user: the only answer that also counts ACLs and mount options."""
        result = subprocess.run(  # noqa: S603 - constant scripts, paths passed as arguments
            ["/bin/sh", "-c", script, "sh", *arguments],
            user=self.uid, group=self.gid, extra_groups=[], cwd="/", env={"LC_ALL": "C"},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        return result.returncode == 0


@dataclass(frozen=True)
class DataFolder:
    """A data folder: the cluster, its sockets and its log, and who may run the server in it."""

    folder: Path
    account: Account | None

    @classmethod
    def prepare(cls, folder: Path) -> "DataFolder":
        """Make the folder where it is missing and find the account; existing modes stay as they are.

        Raises:
            EmbeddedPostgresError: the account cannot reach the folder, or the cluster belongs to somebody else.
        """
        folder = folder.absolute().resolve()
        root = os.geteuid() == 0
        for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
            missing.mkdir(exist_ok=True)
            missing.chmod(0o711 if root else 0o700)  # root's account passes through, and cannot list
        account = _account(folder / "pg", root=root)
        if account is not None and not account.can('test -x "$1"', folder):
            parts = (*reversed(folder.parents), folder)
            blocker = next((each for each in parts if not account.can('test -x "$1"', each)), folder)
            raise EmbeddedPostgresError(
                f"{blocker} keeps the user {account.name!r} out. PostgreSQL refuses to run as root, so it runs as "
                f"{account.name!r} and must pass through to {folder}: run `chmod o+x {blocker}`, choose another data "
                f"folder, start memplane as a normal user, or {USE_ANOTHER}"
            )
        return cls(folder, account)

    @property
    def cluster(self) -> Path:
        """PostgreSQL's own data directory."""
        return self.folder / "pg"

    @property
    def log(self) -> Path:
        """What the server prints."""
        return self.folder / "postgres.log"

    @property
    def access_rules(self) -> Path:
        """Who may connect; outside the cluster, whose files the account could change."""
        return self.folder / "pg_hba.conf"

    @property
    def user_map(self) -> Path:
        """Which system users may connect, as any role."""
        return self.folder / "pg_ident.conf"

    def write_access_rules(self) -> None:
        """Let this user and root connect, and nobody else: other services may run as the account.

        Raises:
            EmbeddedPostgresError: the system has no name for this user, by which PostgreSQL could know it.
        """
        lines = "".join(f'{_MAP} "{name}" all\n' for name in _user_names())
        for path, text in ((self.access_rules, _ACCESS_RULES), (self.user_map, lines)):
            draft = path.with_suffix(".new")
            draft.unlink(missing_ok=True)
            made = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.write(made, text.encode())
                if self.account:
                    os.fchown(made, -1, self.account.gid)
                    os.fchmod(made, 0o640)
            finally:
                os.close(made)
            draft.replace(path)

    @property
    def tag(self) -> str:
        """A name for this cluster that all its processes show in their titles."""
        status = self.cluster.stat()
        identity = f"{self.cluster}:{status.st_dev}:{status.st_ino}"
        return "memplane-" + hashlib.sha256(identity.encode()).hexdigest()[:16]

    @property
    def _socket_record(self) -> Path:
        return self.folder / "postgres.sockets"

    def sockets(self) -> Path | None:
        """The socket's folder, or None where a long path needs another one that no owner has made yet."""
        near = self.folder / "run"
        if _fits(near) and "," not in str(near):  # libpq splits a host at commas
            return near
        with suppress(FileNotFoundError):
            return Path(self._socket_record.read_text())
        return None

    def make_sockets(self) -> Path:
        """The socket's folder, made and private to the account. Only for the owner.

        Raises:
            EmbeddedPostgresError: no folder with a short enough path can be made.
        """
        found = self.sockets()
        if found is None or not (found.parent == self.folder or self._is_private(found)):
            found = self._short_folder()
            draft = self._socket_record.with_suffix(".new")
            draft.write_text(str(found))
            draft.replace(self._socket_record)  # an attaching process never reads half a path
        self.private_folder(found)
        return found

    def drop_sockets(self) -> None:
        """Remove a socket folder that stands outside the data folder."""
        found = self.sockets()
        if found is not None and found.parent != self.folder:
            with suppress(OSError):
                found.rmdir()
            self._socket_record.unlink(missing_ok=True)

    def _short_folder(self) -> Path:
        for base in dict.fromkeys([tempfile.gettempdir(), "/tmp"]):  # noqa: S108 - mkdtemp makes it private
            if _fits(Path(base) / "memplane-12345678") and "," not in base:
                made = Path(tempfile.mkdtemp(prefix="memplane-", dir=base))
                self.private_folder(made)
                if self.account is None or self.account.can('test -x "$1"', made):
                    return made
                made.rmdir()
        raise EmbeddedPostgresError(
            f"the path {self.folder} is too long for a socket, and no short temporary folder was found: set TMPDIR to "
            f"a short path, choose a data folder with a shorter one, or {USE_ANOTHER}"
        )

    def _is_private(self, folder: Path) -> bool:
        with suppress(OSError):
            status = folder.lstat()
            owner = self.account.uid if self.account else os.geteuid()
            return stat.S_ISDIR(status.st_mode) and status.st_uid == owner and not status.st_mode & 0o077
        return False

    def private_folder(self, folder: Path) -> None:
        """Make `folder` where it is missing; give it to the account and to nobody else."""
        folder.mkdir(mode=0o700, exist_ok=True)
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise EmbeddedPostgresError(f"{folder} must be a folder, and not a link: move it away")
        if self.account:
            os.chown(folder, self.account.uid, self.account.gid, follow_symlinks=False)
        folder.chmod(0o700)


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder / f".s.PGSQL.{PORT}")) <= _SOCKET_PATH_LIMIT


def _user_names() -> list[str]:
    """This user, and root, who may do everything anyway."""
    try:
        own = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise EmbeddedPostgresError(
            f"this system has no name for the user {os.geteuid()}, by which PostgreSQL would know it: start memplane "
            f"as a user with a name, or {USE_ANOTHER}"
        ) from None
    with suppress(KeyError):
        return list(dict.fromkeys([own, pwd.getpwuid(0).pw_name]))
    return [own]


def _account(cluster: Path, *, root: bool) -> Account | None:
    """Who PostgreSQL runs as: the cluster's owner, nobody for a new one, None for this very user."""
    owner = cluster.stat().st_uid if cluster.exists() else None
    if not root:
        if owner not in {None, os.geteuid()}:
            raise EmbeddedPostgresError(f"{cluster} belongs to user {owner}: start memplane as that user, or as root")
        return None
    if owner == 0:
        raise EmbeddedPostgresError(
            f"{cluster} belongs to root, and PostgreSQL refuses to run as root: `chown -R {_SERVICE_USER} {cluster}`"
        )
    try:
        entry = pwd.getpwnam(_SERVICE_USER) if owner is None else pwd.getpwuid(owner)
    except KeyError:
        if owner is not None:  # a user that only another machine or container has a name for
            return Account(owner, cluster.stat().st_gid, str(owner))
        raise EmbeddedPostgresError(
            f"there is no user {_SERVICE_USER!r} for PostgreSQL to run as: start memplane as a normal user"
        ) from None
    return Account(entry.pw_uid, entry.pw_gid, entry.pw_name)
