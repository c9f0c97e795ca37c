"""`memplane reinforce`, `correct`, `forget` and the like: what is said of one memory, over HTTP."""

from collections.abc import Callable, Mapping
from typing import Annotated, cast
from uuid import UUID

import typer

from memplane.client import MemplaneSync
from memplane.client.fields import ChangeFields, CorrectionFields, Verb, VerbFields
from memplane.domain.ranking.fencing import visible
from memplane.entrypoints.cli.confirmation import Yes, confirm, require_terminal
from memplane.entrypoints.cli.options import (
    DEFAULT_URL,
    AdminKey,
    Data,
    DryRun,
    Id,
    IfVersion,
    Url,
    ValidFrom,
    Within,
    Words,
    given_options,
    words_of,
)
from memplane.entrypoints.cli.output import Json, show
from memplane.entrypoints.cli.session import operating
from memplane.entrypoints.cli.write_outcome import describe_write

Command = Callable[..., None]


def _verb(verb: Verb, summary: str, note: str) -> Command:
    """The command of a verb that needs no further words."""

    def command(  # noqa: PLR0913 - one argument for each option
        memory_id: Id,
        *,
        if_version: IfVersion = None,
        dry_run: DryRun = False,
        url: Url = DEFAULT_URL,
        key: AdminKey = None,
        agent: Within = None,
        data: Data = None,
        json: Json = False,
    ) -> None:
        with operating(url, key, agent, data) as opened:
            fields = cast("VerbFields", given_options(dry_run=dry_run or None, agent=opened.agent))
            done = opened.client.say(memory_id, verb, version=if_version, **fields)
        show(done, *describe_write(done, note), as_json=json)

    command.__doc__ = summary
    return command


def pin(  # noqa: PLR0913 - one argument for each option
    memory_id: Id,
    *,
    unpin: Annotated[bool, typer.Option("--unpin", help="Keep it no longer.")] = False,
    if_version: IfVersion = None,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Keep a memory whatever its age, or no longer."""
    with operating(url, key, agent, data) as opened:
        fields = cast("VerbFields", {"pinned": not unpin} | given_options(dry_run=dry_run or None, agent=opened.agent))
        done = opened.client.say(memory_id, "pin", version=if_version, **fields)
    note = "it is no longer kept whatever its age" if unpin else "it is kept whatever its age"
    show(done, *describe_write(done, note), as_json=json)


def reject(  # noqa: PLR0913 - one argument for each option
    memory_id: Id,
    *,
    reason: Annotated[str | None, typer.Option(help="Why, in at most 63 characters.")] = None,
    yes: Yes = False,
    if_version: IfVersion = None,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Say, as a person, that a memory is wrong: it is gone, and its value is refused from then on.

    For fully trusted keys. `memplane tombstones lift` takes the verdict back.
    """
    ask = not dry_run and require_terminal(yes=yes)
    with operating(url, key, agent, data) as opened:
        if ask:
            confirm(_rejection(opened.client, memory_id, opened.agent))
        fields = cast("VerbFields", given_options(dry_run=dry_run or None, agent=opened.agent, reason=reason))
        done = opened.client.say(memory_id, "reject", version=if_version, **fields)
    show(done, *describe_write(done, "it is gone, and its value is refused from now on, whoever says it"), as_json=json)


def _rejection(client: MemplaneSync, memory_id: UUID, agent: str | None) -> str:
    """What a rejection does to a memory, in words."""
    memory = client.get(memory_id, agent=agent)
    return (
        f"Memory {memory.id} of user '{memory.user_id}' will be gone, with what says the same:\n"
        f"  {visible(memory.content)}\n"
        "Its value is refused from then on, whoever says it, and the memory cannot be restored. Only a fully trusted "
        "key with consent:review can undo that: `memplane tombstones lift`."
    )


def correct(  # noqa: PLR0913 - one argument for each option
    memory_id: Id,
    content: Words = None,
    *,
    title: Annotated[str | None, typer.Option(help="Its title.")] = None,
    valid_from: ValidFrom = None,
    if_version: IfVersion = None,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Replace a memory that is wrong by what is right; the wrong one stays in the history."""
    words = words_of(content)
    with operating(url, key, agent, data) as opened:
        fields = cast(
            "CorrectionFields",
            given_options(title=title, valid_from=valid_from, dry_run=dry_run or None, agent=opened.agent),
        )
        done = opened.client.correct(memory_id, words, version=if_version, **fields)
    show(done, *describe_write(done), as_json=json)


def update(  # noqa: PLR0913 - one argument for each option
    memory_id: Id,
    content: Annotated[
        str | None, typer.Argument(help="The new text; '-': from standard input.", show_default="it stays")
    ] = None,
    *,
    title: Annotated[str | None, typer.Option(help="Its title.")] = None,
    category: Annotated[str | None, typer.Option(help="What it is about.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; all of them are replaced. Repeatable.")] = None,
    importance: Annotated[int | None, typer.Option(min=1, max=5, help="1 to 5.")] = None,
    if_version: IfVersion = None,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Change fields of a memory in place; what is not named stays, and older words stay in the history."""
    words = None if content is None else words_of(content)
    changes = given_options(content=words, title=title, category=category, tags=tag, importance=importance)
    if not changes:
        raise typer.BadParameter("name what to change: a new text, --title, --category, --tag or --importance")
    fields = cast("ChangeFields", changes | given_options(dry_run=dry_run or None))
    with operating(url, key, agent, data) as opened:
        done = opened.client.update(memory_id, version=if_version, agent=opened.agent, **fields)
    show(done, *describe_write(done, f"changed: {', '.join(changes)}"), as_json=json)


def forget(  # noqa: PLR0913 - one argument for each option
    memory_id: Id,
    *,
    tombstone: Annotated[bool, typer.Option("--tombstone", help="Refuse its value from now on.")] = False,
    if_version: IfVersion = None,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Take a memory out of every read. It can be restored for 30 days, and its value can be stored again.

    With --tombstone its value is refused until it is restored.
    """
    chosen = {"tombstone": tombstone or None, "dry_run": dry_run or None}
    with operating(url, key, agent, data) as opened:
        done = opened.client.delete(memory_id, version=if_version, agent=opened.agent, **chosen)
    show(done, *describe_write(done, "it is out of every read; `memplane restore {id}` brings it back"), as_json=json)


COMMANDS: Mapping[str, Command] = {
    "reinforce": _verb(
        "reinforce", "Say that a memory helped.", "it helped: it counts for more in rankings that ask for that"
    ),
    "demote": _verb(
        "demote", "Say that a memory did not help.", "it did not help: it counts for less in rankings that ask for that"
    ),
    "pin": pin,
    "confirm": _verb(
        "confirm",
        "Say that a memory is right. One that was disputed takes the place of what it disputes.\n\n"
        "For fully trusted keys.",
        "it is right: believed without doubt",
    ),
    "update": update,
    "correct": correct,
    "retract": _verb(
        "retract",
        "Say that a memory is no longer so, and that nothing takes its place.",
        "it is no longer so, and is kept as a thing of the past",
    ),
    "reject": reject,
    "forget": forget,
}
