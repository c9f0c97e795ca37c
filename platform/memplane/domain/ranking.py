"""Ranking as pure functions over raw signals, so that every database ranks alike.

Arrays have one entry per unit (a memory or a turn) in scope unless said otherwise.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memplane.domain.policy import Bm25, FusionWeights, RankingMethod, RankingProfile

Floats = NDArray[np.float64]
NO_THREAD = 0
"""Thread key of a unit that has no neighbours."""


@dataclass(frozen=True, slots=True)
class Signals:
    """What a database says of every unit in scope for one query.

    Attributes:
        thread: 64-bit thread keys; ``NO_THREAD`` for units without neighbours.
        seq: place in the thread.
        length: terms in the unit.
        frequency: shape (units, query terms), occurrences of each query term.
        similarity: cosine with the query, NaN where the unit has no embedding; ``None`` without a query embedding.
        actor: whether the query names the unit's actor.
    """

    thread: NDArray[np.int64]
    seq: NDArray[np.int32]
    length: NDArray[np.int32]
    frequency: NDArray[np.float32]
    similarity: NDArray[np.float32] | None
    actor: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.thread)


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of every unit in scope, and the parts they were made of.

    Attributes:
        score: what the units are ranked by, before priors.
        lexical: contextual BM25, raw.
        lexical_scaled: BM25 divided by the best of the scope, 0…1.
        similarity: cosine with the query, 0 where there is none.
        similarity_context: cosine averaged over the unit and its neighbours.
        actor: 1.0 where the query names the actor.
    """

    score: Floats
    lexical: Floats
    lexical_scaled: Floats
    similarity: Floats
    similarity_context: Floats
    actor: Floats


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """Who stands next to whom: groups of (units, neighbours, weights) in which a unit stands at most once."""

    groups: tuple[tuple[NDArray[np.intp], NDArray[np.intp], Floats], ...]

    def spread(self, values: Floats) -> Floats:
        """Each unit's value plus the weighted values of its neighbours; ``values`` has shape (units, …)."""
        total = values.astype(np.float64, copy=True)
        for unit, other, weight in self.groups:
            total[unit] += (weight if values.ndim == 1 else weight[:, None]) * values[other]
        return total


def score(signals: Signals, profile: RankingProfile, model: str) -> Scored:
    """Score every unit by a profile.

    Args:
        signals: the raw signals of the scope.
        profile: from the policy.
        model: the embedding model's name, which chooses the weights.
    """
    neighbours = _neighbours(signals, profile.bm25)
    lexical = contextual_bm25(signals, profile.bm25, neighbours)
    best = float(lexical.max(initial=0.0))
    scaled = lexical / best if best > 0 else lexical
    similarity = np.zeros(len(signals)) if signals.similarity is None else np.nan_to_num(signals.similarity, nan=0.0)
    similarity = similarity.astype(np.float64)
    context = neighbours.spread(similarity) / neighbours.spread(np.ones(len(signals)))
    actor = signals.actor.astype(np.float64)
    parts = Scored(np.zeros(0), lexical, scaled, similarity, context, actor)
    return Scored(_fused(parts, profile, model), lexical, scaled, similarity, context, actor)


def _fused(parts: Scored, profile: RankingProfile, model: str) -> Floats:
    match profile.method:
        case RankingMethod.CALIBRATED:
            return calibrated(parts, profile.weights_for(model))
        case RankingMethod.RRF:
            return reciprocal_rank((parts.lexical, parts.similarity), profile.rrf_k)
        case RankingMethod.LEXICAL:
            return parts.lexical_scaled
        case RankingMethod.SEMANTIC:
            return parts.similarity


def calibrated(parts: Scored, weights: FusionWeights) -> Floats:
    """Weighted sum of scaled signals, divided by the sum of the weights, so that a score lies in about 0…1."""
    total = (
        weights.lexical * parts.lexical_scaled
        + weights.semantic * parts.similarity
        + weights.semantic_context * parts.similarity_context
        + weights.actor * parts.actor
    )
    return total / fusion_scale(weights)


def fusion_scale(weights: FusionWeights) -> float:
    """The sum of the fusion's signal weights."""
    return (weights.lexical + weights.semantic + weights.semantic_context + weights.actor) or 1.0


def reciprocal_rank(signals: tuple[Floats, ...], k: int) -> Floats:
    """Reciprocal rank fusion, Σ 1/(k + rank), over the units that a signal scores above zero (Cormack et al., 2009).

    Equals share the best of their ranks, so that no score depends on the order in which units were read.
    """
    total = np.zeros(len(signals[0]))
    for signal in signals:
        ranks = 1 + np.searchsorted(np.sort(-signal), -signal)
        total += np.where(signal > 0, 1.0 / (k + ranks), 0.0)
    return total


def contextual_bm25(signals: Signals, parameters: Bm25, neighbours: "_Neighbours | None" = None) -> Floats:
    """Okapi BM25 in which a unit also carries its neighbours' words, with falling weights.

    Rarity counts the units of this scope that hold a term themselves: idf = ln(1 + (N - df + 0.5)/(df + 0.5)).
    """
    if not len(signals) or not signals.frequency.shape[1]:
        return np.zeros(len(signals))
    near = neighbours or _neighbours(signals, parameters)
    frequency = near.spread(signals.frequency.astype(np.float64))
    length = near.spread(signals.length.astype(np.float64))
    found = (signals.frequency > 0).sum(axis=0)
    idf = np.log(1 + (len(signals) - found + 0.5) / (found + 0.5))
    mean = length.mean() or 1.0
    norm = parameters.k1 * (1 - parameters.b + parameters.b * length / mean)
    saturated = frequency * (parameters.k1 + 1) / (frequency + norm[:, None] + 1e-9)
    result: Floats = saturated @ idf
    return result


def _neighbours(signals: Signals, parameters: Bm25) -> _Neighbours:
    """Neighbours stand in the same thread, ``seq`` apart by as much as there are weights."""
    (threaded,) = np.nonzero(signals.thread != NO_THREAD)
    order = threaded[np.lexsort((signals.seq[threaded], signals.thread[threaded]))]
    thread, seq = signals.thread[order], signals.seq[order].astype(np.int64)
    groups = []
    for step in range(1, max(len(parameters.before), len(parameters.after)) + 1):
        gap = np.where(thread[step:] == thread[:-step], seq[step:] - seq[:-step], 0)
        for weights, later_takes in ((parameters.before, True), (parameters.after, False)):
            by_gap = np.array([0.0, *weights, 0.0])
            weight = by_gap[np.clip(gap, 0, len(by_gap) - 1)]
            (place,) = np.nonzero(weight)
            later, earlier = order[place + step], order[place]
            unit, other = (later, earlier) if later_takes else (earlier, later)
            groups.append((unit, other, weight[place]))
    return _Neighbours(tuple(groups))
