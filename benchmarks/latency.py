"""Latency over HTTP, beside `SELECT 1` and the peers on the same PostgreSQL server.

Run: python benchmarks/latency.py [--sizes 100x1000,10x10000,1x100000]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import psycopg
from figures import PAGE, machine, write_section
from psycopg.sql import SQL, Identifier
from rich.console import Console

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.entrypoints.cli.bench import fill
from memplane.entrypoints.cli.bench.grid import Grid
from memplane.entrypoints.cli.bench.latency import (
    Load,
    LoadedCohorts,
    TimedQuestion,
    Timing,
    found_share,
    grid,
    measure,
    parsed_sizes,
    questions,
)
from memplane.entrypoints.cli.bench.server import throwaway_server

ROOT = Path(__file__).resolve().parents[1]
PEERS_PYTHON = ROOT / ".venv-bench" / "bin" / "python"
PEERS = {
    "langgraph": ["langgraph_store.py"],
    "langgraph-exact": ["langgraph_store.py", "--exact"],
    "mem0": ["mem0_memory.py"],
}
ABSENT = (
    "The peers were not measured: their environment is missing; make it from benchmarks/peers-requirements.txt, or run "
    "`make bench-latency`."
)
FLOOR = "SELECT 1 (psycopg, same server)"
FLOOR_AFTER = "SELECT 1, again after everything"
PEER_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Peer:
    """What one peer did, in its own process."""

    name: str
    version: str
    rows: int
    search: Timing
    add: Timing
    returned: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when it ran, 2 for wrong arguments."""
    options = _options(arguments)
    load = Load(options.sizes, options.requests, seed=options.seed)
    with throwaway_server() as server:
        loaded = fill(server, load)
        with EmbeddedPostgres.start(server.data) as database:
            _settle(database, "memplane")
            timings = [_floor(database, FLOOR, load.requests), *measure(server, load, loaded)]
            asks = questions(loaded.cohorts[0], load.requests, load.seed)
            found = found_share(server, asks)
            peers, absent = _peers(database, loaded, asks, options)
            timings.append(_floor(database, FLOOR_AFTER, load.requests))
            where = machine(database)
    result = Result(load, loaded, timings, found, peers, absent, where)
    if options.json:
        print(json.dumps(result.plain(), indent=2))
    else:
        for table in result.grids():
            Console(width=None if sys.stdout.isatty() else 140).print(table.table())
        print("\n".join(result.notes()))
    if options.figures:
        result.publish(options.figures, options.given)
    return 0


@dataclass(frozen=True, slots=True)
class Result:
    """Everything of one run.

    Attributes:
        found: the share of the supervisor's questions whose sentence came back.
        absent: why peers are missing, one text for each.
    """

    load: Load
    loaded: LoadedCohorts
    timings: Sequence[Timing]
    found: float
    peers: Sequence[Peer]
    absent: Sequence[str]
    where: str

    def grids(self) -> list[Grid]:
        """Memplane over HTTP with the floor; the peers, in process; ratios."""
        parts = [grid(self.timings, f"Memplane over HTTP, {self.loaded.units} turns and memories")]
        if self.peers:
            parts += [
                grid([t for p in self.peers for t in (p.search, p.add)], "Peers, in process, same PostgreSQL server"),
                Grid("Ratios of p50", ("Memplane against", "p50 ratio"), list(self._ratios())),
            ]
        return parts

    def _ratios(self) -> Iterator[tuple[str, str]]:
        queried = next(t for t in self.timings if "supervisor" in t.name)
        stored = next(t for t in self.timings if t.name == "POST /v1/memories")
        for peer in self.peers:
            for mine, theirs in ((queried, peer.search), (stored, peer.add)):
                ratio = mine.percentile(50) / theirs.percentile(50)
                yield f"{mine.name} / {theirs.name}", f"{ratio:.2f}"

    def notes(self) -> list[str]:
        """What the tables do not say."""
        loading = (
            f"Loading through the API: {self.loaded.turns_rate:.0f} turns/s in batches, "
            f"{self.loaded.memories_rate:.0f} memories/s one by one. Of the supervisor's questions "
            f"{self.found:.0%} brought the sentence that they were made from among the first 10."
        )
        told = [loading]
        for peer in self.peers:
            have = f"{peer.name} {peer.version}: {peer.rows} rows, the same texts"
            told.append(f"{have}; a search returned {peer.returned:.1f} of 10 results on average.")
        return [*told, *self.absent, f"Machine: {self.where}."]

    def plain(self) -> dict[str, object]:
        """The figures as JSON can hold them."""
        peers = [
            {
                "name": peer.name,
                "version": peer.version,
                "rows": peer.rows,
                "returned": peer.returned,
                "search": peer.search.plain(),
                "add": peer.add.plain(),
            }
            for peer in self.peers
        ]
        return {
            "machine": self.where,
            "units": self.loaded.units,
            "found": self.found,
            "timings": [timing.plain() for timing in self.timings],
            "peers": peers,
            "absent": list(self.absent),
        }

    def publish(self, page: Path, given: str) -> None:
        """Replace the section of the page."""
        share = f"{self.load.memory_share:.0%}"
        told = (
            f"Invented users, `users x turns and memories of each`: {given}; {share} are memories that five agents "
            f"wrote in their categories, the rest turns. The corpus is the same in every run: English sentences whose "
            f"rare words follow Zipf's law. Questions repeat what was stored; the supervisor, who sees turns and most "
            f"memories, asks six of ten. One client unless said, top 10, measured by the client. Peers run in process, "
            f"with the same embedding, the same texts and one table for all users."
        )
        command = "make bench-latency" + (f" BENCH='--sizes {given}'" if given != "100x1000" else "")
        write_section(page, "latency", "Latency", [told, f"Reproduce: `{command}`.", *self.grids(), *self.notes()])


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", dest="given", default="100x1000", help="users x memories each, comma between")
    parser.add_argument("--requests", type=int, default=1000, help="requests of each kind")
    parser.add_argument("--seed", type=int, default=7, help="makes the corpus")
    parser.add_argument("--peers", choices=["all", "none", *PEERS], default="all", help="which peers to measure")
    parser.add_argument("--peers-python", type=Path, default=PEERS_PYTHON, help="python of the peers' environment")
    parser.add_argument("--peer-seconds", type=float, default=PEER_SECONDS, help="how long a peer may load")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    options = parser.parse_args(arguments)
    try:
        options.sizes = parsed_sizes(options.given)
    except ValueError as error:
        parser.error(str(error))
    return options


def _settle(database: EmbeddedPostgres, name: str) -> None:
    """Let the planner know what was loaded, so that autovacuum does not work during the measurement."""
    with psycopg.connect(database.conninfo(user="postgres", database=name), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _floor(database: EmbeddedPostgres, name: str, count: int) -> Timing:
    """What any statement costs: a round trip to the same server; twice in a run, to show how steady the machine was."""
    durations = []
    with psycopg.connect(database.admin_conninfo, autocommit=True) as connection:
        for _ in range(count):
            started = perf_counter()
            connection.execute("SELECT 1").fetchone()
            durations.append((perf_counter() - started) * 1e3)
    return Timing(name, durations)


def _peers(
    database: EmbeddedPostgres, loaded: LoadedCohorts, asks: Sequence[TimedQuestion], options: argparse.Namespace
) -> tuple[list[Peer], list[str]]:
    """The peers that are installed, one after the other, and what is said of the others."""
    wanted = [name for name in PEERS if options.peers in {"all", name}]
    if wanted and not options.peers_python.exists():
        return [], [ABSENT]
    rows = [
        (person.user, sentence.text)
        for person in loaded.cohorts[0]
        for sentence in [*person.turns, *(sentence for _, _, sentence in person.memories)]
    ]
    asked = [(ask.person.user, ask.sentence.question) for ask in asks if ask.agent == "supervisor"]
    done: list[Peer] = []
    absent: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        files = {"--rows": Path(folder) / "rows.json", "--questions": Path(folder) / "questions.json"}
        for option, content in (("--rows", rows), ("--questions", asked)):
            files[option].write_text(json.dumps(content), encoding="utf-8")
        for name in wanted:
            try:
                done.append(_peer(database, name, files, options))
            except (subprocess.SubprocessError, ValueError) as error:
                told = getattr(error, "stderr", None) or str(error)
                absent.append(f"{name} was not measured: {told.strip().splitlines()[-1][:200]}")
    return done, absent


def _peer(database: EmbeddedPostgres, name: str, files: Mapping[str, Path], options: argparse.Namespace) -> Peer:
    _make_database(database, name)
    script, *arguments = PEERS[name]
    arguments += [str(part) for option, file in files.items() for part in (option, file)]
    command = [str(options.peers_python), str(ROOT / "benchmarks" / "peers" / script), *arguments]
    command += ["--url", database.url(user="postgres", database=name), "--seconds", str(options.peer_seconds)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "platform"), "LANGSMITH_TRACING": "false"}
    limit = 600 + 2 * options.peer_seconds
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit, check=True)
    told = json.loads(ran.stdout.splitlines()[-1])
    return Peer(
        name=told["name"],
        version=told["version"],
        rows=told["rows"],
        search=Timing(f"{told['name']} search, {told['rows']} rows", told["search"]),
        add=Timing(f"{told['name']} add", told["add"]),
        returned=sum(told["returned"]) / max(len(told["returned"]), 1),
    )


def _make_database(database: EmbeddedPostgres, name: str) -> None:
    with psycopg.connect(database.admin_conninfo, autocommit=True) as connection:
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    with psycopg.connect(database.conninfo(user="postgres", database=name), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")


if __name__ == "__main__":
    sys.exit(main())
