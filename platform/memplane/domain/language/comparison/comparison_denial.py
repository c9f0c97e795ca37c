"""Whether a new sentence denies what an old one, aligned with it, says."""

from memplane.domain.language.comparison import comparison_phrases as phrases
from memplane.domain.language.comparison.comparison_alignment import Alignment, Match
from memplane.domain.language.comparison.comparison_reading import Reading, Term
from memplane.domain.language.comparison.comparison_roles import (
    OPINIONS,
    has_other_verbs,
    is_crossed,
    is_doubly_denied,
    is_other_subject,
)
from memplane.domain.language.comparison.comparison_thesaurus import Relation, is_only_noun

_LIGHT = 0.3
"""Cost of words that only frame a statement."""
_CONTENT = 0.6
"""Cost from which a word carries content of its own."""
_LOOSE = (Relation.SYNONYM, Relation.BROADER, Relation.NARROWER)


def is_contradicted(lying: Alignment) -> bool:
    """Whether the new text denies what the old one says."""
    old, new = lying.old, lying.new
    if is_other_subject(lying) or (old.ended < 0) != (new.ended < 0):
        return False
    if are_incompatible(old, new):
        return True
    if (old.hedges ^ new.hedges) & {"wish", "next", "last", "previous"}:
        return False
    if is_doubly_denied(lying) and not any(match.relation is Relation.OPPOSITE for match in lying.matches):
        return False
    if has_other_verbs(lying):
        return False
    if any(match.relation in _LOOSE and match.old.lexeme.key == old.verb for match in lying.matches):
        return False
    flipped = [
        match for match in lying.matches if match.flipped and (match.old.cost >= _CONTENT or match.new.cost >= _CONTENT)
    ]
    return any(_is_denial(match, lying) for match in flipped) and not is_crossed(lying)


def _is_denial(match: Match, lying: Alignment) -> bool:
    """Whether one pair of opposite terms denies its clause: what is denied is not more special than what was said."""
    if (
        match.relation is Relation.OPPOSITE
        and not _is_how_often(match.old)
        and not (_ends_phrase(match.old, lying.old) and _ends_phrase(match.new, lying.new))
    ):
        return False
    lost = sum(term.cost for term in lying.lost if term.clause == match.old.clause and _limits(term))
    found = sum(term.cost for term in lying.found if term.clause == match.new.clause and _limits(term))
    if match.old.prep == "with" or match.new.prep == "with":
        return False
    if match.relation in (Relation.BROADER, Relation.NARROWER) and match.old.lexeme.key == lying.old.verb:
        return False
    if match.relation is Relation.OPPOSITE or match.old.denied == match.new.denied:
        return lost + found <= 0.6
    if _is_parallel(match, lying) or any(_is_opinion(term, lying) for term in (*lying.lost, *lying.found)):
        return False
    if match.new.denied and _is_narrowed(match, lying):
        return False
    allowed = 1.0 if len(lying.matches) >= 3 else 0.6 if len(lying.matches) == 2 else 0.3
    return (found if match.new.denied else lost) <= allowed and (lost if match.new.denied else found) <= 3.0


def _is_narrowed(match: Match, lying: Alignment) -> bool:
    """Whether only some of what the old text names is denied: `eats fish`, `does not eat raw fish`."""
    denied = [other.new for other in lying.matches if other.new.denied and other.new.clause == match.new.clause]
    return any(
        term.denied
        and term.kind == "w"
        and term.cost >= 1.0
        and not is_only_noun(term.low)
        and any(term.place + 1 == other.place and term.prep == other.prep for other in denied)
        for term in lying.found
    )


def _is_parallel(match: Match, lying: Alignment) -> bool:
    """Whether each text has a slot of its own in the clause, so that both may hold: `at home`, `at concerts`."""
    lost = any(t.cost > _LIGHT or t.lexeme.key != lying.old.verb for t in lying.lost if t.clause == match.old.clause)
    found = any(t.cost > _LIGHT or t.lexeme.key != lying.new.verb for t in lying.found if t.clause == match.new.clause)
    return lost and found


def _is_opinion(term: Term, lying: Alignment) -> bool:
    """Whether a word that one text lacks is the other's verb, and tells of liking or knowing: another fact."""
    return term.lexeme.key in OPINIONS and term.lexeme.key in (lying.old.verb, lying.new.verb)


def _is_how_often(term: Term) -> bool:
    return term.low in ("always", "often", "frequently", "rarely", "seldom")


def _limits(term: Term) -> bool:
    """Whether a word makes a text more special: it is no mere preposition or article."""
    return term.cost >= _LIGHT


def _ends_phrase(term: Term, told: Reading) -> bool:
    """Whether no noun follows that the word might only describe."""
    after = told.terms[term.place + 1] if term.place + 1 < len(told.terms) else None
    return after is None or after.clause != term.clause or (after.prep != term.prep) or after.kind != "w"


_STATES = frozenset().union(*(state for state, _ in phrases.INCOMPATIBLE))


def are_only_incompatible(old: Reading, new: Reading) -> bool:
    """The same of texts that say nothing else: not `eats vegan cheese`, `eats meat at Christmas`."""
    return are_incompatible(old, new) and any(
        _says_only(one, state) and _says_only(other, excluded)
        for one, other in ((old, new), (new, old))
        for state, excluded in phrases.INCOMPATIBLE
    )


def _says_only(told: Reading, group: frozenset[str]) -> bool:
    """Whether all that a text says of its subject is in a group."""
    said = [term for term in told.terms if not term.subject and term.lexeme.key != told.verb and term.kind != "#"]
    return all(
        group & {term.low, *term.lexeme.forms}
        for term in said
        if term.low not in ("again", "daily") and term.prep not in ("since", "because")
    )


def are_incompatible(old: Reading, new: Reading) -> bool:
    """Whether one text names a state with which what the other names does not go."""
    for one, other in ((old, new), (new, old)):
        states = {form for term in one.terms if not term.denied for form in (term.low, *term.lexeme.forms)}
        if not states & _STATES:
            continue
        things = {form for term in other.terms if not term.denied for form in (term.low, *term.lexeme.forms)}
        if any(states & state and things & excluded for state, excluded in phrases.INCOMPATIBLE):
            return one.ended < 0 and other.ended < 0 and not other.negations
    return False
