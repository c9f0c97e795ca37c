"""Whether two aligned sentences speak of the same persons in the same parts."""

from memplane.domain import comparison_lexicon as lexicon
from memplane.domain.comparison_alignment import Alignment, Match
from memplane.domain.comparison_reading import Reading, Term

OPINIONS = frozenset(
    {
        "like",
        "prefer",
        "know",
        "want",
        "visit",
        "buy",
        "read",
        "speak",
        "allergi",
        "see",
        "meet",
        "trust",
        "rememb",
        "finish",
    }
)
"""Verbs of liking, knowing and single events: what ends elsewhere does not end these."""
_SYMMETRIC = frozenset(
    {
        "marri",
        "date",
        "twin",
        "friend",
        "engag",
        "meet",
        "sibl",
        "neighbour",
        "share",
        "divorc",
        "mutual",
        "relationship",
        "married",
        "cousin",
        "colleague",
    }
)
_LIGHT = 0.3
_TOWARDS = frozenset({"to", "into", "for"})
_PLACING = frozenset({"under", "over"})
_BESIDE = frozenset({"with", "near", "against", "about", "between"})
"""Prepositions under which a name plays a part that it has under no other: `works with`, `works for`."""
_STAGES = frozenset({"by", "in", "on", "at", "with", "for"})
"""Prepositions of what acts, or holds, in a sentence whose subject does not act."""
_TURNING = lexicon.DIRECTIONAL - {"over", "under", "from", "because", "against", "since"}


def is_other_subject(lying: Alignment) -> bool:
    """Whether the texts tell of different persons or things."""
    old, new = lying.old, lying.new
    for term in (*lying.lost, *lying.found):
        if (
            term.kind == "w"
            and term.lexeme.key in lexicon.PEOPLE
            and (term.subject or term.owner)
            and not _is_apposed(term, old if term in lying.lost else new)
        ):
            return True
    if _other_owner(lying):
        return True
    if old.agents and new.agents and not old.agents & new.agents:
        said_old, said_new = ({term.low for term in told.terms} for told in (old, new))
        if (new.has_user and "user" in old.agents) or (old.has_user and "user" in new.agents):
            return False
        return not (old.agents & said_new or new.agents & said_old)
    if "user" in old.agents and not new.has_user and new.agents and not any(_matched(one, lying) for one in new.agents):
        return True
    return _lone_subjects(lying)


def _lone_subjects(lying: Alignment) -> bool:
    """Whether both texts have a subject noun, and the two are different."""
    lost = [term for term in lying.lost if term.subject and not term.prep and term.cost >= 1.0 and term.clause == 0]
    found = [term for term in lying.found if term.subject and not term.prep and term.cost >= 1.0 and term.clause == 0]
    return bool(lost) and bool(found) and not lying.new.changed


def _matched(low: str, lying: Alignment) -> bool:
    return any(low in (match.old.low, match.new.low) for match in lying.matches)


def _is_apposed(term: Term, told: Reading) -> bool:
    """Whether a name follows a person's word at once: `the user's cousin Milan`."""
    after = told.terms[term.place + 1] if term.place + 1 < len(told.terms) else None
    return after is not None and after.kind == "n" and after.prep == term.prep


def _other_owner(lying: Alignment) -> bool:
    """Whether something that both texts name is owned by different ones."""
    for match in lying.matches:
        a, b = match.old.owner, match.new.owner
        if a and b and a != b and not _is_within(a, lying, b):
            return True
    return False


def _is_within(a: str, lying: Alignment, b: str) -> bool:
    """Whether two owners are matched with each other."""
    return any({match.old.low, match.new.low} == {a, b} for match in lying.matches)


def is_crossed(lying: Alignment) -> bool:
    """Whether who does it and whom it is done to have changed places, or words stand under opposite prepositions."""
    matches = lying.matches
    for match in matches:
        preps = {match.old.prep, match.new.prep}
        if len(preps) == 2 and (preps & _TURNING or ("from" in preps and preps & _TOWARDS)):
            return True
        if len(preps) == 2 and "" not in preps and (preps & _PLACING or (match.old.kind == "n" and preps & _BESIDE)):
            return True
    if _is_symmetric(lying.old) or _is_symmetric(lying.new):
        return False
    return _agents_cross(lying) or _clauses_cross(lying) or _values_cross(lying) or _subjects_cross(lying)


def _is_symmetric(told: Reading) -> bool:
    return any(term.lexeme.key in _SYMMETRIC or term.low in _SYMMETRIC for term in told.terms)


def _clauses_cross(lying: Alignment) -> bool:
    """Whether what one clause says in one text stands in two clauses of the other, and so for another clause."""
    pairs = {(match.old.clause, match.new.clause) for match in lying.matches if match.old.cost > _LIGHT}
    return any(a < c and {(a, b), (a, d), (c, b), (c, d)} <= pairs for a, b in pairs for c, d in pairs if b != d)


def _agents_cross(lying: Alignment) -> bool:
    """Whether a person who acts in one text only suffers in the other, while another acts there."""
    old, new = lying.old, lying.new
    if not old.agents or not new.agents or old.agents & new.agents:
        return False
    if {old.verb, new.verb} & {"be", "have", "name", "use", ""} and old.verb != new.verb:
        return False
    if any(term.low in new.agents and term.prep in _STAGES for term in old.terms) or any(
        term.low in old.agents and term.prep in _STAGES for term in new.terms
    ):
        return False
    others = {term.low for term in new.terms} | ({"user"} if new.has_user else set())
    return bool(old.agents & others) and old.verb != "be"


def _values_cross(lying: Alignment) -> bool:
    """Whether names or numbers of one kind have changed their order without the prepositions that would explain it."""
    for kind in ("n", "#"):
        paired = [match for match in lying.matches if match.old.kind == kind == match.new.kind]
        for place, first in enumerate(paired):
            for second in paired[place + 1 :]:
                crossed = (first.old.place < second.old.place) != (first.new.place < second.new.place)
                if (
                    crossed
                    and not _are_coordinated(first, second)
                    and (
                        (_unexplained(first) and _unexplained(second))
                        or (_is_led_elsewhere(first, lying) and _is_led_elsewhere(second, lying))
                    )
                ):
                    return True
    return False


def _are_coordinated(first: Match, second: Match) -> bool:
    """Whether two words stand side by side in both texts: `Spanish and Dutch`."""
    return all(
        abs(one.place - other.place) == 1 and one.prep == other.prep and one.owner == other.owner
        for one, other in ((first.old, second.old), (first.new, second.new))
    )


def _is_led_elsewhere(match: Match, lying: Alignment) -> bool:
    """Whether the word before a value, which both texts have, is another in each: `3 apples`, `3 pears`."""
    old = _before(match.old, lying.old)
    new = _before(match.new, lying.new)
    if old is None or new is None:
        return False
    partners = {id(one.old): id(one.new) for one in lying.matches}
    return id(old) in partners and id(new) in partners.values() and partners[id(old)] != id(new)


def _before(term: Term, told: Reading) -> Term | None:
    """The word that stands before another and is neither name nor number."""
    return next((one for one in reversed(told.terms[: term.place]) if one.kind == "w"), None)


def _unexplained(match: Match) -> bool:
    """Whether a word's preposition does not tell that it plays the same part in both texts."""
    return not (match.old.prep and match.old.prep == match.new.prep) and match.old.subject == match.new.subject


def _subjects_cross(lying: Alignment) -> bool:
    """Whether, under one verb, subject and object have changed places."""
    old, new = lying.old, lying.new
    if old.verb != new.verb or old.verb in ("be", "have", "", "name") or old.passive != new.passive:
        return False
    moved = [match for match in lying.matches if match.old.subject != match.new.subject and _is_bare(match)]
    return any(match.old.subject for match in moved) and any(match.new.subject for match in moved)


def _is_bare(match: Match) -> bool:
    subject = match.old if match.old.subject else match.new
    return not subject.prep


def is_doubly_denied(lying: Alignment) -> bool:
    """Whether both texts deny, so that a word that only one denies may merely stand elsewhere."""
    old, new = lying.old.negations, lying.new.negations
    return bool(old and new) and old % 2 == new % 2


def has_other_verbs(lying: Alignment) -> bool:
    """Whether each text has a verb of its own that carries content."""
    return any(term.cost >= 0.5 and term.lexeme.key == lying.old.verb for term in lying.lost) and any(
        term.cost >= 0.5 and term.lexeme.key == lying.new.verb for term in lying.found
    )
