"""What a SQLite file's rows hold for a search, and what is remembered of scopes.

SQLite takes 30 ms to hand 20 000 vectors to Python, so each row's material is read once. A query names the rows in its
scope by ``rowid`` and ``version``; what is not held under that name is read in the same snapshot. ``rowid`` can be
given out again after a row was removed, so a removal (told by ``search_epoch``, which triggers keep) empties it.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from memplane.adapters.sql.queries.material import Columns, Numbers
from memplane.adapters.sql.rows import TERM
from memplane.domain.ranking.priors import Priors

T = TypeVar("T")
Row = tuple[Any, ...]
"""rowid, version, id, thread key, seq, term length, actor, packed terms, embedding, and the columns of priors."""


def columns_of(rows: Sequence[Row], dimensions: int) -> tuple[Numbers, Columns]:
    """The numbers of rows, of which there is at least one, and their material."""
    rowid, version, identity, thread, seq, length, actor, terms, embedding, *priors = zip(*rows, strict=True)
    vectors = np.frombuffer(b"".join(vector for vector in embedding if vector is not None), "<f2")
    happened, hit, importance, pinned, insight, *counts = priors
    columns = Columns(
        version=np.array(version, dtype=np.int64),
        ids=np.frombuffer(bytes.fromhex("".join(identity)), dtype="V16"),
        thread=np.array(thread, dtype=np.int64),
        seq=np.array(seq, dtype=np.int32),
        length=np.array(length, dtype=np.int32),
        actors=actor,
        sizes=np.array([len(packed) // TERM.itemsize for packed in terms], dtype=np.int64),
        terms=np.frombuffer(b"".join(terms), dtype=TERM),
        embedding=vectors.reshape(-1, dimensions).astype(np.float32),
        embedded=np.array([vector is not None for vector in embedding], dtype=np.bool_),
        priors=Priors(
            np.array(happened, dtype=np.float64),
            np.array(hit, dtype=np.float64),
            np.array(importance, dtype=np.int64),
            np.array(pinned, dtype=np.bool_),
            np.array(insight, dtype=np.bool_),
            *(np.array(column, dtype=np.int64) for column in counts),
        ),
    )
    return np.array(rowid, dtype=np.int64), columns


ScopeKey = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class _Kept(Generic[T]):
    changes: int
    expiry: str | None
    value: T


class FileScopeCache(Generic[T]):
    """What is known of scopes, for as long as no unit was written and none of theirs expired."""

    def __init__(self, size: int = 64) -> None:
        self._size = size
        self._kept: OrderedDict[ScopeKey, _Kept[T]] = OrderedDict()

    def find(self, key: ScopeKey, changes: int, now: str) -> T | None:
        """What was kept, when it is of this state of the file and of this moment."""
        entry = self._kept.get(key)
        if entry is None or entry.changes != changes or (entry.expiry is not None and entry.expiry <= now):
            return None
        self._kept.move_to_end(key)
        return entry.value

    def keep(self, key: ScopeKey, changes: int, expiry: str | None, value: T) -> None:
        """Remember a scope; the least used one is forgotten beyond the size."""
        self._kept[key] = _Kept(changes, expiry, value)
        self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
