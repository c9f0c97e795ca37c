"""What speaks for a unit beside the question, and how a score is told."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from memplane.domain.memory import Memory, MemoryType, Turn
from memplane.domain.policy import RankingMethod, RankingProfile
from memplane.domain.ranking import Scored, fusion_scale

Parts = Mapping[str, object]
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Prior:
    """A unit's final score and the parts that it was made of."""

    score: float
    parts: Parts

    @classmethod
    def newest(cls, place: int) -> "Prior":
        """The score of a unit that is listed by time: 1/(1 + place)."""
        score = 1.0 / (1 + place)
        return cls(score, {"newest": score})


def explained(scored: Scored, unit: int, holds: NDArray[np.bool_], stems: Mapping[int, str]) -> Parts:
    """The parts of one unit's score, and which of the query's stems, in the order of their hashes, stand in it."""
    matched = [stem for stem, held in zip(_by_hash(stems), holds, strict=True) if held]
    return {
        "lexical": float(scored.lexical[unit]),
        "lexical_scaled": float(scored.lexical_scaled[unit]),
        "similarity": float(scored.similarity[unit]),
        "similarity_context": float(scored.similarity_context[unit]),
        "actor": float(scored.actor[unit]),
        "fused": float(scored.score[unit]),
        "matched": matched,
    }


def _by_hash(stems: Mapping[int, str]) -> list[str]:
    return [stems[term] for term in sorted(stems)]


def with_priors(unit: Memory | Turn, parts: Parts, profile: RankingProfile, model: str, now: datetime) -> Prior:
    """The final score: in the calibrated fusion, priors are added and insights are weighed down.

    recency = 1/(1 + days since the unit happened or was written); importance = (importance - 1)/4; pinned = 0 or 1. The
    three are weighted, and scaled like the fusion's signals.
    """
    fused = float(str(parts["fused"]))
    if profile.method is not RankingMethod.CALIBRATED:
        return Prior(fused, parts)
    weights = profile.weights_for(model)
    written = unit.updated_at if isinstance(unit, Memory) else unit.recorded_at
    days = max(0.0, (now - (unit.event_time or written)).total_seconds() / _DAY)
    recency = 1.0 / (1.0 + days)
    importance = (unit.importance - 1) / 4 if isinstance(unit, Memory) else 0.5
    pinned = 1.0 if isinstance(unit, Memory) and unit.pinned else 0.0
    boost = weights.recency * recency + weights.importance * importance + weights.pinned * pinned
    factor = weights.insight if isinstance(unit, Memory) and unit.type is MemoryType.INSIGHT else 1.0
    score = (fused + boost / fusion_scale(weights)) * factor
    return Prior(score, {**parts, "recency": recency, "importance": importance, "pinned": pinned, "factor": factor})


def printed_weights(profile: RankingProfile, model: str) -> dict[str, float]:
    """What each part is multiplied with: in the calibrated fusion, score = factor · Σ weight · part."""
    if profile.method is not RankingMethod.CALIBRATED:
        return {"fused": 1.0}
    weights = profile.weights_for(model)
    by_part = {
        "lexical_scaled": weights.lexical,
        "similarity": weights.semantic,
        "similarity_context": weights.semantic_context,
        "actor": weights.actor,
        "recency": weights.recency,
        "importance": weights.importance,
        "pinned": weights.pinned,
    }
    scale = fusion_scale(weights)
    return {part: weight / scale for part, weight in by_part.items()}
