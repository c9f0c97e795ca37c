"""How an agent's words must be put: third person, whole sentences, imperative steps. For English alone.

A wrong refusal costs more than a missed one: every rule names what it is sure of, and lets the rest pass. Quotations,
code and titles are never judged.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memplane.domain.language.comparison.comparison_forms import IRREGULAR
from memplane.domain.language.comparison.comparison_lexicon import AUXILIARIES, BE, PAST, PREPOSITIONS
from memplane.domain.language.comparison.comparison_thesaurus import is_only_noun, is_word, may_be_verb
from memplane.domain.language.entity_words import GIVEN_NAMES
from memplane.domain.language.languages import ENGLISH, STOP_WORDS, language_of
from memplane.domain.language.text import words as words_of


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


QUOTED = "\ufffc"
"""In the place of what is quoted."""
_QUOTATION = re.compile(
    r"`[^`\n]{1,400}`|\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”|«[^»\n]{0,400}»|„[^“”\n]{0,400}[“”]|\u2018[^’\n]{0,400}’(?!\w)"
    r"|(?<!\w)'[^'\n]{1,200}(?:'\w[^'\n]{0,200}){0,9}'(?!\w)"
    r"|(?<![\w*])\*{1,2}[^*\n]{1,400}\*{1,2}(?!\w)|(?<!\w)_[^_\n]{1,400}_(?!\w)"
)
_ADDRESS = frozenset("@/\\")
_SAYING = re.compile(
    r"\b(?:reads?|says?|said|writes?|wrote|asks?|asked|answer(?:s|ed)|motto|slogan|titled?|called|named)\b[^.:!?\n]{0,40}:\s",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_FOREIGN_WORD = re.compile(r"(?<!\w)[a-zß-ÿ]\w*[ß-ÿ]|(?<!\w)[ß-ÿ]")
"""A word with an accent that is no name."""
_FOREIGN_ARTICLES = _set("der die das ein eine el la los las le les un une il lo gli het een den det")
_FAR_LETTER = re.compile(r"[^\W\d_\u0000-\u024f]")


def unquoted(text: str) -> str:
    """A text with a mark in the place of each quotation, piece of code, title between marks, path and address."""
    if any(sign in text for sign in "`\"“«„\u2018'*_"):
        text = _QUOTATION.sub(QUOTED, text)
    if not any(sign in text for sign in _ADDRESS):
        return text
    return re.sub(r"\S+", lambda part: QUOTED if _ADDRESS & set(part[0]) else part[0], text)


def is_english(text: str, lang: str | None) -> bool:
    """Whether a text is judged: its language is said to be English, or nothing in it speaks for another one."""
    if lang is not None:
        return lang == ENGLISH
    if _FAR_LETTER.search(text) or _FOREIGN_WORD.search(text):
        return False
    found = words_of(text)
    if found and found[0] in _FOREIGN_ARTICLES:
        return False
    plain = [word.low for word in _words(text) if not word.is_name] or found
    known = sum(_is_english_word(word) for word in plain)
    if known * 3 < len(plain) * 2:
        return False
    # of a short text one word may be of several languages: `blue car`
    return known == len(plain) or language_of(found) == ENGLISH


def _is_english_word(low: str) -> bool:
    return low in STOP_WORDS[ENGLISH] or low.isdigit() or any(is_word(part) for part in re.split("[-']", low))


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a sentence, as it is written and in lower case, and whether only space parts it from the one before."""

    text: str
    low: str
    joined: bool

    @property
    def is_name(self) -> bool:
        return self.text[0].isupper()


def _words(sentence: str) -> list[_Word]:
    found: list[_Word] = []
    end = 0
    for match in _TOKEN.finditer(sentence):
        joined = bool(found) and not sentence[end : match.start()].strip()
        found.append(_Word(match[0], match[0].lower().replace("’", "'"), joined))
        end = match.end()
    return found


# the first person

_I_AM = frozenset({"i'm", "i've", "i'd", "i'll"})
_WE_ARE = frozenset({"we", "we're", "we've", "we'd", "we'll"})
_MINE = frozenset({"me", "my", "myself", "us", "our", "ours", "ourselves"})
_OPENING = frozenset({"My", "Our", "Ours", "Myself"})
_BEFORE_LOWER_I = _set("because when if that and but said says think thinks then so as while since yesterday today")
_NUMBERED = _set("""
part chapter type class phase wing war volume section level tier stage category article act scene figure table
grade schedule title unit psalm room block group series book mark option plan line zone variant version henry
charles james george william francis frederick napoleon leopold nicholas peter elizabeth mary anne otto
""")
_NOT_THIRD = _set("was always sometimes perhaps besides")
_AMERICAN = _set("dollar dollars market office visa tax government army citizen citizens")
_AFTER_MINE = _set("and but because to now too")


def first_person(sentence: str) -> str | None:
    """The words of a sentence that speak in the first person; quotations must have been taken out."""
    said = _SAYING.search(sentence)
    found = _words(sentence[: said.end()] if said else sentence)
    if sentence.isupper():
        return None
    for place, word in enumerate(found):
        before = found[place - 1] if place and word.joined else None
        after = found[place + 1] if place + 1 < len(found) and found[place + 1].joined else None
        if _is_first(word, before, after, place):
            return word.text if after is None else f"{word.text} {after.text}"
    return None


def _is_first(word: _Word, before: _Word | None, after: _Word | None, place: int) -> bool:
    if word.low == "i":
        return place > 0 and _is_speaker(word, before, after, place)
    if word.low in _I_AM:
        return True
    if word.text in _OPENING and place == 0:
        return after is not None and not after.is_name
    if word.is_name:  # of a title, or `US`
        return False
    if word.low == "mine":
        owned = before is not None and before.low in BE | {"of", "not"}
        return owned and (after is None or after.low in _AFTER_MINE)
    if word.low == "us" and ((before and before.low == "the") or (after and after.low in _AMERICAN)):
        return False
    if word.low == "me" and before and before.low == "about" and after and after.low in {"page", "section", "text"}:
        return False
    return word.low in _WE_ARE or word.low in _MINE


def _is_speaker(word: _Word, before: _Word | None, after: _Word | None, place: int) -> bool:
    """Whether an `I` is who speaks, and not a number or a letter."""
    if after is None or after.is_name:
        return False
    third = after.low.endswith("s") and not after.low.endswith("ss") and after.low not in _NOT_THIRD
    if third and (after.low in AUXILIARIES or may_be_verb(after.low)):
        return False
    if word.text == "i":
        return before is not None and before.low in _BEFORE_LOWER_I
    if before is None:
        return True
    # a name before it makes it a number: `Henry I`; a sentence's first word is no name for its capital
    named = before.is_name and (place > 1 or before.low in GIVEN_NAMES)
    return not named and before.low not in _NUMBERED


# pronouns as subjects

_FRONTED = re.compile(
    r"^(?:yesterday|today|tomorrow|usually|currently|recently|now|then|later|sometimes|often|actually"
    r"|(?:in|since|by|until|around) (?:\d{4}|(?:january|february|march|april|may|june|july|august|september|october"
    r"|november|december)(?: \d{4})?)|on (?:mon|tues|wednes|thurs|fri|satur|sun)days?"
    r"|(?:last|next|this|every) (?:week|month|year|night|summer|winter|spring|autumn|monday|tuesday|wednesday|thursday"
    r"|friday|saturday|sunday|time)),? (?P<subject>he|she|they|you)(?:'\w+)?\b",
    re.IGNORECASE,
)


def fronted_pronoun(sentence: str) -> str | None:
    """A pronoun that is a sentence's subject after words of time, which name nobody that it could mean."""
    found = _FRONTED.match(sentence)
    return found["subject"] if found else None


# whole sentences

_SHORT = 4
"""A longer text without a verb that the rules know may have one that they do not know."""
_DETERMINERS = _set("""
a an the this that these those my our his her their its your some any no every each all both few many several
one two three four five six seven eight nine ten very too so as
""")
_NO_VERB_AFTER = _DETERMINERS | PREPOSITIONS | {"and", "or", "to"}
_PLURAL = _set("people children men women parents police staff they who we you nobody everyone")
_UNCHANGED = _set("put let hit hurt cut split quit set shut cost bet read spread cast burst")
_CONTRACTED = re.compile(r"n't$|'(?:re|ve|ll|d|m)$")


def is_fragment(sentence: str) -> bool:
    """Whether a text names something and says nothing of it; quotations must have been taken out."""
    if QUOTED in sentence or any(sign in sentence for sign in ":=→>") or sentence.isupper():
        return False
    found = _words(sentence)
    return 0 < len(found) <= _SHORT and not any(_may_be_predicate(found, place) for place in range(len(found)))


def _may_be_predicate(found: Sequence[_Word], place: int) -> bool:
    word, low = found[place], found[place].low
    after = found[place + 1] if place + 1 < len(found) else None
    if (low in AUXILIARIES | BE or low == "cannot" or _CONTRACTED.search(low)) and not word.is_name:
        return True
    if low.endswith("'s"):  # `Ana's vegan`; a thing after it is owned
        return after is not None and (word.is_name or not is_only_noun(after.low))
    if place == 0:
        return after is not None and _may_order(word, after)
    before = found[place - 1]
    if word.is_name or before.low in _NO_VERB_AFTER or before.low.endswith("'s") or _counts(found, place - 1):
        return False
    if low in PAST or low in _UNCHANGED:
        return True
    if not may_be_verb(low) or low.endswith("ing"):
        return False
    formed = low.endswith("ed") or (low.endswith("s") and not low.endswith("ss")) or low in IRREGULAR
    return formed or before.low.endswith("s") or before.low in _PLURAL


def _counts(found: Sequence[_Word], place: int) -> bool:
    """Whether a word is a number of things, and not part of a name: `three rings`, `Guest 3 rings`."""
    alone = place == 0 or found[place - 1].low in _NO_VERB_AFTER
    return found[place].low.isdigit() and alone


def _may_order(word: _Word, after: _Word) -> bool:
    """Whether a first word may be a verb in the imperative, or one whose subject is left out."""
    low = word.low
    if not may_be_verb(low) or low.endswith(("ing", "ed")):
        return False
    if low.endswith("s") and not low.endswith("ss"):
        return after.low not in PREPOSITIONS | {"and", "or"}
    return low not in _QUALITIES or after.low in _DETERMINERS or after.is_name


_QUALITIES = _set("""
black white red blue green yellow brown grey gray pink purple orange dark light warm cool cold hot dry wet
clean dirty empty full open quiet calm slow fast tall short long narrow wide smooth rough sweet bitter
""")


# who is meant

_THE_USER = re.compile(r"(?:^|,\s)the user (?P<verb>[a-z]+)\b", re.IGNORECASE)


def said_of_user(sentence: str) -> str | None:
    """The words of a sentence that say something of the user; `the user manual` and `each user` are things."""
    for found in _THE_USER.finditer(sentence):
        verb = found["verb"].lower()
        third = verb.endswith("s") and not verb.endswith("ss")
        if verb in AUXILIARIES | BE | PAST or ((third or verb.endswith("ed")) and may_be_verb(verb)):
            return found[0].lstrip(", ")
    return None


# steps

_STATING = _set("i we he she they it my our his her their i'm we're he's she's they're it's there there's")
_NAMING = _set("the a an this that these those")
_NO_GERUND = _set("""
bring ring sing sling string spring swing wing king cling fling sting wring ping during ding nothing something
everything anything evening morning
""")


def states(step: str) -> str | None:
    """The first words of a step that tells what is or happens, and orders nothing."""
    masked = unquoted(step)
    found = _words(masked)
    if not found or masked.lstrip()[0] == QUOTED:
        return None
    first, rest = found[0], found[1:]
    told = " ".join(word.text for word in found[:2])
    if first.low in _STATING and first.text != "IT":
        return told
    if first.low.endswith("ing") and len(first.low) > 4 and first.low not in _NO_GERUND and "," not in masked:
        return told if may_be_verb(first.low) or not rest else None
    if "," in masked:  # an order may come after it: `The next day, call Tom.`
        return None
    subject = 1 if first.low in _NAMING else 0 if first.low in GIVEN_NAMES and first.is_name else None
    if subject is None:
        return None
    predicate = any(_is_finite(found, place) for place in range(subject + 1, len(found)))
    return told if predicate else None


def _is_finite(found: Sequence[_Word], place: int) -> bool:
    low, before = found[place].low, found[place - 1].low
    if low in BE or low in PAST or low in {"has", "will", "does", "can", "must", "should"}:
        return True
    if before in _NO_VERB_AFTER or found[place].is_name:
        return False
    return low.endswith(("s", "ed")) and not low.endswith("ss") and may_be_verb(low)


# the past

_NOT_PAST = _set("is are am has have will does do wants 'll isn't aren't hasn't haven't won't doesn't don't")
_BEFORE_PARTICIPLE = BE - {"was", "were"} | {"get", "gets", "has", "have"}
_DONE = PAST | _set("wasn't weren't hadn't didn't couldn't wouldn't could would might should")


def not_past(sentence: str) -> str | None:
    """The verb of a sentence that tells of now or of what is to come, and of nothing that was."""
    found = _words(sentence)
    present = None
    for place, word in enumerate(found):
        passive = place > 0 and found[place - 1].low in _BEFORE_PARTICIPLE
        if word.low in _DONE or word.low in _UNCHANGED or (_is_past(word.low) and not passive):
            return None
        if place and present is None and _is_present(found, place):
            present = word.text
    return present


def _is_past(low: str) -> bool:
    if low.endswith("ed") and len(low) > 4:
        return may_be_verb(low)
    return low in IRREGULAR and not low.endswith("s") and may_be_verb(low)


def _is_present(found: Sequence[_Word], place: int) -> bool:
    word, before = found[place], found[place - 1]
    if word.is_name:
        return False
    if word.low in _NOT_PAST or word.low.endswith("'ll"):
        return True
    if before.low in _NO_VERB_AFTER or before.low.endswith("'s") or before.low.isdigit():
        return False
    third = word.low.endswith("s") and not word.low.endswith("ss")
    return third and may_be_verb(word.low) and not before.low.endswith("s")


def with_full_stop(content: str) -> str:
    """A text with the full stop that it lacks, where its last word is a plain one."""
    last = re.search(r"(?:^|\s)[(]?[A-Za-z][a-z]*$", content)
    return f"{content}." if last and "\n" not in content else content
