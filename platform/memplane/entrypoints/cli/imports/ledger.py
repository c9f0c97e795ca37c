"""How far an import has come, beside what is imported: a run that was killed goes on there.

A batch has a name of its own, made of the run and the place where it begins. It is noted as done after the server has
answered; the batches that were sent and not noted, two at most, are sent again under the same names, and the server,
which keeps the names with the answers in the transaction of their effects, answers them as it did. So nothing is lost
and nothing comes twice, wherever the run was killed.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from memplane.domain.errors import SettingsError

PROGRESS, REFUSED = ".import-progress.json", ".refused.jsonl"
LEFT_OUT = "left_out"
_BECAME = {
    "merged": "merged", "duplicate": "merged", "unchanged": "merged", "refused": LEFT_OUT, "skipped": LEFT_OUT,
    LEFT_OUT: LEFT_OUT,
}  # fmt: skip
"""What became of the lines of an entry, by its outcome; of any other they were stored."""


@dataclass(slots=True)
class ImportProgress:
    """One run.

    Attributes:
        about: what it imports, for whom and how: another run is another one.
        run: its name.
        done: entries that are done.
        outcomes: how many of them had each outcome.
        lines: how many lines of text were stored, merged with what was there, or left out.
    """

    path: Path
    refusals: Path
    about: Mapping[str, str | None]
    run: str = field(default_factory=lambda: uuid4().hex)
    done: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)
    _refused_bytes: int = 0

    @classmethod
    def begin(cls, source: Path, about: Mapping[str, str | None], *, restart: bool) -> "ImportProgress":
        """The run that was begun and not ended, or a new one.

        Raises:
            SettingsError: another one was begun with the same file.
        """
        path = source.with_name(source.name + PROGRESS)
        ledger = cls(path, source.with_name(source.name + REFUSED), dict(about))
        kept = None if restart else _read(path)
        if kept is not None and kept["about"] != ledger.about:
            raise SettingsError(
                f"{path} is of another import: the file, the user or the way has changed since. Import it as before, "
                "or begin anew with --restart"
            )
        if kept is not None:
            ledger.run, ledger.done = kept["run"], kept["done"]
            ledger.outcomes, ledger._refused_bytes = Counter(kept["outcomes"]), kept["refused_bytes"]
            ledger.lines = Counter(kept["lines"])
        with ledger._opened() as file:
            file.truncate(ledger._refused_bytes)  # what was told of a batch that was not noted is told again
        ledger._keep()
        return ledger

    def once(self, place: int) -> str:
        """The name of the batch that begins at a place."""
        return f"import-{self.run}-{place}"

    def note(self, done: Iterable[tuple[str, int]], refused: Iterable[Mapping[str, object]]) -> None:
        """A batch is done.

        Args:
            done: by entry the outcome, and how many lines it stands for.
            refused: those that are not stored, and why.
        """
        with self._opened() as file:
            file.seek(self._refused_bytes)
            for each in refused:
                file.write(json.dumps(each, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
            self._refused_bytes = file.tell()
        for outcome, lines in done:
            self.done += 1
            self.outcomes[outcome] += 1
            self.lines[_BECAME.get(outcome, "stored")] += lines
        self._keep()

    def end(self) -> None:
        """All is done: nothing is left to go on with."""
        self.path.unlink(missing_ok=True)
        if not self._refused_bytes:
            self.refusals.unlink(missing_ok=True)

    def _opened(self) -> Any:  # noqa: ANN401 - a binary file
        handle = os.open(self.refusals, os.O_RDWR | os.O_CREAT, 0o600)
        return os.fdopen(handle, "r+b")

    def _keep(self) -> None:
        document = {
            "about": self.about, "run": self.run, "done": self.done, "outcomes": dict(self.outcomes),
            "lines": dict(self.lines), "refused_bytes": self._refused_bytes,
        }  # fmt: skip
        part = self.path.with_name(self.path.name + ".part")
        with part.open("w", encoding="utf-8") as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.path)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return {name: kept[name] for name in ("about", "run", "done", "outcomes", "lines", "refused_bytes")}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise SettingsError(f"{path} cannot be read ({error}); begin anew with --restart") from error
