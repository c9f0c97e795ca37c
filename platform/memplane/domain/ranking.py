"""Ranking as pure functions over raw signals, so that every database ranks alike.

Arrays have one entry per unit (a memory or a turn) in scope unless said otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memplane.domain.policy import Bm25, FusionWeights, RankingMethod, RankingProfile
from memplane.domain.surroundings import Floats, Places, Surroundings

Posting = tuple[Places, Floats]
"""The units that hold a term, each once, and how often."""


@dataclass(frozen=True, slots=True)
class Signals:
    """What a database says of every unit in scope for one query.

    Attributes:
        surroundings: the units, in thread order.
        postings: one for each query term.
        similarity: cosine with the query, NaN where the unit has no embedding; ``None`` without a query embedding.
        actor: whether the query names the unit's actor.
    """

    surroundings: Surroundings
    postings: Sequence[Posting]
    similarity: NDArray[np.float32] | None
    actor: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.surroundings)

    def matched(self, units: Places) -> NDArray[np.bool_]:
        """Which query terms stand in which of some units: shape (units, terms)."""
        found = np.zeros((len(units), len(self.postings)), dtype=np.bool_)
        for column, (places, _) in enumerate(self.postings):
            holds = np.zeros(len(self), dtype=np.bool_)
            holds[places] = True
            found[:, column] = holds[units]
        return found


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


def score(signals: Signals, profile: RankingProfile, model: str) -> Scored:
    """Score every unit by a profile.

    Args:
        signals: the raw signals of the scope.
        profile: from the policy.
        model: the embedding model's name, which chooses the weights.
    """
    lexical = contextual_bm25(signals, profile.bm25)
    best = float(lexical.max(initial=0.0))
    scaled = lexical / best if best > 0 else lexical
    similarity = np.zeros(len(signals)) if signals.similarity is None else np.nan_to_num(signals.similarity, nan=0.0)
    similarity = similarity.astype(np.float64)
    near = signals.surroundings
    context = near.spread(similarity, profile.bm25) / near.shares(profile.bm25)
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


def contextual_bm25(signals: Signals, parameters: Bm25) -> Floats:
    """Okapi BM25 in which a unit also carries its neighbours' words, with falling weights.

    Rarity counts the units of this scope that hold a term themselves: idf = ln(1 + (N - df + 0.5)/(df + 0.5)).
    """
    held = [posting for posting in signals.postings if len(posting[0])]
    total = np.zeros(len(signals))
    if not held:
        return total
    units, counts = (np.concatenate(column) for column in zip(*held, strict=True))
    found = np.array([len(places) for places, _ in held])
    rows = np.repeat(np.arange(len(held)), found)
    frequency = signals.surroundings.spread_few(len(held), (rows, units), counts, parameters)
    norm = signals.surroundings.norm(parameters) + 1e-9
    idf = np.log(1 + (len(signals) - found + 0.5) / (found + 0.5))
    for weight, row in zip(idf * (parameters.k1 + 1), frequency, strict=True):
        total += weight * (row / (row + norm))  # one term after the other: equal units get equal sums
    return total


def closest(signals: Signals, limit: int) -> list[tuple[int, float]]:
    """The units that are nearest by meaning, and those that are nearest by words, with their cosine (0 without one).

    Two sentences that differ in one name may be far apart for an embedding of words: then the rest of the words tells.
    """
    if not len(signals):
        return []
    similarity = np.zeros(len(signals)) if signals.similarity is None else np.nan_to_num(signals.similarity, nan=0.0)
    lexical = contextual_bm25(signals, Bm25(before=(), after=()))
    places: dict[int, float] = {}
    for signal in (similarity, lexical):
        best = np.argsort(-signal, kind="stable")[:limit]
        places |= {int(place): float(similarity[place]) for place in best if signal[place] > 0}
    return sorted(places.items(), key=lambda pair: -pair[1])
