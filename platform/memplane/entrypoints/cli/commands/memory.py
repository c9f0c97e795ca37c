"""`memplane query`, `turn`, `remember`, `get` and `list`: the memory from a terminal, over HTTP."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Literal, cast
from uuid import UUID

import typer
from rich.console import RenderableType
from rich.table import Table

from memplane.client.fields import ContextFields, FilterFields, ListFields, MemoryFields, QueryFields, TurnFields
from memplane.contracts.memories import MemoryList, MemoryRecord, TurnOutcome
from memplane.contracts.query import QueryAnswer
from memplane.domain.memory.memory import Layer, MemoryType, Role, Visibility
from memplane.entrypoints.cli.options import (
    DEFAULT_URL,
    AdminKey,
    Agent,
    AnyUser,
    Cursor,
    Data,
    DryRun,
    Key,
    Limit,
    OneUser,
    Shared,
    Url,
    User,
    ValidFrom,
    ValidUntil,
    Within,
    Words,
    given_options,
    memory_id_of,
    moment_of,
    owner_of,
    words_of,
)
from memplane.entrypoints.cli.output import Json, add, more, plain, show, table
from memplane.entrypoints.cli.session import operating, session
from memplane.entrypoints.cli.write_outcome import describe_plan, describe_write

Categories = Annotated[list[str] | None, typer.Option("--category", help="Only this category. Repeatable.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="With this tag. Repeatable.")]
Type = Annotated[MemoryType | None, typer.Option("--type", help="Only this type.")]
Pinned = Annotated[bool | None, typer.Option("--pinned/--unpinned", help="Only pinned ones, or only others.")]
Entities = Annotated[list[str] | None, typer.Option(help="That mention this name or alias. Repeatable: any of them.")]
UpdatedAfter = Annotated[
    datetime | None, typer.Option(help="Changed then or later: a day or a time.", parser=moment_of)
]
UpdatedBefore = Annotated[datetime | None, typer.Option(help="Changed before then: a day or a time.", parser=moment_of)]
BelievedAt = Annotated[
    datetime | None, typer.Option(help="As it was believed then: a day or a time.", parser=moment_of)
]
TrueAt = Annotated[
    datetime | None, typer.Option(help="What was so then, as it is known now: a day or a time.", parser=moment_of)
]
ListedState = Literal["active", "superseded", "archived", "soft_deleted"]
ExternalId = Annotated[str | None, typer.Option(help="Your own name for it; the same one again is no second record.")]


def query(  # noqa: PLR0913 - one argument for each option
    text: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="What is looked for.", show_default="the newest")
    ] = None,
    *,
    user: AnyUser = None,
    category: Categories = None,
    type_: Annotated[list[MemoryType] | None, typer.Option("--type", help="Only this type. Repeatable.")] = None,
    visibility: Annotated[Visibility | None, typer.Option(help="Only this store.")] = None,
    of_agent: Annotated[str | None, typer.Option(help="Only what was recorded for this agent.")] = None,
    run: Annotated[str | None, typer.Option(help="Only of this run.")] = None,
    actor: Annotated[str | None, typer.Option(help="Only of this speaker.")] = None,
    role: Annotated[Role | None, typer.Option(help="Only of this role.")] = None,
    entity: Entities = None,
    tag: Tags = None,
    pinned: Pinned = None,
    of_thread: Annotated[str | None, typer.Option(help="Only of this conversation.")] = None,
    importance_min: Annotated[int | None, typer.Option(min=1, max=5, help="At least so important.")] = None,
    importance_max: Annotated[int | None, typer.Option(min=1, max=5, help="At most so important.")] = None,
    updated_after: UpdatedAfter = None,
    updated_before: UpdatedBefore = None,
    related: Annotated[bool, typer.Option("--related/--no-related", help="Bring what relations link to it.")] = True,
    top_k: Annotated[int, typer.Option(min=1, max=200, help="The most items.")] = 10,
    budget_tokens: Annotated[int | None, typer.Option(min=1, help="The most tokens.")] = None,
    threshold: Annotated[float | None, typer.Option(min=0, max=1, help="The least similarity.")] = None,
    ranking: Annotated[str | None, typer.Option(help="A profile of ranking.yaml.")] = None,
    thread: Annotated[str | None, typer.Option(help="Tell what changed in this thread.")] = None,
    since: Annotated[int | None, typer.Option(min=0, help="… after this revision.")] = None,
    believed_at: BelievedAt = None,
    true_at: TrueAt = None,
    archive: Annotated[bool, typer.Option("--archive", help="Search what was archived for want of room.")] = False,
    on_demand: Annotated[
        bool, typer.Option("--on-demand", help="Count it as recall that a turn of --thread needed.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Whole records.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="How each score came about.")] = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Ask the memory."""
    narrowed = given_options(user_id=user, types=type_, visibility=visibility, entity=entity, tags=tag, pinned=pinned)
    narrowed |= given_options(thread_id=of_thread, importance_min=importance_min, importance_max=importance_max)
    filters = cast("FilterFields", narrowed | given_options(updated_after=updated_after, updated_before=updated_before))
    shape: Literal["full", "bullets"] = "full" if full else "bullets"
    chosen = given_options(categories=category, budget_tokens=budget_tokens, threshold=threshold, ranking=ranking)
    chosen |= given_options(agent_id=of_agent, run_id=run, actor_id=actor, role=role)
    moments = given_options(believed_at=believed_at, true_at=true_at)
    other_fields = given_options(thread_id=thread, since_rev=since, as_of=moments or None, archive=archive or None)
    other_fields |= {"purpose": "on_demand"} if on_demand else {}
    with session(url, key, agent, data) as opened:
        fields = cast("QueryFields", chosen | other_fields | given_options(agent=opened.agent))
        shown: QueryFields = {"top_k": top_k, "return_": shape, "explain": explain, "related": related}
        answer = opened.client.query(text, **(fields | shown | {"filters": filters}))
    show(answer, *_answer(answer), as_json=json)


def context(  # noqa: PLR0913 - one argument for each option
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="What the user has just said.", show_default="nothing")
    ] = None,
    *,
    user: User,
    thread: Annotated[str, typer.Option(help="The conversation.")],
    since: Annotated[int | None, typer.Option(min=0, help="Tell what changed after this revision.")] = None,
    budget_tokens: Annotated[int | None, typer.Option(min=1, help="The most tokens.")] = None,
    k: Annotated[
        int | None, typer.Option("--k", min=1, max=200, help="The most that is recalled by the message.")
    ] = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """What an agent should know before it answers, as one block for its prompt."""
    chosen = given_options(message=message, since_rev=since, budget_tokens=budget_tokens, k=k)
    with session(url, key, agent, data) as opened:
        fields = cast("ContextFields", chosen | given_options(agent=opened.agent))
        answer = opened.client.context(user, thread, **fields)
    usage = answer.usage
    left = ", some left out" if usage.truncated else ""
    told = f"{usage.tokens} of {usage.budget} tokens, {usage.candidates} searched{left}"
    lines = (answer.prompt or "nothing to tell").split("\n")
    show(answer, *(plain(line) for line in lines), plain(told, "dim"), as_json=json)


def turn(  # noqa: PLR0913 - one argument for each option
    text: Words = None,
    *,
    user: User,
    thread: Annotated[str, typer.Option(help="The conversation.")],
    role: Annotated[Role, typer.Option(help="Who spoke.")] = Role.USER,
    actor: Annotated[str | None, typer.Option(help="Who spoke, when the role does not say it.")] = None,
    event_time: Annotated[
        datetime | None, typer.Option(help="When it was said: a day or a time.", parser=moment_of, show_default="now")
    ] = None,
    extract: Annotated[bool, typer.Option("--extract/--no-extract", help="Draw facts from what a user says.")] = True,
    external_id: ExternalId = None,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Store one message of a conversation, word for word."""
    words = words_of(text)
    with session(url, key, agent, data) as opened:
        tried = given_options(dry_run=dry_run or None, agent=opened.agent)
        optional = given_options(actor_id=actor, event_time=event_time, external_id=external_id) | tried
        fields = cast(
            "TurnFields", {"user_id": user, "thread_id": thread, "role": role, "auto_extract": extract} | optional
        )
        stored = opened.client.turn(words, **fields)
    show(stored, *_stored(stored, thread), as_json=json)


def remember(  # noqa: PLR0913 - one argument for each option
    content: Words = None,
    *,
    user: OneUser = None,
    shared: Shared = False,
    category: Annotated[str, typer.Option(help="What it is about.")],
    type_: Annotated[MemoryType, typer.Option("--type", help="What kind of memory.")] = MemoryType.SEMANTIC,
    title: Annotated[str | None, typer.Option(help="Its title.")] = None,
    step: Annotated[list[str] | None, typer.Option(help="A step of a procedure. Repeatable.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag. Repeatable.")] = None,
    visibility: Annotated[
        Visibility | None, typer.Option(help="The store.", show_default="what the key's trust level writes to")
    ] = None,
    valid_from: ValidFrom = None,
    valid_until: ValidUntil = None,
    importance: Annotated[int, typer.Option(min=1, max=5, help="1 to 5.")] = 3,
    pinned: Annotated[bool, typer.Option("--pinned", help="Never forgotten by itself.")] = False,
    thread: Annotated[str | None, typer.Option(help="The conversation that it came up in.")] = None,
    external_id: ExternalId = None,
    dry_run: DryRun = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Store one thing known: a sentence or two, in the third person."""
    owner, words = owner_of(user, shared=shared), words_of(content)
    with session(url, key, agent, data) as opened:
        kind = {"type": type_, "importance": importance, "pinned": pinned, "user_id": owner, "category": category}
        optional = given_options(title=title, steps=step, tags=tag, thread_id=thread, external_id=external_id)
        moments = given_options(visibility=visibility, valid_from=valid_from, valid_until=valid_until)
        tried = given_options(dry_run=dry_run or None, agent=opened.agent)
        fields = cast("MemoryFields", kind | optional | moments | tried)
        done = opened.client.remember(words, **fields)
    show(done, *describe_write(done), as_json=json)


def get(
    memory_ids: Annotated[
        list[UUID], typer.Argument(metavar="ID...", help="One memory's id, or several.", parser=memory_id_of)
    ],
    *,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show memories, whole. Of several, those that are absent or not to be read are left out."""
    with operating(url, key, agent, data) as opened:
        if len(memory_ids) == 1:
            record = opened.client.get(memory_ids[0], agent=opened.agent)
            show(record, _record(record), as_json=json)
        else:
            found = opened.client.get_many(memory_ids, agent=opened.agent)
            told = plain(f"{len(found.items)} of {len(memory_ids)} are there for this key", "dim")
            show(found, *(_record(each) for each in found.items), told, as_json=json)


def list_memories(  # noqa: PLR0913 - one argument for each option
    *,
    user: AnyUser = None,
    category: Categories = None,
    type_: Type = None,
    tag: Tags = None,
    pinned: Pinned = None,
    thread: Annotated[str | None, typer.Option(help="Only of this conversation.")] = None,
    state: Annotated[
        ListedState, typer.Option(help="Only in this state; soft_deleted needs a fully trusted key.")
    ] = "active",
    layer: Annotated[Layer | None, typer.Option(help="Only of this layer.")] = None,
    q: Annotated[str | None, typer.Option("--query", "-q", help="Only with one of these words.")] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="Shared knowledge, in place of what is about users.")
    ] = False,
    disputed: Annotated[bool, typer.Option("--disputed", help="Those that wait for confirm or reject.")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
    every: Annotated[bool, typer.Option("--all", help="Every page, not only one.")] = False,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """List memories, newest first."""
    where = given_options(user_id=user, category=category, type=type_, tag=tag, pinned=pinned, thread_id=thread)
    where |= given_options(state=state if state != "active" else None, layer=layer, q=q)
    where |= ({"trust_state": "disputed"} if disputed else {}) | ({"shared": True} if shared else {})
    with operating(url, key, agent, data) as opened:
        fields = cast("ListFields", where | given_options(agent=opened.agent))
        if every:
            page = MemoryList(items=list(opened.client.list(page_size=limit, **fields)), next=None)
        else:
            page = opened.client.list_page(limit=limit, cursor=cursor, **fields)
    show(page, *_page(page), as_json=json)


COMMANDS: Mapping[str, Callable[..., None]] = {
    "query": query,
    "context": context,
    "turn": turn,
    "remember": remember,
    "get": get,
    "list": list_memories,
}


def _stored(stored: TurnOutcome, thread: str) -> list[RenderableType]:
    told = f"{stored.outcome}: turn {stored.seq} of thread {thread}, revision {stored.rev}, id {stored.turn_id}"
    drawn = [
        f"  drawn from it: [{each.category}] {each.content} ({each.action}{f', {each.id}' if each.id else ''})"
        for each in stored.extracted
    ]
    if stored.extracted_elsewhere:
        drawn.append(f"  drawn from it in categories that the agent may not read: {stored.extracted_elsewhere}")
    left = ", ".join(f"{count} {name}" for name, count in stored.left_out.model_dump().items() if count)
    if left:
        drawn.append(f"  left out by the limits of extraction: {left}")
    if not stored.vouched:
        drawn.append("  unvouched: the key lacks turns:user, nothing is drawn from it and it acknowledges nothing")
    return [plain(told), *(plain(line, "dim") for line in drawn), *describe_plan(stored.dry_run)]


def _answer(answer: QueryAnswer) -> list[RenderableType]:
    rows = table("score", "category", "text", "id")
    for item in answer.items:
        prefix = f"[{item.category}] "
        text = item.text.removeprefix(prefix) + (" (related)" if item.via else "")
        add(rows, f"{item.score:.3f}", item.category, text, item.id)
    usage = answer.usage
    left = ", some left out" if usage.truncated else ""
    told = f"{len(answer.items)} of {usage.candidates} in scope, {usage.tokens} of {usage.budget} tokens{left}"
    header = (answer.delta.header if answer.delta else None) or ""
    explained = [plain(f"{item.id}: {item.explain.model_dump_json()}", "dim") for item in answer.items if item.explain]
    return [*(plain(line, "cyan") for line in header.splitlines()), rows, *explained, plain(told, "dim")]


def _record(record: MemoryRecord) -> Table:
    rows = table("field", "value")
    for name, value in record.model_dump(mode="json").items():
        if value not in (None, [], {}):
            add(rows, name, value)
    return rows


def _page(page: MemoryList) -> list[RenderableType]:
    scored = ["score"] if any(item.score is not None for item in page.items) else []
    rows = table("recorded", "user", "category", "type", "imp", *scored, "content", "id")
    for item in page.items:
        when = f"{item.recorded_at:%Y-%m-%d %H:%M}"
        score = [f"{item.score or 0:.3f}"] if scored else []
        add(
            rows,
            when,
            item.user_id or "(shared)",
            item.category,
            item.type,
            item.importance,
            *score,
            item.content,
            item.id,
        )
    return [rows, *more(page.next)]
