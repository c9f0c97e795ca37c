"""Which content words of two sentences mean the same, and what each says that the other does not."""

from dataclasses import dataclass
from itertools import pairwise

from memplane.domain.language.comparison.comparison_forms import ABBREVIATIONS
from memplane.domain.language.comparison.comparison_reading import Reading, Term
from memplane.domain.language.comparison.comparison_synonyms import CANONICAL
from memplane.domain.language.comparison.comparison_thesaurus import Relation, is_abbreviation, relation

MAX_TRIED = 48
"""Pairs of words up to which texts are looked at for words of one meaning; with more they are too unlike."""
_TWIN = (Relation.EQUAL, Relation.DERIVED, Relation.LISTED, Relation.SYNONYM)
_COST = {
    Relation.DERIVED: 0.08,
    Relation.SYNONYM: 0.12,
    Relation.LISTED: 0.12,
    Relation.BROADER: 2.0,
    Relation.NARROWER: 2.0,
}


@dataclass(slots=True)
class Match:
    """Two terms that mean the same, or opposites."""

    old: Term
    new: Term
    relation: Relation

    @property
    def flipped(self) -> bool:
        """Whether one is denied and the other is not."""
        return (self.old.denied != self.new.denied) != (self.relation is Relation.OPPOSITE)


@dataclass(slots=True)
class Alignment:
    """How two readings lie on each other.

    Attributes:
        old: the old reading.
        new: the new reading.
        matches: terms that mean the same, or opposites.
        lost: terms of the old text alone.
        found: terms of the new text alone.
        cost: what the loose matches cost.
    """

    old: Reading
    new: Reading
    matches: list[Match]
    lost: list[Term]
    found: list[Term]
    cost: float

    @property
    def shared(self) -> float:
        """The weight of what both say."""
        return sum(max(match.old.cost, match.new.cost) for match in self.matches)

    @property
    def residue(self) -> float:
        """What unmatched words cost, and matched ones that are not the same."""
        return self.cost + sum(term.cost for term in self.lost) + sum(term.cost for term in self.found)


def align(old: Reading, new: Reading) -> Alignment:
    """Match each term with the closest of the other text: the same word, else the same meaning, else an opposite."""
    lost, found = list(old.terms), list(new.terms)
    matches: list[Match] = []
    lost = _equal(lost, found, matches)
    lost, found = _joined(lost, found, matches)
    if len(lost) * len(found) <= MAX_TRIED:
        close = {id(term): _close(term, found) for term in lost}
        for kind in range(3):
            lost = [term for term in lost if not _take(term, close[id(term)][kind], found, matches)]
    cost = sum(_COST.get(match.relation, 0.0) for match in matches)
    return Alignment(old, new, matches, lost, found, cost)


def _equal(lost: list[Term], found: list[Term], matches: list[Match]) -> list[Term]:
    """Match the same words; what is left of the old text."""
    by_word: dict[str, list[Term]] = {}
    for term in found:
        by_word.setdefault(term.low, []).append(term)
        if term.kind == "w" and term.lexeme.key != term.low:
            by_word.setdefault(term.lexeme.key, []).append(term)
    left, taken = [], set()
    for term in lost:
        near = by_word.get(term.low, ())
        if term.kind == "w":
            near = [*near, *(other for other in by_word.get(term.lexeme.key, ()) if other.kind == "w")]
        elif not near and term.kind == "#":
            near = [other for other in found if other.kind == "#" and _same_value(term.low, other.low)]
        near = [other for other in near if id(other) not in taken]
        if near:
            best = min(near, key=lambda other: abs(term.place - other.place) + 2 * (term.denied != other.denied))
            taken.add(id(best))
            matches.append(Match(term, best, Relation.EQUAL))
        else:
            left.append(term)
    found[:] = [term for term in found if id(term) not in taken]
    return left


_Near = list[tuple[Term, Relation]]


def _close(term: Term, found: list[Term]) -> tuple[_Near, _Near, _Near]:
    """Words of the same meaning, opposites, and the wider or narrower thing where one of both is denied."""
    same: _Near = []
    opposite: _Near = []
    part: _Near = []
    plain = term.kind == "w"
    for other in found:
        if not plain or other.kind != "w":
            if close := _same_name(term, other):
                same.append((other, close))
            continue
        close = relation(term.low, other.low)
        if close is Relation.NONE:
            continue
        if close in _TWIN:
            same.append((other, close))
        elif close is Relation.OPPOSITE:
            opposite.append((other, close))
        elif term.denied != other.denied and close is (Relation.BROADER if term.denied else Relation.NARROWER):
            part.append((other, close))
    return same, opposite, part


def _take(term: Term, near: _Near, found: list[Term], matches: list[Match]) -> bool:
    """Match a term with the closest of those near it that are not taken."""
    best: tuple[int, int, Term, Relation] | None = None
    for other, close in near:
        if other in found:
            rank = (int(close), -abs(term.place - other.place) - 2 * (term.denied != other.denied))
            if best is None or rank > best[:2]:
                best = (*rank, other, close)
    if best is None:
        return False
    found.remove(best[2])
    matches.append(Match(term, best[2], best[3]))
    return True


def _same_name(a: Term, b: Term) -> Relation:
    """Whether a name, or a number, is the same as another word."""
    if a.kind == "#" or b.kind == "#":
        return Relation.NONE
    if "n" in (a.kind, b.kind) and not (_opens(a, b) and a.lexeme.forms and b.lexeme.forms):
        same = _canonical(a) == _canonical(b)
        short = a.kind != b.kind and (is_abbreviation(a.low, b.low) or _stands_for(a, b))
        return Relation.EQUAL if same else Relation.SYNONYM if short else Relation.NONE
    close = relation(a.low, b.low)
    return close if close in _TWIN else Relation.NONE


def _stands_for(a: Term, b: Term) -> bool:
    """Whether one of two words is listed as short for the other: `RAM`, `memory`."""
    return a.lexeme.key == b.lexeme.key and (a.low in ABBREVIATIONS or b.low in ABBREVIATIONS)


def _canonical(term: Term) -> str:
    """What a word or name is compared by; of a name no ending is taken off."""
    return term.lexeme.key if term.kind == "w" else CANONICAL.get(term.low, term.low)


def _opens(a: Term, b: Term) -> bool:
    """Whether one of two words opens its sentence, where a capital does not make a name."""
    return a.place == 0 or b.place == 0


def _same_value(a: str, b: str) -> bool:
    """Whether two numbers or times are one: `10` and `10:00`, `40.0` and `40`."""
    if a.startswith("at:") or b.startswith("at:"):
        times = [one[3:] if one.startswith("at:") else f"{one}:00" for one in (a, b)]
        if a.startswith("at:") and b.startswith("at:"):
            return False
        hours = [one.split(":") for one in times]
        return (
            hours[0][1] == hours[1][1]
            and hours[0][0].isdecimal()
            and hours[1][0].isdecimal()
            and int(hours[0][0]) % 12 == int(hours[1][0]) % 12
        )
    return False


def _joined(lost: list[Term], found: list[Term], matches: list[Match]) -> tuple[list[Term], list[Term]]:
    """Match words written in one with words written apart, and initials with what they stand for."""
    for one, other, turned in ((lost, found, False), (found, lost, True)):
        whole_words = {term.low: term for term in other}
        for a, b in pairwise(list(one)):
            if b.place != a.place + 1:
                continue
            whole = next((whole_words[spelt] for spelt in _together(a, b) if spelt in whole_words), None)
            if whole is not None and whole in other and a in one and b in one:
                _settle((a, b), whole, one, other, matches, turned=turned)
    for one, other, turned in ((lost, found, False), (found, lost, True)):
        for short in list(other):
            if 2 <= len(short.low) <= 5 and short.low.isalpha():
                run = _initialled(short.low, one)
                if run:
                    _settle(run, short, one, other, matches, turned=turned)
    return lost, found


def _together(a: Term, b: Term) -> set[str]:
    """Two words written as one: `flower pot`, `broke down`."""
    return {first + b.low for first in (a.low, *a.lexeme.forms)}


def _initialled(short: str, terms: list[Term]) -> tuple[Term, ...]:
    for start in range(len(terms) - len(short) + 1):
        if terms[start].low[:1] != short[0]:
            continue
        run = terms[start : start + len(short)]
        if run[-1].place - run[0].place == len(short) - 1 and all(
            term.low.startswith(letter) for term, letter in zip(run, short, strict=True)
        ):
            return tuple(run)
    return ()


def _settle(
    parts: tuple[Term, ...], whole: Term, one: list[Term], other: list[Term], matches: list[Match], *, turned: bool
) -> None:
    for part in parts:
        one.remove(part)
    other.remove(whole)
    for part in parts:
        pair = (whole, part) if turned else (part, whole)
        matches.append(Match(*pair, Relation.EQUAL))
