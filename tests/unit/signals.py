"""Signals of a few units, made by hand."""

from datetime import UTC, datetime

import numpy as np

from memplane.domain.ranking.priors import Priors
from memplane.domain.ranking.signals import Signals
from memplane.domain.ranking.thread_neighbours import Surroundings

NOW = datetime(2026, 5, 8, tzinfo=UTC)
Row = tuple[int, int, int, list[float]]
"""Thread, seq, length and frequency of each term of a unit."""


def signals(rows: list[Row], similarity: list[float] | None = None, **columns: object) -> Signals:
    """Signals of units that stand in thread order, with the named columns and ordinary values for the others."""
    frequency = np.array([row[3] for row in rows], dtype=np.float64).reshape(len(rows), len(rows[0][3]) if rows else 0)
    return Signals(
        surroundings=Surroundings(
            np.array([row[0] for row in rows], dtype=np.int64),
            np.array([row[1] for row in rows], dtype=np.int32),
            np.array([row[2] for row in rows], dtype=np.int32),
        ),
        postings=[(np.flatnonzero(column), column[column > 0]) for column in frequency.T],
        similarity=None if similarity is None else np.array(similarity, dtype=np.float32),
        actor=np.array(columns.pop("actor", [False] * len(rows)), dtype=np.bool_),
        entity=np.array(entity, dtype=np.float64) if (entity := columns.pop("entity", None)) else None,
        priors=priors(len(rows), **columns),
    )


def priors(count: int, **columns: object) -> Priors:
    """What speaks for so many units."""
    ordinary: dict[str, object] = {
        "happened": NOW.timestamp(),
        "hit": NOW.timestamp(),
        "importance": 3,
        "pinned": False,
        "insight": False,
        "reinforcement": 0,
        "mentions": 1,
        "hits": 0,
    }
    kinds = {name: np.asarray(value).dtype for name, value in ordinary.items()}
    return Priors(
        **{name: np.array(columns.get(name, [value] * count), kinds[name]) for name, value in ordinary.items()}
    )


def days_ago(*days: float) -> list[float]:
    """Moments so many days before now, in seconds since 1970."""
    return [NOW.timestamp() - each * 86_400 for each in days]
