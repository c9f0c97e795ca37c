"""Search material of units, in memory: vectors, terms, places in threads and what speaks for each.

Rows are named by a number and a version that the database adapter gives; material under a name never changes: a changed
text has a new version. A removal of rows empties it, for a number may be given out again then.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memplane.adapters.sql.queries.packing import gather_postings
from memplane.adapters.sql.rows import TERM
from memplane.domain.language.terms import Wanted
from memplane.domain.ranking.priors import Priors
from memplane.domain.ranking.signals import Posting

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Columns:
    """The search material of some rows, column by column.

    Attributes:
        version: of each row.
        ids: 16 bytes each.
        thread: thread keys.
        seq: places in the thread.
        length: terms in the unit, with repeats.
        actors: names, or none.
        sizes: distinct terms of each unit.
        terms: their packed terms, one unit after another.
        embedding: unit vectors of those that have one, one after another.
        embedded: which have one.
        priors: what speaks for the units beside a question.
    """

    version: Numbers
    ids: NDArray[np.void]
    thread: Numbers
    seq: NDArray[np.int32]
    length: NDArray[np.int32]
    actors: Sequence[str | None]
    sizes: Numbers
    terms: NDArray[np.void]
    embedding: NDArray[np.float32]
    embedded: NDArray[np.bool_]
    priors: Priors


_PRIORS: Mapping[str, type] = {
    "happened": np.float64,
    "hit": np.float64,
    "importance": np.int64,
    "pinned": np.bool_,
    "insight": np.bool_,
    "reinforcement": np.int64,
    "mentions": np.int64,
    "hits": np.int64,
}
_TAIL = 32_768
"""Terms that may wait to be sorted in: looking through so many costs 8 µs a term."""


class Material:
    """The search material of many units, column by column; for one thread at a time.

    A unit's place never changes and is never given to another one, until a removal empties the cache.

    Attributes:
        ids: 16 bytes each.
        thread: thread keys.
        seq: places in the thread.
        length: terms in the unit.
        embedding: unit vectors, zero where there is none.
        embedded: whether there is one.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._clear(epoch=-1)

    @property
    def epoch(self) -> int:
        """The removal epoch of what is held."""
        return self._epoch

    @property
    def count(self) -> int:
        """How many places are taken."""
        return self._count

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
        self._terms = _Postings()
        self._priors: dict[str, NDArray[Any]] = {name: np.zeros(0, dtype=kind) for name, kind in _PRIORS.items()}

    def missing(self, epoch: int, rowids: Numbers, versions: Numbers) -> list[int]:
        """The rows whose material is not held, as of a removal epoch."""
        if epoch > self._epoch:
            self._clear(epoch)
        if not len(rowids):
            return []
        self._place = _room(self._place, int(rowids.max()) + 1, fill=-1)
        place = self._place[rowids]
        known = place >= 0
        known[known] = self._version[place[known]] == versions[known]
        return [int(rowid) for rowid in rowids[~known]]

    def add(self, epoch: int, rowids: Numbers, columns: Columns) -> None:
        """Hold the material of rows, in place of other versions, unless rows were removed meanwhile."""
        if not len(rowids) or epoch != self._epoch:
            return
        start, end = self._count, self._count + len(rowids)
        self._grow(end)
        self._place = _room(self._place, int(rowids.max()) + 1, fill=-1)
        self._terms.forget(self._place[rowids])
        self._place[rowids] = np.arange(start, end)
        self._version[start:end] = columns.version
        self.ids[start:end] = columns.ids
        self.thread[start:end], self.seq[start:end] = columns.thread, columns.seq
        self.length[start:end] = columns.length
        for name, held in self._priors.items():
            held[start:end] = getattr(columns.priors, name)
        known = self._actors
        self._actor[start:end] = [known.setdefault((name or "").lower(), len(known)) for name in columns.actors]
        self.embedding[start:end][columns.embedded] = columns.embedding
        self.embedding[start:end][~columns.embedded] = 0.0
        self.embedded[start:end] = columns.embedded
        self._count = end
        self._terms.add(columns.terms, np.repeat(np.arange(start, end), columns.sizes))

    @property
    def bytes(self) -> int:
        """How much memory it takes, about."""
        return int(self.embedding.nbytes + len(self.ids) * 120 + self._terms.count * 13)

    def reserve(self, count: int) -> None:
        """Make room for so many more rows at once."""
        self._grow(self._count + count)

    def _grow(self, size: int) -> None:
        self._version = _room(self._version, size)
        self.ids = _room(self.ids, size)
        self.thread = _room(self.thread, size)
        self.seq = _room(self.seq, size)
        self.length = _room(self.length, size)
        self.embedding = _room(self.embedding, size)
        self.embedded = _room(self.embedded, size)
        self._actor = _room(self._actor, size)
        self._priors = {name: _room(values, size) for name, values in self._priors.items()}

    def priors(self, places: Numbers) -> Priors:
        """What speaks for units beside the question."""
        return Priors(**{name: values[places] for name, values in self._priors.items()})

    def places(self, rowids: Numbers) -> Numbers:
        """Places of held rows."""
        return self._place[rowids]

    def holders(self, wanted: Wanted) -> list[Posting]:
        """For each term, places of the units that hold it in any language, and how often."""
        found = self._terms.of(wanted.hashes)
        return gather_postings(wanted.size, ((int(wanted.term[each]), held) for each, held in found))

    def similarity(self, places: Numbers, query: NDArray[np.float32]) -> NDArray[np.float32]:
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

    def actor_named(self, places: Numbers, words: Sequence[str]) -> NDArray[np.bool_]:
        """Whether a word of the query is one of the actor's names."""
        asked = set(words)
        named = np.array([not asked.isdisjoint(name.split()) for name in self._actors], dtype=np.bool_)
        return named[self._actor[places]]


class _Postings:
    """Which places hold which terms, sorted by term: most of them, and a short tail of what came since."""

    def __init__(self) -> None:
        self._sorted = _table(np.zeros(0, dtype=TERM), np.zeros(0, dtype=np.int64))
        self._tail = self._sorted

    def add(self, terms: NDArray[np.void], places: Numbers) -> None:
        """Terms with the place of each."""
        self._tail = _merged(self._tail, _table(terms, places))
        if len(self._tail[0]) > max(_TAIL, len(self._sorted[0]) // 16):
            self._sorted = _merged(self._sorted, self._tail)
            self._tail = _table(np.zeros(0, dtype=TERM), np.zeros(0, dtype=np.int64))

    @property
    def count(self) -> int:
        """How many terms of units there are."""
        return len(self._sorted[0]) + len(self._tail[0])

    def forget(self, places: Numbers) -> None:
        """What stood at these places does so no more; negative ones are none."""
        stale = places[places >= 0]
        if len(stale):
            for _, _, owner in (self._sorted, self._tail):
                owner[np.isin(owner, stale)] = -1

    def of(self, wanted: NDArray[np.uint32]) -> Iterator[tuple[int, Posting]]:
        """For each hash that stands here, by its number, the places that hold it, each once, and how often."""
        found: dict[int, list[tuple[NDArray[Any], NDArray[Any]]]] = {}
        for terms, counts, owners in (self._sorted, self._tail):
            starts, ends = np.searchsorted(terms, wanted), np.searchsorted(terms, wanted, side="right")
            for each in np.flatnonzero(starts < ends).tolist():
                held = slice(starts[each], ends[each])
                found.setdefault(each, []).append((owners[held], counts[held]))
        for each, tables in found.items():
            place, count = tables[0] if len(tables) == 1 else map(np.concatenate, zip(*tables, strict=True))
            yield each, (place[place >= 0], count[place >= 0].astype(np.float64))


def _merged(before: tuple[NDArray[Any], ...], more: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
    """Both tables in one, sorted by term, without what was forgotten."""
    joined = tuple(map(np.concatenate, zip(before, more, strict=True)))
    held = np.flatnonzero(joined[2] >= 0)
    order = held[np.argsort(joined[0][held], kind="stable")]
    return tuple(column[order] for column in joined)


def _table(terms: NDArray[np.void], places: Numbers) -> tuple[NDArray[Any], ...]:
    return terms["term"].copy(), terms["count"].copy(), places.astype(np.int64)


def _room(array: NDArray[Any], size: int, fill: int | None = None) -> NDArray[Any]:
    """The array, or a copy half as large again when it is too small; what is added is filled, or is to be written."""
    if len(array) >= size:
        return array
    larger: NDArray[Any] = np.empty((max(size, len(array) * 3 // 2), *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    if fill is not None:
        larger[len(array) :] = fill
    return larger
