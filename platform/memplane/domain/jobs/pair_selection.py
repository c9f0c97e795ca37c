"""Which facts of a user are compared at night, and what may become of two of them: pure decisions."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import combinations, groupby
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memplane.domain.language.comparison.comparison import Bands, ComparisonVerdict, ParsedStatement, compare
from memplane.domain.language.terms import terms
from memplane.domain.memory.memory import Memory, weight
from memplane.domain.memory.write_decisions import MAX_SOURCES, said_at, says_more

RECENT = timedelta(hours=72)
"""What changed so lately is compared,"""
IMPORTANT = 3
"""and what is so important, and what is retrieved more often than nine tenths of it;"""
AGE = timedelta(days=90)
"""none of it when nothing changed it for longer."""
GLANCED = 5_000
"""The most facts of a user that are looked at, the latest, and"""
POOL = 1_000
"""the most of them that are compared."""
NEAREST = 10
"""With how many of the nearest by meaning each is,"""
RARE = 5
"""and with whom it shares a word that so few of its kind have."""
COMPARED = 1_000
"""Pairs, the likest, that are put before the rules."""
PAIRS = 50
"""Pairs of a user that are decided on within a day."""
REMEMBERED = timedelta(days=14)
"""So long a pair that was decided on is not compared again."""
DOUBTED = 0.3
"""The confidence that is left to what another memory overrules."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_USER = frozenset(terms("user").counts)
_TOP = 10
_Store = tuple[str, str, str, str]


class PairRelation(StrEnum):
    """What two memories are to each other."""

    SAME = "same"
    UPDATE = "update"
    CONTRADICTION = "contradiction"
    DIFFERENT = "different"
    UNSURE = "unsure"


_RULED: Mapping[ComparisonVerdict, PairRelation] = {
    ComparisonVerdict.SAME: PairRelation.SAME,
    ComparisonVerdict.UPDATED: PairRelation.UPDATE,
    ComparisonVerdict.CONTRADICTED: PairRelation.CONTRADICTION,
    ComparisonVerdict.RETRACTED: PairRelation.CONTRADICTION,
}


@dataclass(frozen=True, slots=True)
class Glance:
    """What decides whether a memory is compared."""

    id: UUID
    importance: int
    access_count: int
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class PairCandidate:
    """A memory that is compared, with its embedding, if it has one, and the hashes of its terms."""

    memory: Memory
    embedding: NDArray[np.float32] | None
    words: frozenset[int]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories of one user, category, type and store that may be the same, or of which one may be over.

    Attributes:
        earlier: what was said first.
        later: what was said after it.
        similarity: cosine of their embeddings.
        ruled: what they are to each other by the rules; ``None`` where these cannot tell.
        suspected: whether the rules suspect that they contradict each other, and cannot prove it.
        mergeable: whether somebody may hold them for the same: neither denies the other, and it is not that each
            names whom, or a number which, the other does not.
    """

    earlier: Memory
    later: Memory
    similarity: float
    ruled: PairRelation | None
    mergeable: bool
    suspected: bool = False

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the values of both, whichever was said first."""
        both = sorted((self.earlier.value_hash, self.later.value_hash))
        return hashlib.sha256("\x1f".join(both).encode()).hexdigest()

    @property
    def ids(self) -> frozenset[UUID]:
        """Of both."""
        return frozenset((self.earlier.id, self.later.id))

    @property
    def least_trust(self) -> int:
        """How far the less trusted of their writers is trusted."""
        return min(self.earlier.authority, self.later.authority)


@dataclass(frozen=True, slots=True)
class PairResolution:
    """What becomes of a pair: one memory stays, the other is superseded; merged, when both say the same."""

    kept: Memory
    gone: Memory
    merged: bool


def choose_memories(glances: Sequence[Glance], now: datetime) -> list[UUID]:
    """Which memories are compared: what changed lately first, then the most important, the latest of them first."""
    if not glances:
        return []
    counts = sorted((each.access_count for each in glances), reverse=True)
    often = max(counts[(len(counts) - 1) // _TOP], 1)
    wanted = [
        each for each in glances if _is_recent(each, now) or each.importance >= IMPORTANT or each.access_count >= often
    ]
    wanted.sort(key=lambda each: (_is_recent(each, now), each.importance, each.updated_at, each.id), reverse=True)
    return [each.id for each in wanted[:POOL]]


def _is_recent(glance: Glance, now: datetime) -> bool:
    return glance.updated_at >= now - RECENT


def choose_pairs(pool: Sequence[PairCandidate], bands: Bands, known: Collection[frozenset[UUID]] = ()) -> list[Pair]:
    """The pairs that may be the same, or of which one may be over: what the rules decide first, the likest first.

    Looked for among the nearest of each within its category, type and store, by meaning and by rare words: of many that
    are alike but for a name, the embedding cannot tell which two have the same. A pair must stand in the bands of its
    similarity, and share words, or differ in a number alone.

    Args:
        pool: the memories of one user.
        bands: of the embedding model.
        known: pairs that took each other's place once; somebody has brought back what is there of both.
    """
    near: list[tuple[float, float, PairCandidate, PairCandidate]] = []
    embedded = sorted((each for each in pool if each.embedding is not None), key=lambda each: _store(each.memory))
    for _, group in groupby(embedded, key=lambda each: _store(each.memory)):
        near += [(_shared(a, b) + cosine, cosine, a, b) for cosine, a, b in _nearest(list(group), bands.fallback)]
    likely = [
        (score, cosine, a.memory, b.memory)
        for score, cosine, a, b in near
        if (score - cosine >= bands.shared_min or is_step(a.memory.text.content, b.memory.text.content))
        and frozenset((a.memory.id, b.memory.id)) not in known
    ]
    likely.sort(key=lambda each: (-each[0], each[2].id, each[3].id))
    read: dict[UUID, ParsedStatement] = {}
    found = [_pair(a, b, cosine, bands, read) for _, cosine, a, b in likely[:COMPARED]]
    return sorted((each for each in found if each is not None), key=lambda each: each.ruled is None)


def _store(memory: Memory) -> _Store:
    return memory.category, memory.type.value, memory.visibility.value, memory.min_trust


def _nearest(group: Sequence[PairCandidate], least: float) -> Iterable[tuple[float, PairCandidate, PairCandidate]]:
    """Each with those of a group that are nearest to it, with their cosine; a pair once."""
    if len(group) < 2:
        return
    vectors = np.stack([each.embedding for each in group if each.embedding is not None])
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -2.0)
    most = min(NEAREST, len(group) - 1)
    places = np.argpartition(-cosines, most - 1, axis=1)[:, :most]
    pairs = {(min(a, b), max(a, b)) for a, row in enumerate(places.tolist()) for b in row} | _sharing(group)
    for a, b in sorted(pairs):
        if cosines[a, b] >= least:
            yield float(cosines[a, b]), group[a], group[b]


def _sharing(group: Sequence[PairCandidate]) -> set[tuple[int, int]]:
    """The places of those that share a word which few of a group have."""
    holders: defaultdict[int, list[int]] = defaultdict(list)
    for place, each in enumerate(group):
        for word in each.words:
            holders[word].append(place)
    return {pair for places in holders.values() if len(places) <= RARE for pair in combinations(places, 2)}


def _shared(a: PairCandidate, b: PairCandidate) -> float:
    """The share of common words (Jaccard), the user left out."""
    both = (a.words | b.words) - _USER
    return len((a.words & b.words) - _USER) / len(both) if both else 0.0


def is_step(a: str, b: str) -> bool:
    """Whether two texts are the same but for their numbers."""
    return a != b and _NUMBER.sub("#", a).casefold() == _NUMBER.sub("#", b).casefold()


def _pair(a: Memory, b: Memory, similarity: float, bands: Bands, read: dict[UUID, ParsedStatement]) -> Pair | None:
    """A pair as the rules have it; ``None`` when they hold both for unrelated."""
    earlier, later = sorted((a, b), key=lambda each: (said_at(each), each.id))
    old, new = (read.get(each.id) or ParsedStatement.of(each.text.content) for each in (earlier, later))
    read |= {earlier.id: old, later.id: new}
    verdict = compare(old, new, similarity, bands)
    if verdict is ComparisonVerdict.UNRELATED:
        return None
    mergeable = similarity >= bands.check and not _is_apart(old, new)
    return Pair(earlier, later, similarity, _RULED.get(verdict), mergeable, verdict is ComparisonVerdict.SUSPECTED)


def _is_apart(old: ParsedStatement, new: ParsedStatement) -> bool:
    """Whether one denies what the other says, or each has a name or a number of its own."""
    if old.negative != new.negative or old.ended != new.ended:
        return True
    return any(one - other and other - one for one, other in ((old.names, new.names), (old.values, new.values)))


def resolve_pair(pair: Pair, judgement: PairRelation, held: Collection[UUID]) -> PairResolution | None:
    """What becomes of a pair; ``None`` when both stay as they are.

    Nothing that a person stands behind gives way, and nothing gives way to what is trusted less.

    Args:
        pair: the two.
        judgement: what they are to each other.
        held: memories that are not overruled: what a person has pinned or decided on, and what states a field that
            changes by consent only.
    """
    if judgement is PairRelation.SAME:
        return _joined(pair, held)
    if judgement not in {PairRelation.UPDATE, PairRelation.CONTRADICTION}:
        return None
    old, new = pair.earlier, pair.later
    if old.id in held or weight(old) > new.authority or said_at(old) == said_at(new):
        return None
    return PairResolution(new, old, merged=False)


def _joined(pair: Pair, held: Collection[UUID]) -> PairResolution | None:
    """Which of two that say the same stays: what weighs more, is held, has a name, says more, was said first."""
    one, other = pair.earlier, pair.later

    def rank(memory: Memory, beside: Memory) -> tuple[int, bool, bool, bool]:
        return (
            weight(memory), memory.id in held, memory.external_id is not None, says_more(memory.text, beside.text),
        )  # fmt: skip

    kept, gone = (one, other) if rank(one, other) >= rank(other, one) else (other, one)
    ends = (kept.valid_until, kept.expires_at) == (gone.valid_until, gone.expires_at)
    if gone.id in held or gone.external_id is not None or says_more(gone.text, kept.text) or not ends:
        return None
    return PairResolution(kept, gone, merged=True)


def absorb(kept: Memory, gone: Memory, now: datetime) -> Memory:
    """A memory into which one that says the same is counted; what weighs is taken from a writer of no less trust."""
    both = replace(
        kept,
        mention_count=kept.mention_count + gone.mention_count,
        hits=kept.hits + gone.hits,
        last_hit_at=max(filter(None, (kept.last_hit_at, gone.last_hit_at)), default=None),
        source_ids=tuple(dict.fromkeys((*kept.source_ids, *gone.source_ids)))[:MAX_SOURCES],
        updated_at=now,
        version=kept.version + 1,
    )
    if gone.authority < kept.authority:
        return both
    latest, since = max(said_at(kept), said_at(gone)), kept.valid_from
    if since is not None and gone.valid_from is not None:
        since = min(since, gone.valid_from)
    begun = said_at(replace(kept, valid_from=since, asserted_at=None))
    return replace(
        both,
        valid_from=since,
        asserted_at=latest if latest > begun else kept.asserted_at,
        importance=max(kept.importance, gone.importance),
        reinforcement=max(kept.reinforcement, gone.reinforcement),
    )


def as_overruled(old: Memory) -> Memory:
    """A memory that another one overrules, with the little confidence that is left to it."""
    return replace(old, confidence=min(old.confidence, DOUBTED))
