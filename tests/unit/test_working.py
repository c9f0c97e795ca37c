"""When jobs are due, and how long they wait after failing."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memplane.adapters.policy import load_policy, shipped_policies
from memplane.domain.errors import PolicyError
from memplane.domain.jobs.job_definitions import NIGHTLY, FactMode, FactRules, ModelRules, WorkerRules
from unit.small_policy import SMALL, WORKERS, mistakes, write_small

FRIDAY = datetime(2026, 11, 20, 4, 15, tzinfo=UTC)


def changed(folder: Path, old: str, new: str) -> Path:
    write_small(folder)
    text = SMALL[WORKERS]
    assert old in text
    (folder / WORKERS).write_text(text.replace(old, new), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("now", "last"),
    [
        (FRIDAY, FRIDAY),
        (FRIDAY + timedelta(seconds=59, microseconds=9), FRIDAY),
        (FRIDAY - timedelta(microseconds=1), FRIDAY - timedelta(days=1)),
        (FRIDAY + timedelta(days=2, hours=5), FRIDAY),  # nothing on a weekend
        (FRIDAY + timedelta(days=3), FRIDAY + timedelta(days=3)),
    ],
)
def test_the_latest_moment_of_a_schedule(tmp_path: Path, now: datetime, last: datetime) -> None:
    schedule = load_policy(write_small(tmp_path)).workers.schedules["ttl"]
    assert schedule is not None
    assert schedule.cron == "15 4 * * 1-5"
    assert schedule.last(now) == last


@pytest.mark.parametrize("written", ["off", '"off"'])
def test_a_job_that_is_off_is_never_due(tmp_path: Path, written: str) -> None:
    schedules = load_policy(changed(tmp_path, '"30 4 * * *"', written)).workers.schedules
    assert schedules["purge"] is None
    assert schedules["size"] is not None


def test_the_shipped_schedules() -> None:
    rules = load_policy(shipped_policies()).workers
    assert set(rules.schedules) == set(NIGHTLY)
    assert {schedule.cron for schedule in rules.schedules.values() if schedule} == {
        "0 2 * * *", "0 3 * * *", "15 3 * * *", "30 3,9,15,21 * * *", "45 3 * * 0", "0 4 * * *", "30 4 * * *",
    }  # fmt: skip
    assert (rules.attempts, rules.pause, rules.longest_pause) == (5, timedelta(seconds=30), timedelta(hours=1))


@pytest.mark.parametrize("wrong", ['"61 4 * * *"', '"0 4 * *"', '"@daily"', '"0 4 30 2 *"', '"0 4 * * * *"', "4"])
def test_what_is_no_schedule_is_told_with_its_place(tmp_path: Path, wrong: str) -> None:
    changed(tmp_path, '"30 4 * * *"', wrong)
    assert mistakes(tmp_path) == [(WORKERS, 15, "schedules.purge")]


def test_an_unknown_job_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="unknown key; did you mean 'purge'"):
        load_policy(changed(tmp_path, "  gc: off", '  gc: off\n  purges: "0 4 * * *"'))


def test_pauses_that_do_not_fit_each_other(tmp_path: Path) -> None:
    changed(tmp_path, "longest_pause_seconds: 3600", "longest_pause_seconds: 29")
    assert mistakes(tmp_path) == [(WORKERS, 24, "longest_pause_seconds")]


def test_what_a_model_may_be_asked_for(tmp_path: Path) -> None:
    rules = load_policy(write_small(tmp_path)).workers.model
    assert rules == ModelRules(5000, 1000, 0.15, 0.6)
    assert rules.cost(1_000_000, 500_000) == pytest.approx(0.45)
    assert load_policy(shipped_policies()).workers.model == ModelRules()
    assert load_policy(write_small(tmp_path)).workers.facts == FactRules(FactMode.LLM, 7)
    assert load_policy(shipped_policies()).workers.facts == FactRules()


@pytest.mark.parametrize(
    ("old", "new", "line", "key"),
    [
        ("user_tokens_per_day: 1000", "user_tokens_per_day: -1", 27, "user_tokens_per_day"),
        ("user_tokens_per_day: 1000", "user_tokens_per_day: 1.5", 27, "user_tokens_per_day"),
        ("input_price_per_million: 0.15", "input_price_per_million: .inf", 28, "input_price_per_million"),
        ("mode: llm", "mode: magic", 31, "mode"),
        ("  input_price_per_million: 0.15\n", "", 25, "input_price_per_million"),
    ],
)
def test_caps_that_are_none(tmp_path: Path, old: str, new: str, line: int, key: str) -> None:
    changed(tmp_path, old, new)
    assert mistakes(tmp_path) == [(WORKERS, line, f"{'facts' if key == 'mode' else 'model'}.{key}")]


def test_pauses_double_up_to_the_longest() -> None:
    rules = WorkerRules(pause=timedelta(seconds=30), longest_pause=timedelta(seconds=200))
    seconds = [rules.pause_after(attempts).total_seconds() for attempts in (0, 1, 2, 3, 4, 1000)]
    assert seconds == [30, 30, 60, 120, 200, 200]
