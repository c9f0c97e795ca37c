"""`memplane close` and `forget-turn`: end a conversation and see what it came to; take a message out of it."""

from collections.abc import Callable, Mapping
from typing import Annotated
from uuid import UUID

import typer

from memplane.contracts.sessions import ClosedSession
from memplane.entrypoints.cli.options import (
    DEFAULT_URL,
    AdminKey,
    Agent,
    AnyUser,
    Data,
    DryRun,
    Key,
    Url,
    Within,
    memory_id_of,
)
from memplane.entrypoints.cli.output import Json, plain, show
from memplane.entrypoints.cli.session import operating, session
from memplane.entrypoints.cli.write_outcome import describe_plan

TurnId = Annotated[UUID, typer.Argument(metavar="ID", help="The turn's id.", parser=memory_id_of)]


def close(  # noqa: PLR0913 - one argument for each option
    thread: Annotated[str, typer.Argument(help="The conversation.")],
    *,
    user: AnyUser = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Close a conversation: what it was about is summed up and stored as a memory."""
    with session(url, key, agent, data) as opened:
        closed = opened.client.close_session(thread, user_id=user, agent=opened.agent)
    show(closed, *(plain(line) for line in _lines(closed)), as_json=json)


def _lines(closed: ClosedSession) -> list[str]:
    """What is told to a person."""
    of = f"{closed.thread_id} of {closed.user_id}"
    first = (
        f"closed: {of}" if closed.outcome == "closed" else f"unchanged: nothing was said in {of} since it was closed"
    )
    if closed.summary is None:
        return [first, "  nothing was said that can be told"]
    summary = closed.summary
    parts = [("asked", summary.request), ("last", summary.outcome)]
    parts += [("decided", each) for each in summary.decisions] + [("open", each) for each in summary.open_items]
    told = [f"  {name}: {said}" for name, said in parts if said is not None]
    where = (
        "its summary was rejected before, and is not stored"
        if closed.memory_id is None
        else f"memory {closed.memory_id}"
    )
    return [first, *told, f"  {where}"]


def forget_turn(  # noqa: PLR0913 - one argument for each option
    turn_id: TurnId,
    *,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Delete one message for good, with what was derived from it alone. For fully trusted keys."""
    with operating(url, key, agent, data) as opened:
        done = opened.client.delete_turn(turn_id, dry_run=dry_run or None, agent=opened.agent)
    if done.dry_run is not None:
        show(done, *describe_plan(done.dry_run), as_json=json)
        return
    told = f"deleted for good: turn {done.turn_id}; the thread is at revision {done.rev}"
    show(done, plain(told), plain("  what was derived from it alone is deleted too", "dim"), as_json=json)


COMMANDS: Mapping[str, Callable[..., None]] = {"close": close, "forget-turn": forget_turn}
