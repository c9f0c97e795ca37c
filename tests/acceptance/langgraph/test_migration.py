"""Checkpoints of LangGraph's own savers move in whole, again and again, and a graph goes on from them."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from memplane.adapters.langgraph.migration import CheckpointMigration, MigratedThread, MigrationOutcome
from memplane.adapters.langgraph.postgres_source import address, threads_in_database
from memplane.adapters.langgraph.serializer import StrictSerializer
from memplane.adapters.langgraph.sources import FoundCheckpoint, threads_in
from memplane.domain.errors import CheckpointMismatch, InvalidRequest, RecordNotFound, UndeclaredType
from memplane.entrypoints.langgraph import MemplaneSaver, export_checkpoints
from support.cluster import Database
from support.files import File
from support.graphs import Steps, at, counting, principal, savers

USER = "ana"
Filled = Callable[[BaseCheckpointSaver[Any]], Awaitable[None]]


@dataclass
class Note:
    """A value of an application."""

    text: str


def asking(saver: BaseCheckpointSaver[Any]) -> Any:  # noqa: ANN401 - a compiled graph
    async def ask(state: Steps) -> dict[str, Any]:
        return {"count": state["count"] + 1, "messages": [HumanMessage(interrupt("may I?"), id="1")]}

    inner = counting(saver, 2)  # type: ignore[arg-type]  # any saver
    builder = StateGraph(Steps).add_node("inner", inner).add_node(ask).add_edge(START, "inner")
    return builder.add_edge("inner", "ask").add_edge("ask", END).compile(checkpointer=saver)


async def fill(saver: BaseCheckpointSaver[Any]) -> None:
    """Threads with a subgraph, an interrupt, a branch, and values of several kinds."""
    given = {"count": 1, "messages": [AIMessage("well", id="0"), {"n": 1.0, "big": 1e16, "é": "日本"}]}
    await asking(saver).ainvoke(given, at("asked"))
    graph = counting(saver)  # type: ignore[arg-type]  # any saver
    await graph.ainvoke({"count": 0, "messages": []}, at("branched", USER))
    past = [state async for state in graph.aget_state_history(at("branched", USER))]
    await graph.aupdate_state(past[2].config, {"count": 40})
    await graph.ainvoke(None, at("branched", USER))
    for nth in range(3):
        await graph.ainvoke({"count": nth, "messages": [str(nth)]}, at("again and again"))


async def filled(kind: str, file: Path, fill_it: Filled = fill) -> Path:
    """A file of one of the savers."""
    if kind == "sqlite":
        async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
            await fill_it(saver)
    else:
        memory = InMemorySaver()
        await fill_it(memory)
        assert export_checkpoints(memory, file) > 0
    return file


async def migrated(saver: MemplaneSaver, file: Path, types: Sequence[type] = (), **given: Any) -> list[MigratedThread]:  # noqa: ANN401 - of a run
    serde = StrictSerializer(types)
    caller = saver._caller
    migration = CheckpointMigration(saver._checkpoints, caller, serde, USER)  # type: ignore[arg-type]  # a principal
    return await migration.run(threads_in(file, serde), **given)


async def history(saver: Any, thread: str, user: str | None) -> list[object]:  # noqa: ANN401 - any saver
    """All that a graph can see of a thread."""
    found = [one async for one in saver.alist(at(thread, user))]
    return sorted(
        (
            one.config["configurable"]["checkpoint_ns"],
            one.checkpoint["id"],
            repr(sorted(one.checkpoint["channel_values"].items(), key=str)),
            repr(one.parent_config and one.parent_config["configurable"]["checkpoint_id"]),
            repr(sorted(one.metadata.items())),
            repr(one.pending_writes),
        )
        for one in found
    )


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
def test_everything_is_there_and_a_graph_goes_on(place: Database | File, tmp_path: Path, kind: str) -> None:
    async def run() -> None:
        file = await filled(kind, tmp_path / "source")
        assert b"pickle" not in file.read_bytes()
        async with savers(place, principal(place.new_tenant())) as (saver,):
            done = await migrated(saver, file)
            assert {each.thread_id: each.fate for each in done} == dict.fromkeys(
                ("again and again", "asked", "branched"), MigrationOutcome.COPIED
            )
            assert all(each.digest and each.checkpoints > 3 for each in done)
            assert sum(each.writes for each in done) > 10
            again = await migrated(saver, file)
            assert [each.fate for each in again] == [MigrationOutcome.THERE] * 3
            assert [each.digest for each in again] == [each.digest for each in done]
            assert (await counting(saver).aget_state(at("branched", USER))).values["count"] > 40
            stopped = await asking(saver).aget_state(at("asked", USER))
            assert stopped.next == ("ask",)
            assert stopped.values["messages"][1] == {"n": 1.0, "big": 1e16, "é": "日本"}
            ended = await asking(saver).ainvoke(Command(resume="yes"), at("asked", USER))
            assert ended["messages"][-1] == HumanMessage("yes", id="1")
            assert [each.fate for each in await migrated(saver, file)] == [
                MigrationOutcome.THERE
            ] * 3  # it has gone on since
            state = await saver._checkpoints.supervisor_state(
                saver._caller,
                saver._checkpoints.thread(saver._caller, "branched", USER),  # type: ignore[arg-type]  # a principal
            )
            assert state.data["graph"]["channels"]  # type: ignore[index]  # an object

    asyncio.run(run())


@pytest.fixture
def graphs(request: pytest.FixtureRequest) -> str:
    """A database of its own, filled by an official PostgresSaver: its address."""
    database: Database = request.getfixturevalue("database")
    address = database.admin_url

    async def fill_it() -> None:
        async with AsyncPostgresSaver.from_conn_string(address) as saver:
            await saver.setup()
            await fill(saver)

    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute("DROP SCHEMA IF EXISTS graphs CASCADE")
        admin.execute("CREATE SCHEMA graphs")
    address = f"{address}{'&' if '?' in address else '?'}options=-csearch_path%3Dgraphs"
    asyncio.run(fill_it())
    return address


def test_an_official_postgres_saver_is_taken_over(place: Database | File, graphs: str) -> None:
    async def run() -> None:
        serde = StrictSerializer(())
        async with savers(place, principal(place.new_tenant())) as (saver,):
            migration = CheckpointMigration(saver._checkpoints, saver._caller, serde, USER)  # type: ignore[arg-type]  # a principal
            done = await migration.run(threads_in_database(graphs, serde))
            assert {each.thread_id: each.fate for each in done} == dict.fromkeys(
                ("again and again", "asked", "branched"), MigrationOutcome.COPIED
            )
            assert all(each.digest and each.checkpoints > 3 for each in done)
            assert sum(each.writes for each in done) > 10
            again = await migration.run(threads_in_database(graphs, serde))
            assert [(each.fate, each.digest) for each in again] == [
                (MigrationOutcome.THERE, each.digest) for each in done
            ]
            async with AsyncPostgresSaver.from_conn_string(graphs) as official:
                for thread in ("asked", "branched", "again and again"):
                    assert await history(saver, thread, USER) == await history(official, thread, None)
            ended = await asking(saver).ainvoke(Command(resume="yes"), at("asked", USER))
            assert ended["messages"][-1] == HumanMessage("yes", id="1")
            assert {each.fate for each in await migration.run(threads_in_database(graphs, serde))} == {
                MigrationOutcome.THERE
            }
            with psycopg.connect(graphs) as source:  # a value that is another one now is not taken for the same
                source.execute("DELETE FROM checkpoint_blobs WHERE thread_id = 'branched' AND channel = 'messages'")
            changed = await migration.run(threads_in_database(graphs, serde))
            assert [each.thread_id for each in changed if each.fate is MigrationOutcome.DIFFERS] == ["branched"]

    asyncio.run(run())


def test_a_database_without_a_saver_and_one_that_is_away_are_refused(graphs: str) -> None:
    serde = StrictSerializer(())
    assert len(list(threads_in_database(graphs, serde))) == 3, "the control"
    with pytest.raises(InvalidRequest, match="PostgresSaver"):
        list(threads_in_database(graphs.replace("%3Dgraphs", "%3Dnowhere"), serde))
    with pytest.raises(InvalidRequest) as away:
        list(threads_in_database("postgresql://ana:secret@127.0.0.1:1/none", serde))
    assert "secret" not in str(away.value)
    assert address("postgresql://ana:secret@db:5432/graphs?options=x") == "postgresql://db:5432/graphs"


def test_a_saver_s_history_is_the_same_on_both_sides(place: Database | File, tmp_path: Path) -> None:
    async def run() -> None:
        memory = InMemorySaver()
        await fill(memory)
        export_checkpoints(memory, tmp_path / "export")
        async with savers(place, principal(place.new_tenant())) as (saver,):
            await migrated(saver, tmp_path / "export")
            for thread in ("asked", "branched", "again and again"):
                assert await history(saver, thread, USER) == await history(memory, thread, None)

    asyncio.run(run())


def test_an_interrupted_run_goes_on_where_it_stopped(place: Database | File, tmp_path: Path) -> None:
    async def run() -> None:
        file = await filled("sqlite", tmp_path / "source")
        async with savers(place, principal(place.new_tenant())) as (saver,):

            def stop(_: MigratedThread) -> None:
                raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                await migrated(saver, file, told=stop)
            assert len({one.config["configurable"]["thread_id"] async for one in saver.alist(None)}) == 1
            assert [each.fate for each in await migrated(saver, file)] == [
                MigrationOutcome.THERE,
                MigrationOutcome.COPIED,
                MigrationOutcome.COPIED,
            ]

    asyncio.run(run())


def test_what_is_there_already_is_never_written_over(place: Database | File, tmp_path: Path) -> None:
    async def run() -> None:
        file = await filled("sqlite", tmp_path / "source")
        async with savers(place, principal(place.new_tenant())) as (saver,):
            await counting(saver).ainvoke({"count": 7, "messages": ["mine"]}, at("asked", USER))
            before = await history(saver, "asked", USER)
            done = {each.thread_id: each for each in await migrated(saver, file)}
            assert done["asked"].fate is MigrationOutcome.DIFFERS
            assert done["branched"].fate is MigrationOutcome.COPIED
            assert await history(saver, "asked", USER) == before

    asyncio.run(run())


def test_types_are_declared_or_the_thread_stays_where_it_is(place: Database | File, tmp_path: Path) -> None:
    async def fill_it(saver: BaseCheckpointSaver[Any]) -> None:
        new = {**empty_checkpoint(), "channel_values": {"note": Note("mine")}, "channel_versions": {"note": "1"}}
        await saver.aput(at("noted", checkpoint_ns=""), new, {"source": "input", "step": -1}, {"note": "1"})

    async def run() -> None:
        for kind in ("sqlite", "memory"):
            file = await filled(kind, tmp_path / kind, fill_it)
            async with savers(place, principal(place.new_tenant(), USER), types=[Note]) as (saver,):
                await saver.adelete_thread("noted")
                with pytest.raises(UndeclaredType, match="Note"):
                    await migrated(saver, file)
                assert [one async for one in saver.alist(None)] == []
                assert [each.fate for each in await migrated(saver, file, [Note])] == [MigrationOutcome.COPIED]
                found = await saver.aget_tuple(at("noted", USER))
                assert found is not None
                assert found.checkpoint["channel_values"]["note"] == Note("mine")

    asyncio.run(run())


def test_a_thread_without_a_user_or_with_several_is_refused(place: Database | File) -> None:
    def found(**metadata: object) -> FoundCheckpoint:
        new = {**empty_checkpoint(), "channel_values": {"a": 1}, "channel_versions": {"a": "1"}}
        return FoundCheckpoint("", str(new["id"]), None, new, metadata, ())

    async def run() -> None:
        async with savers(place, principal(place.new_tenant())) as (saver,):
            migration = CheckpointMigration(saver._checkpoints, saver._caller, StrictSerializer(), None)  # type: ignore[arg-type]  # a principal
            threads = {
                "of nobody": [found()],
                "of two": [found(user_id="ana"), found(user_id="bo")],
                " untrimmed": [found(user_id="ana")],
                "of one": [found(user_id="ana"), found()],
            }
            done = await migration.run(threads.items())
            assert [each.fate for each in done] == [*[MigrationOutcome.REFUSED] * 3, MigrationOutcome.COPIED]
            assert all((each.why is None) == (each.fate is MigrationOutcome.COPIED) for each in done)

    asyncio.run(run())


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    serde = StrictSerializer()
    with pytest.raises(RecordNotFound):
        list(threads_in(tmp_path / "absent", serde))
    pickled = {"thread_id": "t", "namespace": "", "id": "1", "parent": None, "metadata": ["null", ""], "values": {}}
    lines = {
        "letter": "Dear Ana",
        "empty": "",
        "cut": '{"format": "memplane-checkpoints-1"}\n{"thread_id": "t", "na',
        "pickle": '{"format": "memplane-checkpoints-1"}\n'
        + json.dumps({**pickled, "checkpoint": ["pickle", "gASVAQAAAAAAAABOLg=="], "writes": []}),
    }
    for name, text in lines.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(CheckpointMismatch if name == "pickle" else InvalidRequest):
            list(threads_in(tmp_path / name, serde))
    with pytest.raises(InvalidRequest):
        list(threads_in(File(_other_database(tmp_path)).path, serde))


def _other_database(folder: Path) -> Path:
    import sqlite3  # noqa: PLC0415 - for this test alone

    path = folder / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE letters (text)")
    connection.close()
    return path


def test_the_command_migrates_and_reports(tmp_path: Path) -> None:
    file = asyncio.run(filled("sqlite", tmp_path / "source.sqlite"))
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[3] / "platform"),
        "MEMPLANE_STORAGE": "sqlite",
    }

    def memplane(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "memplane.entrypoints.cli", *arguments, "--data", str(tmp_path / "data")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    assert memplane("init").returncode == 0
    before = file.read_bytes()
    partly = memplane("checkpoints", "migrate", "--from", str(file), "--json")
    assert partly.returncode == 1, partly.stderr
    assert [each["fate"] for each in json.loads(partly.stdout)["threads"]] == ["refused", "refused", "copied"]
    done = memplane("checkpoints", "migrate", "--from", str(file), "--user", USER, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["ok"]
    assert [each["fate"] for each in told["threads"]] == ["copied", "copied", "there already"]
    assert file.read_bytes() == before
    assert "3 of 3 threads" in memplane("checkpoints", "migrate", "--from", str(file), "--user", USER).stdout
    assert memplane("checkpoints", "migrate", "--from", str(file), "--type", "no.such:Type").returncode == 2
