"""`memplane import --from`: exports of other memory systems, converted, sent as any import, counted, and looked for."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
import yaml

from memplane.adapters.files.import_lines import ImportLines, ImportPart
from memplane.client.errors import Invalid, MemplaneClientError
from memplane.client.peers import (
    Conversion,
    ConvertedRecord,
    Document,
    ImportMap,
    Peer,
    convert_records,
    documents,
    pages_missing,
    peer_of,
)
from memplane.entrypoints.cli.imports.batch_sender import Target, batches, send_all
from memplane.entrypoints.cli.imports.ledger import LEFT_OUT, PROGRESS, ImportProgress
from memplane.entrypoints.cli.imports.peer_lines import entries, fill
from memplane.entrypoints.cli.imports.sources import Entry
from memplane.entrypoints.cli.options import DEFAULT_AGENT, POSTGRES, settings_of
from memplane.entrypoints.cli.output import ExitCode, plain, show
from memplane.entrypoints.cli.progress import bar
from memplane.entrypoints.cli.session import CliSession, session

if TYPE_CHECKING:  # what help does not wait for
    from memplane.domain.policy.policy import Policy

LINES = ".import-lines.sqlite"
_MAX_MAP = 1_000_000
_SHOWN = 20
_BUCKETS: Mapping[str, str] = {
    "created": "created", "superseded": "created", "disputed": "created", "outdated": "created",
    "duplicate": "duplicate", "unchanged": "duplicate", "merged": "merged", "updated": "merged",
    "queued_for_consent": "waiting", "refused": "refused", LEFT_OUT: "left_out",
}  # fmt: skip
"""What a record counts as, by what became of it."""
_LISTED: tuple[Mapping[str, str], ...] = ({}, {"trust_state": "disputed"}, {"state": "superseded"})
"""Where a memory that was stored may be listed, once others came after it."""


@dataclass(frozen=True, slots=True)
class PeerImport:
    """What the command was asked for.

    Attributes:
        source: the file, or the address of the database of a LangGraph store.
        peer: whose export it is.
        user, category, map, restart, verify: the options of the command.
        url, key, agent, data: the server, and the key and agent for it.
    """

    source: str
    peer: Peer
    user: str | None
    category: str | None
    map: Path | None
    restart: bool
    verify: bool
    url: str
    key: str | None
    agent: str | None
    data: Path | None

    @property
    def is_database(self) -> bool:
        """Whether the source is an address."""
        return self.source.startswith(POSTGRES)

    def beside(self) -> Path:
        """Where the files of the run are: beside the export, or for a database in the working folder."""
        if not self.is_database:
            return Path(self.source)
        from memplane.adapters.langgraph.postgres_source import address  # noqa: PLC0415 - what help does not wait for

        return Path.cwd() / ("store-" + re.sub(r"\W+", "-", address(self.source).partition("//")[2]))


def peer_named(source: str, wanted: Peer | None) -> Peer | None:
    """Whose export something is; none for what Memplane itself wrote, notes, and what nothing says of.

    Raises:
        Invalid: it may be that of several peers, or breaks off.
        OSError: it cannot be read.
    """
    path = Path(source)
    if wanted is not None or source.startswith(POSTGRES):
        if source.startswith(POSTGRES) and wanted not in {None, Peer.LANGGRAPH}:
            raise Invalid(
                "unsupported_export", f"{wanted}: give a file; only LangGraph's stores are read from databases"
            )
        return Peer.LANGGRAPH if wanted is None else wanted
    if path.is_dir() or path.suffix.lower() in {".md", ".markdown"}:
        return None
    with path.open("rb") as file:
        first = file.read(16).lstrip(b" \t\r\n\xef\xbb\xbf")
    if first.startswith(b"SQLite format 3"):
        return Peer.LANGGRAPH
    try:
        return peer_of(path)
    except Invalid as error:
        if error.code == "ambiguous_export" or path.suffix.lower() == ".json":
            raise
        return None  # lines of which some are broken, each of which is refused for itself


def writer_of(policy: "Policy", category: str) -> str | None:
    """The agent that stores a category where none is named: none for the default one, if it may write it."""
    foreign = category not in policy.allowlist(DEFAULT_AGENT).write
    return policy.keeper(category) if foreign else None


def import_export(wanted: PeerImport, *, as_json: bool) -> None:
    """Convert an export, send it, and look whether all of it is there.

    Raises:
        MemplaneClientError: the export cannot be read, or the server failed; what was sent is noted.
    """
    from memplane.bootstrap import policies_of  # noqa: PLC0415 - what help does not wait for

    policy = policies_of(settings_of(data=wanted.data).policies).current
    beside, about = wanted.beside(), _about(wanted)
    progress = beside.with_name(beside.name + PROGRESS)
    going_on = progress.exists() and not wanted.restart
    lines = ImportLines(beside.with_name(beside.name + LINES), about, restart=not going_on)
    try:
        if not lines.is_whole:
            own = wanted.agent is None and wanted.key is None
            records = _converted(wanted, policy)
            fill(lines, records, wanted.user, lambda each: writer_of(policy, each) if own else None)
        ledger = ImportProgress.begin(beside, about, restart=wanted.restart)
        with ExitStack() as stack:
            sending = _Sending(wanted, lines, ledger, stack)
            sending.send()
            if wanted.verify:
                sending.verify()
        ledger.end()
        document = _report(wanted, lines, ledger)
    finally:
        if progress.exists():
            lines.close()
        else:
            lines.end()  # there is nothing to go on with
    _show(document, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Sending:
    """Lines on their way to a server, by the agents that may store them."""

    wanted: PeerImport
    lines: ImportLines
    ledger: ImportProgress
    stack: ExitStack
    _sessions: dict[str | None, CliSession] = field(default_factory=dict)

    def send(self) -> None:
        """Send what is not done yet."""
        before = self.ledger.done
        done = self.stack.enter_context(bar(self.lines.count))
        for part in self.lines.parts():
            skip, before = min(before, part.size), max(0, before - part.size)
            if skip == part.size:
                continue
            target = Target(self._session(part.writer), part.user or "", False, self.ledger, self._note)
            try:
                for _ in send_all(target, batches(entries(self.lines, part, skip))):
                    done(self.ledger.done)
            except MemplaneClientError as error:
                if not self.ledger.done and error.status is not None and error.status < 500:
                    self.ledger.end()  # refused at once: there is nothing to go on with
                raise

    def verify(self) -> None:
        """Look for every record that was stored, as the agent that stored it."""
        for part in self.lines.parts():
            memories, threads = self.lines.stored_counts(part)
            if part.user is None or not (memories or threads):
                continue
            opened = self._session(part.writer)
            if memories:
                self.lines.note_found(part, _memories(opened, part.user))
            for thread in threads:
                self.lines.note_found(part, _turns(opened, part, thread))

    def _note(self, became: Iterable[tuple[Entry, str]]) -> None:
        self.lines.note((entry.line, outcome) for entry, outcome in became)

    def _session(self, writer: str | None) -> CliSession:
        if writer not in self._sessions:
            wanted = self.wanted
            opening = session(wanted.url, wanted.key, writer or wanted.agent, wanted.data)
            self._sessions[writer] = self.stack.enter_context(opening)
        return self._sessions[writer]


def _memories(opened: CliSession, user: str) -> Iterator[str]:
    for where in _LISTED:
        for each in opened.client.list(user_id=user, agent=opened.agent, **where):  # type: ignore[arg-type]  # of this module
            if each.external_id is not None:
                yield each.external_id


def _turns(opened: CliSession, part: ImportPart, thread: str) -> Iterator[str]:
    after = 0
    while True:
        page = opened.client.thread_turns(thread, user_id=part.user, after_seq=after, limit=200, agent=opened.agent)
        yield from (each.external_id for each in page.items if each.external_id is not None)
        if page.next is None or not page.items:
            return
        after = page.items[-1].seq


def _converted(wanted: PeerImport, policy: "Policy") -> Iterator[ConvertedRecord]:
    names = _map_of(wanted.map)
    by = Conversion(datetime.now(UTC), frozenset(policy.categories), wanted.category, names)
    return convert_records(wanted.peer, _documents(wanted), by)


def _documents(wanted: PeerImport) -> Iterable[Document]:
    from memplane.adapters.langgraph.store_sources import (  # noqa: PLC0415 - what help does not wait for
        is_sqlite,
        items_in_database,
        items_in_file,
    )

    path = Path(wanted.source)
    if wanted.is_database:
        rows = items_in_database(wanted.source)
    elif is_sqlite(path):
        if wanted.peer is not Peer.LANGGRAPH:
            told = "a SQLite file is read as a store of LangGraph alone: mem0's history.db names no users"
            raise Invalid("unsupported_export", told)
        rows = items_in_file(path)
    else:
        return documents(path)
    return (Document(number, "store", fields) for number, fields in enumerate(rows, 1))


def _map_of(path: Path | None) -> ImportMap:
    """The map of names in a file.

    Raises:
        Invalid: it is none.
        OSError: it cannot be read.
    """
    if path is None:
        return ImportMap()
    try:
        if path.stat().st_size > _MAX_MAP:
            raise Invalid("invalid_map", f"{path.name} is larger than {_MAX_MAP} bytes")
        return ImportMap.read(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Invalid("invalid_map", f"{path.name} is no YAML: {' '.join(str(error).split())[:200]}") from error


def _about(wanted: PeerImport) -> dict[str, str | None]:
    about = {"from": str(wanted.peer), "user": wanted.user, "mode": "add", "agent": wanted.agent}
    about |= {"category": wanted.category, "map": _digest(wanted.map) if wanted.map else None}
    return about | {"fingerprint": str(wanted.beside()) if wanted.is_database else _digest(Path(wanted.source))}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _report(wanted: PeerImport, lines: ImportLines, ledger: ImportProgress) -> dict[str, object]:
    counts: Counter[str] = Counter()
    for outcome, number in ledger.outcomes.items():
        counts[_BUCKETS[outcome]] += number
    named = ledger.outcomes["refused"] or ledger.outcomes[LEFT_OUT]
    document: dict[str, object] = {"path": wanted.beside(), "from": wanted.peer, "users": lines.users()}
    document |= {"read": lines.count} | {name: counts[name] for name in dict.fromkeys(_BUCKETS.values())}
    document |= {"outcomes": dict(ledger.outcomes), "left_out_because": lines.left_out()}
    document |= {"unmapped_fields": lines.unmapped_fields(), "verified": None}
    if wanted.verify:
        done = lines.verification()
        document["verified"] = {"checked": done.checked, "found": done.found, "missing": done.missing[:_SHOWN]}
    document["is_one_page"] = not wanted.is_database and pages_missing(Path(wanted.source))
    return document | {"refused_file": ledger.refusals if named else None}


def _show(document: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the report.

    Raises:
        typer.Exit: something was refused, is not there, or is not accounted for.
    """
    counts = {name: document[name] for name in dict.fromkeys(_BUCKETS.values())}
    told = " + ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    users = ", ".join(document["users"]) or "nobody"
    human = [plain(f"{document['path']} ({document['from']}) for {users}: {document['read']} read = {told}")]
    for name, words in (("left_out_because", "Left out"), ("unmapped_fields", "Fields that are not imported")):
        if document[name]:
            parts = ", ".join(f"{count} {key}" for key, count in document[name].items())
            human.append(plain(f"{words}: {parts}"))
    verified = document["verified"]
    if verified is not None:
        human.append(plain(f"Verified: {verified['found']} of {verified['checked']} stored records are there"))
    if document["is_one_page"]:
        human.append(plain("The export says that it is one page of several: import the others too"))
    if document["refused_file"]:
        human.append(plain(f"Which records were refused or left out, and why, is in {document['refused_file']}"))
    show(document, *human, as_json=as_json)
    missing = verified is not None and verified["found"] != verified["checked"]
    if document["refused"] or missing or document["read"] != sum(counts.values()):
        raise typer.Exit(ExitCode.FAILED)
