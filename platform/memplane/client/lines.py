"""The lines of an export as they come, and whether all of them came."""

from collections import Counter
from collections.abc import AsyncGenerator

from pydantic import ValidationError
from pydantic_core import from_json

from memplane.client.errors import UnexpectedAnswer
from memplane.contracts.transfer import END, HEADER, EndLine

INCOMPLETE = "incomplete_export"


async def whole_lines(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The same, cut between lines alone, and checked against the last of them.

    Raises:
        UnexpectedAnswer: there is no last line, or others are missing.
    """
    counted = _Counted()
    rest = b""
    async for piece in pieces:
        lines, newline, after = piece.rpartition(b"\n")
        if newline:
            some, rest = rest + lines + newline, after
            counted.take(some)
            yield some
        else:
            rest += piece
    counted.finish(rest)


class _Counted:
    """What came so far."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._end: EndLine | None = None

    def take(self, some: bytes) -> None:
        """Count whole lines."""
        for line in some.split(b"\n")[:-1]:
            record = _record_of(line)
            if self._end is not None or (record == HEADER) is not (not self._counts):
                raise _incomplete("its lines are out of order")
            if record == END:
                self._end = _end_of(line)
            self._counts[record] += 1

    def finish(self, rest: bytes) -> None:
        """Look whether all of it came."""
        if self._end is None or rest:
            raise _incomplete("it broke off")
        del self._counts[HEADER], self._counts[END]
        if self._counts != Counter(self._end.counts):
            raise _incomplete("lines are missing")


def _record_of(line: bytes) -> str:
    # each line of a server begins so; another one is read to its end
    if line.startswith(b'{"record":"') and 0 < (close := line.find(b'"', 11)) < 40:
        return line[11:close].decode("ascii", "replace")
    try:
        found = from_json(line)
    except ValueError as error:
        raise _incomplete("a line is no JSON") from error
    return str(found.get("record")) if isinstance(found, dict) else ""


def _end_of(line: bytes) -> EndLine:
    try:
        return EndLine.model_validate_json(line)
    except ValidationError as error:
        raise _incomplete("its last line cannot be read") from error


def _incomplete(why: str) -> UnexpectedAnswer:
    return UnexpectedAnswer(INCOMPLETE, f"the export is not whole: {why}; ask for it again")
