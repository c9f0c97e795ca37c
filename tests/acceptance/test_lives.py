"""Random sequences of operations, clocks and nights: the rules of the lifecycle hold at every moment."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from memplane import bootstrap
from memplane.adapters.policy.loading import load_policy, shipped_policies
from memplane.application.keys.api_keys import NewKey
from memplane.domain.policy.policy import Trust
from support.cluster import Database
from support.files import File
from support.lives import RULES, TENANT, Lives, Time
from support.looks import Rows
from support.serving import RunningApplication, running_application

SEQUENCES = int(os.environ.get("LIVES", "8"))
"""Random sequences of twenty operations on each database; `make lives` tries more."""


@pytest.fixture
def machine(
    storage: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[type[Lives]]:
    """The state machine, on a database for this test alone, under a clock and a policy of its own."""
    for file in shipped_policies().glob("*.yaml"):
        text = file.read_text()
        for said, instead in {
            "capacity: 500": f"capacity: {RULES.capacity}",
            "max: 100000, prune_percent: 10": f"max: {RULES.max_size}, prune_percent: {RULES.prune_percent}",
            "rate: 0.0002": f"rate: {RULES.decay_rate}",
        }.items():
            text = text.replace(said, instead)
        (tmp_path / file.name).write_text(text)
    assert load_policy(tmp_path).lifecycle == RULES
    time = Time()
    monkeypatch.setattr(bootstrap, "now", time)
    database: Database | File = request.getfixturevalue("database" if storage == "postgres" else "file")
    with running_application(database, policies=tmp_path) as application, database.looking() as rows:
        application.run(application.wired.keys.create(TENANT, NewKey("supervisor", Trust.FULL)))
        yield _machine(application, time, rows)


def _machine(application: RunningApplication, clock: Time, rows: Rows) -> type[Lives]:
    class Here(Lives):
        app = application
        time = clock
        look = staticmethod(rows)

    return Here


def lived(machine: type[Lives], sequences: int) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]  # hypothesis' own
        machine,
        settings=settings(
            max_examples=sequences, stateful_step_count=20, deadline=None, derandomize=True, database=None,
            suppress_health_check=list(HealthCheck), phases=[Phase.generate],  # to shrink a failure takes minutes here
        ),
    )  # fmt: skip


def test_the_rules_hold_under_any_sequence(machine: type[Lives]) -> None:
    lived(machine, SEQUENCES)
