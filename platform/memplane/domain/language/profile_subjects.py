"""Whom a statement about a profile is about, as its sentence and the one before it show."""

import re
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from memplane.domain.language.profile_wording import (
    ADVERBS,
    CALLING,
    DENIALS,
    DWELLING,
    FIRST,
    GOING,
    HEADINGS,
    NEAR,
    NO_PERSON,
    OWNED_ADJECTIVES,
    PERSONAL,
    RELATED,
    REPORTING,
    SPEAKING,
    SUPPOSING,
    THIRD,
    USER,
    Words,
)


class Somebody(Enum):
    """Whom words are about, where it is nobody by name."""

    USER = "the user"
    OTHER = "somebody or something else"
    UNNAMED = "nobody is named"


Whom = Somebody | str
_LINKING = frozenset({"and", "then", "but", "or"})
_VERBS = DWELLING | GOING | CALLING | SPEAKING
"""What may begin a sentence without a subject."""
_WISHING = frozenset({"should", "must", "may", "can", "would", "'d", "to"})
_SAYING = frozenset({"said", "says", "wrote", "writes", "stated", "noted", "mentioned"})


@dataclass(slots=True)
class Voice:
    """What is known of a text that is read sentence by sentence.

    Attributes:
        names: words of names that the user is known by, case folded.
        last: whom the last sentence was about, for the pronoun that begins the next.
        first_person: whether the user speaks: then anybody in the third person is somebody else.
        speaker: who says the sentence in which somebody says `I`, where a name before a colon shows it.
    """

    names: frozenset[str] = frozenset()
    last: Whom | None = None
    first_person: bool = False
    speaker: str | None = None

    def who(self, word: str) -> Whom:
        """Return whom a word or a name means."""
        plain = word.lower()
        if plain in FIRST:
            return Somebody.USER if self.speaker is None or self.knows(self.speaker) else self.speaker
        if plain in THIRD:
            return Somebody.OTHER if self.first_person else self.last or Somebody.USER
        if plain in USER:
            return Somebody.OTHER if self.first_person else Somebody.USER
        if self.first_person:
            return Somebody.OTHER
        return Somebody.USER if self.knows(word) else word

    def knows(self, name: str) -> bool:
        """Whether the user is known by a name."""
        words = words_of(name)
        return bool(words) and words <= self.names


@lru_cache
def words_of(name: str) -> frozenset[str]:
    """The words of a name, case folded; of an address of mail those before the sign."""
    return frozenset(re.findall(r"[^\W\d_]{2,}", name.split("@", 1)[0].casefold()))


@dataclass(slots=True)
class SubjectReader:
    """Reads a sentence from its first word to its last, and knows at each whom what follows is about.

    Attributes:
        words: the sentence.
        voice: of the text.
        first: whom the sentence speaks of first.
        supposed: whether what is being said is a supposition.
        reported: whether somebody else came between, so that `and moved` may be about them.
        quoted: whether it stands in quotation marks, and is not quoted as the user's.
    """

    words: Words
    voice: Voice
    first: Whom | None = None
    supposed: bool = False
    reported: bool = False
    quoted: bool = False
    _said: int = field(default=-NEAR)

    def pass_by(self, i: int) -> None:
        """Note what a word means for those after it."""
        word = self.words.low[i]
        if word in {",", ";", ":"}:
            self.supposed = self.reported = False
        elif word in {'"', "“", "”"}:
            self.quoted = word != "”" and not self.quoted and not (
                self.first is Somebody.USER and i - self._said <= 4
            )  # fmt: skip
        elif word in SUPPOSING or (word in {"though", "case"} and self.words.at(i - 1) in {"as", "in"}):
            self.supposed = True
        elif word in REPORTING:
            self.reported = True
        if word in _SAYING:
            self._said = i
        if self.first is None:
            self.first = self._subject(i)

    def _subject(self, i: int) -> Whom | None:
        """Whom the sentence is about, if this word shows it."""
        word, following = self.words.low[i], self.words.at(i + 1)
        owns = following == "'s" or (following == "'" and word.endswith("s"))
        if word in THIRD:
            return None
        if word in FIRST | USER and not (word in USER and self.words.at(i - 2) == "of"):
            of = word in {"my", "our"} or owns
            after = self.words.at(i + (2 if owns else 1))
            return Somebody.OTHER if of and after not in PERSONAL else self.voice.who(word)
        if i <= 1 and word not in NO_PERSON and self.words.at(i - 1) in {"the", "a", "an"} and word.islower():
            return Somebody.OTHER  # `the team moved …`
        if self._is_name(i) and not (i == 0 and word in _VERBS):
            if following == ":":
                return None
            name = self._name(i)
            return Somebody.OTHER if owns and self.words.at(i + 2) not in PERSONAL else self.voice.who(name)
        return None

    def _is_name(self, i: int) -> bool:
        return not self.words.nameless and self.words.is_capital(i) and self.words.low[i] not in NO_PERSON

    def _name(self, start: int) -> str:
        end = start + 1
        while end - start < 3 and self.words.is_capital(end) and self.words.low[end] not in NO_PERSON:
            end += 1
        return " ".join(self.words.raw[start:end])

    def of_verb(self, i: int, *, wishes: bool = False) -> Whom:
        """Whom a verb is said of.

        Args:
            i: the verb.
            wishes: whether a wish is as good as a fact, as of a name.
        """
        j = self._before(i, wishes=wishes)
        if j is None:
            return Somebody.OTHER
        word = self.words.at(j)
        if word == ":":
            return self._labelled(j)
        if word in {"who", "which", "that"}:
            return self._noun(j - 1 - (self.words.at(j - 1) == ","))
        if word in {",", ")"}:
            return self._inserted(j)
        if word in _LINKING:
            linked = self.reported and self.words.at(j - 1) != ","
            return Somebody.OTHER if linked else self.first or self.voice.last or Somebody.OTHER
        if word in {'"', "“", ";", "please", "note", "remember"}:
            return self.first or self.voice.last or Somebody.USER
        return self._noun(j)

    def _before(self, i: int, *, wishes: bool) -> int | None:
        """Where the subject of a verb ends; ``None`` for what is denied, wished or supposed."""
        j = i - 1
        while j >= 0 and i - j <= NEAR and not (self.supposed or self.quoted):
            word = self.words.low[j]
            if word in DENIALS and not (wishes and word in _WISHING):
                return None
            if word not in ADVERBS | _WISHING and not (word.endswith("ly") and len(word) > 4):
                break
            j -= 1
        return None if self.supposed or self.quoted else j

    def _labelled(self, j: int) -> Whom:
        """Whom `Kit: moved to …` is about."""
        label = self.words.at(j - 1)
        named = self.words.is_capital(j - 1) and label not in HEADINGS
        return self.voice.who(self.words.raw[j - 1]) if named else self.voice.last or Somebody.USER

    def _inserted(self, j: int) -> Whom:
        """Whom a verb behind an insertion is said of: `the user, who …, moved`."""
        opening = "(" if self.words.low[j] == ")" else ","
        for k in range(j - 1, max(-1, j - 16), -1):
            if self.words.low[k] == opening:
                found = self._noun(k - 1)
                return found if found is not Somebody.OTHER else self.first or found
        return self.first or self.voice.last or Somebody.USER

    def _noun(self, j: int, *, alone: bool = False) -> Whom:
        """Whom the words that end at a place mean."""
        if j < 0:
            return self.voice.last or Somebody.USER
        word = self.words.low[j]
        if word in USER:
            return Somebody.OTHER if self.words.at(j - 2) == "of" else self.voice.who(word)
        if word in FIRST - {"my", "our"}:
            return self.voice.who(word)
        if word in THIRD:
            first = None if self.voice.first_person else self.first
            return first or self.voice.who(word)
        k, found = self._phrase(j)
        together = not alone and found is not Somebody.USER and k >= 2 and self.words.at(k - 1) in {"and", "with"}
        return Somebody.USER if together and self._noun(k - 2, alone=True) is Somebody.USER else found

    def _phrase(self, j: int) -> tuple[int, Whom]:
        """Where a name or a noun begins that ends at a place, and whom it means."""
        low, k = self.words.low, j
        if self._is_name(j):
            while k > 0 and j - k < 3 and self._is_name(k - 1):
                k -= 1
            theirs = self.words.at(k - 1) in RELATED | {"'s", "my", "our", "his", "her", "their"}
            return k, Somebody.OTHER if theirs else self.voice.who(" ".join(self.words.raw[k : j + 1]))
        while (
            k > 0 and j - k < 4 and low[k - 1] not in {"and", "with"} and (low[k - 1].isalpha() or low[k - 1] == "'s")
        ):
            k -= 1
        return k, Somebody.OTHER

    def of_noun(self, i: int) -> tuple[Whom, int]:
        """Whose the thing is that a noun names, and where the words for it begin."""
        j = i - 1
        while j >= 0 and i - j <= NEAR and self.words.low[j] in OWNED_ADJECTIVES:
            j -= 1
        word = self.words.at(j)
        if self.supposed or self.quoted:
            return Somebody.OTHER, j
        if j < 0 or word in {":", "."} or (j == 0 and word in {"the", ","}):
            return Somebody.UNNAMED, max(j, 0)
        if word in FIRST:
            return self.voice.who(word), j
        if word in THIRD:
            return (self.voice.who(word) if self.voice.first_person else self.first or self.voice.who(word)), j
        if word == "'s" or (word in USER and self.words.at(j - 1) != "of"):
            k = j - 1 if word == "'s" else j
            return self._noun(k, alone=True), k
        return Somebody.OTHER, j

    def of_order(self, i: int) -> Whom:
        """Whom an order names: `call me …`, `call the user …`."""
        word = self.words.at(i)
        if self.supposed or self.quoted:
            return Somebody.OTHER
        if word in {"him", "her", "them", "himself", "herself", "themselves"}:
            return Somebody.OTHER if self.voice.first_person else self.first or self.voice.last or Somebody.OTHER
        return self.voice.who(word)
