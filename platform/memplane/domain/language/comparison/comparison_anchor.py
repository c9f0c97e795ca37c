"""Whether two texts name the same subject and the same slot, besides the person that they are about."""

from collections.abc import Collection, Iterable

from memplane.domain.language.comparison import comparison_lexicon as lexicon
from memplane.domain.language.comparison import comparison_phrases as phrases
from memplane.domain.language.comparison.comparison_alignment import Alignment, Match
from memplane.domain.language.comparison.comparison_reading import Reading, Term
from memplane.domain.language.comparison.comparison_thesaurus import Relation

CONTENT = 0.6
"""Cost from which a word carries content of its own."""


def words(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


UNITS = words("""
second minut hour week month year day euro dollar pound percent metr kilometr kilogram gram milligram millilit litr
cent km kg mg ml gb mb tb € $ £ % daily weekly monthly yearly hourly nightly am pm
""")
DAYTIMES = words("""
morning noon midday afternoon evening night midnight breakfast lunch dinner supper bedtime weekend weekday
""")
_TITLES = words("dr mr mrs ms prof sir")
_FORMER = words("old former previous new")
MEASURES = phrases.MEASURES | words("dose dosage fee join start begin")
_REASONS = words("since after because before due")
FROM = words("from over")
TO = words("to into with for by as")
_CONCERNING = TO | words("from of at in on")
FRAMES = words("rule requirement policy membership subscription contract habit diet")
"""Nouns by which an ending names what it ends: `cancelled the gym membership`."""


def is_anchored(lying: Alignment) -> bool:
    """Whether both texts name the same thing, besides the person that they are about."""
    return has_anchor(lying)


def has_anchor(lying: Alignment, *, same_part: bool = False, clauses: Collection[int] = ()) -> bool:
    """The same, in one of some clauses of the new text, and as subject in both or in neither."""
    return any(
        is_anchor(match, lying)
        and (not clauses or match.new.clause in clauses)
        and (not same_part or _plays_same_part(match, lying))
        for match in lying.matches
    )


def _plays_same_part(match: Match, lying: Alignment) -> bool:
    old, new = match.old, match.new
    return (
        old.subject == new.subject
        or (old.subject and not new.prep)
        or (old.subject and lying.new.changed == 2 and new.prep in ("as", "to"))
    )


def is_anchor(match: Match, lying: Alignment) -> bool:
    """Whether two words that stand for each other name what both texts are about."""
    if is_person(match, lying) or (match.old.subject and is_named_gone(match, lying)):
        return False
    close = match.relation in (Relation.EQUAL, Relation.DERIVED)
    if match.relation is Relation.EQUAL and not _is_spelt_alike(match):
        return False
    measured = bool(match.old.lexeme.forms & phrases.MEASURES)
    sure = close or (match.relation is Relation.LISTED and (measured or not content(lying.lost)))
    if not (_is_owned_alike(match.old, lying.new) and _is_owned_alike(match.new, lying.old)):
        return False
    return sure and _names_slot(match.old) and _names_slot(match.new)


def _is_spelt_alike(match: Match) -> bool:
    """Whether two words that stand for each other are one word, and not the initials of several."""
    old, new = match.old, match.new
    return old.lexeme.key == new.lexeme.key or old.low in new.low or new.low in old.low


def _is_owned_alike(term: Term, other: Reading) -> bool:
    """Whether the other text names who owns what a term names, if it is somebody else than the user."""
    return term.owner in ("", "user") or term.owner in _lows(other)


def is_person(match: Match, lying: Alignment) -> bool:
    """Whether both texts only name the person that they are about."""
    old, new = match.old, match.new
    if old.subject and new.subject and old.lexeme.key in lexicon.PEOPLE:
        return True
    if old.kind != "n":
        return False
    acts = new.low in _persons(lying.new) and old.prep not in _CONCERNING
    return acts or old.low in _persons(lying.old)


def _names_slot(term: Term) -> bool:
    if term.cost < CONTENT or term.low in _TITLES or (term.kind == "#" and not is_name(term)):
        return False
    return not (term.lexeme.key in UNITS | lexicon.UNIQUE or term.low in DAYTIMES or _says_change(term))


def is_name(term: Term) -> bool:
    """Whether a word is a name, a code that names something (`S3`), or a word without a meaning of its own."""
    code = term.kind == "#" and term.low[:1].isalpha() and ":" not in term.low
    return term.kind == "n" or code or (term.kind == "w" and not term.lexeme.forms)


def _persons(told: Reading) -> frozenset[str]:
    """Names of those who act or own something; what is owned itself is no person."""
    owned = {term.low for term in told.terms if term.owner and term.subject}
    return frozenset((told.agents - owned) | {term.owner for term in told.terms if term.owner})


def _says_change(term: Term) -> bool:
    return term.kind == "w" and bool({term.low, *term.lexeme.forms} & (phrases.CHANGE | phrases.ENDING))


def has_other_subject(lying: Alignment) -> bool:
    """Whether each text has a subject of its own, or one text tells of somebody else besides."""
    old, new = _persons(lying.old), _persons(lying.new)
    apart = old and new and not (old & new or old & _lows(lying.new) or new & _lows(lying.old))
    if apart and not any(match.old.subject and match.new.subject for match in lying.matches):
        return True
    if _are_roles_swapped(lying):
        return True
    lost, found = subjects(lying.lost), subjects(lying.found)
    if (lost and new and not new & _lows(lying.old)) or (found and old and not old & _lows(lying.new)):
        return True
    if _apposed(lying.lost, lying.old) and _apposed(lying.found, lying.new):
        return True
    if any(term.label for term in lying.lost if term.subject) and any(t.label for t in lying.found if t.subject):
        return True
    if any(term.kind == "w" and term.lexeme.key in lexicon.PEOPLE for term in (*lost, *found)):
        return True
    return any(a.kind == b.kind == "w" for a in lost for b in found)


def _are_roles_swapped(lying: Alignment) -> bool:
    """Whether both texts tell what one does to another, and each of the two does it once: `Ann trusts Ben`."""
    if lying.old.verb != lying.new.verb or lying.old.verb in ("be", ""):
        return False
    named = [match for match in lying.matches if match.old.kind == "n" and match.old.subject != match.new.subject]
    return {match.old.subject for match in named} == {True, False}


def _apposed(terms: Iterable[Term], told: Reading) -> bool:
    """Whether one of the words is the name of a relative or colleague that the subject names: `daughter Edie`."""
    return any(
        term.kind == "n" and term.subject and term.place and told.terms[term.place - 1].lexeme.key in lexicon.PEOPLE
        for term in terms
    )


def _lows(told: Reading) -> set[str]:
    return {term.low for term in told.terms} | ({"user"} if told.has_user else set())


def subjects(terms: Iterable[Term]) -> list[Term]:
    """The words that name what a text is about, before its verb."""
    return [
        term
        for term in terms
        if term.subject
        and not term.prep
        and term.clause == 0
        and term.cost >= CONTENT
        and not _says_change(term)
        and term.low not in FRAMES
        and term.lexeme.key not in lexicon.UNIQUE
        and not term.lexeme.forms & MEASURES
    ]


def content(terms: Iterable[Term]) -> list[Term]:
    """Words that say more than that, since when and why something changed."""
    return [
        term
        for term in terms
        if term.cost >= CONTENT
        and not _says_change(term)
        and term.prep not in _REASONS
        and term.lexeme.key not in UNITS
        and term.low not in _TITLES | _FORMER
    ]


def is_named_gone(match: Match, lying: Alignment) -> bool:
    """Whether the new text says of a word of the old one that it gave way: `from Tuesday`, `instead of SMS`, `left`."""
    old, new = match.old, match.new
    if old.cost < 1.0 or old.lexeme.key == lying.old.verb or (new.lexeme.key == lying.new.verb and not new.prep):
        return False
    if old.prep in FROM or new.subject or old.denied:
        return new.replaced
    return new.prep in FROM or new.replaced or new.denied or (lying.new.ended == new.clause and is_name(old))
