"""The lifecycle as pure rules, against numbers that were worked out by hand."""

from datetime import UTC, datetime, timedelta
from math import exp, log
from uuid import UUID

import pytest

from memplane.domain.errors import StateConflict
from memplane.domain.memory.lifecycle import (
    DAY,
    STEPS,
    Cause,
    LifecycleRules,
    WeighedMemory,
    after,
    check_transition,
    crowded_out,
    decayed_confidence,
    memories_to_archive,
)
from memplane.domain.memory.memory import State

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ALLOWED = {
    (State.ACTIVE, State.SUPERSEDED), (State.ACTIVE, State.ARCHIVED), (State.ACTIVE, State.SOFT_DELETED),
    (State.SUPERSEDED, State.ACTIVE), (State.SUPERSEDED, State.SOFT_DELETED),
    (State.ARCHIVED, State.ACTIVE), (State.ARCHIVED, State.SOFT_DELETED),
    (State.SOFT_DELETED, State.ACTIVE), (State.SOFT_DELETED, State.PURGED),
}  # fmt: skip


def weighed(number: int, *, days: float = 0, hits: int = 0, importance: int = 3, **more: int | bool) -> WeighedMemory:
    kept, reinforcement = bool(more.get("kept")), int(more.get("reinforcement", 0))
    return WeighedMemory(UUID(int=number), hits, reinforcement, importance, NOW - timedelta(days=days), kept)


@pytest.mark.parametrize("before", State)
@pytest.mark.parametrize("then", State)
def test_the_state_machine_has_these_steps_and_no_other(before: State, then: State) -> None:
    if (before, then) in ALLOWED:
        check_transition(before, then)
        assert then in {after(cause, before) for cause, (sources, _) in STEPS.items() if before in sources}
    else:
        with pytest.raises(StateConflict, match=before):
            check_transition(before, then)


@pytest.mark.parametrize("cause", Cause)
@pytest.mark.parametrize("before", State)
def test_a_cause_leads_from_its_own_states_alone(cause: Cause, before: State) -> None:
    sources, target = STEPS[cause]
    if before in sources:
        assert after(cause, before) is target
    else:
        with pytest.raises(StateConflict):
            after(cause, before)


@pytest.mark.parametrize(
    ("confidence", "rate", "days", "left"),
    [
        (1.0, 0.1, 10, 0.36787944), (0.8, 0.05, 2, 0.72386993), (0.5, 0.0, 1000, 0.5), (1.0, 0.0002, 173, 0.96599),
        (0.5, 0.1, 0, 0.5), (0.5, 0.1, -30, 0.5), (0.06, 0.1, 2, 0.04912385),
    ],
)  # fmt: skip
def test_confidence_wanes(confidence: float, rate: float, days: float, left: float) -> None:
    assert decayed_confidence(confidence, rate, NOW - timedelta(days=days), NOW) == pytest.approx(left, rel=1e-4)


@pytest.mark.parametrize(
    ("each", "score"),
    [
        (weighed(1), 1.0), (weighed(1, hits=1), 1.6931472), (weighed(1, days=20), 0.3678794),
        (weighed(1, days=13.8), 0.5015761), (weighed(1, importance=4, days=20), 2.3678794), (weighed(1, days=-5), 1.0),
    ],
)  # fmt: skip
def test_the_score_of_a_layer(each: WeighedMemory, score: float) -> None:
    assert each.score(NOW) == pytest.approx(score, rel=1e-6)


def test_the_rank_among_all() -> None:
    assert weighed(1, days=100).rank(NOW) == pytest.approx(0.5)
    assert weighed(1, reinforcement=3).rank(NOW) == pytest.approx(exp(0.6))
    assert weighed(1, reinforcement=-1, days=50).rank(NOW) == pytest.approx(exp(-0.2) / 1.5)
    assert weighed(1, hits=100).rank(NOW) == 1.0  # what was only hit counts by its time
    assert weighed(1, hits=3).score(NOW) == pytest.approx(log(4) + 1)


class TestCapacity:
    """Over the capacity the lowest of what may go is archived."""

    RULES = LifecycleRules(capacity=2)

    def test_nothing_within_it(self) -> None:
        assert crowded_out([weighed(1, days=90), weighed(2, days=90)], self.RULES, NOW) == []

    def test_the_lowest_first_and_no_more_than_exceed_it(self) -> None:
        old = [weighed(n, days=days) for n, days in ((1, 20), (2, 40), (3, 30), (4, 0))]
        assert crowded_out(old, self.RULES, NOW) == [UUID(int=2), UUID(int=3)]
        left = [each for each in old if each.id not in {UUID(int=2), UUID(int=3)}]
        assert crowded_out(left, self.RULES, NOW) == []

    def test_only_what_scores_low_or_had_no_hit_for_long(self) -> None:
        fresh = [weighed(n, days=13) for n in (1, 2, 3)]
        assert crowded_out(fresh, self.RULES, NOW) == []
        hit = [weighed(n, hits=9, days=days) for n, days in ((1, 30), (2, 30.01), (3, 5))]
        assert crowded_out(hit, self.RULES, NOW) == [UUID(int=2)]

    def test_what_is_kept_stays(self) -> None:
        old = [weighed(1, days=90, kept=True), weighed(2, days=80), weighed(3, days=85, kept=True)]
        assert crowded_out(old, self.RULES, NOW) == [UUID(int=2)]


class TestSize:
    """Over the size so many percent are archived, until it is kept."""

    def test_the_lowest_percent(self) -> None:
        rules = LifecycleRules(max_size=10, prune_percent=25)
        some = [weighed(n, days=n) for n in range(1, 12)]
        assert memories_to_archive(some[:10], rules, NOW) == []
        assert memories_to_archive(some, rules, NOW) == [
            UUID(int=n) for n in (11, 10, 9)
        ]  # a quarter of 11, rounded up

    def test_again_until_it_is_kept(self) -> None:
        rules = LifecycleRules(max_size=5, prune_percent=10)
        some = [weighed(n, days=n) for n in range(1, 11)]
        gone = memories_to_archive(some, rules, NOW)
        assert gone == [UUID(int=n) for n in (10, 9, 8, 7, 6)]
        assert memories_to_archive([each for each in some if each.id not in gone], rules, NOW) == []

    def test_what_is_reinforced_or_kept_stays(self) -> None:
        rules = LifecycleRules(max_size=2, prune_percent=30)
        some = [weighed(1, days=90, reinforcement=9), weighed(2, days=90, kept=True), weighed(3, days=1)]
        assert memories_to_archive(some, rules, NOW) == [UUID(int=3)]


def test_a_day_is_a_day() -> None:
    assert LifecycleRules().idle == 60 * DAY == timedelta(days=60)
