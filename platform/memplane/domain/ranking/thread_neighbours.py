"""Who stands next to whom: the units of a scope in the order of their threads."""

from collections.abc import Callable, Iterator
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from memplane.domain.policy.policy import Bm25

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
NO_THREAD = 0
"""Thread key of a unit that has no neighbours."""
T = TypeVar("T")


def in_thread_order(thread: NDArray[np.int64], seq: NDArray[np.int32]) -> Places:
    """Where the units stand when they are put in the order of their threads and places."""
    return np.lexsort((seq, thread))


class Surroundings:
    """Units in thread order, with what depends on the scope alone, so that it can be kept between questions.

    Args:
        thread: 64-bit thread keys, ``NO_THREAD`` for units without neighbours; the units of a thread stand together.
        seq: places in the thread, ascending within it.
        length: terms in each unit.

    Raises:
        ValueError: the units are not in thread order.
    """

    def __init__(self, thread: NDArray[np.int64], seq: NDArray[np.int32], length: NDArray[np.int32]) -> None:
        self.columns = thread, seq, length
        self._thread = thread
        self._seq = seq.astype(np.int64)
        self._length = length.astype(np.float64)
        self._kept: dict[tuple[str, Bm25], object] = {}
        if np.any(self._gap(1) < 0):
            raise ValueError("units must be in thread order")

    def __len__(self) -> int:
        return len(self._thread)

    def followed_by(self, other: "Surroundings") -> "Surroundings":
        """These units, and then the others, which are in no thread of these."""
        (thread, seq, length), (thread_too, seq_too, length_too) = self.columns, other.columns
        return Surroundings(
            np.concatenate([thread, thread_too]),
            np.concatenate([seq, seq_too]),
            np.concatenate([length, length_too]),
        )

    def spread(self, values: Floats, parameters: Bm25) -> Floats:
        """Each unit's value plus the weighted values of its neighbours."""
        total = values.astype(np.float64, copy=True)
        for step, before, after in self._weights(parameters):
            total[step:] += before * values[:-step]
            total[:-step] += after * values[step:]
        return total

    def spread_few(self, rows: int, places: tuple[Places, Places], values: Floats, parameters: Bm25) -> Floats:
        """The same for values that are nothing nearly everywhere.

        Args:
            rows: how many sets of values there are.
            places: of each value, its row and its unit; each pair once.
            values: one for each place.
            parameters: the weights of neighbours.

        Returns:
            Shape (rows, units).
        """
        total = np.zeros((rows, len(self)))
        row, unit = places
        total[row, unit] = values
        flat = total.reshape(-1)
        start = row * len(self)
        for step, before, after in self._weights(parameters):
            (earlier,) = np.nonzero(unit < len(self) - step)
            left = unit[earlier]
            flat[start[earlier] + left + step] += before[left] * values[earlier]
            (later,) = np.nonzero(unit >= step)
            left = unit[later] - step
            flat[start[later] + left] += after[left] * values[later]
        return total

    def shares(self, parameters: Bm25) -> Floats:
        """What each unit's weights and its neighbours' sum up to."""
        return self._once("shares", parameters, lambda: self.spread(np.ones(len(self)), parameters))

    def norm(self, parameters: Bm25) -> Floats:
        """BM25's length norm, k1 · (1 - b + b · length / mean length), over lengths with neighbours."""

        def computed() -> Floats:
            length = self.spread(self._length, parameters)
            mean = (length.mean() if len(length) else 0.0) or 1.0
            result: Floats = parameters.k1 * (1 - parameters.b + parameters.b * length / mean)
            return result

        return self._once("norm", parameters, computed)

    def _weights(self, parameters: Bm25) -> list[tuple[int, Floats, Floats]]:
        """By distance of places: what the later unit takes of the earlier one, and the earlier of the later one."""
        return self._once("weights", parameters, lambda: list(self._weighed(parameters)))

    def _weighed(self, parameters: Bm25) -> Iterator[tuple[int, Floats, Floats]]:
        by_gap = [np.array([0.0, *weights, 0.0]) for weights in (parameters.before, parameters.after)]
        for step in range(1, min(max(map(len, by_gap)) - 1, len(self))):
            gap = self._gap(step)
            before, after = (weights[np.minimum(gap, len(weights) - 1)] for weights in by_gap)
            if before.any() or after.any():
                yield step, before, after

    def _gap(self, step: int) -> NDArray[np.int64]:
        """How far apart units stand that are so many entries apart; 0 where they are not in one thread."""
        together = (self._thread[step:] == self._thread[:-step]) & (self._thread[step:] != NO_THREAD)
        gap: NDArray[np.int64] = np.where(together, self._seq[step:] - self._seq[:-step], 0)
        return gap

    def _once(self, what: str, parameters: Bm25, compute: Callable[[], T]) -> T:
        key = (what, parameters)
        if key not in self._kept:
            self._kept[key] = compute()
        return cast("T", self._kept[key])
