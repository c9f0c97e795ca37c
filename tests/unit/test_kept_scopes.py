"""A remembered scope, when its reader is cancelled and its thread goes on while others change it."""

from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest

from memplane.adapters.postgres import scope_cache
from memplane.adapters.postgres.packed_units import UnitMaterial
from memplane.adapters.postgres.scope_cache import CachedScope, ScopeCache, ScopeSnapshot
from memplane.adapters.sql.queries.material import Columns, Material
from memplane.adapters.sql.queries.units import Units
from memplane.adapters.sql.rows import TERM
from memplane.application.recall.search_material import Query
from memplane.domain.language.terms import terms
from unit.signals import priors

NOTHING = Query(terms(""), (), None)


def loaded(*ids: UUID) -> UnitMaterial:
    """Units without words or vectors."""
    count = len(ids)
    return UnitMaterial(
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


def held(kept: CachedScope) -> set[UUID]:
    ids = kept.measure(NOTHING, b"").ids
    return {ids[place] for place in range(len(ids))}


def test_what_is_put_in_and_taken_out() -> None:
    first, second = uuid4(), uuid4()
    kept = CachedScope(Material(4), ScopeSnapshot(1, 2, 0, 0, None))
    kept.put([loaded(first, second)])
    assert held(kept) == {first, second}
    kept.take_out(first.bytes + uuid4().bytes)
    assert held(kept) == {second}
    kept.put([loaded(first)])
    assert held(kept) == {first, second}


def test_a_thread_that_was_left_behind_undoes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reader was cancelled and gave the lock back; what it worked out is of before the change."""
    first, later = uuid4(), uuid4()
    kept = CachedScope(Material(4), ScopeSnapshot(1, 2, 0, 0, None))
    kept.put([loaded(first)])

    class Slow:
        @staticmethod
        def of(parts: Any) -> Units:  # noqa: ANN401 - as the original takes them
            found = Units.of(parts)
            monkeypatch.setattr(scope_cache, "Units", Units)
            kept.put([loaded(later)])  # meanwhile
            return found

    monkeypatch.setattr(scope_cache, "Units", Slow)
    assert held(kept) == {first}
    assert held(kept) == {first, later}


def test_the_least_used_leave_when_the_budget_is_spent() -> None:
    look = ScopeSnapshot(1, 2, 0, 0, None)
    one = ScopeCache(4, 0).build_scope(look, [loaded(uuid4())]).material.bytes
    memory = ScopeCache(4, one * 5 // 2)
    for name in "abc":
        memory.keep((name,), memory.build_scope(look, [loaded(uuid4())]))
        assert memory.find(("a",)) is not None  # used all the time
    assert (memory.find(("b",)), memory.find(("c",)) is None) == (None, False)
    kept = memory.find(("c",))
    assert kept is not None
    kept.put([loaded(*(uuid4() for _ in range(9)))])  # what is written makes it larger
    memory.settle()
    assert memory.find(("a",)) is None
    memory.keep(("large",), memory.build_scope(look, [loaded(*(uuid4() for _ in range(99)))]))
    assert memory.find(("large",)) is None


def test_only_what_is_asked_for_again_is_worth_it() -> None:
    memory = ScopeCache(4, 1_000_000)
    assert [memory.worth(("a",)), memory.worth(("b",)), memory.worth(("a",))] == [False, False, True]
    nothing = ScopeCache(4, 0)
    assert not any(nothing.worth(("a",)) for _ in range(3))
