"""Which fields of a profile a text states, in the third person or the first.

The rules that draw facts from turns may name a field themselves; these read everything else, so that no known wording
carries a change of a sensitive field past consent. In the category of a field somebody by name is taken for the user: a
false alarm is better there than a missed statement. In any other category, where most texts are about something else, a
statement counts when its words show that it is about the user.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from memplane.domain.language.profile_claims import Found, claims
from memplane.domain.language.profile_subjects import Somebody, SubjectReader, Voice
from memplane.domain.language.profile_wording import HEADINGS, MAX_VALUE, TELLING, TONGUES, Words, core, undisguised
from memplane.domain.language.spelling import bare as plainly
from memplane.domain.language.spelling import known_words
from memplane.domain.memory.memory import MemoryText
from memplane.domain.memory.tombstones import spelled_keys, value_key
from memplane.domain.memory.writing import sentences

_LEAD = 240
"""Characters of a memory by which whom it is about is told."""


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
        return self.field, value_key(core(self.field, self.value))

    @property
    def keys(self) -> frozenset[str]:
        """The value's keys in each of its spellings: by which a refused value is known again."""
        return spelled_keys(core(self.field, self.value))


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for in a text.

    Attributes:
        own: the fields of the text's own category.
        elsewhere: those of other categories.
        names: words of names that the user is known by, case folded.
        year: in which it was said, if that is known: a move long before it is history.
    """

    own: frozenset[str]
    elsewhere: frozenset[str] = frozenset()
    names: frozenset[str] = field(default_factory=frozenset)
    year: int | None = None

    @property
    def fields(self) -> frozenset[str]:
        """All of them."""
        return self.own | self.elsewhere


_OF_ITEMS = frozenset({"namespace", "key", "order", "numbers", "lives"})
"""What an item of a store keeps beside its value."""
_OF_THE_USER = re.compile(r"(?:user|users|profile|person|personal|me|self|home|residence|my|current)(?:_|$)")
_NAMED: Mapping[str, str] = {
    "hometown": "city", "home_city": "city", "current_city": "city", "lives_in": "city", "city_of_residence": "city",
    "place_of_residence": "city", "nickname": "preferred_name", "called": "preferred_name", "pronoun": "pronouns",
    "preferred_language": "language", "native_language": "language", "mother_tongue": "language",
    "language_preference": "language",
}  # fmt: skip
"""Other names of attributes that hold a field."""
_ENDS = r"(?<=\bin)|(?<=\bat)|(?<=\bto)|(?<=\bis)|(?<=\bare)|(?<=\bthe)|(?<=\bas)|(?<=\bby)|(?<=\bme)|(?<=\buser)"
_BROKEN = re.compile(rf"(?<=[^\W_])[ \t]*\n(?=[a-z])|(?:(?i:{_ENDS}|(?<=\bcalled)|(?<=\bnamed))|(?<=[:=]))[ \t]*\n+")
"""A line's end within a sentence."""
_SPOKEN = re.compile(
    r"\A\s*+[\"'(]*+\s*+(?P<name>[^\W\d_][\w-]*)(?:\s(?:said|says|wrote|writes))?:\s+[\"'“]?(?:I|My|We|Our|Call|Please)\b"
)


def stated_fields(
    text: MemoryText, attributes: Mapping[str, object] | None, fields: Collection[str] | Sought
) -> tuple[Stated, ...]:
    """The fields that a memory states anywhere in its words or attributes, each value once, in the order of the text.

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


def spoken_fields(words: str, fields: Collection[str], year: int | None = None) -> tuple[Stated, ...]:
    """The fields that a person states of themselves in a sentence of a message: in the first person, or by an order."""
    sought = Sought(frozenset(), frozenset(fields), year=year)
    found = {stated.key: stated for stated in _of_text(words, sought, Voice(first_person=True), bare=False)}
    return tuple(found.values())


def _of_words(text: MemoryText, sought: Sought) -> Iterator[Stated]:
    bare, voice = about_the_user(text.content, sought.names), Voice(sought.names)
    yield from _of_text(text.content, sought, voice, bare=bare)
    for part in (
        text.title,
        text.continuation(),
        text.narrative,
        *text.facts,
        *text.steps,
        *text.tags,
        *text.related_files,
    ):
        if part:
            yield from _of_text(part, sought, Voice(sought.names, last=voice.last), bare=bare)


def _of_text(text: str, sought: Sought, voice: Voice, *, bare: bool) -> Iterator[Stated]:
    for sentence in sentences(_spelled_out(text)):
        words = Words.of(sentence)
        label = _SPOKEN.match(words.text)
        voice.speaker = label["name"] if label and label["name"].lower() not in HEADINGS else None
        reader = SubjectReader(words, voice)
        asked = sentence.rstrip("\"'”’) ").endswith("?")
        for found in claims(reader, sought.fields, sought.year):
            stated = None if asked else _counted(found, words, sentence, sought, bare=bare)
            if stated:
                yield stated
        voice.last = reader.first or voice.last


def _spelled_out(text: str) -> str:
    """A text as its statements are read: plainly spelled, and with the lines of one sentence joined."""
    return _BROKEN.sub(" ", known_words(plainly(text), TELLING))


def _counted(found: Found, words: Words, sentence: str, sought: Sought, *, bare: bool) -> Stated | None:
    """A statement, if it is about the user, as far as its words show."""
    name = found.field
    value = core(name, words.said(*found.value, sentence).removesuffix("-based"))
    if not value or found.who is Somebody.OTHER:
        return None
    if isinstance(found.who, str):
        return Stated(name, value, None if name in sought.own else found.who)
    if found.bare and name not in sought.own and not (bare and _is_label_value(Stated(name, value))):
        return None
    return Stated(name, value)


def about_the_user(content: str, names: frozenset[str]) -> bool:
    """Whether a label or attribute beside some words is the user's: they are a bare note, or speak of the user."""
    content = _spelled_out(content)
    words = Words.of(content[:_LEAD])
    reader = SubjectReader(words, Voice(names))
    for i in range(len(words)):
        reader.pass_by(i)
    parts = content.split(maxsplit=4)
    short = len(parts) <= 4
    if short and (reader.first is None or reader.first is Somebody.OTHER or ":" in content or "=" in content):
        return True
    return reader.first is Somebody.USER or (short and not any(each[0].islower() for each in parts))


def _is_label_value(stated: Stated) -> bool:
    """Whether a bare label gives its field a value that could be a person's."""
    if stated.field == "language":
        return stated.value.casefold() in TONGUES
    return any(c.isalpha() for c in stated.value) and not any(c.isdigit() for c in stated.value)


def _of_attributes(attributes: Mapping[str, object], text: MemoryText, sought: Sought) -> Iterator[Stated]:
    if attributes:
        bare = about_the_user(text.content, sought.names)
        yield from _of_values(attributes, sought, bare=bare)


def _of_values(
    value: object, sought: Sought, depth: int = 0, *, bare: bool, named: bool = False, others: bool = False
) -> Iterator[Stated]:
    """Fields among attributes; outside their category those of the user.

    They are the user's at the top, or under a name that says so; under another name they are that thing's.
    """
    if depth > 8:
        return
    if isinstance(value, str):
        if " " in value.strip():
            voice = Voice(sought.names, last=Somebody.OTHER if others else None)
            yield from _of_text(value, sought, voice, bare=False)
        return
    for written, item in _members(value):
        if " " in written:  # a sentence in the place of a name
            yield from _of_values(written, sought, bare=False, others=others)
        key = _as_name(written)
        users = _OF_THE_USER.match(key)
        short = key[users.end() :] if users and users.end() < len(key) else key
        name = next((each for each in (key, short, _NAMED.get(key), _NAMED.get(short)) if each in sought.fields), None)
        said = _values(item) if name else ()
        for each in said:
            stated = Stated(name or "", core(name or "", each))
            of_user = not others and (named or users or (bare and _is_label_value(stated)))
            if name in sought.own or of_user:
                yield stated
        if not said and key not in _OF_ITEMS:
            apart = others or not (not key or key == "value" or users or named or isinstance(item, str))
            yield from _of_values(item, sought, depth + 1, bare=bare, named=named or bool(users), others=apart)


def _members(value: object) -> Iterator[tuple[str, object]]:
    items: Sequence[tuple[object, object]] = ()
    if isinstance(value, Mapping):
        items = [*value.items()]
    elif isinstance(value, list | tuple):
        items = [("", each) for each in value]
    for name, item in items:
        yield plainly(str(name)).strip(), item


def _as_name(written: str) -> str:
    """An attribute's name as names of fields are written."""
    plain, _ = undisguised(known_words(written, TELLING))
    return "_".join(re.split(r"[\s_-]+", plain.casefold()))


def _values(item: object) -> tuple[str, ...]:
    """The values that an attribute gives: itself, or each of a list."""
    each = item if isinstance(item, list | tuple) else (item,)
    found = (plainly(str(one)).strip()[:MAX_VALUE] for one in each if isinstance(one, str | int | float))
    return tuple(one for one in found if one)
