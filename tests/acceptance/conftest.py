"""The acceptance tests run on both kinds of database; what only one of them has is declared by the test."""

import pytest

from memplane.domain.capabilities import MEANINGS, POSTGRES, SQLITE, Capability

STORAGES = {"postgres": POSTGRES, "sqlite": SQLITE}


@pytest.fixture(params=STORAGES)
def storage(request: pytest.FixtureRequest) -> str:
    """The kind of database that the server runs on; skips it when it lacks what the test needs."""
    capabilities = STORAGES[request.param]
    needed: list[Capability] = [each for mark in request.node.iter_markers("needs") for each in mark.args]
    for capability in needed:
        if capability not in capabilities:
            pytest.skip(f"{capabilities.storage} does not have {capability}: {MEANINGS[capability].what}")
    return str(request.param)
