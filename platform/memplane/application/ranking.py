"""The best units for a question, with what their scores are made of."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memplane.application.ports import Reader
from memplane.application.records import Candidates, Query
from memplane.domain.fusion import RELATION, Asked, Scored, score
from memplane.domain.policy import RankingProfile
from memplane.domain.scope import Scope

MOST_EDGES = 1_000
FEW = 4_000
"""Units up to which handing them to another thread takes longer than scoring them."""


@dataclass(frozen=True, slots=True)
class By:
    """What is ranked by.

    Attributes:
        profile: from the policy.
        model: the embedding model's name.
        asked: what the question says beside its words.
        threshold: the least similarity of a unit, or without an embedding its least scaled text score.
    """

    profile: RankingProfile
    model: str
    asked: Asked
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """A unit's score, the parts that it was made of, and which of the question's words it matched."""

    id: UUID
    score: float
    parts: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best units, best first, and how many there were in scope."""

    standings: Sequence[Standing]
    candidates: int


def newest(ids: Sequence[UUID]) -> Ranking:
    """Units that are listed by time: their score is 1/(1 + place)."""
    standings = [Standing(each, 1.0 / (1 + place), {"newest": 1.0 / (1 + place)}) for place, each in enumerate(ids)]
    return Ranking(standings, len(standings))


async def rank(reader: Reader, scope: Scope, query: Query, by: By, limit: int) -> Ranking:
    """Score everything in scope; the best few then gain by their relations to others in scope."""
    candidates = await reader.candidates(scope, query)
    if len(candidates.ids) <= FEW:
        pool = _pool(candidates, query, by, limit)
    else:
        pool = await asyncio.to_thread(_pool, candidates, query, by, limit)
    weight = by.profile.relation
    if weight and pool:
        strongest = await _strongest(reader, scope, candidates, pool)
        pool = [_related(standing, strongest.get(standing.id, 0.0), weight) for standing in pool]
    pool.sort(key=lambda standing: (-standing.score, standing.id))
    return Ranking(pool, len(candidates.ids))


async def _strongest(
    reader: Reader, scope: Scope, candidates: Candidates, pool: Sequence[Standing]
) -> Mapping[UUID, float]:
    """Of each of the best units, its strongest relation to another one in scope."""
    edges = await reader.edges(scope, [standing.id for standing in pool], MOST_EDGES)
    there = candidates.ids.places(b"".join(other.bytes for _, other, _ in edges))
    found: dict[UUID, float] = {}
    for (of, _, strength), place in zip(edges, there.tolist(), strict=True):  # the strongest come first
        if place >= 0:
            found.setdefault(of, strength)
    return found


def _pool(candidates: Candidates, query: Query, by: By, limit: int) -> list[Standing]:
    """The best units by their signals, in no order."""
    signals = candidates.signals
    scored = score(signals, by.profile, by.model, by.asked)
    best = scored.best(limit, _reaching(scored, query, by.threshold))
    by_hash = [query.terms.stems[term] for term in sorted(query.terms.stems)]
    standings = []
    for place, holds in zip(best.tolist(), signals.matched(best), strict=True):
        parts: dict[str, object] = {**scored.explained(place)}
        parts["matched"] = [stem for stem, held in zip(by_hash, holds, strict=True) if held]
        standings.append(Standing(candidates.ids[place], float(scored.score[place]), parts))
    return standings


def _reaching(scored: Scored, query: Query, threshold: float | None) -> NDArray[np.bool_] | None:
    """Which units reach the threshold by their own similarity, or by the scaled text score without an embedding."""
    if threshold is None or not query.words:
        return None
    reached: NDArray[np.bool_] = (
        scored.parts["lexical_scaled" if query.embedding is None else "similarity"] >= threshold
    )
    return reached


def _related(standing: Standing, strength: float, weight: float) -> Standing:
    return Standing(standing.id, standing.score + weight * strength, {**standing.parts, RELATION: strength})
