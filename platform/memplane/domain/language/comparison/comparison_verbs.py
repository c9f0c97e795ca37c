"""Where the verb of an English sentence begins."""

from memplane.domain.language.comparison import comparison_lexicon as lexicon
from memplane.domain.language.comparison.comparison_thesaurus import may_be_verb
from memplane.domain.language.comparison.comparison_words import Word, key_of

_NEVER_BEFORE = lexicon.ARTICLES | lexicon.PREPOSITIONS | lexicon.BE
"""Words right after which no verb with an ending of the present or past stands."""
_LED = lexicon.ARTICLES | lexicon.PREPOSITIONS
"""Words that may stand right after a verb."""
_PARTING = _LED | lexicon.JOINTS
"""Words that never stand between a describing form and its noun."""


def verb_place(words: list[Word]) -> int:
    """Where the verb begins; the length when none is found."""
    start = 0
    if words and words[0].low == "the":
        start = 1
    if len(words) > start + 1 and words[start].low == "user":
        after = words[start + 1]
        if after.kind != "p" and after.low != "and":
            return start + 1
    second = _plain_verb(words, start)
    if second:
        return second
    for index in range(start + 1, len(words)):
        if words[index].kind == "w" and _is_finite(words[index], words[index - 1]) and not _describes(words, index):
            return index
    for index, word in enumerate(words):
        if index > start and word.kind == "w" and key_of(word.low) in lexicon.VERBS:
            return index
    late = _late_verb(words, start)
    if late:
        return late
    plain = len(words) > 1 and words[1].kind == "w" and not words[1].name and words[1].low not in lexicon.PREPOSITIONS
    return 1 if plain and words[0].low not in lexicon.DROPPED else len(words)


def _describes(words: list[Word], index: int) -> bool:
    """Whether a form in `-ed` only describes the noun after it, of which a verb follows: `minimum supported iOS is`."""
    if not words[index].low.endswith("ed"):
        return False
    for place, word in enumerate(words[index + 1 : index + 4]):
        if word.low in lexicon.BE:
            return place > 0
        if word.kind != "w" or word.low in _PARTING:
            return False
    return False


def _late_verb(words: list[Word], start: int) -> int:
    """The place of a verb that the vocabulary lacks, in a sentence without any other; 0 when there is none."""
    for index in range(start + 1, len(words) - 1):
        word, before, after = words[index], words[index - 1], words[index + 1]
        if word.kind != "w" or word.name or not word.low.endswith(("s", "ed")) or word.low.endswith("ss"):
            continue
        led = after.kind in ("#", "d") or after.name or after.low in _LED
        if led and before.kind != "p" and before.low not in _NEVER_BEFORE and may_be_verb(word.low):
            return index
    return 0


def _plain_verb(words: list[Word], start: int) -> int:
    """The place of a verb right after a name, or after an article and a noun; 0 when there is none."""
    place = start + 1
    if len(words) <= place + 1 or words[start].kind != "w" or words[start].low in lexicon.PREPOSITIONS:
        return 0
    verb, after = words[place], words[place + 1]
    if verb.kind != "w" or verb.name or not (start or words[start].low not in lexicon.DROPPED):
        return 0
    formed = verb.low.endswith(("s", "ed")) and not verb.low.endswith("ss")
    if not (formed or verb.low in lexicon.PAST) or not may_be_verb(verb.low):
        return 0
    led = after.low in lexicon.AUXILIARIES or _is_finite(after, verb)
    return 0 if led else place


def _is_finite(word: Word, before: Word) -> bool:
    """Whether a word is a verb with an ending, or one that helps a verb."""
    low = word.low
    if low in lexicon.AUXILIARIES or low in lexicon.HAVE or low == "ended-now":
        return True
    if word.name or before.kind == "p" or before.low in ("the", "a", "of", "for"):
        return False
    known = key_of(low) in lexicon.VERBS or low in lexicon.NEGATIVES or low in lexicon.PAST
    return known and (low.endswith(("s", "ed")) or low in lexicon.PAST)
