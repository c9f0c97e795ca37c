"""What was done to API keys: an entry for each deed, with who did it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from memplane.domain.identity.principal import Principal
from memplane.domain.memory.memory import new_id


class KeyEvent(StrEnum):
    """What was done to a key."""

    CREATED = "created"
    ROTATED = "rotated"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Doer:
    """Who does something to a key.

    Attributes:
        actor: how the history names them.
        key: the key that they call with, if they call at all.
    """

    actor: str
    key: str | None = None

    @classmethod
    def of(cls, principal: Principal) -> Self:
        """A caller."""
        return cls(principal.actor, principal.key_id)


OPERATOR = Doer("operator")
"""Who works on the database itself: the command line, and the first start of a server."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One entry of the history of keys, which nothing changes.

    Attributes:
        id: of the entry; later ones are greater.
        key_id: the key.
        event: what was done.
        actor: who did it.
        by_key: with which key, if with one.
        ts: when.
        meta: when the key ends (``ends_at``), which one it ``replaces`` or is ``replaced_by``.
    """

    id: UUID
    key_id: str
    event: KeyEvent
    actor: str
    by_key: str | None
    ts: datetime
    meta: Mapping[str, object] = field(default_factory=dict)


def key_entry(key_id: str, event: KeyEvent, by: Doer, now: datetime, **meta: datetime | str | None) -> KeyEntry:
    """An entry for something that is done now; what is ``None`` is left out."""
    told = {name: each.isoformat() if isinstance(each, datetime) else each for name, each in meta.items() if each}
    return KeyEntry(new_id(), key_id, event, by.actor, by.key, now, told)
