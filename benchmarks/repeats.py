"""Many writers say the same things over and over: what is stored, how often twice, and what it costs.

Distinct facts are invented so that none overrules another. Six of ten writes repeat one of them: half of these in the
same words but for case, space and punctuation, half in other words. Eight clients write at once, in random order, so
that the same fact often arrives twice at the same moment.

Run: python benchmarks/repeats.py [--writes 10000]
"""

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from time import perf_counter

import psycopg
from figures import PAGE, machine, write_section
from psycopg.rows import dict_row
from rich.console import Console

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.adapters.postgres.provisioning import provision_embedded
from memplane.adapters.postgres.storage import PostgresStorage
from memplane.application.records import Edge
from memplane.application.transaction import UnitOfWork
from memplane.domain.identity.principal import Reach
from memplane.entrypoints.cli.bench.grid import Grid
from memplane.entrypoints.cli.bench.latency import Timing
from memplane.entrypoints.cli.bench.server import BenchServerFailed, Server, throwaway_server

CLIENTS = 8
USERS = 20
REPEATED = 0.6
EDGES = 5
WAYS: Sequence[Sequence[str]] = (
    ("The user is allergic to {food}.", "The user has a {food} allergy.", "The user has an allergy to {food}."),
    ("The user likes {food}.", "The user enjoys {food}.", "User is fond of {food}."),
    ("The user visited {city} with {name}.", "The user went to {city} with {name}.",
     "Together with {name}, the user visited {city}."),
    ("{name} is the user's colleague from {city}.", "The user has a colleague from {city} called {name}.",
     "{name} from {city} is a colleague of the user."),
    ("{name} plays the {thing}.", "{name} can play the {thing}.", "The {thing} is played by {name}."),
    ("The user wants to learn the {thing}.", "The user would like to learn the {thing}.",
     "Learning the {thing} is something the user wants to do."),
)  # fmt: skip
"""How each kind of fact is said: first as it is stored, then in other words."""


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FOODS = _listed(
    "peanuts celery mustard sesame lupin shrimp mussels walnuts cashews rhubarb fennel aniseed okra tofu "
    "papaya mango kiwi plums figs dates olives capers beetroot radish spinach kale lentils chickpeas oats "
    "rye barley buckwheat cinnamon nutmeg saffron thyme "
)
CITIES = _listed(
    "Lisbon Porto Ghent Bruges Turin Padua Graz Linz Brno Gdansk Tallinn Riga Vilnius Bergen Aarhus Malmo "
    "Tampere Oulu Cork Galway Leeds York Bath Nantes "
)
NAMES = _listed("Ada Boris Carla Dmitri Elif Farid Greta Hugo Ines Jarek Kaja Lars Mona Nils Olga Pavel ")
THINGS = _listed("cello oboe flute harp banjo lute zither tuba bassoon trumpet accordion mandolin ")


@dataclass(slots=True)
class Result:
    """What eight clients did to the server.

    Attributes:
        took: duration of each write, in milliseconds.
        outcomes: how often each answer came, by whether the write was new, the same, or in other words.
        failed: writes that were refused or broken.
        stored: active memories at the end.
        twice: memories that stand there twice in the same words.
        missing: facts that stand there in none of their wordings: lost by a wrong merge or an overruling.
        deadlocks: as PostgreSQL counted them.
        edge: milliseconds that one relation takes, of those that a new memory gets.
    """

    took: list[float] = field(default_factory=list)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    stored: int = 0
    lost: int = 0
    twice: int = 0
    missing: int = 0
    deadlocks: int = 0
    edge: float = 0.0


@dataclass(frozen=True, slots=True)
class Said:
    """One write: whose, in which words, and what it is to the writes before it."""

    user: str
    text: str
    kind: str
    fact: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when it ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writes", type=int, default=10_000, help="how many")
    parser.add_argument("--seed", type=int, default=7, help="makes the order")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    options = parser.parse_args(arguments)
    writes = told(options.writes, options.seed)
    distinct = sum(write.kind == "new" for write in writes)
    with throwaway_server() as server:
        result = written(server, writes)
        with EmbeddedPostgres.start(server.data) as database:
            examine(database, writes, result)
            result.edge = asyncio.run(edge_ms(database))
            where = machine(database)
    plain = {
        "writes": len(writes), "distinct": distinct, "stored": result.stored, "lost": result.lost,
        "twice": result.twice, "missing": result.missing, "failed": result.failed[:5], "deadlocks": result.deadlocks,
        "outcomes": {f"{kind}: {outcome}": count for (kind, outcome), count in sorted(result.outcomes.items())},
    }  # fmt: skip
    tables = [_counts(plain), _outcomes(result)]
    if options.json:
        print(json.dumps(plain, indent=2))
    else:
        for table in tables:
            Console(width=None if sys.stdout.isatty() else 140).print(table.table())
    if options.figures:
        how = f"Reproduce: `make bench-repeats`. Machine: {where}."
        about = " ".join((__doc__ or "").split("\n\n")[1].split())
        write_section(options.figures, "repeats", "Repeated writes", [about, how, *tables])
    return 0


def told(count: int, seed: int) -> list[Said]:
    """The writes, in the order in which they are sent."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    per_user = round(count * (1 - REPEATED) / USERS)
    writes: list[Said] = []
    for number in range(USERS):
        user = f"user-{number}"
        facts = list(_facts())
        dice.shuffle(facts)
        chosen = facts[:per_user]
        writes += [Said(user, ways[0], "new", tuple(ways)) for ways in chosen]
        for _ in range(round(count / USERS) - len(chosen)):
            ways = dice.choice(chosen)
            if dice.random() < 0.5:
                writes.append(Said(user, _disguised(ways[0], dice), "the same words", tuple(ways)))
            else:
                writes.append(Said(user, dice.choice(ways[1:]), "other words", tuple(ways)))
    dice.shuffle(writes)
    return writes


def _facts() -> Iterator[list[str]]:
    """Every fact that can be told of a user, in each of its ways."""
    words = {"food": FOODS, "city": CITIES, "name": NAMES, "thing": THINGS}
    for ways in WAYS:
        slots = [slot for slot in words if f"{{{slot}}}" in ways[0]]
        for values in product(*(words[slot] for slot in slots)):
            filled = dict(zip(slots, values, strict=True))
            yield [way.format(**filled) for way in ways]


def _disguised(text: str, dice: random.Random) -> str:
    return dice.choice((text, text.removesuffix("."), text.replace(" ", "  "), f" {text} ", text.upper()))


def written(server: Server, writes: Sequence[Said]) -> Result:
    """Send the writes by eight clients at once."""
    result = Result()

    def share(part: Sequence[Said]) -> None:
        link = server.connect("supervisor")
        for write in part:
            body = {"user_id": write.user, "category": "preferences", "content": write.text}
            started = perf_counter()
            try:
                outcome = json.loads(link.post("/v1/memories", body))["outcome"]
            except BenchServerFailed as error:
                result.failed.append(str(error))
                continue
            result.took.append((perf_counter() - started) * 1e3)
            result.outcomes[write.kind, outcome] += 1
        link.close()

    with ThreadPoolExecutor(CLIENTS) as clients:
        for _ in clients.map(share, [writes[place::CLIENTS] for place in range(CLIENTS)]):
            pass
    return result


def examine(database: EmbeddedPostgres, writes: Sequence[Said], result: Result) -> None:
    """Look into the database itself for what was stored."""
    url = database.conninfo(user="postgres", database="memplane")
    with psycopg.connect(url, row_factory=dict_row) as connection:
        rows = connection.execute("SELECT user_id, content, state FROM memories").fetchall()
        counted = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = 'memplane'").fetchone()
    active = Counter((row["user_id"], _plain(row["content"])) for row in rows if row["state"] == "active")
    facts = {(write.user, write.fact) for write in writes}
    result.missing = sum(not any((user, _plain(way)) in active for way in ways) for user, ways in facts)
    result.stored = sum(active.values())
    result.lost = len(rows) - result.stored
    result.twice = sum(count - 1 for count in active.values())
    result.deadlocks = int(counted["deadlocks"]) if counted else -1


def _plain(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


async def edge_ms(database: EmbeddedPostgres) -> float:
    """How long one relation takes, written as a new memory's five are: together, within its transaction."""
    with psycopg.connect(database.conninfo(user="postgres", database="memplane")) as connection:
        ids = [row[0] for row in connection.execute("SELECT id FROM memories ORDER BY id LIMIT 600")]
    storage = PostgresStorage(provision_embedded(database), pool_size=2)
    took: list[float] = []

    async def work(uow: UnitOfWork) -> None:
        for place in range(len(ids) - EDGES):
            edges = [Edge(ids[place], other, 0.5, "measured") for other in ids[place + 1 : place + 1 + EDGES]]
            started = perf_counter()
            await uow.graph.link(edges, datetime.now(UTC))
            took.append((perf_counter() - started) * 1e3 / EDGES)

    await storage.open()
    try:
        await storage.write(Reach("default"), work)
    finally:
        await storage.close()
    return sum(took) / len(took)


def _counts(plain: dict[str, object]) -> Grid:
    names = {
        "writes": "writes", "distinct": "distinct facts", "stored": "stored and active", "lost": "superseded",
        "twice": "stored twice in the same words",
        "missing": "facts in none of their wordings", "deadlocks": "deadlocks",
    }  # fmt: skip
    failed = plain["failed"]
    rows = [(name, str(plain[key])) for key, name in names.items()]
    return Grid("What became of the writes", ("", "count"), [*rows, ("failed", str(len(failed)))])  # type: ignore[arg-type]  # a list


def _outcomes(result: Result) -> Grid:
    took = Timing("", result.took)
    rows = [(f"{kind}: {outcome}", str(count)) for (kind, outcome), count in sorted(result.outcomes.items())]
    speed = [
        (f"p{percent} ms of a write, {CLIENTS} clients", f"{took.percentile(percent):.1f}") for percent in (50, 95)
    ]
    edge = ("ms of one relation, written with a memory", f"{result.edge:.3f}")
    return Grid("Answers, by what was written", ("", "count"), [*rows, *speed, edge])


if __name__ == "__main__":
    sys.exit(main())
