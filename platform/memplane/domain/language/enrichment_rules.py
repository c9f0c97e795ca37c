"""Names in a text by rules that may take their time: what stands around a word says whether it is a name, and of what.

A word that no dictionary has is more likely a name than one that it has. The dictionary is that of the comparisons.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from memplane.domain.language import enrichment_words as words
from memplane.domain.language import entity_words as known
from memplane.domain.language.comparison.comparison_thesaurus import may_be_noun
from memplane.domain.language.enrichment import UNKNOWN, Span
from memplane.domain.language.entities import kind_beside, masked, name_spans

VERSION = "rules/1"
"""Counted up with every change of what the rules find: memories are looked at again then."""
CUE, SHOWN, LIKELY, SHAPE, BARE = 0.9, 0.8, 0.7, 0.6, 0.5
"""How certain a find is: a word says so; the name's own form; words around; its letters; it has a capital."""

_SENTENCE = re.compile(
    r"[^.!?;\n]+(?:(?:[.](?=\w)|(?<=\b(?:Dr|Mr|Ms|St|Mt))[.]|(?<=\bMrs)[.]|(?<=\bProf)[.])[^.!?;\n]*)*"
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SMALL = r"([^\W\d_A-Z][^\W\d_A-Z]+(?:-[^\W\d_]+)?)"
either = words.either
_OWNER = rf"(?!{either(words.NO_ONE)}['’])\w+['’]s"
_POSSESSIVE = rf"(?:my|his|her|their|our|your|{_OWNER})"
_OF = rf"(?:the|my|his|her|their|our|a|an|{_OWNER})"
_MAX_LENGTH = 20_000
_BESIDE = 200
"""So many characters of the sentence are looked at on either side."""
_IS_NAMED = re.compile(rf"\A\s*(?:the|{_POSSESSIVE})\s+(?:[\w'’]+['’]s\s+)?(\w+)\b[^,]*\b(?:is|was)(?:\s+called)?\s+$")


@dataclass(frozen=True, slots=True)
class _Name:
    """A run of capitalised words, and the sentence around it.

    Attributes:
        before: the sentence up to the name, in lower case.
        after: the sentence behind it, likewise.
        initial: whether a sentence begins with it.
    """

    start: int
    end: int
    text: str
    before: str
    after: str
    initial: bool

    @property
    def words(self) -> list[str]:
        """Its words, in lower case."""
        return self.text.lower().replace(",", "").split()

    def follows(self, pattern: str) -> re.Match[str] | None:
        """Whether what stands right before it fits."""
        return re.search(rf"(?<!\w)(?:{pattern})\s+$", self.before[-80:])

    def precedes(self, pattern: str) -> re.Match[str] | None:
        """Whether what stands right behind it fits."""
        return re.match(rf"(?:{pattern})(?!\w)", self.after)

    def has(self, among: frozenset[str]) -> bool:
        """Whether one of some words stands before it in the sentence."""
        return not among.isdisjoint(_WORD.findall(self.before))


def spans(text: str) -> tuple[Span, ...]:
    """What the rules take for names; some overlap, and some say that what looks like one is none.

    Of very long texts only the beginning is looked at.
    """
    _, left = masked(text[:_MAX_LENGTH])
    names = [_judged(name) for name in _names(left)]
    joined = _joined(left, [span for span in names if span is not None])
    return (*joined, *_in_small_letters(left), *_quoted(left), *_numbered(left, joined), *_owned(left))


def _names(text: str) -> Iterator[_Name]:
    sentences = [match.span() for match in _SENTENCE.finditer(text)]
    place = 0
    for start, end, initial in name_spans(text):
        while place < len(sentences) - 1 and sentences[place][1] <= start:
            place += 1
        first, last = sentences[place] if sentences else (0, len(text))
        name = _Name(
            start,
            end,
            text[start:end],
            text[max(first, start - _BESIDE) : start].lower(),
            text[end : max(min(last, end + _BESIDE), end)].lower(),
            initial,
        )
        yield _stripped(name)


def _stripped(name: _Name) -> _Name:
    """Without what has its capital from the beginning of a sentence: `Neighbours Gus`, `Yeah John`."""
    first, _, rest = name.text.partition(" ")
    if name.initial and rest and first.lower() in words.SPOKEN:
        return replace(name, start=name.end - len(rest), text=rest, before=f"{first.lower()} ", initial=False)
    if not name.initial or not rest or first.lower().rstrip(".") in known.TITLES or not words.is_person_noun(first):
        return name
    if words.is_common(rest.split()[0]) or first.lower() in known.GIVEN_NAMES:
        return name
    start = name.end - len(rest)
    return replace(name, start=start, text=rest, before=f"{first.lower()} ", initial=False)


def _judged(name: _Name) -> Span | None:
    """The kind of a name and how certain it is; ``None`` for a word that has its capital from its place alone."""
    parts = name.words
    if all(words.is_calendar(each) for each in parts):
        return Span(name.start, name.end, None, CUE)
    for holds, shown, confidence in _RULES:
        if holds(name):
            return Span(name.start, name.end, shown, confidence)
    kind = kind_beside(f"{name.before}{name.text}{name.after}", len(name.before), len(name.before) + len(name.text))
    if kind is not None:
        return Span(name.start, name.end, kind, LIKELY)
    if name.initial and len(parts) == 1 and not _begins_with_name(name):
        return None
    if _looks_like_person(parts):
        return Span(name.start, name.end, "person", SHAPE)
    return Span(name.start, name.end, UNKNOWN, BARE)


def _begins_with_name(name: _Name) -> bool:
    """Whether a single word at the beginning of a sentence is a name: no dictionary has it, and it does something."""
    word = name.text
    if any(c.isupper() or c.isdigit() for c in word[1:]) or name.after.startswith(("'s", "’s")):
        return not words.is_common(word) or any(c.isupper() for c in word[1:])
    if words.is_common(word):
        return False
    following = _WORD.match(name.after.lstrip(" ,"))
    return following is not None and (words.is_verb(following[0]) or following[0] in {"and", "or"})


def _looks_like_person(parts: list[str]) -> bool:
    own = [each for each in parts if each not in words.LINKS]
    strange = all(not words.is_common(each) and not any(c.isdigit() for c in each) for each in own)
    return 2 <= len(own) <= 3 and strange


def _is_person(name: _Name) -> bool:
    """A noun beside it says who it is."""
    last = _WORD.findall(name.before[-60:])[-2:]
    done = last and last[0] in words.DOERS and len(last) == 2  # `I can host Fortnite games`
    if last and not done and re.search(r"[^\W\d_](?:,|:)?\s+$", name.before) and words.is_person_noun(last[-1]):
        return True
    told = re.match(rf"(?:,| is| was|, who is)\s+{_OF}((?:\s+[\w'’-]+){{1,4}})", name.after)
    if told and _says_who(told[1].split()) and not name.follows(r"\w+ing|in|at|from|to|near"):
        return True
    said = _IS_NAMED.match(name.before)
    return said is not None and words.is_person_noun(said[1])


def _says_who(parts: list[str]) -> bool:
    """Whether the first noun that is not somebody's is one of a person: `the user's oldest friend from school`."""
    for place, part in enumerate(parts):
        if part in words.PREPOSITIONS:
            return False
        if words.is_person_noun(part) and not _noun_follows(parts[place + 1 : place + 2]):
            return True
    return False


def _noun_follows(following: list[str]) -> bool:
    return any(may_be_noun(part) and not words.is_verb(part) for part in following if part not in words.PREPOSITIONS)


def _acts(name: _Name, verbs: frozenset[str]) -> bool:
    """Whether it does something that its kind does; an English word that begins a sentence is no name."""
    if name.initial and len(name.words) == 1 and words.is_common(name.text):
        return False
    following = _WORD.findall(name.after[:40])[:2]
    if following[:1] and following[0] in words.BEFORE_VERBS:
        del following[0]
    return name.after[:1] == " " and bool(following) and following[0] in verbs - words.MEETINGS


def _is_new_at_start(name: _Name) -> bool:
    return name.initial and not words.is_common(name.text)


def _is_together(name: _Name) -> bool:
    return bool(name.follows("with|against") and name.has(words.SOCIAL))


def _is_given(name: _Name) -> bool:
    return bool(name.follows("to") and name.has(words.GIVING))


def _is_organisation(name: _Name) -> bool:
    """Its own words, or a noun before it, say that it is an organisation."""
    parts = name.words
    several = len(parts) > 1
    return (
        "&" in parts
        or (several and (parts[-1] in words.ORGANISATION_LAST or parts[0] in words.ORGANISATION_FIRST))
        or bool(name.follows(rf"{either(words.ORGANISATION_NOUNS)}(?: is| was| called| named)?"))
    )


def _is_place_name(name: _Name) -> bool:
    parts = name.words
    own = len(parts) > 1 and (parts[-1] in words.PLACE_LAST or parts[0] in known.PLACE_FIRST)
    return own and not name.follows(rf"{either(words.WORKS)}(?: is| was| called)?|reading|watching|[\"'“\u2018]")


def _is_reached(name: _Name) -> bool:
    """Somebody comes from there or goes there."""
    if name.follows("near|around|towards?|outside|(?:is|am|are|was|comes?|came) from|stop(?:s|ped)? (?:at|in)|via"):
        return True
    moved = re.search(rf"\bmov\w+ {_OF} ", name.before)  # something else is moved
    return bool(name.follows("from|to|between") and name.has(words.MOTION) and not moved and not name.has(words.GIVING))


def _is_in(name: _Name) -> bool:
    return bool(name.follows("in") and not name.has(words.TOOL_VERBS))


def _is_project(name: _Name) -> bool:
    return bool(
        name.words[0] == "project"
        or name.follows("project|repository|repo|codename|code name")
        or name.precedes(r"\s+(?:project|repo|repository|initiative)")
        or re.search(r"\b(?:codename|code name|working title)\b[^,]*\b(?:is|was)\s+$", name.before)
    )


def _is_title(name: _Name) -> bool:
    return bool(name.follows(rf"{either(words.WORKS)}(?: is| was| called)?|reading|watching|watched"))


_TITLED = "dr\\.|mr\\.|mrs\\.|ms\\.|prof\\."
_NAMING = r"calls? (?:him|her|them|me)|named (?:him|her|the \w+|(?:his|her|my|their) \w+)"
_BUYING = r"(?:ordered|buys?|bought|purchased) (?:\w+ ){0,3}(?:from|at)|joined"
_BELONGING = "(?:member|board|chair|founder|ceo|cto) of (?:the )?|donates? to (?:the )?"
_MADE_BY = "(?:signed|written|led|painted|sent|recommended|built|made|taught|given) by"
_OWNING = r"['’]s\s+(?:birthday|party|wedding|house|flat|car|idea|email|phone|boss|dog|cat)"
_DOING = words.SOCIAL | words.MOTION | words.GIVING
_Shown = tuple[Callable[[_Name], object], str, float]
_RULES: tuple[_Shown, ...] = (
    (lambda name: name.words[0].rstrip(".") in known.TITLES and len(name.words) > 1, "person", CUE),
    (_is_project, "project", CUE),
    (_is_title, UNKNOWN, CUE),
    (lambda name: name.follows(rf"{_POSSESSIVE} \w+") and words.is_animal(name.before.split()[-1]), UNKNOWN, CUE),
    (_is_organisation, "organisation", CUE),
    (_is_place_name, "place", SHOWN),
    (lambda name: name.follows(_TITLED), "person", CUE),
    (_is_person, "person", CUE),
    (lambda name: len(name.words) < 4 and name.follows(either(words.TO_PEOPLE | known.PERSON_BEFORE)), "person", SHOWN),
    (lambda name: name.follows(_NAMING), "person", SHOWN),
    (lambda name: name.follows(f"{_BUYING}|{words.AT_WORK}|{_BELONGING}"), "organisation", SHOWN),
    (lambda name: _acts(name, words.ORGANISATION_ACTS), "organisation", LIKELY),
    (_is_together, "person", SHOWN),
    (_is_given, "person", LIKELY),
    (_is_reached, "place", SHOWN),
    (lambda name: " ".join(name.words) in known.PLACES, "place", SHOWN),
    (lambda name: name.words[0] in known.GIVEN_NAMES and len(name.words) < 5, "person", SHOWN),
    (_is_in, "place", LIKELY),
    (lambda name: name.follows(_MADE_BY), "person", LIKELY),
    (lambda name: name.precedes(_OWNING), "person", SHOWN),
    (lambda name: _acts(name, known.PERSON_AFTER), "person", LIKELY),
    (lambda name: _acts(name, _DOING), "person", SHAPE),
    (lambda name: name.precedes(r"['’]s\s+(?!\d)") and _is_new_at_start(name), "person", SHAPE),
)
"""What shows the kind of a name, the surest first."""


_AND = re.compile(r"(?:,|,? and|,? or|,? und|,? y|,? et|,? over| &) $|, $")


def _joined(text: str, names: list[Span]) -> list[Span]:
    """Names of a list are of one kind, where one of them shows it; and so are both ends of a way."""
    found = list(names)
    for order in (range(1, len(found)), range(len(found) - 2, -1, -1)):
        for place in order:
            beside = found[place - 1] if order.step > 0 else found[place + 1]
            one = found[place]
            left, right = sorted((one, beside), key=lambda span: span.start)
            between = text[left.end : right.start]
            unclear = one.kind == UNKNOWN and one.confidence < CUE
            if unclear and beside.kind not in (None, UNKNOWN) and _AND.fullmatch(between):
                found[place] = replace(one, kind=beside.kind, confidence=max(one.confidence, beside.confidence - 0.1))
    return found


_KIN = re.compile(rf"(?i:\b{_POSSESSIVE})\s+(\w+)\s+{_SMALL}\b(?=\s+(\w+)|\W|$)")
_ADDRESSED = re.compile(rf"\b(?:met|told|asked|married|dated|invited|ran into|bumped into)\s+{_SMALL}\b")
_CALLED = re.compile(rf"(?i:\b(?:named|called|name is|goes by))\s+{_SMALL}\b(?=\s*(?:[,.!?;]|$|\sand\b))")
_LIVING = re.compile(rf"(?i:\b(?:{words.PLACE_VERBS}))\s+{_SMALL}\b")
_WORKING = re.compile(rf"(?i:\b(?:{words.AT_WORK}))\s+{_SMALL}\b")
_PROJECT = re.compile(rf"(?i:(?:\b(?:to|on|for|in|of|from|about)|^|[.!?]\s))\s*(?i:project)\s+{_SMALL}\b")
_REPOSITORY = re.compile(rf"(?i:\b(?:repository|repo))\s+{_SMALL}\b")


_SMALL_NAMES = (
    (_ADDRESSED, "person"),
    (_CALLED, UNKNOWN),
    (_LIVING, "place"),
    (_WORKING, "organisation"),
    (_REPOSITORY, "project"),
)


def _in_small_letters(text: str) -> Iterator[Span]:
    """Names that were typed without a capital: words that no dictionary has, behind words that call for a name."""
    for match in _KIN.finditer(text):
        noun, word, following = match.groups()
        kind = _kind_of_noun(noun)
        if kind is None or words.is_common(word):
            continue
        if following is None or words.is_verb(following) or following in {"and", "who"}:
            yield Span(*match.span(2), kind, CUE)
    for pattern, kind in _SMALL_NAMES:
        for match in pattern.finditer(text):
            listed = kind == "place" and match[1] in known.PLACES
            if listed or not words.is_common(match[1]):
                yield Span(*match.span(1), kind, SHOWN)
    for match in _PROJECT.finditer(text):
        word = match[1]
        plain = word in words.PROJECT_NOUNS or word in known.ORDINARY
        if not plain and (may_be_noun(word) or not words.is_common(word)):
            yield Span(*match.span(1), "project", SHOWN)


def _kind_of_noun(noun: str) -> str | None:
    """Of what kind somebody's noun is, if its name may follow it."""
    if words.is_animal(noun):
        return UNKNOWN
    if noun.lower() in words.ORGANISATION_NOUNS:
        return "organisation"
    return "person" if words.is_person_noun(noun) else None


_QUOTE = re.compile(r"(?<!\w)[\"“\u2018'«]([^\"“”\u2018’«»\n]{2,60}?)[\"”’'»](?!\w)")


def _quoted(text: str) -> Iterator[Span]:
    """Titles between quotation marks: each of their words has a capital but for the small ones."""
    for match in _QUOTE.finditer(text):
        parts = match[1].split()
        if len(parts) < 2 or not parts[0][:1].isupper() or match[1][-1] in ".!?,":
            continue
        if all(each[:1].isupper() or each in words.MINOR for each in parts) and parts[-1] not in words.MINOR:
            yield Span(*match.span(1), UNKNOWN, CUE)


_NUMBER = re.compile(r" \d{1,4}[A-Za-z]?(?=[,.!?;)]|$| (?:is|was|with|and|that|from|for|which)\b)")


def _numbered(text: str, names: list[Span]) -> Iterator[Span]:
    """Products with a number behind their name: `a Fernix 8`."""
    for span in names:
        number = _NUMBER.match(text, span.end)
        if number and re.search(r"\b(?:an?|the|my|his|her)\s+$", text[max(0, span.start - 8) : span.start].lower()):
            yield Span(span.start, number.end(), UNKNOWN, CUE)


_OWNED = re.compile(r"\b([^\W\d_a-z][^\W\d_]+['’]s) ([^\W\d_a-z][^\W\d_]+)\b")


def _owned(text: str) -> Iterator[Span]:
    """Shops and the like that bear their owner's name: `Ezra's Kitchen`."""
    for match in _OWNED.finditer(text):
        if match[2].lower() in words.ORGANISATION_LAST or (words.is_common(match[2]) and may_be_noun(match[2].lower())):
            yield Span(*match.span(), "organisation", CUE)
