"""What the use cases need from the outside, stated as intent."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memplane.domain.capabilities import Capabilities
from memplane.domain.delta import Change, ChangeEvent
from memplane.domain.history import HistoryEntry
from memplane.domain.memory import Memory, Turn
from memplane.domain.policy import Policy
from memplane.domain.ranking import Signals
from memplane.domain.scope import Scope
from memplane.domain.text import Terms

T = TypeVar("T")
Vector = NDArray[np.float32]


class Clock(Protocol):
    """The time."""

    def __call__(self) -> datetime:
        """Now, in UTC."""
        ...


class Policies(Protocol):
    """The policy in force."""

    @property
    def current(self) -> Policy:
        """The policy that a request should use from beginning to end."""
        ...


class Embedder(Protocol):
    """Texts to unit vectors, off the event loop.

    Attributes:
        model: name of the model, as ``ranking.yaml`` and the metadata table call it.
        dimensions: length of a vector.
    """

    model: str
    dimensions: int

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """One unit vector for each text; ``None`` for a text in which the model finds nothing."""
        ...


@dataclass(frozen=True, slots=True)
class SearchMaterial:
    """What makes a text findable: its terms and its embedding."""

    terms: Terms
    embedding: Vector | None


@dataclass(frozen=True, slots=True)
class Query:
    """A question, ready for the search statements.

    Attributes:
        terms: its terms.
        words: its words in lower case, for names.
        embedding: its vector, or ``None``.
    """

    terms: Terms
    words: tuple[str, ...]
    embedding: Vector | None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Every unit in scope, with its raw signals; ``ids[i]`` belongs to row ``i`` of the signals."""

    ids: Sequence[UUID]
    signals: Signals


Unit = Memory | Turn
"""Something that can be recalled."""


class Reader(Protocol):
    """One consistent, read-only look at a tenant, through the scope predicate."""

    async def candidates(self, scope: Scope, query: Query) -> Candidates:
        """All memories and turns in scope, with their signals for the query."""
        ...

    async def newest(self, scope: Scope, limit: int) -> list[UUID]:
        """Ids of the newest memories and turns in scope, newest first."""
        ...

    async def units(self, scope: Scope, ids: Sequence[UUID]) -> Mapping[UUID, Unit]:
        """The memories and turns with these ids that are in scope."""
        ...

    async def memories(self, scope: Scope, *, before: UUID | None, limit: int) -> list[Memory]:
        """Memories in scope, newest first, those older than ``before``."""
        ...

    async def related(self, scope: Scope, ids: Sequence[UUID], limit: int) -> list[tuple[UUID, Memory, float]]:
        """Memories in scope that a relation links to one of ``ids``: (that id, memory, strength)."""
        ...

    async def thread_users(self, scope: Scope, thread_id: str) -> list[str]:
        """The users in the scope's tenant and user list that have a thread of this name."""
        ...

    async def revision(self, scope: Scope, user_id: str, thread_id: str) -> int:
        """The thread's revision; 0 when there is no such thread."""
        ...

    async def changes(self, scope: Scope, user_id: str, thread_id: str, since: int, limit: int) -> list[Change]:
        """Changes of memories that the scope's permissions cover, in any state, whatever its filters; oldest first."""
        ...

    async def history(
        self, scope: Scope, memory_id: UUID, *, before: UUID | None, limit: int
    ) -> list[HistoryEntry] | None:
        """A memory's history, newest first; ``None`` when the memory is not in scope in any state."""
        ...


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """Where a new turn stands: its number in the thread and the thread's revision."""

    seq: int
    rev: int


class MemoryStore(Protocol):
    """Memories within a transaction."""

    async def add(self, memory: Memory, material: SearchMaterial) -> bool:
        """Insert; False when an active memory of the same value, or the same external id, is there already."""
        ...

    async def find_duplicate(self, memory: Memory) -> Memory | None:
        """The active memory of the same external id, or of the same value, locked; or none."""
        ...

    async def lock(self, scope: Scope, memory_id: UUID) -> Memory | None:
        """The memory, locked until the transaction ends, when it is in scope."""
        ...

    async def replace(self, memory: Memory, material: SearchMaterial | None) -> bool:
        """Store every field of a locked memory; new search material if its text changed.

        Returns:
            False when another active memory holds the same value already.
        """
        ...


class ThreadStore(Protocol):
    """Threads, turns and change log within a transaction."""

    async def advance(self, user_id: str, thread_id: str, now: datetime, *, revs: int, turns: int = 0) -> TurnPlace:
        """Lock the thread, making it if new, and allocate revisions and turn numbers.

        Returns:
            The thread's last revision and turn number after the allocation.
        """
        ...

    async def existing_turns(self, user_id: str, thread_id: str, external_ids: Sequence[str]) -> Mapping[str, Turn]:
        """Turns of a thread by the caller's own names for them."""
        ...

    async def add_turns(self, turns: Sequence[tuple[Turn, SearchMaterial]]) -> None:
        """Insert turns."""
        ...

    async def log(self, entries: Sequence["ChangeEntry"]) -> None:
        """Append to the change log."""
        ...

    async def revision(self, user_id: str, thread_id: str) -> int:
        """The thread's revision, without a lock; 0 when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class ChangeEntry:
    """One line of the change log: exactly one for each revision of a thread."""

    user_id: str
    thread_id: str
    rev: int
    memory_id: UUID
    event: ChangeEvent
    category: str
    ts: datetime


@dataclass(frozen=True, slots=True)
class OperationalEvent:
    """One entry of the operational tracking."""

    node: str
    op: str
    status: str
    ts: datetime
    user_id: str | None = None
    thread_id: str | None = None
    memory_id: UUID | None = None
    category: str | None = None
    sim: float | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """Units that one read returned, and when."""

    tenant: str
    ids: tuple[UUID, ...]
    event: OperationalEvent


class Journal(Protocol):
    """History and events within a transaction."""

    async def record(self, entries: Sequence[HistoryEntry]) -> None:
        """Append to the history."""
        ...

    async def events(self, entries: Sequence[OperationalEvent]) -> None:
        """Append to the operational events."""
        ...

    async def count_accesses(self, counts: Mapping[UUID, int], now: datetime) -> None:
        """Add to the access counts of memories."""
        ...


@dataclass(frozen=True, slots=True)
class StoredKey:
    """An API key as stored: everything but the secret, of which the SHA-256 is kept."""

    tenant: str
    key_id: str
    secret_hash: bytes
    agent: str | None
    act_for: tuple[str, ...]
    users: tuple[str, ...] | None
    trust: str
    scopes: tuple[str, ...]
    label: str | None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


class KeyStore(Protocol):
    """API keys within a transaction."""

    async def add(self, key: StoredKey) -> None:
        """Insert."""
        ...

    async def all(self) -> list[StoredKey]:
        """Every key of the tenant, oldest first."""
        ...

    async def revoke(self, key_id: str, now: datetime) -> bool:
        """Mark as revoked; False when there is no such key or it is revoked already."""
        ...


class UnitOfWork(Protocol):
    """One write transaction of one tenant. Leaving the context without an exception commits."""

    memories: MemoryStore
    threads: ThreadStore
    journal: Journal
    keys: KeyStore

    async def ensure_tenant(self, now: datetime) -> None:
        """Make the tenant if it is new."""
        ...

    async def setting(self, name: str) -> object | None:
        """A value of the metadata table."""
        ...

    async def keep_setting(self, name: str, value: object, now: datetime) -> None:
        """Store a value in the metadata table."""
        ...


class Storage(Protocol):
    """A database."""

    @property
    def capabilities(self) -> Capabilities:
        """What this kind of database has."""
        ...

    def reading(self, tenant: str) -> AbstractAsyncContextManager[Reader]:
        """A read-only transaction."""
        ...

    async def write(self, tenant: str, work: Callable[[UnitOfWork], Awaitable[T]]) -> T:
        """Run ``work`` in one transaction and commit; run it again when the database asks for a retry.

        Raises:
            StorageUnavailable: no connection in time, or the retries ran out.
        """
        ...

    async def find_key(self, key_id: str) -> StoredKey | None:
        """An API key by its public id, before a tenant is known."""
        ...

    async def ready(self) -> None:
        """Return when the database answers.

        Raises:
            StorageUnavailable: it does not.
        """
        ...


class Accesses(Protocol):
    """Counts reads, off the hot path."""

    def note(self, access: Access) -> None:
        """Remember an access; written soon, in a batch."""
        ...
