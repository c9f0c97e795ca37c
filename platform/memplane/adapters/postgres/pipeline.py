"""A transaction whose statements travel together, each batch written at once and then waited for.

The driver's own pipeline waits for the socket before each statement and makes a cursor for each; at half a dozen short
statements a question that is most of what a question costs. This sends what a batch asks in one write, by the driver's
bindings of libpq (https://www.postgresql.org/docs/18/libpq-pipeline-mode.html), and reads rows by its own adapters.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from time import monotonic
from typing import Any, TypeVar

from psycopg import AsyncConnection, OperationalError, errors
from psycopg.abc import PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.generators import fetch_many
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGconn, PGresult
from psycopg.rows import DictRow
from psycopg.waiting import READY_R, READY_W, WAIT_RW, Ready

from memplane.adapters.postgres.arrays import bind_arrays
from memplane.adapters.sql.queries.read_statements import Statement
from memplane.domain.errors import StorageError

T = TypeVar("T")
Maker = Callable[[Sequence[str]], Callable[[Sequence[Any]], T]]
"""From the names of columns, what makes a row of their values."""
_INTERVAL = 0.1
"""Seconds after which the driver looks for an interrupt."""
_MOST_PREPARED = 256
PLAN_SECONDS = 10.0
"""How long a connection keeps its plans: tables grow, and what analyses them comes by only now and then."""
_NAMED = re.compile(r"%\((\w+)\)s")
READING = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"  # one look: all statements see the same moment
WRITING = b"BEGIN ISOLATION LEVEL READ COMMITTED"  # what waited for a lock is followed by statements that see the end
_PLAN_ANEW = b"DISCARD PLANS"
_FAILED = (ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE)


def as_dicts(names: Sequence[str]) -> Callable[[Sequence[Any]], dict[str, Any]]:
    """Rows by column name."""
    return lambda values: dict(zip(names, values, strict=True))


def as_tuples(_names: Sequence[str]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Rows by place."""
    return tuple


class AnswerTimeout(OperationalError):
    """The database did not answer in time; whether it did what it was asked is not known, and the connection is closed.

    Attributes:
        seconds: how long it was given.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds


class PipelineConnection(AsyncConnection[DictRow]):
    """A connection that remembers which statements the server has prepared for it, and waits only so long.

    The server's own timeouts end a statement while it works; a server that is frozen, or behind a network that drops
    what is sent, ends nothing.

    Attributes:
        prepared: the statements.
        deadline: seconds for one exchange.
    """

    prepared: "PreparedStatements | None" = None
    deadline: float | None = None

    async def wait(self, gen: PQGen[T], interval: float = _INTERVAL, timeout: float | None = None) -> T:  # noqa: ASYNC109 - the driver's
        """Wait for the server, as the driver does, until the deadline.

        Raises:
            Unanswered: the deadline has passed.
        """
        seconds = self.deadline if timeout is None else timeout
        begun = monotonic()
        try:
            return await super().wait(gen, interval, seconds)
        except OperationalError as error:
            if seconds is None or error.sqlstate is not None or monotonic() - begun < seconds:
                raise
            self.pgconn.finish()
            raise AnswerTimeout(seconds) from error

    def _deallocate(self, name: bytes | None) -> PQGen[None]:
        """As the driver does; after a rollback it deallocates all statements (``None``), those of exchanges too."""
        if name is None:
            self.prepared = None
        yield from super()._deallocate(name)


class PreparedStatements:
    """The statements that a connection has prepared, the least used ones first."""

    def __init__(self, connection: PipelineConnection) -> None:
        self.transformer = Transformer(connection)
        self._names: OrderedDict[tuple[bytes, tuple[int, ...]], bytes] = OrderedDict()
        self._made = 0
        self._planned = monotonic()

    def must_replan(self) -> bool:
        """Whether to plan anew, from now on: a plan that was made for an empty table is a bad one for a full one."""
        now = monotonic()
        if now - self._planned < PLAN_SECONDS:
            return False
        self._planned = now
        return True

    def find(self, key: tuple[bytes, tuple[int, ...]]) -> bytes | None:
        """The name of a statement."""
        if key in self._names:
            self._names.move_to_end(key)
        return self._names.get(key)

    def new(self, key: tuple[bytes, tuple[int, ...]]) -> tuple[bytes, bytes | None]:
        """A name for a statement, and the name of one that makes room for it."""
        self._made += 1
        self._names[key] = b"read_%d" % self._made
        gone = self._names.popitem(last=False)[1] if len(self._names) > _MOST_PREPARED else None
        return self._names[key], gone


class Pipeline:
    """One transaction on a connection that nobody else uses.

    Whoever opened it ends it, or closes the connection if it is broken.

    Args:
        connection: outside any transaction.
        beginning: what every later statement depends on; it sees no row of a tenant.
        begin: what opens the transaction.

    Attributes:
        broken: whether something was refused or interrupted: the connection is of no use any more.
    """

    def __init__(self, connection: PipelineConnection, beginning: Statement, begin: bytes = READING) -> None:
        self._pgconn = connection.pgconn
        self._deadline = connection.deadline
        self._begin = begin
        if connection.prepared is None:
            connection.prepared = PreparedStatements(connection)
        self._prepared = connection.prepared
        self._beginning: Statement | None = beginning
        self._commands: list[Callable[[], None]] = []
        self._unread = 0
        self.broken = False

    async def rows(self, asked: Sequence[Statement], make: Maker[T]) -> list[list[T]]:
        """The rows of several statements, sent together and then waited for.

        Raises:
            psycopg.Error: the database refuses one of them; the transaction is over.
        """
        places = self._queued(asked)
        self._commands.append(self._pgconn.send_flush_request)
        results = await self._sent()
        return [self._loaded(results[place], make) for place in places]

    def send(self, asked: Sequence[Statement]) -> None:
        """Statements whose rows nobody asks for: they travel with what is waited for next, be it the end."""
        self._queued(asked)
        self.broken = False  # they wait here, whole

    def _queued(self, asked: Sequence[Statement]) -> list[int]:
        """Let statements wait to be sent, with the beginning before the first; the places of their results."""
        self.broken = True  # until all of it has come
        if self._beginning is not None:
            beginning, self._beginning = self._beginning, None
            self._pgconn.enter_pipeline_mode()
            self._queue(self._begin)
            if self._prepared.must_replan():
                self._queue(_PLAN_ANEW)
            self._enqueue(beginning)
        return [self._enqueue(statement) for statement in asked]

    def _queue(self, command: bytes) -> None:
        self._commands.append(partial(self._pgconn.send_query_params, command, None))
        self._unread += 1

    async def at_once(self, asked: Statement, make: Maker[T]) -> list[T]:
        """The rows of one statement: with what it depends on it is sent, answered and over in one exchange.

        What is sent before a sync is a transaction by itself, without a word of its beginning and its end.

        Raises:
            psycopg.Error: the database refuses it.
            ValueError: the exchange has begun.
        """
        if self._beginning is None:
            raise ValueError("this exchange has begun")
        beginning, self._beginning = self._beginning, None
        self.broken = True  # until all of it has come
        self._pgconn.enter_pipeline_mode()
        self._enqueue(beginning)
        place = self._enqueue(asked)
        self._sync()
        results = await self._sent()
        self.broken = True
        self._pgconn.exit_pipeline_mode()
        self.broken = False
        return self._loaded(results[place], make)

    async def end(self, *, keep: bool = True) -> None:
        """End the transaction, if one began, and leave the connection as it was.

        Args:
            keep: whether what it wrote is kept, or taken back.

        Raises:
            psycopg.Error: the database refuses what was sent, or the commit; the transaction is over.
        """
        if self._beginning is None:
            # what waits is sent even to be taken back: the connection counts its statements as prepared
            self._queue(b"COMMIT" if keep else b"ROLLBACK")
            self._sync()
            await self._sent()
            self.broken = True
            self._pgconn.exit_pipeline_mode()
            self.broken = False

    def _sync(self) -> None:
        self._commands.append(self._pgconn.pipeline_sync)
        self._unread += 1

    def _enqueue(self, statement: Statement) -> int:
        """Send a statement with the next batch; the place of its result."""
        query, names = to_numbered_parameters(statement.sql)
        values = bind_arrays(statement.values)
        transformer = self._prepared.transformer
        given = transformer.dump_sequence([values[name] for name in names], [PyFormat.AUTO] * len(names))
        types, formats = tuple(transformer.types or ()), transformer.formats
        name = self._prepared.find((query, types))
        if name is None:
            name, gone = self._prepared.new((query, types))
            if gone is not None:
                self._queue(b"DEALLOCATE " + gone)
            self._commands.append(partial(self._pgconn.send_prepare, name, query, types))
            self._unread += 1
        self._commands.append(
            partial(self._pgconn.send_query_prepared, name, given, formats, result_format=Format.BINARY)
        )
        self._unread += 1
        return self._unread - 1

    async def _sent(self) -> list[PGresult]:
        """Send what waits, and its results, one for each command."""
        commands, self._commands = self._commands, []
        awaited, self._unread = self._unread, 0
        self.broken = True  # until all of it has come
        results = await _waited(_talk(self._pgconn, commands, awaited), self._pgconn.socket, self._deadline)
        for result in results:
            if result.status in _FAILED:
                raise errors.error_from_result(result, encoding="utf-8")
        self.broken = False
        return results

    def _loaded(self, result: PGresult, make: Maker[T]) -> list[T]:
        names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
        transformer = self._prepared.transformer
        transformer.set_pgresult(result)
        rows: list[T] = transformer.load_rows(0, result.ntuples, make(names))
        return rows


@lru_cache(maxsize=1024)
def to_numbered_parameters(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """A statement with numbered parameters, and the names of their values in order.

    Raises:
        ValueError: it has a per cent sign that is neither doubled nor a parameter's.
    """
    names: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        return f"${names.setdefault(match[1], len(names) + 1)}"

    parts = [_NAMED.sub(numbered, part) for part in sql.split("%%")]
    if any("%" in part for part in parts):
        raise ValueError(f"a single per cent sign in a statement: {sql}")
    return "%".join(parts).encode(), tuple(names)


async def _waited(talk: PQGen[T], socket: int, seconds: float | None) -> T:
    """What comes of a talk: the driver's way to wait makes a task and a timer each time.

    Raises:
        Unanswered: nothing more came in time.
    """
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[Ready] = loop.create_future()
    late = None if seconds is None else loop.call_later(seconds, lambda: _give_up(ready, seconds))
    try:
        wanted = next(talk)
        while True:
            ready = loop.create_future()
            loop.add_reader(socket, _settle, ready, READY_R)
            if wanted & READY_W:
                loop.add_writer(socket, _settle, ready, READY_W)
            try:
                able = await ready
            finally:
                loop.remove_reader(socket)
                if wanted & READY_W:
                    loop.remove_writer(socket)
            wanted = talk.send(able)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        if late is not None:
            late.cancel()


def _give_up(future: "asyncio.Future[Ready]", seconds: float) -> None:
    if not future.done():
        future.set_exception(AnswerTimeout(seconds))


def _settle(future: "asyncio.Future[Ready]", ready: Ready) -> None:
    if not future.done():
        future.set_result(ready)


def _talk(pgconn: PGconn, commands: Sequence[Callable[[], None]], awaited: int) -> PQGen[list[PGresult]]:
    """Send everything, and read so many results."""
    for command in commands:
        command()
    while pgconn.flush():
        if (yield WAIT_RW) & READY_R:
            pgconn.consume_input()  # a server that nobody listens to stops listening
    results: list[PGresult] = []
    while len(results) < awaited:
        found = yield from fetch_many(pgconn)
        if not found:
            raise StorageError("the database gave fewer answers than it was asked for")
        results.append(found[-1])
    return results
