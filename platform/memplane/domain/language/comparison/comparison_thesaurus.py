"""How two English words are related: looked up in a table of WordNet's frequent senses, read once when first needed."""

import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache
from importlib.resources import files

from memplane.domain.language.comparison.comparison_forms import ABBREVIATIONS, IRREGULAR, OPPOSITES
from memplane.domain.language.comparison.comparison_lexicon import PEOPLE
from memplane.domain.language.comparison.comparison_words import key_of

TABLE = "wordnet.txt.gz"
_EMPTY: frozenset[str] = frozenset()
_DETACHED = (
    ("ies", "y"),
    ("ied", "y"),
    ("sses", "ss"),
    ("xes", "x"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("ves", "f"),
    ("es", "e"),
    ("es", ""),
    ("s", ""),
    ("ed", "e"),
    ("ed", ""),
    ("ing", "e"),
    ("ing", ""),
    ("er", "e"),
    ("er", ""),
    ("est", ""),
)
_DENYING = ("un", "in", "im", "ir", "il", "dis", "non")
_DERIVING = ("able", "er", "or", "ment", "ness", "ing", "ation", "ion", "al", "ity", "ive", "ly", "y", "ist")
_MAX_ASCENT = 3
_MAX_LENGTH = 18
_MIN_SLIP = 7
"""A word of fewer letters is too often another word with one letter exchanged."""
_MAX_SPAN = 4
_BROAD = 7
"""Senses with fewer senses above them are too general to make sisters of what lies under them."""


class Relation(IntEnum):
    """How close two words are; each closer than the one before."""

    NONE = 0
    OPPOSITE = 1
    SISTER = 2
    BROADER = 3
    NARROWER = 4
    SYNONYM = 5
    LISTED = 6
    DERIVED = 7
    EQUAL = 8


@dataclass(frozen=True, slots=True)
class Lexeme:
    """What the table says of a word in all its forms.

    Attributes:
        key: what it is compared by first; synonyms of the hand-made list share it.
        forms: the base forms that it may have.
        senses: numbers of its frequent senses.
        families: numbers of the families of words derived from one another that it is in.
        opposites: base forms of its opposites.
        contrary: base forms of its opposites by the hand-made list.
        lines: lines of the hand-made list that it stands in.
        above: the senses over its own.
        kinds: those of them that are narrow enough to make two words of one kind.
    """

    key: str
    forms: frozenset[str] = frozenset()
    senses: frozenset[str] = frozenset()
    families: frozenset[str] = frozenset()
    opposites: frozenset[str] = frozenset()
    contrary: frozenset[str] = frozenset()
    lines: frozenset[int] = frozenset()
    above: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Table:
    nouns: int
    verbs: int
    parents: list[str]
    lines: dict[str, str]


def _data(name: str) -> bytes:
    return files("memplane.domain.language").joinpath("data", name).read_bytes()


@cache
def _table() -> _Table:
    text = gzip.decompress(_data(TABLE)).decode("ascii")
    first, _, rest = text.partition("\n")
    lines = dict(line.partition("\t")[::2] for line in rest.splitlines())
    nouns, verbs, *parents = first.split(" ")
    return _Table(int(nouns, 36), int(verbs, 36), parents, lines)


def may_be_verb(low: str) -> bool:
    """Whether a lower-case word is a form of a verb that has a frequent sense."""
    first = _table().verbs
    return any(int(sense, 36) >= first for sense in lexeme(low).senses)


def may_be_noun(low: str) -> bool:
    """Whether a lower-case word names a thing in a frequent sense."""
    table = _table()
    return any(table.nouns <= int(sense, 36) < table.verbs for sense in lexeme(low).senses)


def is_only_noun(low: str) -> bool:
    """Whether a lower-case word names things and never describes them."""
    first = _table().nouns
    senses = lexeme(low).senses
    return bool(senses) and all(int(sense, 36) >= first for sense in senses)


def is_word(low: str) -> bool:
    """Whether a lower-case word, or what it is a form of, is in the table."""
    return bool(lexeme(low).forms)


@lru_cache(maxsize=16_384)
def is_kind_of(low: str, kind: str) -> bool:
    """Whether what a lower-case noun names first is a kind of what another noun names first: `therapist`, `person`."""
    wanted = next(iter(_named_first(kind)), "")
    return any(wanted in (sense, *_all_above(sense)) for form in lexeme(low).forms for sense in _named_first(form))


@lru_cache(maxsize=16_384)
def is_any_kind_of(low: str, kind: str) -> bool:
    """Whether a lower-case noun names a kind of what another noun names, in any frequent sense: `server`, `tool`."""
    wanted, table = next(iter(_named_first(kind)), ""), _table()
    lines = [table.lines.get(form, "") for form in (low, low.removesuffix("s"))]
    senses = [sense for line in lines for sense in line.split("\t")[0].split()]
    senses = [sense for sense in senses if table.nouns <= int(sense, 36) < table.verbs]
    return any(wanted in (sense, *_all_above(sense)) for sense in senses)


def _named_first(word: str) -> list[str]:
    """The most frequent sense in which a word in its base form names a thing, if there is one."""
    table = _table()
    senses = table.lines.get(word, "").split("\t")[0].split()
    return [sense for sense in senses if table.nouns <= int(sense, 36) < table.verbs][:1]


def _all_above(sense: str) -> set[str]:
    found: set[str] = set()
    at = _parent(sense)
    while at and at not in found:
        found.add(at)
        at = _parent(at)
    return found


def _forms(low: str) -> frozenset[str]:
    """The base forms in the table that a word may be a form of."""
    lines = _table().lines
    found = {low, IRREGULAR.get(low, low)}
    for ending, to in _DETACHED:
        if low.endswith(ending) and len(low) - len(ending) >= 2:
            base = low[: len(low) - len(ending)]
            doubled = base[-1:] == base[-2:-1] and base[-1:] not in "sleo" and ending in ("ed", "ing", "er")
            found.add(base[:-1] if doubled else base + to)
    return frozenset(form for form in found if form in lines)


@lru_cache(maxsize=16_384)
def lexeme(low: str) -> Lexeme:
    """What is known of a lower-case word; of an unknown one, its stem alone."""
    word = ABBREVIATIONS.get(low, low)
    forms = _forms(word) if len(word) <= _MAX_LENGTH else _EMPTY
    senses: set[str] = set()
    families: set[str] = set()
    opposites: set[str] = set()
    for form in forms:
        cells = _table().lines.get(form, "").split("\t")
        senses.update(cells[0].split())
        families.update(cells[1:2])
        opposites.update(cells[2].split() if len(cells) > 2 else ())
    key, above = key_of(word), frozenset(_above(senses))
    return Lexeme(
        key=key,
        forms=forms,
        senses=frozenset(senses),
        families=frozenset(families - {""}),
        opposites=frozenset(opposites),
        contrary=_EMPTY.union(*(OPPOSITES.get(form, _EMPTY) for form in (low, *forms))),
        lines=frozenset(line for form in (*forms, key) for line in _alike().get(form, ())),
        above=above,
        kinds=frozenset(sense for sense in above if _depth(sense) >= _BROAD),
    )


@lru_cache(maxsize=65_536)
def relation(one: str, other: str) -> Relation:
    """How the first of two lower-case words is related to the other: broader means that it names the wider thing."""
    a, b = lexeme(one), lexeme(other)
    if a.key == b.key or not a.forms.isdisjoint(b.forms):
        return Relation.EQUAL
    if not a.opposites.isdisjoint(b.forms) or not b.opposites.isdisjoint(a.forms) or denies(one, other):
        return Relation.OPPOSITE
    if not a.families.isdisjoint(b.families) or _extends(a, b):
        return Relation.DERIVED
    return _loosely(one, other, a, b)


def _loosely(one: str, other: str, a: Lexeme, b: Lexeme) -> Relation:
    """How two words that do not have a root in common are related; of persons only what the hand-made list says."""
    if not a.lines.isdisjoint(b.lines):
        return Relation.LISTED
    if not a.senses.isdisjoint(b.senses) and a.key not in PEOPLE and b.key not in PEOPLE:
        return Relation.SYNONYM
    if not a.contrary.isdisjoint(b.forms):
        return Relation.OPPOSITE
    return Relation.SYNONYM if is_abbreviation(one, other) else _in_hierarchy(a, b)


def _in_hierarchy(a: Lexeme, b: Lexeme) -> Relation:
    """How two words stand to each other by what their senses are kinds of."""
    if not a.senses.isdisjoint(b.above):
        return Relation.BROADER
    if not b.senses.isdisjoint(a.above):
        return Relation.NARROWER
    return Relation.NONE if a.kinds.isdisjoint(b.kinds) else Relation.SISTER


def denies(one: str, other: str) -> bool:
    """Whether one word is the other with a prefix or ending that denies it: `signed`, `unsigned`; `stateless`."""
    short, long = (one, other) if len(one) < len(other) else (other, one)
    if len(short) >= 3 and long.endswith(short) and long[: len(long) - len(short)] in _DENYING:
        return True
    return one != other and {one[-4:], other[-3:]} == {"less", "ful"} and one[:-4] == other[:-3]


def is_slip(one: str, other: str) -> bool:
    """Whether an unknown word is a long known one but for one letter, or for letters that changed places."""
    if bool(lexeme(one).forms) == bool(lexeme(other).forms):
        return False
    short, long = sorted((one, other), key=len)
    if len(short) < _MIN_SLIP or len(long) - len(short) > 1 or one[0] != other[0] or long[-1] != short[-1]:
        return False
    if len(short) == len(long):
        apart = [place for place in range(len(one)) if one[place] != other[place]]
        return len(apart) == 1 or (sorted(one) == sorted(other) and apart[-1] - apart[0] <= _MAX_SPAN)
    return any(long[:place] + long[place + 1 :] == short for place in range(1, len(long)))


def _extends(a: Lexeme, b: Lexeme) -> bool:
    """Whether one word is the other with an ending that derives: `reach`, `reachable`."""
    for short in a.forms | b.forms:
        if len(short) >= 4:
            for long in b.forms if short in a.forms else a.forms:
                if long.startswith(short) and long[len(short) :] in _DERIVING:
                    return True
    return False


@cache
def _alike() -> dict[str, list[int]]:
    """The lines of the hand-made list that a word stands in: its words may stand for each other, without chaining."""
    found: dict[str, list[int]] = {}
    for place, line in enumerate(_data("alike.txt").decode("ascii").splitlines()):
        for word in line.split():
            found.setdefault(word, []).append(place)
    return found


def is_abbreviation(one: str, other: str) -> bool:
    """Whether one word is a beginning of the other that is no word of its own: `med`, `medical`."""
    short, long = (one, other) if len(one) < len(other) else (other, one)
    return 3 <= len(short) <= len(long) - 3 and long.startswith(short) and not lexeme(short).forms


def _above(senses: Iterable[str]) -> set[str]:
    """The senses over some others."""
    found: set[str] = set()
    for sense in senses:
        at = sense
        for _ in range(_MAX_ASCENT):
            at = _parent(at)
            if not at:
                break
            found.add(at)
    return found


def _parent(sense: str) -> str:
    code = _table().parents[int(sense, 36)]
    return "" if code == "0" else _code(int(code, 36) - 1)


@lru_cache(maxsize=16_384)
def _depth(sense: str) -> int:
    depth, at = 0, sense
    while at and depth < 30:
        at = _parent(at)
        depth += 1
    return depth


def _code(number: int) -> str:
    digits = ""
    while True:
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
        if not number:
            return digits
