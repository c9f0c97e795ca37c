"""Two writers of one thread cannot fork it; what was acknowledged stays; a killed writer leaves all or nothing."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver

from memplane.domain.errors import StaleCheckpoint
from memplane.entrypoints.langgraph import MemplaneSaver
from support.cluster import Database
from support.files import File
from support.graph_writers import THREAD, USER, answer, start, together, told
from support.graphs import at, counting, principal, savers

ROUNDS = int(os.environ.get("CHECKPOINT_ROUNDS", "60"))
"""How often the two writers run the graph together; set it to 1 000 for a thorough look."""
T = TypeVar("T")
Work = Callable[[MemplaneSaver], Coroutine[Any, Any, T]]


def with_saver(place: Database | File, work: Work[T], tenant: str | None = None) -> T:
    async def run() -> T:
        async with savers(place, principal(tenant or place.new_tenant())) as (saver,):
            return await work(saver)

    return asyncio.run(run())


async def every(saver: Any, **config: object) -> list[CheckpointTuple]:  # noqa: ANN401 - of either kind
    return [each async for each in saver.alist(at(THREAD, USER, checkpoint_ns="", **config))]


def id_of(one: CheckpointTuple) -> str:
    return str(one.config["configurable"]["checkpoint_id"])


def forks(found: list[CheckpointTuple]) -> int:
    """How many checkpoints share their parent with another, or are a second beginning."""
    parents = Counter(one.parent_config and one.parent_config["configurable"]["checkpoint_id"] for one in found)
    return sum(count - 1 for count in parents.values())


def lineage(found: list[CheckpointTuple], head: str) -> set[str]:
    """A checkpoint and its ancestors."""
    parents = {id_of(one): one.parent_config for one in found}
    met = {head}
    while (above := parents[head]) is not None:
        head = above["configurable"]["checkpoint_id"]
        met.add(head)
    return met


@pytest.mark.slow
def test_two_processes_do_not_fork_a_thread(place: Database | File) -> None:
    tenant = place.new_tenant()
    writers = [start("run", place.url, tenant, str(ROUNDS // 2)) for _ in range(2)]
    together(writers)
    ends = [told(writer) for writer in writers]

    async def look(saver: MemplaneSaver) -> tuple[list[CheckpointTuple], CheckpointTuple | None]:
        return await every(saver), await saver.aget_tuple(at(THREAD, USER))

    found, head = with_saver(place, look, tenant)
    assert head is not None
    assert sum(end["refused"] for end in ends) > 0  # they did meet
    assert forks(found) == 0
    whole = lineage(found, id_of(head))
    assert {each for end in ends for each in end["acknowledged"]} <= whole == {id_of(one) for one in found}


def test_the_measure_of_forks_finds_one(place: Database | File) -> None:
    """LangGraph's own saver in memory, and the same two runs one after the other on a fork that was asked for."""

    async def run(saver: Any) -> list[CheckpointTuple]:  # noqa: ANN401 - of either kind
        first = await counting(saver, 1).ainvoke({"count": 0, "messages": []}, at(THREAD, USER))
        assert first["count"] == 1
        oldest = (await every(saver))[-1]
        await counting(saver, 1).ainvoke({"count": 5, "messages": []}, oldest.config)
        return await every(saver)

    assert forks(asyncio.run(run(InMemorySaver()))) > 0
    with pytest.raises(StaleCheckpoint) as refused:
        with_saver(place, run)
    assert refused.value.code == "stale_checkpoint"


def test_the_second_of_two_runs_is_told_and_leaves_nothing(place: Database | File) -> None:
    async def run(saver: MemplaneSaver) -> None:
        graph, config = counting(saver), at(THREAD, USER)
        both = [graph.ainvoke({"count": 0, "messages": []}, config) for _ in range(2)]
        results = await asyncio.gather(*both, return_exceptions=True)
        assert [type(result) for result in results if isinstance(result, BaseException)] == [StaleCheckpoint]
        assert forks(await every(saver)) == 0
        (done,) = [result for result in results if isinstance(result, dict)]
        assert (await graph.aget_state(config)).values == done
        assert (await graph.ainvoke({"count": 1, "messages": []}, config))["count"] == 4

    with_saver(place, run)


def test_an_older_checkpoint_branches_only_where_that_is_declared(place: Database | File) -> None:
    async def run(saver: MemplaneSaver) -> None:
        graph, config = counting(saver), at(THREAD, USER)
        await graph.ainvoke({"count": 0, "messages": []}, config)
        before = await every(saver)
        past = await anext(one async for one in graph.aget_state_history(config) if one.values.get("count") == 1)
        with pytest.raises(StaleCheckpoint, match="forking"):
            await graph.aupdate_state(past.config, {"count": 40})
        assert await every(saver) == before

        travelling = counting(saver.forking())
        branch = await travelling.aupdate_state(past.config, {"count": 40})
        assert (await travelling.ainvoke(None, branch))["count"] == 42
        assert (await graph.aget_state(config)).values["count"] == 42  # the branch is the thread from now on
        assert forks(await every(saver)) == 1
        with pytest.raises(StaleCheckpoint):
            await graph.aupdate_state(before[0].config, {"count": 7})  # the old branch is over

    with_saver(place, run)


def test_a_second_beginning_is_refused_and_an_empty_one_never_leads(place: Database | File) -> None:
    async def run(saver: MemplaneSaver) -> None:
        config = at(THREAD, USER, checkpoint_ns="")
        told = {"source": "input", "step": -1}
        first = {**empty_checkpoint(), "channel_values": {"a": 1}, "channel_versions": {"a": "1"}}
        await saver.aput(config, first, told, {"a": "1"})
        with pytest.raises(StaleCheckpoint, match="an empty thread"):
            await saver.aput(config, {**first, "id": empty_checkpoint()["id"]}, told, {"a": "1"})
        empty = empty_checkpoint()
        await saver.aput(config, empty, told, {})
        head = await saver.aget_tuple(at(THREAD, USER))
        assert head is not None
        assert id_of(head) == first["id"]
        assert {id_of(one) for one in await every(saver)} == {first["id"], empty["id"]}

    with_saver(place, run)


def test_the_same_save_again_is_the_same_checkpoint(place: Database | File) -> None:
    async def run(saver: MemplaneSaver) -> None:
        config = at(THREAD, USER, checkpoint_ns="")
        checkpoint = {**empty_checkpoint(), "channel_values": {"a": [1]}, "channel_versions": {"a": "1"}}
        for _ in range(2):
            await saver.aput(config, checkpoint, {"source": "input", "step": -1}, {"a": "1"})
        (one,) = await every(saver)
        assert one.checkpoint["channel_values"] == {"a": [1]}

    with_saver(place, run)


def test_writes_of_tasks_are_kept_whoever_is_head(place: Database | File) -> None:
    """From many tasks at once, before their checkpoint is there, and after it is no longer the head."""

    async def run(saver: MemplaneSaver) -> None:
        config = at(THREAD, USER, checkpoint_ns="")
        first, second = empty_checkpoint(), empty_checkpoint()
        early = at(THREAD, USER, checkpoint_ns="", checkpoint_id=first["id"])
        await saver.aput_writes(early, [("a", "early")], "task-0")
        stored = await saver.aput(config, first, {"source": "input", "step": -1}, {})
        later = saver.aput(stored, second, {"source": "loop", "step": 0}, {})
        tasks = [saver.aput_writes(stored, [("a", n), ("b", [n])], f"task-{n}") for n in range(1, 30)]
        await asyncio.gather(*tasks[:15], later, *tasks[15:])
        found = await saver.aget_tuple(stored)
        assert found is not None
        assert found.pending_writes is not None
        assert {(task, value) for task, channel, value in found.pending_writes if channel == "a"} == {
            ("task-0", "early"),
            *((f"task-{n}", n) for n in range(1, 30)),
        }

    with_saver(place, run)


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_the_state_before_or_the_one_after(place: Database | File) -> None:
    tenant = place.new_tenant()
    writer = start("mortal", place.url, tenant)

    async def run(saver: MemplaneSaver) -> int:
        async def saved(count: int, nth: int) -> bool:
            head = await saver.aget_tuple(at(THREAD, USER))
            parent = id_of(head) if head else None
            said = await asyncio.to_thread(answer, writer, parent=parent, count=count, nth=nth)
            assert said in {"killed", "ended 0"}
            return said != "killed"

        assert await saved(1, 0)  # nothing kills this one
        assert await state(saver, place, tenant) == (before := ([1], 1, 1))
        for nth in range(1, 30):
            if await saved(1 + nth, nth):
                assert await state(saver, place, tenant) == ([1 + nth], 1 + nth, 2)
                return nth
            assert await state(saver, place, tenant) == before
        raise AssertionError("it never came to its end")

    assert with_saver(place, run, tenant) > 4  # it was killed before each of its statements
    writer.communicate(timeout=60)


async def state(saver: MemplaneSaver, place: Database | File, tenant: str) -> tuple[object, object, int]:
    """The head's value, the step that the supervisor's state tells, and how many checkpoints there are."""
    head = await saver.aget_tuple(at(THREAD, USER))
    (row,) = place.rows(tenant, "SELECT checkpoint_data FROM supervisor_checkpoints", {})
    assert head is not None
    told_step = row["checkpoint_data"]["graph"]["step"]
    return head.checkpoint["channel_values"]["list"], told_step, len(await every(saver))
