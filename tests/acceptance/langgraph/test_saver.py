"""Graphs on the saver: what comes back, what a supervisor is told, what pruning leaves, and the face without a loop."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypedDict, TypeVar

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from psycopg.rows import dict_row

from memplane.domain.errors import (
    CheckpointNeeded,
    InvalidRequest,
    InvalidText,
    LimitExceeded,
    StateConflict,
    UndeclaredType,
)
from memplane.entrypoints.langgraph import MemplaneSaver
from support.cluster import Database
from support.files import File
from support.graphs import Steps, at, counting, principal, savers

T = TypeVar("T")
Work = Callable[[MemplaneSaver], Coroutine[Any, Any, T]]
USER, THREAD = "ana", "plans"
CONFIG = at(THREAD, USER)


def with_saver(place: Database | File, work: Work[T], tenant: str | None = None, **given: object) -> T:
    async def run() -> T:
        async with savers(place, principal(tenant or place.new_tenant()), **given) as (saver,):
            return await work(saver)

    return asyncio.run(run())


@dataclass
class Note:
    """A value of an application."""

    text: str


def test_a_run_goes_on_after_a_restart_where_it_was_interrupted(place: Database | File) -> None:
    tenant = place.new_tenant()

    def asking(saver: MemplaneSaver) -> Any:  # noqa: ANN401 - a compiled graph
        async def ask(state: Steps) -> dict[str, Any]:
            answer = interrupt("may I?")
            return {"count": state["count"] + 1, "messages": [HumanMessage(answer, id="1")]}

        return StateGraph(Steps).add_node(ask).add_edge(START, "ask").add_edge("ask", END).compile(checkpointer=saver)

    async def first(saver: MemplaneSaver) -> None:
        stopped = await asking(saver).ainvoke({"count": 1, "messages": [AIMessage("well", id="0")]}, CONFIG)
        assert stopped["__interrupt__"][0].value == "may I?"

    async def second(saver: MemplaneSaver) -> None:
        graph = asking(saver)
        assert (await graph.aget_state(CONFIG)).next == ("ask",)
        done = await graph.ainvoke(Command(resume="yes"), CONFIG)
        assert done == {"count": 2, "messages": [AIMessage("well", id="0"), HumanMessage("yes", id="1")]}

    with_saver(place, first, tenant)
    with_saver(place, second, tenant)


def test_a_supervisor_is_told_with_every_checkpoint(place: Database | File) -> None:
    tenant = place.new_tenant()

    async def run(saver: MemplaneSaver) -> None:
        for user, rev in ((USER, 44), ("bo", 7)):  # the same thread of another user has a revision of its own
            revision = (
                "(tenant_id, user_id, thread_id, rev, turns, updated_at) VALUES (%(tenant)s, %(user)s, %(thread)s"
            )
            given = {"user": user, "thread": THREAD, "rev": rev}
            place.rows(tenant, f"INSERT INTO thread_revision {revision}, %(rev)s, 0, now())", given)
        inner = counting(saver, 1)
        builder = StateGraph(Steps).add_node("child", inner).add_edge(START, "child").add_edge("child", END)
        graph = builder.compile(checkpointer=saver)
        await graph.ainvoke({"count": 1, "messages": [{"role": "user", "content": "go"}]}, CONFIG)
        head = await saver.aget_tuple(CONFIG)
        assert head is not None
        (row,) = place.rows(
            tenant, "SELECT checkpoint_data, version, user_id, thread_id FROM supervisor_checkpoints", {}
        )
        data = row["checkpoint_data"]
        assert (row["user_id"], row["thread_id"]) == (USER, THREAD)
        assert data["graph"]["checkpoint_id"] == head.checkpoint["id"]
        assert data["graph"]["step"] == head.metadata["step"]
        assert {"count", "messages"} <= set(data["graph"]["channels"])
        assert data["conversation"][0] == {"role": "user", "text": "go"}
        assert "counted to 2" in [each["text"] for each in data["conversation"]]
        assert data["memory"] == {"revision": 44}
        stored = [one async for one in saver.alist(CONFIG)]
        assert row["version"] == len(stored)
        namespaces = {one.config["configurable"]["checkpoint_ns"].split(":")[0] for one in stored}
        assert set(data.get("agents", {})) == namespaces - {""}

    with_saver(place, run, tenant)


def test_a_type_that_is_not_declared_fails_at_the_save_and_stores_nothing(place: Database | File) -> None:
    class State(TypedDict):
        note: Any

    def noting(saver: MemplaneSaver) -> Any:  # noqa: ANN401 - a compiled graph
        async def write(_: State) -> dict[str, Any]:
            return {"note": Note("mine")}

        builder = StateGraph(State).add_node(write).add_edge(START, "write").add_edge("write", END)
        return builder.compile(checkpointer=saver)

    async def undeclared(saver: MemplaneSaver) -> None:
        with pytest.raises(UndeclaredType, match="Note"):
            await noting(saver).ainvoke({"note": None}, CONFIG)
        for one in [one async for one in saver.alist(CONFIG)]:
            assert one.checkpoint["channel_values"].get("note") is None

    async def declared(saver: MemplaneSaver) -> None:
        await noting(saver).ainvoke({"note": None}, CONFIG)
        assert (await noting(saver).aget_state(CONFIG)).values == {"note": Note("mine")}

    with_saver(place, undeclared)
    with_saver(place, declared, types=[Note])


def test_what_a_node_raises_reaches_the_caller_and_is_kept_as_text(place: Database | File) -> None:
    @dataclass
    class Broken(Exception):
        """An error that could be taken for a value of an application."""

        why: str

    async def fail(_: Steps) -> dict[str, Any]:
        raise Broken("no reason")

    async def run(saver: MemplaneSaver) -> None:
        builder = StateGraph(Steps).add_node(fail).add_edge(START, "fail").add_edge("fail", END)
        with pytest.raises(Broken, match="no reason"):
            await builder.compile(checkpointer=saver).ainvoke({"count": 0, "messages": []}, CONFIG)
        head = await saver.aget_tuple(CONFIG)
        assert head is not None
        assert [value for _, channel, value in head.pending_writes or [] if channel == "__error__"] == [
            repr(Broken("no reason"))
        ]

    with_saver(place, run)


def test_a_strict_graph_declares_the_types_of_its_state(
    place: Database | File, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What LangGraph does where `LANGGRAPH_STRICT_MSGPACK` is set, which it reads when it is imported."""

    class State(TypedDict):
        note: Note

    async def write(_: State) -> dict[str, Note]:
        return {"note": Note("mine")}

    def built(saver: MemplaneSaver) -> Any:  # noqa: ANN401 - a compiled graph
        builder = StateGraph(State).add_node(write).add_edge(START, "write").add_edge("write", END)
        return builder.compile(checkpointer=saver)

    async def run(saver: MemplaneSaver) -> None:
        with pytest.raises(UndeclaredType):
            await built(saver).ainvoke({"note": Note("given")}, at("loose", USER))
        monkeypatch.setattr("langgraph.graph.state._serde.STRICT_MSGPACK_ENABLED", True)
        graph = built(saver)
        await graph.ainvoke({"note": Note("given")}, CONFIG)
        assert (await graph.aget_state(CONFIG)).values == {"note": Note("mine")}
        assert saver.serde.types == frozenset()  # the saver that was given keeps to its own

    with_saver(place, run)


def joined(before: list[str], writes: Sequence[list[str]]) -> list[str]:
    return [*before, *(each for write in writes for each in write)]


class Growing(TypedDict):
    """A channel of which each checkpoint holds only what changed."""

    log: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=4)]


def growing(saver: MemplaneSaver) -> Any:  # noqa: ANN401 - a compiled graph
    async def grow(_: Growing) -> dict[str, list[str]]:
        return {"log": ["grown"]}

    return StateGraph(Growing).add_node(grow).add_edge(START, "grow").add_edge("grow", END).compile(checkpointer=saver)


@pytest.mark.parametrize("runs", range(1, 7))
def test_pruning_keeps_what_a_delta_channel_is_rebuilt_from(place: Database | File, runs: int) -> None:
    async def run(saver: MemplaneSaver) -> None:
        graph = growing(saver)
        for nth in range(runs):
            await graph.ainvoke({"log": [f"run {nth}"]}, CONFIG)
        before = (await graph.aget_state(CONFIG)).values
        stored = len([one async for one in saver.alist(CONFIG)])
        assert len(before["log"]) == 2 * runs
        await saver.aprune([THREAD])
        assert (await graph.aget_state(CONFIG)).values == before
        left = len([one async for one in saver.alist(CONFIG)])
        assert left < stored or runs < 3  # something went, once there was enough
        done = await graph.ainvoke({"log": ["after"]}, CONFIG)
        assert done["log"] == [*before["log"], "after", "grown"]

    with_saver(place, run)


def test_runs_that_later_ones_build_on_are_not_deleted(place: Database | File) -> None:
    async def run(saver: MemplaneSaver) -> None:
        graph = growing(saver)
        for nth in ("first", "second"):
            await graph.ainvoke({"log": [nth]}, {**CONFIG, "metadata": {"run_id": nth}})
        before = (await graph.aget_state(CONFIG)).values
        found = [one.metadata["run_id"] async for one in saver.alist(CONFIG)]
        assert {"first", "second"} <= set(found)
        with pytest.raises(CheckpointNeeded):
            await saver.adelete_for_runs(["first"])
        assert (await graph.aget_state(CONFIG)).values == before
        await saver.adelete_for_runs(["second"])
        assert (await graph.aget_state(CONFIG)).values["log"] == ["first", "grown"]  # the head is what there was before
        assert (await graph.ainvoke({"log": ["third"]}, CONFIG))["log"] == ["first", "grown", "third", "grown"]

    with_saver(place, run)


def test_pruning_goes_by_count_and_by_age(place: Database | File) -> None:
    tenant = place.new_tenant()

    async def run(saver: MemplaneSaver) -> None:
        graph = counting(saver)
        await graph.ainvoke({"count": 0, "messages": []}, CONFIG)
        ids = [one.checkpoint["id"] async for one in saver.alist(CONFIG)]
        await saver.aprune([THREAD], keep_last=4)
        assert [one.checkpoint["id"] async for one in saver.alist(CONFIG)] == ids[:4]
        await saver.aprune([THREAD], older_than=timedelta(days=1))
        assert [one.checkpoint["id"] async for one in saver.alist(CONFIG)] == ids[:4]  # all are of today
        long_ago = (datetime.now(UTC) - timedelta(days=2)).isoformat()
        past = f"UPDATE checkpoints SET created_at = %(at)s WHERE checkpoint_id IN ('{ids[2]}', '{ids[3]}')"
        place.rows(tenant, past, {"at": long_ago})
        await saver.aprune([THREAD], older_than=timedelta(days=1))
        assert [one.checkpoint["id"] async for one in saver.alist(CONFIG)] == ids[:2]
        assert (await graph.aget_state(CONFIG)).values["count"] == 3
        values = place.rows(tenant, "SELECT channel, version FROM checkpoint_blobs", {})
        used = {
            (channel, version)
            async for one in saver.alist(CONFIG)
            for channel, version in one.checkpoint["channel_versions"].items()
        }
        assert {(row["channel"], row["version"]) for row in values} <= used
        assert values
        for wrong in ({"keep_last": 0}, {"strategy": "keep_some"}):
            with pytest.raises(InvalidRequest):
                await saver.aprune([THREAD], **wrong)

    with_saver(place, run, tenant)


def test_a_copy_is_a_thread_of_its_own(place: Database | File) -> None:
    async def run(saver: MemplaneSaver) -> None:
        graph, copy = counting(saver), at("copy", USER)
        await graph.ainvoke({"count": 0, "messages": []}, CONFIG)
        await saver.acopy_thread(THREAD, "copy")
        await graph.ainvoke({"count": 10, "messages": []}, copy)
        assert (await graph.aget_state(copy)).values["count"] == 13
        assert (await graph.aget_state(CONFIG)).values["count"] == 3
        with pytest.raises(StateConflict):
            await saver.acopy_thread(THREAD, "copy")
        await saver.adelete_thread(THREAD)
        assert (await graph.aget_state(copy)).values["count"] == 13

    with_saver(place, run)


def test_what_the_database_cannot_hold_is_refused_alike(place: Database | File) -> None:
    async def run(saver: MemplaneSaver) -> None:
        config = at(THREAD, USER, checkpoint_ns="")
        odd = {"nul": "a\x00b", "big": 2**60, "real": 1e300, "nan": float("inf"), "lone": ["x\x00"]}
        versions = dict.fromkeys(odd, "1")
        checkpoint = {**empty_checkpoint(), "channel_values": odd, "channel_versions": versions}
        stored = await saver.aput(config, checkpoint, {"source": "input", "step": -1}, versions)
        found = await saver.aget_tuple(stored)
        assert found is not None
        assert found.checkpoint["channel_values"] == odd
        after = {**stored["configurable"]}
        later = {**empty_checkpoint(), "channel_values": {}, "channel_versions": {"a": "1"}}
        refusals: list[tuple[type[Exception], dict[str, Any], dict[str, Any], dict[str, Any]]] = [
            (InvalidText, after, later, {"deep": [{"a": "\x00"}]}),
            (InvalidRequest, after, later, {"score": float("nan")}),
            (InvalidRequest, after, later, {"object": object()}),
            (InvalidText, after, {**later, "channel_versions": {"a\x00": "1"}}, {}),
            (LimitExceeded, {**after, "checkpoint_ns": "n" * 501}, later, {}),
            (LimitExceeded, {**after, "thread_id": "t" * 256}, later, {}),
            (InvalidText, {**after, "user_id": "a\x00"}, later, {}),
        ]
        for kind, configurable, new, metadata in refusals:
            with pytest.raises(kind):
                await saver.aput({"configurable": configurable}, new, metadata, {})
        assert len([one async for one in saver.alist(CONFIG)]) == 1

    with_saver(place, run)


def test_the_same_works_without_an_event_loop(place: Database | File) -> None:
    class State(TypedDict):
        count: int

    def count(state: State) -> dict[str, int]:
        return {"count": state["count"] + 1}

    with MemplaneSaver.open_sync(place.url, principal=principal(place.new_tenant(), USER)) as saver:
        builder = StateGraph(State).add_node(count).add_edge(START, "count").add_edge("count", END)
        graph = builder.compile(checkpointer=saver)
        assert graph.invoke({"count": 1}, at(THREAD)) == {"count": 2}
        assert [each.values["count"] for each in graph.get_state_history(at(THREAD)) if each.values] == [2, 1]
        assert asyncio.run(graph.ainvoke({"count": 5}, at("other"))) == {"count": 6}  # from another loop too
        saver.copy_thread(THREAD, "copy")
        saver.prune([THREAD])
        assert len(list(saver.list(at(THREAD)))) == 1
        saver.delete_thread(THREAD)
        assert saver.get_tuple(at(THREAD)) is None
        assert saver.get_tuple(at("copy")) is not None


def test_waiting_in_the_loop_that_does_the_work_is_refused(place: Database | File) -> None:
    async def run(saver: MemplaneSaver) -> None:
        with pytest.raises(RuntimeError, match="asynchronous methods"):
            saver.get_tuple(CONFIG)
        assert await saver.aget_tuple(CONFIG) is None

    with_saver(place, run)


def test_langgraph_s_own_saver_reads_the_tables(database: Database) -> None:
    """The layout is that of `langgraph-checkpoint-postgres`: one thread of ours, seen as if it were its only one."""
    tenant = database.new_tenant()

    async def run(saver: MemplaneSaver) -> None:
        await counting(saver).ainvoke({"count": 0, "messages": [HumanMessage("hello", id="1")]}, CONFIG)
        ours = await saver.aget_tuple(CONFIG)
        assert ours is not None
        await saver.aput_writes(ours.config, [("messages", ["more"]), ("count", 4)], "task", "path")
        ours = await saver.aget_tuple(CONFIG)
        assert ours is not None
        connection = await psycopg.AsyncConnection.connect(database.admin_url, autocommit=True, row_factory=dict_row)
        async with connection:
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                of_thread = f"tenant_id = '{tenant}' AND user_id = '{USER}' AND thread_id = '{THREAD}'"
                await connection.execute(f"CREATE TEMP VIEW {table} AS SELECT * FROM public.{table} WHERE {of_thread}")
            official = AsyncPostgresSaver(connection)
            theirs = await official.aget_tuple({"configurable": {"thread_id": THREAD, "checkpoint_ns": ""}})
            assert theirs is not None
            assert (theirs.checkpoint, theirs.metadata) == (ours.checkpoint, ours.metadata)
            assert theirs.pending_writes == ours.pending_writes
            assert len([one async for one in official.alist({"configurable": {"thread_id": THREAD}})]) == 5
            assert json.dumps(theirs.config["configurable"]["thread_id"]) == json.dumps(THREAD)

    with_saver(database, run, tenant)
