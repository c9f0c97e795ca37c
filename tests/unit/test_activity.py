"""Which days of an absence count towards the age of a memory, against numbers that were worked out by hand."""

from datetime import UTC, datetime, timedelta

import pytest

from memplane.domain.memory.active_days import Activity, Stretch, present_since, stretches_of

NOW = datetime(2026, 6, 1, 4, tzinfo=UTC)
DAY = timedelta(days=1)
AWAY = 14 * DAY


def ago(days: float) -> datetime:
    return NOW - days * DAY


def days(activity: Activity, used: float) -> float:
    """How many days a memory that was used so many days ago has aged."""
    return (NOW - activity.ages_since(ago(used), NOW, AWAY)) / DAY


THERE = Stretch(ago(3))
"""Last active on 29 May at 04:00."""
GONE = Stretch(ago(100))
"""Last active a hundred days ago, at 04:00: the rest of that day and fourteen more count."""
BACK = (Stretch(ago(200), ago(50)), Stretch(ago(1)))
"""Away from two hundred days ago to fifty days ago."""


@pytest.mark.parametrize(
    ("stretches", "used", "aged"),
    [
        ((THERE,), 40, 40), ((THERE,), 0, 0),
        ((GONE,), 100, 14 + 20 / 24), ((GONE,), 130, 44 + 20 / 24), ((GONE,), 50, 0), ((GONE,), 90, 4 + 20 / 24),
        (BACK, 200, 14 + 20 / 24 + 50 + 4 / 24), (BACK, 210, 24 + 20 / 24 + 50 + 4 / 24), (BACK, 60, 50 + 4 / 24),
        (BACK, 30, 30), ((), 100, 14), ((), 5, 5),
    ],
)  # fmt: skip
def test_days_beyond_fourteen_are_subtracted(stretches: tuple[Stretch, ...], used: float, aged: float) -> None:
    assert days(Activity(stretches), used) == pytest.approx(aged)


def test_what_was_used_later_than_now_has_no_age() -> None:
    for stretches in ((GONE,), BACK):
        assert days(Activity(stretches), -5) == -5


def test_an_absence_that_seems_to_end_later_than_now_is_cut() -> None:
    jumped = Activity((Stretch(ago(30), ago(-900)), Stretch(ago(-900))))
    assert days(jumped, 30) == pytest.approx(14 + 20 / 24)


@pytest.mark.parametrize(("at", "there"), [("05-18T00:00", True), ("05-17T23:59", False)])
def test_who_was_active_on_one_of_the_last_fourteen_days_is_present(at: str, *, there: bool) -> None:
    assert (datetime.fromisoformat(f"2026-{at}:00+00:00") >= present_since(NOW, AWAY)) is there


def test_moments_make_stretches() -> None:
    moments = [ago(each) for each in (1, 200, 190, 176, 50, 49)]
    assert stretches_of(moments, AWAY) == [(ago(200), ago(176)), (ago(50), ago(49)), (ago(1), ago(1))]
    assert stretches_of([], AWAY) == []
