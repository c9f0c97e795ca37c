"""The chain over the history: each entry's link hashes the one before, so that the last tells of all.

What an entry says is hashed with a salt that lies beside it. When its words are erased the salt goes too: the hash
stays in the chain, and nobody can try words against it any more.
"""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from memplane.domain.errors import InvalidRequest

GENESIS = bytes(32)
"""The link before the first."""
SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """An entry of the history, as the chain has it.

    Attributes:
        erased_by: the entry of the purge, or the receipt, with which its words went.
        salt: with which its words were hashed; gone with them.
        payload_hash: of its words; none when they were gone before it was sealed.
        position: its place in the chain, from 1; none until it is sealed.
        link: hash of the link before and of the entry.
    """

    id: UUID
    memory_id: UUID
    event: str
    policy_hash: str
    ts: datetime
    actor: str
    old_ref: str | None
    new_ref: str | None
    meta: Mapping[str, object]
    of_user: str | None
    erased_by: UUID | None = None
    salt: bytes | None = None
    payload_hash: bytes | None = None
    position: int | None = None
    link: bytes | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain: how many entries it has, and the last one's link."""

    position: int = 0
    link: bytes = GENESIS

    def __str__(self) -> str:
        return f"{self.position}:{self.link.hex()}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """A head as it was written down.

        Raises:
            Invalid: it is none.
        """
        position, _, link = text.strip().partition(":")
        try:
            head = cls(int(position), bytes.fromhex(link))
        except ValueError:
            raise InvalidRequest(
                "anchor: is no head of a chain; `memplane audit head` prints one", field="anchor"
            ) from None
        if head.position < 0 or len(head.link) != len(GENESIS):
            raise InvalidRequest("anchor: is no head of a chain; `memplane audit head` prints one", field="anchor")
        return head


class ChainFault(StrEnum):
    """What is wrong with a chain."""

    EDITED = "edited"
    DELETED = "deleted"
    REORDERED = "reordered"
    TRUNCATED = "truncated"
    REWRITTEN = "rewritten"


@dataclass(frozen=True, slots=True)
class FaultPosition:
    """The first thing that is wrong: what, where, and the entry, if there is one."""

    fault: ChainFault
    position: int
    entry: UUID | None


@dataclass(frozen=True, slots=True)
class ChainSeal:
    """An entry's place in the chain."""

    id: UUID
    salt: bytes | None
    payload_hash: bytes | None
    link: bytes


def seal_entries(after: Head, entries: Sequence[ChainEntry]) -> list[ChainSeal]:
    """The next links of a chain."""
    found: list[ChainSeal] = []
    link = after.link
    for entry in entries:
        salt = None if entry.erased_by is not None else secrets.token_bytes(SALT_BYTES)
        payload = None if salt is None else payload_hash(entry, salt)
        link = link_of(link, entry, payload)
        found.append(ChainSeal(entry.id, salt, payload, link))
    return found


def payload_hash(entry: ChainEntry, salt: bytes) -> bytes:
    """The salted hash of what an entry says, and of whom."""
    said = [entry.actor, entry.old_ref, entry.new_ref, _plain(entry.meta), entry.of_user]
    return hashlib.sha256(salt + _canonical(said)).digest()


def link_of(before: bytes, entry: ChainEntry, payload: bytes | None) -> bytes:
    """The link of an entry: the one before, what was done when to what, and the hash of what it says."""
    moment = entry.ts.astimezone(UTC).isoformat(timespec="microseconds")
    told = [entry.id.hex, entry.memory_id.hex, entry.event, entry.policy_hash, moment, payload and payload.hex()]
    return hashlib.sha256(before + _canonical(told)).digest()


def first_fault(before: Head, entries: Sequence[ChainEntry], erasers: Mapping[UUID, str]) -> FaultPosition | None:
    """What is wrong first with entries that follow a part of the chain that is right; ``None`` when nothing is.

    Args:
        before: the end of that part.
        entries: in the order of their positions.
        erasers: the events of the entries with which words went, by what ``erased_by`` names.
    """
    position, link = before.position, before.link
    for place, entry in enumerate(entries):
        position += 1
        if entry.position != position:
            return FaultPosition(ChainFault.DELETED, position, None)
        payload = entry.payload_hash
        if link_of(link, entry, payload) != entry.link:
            moved = any(link_of(link, each, each.payload_hash) in {entry.link, each.link} for each in entries[place:])
            return FaultPosition(ChainFault.REORDERED if moved else ChainFault.EDITED, position, entry.id)
        if not _is_whole(entry, erasers):
            return FaultPosition(ChainFault.EDITED, position, entry.id)
        link = entry.link or GENESIS
    return None


def _is_whole(entry: ChainEntry, erasers: Mapping[UUID, str]) -> bool:
    """Whether an entry says what it said, or lost its words to an erasure that the history tells of."""
    if entry.erased_by is None:
        return entry.salt is not None and payload_hash(entry, entry.salt) == entry.payload_hash
    return entry.erased_by in erasers and entry.old_ref is None and entry.new_ref is None and not entry.meta


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    """JSON as it is whatever database it comes from: a whole number is one, however it was written."""
    match value:
        case float():
            return int(value) if value.is_integer() else value
        case Mapping():
            return {str(name): _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return value
