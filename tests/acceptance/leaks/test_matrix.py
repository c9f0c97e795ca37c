"""The leak matrix: every caller on every way to read, and no byte of an answer that the caller must not see."""

import logging
from collections.abc import Callable

import pytest

from memplane.domain.principal import KeyScope
from support.access_matrix import ACCESS
from support.leaks.matrix import Matrix, Report
from support.leaks.world import World

TELLS_NOTHING = {str(access) for access in ACCESS if access.scope is None}
READS = {str(access) for access in ACCESS if access.scope is KeyScope.READ}
CASES = 5_000
"""At least so many requests on each kind of database."""


@pytest.fixture(scope="module")
def logged(log: logging.Handler, world: World) -> Callable[[], bytes]:
    """What was logged since the world was made."""
    assert world.voices
    return lambda: str(getattr(log, "text", "")).encode()


@pytest.fixture(scope="module")
def report(logged: Callable[[], bytes], world: World) -> Report:
    """The whole matrix, run once."""
    assert logged() is not None  # what is logged is kept from here on
    return Matrix(world).run()


@pytest.mark.slow
def test_no_answer_has_a_word_that_its_caller_must_not_see(
    report: Report, world: World, storage: str, record_property: Callable[[str, object], None]
) -> None:
    told = (
        f"{storage}: {len(world.voices)} callers, {len(world.planted.records)} records,"
        f" {len(world.planted.canaries)} planted words, {report.cases} requests, {report.words} comparisons,"
        f" {len(report.probed)} records named, {sum(report.shown.values())} allowed words shown"
    )
    record_property("leak matrix", told)
    print(told)  # noqa: T201 - the figures, with -s
    assert [str(leak) for leak in report.leaks] == []
    assert report.cases > CASES


@pytest.mark.slow
def test_a_caller_finds_whatever_it_may_see(report: Report) -> None:
    """The control: the same requests do bring what is allowed."""
    assert [str(missed) for missed in report.missing] == []
    assert {route for route in READS if not report.shown[route]} == set()
    assert not any(report.shown[route] for route in TELLS_NOTHING)


@pytest.mark.slow
def test_every_way_to_read_is_in_the_matrix(report: Report) -> None:
    assert set(report.routes) == READS | TELLS_NOTHING


@pytest.mark.slow
def test_no_planted_word_reaches_the_log(report: Report, world: World, logged: Callable[[], bytes]) -> None:
    assert report.cases
    assert world.planted.found(logged()) == set()
    word = next(iter(world.planted.canaries))
    logging.getLogger("memplane.test").warning("what is logged is looked through: %s", word)
    assert [canary.word for canary in world.planted.found(logged())] == [word]
