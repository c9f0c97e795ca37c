"""`memplane bench`: recall and latency of a throw-away server, measured over HTTP."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from memplane.domain.errors import MemplaneError, SettingsError
from memplane.entrypoints.cli.bench import latency as load_generation
from memplane.entrypoints.cli.bench import recall as retrieval
from memplane.entrypoints.cli.bench.locomo import LocomoConversation, NotConversations, load
from memplane.entrypoints.cli.bench.server import BenchServerFailed, Server, throwaway_server
from memplane.entrypoints.cli.output import ExitCode, Json, report, show

bench_app = typer.Typer(no_args_is_help=True, help="Measure recall and latency on a throw-away server.")


@bench_app.command("recall")
def bench_recall(
    file: Annotated[Path, typer.Argument(help="Conversations with questions, in LoCoMo format.")],
    ranking: Annotated[list[str] | None, typer.Option(help="Ranking profile; may be repeated.")] = None,
    policies: Annotated[Path | None, typer.Option(help="Policy folder; the shipped one without it.")] = None,
    json: Json = False,
) -> None:
    """Turn recall at 5, 10 and 20: of the messages that hold the answer, how many come back."""
    with told_failures():
        conversations = load(file)
        with throwaway_server(policies) as server:
            measured = measure_recall(server, conversations, ranking or list(retrieval.PROFILES))
    show(retrieval.plain(measured), *(grid.table() for grid in retrieval.grids(measured)), as_json=json)


@bench_app.command("latency")
def bench_latency(
    sizes: Annotated[str, typer.Option(help="Cohorts: users x memories each, comma between.")] = "100x1000",
    requests: Annotated[int, typer.Option(min=10, help="Requests of each kind.")] = 1000,
    seed: Annotated[int, typer.Option(help="Makes the corpus.")] = 7,
    json: Json = False,
) -> None:
    """How long queries and writes take over HTTP."""
    with told_failures():
        wanted = load_generation.Load(load_generation.parsed_sizes(sizes), requests, seed=seed)
        with throwaway_server() as server:
            timings = load_generation.measure(server, wanted, fill(server, wanted))
    table = load_generation.grid(timings, f"Over HTTP, {sizes} turns and memories").table()
    show([timing.plain() for timing in timings], table, as_json=json)


def measure_recall(
    server: Server, conversations: list[LocomoConversation], profiles: list[str]
) -> dict[str, dict[str, retrieval.Figures]]:
    """Ingest conversations into a server and ask everything once for each ranking profile, with progress."""
    link = server.connect(retrieval.AGENT)
    turns = sum(len(session.turns) for conversation in conversations for session in conversation.sessions)
    with progress("storing turns", turns) as done:
        retrieval.ingest(link, conversations, done)
    measured = {}
    for profile in profiles:
        with progress(f"asking, ranking {profile}", sum(len(c.questions) for c in conversations)) as done:
            measured[profile] = retrieval.figures(retrieval.ask(link, conversations, profile, done))
    return measured


def measure_related(server: Server, conversations: list[LocomoConversation]) -> dict[str, dict[str, retrieval.Figures]]:
    """Ingest conversations with the facts that they state, and ask with and without places for related memories."""
    link = server.connect(retrieval.AGENT)
    turns = sum(len(session.turns) for conversation in conversations for session in conversation.sessions)
    with progress("storing turns and facts", turns) as done:
        names = retrieval.ingest(link, conversations, done, extract=True)
    measured = {}
    for name, related in (("off", False), ("on", True)):
        with progress(f"asking, related {name}", sum(len(c.questions) for c in conversations)) as done:
            answers = retrieval.ask_with_facts(link, conversations, names, done, related=related)
            measured[name] = retrieval.figures(answers)
    return measured


def fill(server: Server, wanted: load_generation.Load) -> load_generation.LoadedCohorts:
    """Load the invented people into a server, with progress."""
    cohorts = load_generation.people(wanted)
    total = sum(person.units for people in cohorts for person in people)
    with progress("storing turns and memories", total) as done:
        return load_generation.fill(server, cohorts, done)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error while a terminal looks on; yields what takes the steps."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda steps: bar.advance(task, steps)


@contextmanager
def told_failures() -> Iterator[None]:
    """Failures as the command line tells them: exit code 2 for what the caller gave, 3 for the server."""
    try:
        yield
    except (NotConversations, ValueError) as error:
        raise typer.Exit(report(SettingsError(str(error)))) from error
    except BenchServerFailed as error:
        raise typer.Exit(report(MemplaneError(str(error)), ExitCode.NOT_STARTED)) from error
