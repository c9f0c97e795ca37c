"""Which fields of a profile a text states, in the third person or the first: rules that rather see one too many.

What is drawn from a turn tells its field by itself; these rules read what others write, so that no wording that they
know carries a change of a sensitive field past consent. A text about somebody else of the person's states nothing.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from memplane.domain.extraction_words import KIN, LANGUAGE, PET
from memplane.domain.memory import MemoryText
from memplane.domain.tombstones import BLANKS, LOOK_ALIKES, value_key
from memplane.domain.writing import sentences

MAX_VALUE = 120


@dataclass(frozen=True, slots=True)
class Stated:
    """A field of the profile and the value that a text gives it."""

    field: str
    value: str

    @property
    def key(self) -> tuple[str, str]:
        """The field and its value's key: by which two statements are the same."""
        return self.field, value_key(self.value)


_AFTER = (
    r"and|but|with|since|for|because|where|as|by|from|who|which|now|until|when|while|after|before|during|these|this|again"
    r"|instead|currently|today|please|last|next|in\s+\d{4}|in\s+(?:the|his|her|their)"
)
_END = rf"(?=\s*(?:[,.;:!?()\n\"”]|$|\s(?:{_AFTER})\b))"
_ANY = rf"(?P<value>[^\s,.;:!?()][^,;:!?()\n]{{0,{MAX_VALUE}}}?){_END}"
_IS = (
    r"(?:\s*[:=]\s*|\s+(?:is|are|be|was changed to|changed to|has changed to|should be|shall be|would be)\s+)"
    r"(?:now\s+|currently\s+)?"
)
_NOW = r"(?:(?:now|just|recently|finally|currently|still|also|permanently|again|since)\s+){0,3}"
_OWNED = r"(?:(?:'s|s'|\bmy|\bhis|\bher|\btheir|\bthe|\buser|\bnew|\bcurrent|\bactual|\breal|\bown|^)\s*)"
_CALLING = r"(?:call(?:ed|ing)?|named|addressed|addressing|referred\s+to)"
_TONGUE = rf"(?P<value>{LANGUAGE})\b"

_PATTERNS: Mapping[str, Sequence[str]] = {
    "city": (
        (
            rf"\b(?:lives|resides|dwells|(?:is|am|are)\s+{_NOW}(?:living|based|located|residing|resident|settled)"
            rf"|(?<=\bi\s)live|(?<=\bthey\s)live|(?<=\bi\sam\s)based)(?:\s+(?:now|currently|alone|together|happily|here"
            rf"|permanently|again|mostly)){{0,3}}(?:\s+with\s[^,.;]{{1,40}}?)?"
            rf"\s+(?:in|at|near|outside|around|within|close to)\s+{_ANY}"
        ),
        (
            rf"\b{_NOW}(?:moved|relocated|settled)(?:\s+(?:back|away|over|house|home|down)){{0,2}}"
            r"(?:\s+from\s+[^,.;]{1,40}?)?"
            rf"\s+(?:to|in)\s+{_ANY}"
        ),
        (
            rf"{_OWNED}(?:home\s+city|city|town|residence|place\s+of\s+residence|home|location)(?:\s+of\s+residence)?{_IS}"
            rf"(?:in\s+)?{_ANY}"
        ),
        rf"\b(?:resident|inhabitant)\s+of\s+{_ANY}",
        r"\bcalls?\s+(?P<value>[^,.;:!?()\n]{1,60}?)\s+(?:(?:his|her|their|my)\s+)?home\b",
        r"(?P<value>[^\W\d_][^\s,.;:!?()]{1,60})-based\b",
    ),
    "preferred_name": (
        rf"\b(?:is|am|are)\s+{_NOW}(?:usually\s+|mostly\s+|generally\s+)?(?:called|named|known\s+as|addressed\s+as)\s+{_ANY}",
        (
            r"\b(?:prefers?|likes?|wants?|wishes|asks?|asked|would\s+like|chose|chooses|loves?|requests?|requested)\s+"
            r"(?:to\s+be\s+|being\s+|(?:that\s+)?(?:people|everyone|others|us|you)\s+(?:to\s+)?)?"
            rf"{_CALLING}(?:\s+(?:him|her|them|me))?(?:\s+as|\s+by)?(?:\s+the\s+name)?\s+{_ANY}"
        ),
        rf"\b(?:goes|go)\s+by(?:\s+the\s+(?:name|nickname)(?:\s+of)?)?\s+(?![^\s]+/){_ANY}",
        rf"{_OWNED}(?:(?:preferred|first|given|display|chosen)[\s_])?name{_IS}{_ANY}",
        rf"^(?:(?:please|always|just)\s+){{0,3}}(?:call|address)\s+(?:the\s+user|me|him|her|them|[^\W\d_]+)\s+(?:as\s+)?{_ANY}",
        rf"\bprefers?\s+the\s+name\s+{_ANY}",
    ),
    "pronouns": (
        rf"\bpronouns?{_IS}{_ANY}",
        (
            r"\b(?:uses?|goes\s+by|go\s+by|prefers?|takes?)\s+(?:the\s+pronouns?\s+)?"
            r"(?P<value>(?:she|he|they|xe|ze|it|any|per|fae|ey)(?:\s?/\s?\w+)+)"
        ),
        r"\b(?:uses?|goes\s+by|prefers?)\s+(?:the\s+)?(?P<value>she|he|they|it|any|no|neutral|gender-neutral)\s+pronouns",
        r"\bpronouns?\s+(?P<value>(?:she|he|they|xe|ze|it|any)\b(?:\s?/\s?\w+)*)",
    ),
    "language": (
        rf"{_OWNED}(?:(?:native|first|preferred|mother|main|primary|usual)\s+)?(?:language|tongue)(?:\s+of\s+choice)?{_IS}{_ANY}",
        (
            r"\b(?:prefers?|wants?|likes?|would\s+like)\s+(?:to\s+(?:speak|talk|write|chat|read|be\s+(?:addressed|answered"
            r"|spoken\s+to))\s+(?:in\s+)?|(?:all\s+)?(?:answers|replies|conversations?|communication|messages|responses"
            rf"|chatting|talking|speaking|writing|being\s+\w+)\s+(?:in\s+)?)?{_TONGUE}(?!\s+(?:food|cuisine|wine|music|films?))"
        ),
        rf"\bspeaks?\s+{_TONGUE}\s+(?:natively|as\s+(?:an?\s+|his\s+|her\s+|their\s+)?(?:first|native|main|mother))",
        rf"\bnative\s+(?:speaker\s+of\s+)?{_TONGUE}",
        (
            r"^(?:(?:please|always|just)\s+){0,3}(?:answer|reply|respond|write|speak|talk)"
            rf"(?:\s+(?:to\s+)?(?:the\s+user|me|him|her|them|[^\W\d_]+))?\s+in\s+{_TONGUE}"
        ),
    ),
}
_PERSON = re.compile(
    r"\b(?i:user|person|customer|client|human|he|she|they|I|me|my|his|her|their)\b"
    r"|\b(?!(?:The|A|An|This|That|These|Those|Our|Its?|There|Each|Every|One|Some|Many|Note|System|Since|In|On|At)\b)[^\W\d_a-z][\w-]+"
)
"""Who is meant by what stands before a verb: the person, or somebody by name."""
_OTHERS = re.compile(
    r"(?i:one\sof\s|some\sof\s|many\sof\s|two\sof\s)?(?:(?i:(?:the\s|this\s)?user(?:'s)?|his|her|their|my|our|the|an?)"
    r"|[^\W\d_a-z][\w-]*(?:\s[^\W\d_a-z][\w-]*)?(?:'s|'))\s+(?:[\w-]+\s+){0,2}?"
    rf"(?i:{KIN}|{PET}|company|team|office|employer|project|family|firm|client|colleagues?|friends?)\b"
)
"""Somebody or something else of the person's is what the sentence is about."""
_NO_PLACE = re.compile(
    r"(?:an?|his|her|their|my|our|your|this|that|it|fear|hope|peace|poverty|front|general|order|bed|denial|work|home|harmony"
    r"|parallel|sin|touch|the (?:past|present|future|moment|same|countryside|suburbs|city|dark))\b",
    re.IGNORECASE,
)
_NO_NAME = re.compile(
    r"(?:back|away|up|off|out|by|to|for|in|on|at|it|not|never|a|an|the|after|before|later|again|only|every\w*)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"(?:\b(?:not|never|no longer|hardly|nowhere|cannot)|n't)(?:\s+\w+)?\s*$", re.IGNORECASE)
"""What stands before a statement that it denies."""
_NO_VALUE = re.compile(r"(?:not|no longer|never|unknown|none|nobody|nothing|different|no one)\b", re.IGNORECASE)
_WITHIN = re.compile(r"\b(?:in|at|near)\s+(?:the\s+)?(?=[^\W\d_a-z])")
_DATE = re.compile(
    r"(?:(?:next|last|this)\s|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july"
    r"|august|september|october|november|december)",
    re.IGNORECASE,
)


def stated_fields(
    text: MemoryText, attributes: Mapping[str, object] | None, fields: Collection[str]
) -> tuple[Stated, ...]:
    """The fields that a memory states anywhere in its words or attributes, each value once.

    Args:
        text: its words.
        attributes: its free attributes.
        fields: the fields that are looked for.
    """
    if not fields:
        return ()
    wanted = tuple(sorted(fields))
    parts = (text.content, text.title, text.narrative, *text.facts, *text.steps, *text.tags, *text.related_files)
    found: dict[tuple[str, str], Stated] = {}
    for part in parts:
        for stated in _of_text(part, wanted) if part else ():
            found.setdefault(stated.key, stated)
    for stated in _of_attributes(attributes or {}, wanted):
        found.setdefault(stated.key, stated)
    return tuple(found.values())


def _of_text(text: str, fields: tuple[str, ...]) -> Iterator[Stated]:
    for sentence in sentences(text):
        # `Note: the user lives in Berlin.`
        pieces = {sentence, *(sentence.split(": ", 1)[1:])}
        for piece in pieces:
            plain, places = _undisguised(piece)
            for field in fields:
                for pattern in _compiled(field):
                    for match in pattern.finditer(plain):
                        start, end = match.span("value")
                        value = _value(field, piece[places[start] : places[end - 1] + 1], plain[start:end])
                        if value and _of_person(plain[: match.start()], match.group()):
                            yield Stated(field, value)


def _of_attributes(value: object, fields: tuple[str, ...], depth: int = 0) -> Iterator[Stated]:
    if depth > 8 or not isinstance(value, Mapping | list | tuple):
        return
    for name, item in value.items() if isinstance(value, Mapping) else ((None, each) for each in value):
        key = "_".join(re.split(r"[\s_-]+", str(name).casefold().strip()))
        if key in fields and isinstance(item, str | int | float) and str(item).strip():
            yield Stated(key, str(item).strip()[:MAX_VALUE])
        yield from _of_attributes(item, fields, depth + 1)


@lru_cache
def _compiled(field: str) -> tuple[re.Pattern[str], ...]:
    """The patterns of a field: those that are known for it, and its own name with a value."""
    words = r"[\s_-]+".join(map(re.escape, re.split(r"[_-]", field)))
    named = (rf"{_OWNED}{words}{_IS}{_ANY}",)
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in (*_PATTERNS.get(field, ()), *named))


def _undisguised(text: str) -> tuple[str, list[int]]:
    """A text without invisible characters and disguised letters, and where each of its characters stood."""
    letters: list[str] = []
    places: list[int] = []
    for place, c in enumerate(text):
        for letter in unicodedata.normalize("NFKC", c):
            if letter in BLANKS or unicodedata.category(letter) == "Cf":
                continue
            folded = letter.casefold().translate(LOOK_ALIKES) if not letter.isascii() else letter
            plain = folded.upper() if folded.isascii() and letter.isupper() else folded if folded.isascii() else letter
            letters.append("'" if plain == "’" else plain[:1] or letter)
            places.append(place)
    return "".join(letters), places


def _of_person(before: str, said: str) -> bool:
    """Whether what stands before a statement leaves the person as the one whom it is about."""
    lead = before.strip()
    if _DENIED.search(lead):
        return False
    whole = f"{lead} {said}".strip()
    if _OTHERS.match(whole) and not re.match(r"(?:the\s|this\s)?user\b(?!'s)", whole, re.IGNORECASE):
        return False
    return not lead or bool(_PERSON.search(whole[: len(lead) + 1])) or lead.islower()


def _value(field: str, said: str, plain: str) -> str | None:
    """A value as it is proposed; ``None`` when it is none of the field."""
    value = " ".join("".join(c for c in said if c not in BLANKS and unicodedata.category(c) != "Cf").split())
    value = value.strip(" .'\"“”-")[:MAX_VALUE]
    if not value or _NO_VALUE.match(plain):
        return None
    if field == "city":
        if within := _WITHIN.search(value):  # `a small flat in Graz`
            value = plain = value[within.end() :]
        value = re.sub(r"^(?:the\s+)?(?:city|town|village)\s+of\s+", "", value, flags=re.IGNORECASE)
        return None if not value or _NO_PLACE.match(plain) or _DATE.match(plain) else value
    if field == "preferred_name":
        return None if _NO_NAME.match(plain) or len(value.split()) > 5 else value
    return value
