"""Programs that write one thread from processes of their own: beside each other, and until they are killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from psycopg.pq.abc import PGconn

from memplane.adapters.embeddings.choice import encoder_of
from memplane.adapters.postgres import pipeline
from memplane.adapters.sqlite import session as sqlite_session
from memplane.domain.errors import StaleCheckpoint
from memplane.entrypoints.langgraph import MemplaneSaver
from support.graphs import at, counting, principal

ROOT = Path(__file__).parents[2]
USER, THREAD = "ana", "shared"
_STATEMENTS = frozenset({"send_query_params", "send_query_prepared"})


def start(program: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start one of the programs below."""
    folders = (str(ROOT / "platform"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    command = [sys.executable, "-m", "support.graph_writers", program, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def together(processes: "Sequence[subprocess.Popen[str]]") -> None:
    """Wait until all of some programs are ready, and let them go on."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def answer(process: "subprocess.Popen[str]", **asked: object) -> str:
    """What a program that is asked line by line answers."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(asked) + "\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def told(process: "subprocess.Popen[str]") -> dict[str, Any]:
    """What a program printed at its end."""
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0, out
    last: dict[str, Any] = json.loads(out.splitlines()[-1])
    return last


async def run(url: str, tenant: str, rounds: str) -> None:
    """Run a graph on the thread, again whenever another writer was faster; tells the heads that were acknowledged."""
    acknowledged, refused = [], 0
    async with MemplaneSaver.open(url, principal=principal(tenant)) as saver:
        graph, config = counting(saver, 1), at(THREAD, USER)
        print("ready", flush=True)  # noqa: T201 - how it answers
        sys.stdin.readline()
        while len(acknowledged) < int(rounds):
            try:
                await graph.ainvoke({"count": 0, "messages": []}, config, durability="sync")
            except StaleCheckpoint:
                refused += 1
                continue
            acknowledged.append((await graph.aget_state(config)).config["configurable"]["checkpoint_id"])
    print(json.dumps({"acknowledged": acknowledged, "refused": refused}))  # noqa: T201 - how it answers


async def save(url: str, tenant: str, parent: str | None, count: int) -> None:
    """Save one checkpoint with a value of a channel."""
    async with MemplaneSaver.open(url, principal=principal(tenant)) as saver:
        values = {"channel_values": {"list": [count]}, "channel_versions": {"list": str(count)}}
        config = at(THREAD, USER, checkpoint_ns="", checkpoint_id=parent)
        told = {"source": "loop", "step": count}
        await saver.aput(config, {**empty_checkpoint(), **values}, told, {"list": str(count)})


def mortal(url: str, tenant: str) -> None:
    """For each line of its input save a checkpoint, in a process that kills itself before its nth statement."""
    encoder_of(None)  # loaded before the processes part
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _kill_before(asked["nth"])
            asyncio.run(save(url, tenant, asked["parent"], asked["count"]))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else f"ended {status}", flush=True)  # noqa: T201 - how it answers


def _kill_before(nth: int) -> None:
    """Die before a statement of those that write checkpoints, with the ones before it sent."""
    left = nth

    def counted() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    talk, fetched = pipeline._talk, sqlite_session.fetch_rows

    def talking(pgconn: PGconn, commands: Sequence[Callable[[], None]], awaited: int) -> Any:  # noqa: ANN401 - as the original
        def one(command: Callable[[], None]) -> None:
            if getattr(getattr(command, "func", None), "__name__", "") in _STATEMENTS:
                pgconn.flush()
                counted()
            command()

        return talk(pgconn, [partial(one, command) for command in commands], awaited)

    def fetching(*given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the original
        if "checkpoint" in given[1].sql and "api_keys" not in given[1].sql:
            counted()
        return fetched(*given, **named)

    pipeline._talk = talking
    sqlite_session.fetch_rows = fetching


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    if name == "mortal":
        mortal(*arguments)
    else:
        asyncio.run(run(*arguments))
