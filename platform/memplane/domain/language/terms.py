"""Text as it is searched: hashes of word stems, each of its own language."""

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memplane.domain.language.languages import (
    ENGLISH,
    SIMPLE,
    STEMMERS,
    STOP_WORDS,
    known,
    language_of,
    pieces,
    script_of,
    stemmer,
)
from memplane.domain.language.text import words


@dataclass(frozen=True, slots=True)
class Terms:
    """The searchable terms of a text: 32-bit hashes of stems, with how often each stands there.

    Attributes:
        counts: occurrences by term hash, ascending hashes.
        length: number of terms, with repeats.
        stems: the stem behind each hash, for explanations of a query.
        variants: of a question's terms, the hashes that the same word has in texts of other languages.
    """

    counts: dict[int, int]
    length: int
    stems: dict[int, str]
    variants: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def wanted(self) -> "Wanted":
        """Every hash under which a term may be stored."""
        place = {term: number for number, term in enumerate(self.counts)}
        for term, number in list(place.items()):
            for variant in self.variants.get(term, ()):
                place.setdefault(variant, number)
        hashes = np.fromiter(place, dtype=np.uint32, count=len(place))
        order = np.argsort(hashes)
        return Wanted(
            hashes[order], np.fromiter(place.values(), dtype=np.intp, count=len(place))[order], len(self.counts)
        )


class Wanted(NamedTuple):
    """What the terms of a question may be stored as.

    Attributes:
        hashes: distinct, ascending.
        term: for each of them, the term's place among the question's.
        size: number of terms.
    """

    hashes: NDArray[np.uint32]
    term: NDArray[np.intp]
    size: int


def _term_id(code: str, stem: str) -> int:
    """A stem's hash; but for English ones it holds the language, in which the same letters are another word."""
    return zlib.crc32((stem if code == ENGLISH else f"{code}:{stem}").encode())


def _stem(code: str, word: str) -> str:
    stem: str = word if code == SIMPLE else stemmer(code).stemWord(word)
    return stem


@lru_cache(maxsize=65_536)
def _term(code: str, word: str) -> tuple[int, str]:
    """The hash and the stem of a word in a text of a language."""
    own = script_of(word)
    own = code if own is None else own
    stem = _stem(own, word)
    return _term_id(own, stem), stem


@lru_cache(maxsize=65_536)
def _variants(word: str) -> tuple[int, ...]:
    """A word's hashes in every language that its letters may be of, the English one first."""
    script = script_of(word)
    codes = (*STEMMERS, SIMPLE) if script is None else (ENGLISH, script)
    return tuple(dict.fromkeys(_term_id(code, _stem(code, word)) for code in codes))


def terms(text: str, lang: str | None = None) -> Terms:
    """Stemmed terms of a text without stop words, as it is stored.

    A collision of two stems in 32 bits would score a false match; with 20 000 stems known to a user and ten in a query
    that happens in one query of 20 000.

    Args:
        text: what is to be found.
        lang: its ISO 639-1 code; found out, word by word for other scripts than the Latin, when it is not said.
    """
    code, said = _meaning(text, known(lang))
    found = [_term(code, word) for word in said]
    counted = Counter([term for term, _ in found])
    return Terms(dict(sorted(counted.items())), len(found), dict(found))


def parse_query(text: str, most: int | None = None) -> Terms:
    """Terms of a question: each word stands for its stems in every language, so that it finds what any of them holds.

    Args:
        text: the question.
        most: how many distinct terms count, from the first on; a question's cost grows with their number.
    """
    code, said = _meaning(text, None)
    found: dict[int, str] = {}
    variants: dict[int, set[int]] = {}
    counted: Counter[int] = Counter()
    for word in said:
        term, *others = _variants(word)
        if term not in found and len(found) == most:
            continue
        found.setdefault(term, _term(code, word)[1])
        variants.setdefault(term, set()).update(others)
        counted[term] += 1
    return Terms(
        counts=dict(sorted(counted.items())),
        length=sum(counted.values()),
        stems=found,
        variants={term: tuple(sorted(each)) for term, each in variants.items()},
    )


def _meaning(text: str, code: str | None) -> tuple[str, Iterable[str]]:
    """The language of a text, and its words without those that say only how it is put."""
    said = words(text)
    if code is None:
        code = language_of(said)
    without = STOP_WORDS.get(code, frozenset())
    telling = [word for word in said if word not in without]
    return code, telling if text.isascii() else [piece for word in telling for piece in pieces(word)]
