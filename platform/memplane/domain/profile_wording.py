"""The wordings that state a field of the profile, as patterns; how a value ends; and what is no value of a field."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from memplane.domain.extraction_words import LANGUAGE

MAX_VALUE = 120


class Shape(Enum):
    """Where a wording names the person that it is about."""

    VERB = "a subject before it: `the user | lives in …`"
    OWNED = "an owner before it: `the user | 's city is …`"
    ATTRIBUTE = "a subject and a form of `to be` before it: `the user is a | Porto-based …`"
    ASKED = "whom an order concerns: `call | me | …`; nobody named is the person who gives it"


@dataclass(frozen=True, slots=True)
class Wording:
    """One way to state a field.

    Attributes:
        shape: where the person is named.
        pattern: the words, with the group ``value``; a group ``whom`` names the person inside them.
    """

    shape: Shape
    pattern: re.Pattern[str]


_AFTER = (
    r"and|but|with|since|for|because|where|as|by|from|who|which|now|until|when|while|after|before|during|these|this|again"
    r"|instead|currently|today|please|last|next|to|or|over|so|then|too|also|rather|not|on\s+\w+days?|soon|recently|permanently|together|alone|though"
    r"|in\s+\d{4}|in\s+(?:the|his|her|their|early|late|mid\w*|spring|summer|autumn|winter|january|february|march|april|may"
    r"|june|july|august|september|october|november|december)"
)
_SHORT = (
    r"\b(?:(?:drs?|prof|mr|mrs|ms|mx|messrs|ste?|srt?a?|jr|rev|fr|capt|lt|sgt|col|gen|hon|mt|ft|pt)\.(?=\s?[^\W_])"
    r"|[^\W\d_]\.(?=\s?(?!(?-i:The|An?|He|She|They|It|We|I|His|Her|Their|This|That)\b)(?-i:[^\W\d_a-z])))"
)
"""An abbreviated title, a saint or an initial, whose dot ends nothing."""
_END = rf"(?=\s*(?:[,.;:!?()\n\"”]|$|\s(?:{_AFTER})\b))"
_ANY = rf"(?P<value>(?:{_SHORT}|[^\s,.;:!?()])(?:{_SHORT}|[^,.;:!?()\n]){{0,{MAX_VALUE}}}?){_END}"
_IS = (
    r"(?:\s*[:=]\s*|\s+(?:is|are|be|was changed to|changed to|has changed to|should be|shall be|would be)\s+)"
    r"(?:now\s+|currently\s+)?"
)
_NOW = r"(?:(?:now|just|recently|finally|currently|still|also|permanently|again|since)\s+){0,3}"
_OWNED = r"(?:(?:'s|s'|\bmy|\bour|\bhis|\bher|\btheir|\bthe|\buser|\bnew|\bcurrent|\bactual|\breal|\bown|^)\s*)"
_TO_BE = r"(?:is|am|are|'m|'re|'s)"
_CALLING = r"(?:call(?:ed|ing)?|named|addressed|addressing|referred\s+to)"
_TONGUE = rf"(?P<value>{LANGUAGE})\b"
_WHOM = r"(?P<whom>the\s+user|me|us|him|her|them|[^\W\d_]+)"
_WHOSE = r"(?P<whom>my|our|the\s+user's|his|her|their)"
_PLEASE = r"(?:(?:please|always|just|kindly|so|from\s+now\s+on|in\s+future|you\s+can|you\s+may),?\s+){0,3}"
_CHANGE = r"\b(?:change|update|set|switch|correct)(?:e?d)?\s+"
_SPEAK = r"(?:speak|talk|write|chat|answer|reply|respond|communicate|converse)"
_SPOKEN = (
    rf"\s*(?:(?:you\s+|us\s+|everyone\s+)?(?:to\s+)?(?:{_SPEAK}|read|be\s+(?:addressed|answered|spoken\s+to))\s+"
    r"(?:(?:to|with)\s+)?(?:(?:me|him|her|them)\s+)?(?:in\s+)?|(?:all\s+)?(?:answers|replies|conversations?|communication"
    r"|messages|responses|chatting|talking|speaking|writing|being\s+\w+)\s+(?:in\s+)?)"
)

_WORDINGS: Mapping[str, Sequence[tuple[Shape, str]]] = {
    "city": (
        (
            Shape.VERB,
            (
                rf"(?:\b(?:lives|resides|dwells)|(?:\b|(?=')){_TO_BE}\s+{_NOW}(?:living|based|located|residing|resident|settled)"
                r"|(?:(?<=\bi\s)|(?<=\bwe\s)|(?<=\bthey\s)|(?<=\bnow\s)|(?<=\bcurrently\s)|(?<=\bstill\s))(?:live|reside))"
                r"(?:\s+(?:now|currently|alone|together|happily|here|permanently|again|mostly|out)){0,3}"
                r"(?:\s+with\s[^,.;]{1,40}?)?"
                rf"\s+(?:in|at|near|outside|around|within|of|close\s+to)\s+{_ANY}"
            ),
        ),
        (
            Shape.VERB,
            (
                rf"(?:\b|(?='))(?:has|have|'ve|'s)\s+{_NOW}(?:lived|been\s+(?:living|based))\s+(?:here\s+)?in\s+{_ANY}"
                r"(?=\s+(?:since|for)\b)"
            ),
        ),
        (
            Shape.VERB,
            (
                rf"\b{_NOW}(?:moved|relocated|settled)(?:\s+(?:back|away|over|house|home|down|out|here)){{0,2}}"
                r"(?:\s+from\s+[^,.;]{1,40}?)?"
                rf"\s+(?:to|in)\s+{_ANY}"
            ),
        ),
        (
            Shape.OWNED,
            (
                rf"{_OWNED}(?:home\s+city|home\s+base|city|town|residence|place\s+of\s+residence|home|location)"
                rf"(?:\s+of\s+residence)?{_IS}(?:in\s+)?{_ANY}"
            ),
        ),
        (Shape.ASKED, rf"^(?:(?:currently|now)\s+)?(?:living|residing)\s+(?:in|near)\s+{_ANY}"),
        (Shape.ATTRIBUTE, rf"\b(?:resident|inhabitant)\s+of\s+{_ANY}"),
        (Shape.VERB, r"\bcalls?\s+(?P<value>[^,.;:!?()\n]{1,60}?)\s+(?:(?:his|her|their|my|our)\s+)?home\b"),
        (
            Shape.VERB,
            r"\bma(?:de|kes?)\s+(?P<value>[^,.;:!?()\n]{1,60}?)\s+(?:his|her|their|my|our)\s+(?:new\s+)?home\b",
        ),
        (
            Shape.ASKED,
            (
                rf"^(?P<value>{_SHORT}?[^,.;:!?()\n]{{1,60}}?)\s+(?:is|has\s+become|became)\s+(?:now\s+)?(?:where\s+"
                rf"(?P<who>i|we|the\s+user|they)\s+(?:now\s+)?lives?\b|{_WHOSE}\s+(?:(?:new|current)\s+)?(?:home|city)\b"
                r"(?!\s+(?:page|office|team|port|server|branch|screen)\b))"
            ),
        ),
        (Shape.ASKED, rf"{_CHANGE}{_WHOSE}\s+(?:home\s+)?(?:city|location|town|residence)\s+(?:to|as)\s+{_ANY}"),
        (Shape.ATTRIBUTE, r"(?P<value>(?-i:[^\W\d_a-z])[^\s,.;:!?()]{1,60})-based\b"),
    ),
    "preferred_name": (
        (
            Shape.VERB,
            (
                rf"(?:\b|(?=')){_TO_BE}\s+{_NOW}(?:usually\s+|mostly\s+|generally\s+)?(?:called|named|known\s+as|addressed\s+as)"
                rf"\s+{_ANY}"
            ),
        ),
        (
            Shape.VERB,
            (
                r"\b(?:prefers?|likes?|wants?|wishes|asks?|asked|would\s+like|(?<='d\s)like|chose|chooses|loves?|requests?"
                r"|requested)\s+(?:to\s+be\s+|being\s+|(?:that\s+)?(?:people|everyone|others|us|you)\s+(?:to\s+)?)?"
                rf"{_CALLING}(?:\s+(?:him|her|them|me))?(?:\s+as|\s+by)?(?:\s+the\s+name)?\s+{_ANY}"
            ),
        ),
        (
            Shape.VERB,
            (
                r"\b(?:should|must|may|can|is\s+to|has\s+to|would\s+rather)\s+(?:\w+\s+)?be\s+"
                rf"(?:called|named|(?:addressed|referred\s+to|known)\s+as)\s+{_ANY}"
            ),
        ),
        (Shape.VERB, rf"\b(?:goes|go)\s+by(?:\s+the\s+(?:name|nickname)(?:\s+of)?)?\s+(?![^\s]+/){_ANY}"),
        (Shape.OWNED, rf"{_OWNED}(?:(?:preferred|first|given|display|chosen)[\s_])?name{_IS}{_ANY}"),
        (Shape.ASKED, rf"^{_PLEASE}(?:call|address|refer\s+to)\s+{_WHOM}\s+(?:as\s+|by\s+)?{_ANY}"),
        (
            Shape.ASKED,
            rf"\b(?:calls?|address(?:es)?|refers?\s+to)\s+(?P<whom>me|the\s+user)\s+(?:as\s+|by\s+)?{_ANY}",
        ),
        (Shape.ASKED, rf"{_CHANGE}{_WHOSE}\s+(?:(?:preferred|first|display)\s+)?name\s+to\s+{_ANY}"),
        (Shape.VERB, rf"\b(?:prefers?|uses?)\s+the\s+name\s+{_ANY}"),
    ),
    "pronouns": (
        (Shape.OWNED, rf"\bpronouns?{_IS}{_ANY}"),
        (
            Shape.VERB,
            (
                r"\b(?:uses?|goes\s+by|go\s+by|prefers?|takes?)\s+(?:the\s+pronouns?\s+)?"
                r"(?P<value>(?:she|he|they|xe|ze|it|any|per|fae|ey)(?:\s?/\s?\w+)+)"
            ),
        ),
        (
            Shape.VERB,
            (
                r"\b(?:uses?|goes\s+by|prefers?)\s+(?:the\s+)?(?P<value>she|he|they|it|any|no|neutral|gender-neutral)"
                r"\s+pronouns"
            ),
        ),
        (
            Shape.ASKED,
            (
                r"\brefers?\s+to\s+(?P<whom>me|the\s+user)\s+(?:as|with|by|using)\s+(?:the\s+pronouns?\s+)?"
                r"(?P<value>(?:she|he|they|xe|ze|it|any)\b(?:\s?/\s?\w+)*)"
            ),
        ),
        (Shape.OWNED, r"\bpronouns?\s+(?P<value>(?:she|he|they|xe|ze|it|any)\b(?:\s?/\s?\w+)*)"),
    ),
    "language": (
        (
            Shape.OWNED,
            (
                rf"{_OWNED}(?:(?:native|first|preferred|mother|main|primary|usual)\s+)?(?:language|tongue)(?:\s+of\s+choice|\s+for\s+(?:replies|answers|chats?))?"
                rf"{_IS}{_ANY}"
            ),
        ),
        (
            Shape.VERB,
            (
                rf"\b(?:prefers?|(?:wants?|likes?|would\s+like|(?<='d\s)like|would\s+rather|(?<='d\s)rather)(?={_SPOKEN}))\s+"
                rf"(?:{_SPOKEN})?{_TONGUE}(?!\s+(?:food|cuisine|wine|music|films?|movies|cinema|beer|cars?|bread|books"
                r"|literature|tea|coffee|clothes|design))"
            ),
        ),
        (
            Shape.VERB,
            (
                r"\b(?:should|must|is\s+to)\s+be\s+(?:addressed|answered|spoken\s+to|written\s+to|contacted)\s+in\s+"
                rf"{_TONGUE}"
            ),
        ),
        (
            Shape.VERB,
            (
                rf"\bspeaks?\s+{_TONGUE}\s+(?:natively|as\s+(?:an?\s+|his\s+|her\s+|their\s+|my\s+)?(?:first|native|main|mother"
                r"|preferred))"
            ),
        ),
        (Shape.ATTRIBUTE, rf"\bnative\s+(?:speaker\s+of\s+)?{_TONGUE}"),
        (
            Shape.ASKED,
            (
                rf"^{_PLEASE}(?:{_SPEAK}|continue)(?:\s+(?:(?:to|with)\s+)?{_WHOM})?\s+in\s+{_TONGUE}"
                r"(?!\s+(?:to|for|on|what|how|that|this|about)\b)"
            ),
        ),
        (Shape.ASKED, rf"^{_PLEASE}(?:speak|use)\s+{_TONGUE}\s+(?:to|with|for)\s+{_WHOM}"),
        (Shape.ASKED, rf"^{_PLEASE}(?:let's|let\s+us)\s+(?:{_SPEAK}|continue|switch)\s+(?:in\s+|to\s+)?{_TONGUE}"),
        (Shape.ASKED, rf"{_CHANGE}{_WHOSE}\s+(?:preferred\s+)?language\s+to\s+{_ANY}"),
    ),
}
_HINTS: Mapping[str, tuple[str, ...]] = {
    "city": ("liv", "resid", "dwell", "based", "located", "settled", "moved", "relocat", "city", "town", "home",
             "location", "inhabitant"),
    "preferred_name": ("call", "name", "known as", "goes by", "go by", "address", "refer to", "refers to"),
    "pronouns": ("pronoun", "/", "refer to", "refers to"),
    "language": ("language", "tongue", *(each.lower() for each in LANGUAGE[3:-1].split("|"))),
}  # fmt: skip
"""Something that stands in every wording of a field: texts without it are not looked at further."""
_NO_PLACE = re.compile(
    r"(?:an?|his|her|their|my|our|your|this|that|it|fear|hope|peace|poverty|front|general|order|bed|denial|work|home|harmony"
    r"|parallel|sin|touch|with|together|the (?:past|present|future|moment|same|countryside|suburbs|city|dark))\b|\d",
    re.IGNORECASE,
)
_NO_CITY = re.compile(
    r".*\b(?:office|team|department|branch|role|group|plan|project|position|version|cloud|floor|room|desk|list|tier|building"
    r"|side|stage|phase|folder|channel|board|server|cluster|region|schedule|track|column|section|seat|bank|job|company)$",
    re.IGNORECASE,
)
"""Where something else than a person is moved to."""
_NO_NAME = re.compile(
    r"(?:back|away|up|off|out|by|to|for|in|on|at|it|not|never|a|an|the|after|before|later|again|only|every\w*|when\w*|if|as"
    r"|about|once|soon|asap|any\s?time|tomorrow|tonight|today|now|crazy|this|next|around|daily|weekly|directly|immediately"
    r"|(?:she|he|they|xe|ze|it|any)(?:\s?/|$)|train|bus|bike|car|foot|plane|boat|tram|ferry|taxi|bicycle|what\w*|my|your|his|her|their)\b",
    re.IGNORECASE,
)
_NO_VALUE = re.compile(r"(?:not|no longer|never|unknown|none|nobody|nothing|different|no one)\b", re.IGNORECASE)
_NO_TONGUE = re.compile(
    r"(?:python|java|javascript|typescript|go|golang|rust|ruby|kotlin|swift|php|scala|perl|haskell|sql|lua|elixir|erlang"
    r"|clojure|dart|zig|julia|matlab|fortran|cobol|bash|c|c\+\+|c#|f#|r|objective-c|assembly|html|css|yaml)(?![\w+#])",
    re.IGNORECASE,
)
"""Languages that nobody is spoken to in."""
_WITHIN = re.compile(r"\b(?:in|at|near)\s+(?:the\s+)?(?=[^\W\d_a-z])")
_DATE = re.compile(
    r"(?:(?:next|last|this)\s|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july"
    r"|august|september|october|november|december)",
    re.IGNORECASE,
)


@lru_cache
def wordings(field: str) -> tuple[Wording, ...]:
    """Those of a field: the ones that are known for it, and its own name with a value."""
    words = r"[\s_-]+".join(map(re.escape, re.split(r"[_-]", field)))
    named = (Shape.OWNED, rf"{_OWNED}{words}{_IS}{_ANY}")
    known = (*_WORDINGS.get(field, ()), named)
    return tuple(Wording(shape, re.compile(pattern, re.IGNORECASE)) for shape, pattern in known)


def hinted(plain: str, fields: Iterable[str]) -> list[str]:
    """Those of some fields that a text may state in some wording."""
    low = " ".join(plain.lower().split())
    return [each for each in fields if any(hint in low for hint in _HINTS.get(each, (re.split(r"[_-]", each)[0],)))]


def value_of(field: str, said: str, plain: str) -> str | None:
    """A value as it is proposed; ``None`` when it is none of the field.

    Args:
        field: the field.
        said: what a wording gives as its value, without invisible characters.
        plain: the same without disguised letters.
    """
    value = said.strip(" .'\"“”-")[:MAX_VALUE]
    if not value or _NO_VALUE.match(plain):
        return None
    refused: object = None
    match field:
        case "city":
            if within := _WITHIN.search(value):  # `a small flat in Graz`
                value = plain = value[within.end() :]
            value = re.sub(r"^(?:the\s+)?(?:city|town|village)\s+of\s+", "", value, flags=re.IGNORECASE)
            refused = not value or _NO_PLACE.match(plain) or _DATE.match(plain) or _NO_CITY.match(value)
        case "preferred_name":
            refused = _NO_NAME.match(plain) or len(value.split()) > 5
        case "language":
            refused = _NO_TONGUE.match(plain)
        case _:
            pass
    return None if refused else value
