"""The append-only history of memories."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID


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
    MENTION = "MENTION"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One entry: who did what to which memory, under which policy, and the text before and after."""

    id: UUID
    memory_id: UUID
    event: HistoryEvent
    actor: str
    policy_hash: str
    ts: datetime
    old_ref: str | None = None
    new_ref: str | None = None
    meta: Mapping[str, object] = field(default_factory=dict)
