"""Five ways to turn the signals of a question into one score; all are the formulas that ``ranking.yaml`` names.

Every score follows from its printed parts: score = factor · Σ weight · part + weight of ``relation`` · relation, where
``factor`` is 1 if it is not printed and the last term is added once the relations of the best units are known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memplane.domain.policy.policy import FusionWeights, RankingMethod, RankingProfile
from memplane.domain.ranking.signals import Signals, contextual_bm25
from memplane.domain.ranking.thread_neighbours import Floats, Places

RELATION = "relation"
FACTOR = "factor"
REINFORCED = 0.2
"""Exponent of a single reinforcement in the ``hebbian`` profile."""
FORGOTTEN = 0.01
"""How much of its weight a unit loses for each day without use in the ``hebbian`` profile."""
FADING = 0.05
"""Exponent of each day in the ``layered`` profile."""
IMPORTANT = 4
"""The importance from which on the ``layered`` profile takes a memory for important, as it does a pinned one."""
MENTIONS = 10
"""Mentions beyond which the ``weighted`` profile counts no more."""
Span = tuple[datetime, datetime]
"""A time that a question names: from, inclusive, until, exclusive."""


@dataclass(frozen=True, slots=True)
class QuerySignals:
    """What a question says beside its words.

    Attributes:
        now: when it is asked.
        spans: times that it names.
        phrases: the words that it puts in quotes, as places of their terms among the query's.
        wordless: whether it has no words at all: then what matters is what speaks for the units by themselves.
    """

    now: datetime
    spans: Sequence[Span] = ()
    phrases: Sequence[Sequence[int]] = ()
    wordless: bool = False


@dataclass(frozen=True, slots=True)
class UnitScores:
    """Scores of every unit in scope, and the parts they were made of.

    Attributes:
        score: what the units are ranked by, but for their relations.
        parts: by name, what the score is made of, and what helps to understand it; see the module.
        eligible: the units that the profile takes for answers.
    """

    score: Floats
    parts: Mapping[str, Floats]
    eligible: NDArray[np.bool_]

    def best(self, limit: int, among: NDArray[np.bool_] | None = None) -> Places:
        """Where the highest scores of eligible units stand, in no order."""
        (allowed,) = np.nonzero(self.eligible if among is None else self.eligible & among)
        if len(allowed) <= limit:
            return allowed
        scores = self.score[allowed]
        best: Places = allowed[np.argpartition(scores, len(scores) - limit)[-limit:]]
        return best

    def parts_of(self, unit: int) -> dict[str, float]:
        """The parts of one unit's score."""
        return {name: float(values[unit]) for name, values in self.parts.items()}


def score(signals: Signals, profile: RankingProfile, model: str, asked: QuerySignals) -> UnitScores:
    """Score every unit by a profile.

    Args:
        signals: the raw signals of the scope.
        profile: from the policy.
        model: the embedding model's name, which chooses the weights.
        asked: what the question says beside its words.
    """
    parts = _measured(signals, profile, asked)
    if profile.method is RankingMethod.CALIBRATED:
        weights = profile.weights_for(model)
        insight = np.where(signals.priors.insight, weights.insight, 1.0)
        parts |= {
            "recency": signals.priors.recency(asked.now),
            "importance": (signals.priors.importance - 1) / 4,
            "pinned": signals.priors.pinned.astype(np.float64),
            FACTOR: insight,
        }
        return UnitScores(calibrated_score(parts, weights) * insight, parts, np.ones(len(signals), dtype=np.bool_))
    if profile.method is RankingMethod.RRF:
        parts |= _ranks(parts, profile.rrf_k)
    elif profile.by_use:
        parts |= _by_use(signals, profile.method, asked)
    total = sum(
        (weight * parts[name] for name, weight in printed_weights(profile, model, asked).items() if name in parts),
        np.zeros(len(signals)),
    )
    total = total * parts.get(FACTOR, 1.0)
    # these three order what the words have found; without words, everything
    found = parts["lexical"] > 0 if profile.by_use and not asked.wordless else np.ones(len(signals), dtype=np.bool_)
    return UnitScores(total, parts, found)


def _measured(signals: Signals, profile: RankingProfile, asked: QuerySignals) -> dict[str, Floats]:
    """The signals by name, each in 0…1 where its range is open, and BM25 as it was."""
    lexical = contextual_bm25(signals, profile.bm25)
    best = float(lexical.max(initial=0.0))
    similarity = np.zeros(len(signals))
    if signals.similarity is not None:
        similarity = np.nan_to_num(signals.similarity, nan=0.0).astype(np.float64)
    near = signals.surroundings
    found = {
        "lexical": lexical,
        "lexical_scaled": lexical / best if best > 0 else lexical,
        "similarity": similarity,
        "similarity_context": near.spread(similarity, profile.bm25) / near.shares(profile.bm25),
        "actor": signals.actor.astype(np.float64),
    }
    if signals.entity is not None:
        most = float(signals.entity.max(initial=0.0))
        found["entity"] = signals.entity / most if most > 0 else signals.entity
    if asked.spans:
        found["when"] = _within(signals.priors.happened, asked.spans)
    if asked.phrases:
        found["phrase"] = np.mean([signals.holding_all(phrase) for phrase in asked.phrases], axis=0)
    return found


def _within(happened: Floats, spans: Sequence[Span]) -> Floats:
    """1 for what happened in one of the times, else 0."""
    inside = np.zeros(len(happened), dtype=np.bool_)
    for start, end in spans:
        inside |= (happened >= start.timestamp()) & (happened < end.timestamp())
    return inside.astype(np.float64)


def calibrated_score(parts: Mapping[str, Floats], weights: FusionWeights) -> Floats:
    """Weighted sum of scaled signals and priors, divided by the sum of the signals' weights: about 0…1."""
    total = np.zeros(len(parts["lexical"]))
    for name, weight in _weights(weights).items():
        if weight and name in parts:
            total += weight * parts[name]
    return total


def fusion_scale(weights: FusionWeights) -> float:
    """The sum of the fusion's signal weights, but for those of signals that few questions have."""
    return (weights.lexical + weights.semantic + weights.semantic_context + weights.actor) or 1.0


def _weights(weights: FusionWeights) -> dict[str, float]:
    """What each part is multiplied with in the calibrated fusion."""
    by_part = {
        "lexical_scaled": weights.lexical,
        "similarity": weights.semantic,
        "similarity_context": weights.semantic_context,
        "actor": weights.actor,
        "entity": weights.entity,
        "when": weights.when,
        "phrase": weights.phrase,
        "recency": weights.recency,
        "importance": weights.importance,
        "pinned": weights.pinned,
    }
    scale = fusion_scale(weights)
    return {part: weight / scale for part, weight in by_part.items()}


def printed_weights(profile: RankingProfile, model: str, asked: QuerySignals) -> dict[str, float]:
    """What each part is multiplied with, the relation among them; see the module."""
    match profile.method:
        case RankingMethod.CALIBRATED:
            found = _weights(profile.weights_for(model))
        case RankingMethod.RRF:
            found = dict.fromkeys(("lexical_rank", "similarity_rank", "entity_rank"), 1.0)
        case RankingMethod.LEXICAL:
            found = {"lexical_scaled": 1.0}
        case RankingMethod.SEMANTIC:
            found = {"similarity": 1.0}
        case RankingMethod.WEIGHTED:
            found = (
                {"recency": 0.7, "mention": 0.3}
                if asked.wordless
                else {"lexical_scaled": 0.6, "recency": 0.2, "mention": 0.2}
            )
        case RankingMethod.HEBBIAN:
            found = {"used": 1.0} if asked.wordless else {"lexical": 1.0}
        case RankingMethod.LAYERED:
            found = {"frequency": 1.0, "freshness": 1.0, "important": 2.0}
    return found | {RELATION: profile.relation}


def _ranks(parts: Mapping[str, Floats], k: int) -> dict[str, Floats]:
    named = {"lexical_rank": "lexical", "similarity_rank": "similarity", "entity_rank": "entity"}
    return {rank: reciprocal_rank(parts[signal], k) for rank, signal in named.items() if signal in parts}


def reciprocal_rank(signal: Floats, k: int) -> Floats:
    """A term of reciprocal rank fusion (Cormack et al., 2009): 1/(k + rank) for units that score above zero.

    Equals share the best of their ranks, so that no score depends on the order in which units were read.
    """
    ranks = 1 + np.searchsorted(np.sort(-signal), -signal)
    return np.where(signal > 0, 1.0 / (k + ranks), 0.0)


def _by_use(signals: Signals, method: RankingMethod, asked: QuerySignals) -> dict[str, Floats]:
    """What the three profiles add that go by the use that was made of a unit."""
    priors = signals.priors
    unused = priors.unused_days(asked.now)
    if method is RankingMethod.WEIGHTED:
        return {"recency": priors.recency(asked.now), "mention": np.minimum(priors.mentions / MENTIONS, 1.0)}
    if method is RankingMethod.HEBBIAN:
        factor = np.exp(REINFORCED * priors.reinforcement) / (1.0 + FORGOTTEN * unused)
        return {FACTOR: factor} | ({"used": np.ones(len(signals))} if asked.wordless else {})
    important = priors.pinned | (priors.importance >= IMPORTANT)
    return {
        "frequency": np.log1p(priors.hits),
        "freshness": np.exp(-FADING * unused),
        "important": important.astype(np.float64),
    }
