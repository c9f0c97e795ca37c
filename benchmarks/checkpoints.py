"""Saving and loading a conversation's state, in turns with LangGraph's own saver; and taking checkpoints over.

Run: python benchmarks/checkpoints.py [--rounds 400] [--messages 60] [--migrated 10000]
"""

import argparse
import asyncio
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

import psycopg
from figures import PAGE, machine, write_section
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from psycopg.rows import dict_row
from rich.console import Console

from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.adapters.postgres.provisioning import provision_embedded
from memplane.domain.identity.principal import ALL, KeyScope, Principal
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.cli.bench.grid import Grid
from memplane.entrypoints.cli.bench.latency import Timing, grid
from memplane.entrypoints.langgraph import MemplaneSaver

OFFICIAL = "official"
TENANT, USER = "default", "ana"
WARM = 20
OURS, THEIRS = "Memplane", "AsyncPostgresSaver"
PRINCIPAL = Principal(TENANT, None, Trust.FULL, frozenset({KeyScope.CHECKPOINT}), "bench", act_for=frozenset({ALL}))
Saver = BaseCheckpointSaver[Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 when it ran, and what was taken over is what was there."""
    options = _options(arguments)
    with _server() as (folder, postgres, url):
        timings = asyncio.run(_in_turns(postgres, url, options))
        moved = _migrated(folder, options.migrated)
        where = machine(postgres)
    parts = [
        grid(timings, f"A state of {options.messages} messages"),
        Grid("Ratios of p50", ("Memplane against the official saver", "ratio"), _ratios(timings)),
        Grid("Taken over from SqliteSaver", ("what", "figure"), moved),
    ]
    for part in parts:
        Console(width=None if sys.stdout.isatty() else 140).print(part.table())
    if options.figures:
        told = (
            "One conversation grows by a message a step; both savers store and load each step of it, in turns, on the "
            "same PostgreSQL, in process. A save of ours takes the thread's lock, refuses a second lineage, and keeps "
            "the supervisor's row in the same transaction; the official one does none of these. What is taken over is "
            "read back and compared byte for byte; the second run finds everything there."
        )
        reproduce = f"Reproduce: `make bench-checkpoints`. Machine: {where}."
        write_section(options.figures, "checkpoints", "Checkpoints", [told, reproduce, *parts])
    return 0


@contextmanager
def _server() -> Iterator[tuple[Path, EmbeddedPostgres, str]]:
    """An embedded PostgreSQL with our schema, and an empty schema for the official saver."""
    folder = Path(tempfile.mkdtemp(prefix="memplane-bench-"))
    folder.chmod(0o711)
    try:
        with EmbeddedPostgres.start(folder / "data") as postgres:
            url = provision_embedded(postgres)
            with psycopg.connect(postgres.conninfo(user="postgres", database="memplane"), autocommit=True) as admin:
                admin.execute(f"CREATE SCHEMA {OFFICIAL}")
            yield folder, postgres, url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _in_turns(postgres: EmbeddedPostgres, url: str, options: argparse.Namespace) -> list[Timing]:
    info = postgres.conninfo(user="postgres", database="memplane")
    async with (
        await psycopg.AsyncConnection.connect(
            info, autocommit=True, prepare_threshold=0, row_factory=dict_row
        ) as connection,
        MemplaneSaver.open(url, principal=PRINCIPAL, user_id=USER) as ours,
    ):
        await connection.execute(f"SET search_path TO {OFFICIAL}")
        theirs = AsyncPostgresSaver(connection)
        await theirs.setup()
        savers: dict[str, Saver] = {OURS: ours, THEIRS: theirs}
        taken: dict[tuple[str, str], list[float]] = {}
        configs = {name: _config("bench") for name in savers}
        for step in range(WARM + options.rounds):
            order = list(savers) if step % 2 else list(savers)[::-1]
            checkpoint = _checkpoint(step, options.messages)
            for name in order:
                began = perf_counter()
                configs[name] = await _saved(savers[name], configs[name], checkpoint)
                saved = perf_counter()
                found = await savers[name].aget_tuple(_config("bench"))
                loaded = perf_counter()
                if found is None or found.checkpoint["id"] != checkpoint["id"]:
                    raise SystemExit(f"{name} did not give back what it stored")
                if step >= WARM:
                    taken.setdefault((name, "save"), []).append((saved - began) * 1e3)
                    taken.setdefault((name, "load"), []).append((loaded - saved) * 1e3)
    return [Timing(f"{name}: {what}", taken[name, what]) for what in ("save", "load") for name in savers]


async def _saved(saver: Saver, config: RunnableConfig, checkpoint: Checkpoint) -> RunnableConfig:
    return await saver.aput(
        config, checkpoint, {"source": "loop", "step": 1, "parents": {}}, dict(checkpoint["channel_versions"])
    )


def _config(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", "user_id": USER}}


def _checkpoint(step: int, messages: int) -> Checkpoint:
    """A state whose conversation is as long as asked for, and new in each step."""
    kinds = (HumanMessage, AIMessage)
    talk = [
        kinds[n % 2](f"Message {n} of step {step}: the release moves to the hall.", id=str(n)) for n in range(messages)
    ]
    version = f"{step + 1:032}.0"
    return {
        "v": 4, "id": str(uuid6(clock_seq=step)), "ts": "2026-01-01T00:00:00+00:00", "updated_channels": ["messages"],
        "channel_values": {"messages": talk, "plan": {"step": step}},
        "channel_versions": {"messages": version, "plan": version}, "versions_seen": {},
    }  # fmt: skip


def _migrated(folder: Path, count: int) -> list[tuple[str, str]]:
    """Checkpoints of a hundred threads out of SqliteSaver's file, twice."""
    file = folder / "checkpoints.sqlite"
    with sqlite3.connect(file, check_same_thread=False) as connection:
        saver = SqliteSaver(connection)
        for thread in range(100):
            config = _config(f"thread-{thread}")
            for step in range(count // 100):
                checkpoint = _checkpoint(step, 4)
                config = saver.put(config, checkpoint, {"source": "loop", "step": step, "parents": {}}, {})
                saver.put_writes(config, [("messages", [HumanMessage(f"Write {step}")])], str(uuid4()))
    rows: list[tuple[str, str]] = []
    for run, fate in (("first run", "copied"), ("second run", "there already")):
        command = [sys.executable, "-m", "memplane.entrypoints.cli", "checkpoints", "migrate", "--from", str(file)]
        began = perf_counter()
        done = subprocess.run(
            [*command, "--user", USER, "--data", str(folder / "data"), "--json"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        seconds = perf_counter() - began
        threads = json.loads(done.stdout)["threads"] if done.returncode == 0 else []
        if done.returncode or {each["fate"] for each in threads} != {fate}:
            raise SystemExit(f"{run}: {done.stdout[-500:]}{done.stderr[-1500:]}")
        found = sum(each["checkpoints"] for each in threads)
        rows.append((f"{run}: checkpoints {fate}", str(found)))
        rows.append((f"{run}: seconds", f"{seconds:.1f}"))
    return rows


def _ratios(timings: Sequence[Timing]) -> list[tuple[str, str]]:
    by_name = {timing.name: timing for timing in timings}
    return [
        (what, f"{by_name[f'{OURS}: {what}'].percentile(50) / by_name[f'{THEIRS}: {what}'].percentile(50):.2f}")
        for what in ("save", "load")
    ]


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400, help="steps that are measured")
    parser.add_argument("--messages", type=int, default=60, help="messages of the conversation")
    parser.add_argument("--migrated", type=int, default=10_000, help="checkpoints that are taken over")
    parser.add_argument("--figures", type=Path, default=PAGE, help="page whose section is replaced")
    parser.add_argument("--no-figures", dest="figures", action="store_const", const=None, help="leave the page alone")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
