"""Single-user mode: one SQLite file, over HTTP and in process, and how soon it serves.

Run: python benchmarks/single_user.py [--sizes 20000,100000]
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

from figures import PAGE, machine, write_section
from rich.console import Console

import memplane
from memplane.entrypoints.cli.bench import fill
from memplane.entrypoints.cli.bench.latency import (
    WARM_UP,
    Load,
    LoadedCohorts,
    TimedQuestion,
    Timing,
    grid,
    questions,
    timed_queries,
    timed_writes,
)
from memplane.entrypoints.cli.bench.server import Server, running_server

STARTS = 5
FILE = "memplane.db"
TOLD = (
    "One person, one SQLite file (`memplane serve --storage sqlite`, `memplane.open`), holding as many turns and "
    "memories as the first column says: all of them memories, or one in ten, the rest turns. One client asks as the "
    "supervisor and the other agents do, top 10, a few questions first to fill the caches; in process there is no "
    "server and no socket, but the same client interface, validation and JSON. `after a write` asks once after each "
    "of many writes. Ready is the time from starting the process to the line that says that it serves."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when it ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="20000,100000", help="turns and memories of the user, comma between")
    parser.add_argument("--shares", default="0.1,1", help="which part of them are memories, comma between")
    parser.add_argument("--requests", type=int, default=500, help="questions of each kind")
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    options = parser.parse_args(arguments)
    sizes = [int(size) for size in options.sizes.split(",")]
    shares = [float(share) for share in options.shares.split(",")]
    timings: list[Timing] = []
    for size in sizes:
        for share in shares:
            # a hundred thousand single writes take a quarter of an hour and show nothing that twenty thousand do not
            if share < 1 or size == min(sizes):
                timings += _measured(Load([(1, size)], options.requests, memory_share=share))
    starts = Timing("start to ready, new file", list(_starts()))
    tables = [grid([starts], "From the start of the process to its first answer"), grid(timings, "memory.query")]
    for table in tables:
        Console(width=None if sys.stdout.isatty() else 140).print(table.table())
    if options.figures:
        how = f"Reproduce: `make bench-single-user`. Machine: {machine()}."
        write_section(options.figures, "single-user", "Single-user mode", [TOLD, how, *tables])
    return 0


def _measured(load: Load) -> Iterator[Timing]:
    """What one load takes: over HTTP, in process, and right after starting again."""
    folder = Path(tempfile.mkdtemp(prefix="memplane-bench-"))
    size = load.sizes[0][1]
    label = f"{size} {'memories' if load.memory_share == 1 else 'turns and memories'}"
    try:
        with running_server(folder / "data", storage="sqlite") as server:
            loaded = fill(server, load)
            asks = questions(loaded.cohorts[0], load.requests, load.seed)
            yield from timed_queries(server, asks, f"{label}, HTTP")
        yield from asyncio.run(_in_process(folder / "data" / FILE, asks, label))
        with running_server(folder / "data", storage="sqlite") as server:
            yield Timing(f"start to ready, {label}", [server.started_in * 1e3])
            yield from _first(server, asks, label)
            yield from _writes(server, load, loaded, label)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _first(server: Server, asks: Sequence[TimedQuestion], label: str) -> Iterator[Timing]:
    link = server.connect("supervisor")
    ask = next(ask for ask in asks if ask.agent == "supervisor")
    started = perf_counter()
    link.post("/v1/memory/query", {"query": ask.sentence.question, "filters": {"user_id": ask.person.user}})
    yield Timing(f"the first question of a process, {label}", [(perf_counter() - started) * 1e3])


def _writes(server: Server, load: Load, loaded: LoadedCohorts, label: str) -> Iterator[Timing]:
    for timing in timed_writes(server, Load(load.sizes, 200, seed=load.seed), loaded.cohorts[0][0]):
        yield Timing(f"{timing.name}, {label}", timing.milliseconds)


async def _in_process(file: Path, asks: Sequence[TimedQuestion], label: str) -> list[Timing]:
    mine = [ask for ask in asks if ask.agent == "supervisor"]
    async with memplane.open(file) as memory:
        for ask in mine[:WARM_UP]:
            await memory.query(ask.sentence.question, filters={"user_id": ask.person.user}, top_k=10)
        durations = []
        for ask in mine:
            started = perf_counter()
            await memory.query(ask.sentence.question, filters={"user_id": ask.person.user}, top_k=10)
            durations.append((perf_counter() - started) * 1e3)
    return [Timing(f"memory.query, supervisor, {label}, in process", durations)]


def _starts() -> Iterator[float]:
    for _ in range(STARTS):
        folder = Path(tempfile.mkdtemp(prefix="memplane-bench-"))
        with running_server(folder / "data", storage="sqlite") as server:
            yield server.started_in * 1e3
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
