"""Whether the words of two texts prove that the new one replaces the old one.

A shared name, a word of change or a near vector proves nothing. Proof needs the same subject, the same slot, and either
another value of a slot that holds one, or an ending of the very thing that the old text names.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memplane.domain.language.comparison import comparison_lexicon as lexicon
from memplane.domain.language.comparison import comparison_phrases as phrases
from memplane.domain.language.comparison.comparison_alignment import Alignment, Match
from memplane.domain.language.comparison.comparison_anchor import (
    CONTENT,
    DAYTIMES,
    FRAMES,
    MEASURES,
    TO,
    UNITS,
    content,
    has_anchor,
    has_other_subject,
    is_anchor,
    is_anchored,
    is_name,
    is_named_gone,
    is_person,
    subjects,
    words,
)
from memplane.domain.language.comparison.comparison_denial import are_only_incompatible
from memplane.domain.language.comparison.comparison_reading import Reading, Term
from memplane.domain.language.comparison.comparison_thesaurus import Relation, relation
from memplane.domain.language.comparison.comparison_verdicts import ComparisonVerdict

_HOURS = 24
_SPARE = 2.0
"""Cost of details of the old text that a new value may leave out."""
_WHEN = words("since after from until by in on at during before")
_PLACING = words("in at on to into under")
_HELD = words("be studi work use drink drive wear play bank live ride run take keep prefer happen belong subscrib")
"""Verbs of what is done with one thing at a time, so that who switched from it no longer does it."""
_MOVING = words("move relocate transfer migrate")
_COUPLE = words("date relationship marri engag coupl boyfriend girlfriend")
_PLANNED = words("plan schedul due expect live work")
_ENDINGS = (
    (
        words("sell donat uninstal remov delet lift"),
        words("have own drive use be keep ride depend enabl hold"),
    ),
    (words("leav resign retir"), words("lead manag work studi attend belong be member live coach employ")),
    (words("membership subscription"), words("subscrib pay have be hold use")),
)
"""Words of an ending, and the verbs of what they end: who sold a car no longer drives it."""
_SEVERAL = re.compile(r"\b(?:and|or|both)\b|,")
_HYPOTHETICAL = re.compile(
    r"\b(?:if|unless|would|could|might|may(?! \d)|perhaps|maybe|consider(?:s|ing)?|think(?:s|ing) (?:of|about)"
    r"|hop(?:es|ing)|plan(?:s|ning)? to|want(?:s|ing)? to|wish(?:es)?|dreams?|imagin(?:es|ing))\b"
)


def is_proven(lying: Alignment, verdict: ComparisonVerdict) -> bool:
    """Whether the words prove that the old text no longer holds.

    Args:
        lying: the two texts, aligned.
        verdict: what the rules suspect: updated, contradicted or retracted.
    """
    if lying.new.past and not lying.old.past and not lying.new.changed and lying.new.ended < 0:
        return False  # what was so once says nothing of what is so now
    ends_wish = verdict is ComparisonVerdict.RETRACTED and not content(lying.found)
    hedges = lying.new.hedges - lying.old.hedges if ends_wish else lying.old.hedges ^ lying.new.hedges
    if has_other_subject(lying) or hedges & {"wish", "maybe"}:
        return False
    if _is_state(lying) or _is_diet(lying) or not (content(lying.lost) or content(lying.found)):
        return True
    if verdict is ComparisonVerdict.UPDATED:
        return _is_replaced(lying) or _gave_way(lying) or _is_moved(lying)
    if verdict is ComparisonVerdict.RETRACTED and _is_parted(lying):
        return True
    if not is_anchored(lying):
        return False
    return _is_ended(lying) if verdict is ComparisonVerdict.RETRACTED else _is_denied(lying)


def ends_one_of_several(lying: Alignment, old: str) -> bool:
    """Whether the old text names several things, and the new one not all of them: `a car and a motorbike`."""
    return bool(_SEVERAL.search(old)) and bool(content(lying.lost))


def is_hypothetical(old: str, new: str) -> bool:
    """Whether the new text tells of what may be, and the old one does not."""
    return bool(_HYPOTHETICAL.search(new)) and not _HYPOTHETICAL.search(old)


def _is_state(lying: Alignment) -> bool:
    """Whether the texts name states of one person of which only one holds: `single`, `married`."""
    lost, found = ({term.lexeme.key for term in terms if term.kind == "w"} for terms in (lying.lost, lying.found))
    same = lying.old.agents & lying.new.agents
    return bool(same) and any(lost & group and found & group for group in lexicon.EXCLUSIVE[:1])


def _is_diet(lying: Alignment) -> bool:
    """Whether one text tells what the person it is about eats or has, and the other that they do not: `vegetarian`."""
    if not lying.old.agents & lying.new.agents:
        return False
    said = lying.new if lying.old.verb == "be" else lying.old
    return said.verb in ("eat", "drink", "have") and are_only_incompatible(lying.old, lying.new)


@dataclass(slots=True)
class _Left:
    """What two texts say besides what they share, and the values of the new one that take the place of old ones."""

    lost: list[Term]
    found: list[Term]
    values: list[Term]


def _is_replaced(lying: Alignment) -> bool:
    """Whether every word of the new text is shared, or a value in the place of one of the old text."""
    gone = [match for match in lying.matches if is_named_gone(match, lying)]
    if lying.new.negations and not gone:
        return False
    left = _paired(lying, gone)
    if left.found or _says_more(left.lost, lying, named=bool(gone)) or "maybe" in lying.new.quantifiers:
        return False
    if not lying.new.changed and _dates(left.lost):
        return False  # what is so at another time is no change
    if not left.values and (left.lost or any(match.old.low in DAYTIMES for match in gone)):
        return False
    values = [value for value in left.values if not value.lexeme.forms & DAYTIMES]
    when = lying.new.changed > 0 and sorted(map(_shape, values)) == ["date", "time"]
    if not when and len([value for place, value in enumerate(values) if not _belongs(value, values[:place])]) > 1:
        return False  # two values that differ are another case, not a change
    same_part = any(is_name(value) for value in left.values) and not gone
    same_frame = not left.lost and _is_same_frame(lying)
    clauses = {value.clause for value in left.values}
    clauses |= {value.clause - 1 for value in left.values if _is_apposed(value, lying.new)}
    return has_anchor(lying, same_part=same_part, clauses=clauses) or _is_transition(lying) or same_frame


def _gave_way(lying: Alignment) -> bool:
    """Whether the new text names all that the old one says, and what took its place: `switched from biology to law`."""
    if lying.new.changed < 2 or not names_replaced(lying):
        return False
    lost = [term for term in content(lying.lost) if term.lexeme.key not in _HELD]
    found = [term for term in content(lying.found) if term.low not in DAYTIMES and term.lexeme.key != lying.old.verb]
    replaced = any(term.replaced for term in lying.new.terms)
    return not lost and all(
        term.prep in ("to", "into") or (replaced and (term.prep in ("with", "by") or term.subject)) for term in found
    )


def _is_moved(lying: Alignment) -> bool:
    """Whether a thing, that was in one place, is said to have been moved to another."""
    if not any(term.lexeme.forms & _MOVING for term in lying.new.terms):
        return False
    lost = [term for term in content(lying.lost) if term.lexeme.key != lying.old.verb]
    found = content(lying.found)
    things = [match for match in lying.matches if match.old.subject and match.new.subject]
    return (
        bool(lost and found)
        and all(term.prep in _PLACING and term.kind == "w" for term in lost)
        and all(term.prep in ("to", "into") and term.kind == "w" for term in found)
        and any(is_anchor(match, lying) and match.old.kind == "w" for match in things)
    )


def _is_parted(lying: Alignment) -> bool:
    """Whether the new text says of a couple, whom both texts name, that they are none any more."""
    apart = [*content(lying.lost), *content(lying.found)]
    named = any(match.old.kind == "n" for match in lying.matches)
    paired = any(term.lexeme.key in _COUPLE for term in lying.old.terms)
    return named and paired and lying.new.ended >= 0 and all(term.lexeme.key in _COUPLE for term in apart)


def _paired(lying: Alignment, gone: Sequence[Match]) -> _Left:
    """Pair the values; what is left of both texts without them and without mere frames."""
    lost, found = content(lying.lost), content(lying.found)
    values: list[Term] = []
    rivals: list[Term] = []
    for value in [term for term in found if term.low not in DAYTIMES]:
        rival = next((term for term in lost if _takes_place(term, value, lying)), None)
        if rival is not None and _counts_other(rival, lost, lying):
            rival = None
        if rival is not None:
            lost.remove(rival)
            rivals.append(rival)
        elif not any(is_name(match.old) == is_name(value) or lying.new.changed == 2 for match in gone):
            continue
        found.remove(value)
        values.append(value)
    if values and (lying.new.changed == 2 or (lying.new.changed and lying.new.past)):
        found = [term for term in found if term.prep not in _WHEN or not term.low.startswith(("day:", "month:", "at:"))]
    return _Left(
        [term for term in lost if not (_belongs(term, rivals) or _is_frame(term, lying.old))],
        [
            term
            for term in found
            if not (_belongs(term, values) or _is_frame(term, lying.new) or term.lexeme.forms & MEASURES)
        ],
        values,
    )


def _is_apposed(value: Term, told: Reading) -> bool:
    """Whether a name stands by itself behind what it names: `a new dentist, Dr Hahn`."""
    return all(is_name(term) for term in told.terms if term.clause == value.clause)


def _counts_other(value: Term, lost: Sequence[Term], lying: Alignment) -> bool:
    """Whether a number counts things that the new text does not name: `six engineers`."""
    after = lying.old.terms[value.place + 1] if value.place + 1 < len(lying.old.terms) else None
    counted = after is not None and after.kind == "w" and after.prep == value.prep and after.clause == value.clause
    return value.kind == "#" and not is_name(value) and counted and any(term is after for term in lost)


def _says_more(lost: Sequence[Term], lying: Alignment, *, named: bool) -> bool:
    """Whether the old text says something that a new value does not touch: another verb, name, number or subject."""
    verb = any(term.lexeme.key == lying.old.verb and term.lexeme.key not in _PLANNED for term in lost)
    if (verb and not named) or subjects(lost):
        return True
    if any(is_name(term) or (term.kind == "#" and ":" not in term.low) for term in lost):
        return True
    return sum(term.cost for term in lost) > _SPARE


def names_replaced(lying: Alignment) -> bool:
    """Whether the new text names the old value and says that another one took its place."""
    if lying.old.ended >= 0 or lying.old.past or not (lying.new.changed or lying.new.ended >= 0):
        return False
    return bool(content(lying.found)) and any(is_named_gone(match, lying) for match in lying.matches)


def _belongs(term: Term, values: Iterable[Term]) -> bool:
    """Whether a word is a further part of a value: `Le` of `Ursula Le Guin`."""
    return any(
        term.prep == value.prep and abs(term.place - value.place) <= 2 and is_name(value) and term.kind in "n#"
        for value in values
    )


def _is_frame(term: Term, told: Reading) -> bool:
    """Whether a word is the verb of its text, and says no more than what its object is for."""
    return term.lexeme.key == told.verb and bool(term.lexeme.forms & phrases.FRAME_VERBS)


def _is_same_frame(lying: Alignment) -> bool:
    """Whether both texts say the same of the same subject, but for the value."""
    same = lying.old.verb == lying.new.verb != ""
    return same and (lying.old.agents == lying.new.agents)


def _is_transition(lying: Alignment) -> bool:
    """Whether the new text tells how somebody came into another state of the kind that the old one names."""
    lows = {form for term in lying.new.terms for form in term.lexeme.forms}
    placed = any(term.prep and is_name(term) for term in lying.old.terms if not term.subject)
    return placed and any(lows & verbs and lying.old.verb in states for verbs, states in phrases.TRANSITIONS)


def _takes_place(old: Term, new: Term, lying: Alignment) -> bool:
    """Whether one word may be the value that another one was."""
    if is_name(old) and is_name(new):
        return (new.prep != "with" or old.prep in ("with", "by", "")) and _is_other_name(old, new, lying)
    if "#" in (old.kind, new.kind):
        timed = _shape(old) == "time" and new.prep == "to" and new.low.isdecimal() and int(new.low) <= _HOURS
        return old.kind == new.kind and (_shape(old) == _shape(new) or timed) and _is_measured_alike(old, new, lying)
    if ((old.subject or new.subject) and old.place + new.place) or old.lexeme.key == lying.old.verb:
        return False
    return _is_other_word(old, new, lying)


def _is_measured_alike(old: Term, new: Term, lying: Alignment) -> bool:
    """Whether two numbers have the same unit, or one of them none: not `6 percent` and `£49,000`."""
    one, other = _units(old, lying.old), _units(new, lying.new)
    return not (one and other) or bool(one & other)


def _units(value: Term, told: Reading) -> set[str]:
    beside = told.terms[max(value.place - 1, 0) : value.place + 2]
    return {term.lexeme.key for term in beside if term.lexeme.key in UNITS}


def _shape(value: Term) -> str:
    """Whether a number is a time of day, a date, or another one."""
    if value.low.startswith("at:") or (value.prep == "at" and value.low.isdecimal()):
        return "time"
    return "date" if value.low.startswith(("day:", "month:")) else "number"


def _is_other_name(old: Term, new: Term, lying: Alignment) -> bool:
    if old.prep == new.prep or (old.subject != new.subject and lying.old.verb == "be"):
        return True
    return lying.new.changed > 0 and ({old.prep, new.prep} <= _PLACING or new.prep in TO or old.kind == "#")


def _is_other_word(old: Term, new: Term, lying: Alignment) -> bool:
    """Whether two words are values of one slot, or two things of one kind that a word of change tells apart."""
    verbs = (lying.old.verb, lying.new.verb)
    if any(old.lexeme.key in group and new.lexeme.key in group for group in lexicon.EXCLUSIVE[:-2]):
        return True
    if lying.old.verb == "be" and old.prep == new.prep and _names_attribute(lying):
        return True
    if lying.new.changed and verbs == ("prefer", "prefer"):
        return True
    slots = {(verbs[0], old.prep), (verbs[1], new.prep)} <= lexicon.SLOTS
    if slots and not (is_name(old) or is_name(new)):
        return True
    kind = relation(old.low, new.low) in (Relation.SISTER, Relation.BROADER, Relation.NARROWER)
    return lying.new.changed == 2 and kind


def _names_attribute(lying: Alignment) -> bool:
    """Whether both texts are about the same thing of somebody's, and not about a person, who is many things."""
    return any(match.old.subject and match.new.subject and not is_person(match, lying) for match in lying.matches)


def _is_ended(lying: Alignment) -> bool:
    """Whether all that the new text ends is named in the old one."""
    old, new = lying.old, lying.new
    left = [
        term
        for term in content(lying.found)
        if not (term.kind == "#" and term.prep in _WHEN)
        and term.clause == new.ended
        and term.low not in FRAMES
        and term.lexeme.key != "requir"
    ]
    if left or subjects(lying.lost) or "maybe" in new.quantifiers or (_dates(lying.lost) and _dates(lying.found)):
        return False
    if "wish" in old.hedges and not content(lying.found):
        return all(term.lexeme.key == old.verb for term in content(lying.lost))
    if old.verb and any(term.lexeme.key == old.verb for term in lying.lost):
        said = {term.lexeme.key for term in new.terms}
        return all(old.verb in states for words, states in _ENDINGS if said & words)
    return True


def _dates(terms: Iterable[Term]) -> list[Term]:
    return [term for term in terms if term.low.startswith(("day:", "month:"))]


def _is_denied(lying: Alignment) -> bool:
    """Whether one text denies, in the same place, what the other says, and names nothing else."""
    return any(match.flipped and _is_denial(match, lying) for match in lying.matches)


def _is_denial(match: Match, lying: Alignment) -> bool:
    lost, found = content(lying.lost), content(lying.found)
    if match.old.subject != match.new.subject:
        return False
    if match.relation is Relation.OPPOSITE:
        return not lost and not found and match.old.cost >= CONTENT
    if match.old.denied:
        return is_anchor(match, lying) and not lost and len(found) <= 2 and not any(is_name(term) for term in found)
    return is_anchor(match, lying) and not found
