"""Ranking against hand-computed values and against a plain reference."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memplane.domain.policy import Bm25, FusionWeights, RankingMethod, RankingProfile
from memplane.domain.ranking import Signals, contextual_bm25, fusion_scale, reciprocal_rank, score
from memplane.domain.surroundings import NO_THREAD, Surroundings

WEIGHTS = FusionWeights(lexical=1.0, semantic=0.2, semantic_context=0.6, actor=0.3)


def profile(method: RankingMethod, bm25: Bm25 | None = None) -> RankingProfile:
    return RankingProfile("p", method, bm25 or Bm25(), {"*": WEIGHTS, "exact": FusionWeights(1.0, 0.0, 0.0, 0.0)})


Row = tuple[int, int, int, list[float]]
"""Thread, seq, length and frequency of each term of a unit."""


def signals(rows: list[Row], similarity: list[float] | None = None, actor: list[bool] | None = None) -> Signals:
    """Signals of units that stand in thread order."""
    frequency = np.array([row[3] for row in rows], dtype=np.float64).reshape(len(rows), len(rows[0][3]) if rows else 0)
    return Signals(
        surroundings=Surroundings(
            np.array([row[0] for row in rows], dtype=np.int64),
            np.array([row[1] for row in rows], dtype=np.int32),
            np.array([row[2] for row in rows], dtype=np.int32),
        ),
        postings=[(np.flatnonzero(column), column[column > 0]) for column in frequency.T],
        similarity=None if similarity is None else np.array(similarity, dtype=np.float32),
        actor=np.array(actor or [False] * len(rows), dtype=np.bool_),
    )


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
    assert built.matched(np.array([2, 1, 0])).tolist() == [[True, True], [False, False], [True, False]]


def test_nothing_in_scope_and_no_terms() -> None:
    empty = signals([])
    for method in RankingMethod:
        assert len(score(empty, profile(method), "m").score) == 0
    assert contextual_bm25(signals([(1, 1, 3, [])]), Bm25()).tolist() == [0.0]


def test_calibrated_fusion_by_hand() -> None:
    built = signals(
        [(1, 1, 5, [2.0]), (1, 2, 5, [0.0]), (2, 1, 5, [1.0])], [0.5, 0.1, float("nan")], [False, True, False]
    )
    found = score(built, profile(RankingMethod.CALIBRATED, Bm25(before=(0.5,), after=())), "m")
    assert found.lexical_scaled.max() == 1.0
    assert found.similarity.tolist() == pytest.approx([0.5, 0.1, 0.0])
    assert found.similarity_context.tolist() == pytest.approx([0.5, (0.1 + 0.5 * 0.5) / 1.5, 0.0])
    expected = found.lexical_scaled + 0.2 * found.similarity + 0.6 * found.similarity_context + 0.3 * found.actor
    assert found.score.tolist() == pytest.approx((expected / 2.1).tolist())


def test_weights_are_chosen_by_the_embedding_model() -> None:
    built = signals([(1, 1, 5, [1.0])], [0.5])
    assert score(built, profile(RankingMethod.CALIBRATED), "exact").score[0] == pytest.approx(1.0)
    assert score(built, profile(RankingMethod.CALIBRATED), "other").score[0] < 1.0


def test_equals_share_a_reciprocal_rank_in_whatever_order_they_come() -> None:
    signal = np.array([1.0, 3.0, 3.0, 0.0, 1.0])
    found = reciprocal_rank((signal,), 60)
    assert found.tolist() == [1 / 63, 1 / 61, 1 / 61, 0, 1 / 63]
    assert reciprocal_rank((signal[::-1],), 60).tolist() == found[::-1].tolist()


def test_reciprocal_rank_fusion_by_hand() -> None:
    found = reciprocal_rank((np.array([3.0, 1.0, 0.0]), np.array([0.1, 0.9, 0.5])), 60)
    assert found.tolist() == pytest.approx([1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 62])


@pytest.mark.parametrize(
    ("method", "best"), [(RankingMethod.LEXICAL, 0), (RankingMethod.SEMANTIC, 1), (RankingMethod.RRF, 0)]
)
def test_single_signals_and_rrf(method: RankingMethod, best: int) -> None:
    built = signals([(1, 1, 5, [2.0]), (2, 1, 5, [0.0]), (3, 1, 5, [1.0])], [0.4, 0.9, 0.1])
    assert int(np.argmax(score(built, profile(method), "m").score)) == best


def test_without_an_embedding_similarity_is_nothing() -> None:
    found = score(signals([(1, 1, 5, [2.0]), (2, 1, 5, [0.0])]), profile(RankingMethod.CALIBRATED), "m")
    assert found.similarity.tolist() == [0.0, 0.0]
    assert found.score[0] > found.score[1] == 0


def test_weights_of_zero_do_not_divide_by_zero() -> None:
    assert fusion_scale(FusionWeights(0.0, 0.0, 0.0, 0.0)) == 1.0
