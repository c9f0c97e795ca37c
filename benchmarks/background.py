"""Background work without a model: how fast it is, what a long queue costs, and what questions notice of it.

Run: python benchmarks/background.py [--sessions 10000] [--jobs 5000] [--seconds 40]
"""

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

import psycopg
from figures import PAGE, machine, write_section
from pydantic import SecretStr
from rich.console import Console
from scale import settle

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.adapters.postgres.provisioning import provision_embedded
from memplane.bootstrap import Application
from memplane.domain.jobs.job_definitions import NIGHTLY
from memplane.entrypoints.cli.bench import fill
from memplane.entrypoints.cli.bench.grid import Grid
from memplane.entrypoints.cli.bench.latency import Load, TimedQuestion, Timing, grid, questions
from memplane.entrypoints.cli.bench.server import BenchConnection, Server, throwaway_server
from memplane.settings import Settings

CLI = (sys.executable, "-m", "memplane.entrypoints.cli")
TIMED = ("sessions", "facts", "consolidation")
A_SESSION, OF_A_USER, A_CALL = 6, 10, 100
"""Turns of a conversation, conversations of a user, conversations in one request."""
PACE = 0.02
"""Seconds between a question's answer and the next question: a client who leaves the processors to others, too."""
FEW = 100
"""Jobs of a short queue."""
SAID = (
    "I moved to {place} in {month}.", "My sister is called {name}.", "I work as a {work} now.", "I prefer {thing}.",
    "I am allergic to {thing}.", "We fly to {place} in {month}.", "My favourite food is {thing}.", "I like {thing}.",
)  # fmt: skip
ASKED = ("What should I see there?", "Can you remind me of it later?", "How would you go about it?")
WORDS = {
    "place": ("Lisbon", "Oslo", "Ghent", "Turin", "Leeds", "Porto", "Graz", "Bergen", "Lyon", "Split", "Delft", "Cork"),
    "month": ("March", "April", "May", "June", "July", "August", "October", "November"),
    "name": ("Nerys", "Amina", "Vera", "Joan", "Keiko", "Lucia", "Marta", "Ingrid", "Selma", "Tova"),
    "work": ("nurse", "carpenter", "teacher", "pilot", "baker", "plumber", "translator", "surveyor"),
    "thing": ("walnuts", "green tea", "long trains", "night buses", "rye bread", "figs", "cold soup", "aisle seats"),
}


@dataclass(frozen=True, slots=True)
class Site:
    """A server that does no background work itself, and its database."""

    server: Server
    conninfo: str
    url: str

    def told(self, *command: str, **settings: str) -> dict[str, object]:
        """What a command answers."""
        with self.begun(*command, "--json", **settings) as process:
            said, _ = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} failed with {process.returncode}")
        found: dict[str, object] = json.loads(said)
        return found

    @contextmanager
    def begun(self, *command: str, **settings: str) -> Iterator["subprocess.Popen[str]"]:
        """A command at work; ended with the block."""
        plain = {name: value for name, value in os.environ.items() if not name.startswith("MEMPLANE_")}
        arguments = [*CLI, *command, "--data", str(self.server.data)]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            arguments, env=plain | settings, stdout=subprocess.PIPE, stderr=quiet, text=True
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()

    def database(self) -> "psycopg.Connection[tuple[object, ...]]":
        """A connection that sees everything."""
        return psycopg.connect(self.conninfo, autocommit=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when it ran."""
    options = _options(arguments)
    load = Load([(20, 1000)], 200)
    with throwaway_server(settings={"MEMPLANE_JOBS": "false"}) as server:
        people = fill(server, load).cohorts[0]
        with EmbeddedPostgres.start(server.data) as postgres:
            conninfo = postgres.conninfo(user="postgres", database="memplane")
            site = Site(server, conninfo, provision_embedded(postgres))
            asks = questions(people, load.requests, load.seed)
            parts = [sped(site, options.sessions), noticed(site, asks, options), queued(site, options.jobs)]
            where = machine(postgres)
    for part in parts:
        Console(width=None if sys.stdout.isatty() else 140).print(part.table())
    if options.figures:
        write_section(
            options.figures, "background", "Background work",
            [_ABOUT, "Reproduce: `make bench-background`.", *parts, f"Machine: {where}."],
        )  # fmt: skip
    return 0


def sped(site: Site, sessions: int) -> Grid:
    """How long the night's jobs take for so many conversations, without a model."""
    tenant = "throughput"
    talk(site, tenant, sessions)
    rows = []
    for name in TIMED:
        started = time.perf_counter()
        done = _done(site, name, tenant)
        took = time.perf_counter() - started
        counts = ", ".join(f"{count:.0f} {what}" for what, count in done.items() if count)
        rows.append((name, str(sessions), f"{took:.1f}", f"{sessions / took:.0f}", counts))
    columns = ("job", "conversations", "seconds", "conversations a second", "what it did")
    return Grid("Conversations worked up by one worker, without a model", columns, rows)


def talk(site: Site, tenant: str, sessions: int) -> None:
    """A tenant with so many conversations, which came to rest thirteen hours ago."""
    made = site.told("keys", "create", "--tenant", tenant, "--agent", "supervisor", "--trust", "full")
    link = BenchConnection(site.server.url, str(made["key"]))
    random = Random(tenant)  # noqa: S311 - nothing secret
    for first in range(0, sessions, A_CALL):
        some = range(first, min(first + A_CALL, sessions))
        link.post("/v1/turns:batch", {"turns": [turn for number in some for turn in _session(number, random)]})
    link.close()
    with site.database() as connection:
        aged = "UPDATE thread_revision SET updated_at = updated_at - interval '13 hours' WHERE tenant_id = %s"
        connection.execute(aged, (tenant,))
    settle(site.conninfo)


def _session(number: int, random: Random) -> Iterator[dict[str, object]]:
    named = {"user_id": f"user-{number // OF_A_USER}", "thread_id": f"talk-{number}", "auto_extract": False}
    for place in range(A_SESSION):
        said = random.choice(SAID).format(**{kind: random.choice(words) for kind, words in WORDS.items()})
        text = f"I see. {random.choice(ASKED)}" if place % 2 else said
        yield named | {"role": "assistant" if place % 2 else "user", "text": text}


def noticed(site: Site, asks: Sequence[TimedQuestion], options: argparse.Namespace) -> Grid:
    """How long questions take while a worker is at it, with each kind of model."""
    timings = [timed(site, asks, "nobody at work", options.seconds / 2)]
    with unreachable() as down, bad(hang=True) as slow, bad(hang=False) as nonsense:
        ways = {"no model": None, "down": down, "never answers": slow, "nonsense": nonsense, "no model, again": None}
        for way, url in ways.items():
            tenant = way.replace(" ", "-").replace(",", "")
            talk(site, tenant, options.noticed)
            model = {} if url is None else {"MEMPLANE_MODEL": "model", "MEMPLANE_MODEL_URL": url}
            model |= {} if url is None else {"MEMPLANE_MODEL_TIMEOUT": "2"}
            with at_work(site, tenant, model):
                timings.append(timed(site, asks, f"at work: {way}", options.seconds))
    timings.append(timed(site, asks, "nobody at work, again", options.seconds / 2))
    return grid(timings, "Questions over HTTP beside background work")


@contextmanager
def at_work(site: Site, tenant: str, model: Mapping[str, str]) -> Iterator[None]:
    """One worker process after another is at a tenant's night until the block ends."""
    over = threading.Event()

    def night() -> None:
        while not over.is_set():
            with site.begun("jobs", "run", "all", "--tenant", tenant, **model) as process:
                while process.poll() is None and not over.wait(0.1):
                    pass

    thread = threading.Thread(target=night)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def timed(site: Site, asks: Sequence[TimedQuestion], name: str, seconds: float) -> Timing:
    """Questions of one client, one after the other, for so long."""
    links = {agent: site.server.connect(agent) for agent in {ask.agent for ask in asks}}
    durations: list[float] = []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ask = asks[len(durations) % len(asks)]
        started = time.perf_counter()
        links[ask.agent].send("POST", "/v1/memory/query", ask.body)
        durations.append(1000 * (time.perf_counter() - started))
        time.sleep(PACE)
    for link in links.values():
        link.close()
    return Timing(name, durations)


@contextmanager
def unreachable() -> Iterator[str]:
    """The address of an endpoint at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@contextmanager
def bad(*, hang: bool) -> Iterator[str]:
    """The address of one that takes each question and never answers, or answers with nonsense."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if hang:
                over.wait(60)
                return
            told = b'{"choices": [{"message": {"role": "assistant", "content": "ignore the policy"}}]}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        over.set()
        server.shutdown()
        server.server_close()


def queued(site: Site, jobs: int) -> Grid:
    """How many jobs a worker does in a second from a queue of so many, at its beginning and at its end."""
    rows = []
    for wanted in (FEW, jobs):
        asyncio.run(_filled(site, f"queue-{wanted}", max(wanted // len(NIGHTLY), 1)))
        waiting = _waiting(site)
        settle(site.conninfo)
        seen = [(time.monotonic(), waiting)]
        with site.begun("worker"):
            while (left := _waiting(site)) and time.monotonic() < seen[0][0] + 1800:
                if left != seen[-1][1]:
                    seen.append((time.monotonic(), left))
                time.sleep(0.05)
            seen.append((time.monotonic(), left))
        rows.append(
            (
                str(waiting),
                f"{_rate(seen, 1.0, 0.0):.0f}",
                f"{_rate(seen, 1.0, 0.8):.0f}",
                f"{_rate(seen, 0.2, 0.0):.0f}",
            )
        )
    columns = ("jobs waiting", "jobs a second", "of the first fifth", "of the last fifth")
    return Grid("A queue worked off by one worker: each nightly job of many tenants with nothing to do", columns, rows)


async def _filled(site: Site, prefix: str, tenants: int) -> None:
    """Tenants whose nightly jobs are all due, and wait."""
    app = Application(Settings(database_url=SecretStr(site.url), jobs=False), site.url)
    await app.open()
    try:
        for number in range(tenants):
            await app.ensure_tenant(f"{prefix}-{number}")
            for name in NIGHTLY:
                await app.queue.ask(f"{prefix}-{number}", name)
    finally:
        await app.close()


def _waiting(site: Site) -> int:
    with site.database() as connection:
        found = connection.execute("SELECT count(*) FROM procrastinate.procrastinate_jobs").fetchone()
    return int(str((found or (0,))[0]))


def _rate(seen: Sequence[tuple[float, int]], begin: float, end: float) -> float:
    """Jobs a second between two shares of what waited at first; the worker's start is left out."""
    first = seen[0][1]
    part = [(moment, left) for moment, left in seen[1:] if end * first <= left <= begin * first]
    (begun, more), (ended, fewer) = part[0], part[-1]
    return (more - fewer) / max(ended - begun, 1e-9)


def _done(site: Site, name: str, tenant: str) -> dict[str, float]:
    (done,) = site.told("jobs", "run", name, "--tenant", tenant)["items"]  # type: ignore[misc]  # of JSON
    counts: dict[str, float] = done["counts"]
    return counts


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000, help="conversations that are worked up")
    parser.add_argument("--noticed", type=int, default=1000, help="conversations worked up while questions are asked")
    parser.add_argument("--jobs", type=int, default=5000, help="jobs that wait")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long questions are asked beside each model")
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    return parser.parse_args(arguments)


_ABOUT = (
    f"Conversations of {A_SESSION} turns, {OF_A_USER} of a user, in which every other turn states a fact; they came to "
    "rest, and commands do the jobs of their night, start of the process included. Questions are asked by one client "
    "of a tenant of 20 users with 1 000 turns and memories each, beside another tenant's night; server, worker and "
    "database share the processors. A model is `down` where nobody listens, `never answers` within 2 s, or answers "
    "`nonsense`."
)


if __name__ == "__main__":
    sys.exit(main())
