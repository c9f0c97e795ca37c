"""The words, numbers, times, dates and names of an English sentence, each put into one form."""

import re
from dataclasses import dataclass
from functools import lru_cache

from memplane.domain.language.comparison import comparison_lexicon as lexicon
from memplane.domain.language.comparison.comparison_synonyms import CANONICAL, stem

_TOKEN = re.compile(
    r"""
    (?P<address>[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+ | https?://\S+ | www\.\S+)
  | (?P<phone>\+\d[\d ()-]{5,}\d)
  | (?P<monthly>\b(?:0?[1-9]|1[0-2])/(?:19|20)\d\d\b)
  | (?P<dotted>\d+(?:\.\d+){2,})
  | (?P<time>(?P<hour>\d{1,2})(?:[:.h](?P<minute>[0-5]\d))?\s?(?P<half>[apAP]\.?[mM]\b\.?) | (?P<clock>\d{1,2}:[0-5]\d))
  | (?P<number>-?\d{1,3}(?:,\d{3})+(?:\.\d+)? | -?\d+(?:\.\d+)?)(?P<unit>[^\W\d_]+(?:-[\w-]+|\d[\w-]*)?)?
  | (?P<word>[^\W\d_][^\W_]*(?:['][^\W\d_]+)*(?:[-/._][^\W_]+)*[+\#]*)
  | (?P<sign>[€$£%])
    """,
    re.VERBOSE,
)
_SIGNS = frozenset("€$£")
UNITS = {
    "s": "seconds", "sec": "seconds", "secs": "seconds", "ms": "milliseconds", "min": "minutes", "mins": "minutes",
    "h": "hours", "hr": "hours", "hrs": "hours", "kb": "kilobytes", "mb": "megabytes", "gb": "gigabytes",
    "tb": "terabytes", "mg": "milligrams", "ml": "milliliters", "l": "litres", "wk": "weeks", "wks": "weeks",
    "yrs": "years", "lb": "pounds", "lbs": "pounds", "oz": "ounces", "mph": "mph",
}  # fmt: skip
"""From what may stand after a number alone to the word that it stands for."""
_ORDINAL = frozenset({"st", "nd", "rd", "th"})
_REWRITES = tuple(
    (re.compile(pattern, re.IGNORECASE), to)
    for pattern, to in (
        (r"[’\u2018`]", "'"),
        (r"\bcan(?:no|')t\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"n't\b", " not"),
        (r"\bnot ever\b", "never"),
        (r"\bmust never\b", "can not"),
        (r"\be?-?mail address\b", "email"),
        (r"\bhome town\b", "hometown"),
        (r"\b(?:mother tongue|first language)\b", "native language"),
        (r"\bholds (?=an? (?:ph\.?d|doctorate|degree|master|bachelor|diploma))", "has "),
        (r"\b(?:can|could) not (?:stand|bear)\b", "hates"),
        (r"\bwould (?:like|love) to\b|\bis (?:keen|eager) to\b", "wants to"),
        (r"\bwould like\b", "wants"),
        (r"\bwould rather\b", "prefers to"),
        (r"\b(?:have|has|had) to\b|\bneeds? to\b|\bought to\b|\bis (?:required|obliged) to\b", "must"),
        (r"\bis (?:allowed|able|permitted) to\b|\bknows how to\b", "can"),
        (r"\bis not (?:allowed|able|permitted) to\b|\bis unable to\b|\bmust not\b|\bmay not\b", "can not"),
        (r"\b(?:no|not any) longer\b|\bno more\b", "ended-now"),
        (
            r"(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )(?<!\bbe )(?<!\bget )(?<!\bgot )\bused to\b(?= \w)",
            "ended-now",
        ),
        (r"\b(\d{1,2}(?:[:.]\d\d)?) in the morning\b", r"\1 am"),
        (r"\b(\d{1,2}(?:[:.]\d\d)?) (?:in the (?:evening|afternoon)|at night)\b", r"\1 pm"),
        (r"\b(?:has |have )?given? up(?: on)?\b|\bgave up(?: on)?\b|\bdropped out of\b", "stopped"),
        (r"\bis (?:employed|hired) (?:by|at)\b", "works at"),
        (r"\bworks for\b", "works at"),
        (r"\b(?:quit|left|lost) (?:the |a )?(?:job|position|role) (?:at|with)\b|\bresigned from\b", "left"),
        (r"\b(?:wi)-(?:fi)\b", "wifi"),
        (r"\bis the owner of\b", "owns"),
        (r"\b's (?:husband|wife|spouse) is(?= (?:now )?(?-i:[A-Z]))", " is married to"),
        (r"\byears? old\b|\byears? of age\b", "age"),
        (
            (
                r"\bat most\b|\bno more than\b|(?<!\bgo )(?<!\bgone )(?<!\bwent )(?<!\bmoved )(?<!\brose )"
                r"(?<!\bscaled )(?<!\bgrew )(?<!\bincreased )(?<!\braised )\bup to\b"
            ),
            "maximum",
        ),
        (r"\bat least\b|\bno less than\b", "minimum"),
        (r"\b(?:more than|over)(?= \d)", "above"),
        (r"\b(?:less|fewer) than(?= \d)", "below"),
        (r"\bon time\b", "punctual"),
        (r"\b(?:not|n't)? ?any ?(?:more|longer)\b", " any-more"),
        (r"\b(?:by profession|for a living|as a profession)\b", ""),
        (r"\bpart[- ]time\b", "parttime"),
        (r"\bopen source\b", "opensource"),
    )
)
_FRONTED = re.compile(
    r"^((?:In|On|At|Since|During|Every|Each|Last|Next|Born in|By|For|Until|From)\b[^,]*?)(?:, ?| (?=the user\b))(.+)$"
)
_FRONTED_CLAUSE = re.compile(r"^((?:While|When|As|After|Before|Because|If)\b[^,]+), (.+)$")
_FRONTED_SHORT = re.compile(
    r"^((?:In|On|At|Since|During|Every|Each|Last|Next|This) (?:\d{1,2} )?\w+(?: \d{2,4})?) "
    r"((?:the [a-z]+|[A-Z]\w+) (?:[a-z]+(?:s|ed)|is|was|were|are|has|had|will|can)\b.+)$"
)
"""A short phrase of time or place before a subject, without a comma."""


def simplified(text: str) -> str:
    """The sentence with turns of phrase put into one form, and what stands before its subject put last."""
    plain = text
    for pattern, to in _REWRITES:
        plain = pattern.sub(to, plain)
    fronted = _FRONTED_SHORT.match(plain) or _FRONTED.match(plain) or _FRONTED_CLAUSE.match(plain)
    if fronted:
        told = fronted[2]
        plain = f"{told[0].upper()}{told[1:].rstrip('. ')} {fronted[1][0].lower()}{fronted[1][1:]}"
    return plain


@lru_cache(maxsize=16_384)
def key_of(word: str) -> str:
    """What a lower-case word is compared by: the stem of the word that stands for its synonyms."""
    found = CANONICAL.get(word)
    if found is None:
        root = stem(word)
        found = CANONICAL.get(root, root)
    return found


@dataclass(slots=True)
class Word:
    """A word as it is read, before its part is known."""

    low: str
    kind: str
    name: bool = False
    key: str = ""
    stop: bool = False
    rank: bool = False


def read(text: str) -> list[Word]:
    """Words, numbers and names in their order, dates and amounts put into one form."""
    found: list[Word] = []
    end = 0
    for match in _TOKEN.finditer(text):
        raw, start = match[0], len(found)
        stopped, end = match.start() - end > 1 and any(sign in ",;:" for sign in text[end : match.start()]), match.end()
        if match["word"]:
            found += _words(raw, first=not found)
        elif match["time"]:
            found.append(Word(_time(match), "#"))
        elif match["monthly"]:
            month, year = raw.split("/")
            found += (Word(f"month:{int(month)}", "#"), Word(year, "#"))
        elif match["number"]:
            found += _number(match)
        elif match["sign"]:
            found.append(Word(raw, "w"))
        else:
            found.append(Word(re.sub(r"[\s()]", "", raw.lower()), "#"))
        if stopped and len(found) > start:
            found[start].stop = True
    return _dated(_measured(found))


def _words(raw: str, *, first: bool) -> list[Word]:
    low = raw.lower().removesuffix("'s").removesuffix("'")
    named = raw[0].isupper() and not first
    if any(letter.isdecimal() for letter in low) and low not in CANONICAL and low != "ended-now":
        return [Word(low, "#")]
    if "-" in low and low not in CANONICAL and low not in ("ended-now", "any-more"):
        return [word for part in raw.split("-") if part for word in _words(part, first=first)]
    if low in lexicon.NUMBERS and not named:
        return [Word(lexicon.NUMBERS[low], "#", rank=low in lexicon.RANKS)]
    if low in lexicon.WEEKDAYS or low.removesuffix("s") in lexicon.WEEKDAYS:
        return [Word(low, "d")]
    known = low in CANONICAL and not raw.isupper()
    extra = [Word("'s", "p")] if raw.lower().endswith("'s") else []
    return [Word(low, "w", named and not known), *extra]


def _time(match: re.Match[str]) -> str:
    if match["clock"]:
        hour, minute = match["clock"].split(":")
        return f"at:{int(hour)}:{minute}"
    hour = int(match["hour"]) % 12 + (12 if match["half"][0].lower() == "p" else 0)
    return f"at:{hour}:{match['minute'] or '00'}"


def _number(match: re.Match[str]) -> list[Word]:
    value = match["number"].replace(",", "")
    unit = (match["unit"] or "").lower()
    if not unit or unit in _ORDINAL:
        return [Word(value, "#", rank=bool(unit))]
    if unit in CANONICAL or unit in UNITS:
        return [Word(value, "#"), Word(UNITS.get(unit, unit), "w")]
    return [Word(value + unit, "#")]


def _clocked(words: list[Word], place: int) -> None:
    """Put `half past six` and `a quarter to eight` into the form of a time."""
    told = words[place : place + 3]
    shift = {"half": 30, "quarter": 15}[told[0].low]
    if len(told) < 3 or told[1].low not in ("past", "to") or not told[2].low.isdecimal() or int(told[2].low) > 12:
        return
    hour = int(told[2].low)
    late = told[1].low == "past"
    words[place : place + 3] = [Word(f"at:{hour if late else (hour - 1) or 12}:{shift if late else 60 - shift}", "#")]


def _measured(words: list[Word]) -> list[Word]:
    """Put the sign of a currency after its amount, and write out what a number counts: `$ 5`, `64 GB`."""
    for place in range(len(words) - 1, -1, -1):
        if words[place].low in ("half", "quarter"):
            _clocked(words, place)
    for place, word in enumerate(words[1:], 1):
        before = words[place - 1]
        if word.kind == "#" and before.low in _SIGNS:
            words[place - 1], words[place] = word, before
        elif word.kind == "w" and word.low in UNITS and before.kind == "#" and before.low[:1].isdecimal():
            word.low, word.name = UNITS[word.low], False
    return words


def _dated(words: list[Word]) -> list[Word]:
    """Put `March 3`, `3 March` and `3rd of March` into one form."""
    found: list[Word] = []
    for place, given in enumerate(words):
        word = given
        month = lexicon.MONTHS.get(word.low) if word.name or word.low not in ("may", "march", "mar") else None
        near = (found[-1:], words[place + 1 : place + 2])
        if month and (len(word.low) > 3 or word.low == "may" or any(w.low.isdecimal() for side in near for w in side)):
            word = Word(f"month:{month}", "#")
            if len(found) > 1 and found[-1].low == "of" and found[-2].low.isdecimal():
                found.pop()
            if found and found[-1].low.isdecimal() and int(found[-1].low) <= 31:
                word.low += f"-{int(found.pop().low)}"
        elif word.low.isdecimal() and int(word.low) <= 31 and found and re.fullmatch(r"month:\d+", found[-1].low):
            found[-1].low += f"-{int(word.low)}"
            continue
        found.append(word)
    return found
