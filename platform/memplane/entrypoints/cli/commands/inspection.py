"""`memplane why`, `history`, `timeline` and `related`: what can be told about one memory, over HTTP."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from memplane.contracts.inspection import RelatedList, Timeline, WhyRecord
from memplane.contracts.memories import HistoryList, HistoryRecord, MemoryRecord, TurnRecord
from memplane.domain.memory.memory import State, TrustState
from memplane.entrypoints.cli.options import DEFAULT_URL, AdminKey, Cursor, Data, Id, Limit, Url, Within, memory_id_of
from memplane.entrypoints.cli.output import Json, add, more, plain, show, table
from memplane.entrypoints.cli.session import operating

ANCHOR = "▶"
"""Marks the memory that a timeline was asked for."""
_BELIEVED: Mapping[TrustState, str] = {
    TrustState.CANDIDATE: "candidate: believed, not confirmed by a person",
    TrustState.CONFIRMED: "confirmed: a person says that it is right",
    TrustState.DISPUTED: "disputed: not recalled until it is confirmed or rejected",
    TrustState.REJECTED: "rejected: a person says that it is wrong",
}
_NOTED = frozenset({"categories", "key"})
"""What a history entry notes for the server's own use."""


def why(  # noqa: PLR0913 - one argument for each option
    memory_id: Id,
    *,
    query: Annotated[str | None, typer.Option("--query", "-q", help="Score it for this question.")] = None,
    ranking: Annotated[str | None, typer.Option(help="A profile of ranking.yaml, for the question.")] = None,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Tell why a memory is as it is: its state, its sources, the rule that decided, and what was decided by whom."""
    with operating(url, key, agent, data) as opened:
        found = opened.client.why(memory_id, query=query, ranking=ranking, agent=opened.agent)
    show(found, *_why(found), as_json=json)


def history(  # noqa: PLR0913 - one argument for each option
    memory_id: Id,
    *,
    limit: Limit = 50,
    cursor: Cursor = None,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show what was done to a memory, newest first, also after its deletion."""
    with operating(url, key, agent, data) as opened:
        page = opened.client.history(memory_id, limit=limit, cursor=cursor, agent=opened.agent)
    show(page, *_history(page), as_json=json)


def timeline(  # noqa: PLR0913 - one argument for each option
    memory_id: Annotated[UUID, typer.Argument(metavar="ID", help="A memory's or turn's id.", parser=memory_id_of)],
    *,
    before: Annotated[int, typer.Option(min=0, max=200, help="The most items before it.")] = 5,
    after: Annotated[int, typer.Option(min=0, max=200, help="The most items after it.")] = 5,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show what was recorded of the same user before and after a memory or turn, oldest first."""
    with operating(url, key, agent, data) as opened:
        found = opened.client.timeline(memory_id, before=before, after=after, agent=opened.agent)
    show(found, _timeline(found, memory_id), as_json=json)


def related(  # noqa: PLR0913 - one argument for each option
    memory_id: Id,
    *,
    limit: Annotated[int, typer.Option(min=1, max=200, help="The most memories.")] = 10,
    url: Url = DEFAULT_URL,
    key: AdminKey = None,
    agent: Within = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Show the memories that are related to one, strongest first."""
    with operating(url, key, agent, data) as opened:
        found = opened.client.related(memory_id, limit=limit, agent=opened.agent)
    show(found, _related(found), as_json=json)


COMMANDS: Mapping[str, Callable[..., None]] = {
    "why": why,
    "history": history,
    "timeline": timeline,
    "related": related,
}


def _why(found: WhyRecord) -> list[RenderableType]:
    return [plain(found.memory.content, "bold"), _standing(found), *_sources(found), *_decisions(found)]


def _standing(found: WhyRecord) -> Table:
    """How a memory stands: its state, how it is believed, and since when."""
    memory = found.memory
    rows = Table.grid(padding=(0, 2))
    weighed = [f"layer {found.layer}", f"hits {found.hits}", f"importance {memory.importance}"]
    weighed += [f"mentions {memory.mention_count}"]
    weighed += [f"reinforcement {memory.reinforcement:+}"] if memory.reinforcement else []
    weighed += ["pinned"] if memory.pinned else []
    told = {
        "id": f"{memory.id}, version {memory.version}",
        "about": f"user {memory.user_id}: {memory.category}, {memory.type}, in the {memory.visibility} store",
        "state": _state(memory),
        "trust": f"{_BELIEVED[memory.trust_state]}; confidence {memory.confidence:g}",
        "true": _validity(memory),
        "known": f"since {_when(memory.recorded_at)}, for {_age(found.age_days)}",
        "written": f"by {memory.agent_id or 'nobody named'}, source {memory.source}",
        "counts": ", ".join(weighed),
        "decay": _decay(found),
        "rule": _rule(found),
        "score": _score(found),
    }
    for label, value in told.items():
        if value:
            rows.add_row(plain(label, "dim"), plain(value))
    return rows


def _decay(found: WhyRecord) -> str:
    decay = found.decay
    if not decay.rate:
        return "never"
    return f"{decay.rate:g} a day, {decay.days:.1f} days since it was used: {decay.left:.3f} is left"


def _rule(found: WhyRecord) -> str:
    rule = found.rule
    if rule is None:
        return ""
    words = "; ".join(f"{name} {', '.join(listed)}" for name, listed in rule.words.items() if listed)
    return ", ".join(filter(None, (f"{rule.event}: {rule.rule}", rule.verdict, words)))


def _score(found: WhyRecord) -> str:
    if found.score is None:
        return ""
    parts = ", ".join(f"{name} {value:.3f}" for name, value in found.score.parts.items() if value)
    return f"{found.score.score:.3f}: {parts}"


def _state(memory: MemoryRecord) -> str:
    if memory.state is not State.SUPERSEDED or memory.superseded_at is None:
        return str(memory.state)
    by = f" by {memory.superseded_by}" if memory.superseded_by else ", with nothing in its place"
    return f"{memory.state} {_when(memory.superseded_at)}{by}"


def _validity(memory: MemoryRecord) -> str:
    start = f"since {_when(memory.valid_from)}" if memory.valid_from else "always, as far as is known"
    return f"{start}, until {_when(memory.valid_until)}" if memory.valid_until else start


def _sources(found: WhyRecord) -> list[RenderableType]:
    """Where a memory comes from; what the reader may not see is only counted."""
    hidden = len(found.memory.source_ids) - len(found.turns) - len(found.memories)
    left: list[RenderableType] = []
    if hidden > 0:
        left = [plain(f"Sources that are gone or that this key may not read: {hidden}", "dim")]
    if not found.turns and not found.memories:
        return left or [plain("It was drawn from no turn and no other memory.", "dim")]
    rows = table("recorded (UTC)", "what", "text", "id", title="Drawn from")
    sources: list[TurnRecord | MemoryRecord] = [*found.turns, *found.memories]
    for each in sources:
        add(rows, *_row(each))
    return [rows, *left]


def _decisions(found: WhyRecord) -> list[RenderableType]:
    rows = table("when (UTC)", "event", "by", "policy", "words", "details", title="What was decided, newest first")
    for entry in found.decisions:
        add(rows, _when(entry.ts), entry.event, entry.actor, entry.policy_hash[:15] + "…", _words(entry), _meta(entry))
    return [rows]


def _words(entry: HistoryRecord) -> str | None:
    if entry.old_ref and entry.new_ref and entry.old_ref != entry.new_ref:
        return f"{entry.old_ref} → {entry.new_ref}"
    return entry.new_ref or entry.old_ref


def _meta(entry: HistoryRecord) -> str:
    told = ((name.replace("_", " "), _read(value)) for name, value in entry.meta.items() if name not in _NOTED)
    return "; ".join(f"{name} {value}" for name, value in told if value)


def _read(value: object) -> str:
    """A value of JSON as one reads it aloud."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_read(each)}" for name, each in value.items())
    if isinstance(value, list):
        return " and ".join(_read(each) for each in value)
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _history(page: HistoryList) -> list[RenderableType]:
    rows = table("when (UTC)", "event", "by", "before", "after")
    for entry in page.items:
        add(rows, _when(entry.ts), entry.event, entry.actor, entry.old_ref, entry.new_ref)
    return [rows, *more(page.next)]


def _timeline(found: Timeline, anchor: UUID) -> Table:
    rows = table("", "recorded (UTC)", "what", "text", "id")
    for item in found.items:
        mark = item.id == anchor
        cells = (plain(cell, "bold" if mark else "") for cell in _row(item))
        add(rows, Text(ANCHOR if mark else "", style="bold cyan"), *cells)
    return rows


def _row(item: MemoryRecord | TurnRecord) -> tuple[str, str, str, UUID]:
    """When something was recorded, what it is, what it says, and its id."""
    if isinstance(item, TurnRecord):
        who = f"{item.role} {item.actor_id}" if item.actor_id else str(item.role)
        who += "" if item.vouched else ", unvouched"
        return _when(item.recorded_at), f"turn {item.seq} of {item.thread_id}, {who}", item.text, item.id
    return _when(item.recorded_at), item.category, item.content, item.id


def _related(found: RelatedList) -> RenderableType:
    if not found.items:
        return plain("Nothing that this key may read is related to it.", "dim")
    rows = table("strength", "category", "content", "id")
    for each in found.items:
        add(rows, f"{each.strength:.3f}", each.memory.category, each.memory.content, each.memory.id)
    return rows


def _age(days: float) -> str:
    if days >= 1:
        return f"{days:.1f} days"
    return f"{days * 24:.1f} hours" if days * 24 >= 1 else "less than an hour"


def _when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"
