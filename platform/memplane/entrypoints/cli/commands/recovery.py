"""`memplane restore` and `memplane purge`: what is brought back, and what is removed for good, over HTTP."""

import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, TypeVar, cast
from uuid import UUID

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from memplane.client import MemplaneSync
from memplane.client.fields import VerbFields
from memplane.contracts.recovery import Purged, Recovered, RestoredMemory
from memplane.entrypoints.cli.confirmation import Yes, confirm, require_terminal
from memplane.entrypoints.cli.options import (
    DEFAULT_URL,
    AdminKey,
    AnyUser,
    Data,
    DryRun,
    IfVersion,
    Url,
    Within,
    given_options,
    memory_id_of,
    moment_of,
)
from memplane.entrypoints.cli.output import Json, add, plain, show, table
from memplane.entrypoints.cli.session import operating
from memplane.entrypoints.cli.write_outcome import describe_write

T = TypeVar("T")
_OptionalId = Annotated[UUID | None, typer.Argument(metavar="ID", help="The memory's id.", parser=memory_id_of)]
_Since = Annotated[datetime | None, typer.Option(help="From when on it was lost: a day or a time.", parser=moment_of)]


def restore(  # noqa: PLR0913 - one argument for each option
    memory_id: _OptionalId = None,
    *,
    user: AnyUser = None,
    since: _Since = None,
    if_version: IfVersion = None,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Bring a superseded, archived, expired or deleted memory back, in the place of what took its place.

    With --user and --since: all that was deleted or archived of a user since then, in nobody's place. Not what was
    rejected.
    """
    if memory_id is not None and user is None and since is None:
        with operating(url, key, agent, data) as opened:
            fields = cast("VerbFields", given_options(dry_run=dry_run or None, agent=opened.agent))
            done = opened.client.say(memory_id, "restore", version=if_version, **fields)
        show(done, *describe_write(done, "it is active again"), as_json=json)
        return
    if memory_id is not None or user is None or since is None or if_version is not None:
        raise typer.BadParameter("name a memory's id, or both --user and --since")
    if dry_run:
        raise typer.BadParameter("--dry-run is for one memory, by its id")
    with operating(url, key, agent, data) as opened:
        items = list(_counted("restored", _recovered(opened.client, user, since, opened.agent)))
    found = Recovered(items=items, next=None)
    rows = table("outcome", "id", "why")
    for each in items:
        add(rows, each.outcome, each.id, each.detail)
    count = sum(each.outcome == "restored" for each in items)
    show(found, plain(f"{count} of {len(items)} brought back"), *([rows] if items else []), as_json=json)


def purge(  # noqa: PLR0913 - one argument for each option
    memory_id: _OptionalId = None,
    *,
    user: AnyUser = None,
    early: Annotated[bool, typer.Option("--early", help="Also what could still be restored.")] = False,
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Remove a deleted memory for good, or those of a user whose time to be restored is over. There is no way back."""
    if (memory_id is None) == (user is None):
        raise typer.BadParameter("name a memory's id, or --user")
    if require_terminal(yes=yes):
        whole = f"The deleted memory {memory_id}" if memory_id else f"Deleted memories of user '{user}'"
        still = ", also those that could still be restored," if early else ", if they can no longer be restored,"
        which = "" if memory_id else still
        confirm(f"{whole}{which} will be removed for good. This cannot be undone.")
    with operating(url, key, agent, data) as opened:
        ask = _purging(opened.client, memory_id, user, opened.agent, early=early)
        count = sum(_counted("removed", ask))
    done = Purged(purged=count, more=False)
    show(done, plain(f"{count} removed for good"), as_json=json)


def _recovered(client: MemplaneSync, user: str, since: datetime, agent: str | None) -> Iterator[RestoredMemory]:
    cursor: str | None = None
    while True:
        page = client.recover(user, since, cursor=cursor, agent=agent)
        yield from page.items
        if page.next is None:
            return
        cursor = page.next


def _purging(
    client: MemplaneSync, memory_id: UUID | None, user: str | None, agent: str | None, *, early: bool
) -> Iterator[int]:
    more = True
    while more:
        done = client.purge(memory_id=memory_id, user_id=user, early=early, agent=agent)
        yield done.purged
        more = done.more


def _counted(what: str, found: Iterator[T]) -> Iterator[T]:
    """The same, with a line on the terminal that counts."""
    with Progress(
        SpinnerColumn(), TextColumn("{task.description} {task.completed}"), console=Console(stderr=True),
        transient=True, disable=not sys.stderr.isatty(),
    ) as progress:  # fmt: skip
        task = progress.add_task(what, total=None)
        for each in found:
            progress.advance(task, each if isinstance(each, int) else 1)
            yield each


COMMANDS: Mapping[str, Callable[..., None]] = {"restore": restore, "purge": purge}
