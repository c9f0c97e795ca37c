"""Signals against hand-computed values and against a plain reference."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memplane.domain.policy.policy import Bm25
from memplane.domain.ranking.signals import contextual_bm25
from memplane.domain.ranking.thread_neighbours import NO_THREAD
from unit.signals import Row, signals


def reference(rows: list[Row], p: Bm25) -> list[float]:
    """Contextual BM25, written out slowly."""
    n, q = len(rows), len(rows[0][3])
    places = {(thread, seq): i for i, (thread, seq, _, _) in enumerate(rows)}
    offsets = {-d: w for d, w in enumerate(p.before, 1)} | dict(enumerate(p.after, 1))

    def spread(values: list[float]) -> list[float]:
        total = []
        for i in range(n):
            value = values[i]
            thread, seq, _, _ = rows[i]
            for offset, weight in offsets.items():
                other = places.get((thread, seq + offset)) if thread != NO_THREAD else None
                value += weight * values[other] if other is not None else 0.0
            total.append(value)
        return total

    length = spread([float(row[2]) for row in rows])
    mean = (sum(length) / n if n else 0) or 1.0
    scores = [0.0] * n
    for term in range(q):
        own = [row[3][term] for row in rows]
        df = sum(v > 0 for v in own)
        idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
        for i, f in enumerate(spread(own)):
            scores[i] += idf * f * (p.k1 + 1) / (f + p.k1 * (1 - p.b + p.b * length[i] / mean) + 1e-9)
    return scores


def test_bm25_by_hand() -> None:
    found = contextual_bm25(signals([(0, 0, 4, [2.0]), (0, 0, 6, [0.0])]), Bm25(before=(), after=()))
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    assert found[0] == pytest.approx(idf * 2 * 2.2 / (2 + 1.2 * (0.5 + 0.5 * 4 / 5)), abs=1e-6)
    assert found[1] == 0


def test_a_unit_carries_its_neighbours_words() -> None:
    found = contextual_bm25(
        signals([(7, 1, 5, [1.0]), (7, 2, 5, [0.0]), (7, 3, 5, [0.0]), (7, 6, 5, [0.0]), (8, 2, 5, [0.0])]), Bm25()
    )
    assert found[0] > found[1] > found[2] > 0
    assert found[3] == 0, "five places on is out of reach"
    assert found[4] == 0, "another thread is no neighbour"


def test_units_without_thread_have_no_neighbours() -> None:
    found = contextual_bm25(signals([(NO_THREAD, 1, 5, [1.0]), (NO_THREAD, 2, 5, [0.0])]), Bm25())
    assert found[0] > 0
    assert found[1] == 0


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_bm25_equals_the_reference(data: st.DataObject) -> None:
    places = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), unique=True, max_size=25))
    columns = data.draw(st.integers(1, 3))
    rows = [
        (
            t,
            s,
            data.draw(st.integers(1, 30)),
            data.draw(st.lists(st.sampled_from([0.0, 1.0, 3.0]), min_size=columns, max_size=columns)),
        )
        for t, s in sorted(places)
    ]
    if not rows:
        return
    assert contextual_bm25(signals(rows), Bm25()) == pytest.approx(reference(rows, Bm25()), abs=1e-9)


def test_units_out_of_thread_order_are_refused() -> None:
    with pytest.raises(ValueError, match="thread order"):
        signals([(1, 2, 5, [1.0]), (1, 1, 5, [0.0])])


def test_which_terms_stand_where() -> None:
    built = signals([(1, 1, 5, [1.0, 0.0]), (1, 2, 5, [0.0, 0.0]), (2, 1, 5, [2.0, 3.0])])
    assert built.matched_terms(np.array([2, 1, 0])).tolist() == [[True, True], [False, False], [True, False]]


def test_no_terms_score_nothing() -> None:
    assert contextual_bm25(signals([]), Bm25()).tolist() == []
    assert contextual_bm25(signals([(1, 1, 3, [])]), Bm25()).tolist() == [0.0]


def test_units_that_hold_every_term_of_a_phrase() -> None:
    built = signals([(1, 1, 5, [1.0, 0.0]), (1, 2, 5, [1.0, 2.0]), (2, 1, 5, [0.0, 3.0])])
    assert built.holding_all((0, 1)).tolist() == [False, True, False]
    assert built.holding_all((1,)).tolist() == [False, True, True]
