"""Who was refused a moment ago is known by the whole credential, and not for long."""

from collections.abc import Callable

import pytest

from memplane.application.limits.refusals import KNOWN_SECONDS, MOST_KNOWN, Refusals
from memplane.domain.identity.principal import Principal
from memplane.domain.policy.policy import Trust

CALLER = Principal("t", "planner", Trust.FULL, frozenset(), "k")
GOOD = "mp_k_secret"


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def refusals(clock: Callable[[], float]) -> Refusals:
    return Refusals(clock)


def test_it_knows_a_credential_that_was_refused(refusals: Refusals) -> None:
    assert refusals.find_caller(GOOD) is None
    refusals.note(GOOD, CALLER)
    assert refusals.find_caller(GOOD) is CALLER


@pytest.mark.parametrize("other", ["mp_k_secre", "mp_k_Secret", "mp_k_", "", "mp_k_secret ", "mp_k_\ud800"])
def test_another_credential_of_the_same_key_is_a_stranger(refusals: Refusals, other: str) -> None:
    refusals.note(GOOD, CALLER)
    assert refusals.find_caller(other) is None
    assert refusals.find_caller(GOOD) is CALLER


def test_it_is_looked_up_again_after_a_moment(refusals: Refusals, clock: Clock) -> None:
    refusals.note(GOOD, CALLER)
    clock.now += KNOWN_SECONDS / 2
    assert refusals.find_caller(GOOD) is CALLER  # which does not make the moment longer
    clock.now += KNOWN_SECONDS / 2
    assert refusals.find_caller(GOOD) is None
    refusals.note(GOOD, CALLER)
    assert refusals.find_caller(GOOD) is CALLER


def test_it_keeps_no_credential_and_a_bounded_number(refusals: Refusals) -> None:
    for number in range(MOST_KNOWN + 5):
        refusals.note(f"mp_k{number}_secret", CALLER)
    assert refusals.find_caller("mp_k4_secret") is None
    assert refusals.find_caller("mp_k5_secret") is CALLER
    assert "secret" not in repr(vars(refusals))
