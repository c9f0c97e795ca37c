"""Pruning by itself, and the erasure of a user: what lives goes on, what is erased is gone, and nobody else's is."""

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memplane.application.keys.api_keys import AGENT_SCOPES, NewKey
from memplane.bootstrap import Application
from memplane.domain.errors import ScopeForbidden, UserForbidden
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.langgraph import MemplaneSaver
from memplane.settings import Settings
from support.cluster import Database
from support.files import File
from support.graph_stores import running
from support.graphs import at, counting, principal

USER, TABLES = "ana", ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "supervisor_checkpoints")
GIVEN = {"count": 0, "messages": []}


def stored(place: Database | File, tenant: str, user: str) -> list[int]:
    """How many rows a user has, by table."""
    counted = "SELECT count(*) AS count FROM {} WHERE tenant_id = %(tenant)s AND user_id = %(user)s"
    return [place.rows(tenant, counted.format(table), {"user": user})[0]["count"] for table in TABLES]


def age(place: Database | File, tenant: str, days: int) -> None:
    """Let everything that is stored be older."""
    moment = (datetime.now(UTC) - timedelta(days=days)).isoformat()
    place.rows(tenant, "UPDATE checkpoints SET created_at = %(at)s WHERE tenant_id = %(tenant)s", {"at": moment})


async def counted(saver: MemplaneSaver, thread: str, user: str = USER) -> int:
    return len([one async for one in saver.alist(at(thread, user))])


def test_a_server_prunes_the_tenants_that_call_by_age_and_count(place: Database | File) -> None:
    async def run() -> None:
        tenant = place.new_tenant()
        settings = Settings(database_url=place.url, checkpoints_keep=2, checkpoints_days=7, rate_per_second=0)
        wired = Application(settings, place.url)
        await wired.open()
        try:
            await wired.ensure_tenant(tenant)
            saver = MemplaneSaver(wired.checkpoints, principal(tenant))
            for thread in ("old", "older"):
                await counting(saver).ainvoke(GIVEN, at(thread, USER))
            before = await counted(saver, "old")
            assert before > 2
            assert (await wired.pruning.due()).checkpoints == 0  # nobody of the tenant has called
            _, key = await wired.keys.create(tenant, NewKey("supervisor", Trust.FULL, scopes=AGENT_SCOPES))
            await wired.authenticate(key)
            assert (await wired.pruning.due()).checkpoints == 0  # all of it is young
            age(place, tenant, 8)
            await counting(saver).ainvoke(GIVEN, at("young", USER))
            done = await wired.pruning.due()
            assert (done.threads, done.checkpoints) == (2, 2 * (before - 2))
            assert [await counted(saver, each) for each in ("old", "older", "young")] == [2, 2, before]
            assert (await wired.pruning.due()).checkpoints == 0
            for thread in ("old", "young"):
                assert (await counting(saver).aget_state(at(thread, USER))).values["count"] == 3
                assert (await counting(saver).ainvoke(GIVEN, at(thread, USER)))["count"] == 3
        finally:
            await wired.close()

    asyncio.run(run())


def test_threads_that_are_pruned_while_they_run_come_to_their_end(place: Database | File) -> None:
    async def run() -> None:
        tenant = place.new_tenant()
        async with running(place, tenant) as application:
            saver = MemplaneSaver(application.checkpoints, principal(tenant))
            over = asyncio.Event()

            async def prune() -> int:
                deleted = 0
                while not over.is_set():
                    deleted += (await application.pruning(tenant, 1, timedelta(0))).checkpoints
                    await asyncio.sleep(0)
                return deleted

            async def runs(nth: int) -> list[int]:
                graph = counting(saver, 6)
                return [(await graph.ainvoke(GIVEN, at(f"live {nth}", USER)))["count"] for _ in range(3)]

            pruning = asyncio.create_task(prune())
            done = await asyncio.gather(*(runs(nth) for nth in range(3)))
            over.set()
            assert await pruning > 0
            assert done == [[6, 6, 6]] * 3
            for nth in range(3):
                assert (await counting(saver, 6).aget_state(at(f"live {nth}", USER))).values["count"] == 6

    asyncio.run(run())


def test_an_erased_user_has_no_checkpoint_left_and_others_have_theirs(place: Database | File) -> None:
    async def run() -> None:
        tenant = place.new_tenant()
        async with running(place, tenant) as application:
            saver = MemplaneSaver(application.checkpoints, principal(tenant))
            for user in (USER, "ana2", "bo"):
                for thread in ("one", "two"):
                    await counting(saver).ainvoke(GIVEN, at(thread, user))
            before = {user: stored(place, tenant, user) for user in (USER, "ana2", "bo")}
            assert all(count > 0 for counts in before.values() for count in counts)
            for caller, kind in (
                (principal(tenant, "bo"), UserForbidden),
                (principal(tenant, scopes=frozenset()), ScopeForbidden),
            ):
                with pytest.raises(kind):
                    await application.checkpoints.erase(caller, USER)
            receipt = await application.checkpoints.erase(principal(tenant), USER)
            assert list(receipt.values()) == before[USER]
            assert list(receipt) == list(TABLES)
            assert stored(place, tenant, USER) == [0] * 4
            assert await saver.aget_tuple(at("one", USER)) is None
            for user in ("ana2", "bo"):
                assert stored(place, tenant, user) == before[user]
            assert set((await application.checkpoints.erase(principal(tenant), USER)).values()) == {0}
            assert (await counting(saver).ainvoke(GIVEN, at("one", USER)))["count"] == 3  # a new life

    asyncio.run(run())


def test_the_commands_prune_and_erase(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[3] / "platform"),
        "MEMPLANE_STORAGE": "sqlite",
    }

    def memplane(*arguments: str) -> Any:  # noqa: ANN401 - a document
        command = [sys.executable, "-m", "memplane.entrypoints.cli", *arguments, "--data", str(tmp_path), "--json"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    memplane("init")

    async def fill() -> None:
        async with MemplaneSaver.open(str(tmp_path / "memplane.db"), principal=principal("default")) as saver:
            await counting(saver).ainvoke(GIVEN, at("one", USER))

    asyncio.run(fill())
    assert memplane("checkpoints", "prune", "--keep", "1", "--older-than", "1")["checkpoints"] == 0
    assert memplane("checkpoints", "prune", "--keep", "1", "--older-than", "0")["checkpoints"] > 0
    assert memplane("checkpoints", "erase", USER)["erased"]["checkpoints"] == 1
    assert memplane("checkpoints", "erase", USER)["erased"]["checkpoints"] == 0
