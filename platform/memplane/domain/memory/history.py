"""The append-only history of memories."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from memplane.domain.memory.memory import TrustState


class HistoryEvent(StrEnum):
    """What was done to a memory."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    MERGE = "MERGE"
    LINK = "LINK"
    TTL = "TTL"
    RESTORE = "RESTORE"
    CONSENT = "CONSENT"
    REINFORCE = "REINFORCE"
    DEMOTE = "DEMOTE"
    CONFIRM = "CONFIRM"
    SUPERSEDE = "SUPERSEDE"
    DISPUTE = "DISPUTE"
    RETRACT = "RETRACT"
    REJECT = "REJECT"
    PIN = "PIN"
    MENTION = "MENTION"
    PURGE = "PURGE"
    ERASE = "ERASE"
    ARCHIVE = "ARCHIVE"
    PROMOTE = "PROMOTE"
    REVERT = "REVERT"
    LIFT = "LIFT"
    USER_MERGE = "USER_MERGE"
    USER_UNMERGE = "USER_UNMERGE"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One entry: who did what to which memory, under which policy, and the text before and after.

    Attributes:
        of_user: whose words it holds.
    """

    id: UUID
    memory_id: UUID
    event: HistoryEvent
    actor: str
    policy_hash: str
    ts: datetime
    old_ref: str | None = None
    new_ref: str | None = None
    meta: Mapping[str, object] = field(default_factory=dict)
    of_user: str | None = None


_LEAVING = frozenset(
    {HistoryEvent.SUPERSEDE, HistoryEvent.RETRACT, HistoryEvent.DELETE, HistoryEvent.TTL, HistoryEvent.ARCHIVE}
)


def was_believed(later: Sequence[HistoryEntry]) -> bool:
    """Whether a memory was believed before what was done to it later, oldest first: neither gone nor in doubt."""
    for entry in later:
        if entry.event is HistoryEvent.RESTORE:
            return False
        if entry.event in _LEAVING:
            return True
        if entry.event is HistoryEvent.CONFIRM:
            return entry.meta.get("was") != TrustState.DISPUTED
    return True


def words_before(later: Sequence[HistoryEntry], categories: Collection[str]) -> str | None:
    """A memory's words before it was first changed, if that was under categories that may be read; else none."""
    for entry in later:
        if entry.event is HistoryEvent.UPDATE and entry.old_ref is not None:
            under = entry.meta.get("categories")
            readable = isinstance(under, list) and all(name in categories for name in under)
            return entry.old_ref if readable else None
    return None
