"""Batches on their way to a server: while one is at work, the next is read, sent, and looked at there.

The server stores them in the order of the file: a batch that is sent ahead names the one before it, and is refused when
that one was not stored. What was sent ahead and failed, for this reason or another, is sent again in its turn.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from memplane.client.errors import MemplaneClientError, TooLarge
from memplane.contracts.transfer import MAX_LINES, ImportOutcome, RefusedLine
from memplane.entrypoints.cli.imports.ledger import LEFT_OUT, ImportProgress
from memplane.entrypoints.cli.imports.sources import Entry
from memplane.entrypoints.cli.session import CliSession

MAX_BATCH = 1_500_000
"""Characters of a batch: escaped, they fit the largest body that a server takes."""
AHEAD = 2
"""Batches that are on their way at a time: one is being stored, and one is being looked at."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where batches go.

    Attributes:
        opened: the server.
        user: whose they become; ``None`` for shared knowledge.
        restoring: whether as they were, or as new ones.
        ledger: what is done.
        noted: is given what became of each entry, before the ledger has it.
    """

    opened: CliSession
    user: str | None
    restoring: bool
    ledger: ImportProgress
    noted: Callable[[Sequence[tuple[Entry, str]]], None] | None = None

    def send(self, batch: Sequence[Entry], name: str, after: str | None = None) -> ImportOutcome:
        """Send the lines of a batch under a name, to be stored after another one if one is named.

        Raises:
            MemplaneClientError: the subclass says what kind of failure it was.
        """
        lines = [entry.text for entry in batch if entry.text is not None]
        if not lines:
            return ImportOutcome(outcomes=[], refused=[])
        client, agent = self.opened.client, self.opened.agent
        return client.import_lines(self.user, lines, restore=self.restoring, agent=agent, once=name, after=after)

    def note(self, batch: Sequence[Entry], answer: ImportOutcome) -> None:
        """Note what became of a batch."""
        here = [entry for entry in batch if entry.text is None]
        sent = [entry for entry in batch if entry.text is not None]
        refused = [_refusal(sent[each.line], each.code, each.detail) for each in answer.refused]
        refused += [
            _refusal(entry, LEFT_OUT if entry.is_left_out else "invalid_line", entry.reason or "") for entry in here
        ]
        refused.sort(key=lambda each: (str(each["file"]), each["line"]))
        became: list[tuple[Entry, str]] = list(zip(sent, answer.outcomes, strict=True))
        became += [(entry, LEFT_OUT if entry.is_left_out else "refused") for entry in here]
        if self.noted is not None:
            self.noted(became)
        self.ledger.note([(outcome, entry.lines) for entry, outcome in became], refused)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A batch on its way; ``after`` is what it was to be stored after."""

    batch: Sequence[Entry]
    name: str
    after: str | None
    answer: Future[ImportOutcome]


@dataclass(slots=True)
class _Way:
    target: Target
    pool: ThreadPoolExecutor
    sent: deque[_Sent] = field(default_factory=deque)
    entries: int = 0

    def send(self, batch: Sequence[Entry]) -> None:
        """Send a batch after those that are on their way."""
        name = self.target.ledger.once(self.target.ledger.done + self.entries)
        before = [each.name for each in self.sent if _has_lines(each.batch)]
        after = before[-1] if before else None
        answer = self.pool.submit(self.target.send, batch, name, after)
        self.sent.append(_Sent(batch, name, after, answer))
        self.entries += len(batch)

    def take(self) -> None:
        """Wait for the first of those that are on their way, and note it.

        Raises:
            MemplaneClientError: it failed, and nothing that came after it was stored.
        """
        first = self.sent.popleft()
        self.entries -= len(first.batch)
        try:
            answer = first.answer.result()
        except MemplaneClientError as error:
            if first.after is None and not isinstance(error, TooLarge):
                raise
            self._alone(first.batch)
        else:
            self.target.note(first.batch, answer)

    def _alone(self, batch: Sequence[Entry]) -> None:
        """Send a batch again while no other one is on its way, and then those that were sent after it."""
        others = [each.batch for each in self.sent]
        for each in self.sent:
            each.answer.exception()  # it was refused, for its turn had not come
        self.sent.clear()
        self.entries = 0
        _send(self.target, batch)
        for other in others:
            self.send(other)


def send_all(target: Target, batches: Iterable[Sequence[Entry]]) -> Iterator[None]:
    """Send batches in their order; it yields when another one is noted as done.

    Raises:
        MemplaneClientError: one failed, and nothing that came after it was stored.
    """
    with _threads() as pool:
        way = _Way(target, pool)
        for batch in batches:
            way.send(batch)
            if len(way.sent) == AHEAD:
                way.take()
                yield
        while way.sent:
            way.take()
            yield


@contextmanager
def _threads() -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(AHEAD, thread_name_prefix="import")
    try:
        yield pool
    finally:
        # who closes the client ends what still waits for an answer
        pool.shutdown(wait=False, cancel_futures=True)


def _send(target: Target, batch: Sequence[Entry]) -> None:
    """Send a batch and note what became of it; one that the server finds too large goes in halves."""
    try:
        answer = target.send(batch, target.ledger.once(target.ledger.done))
    except TooLarge as error:
        if len(batch) > 1:
            _send(target, batch[: len(batch) // 2])
            _send(target, batch[len(batch) // 2 :])
            return
        answer = ImportOutcome(
            outcomes=["refused"], refused=[RefusedLine(line=0, code=error.code, detail=error.detail)]
        )
    target.note(batch, answer)


def _has_lines(batch: Sequence[Entry]) -> bool:
    return any(entry.text is not None for entry in batch)


def _refusal(entry: Entry, code: str, detail: str) -> dict[str, object]:
    where = {"file": entry.file, "line": entry.line, "lines": entry.lines}
    return where | {"code": code, "detail": detail, "text": entry.text}


def batches(entries: Iterator[Entry]) -> Iterator[list[Entry]]:
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
