"""Whether two aligned sentences say the same in other words."""

import re
from functools import lru_cache
from itertools import chain

from memplane.domain.language.comparison import comparison_lexicon as lexicon
from memplane.domain.language.comparison import comparison_phrases as phrases
from memplane.domain.language.comparison.comparison_alignment import Alignment, Match
from memplane.domain.language.comparison.comparison_reading import Reading, Term
from memplane.domain.language.comparison.comparison_roles import is_crossed, is_doubly_denied, is_other_subject
from memplane.domain.language.comparison.comparison_thesaurus import (
    Relation,
    is_only_noun,
    may_be_noun,
    may_be_verb,
    relation,
)

_TURNS = re.compile(
    r"\b(?:away|off|against|without|gone|back|(?:rent|hire|lease|let)(?:s|d|ed)? out|over(?=\W*$|[.,;]))\b",
    re.IGNORECASE,
)
_PAID = re.compile(r"\b(?:for a living|(?:by|as a) profession|professional|as a job)", re.IGNORECASE)
_UNPAID = re.compile(r"\b(?:hobby|hobbies|pastime|for fun|spare time|free time|leisure)\b", re.IGNORECASE)
_FIGURE = re.compile(r"\d+(?:[-/.:]\d+)+")
_NUMBER = re.compile(r"\d+")
_LONGEST = 40
"""Characters of a figure that are read."""
_ROUNDING = 1e-6
_GIVING = frozenset({"perform", "conduct", "provid", "offer", "give", "sell", "teach"})
"""Verbs of those from whom somebody has what they have: who performs an operation does not have one."""
_CONTENT = 0.6
"""Cost from which a word carries content of its own."""


def is_same(lying: Alignment) -> bool:
    """Whether nothing but the wording differs."""
    old, new = lying.old, lying.new
    if (old.ended < 0) != (new.ended < 0) or old.negations % 2 != new.negations % 2:
        return False
    denied = any(match.flipped and not _is_turned(match, lying) for match in lying.matches)
    if denied or old.quantifiers != new.quantifiers or _is_meant_otherwise(lying):
        return False
    left = [*lying.lost, *lying.found]
    if (
        any(_says_change(term) for term in left)
        or _is_or_has(lying)
        or _has_rivals(lying)
        or is_crossed(lying)
        or is_other_subject(lying)
    ):
        return False
    named = sum(match.old.cost for match in lying.matches)
    if named < 1.0 or _leaves_content(left, named, lying):
        return False
    framing = sum(term.cost - (0.0 if _is_asking(term, old, new) else 0.5) for term in left if term.cost >= 1.0)
    return lying.residue - framing <= min(2.0, max(0.75, 0.3 * named)) + _ROUNDING


def _has_rivals(lying: Alignment) -> bool:
    """Whether each text has a noun of its own in the place of the other's, if a light one: `a degree`, `a job`."""
    lost, found = (
        [term for term in terms if _is_thing(term, told)]
        for terms, told in ((lying.lost, lying.old), (lying.found, lying.new))
    )
    return any(
        a.subject == b.subject and relation(a.low, b.low) in (Relation.NONE, Relation.SISTER, Relation.OPPOSITE)
        for a in lost
        for b in found
    )


def _is_thing(term: Term, told: Reading) -> bool:
    """Whether a word names a thing, and is not its text's verb."""
    return term.kind == "w" and term.lexeme.key != told.verb and may_be_noun(term.low)


def _is_meant_otherwise(lying: Alignment) -> bool:
    """Whether one text wishes, allows or demands what the other does not, or tells of another time."""
    old, new = lying.old, lying.new
    hedged = old.hedges ^ new.hedges
    if any(match.old.lexeme.key in ("plan", "want", "prefer") for match in lying.matches):
        hedged -= {"wish"}
    if is_doubly_denied(lying):
        hedged -= {"can"}
    if "must" in hedged and (old.perfect or new.perfect):
        return True
    if any(_is_asking(term, old, new) for term in (*lying.lost, *lying.found)):
        hedged -= {"must", "should", "wish"}
    if not (hedged <= {"must"} or hedged in ({"should", "wish"}, {"should", "must"})):
        return True
    if old.past == new.past or old.ended >= 0 or (old.verb == new.verb and old.verb in lexicon.EVENTS):
        return False
    return _is_retold(lying)


def _leaves_content(left: list[Term], named: float, lying: Alignment) -> bool:
    """Whether one text says something that the other does not."""
    hard = [
        term
        for term in left
        if term.cost >= 1.0
        and not _is_asking(term, lying.old, lying.new)
        and not _is_frame_verb(term, lying)
        and not _is_title(term, lying)
        and not _is_device(term, lying)
        and not _is_repeated(term, lying)
    ]
    if not hard or (len(hard) == 1 and _is_implied(hard[0], lying)):
        return False
    return named < 4.5 or not _may_be_left(hard, named, lying)


def _is_asking(term: Term, old: Reading, new: Reading) -> bool:
    """Whether a word asks for what the other text demands in another way: `needs`, `must have`; `wants`, `please`."""
    asked = old.hedges | new.hedges
    if term.lexeme.key == "need":
        return bool({"must", "should"} & asked)
    return term.lexeme.key == "want" and bool({"wish", "should"} & asked) and (old.hedges ^ new.hedges) != {"must"}


def _is_or_has(lying: Alignment) -> bool:
    """Whether the same words stand after `is` and after `has`: `is a manager`, `has a manager`."""
    literal = all(match.old.low == match.new.low and match.old.kind == "w" for match in lying.matches)
    if "have" in (lying.old.verb, lying.new.verb) and {lying.old.verb, lying.new.verb} & _GIVING:
        return True
    if {lying.old.verb, lying.new.verb} == {"have", "work"} and any(
        {match.old.prep, match.new.prep} == {"", "at"} for match in lying.matches
    ):
        return True  # `owns a bakery`, `works at a bakery`
    someone = any(match.old.lexeme.key in lexicon.PEOPLE and not match.old.subject for match in lying.matches)
    return literal and someone and {lying.old.verb, lying.new.verb} == {"be", "have"}


def _is_implied(term: Term, lying: Alignment) -> bool:
    """Whether a noun names what a number that both texts have measures, and the other text names nothing else."""
    others = lying.found if term in lying.lost else lying.lost
    measured = bool(term.lexeme.forms & phrases.MEASURES) and any(match.old.kind == "#" for match in lying.matches)
    return measured and all(other.cost < _CONTENT for other in others)


def _may_be_left(hard: list[Term], named: float, lying: Alignment) -> bool:
    """Whether what is left of long texts is a verb's form alone, or two words that stand for each other."""
    if len(hard) == 1:
        term = hard[0]
        formed = term.low.endswith(("s", "ed")) or term.low in lexicon.PAST
        return term.kind == "w" and not term.prep and formed and not is_only_noun(term.low) and may_be_verb(term.low)
    return len(hard) == 2 and named >= 7.0 and _are_alike(hard, lying)


def _are_alike(hard: list[Term], lying: Alignment) -> bool:
    """Whether of two words left of long texts each is of one text, and they are no two things of one kind."""
    one, other = hard
    apart = (one in lying.lost) != (other in lying.lost)
    plain = one.kind == other.kind == "w" and one.prep == other.prep and one.subject == other.subject
    return apart and plain and relation(one.low, other.low) is Relation.NONE and not is_only_noun(one.low)


def _says_change(term: Term) -> bool:
    """Whether a word, which the other text lacks, says that something has changed."""
    return term.kind == "w" and bool(
        {term.low, *term.lexeme.forms} & (phrases.CHANGE - phrases.WEAK_CHANGE - {"move", "shift"})
    )


def _is_turned(match: Match, lying: Alignment) -> bool:
    """Whether a word is denied in one text alone because there it stands after what denies both."""
    if match.relation is Relation.OPPOSITE or not is_doubly_denied(lying):
        return False
    return match.old.subject != match.new.subject or any(
        other.old.denied and other.new.denied for other in lying.matches
    )


def _is_retold(lying: Alignment) -> bool:
    """Whether both texts have one verb, so that its tense tells them apart."""
    verbs = {lying.old.verb, lying.new.verb}
    return (
        len(verbs) == 1
        or verbs <= {"be", "have"}
        or not verbs & {"be", "have", "get", "got", "becom", "turn", "", "name"}
    )


def _is_frame_verb(term: Term, lying: Alignment) -> bool:
    """Whether a word is the verb of its text, and that of the other text carries nothing or stands in both."""
    if term.kind != "w" or term.subject or term.cost > 1.0 or not term.lexeme.forms & phrases.FRAME_VERBS:
        return False
    if sum(match.old.cost for match in lying.matches) < 3:
        return False
    left = [*lying.lost, *lying.found]
    for one, other, own in ((lying.old, lying.new, lying.lost), (lying.new, lying.old, lying.found)):
        if term in own and term.lexeme.key == one.verb:
            if other.verb == "be" and (term.lexeme.forms & phrases.DEEDS or _is_placed(term, one)):
                return False
            if one.past and not other.past and other.verb in ("be", "have"):
                return False  # `returned the tickets` tells of what happened, `has the tickets` of what is
            return not any(
                rival.cost >= _CONTENT and (rival.lexeme.key == other.verb or (not other.verb and rival.low == "live"))
                for rival in left
                if rival is not term
            )
    return False


def _is_placed(verb: Term, told: Reading) -> bool:
    """Whether a verb of playing tells where: `plays in the stadium`, but not `plays the violin`."""
    after = told.terms[verb.place + 1] if verb.place + 1 < len(told.terms) else None
    return "play" in verb.lexeme.forms and after is not None and after.prep != ""


def _is_title(term: Term, lying: Alignment) -> bool:
    """Whether a noun only tells what sort of thing the name after it is: `the book Dune`."""
    if term.kind != "w" or term.lexeme.key in lexicon.PEOPLE or not is_only_noun(term.low):
        return False
    told = lying.old if any(one is term for one in lying.old.terms) else lying.new
    if term.lexeme.key == told.verb:
        return False
    after = told.terms[term.place + 1] if term.place + 1 < len(told.terms) else None
    return after is not None and after.kind == "n" and after.prep == term.prep and not term.subject


def _is_device(term: Term, lying: Alignment) -> bool:
    """Whether a noun only tells what sort of device a model is that both texts name: `a Pixel 8`, `a Pixel 8 phone`."""
    if term.low not in phrases.DEVICES or not {lying.old.verb, lying.new.verb} <= {"be", "have", "use", "drive"}:
        return False
    named = sum(match.old.cost for match in lying.matches if match.old.kind in ("n", "#"))
    return named >= 4.0 and len(lying.lost) + len(lying.found) <= 2


def _is_repeated(term: Term, lying: Alignment) -> bool:
    """Whether `every week` only repeats that something is done every Sunday."""
    return term.low == "weekly" and any(
        match.old.low.startswith("day:") and "every" in (match.old.prep, match.new.prep) for match in lying.matches
    )


@lru_cache(maxsize=4_096)
def _turns(text: str) -> frozenset[str]:
    """Small words that turn what a verb says: `gave away`, `is over`, `voted against`."""
    return frozenset(match[0].lower() for match in _TURNS.finditer(text))


def _figures(text: str) -> list[tuple[int, ...]]:
    """Numbers that are written as one: dates, scores, versions."""
    return sorted(tuple(map(int, _NUMBER.findall(match[0][:_LONGEST]))) for match in _FIGURE.finditer(text))


def _is_reordered(old: str, new: str) -> bool:
    """Whether dates or scores of both texts have the same numbers in another order: `2027-03-04`, `2027-04-03`."""
    before, after = _figures(old), _figures(new)
    return before != after and sorted(chain.from_iterable(before)) == sorted(chain.from_iterable(after))


def is_turned(old: str, new: str) -> bool:
    """Whether a small word in one of two texts alone, or the order of numbers in a date, may turn its meaning."""
    if _turns(old) != _turns(new) or _is_reordered(old, new):
        return True
    return bool((_PAID.search(old) and _UNPAID.search(new)) or (_UNPAID.search(old) and _PAID.search(new)))


def is_apart(lying: Alignment) -> bool:
    """Whether words that limit or deny tell apart what looks the same."""
    old, new = lying.old, lying.new
    hedged = old.hedges ^ new.hedges
    if old.quantifiers != new.quantifiers or {"wish", "maybe"} & hedged:
        return True
    if "must" in hedged and (old.perfect or new.perfect):
        return True
    return any(match.flipped and not _is_turned(match, lying) for match in lying.matches)
