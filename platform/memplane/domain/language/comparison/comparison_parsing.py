"""A short English sentence, taken apart so that it can be compared with many others."""

from dataclasses import dataclass, replace

from memplane.domain.language.comparison import comparison_lexicon as lexicon
from memplane.domain.language.comparison.comparison_reader import read_terms
from memplane.domain.language.comparison.comparison_reading import Reading
from memplane.domain.language.comparison.comparison_verbs import verb_place
from memplane.domain.language.comparison.comparison_wording import reworded
from memplane.domain.language.comparison.comparison_words import Word, key_of, read, simplified

MAX_CHARS = 500
"""A longer text is no short statement, and is never decided about."""
_MARKS = frozenset({"ended-now", "any-more", "now"})


@dataclass(frozen=True, slots=True)
class Token:
    """One word that carries content.

    Attributes:
        key: canonical stem, number, time or date; what is compared.
        surface: the word as written, lower-case.
        kind: ``w`` a word, ``n`` a name, ``#`` a number, time, date or code.
        prep: the preposition that it stands under, or nothing.
        subject: whether it stands before the verb.
        plural: whether the word as written looks like a plural.
        label: whether it is a number that tells one thing from others of its kind: `room 4`, `topic-3`.
    """

    key: str
    surface: str
    kind: str
    prep: str
    subject: bool
    plural: bool
    label: bool = False


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A sentence of a memory, parsed once and compared with many.

    Attributes:
        text: the sentence.
        tokens: content words by key; of a repeated word, the first.
        keys: the keys of the content words.
        values: the keys that are numbers, times, dates or codes.
        names: proper names as written, lower-case.
        surfaces: all content words as written, lower-case.
        subject: keys before the verb.
        logical: keys of the one who acts: that of a passive sentence stands after `by`.
        directed: words under prepositions that turn a meaning, as pairs.
        directed_words: those prepositions alone.
        verb: key of the main verb; `be` and `have` for these; empty when none is found.
        head: key of the object's last word; empty without an object.
        order: the content keys in their order, for sentences of parallel parts.
        negative: an odd number of negations and opposites.
        ended: it says that something holds no longer.
        changed: it says that something has changed or holds now.
        past: it tells of something past.
        recurring: it tells of something that is done on every such day.
        modal: must, can, or nothing.
        parts: for a sentence of several parts, after how many words each is denied; empty for a simple one.
        reading: the content words in their order, for alignment.
    """

    text: str
    tokens: dict[str, Token]
    keys: frozenset[str]
    values: frozenset[str]
    names: frozenset[str]
    surfaces: frozenset[str]
    subject: frozenset[str]
    logical: frozenset[str]
    directed: frozenset[tuple[str, str]]
    directed_words: frozenset[str]
    verb: str
    head: str
    order: tuple[str, ...]
    negative: bool
    ended: bool
    changed: bool
    past: bool
    recurring: bool
    modal: str
    parts: tuple[int, ...]
    reading: Reading

    @classmethod
    def of(cls, text: str) -> "ParsedStatement":
        """Take a sentence apart; any text gives a statement, an odd one a poor one."""
        return _Parsing(text).statement()


class _Parsing:
    """The state of one pass over a sentence."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = read(reworded(simplified(text[:MAX_CHARS])))
        self.negative = self.ended = self.changed = False
        self.recurring = False
        self.modal = ""
        self.denials: list[int] = []

    def statement(self) -> ParsedStatement:
        """The whole parse."""
        words, place = self.words, verb_place(self.words)
        tokens, agent = self._tokens(place)
        by_key: dict[str, Token] = {}
        for token in tokens:
            by_key.setdefault(token.key, token)
        subject = frozenset(by_key[token.key].key for token in tokens if token.subject)
        logical = agent or subject
        verb = self._main_verb(place)
        if verb == "work" and any(token.prep == "as" for token in tokens):
            by_key.pop(verb, None)
        if verb == "be" and _inverted(words, place):
            subject, by_key = _swapped(by_key)
            logical = subject
        past = _past(words, place)
        reading = read_terms(words, place, verb)
        reading.past, reading.recurring = past and not reading.timeless, self.recurring
        reading.cut = reading.cut or len(self.text) > MAX_CHARS
        labels = {token.key for token in tokens if token.label}
        for term in reading.terms:
            term.label = term.low in labels
        return ParsedStatement(
            text=self.text,
            tokens=by_key,
            keys=frozenset(by_key),
            values=frozenset(token.key for token in tokens if token.kind == "#"),
            names=frozenset(token.surface for token in tokens if token.kind == "n") | _opening_name(words, place),
            surfaces=frozenset(token.surface for token in tokens),
            subject=subject,
            logical=logical,
            directed=frozenset((token.prep, token.key) for token in tokens if token.prep in lexicon.DIRECTIONAL),
            directed_words=frozenset(token.prep for token in tokens if token.prep in lexicon.DIRECTIONAL),
            verb=verb,
            head=_head(tokens, verb),
            order=tuple(token.key for token in tokens if token.key in by_key),
            negative=self.negative,
            ended=self.ended,
            changed=self.changed,
            past=past,
            recurring=self.recurring,
            modal=self.modal,
            parts=self._parts(tokens),
            reading=reading,
        )

    def _role(self, low: str, found: list[Token]) -> str:
        """What a preposition makes of the words after it."""
        if low in ("named", "called"):
            return "name"
        if low in ("every", "each"):
            self.recurring = True
        if low == "without":
            found.append(Token("without", "without", "w", "", subject=False, plural=False))
        return "than" if low in ("to", "over") and self._after_choice(found) else low

    @staticmethod
    def _after_choice(found: list[Token]) -> bool:
        """Whether `to` and `over` mean `rather than`: `prefers tea to coffee`, but not `prefers to walk`."""
        return any(token.key == "prefer" for token in found) and found[-1].key != "prefer"

    def _parts(self, tokens: list[Token]) -> tuple[int, ...]:
        joined = any(word.low in lexicon.JOINTS for word in self.words)
        if not joined and any(word.low == "and" for word in self.words):
            joined = sum(token.key in lexicon.VERBS and token.kind == "w" for token in tokens) > 1
        return (-1, *self.denials) if joined else ()

    def _tokens(self, place: int) -> tuple[list[Token], frozenset[str]]:
        """The content words with their parts, and the agent of a passive sentence."""
        found: list[Token] = []
        agent: set[str] = set()
        prep, passive = "", any(word.low in lexicon.BE for word in self.words[place:])
        for index, word in enumerate(self.words):
            low = word.low
            if word.kind == "p":
                continue
            if low in lexicon.PREPOSITIONS and not word.name:
                prep = self._role(low, found)
                if prep != "name":
                    continue
            negative = self.negative
            marks = self._marks(word, index, place)
            key, kind = ("", "") if marks else self._classified(word, index)
            if negative != self.negative:
                self.denials.append(len(found))
            if marks:
                continue
            plural = low.endswith("s") and kind != "#"
            label = kind == "#" and self._is_label(index, place)
            found.append(Token(key, low, kind, prep, subject=index < place, plural=plural, label=label))
            if prep == "by" and passive and kind in ("n", "w"):
                agent.add(key)
        return found, frozenset(agent)

    def _is_label(self, index: int, place: int) -> bool:
        """Whether a number stands after the noun that it numbers, or is one word with it, and counts nothing."""
        low = self.words[index].low
        if low[:1].isalpha() and ":" not in low:
            return True
        before = self.words[index - 1] if index > 0 else None
        if before is None or before.name or not low[:1].isdecimal() or not self._is_noun(before):
            return False
        after = self.words[index + 1] if index + 1 < len(self.words) else None
        counts = after is not None and self._is_noun(after) and not after.low.endswith("ing")
        verb = index - 1 == place and before.low.endswith(("s", "ed"))
        return not (counts or verb or key_of(before.low) in lexicon.VERBS | lexicon.GRADED)

    @staticmethod
    def _is_noun(word: Word) -> bool:
        """Whether a word may be a noun: neither a number nor one of the small words."""
        small = (lexicon.DROPPED, lexicon.PREPOSITIONS, lexicon.BE, lexicon.HAVE, lexicon.MODALS, lexicon.CHANGE)
        return word.kind == "w" and not any(word.low in group for group in small)

    def _marks(self, word: Word, index: int, place: int) -> bool:
        """Take note of a word that says how the others are meant; whether it was one."""
        low = word.low
        if low in lexicon.NEGATIONS:
            self.negative = not self.negative
            return True
        if low == "any-more":
            self.ended, self.negative = True, False
            return True
        if low == "ended-now" or (low in lexicon.ENDING_VERBS and index >= min(place, len(self.words) - 1)):
            self.ended = True
            return True
        if low in lexicon.CHANGE and index >= place:
            self.changed = True
            return True
        if low == "now":
            self.changed = True
            return True
        if low in lexicon.MODALS and index >= place:
            self.modal = lexicon.MODALS[low]
            return True
        return low in lexicon.DROPPED and not word.name

    def _classified(self, word: Word, index: int) -> tuple[str, str]:
        if word.kind == "#":
            return word.low, "#"
        if word.kind == "d":
            if word.low not in lexicon.WEEKDAYS:
                self.recurring = True
            return lexicon.WEEKDAYS[word.low.removesuffix("s") if word.low not in lexicon.WEEKDAYS else word.low], "#"
        if word.name:
            return key_of(word.low), "n"
        base = lexicon.NEGATIVES.get(word.low)
        if base is not None and (word.low not in lexicon.PREDICATIVE or self._follows_be(index)):
            self.negative = not self.negative
            return base, "w"
        return key_of(word.low), "w"

    def _follows_be(self, index: int) -> bool:
        """Whether a word stands after `is`, with nothing but adverbs and negations between."""
        while index > 0:
            index -= 1
            low = self.words[index].low
            if low in lexicon.BE:
                return True
            if low in lexicon.ARTICLES or (low not in lexicon.DROPPED and low not in lexicon.NEGATIONS):
                return False
        return False

    def _main_verb(self, place: int) -> str:
        for index in range(place, len(self.words)):
            word = self.words[index]
            if word.low in lexicon.BE:
                return self._participle(index + 1, ("ed", "ing")) or "be"
            if word.low in lexicon.HAVE:
                if self._participle(index + 1, ("ed",)) is None:
                    return "have"
            elif self._may_be_verb(word):
                return lexicon.NEGATIVES.get(word.low, key_of(word.low))
        return ""

    def _participle(self, start: int, endings: tuple[str, ...]) -> str | None:
        """The verb that goes with `is` or `has`; empty for `has been`, nothing for a noun or an adjective."""
        for word in self.words[start:]:
            if word.low in lexicon.BE:
                return ""
            if word.low in lexicon.ARTICLES or word.name or word.kind != "w":
                return None
            if word.low in lexicon.DROPPED or word.low in lexicon.NEGATIONS or word.low in _MARKS:
                continue
            formed = word.low.endswith(endings) or word.low in lexicon.PARTICIPLES
            return lexicon.NEGATIVES.get(word.low, key_of(word.low)) if formed else None
        return None

    @staticmethod
    def _may_be_verb(word: Word) -> bool:
        low = word.low
        skipped = (
            lexicon.DROPPED,
            lexicon.NEGATIONS,
            lexicon.MODALS,
            lexicon.CHANGE,
            lexicon.PREPOSITIONS,
            lexicon.ENDING_VERBS,
            _MARKS,
        )
        return word.kind == "w" and not word.name and not any(low in group for group in skipped)


def _past(words: list[Word], place: int) -> bool:
    for word in words[place:]:
        if word.low in ("is", "are", "has", "have", "does", "do", "will", "can", "must", "may", "should"):
            return False
        if word.low in lexicon.PAST:
            return True
        if word.kind == "w" and word.low not in lexicon.DROPPED:
            return word.low.endswith("ed") and not word.low.endswith("eed")
    return False


def _inverted(words: list[Word], place: int) -> bool:
    """Whether a copula's second side is the known one: `Anna is the user's boss`."""
    before, after = words[:place], words[place:]
    owned = any(word.kind == "p" for word in after) or any(word.low == "of" for word in after)
    return owned and not any(word.kind == "p" or word.low in ("of", "user") for word in before)


def _opening_name(words: list[Word], place: int) -> frozenset[str]:
    """The first word, when it may be a name: its capital says nothing."""
    if len(words) < 2 or words[0].kind != "w" or words[0].low in lexicon.DROPPED or words[0].low in ("user", "the"):
        return frozenset()
    return frozenset({words[0].low}) if place == 1 or words[1].name or words[1].kind == "p" else frozenset()


def _swapped(tokens: dict[str, Token]) -> tuple[frozenset[str], dict[str, Token]]:
    turned = {key: replace(token, subject=not token.subject) for key, token in tokens.items()}
    return frozenset(key for key, token in turned.items() if token.subject), turned


def _head(tokens: list[Token], verb: str) -> str:
    """The last word of the object, before any preposition."""
    found = ""
    for token in tokens:
        if token.subject or token.key == verb:
            continue
        if token.prep:
            return found or token.key
        if token.kind != "#" and token.key not in lexicon.FREQUENCIES:
            found = token.key
    return found
