"""Search material of every unit, in memory.

SQLite takes 30 ms to hand 20 000 vectors to Python, so each row's material is read once. A query names the rows in its
scope by ``rowid`` and ``version``; what the cache does not hold under that name is read in the same snapshot. Material
under a name never changes: a changed text raises the row's version. ``rowid`` can be given out again after a row was
removed, so a removal (told by the ``search_epoch`` table, which triggers keep) empties the cache.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memplane.adapters.sql.rows import TERM

Row = tuple[Any, ...]
"""rowid, version, id, thread key, seq, term length, actor, packed terms, embedding."""
Fetch = Callable[[list[int]], Sequence[Row]]


class MaterialCache:
    """The search material of one table, column by column; safe to use from several threads.

    Attributes:
        ids: 16 bytes each.
        thread: thread keys.
        seq: places in the thread.
        length: terms in the unit.
        embedding: unit vectors, zero where there is none.
        embedded: whether there is one.
    """

    def __init__(self, dimensions: int) -> None:
        self.lock = threading.Lock()
        self.dimensions = dimensions
        self._clear(epoch=-1)

    @property
    def epoch(self) -> int:
        """The removal epoch of what is held."""
        return self._epoch

    def _clear(self, epoch: int) -> None:
        self._epoch = epoch
        self._count = 0
        self._place = np.full(1024, -1, dtype=np.int64)  # by rowid
        self._version = np.zeros(0, dtype=np.int64)
        self.ids = np.zeros(0, dtype="V16")
        self.thread = np.zeros(0, dtype=np.int64)
        self.seq = np.zeros(0, dtype=np.int32)
        self.length = np.zeros(0, dtype=np.int32)
        self.embedding = np.zeros((0, self.dimensions), dtype=np.float32)
        self.embedded = np.zeros(0, dtype=np.bool_)
        self._actor = np.zeros(0, dtype=np.int64)
        self._actors: dict[str, int] = {"": 0}
        self._term = np.zeros(0, dtype=np.uint32)
        self._term_count = np.zeros(0, dtype=np.uint8)
        self._term_owner = np.zeros(0, dtype=np.int64)
        self._terms = 0

    def missing(self, epoch: int, rowids: NDArray[np.int64], versions: NDArray[np.int64]) -> list[int]:
        """The rows whose material is not held, as of a removal epoch; call with the lock held."""
        if epoch > self._epoch:
            self._clear(epoch)
        if not len(rowids):
            return []
        self._place = _room(self._place, int(rowids.max()) + 1, fill=-1)
        place = self._place[rowids]
        known = place >= 0
        known[known] = self._version[place[known]] == versions[known]
        return [int(rowid) for rowid in rowids[~known]]

    def add(self, epoch: int, rows: Sequence[Row]) -> None:
        """Hold the material of rows, in place of other versions, unless rows were removed meanwhile; with the lock."""
        if not rows or epoch != self._epoch:
            return
        start = self._count
        self._grow(start + len(rows))
        old = self._place[np.array([row[0] for row in rows], dtype=np.int64)]
        stale = old[old >= 0]
        if len(stale):
            self._term_owner[: self._terms][np.isin(self._term_owner[: self._terms], stale)] = -1
        owners, packed = [], []
        for position, row in enumerate(rows, start):
            rowid, version, identity, thread, seq, length, actor, terms, embedding = row
            self._place[rowid] = position
            self._version[position] = version
            self.ids[position] = np.void(UUID(identity).bytes)
            self.thread[position], self.seq[position], self.length[position] = thread, seq, length
            self._actor[position] = self._actors.setdefault((actor or "").lower(), len(self._actors))
            if embedding is not None:
                self.embedding[position] = np.frombuffer(embedding, "<f2")
                self.embedded[position] = True
            owners.append(np.full(len(terms) // TERM.itemsize, position, dtype=np.int64))
            packed.append(terms)
        self._count = start + len(rows)
        self._add_terms(np.frombuffer(b"".join(packed), dtype=TERM), np.concatenate(owners))

    def _add_terms(self, terms: NDArray[np.void], owners: NDArray[np.int64]) -> None:
        end = self._terms + len(terms)
        self._term = _room(self._term, end)
        self._term_count = _room(self._term_count, end)
        self._term_owner = _room(self._term_owner, end, fill=-1)
        self._term[self._terms : end] = terms["term"]
        self._term_count[self._terms : end] = terms["count"]
        self._term_owner[self._terms : end] = owners
        self._terms = end

    def _grow(self, size: int) -> None:
        self._version = _room(self._version, size)
        self.ids = _room(self.ids, size)
        self.thread = _room(self.thread, size)
        self.seq = _room(self.seq, size)
        self.length = _room(self.length, size)
        self.embedding = _room(self.embedding, size)
        self.embedded = _room(self.embedded, size)
        self._actor = _room(self._actor, size)

    def places(self, rowids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions of held rows."""
        return self._place[rowids]

    def frequency(self, places: NDArray[np.int64], wanted: Sequence[int]) -> NDArray[np.float32]:
        """How often each placed unit holds each wanted term: shape (places, wanted)."""
        counted = np.zeros((self._count + 1, len(wanted)), dtype=np.float32)  # the last row collects what is stale
        held = self._term[: self._terms]
        for column, term in enumerate(wanted):
            (hits,) = np.nonzero(held == np.uint32(term))
            counted[self._term_owner[hits], column] = self._term_count[hits]
        return counted[places]

    def similarity(self, places: NDArray[np.int64], query: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosine of each placed unit with a unit vector; NaN where a unit has none.

        The query is as precise as what it is compared with, as on PostgreSQL. Each product is summed in the same order,
        so that equal units are equally similar: a matrix product takes the last rows of a block in another one.
        """
        halved = query.astype("<f2").astype(np.float32)
        if len(places) * 8 > self._count:  # gathering a vector costs as much as several products
            products = np.einsum("ij,j->i", self.embedding[: self._count], halved)[places]
        else:
            products = np.einsum("ij,j->i", self.embedding[places], halved)
        products[~self.embedded[places]] = np.nan
        result: NDArray[np.float32] = products
        return result

    def actor_named(self, places: NDArray[np.int64], words: Sequence[str]) -> NDArray[np.bool_]:
        """Whether a word of the query is one of the actor's names."""
        asked = set(words)
        named = np.array([not asked.isdisjoint(name.split()) for name in self._actors], dtype=np.bool_)
        return named[self._actor[places]]


def _room(array: NDArray[Any], size: int, fill: int = 0) -> NDArray[Any]:
    """The array, or a copy half as large again when it is too small."""
    if len(array) >= size:
        return array
    larger = np.full((max(size, len(array) * 3 // 2), *array.shape[1:]), fill, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


ScopeKey = tuple[object, ...]
Rows = tuple[NDArray[np.int64], NDArray[np.int64]]


class ScopeCache:
    """Which rows were in scope, for as long as no unit was written and none of them expired."""

    def __init__(self, size: int = 64) -> None:
        self._size = size
        self._kept: OrderedDict[ScopeKey, tuple[int, str | None, Rows]] = OrderedDict()

    def find(self, key: ScopeKey, changes: int, now: str) -> Rows | None:
        """The rows, when they are those of this state of the file and of this moment."""
        entry = self._kept.get(key)
        if entry is None or entry[0] != changes or (entry[1] is not None and entry[1] <= now):
            return None
        self._kept.move_to_end(key)
        return entry[2]

    def keep(self, key: ScopeKey, changes: int, expiry: str | None, rows: Rows) -> None:
        """Remember rows; the least used scope is forgotten beyond the size."""
        self._kept[key] = (changes, expiry, rows)
        self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
