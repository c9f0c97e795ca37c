"""How recall holds as more is stored and more people ask: scopes, rows in total, clients, contexts, bytes, lag.

Run: python benchmarks/scale.py [--largest 100000] [--total 1000000] [--small 20x1000] [--middle 3x10000]
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import perf_counter

import psycopg
from figures import PAGE, machine, write_section
from psycopg import Connection as Database
from psycopg.sql import SQL
from rich.console import Console

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.contracts.query import QueryAnswer
from memplane.entrypoints.cli.bench import fill
from memplane.entrypoints.cli.bench.corpus import Person
from memplane.entrypoints.cli.bench.grid import Grid
from memplane.entrypoints.cli.bench.latency import Load, TimedQuestion, Timing, grid, questions
from memplane.entrypoints.cli.bench.server import BenchConnection, Server, throwaway_server

Size = tuple[int, int]
"""How many users, and how many turns and memories each of them has."""
CLIENTS = (1, 8, 32)
WINDOW = 100
_TABLES = ("memories", "turns")
_COPIED = ("thread_revision", *_TABLES)
"""Turns are of a thread: it comes first."""
_QUERY, _CONTEXT, _TURNS = "/v1/memory/query", "/v1/context", "/v1/turns"
_COPIES = """
INSERT INTO {table} ({columns})
SELECT {values} FROM {table} source CROSS JOIN generate_series(1, %(copies)s) AS copy (number)
 WHERE source.user_id LIKE %(copied)s"""
"""Other users' rows: those of the small users once more, under other names."""


@dataclass(frozen=True, slots=True)
class Lag:
    """What was asked for at once after it was written.

    Attributes:
        written: how many turns.
        found: of them, by the first question after the answer to the write.
        by_neighbour: found by words that only the turn before them has, of as many.
    """

    written: int
    found: int
    by_neighbour: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options = _options(arguments)
    small, middle = options.small, options.middle
    sizes = [small, middle, (1, options.largest)]
    load = Load(sizes, options.requests)
    parts: list[str | Grid] = []
    with throwaway_server() as server:
        loaded = fill(server, load)
        with EmbeddedPostgres.start(server.data) as postgres:
            conninfo = postgres.conninfo(user="postgres", database="memplane")
            settle(conninfo)
            asks = [questions(cohort, options.requests, load.seed) for cohort in loaded.cohorts]
            timings = [
                _alone(server, each, f"{count} x {size}") for (count, size), each in zip(sizes, asks, strict=True)
            ]
            contexts = _contexts(server, asks[1], middle)
            crowds = [_crowd(server, asks[0], small, clients) for clients in CLIENTS]
            bytes_each = _bytes_each(conninfo)
            lag = _lag(server, loaded.cohorts[0][0])
            before, after = _rows(conninfo), multiplied(conninfo, small, options.total)
            settle(conninfo)
            later = _alone(server, asks[0], f"{small[0]} x {small[1]}, {after} rows in total")
            where = machine(postgres)
    parts.append(grid([*timings, later, contexts, *crowds], "Over HTTP"))
    parts.append(Grid("Ratios", ("what", "figure"), _ratios(timings, later, before, after, bytes_each, lag)))
    for part in parts:
        Console(width=None if sys.stdout.isatty() else 140).print(part.table() if isinstance(part, Grid) else part)
    if options.figures:
        told = (
            "Invented users as under Latency, loaded through the API; the supervisor asks alone unless clients are "
            "told. A context has the default budget and a thread of more than 100 turns. For the rows in total, rows "
            "of the small users were copied to other users within the database. Bytes are those of the tables of units "
            "with their indexes, divided by the units. Lag: turns that the very next question should find, by a word "
            "that only they have, and by one that only the turn before them has."
        )
        reproduce = "Reproduce: `make bench-scale`."
        write_section(options.figures, "scale", "Scale", [told, reproduce, *parts, f"Machine: {where}."])
    return 0


def _ratios(
    timings: Sequence[Timing], later: Timing, before: int, after: int, bytes_each: float, lag: Lag
) -> list[tuple[str, str]]:
    first, *_, last = timings
    return [
        ("p50, largest scope to smallest", f"{last.percentile(50) / first.percentile(50):.2f}"),
        (f"p50, {after} rows in total to {before}", f"{later.percentile(50) / first.percentile(50):.2f}"),
        ("bytes of a turn or memory, indexes included", f"{bytes_each:.0f}"),
        ("turns found by the next question", f"{lag.found} of {lag.written}"),
        ("and by their neighbour's words", f"{lag.by_neighbour} of {lag.written}"),
    ]


def _alone(server: Server, asks: Sequence[TimedQuestion], label: str) -> Timing:
    """The supervisor's questions, one after the other; each scope was asked for before, as in a conversation."""
    link = server.connect("supervisor")
    mine = [ask for ask in asks if ask.agent == "supervisor"]
    for person in {ask.person.user: ask for ask in mine}.values():
        for _ in range(2):
            link.send("POST", _QUERY, person.body)
    return Timing(f"memory.query, {label}", [_timed(link, _QUERY, ask.body) for ask in mine])


def _crowd(server: Server, asks: Sequence[TimedQuestion], size: Size, clients: int) -> Timing:
    """Several clients at the same time, each with its own connection."""

    def share(part: Sequence[TimedQuestion]) -> list[float]:
        link = server.connect("supervisor")
        return [_timed(link, _QUERY, ask.body) for ask in part]

    parts = [part for place in range(clients) if (part := list(asks[place::clients]) * 2)]
    started = perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        durations = [ms for part in pool.map(share, parts) for ms in part]
    return Timing(f"memory.query, {size[0]} x {size[1]}", durations, clients, perf_counter() - started)


def _contexts(server: Server, asks: Sequence[TimedQuestion], size: Size) -> Timing:
    """Contexts of users of the middle size, in a thread whose window is full."""
    link = server.connect("supervisor")
    for user in {ask.person.user for ask in asks}:
        turns = [
            {
                "user_id": user,
                "thread_id": "window",
                "role": "user",
                "text": f"Then we spoke of part {place} of the plan.",
            }
            for place in range(WINDOW + 20)
        ]
        link.post("/v1/turns:batch", {"turns": turns})
    bodies = [
        json.dumps({"message": ask.sentence.question, "user_id": ask.person.user, "thread_id": "window"}).encode()
        for ask in asks
        if ask.agent == "supervisor"
    ]
    for body in bodies[:10]:
        link.send("POST", _CONTEXT, body)
    return Timing(f"context, {size[0]} x {size[1]}, {WINDOW} turns", [_timed(link, _CONTEXT, b) for b in bodies])


def _timed(link: BenchConnection, path: str, body: bytes) -> float:
    started = perf_counter()
    link.send("POST", path, body)
    return (perf_counter() - started) * 1e3


def _lag(server: Server, person: Person, count: int = 100) -> Lag:
    link, random = server.connect("supervisor"), Random(7)  # noqa: S311 - nothing secret
    found = by_neighbour = 0
    for number in range(count):
        first, second = (f"{random.choice('bdgklmnprst')}ovra{word}{number:03d}" for word in ("qux", "zim"))
        for text in (f"Did you hear of {first}?", f"They said it was {second} again."):
            turn = {"user_id": person.user, "thread_id": f"lag-{number}", "role": "user", "text": text}
            link.post(_TURNS, turn)
        found += _brings(link, person, f"What about {second}?", second)
        by_neighbour += _brings(link, person, f"What about {first}?", second)
    return Lag(count, found, by_neighbour)


def _brings(link: BenchConnection, person: Person, question: str, word: str) -> bool:
    body = json.dumps({"query": question, "filters": {"user_id": person.user}, "top_k": 10}).encode()
    answer = QueryAnswer.model_validate_json(link.send("POST", _QUERY, body))
    return any(word in item.text for item in answer.items)


def _in_database(conninfo: str, work: Callable[[Database[tuple[int, ...]]], int]) -> int:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        return work(connection)


def settle(conninfo: str) -> None:
    """Let the planner know what was loaded, so that autovacuum does not work during the measurement."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _rows(conninfo: str) -> int:
    counts = " + ".join(f"(SELECT count(*) FROM {table})" for table in _TABLES)
    return _in_database(
        conninfo, lambda connection: (connection.execute(SQL(f"SELECT {counts}")).fetchone() or (0,))[0]
    )


def _bytes_each(conninfo: str) -> float:
    sizes = " + ".join(f"pg_total_relation_size('{table}')" for table in _TABLES)
    taken = _in_database(
        conninfo, lambda connection: (connection.execute(SQL(f"SELECT {sizes}")).fetchone() or (0,))[0]
    )
    return taken / max(_rows(conninfo), 1)


def multiplied(conninfo: str, small: Size, total: int) -> int:
    """Copy rows to other users until there are about so many; how many there are."""
    copies = max((total - _rows(conninfo)) // (small[0] * small[1]), 0)
    with psycopg.connect(conninfo, autocommit=True) as connection:
        for table in _COPIED:
            named = connection.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
                " AND attgenerated = ''",
                (table,),
            )
            values = {name: f"source.{name}" for (name,) in named.fetchall()}
            values["user_id"] = "source.user_id || '-copy-' || copy.number"
            if "id" in values:
                values["id"] = "gen_random_uuid()"
            statement = _COPIES.format(table=table, columns=", ".join(values), values=", ".join(values.values()))
            connection.execute(SQL(statement), {"copies": copies, "copied": f"user-{small[1]}-%"})
    return _rows(conninfo)


def _size(text: str) -> Size:
    users, _, each = text.partition("x")
    return int(users), int(each)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=500, help="requests of each kind")
    parser.add_argument("--small", type=_size, default="20x1000", help="small users")
    parser.add_argument("--middle", type=_size, default="3x10000", help="users of the middle size")
    parser.add_argument("--largest", type=int, default=100_000, help="turns and memories of the largest user")
    parser.add_argument("--total", type=int, default=1_000_000, help="rows in total at the end")
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
