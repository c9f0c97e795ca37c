"""`memplane query`, `turn`, `remember`, `get`, `list` and `history`: the memory from a terminal, over HTTP."""

import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, cast

import typer
from rich.console import RenderableType
from rich.table import Table

from memplane.client.fields import FilterFields, ListFields, MemoryFields, QueryFields, TurnFields
from memplane.contracts.memories import HistoryList, MemoryList, MemoryRecord
from memplane.contracts.query import QueryAnswer
from memplane.domain.memory import MemoryType, Role
from memplane.entrypoints.cli.options import DEFAULT_URL, Agent, AnyUser, Data, Key, Url, User
from memplane.entrypoints.cli.output import Json, add, plain, show, table
from memplane.entrypoints.cli.session import session

Categories = Annotated[list[str] | None, typer.Option("--category", help="Only this category. Repeatable.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="With this tag. Repeatable.")]
Type = Annotated[MemoryType | None, typer.Option("--type", help="Only this type.")]
Pinned = Annotated[bool | None, typer.Option("--pinned/--unpinned", help="Only pinned ones, or only others.")]
ExternalId = Annotated[str | None, typer.Option(help="Your own name for it; the same one again is no second record.")]
Limit = Annotated[int, typer.Option(min=1, max=200, help="The most items of the page.")]
Cursor = Annotated[str | None, typer.Option(help="The `next` of the page before.")]
Id = Annotated[str, typer.Argument(help="The memory's id.")]
Words = Annotated[str | None, typer.Argument(help="The text; '-' or nothing: from standard input.")]


def query(  # noqa: PLR0913 - one argument for each option
    text: Annotated[str | None, typer.Argument(metavar="[QUERY]", help="What is looked for [the newest].")] = None,
    *,
    user: AnyUser = None,
    category: Categories = None,
    type_: Type = None,
    tag: Tags = None,
    pinned: Pinned = None,
    top_k: Annotated[int, typer.Option(min=1, max=200, help="The most items.")] = 10,
    budget_tokens: Annotated[int | None, typer.Option(min=1, help="The most tokens.")] = None,
    threshold: Annotated[float | None, typer.Option(min=0, max=1, help="The least similarity.")] = None,
    ranking: Annotated[str | None, typer.Option(help="A profile of ranking.yaml.")] = None,
    thread: Annotated[str | None, typer.Option(help="Tell what changed in this thread.")] = None,
    since: Annotated[int | None, typer.Option(min=0, help="… after this revision.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Whole records.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="How each score came about.")] = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Ask the memory."""
    filters = cast("FilterFields", _given(user_id=user, type=type_, tags=tag, pinned=pinned))
    shape: Literal["full", "bullets"] = "full" if full else "bullets"
    chosen = _given(categories=category, budget_tokens=budget_tokens, threshold=threshold, ranking=ranking)
    thread_fields = _given(thread_id=thread, since_rev=since)
    with session(url, key, agent, data) as opened:
        fields = cast("QueryFields", chosen | thread_fields | _given(agent=opened.agent))
        answer = opened.client.query(
            text, **(fields | {"top_k": top_k, "return_": shape, "explain": explain, "filters": filters})
        )
    show(answer, *_answer(answer), as_json=json)


def turn(  # noqa: PLR0913 - one argument for each option
    text: Words = None,
    *,
    user: User,
    thread: Annotated[str, typer.Option(help="The conversation.")],
    role: Annotated[Role, typer.Option(help="Who spoke.")] = Role.USER,
    actor: Annotated[str | None, typer.Option(help="Who spoke, when the role does not say it.")] = None,
    external_id: ExternalId = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Store one message of a conversation, word for word."""
    words = _words(text)
    with session(url, key, agent, data) as opened:
        optional = _given(actor_id=actor, external_id=external_id, agent=opened.agent)
        fields = cast("TurnFields", {"user_id": user, "thread_id": thread, "role": role} | optional)
        stored = opened.client.turn(words, **fields)
    told = f"{stored.outcome}: turn {stored.seq} of thread {thread}, revision {stored.rev}, id {stored.turn_id}"
    show(stored, plain(told), as_json=json)


def remember(  # noqa: PLR0913 - one argument for each option
    content: Words = None,
    *,
    user: User,
    category: Annotated[str, typer.Option(help="What it is about.")],
    type_: Annotated[MemoryType, typer.Option("--type", help="What kind of memory.")] = MemoryType.SEMANTIC,
    title: Annotated[str | None, typer.Option(help="Its title.")] = None,
    step: Annotated[list[str] | None, typer.Option(help="A step of a procedure. Repeatable.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag. Repeatable.")] = None,
    importance: Annotated[int, typer.Option(min=1, max=5, help="1 to 5.")] = 3,
    pinned: Annotated[bool, typer.Option("--pinned", help="Never forgotten by itself.")] = False,
    thread: Annotated[str | None, typer.Option(help="The conversation that it came up in.")] = None,
    external_id: ExternalId = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Store one thing known: a sentence or two, in the third person."""
    words = _words(content)
    with session(url, key, agent, data) as opened:
        kind = {"type": type_, "importance": importance, "pinned": pinned, "user_id": user, "category": category}
        optional = _given(title=title, steps=step, tags=tag, thread_id=thread, external_id=external_id)
        fields = cast("MemoryFields", kind | optional | _given(agent=opened.agent))
        done = opened.client.remember(words, **fields)
    rev = "" if done.rev is None else f", thread revision {done.rev}"
    show(done, plain(f"{done.outcome}: {done.id}, version {done.version}{rev}"), as_json=json)


def get(
    memory_id: Id,
    *,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show one memory, whole."""
    with session(url, key, agent, data) as opened:
        record = opened.client.get(memory_id, agent=opened.agent)
    show(record, _record(record), as_json=json)


def list_memories(  # noqa: PLR0913 - one argument for each option
    *,
    user: AnyUser = None,
    category: Categories = None,
    type_: Type = None,
    tag: Tags = None,
    pinned: Pinned = None,
    thread: Annotated[str | None, typer.Option(help="Only of this conversation.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    every: Annotated[bool, typer.Option("--all", help="Every page, not only one.")] = False,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """List memories, newest first."""
    where = _given(user_id=user, category=category, type=type_, tag=tag, pinned=pinned, thread_id=thread)
    with session(url, key, agent, data) as opened:
        fields = cast("ListFields", where | _given(agent=opened.agent))
        if every:
            page = MemoryList(items=list(opened.client.list(page_size=limit, **fields)), next=None)
        else:
            page = opened.client.list_page(limit=limit, cursor=cursor, **fields)
    show(page, *_page(page), as_json=json)


def history(  # noqa: PLR0913 - one argument for each option
    memory_id: Id,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    url: Url = DEFAULT_URL,
    key: Key = None,
    agent: Agent = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show what was done to a memory, newest first, also after its deletion."""
    with session(url, key, agent, data) as opened:
        page = opened.client.history(memory_id, limit=limit, cursor=cursor, agent=opened.agent)
    show(page, *_history(page), as_json=json)


COMMANDS: Mapping[str, Callable[..., None]] = {
    "query": query,
    "turn": turn,
    "remember": remember,
    "get": get,
    "list": list_memories,
    "history": history,
}


def _given(**options: object) -> dict[str, object]:
    """What was given on the command line."""
    return {name: value for name, value in options.items() if value not in (None, [])}


def _words(argument: str | None) -> str:
    """The text of an argument, or of standard input."""
    if argument is not None and argument != "-":
        return argument
    if sys.stdin.isatty() and argument is None:
        raise typer.BadParameter("give the text as an argument, or on standard input")
    return sys.stdin.read().removesuffix("\n")


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
    rows = table("recorded", "user", "category", "type", "imp", "content", "id")
    for item in page.items:
        when = f"{item.recorded_at:%Y-%m-%d %H:%M}"
        add(rows, when, item.user_id, item.category, item.type, item.importance, item.content, item.id)
    return [rows, *_more(page.next)]


def _history(page: HistoryList) -> list[RenderableType]:
    rows = table("when", "event", "by", "before", "after")
    for entry in page.items:
        add(rows, f"{entry.ts:%Y-%m-%d %H:%M:%S}", entry.event, entry.actor, entry.old_ref, entry.new_ref)
    return [rows, *_more(page.next)]


def _more(cursor: str | None) -> list[RenderableType]:
    return [] if cursor is None else [plain(f"There is more: --cursor {cursor}", "dim")]
