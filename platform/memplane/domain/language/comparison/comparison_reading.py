"""The content words of an English sentence with their parts, for alignment with those of another sentence."""

from dataclasses import dataclass, field

from memplane.domain.language.comparison.comparison_thesaurus import Lexeme


@dataclass(slots=True, eq=False)
class Term:
    """A content word.

    Attributes:
        low: the word as written, lower-case, without accents.
        kind: ``w`` a word, ``n`` a name, ``#`` a number, time, date or code.
        prep: the preposition that it stands under, or nothing.
        subject: whether it stands before the verb.
        denied: whether it is denied in its clause.
        cost: what it counts when the other text has nothing like it.
        place: how many content words stand before it.
        clause: how many clauses.
        owner: the word that owns it: `Dan` of `Dan's car`.
        lexeme: what is known of the word.
        label: whether it is a number that tells one thing from others of its kind: `room 4`.
        rank: whether it is a number that tells a place in a row: `second floor`, but not `two floors`.
        undergone: whether it is what is done to somebody: `to be paid`, but not `to pay`.
        replaced: whether it is said to give way to another: `replaced the iPhone`.
    """

    low: str
    kind: str
    prep: str
    subject: bool
    denied: bool
    cost: float
    place: int
    clause: int
    owner: str
    lexeme: Lexeme
    label: bool = False
    replaced: bool = False
    rank: bool = False
    undergone: bool = False


@dataclass(slots=True)
class Reading:
    """A sentence for alignment.

    Attributes:
        terms: content words in their order.
        agents: words of those who act: names, and `user`.
        negations: how many words deny.
        ended: the clause that says that something holds no longer, or -1.
        changed: it says that something has changed; ``2`` by a word that has no other meaning.
        quantifiers: words that limit what is said.
        hedges: whether it is wished, possible or asked for, or of the next or last time.
        has_user: it names the user.
        verb: key of the main verb.
        passive: who acts stands after `by`, or is not told.
        past: it tells of something past.
        recurring: it tells of something that is done on every such day.
        additive: it puts something beside what is there.
        timeless: its tense says nothing.
        perfect: its verb tells what has been done: `has seen`.
        focus: how many terms stand before what `only` or `every` is said of, or -1.
        cut: it is too long, and was not read to its end.
    """

    terms: list[Term] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)
    negations: int = 0
    ended: int = -1
    changed: int = 0
    quantifiers: set[str] = field(default_factory=set)
    hedges: set[str] = field(default_factory=set)
    has_user: bool = False
    verb: str = ""
    passive: bool = False
    past: bool = False
    recurring: bool = False
    additive: bool = False
    timeless: bool = False
    perfect: bool = False
    focus: int = -1
    cut: bool = False
