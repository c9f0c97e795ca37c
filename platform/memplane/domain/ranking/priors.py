"""What speaks for a unit beside the question: how recent, how weighty, how often met with and how useful it was."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_DAY = 86_400.0
TURN_IMPORTANCE = 3
"""Turns have no importance of their own; they are treated as ordinary."""


@dataclass(frozen=True, slots=True)
class Priors:
    """Columns of what is known of units, one entry each; of what only memories have, turns have the ordinary value.

    Attributes:
        happened: when the unit happened, or was last written, in seconds since 1970.
        hit: when an agent last said that it was useful, or else when it was recorded, in seconds since 1970.
        importance: 1 to 5.
        pinned: whether it is pinned.
        insight: whether it is of type ``insight`` or ``reflection``.
        reinforcement: how often it was reinforced, less how often it was demoted, as the verbs count.
        mentions: how often it was stated.
        hits: how often an agent said that it was useful.
    """

    happened: Floats
    hit: Floats
    importance: NDArray[np.int64]
    pinned: NDArray[np.bool_]
    insight: NDArray[np.bool_]
    reinforcement: NDArray[np.int64]
    mentions: NDArray[np.int64]
    hits: NDArray[np.int64]

    def recency(self, now: datetime) -> Floats:
        """1/(1 + days since the unit happened or was written)."""
        return 1.0 / (1.0 + _days(now, self.happened))

    def unused_days(self, now: datetime) -> Floats:
        """Days since it was last useful, or recorded."""
        return _days(now, self.hit)


def concatenate(parts: Sequence[Priors]) -> Priors:
    """Those of several groups of units, one after the other."""
    return Priors(*(np.concatenate([getattr(part, name) for part in parts]) for name in Priors.__slots__))


def _days(now: datetime, then: Floats) -> Floats:
    passed: Floats = np.maximum(now.timestamp() - then, 0.0) / _DAY
    return passed
