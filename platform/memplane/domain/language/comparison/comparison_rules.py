"""What a new sentence is to an old one by its bare words: the strict rules, tried first."""

from memplane.domain.language.comparison import comparison_lexicon as lexicon
from memplane.domain.language.comparison.comparison_parsing import ParsedStatement, Token
from memplane.domain.language.comparison.comparison_thesaurus import is_slip
from memplane.domain.language.comparison.comparison_verdicts import Bands, ComparisonVerdict

_USER = frozenset({"user"})
_NEW_VALUE_VERBS = frozenset({"be", ""})
_FEW = 24
"""Pairs of words up to which an opposite is looked for; with more, one would not decide."""


def verdict_of(old: ParsedStatement, new: ParsedStatement, similarity: float, bands: Bands) -> ComparisonVerdict | None:
    """The verdict that words give, if any."""
    gone, come = old.keys - new.keys, new.keys - old.keys
    if gone and come:
        gone, come, flipped = _opposed(old, new, gone, come)
    else:
        flipped = False
    opposite = (old.negative != new.negative) != flipped
    if opposite and gone | come <= lexicon.EMPHATIC:
        gone = come = frozenset()
    if not gone and not come:
        if similarity < bands.check:
            return None
        return _same_words(old, new, opposite=opposite)
    if _takes_back(old, new, come):
        return ComparisonVerdict.RETRACTED
    if opposite or old.ended != new.ended:
        general = new.negative and not come and _is_general(old, new, gone)
        return ComparisonVerdict.CONTRADICTED if general and opposite and similarity >= bands.check else None
    if similarity >= bands.update and _changed_value(old, new, gone, come):
        return ComparisonVerdict.UPDATED
    if similarity >= bands.auto and _misspelt(old, new, gone, come) and _fits(old, new):
        return ComparisonVerdict.SAME
    return None


def _same_words(old: ParsedStatement, new: ParsedStatement, *, opposite: bool) -> ComparisonVerdict | None:
    """Two texts of the same content words."""
    if old.directed != new.directed:
        traded = old.verb == new.verb == "prefer" and not opposite and len(old.keys) <= 4
        return ComparisonVerdict.UPDATED if traded else None
    if _turned(old, new) or _apart(old, new) or old.names - new.surfaces or new.names - old.surfaces:
        return None
    if old.ended != new.ended:
        return ComparisonVerdict.RETRACTED if new.ended else ComparisonVerdict.CONTRADICTED
    if opposite and old.surfaces != new.surfaces and old.verb == "be" and old.subject & lexicon.ATTRIBUTES:
        return ComparisonVerdict.UPDATED
    if opposite:
        return (
            ComparisonVerdict.RETRACTED
            if new.negative and old.verb == new.verb == "have"
            else ComparisonVerdict.CONTRADICTED
        )
    return ComparisonVerdict.SAME if _fits(old, new) else None


def _apart(old: ParsedStatement, new: ParsedStatement) -> bool:
    """Whether a word stands under prepositions of different meaning: `lives with`, `lives near`."""
    for key, token in old.tokens.items():
        other = new.tokens.get(key)
        if other is None or token.prep == other.prep or not (token.prep and other.prep):
            continue
        if token.prep not in lexicon.PLAIN or other.prep not in lexicon.PLAIN:
            return True
    return False


def _fits(old: ParsedStatement, new: ParsedStatement) -> bool:
    """Whether nothing but the wording differs: tense, necessity, possession."""
    if old.past != new.past or (old.modal != new.modal and "can" in (old.modal, new.modal)):
        return False
    if {old.verb, new.verb} == {"be", "have"}:
        return old.surfaces != new.surfaces
    return not _turned(old, new)


def _turned(old: ParsedStatement, new: ParsedStatement) -> bool:
    """Whether who does and what is done have changed places, or parallel parts are paired another way."""
    if (old.parts or new.parts) and (old.parts[1:] != new.parts[1:] or old.order != new.order):
        return True
    if old.order == new.order:
        return False
    if _named_order(old) != _named_order(new) and len(old.keys & lexicon.VERBS) > 1:
        return True
    rest_old, rest_new = old.keys - old.logical, new.keys - new.logical
    if not rest_old or not rest_new:
        return True
    if old.logical & rest_new and rest_old & new.logical:
        return old.verb != "be" or new.verb != "be"
    return len(old.order) != len(old.keys) or (len(old.values) > 1 and _paired(old) != _paired(new))


def _named_order(told: ParsedStatement) -> list[str]:
    """The names of those who do not act, in their order."""
    return [key for key in told.order if told.tokens[key].kind == "n" and key not in told.logical]


def _paired(told: ParsedStatement) -> frozenset[tuple[str, str]]:
    """Each value with the word after it: `3 apples and 4 pears`."""
    return frozenset(
        (key, after) for key, after in zip(told.order, (*told.order[1:], ""), strict=True) if key.isdecimal() and after
    )


def _opposed(
    old: ParsedStatement, new: ParsedStatement, gone: frozenset[str], come: frozenset[str]
) -> tuple[frozenset[str], frozenset[str], bool]:
    """What is left without a pair like `complete` and `incomplete`, and whether there was one."""
    if len(gone) * len(come) > _FEW:
        return gone, come, False
    for a in gone:
        for b in come:
            if _denies(old.tokens[a].surface, new.tokens[b].surface) and _is_said(old, a) and _is_said(new, b):
                return gone - {a}, come - {b}, True
    return gone, come, False


def _is_said(told: ParsedStatement, key: str) -> bool:
    """Whether a word is what the sentence says of its subject, and no attribute of another word."""
    return told.verb == key or (told.verb == "be" and not told.tokens[key].subject)


def _denies(a: str, b: str) -> bool:
    short, long = (a, b) if len(a) < len(b) else (b, a)
    return len(short) >= 3 and long.endswith(short) and long[: len(long) - len(short)] in lexicon.PREFIXES


def _takes_back(old: ParsedStatement, new: ParsedStatement, come: frozenset[str]) -> bool:
    """Whether the new text ends what the old one says, and puts nothing in its place."""
    if old.ended or old.negative:
        return False
    leaving = lexicon.LEAVING.get(new.verb)
    if leaving is not None and not new.tokens[new.verb].surface.endswith("ing"):
        states = old.verb in leaving or bool(leaving & old.keys)
        return states and old.subject == new.subject and come <= {new.verb} and len(new.keys - new.subject) > 1
    denied = new.negative and new.verb == "have" == old.verb
    if not (new.ended or denied) or new.negative == new.ended or come:
        return False
    if new.verb in ("be", "have") and new.verb != old.verb and old.verb not in new.keys and not _is_about(old, new):
        return False
    told = new.keys - new.subject
    if not told:
        owned = old.verb == "have" and old.head in new.subject and new.subject <= old.keys
        return owned or old.subject == new.subject
    if old.subject != new.subject and not new.subject <= old.keys:
        return False
    if not (old.head in new.keys or (old.verb in new.keys and told == {old.verb}) or old.names & new.keys):
        return False
    return old.names <= new.surfaces or not new.names


def _is_about(old: ParsedStatement, new: ParsedStatement) -> bool:
    """Whether both name the same role of the same persons: `is friends with`, `are friends`."""
    return new.verb == "be" and bool(old.names & new.surfaces)


def _is_general(old: ParsedStatement, new: ParsedStatement, gone: frozenset[str]) -> bool:
    """Whether the new text denies in general what the old one says of a case."""
    return len(gone) <= 1 and old.verb == new.verb and old.subject == new.subject and old.head in new.keys


def _changed_value(old: ParsedStatement, new: ParsedStatement, gone: frozenset[str], come: frozenset[str]) -> bool:
    """Whether the new text gives another value to an attribute that has one value at a time."""
    if (
        not come
        or (not gone and not new.changed)
        or old.subject != new.subject
        or old.directed_words != new.directed_words
    ):
        return False
    if gone & old.subject or come & new.subject:
        return False
    lost, found = [old.tokens[key] for key in gone], [new.tokens[key] for key in come]
    if new.changed:
        lost = [token for token in lost if token.key != old.verb]
    if _is_scalar(lost, found):
        return _one_at_a_time(old, new, lost, found)
    if old.past and not new.changed:
        return False
    if len(gone) == len(come) == 1 and any(gone <= group and come <= group for group in lexicon.EXCLUSIVE):
        placed = all(_is_placed(told, key) for told, keys in ((old, gone), (new, come)) for key in keys)
        return not new.recurring and (new.changed or placed)
    if _is_state(lost, found):
        return True
    return _slot_changed(old, new, lost, found)


def _is_placed(told: ParsedStatement, key: str) -> bool:
    """Whether a word is what the sentence is about, and no attribute of one among many."""
    return told.verb in ("be", key) or told.head == key or bool(told.tokens[key].prep)


def _is_state(lost: list[Token], found: list[Token]) -> bool:
    """Whether a state gives way to another of its kind, with or without a person: `single`, `married to Ann`."""
    before = {token.key for token in lost if token.kind == "w"}
    after = {token.key for token in found if token.kind == "w"}
    return len(before) == len(after) == 1 and any(before | after <= group for group in lexicon.EXCLUSIVE)


def _is_scalar(lost: list[Token], found: list[Token]) -> bool:
    return (
        0 < len(lost) <= 2
        and len(found) <= 2
        and all(token.kind == "#" for token in lost)
        and all(token.kind == "#" for token in found)
    )


def _shape(key: str) -> str:
    """What kind of value it is: a time, a day, a month, a number."""
    if key[:1].isdecimal() or key[:1] == "-":
        return "number"
    return key.split(":", 1)[0] if ":" in key else "code"


def _one_at_a_time(old: ParsedStatement, new: ParsedStatement, lost: list[Token], found: list[Token]) -> bool:
    """Whether another number, time or date replaces the old one, instead of standing beside it."""
    if old.past and not new.changed:
        return False
    if new.changed:
        return True
    if any(
        token.label and (told.verb, token.prep) not in lexicon.SLOTS for told, token in _each(old, new, lost, found)
    ):
        return old.verb == "be" and _is_attribute(old)
    if old.recurring or new.recurring:
        return all(_shape(token.key) in ("number", "at") for token in (*lost, *found))
    dated = any(_shape(token.key) in ("day", "month", "at") for token in lost)
    if dated and new.verb == "have":
        return False
    shapes = sorted(_shape(token.key) for token in lost)
    return shapes == sorted(_shape(token.key) for token in found) or "code" not in shapes


def _each(
    old: ParsedStatement, new: ParsedStatement, lost: list[Token], found: list[Token]
) -> list[tuple[ParsedStatement, Token]]:
    return [(old, token) for token in lost] + [(new, token) for token in found]


def _slot_changed(old: ParsedStatement, new: ParsedStatement, lost: list[Token], found: list[Token]) -> bool:
    """Whether the words that differ fill the same place, and that place takes one value."""
    if any(token.kind == "#" for token in (*lost, *found)) and not _is_attribute(old):
        return False
    content = [token for token in found if token.key != new.verb]
    rest = [token for token in lost if token.key != old.verb]
    if old.verb != new.verb:
        return new.changed and new.verb not in old.keys and _has_moved(old, rest, content)
    if not rest or not content or len({t.prep for t in rest}) > 1 or len({t.prep for t in content}) > 1:
        return False
    before, after = rest[0].prep, content[0].prep
    if new.changed and not old.changed:
        return before == after or (old.verb, before) in lexicon.SLOTS
    if old.verb in _NEW_VALUE_VERBS:
        return before == after and _attribute_changed(old, rest, content)
    if before == after == "name":
        return _is_role(old)
    as_its = old.verb == "use" and any(token.prep == "as" for token in old.tokens.values())
    alike = any(token.kind == "n" for token in rest) == any(token.kind == "n" for token in content)
    slots = alike and {(old.verb, before), (old.verb, after)} <= lexicon.SLOTS and not old.past
    return slots or (as_its and before == after == "")


def _has_moved(old: ParsedStatement, lost: list[Token], found: list[Token]) -> bool:
    """Whether `has moved to` and `switched to` name another place, or another thing that is used."""
    if not lost or old.verb not in lexicon.MOTION or not all(token.prep in ("to", "into") for token in found):
        return False
    placed = all(token.prep in ("in", "at", "on") for token in lost) or old.verb == "use"
    return placed and any(token.kind == "n" for token in lost) and any(token.kind == "n" for token in found)


def _attribute_changed(told: ParsedStatement, lost: list[Token], found: list[Token]) -> bool:
    """Whether two values are those of one attribute, or one thing; names are values of any attribute."""
    names = all(token.kind == "n" for token in (*lost, *found))
    if names and not lost[0].prep and _is_thing(told):
        return True
    plain = not (told.subject - _USER) & lexicon.PEOPLE or bool(told.subject & lexicon.UNIQUE)
    return _is_attribute(told) and (names or plain)


def _is_attribute(told: ParsedStatement) -> bool:
    """Whether the subject is an attribute, or a person's role that one person fills."""
    subject = told.subject
    return bool(subject & lexicon.UNIQUE or subject & lexicon.ATTRIBUTES or subject & lexicon.SINGLE_ROLES)


def _is_thing(told: ParsedStatement) -> bool:
    """Whether the subject is one thing of the user's: `the user's car`."""
    others = told.subject - _USER
    plural = any(told.tokens[key].plural for key in others)
    return len(others) < len(told.subject) and bool(others) and not plural and not others & lexicon.PEOPLE


def _is_role(told: ParsedStatement) -> bool:
    return bool((told.subject | told.keys) & lexicon.SINGLE_ROLES or told.subject & lexicon.UNIQUE)


def _misspelt(old: ParsedStatement, new: ParsedStatement, gone: frozenset[str], come: frozenset[str]) -> bool:
    """Whether the texts differ in one word alone, by a doubled letter or two letters that changed places."""
    if len(gone) != 1 or len(come) != 1:
        return False
    a, b = old.tokens[next(iter(gone))], new.tokens[next(iter(come))]
    if a.kind != "w" or b.kind != "w" or min(len(a.surface), len(b.surface)) < 5 or old.directed != new.directed:
        return False
    return old.negative == new.negative and (_slip(a.surface, b.surface) or is_slip(a.surface, b.surface))


def _slip(a: str, b: str) -> bool:
    if len(a) == len(b):
        spots = [place for place in range(len(a)) if a[place] != b[place]]
        return (
            len(spots) == 2 and spots[1] == spots[0] + 1 and a[spots[0]] == b[spots[1]] and a[spots[1]] == b[spots[0]]
        )
    short, long = sorted((a, b), key=len)
    return len(long) == len(short) + 1 and any(
        long[place] == long[place - 1] and long[:place] + long[place + 1 :] == short for place in range(1, len(long))
    )
