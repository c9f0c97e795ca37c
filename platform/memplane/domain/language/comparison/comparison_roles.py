"""Whether two aligned sentences speak of the same persons in the same parts."""

from memplane.domain.language.comparison import comparison_lexicon as lexicon
from memplane.domain.language.comparison.comparison_alignment import Alignment, Match
from memplane.domain.language.comparison.comparison_reading import Reading, Term

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
_AFTER_BE = frozenset({"of", "with", "about", "to", "by", "in", "on", "at", "for"})
_SPANS = frozenset({"for", "after", "in", "within"})
_LEADING = frozenset({"to", "on", "for", "at"})
_LEADING_ON = frozenset({"be", "have", "", "need", "plan", "go", "pay", "try", "request"})
"""Verbs whose object may stand under a preposition as well as bare."""
_ENDS = frozenset({"on", "in", "at", "until", "by", "to"})
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
    if has_other_owner(lying):
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
    if lying.new.changed and any(match.old.subject and match.new.subject for match in lying.matches):
        return False
    return bool(lost) and bool(found)


def _matched(low: str, lying: Alignment) -> bool:
    return any(low in (match.old.low, match.new.low) for match in lying.matches)


def _is_apposed(term: Term, told: Reading) -> bool:
    """Whether a name follows a person's word at once: `the user's cousin Milan`."""
    after = told.terms[term.place + 1] if term.place + 1 < len(told.terms) else None
    return after is not None and after.kind == "n" and after.prep == term.prep


def has_other_owner(lying: Alignment) -> bool:
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
        if len(preps) == 2 and _tells_apart(match, preps):
            return True
        if len(preps) == 2 and "" not in preps and (preps & _PLACING or (match.old.kind == "n" and preps & _BESIDE)):
            return True
    if _is_undergone(lying) or _is_bare_object(lying) or _is_feared(lying):
        return True
    if _is_told_of_doer(lying) or _are_ranked_apart(lying) or _are_focused_apart(lying):
        return True
    if _is_symmetric(lying.old) or _is_symmetric(lying.new):
        return False
    if _is_done_for(lying):
        return True
    return _agents_cross(lying) or _clauses_cross(lying) or _values_cross(lying) or _subjects_cross(lying)


def _tells_apart(match: Match, preps: set[str]) -> bool:
    """Whether two prepositions give a time, or a name, another part: `from`, `until`; `to`, `for`."""
    if match.old.kind == "#":
        return bool(("from" in preps and preps & _ENDS) or ("every" in preps and preps & _SPANS))
    return match.old.kind == "n" and preps in ({"to", "for"}, {"for", "by"})


def _is_undergone(lying: Alignment) -> bool:
    """Whether somebody does in one text what is done to them in the other: `pays`, `is paid`."""
    if not lying.old.agents & lying.new.agents or _is_symmetric(lying.old):
        return False
    for match in lying.matches:
        if match.old.undergone != match.new.undergone:
            passive = lying.old if match.old.undergone else lying.new
            named = [term for term in passive.terms if term.subject or term.prep == "by"]
            if any(term.subject != (term.low in passive.agents) for term in named):
                return False
            active, told = (match.new, lying.new) if match.old.undergone else (match.old, lying.old)
            after = _after(active, told)
            if active.prep == "to" or (after is not None and after.prep == "" and after.kind != "#"):
                return True
    return False


def _is_bare_object(lying: Alignment) -> bool:
    """Whether what a verb is done to in one text is where it leads in the other: `heads it`, `heads to it`."""
    if lying.old.verb != lying.new.verb or lying.old.verb in OPINIONS or lying.old.verb in _LEADING_ON:
        return False
    for match in lying.matches:
        if match.old.lexeme.key == lying.old.verb and match.new.lexeme.key == lying.new.verb:
            one, other = _after(match.old, lying.old), _after(match.new, lying.new)
            if (
                one is None
                or other is None
                or "" not in (one.prep, other.prep)
                or len({one.prep, other.prep} & _LEADING) != 1
            ):
                return False
            return any(pair.old is one and pair.new is other for pair in lying.matches)
    return False


def _is_feared(lying: Alignment) -> bool:
    """Whether, after `is`, the subject and what stands under a preposition have changed places: `afraid of the cat`."""
    if not lying.old.verb == lying.new.verb == "be" or _is_symmetric(lying.old):
        return False
    turned = [
        match
        for match in lying.matches
        if match.old.subject != match.new.subject
        and match.old.kind != "#"
        and _is_bare(match)
        and (match.new if match.old.subject else match.old).prep in _AFTER_BE
    ]
    return any(match.old.subject for match in turned) and any(match.new.subject for match in turned)


def _is_told_of_doer(lying: Alignment) -> bool:
    """Whether what one text says is done, the other says of somebody's doer of it: `trains`, `the user's trainer`."""
    for match in lying.matches:
        for verb, doer, told in ((match.old, match.new, lying.old), (match.new, match.old, lying.new)):
            named = doer.low.removesuffix("s").endswith(("er", "or")) and doer.owner and doer.subject
            if named and verb.lexeme.key == told.verb and not verb.low.removesuffix("s").endswith(("er", "or")):
                return True
    return False


def _are_ranked_apart(lying: Alignment) -> bool:
    """Whether a number counts in one text and tells a place in the other: `second floor`, `two floors`."""
    for match in lying.matches:
        one, other = match.old, match.new
        if one.kind != "#" or other.kind != "#" or not (one.rank or other.rank):
            continue
        if one.rank != other.rank:
            if not (one.label or other.label or _is_numbered(lying, one, other)):
                return True
        elif _are_other_pairs(_after(one, lying.old), _after(other, lying.new), lying):
            return True
    return False


def _is_numbered(lying: Alignment, old: Term, new: Term) -> bool:
    """Whether what one text gives a place in a row, the other numbers: `fourth grade`, `grade 4`."""
    if old.rank:
        noun, numbered = _after(old, lying.old), lying.new.terms[new.place - 1] if new.place else None
        return any(match.old is noun and match.new is numbered for match in lying.matches)
    noun, numbered = _after(new, lying.new), lying.old.terms[old.place - 1] if old.place else None
    return any(match.new is noun and match.old is numbered for match in lying.matches)


def _after(term: Term, told: Reading) -> Term | None:
    return told.terms[term.place + 1] if term.place + 1 < len(told.terms) else None


def _are_other_pairs(one: Term | None, other: Term | None, lying: Alignment) -> bool:
    """Whether two words are each matched with another word than the other of the two."""
    if one is None or other is None:
        return False
    return any(match.old is one and match.new is not other for match in lying.matches) and any(
        match.new is other and match.old is not one for match in lying.matches
    )


def _are_focused_apart(lying: Alignment) -> bool:
    """Whether `only` or `every` is said of different things: `only admins delete users`, `admins delete only users`."""
    old, new = lying.old, lying.new
    if old.focus < 0 or new.focus < 0:
        return False
    if old.focus >= len(old.terms) or new.focus >= len(new.terms):
        return (old.focus < len(old.terms)) != (new.focus < len(new.terms))
    one, other = old.terms[old.focus], new.terms[new.focus]
    if one.lexeme.key == old.verb or other.lexeme.key == new.verb:
        return False
    return _are_other_pairs(one, other, lying)


def _is_done_for(lying: Alignment) -> bool:
    """Whether who does it in one text is in the other, a passive one, whom it is done for."""
    if lying.old.verb != lying.new.verb or lying.old.passive == lying.new.passive:
        return False
    for match in lying.matches:
        for doer, other, told in ((match.old, match.new, lying.old), (match.new, match.old, lying.new)):
            if doer.low in told.agents and not told.passive and other.prep in ("for", "to", "about", "with"):
                return True
    return False


def is_turned_round(lying: Alignment) -> bool:
    """Whether one text leads from where the other leads to: a journey out, and another one back."""
    turned = [match for match in lying.matches if {match.old.prep, match.new.prep} == {"from", "to"}]
    return len(turned) > 1 and all(match.old.kind == "n" for match in turned)


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
    naming = old.verb == "name" and not any(term.low == "calls" for term in old.terms)
    moved = [match for match in lying.matches if match.old.subject != match.new.subject and _is_bare(match)]
    misread = {old.verb, new.verb} <= {match.old.lexeme.key for match in moved}
    if old.verb != new.verb and not misread:
        return False
    if old.verb in ("be", "have", "") or naming or old.passive != new.passive:
        return False
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
