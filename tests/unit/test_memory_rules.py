"""Identity, duplicates, priors, lifecycle and attributes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from memplane.domain.attributes import MAX_DEPTH, MAX_NODES, checked
from memplane.domain.errors import Conflict, Invalid, LimitExceeded, MemplaneError
from memplane.domain.lifecycle import TRANSITIONS, check_transition
from memplane.domain.memory import MemoryText, MemoryType, State, new_id
from memplane.domain.merging import value_hash
from memplane.domain.policy import Bm25, FusionWeights, RankingMethod, RankingProfile
from memplane.domain.priors import Prior, explained, printed_weights, with_priors
from memplane.domain.ranking import Signals, score
from memplane.domain.surroundings import Surroundings
from unit.test_rendering import memory, turn

NOW = datetime(2026, 5, 8, tzinfo=UTC)
WEIGHTS = FusionWeights(1.0, 0.2, 0.6, 0.2, recency=0.1, importance=0.2, pinned=0.3, insight=0.5)
PROFILE = RankingProfile("default", RankingMethod.CALIBRATED, Bm25(), {"*": WEIGHTS})


def test_ids_are_ordered_by_time() -> None:
    ids = [new_id() for _ in range(200)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 200
    assert all(type(one) is UUID and one.version == 7 for one in ids)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Ana likes tea.", "ana  likes TEA", True),
        ("Ana uses C.", "Ana uses C#.", False),
        ("It is -5 degrees", "It is 5 degrees", False),
        ("Ana likes tea.", "Ana likes coffee.", False),
    ],
)
def test_exact_duplicates(one: str, other: str, same: bool) -> None:
    assert (value_hash(MemoryText(one)) == value_hash(MemoryText(other))) is same


def test_facts_stand_for_the_content_and_parts_do_not_run_together() -> None:
    assert value_hash(MemoryText("a", facts=("x",))) == value_hash(MemoryText("b", facts=("x",)))
    assert value_hash(MemoryText("a", title="t")) != value_hash(MemoryText("a"))
    assert value_hash(MemoryText("a", facts=("x", "y"))) != value_hash(MemoryText("a", facts=("x y",)))
    assert value_hash(MemoryText("a", steps=("x",))) != value_hash(MemoryText("a"))


def test_priors_by_hand() -> None:
    kept = replace(memory(), importance=5, pinned=True, event_time=NOW - timedelta(days=3))
    prior = with_priors(kept, {"fused": 0.4}, PROFILE, "m", NOW)
    assert prior.score == pytest.approx(0.4 + (0.1 * 0.25 + 0.2 * 1.0 + 0.3) / 2.0)
    assert prior.parts["recency"] == pytest.approx(0.25)


def test_insights_weigh_less_and_turns_are_ordinary() -> None:
    insight = with_priors(replace(memory(), type=MemoryType.INSIGHT), {"fused": 0.4}, PROFILE, "m", NOW)
    plain = with_priors(memory(), {"fused": 0.4}, PROFILE, "m", NOW)
    assert insight.score == pytest.approx(plain.score / 2)
    assert with_priors(turn(), {"fused": 0.4}, PROFILE, "m", NOW).parts["importance"] == 0.5


def test_other_methods_have_no_priors() -> None:
    plain = RankingProfile("rrf", RankingMethod.RRF, Bm25(), {})
    assert with_priors(replace(memory(), pinned=True), {"fused": 0.4}, plain, "m", NOW).score == 0.4
    assert printed_weights(plain, "m") == {"fused": 1.0}


def test_a_score_is_the_sum_of_its_printed_parts() -> None:
    signals = Signals(
        Surroundings(np.array([1, 1]), np.array([1, 2], np.int32), np.array([4, 6], np.int32)),
        [(np.array([0, 1]), np.array([1.0, 2.0])), (np.array([1]), np.array([1.0]))],
        np.array([0.3, 0.6], np.float32),
        np.array([True, False]),
    )
    scored = score(signals, PROFILE, "m")
    first, second = signals.matched(np.array([0, 1]))
    parts = explained(scored, 1, second, {11: "tea", 12: "cup"})
    assert parts["matched"] == ["tea", "cup"]
    assert explained(scored, 0, first, {11: "tea", 12: "cup"})["matched"] == ["tea"]
    prior = with_priors(memory(), parts, PROFILE, "m", NOW)
    told = sum(weight * float(str(prior.parts[name])) for name, weight in printed_weights(PROFILE, "m").items())
    assert prior.score == pytest.approx(told, abs=1e-9)


def test_the_newest_come_first() -> None:
    assert Prior.newest(0).score > Prior.newest(1).score


def test_transitions() -> None:
    check_transition(State.ACTIVE, State.SOFT_DELETED)
    check_transition(State.SOFT_DELETED, State.ACTIVE)
    with pytest.raises(Conflict, match="purged cannot become active"):
        check_transition(State.PURGED, State.ACTIVE)
    assert set(TRANSITIONS) == set(State)


def test_attributes_that_can_be_kept() -> None:
    value: dict[str, object] = {"a": [1, 2.5, None, True, {"b": "text"}], "c": -(2**63) + 1}
    assert checked(value) == value


def _nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth - 1):
        value = {"x": value}
    return value


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        ({"a": float("nan")}, Invalid, "attributes.a: a number must be finite"),
        ({"a": 2**63}, Invalid, "64 bits"),
        ({"a": "x\x00"}, Invalid, "NUL"),
        ({"a\ud800": 1}, Invalid, "a key: holds"),
        ({"a": [object()]}, Invalid, r"attributes.a\[0\]: object is no JSON value"),
        ({"a": "x" * 16_001}, LimitExceeded, "16001 characters"),
        ({"a": [0] * MAX_NODES}, LimitExceeded, "1000 values"),
        (_nested(MAX_DEPTH + 1), LimitExceeded, "8 levels"),
    ],
)
def test_attributes_that_cannot_be_kept(value: dict[str, object], error: type[MemplaneError], said: str) -> None:
    with pytest.raises(error, match=said):
        checked(value)


def test_the_deepest_attributes_pass() -> None:
    assert checked(_nested(MAX_DEPTH)) == _nested(MAX_DEPTH)
