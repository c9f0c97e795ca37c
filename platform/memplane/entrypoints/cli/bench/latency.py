"""How long requests take: a corpus loaded through the API, then questions and writes, timed one by one."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, islice
from random import Random
from time import perf_counter

from memplane.contracts.query import QueryAnswer
from memplane.entrypoints.cli.bench.corpus import SHARES, Corpus, Person, Sentence, spoken_at
from memplane.entrypoints.cli.bench.grid import Grid
from memplane.entrypoints.cli.bench.server import BenchConnection, Server

LOADERS = 4
BUSY_CLIENTS = 4
WARM_UP = 50
TOP_K = 10
_BATCH = 500
_TURNS_A_THREAD = 45
_QUERY = "/v1/memory/query"


@dataclass(frozen=True, slots=True)
class Load:
    """What to measure with.

    Attributes:
        sizes: cohorts of users, as (users, turns and memories of each).
        requests: how many of each kind are timed.
        memory_share: which part of a user's corpus are memories, the rest turns.
        seed: makes the corpus and the order of the requests.
    """

    sizes: Sequence[tuple[int, int]] = ((100, 1000),)
    requests: int = 1000
    memory_share: float = 0.1
    seed: int = 7


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations of one kind of request.

    Attributes:
        name: the kind.
        milliseconds: each duration.
        clients: how many at the same time.
        seconds: how long all of them took.
    """

    name: str
    milliseconds: Sequence[float]
    clients: int = 1
    seconds: float = 0.0

    def percentile(self, percent: float) -> float:
        """The duration that so many percent do not exceed (nearest rank), in milliseconds."""
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]

    def plain(self) -> dict[str, object]:
        """The figures as JSON can hold them."""
        cuts = {f"p{percent}": round(self.percentile(percent), 3) for percent in (50, 95, 99)}
        rate = round(len(self.milliseconds) / self.seconds, 1) if self.seconds else None
        return {"name": self.name, "requests": len(self.milliseconds), **cuts, "clients": self.clients, "rate": rate}


@dataclass(frozen=True, slots=True)
class LoadedCohorts:
    """People by cohort, and how fast they went in, in units a second."""

    cohorts: Sequence[Sequence[Person]]
    turns_rate: float
    memories_rate: float

    @property
    def units(self) -> int:
        """Turns and memories of everybody."""
        return sum(person.units for people in self.cohorts for person in people)


def people(load: Load) -> list[list[Person]]:
    """The invented people of each cohort."""
    corpus = Corpus(load.seed)
    return [
        [corpus.person(f"user-{size}-{number}", size, load.memory_share) for number in range(count)]
        for count, size in load.sizes
    ]


def fill(server: Server, cohorts: Sequence[Sequence[Person]], done: Callable[[int], None]) -> LoadedCohorts:
    """Store everybody's turns in batches, then everybody's memories one by one; ``done`` is told how many went in."""
    everybody = [person for cohort in cohorts for person in cohort]
    turns = sum(len(person.turns) for person in everybody)
    memories = sum(len(person.memories) for person in everybody)
    started = perf_counter()
    _parallel(server, everybody, lambda links, person: _fill_turns(links["supervisor"], person, done))
    between = perf_counter()
    _parallel(server, everybody, lambda links, person: _fill_memories(links, person, done))
    return LoadedCohorts(cohorts, turns / (between - started), memories / max(perf_counter() - between, 1e-9))


def _parallel(
    server: Server, everybody: Sequence[Person], work: Callable[[dict[str, BenchConnection], Person], None]
) -> None:
    def share(part: Sequence[Person]) -> None:
        links = {agent: server.connect(agent) for agent in SHARES}
        for person in part:
            work(links, person)
        for link in links.values():
            link.close()

    parts = [part for place in range(LOADERS) if (part := everybody[place::LOADERS])]
    with ThreadPoolExecutor(LOADERS) as pool:
        list(pool.map(share, parts))


def _fill_turns(link: BenchConnection, person: Person, done: Callable[[int], None]) -> None:
    for start in range(0, len(person.turns), _BATCH):
        part = person.turns[start : start + _BATCH]
        turns = [_turn(person, start + place, sentence) for place, sentence in enumerate(part)]
        link.post("/v1/turns:batch", {"turns": turns})
        done(len(turns))


def _turn(person: Person, place: int, sentence: Sentence) -> dict[str, object]:
    return {
        "user_id": person.user,
        "thread_id": f"{person.user}/{place // _TURNS_A_THREAD}",
        "role": "assistant" if place % 2 else "user",
        "text": sentence.text,
        "event_time": spoken_at(place),
        "external_id": f"turn-{place}",
    }


def _fill_memories(links: dict[str, BenchConnection], person: Person, done: Callable[[int], None]) -> None:
    for place, (agent, category, sentence) in enumerate(person.memories):
        links[agent].post("/v1/memories", _memory(person, category, sentence, place))
        done(1)


def _memory(person: Person, category: str, sentence: Sentence, place: int) -> dict[str, object]:
    named = {"user_id": person.user, "category": category, "content": sentence.text}
    return {**named, "external_id": f"memory-{place}", "importance": 1 + place % 5}


@dataclass(frozen=True, slots=True)
class TimedQuestion:
    """A question of one agent to one user's memory, as it is sent."""

    agent: str
    person: Person
    sentence: Sentence

    @property
    def body(self) -> bytes:
        """The request's body."""
        filters = {"user_id": self.person.user}
        return json.dumps({"query": self.sentence.question, "filters": filters, "top_k": TOP_K}).encode()


def questions(cohort: Sequence[Person], count: int, seed: int) -> list[TimedQuestion]:
    """Questions by all agents, in their shares, about random people: what was said, or what that agent wrote."""
    random = Random(seed)  # noqa: S311 - nothing secret
    agents = [agent for agent, tenths in SHARES.items() for _ in range(tenths)]
    random.shuffle(agents)
    asks = []
    for agent in islice(cycle(agents), count):
        person = random.choice(cohort)
        mine = [sentence for writer, _, sentence in person.memories if writer == agent]
        said = list(person.turns) if agent == "supervisor" else []
        asks.append(TimedQuestion(agent, person, random.choice(said + mine or list(person.turns))))
    return asks


def timed_queries(server: Server, asks: Sequence[TimedQuestion], label: str) -> Iterator[Timing]:
    """One client asks everything in turn: all agents together, and the supervisor, who sees turns and memories."""
    links = {agent: server.connect(agent) for agent in SHARES}
    for ask in asks[:WARM_UP]:
        links[ask.agent].send("POST", _QUERY, ask.body)
    durations = [(ask.agent, _timed(links[ask.agent], ask)) for ask in asks]
    yield Timing(f"memory.query, all agents, {label}", [ms for _, ms in durations])
    yield Timing(f"memory.query, supervisor, {label}", [ms for agent, ms in durations if agent == "supervisor"])


def _timed(link: BenchConnection, ask: TimedQuestion) -> float:
    body = ask.body
    started = perf_counter()
    link.send("POST", _QUERY, body)
    return (perf_counter() - started) * 1e3


def timed_crowd(server: Server, asks: Sequence[TimedQuestion], label: str) -> Timing:
    """Several clients ask at the same time."""

    def share(part: Sequence[TimedQuestion]) -> list[float]:
        links = {agent: server.connect(agent) for agent in SHARES}
        return [_timed(links[ask.agent], ask) for ask in part]

    parts = [part for place in range(BUSY_CLIENTS) if (part := asks[place::BUSY_CLIENTS])]
    started = perf_counter()
    with ThreadPoolExecutor(BUSY_CLIENTS) as pool:
        durations = [ms for part in pool.map(share, parts) for ms in part]
    return Timing(f"memory.query, all agents, {label}", durations, BUSY_CLIENTS, perf_counter() - started)


def timed_writes(server: Server, load: Load, person: Person) -> Iterator[Timing]:
    """One client writes single turns, then single memories, to one user; and asks for nothing, for comparison."""
    link = server.connect("supervisor")
    new = Corpus(load.seed + 1).person(person.user, load.requests, 0.5)
    turns = [_turn(person, len(person.turns) + place, sentence) for place, sentence in enumerate(new.turns)]
    yield Timing("POST /v1/turns", [_posted(link, "/v1/turns", turn) for turn in turns])
    memories = [
        _memory(person, "tasks", sentence, len(person.memories) + place)
        for place, (_, _, sentence) in enumerate(new.memories)
    ]
    yield Timing("POST /v1/memories", [_posted(link, "/v1/memories", memory) for memory in memories])
    yield Timing("GET /healthz (HTTP alone)", [_got(link, "/healthz") for _ in range(load.requests)])


def _posted(link: BenchConnection, path: str, body: object) -> float:
    payload = json.dumps(body).encode()
    started = perf_counter()
    link.send("POST", path, payload)
    return (perf_counter() - started) * 1e3


def _got(link: BenchConnection, path: str) -> float:
    started = perf_counter()
    link.send("GET", path)
    return (perf_counter() - started) * 1e3


def found_share(server: Server, asks: Sequence[TimedQuestion]) -> float:
    """The share of the supervisor's questions whose sentence is among the results: answers are not empty."""
    link = server.connect("supervisor")
    mine = [ask for ask in asks if ask.agent == "supervisor"][:100]
    found = 0
    for ask in mine:
        answer = QueryAnswer.model_validate_json(link.send("POST", _QUERY, ask.body))
        found += any(ask.sentence.text in item.text for item in answer.items)
    return found / max(len(mine), 1)


def measure(server: Server, load: Load, loaded: LoadedCohorts) -> list[Timing]:
    """Every timing of a loaded server."""
    timings = []
    for (count, size), cohort in zip(load.sizes, loaded.cohorts, strict=True):
        label = f"{count} x {size}"
        asks = questions(cohort, load.requests, load.seed)
        timings += [*timed_queries(server, asks, label), timed_crowd(server, asks, label)]
    return [*timings, *timed_writes(server, load, loaded.cohorts[0][0])]


def grid(timings: Sequence[Timing], title: str) -> Grid:
    """A table of timings, in milliseconds."""
    rows = []
    for timing in timings:
        cuts = [f"{timing.percentile(percent):.2f}" for percent in (50, 95, 99)]
        rate = f"{len(timing.milliseconds) / timing.seconds:.0f}" if timing.seconds else "-"
        rows.append([timing.name, str(timing.clients), *cuts, rate])
    return Grid(title, ("request", "clients", "p50 ms", "p95 ms", "p99 ms", "requests/s"), rows)


def parsed_sizes(text: str) -> list[tuple[int, int]]:
    """Cohorts from text such as ``100x1000,10x10000``.

    Raises:
        ValueError: it is not of that form.
    """
    cohorts = []
    for entry in text.split(","):
        users, _, each = entry.partition("x")
        if not (users.isascii() and users.isdigit() and each.isascii() and each.isdigit() and int(users) * int(each)):
            raise ValueError(f"'{text}': write cohorts as users x memories each, for example 100x1000,10x10000")
        cohorts.append((int(users), int(each)))
    return cohorts
