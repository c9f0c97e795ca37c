"""Whether a new sentence changes or ends what an old one, aligned with it, says."""

from collections.abc import Iterable

from memplane.domain.language.comparison import comparison_lexicon as lexicon
from memplane.domain.language.comparison import comparison_phrases as phrases
from memplane.domain.language.comparison.comparison_alignment import Alignment
from memplane.domain.language.comparison.comparison_reading import Reading, Term
from memplane.domain.language.comparison.comparison_roles import OPINIONS, has_other_verbs, is_crossed, is_other_subject
from memplane.domain.language.comparison.comparison_thesaurus import Relation, relation

_CONTENT = 0.6
"""Cost from which a word carries content of its own."""
_FROM = frozenset({"from", "over"})
_TO = frozenset({"to", "into", "with", "for", "by", "as", "at", "in", "on", "under", ""})
_GIVEN = frozenset({"to", "into", "with", "by", "for"})
_TUNED = frozenset({"port", "channel", "gear", "frequenc"})
"""Nouns beside those that grade whose number is set, and is no name of one among many."""


def is_updated(lying: Alignment) -> bool:
    """Whether the new text gives another value in place of the old one."""
    old, new = lying.old, lying.new
    if is_other_subject(lying) or not (new.hedges & {"wish", "maybe"}) <= old.hedges:
        return False
    if old.ended >= 0:
        return False
    changed = new.changed if new.changed > old.changed and not new.additive else 0
    if not changed and (
        is_crossed(lying) or any(match.flipped and match.old.cost >= _CONTENT for match in lying.matches)
    ):
        return False
    if any(match.old.prep != match.new.prep and match.new.prep in _TURNS and match.old.prep for match in lying.matches):
        return False
    lost, found = _values(lying.lost, old), _values(lying.found, new)
    if _is_exclusive(lying) or _is_transition(lying, lost, found):
        return True
    if sum(match.old.cost for match in lying.matches) < _CONTENT:
        return changed > 0 and _has_become(lying, lost, found)
    if _is_other_number(lying, lost, found, changed) or _is_other_attribute(lying, lost, found):
        return True
    return changed > 0 and _is_replaced(lying, lost, found, changed)


def _has_become(lying: Alignment, lost: list[Term], found: list[Term]) -> bool:
    """Whether somebody is said to have become what goes with what they were: `vegetarian`, `vegan`."""
    became = (lying.old.verb, lying.new.verb) == ("be", "becom") and lying.old.agents & lying.new.agents
    return bool(became) and len(lost) == len(found) == 1 and relation(lost[0].low, found[0].low) != Relation.NONE


_REASONS = frozenset({"since", "after", "because", "before"})
_TURNS = frozenset({"before", "after", "without", "until", "since"})


def _is_exclusive(lying: Alignment) -> bool:
    """Whether a state gives way to one with which it does not go: `engaged`, `married`."""
    lost, found = ({term.lexeme.key for term in terms if term.kind == "w"} for terms in (lying.lost, lying.found))
    if any(term.kind != "w" and _shape(term.low) != "date" for term in lying.found) and any(
        term.kind != "w" for term in lying.lost
    ):
        return False
    return bool(lying.old.agents & lying.new.agents) and any(
        lost & group and found & group for group in lexicon.EXCLUSIVE[:1]
    )


def _values(terms: Iterable[Term], told: Reading) -> list[Term]:
    """The words that may be a value: neither verbs that say that something changed nor frames."""
    return [
        term
        for term in terms
        if term.cost >= 1.0 and term.prep not in _REASONS and (term.lexeme.key != told.verb or term.prep)
    ]


def _is_other_number(lying: Alignment, lost: list[Term], found: list[Term], changed: int) -> bool:
    """Whether a number, time or date of the old text is another in the new one."""
    before, after = ([term for term in terms if term.kind == "#"] for terms in (lost, found))
    if not before or not after or any(term.kind == "n" for term in lost):
        return False
    if any(term.kind == "n" for term in found) and not changed:
        return False
    shapes = {_shape(term.low) for term in before} & {_shape(term.low) for term in after}
    if not shapes:
        return False
    if changed:
        return (
            not any(_is_label(term, lying.old) for term in before)
            or changed == 2
            or lying.old.verb == lying.new.verb == "be"
        )
    if lying.new.ended >= 0 or has_other_verbs(lying):
        return False
    rest = [
        term
        for term in (*lying.lost, *lying.found)
        if term.kind != "#"
        and term.cost >= _CONTENT
        and not (_is_unit(term) or term.prep in ("since", "after", "because"))
    ]
    loose = sum(term.cost for term in rest if term.lexeme.key not in (lying.old.verb, lying.new.verb))
    if loose > 0.6 or len(before) != 1 or len(after) != 1 or lying.old.past or lying.new.past:
        return False
    if _is_label(before[0], lying.old) or _is_label(after[0], lying.new):
        return False
    return not _is_event(before[0], lying)


def _is_label(term: Term, told: Reading) -> bool:
    """Whether a number tells one thing from others of its kind, and is no value like that of a port."""
    if not term.label or ":" in term.low:
        return False
    before = told.terms[term.place - 1] if term.place else None
    if before is None:
        return True
    named = term.low[:1].isdecimal() and _is_name(before)
    return not named and before.lexeme.key not in lexicon.GRADED | _TUNED


def _is_event(value: Term, lying: Alignment) -> bool:
    """Whether a date tells one occurrence from another, and is no attribute of one thing."""
    dated = value.low.split(":")[0] in ("day", "month")
    return dated and (lying.old.verb == "have" or lying.new.recurring or lying.old.recurring)


def _is_unit(term: Term) -> bool:
    return term.lexeme.key in _UNITS


_UNITS = frozenset(
    {
        "second",
        "minut",
        "hour",
        "week",
        "month",
        "year",
        "day",
        "euro",
        "dollar",
        "pound",
        "percent",
        "metr",
        "kilometr",
        "kilogram",
        "gram",
        "litr",
    }
)


def _shape(low: str) -> str:
    if low[:1].isdecimal() or low[:1] == "-":
        return "number" if low.replace(".", "").replace("-", "").isdecimal() else "code"
    head = low.split(":", 1)[0]
    return "date" if head in ("day", "month") else "number" if head == "at" else "code"


def _is_other_attribute(lying: Alignment, lost: list[Term], found: list[Term]) -> bool:
    """Whether an attribute, a role that one person fills, or a place has another value, and nothing else differs."""
    old, new = lying.old, lying.new
    if old.past or new.past or new.ended >= 0 or not lost or not found or old.recurring or new.recurring:
        return False
    if not all(_is_name(term) for term in (*lost, *found)) or has_other_verbs(lying):
        return False
    if sum(term.cost for term in (*lying.lost, *lying.found) if term.cost < 1.0) > 1.3:
        return False
    if lost[0].prep not in ("", "in", "at", "on", "with", "by", "to") or len({term.prep for term in lost}) > 1:
        return False
    if len({term.prep for term in found}) > 1 or _has_people(lying):
        return False
    keys = {match.old.lexeme.key for match in lying.matches}
    if old.verb in ("be", "name") and keys & (lexicon.ATTRIBUTES | lexicon.UNIQUE | lexicon.SINGLE_ROLES):
        return not any(term.subject for term in lost) or not any(not term.subject for term in found)
    return (
        (old.verb, lost[0].prep) in lexicon.SLOTS and (new.verb, found[0].prep) in lexicon.SLOTS and lost[0].prep != ""
    )


def _has_people(lying: Alignment) -> bool:
    """Whether both texts speak of somebody who may be one of several, like a friend."""
    many = lexicon.PEOPLE - lexicon.SINGLE_ROLES
    return any(match.old.lexeme.key in many for match in lying.matches)


def _is_transition(lying: Alignment, lost: list[Term], found: list[Term]) -> bool:
    """Whether the new text tells how somebody came into another state of the kind that the old one names."""
    old, new = lying.old, lying.new
    if not old.agents & new.agents or not found or old.past or "wish" in new.hedges:
        return False
    told = [term for term in new.terms if term.clause == 0 or term.low in ("joined", "moved")]
    lows = {form for term in told for form in term.lexeme.forms}
    if not lost and "leave" not in lows:
        return False
    for verbs, states in phrases.TRANSITIONS:
        if lows & verbs and old.verb in states:
            named = any(_is_name(term) for term in found)
            return named if not lost else any(_is_name(term) for term in lost) == named
    return False


def _is_name(term: Term) -> bool:
    """Whether a word is a name, or a word without a meaning of its own, like that of a product."""
    code = term.kind == "#" and term.low[:1].isalpha() and ":" not in term.low
    return code or term.kind == "n" or (term.kind == "w" and not term.lexeme.forms)


def _is_replaced(lying: Alignment, lost: list[Term], found: list[Term], changed: int) -> bool:
    """Whether words of change put another value of the same kind in the place of the old one."""
    anchors = [match for match in lying.matches if match.old.cost >= _CONTENT]
    if not anchors or not (found or changed == 2):
        return False
    named = [term for term in found if _is_name(term) and term.prep in _TO]
    if changed == 2 and any(
        not match.new.subject
        and (match.relation is Relation.OPPOSITE or (match.relation is Relation.SYNONYM and match.new.prep == "to"))
        for match in lying.matches
    ):
        return True
    ended = lying.new.ended
    gone = [
        match
        for match in anchors
        if match.new.prep in _FROM
        or match.new.denied
        or match.new.replaced
        or (match.new.clause == ended and not match.new.subject)
    ]
    if gone:
        kinds = {"n" if _is_name(match.old) else match.old.kind for match in gone}
        if "n" in kinds:
            swapped = all(match.new.prep not in _FROM and not match.new.denied for match in gone)
            return any(term.prep or term.subject or not swapped for term in named)
        renamed = lying.old.verb == "be" and any(_is_name(term) for term in lost) and any(term.prep for term in named)
        return renamed or any(term.kind in kinds and term.prep in _GIVEN for term in found)
    names = [term for term in lost if _is_name(term)]
    if names and named:
        acting = any(term.subject and term.low in lying.old.agents for term in names)
        return not acting or changed == 2 or lying.old.verb == lying.new.verb == "be"
    if names or named or not lost:
        return False
    words = [(a, b) for a in lost for b in found if a.kind == b.kind == "w"]
    if any(relation(a.low, b.low) in (Relation.SISTER, Relation.BROADER, Relation.NARROWER) for a, b in words):
        return changed == 2 or len(lost) == len(found) == 1
    placed = [term for term in found if term.prep in ("to", "into")]
    return (
        changed == 2
        and bool(placed)
        and any(term.prep in ("in", "at", "on", "under", "to", "as", "with") for term in lost)
    )


def is_retracted(lying: Alignment) -> bool:
    """Whether the new text ends what the old one says, and puts nothing in its place."""
    old, new = lying.old, lying.new
    if new.ended < 0 or old.ended >= 0 or old.past or old.negations % 2 or is_other_subject(lying):
        return False
    if any(term.kind == "n" and term.prep not in ("by", "since", "after", "because") for term in lying.found):
        return False
    if sum(term.cost for term in lying.found if term.kind == "w") > 3.0:
        return False
    if (
        old.verb in OPINIONS - {"want"}
        and old.verb != new.verb
        and not any(match.old.lexeme.key == old.verb for match in lying.matches)
    ):
        return False
    if any(term.kind == "#" and (_shape(term.low) != "date" or old.verb == "start") for term in lying.found):
        return False
    if _is_of_another(lying):
        return False
    heads = _heads(old)
    return any(match.old.place in heads and match.old.cost >= 0.5 for match in lying.matches)


def _is_of_another(lying: Alignment) -> bool:
    """Whether nothing but verbs is in both, and each names a thing of its own: `wants a piano`, `no boat any more`."""
    verbs = lexicon.VERBS | {lying.old.verb}
    if any(match.old.lexeme.key not in verbs for match in lying.matches):
        return False
    lost, found = (
        [term for term in terms if term.kind == "w" and term.cost >= 1.0 and term.lexeme.key != told.verb]
        for terms, told in ((lying.lost, lying.old), (lying.found, lying.new))
    )
    return bool(lost and found)


def _heads(told: Reading) -> set[int]:
    """Places of the verb, the subject, and the words that the verb first governs."""
    found = {term.place for term in told.terms if term.lexeme.key == told.verb or (term.subject and term.clause == 0)}
    after = [term for term in told.terms if not term.subject and term.lexeme.key != told.verb]
    if after:
        found |= {term.place for term in after if term.prep in (after[0].prep, "of") or term.kind == "n"}
    return found
