"""Signals from rows: packed terms looked through for the terms of a query."""

from collections.abc import Mapping, Sequence
from typing import Any
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

    def __len__(self) -> int:
        return len(self._packed)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204 - the two overloads of Sequence
        if isinstance(index, slice):
            return [UUID(bytes=value.tobytes()) for value in self._packed[index]]
        return UUID(bytes=self._packed[index].tobytes())

    @property
    def packed(self) -> NDArray[np.void]:
        """The ids as bytes."""
        return self._packed


def counted(ids: PackedIds, rows: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
    """Rows of ``id`` and ``found`` as a column: how often each unit was found; the ids of others count nothing."""
    column = np.zeros(len(ids))
    if not rows or not len(ids):
        return column
    # two halves of eight bytes: numpy sorts and looks up numbers, and not bytes
    halves = np.ascontiguousarray(ids.packed).view(np.uint64).reshape(-1, 2)
    order = np.argsort(halves[:, 1])
    for row in rows:
        high, low = np.frombuffer(row["id"].bytes, dtype=np.uint64)
        start = np.searchsorted(halves[:, 1], low, sorter=order)
        for place in order[start:]:
            if halves[place, 1] != low:
                break
            if halves[place, 0] == high:
                column[place] = row["found"]
    return column
