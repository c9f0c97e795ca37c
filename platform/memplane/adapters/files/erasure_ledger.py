"""The ledger of erasures: a file of JSON lines beside the database, and outside its backups."""

import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memplane.domain.errors import InvalidRequest, StorageUnavailable

Entry = Mapping[str, object]


class LedgerFile:
    """Appends notes to a file, which its owner alone can read; each is on the disk before the next thing happens."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def note(self, entries: Sequence[Entry]) -> None:
        """Append notes.

        Raises:
            StorageUnavailable: the file cannot be written.
        """
        if entries:
            await asyncio.to_thread(self._append, "".join(f"{json.dumps(dict(each))}\n" for each in entries))

    def _append(self, lines: str) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                with os.fdopen(os.dup(file), "ab") as open_file:
                    open_file.write(lines.encode())
                os.fsync(file)
            finally:
                os.close(file)
        except OSError as error:
            raise StorageUnavailable(
                f"the ledger of erasures cannot be written ({error.strerror}): nothing was erased"
            ) from error


def read_ledger(path: Path) -> Iterator[dict[str, Any]]:
    """The notes of a ledger, oldest first; a last line that was not written to its end is passed over.

    Raises:
        Invalid: a line is no note.
        OSError: the file cannot be read.
    """
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                return
            try:
                entry = json.loads(line)
            except ValueError:
                raise InvalidRequest(f"{path}:{number}: is no line of a ledger of erasures") from None
            if not isinstance(entry, dict) or not {"type", "tenant", "subject"} <= entry.keys():
                raise InvalidRequest(f"{path}:{number}: is no line of a ledger of erasures")
            yield entry
