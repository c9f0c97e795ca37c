"""Signals from rows: packed terms counted for the terms of a query."""

from collections.abc import Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memplane.adapters.sql.rows import TERM


def frequency(sizes: NDArray[np.int32], terms: bytes, wanted: list[int]) -> NDArray[np.float32]:
    """How often each unit holds each wanted term: shape (units, wanted).

    Args:
        sizes: distinct terms of each unit.
        terms: the units' packed terms, one after another.
        wanted: term hashes, ascending.
    """
    counted = np.zeros((len(sizes), len(wanted)), dtype=np.float32)
    held = np.frombuffer(terms, dtype=TERM)
    if not wanted or not len(held):
        return counted
    column = np.asarray(wanted, dtype=np.uint32)
    place = np.searchsorted(column, held["term"]).clip(max=len(column) - 1)
    (hits,) = np.nonzero(column[place] == held["term"])
    owner = np.searchsorted(np.cumsum(sizes), hits, side="right")
    counted[owner, place[hits]] = held["count"][hits]
    return counted


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
