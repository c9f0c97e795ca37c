"""Signals from rows: packed terms looked through for the terms of a query."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memplane.adapters.sql.rows import TERM
from memplane.domain.ranking import Posting
from memplane.domain.surroundings import Places


def postings(sizes: NDArray[np.int32], terms: bytes, wanted: Sequence[int], place: Places) -> list[Posting]:
    """Where each wanted term stands, and how often.

    Args:
        sizes: distinct terms of each unit.
        terms: the units' packed terms, one after another.
        wanted: term hashes, ascending.
        place: where each unit stands in the answer.
    """
    held = np.frombuffer(terms, dtype=TERM)
    if not len(wanted) or not len(held):
        return [(np.zeros(0, dtype=np.intp), np.zeros(0)) for _ in wanted]
    column = np.asarray(wanted, dtype=np.uint32)
    nearest = np.searchsorted(column, held["term"]).clip(max=len(column) - 1)
    (hits,) = np.nonzero(column[nearest] == held["term"])
    owner = place[np.searchsorted(np.cumsum(sizes), hits, side="right")]
    count, found = held["count"][hits].astype(np.float64), nearest[hits]
    return [(owner[found == each], count[found == each]) for each in range(len(column))]


class PackedIds(Sequence[UUID]):
    """Ids of 16 bytes each that become UUIDs only when looked at."""

    def __init__(self, packed: NDArray[np.void]) -> None:
        self._packed = packed
        self._sorted: tuple[NDArray[np.uint64], NDArray[np.uint64], Places] | None = None

    def __len__(self) -> int:
        return len(self._packed)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204 - the two overloads of Sequence
        if isinstance(index, slice):
            return [UUID(bytes=value.tobytes()) for value in self._packed[index]]
        return UUID(bytes=self._packed[index].tobytes())

    @staticmethod
    def unpacked(value: bytes | str | None) -> bytes:
        """Ids as a statement packed them: 16 bytes each, or 32 hexadecimal digits."""
        return bytes.fromhex(value) if isinstance(value, str) else value or b""

    def places(self, wanted: bytes) -> Places:
        """Where each of some packed ids stands, -1 for those that are not here."""
        if self._sorted is None:  # numpy sorts and looks up numbers, and not bytes; the second half is the random one
            high, low = _halves(np.ascontiguousarray(self._packed).view(np.uint64))
            order = np.argsort(low)
            self._sorted = high[order], low[order], order
        high, low, order = self._sorted
        asked_high, asked_low = _halves(np.frombuffer(wanted, dtype=np.uint64))
        if not len(order) or not len(asked_low):
            return np.full(len(asked_low), -1, dtype=np.intp)
        near = np.searchsorted(low, asked_low).clip(max=len(low) - 1)
        same = (low[near] == asked_low) & (high[near] == asked_high)
        return np.where(same, order[near], -1)


def _halves(numbers: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    pairs = numbers.reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def counted(ids: PackedIds, found: bytes) -> NDArray[np.float64]:
    """How often each unit is among packed ids; those of others count nothing."""
    column = np.zeros(len(ids))
    places = ids.places(found)
    np.add.at(column, places[places >= 0], 1.0)
    return column
