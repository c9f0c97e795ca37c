"""Whether two texts that look like rivals may both hold: of one of several, with an exception, or of another period."""

import re
from collections.abc import Iterable

from memplane.domain.language.comparison import comparison_lexicon as lexicon
from memplane.domain.language.comparison.comparison_alignment import Alignment, Match
from memplane.domain.language.comparison.comparison_anchor import (
    CONTENT,
    DAYTIMES,
    FRAMES,
    MEASURES,
    UNITS,
    content,
    is_name,
    is_named_gone,
    subjects,
    words,
)
from memplane.domain.language.comparison.comparison_reading import Reading, Term
from memplane.domain.language.comparison.comparison_roles import OPINIONS
from memplane.domain.language.comparison.comparison_thesaurus import Relation, is_any_kind_of, is_kind_of
from memplane.domain.language.comparison.comparison_verdicts import ComparisonVerdict

_PART = re.compile(r"\b(?:one|some|two|three|half|most|part|many|few) of\b", re.IGNORECASE)
_PRESENT = re.compile(r"\b(?:is|are|has|have)\b")
_BY_TURNS = re.compile(r"\b(?:every (?:other|second)|alternate(?:s|ly)?|alternating|by turns)\b", re.IGNORECASE)
_TOOLS = words("browser compiler editor host handler")
"""Nouns of persons that more often name a program."""
_FIRST = words("only old young eldest oldest youngest elder younger first last late former current next previous")
"""Words by which one of several is told from the others."""
_OCCURRING = words("""
train bus tram ferry flight plane class lesson course exam examination test appointment visit trip journey ride call
interview session checkup check-up workshop seminar lecture training shift match game tour walk treatment
vacation holiday party
""")
"""Nouns of what happens more than once: another time is another occurrence."""
_PERIODS = words("daily weekly monthly quarterli yearly hourly nightly year month week day quarter")
_STREETS = words("street road lane avenue square alley court crescent terrace floor room")
_GIVING = words("teach giv give gave show send lend lent pay ow owe")
_SINGLE = lexicon.SINGLE_ROLES | lexicon.ATTRIBUTES | lexicon.UNIQUE
"""What one has one of."""
_YEAR = re.compile(r"(?:19|20)\d\d$")


def may_both_hold(lying: Alignment, verdict: ComparisonVerdict, old: str, new: str) -> bool:
    """Whether something lets both texts hold, although one looks like the end of the other.

    Args:
        lying: the two texts, aligned.
        verdict: what the rules suspect: updated, contradicted or retracted.
        old: the old text.
        new: the new text.
    """
    if _was_once(lying, old) or _PART.search(new) or (_BY_TURNS.search(old) and _BY_TURNS.search(new)):
        return True
    if _is_other_thing(lying, old.lower(), new.lower()) or _is_of_subject(lying) or _is_other_part(lying):
        return True
    if _is_one_of_several(lying) and not (verdict is ComparisonVerdict.RETRACTED and not content(lying.lost)):
        return True
    if verdict is ComparisonVerdict.UPDATED:
        return _is_occurrence(lying) or _is_other_period(lying) or _is_another_owned(lying) or _is_opinion(lying)
    return verdict is ComparisonVerdict.CONTRADICTED and (_is_exception(lying) or _is_special(lying, old, new))


def _was_once(lying: Alignment, old: str) -> bool:
    """Whether the old text tells of what was so once, and stays so: `studied in Graz`."""
    past = lying.old.past and not lying.old.changed and not _PRESENT.search(old)
    return past and (not lying.new.past or lying.new.changed > 0)


def _is_one_of_several(lying: Alignment) -> bool:
    """Whether both texts are about a person or animal of whom one may have several: `the user's friend`."""
    if any(is_named_gone(match, lying) for match in lying.matches) or "only" in (
        lying.old.quantifiers & lying.new.quantifiers
    ):
        return False
    # a role that is filled anew: `the user's supplier is now Good Energy`
    filled = lying.new.changed > 0 and lying.old.verb == lying.new.verb == "be"
    return any(
        match.old.subject
        and match.new.subject
        and _is_one_of_many(match.old, lying.old)
        and not (_is_singled_out(match, lying) or (filled and match.old.lexeme.key not in lexicon.PEOPLE))
        for match in lying.matches
    )


def _is_one_of_many(term: Term, told: Reading) -> bool:
    """Whether a word names a person or animal by what there may be several of: `the client`, `Ana's teammate`."""
    key, low = term.lexeme.key, term.low.partition("-in-")[0]
    if term.kind != "w" or low in _FIRST | _TOOLS or key in _SINGLE:
        return False
    if key in lexicon.PEOPLE:
        return True
    after = _after(term, told)
    owned = bool(term.owner) or (after is not None and after.prep == "of")
    person = is_kind_of(low, "person") and not is_any_kind_of(low, "artifact")
    return owned and low in term.lexeme.forms and (person or is_kind_of(low, "animal"))


def _is_singled_out(match: Match, lying: Alignment) -> bool:
    """Whether both texts say, by a name or a word like `eldest`, which one they are about."""
    for other in lying.matches:
        apart = {other.old.place - match.old.place, other.new.place - match.new.place}
        named = apart == {1} and other.old.kind == "n" and other.old.prep == match.old.prep
        if other.relation is Relation.EQUAL and (named or (apart == {-1} and other.old.low in _FIRST)):
            return True
    return False


def _is_of_subject(lying: Alignment) -> bool:
    """Whether one text is about somebody, and the other about somebody or something of theirs: `the user's guest`."""
    return any(
        term.kind == "w" and term.owner in other.agents - told.agents
        for terms, told, other in ((lying.lost, lying.old, lying.new), (lying.found, lying.new, lying.old))
        for term in subjects(terms)
    )


def _is_other_thing(lying: Alignment, old: str, new: str) -> bool:
    """Whether what one text names only describes what the other names: `olives`, `olive oil`."""
    for match in lying.matches:
        if match.old.kind == "w" and min(match.old.cost, match.new.cost) >= CONTENT:
            heads = [_head(match.old, lying.old, old), _head(match.new, lying.new, new)]
            if heads.count(None) == 1 and any(head in lying.lost or head in lying.found for head in heads):
                return True
    return False


def _head(term: Term, told: Reading, text: str) -> Term | None:
    """The noun right after a word, which the word only describes."""
    after = _after(term, told)
    if after is None or after.kind != "w" or after.cost < CONTENT or told.verb in (after.lexeme.key, term.lexeme.key):
        return None
    framing = FRAMES | UNITS | DAYTIMES | MEASURES | {"name"}
    if after.subject != term.subject or after.low in framing or after.lexeme.key in framing:
        return None
    return after if _stand_together(term, after, text) and is_any_kind_of(after.low, "entity") else None


def _stand_together(one: Term, other: Term, text: str) -> bool:
    return bool(re.search(rf"\b{re.escape(one.low)}[ -]{re.escape(other.low)}\b", text))


def _after(term: Term, told: Reading) -> Term | None:
    return told.terms[term.place + 1] if term.place + 1 < len(told.terms) else None


def _is_special(lying: Alignment, old: str, new: str) -> bool:
    """Whether one text names a special kind of what the other names: `coffee`, `decaf coffee`.

    What is denied in general is denied of each kind.
    """
    for terms, told, text in ((lying.lost, lying.old, old.lower()), (lying.found, lying.new, new.lower())):
        for term in terms if told is lying.new or not lying.new.negations else ():
            after = _after(term, told)
            plain = term.kind == "w" and term.cost >= CONTENT and term.lexeme.key != told.verb and not term.subject
            if plain and after is not None and after not in terms and _stand_together(term, after, text):
                return True
    return False


def _is_opinion(lying: Alignment) -> bool:
    """Whether the old text tells what somebody likes, knows or did once, and the new one does not: `loves Rome`."""
    verb = lying.old.verb
    return verb in OPINIONS - {"prefer"} and any(term.lexeme.key == verb for term in lying.lost)


def _is_other_part(lying: Alignment) -> bool:
    """Whether the subjects are told apart by a word beside them, or by a name under a preposition."""
    apart = [match for match in lying.matches if match.old.subject and match.new.subject]
    if any(match.relation is Relation.OPPOSITE or _is_led_apart(match) for match in apart):
        return True
    lost, found = ([t for t in terms if t.subject and (t.prep or t.kind == "#")] for terms in (lying.lost, lying.found))
    if any(is_name(a) == is_name(b) and a.prep == b.prep for a in lost for b in found):
        return True
    values = bool(content(lying.lost)) and bool(content(lying.found))
    return values and any(match.relation is Relation.OPPOSITE and match.old.prep for match in lying.matches)


def _is_led_apart(match: Match) -> bool:
    return {match.old.prep, match.new.prep} == {"from", "to"}


def _is_occurrence(lying: Alignment) -> bool:
    """Whether another time is another occurrence of what happens more than once, for want of a word of change."""
    if lying.new.changed or "next" in lying.new.hedges & lying.old.hedges:
        return False
    lost, found = _times(lying.lost), _times(lying.found)
    if not (lost and found):
        return False
    if any(_is_occurring(match.old, lying.old) for match in lying.matches):
        return True
    if any(match.old.subject and match.old.prep == "with" for match in lying.matches):
        return True
    deed = lying.old.agents & lying.new.agents and lying.old.verb not in ("be", "")
    dated = any(":" in term.low and not term.low.startswith("at:") for term in lost) or _years(lost)
    return bool(deed and (dated or lying.old.verb == "have")) and not lying.new.hedges


def _is_occurring(term: Term, told: Reading) -> bool:
    after = _after(term, told)
    describes = after is not None and after.kind == "w" and after.subject == term.subject and after.prep == term.prep
    return not describes and bool({term.low, *term.lexeme.forms} & _OCCURRING)


def _times(terms: Iterable[Term]) -> list[Term]:
    return [term for term in terms if term.kind == "#" and (":" in term.low or term.prep in ("at", "on", "in", "from"))]


def _years(terms: Iterable[Term]) -> set[str]:
    return {term.low for term in terms if term.kind == "#" and term.prep and _YEAR.match(term.low)}


def _is_other_period(lying: Alignment) -> bool:
    """Whether each text tells a number of a period of its own: `500 a month`, `100 a week`."""
    if not all(any(term.kind == "#" for term in terms) for terms in (lying.lost, lying.found)):
        return False
    one, other = _periods(lying.lost, lying.old), _periods(lying.found, lying.new)
    return bool(one and other)


def _periods(terms: Iterable[Term], told: Reading) -> set[str]:
    """The periods that words name, and that are no measure of a number, or the number that differs."""
    numbers = [term for term in terms if term.kind == "#"]
    found = {term.lexeme.key for term in terms if term.lexeme.key in _PERIODS and not _is_counted(term, told)}
    return found | (_years(numbers) if len(numbers) > 1 else set())


def _is_counted(term: Term, told: Reading) -> bool:
    before = told.terms[term.place - 1] if term.place else None
    return before is not None and before.kind == "#" and before.prep == term.prep and term.low in UNITS | {"years"}


def _is_another_owned(lying: Alignment) -> bool:
    """Whether somebody has, or gives, another one beside the one they had: `a new dog named Bella`."""
    old, new = lying.old, lying.new
    if any(is_named_gone(match, lying) for match in lying.matches):
        return False
    values = [term for term in lying.found if is_name(term) or term.kind == "#"]
    if old.verb == new.verb and old.verb in _GIVING and len(values) > 1:
        return True
    if any(term.low in _STREETS for term in lying.found) and not any(term.low in _STREETS for term in old.terms):
        return True
    having = old.verb == new.verb == "have" and any(is_name(term) for term in lying.found)
    return having and not any(match.old.lexeme.key in _SINGLE - {"name"} for match in lying.matches)


def _is_exception(lying: Alignment) -> bool:
    """Whether one text says when, where or with whom, and the other does not: `eats meat at Christmas`."""
    if lying.new.changed:
        return False
    return any(_qualifies(term) for term in (*lying.lost, *lying.found))


def _qualifies(term: Term) -> bool:
    if term.cost < CONTENT or term.subject:
        return False
    return bool(term.prep) or term.clause > 0 or ":" in term.low or term.low in DAYTIMES
