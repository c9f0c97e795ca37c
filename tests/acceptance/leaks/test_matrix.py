"""The leak matrix: every caller on every way to read, and no byte of an answer that the caller must not see."""

import logging
from collections.abc import Callable

import pytest

from memplane.domain.identity.principal import KeyScope
from support.access_matrix import ACCESS
from support.leaks.matrix import Matrix, Report
from support.leaks.paths import REVERT
from support.leaks.world import World

WORDLESS = {"GET /v1/stats"}
"""Numbers; what they count is held to in `test_statistics`."""
TELLS_NOTHING = (
    WORDLESS
    | {
        str(access)
        for access in ACCESS
        if access.scope is None or (access.method == "GET" and access.path.startswith(("/v1/admin/", "/v1/quotas")))
    }
    | {f"POST {REVERT}"}
)
TRIED = {"POST /v1/memories/{memory_id}/retract"}
"""Writes of which a dry run shows what they would change."""
READS = {
    str(access)
    for access in ACCESS
    if access.scope is KeyScope.READ
    or (access.scope in {KeyScope.CONSENT, KeyScope.CHECKPOINT} and access.method == "GET")
    or access.path.endswith("/export")
} - WORDLESS
CASES = 5_000
"""At least so many requests on each kind of database."""


@pytest.mark.slow
def test_no_answer_has_a_word_that_its_caller_must_not_see(
    log: logging.Handler, world: World, storage: str, record_property: Callable[[str, object], None]
) -> None:
    """One test, so that the matrix runs once, however many processes the tests have."""
    # three tenants are many callers: each names half as many records
    report = Matrix(world, each=2 if len(world.tenants) == 1 else 1).run()
    told = _told(report, world, storage)
    record_property("leak matrix", told)
    print(told)  # noqa: T201 - the figures, with -s
    assert [str(leak) for leak in report.leaks] == []
    assert report.cases > CASES
    # the control: the same requests bring what is allowed, and a list all of it
    assert [str(missed) for missed in report.missing] == []
    assert {route for route in READS | TRIED if not report.shown[route]} == set()
    assert not any(report.shown[route] for route in TELLS_NOTHING)
    assert report.named > 0  # what tells no words names what its caller reaches
    # a route that is not asked cannot be found to leak: add it to `support.leaks.paths`
    assert set(report.routes) == READS | TELLS_NOTHING | TRIED
    _log_is_clean(log, world)


def _told(report: Report, world: World, storage: str) -> str:
    return (
        f"{storage}: {len(world.voices)} callers, {len(world.planted.records)} records,"
        f" {len(world.planted.canaries)} planted words, {report.cases} requests, {report.words} comparisons,"
        f" {len(report.probed)} records named, {sum(report.shown.values())} allowed words shown"
    )


def _log_is_clean(log: logging.Handler, world: World) -> None:
    def logged() -> bytes:
        return str(getattr(log, "text", "")).encode()

    assert world.planted.found(logged()) == set()
    word = next(iter(world.planted.canaries))
    logging.getLogger("memplane.test").warning("what is logged is looked through: %s", word)
    assert [canary.word for canary in world.planted.found(logged())] == [word]
    log.forget()  # type: ignore[attr-defined]  # the module's own handler
