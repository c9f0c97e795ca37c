"""Who and what a text mentions: people, organisations, places, addresses on the net, tags and dates, found by rule."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from memplane.domain.language import entity_words as known

MAX_MENTIONS = 20
MAX_KEY_CHARS = 255


@dataclass(frozen=True, slots=True)
class Mention:
    """One entity that a text mentions.

    Attributes:
        kind: person, organisation, place, project, email, url, hashtag, handle, date, or name where the rules
            cannot tell.
        name: as the text writes it first.
        key: by which two mentions are the same entity; see :func:`key_of`. A date's key is in ISO form,
            as precise as known: ``2025-05-12``, ``2024-03``, ``--05-12``.
    """

    kind: str
    name: str
    key: str


Placed = tuple[int, int, str, str]
"""A mention in a text: where it starts and ends, its kind and its key."""

_UPPER = "".join(chr(code) for code in range(0x41, 0x530) if chr(code).isupper())
_WORD = rf"[{_UPPER}](?:\w|['’](?!s\b|ll\b|m\b|ve\b|re\b|d\b|t\b)(?=\w)|[&-](?=\w)|\.(?=\w))*"
_PART = rf"(?:(?:Dr|Mr|Mrs|Ms|Prof|St|Mt)\.|[{_UPPER}]\.(?=\s[{_UPPER}])|{_WORD})"
_LINK = (
    r"(?:[ \u00a0]|[ ](?:of the|de la|de los|van der|van den|von der|of|de|da|del|della|di|du|la|le|van|von|der|den|bin"
    r"|ibn|&)[ ])"
)
_NAMES = re.compile(rf"(?<![\w'’@#/.]){_PART}(?:{_LINK}{_PART}){{0,7}}(?:,\s(?:Inc|Ltd|LLC|GmbH|AG)\b)?")
_SENTENCE_END = frozenset(".!?…:;\n\"'“”(•*-–>|")

_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"“”]+", re.IGNORECASE)
_CLOSING = {")": "(", "]": "[", "}": "{"}
_EMAIL = re.compile(r"(?<![\w.+%'-])[\w+%][\w.+%'-]*@(?:[\w-]+\.)+[^\W\d_]{2,63}(?![\w@])")
_HASHTAG = re.compile(r"#(?<![\w&/#]#)[^\W\d_]\w+")
_COLOUR = re.compile(r"#(?=[a-f]*[0-9]|(.)\1+$)(?:[0-9a-f]{3}|[0-9a-f]{6})", re.IGNORECASE)
_HANDLE = re.compile(r"@(?<![\w.@/]@)[A-Za-z]\w*(?:[.-]\w+)*")

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DATES = (
    re.compile(
        r"(?<![\w.-])(?P<year>(?:19|20)[0-9]{2})-(?P<number>[01][0-9])(?:-(?P<day>[0-3][0-9])(?:T[0-9:.]+Z?)?)?(?![\w-])"
    ),
    re.compile(r"(?<![\w.-])(?P<day>[0-3]?[0-9])\.(?P<number>[01]?[0-9])\.(?P<year>(?:19|20)[0-9]{2})(?!\w)"),
)
_WORDED_DATES = (
    re.compile(
        rf"(?<![\w.-])(?P<day>[0-3]?[0-9])(?:st|nd|rd|th|\.)?\s(?:of\s)?{_MONTH}(?:,?\s(?P<year>(?:19|20)[0-9]{{2}})\b)?",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b{_MONTH}\s(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?\b(?!\s?(?:%|:))(?:,?\s(?P<year>(?:19|20)[0-9]{{2}})\b)?",
        re.IGNORECASE,
    ),
    re.compile(rf"\b{_MONTH},?\s(?P<year>(?:19|20)[0-9]{{2}})\b(?P<day>)", re.IGNORECASE),
)
_MONTH_START = re.compile("(?:[Jj]an|[Ff]eb|[Mm]ar|[Aa]pr|[Mm]ay|[Jj]u[nl]|[Aa]ug|[Ss]ep|[Oo]ct|[Nn]ov|[Dd]ec)")
_CONTRACTED = re.compile(r"['’](?:s|m|ve|re|ll|d|t)$")
_ADVERB = re.compile(r"[A-Z][a-z]{3,}(?:ing|ly|ed)$")


def key_of(name: str) -> str:
    """The key of a name: casefolded, spaces collapsed, without leading 'the' and titles and without a possessive."""
    words = re.sub(r"['’]s?$", "", name.strip()).casefold().split()
    while len(words) > 1 and (words[0] == "the" or words[0].rstrip(".") in known.TITLES):
        del words[0]
    return " ".join(words)[:MAX_KEY_CHARS].strip()


def _on_the_net(text: str) -> Iterator[Placed]:
    if "://" in text or "www." in text.lower():
        for match in _URL.finditer(text):
            url = match[0].rstrip(".,;:!?'’*_")
            while url[-1:] in _CLOSING and url.count(url[-1]) > url.count(_CLOSING[url[-1]]):
                surplus = min(len(url) - len(url.rstrip(url[-1])), url.count(url[-1]) - url.count(_CLOSING[url[-1]]))
                url = url[: len(url) - surplus].rstrip(".,;:!?'’")
            scheme, mark, rest = url.rpartition("://") if url.count("://") == 1 else ("", "", url)
            host, slash, path = rest.partition("/")
            named = f"{scheme.lower()}{mark}{host.lower()}{slash}{path}"
            if "." in host or "localhost" in host:
                yield match.start(), match.start() + len(url), "url", named.casefold().rstrip("/")
    if "@" in text:
        yield from ((*match.span(), "email", match[0].casefold()) for match in _EMAIL.finditer(text))
        yield from ((*match.span(), "handle", match[0].casefold()) for match in _HANDLE.finditer(text))
    if "#" in text:
        for match in _HASHTAG.finditer(text):
            if not _COLOUR.fullmatch(match[0]):
                yield *match.span(), "hashtag", match[0].casefold()


def _dates(text: str) -> Iterator[Placed]:
    for pattern, mark in zip(_DATES, "-.", strict=True):
        for match in pattern.finditer(text) if text.count(mark) > (mark == ".") else ():
            yield from _dated(match)
    for month in _MONTH_START.finditer(text):
        if month.start() and text[month.start() - 1].isalpha():
            continue
        for pattern in _WORDED_DATES:
            found = pattern.search(text, max(0, month.start() - 9), month.start() + 25)
            if found:
                yield from _dated(found)


def _dated(match: re.Match[str]) -> Iterator[Placed]:
    parts = match.groupdict()
    month = int(parts.get("number") or _MONTHS.index(parts.get("month", "jan")[:3].lower()) + 1)
    day, year = int(parts["day"] or 0), parts["year"]
    if not 1 <= month <= 12 or day > _DAYS[month - 1] or (parts["day"] and day == 0):
        return
    if not year and parts.get("month") == "may":  # "may 5 people come"
        return
    yield *match.span(), "date", f"{year or '-'}-{month:02}" + (f"-{day:02}" if day else "")


def _begins_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 4) : start].rstrip(" \t")
    return not before or (before[-1] in _SENTENCE_END and (start < 4 or before[-1] != "-" or text[start - 1] == " "))


def _is_ordinary(word: str) -> bool:
    plain = _CONTRACTED.sub("", word).lower().rstrip(".")
    return plain in known.ORDINARY or plain in known.CALENDAR or plain in known.PEOPLES


def name_spans(text: str) -> Iterator[tuple[int, int, bool]]:
    """Runs of capitalised words without ordinary words at their ends, and whether a sentence begins with them."""
    for match in _NAMES.finditer(text):
        start, end = match.span()
        initial = _begins_sentence(text, start)
        words = match[0].split()
        stripped = False
        while words:
            title = words[0].lower().rstrip(".") in known.TITLES and len(words) > 1
            opening = (
                initial and len(words) > 1 and _ADVERB.match(words[0]) and words[0].lower() not in known.GIVEN_NAMES
            )
            peoples = (
                words[0].lower() in known.PEOPLES and words[-1].lower() in known.ORGANISATION_LAST and len(words) > 1
            )
            if title or peoples or not (_is_ordinary(words[0]) or words[0].islower() or words[0] == "&" or opening):
                break
            start = text.index(words[1], start + len(words[0])) if len(words) > 1 else end
            del words[0]
            initial, stripped = False, True
        while words and (_is_ordinary(words[-1]) or words[-1].islower()) and words[-1].lower() not in known.TITLES:
            end = start + len(text[start:end].rstrip()) - len(words.pop())
            end = start + len(text[start:end].rstrip())
        if words and (len(text[start:end]) > 1) and not (stripped and end <= start):
            yield start, end, initial


def kind_beside(text: str, start: int, end: int) -> str | None:
    """The kind that a name's own words or the words beside it give it, if they do."""
    words = text[start:end].lower().replace(",", "").split()
    before = text[max(0, start - 40) : start].lower().split()
    after = text[end : end + 24].lower().split()[:1]
    beside = " ".join(before[-3:]).rstrip(",:")
    last_before = before[-1].strip(",:") if before else ""
    next_word = after[0].strip(".,;:!?'’") if after else ""
    checks = (
        (words[0].rstrip(".") in known.TITLES and len(words) > 1, "person"),
        (words[0] == "project" or last_before == "project" or next_word in known.PROJECT_LAST, "project"),
        (words[-1] in known.ORGANISATION_LAST and len(words) > 1, "organisation"),
        (words[0] in known.ORGANISATION_FIRST and len(words) > 1, "organisation"),
        ((words[-1] in known.PLACE_LAST or words[0] in known.PLACE_FIRST) and len(words) > 1, "place"),
        (beside.endswith(known.ORGANISATION_BEFORE) and text[start - 1 : start] == " ", "organisation"),
        (beside.endswith(known.PLACE_BEFORE), "place"),
        (last_before in known.PERSON_BEFORE and len(words) < 4, "person"),
        (beside.endswith(("name is", "called")) and len(words) < 4, "person"),
        (" ".join(words) in known.PLACES, "place"),
        (words[0] in known.GIVEN_NAMES and len(words) < 6, "person"),
        (len(words) < 4 and (next_word in known.PERSON_AFTER or _has_relation(text, end)), "person"),
    )
    return next((kind for holds, kind in checks if holds), None)


def _has_relation(text: str, end: int) -> bool:
    """Whether a possessive and a relation follow: ``'s sister``."""
    after = text[end : end + 24].lower()
    if not after.startswith(("'s ", "’s ")):
        return False
    following = after[3:].split()
    return bool(following) and following[0].strip(".,;:!?") in known.RELATIONS


def _names(text: str) -> Iterator[Placed]:
    spans = list(name_spans(text))
    within = {text[start:end] for start, end, initial in spans if not initial}
    for start, end, initial in spans:
        name = text[start:end]
        kind = kind_beside(text, start, end)
        if kind is None and initial and " " not in name and name not in within and not _is_marked(text, name, end):
            continue
        if kind is None and name.isupper() and len(name) > 6:
            continue
        yield start, end, kind or "name", key_of(name)


def _is_marked(text: str, name: str, end: int) -> bool:
    """Whether a single word at the beginning of a sentence shows by its form that it is a name."""
    return any(c.isupper() or c.isdigit() for c in name[1:]) or text[end : end + 2] in ("'s", "’s")


def mentions(text: str) -> tuple[Mention, ...]:
    """The entities that a text mentions, in its order, each once, at most twenty.

    A name whose kind one place shows is of that kind everywhere in the text.
    """
    taken, left = masked(text)
    return told(text, sorted([*taken, *_names(left)]))


def masked(text: str) -> tuple[list[Placed], str]:
    """What has a form of its own, and the text with that made unreadable."""
    special = list(_on_the_net(text)) if any(mark in text for mark in ("@", "#", "://", "www.", "WWW.")) else []
    if any(c in text for c in "0123456789"):
        special += _dates(text)
    taken: list[Placed] = []
    for placed in sorted(special, key=lambda placed: (placed[0], -placed[1])):
        if not taken or placed[0] >= taken[-1][1]:
            taken.append(placed)
    masked = text
    if taken:
        parts, end = [], 0
        for placed in taken:
            parts += [text[end : placed[0]], "_" * (placed[1] - placed[0])]
            end = placed[1]
        masked = "".join(parts) + text[end:]
    return taken, masked


def told(text: str, placed: Iterable[Placed]) -> tuple[Mention, ...]:
    """Mentions in their order, each once, at most twenty; a name whose kind one place shows is of that kind."""
    found: dict[tuple[str, str], Mention] = {}
    for start, end, kind, key in placed:
        name = text[start:end]
        if kind == "url":
            name = name[: len(name) - len(name.split("://")[-1])].lower() + _lower_host(name.split("://")[-1])
        if key:
            found.setdefault((kind, key[:MAX_KEY_CHARS]), Mention(kind, name, key[:MAX_KEY_CHARS]))
    clear = {key for kind, key in found if kind != "name"}
    return tuple(one for one in found.values() if one.kind != "name" or one.key not in clear)[:MAX_MENTIONS]


def _lower_host(rest: str) -> str:
    host, slash, path = rest.partition("/")
    return host.lower() + slash + path


def query_names(text: str) -> tuple[str, ...]:
    """The keys by which a question may mention entities, each once, in the order of the text."""
    return tuple(dict.fromkeys(mention.key for mention in mentions(text)))
