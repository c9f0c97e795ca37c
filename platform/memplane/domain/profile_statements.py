"""Which fields of a profile a text states, in the third person or the first.

The rules that draw facts from turns may name a field themselves; these read everything else, so that no known wording
carries a change of a sensitive field past consent. In the category of a field the rules prefer a false alarm to a
missed statement. In any other category, where most texts are about something else, a statement counts when its words
show that it is about the user.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memplane.domain.extraction_words import KIN, LANGUAGE, PET
from memplane.domain.memory import MemoryText
from memplane.domain.profile_subjects import Somebody, Voice, about
from memplane.domain.profile_wording import MAX_VALUE, Wording, hinted, value_of, wordings
from memplane.domain.tombstones import BLANKS, LOOK_ALIKES, value_key
from memplane.domain.writing import sentences

_LEAD = 240
"""Characters before a statement that are looked at, of a sentence without end."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A field of the profile and the value that a text gives it.

    Attributes:
        field: which.
        value: as the text has it.
        of: the name of the person whom the text speaks of, where only that name could tell that it is the user.
    """

    field: str
    value: str
    of: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The field and its value's key: by which two statements are the same."""
        return self.field, value_key(self.value)


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for in a text.

    Attributes:
        own: the fields of the text's own category.
        elsewhere: those of other categories.
        names: words of names that the user is known by, case folded.
    """

    own: frozenset[str]
    elsewhere: frozenset[str] = frozenset()
    names: frozenset[str] = field(default_factory=frozenset)

    @property
    def fields(self) -> list[str]:
        """All of them, in order."""
        return sorted(self.own | self.elsewhere)


_PERSON = re.compile(
    r"\b(?i:user|person|customer|client|human|he|she|they|I|me|my|his|her|their|we|our)\b"
    r"|\b(?!(?:The|A|An|This|That|These|Those|Its?|There|Each|Every|One|Some|Many|Note|System|Since|In|On|At)\b)[^\W\d_a-z][\w-]+"
)
"""Who is meant by what stands before a verb: the person, or somebody by name."""
_OTHERS = re.compile(
    r"(?i:one\sof\s|some\sof\s|many\sof\s|two\sof\s)?(?:(?i:(?:the\s|this\s)?user(?:'s)?|his|her|their|my|our|the|an?)"
    r"|[^\W\d_a-z][\w-]*(?:\s[^\W\d_a-z][\w-]*)?(?:'s|'))\s+(?:[\w-]+\s+){0,2}?"
    rf"(?i:{KIN}|{PET}|company|team|office|employer|project|family|firm|client|colleagues?|friends?)\b"
)
"""Somebody or something else of the person's is what the sentence is about."""
_DENIED = re.compile(r"(?:\b(?:not|never|no longer|hardly|nowhere|cannot)|n't)(?:\s+\w+)?\s*$", re.IGNORECASE)
"""What stands before a statement that it denies."""
_OF_ITEMS = frozenset({"namespace", "key", "order", "numbers", "lives"})
"""What an item of a store keeps beside its value."""
_OF_THE_USER = re.compile(r"(?:user|users|profile|person|me|self)(?:_|$)")
_SPEECH = re.compile(LANGUAGE, re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")


def stated_fields(
    text: MemoryText, attributes: Mapping[str, object] | None, fields: Collection[str] | Sought
) -> tuple[Stated, ...]:
    """The fields that a memory states anywhere in its words or attributes, each value once.

    Args:
        text: its words.
        attributes: its free attributes.
        fields: the fields that are looked for; of the memory's own category, unless said otherwise.
    """
    sought = fields if isinstance(fields, Sought) else Sought(frozenset(fields))
    if not sought.fields:
        return ()
    found: dict[tuple[str, str, str | None], Stated] = {}
    for stated in (*_of_words(text, sought), *_of_attributes(attributes or {}, text, sought)):
        found.setdefault((*stated.key, stated.of), stated)
    return tuple(each for each in found.values() if each.of is None or (*each.key, None) not in found)


def spoken_fields(words: str, fields: Collection[str]) -> tuple[Stated, ...]:
    """The fields that a person states of themselves in a sentence of a message: in the first person, or by an order."""
    sought, voice = Sought(frozenset(), frozenset(fields)), Voice(first_person=True)
    found = {stated.key: stated for stated in _of_text(words, sought, voice, bare=False)}
    return tuple(found.values())


def _of_words(text: MemoryText, sought: Sought) -> Iterator[Stated]:
    parts = (text.title, text.narrative, *text.facts, *text.steps, *text.tags, *text.related_files)
    others = [part for part in parts if part and hinted(_undisguised(part)[0], sought.fields)]
    if not others and not hinted(_undisguised(text.content)[0], sought.fields):
        return
    bare = about_the_user(text.content, sought.names)
    voice = Voice(sought.names)
    yield from _of_text(text.content, sought, voice, bare=bare)
    heard = voice.last
    for part in others:
        yield from _of_text(part, sought, Voice(sought.names, last=heard), bare=bare)


def _of_text(text: str, sought: Sought, voice: Voice, *, bare: bool) -> Iterator[Stated]:
    for sentence in sentences(text):
        plain, places = _undisguised(sentence)
        if wanted := hinted(plain, sought.fields):
            voice.listen(plain)
            # `Note: the user lives in Berlin.`
            for start in sorted({0, plain.find(": ") + 2 if ": " in plain else 0}):
                yield from _of_piece(_Piece(sentence, plain[start:], places, start), wanted, sought, voice, bare=bare)
        voice.hear(plain)


@dataclass(frozen=True, slots=True)
class _Piece:
    sentence: str
    plain: str
    places: Sequence[int]
    start: int

    def said(self, span: tuple[int, int]) -> str:
        """What the sentence says there, without invisible characters."""
        start, end = (self.start + place for place in span)
        said = self.sentence[self.places[start] : self.places[end - 1] + 1]
        return " ".join("".join(c for c in said if c not in BLANKS and unicodedata.category(c) != "Cf").split())

    def lead(self, start: int) -> str:
        """What stands before a place: the beginning of the sentence, and what is near."""
        before = self.plain[:start]
        return before if len(before) <= 2 * _LEAD else f"{before[:_LEAD]} {before[-_LEAD:]}"


def _of_piece(piece: _Piece, wanted: Sequence[str], sought: Sought, voice: Voice, *, bare: bool) -> Iterator[Stated]:
    for name in wanted:
        for wording in wordings(name):
            for match in wording.pattern.finditer(piece.plain):
                span = match.span("value")
                value = value_of(name, piece.said(span), piece.plain[slice(*span)])
                if not value:
                    continue
                lead = piece.lead(match.start())
                if name in sought.own:
                    if _of_person(lead, match.group()):
                        yield Stated(name, value)
                elif stated := _strictly(Stated(name, value), wording, match, lead, voice, bare=bare):
                    yield stated


def _strictly(
    stated: Stated, wording: Wording, match: re.Match[str], lead: str, voice: Voice, *, bare: bool
) -> Stated | None:
    """A statement in a category that is not the field's, if it is about the user."""
    who = about(wording.shape, match, lead, voice)
    if who is Somebody.UNNAMED:  # `City: Porto`
        labelled = wording is wordings(stated.field)[-1] and not lead and bare
        return stated if labelled and _label_value(stated) else None
    if who is Somebody.OTHER or not _fits(stated, match):
        return None
    return stated if who is Somebody.USER else replace(stated, of=who)


def _fits(stated: Stated, match: re.Match[str]) -> bool:
    """Whether a value is written as one of its field: names of places and people begin with a capital letter.

    Where nothing is written in capitals, their absence tells nothing.
    """
    words = stated.value.split()
    if stated.field not in {"city", "preferred_name"}:
        return len(words) <= 6
    if len(words) > 5 or any(each.isdigit() for each in stated.value):
        return False
    first = _LETTER.search(words[-1] if words[0] in {"the", "The"} else words[0])
    if first is None:
        return False
    if first.group().islower():
        rest = match.string[1:].replace(" I ", " ").replace(" I'", " ")
        return rest.islower() and len(words) <= 2 and not _COMMON.fullmatch(words[0])
    if stated.field == "preferred_name":
        return True
    return match.string.isupper() or not any(_TECHNICAL.fullmatch(each) for each in words)


_COMMON = re.compile(
    r"[\w-]+(?:ment|tion|sion|ship|ing|ance|ence|ness|time|wide|hood|ware|side|ly)|remote|sales|finance|support|legal|product"
    r"|prod|design|research|security|operations|ops|devops|data|backend|frontend|platform|cloud|decaf|tea|coffee|weekly"
    r"|daily|mornings|evenings|nights|mondays|linux|mac|windows|vim|emacs|postgres\w*|town|luxury|style|bits",
    re.IGNORECASE,
)
"""Words that follow `moved to` or `lives in`, and are no places."""
_TECHNICAL = re.compile(
    r"\w*[a-z][A-Z]\w*|(?!NYC|LA|SF|DC|UK|US|USA|UAE|KL|HK)[A-Z]{2,}|Python|Java|Rust|Go|Kotlin|Swift|Ruby|Scala|Slack|Teams"
    r"|Zoom|Notion|Google|Gmail|Outlook|Figma|Jira|Linear|Asana|Trello|Linux|Windows|Ubuntu|Debian|Android|Kubernetes|Docker"
    r"|Postgres|Redis|Kafka|Azure|Vercel|Amazon|Microsoft|Apple|Netflix|Meta|Spotify|Vim|Neovim|Emacs|Rails|Django|React|Vue"
    r"|Svelte|Terraform|Monday|Sales|Marketing|Engineering|Management|Finance|Product|Design|Support|Operations|Legal|HR"
    r"|Unit|Team|Plan|Tier|Level|Phase|Stage|Sprint|Version|Group|Class|Grade|Room|Gate|Hall|Building|Row|Seat|Dr|Prof"
)
"""Products, firms and departments, which people move to as well."""


def about_the_user(content: str, names: frozenset[str]) -> bool:
    """Whether a label or attribute beside some words is the user's: they are a bare note, or speak of the user."""
    voice, words = Voice(names), content.split()
    voice.hear(_undisguised(content[:_LEAD])[0])
    short = len(words) <= 4
    if short and (voice.last is None or ":" in content or "=" in content):
        return True
    return voice.last is Somebody.USER or (short and not any(each[0].islower() for each in words))


def _label_value(stated: Stated) -> bool:
    """Whether a bare label gives its field a value that could be a person's."""
    if stated.field == "language":
        return _SPEECH.fullmatch(stated.value) is not None
    return any(c.isalpha() for c in stated.value) and not any(c.isdigit() for c in stated.value)


def _of_attributes(attributes: Mapping[str, object], text: MemoryText, sought: Sought) -> Iterator[Stated]:
    yield from _of_values(attributes, sought.own)
    if sought.elsewhere:
        bare = about_the_user(text.content, sought.names)
        yield from _of_values_elsewhere(attributes, sought.elsewhere, bare=bare)


def _of_values(value: object, fields: Collection[str], depth: int = 0) -> Iterator[Stated]:
    if not fields or depth > 8 or not isinstance(value, Mapping | list | tuple):
        return
    for key, item in _members(value):
        if key in fields and (said := _value(item)):
            yield Stated(key, said)
        yield from _of_values(item, fields, depth + 1)


def _of_values_elsewhere(
    value: object, fields: Collection[str], depth: int = 0, *, bare: bool, named: bool = False
) -> Iterator[Stated]:
    """Attributes of the user: at the top, or under a name that says so; under another name they are that thing's."""
    if depth > 8 or not isinstance(value, Mapping | list | tuple):
        return
    for key, item in _members(value):
        users = _OF_THE_USER.match(key)
        short = key[users.end() :] if users and users.end() < len(key) else key
        if short in fields and (said := _value(item)):
            stated = Stated(short, said)
            if named or users or (bare and _label_value(stated)):
                yield stated
        elif key in _OF_ITEMS:
            continue
        elif not key or key == "value" or users or named:
            yield from _of_values_elsewhere(item, fields, depth + 1, bare=bare, named=named or bool(users))


def _members(value: Mapping[str, object] | Sequence[object]) -> Iterator[tuple[str, object]]:
    for name, item in value.items() if isinstance(value, Mapping) else (("", each) for each in value):
        yield "_".join(re.split(r"[\s_-]+", str(name).casefold().strip())), item


def _value(item: object) -> str | None:
    return str(item).strip()[:MAX_VALUE] or None if isinstance(item, str | int | float) else None


def _undisguised(text: str) -> tuple[str, Sequence[int]]:
    """A text without invisible characters and disguised letters, and where each of its characters stood."""
    if text.isascii():
        return text, range(len(text))
    letters: list[str] = []
    places: list[int] = []
    for place, c in enumerate(text):
        if c.isascii():
            letters.append(c)
            places.append(place)
            continue
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
    if _DENIED.search(lead[-_LEAD:]):
        return False
    whole = f"{lead} {said}".strip()
    if _OTHERS.match(whole) and not re.match(r"(?:the\s|this\s)?user\b(?!'s)", whole, re.IGNORECASE):
        return False
    return not lead or bool(_PERSON.search(whole[: len(lead) + 1])) or lead.islower()
