"""Another embedding model for a tenant in use: failures, recall and times while it is changed, and what is left.

Run: python benchmarks/reembed.py [--memories 100000] [--clients 8] [--seconds 1800]
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import psycopg
from figures import PAGE, machine, write_section
from psycopg.sql import SQL
from rich.console import Console
from scale import multiplied, settle

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.entrypoints.cli.bench import fill
from memplane.entrypoints.cli.bench.corpus import Person
from memplane.entrypoints.cli.bench.grid import Grid
from memplane.entrypoints.cli.bench.latency import Load, TimedQuestion
from memplane.entrypoints.cli.bench.server import Server, throwaway_server

NEXT = "wordllama-128"
SMALL = (10, 20)
SETTINGS = {"MEMPLANE_NEXT_EMBEDDING_MODEL": NEXT, "MEMPLANE_JOBS": "false"}
_CLI = (sys.executable, "-m", "memplane.entrypoints.cli")
_WRITES = 4
"""Of so many requests one writes."""
_WITHOUT = "SELECT count(*) FROM memories WHERE embedding_2 IS NULL"
Found = frozenset[str]


@dataclass(slots=True)
class Seen:
    """What the clients saw.

    Attributes:
        answers: question, ids and milliseconds of each answer.
        writes: milliseconds of each write that was acknowledged.
        lost: writes that the very next question did not bring.
        failures: whatever was answered otherwise than it should.
    """

    answers: list[tuple[int, Found, float]] = field(default_factory=list)
    writes: list[float] = field(default_factory=list)
    lost: int = 0
    failures: list[str] = field(default_factory=list)


class Client:
    """One client, who asks and writes until told to stop; nothing is sent twice."""

    def __init__(self, server: Server, number: int, asks: Sequence[TimedQuestion]) -> None:
        self._server, self._number, self._asks = server, number, asks
        self._random = Random(number)  # noqa: S311 - nothing secret
        self._connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
        self.seen = Seen()

    def run(self, stop: threading.Event) -> None:
        """Ask and write."""
        turn = 0
        while not stop.is_set():
            turn += 1
            if turn % _WRITES:
                place = self._random.randrange(len(self._asks))
                found, took = self.ask(body_of(self._asks[place]))
                self.seen.answers.append((place, found, took))
            else:
                self._write(turn)
        self._connection.close()

    def _write(self, turn: int) -> None:
        user, text = f"client-{self._number}", f"note {self._number} {turn} about {self._random.random()}"
        body = {"user_id": user, "category": "event", "content": text}
        answer, took = self._sent("/v1/memories", body)
        if answer:
            self.seen.writes.append(took)
            asked = {"query": text, "filters": {"user_id": user}, "top_k": 10, "ranking": "semantic"}
            self.seen.lost += answer["id"] not in self.ask(asked)[0]

    def ask(self, body: Mapping[str, object]) -> tuple[Found, float]:
        """The ids that a question brings, and milliseconds."""
        answer, took = self._sent("/v1/memory/query", body)
        return frozenset(item["id"] for item in answer.get("items", ())), took

    def _sent(self, path: str, body: Mapping[str, object]) -> tuple[dict[str, object], float]:
        headers = {"Authorization": f"Bearer {self._server.keys['supervisor']}", "Content-Type": "application/json"}
        started = time.perf_counter()
        try:
            self._connection.request("POST", path, json.dumps(body), headers)
            answer = self._connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self.seen.failures.append(f"{path}: {error}")
            return {}, 0.0
        if answer.status >= 300:
            self.seen.failures.append(f"{path}: {answer.status} {content[:200]!r}")
            return {}, 0.0
        return json.loads(content), 1000 * (time.perf_counter() - started)


def body_of(ask: TimedQuestion) -> dict[str, object]:
    """A question by meaning alone, whose answer depends on the vectors and on nothing else."""
    return {"query": ask.sentence.question, "filters": {"user_id": ask.person.user}, "top_k": 10, "ranking": "semantic"}


class Site:
    """The server, its workers, and what an operator sees."""

    def __init__(self, server: Server, conninfo: str) -> None:
        self.server, self.conninfo = server, conninfo
        plain = {name: value for name, value in os.environ.items() if not name.startswith("MEMPLANE_")}
        self._environment = plain | SETTINGS | {"MEMPLANE_WORKER_STALLED_SECONDS": "2"}

    def told(self, *command: str) -> dict[str, object]:
        """What a command of `memplane reembed` answers."""
        arguments = [*_CLI, "reembed", *command, "--data", str(self.server.data), "--json"]
        done = subprocess.run(arguments, env=self._environment, capture_output=True, text=True, check=True)
        found: dict[str, object] = json.loads(done.stdout)["items"][0]
        return found

    @contextmanager
    def worker(self) -> Iterator["subprocess.Popen[bytes]"]:
        """A worker of its own."""
        command = [*_CLI, "worker", "--data", str(self.server.data)]
        with subprocess.Popen(command, env=self._environment, stdout=subprocess.DEVNULL) as process:
            try:
                yield process
            finally:
                process.terminate()

    def one(self, statement: str) -> object:
        """One value of the database."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            return (connection.execute(SQL(statement)).fetchone() or (None,))[0]

    def filled(self) -> int:
        """How many vectors of the next model there are."""
        found = self.one("SELECT coalesce((value ->> 'done')::int, 0) FROM metadata WHERE name = 'embedding_progress'")
        return int(str(found or 0))

    def phase(self) -> str | None:
        """Of the change, or none."""
        found = self.one("SELECT value -> 'change' ->> 'phase' FROM metadata WHERE name = 'embedding'")
        return None if found is None else str(found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 where something failed, was lost, or is left."""
    options = _options(arguments)
    load = Load([SMALL], 200, memory_share=1.0)
    with throwaway_server(settings=SETTINGS) as server:
        people = fill(server, load).cohorts[0]
        with EmbeddedPostgres.start(server.data) as postgres:
            site = Site(server, postgres.conninfo(user="postgres", database="memplane"))
            multiplied(site.conninfo, SMALL, options.memories)
            settle(site.conninfo)
            rows, where = _measured(site, people, options), machine(postgres)
    faults = [what for what, found, wanted in rows if wanted is not None and found != wanted]
    part = Grid("A change under load", ("what", "figure"), [(what, found) for what, found, _ in rows])
    Console(width=None if sys.stdout.isatty() else 140).print(part.table())
    if options.figures:
        told = (
            f"From wordllama-256 to {NEXT}, by a worker process that is killed with SIGKILL in the middle and followed "
            f"by another one, while clients ask by meaning and write, one request in {_WRITES}. Each answer is "
            "compared with what the old model brought before and with what the new one brings after: it has to be one "
            "of them, whole. Each write is asked for at once. Times include the load of worker and clients, which "
            "share the machine's processors with the server."
        )
        write_section(
            options.figures, "reembed", "Changing the embedding model",
            [told, "Reproduce: `make bench-reembed`.", part, f"Machine: {where}."],
        )  # fmt: skip
    return 1 if faults else 0


def _measured(site: Site, people: Sequence[Person], options: argparse.Namespace) -> list[tuple[str, str, str | None]]:
    """What was found, and what it has to be."""
    said = [TimedQuestion("supervisor", person, sentence) for person in people for _, _, sentence in person.memories]
    asks = Random(7).sample(said, 100)  # noqa: S311 - nothing secret
    judge = Client(site.server, -1, asks)
    before = [judge.ask(body_of(ask))[0] for ask in asks]
    stored = int(str(site.one("SELECT count(*) FROM memories")))
    clients = [Client(site.server, number, asks) for number in range(options.clients)]
    stop = threading.Event()
    threads = [threading.Thread(target=client.run, args=(stop,)) for client in clients]
    for thread in threads:
        thread.start()
    started = time.monotonic()
    try:
        site.told("start")
        with site.worker() as first:
            _until(lambda: site.filled() > stored // 3, options.seconds)
            os.kill(first.pid, signal.SIGKILL)
        killed_at = site.filled()
        with site.worker():
            _until(lambda: site.phase() != "filling", options.seconds)
            switched = time.monotonic() - started
            _until(lambda: site.phase() is None, options.seconds)
            took = time.monotonic() - started
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    judge = Client(site.server, -1, asks)  # the server ends a connection that nobody used for a while
    after = [judge.ask(body_of(ask))[0] for ask in asks]
    seen = [client.seen for client in clients]
    answers = [each for one in seen for each in one.answers]
    differ = sum(one != other for one, other in zip(before, after, strict=True))
    mixed = sum(found not in (before[place], after[place]) for place, found, _ in answers)
    old = sum(found == before[place] for place, found, _ in answers)
    writes = [each for one in seen for each in one.writes]
    failures = [each for one in seen for each in one.failures] + judge.seen.failures
    for failure in failures[:5]:
        print(failure, file=sys.stderr)
    return [
        ("memories at the beginning", str(stored), None),
        ("clients", str(options.clients), None),
        ("questions answered meanwhile", str(len(answers)), None),
        ("memories written meanwhile", str(len(writes)), None),
        ("failed requests", str(len(failures)), "0"),
        ("answers neither as before nor as after", str(mixed), "0"),
        ("of them as before", str(old), None),
        ("questions of which the models bring different answers", f"{differ} of {len(asks)}", None),
        ("writes that the next question did not bring", str(sum(one.lost for one in seen)), "0"),
        ("vectors stored when the worker was killed", str(killed_at), None),
        ("seconds to the switch", f"{switched:.0f}", None),
        ("seconds to the end", f"{took:.0f}", None),
        ("p50 and p95 of a question, ms", _times([each for _, _, each in answers]), None),
        ("p50 and p95 of a write, ms", _times(writes), None),
        ("old vectors left", str(site.one("SELECT count(embedding) FROM memories")), "0"),
        ("memories without a new vector", str(site.one(_WITHOUT)), "0"),
    ]  # fmt: skip


def _times(milliseconds: Sequence[float]) -> str:
    ordered = sorted(milliseconds) or [0.0]
    return " and ".join(f"{ordered[min(int(len(ordered) * share), len(ordered) - 1)]:.0f}" for share in (0.5, 0.95))


def _until(reached: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not reached within {seconds} s")
        time.sleep(0.2)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000, help="about so many")
    parser.add_argument("--clients", type=int, default=8, help="who ask and write")
    parser.add_argument("--seconds", type=float, default=1800.0, help="the longest that a phase may take")
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
