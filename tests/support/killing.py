"""Workers that end in the middle of a transaction, after so many of its statements."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from memplane.adapters.postgres.session import PostgresSession
from memplane.adapters.sqlite.session import SqliteSession
from memplane.application.jobs.job_runner import Jobs
from support.nights import Stopped

_SENDING = ("execute", "rows_changed", "rows_of_all")


@contextmanager
def killed_after(statements: int, *, anywhere: bool = False) -> Iterator[list[int]]:
    """Let whoever is in a batch of a job end after so many statements of its transaction; how many there were.

    ``anywhere``: whoever writes at all, from the first statement on.
    """
    sent, inside = [0], [anywhere]
    with pytest.MonkeyPatch.context() as patched:
        batch = Jobs._step

        async def step(self: Jobs, *given: Any) -> Any:  # noqa: ANN401 - as it came
            inside[0] = False  # what a job reads and thinks before is no part of its transaction
            try:
                return await batch(self, *given)
            finally:
                inside[0] = True

        patched.setattr(Jobs, "_step", step)
        for kind in (PostgresSession, SqliteSession):
            for name in _SENDING:
                original = getattr(kind, name)

                async def counted(self: Any, *given: Any, _original: Any = original) -> Any:  # noqa: ANN401 - as it came
                    if inside[0]:
                        if sent[0] >= statements:
                            raise Stopped
                        sent[0] += 1
                    return await _original(self, *given)

                patched.setattr(kind, name, counted)
        yield sent
