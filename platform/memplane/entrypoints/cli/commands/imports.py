"""`memplane import`: an export, lines of JSON, or notes in Markdown, in batches that each count once."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memplane.client.errors import MemplaneClientError
from memplane.client.peers.records import Peer
from memplane.entrypoints.cli.imports.batch_sender import Target, batches, send_all
from memplane.entrypoints.cli.imports.ledger import LEFT_OUT, ImportProgress
from memplane.entrypoints.cli.imports.peer_import import PeerImport, import_export, peer_named, writer_of
from memplane.entrypoints.cli.imports.sources import Entry, ImportSource, source_of
from memplane.entrypoints.cli.options import DEFAULT_URL, POSTGRES, Agent, Data, Key, Url, settings_of
from memplane.entrypoints.cli.output import ExitCode, Json, plain, show
from memplane.entrypoints.cli.progress import bar
from memplane.entrypoints.cli.session import CliSession, operating, session

if TYPE_CHECKING:  # with the policy's reader, which help does not wait for
    from memplane.domain.policy.policy import Policy


def take_in(  # noqa: PLR0913 - one argument for each option
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A file of JSON lines, a note, a folder of notes, or the export of another memory system; for "
            "LangGraph's PostgresStore, its postgresql:// address.",
        ),
    ],
    *,
    peer: Annotated[
        Peer | None, typer.Option("--from", help="Whose export it is.", show_default="seen from its records")
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="The user to import for.", show_default="the one that an export names")
    ] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="As shared knowledge, about no user.", show_default="where an export is")
    ] = False,
    restore: Annotated[
        bool | None,
        typer.Option("--restore/--add", help="As it was, by an administrator; or as new memories.",
                     show_default="--restore for an export"),
    ] = None,
    category: Annotated[
        str | None, typer.Option(help="Of notes under no heading that names one, and of records that name none.")
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option("--map", exists=True, dir_okay=False, help="With --from: YAML that says what the export's users, "
                     "agents, categories and fields are here."),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify/--no-verify", help="With --from: look whether all that was stored is there.")
    ] = True,
    restart: Annotated[bool, typer.Option("--restart", help="Begin anew what was interrupted.")] = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Import an export, lines of the same form, MEMORY.md and memory/*.md, or what another memory system exported.

    A run that was interrupted goes on where it stopped when it is run again. Lines that are refused or left out are in
    PATH.refused.jsonl, each with its number and why.
    """
    if not path.startswith(POSTGRES) and not Path(path).exists():
        raise typer.BadParameter(f"there is no '{path}'", param_hint="PATH")
    if (whose := peer_named(path, peer)) is None:
        reach = _Reach(url, key, agent, data)
        _import_own(Path(path), _Whose(user, shared), restore, category, reach, restart=restart, as_json=json)
    elif shared:
        raise typer.BadParameter("what another system exported is its users': leave --shared out")
    elif restore:
        raise typer.BadParameter("what another system exported is added: leave --restore out")
    else:
        wanted = PeerImport(path, whose, user, category, names, restart, verify, url, key, agent, data)
        import_export(wanted, as_json=json)


@dataclass(frozen=True, slots=True)
class _Reach:
    """The server, and the key and agent for it."""

    url: str
    key: str | None
    agent: str | None
    data: Path | None


@dataclass(frozen=True, slots=True)
class _Whose:
    """What the command says of whom the lines are about."""

    user: str | None
    shared: bool

    def of(self, source: ImportSource) -> str | None:
        """The user whose they become, or none for shared knowledge.

        Raises:
            typer.BadParameter: the command and the file name both, or neither.
        """
        if self.shared and self.user is not None:
            raise typer.BadParameter("--user, --shared: name one of the two")
        if self.shared or (source.is_export and source.user is None and self.user is None):
            return None
        whose = self.user or source.user
        if whose is None:
            raise typer.BadParameter("name the user with --user, or say --shared: only an export says whom it is of")
        return whose


def _import_own(  # noqa: PLR0913 - the options of the command
    path: Path, named: _Whose, restore: bool | None, category: str | None, reach: _Reach, *, restart: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Import what Memplane exported, lines of the same form, or notes."""
    from memplane.bootstrap import policies_of  # noqa: PLC0415 - what help does not wait for

    source = source_of(path)
    whose = named.of(source)
    restoring = source.is_export if restore is None else restore
    known = policies_of(settings_of(data=reach.data).policies).current if source.notes else None
    about = {"fingerprint": source.fingerprint, "user": whose, "mode": "restore" if restoring else "add",
             "agent": reach.agent, "category": category}  # fmt: skip
    ledger = ImportProgress.begin(path, about, restart=restart)
    connect = operating if restoring else session
    with ExitStack() as stack:
        opened = stack.enter_context(connect(reach.url, reach.key, reach.agent, reach.data))
        done = stack.enter_context(bar(source.count))
        done(ledger.done)
        parts: list[tuple[CliSession, Iterable[Entry]]] = [
            (opened, source.entries(known.categories if known else (), category))
        ]
        if known and not (restoring or reach.agent or reach.key):
            writers = _by_writer(known, parts[0][1])
            parts = [
                (stack.enter_context(session(reach.url, None, writer, reach.data)) if writer else opened, part)
                for writer, part in writers.items()
            ]
        try:
            for using, batch in _left(parts, ledger.done):
                for _ in send_all(Target(using, whose, restoring, ledger), batches(batch)):
                    done(ledger.done)
        except MemplaneClientError as error:
            if not ledger.done and error.status is not None and error.status < 500:
                ledger.end()  # refused at once: there is nothing to go on with
            raise
    ledger.end()
    _show(source, whose, ledger, as_json=as_json)


def _by_writer(policy: "Policy", entries: Iterable[Entry]) -> Mapping[str | None, list[Entry]]:
    """Notes by the agent that stores them: the default one, or where it may not write a category, one that may."""
    found: dict[str | None, list[Entry]] = {None: []}
    for entry in entries:
        category = entry.category
        found.setdefault(writer_of(policy, category) if category else None, []).append(entry)
    return found


def _left(
    parts: Iterable[tuple[CliSession, Iterable[Entry]]], done: int
) -> Iterator[tuple[CliSession, Iterator[Entry]]]:
    """What is left of some parts when so many of their entries are done."""
    for opened, part in parts:
        yield opened, islice(part, done, None)
        done = max(0, done - len(part)) if isinstance(part, list) else 0


def _show(source: ImportSource, user: str | None, ledger: ImportProgress, *, as_json: bool) -> None:
    refused = ledger.outcomes["refused"]
    named = refused or ledger.outcomes[LEFT_OUT]
    document = {
        "path": source.path, "user": user, "mode": ledger.about["mode"], "lines": ledger.done,
        "outcomes": dict(ledger.outcomes), "note_lines": _note_lines(ledger) if source.notes else None,
        "refused_file": ledger.refusals if named else None,
    }  # fmt: skip
    told = ", ".join(f"{number} {outcome}" for outcome, number in ledger.outcomes.most_common()) or "nothing"
    what, of = "notes" if source.notes else "lines", "shared" if user is None else f"for {user}"
    human = [plain(f"{source.path}: {ledger.done} {what} {of}: {told}")]
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


def _note_lines(ledger: ImportProgress) -> dict[str, int]:
    """How many lines of text the notes have, and what became of them."""
    became = {name: ledger.lines[name] for name in ("stored", "merged", LEFT_OUT)}
    return {"read": sum(became.values())} | became
