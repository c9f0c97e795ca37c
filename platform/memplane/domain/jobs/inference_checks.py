"""What a model concludes about a person, and what of it may be kept: pure checks of words and of what they rest on."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from memplane.domain.language.terms import parse_query, terms
from memplane.domain.memory.memory import FULL_AUTHORITY, Memory, Role, Turn, Visibility
from memplane.domain.memory.scope import trust_levels
from memplane.domain.memory.writing import sentences
from memplane.domain.policy.policy import Policy, Trust
from memplane.domain.ranking.fencing import quote_text

RELATIONSHIP = "relationship_dynamic"
"""The category of insights and reflections."""
INSIGHT_CHARS, INSIGHT_SENTENCES = 280, 2
REFLECTION_CHARS, REFLECTION_SENTENCES = 1_000, 8
HEARD = 1_000
"""Characters of a conversation that are given."""
_SUBJECTS = (
    "the user", "user", "der nutzer", "die nutzerin", "der benutzer", "die benutzerin", "l'utilisateur",
    "l'utilisatrice", "el usuario", "la usuaria", "l'utente", "o usuário", "a usuária", "o utilizador", "a utilizadora",
    "de gebruiker", "användaren", "brukeren", "brugeren", "użytkownik", "пользователь", "用户", "ユーザー", "사용자",
)  # fmt: skip
"""How a person is named whose name is not known, at the beginning of a sentence, by language."""
_SPEAKER = re.compile(
    r"\bI\b|\b(?:me|my|mine|myself|we|our|ours|ourselves|you|your|yours|yourself|yourselves)\b|\b[Uu]s\b"
    r"|\b(?:[Ii]'|[Ww]e'|[Yy]ou')(?:m|ve|d|ll|re)\b"
)
_SPEAKER_WORDS = """
ich wir du ihr mein meine unser dein deine je nous tu vous mon ma yo nosotros nosotras tú mi io noi voi eu nós você
jag vi
"""
_SPEAKER_FIRST = frozenset(_SPEAKER_WORDS.split())
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|(?<!\w)'[^']*'(?!\w)|\u2018[^’]*’(?!\w)")
_MARKUP = re.compile(
    r"[`<>{}|\\]|https?:|www\.|\*\*|^\s*(?:[-*•#]|\d+[.)])\s|[\x00-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2066-\u2069]"
)
_AUTHORITY = re.compile(
    r"\b(?:admin(?:istrator)?s?|superuser|sudo|root (?:access|rights)|(?:system|platform) operator|operator'?s? (?:key|"
    r"rights|orders?)|authori[sz](?:ed|es|ation)|(?:approved|verified|confirmed|certified|granted) by|clearance"
    r"|full(?:y)? (?:access|trust(?:ed)?)|trust level|privileg(?:e|ed|es)|system prompt|developer mode|jailbreak"
    r"|passwords?|passphrase|credentials?|api keys?|access tokens?|allowlists?|consent(?:s|ed)? (?:to|is|was)"
    r"|override|bypass)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\b(?:agents?|assistants?|models?|ai|bots?|chatbots?|systems?|memory|supervisor|planner|everyone|anyone)\b"
    r"[^.!?]{0,40}\b(?:must|should|shall|(?:needs?|ha(?:s|ve)|ought|(?:is|are) (?:required|to be|supposed))(?: to)?)\b"
    r"|\b(?:must|should|shall) (?:always |never |not )?(?:be (?:told|given|treated|trusted|obeyed|addressed|called|"
    r"answered|sent|informed|allowed|asked|reminded)|obey|ignore|reveal|disclose|forward)\b"
    r"|\b(?:ignore|disregard|forget|reveal|disclose)\b[^.!?]{0,30}\b(?:instructions?|rules?|prompts?|previous|prior|"
    r"policy|policies|secrets?)\b"
    r"|\b(?:please|make sure|ensure that|be sure|remember to|note that)\b",
    re.IGNORECASE,
)
_LEADING = re.compile(r"(?<!\W)\W*(?:the )?user\b(?:'s|’s)?", re.IGNORECASE)


class InferenceFault(StrEnum):
    """Why an answer is not kept."""

    SOURCES = "sources"
    LENGTH = "length"
    FORMAT = "format"
    PERSON = "person"
    AUTHORITY = "authority"
    ORDER = "order"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that a model is given to rest an answer on, by its number.

    Attributes:
        unit: the memory or turn.
        text: its words, as they are given.
        kind: what it is called, such as ``fact``.
    """

    unit: Memory | Turn
    text: str
    kind: str

    @property
    def id(self) -> UUID:
        """Of the memory or turn."""
        return self.unit.id


@dataclass(frozen=True, slots=True)
class Shape:
    """How long an answer may be: characters and sentences; and on how many pieces it rests at least."""

    chars: int
    sentences: int
    least: int = 1


INSIGHT = Shape(INSIGHT_CHARS, INSIGHT_SENTENCES)
REFLECTION = Shape(REFLECTION_CHARS, REFLECTION_SENTENCES, least=2)


def one_line(text: str) -> str:
    """A text as one line, which cannot pretend to be another piece."""
    return " ".join(text.split())


def conversation(turns: Sequence[Turn]) -> list[Piece | str]:
    """The end of a conversation, at most 1 000 characters of it, oldest first.

    What the person said are pieces; what the assistant said are lines without a number: nothing rests on them. What
    nobody vouched for is left out.

    Args:
        turns: its last ones, the newest first.
    """
    told: list[Piece | str] = []
    room = HEARD
    for turn in turns:
        if turn.role not in (Role.USER, Role.ASSISTANT) or not turn.vouched:
            continue
        text = one_line(turn.text)
        if len(text) > room and told:
            break
        text = text[:room]
        room -= len(text)
        told.append(Piece(turn, text, "said") if turn.role is Role.USER else text)
    return told[::-1]


def material(pieces: Mapping[int, Piece], heard: Sequence[str] = ()) -> str:
    """What a model is given: the pieces by number, each on a line of its own, quoted, and what the assistant said."""
    lines = [f"{number}. [{piece.kind}] {quote_text(piece.text)}" for number, piece in pieces.items()]
    return "\n".join([*lines, *(f"(the assistant said, not to be rested on) {quote_text(line)}" for line in heard)])


def fault(text: str, rests_on: Sequence[int], pieces: Mapping[int, Piece], shape: Shape) -> InferenceFault | None:
    """What is wrong with a conclusion about a person; ``None`` for one that may be kept.

    It is in the third person, about the user or somebody whom its sources name, plain text, no longer than its shape
    allows; it neither claims authority nor tells anybody what to do; and each of its sentences shares a word with the
    pieces that it names, all of which were given.

    Args:
        text: the conclusion.
        rests_on: the numbers of the pieces that it names.
        pieces: what was given, by number.
        shape: what holds for its kind.
    """
    named = dict.fromkeys(rests_on)
    if len(named) < shape.least or any(number not in pieces for number in named):
        return InferenceFault.SOURCES
    text = text.strip()
    parts = sentences(text)
    if not parts or len(text) > shape.chars or len(parts) > shape.sentences:
        return InferenceFault.LENGTH
    known = [pieces[number].text for number in named]
    wrong = claims_or_orders(text)
    if wrong is not None:
        return wrong
    if not _third_person(text, parts, known):
        return InferenceFault.PERSON
    return None if is_supported(parts, known) else InferenceFault.UNSUPPORTED


def claims_or_orders(text: str) -> InferenceFault | None:
    """Whether a text is no plain one, claims authority, or tells agents what to do."""
    if _MARKUP.search(text):
        return InferenceFault.FORMAT
    if _AUTHORITY.search(text):
        return InferenceFault.AUTHORITY
    return InferenceFault.ORDER if _ORDER.search(text) else None


def speaks(text: str) -> bool:
    """Whether somebody speaks of themselves or is spoken to, outside of quotations."""
    return _SPEAKER.search(_QUOTED.sub(" ", text)) is not None


def _third_person(text: str, parts: Sequence[str], known: Sequence[str]) -> bool:
    """Whether nobody speaks or is spoken to, and the first sentence names whom it is about."""
    if speaks(text):
        return False
    if any(re.split(r"[\s,.:;!?'’]", part, maxsplit=1)[0].casefold() in _SPEAKER_FIRST for part in parts):
        return False
    first = parts[0].casefold().replace("’", "'")
    return first.startswith(_SUBJECTS) or _names_somebody(parts[0], known)


def _names_somebody(sentence: str, known: Sequence[str]) -> bool:
    """Whether a sentence begins with a name that the sources have: written large there within a sentence, too."""
    found = re.match(r"[\"'“„]?([^\W\d_][\w-]+)(?:'s|’s)?\b", sentence)
    if found is None or not found[1][0].isupper():
        return False
    name = re.escape(found[1])
    return any(re.search(rf"(?:^|[\w,;:] ){name}\b", each) for each in known)


def is_supported(parts: Sequence[str], known: Sequence[str]) -> bool:
    """Whether each sentence or step shares a content word with what it rests on."""
    said = set().union(*(terms(each).counts for each in known))
    for part in parts:
        wanted = parse_query(_LEADING.sub(" ", part)).wanted().hashes.tolist()
        if said.isdisjoint(wanted):
            return False
    return True


def readers_share(policy: Policy, category: str) -> tuple[str, ...]:
    """The categories that everybody reads who reads a given one: what is concluded from them tells nobody more.

    Args:
        policy: in force.
        category: where the conclusion goes.
    """
    readers = [set(allowed.read) for allowed in policy.allowlists.values() if category in allowed.read]
    return tuple(sorted(set.intersection(*readers))) if readers else ()


_STORES = (Visibility.PRIVATE, Visibility.SHARED, Visibility.SOCIAL)
"""The narrowest first."""


@dataclass(frozen=True, slots=True)
class InferredAuthority:
    """What a conclusion takes over from what it rests on: the narrowest store, and the least authority.

    Attributes:
        visibility: the narrowest store of any.
        min_trust: the highest level that any asks of its readers.
        authority: the least of any, 0…3.
    """

    visibility: Visibility
    min_trust: str
    authority: int


def standing(units: Collection[Memory | Turn]) -> InferredAuthority:
    """What a conclusion takes over; turns are private, and come from who is fully trusted."""
    memories = [each for each in units if isinstance(each, Memory)]
    stores = {each.visibility for each in memories} | ({Visibility.PRIVATE} if len(memories) < len(units) else set())
    levels = trust_levels(Trust.FULL)  # the highest first
    least = min((levels.index(each.min_trust) for each in memories), default=len(levels) - 1)
    return InferredAuthority(
        min(stores, key=_STORES.index, default=Visibility.PRIVATE),
        levels[least],
        min((each.authority for each in memories), default=FULL_AUTHORITY),
    )
