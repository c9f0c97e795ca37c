"""The words, numbers, times, dates and names of an English sentence, each put into one form."""

import re
from dataclasses import dataclass
from functools import lru_cache

from memplane.domain import comparison_lexicon as lexicon
from memplane.domain.comparison_synonyms import CANONICAL, stem

_TOKEN = re.compile(
    r"""
    (?P<address>[\w.+-]+@[\w-]+(?:\.[\w-]+)+ | https?://\S+ | www\.\S+)
  | (?P<phone>\+\d[\d ()-]{5,}\d)
  | (?P<dotted>\d+(?:\.\d+){2,})
  | (?P<time>(?P<hour>\d{1,2})(?:[:.h](?P<minute>[0-5]\d))?\s?(?P<half>[ap]\.?m\b\.?) | (?P<clock>\d{1,2}:[0-5]\d))
  | (?P<number>-?\d{1,3}(?:,\d{3})+(?:\.\d+)? | -?\d+(?:\.\d+)?)(?P<unit>[^\W\d_]+(?:-[\w-]+|\d[\w-]*)?)?
  | (?P<word>[^\W\d_][^\W_]*(?:['][^\W\d_]+)*(?:[-/._][^\W_]+)*[+\#]*)
  | (?P<sign>[€$£%])
    """,
    re.VERBOSE,
)
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
        (r"\b(\d{1,2}(?::\d\d)?) in the morning\b", r"\1 am"),
        (r"\b(\d{1,2}(?::\d\d)?) (?:in the (?:evening|afternoon)|at night)\b", r"\1 pm"),
        (r"\b(?:has |have )?given? up(?: on)?\b|\bgave up(?: on)?\b|\bdropped out of\b", "stopped"),
        (r"\bis (?:employed|hired) (?:by|at)\b", "works at"),
        (r"\bworks for\b", "works at"),
        (r"\b(?:quit|left|lost) (?:the |a )?(?:job|position|role) (?:at|with)\b|\bresigned from\b", "left"),
        (r"\b(?:wi)-(?:fi)\b", "wifi"),
        (r"\bis the owner of\b", "owns"),
        (r"\b's (?:husband|wife|spouse) is(?= (?:now )?(?-i:[A-Z]))", " is married to"),
        (r"\byears? old\b|\byears? of age\b", "age"),
        (
            r"\bat most\b|\bno more than\b|(?<!\bgo )(?<!\bgone )(?<!\bwent )(?<!\bmoved )(?<!\brose )\bup to\b",
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
        elif match["number"]:
            found += _number(match)
        elif match["sign"]:
            found.append(Word(raw, "w"))
        else:
            found.append(Word(re.sub(r"[\s()]", "", raw.lower()), "#"))
        if stopped and len(found) > start:
            found[start].stop = True
    return _dated(found)


def _words(raw: str, *, first: bool) -> list[Word]:
    low = raw.lower().removesuffix("'s").removesuffix("'")
    named = raw[0].isupper() and not first
    if any(letter.isdecimal() for letter in low) and not low.startswith("ended"):
        return [Word(low, "#")]
    if "-" in low and low not in CANONICAL and low not in ("ended-now", "any-more"):
        return [word for part in raw.split("-") if part for word in _words(part, first=first)]
    if low in lexicon.NUMBERS and not named:
        return [Word(lexicon.NUMBERS[low], "#")]
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
        return [Word(value, "#")]
    if unit in CANONICAL:
        return [Word(value, "#"), Word(unit, "w")]
    return [Word(value + unit, "#")]


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
