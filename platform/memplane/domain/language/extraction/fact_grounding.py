"""Facts that a language model noted of a conversation: which of them the person really stated."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from memplane.domain.language.extraction.extraction_text import doubtful_words, other_voice, plain_sentences
from memplane.domain.language.languages import ENGLISH, language_of, script_of
from memplane.domain.language.terms import terms
from memplane.domain.language.text import words

MOST_FACTS = 5
"""Of one question."""
LEAST_SHARE = 0.5
"""Of a fact's words that have a meaning so many stand in the sentences that it goes back to."""
SAME = 0.75
"""Two facts are one when their words overlap so far: |both| / |either|, after Jaccard."""
LEAST_CONFIDENCE = 0.5
SURE = 0.9
"""The most that is believed of what a model draws; it may say 1 of anything."""
LONG, SEVERAL = 160, 2
"""A talk is asked about when a person states so many characters in it, or so many sentences."""

_DENIED = {
    ENGLISH: """not no never none nobody nothing neither nor cannot without hardly barely don't doesn't didn't
        isn't aren't wasn't weren't won't wouldn't can't couldn't haven't hasn't hadn't shouldn't dont doesnt didnt isnt
        wont cant havent hasnt if unless whether would could might maybe perhaps suppose imagine pretend""",
    "de": """nicht kein keine keinen keinem keiner nie niemals niemand nichts weder ohne wenn falls ob vielleicht
        würde könnte hätte wäre angeblich""",
    "fr": """ne n pas jamais aucun aucune rien personne ni sans si peut-être serait aurait voudrais pourrait""",
    "es": """no nunca jamás nada nadie ningún ninguna ninguno ni sin si quizás quizá tal-vez sería podría""",
    "it": """non mai nessuno nessuna niente nulla né senza se forse sarebbe potrebbe vorrei""",
    "pt": """não nunca jamais nada ninguém nenhum nenhuma nem sem se talvez seria poderia""",
    "nl": """niet geen nooit niemand niets noch zonder als indien misschien zou""",
    "sv": """inte ej icke aldrig ingen inget inga ingenting varken utan om ifall kanske skulle""",
    "da": """ikke aldrig ingen intet hverken uden hvis om måske ville kunne""",
    "no": """ikke aldri ingen ingenting verken uten hvis om kanskje ville kunne""",
    "pl": """nie nigdy nikt nic ani bez jeśli jeżeli gdyby może chyba""",
    "ru": """не нет никогда никто ничего ни без если бы ли может наверное возможно""",
}
_DENIALS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {code: frozenset(said.split()) for code, said in _DENIED.items()}
)
"""By language, words with which a sentence denies, supposes or doubts; of another language nothing is believed."""
_QUOTED = re.compile(r"[\"“”„«»\u201a\u2018]|(?<!\w)'(?=\w[^']*'(?!\w))")
_DIGITS = re.compile(r"\d+")
_DATED = re.compile(
    r"\b\d{4}-\d{2}(?:-\d{2})?\b|\b\d{1,2}(?:st|nd|rd|th)?\.? (?:of )?[A-Z][a-zé]{2,8}(?: \d{4})?\b"
    r"|\b(?:[A-Z][a-zé]{2,8} )\d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?\b|\b(?:in|since|from|until|by) \d{4}\b"
)
"""A day that a model may have worked out of 'tomorrow'."""
_NAMED = re.compile(r"(?<=[\w,;:)] )[A-ZÀ-ÞА-Я][\w'’-]+")
_OURS = frozenset({"user", "person", "speaker"})
_CALENDAR = frozenset(
    """january february march april may june july august september october november december monday tuesday wednesday
    thursday friday saturday sunday""".split()  # noqa: SIM905 - as the rest
)


@dataclass(frozen=True, slots=True)
class Noted:
    """A fact as a model noted it.

    Attributes:
        text: one statement in the third person.
        category: of those that it was given.
        importance: 1…5.
        confidence: 0…1.
        turns: by their numbers, the turns that say it.
    """

    text: str
    category: str
    importance: int
    confidence: float
    turns: tuple[int, ...]


def assertions(text: str) -> list[str]:
    """The sentences of a message that its author states without a doubt.

    What is quoted, pasted, asked, supposed, reported or denied is none of them; nor is anything in a message that
    speaks with another voice ('pretend', 'ignore the policy'), or in a language whose denials are not known.
    """
    found = plain_sentences(text)
    if not found or other_voice("\n".join(found)):
        return []
    return [each for each in found if _is_stated(each)]


def _is_stated(sentence: str) -> bool:
    if sentence.rstrip("\"') ").endswith("?") or _QUOTED.search(sentence) or doubtful_words(sentence):
        return False
    return not denies(sentence)


def denies(sentence: str) -> bool:
    """Whether a sentence denies or supposes something, or may do so in a language that is not known."""
    said = words(sentence)
    if any(script_of(word) not in (None, "ru") for word in said):
        return True
    code = "ru" if any(script_of(word) == "ru" for word in said) else language_of(said)
    denials = _DENIALS.get(code)
    return denials is None or not denials.isdisjoint(said)


def is_worth_asking(stated: Iterable[Sequence[str]]) -> bool:
    """Whether a model is asked about a talk: a person states enough in it; a greeting and a thank-you are not worth it.

    Args:
        stated: the assertions of each of the person's turns.
    """
    found = [each for turn in stated for each in turn if len(words(each)) > 2]
    return len(found) >= SEVERAL or sum(len(each) for each in found) >= LONG


def is_supported(fact: str, stated: Sequence[str], names: Iterable[str] = ()) -> bool:
    """Whether sentences bear a fact out by their words.

    Half of its meaning words, every number but those of dates, and every name stand in them. A fact that denies is
    borne out by nothing, as no sentence here does.

    Args:
        fact: the fact.
        stated: assertions of the turns that it names.
        names: how the person is called.
    """
    if not stated or denies(fact):
        return False
    said = "\n".join(stated)
    code = language_of(words(said))
    known = set(terms(said, code).counts)
    subject = set(terms(" ".join((*names, *_OURS)), code).counts)
    undated = _DATED.sub(" ", fact)
    claimed = set(terms(undated, code).counts) - subject
    if not claimed or len(claimed & known) < LEAST_SHARE * len(claimed):
        return False
    if not set(_DIGITS.findall(undated)) <= set(_DIGITS.findall(said)):
        return False
    if code == "de":  # every noun has a capital
        return True
    capital = [name for name in _NAMED.findall(undated) if name.casefold() not in _CALENDAR]
    return all(set(terms(name, code).counts) - subject <= known for name in capital)


def is_borne_out(fact: Noted, stated: Mapping[int, Sequence[str]], names: Iterable[str]) -> bool:
    """Whether a fact is worth keeping, and each of the turns that it names is one of the person's that helps to say it.

    Args:
        fact: as a model noted it.
        stated: the assertions of the person's turns, by their numbers.
        names: how the person is called.
    """
    if fact.confidence < LEAST_CONFIDENCE or not all(stated.get(each) for each in fact.turns):
        return False
    said = [each for turn in dict.fromkeys(fact.turns) for each in stated[turn]]
    return is_supported(fact.text, said, names)


def distinct(facts: Sequence[Noted]) -> list[Noted]:
    """Facts without those that say again what a more important one says: the same words, or nearly all of them."""
    kept: list[tuple[Noted, frozenset[int]]] = []
    for fact in sorted(facts, key=lambda each: (-each.importance, -each.confidence)):
        mine = frozenset(terms(fact.text).counts)
        if not any(_overlap(mine, other) >= SAME for _, other in kept):
            kept.append((fact, mine))
    return [fact for fact, _ in kept]


def _overlap(one: frozenset[int], other: frozenset[int]) -> float:
    either = one | other
    return len(one & other) / len(either) if either else 1.0
