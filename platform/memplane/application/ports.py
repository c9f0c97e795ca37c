"""What the use cases need from the outside, stated as intent."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol, TypeVar
from uuid import UUID

from memplane.application.records import (
    Access,
    Answered,
    Burial,
    Candidates,
    ChangeEntry,
    Edge,
    Entity,
    EntityQuery,
    OperationalEvent,
    Proposal,
    Query,
    SearchMaterial,
    StoredKey,
    TurnPlace,
    Vector,
)
from memplane.domain.capabilities import Capabilities
from memplane.domain.delta import Change
from memplane.domain.entities import Mention
from memplane.domain.history import HistoryEntry
from memplane.domain.memory import Memory, MemoryText, Turn
from memplane.domain.policy import Policy
from memplane.domain.scope import Scope

T = TypeVar("T")


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

    async def entities(self, scope: Scope, wanted: EntityQuery, limit: int) -> list[Entity]:
        """Entities that memories in scope mention, those that most mention first."""
        ...

    async def changed_after(
        self, scope: Scope, ids: Sequence[UUID], moment: datetime
    ) -> Mapping[UUID, Sequence[HistoryEntry]]:
        """What was done to memories in scope after a moment, by memory, oldest first."""
        ...

    async def around(self, scope: Scope, anchor: UUID, before: int, after: int) -> list[Unit]:
        """The units in scope that were recorded before and after one, oldest first, that one among them."""
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

    async def whole(self, scope: Scope, memory_id: UUID) -> Memory | None:
        """A memory that the scope's permissions cover, in whatever state it is."""
        ...

    async def history(
        self, scope: Scope, memory_id: UUID, *, before: UUID | None, limit: int
    ) -> list[HistoryEntry] | None:
        """A memory's history, newest first; ``None`` when the memory is not in scope in any state."""
        ...


class MemoryStore(Protocol):
    """Memories within a transaction."""

    async def add(self, memory: Memory, material: SearchMaterial) -> bool:
        """Insert; False when an active memory of the same value, or the same external id, is there already."""
        ...

    async def find_duplicate(self, memory: Memory) -> Memory | None:
        """The active memory of the same external id, or of the same value, locked; or none."""
        ...

    async def find_past(self, memory: Memory) -> Memory | None:
        """The superseded or archived memory of the same external id; or none."""
        ...

    async def find(self, scope: Scope, memory_id: UUID) -> Memory | None:
        """The memory, when it is in scope; not locked."""
        ...

    async def lock(self, scope: Scope, memory_id: UUID) -> Memory | None:
        """The memory, locked until the transaction ends, when it is in scope."""
        ...

    async def nearest(self, scope: Scope, material: SearchMaterial, limit: int) -> list[tuple[Memory, float]]:
        """The memories in scope that are nearest to a text by meaning, and those by words, with their cosine.

        At most so many of either; most similar first.
        """
        ...

    async def rejected(self, user_id: str, category: str, limit: int) -> list[MemoryText]:
        """What a user's rejected memories of a category say, the newest first."""
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

    async def recent(self, user_id: str, since: datetime, limit: int) -> Mapping[str, datetime]:
        """The user's threads that were active since, at most so many, the latest; with when that was."""
        ...

    async def tell(self, user_id: str, threads: Mapping[str, datetime], revs: int) -> Mapping[str, int]:
        """Allocate so many revisions in each thread, making those that are new: each thread's last one.

        Args:
            user_id: whose threads they are.
            threads: when each was last active.
            revs: how many for each.
        """
        ...


class Tombstones(Protocol):
    """Values that a person rejected or erased, within a transaction."""

    async def held(self, user_id: str, category: str) -> frozenset[str]:
        """Keys of the values that are buried."""
        ...

    async def bury(self, user_id: str, category: str, keys: Collection[str], burial: "Burial") -> None:
        """Bury values; one that is buried already stays as it is."""
        ...


class Graph(Protocol):
    """Relations between memories, and the entities that they mention, within a transaction."""

    async def link(self, edges: Sequence[Edge], now: datetime) -> None:
        """Add relations; one that is there takes the greater strength."""
        ...

    async def linked(self, memory_id: UUID, kind: str) -> list[UUID]:
        """Where relations of a kind lead from a memory."""
        ...

    async def mention(self, memory: Memory, mentions: Sequence[Mention], now: datetime) -> None:
        """Note whom a memory mentions, instead of whom it did before; entities that are new are made."""
        ...

    async def name(self, user_id: str, entity_id: UUID, alias: str, key: str) -> bool:
        """Give an entity another name; False when another entity of the user has it."""
        ...

    async def fold(self, gone: UUID, kept: UUID, name: tuple[str, str]) -> bool:
        """Put an entity into another, its name and key among the other's aliases; False when one is not there."""
        ...


class Answers(Protocol):
    """Answers to requests with an idempotency key, within a transaction."""

    async def answered(self, key_id: str, name: str) -> Answered | None:
        """The answer of the request that took an idempotency key, or none."""
        ...

    async def keep(self, key_id: str, name: str, answered: Answered, now: datetime) -> bool:
        """Store what a request was and what it is answered; False when another request took the key.

        Another transaction with the same key waits here until this one ends.
        """
        ...


class Consents(Protocol):
    """Proposals within a transaction."""

    async def propose(self, proposal: Proposal, value_key: str) -> UUID | None:
        """Store a proposal; the id of the open one for the same field and value, or ``None`` when it is new."""
        ...


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
    tombstones: Tombstones
    graph: Graph
    answers: Answers
    consents: Consents

    def attempt(self) -> AbstractAsyncContextManager[object]:
        """Work within the transaction that is taken back alone when it fails."""
        ...

    async def lock_users(self, user_ids: Iterable[str]) -> None:
        """Let no other transaction write these users' memories until this one ends; to be called first."""
        ...

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

    async def write(self, tenant: str, work: Callable[[UnitOfWork], Awaitable[T]], users: Collection[str] = ()) -> T:
        """Run ``work`` in one transaction and commit; run it again when the database asks for a retry.

        Args:
            tenant: whose rows.
            work: what to do.
            users: those whose memories no other transaction may write until this one ends.

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
