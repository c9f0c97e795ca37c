"""What is left of somebody who was erased: keyed hashes, by which a value is known again and nobody can guess it."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from memplane.domain.memory.tombstones import value_key

ERASED = "erased"
"""The reason of a tombstone that an erasure left: the person's own new words count again."""
REJECTED = "rejected, then erased"
"""The reason of one that a person had set before: only that person's verdict, taken back, ends it."""
TURNS = "turn"
"""Where the texts of turns are buried, beside those of categories."""
KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was erased of one user.

    Attributes:
        id: of the receipt.
        subject: the keyed hash of the user's name.
        user_id: the name, for as long as it is not finished.
        counts: how many rows, by what they were.
    """

    id: UUID
    subject: str
    actor: str
    policy_hash: str
    started_at: datetime
    counts: Mapping[str, int] = field(default_factory=dict)
    user_id: str | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class TombstoneKeyring:
    """Where the values of a user lie who was erased: the tenant's key, and the user's name under it."""

    key: bytes = field(repr=False)
    subject: str

    @classmethod
    def of(cls, key: bytes, user_id: str) -> "TombstoneKeyring":
        """The grave of a user under a key."""
        return cls(key, _keyed(key, "user", user_id))

    def hashes(self, values: Iterable[str]) -> frozenset[str]:
        """By what values are buried, given by their keys, as :func:`value_key` makes them."""
        return frozenset(_keyed(self.key, self.subject, value) for value in values)


def new_key() -> bytes:
    """A key for a tenant's hashes."""
    return secrets.token_bytes(KEY_BYTES)


def turn_key(thread_id: str, text: str) -> str:
    """By what a turn is known again: the same words in another thread are said anew."""
    return hashlib.sha256(f"{len(thread_id)}:{thread_id}{value_key(text)}".encode()).hexdigest()


def checkpoint_lock(user_id: str) -> str:
    """What whoever writes checkpoints of a user shares, and an erasure has alone; no user is called so."""
    return f"{user_id}\x01"


def made_at(identity: str | None) -> datetime | None:
    """When an id was made that tells it, as LangGraph's do: a UUID of version 1, 6 or 7."""
    try:
        value = UUID(identity or "")
    except ValueError:
        return None
    match value.version:
        case 7:
            return datetime.fromtimestamp((value.int >> 80) / 1000, UTC)
        case 6:
            ticks = (value.int >> 80) << 12 | (value.int >> 64) & 0xFFF
        case 1:
            ticks = value.time
        case _:
            return None
    return datetime(1582, 10, 15, tzinfo=UTC) + timedelta(microseconds=ticks // 10)


def _keyed(key: bytes, *parts: str) -> str:
    said = "\0".join(parts)
    return hmac.new(key, said.encode(), hashlib.sha256).hexdigest()
