"""Signals from rows: packed terms looked through for the terms of a query."""

from collections.abc import Iterable, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memplane.adapters.sql.rows import TERM
from memplane.application.recall.search_material import UnitIds
from memplane.domain.language.terms import Terms
from memplane.domain.ranking.signals import Posting
from memplane.domain.ranking.thread_neighbours import Places


def gather_postings(count: int, found: Iterable[tuple[int, Posting]]) -> list[Posting]:
    """One posting for each of so many terms, of those that were found for its hashes, each with its term's number."""
    held: list[list[Posting]] = [[] for _ in range(count)]
    for term, posting in found:
        held[term].append(posting)
    return [_joined(each) for each in held]


def _joined(held: Sequence[Posting]) -> Posting:
    """A text that is in two languages may hold a word in both: it is one unit still."""
    if not held:
        return np.zeros(0, dtype=np.intp), np.zeros(0)
    if len(held) == 1:
        return held[0]
    units, place = np.unique(np.concatenate([units for units, _ in held]), return_inverse=True)
    counts = np.zeros(len(units))
    np.add.at(counts, place, np.concatenate([each for _, each in held]))
    return units, counts


def postings(sizes: NDArray[np.int32], terms: bytes, wanted: Terms, place: Places) -> list[Posting]:
    """Where each wanted term stands, in any language, and how often.

    Args:
        sizes: distinct terms of each unit.
        terms: the units' packed terms, one after another.
        wanted: the terms of a query.
        place: where each unit stands in the answer.
    """
    held = np.frombuffer(terms, dtype=TERM)
    if not wanted.counts or not len(held):
        return gather_postings(len(wanted.counts), ())
    column, term, size = wanted.wanted()
    nearest = np.searchsorted(column, held["term"]).clip(max=len(column) - 1)
    (hits,) = np.nonzero(column[nearest] == held["term"])
    owner = place[np.searchsorted(np.cumsum(sizes), hits, side="right")]
    count, found = held["count"][hits].astype(np.float64), nearest[hits]
    there = np.unique(found).tolist()
    return gather_postings(size, ((int(term[each]), (owner[found == each], count[found == each])) for each in there))


class PackedIds(Sequence[UUID]):
    """Ids of 16 bytes each that become UUIDs only when looked at."""

    def __init__(self, packed: NDArray[np.void]) -> None:
        self._packed = packed
        self._sorted: tuple[NDArray[np.uint64], NDArray[np.uint64], Places] | None = None

    def __len__(self) -> int:
        return len(self._packed)

    @property
    def packed(self) -> NDArray[np.void]:
        """All of them, 16 bytes each."""
        return self._packed

    def followed_by(self, other: UnitIds) -> "PackedIds":
        """These, and then others."""
        return PackedIds(np.concatenate([self._packed, other.packed]))

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204 - the two overloads of Sequence
        if isinstance(index, slice):
            return [UUID(bytes=value.tobytes()) for value in self._packed[index]]
        return UUID(bytes=self._packed[index].tobytes())

    @staticmethod
    def unpack(value: bytes | str | None) -> bytes:
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


def count_units(ids: PackedIds, found: bytes) -> NDArray[np.float64]:
    """How often each unit is among packed ids; those of others count nothing."""
    column = np.zeros(len(ids))
    places = ids.places(found)
    np.add.at(column, places[places >= 0], 1.0)
    return column
