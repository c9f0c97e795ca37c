"""What a question says beside its words: the times that it names, what it puts in quotes, and whom it may mean."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from memplane.domain.language.entities import MAX_KEY_CHARS, key_of
from memplane.domain.language.entity_words import TITLES
from memplane.domain.language.extraction.extraction_dates import DATE, resolved
from memplane.domain.language.languages import ENGLISH
from memplane.domain.language.languages import STOP_WORDS as FUNCTION_WORDS
from memplane.domain.language.terms import Terms, parse_query
from memplane.domain.language.text import words
from memplane.domain.ranking.fusion import Span

STOP_WORDS = FUNCTION_WORDS[ENGLISH]

MOST_SPANS = 4
MOST_PHRASES = 4
MOST_NAMES = 200
NAME_WORDS = 4
_DAY = timedelta(days=1)
_EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
_LATEST = datetime(9999, 12, 30, tzinfo=UTC)
_QUOTED = re.compile(r'"([^"\n]{2,200})"|“([^”\n]{2,200})”|«([^»\n]{2,200})»')


def spans_in(question: str, now: datetime) -> tuple[Span, ...]:
    """The times that a question names, relative ones from ``now``: 'last May', 'two weeks ago', 'on 3 June 2023'.

    A time without a year is the last such time; one that was counted back ('two weeks ago') reaches as far to both
    sides as people mean by it. Times are of UTC.
    """
    found: list[Span] = []
    for match in DATE.finditer(question):
        moment, _ = resolved(match, now, past=True)
        if moment is not None:
            found.append(_bounded(match, moment.astimezone(UTC), now))
        if len(found) == MOST_SPANS:
            break
    return tuple(found)


def _bounded(match: re.Match[str], moment: datetime, now: datetime) -> Span:
    start, end = _span(match, moment)
    match (match["by"] or "").lower():
        case "before" | "until" | "by":
            return _EARLIEST, start
        case "since" | "from":
            return start, max(end, now)
        case _:
            return start, end


def _span(match: re.Match[str], moment: datetime) -> Span:
    unit = (match["unit"] or "").lower()
    counted = (match["agounit"] or match["aheadunit"] or "").lower().rstrip("s")
    if match["year"] or unit == "year" or counted == "year":
        return moment, _months_on(moment, 12)
    if unit in ("spring", "summer", "fall", "autumn", "winter"):
        return moment, _months_on(moment, 3)
    if match["alone"] or counted == "month" or (unit and moment.day == 1 and not _names_a_day(unit)):
        return moment, _months_on(moment, 1)
    if unit == "week":
        return moment, _later(moment, 7)
    if unit == "weekend":
        return moment, _later(moment, 2)
    if counted == "week":
        return _later(moment, -3), _later(moment, 4)
    if counted and re.match(r"(?:a )?(?:couple|few)", (match["ago"] or match["ahead"]).lower()):
        return _later(moment, -2), _later(moment, 3)
    return moment, _later(moment, 1)


def _names_a_day(unit: str) -> bool:
    return unit in ("week", "weekend") or unit[:3] in ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def _later(moment: datetime, days: int) -> datetime:
    try:
        return moment + days * _DAY
    except OverflowError:
        return _EARLIEST if days < 0 else _LATEST


def _months_on(moment: datetime, months: int) -> datetime:
    years, month = divmod(moment.month - 1 + months, 12)
    if moment.year + years > _LATEST.year:
        return _LATEST
    return moment.replace(year=moment.year + years, month=month + 1, day=1)


def phrases_in(question: str, of: Terms) -> tuple[tuple[int, ...], ...]:
    """What a question puts in quotes: for each, the places of its terms among the question's, ascending hashes.

    A phrase of which no word counts, or that was cut off with the question's end, is left out.
    """
    place = {term: number for number, term in enumerate(of.counts)}
    found: list[tuple[int, ...]] = []
    for match in _QUOTED.finditer(question):
        quoted = parse_query(next(group for group in match.groups() if group)).counts
        if quoted and all(term in place for term in quoted):
            found.append(tuple(place[term] for term in quoted))
        if len(found) == MOST_PHRASES:
            break
    return tuple(found)


def names_in(question: str) -> tuple[str, ...]:
    """Keys of whatever a question may name: runs of up to four words that neither begin nor end with a stop word."""
    return tuple(dict.fromkeys(_names(words(question))))[:MOST_NAMES]


def _names(said: list[str]) -> Iterator[str]:
    for start, first_word in enumerate(said):
        if first_word in STOP_WORDS:
            continue
        for end in range(start + 1, min(start + NAME_WORDS, len(said)) + 1):
            if said[end - 1] not in STOP_WORDS:
                yield _key(said[start:end])


def _key(name: list[str]) -> str:
    """The key of a name; most are their own key, and to look at their form takes longer than all the rest."""
    written = " ".join(name)
    return key_of(written) if name[0] in TITLES or "'" in name[-1] else written.casefold()[:MAX_KEY_CHARS]
