"""A server full of planted words, once for each module and kind of database."""

import logging
from collections.abc import Iterator, MutableMapping
from contextlib import closing
from typing import Any

import pytest
from structlog.testing import capture_logs

from memplane.domain.policy.capabilities import MEANINGS, POSTGRES, SQLITE
from support.leaks.stories import tell_all
from support.leaks.world import World, policies_in
from support.serving import running_server

STORAGES = {"postgres": POSTGRES, "sqlite": SQLITE}


@pytest.fixture(scope="module", params=STORAGES)
def storage(request: pytest.FixtureRequest) -> str:
    """The kind of database that the server runs on."""
    return str(request.param)


@pytest.fixture(autouse=True)
def _needed(request: pytest.FixtureRequest, storage: str) -> None:
    """Skip a test on a kind of database that lacks what it needs."""
    for capability in (each for mark in request.node.iter_markers("needs") for each in mark.args):
        if capability not in STORAGES[storage]:
            pytest.skip(f"{storage} does not have {capability}: {MEANINGS[capability].what}")


class Log(logging.Handler):
    """Everything that the server logs, by either way."""

    def __init__(self, told: list[MutableMapping[str, Any]]) -> None:
        super().__init__(logging.INFO)
        self._lines: list[str] = []
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join([*self._lines, *map(str, self._told)])

    def forget(self) -> None:
        """Begin anew: the next world has the same words."""
        self._lines.clear()
        self._told.clear()


@pytest.fixture(scope="module")
def log() -> Iterator[Log]:
    """What the server logs."""
    root = logging.getLogger()
    before = root.level
    with capture_logs() as told:
        kept = Log(told)
        root.addHandler(kept)
        root.setLevel(logging.INFO)
        yield kept
    root.setLevel(before)
    root.removeHandler(kept)


@pytest.fixture(scope="module")
def world(storage: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The world; three tenants where a database has several."""
    makes = request.getfixturevalue("databases" if storage == "postgres" else "files")
    made, policies = makes.create(), policies_in(tmp_path_factory.mktemp("policies"))
    tenants = 3 if storage == "postgres" else 1
    with running_server(made, policies=policies) as server, closing(World(server, policies, tenants)) as world:
        tell_all(world)
        yield world
    makes.drop(made)
