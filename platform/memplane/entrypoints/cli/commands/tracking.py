"""`memplane stats`, `events` and `turns`: what a server holds and does, and what was said, over HTTP."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer
from rich.console import RenderableType

from memplane.contracts.tracking import EventList, OnDemandStatistics, StatisticsRecord
from memplane.entrypoints.cli.options import (
    DEFAULT_URL,
    AdminKey,
    Agent,
    AnyUser,
    Cursor,
    Data,
    Key,
    Limit,
    Url,
    Within,
    memory_id_of,
    moment_of,
)
from memplane.entrypoints.cli.output import Json, add, more, plain, show, table
from memplane.entrypoints.cli.session import operating, session

TARGET = 0.1
"""The share of turns that may need recall on demand, at most."""


def stats(  # noqa: PLR0913 - one argument for each option
    *,
    user: AnyUser = None,
    days: Annotated[int, typer.Option(min=1, max=365, help="The window of recall on demand.")] = 30,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Count what there is, and the turns that needed recall on demand."""
    with operating(url, key, agent, data) as opened:
        found = opened.client.stats(user_id=user, days=days, agent=opened.agent)
    show(found, *_statistics(found), as_json=json)


def events(  # noqa: PLR0913 - one argument for each option
    *,
    user: AnyUser = None,
    thread: Annotated[str | None, typer.Option(help="Only this conversation's.")] = None,
    node: Annotated[str | None, typer.Option(help="hotpath, context, episodic or worker.")] = None,
    op: Annotated[str | None, typer.Option(help="What was done, such as create or recall_on_demand.")] = None,
    status: Annotated[str | None, typer.Option(help="ok, error or skipped.")] = None,
    memory: Annotated[UUID | None, typer.Option(help="Only this memory's.", parser=memory_id_of)] = None,
    since: Annotated[datetime | None, typer.Option(help="From then on: a day or a time.", parser=moment_of)] = None,
    until: Annotated[datetime | None, typer.Option(help="Before then: a day or a time.", parser=moment_of)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show what was done, newest first, without words."""
    with operating(url, key, agent, data) as opened:
        page = opened.client.events(
            user_id=user, thread_id=thread, node=node, op=op, status=status, memory_id=memory, since=since, until=until,
            limit=limit, cursor=cursor, agent=opened.agent,
        )  # fmt: skip
    show(page, *_events(page), as_json=json)


def turns(  # noqa: PLR0913 - one argument for each option
    thread: Annotated[str, typer.Argument(help="The conversation.")],
    *,
    user: AnyUser = None,
    before: Annotated[int | None, typer.Option(min=0, help="Before the turn of this number.")] = None,
    after: Annotated[int | None, typer.Option(min=0, help="After the turn of this number, oldest first.")] = None,
    limit: Limit = 50,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show what was said in a conversation, word for word, newest first."""
    with session(url, key, agent, data) as opened:
        page = opened.client.thread_turns(
            thread, user_id=user, before_seq=before, after_seq=after, limit=limit, agent=opened.agent
        )
    rows = table("turn", "recorded (UTC)", "who", "text")
    for each in page.items:
        add(rows, each.seq, f"{each.recorded_at:%Y-%m-%d %H:%M:%S}", each.actor_id or each.role, each.text)
    way = "--after" if after is not None else "--before"
    left = [] if page.next is None else [plain(f"more: {way} {page.next}", "dim")]
    show(page, rows, *left, as_json=json)


COMMANDS: Mapping[str, Callable[..., None]] = {"stats": stats, "events": events, "turns": turns}


def _statistics(found: StatisticsRecord) -> list[RenderableType]:
    rows = table("memories", "", "count")
    for name, counts in (
        ("by state", found.states), ("active, by layer", found.layers), ("active, by category", found.categories),
        ("active, by type", found.types), ("active, by age", found.age.buckets),
    ):  # fmt: skip
        for place, (value, count) in enumerate(counts.items()):
            add(rows, "" if place else name, value, count)
    hits = f"{found.hits.hits} hits on {found.hits.memories} memories, read {found.hits.accesses} times"
    lines = [plain(hits)]
    if found.age.oldest is not None:
        lines.append(plain(f"the oldest is of {found.age.oldest:%Y-%m-%d %H:%M} UTC"))
    if not found.complete:
        lines.append(plain("only the newest 100 000 memories were counted", "yellow"))
    told = "recall on demand: this agent reads no turns" if found.on_demand is None else _on_demand(found.on_demand)
    return [rows, *lines, plain(told)]


def _on_demand(found: OnDemandStatistics) -> str:
    asked = f"{found.queries} queries since {found.since:%Y-%m-%d}"
    if found.share is None:
        return f"recall on demand: {asked}, no turns of users"
    unplaced = f", {found.unplaced} of no turn" if found.unplaced else ""
    return (
        f"recall on demand: {found.recalled} of {found.turns} turns needed it, {found.share:.1%} "
        f"(target under {TARGET:.0%}); {asked}{unplaced}"
    )


def _events(page: EventList) -> list[RenderableType]:
    rows = table("when (UTC)", "node", "op", "status", "user", "thread", "category", "sim", "memory")
    for each in page.items:
        sim = None if each.sim is None else f"{each.sim:.3f}"
        when = f"{each.ts:%Y-%m-%d %H:%M:%S}"
        cells = (each.user_id, each.thread_id, each.category, sim, each.memory_id)
        add(rows, when, each.node, each.op, each.status, *cells)
    return [rows, *more(page.next)]
