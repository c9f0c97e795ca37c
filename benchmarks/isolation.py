"""What one caller feels of the others: a tenant beside one that floods, and the event loop under load.

Run: python benchmarks/isolation.py
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from shutil import rmtree
from time import perf_counter, sleep
from urllib.parse import urlsplit

from figures import PAGE, machine, write_section
from rich.console import Console

from memplane.entrypoints.cli.bench.corpus import Corpus, Person
from memplane.entrypoints.cli.bench.grid import Grid
from memplane.entrypoints.cli.bench.latency import Timing, grid
from memplane.entrypoints.cli.bench.server import BenchConnection, BenchServerFailed, Server, running_server

RATE = 20
"""Requests a second that a key may send here: a tenth of what the flood sends."""
LIMITS = {"MEMPLANE_RATE_PER_SECOND": str(RATE), "MEMPLANE_RATE_BURST": str(2 * RATE)}
FLOODERS = 8
HARD_TEXTS = tuple(
    (words * 16_000)[:16_000]
    for words in ("my name is ", " lives in", "call me Ana, ", "Ana's name is ", "\u0301\u0323")
)
"""Texts that take longest to read of all that are known, each 16 kB; whoever finds a worse one adds it."""
PACE = 0.11
"""Seconds between two questions; not those in which a portion of tokens comes back, or both would keep step."""
TURNS_A_MINUTE = 1_000
HERE = Path(__file__).parent
TOLD = (
    f"Two tenants on one server, a key of each allowed {RATE} requests a second. One asks a question every "
    f"{PACE * 1e3:.0f} ms, first alone, then while the other sends ten times what it may; refusals are answered 429. "
    "Then one stores turns on a server without limits of rate, while the other sends the texts that take longest to "
    f"read of all that are known, {FLOODERS} at a time. "
    "The lag of the event loop is how much later than asked a 5 ms timer fires in the server's own loop, while "
    f"{TURNS_A_MINUTE} turns a minute are stored one by one, and one export after the other of 2 000 turns is read."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when it ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=300, help="questions of the quiet tenant, in either half")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the event loop is watched")
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    options = parser.parse_args(arguments)
    tables = [*_flooded(options.requests), *_hard(options.requests), _lag(options.seconds)]
    for table in tables:
        Console(width=None if sys.stdout.isatty() else 140).print(table.table())
    if options.figures:
        how = f"Reproduce: `make bench-isolation`. Machine: {machine()}."
        write_section(options.figures, "isolation", "One caller beside others", [TOLD, how, *tables])
    return 0


@contextmanager
def bench_folder() -> Iterator[Path]:
    """A folder that is removed after."""
    folder = Path(tempfile.mkdtemp(prefix="memplane-bench-"))
    folder.chmod(0o711)  # PostgreSQL's own user must be able to pass through
    try:
        yield folder
    finally:
        rmtree(folder, ignore_errors=True)


def _flooded(requests: int) -> list[Grid]:
    with bench_folder() as folder, running_server(folder / "data", settings=LIMITS) as it:
        quiet, loud = (_key(it, tenant) for tenant in ("quiet", "loud"))
        person = Corpus(7).person("user", 500, 0.5)
        for key in (quiet, loud):
            _fill(BenchConnection(it.url, key), person)
        alone = Timing("memory.query of the quiet tenant, alone", list(_asked(it, quiet, person, requests)))
        body = {"query": "what happened before the summer?", "filters": {"user_id": "user"}}
        with _flood(it.url, loud, "/v1/memory/query", [body], 1 / (10 * RATE)) as statuses:
            beside = Timing("the same, beside a flood", list(_asked(it, quiet, person, requests)))
    return _compared(alone, beside, statuses, requests, "A tenant beside one that floods")


def _hard(requests: int) -> list[Grid]:
    """The same beside texts that take long to read."""
    with bench_folder() as folder, running_server(folder / "data", settings={"MEMPLANE_RATE_PER_SECOND": "0"}) as it:
        quiet, loud = (_key(it, tenant) for tenant in ("quiet", "loud"))
        person = Corpus(7).person("user", 500, 0.5)
        _fill(BenchConnection(it.url, quiet), person)
        alone = Timing("POST /v1/turns of the quiet tenant, alone", list(_said(it, quiet, person, requests, "alone")))
        memory = {"user_id": "user", "category": "tasks", "content": "The user lives in Porto."}
        with _flood(it.url, loud, "/v1/memories", [memory | {"narrative": text} for text in HARD_TEXTS], 0) as statuses:
            beside = Timing("the same, beside hard texts", list(_said(it, quiet, person, requests, "beside")))
    return _compared(alone, beside, statuses, requests, "A tenant beside one whose texts take long to read")


def _compared(alone: Timing, beside: Timing, statuses: Mapping[int, int], requests: int, title: str) -> list[Grid]:
    """What the quiet tenant felt, and what the loud one was answered."""
    seconds = max(sum(beside.milliseconds) / 1e3, requests * PACE)
    answers = [[str(status), str(count), f"{count / seconds:.0f}"] for status, count in sorted(statuses.items())]
    whole = [["all", str(sum(statuses.values())), ""]]
    ratio = beside.percentile(99) / alone.percentile(99)
    return [
        grid([alone, beside], title),
        Grid("Ratio of p99", ["beside the flood / alone", "aim"], [[f"{ratio:.2f}", "2"]]),
        Grid("What the flood was answered", ["status", "requests", "a second"], answers + whole),
    ]


def _key(server: Server, tenant: str) -> str:
    command = [sys.executable, "-m", "memplane.entrypoints.cli", "keys", "create", "--agent", "supervisor"]
    command += ["--tenant", tenant, "--data", str(server.data), "--json"]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    return str(json.loads(made.stdout)["key"])


def _fill(link: BenchConnection, person: Person) -> None:
    turns = [
        {"user_id": person.user, "thread_id": "t", "role": "user", "text": sentence.text, "auto_extract": False}
        for sentence in person.turns
    ]
    link.post("/v1/turns:batch", {"turns": turns})
    link.close()


def _asked(server: Server, key: str, person: Person, requests: int) -> Iterator[float]:
    """Questions at an even pace, each timed; a late one does not push the others together."""
    link = BenchConnection(server.url, key)
    began = perf_counter()
    for number in range(requests):
        sleep(max(0.0, began + number * PACE - perf_counter()))
        question = person.turns[number % len(person.turns)].question
        started = perf_counter()
        link.post("/v1/memory/query", {"query": question, "filters": {"user_id": person.user}})
        yield (perf_counter() - started) * 1e3
    link.close()


def _said(server: Server, key: str, person: Person, requests: int, thread: str) -> Iterator[float]:
    """Turns at an even pace, each timed."""
    link = BenchConnection(server.url, key)
    began = perf_counter()
    for number in range(requests):
        sleep(max(0.0, began + number * PACE - perf_counter()))
        text = person.turns[number % len(person.turns)].text
        started = perf_counter()
        link.post("/v1/turns", {"user_id": person.user, "thread_id": thread, "role": "user", "text": text})
        yield (perf_counter() - started) * 1e3
    link.close()


@contextmanager
def _flood(
    url: str, key: str, path: str, documents: Sequence[Mapping[str, object]], pause: float
) -> Iterator[Mapping[int, int]]:
    """Requests of one key by clients that do not wait, one every so many seconds; the answers by status."""
    statuses: dict[int, int] = {}
    over = threading.Event()
    bodies = [json.dumps(document) for document in documents]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def send() -> None:
        link = HTTPConnection(urlsplit(url).netloc, timeout=60)
        began, sent = perf_counter(), 0
        while not over.is_set():
            link.request("POST", path, bodies[sent % len(bodies)], headers)
            answer = link.getresponse()
            answer.read()
            statuses[answer.status] = statuses.get(answer.status, 0) + 1
            sent += 1
            over.wait(max(0.0, began + sent * FLOODERS * pause - perf_counter()))
        link.close()

    threads = [threading.Thread(target=send, daemon=True) for _ in range(FLOODERS)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _lag(seconds: float) -> Grid:
    """How late the server's event loop is while turns are stored and memories are read through."""
    with bench_folder() as folder, watched(folder) as it:
        person = Corpus(7).person("user", 2_000, 0.5)
        link = BenchConnection(it.url, it.keys["supervisor"])
        _fill(link, person)
        stop_reading = threading.Event()
        reader = threading.Thread(target=_export_over_and_over, args=(it, stop_reading), daemon=True)
        reader.start()
        began, number = perf_counter(), 0
        while (now := perf_counter() - began) < seconds:
            sleep(max(0.0, number * 60 / TURNS_A_MINUTE - now))
            sentence = person.turns[number % len(person.turns)]
            link.post("/v1/turns", {"user_id": "user", "thread_id": "live", "role": "user", "text": sentence.text})
            number += 1
        stop_reading.set()
        reader.join()
        lags = Timing("lag of the event loop", it.stop())
    return grid([lags], f"The event loop under {number} turns and one export after the other")


def _export_over_and_over(it: "Watched", over: threading.Event) -> None:
    while not over.is_set():
        exported(it, "user")


def exported(it: "Watched", user: str, to: Path | None = None) -> int:
    """Export a user, to a file or to nowhere; how many lines."""
    lines = 0
    with nullcontext() if to is None else to.open("wb") as file:
        link = HTTPConnection(urlsplit(it.url).netloc, timeout=600)
        link.request("GET", f"/v1/users/{user}/export", headers={"Authorization": f"Bearer {it.admin}"})
        answer = link.getresponse()
        while piece := answer.read(1 << 16):
            lines += piece.count(b"\n")
            if file is not None:
                file.write(piece)
        link.close()
    if answer.status != 200:
        raise BenchServerFailed(f"the export was answered {answer.status}")
    return lines


@dataclass(frozen=True, slots=True)
class Watched:
    """A server whose event loop is watched.

    Attributes:
        url: where it listens.
        keys: credentials by agent.
        admin: the administrator's.
        pid: its process.
        stop: ends it, and tells the lags in ms.
    """

    url: str
    keys: Mapping[str, str]
    admin: str
    pid: int
    stop: Callable[[], list[float]]


@contextmanager
def watched(folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[Watched]:
    """A server whose event loop is watched, on a data folder within a folder; its settings as of an environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMPLANE_")}
    environment |= settings or {}
    command = [sys.executable, str(HERE / "watched_server.py"), str(folder / "data")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True)
    if process.stdin is None or process.stdout is None:
        raise BenchServerFailed("the watched server has no pipes")
    told = json.loads(process.stdout.readline() or "{}")
    if not told:
        raise BenchServerFailed("the watched server did not start")

    def stop() -> list[float]:
        said, _ = process.communicate("stop\n", timeout=60)
        return [float(value) for value in json.loads(said)]

    try:
        yield Watched(told["url"], told["keys"], told["admin"], process.pid, stop)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    sys.exit(main())
