"""Planted words: each stands in one place of one record, so that an answer which has it tells where it leaks from."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_LETTERS = "bcdfghjklmnpqrtvwz"  # no vowels, no s, no y: a stemmer leaves such words alone, and no other text has them
_MARK = "xq"
_LENGTH = 6
WORD = re.compile(rf"{_MARK}[{_LETTERS}]{{{_LENGTH}}}".encode(), re.IGNORECASE)

LIVES = (
    "active", "confirmed", "disputed", "rejected", "soft_deleted", "superseded", "archived", "expired", "ended",
)  # fmt: skip
"""What can have become of a record. ``ended``: true no longer; ``replaced`` words stand in a history alone."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where words were written, as far as that decides who may read them."""

    tenant: str
    user: str
    category: str
    visibility: str
    min_trust: str


@dataclass(frozen=True, slots=True)
class Canary:
    """One planted word.

    Attributes:
        word: the word, in lower case.
        part: what it stands in: title, tag, turn, alias, …
        places: a reader must be allowed to read each of them.
        life: what has become of the record.
        record: the record's id.
    """

    word: str
    part: str
    places: tuple[Place, ...]
    life: str
    record: str


@dataclass(frozen=True, slots=True)
class Record:
    """One planted memory or turn, with its words by the part that they stand in."""

    id: str
    place: Place
    life: str
    words: Mapping[str, str]
    thread: str
    entity: str | None = None
    turn: bool = False


@dataclass
class Planted:
    """Everything that was planted."""

    canaries: dict[str, Canary] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def word(self) -> str:
        """A word that nobody had before."""
        number, letters = next(self._numbers), []
        for _ in range(_LENGTH):
            number, digit = divmod(number, len(_LETTERS))
            letters.append(_LETTERS[digit])
        return _MARK + "".join(letters)

    def words(self, parts: Sequence[str]) -> dict[str, str]:
        """A new word for each part."""
        return {part: self.word() for part in parts}

    def note(self, record: Record) -> Record:
        """Keep a record and its words."""
        self.records.append(record)
        for part, word in record.words.items():
            self.canary(word, part, record.id, record.life, record.place)
        return record

    def canary(self, word: str, part: str, record: str, life: str, *places: Place) -> None:
        """Keep one word."""
        self.canaries[word] = Canary(word, part, places, life, record)

    def found(self, answer: bytes) -> set[Canary]:
        """The planted words that stand anywhere in some bytes."""
        words = {match.decode().lower() for match in WORD.findall(answer)}
        return {self.canaries[word] for word in words if word in self.canaries}
