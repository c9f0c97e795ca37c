"""Reads the words of an English sentence into terms: what carries content, in which part, and how it is meant."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from memplane.domain.language.comparison import comparison_lexicon as lexicon
from memplane.domain.language.comparison import comparison_phrases as phrases
from memplane.domain.language.comparison.comparison_marks import Marks, is_done
from memplane.domain.language.comparison.comparison_reading import Reading, Term
from memplane.domain.language.comparison.comparison_thesaurus import Lexeme, lexeme
from memplane.domain.language.comparison.comparison_words import Word

MAX_TERMS = 32
"""A text with more is no short statement, and is never decided about."""
_POWERS = frozenset({"100", "1000", "1000000"})
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,6})?$")
_HOURS = {"noon": "at:12:00", "midday": "at:12:00", "midnight": "at:0:00"}
_LIGHT_COST = 0.3
_ENDING_COST = 0.5
_FRAMING_COST = 0.6
_NAME_COST = 2.0
_OVER = (phrases.ENDED,)
_PRONOUN_BEFORE = frozenset({"the", "only", "new", "another", "this", "that", "which"})
_ADVERBS = frozenset({"now", "no", "never", "also", "still", "again", "only", "ended-now", "any-more"})
_NO_ROLE = frozenset({"named", "called", "because", "without"})


def read_terms(words: Sequence[Word], place: int, verb: str) -> Reading:
    """The reading of words whose verb begins at a place."""
    return _Reader(words, place, verb).read()


@lru_cache(maxsize=16_384)
def _bases(low: str) -> tuple[str, ...]:
    """A word and the base forms that it may have."""
    return (low, *(form for form in sorted(lexeme(low).forms) if form != low))


def _without_accents(text: str) -> str:
    """`Krakow` for `Kraków`."""
    kept: list[str] = []
    for sign in unicodedata.normalize("NFKD", text):
        if not unicodedata.combining(sign) or (kept and kept[-1] >= "\u0530"):  # marks of other scripts are letters
            kept.append(sign)
    return "".join(kept)


class _Reader(Marks):
    """The state of one pass over the words."""

    def __init__(self, words: Sequence[Word], place: int, verb: str) -> None:
        super().__init__(words, place, verb)
        self.owner = ""

    def read(self) -> Reading:
        """Read the words."""
        index = 0
        while index < len(self.words) and len(self.reading.terms) < MAX_TERMS:
            size = self._phrase(index)
            if not size:
                self._take(self.words[index], index)
            index += size or 1
        self.reading.cut = index < len(self.words)
        self._passive_agent()
        return self.reading

    def _phrase(self, index: int) -> int:
        """Take a turn of phrase that begins here; how many words it has, or none."""
        if index + 1 >= len(self.words) or self.words[index].name:
            return 0
        for first in _bases(self.words[index].low):
            seconds = phrases.PHRASES.get(first)
            for second in _bases(self.words[index + 1].low) if seconds else ():
                for rest, stands in seconds.get(second, ()) if seconds else ():
                    if self._reads(rest, index + 2) and (stands != _OVER or is_done(self.words[index].low)):
                        for low in stands:
                            self._take(Word(low, "#" if low.isdecimal() else "w"), index)
                        self.reading.timeless = self.reading.timeless or stands == ("birthday",)
                        return len(rest) + 2
        return 0

    def _reads(self, wanted: tuple[str, ...], index: int) -> bool:
        """Whether the words from a place on are those, or forms of them."""
        given = self.words[index : index + len(wanted)]
        return len(given) == len(wanted) and all(
            word in _bases(found.low) for word, found in zip(wanted, given, strict=True)
        )

    def _take(self, word: Word, index: int) -> None:
        """Take a word into account."""
        low, reading = word.low, self.reading
        if word.kind == "p":
            if reading.terms or reading.has_user:
                self.owner = self.words[index - 1].low
            return
        if index == self.place or low == "where":
            self.prep = ""
        if self._breaks(word, index) and low in phrases.BREAKS and not word.name:
            return
        if low == "user" and not word.name:
            self._take_user(index)
        elif low in lexicon.PREPOSITIONS and low not in _NO_ROLE and not word.name:
            if low in ("every", "each") and self.reading.focus < 0:
                self.reading.focus = len(self.reading.terms)
            self.prep, self.owner = "than" if self._after_choice(low) else low, ""
            self.replacing = self.replacing and low not in ("with", "for", "by", "to")
        elif not self.mark(word, index):
            self._add(word, index)

    def _after_choice(self, low: str) -> bool:
        """Whether `to` and `over` mean `rather than`: `prefers tea to coffee`, but not `prefers to walk`."""
        terms = self.reading.terms
        chosen = low in ("to", "over") and any(term.lexeme.key == "prefer" for term in terms)
        return chosen and terms[-1].lexeme.key != "prefer"

    def _breaks(self, word: Word, index: int) -> bool:
        """Begin another clause, in which nothing is denied yet, when the word does so; whether it did."""
        low = word.low
        if not (word.stop or (index and low in phrases.BREAKS) or (low == "and" and self._starts_clause(index))):
            return False
        self.denied, self.owner = False, ""
        self.prep = low if low in lexicon.PREPOSITIONS and low not in ("because", "between") else ""
        self.clause += 1
        return True

    def _starts_clause(self, index: int) -> bool:
        """Whether a verb, or a word that denies, follows `and`."""
        after = self.words[index + 1] if index + 1 < len(self.words) else None
        if after is None or after.kind != "w" or after.name:
            return False
        low = after.low
        known = lexeme(low).key in lexicon.VERBS and low.endswith(("s", "ed"))
        return known or low in lexicon.AUXILIARIES or low in phrases.NEGATIONS or low in lexicon.PAST or low == "always"

    def _owns(self, index: int) -> bool:
        after = self.words[index + 1] if index + 1 < len(self.words) else None
        return after is not None and after.kind == "p"

    def _take_user(self, index: int) -> None:
        self.reading.has_user = True
        if self._owns(index):
            self.owner = "user"
        elif index < self.place and not self.prep:
            self.reading.agents.add("user")

    def _add(self, word: Word, index: int) -> None:
        """Add a term, unless the word has no content of its own."""
        low = word.low
        if word.kind in ("#", "d"):
            if low in _POWERS and self._multiplies(index):
                last = self.reading.terms[-1]
                last.low = f"{float(last.low) * int(low):.10g}"
                last.lexeme = lexeme(last.low)
            elif word.rank or not (low == "1" and index and self._is_pronoun(index)):
                self._append(self._value(low), "#", _NAME_COST, index)
                self.reading.terms[-1].rank = word.rank
            return
        if low in phrases.BLEACHED and not word.name:
            return
        plain = low if low.isascii() else _without_accents(low)
        if word.name or (index == 0 and self._opens_with_name(lexeme(plain))):
            self._append(plain, "n", _NAME_COST, index)
            if index < self.place and not self.prep and not self._owns(index):
                self.reading.agents.add(plain)
        elif low in _HOURS:
            self._append(_HOURS[low], "#", _NAME_COST, index)
        else:
            self._add_word(plain, index)
        if self._owns(index):
            self.owner = self.reading.terms[-1].low

    @staticmethod
    def _value(low: str) -> str:
        """A number or day in one form: `5000` for `5k`."""
        day = low.removesuffix("s")
        if day in lexicon.WEEKDAYS:
            return f"day:{day}"
        return f"{low[:-1]}000" if low.endswith("k") and low[:-1].isdecimal() else low

    def _add_word(self, low: str, index: int) -> None:
        """Add a word that is neither name nor number."""
        if self.moves_home(low, index):
            self.reading.changed = 2
            self._append("live", "w", _FRAMING_COST, index)
            return
        if self.ends(low, index):
            if not self.denied and self.reading.ended < 0:
                self.reading.ended = self.clause
            cost = _ENDING_COST
        else:
            cost = self._cost(low, changes=self.changes(low, index))
        self._append(low, "w", cost, index)
        base = lexicon.NEGATIVES.get(low)
        if base is not None and (low not in lexicon.PREDICATIVE or self._is_predicate(index)):
            term = self.reading.terms[-1]
            term.low, term.denied = base, not term.denied
            term.lexeme = Lexeme(base)
            self.reading.negations += 1

    def _append(self, low: str, kind: str, cost: float, index: int) -> None:
        terms = self.reading.terms
        subject = index < self.place
        term = Term(low, kind, self.prep, subject, self.denied, cost, len(terms), self.clause, self.owner, lexeme(low))
        term.replaced = self.replacing
        done = low.endswith("ed") or low in lexicon.PARTICIPLES
        between = self.low_at(index - 1) in ("not", "never", "now", "also")
        term.undergone = done and self.low_at(index - 2 if between else index - 1) in lexicon.BE
        self.reading.perfect = self.reading.perfect or (done and self.low_at(index - 1) in ("has", "have"))
        terms.append(term)

    def _multiplies(self, index: int) -> bool:
        """Whether a number stands right before a word like `million`."""
        before = self.words[index - 1] if index else None
        terms = self.reading.terms
        return bool(
            before and before.kind == "#" and terms and terms[-1].low == before.low and _NUMBER.match(before.low)
        )

    def _is_pronoun(self, index: int) -> bool:
        """Whether `one` stands for a thing that was named: `the one`, `one of them`."""
        return self.low_at(index + 1) == "of" or self.low_at(index - 1) in _PRONOUN_BEFORE

    def _opens_with_name(self, known: Lexeme) -> bool:
        """Whether the first word, whose capital says nothing, may be a name: unknown, or before a verb or an `'s`."""
        first = self.words[0].low
        if len(self.words) < 2 or first in lexicon.DROPPED or first in phrases.BLEACHED:
            return False
        led = self.place == 1 or (self.place == 2 and self.words[1].low in _ADVERBS)  # `Ana now eats meat`
        alone = led or self.words[1].kind == "p" or (self.words[1].low == "and" and self.place > 2)
        return not known.forms or (alone and not first.endswith(("s", "ing")))

    def _is_predicate(self, index: int) -> bool:
        before = self.low_at(index - 1)
        return before in lexicon.BE or before in phrases.NEGATIONS

    @staticmethod
    def _cost(low: str, *, changes: bool) -> float:
        """What a word counts when the other text lacks it."""
        forms = lexeme(low).forms | {low}
        if forms & phrases.LIGHT:
            return _LIGHT_COST
        return _FRAMING_COST if changes or forms & phrases.FRAMING else 1.0

    def _passive_agent(self) -> None:
        """Of a passive sentence the one after `by` acts."""
        reading = self.reading
        lows = {word.low for word in self.words[self.place :]}
        if not lows & lexicon.BE:
            return
        reading.passive = any(
            term.lexeme.key == reading.verb and (term.low.endswith("ed") or term.low in lexicon.PARTICIPLES)
            for term in reading.terms
        )
        by = [term for term in reading.terms if term.prep == "by" and term.kind == "n" and not term.subject]
        if by or (reading.has_user and "by" in lows and "user" not in reading.agents):
            reading.passive = True
            reading.agents = {term.low for term in by} or {"user"}
