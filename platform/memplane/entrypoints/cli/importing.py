"""`memplane import`: an export, lines of JSON, or notes in Markdown, in batches that each count once."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from memplane.client.errors import MemplaneClientError
from memplane.contracts.transfer import MAX_LINES
from memplane.entrypoints.cli.ledger import LEFT_OUT, Ledger
from memplane.entrypoints.cli.options import DEFAULT_AGENT, DEFAULT_URL, Agent, AnyUser, Data, Key, Url, settings_of
from memplane.entrypoints.cli.output import ExitCode, Json, plain, show
from memplane.entrypoints.cli.sending import Target, send_all
from memplane.entrypoints.cli.session import Session, operating, session
from memplane.entrypoints.cli.sources import Entry, Source, source_of

if TYPE_CHECKING:  # with the policy's reader, which help does not wait for
    from memplane.domain.policy import Policy

MAX_BATCH = 1_500_000
"""Characters of a batch: escaped, they fit the largest body that a server takes."""


def take_in(  # noqa: PLR0913 - one argument for each option
    path: Annotated[Path, typer.Argument(exists=True, help="A file of JSON lines, a note, or a folder of notes.")],
    *,
    user: AnyUser = None,
    restore: Annotated[
        bool | None,
        typer.Option("--restore/--add", help="As it was, by an administrator; or as new memories.",
                     show_default="--restore for an export"),
    ] = None,
    category: Annotated[str | None, typer.Option(help="Of notes under no heading that names one.")] = None,
    restart: Annotated[bool, typer.Option("--restart", help="Begin anew what was interrupted.")] = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Import an export, lines of the same form, or MEMORY.md and memory/*.md.

    A run that was interrupted goes on where it stopped when it is run again. Lines that are refused or left out are in
    PATH.refused.jsonl, each with its number and why.
    """
    from memplane.bootstrap import policies_of  # noqa: PLC0415 - what help does not wait for

    source = source_of(path)
    whose = user or source.user
    if whose is None:
        raise typer.BadParameter("name the user with --user: only an export says whom it is of")
    restoring = source.is_export if restore is None else restore
    known = policies_of(settings_of(data=data).policies).current if source.notes else None
    about = {"fingerprint": source.fingerprint, "user": whose, "mode": "restore" if restoring else "add",
             "agent": agent, "category": category}  # fmt: skip
    ledger = Ledger.begin(path, about, restart=restart)
    connect = operating if restoring else session
    with ExitStack() as stack:
        opened = stack.enter_context(connect(url, key, agent, data))
        done = stack.enter_context(_bar(source))
        done(ledger.done)
        parts: list[tuple[Session, Iterable[Entry]]] = [
            (opened, source.entries(known.categories if known else (), category))
        ]
        if known and not (restoring or agent or key):
            writers = _by_writer(known, parts[0][1])
            parts = [
                (stack.enter_context(session(url, None, writer, data)) if writer else opened, part)
                for writer, part in writers.items()
            ]
        try:
            for using, batch in _left(parts, ledger.done):
                for _ in send_all(Target(using, whose, restoring, ledger), _batches(batch)):
                    done(ledger.done)
        except MemplaneClientError as error:
            if not ledger.done and error.status is not None and error.status < 500:
                ledger.end()  # refused at once: there is nothing to go on with
            raise
    ledger.end()
    _show(source, whose, ledger, as_json=json)


def _by_writer(policy: "Policy", entries: Iterable[Entry]) -> Mapping[str | None, list[Entry]]:
    """Notes by the agent that stores them: the default one, or where it may not write a category, one that may."""
    found: dict[str | None, list[Entry]] = {None: []}
    for entry in entries:
        category = entry.category
        foreign = category is not None and category not in policy.allowlist(DEFAULT_AGENT).write
        found.setdefault(policy.keeper(category) if foreign and category else None, []).append(entry)
    return found


def _left(parts: Iterable[tuple[Session, Iterable[Entry]]], done: int) -> Iterator[tuple[Session, Iterator[Entry]]]:
    """What is left of some parts when so many of their entries are done."""
    for opened, part in parts:
        yield opened, islice(part, done, None)
        done = max(0, done - len(part)) if isinstance(part, list) else 0


def _batches(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
    """Entries, as many as one request takes."""
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        length = len(entry.text or "")
        if batch and (len(batch) == MAX_LINES or size + length > MAX_BATCH):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += length
    if batch:
        yield batch


class _Done:
    """A bar of lines, on a terminal."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task("lines", total=total)

    def __call__(self, lines: int) -> None:
        self._progress.update(self._task, completed=lines)


@contextmanager
def _bar(source: Source) -> Iterator[_Done]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        yield _Done(progress, source.count)


def _show(source: Source, user: str, ledger: Ledger, *, as_json: bool) -> None:
    refused = ledger.outcomes["refused"]
    named = refused or ledger.outcomes[LEFT_OUT]
    document = {
        "path": source.path, "user": user, "mode": ledger.about["mode"], "lines": ledger.done,
        "outcomes": dict(ledger.outcomes), "note_lines": _note_lines(ledger) if source.notes else None,
        "refused_file": ledger.refusals if named else None,
    }  # fmt: skip
    told = ", ".join(f"{number} {outcome}" for outcome, number in ledger.outcomes.most_common()) or "nothing"
    human = [plain(f"{source.path}: {ledger.done} {'notes' if source.notes else 'lines'} for {user}: {told}")]
    if source.notes:
        read, *rest = _note_lines(ledger).items()
        human.append(
            plain(f"{read[1]} lines read: {', '.join(f'{count} {name}' for name, count in rest)}".replace("_", " "))
        )
    if named:
        human.append(plain(f"Which lines were refused or left out, and why, is in {ledger.refusals}"))
    show(document, *human, as_json=as_json)
    if refused:
        raise typer.Exit(ExitCode.FAILED)


def _note_lines(ledger: Ledger) -> dict[str, int]:
    """How many lines of text the notes have, and what became of them."""
    became = {name: ledger.lines[name] for name in ("stored", "merged", LEFT_OUT)}
    return {"read": sum(became.values())} | became
