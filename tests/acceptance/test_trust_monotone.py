"""Whatever writers of different trust do, in any order: no word gains authority, and no trusted write is lost."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from memplane.application.keys.api_keys import NewKey
from memplane.domain.policy.policy import Trust
from support.cluster import Database
from support.files import File
from support.ranks import TENANT, Ranks
from support.serving import running_application

SEQUENCES = int(os.environ.get("LIVES", "20"))
"""Random sequences of twelve operations on each database; `make lives` tries more."""


@pytest.fixture
def machine(storage: str, request: pytest.FixtureRequest) -> Iterator[type[Ranks]]:
    """The state machine, on a database for this test alone."""
    database: Database | File = request.getfixturevalue("database" if storage == "postgres" else "file")
    with running_application(database) as application, database.looking() as rows:
        application.run(application.wired.keys.create(TENANT, NewKey("supervisor", Trust.FULL)))

        class Here(Ranks):
            app = application
            look = staticmethod(rows)

        yield Here


def test_trust_is_monotone_under_any_sequence(machine: type[Ranks]) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]  # hypothesis' own
        machine,
        settings=settings(
            max_examples=SEQUENCES, stateful_step_count=12, deadline=None, derandomize=True, database=None,
            suppress_health_check=list(HealthCheck), phases=[Phase.generate],
        ),
    )  # fmt: skip
