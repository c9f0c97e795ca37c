"""The ranking profiles against values worked out by hand."""

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from memplane.domain.policy.policy import Bm25, FusionWeights, RankingMethod, RankingProfile
from memplane.domain.ranking.fusion import (
    QuerySignals,
    UnitScores,
    fusion_scale,
    printed_weights,
    reciprocal_rank,
    score,
)
from unit.signals import NOW, days_ago, signals

WEIGHTS = FusionWeights(lexical=1.0, semantic=0.2, semantic_context=0.6, actor=0.3)
ASKED = QuerySignals(NOW)
WORDLESS = QuerySignals(NOW, wordless=True)
THREE = [(1, 1, 5, [2.0]), (2, 1, 5, [0.0]), (3, 1, 5, [1.0])]


def profile(method: RankingMethod, weights: FusionWeights = WEIGHTS, bm25: Bm25 | None = None) -> RankingProfile:
    return RankingProfile("p", method, bm25 or Bm25(), {"*": weights, "exact": FusionWeights(1.0, 0.0, 0.0, 0.0)})


def told(found: UnitScores, unit: int, by: RankingProfile, asked: QuerySignals) -> float:
    """A score worked out from its printed parts."""
    parts = found.parts_of(unit)
    summed = sum(weight * parts[name] for name, weight in printed_weights(by, "m", asked).items() if name in parts)
    return summed * parts.get("factor", 1.0)


@pytest.mark.parametrize("method", list(RankingMethod))
@pytest.mark.parametrize("asked", [ASKED, WORDLESS])
def test_each_score_follows_from_its_printed_parts(method: RankingMethod, asked: QuerySignals) -> None:
    weights = replace(WEIGHTS, entity=0.1, when=0.2, phrase=0.3, recency=0.1, importance=0.2, pinned=0.3, insight=0.5)
    said = replace(asked, spans=((NOW - timedelta(days=4), NOW),), phrases=((0,),))
    built = signals(
        THREE, [0.4, 0.9, 0.1], actor=[True, False, False], entity=[0.0, 2.0, 1.0], happened=days_ago(0, 3, 300),
        hit=days_ago(0, 10, 400), importance=[5, 1, 3], pinned=[False, True, False], insight=[False, True, False],
        reinforcement=[3, -1, 0], mentions=[4, 40, 1], hits=[0, 7, 2],
    )  # fmt: skip
    by = profile(method, weights)
    found = score(built, by, "m", said)
    assert len(set(found.score.tolist())) == 3
    for unit in range(3):
        assert told(found, unit, by, said) == pytest.approx(found.score[unit], abs=1e-12)


@pytest.mark.parametrize("method", list(RankingMethod))
def test_nothing_in_scope(method: RankingMethod) -> None:
    found = score(signals([]), profile(method), "m", ASKED)
    assert (len(found.score), len(found.best(10))) == (0, 0)


class TestCalibrated:
    def test_by_hand(self) -> None:
        rows = [(1, 1, 5, [2.0]), (1, 2, 5, [0.0]), (2, 1, 5, [1.0])]
        built = signals(rows, [0.5, 0.1, float("nan")], actor=[False, True, False])
        by = profile(RankingMethod.CALIBRATED, bm25=Bm25(before=(0.5,), after=()))
        found = score(built, by, "m", ASKED)
        parts = found.parts
        assert parts["lexical_scaled"].max() == 1.0
        assert parts["similarity"].tolist() == pytest.approx([0.5, 0.1, 0.0])
        assert parts["similarity_context"].tolist() == pytest.approx([0.5, (0.1 + 0.5 * 0.5) / 1.5, 0.0])
        expected = parts["lexical_scaled"] + 0.2 * parts["similarity"] + 0.6 * parts["similarity_context"]
        assert found.score.tolist() == pytest.approx(((expected + 0.3 * parts["actor"]) / 2.1).tolist())

    def test_weights_are_chosen_by_the_embedding_model(self) -> None:
        built = signals([(1, 1, 5, [1.0])], [0.5])
        assert score(built, profile(RankingMethod.CALIBRATED), "exact", ASKED).score[0] == pytest.approx(1.0)
        assert score(built, profile(RankingMethod.CALIBRATED), "other", ASKED).score[0] < 1.0

    def test_priors_by_hand(self) -> None:
        weights = FusionWeights(1.0, 0.2, 0.6, 0.2, recency=0.1, importance=0.2, pinned=0.3, insight=0.5)
        built = signals(
            [(1, 1, 5, [0.0]), (2, 1, 5, [0.0])], happened=days_ago(3, 3), importance=[5, 5], pinned=[True, True],
            insight=[False, True],
        )  # fmt: skip
        found = score(built, profile(RankingMethod.CALIBRATED, weights), "m", ASKED).score
        assert found[0] == pytest.approx((0.1 * 0.25 + 0.2 * 1.0 + 0.3) / 2.0)
        assert found[1] == pytest.approx(found[0] / 2)

    def test_without_an_embedding_similarity_is_nothing(self) -> None:
        found = score(signals([(1, 1, 5, [2.0]), (2, 1, 5, [0.0])]), profile(RankingMethod.CALIBRATED), "m", ASKED)
        assert found.parts["similarity"].tolist() == [0.0, 0.0]
        assert found.score[0] > found.score[1] == 0

    def test_what_the_question_says_beside_its_words(self) -> None:
        weights = FusionWeights(0.0, 0.0, 0.0, 0.0, entity=0.1, when=0.2, phrase=0.4)
        spans = ((NOW - timedelta(days=4), NOW - timedelta(days=2)),)
        built = signals(THREE, entity=[0.0, 2.0, 1.0], happened=days_ago(3, 1, 4))
        found = score(built, profile(RankingMethod.CALIBRATED, weights), "m", QuerySignals(NOW, spans, ((0,),)))
        assert found.parts["when"].tolist() == [1, 0, 1], "from is inclusive, until is not"
        assert found.score.tolist() == pytest.approx([0.2 + 0.4, 0.1, 0.05 + 0.2 + 0.4])

    def test_weights_of_zero_do_not_divide_by_zero(self) -> None:
        assert fusion_scale(FusionWeights(0.0, 0.0, 0.0, 0.0)) == 1.0


class TestReciprocalRank:
    def test_equals_share_a_rank_in_whatever_order_they_come(self) -> None:
        signal = np.array([1.0, 3.0, 3.0, 0.0, 1.0])
        found = reciprocal_rank(signal, 60)
        assert found.tolist() == [1 / 63, 1 / 61, 1 / 61, 0, 1 / 63]
        assert reciprocal_rank(signal[::-1], 60).tolist() == found[::-1].tolist()

    def test_three_signals_by_hand(self) -> None:
        built = signals(THREE, [0.1, 0.9, 0.5], entity=[0.0, 0.0, 1.0])
        found = score(built, profile(RankingMethod.RRF), "m", ASKED).score
        assert found.tolist() == pytest.approx([1 / 61 + 1 / 63, 1 / 61, 1 / 62 + 1 / 62 + 1 / 61])


@pytest.mark.parametrize(("method", "best"), [(RankingMethod.LEXICAL, 0), (RankingMethod.SEMANTIC, 1)])
def test_single_signals(method: RankingMethod, best: int) -> None:
    assert int(np.argmax(score(signals(THREE, [0.4, 0.9, 0.1]), profile(method), "m", ASKED).score)) == best


class TestByUse:
    """The three that order what the words find by the use that was made of it."""

    def test_weighted(self) -> None:
        built = signals(THREE, happened=days_ago(0, 1, 3), mentions=[5, 50, 10])
        found = score(built, profile(RankingMethod.WEIGHTED), "m", ASKED)
        text = found.parts["lexical_scaled"].tolist()
        assert found.score.tolist() == pytest.approx(
            [0.6 * 1 + 0.2 * 1 + 0.2 * 0.5, 0.2 * 0.5 + 0.2 * 1, 0.6 * text[2] + 0.2 * 0.25 + 0.2 * 1]
        )
        wordless = score(built, profile(RankingMethod.WEIGHTED), "m", WORDLESS).score
        assert wordless.tolist() == pytest.approx([0.7 + 0.3 * 0.5, 0.7 * 0.5 + 0.3, 0.7 * 0.25 + 0.3])

    def test_hebbian(self) -> None:
        built = signals(THREE, hit=days_ago(0, 5, 100), reinforcement=[3, 9, -5])
        found = score(built, profile(RankingMethod.HEBBIAN), "m", ASKED)
        first, _, third = found.parts["lexical"].tolist()
        assert found.score.tolist() == pytest.approx([first * 1.8221188, 0.0, third * 0.3678794 / 2], rel=1e-6)
        wordless = score(built, profile(RankingMethod.HEBBIAN), "m", WORDLESS).score
        assert wordless.tolist() == pytest.approx([math.exp(0.6), math.exp(1.8) / 1.05, math.exp(-1) / 2])

    def test_layered(self) -> None:
        built = signals(
            THREE, hit=days_ago(0, 20, 0), hits=[0, 7, 2], importance=[4, 3, 3], pinned=[False, False, True]
        )
        found = score(built, profile(RankingMethod.LAYERED), "m", ASKED).score
        assert found.tolist() == pytest.approx([0 + 1 + 2, math.log(8) + math.exp(-1), math.log(3) + 1 + 2])

    @pytest.mark.parametrize("method", [RankingMethod.WEIGHTED, RankingMethod.HEBBIAN, RankingMethod.LAYERED])
    def test_only_what_the_words_found_is_an_answer(self, method: RankingMethod) -> None:
        built = signals(THREE, [0.1, 0.9, 0.1], hits=[0, 100, 0], mentions=[1, 10, 1], reinforcement=[0, 9, 0])
        assert sorted(score(built, profile(method), "m", ASKED).best(3).tolist()) == [0, 2]
        assert sorted(score(built, profile(method), "m", WORDLESS).best(3).tolist()) == [0, 1, 2]


def test_the_best_among_some() -> None:
    found = score(signals(THREE, [0.4, 0.9, 0.1]), profile(RankingMethod.SEMANTIC), "m", ASKED)
    assert found.best(1).tolist() == [1]
    assert found.best(1, np.array([True, False, True])).tolist() == [0]
