"""The signals of a question, as pure functions over what a database says, so that every database ranks alike.

Arrays have one entry per unit (a memory or a turn) in scope unless said otherwise. How signals become one score is in
:mod:`memplane.domain.ranking.fusion`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memplane.domain.policy.policy import Bm25
from memplane.domain.ranking.priors import Priors, concatenate
from memplane.domain.ranking.thread_neighbours import Floats, Places, Surroundings

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
        priors: what speaks for units beside the question.
        entity: how many of the entities that the query names the unit mentions; ``None`` where nobody looked.
    """

    surroundings: Surroundings
    postings: Sequence[Posting]
    similarity: NDArray[np.float32] | None
    actor: NDArray[np.bool_]
    priors: Priors
    entity: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.surroundings)

    def followed_by(self, other: "Signals") -> "Signals":
        """The signals of these units, and then those of others for the same query."""
        size = len(self)
        entity = None
        if self.entity is not None and other.entity is not None:
            entity = np.concatenate([self.entity, other.entity])
        similarity = None
        if self.similarity is not None and other.similarity is not None:
            similarity = np.concatenate([self.similarity, other.similarity])
        return Signals(
            surroundings=self.surroundings.followed_by(other.surroundings),
            postings=[
                (np.concatenate([own, size + more]), np.concatenate([counts, counts_more]))
                for (own, counts), (more, counts_more) in zip(self.postings, other.postings, strict=True)
            ],
            similarity=similarity,
            actor=np.concatenate([self.actor, other.actor]),
            priors=concatenate([self.priors, other.priors]),
            entity=entity,
        )

    def holding_all(self, terms: Sequence[int]) -> NDArray[np.bool_]:
        """Which units hold every one of some query terms, given by their places among the postings."""
        held = np.zeros(len(self), dtype=np.int64)
        for term in terms:
            held[self.postings[term][0]] += 1
        whole: NDArray[np.bool_] = held == len(terms)
        return whole

    def matched_terms(self, units: Places) -> NDArray[np.bool_]:
        """Which query terms stand in which of some units: shape (units, terms)."""
        found = np.zeros((len(units), len(self.postings)), dtype=np.bool_)
        for column, (places, _) in enumerate(self.postings):
            holds = np.zeros(len(self), dtype=np.bool_)
            holds[places] = True
            found[:, column] = holds[units]
        return found


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


def by_words(signals: Signals) -> list[tuple[int, float]]:
    """The units that hold a word of the question, with their BM25 as a share of the best."""
    lexical = contextual_bm25(signals, Bm25(before=(), after=()))
    best = float(lexical.max(initial=0.0))
    (places,) = np.nonzero(lexical > 0)
    return [(int(place), float(lexical[place]) / best) for place in places]


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
