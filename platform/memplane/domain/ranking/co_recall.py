"""Memories that are recalled together again and again: what is counted of answers, and how strongly it links.

What fires together wires together (Hebb, The Organization of Behavior, 1949), within bounds: what comes with everything
is near to nothing, and what is no longer recalled together is forgotten.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import combinations
from math import sqrt
from uuid import UUID

CO_RECALLED = "co_recalled"
"""The kind of the relation, which says the same both ways: it leads from the newer memory to the older."""
FIRST = 3
"""Of so many memories of an answer, the best, each two are counted."""
APART = timedelta(hours=1)
"""Two answers that are nearer to each other count once: to ask the same over and over says nothing more."""
LEAST = 3
"""Two that were recalled together less often are not linked; as many as weigh half."""
HALF_LIFE = timedelta(days=30)
FORGOTTEN = timedelta(days=90)
"""What was not recalled together for so long is no longer counted."""
PASSING = timedelta(days=14)
"""The same for what was never recalled together often enough."""
MOST_LINKS = 5
"""Links of one memory that count, the strongest."""
MOST_PAIRS = 2_000
"""Pairs of one user that are kept, the strongest and then the latest."""
_DIGITS = 2


def pairs_of(recalled: Sequence[UUID]) -> list[tuple[UUID, UUID]]:
    """The pairs that count of an answer's memories, best first: each the newer one first, for ids follow time."""
    best = list(dict.fromkeys(recalled))[:FIRST]
    return [(max(pair), min(pair)) for pair in combinations(best, 2)]


@dataclass(frozen=True, slots=True)
class CoRecallCount:
    """Two memories that were recalled together.

    Attributes:
        id: of the relation.
        user_id: whose they are.
        from_id: the one.
        to_id: the other.
        strength: of the relation as it is, 0…1; at 0 it is only counted.
        times: how often, at moments that are apart.
        last: when last.
    """

    id: UUID
    user_id: str
    from_id: UUID
    to_id: UUID
    strength: float
    times: int
    last: datetime


@dataclass(frozen=True, slots=True)
class CoRecallLinks:
    """What becomes of a user's pairs.

    Attributes:
        changed: new strengths by the relations' ids, of those whose strength is another.
        forgotten: relations that go.
    """

    changed: dict[UUID, float] = field(default_factory=dict)
    forgotten: tuple[UUID, ...] = ()


def co_recall_links(pairs: Sequence[CoRecallCount], as_of: datetime) -> CoRecallLinks:
    """What becomes of all of a user's pairs; the same whenever it is asked again with the same counts and moment.

    With c the times that two were recalled together, halved for every 30 days since the last one, and d the sum of c
    over all that a memory was recalled with, the strength is ``c / sqrt(d₁ · d₂) · c / (c + 3)``: the coefficient of
    Ochiai (1957), by which what comes with everything is linked with nothing, less what few counts may owe to chance.
    """
    living = [each for each in pairs if not _is_over(each, as_of)]
    weights = {each.id: _weight(each, as_of) for each in living}
    together: defaultdict[UUID, float] = defaultdict(float)
    for each in living:
        for end in (each.from_id, each.to_id):
            together[end] += weights[each.id]
    raw = {each.id: _strength(each, weights[each.id], together) for each in living}
    ordered = sorted(living, key=lambda each: (raw[each.id], each.last, each.id), reverse=True)
    links: defaultdict[UUID, int] = defaultdict(int)
    changed: dict[UUID, float] = {}
    for each in ordered[:MOST_PAIRS]:
        ends = (each.from_id, each.to_id)
        strength = raw[each.id] if all(links[end] < MOST_LINKS for end in ends) else 0.0
        if strength:
            for end in ends:
                links[end] += 1
        if strength != each.strength:
            changed[each.id] = strength
    kept = {each.id for each in ordered[:MOST_PAIRS]}
    return CoRecallLinks(changed, tuple(each.id for each in pairs if each.id not in kept))


def _is_over(pair: CoRecallCount, as_of: datetime) -> bool:
    return pair.last <= as_of - (FORGOTTEN if pair.times >= LEAST else PASSING)


def _weight(pair: CoRecallCount, as_of: datetime) -> float:
    return float(pair.times * 0.5 ** (max(as_of - pair.last, timedelta(0)) / HALF_LIFE))


def _strength(pair: CoRecallCount, weight: float, together: dict[UUID, float]) -> float:
    if pair.times < LEAST:
        return 0.0
    near = weight / sqrt(together[pair.from_id] * together[pair.to_id])
    return round(near * weight / (weight + LEAST), _DIGITS)
