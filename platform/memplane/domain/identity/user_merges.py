"""One user merged into another: the record of it, and which name its threads have afterwards."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

MAX_NAME = 255
_MARK = 12


@dataclass(frozen=True, slots=True)
class UserMerge:
    """A user whose records belong to another one from a moment on.

    Attributes:
        id: of the receipt.
        from_user: the user that was merged; its name is an alias until the merge is undone.
        into_user: the user that has the records now.
        counts: by table, how many rows there were before and after.
        revertible_until: until when it can be undone.
        undone_at: when it was undone.
    """

    id: UUID
    from_user: str
    into_user: str
    actor: str
    policy_hash: str
    merged_at: datetime
    revertible_until: datetime
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    undone_at: datetime | None = None


def renamed_threads(threads: Collection[str], taken: Collection[str], merge_id: UUID) -> dict[str, str]:
    """New names for the threads whose names the other user has: the name, ``#``, and the end of the receipt's id."""
    mark = _mark(merge_id)
    return {name: f"{name[: MAX_NAME - len(mark)]}{mark}" for name in sorted(set(threads) & set(taken))}


def former_names(thread: str, merges: Mapping[str, UserMerge]) -> list[str]:
    """What a thread was called before merges renamed it; nothing for one that kept its name."""
    found: list[str] = []
    marks = [_mark(each.id) for each in merges.values()]
    while (mark := next((each for each in marks if thread.endswith(each)), None)) is not None:
        thread = thread.removesuffix(mark)
        found.append(thread)
    return found


def _mark(merge_id: UUID) -> str:
    return f"#{merge_id.hex[-_MARK:]}"


@dataclass(frozen=True, slots=True)
class Presence:
    """A stretch of activity with its beginning."""

    began_at: datetime
    last_at: datetime


def joined_presence(some: Collection[Presence], away: timedelta) -> list[tuple[Presence, datetime | None]]:
    """The stretches of two users as those of one: without gaps shorter than ``away``, each with when the next began."""
    found: list[Presence] = []
    for each in sorted(some, key=lambda stretch: stretch.began_at):
        if found and each.began_at - found[-1].last_at <= away:
            found[-1] = Presence(found[-1].began_at, max(found[-1].last_at, each.last_at))
        else:
            found.append(each)
    return [
        (each, following.began_at if following else None)
        for each, following in zip(found, [*found[1:], None], strict=True)
    ]
