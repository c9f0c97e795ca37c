"""What the peers' scripts share: arguments, the same rows and questions, the same embedding, no network.

Each script runs in the peers' own environment and prints one JSON object: durations in milliseconds, and counts.
"""

import argparse
import json
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from memplane.adapters.embeddings.wordllama import WordLlama

TOP_K = 10
WARM_UP = 20


@dataclass(slots=True)
class Run:
    """What one peer did.

    Attributes:
        rows: how many were there when questions were asked.
        load_seconds: how long they took to store, in the peer's fastest way.
        add: durations of storing one row.
        search: durations of searches, top 10 of one user.
        returned: results of each search.
    """

    name: str
    version: str
    rows: int = 0
    load_seconds: float = 0.0
    add: list[float] = field(default_factory=list)
    search: list[float] = field(default_factory=list)
    returned: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Task:
    """What to do: a database, rows as (user, text), questions as (user, text), and how long loading may take.

    Attributes:
        exact: search without an approximate index, where the peer offers it.
    """

    url: str
    rows: Sequence[tuple[str, str]]
    questions: Sequence[tuple[str, str]]
    seconds: float
    exact: bool

    def asked(self, loaded: int) -> list[tuple[str, str]]:
        """The questions about users who are loaded, without the last one, who may be there in part."""
        users = list(dict.fromkeys(user for user, _ in self.rows[:loaded]))
        whole = set(users if loaded == len(self.rows) else users[:-1] or users)
        return [(user, text) for user, text in self.questions if user in whole]

    def batches(self, size: int) -> Iterator[Sequence[tuple[str, str]]]:
        """Rows in batches until they or the time are over."""
        deadline = time.monotonic() + self.seconds
        for start in range(0, len(self.rows), size):
            if time.monotonic() > deadline:
                return
            yield self.rows[start : start + size]


def task() -> Task:
    """The task that the command line names; from here on this process reaches no network."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--exact", action="store_true")
    options = parser.parse_args()
    _no_network()
    rows, questions = (
        [(user, text) for user, text in json.loads(path.read_text(encoding="utf-8"))]
        for path in (options.rows, options.questions)
    )
    return Task(options.url, rows, questions, options.seconds, options.exact)


def _no_network() -> None:
    """Refuse connections from Python; the database is reached through libpq and a unix socket."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise OSError("this benchmark uses no network")

    socket.socket.connect = refuse  # type: ignore[method-assign]  # the purpose
    socket.socket.connect_ex = refuse  # type: ignore[method-assign]  # the purpose
    socket.getaddrinfo = refuse


class Embedder:
    """Memplane's default embedding, as lists."""

    def __init__(self) -> None:
        self._model = WordLlama()
        self.dimensions = self._model.dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text."""
        return [[] if vector is None else [float(v) for v in vector] for vector in self._model.encode(texts)]


def report(run: Run) -> None:
    """Print the result, the last line of standard output."""
    names = ("name", "version", "rows", "load_seconds", "add", "search", "returned")
    json.dump({name: getattr(run, name) for name in names}, sys.stdout)
    print(flush=True)
