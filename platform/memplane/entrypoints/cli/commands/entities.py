"""`memplane entities`, `entity`, `alias` and `merge`: whom and what memories mention, over HTTP."""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal
from uuid import UUID

import typer
from rich.console import RenderableType
from rich.table import Table

from memplane.contracts.entities import EntityList, EntityProfileRecord, EntityRecord
from memplane.entrypoints.cli.options import DEFAULT_URL, AdminKey, Cursor, Data, Limit, Url, Within, id_of, owner_of
from memplane.entrypoints.cli.output import Json, add, more, plain, show, table
from memplane.entrypoints.cli.session import advise_on, operating

MAX_LIMIT = 200
Kind = Literal["person", "organisation", "place", "project", "email", "url", "hashtag", "handle", "date", "name"]
"""The kinds that the server finds; ``name`` where its rules cannot tell."""
_ADVICE: Mapping[str, str] = {
    "not_found": "check the id; `memplane entities --user USER` shows what the key may see",
    "conflict": "`memplane entities --user USER --name NAME` shows it, `memplane merge ID --into ID` makes the two one",
}
"""What to do about what a server answered of an entity, by code."""


entity_id_of = id_of("`memplane entities --user USER` shows")
EntityId = Annotated[UUID, typer.Argument(metavar="ID", help="The entity's id.", parser=entity_id_of)]


def entities(  # noqa: PLR0913 - one argument for each option
    *,
    user: Annotated[str | None, typer.Option("--user", help="The user whose memories mention them.")] = None,
    shared: Annotated[bool, typer.Option("--shared", help="Those of shared knowledge, in place of a user.")] = False,
    kind: Annotated[Kind | None, typer.Option(help="Only of this kind.")] = None,
    name: Annotated[str | None, typer.Option(help="Only of this name or alias.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LIMIT, help="The most entities.")] = 50,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """List whom and what a user's memories mention, those that most memories mention first."""
    owner = owner_of(user, shared=shared)
    with operating(url, key, agent, data) as opened:
        found = opened.client.entities(owner, kind=kind, name=name, limit=limit, agent=opened.agent)
    show(found, *_list(found, limit), as_json=json)


def entity(  # noqa: PLR0913 - one argument for each option
    entity_id: EntityId,
    *,
    limit: Limit = 20,
    cursor: Cursor = None,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show one entity: its kind and names, whom memories mention beside it, and what they say, newest first."""
    with advise_on(_ADVICE), operating(url, key, agent, data) as opened:
        found = opened.client.entity(entity_id, limit=limit, cursor=cursor, agent=opened.agent)
    show(found, *_entity(found), *_profile(found), as_json=json)


def alias(  # noqa: PLR0913 - one argument for each option
    entity_id: EntityId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its other name.")],
    *,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Give an entity another name: it is found by it, and memories that say the name are linked to it from now on."""
    with advise_on(_ADVICE), operating(url, key, agent, data) as opened:
        found = opened.client.alias(entity_id, name, agent=opened.agent)
    show(found, *_entity(found), as_json=json)


def merge(  # noqa: PLR0913 - one argument for each option
    entity_id: EntityId,
    *,
    into: Annotated[
        UUID, typer.Option(metavar="ID", help="The entity that it is the same as, which stays.", parser=entity_id_of)
    ],
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Put an entity into another that is the same: its memories and names become the other's, and it is gone.

    There is no way back.
    """
    with advise_on(_ADVICE), operating(url, key, agent, data) as opened:
        found = opened.client.merge(entity_id, into, agent=opened.agent)
    told = plain(f"merged: {entity_id} is gone; its memories and names are those of {found.id} now")
    show(found, told, *_entity(found), as_json=json)


COMMANDS: Mapping[str, Callable[..., None]] = {
    "entities": entities,
    "entity": entity,
    "alias": alias,
    "merge": merge,
}


def _list(found: EntityList, limit: int) -> list[RenderableType]:
    if not found.items:
        return [plain("No memory that this key may read mentions one.", "dim")]
    rows = table("memories", "kind", "name", "also called", "id")
    for each in found.items:
        add(rows, each.memories, each.kind, each.name, each.aliases, each.id)
    if len(found.items) < limit:
        return [rows]
    narrower = "--kind and --name" if limit == MAX_LIMIT else "--limit"
    return [rows, plain(f"There may be more: {narrower}", "dim")]


def _profile(found: EntityProfileRecord) -> list[RenderableType]:
    facts = table("recorded (UTC)", "category", "content", "id", title="Mentioned in, newest first")
    for memory in found.facts:
        add(facts, f"{memory.recorded_at:%Y-%m-%d %H:%M:%S}", memory.category, memory.content, memory.id)
    related = table("memories", "kind", "name", "id", title="Mentioned with")
    for each in found.related:
        add(related, each.memories, each.kind, each.name, each.id)
    return [*([related] if found.related else []), facts, *more(found.next)]


def _entity(found: EntityRecord) -> list[RenderableType]:
    rows = Table.grid(padding=(0, 2))
    told = {
        "id": str(found.id),
        "kind": found.kind,
        "user": found.user_id,
        "also called": ", ".join(found.aliases),
        "memories": "" if found.memories is None else str(found.memories),
    }
    if isinstance(found, EntityProfileRecord):
        last = found.last_mentioned
        told["last mentioned"] = "never" if last is None else f"{last:%Y-%m-%d %H:%M:%S}"
    for label, value in told.items():
        if value:
            rows.add_row(plain(label, "dim"), plain(value))
    return [plain(found.name, "bold"), rows]
