"""A consistent copy of a file that is in use."""

import sqlite3
from contextlib import closing
from pathlib import Path

from memplane.domain.errors import StorageUnavailable


def copy(source: Path, target: Path) -> None:
    """Copy a SQLite file, with what its write-ahead log holds, to a file that is not there yet.

    Writers go on meanwhile; the copy is of one moment. Its owner alone can read it, for it holds what the file holds.

    Raises:
        StorageUnavailable: there is nothing to copy, the target is there, or the copy cannot be written.
    """
    if not source.is_file():
        raise StorageUnavailable(f"{source}: there is no such file")
    made = False
    try:
        target.touch(mode=0o600, exist_ok=False)
        made = True
        with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as written:
            read.backup(written)
    except FileExistsError as error:
        raise StorageUnavailable(f"{target} is there already: name a file that is not") from error
    except (OSError, sqlite3.Error) as error:
        if made:
            target.unlink(missing_ok=True)
        raise StorageUnavailable(f"{target}: the copy cannot be written ({error})") from error
