"""Runs the consolidation in processes of their own that are killed after so many statements: for a test of crashes.

python -m support.killed <url> <tenant> <as of>
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from pydantic import SecretStr

from memplane.adapters.postgres.session import PostgresSession
from memplane.adapters.sqlite.session import SqliteSession
from memplane.application.jobs.job_runner import LEASE, Jobs
from memplane.bootstrap import Application
from memplane.settings import Settings

SENDING = ("execute", "rows_changed", "rows_of_all", "add", "tell", "flush")


def dying(method: Callable[..., Awaitable[Any]], left: list[int]) -> Callable[..., Awaitable[Any]]:
    """A method after which, when none is left, the process is gone without a word."""

    async def sent(*given: Any, **more: Any) -> Any:  # noqa: ANN401 - as it came
        done = await method(*given, **more)
        left[0] -= 1
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    return sent


async def run(url: str, tenant: str, moments: tuple[datetime, datetime], statements: int) -> None:
    """Run the job to its end, or die."""
    wired = Application(Settings(database_url=SecretStr(url), rate_per_second=0, jobs=False), url)
    await wired.open()
    left = [statements]
    for session in (PostgresSession, SqliteSession):
        for name in SENDING:
            if hasattr(session, name):
                setattr(session, name, dying(getattr(session, name), left))
    as_of, at = moments
    jobs = Jobs(wired.storage, wired.policies, wired.gateway, lambda: at, wired.jobs._prepared)
    jobs._storage.write = dying(jobs._storage.write, left)  # type: ignore[method-assign]  # right after a commit too
    await jobs.run("consolidation", tenant, as_of=as_of)


def main(url: str, tenant: str, as_of: str) -> None:
    """A worker for each line that comes, until one lives: each dies one statement later, when a lease has passed."""
    begin = datetime.fromisoformat(as_of)
    for statements, _ in enumerate(sys.stdin, 1):
        child = os.fork()
        if child == 0:
            clock = begin + statements * (LEASE + timedelta(seconds=1))
            asyncio.run(run(url, tenant, (begin, clock), statements))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        told = "killed" if os.WIFSIGNALED(status) else f"ended {os.WEXITSTATUS(status)}"
        os.write(sys.stdout.fileno(), f"{told}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
