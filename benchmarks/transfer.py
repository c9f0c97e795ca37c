"""A user with many memories into a server, out of it and into another one: lines a second, memory, lag of the loop.

Run: python benchmarks/transfer.py
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

from figures import PAGE, machine, write_section
from isolation import Watched, bench_folder, exported, watched
from rich.console import Console

from memplane.entrypoints.cli.bench.corpus import Corpus
from memplane.entrypoints.cli.bench.grid import Grid
from memplane.entrypoints.cli.bench.latency import Timing

USER = "user"
NO_NIGHT = {"MEMPLANE_JOBS": "false"}
"""The work of the night would archive most of what comes in, beside it."""
TOLD = (
    "Memories with a title, tags and entities, one in eight no longer active, are restored from a file of lines with "
    "`memplane import` (embeddings, search words and history included), then exported over HTTP, and that file, in "
    "which each memory has its history, is imported into a second, empty server. The peak is that of the server's "
    "process; before is what it took when it was ready, or had stored what is exported. The lag of the event loop is "
    "how much later than asked a 5 ms timer fires in the server's own loop."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when it ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000, help="memories of the user")
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    options = parser.parse_args(arguments)
    tables = _measured(options.memories)
    for table in tables:
        Console(width=None if sys.stdout.isatty() else 140).print(table.table())
    if options.figures:
        how = f"Reproduce: `make bench-transfer`. Machine: {machine()}."
        write_section(options.figures, "transfer", "Export and import", [TOLD, how, *tables])
    return 0


def _measured(memories: int) -> list[Grid]:
    rows: list[list[str]] = []
    lags: list[Timing] = []
    with bench_folder() as folder:
        made, whole = folder / "made.jsonl", folder / "whole.jsonl"
        made.write_text("".join(_lines(memories)), encoding="utf-8")
        (folder / "one").mkdir(mode=0o711)
        with watched(folder / "one", NO_NIGHT) as it:
            rows.append(_imported(it, made, "import of memories"))
            lags.append(Timing("import", it.stop()))
        with watched(folder / "one", NO_NIGHT) as it:
            before = _peak(it.pid)
            began = perf_counter()
            count = exported(it, USER, whole)
            rows.append(_row("export", count, perf_counter() - began, whole, (before, _peak(it.pid))))
            lags.append(Timing("export", it.stop()))
        (folder / "two").mkdir(mode=0o711)
        with watched(folder / "two", NO_NIGHT) as it:
            rows.append(_imported(it, whole, "import of the export"))
            lags.append(Timing("import of the export", it.stop()))
    head = ["what", "lines", "s", "lines a second", "MB", "server before, MB", "peak, MB"]
    told = [[each.name, f"{each.percentile(50):.1f}", f"{each.percentile(99):.1f}", f"{max(each.milliseconds):.1f}"]
            for each in lags]  # fmt: skip
    return [
        Grid(f"A user with {memories} memories", head, rows),
        Grid("Lag of the event loop", ["while", "p50 ms", "p99 ms", "worst ms"], told),
    ]


def _imported(it: Watched, file: Path, name: str) -> list[str]:
    before = _peak(it.pid)
    command = [sys.executable, "-m", "memplane.entrypoints.cli", "import", str(file), "--user", USER, "--restore"]
    began = perf_counter()
    done = subprocess.run(
        [*command, "--url", it.url, "--key", it.admin, "--json"], capture_output=True, text=True, check=False
    )
    seconds = perf_counter() - began
    told: dict[str, Any] = json.loads(done.stdout)
    if done.returncode or set(told["outcomes"]) - {"restored", "skipped"}:
        raise SystemExit(f"{told}\n{done.stderr}")
    return _row(name, int(told["lines"]), seconds, file, (before, _peak(it.pid)))


def _row(name: str, lines: int, seconds: float, file: Path, peak: tuple[float, float]) -> list[str]:
    size = file.stat().st_size / 2**20
    Console(stderr=True).print(f"{name}: {lines} lines in {seconds:.1f} s")
    return [name, str(lines), f"{seconds:.1f}", f"{lines / seconds:.0f}", f"{size:.0f}", *(f"{m:.0f}" for m in peak)]


def _peak(pid: int) -> float:
    """The most memory that a process ever took, in MB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _lines(memories: int) -> Iterator[str]:
    """Memories as an export has them, without what a server makes of them."""
    random, corpus = Random(7), Corpus(7)  # noqa: S311 - the same each time
    person = corpus.person(USER, memories, 1.0)
    for number, (_, category, sentence) in enumerate(person.memories):
        state = "active" if number % 8 else random.choice(["superseded", "archived", "soft_deleted"])
        line = {
            "record": "memory", "category": category, "content": sentence.text,
            "type": "episodic", "state": state, "title": f"Note {number}", "tags": [f"tag{number % 50}"],
            "importance": number % 5 + 1, "entities": [["person", f"Person {number % 200}"]],
            "recorded_at": f"2025-{number % 12 + 1:02d}-{number % 28 + 1:02d}T10:00:00Z",
        }  # fmt: skip
        yield json.dumps(line) + "\n"


if __name__ == "__main__":
    sys.exit(main())
