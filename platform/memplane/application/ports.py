"""What the use cases need from the outside, stated as intent."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Protocol, TypeVar
from uuid import UUID

from memplane.application.checkpoints.checkpoint_records import (
    CheckpointQuery,
    Namespace,
    StoredCheckpoint,
    SupervisorState,
    Thread,
)
from memplane.application.jobs.job_records import Lease
from memplane.application.operations.tracking_records import (
    EventPageQuery,
    MemoryGroup,
    OnDemand,
    StoredEvent,
    TurnSpan,
)
from memplane.application.recall.search_material import Candidates, Query, Vector
from memplane.application.records import (
    Access,
    ConflictPair,
    ContextField,
    Draw,
    Entity,
    EntityProfile,
    EntityQuery,
    Proposal,
    ProposalQuery,
    Rate,
    StoredKey,
    TokenGrant,
    TombstonedValues,
    TombstoneQuery,
)
from memplane.application.transaction import CheckpointStore, UnitOfWork
from memplane.application.transfer.portable_records import PortableReader
from memplane.domain.checkpoints.lineage import Retention
from memplane.domain.identity.principal import Reach
from memplane.domain.memory.delta import ChangeLogEntry
from memplane.domain.memory.history import HistoryEntry
from memplane.domain.memory.items import ItemMemory
from memplane.domain.memory.memory import Memory, Turn
from memplane.domain.memory.scope import Scope
from memplane.domain.policy.capabilities import Capabilities
from memplane.domain.policy.policy import Policy

T = TypeVar("T")


class Clock(Protocol):
    """The time."""

    def __call__(self) -> datetime:
        """Now, in UTC."""
        ...


class Perform(Protocol):
    """Does a job that the queue gave to a worker."""

    async def __call__(self, tenant: str, job: UUID, claim: Lease, /) -> timedelta | None:
        """Do it.

        Returns:
            After how long the queue is to give it again; ``None`` when it need not.
        """
        ...


class Worker(Protocol):
    """Takes jobs out of the queue and does them, for every tenant."""

    async def open(self) -> None:
        """Connect.

        Raises:
            StorageUnavailable: the queue cannot be reached.
            UnsafeRole: the worker's role has other rights than it should.
        """
        ...

    def start(self) -> None:
        """Begin."""
        ...

    async def close(self) -> None:
        """Hand the job under way back after its batch, and disconnect."""
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
        fingerprint: what tells it from another model of the same name; ``None`` where the name says it all.
    """

    model: str
    dimensions: int
    fingerprint: str | None

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        """One unit vector for each text; ``None`` for a text in which the model finds nothing."""
        ...

    async def embed_query(self, text: str) -> Vector | None:
        """The unit vector of a question, to compare with those of texts; ``None`` where the model finds nothing."""
        ...


Unit = Memory | Turn
"""Something that can be recalled."""


class CheckpointReader(Protocol):
    """Checkpoints and the states of supervisors, as one look at a tenant sees them."""

    async def find(self, wanted: CheckpointQuery) -> list[StoredCheckpoint]:
        """Checkpoints, newest first, with the values of their channels and what tasks have written since."""
        ...

    async def metadata(self, wanted: CheckpointQuery) -> list[tuple[tuple[Namespace, str], Mapping[str, object]]]:
        """Where checkpoints stand, their ids and their metadata, newest first; without a limit."""
        ...

    async def users(self, thread_id: str, users: frozenset[str] | None) -> list[str]:
        """The users, of some or of all, that have a thread of a name; at most two."""
        ...

    async def crowded_threads(self, retention: Retention) -> list[Thread]:
        """The threads that may have more checkpoints than are kept, in one order."""
        ...

    async def supervisor_state(self, thread: Thread) -> SupervisorState | None:
        """The state of a supervisor in a thread."""
        ...


class TrackingReader(Protocol):
    """Statistics and operational events."""

    async def events(self, scope: Scope, query: EventPageQuery) -> list[StoredEvent]:
        """Events about what a scope covers, newest first; for who operates the tenant, all of it."""
        ...

    async def memories(self, scope: Scope, limit: int) -> tuple[list[MemoryGroup], bool]:
        """Memories that the scope's permissions cover, in any state, in groups; and whether all were counted.

        At most the newest ``limit`` are.
        """
        ...

    async def on_demand(self, scope: Scope, since: datetime) -> OnDemand:
        """How often recall on demand was needed since a moment, of the turns in scope."""
        ...


class TenantReader(Protocol):
    """One consistent, read-only look at a tenant, through the scope predicate."""

    @property
    def checkpoints(self) -> CheckpointReader:
        """Checkpoints, which belong to users and have no categories."""
        ...

    @property
    def portable(self) -> PortableReader:
        """All records of one user, page by page."""
        ...

    @property
    def tracking(self) -> TrackingReader:
        """Statistics and operational events."""
        ...

    async def merged_into(self, user_id: str) -> str | None:
        """The user that another one was merged into; ``None`` for one that was not."""
        ...

    async def time_zones(self, users: Collection[str]) -> Mapping[str, str]:
        """The time zones that some users set."""
        ...

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

    async def memories_by_name(self, scope: Scope, names: Sequence[str]) -> list[Memory]:
        """Memories in scope by the caller's own names for them, unique for each user."""
        ...

    async def items(self, scope: Scope, labels: Sequence[str]) -> list[ItemMemory]:
        """Where the items of a store in scope stand whose namespace begins with some labels, oldest first."""
        ...

    async def pages_and_window(
        self, pages: Sequence[tuple[Scope, int]], scope: Scope, thread_id: str, limit: int
    ) -> tuple[list[list[Memory]], list[Turn]]:
        """The newest memories of some scopes, at most so many of each; and a thread's last turns, the newest first."""
        ...

    async def turns_of(self, scope: Scope, thread_id: str, span: TurnSpan, limit: int) -> list[Turn]:
        """Turns of a thread in scope: the newest first before a place, or the oldest first after one."""
        ...

    async def related_memories(
        self, scope: Scope, ids: Sequence[UUID], limit: int, *, least: float = 0.0
    ) -> list[tuple[UUID, Memory, float]]:
        """Memories in scope linked to one of ``ids`` by a relation of at least ``least`` and above 0, strongest first.

        Returns:
            That id, the memory, and the strength.
        """
        ...

    async def conflicts(
        self, scope: Scope, ids: Sequence[UUID] | None = None, *, before: UUID | None = None, limit: int
    ) -> list[ConflictPair]:
        """Pairs in scope that may contradict each other, newest first, those noted before ``before``.

        Args:
            scope: of both memories.
            ids: only pairs with one of these memories.
            before: the id of the last pair of the page before.
            limit: the most pairs.
        """
        ...

    async def edges_and_units(
        self, scope: Scope, ids: Sequence[UUID], limit: int, wanted: Sequence[UUID]
    ) -> tuple[list[tuple[UUID, UUID, float]], Mapping[UUID, Unit]]:
        """The strongest relations of memories of the scope, (that id, the other id, strength), and some units in scope.

        The other may be out of scope: who asks looks it up among what is in scope.
        """
        ...

    async def profile(self, scope: Scope, entity: UUID, before: UUID | None, limits: tuple[int, int]) -> EntityProfile:
        """A page of the memories in scope that mention an entity, and whom they mention besides; each so many."""
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

    async def revision(self, scope: Scope, user_id: str, thread_id: str) -> tuple[int, int]:
        """The thread's revision, and the last one whose change was pruned; 0 when there is no such thread."""
        ...

    async def changes(self, scope: Scope, user_id: str, thread_id: str, since: int, limit: int) -> list[ChangeLogEntry]:
        """Changes of memories that the scope's permissions cover, in any state, whatever its filters; oldest first."""
        ...

    async def changed_memories(
        self, scope: Scope, user_id: str, thread_id: str, since: int, limit: int
    ) -> tuple[list[ChangeLogEntry], int]:
        """The latest change of each memory after a revision, the most important first; and how many memories."""
        ...

    async def whole(self, scope: Scope, memory_id: UUID) -> Memory | None:
        """A memory that the scope's permissions cover, in whatever state it is."""
        ...

    async def history(
        self, scope: Scope, memory_id: UUID, *, before: UUID | None, limit: int
    ) -> list[HistoryEntry] | None:
        """A memory's history, newest first; ``None`` when the memory is not in scope in any state."""
        ...

    async def proposals(self, wanted: ProposalQuery, *, before: UUID | None, limit: int) -> list[Proposal]:
        """Proposals, newest first, those older than ``before``; those that lapsed are ``expired``."""
        ...

    async def verdicts(self, wanted: TombstoneQuery, *, before: UUID | None, limit: int) -> list[TombstonedValues]:
        """Verdicts by which values are refused, newest first, those older than ``before``."""
        ...

    async def context(self, scope: Scope, limit: int) -> list[ContextField]:
        """The decided fields of the scope's user whose memories are in scope, by name, the newest value first."""
        ...


class Storage(Protocol):
    """A database."""

    @property
    def capabilities(self) -> Capabilities:
        """What this kind of database has."""
        ...

    def reading(self, reach: Reach) -> AbstractAsyncContextManager[TenantReader]:
        """A read-only transaction, in which other rows than those of the reach are as if they were not there."""
        ...

    async def write(self, reach: Reach, work: Callable[[UnitOfWork], Awaitable[T]], users: Collection[str] = ()) -> T:
        """Run ``work`` in one transaction and commit; run it again when the database asks for a retry.

        Args:
            reach: whose rows; others are as if they were not there.
            work: what to do.
            users: those whose memories no other transaction may write until this one ends.

        Raises:
            StorageUnavailable: no connection in time, or the retries ran out.
        """
        ...

    async def write_checkpoints(self, reach: Reach, work: Callable[[CheckpointStore], Awaitable[T]]) -> T:
        """The same for work on checkpoints alone, in fewer exchanges.

        Raises:
            StorageUnavailable: no connection in time, or the retries ran out.
        """
        ...

    async def find_key(self, key_id: str) -> StoredKey | None:
        """An API key by its public id, before a tenant is known."""
        ...

    async def has_tenant(self, tenant: str) -> bool:
        """Whether there is such a tenant, and it may be used here."""
        ...

    async def tenants(self) -> list[str]:
        """The names of every tenant, for the work of the night."""
        ...

    async def scrub(self, tenant: str) -> None:
        """Let go of what this process and the database's own files still hold of rows that a tenant has erased."""
        ...

    async def ready(self) -> None:
        """Return when the database answers.

        Raises:
            StorageUnavailable: it does not.
        """
        ...


class Buckets(Protocol):
    """Buckets of tokens, one for each key."""

    async def draw(self, draw: Draw, rate: Rate) -> TokenGrant:
        """Refill a bucket for the time that went by, and take from it what is wanted, or what is needed, or nothing.

        Raises:
            StorageUnavailable: it cannot be reached.
        """
        ...


class Accesses(Protocol):
    """Counts reads, off the hot path."""

    def note(self, access: Access) -> None:
        """Remember an access; written soon, in a batch."""
        ...

    async def flush(self) -> None:
        """Write what this process has noted so far."""
        ...
