"""The delta header: what changed in a thread's memory since a revision, in at most three lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from memplane.domain.ranking.fencing import quote_text

MAX_BULLETS = 3
MAX_TITLE_CHARS = 120
PRUNED = "older changes are no longer kept: load the context again"
"""What a header says where changes after the revision were pruned."""


class ChangeEvent(StrEnum):
    """What happened to a memory, as a thread sees it; ``turn`` marks a revision that a turn took."""

    CREATED = "created"
    UPDATED = "updated"
    MERGED = "merged"
    DELETED = "deleted"
    SOFT_DELETED = "soft_deleted"
    ARCHIVED = "archived"
    RESTORED = "restored"
    SUPERSEDED = "superseded"
    TURN = "turn"


_MARKS = {
    ChangeEvent.CREATED: "+created",
    ChangeEvent.UPDATED: "↑updated",
    ChangeEvent.MERGED: "↔merged",
    ChangeEvent.DELETED: "−deleted",
    ChangeEvent.SOFT_DELETED: "~soft_deleted",
    ChangeEvent.ARCHIVED: "▽archived",
    ChangeEvent.RESTORED: "⟲restored",
    ChangeEvent.SUPERSEDED: "↷superseded",
}


@dataclass(frozen=True, slots=True)
class ChangeLogEntry:
    """One entry of a thread's change log, with what a header needs of the memory."""

    rev: int
    event: ChangeEvent
    memory_id: UUID
    category: str
    summary: str
    importance: int
    ts: datetime


def header(since: int, changes: Sequence[ChangeLogEntry]) -> str | None:
    """The header for the changes after revision ``since``, or none when nothing changed."""
    return format_header(since, *most_important(changes))


def most_important(changes: Sequence[ChangeLogEntry]) -> tuple[Sequence[ChangeLogEntry], int]:
    """The changes that a header shows, in their order, and how many memories changed.

    The latest change of each memory counts; the most important come first, then the newest. A memory that was created
    and deleted or archived in between is left out.
    """
    latest: dict[UUID, ChangeLogEntry] = {}
    created: set[UUID] = set()
    for change in sorted(changes, key=lambda c: c.rev):
        if change.event is ChangeEvent.TURN:
            continue
        if change.event is ChangeEvent.CREATED:
            created.add(change.memory_id)
        elif change.memory_id in created and change.event is ChangeEvent.UPDATED:
            change = _as_created(change)  # noqa: PLW2901 - new to the reader, though already edited
        latest[change.memory_id] = change
    gone = {ChangeEvent.DELETED, ChangeEvent.SOFT_DELETED, ChangeEvent.ARCHIVED}
    told = [c for c in latest.values() if not (c.event in gone and c.memory_id in created)]
    told.sort(key=lambda c: (-c.importance, -c.rev))
    return told[:MAX_BULLETS], len(told)


def format_header(since: int, best: Sequence[ChangeLogEntry], count: int, *, pruned: bool = False) -> str | None:
    """The header for so many changed memories, of which these are the most important, in their order.

    Args:
        since: the revision after which they changed.
        best: the most important of them.
        count: how many changed.
        pruned: whether there were earlier changes after it that are no longer kept.
    """
    bullets = [f"- {_mark(each)} {_summary(each)} (imp={each.importance})" for each in best[:MAX_BULLETS]]
    return "\n".join(_whole(since, bullets, count, pruned=pruned)) if best or pruned else None


def fenced_header(since: int, best: Sequence[ChangeLogEntry], count: int, *, pruned: bool = False) -> list[str]:
    """The same header as lines within a fence: each change on two lines, the second one its text, quoted."""
    bullets = [
        f"- {_mark(each)} (imp={each.importance})\n  {quote_text(_summary(each))}" for each in best[:MAX_BULLETS]
    ]
    return _whole(since, bullets, count, pruned=pruned) if best or pruned else []


def _whole(since: int, bullets: Sequence[str], count: int, *, pruned: bool) -> list[str]:
    lost = [PRUNED] if pruned else []
    more = [f"and {count - MAX_BULLETS} more"] if count > MAX_BULLETS else []
    return [f"Memory updates since rev {since}:", *lost, *bullets, *more]


def _as_created(change: ChangeLogEntry) -> ChangeLogEntry:
    return ChangeLogEntry(
        change.rev, ChangeEvent.CREATED, change.memory_id, change.category, change.summary, change.importance, change.ts
    )


def _mark(change: ChangeLogEntry) -> str:
    return f"{_MARKS[change.event]}: [{change.category.replace('_', ' ').capitalize()}]"


def _summary(change: ChangeLogEntry) -> str:
    summary = " ".join(change.summary.split())
    if len(summary) > MAX_TITLE_CHARS:
        summary = summary[: MAX_TITLE_CHARS - 1].rstrip() + "…"
    return summary
