"""What the own patterns find, and what an analyzer like Presidio's finds beside it."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import Protocol

from memplane.domain.privacy.pii import EVERY, Finder, Pii, PiiMatch, find

LANGUAGE = "en"
"""What all recognisers are registered under; their patterns are not those of one language."""

LEAST_SCORE = 0.4
"""From which score on a find counts: a phone number has this one; weak patterns reach it by a word before them."""

WINDOW, SHARED = 2000, 200
"""How many characters the analyzer gets at once, and how many of them it gets again with the next ones."""

LOCATION, PHONE = "LOCATION", "PHONE_NUMBER"
IDS = (
    "US_SSN", "US_ITIN", "US_PASSPORT", "US_DRIVER_LICENSE",
    "UK_NHS", "UK_NINO", "UK_PASSPORT", "UK_DRIVING_LICENCE",
    "DE_ID_CARD", "DE_PASSPORT", "DE_SOCIAL_SECURITY", "DE_TAX_ID",
    "ES_NIE", "ES_NIF", "ES_PASSPORT",
    "IT_DRIVER_LICENSE", "IT_FISCAL_CODE", "IT_IDENTITY_CARD", "IT_PASSPORT",
    "PL_PESEL",
)  # fmt: skip
"""Presidio's names of the numbers that name one person."""

KINDS: Mapping[str, Pii] = MappingProxyType(
    {
        "EMAIL_ADDRESS": Pii.EMAIL,
        PHONE: Pii.PHONE,
        "CREDIT_CARD": Pii.CARD,
        "IBAN_CODE": Pii.IBAN,
        "IP_ADDRESS": Pii.IP,
        LOCATION: Pii.ADDRESS,
        **dict.fromkeys(IDS, Pii.ID_NUMBER),
    }
)
"""The kind of what Presidio names so; names of people, dates, URLs and groups are no kind of personal data here."""

_HOUSE = re.compile(r"(?<![^\W_])[0-9]{1,5}[A-Za-z]?(?![^\W_])")
_WORD = re.compile(r"[^\W\d_]{2,}")


class Result(Protocol):
    """One result of Presidio's analyzer."""

    @property
    def entity_type(self) -> str:
        """What it is, in Presidio's words."""
        ...

    @property
    def start(self) -> int:
        """Where it begins in the text."""
        ...

    @property
    def end(self) -> int:
        """Where it ends."""
        ...

    @property
    def score(self) -> float:
        """How sure the recogniser is, 0 to 1."""
        ...


class Analyzer(Protocol):
    """Presidio's analyzer, as far as it is needed."""

    def analyze(self, text: str, language: str, entities: list[str], *, score_threshold: float) -> Sequence[Result]:
        """What of these entities stands in the text, in any order; results may overlap."""
        ...


class UnionFinder:
    """Finds what the own patterns find, and what the analyzer finds beside it. Safe to use from several threads.

    What the own patterns find keeps its kind. A result that overlaps a find of its kind makes it longer; one that
    overlaps a find of another kind is dropped, for the own patterns are the stricter ones.
    """

    def __init__(self, analyzer: Analyzer, entities: Iterable[str] = KINDS, own: Finder = find) -> None:
        self._analyzer = analyzer
        self._entities = sorted(entities)
        self._own = own
        self._lock = Lock()

    def __call__(self, text: str, only: Collection[Pii] = EVERY) -> Sequence[PiiMatch]:
        """Finds of these kinds, in order; no two overlap."""
        kept = list(self._own(text, only))
        others = [found for found in self._analyzed(text) if found.kind in only]
        if not others:
            return kept
        named_otherwise = [found for found in self._own(text) if found.kind not in only]
        for found in others:
            where = _touched(kept, found)
            touched = kept[where]
            differs = any(one.kind is not found.kind for one in touched)
            if differs or named_otherwise[_touched(named_otherwise, found)]:
                continue
            whole = [*touched, found]
            kept[where] = [PiiMatch(found.kind, min(one.start for one in whole), max(one.end for one in whole))]
        return kept

    def _analyzed(self, text: str) -> list[PiiMatch]:
        """What the analyzer finds, the surest first, of those the longest."""
        scored: list[tuple[float, int, PiiMatch]] = []
        for offset, window in _windows(text):
            with self._lock:  # Presidio does not say that it may be called from several threads at once
                results = self._analyzer.analyze(window, LANGUAGE, list(self._entities), score_threshold=LEAST_SCORE)
            cut = len(window) if offset + len(window) < len(text) else len(window) + 1
            for result in results:
                kind = KINDS.get(result.entity_type)
                if kind is not None and 0 <= result.start < result.end < cut and _counts(result, window):
                    found = PiiMatch(kind, offset + result.start, offset + result.end)
                    scored.append((-result.score, result.start - result.end, found))
        return [found for *_, found in sorted(scored, key=lambda one: (one[0], one[1], one[2].start))]


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Pieces of a text and where they begin: Presidio's time grows with the square of a text's length.

    Each begins after a space, and before the one that it follows ends: what the end of one cuts is whole in the next.
    """
    start = 0
    while text[start:].strip():
        end = start + WINDOW
        yield start, text[start:end]
        if end >= len(text):
            break
        space = text.find(" ", end - SHARED, end)
        start = space + 1 if space >= 0 else end - SHARED


def _counts(result: Result, text: str) -> bool:
    """Whether a result is sure enough; a place is an address by its house number, bare digits a phone by a cue."""
    words = text[result.start : result.end]
    if result.entity_type == LOCATION:
        return _HOUSE.search(words) is not None and _WORD.search(words) is not None
    bare = result.entity_type == PHONE and words.isdecimal()
    return result.score > LEAST_SCORE if bare else result.score >= LEAST_SCORE


def _touched(ordered: list[PiiMatch], found: PiiMatch) -> slice:
    """Where those finds stand, of some that are in order and do not overlap, that overlap this one."""
    first = bisect_right(ordered, found.start, key=lambda one: one.end)
    return slice(first, max(first, bisect_left(ordered, found.end, key=lambda one: one.start)))
