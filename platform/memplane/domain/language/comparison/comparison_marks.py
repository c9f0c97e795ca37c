"""Words of a sentence that say how the others are meant: that they are denied, over, changed, wished or limited."""

from collections.abc import Sequence

from memplane.domain.language.comparison import comparison_lexicon as lexicon
from memplane.domain.language.comparison import comparison_phrases as phrases
from memplane.domain.language.comparison.comparison_reading import Reading
from memplane.domain.language.comparison.comparison_thesaurus import lexeme
from memplane.domain.language.comparison.comparison_words import Word

_DETERMINERS = frozenset({"'s", "a", "the", "their", "his", "her", "its"})
_NO_ENDING = frozenset({"a", "the", "'s"})
_NOT_LEAVING = frozenset({"on", "his", "her", "their", "in", "be", "is"})


def is_done(low: str) -> bool:
    """Whether a verb tells of what has happened, and not of what is wont to happen: `sold`, but not `sells`."""
    return low.endswith("ed") or low in lexicon.PAST or low in lexicon.PARTICIPLES or low in phrases.DONE


class Marks:
    """What the words read so far say of those that follow.

    Attributes:
        words: the words of the sentence.
        place: where its verb begins.
        reading: what is known of the sentence.
        denied: whether what follows in the clause is denied.
        clause: how many clauses were begun before.
        replacing: whether what follows is said to be replaced.
        prep: the preposition under which what follows stands.
    """

    def __init__(self, words: Sequence[Word], place: int, verb: str) -> None:
        self.words = words
        self.place = place
        self.reading = Reading(verb=verb)
        self.denied = False
        self.clause = 0
        self.replacing = False
        self.prep = ""

    def low_at(self, index: int) -> str:
        """The word at a place, lower-case; empty outside the sentence."""
        return self.words[index].low if 0 <= index < len(self.words) else ""

    def mark(self, word: Word, index: int) -> bool:
        """Take note of a word that says how the others are meant; whether it is no content itself."""
        low, reading = word.low, self.reading
        reading.additive = reading.additive or low in phrases.ADDITIVE
        if low in phrases.NEGATIONS or (low == "non" and index + 1 < len(self.words)):
            self.denied = not self.denied
            reading.negations += low != "without"
            return True
        if low in ("now", "instead", "nowadays") and not word.name:
            reading.changed = 2 if low == "instead" or reading.changed else 1
            return True
        if low in (phrases.ENDED, "any-more"):
            self._over(low)
            return True
        return not word.name and self._limits(low, index)

    def _over(self, low: str) -> None:
        """Take note that something holds no longer."""
        reading = self.reading
        if reading.ended < 0 and not (self.denied and low == phrases.ENDED):
            reading.ended = self.clause
        if low == "any-more" and (self.denied or reading.negations):
            reading.negations -= 1
            self.denied = False
            for term in reading.terms:
                if term.clause == self.clause:
                    term.denied = False

    def _limits(self, low: str, index: int) -> bool:
        """Take note of a word that limits or hedges; whether it is no content itself."""
        if low in ("next", "previous") or (low == "last" and self.low_at(index + 1) in phrases.TIMES):
            self.reading.hedges.add(low)
        elif low in phrases.QUANTIFIERS:
            self.reading.quantifiers.add(phrases.QUANTIFIERS[low])
            if low == "only":
                self.reading.focus = len(self.reading.terms) + 1
        elif low == "part" and self.low_at(index + 1) == "of" and self.reading.verb != "be":
            self.reading.quantifiers.add("partial")
        else:
            hedge = self._hedge(low, index)
            if hedge:
                self.reading.hedges.add(hedge)
                return hedge != "wish" or low == "would"
        return False

    def _hedge(self, low: str, index: int) -> str:
        """Whether a word says that something is wished, possible or asked for; `wants tea` is no wish of a deed."""
        hedge = phrases.HEDGES.get(low, "")
        if not hedge and index >= self.place:
            hedge = next((phrases.HEDGES[form] for form in lexeme(low).forms if form in phrases.HEDGES), "")
        if low in ("want", "wants", "wanted") and self.low_at(index + 1) not in ("to", ""):
            return ""
        scheduled = hedge == "wish" and self.low_at(index - 1) in lexicon.BE and low.endswith("ed")
        return "" if scheduled else hedge

    def changes(self, low: str, index: int) -> bool:
        """Whether a word says that something has changed."""
        if low == "new":
            if self.prep == "for" or self.low_at(index - 1) not in _DETERMINERS:
                return False
        elif index < self.place and low not in phrases.CHANGE:
            return False
        found = {low, *lexeme(low).forms} & phrases.CHANGE
        if found:
            self.reading.changed = max(self.reading.changed, 1 if found <= phrases.WEAK_CHANGE else 2)
        if found & phrases.REPLACING:
            self._replace(index)
        return bool(found)

    def _replace(self, index: int) -> None:
        """What a verb like `replace` is said of gives way: its object, or in a passive its subject."""
        before = self.low_at(index - 1)
        if before in lexicon.BE or before in ("get", "got"):
            for term in self.reading.terms:
                term.replaced = True
        else:
            self.replacing = True

    def ends(self, low: str, index: int) -> bool:
        """Whether a word ends what it is said of: a verb, not `dropped to 5`."""
        before = self.low_at(index - 1)
        early = index < self.place < len(self.words)
        if "wish" in self.reading.hedges or early or before in _NO_ENDING or low.endswith("ing"):
            return False
        if low == "sold" and before in ("is", "are") and self.low_at(index + 1) in lexicon.PREPOSITIONS:
            return False
        if {low, low.removesuffix("d"), *lexeme(low).forms} & phrases.ENDING:
            return is_done(low) and self.low_at(index + 1) not in ("to", "by", "at")
        left = before in ("has", "have") or (before not in _NOT_LEAVING and index == self.place)
        return low == "left" and left

    def moves_home(self, low: str, index: int) -> bool:
        """Whether a person moves to a named place, and so lives there from now on."""
        if index < self.place or not self.reading.agents or not {"move", "relocate"} & lexeme(low).forms:
            return False
        after = self.words[index + 1 : index + 3]
        return len(after) == 2 and after[0].low == "to" and after[1].name and after[1].kind == "w"
