"""A remembered scope, when its reader is cancelled and its thread goes on while others change it."""

from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest

from memplane.adapters.postgres import scopes
from memplane.adapters.postgres.packed import Loaded
from memplane.adapters.postgres.scopes import Kept, Look
from memplane.adapters.sql.material import Columns, Material
from memplane.adapters.sql.rows import TERM
from memplane.adapters.sql.units import Units
from memplane.application.records import Query
from memplane.domain.text import terms
from unit.signals import priors

NOTHING = Query(terms(""), (), None)


def loaded(*ids: UUID) -> Loaded:
    """Units without words or vectors."""
    count = len(ids)
    return Loaded(
        Columns(
            version=np.zeros(count, dtype=np.int64),
            ids=np.frombuffer(b"".join(each.bytes for each in ids), dtype="V16"),
            thread=np.zeros(count, dtype=np.int64),
            seq=np.zeros(count, dtype=np.int32),
            length=np.ones(count, dtype=np.int32),
            actors=[None] * count,
            sizes=np.zeros(count, dtype=np.int64),
            terms=np.zeros(0, dtype=TERM),
            embedding=np.zeros((0, 4), dtype=np.float32),
            embedded=np.zeros(count, dtype=np.bool_),
            priors=priors(count),
        ),
        None,
    )


def held(kept: Kept) -> set[UUID]:
    ids = kept.measured(NOTHING, b"").ids
    return {ids[place] for place in range(len(ids))}


def test_what_is_put_in_and_taken_out() -> None:
    first, second = uuid4(), uuid4()
    kept = Kept(Material(4), Look(1, 2, 0, 0, None))
    kept.put([loaded(first, second)])
    assert held(kept) == {first, second}
    kept.take_out(first.bytes + uuid4().bytes)
    assert held(kept) == {second}
    kept.put([loaded(first)])
    assert held(kept) == {first, second}


def test_a_thread_that_was_left_behind_undoes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reader was cancelled and gave the lock back; what it worked out is of before the change."""
    first, later = uuid4(), uuid4()
    kept = Kept(Material(4), Look(1, 2, 0, 0, None))
    kept.put([loaded(first)])

    class Slow:
        @staticmethod
        def of(parts: Any) -> Units:  # noqa: ANN401 - as the original takes them
            found = Units.of(parts)
            monkeypatch.setattr(scopes, "Units", Units)
            kept.put([loaded(later)])  # meanwhile
            return found

    monkeypatch.setattr(scopes, "Units", Slow)
    assert held(kept) == {first}
    assert held(kept) == {first, later}
