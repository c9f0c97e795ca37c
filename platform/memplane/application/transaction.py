"""What the use cases need of a write transaction, stated as intent."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol
from uuid import UUID

from memplane.application.checkpoints.checkpoint_records import (
    ArrivalContext,
    Namespace,
    NewCheckpoint,
    SupervisorState,
    TaskWrite,
    Thread,
)
from memplane.application.erasure.erasure_ports import Erasures
from memplane.application.jobs.job_ports import Budgets, Enrichments, JobRuns, Upkeep, UserActivity, VectorStore
from memplane.application.jobs.pair_records import Pairs
from memplane.application.jobs.reconciliation.reconcile_records import Repairs
from memplane.application.jobs.user_job_records import JobUsers
from memplane.application.keys.key_history import KeyEntry
from memplane.application.limits.idempotency_ports import Answers
from memplane.application.limits.usage import SettingsStore, UsageStore
from memplane.application.operations.audit_chain_ports import Chain
from memplane.application.recall.co_recall_records import CoRecalls
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import (
    ChangeEntry,
    ChangeNotice,
    ConflictState,
    ContextField,
    Edge,
    KnownName,
    LookupResult,
    OperationalEvent,
    Proposal,
    Signal,
    StoredKey,
    SuspectedConflicts,
    TombstonedValues,
    TombstoneOrigin,
    TurnPlace,
    WriteLookup,
)
from memplane.application.reverts.revert_ports import Reverts
from memplane.application.transfer.portable_records import PortableStore
from memplane.application.turns.session_records import Closings
from memplane.application.turns.turn_deletion_ports import Removals
from memplane.application.users.user_merge_ports import UserMerges
from memplane.domain.checkpoints.lineage import Key, Node, Placement
from memplane.domain.language.entities import Mention
from memplane.domain.memory.conflict_verdicts import ConflictVerdict
from memplane.domain.memory.history import HistoryEntry
from memplane.domain.memory.memory import Memory, MemoryText, Turn
from memplane.domain.memory.scope import Scope
from memplane.domain.memory.undo_records import UndoRecord
from memplane.domain.ranking.embedding_models import InForce


class TransactionInterrupted(Exception):
    """The database ended the transaction, or does not answer: only the storage can begin the work again.

    Attributes:
        orig: the driver's own error, if there was one.
    """

    def __init__(self, orig: BaseException | None = None) -> None:
        super().__init__("the transaction was interrupted")
        self.orig = orig


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

    async def nearest(
        self, scope: Scope, material: SearchMaterial, limit: int, unseen: Mapping[UUID, float] | None = None
    ) -> list[tuple[Memory, float]]:
        """The memories in scope that are nearest to a text by meaning, and those by words, with their cosine.

        At most so many of either, and those of this transaction that a search may not see yet; most similar first.
        """
        ...

    async def share_material(self, memory_id: UUID, other: UUID) -> None:
        """Give a memory the search material of another one of the same words."""
        ...

    async def last_recorded(self, user_id: str) -> datetime | None:
        """When the latest memory of a user was recorded."""
        ...

    async def rejected_texts(self, user_id: str, category: str, limit: int) -> list[MemoryText]:
        """What a user's rejected memories of a category say, the newest first."""
        ...

    async def replace(self, memory: Memory, material: SearchMaterial | None) -> bool:
        """Store every field of a locked memory and new search material; False when another active one has its value."""
        ...


class ThreadStore(Protocol):
    """Threads, turns and change log within a transaction."""

    async def advance(self, user_id: str, thread_id: str, now: datetime, *, revs: int, turns: int = 0) -> TurnPlace:
        """Lock the thread, making it if new, and allocate revisions and turn numbers: the last ones after that."""
        ...

    async def existing_turns(self, user_id: str, thread_id: str, external_ids: Sequence[str]) -> Mapping[str, Turn]:
        """Turns of a thread by the caller's own names for them."""
        ...

    async def release_names(self, turn_ids: Sequence[UUID]) -> None:
        """Take the caller's own names from some turns, which stay as they are otherwise."""
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

    async def publish(self, user_id: str, threads: Mapping[str, datetime], told: ChangeNotice) -> Mapping[str, int]:
        """Log changes in the named threads, made if new, and in those of the user that were active lately.

        Args:
            user_id: whose threads they are.
            threads: those that are told whether they were active or not, with when they were last.
            told: what changed, and what counts as lately.

        Returns:
            The last revision of each.
        """
        ...


class Tombstones(Protocol):
    """Values that a person rejected or erased, within a transaction."""

    async def load(self, user_id: str, category: str) -> frozenset[str]:
        """Keys of the values that are buried."""
        ...

    async def add(self, user_id: str, category: str, keys: Collection[str], burial: "TombstoneOrigin") -> None:
        """Bury values; one that is buried already stays as it is."""
        ...

    async def lift(self, user_id: str, category: str, keys: Collection[str], moment: datetime) -> None:
        """Take back what was buried at a moment, and at no other."""
        ...

    async def verdict(self, verdict_id: UUID) -> TombstonedValues | None:
        """A verdict, or a single value that belongs to none; none where it was lifted."""
        ...

    async def rejected_at(self, user_id: str, moment: datetime) -> list[Memory]:
        """A user's memories that were rejected at a moment, locked."""
        ...

    async def lift_verdict(self, verdict_id: UUID) -> list[Mapping[str, str]]:
        """Take a verdict back as a whole; what was buried, as it can be buried again."""
        ...

    async def restore(self, rows: Sequence[Mapping[str, str]]) -> None:
        """Bury what a verdict that was lifted had buried; what was buried since stays as it is."""
        ...


class Graph(Protocol):
    """Relations between memories, and the entities that they mention, within a transaction."""

    async def link(self, edges: Sequence[Edge], now: datetime) -> None:
        """Add relations; one that is there takes the greater strength."""
        ...

    async def linked_ids(self, memory_id: UUID, kind: str) -> list[UUID]:
        """Where relations of a kind lead from a memory."""
        ...

    async def conflicts(self, ids: Sequence[UUID]) -> Mapping[UUID, SuspectedConflicts]:
        """By memory, the active memories that it may contradict, and those of which it was decided that both hold."""
        ...

    async def conflict(self, conflict_id: UUID) -> ConflictState | None:
        """A conflict, open or decided; ``None`` when there is none of that id."""
        ...

    async def settle_conflict(
        self, conflict_id: UUID, verdict: ConflictVerdict, now: datetime, strength: float = 0.0
    ) -> None:
        """Note what was decided about a conflict; the relation is at least as strong as ``strength`` from now on."""
        ...

    async def reconcile(self, edge: Edge, now: datetime) -> None:
        """Note that both memories at the ends hold, whether or not they were listed as a possible conflict."""
        ...

    async def ended_by_verdict(self, memory_id: UUID) -> Mapping[UUID, UUID]:
        """The decided conflicts of a memory of which one side was to hold, by the memory on the other side."""
        ...

    async def drop_conflicts(self, memory_id: UUID, still: Collection[UUID]) -> None:
        """Remove a memory's open conflicts but for those with some others, and the verdicts that both hold."""
        ...

    async def entities(
        self, user_id: str, mentions: Sequence[Mention], now: datetime, known: Sequence[KnownName] | None = None
    ) -> list[UUID]:
        """Ids of a user's entities that are mentioned, made where they are new.

        ``known`` is what is called by these names, when that was looked up before.
        """
        ...

    async def entity_ids(
        self, user_id: str, mentions: Sequence[Mention], now: datetime, known: Sequence[KnownName] | None = None
    ) -> Mapping[tuple[str, str], UUID]:
        """By kind and key of each mention, the id of its entity; see :meth:`entities`."""
        ...

    async def mention(self, memory: Memory, entities: Sequence[UUID]) -> None:
        """Note which entities a memory mentions, instead of those that it did before."""
        ...

    async def name(self, user_id: str, entity_id: UUID, alias: str, key: str) -> bool:
        """Give an entity another name; False when another entity of the user has it."""
        ...

    async def fold(self, gone: UUID, kept: UUID, name: tuple[str, str]) -> bool:
        """Put an entity into another, its name and key among the other's aliases; False when one is not there."""
        ...


class ConsentStore(Protocol):
    """Proposals, decided fields and what corroborates them, within a transaction."""

    async def propose(self, proposal: Proposal, value_key: str) -> UUID | None:
        """Store a proposal, or note that the open one of the same writer, field and value was asked again.

        One whose words state other fields besides is another one: it may be outdated, and this one may not.

        Returns:
            The id of the open one, or ``None`` when it is new.
        """
        ...

    async def lock(self, proposal_id: UUID) -> Proposal | None:
        """A proposal, locked until the transaction ends; or none."""
        ...

    async def acknowledges_other(self, proposal: Proposal, turn_id: UUID) -> bool:
        """Whether a turn of the proposal's user was taken for the agreement to another one."""
        ...

    async def asked_later(self, proposal: Proposal, moment: datetime) -> bool:
        """Whether of what waited at a moment for the user's consent another field or value was asked after this one."""
        ...

    async def decide(self, decided: Proposal) -> None:
        """Store what became of a locked proposal."""
        ...

    async def fields(self, user_id: str, field: str) -> list[ContextField]:
        """The values of a field that were decided on, the newest first, whatever became of their memories."""
        ...

    async def keep(self, decided: ContextField, *, alone: bool) -> None:
        """Store a field's value, instead of every other one when it stands alone."""
        ...

    async def signal(self, signal: Signal) -> None:
        """Note that a turn says a value; the same turn counts once."""
        ...

    async def signals(self, user_id: str, field: str, value_hash: str, since: datetime | None) -> list[UUID]:
        """The turns that said a value after a moment."""
        ...


class CheckpointStore(Protocol):
    """Checkpoints and the states of supervisors within a transaction."""

    async def erasure_times(self, user_id: str) -> list[datetime | None]:
        """When the user was erased, ``None`` for an erasure under way; none begins until the transaction ends."""
        ...

    async def merged_into(self, user_id: str) -> str | None:
        """The user that another one was merged into, once no merge can begin; ``None`` for one that was not."""
        ...

    async def open(self, thread: Thread, now: datetime) -> SupervisorState:
        """The state of a supervisor in a thread, made if new; the thread is locked until the transaction ends."""
        ...

    async def lock(self, thread: Thread) -> SupervisorState | None:
        """The state of a supervisor in a thread, if it is there, locked until the transaction ends."""
        ...

    async def arrive(self, place: Namespace, checkpoint_id: str, now: datetime) -> ArrivalContext:
        """What a new checkpoint finds; the supervisor's state is locked, and no erasure of the user begins."""
        ...

    async def add(self, place: Namespace, new: NewCheckpoint, placement: Placement, after: SupervisorState) -> None:
        """Store a checkpoint with its values, and the supervisor's state after it."""
        ...

    async def add_writes(self, place: Namespace, checkpoint_id: str, writes: Sequence[TaskWrite]) -> None:
        """Store what a task wrote: once, but for what is replaced."""
        ...

    async def keep(self, state: SupervisorState) -> None:
        """Store the state of a supervisor in a thread that is locked."""
        ...

    async def nodes(self, thread: Thread) -> list[Node]:
        """Every checkpoint of a thread, as far as its lineage concerns it."""
        ...

    async def threads_of(self, run_ids: Sequence[str], users: frozenset[str] | None) -> list[Thread]:
        """The threads, of some users or of all, that runs have stored checkpoints in; in one order."""
        ...

    async def remove(
        self, thread: Thread, gone: Sequence[Key], parents: Mapping[Key, str | None], heads: Sequence[Key]
    ) -> None:
        """Delete checkpoints, their writes, and the values that no other one holds; mend those that stay."""
        ...

    async def copy(self, source: Thread, target: Thread, now: datetime) -> bool:
        """Copy all of a thread to another one; False when there is nothing to copy."""
        ...

    async def delete(self, thread: Thread) -> bool:
        """Delete all of a thread; False when there was nothing."""
        ...

    async def erase(self, user_id: str) -> Mapping[str, int]:
        """Delete all of a user's threads, once nobody writes them; how many rows, by table."""
        ...


class Journal(Protocol):
    """History and events within a transaction."""

    async def record(self, entries: Sequence[HistoryEntry]) -> None:
        """Append to the history."""
        ...

    async def keep_undo(self, records: Sequence[UndoRecord]) -> None:
        """Keep what changes changed, so that they can be taken back."""
        ...

    async def events(self, entries: Sequence[OperationalEvent]) -> None:
        """Append to the operational events."""
        ...

    async def notes(self, memory_id: UUID) -> list[Mapping[str, object]]:
        """What the entries of a memory's history note besides its words, oldest first."""
        ...

    async def forget(self, purges: Sequence[UUID]) -> None:
        """Take the words of memories that are gone out of the history, by the entries that tell of their purge."""
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

    async def lock(self, key_id: str) -> StoredKey | None:
        """A key, locked until the transaction ends; or none."""
        ...

    async def revoke(self, key_id: str, now: datetime) -> bool:
        """Mark as revoked; False when there is no such key or it is revoked already."""
        ...

    async def note(self, entries: Sequence[KeyEntry]) -> None:
        """Add to the history of keys."""
        ...

    async def history(self, key_ids: Sequence[str] | None, before: UUID | None, limit: int) -> list[KeyEntry]:
        """Entries of some keys, or of all of the tenant, newest first, those older than ``before``."""
        ...

    async def end(self, key_id: str, moment: datetime) -> None:
        """Set when a key expires."""
        ...

    async def note_uses(self, moments: Mapping[str, datetime]) -> None:
        """Note when keys were last used, by their ids; never earlier than what is noted."""
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
    consents: ConsentStore
    upkeep: Upkeep
    jobs: JobRuns
    budgets: Budgets
    checkpoints: CheckpointStore
    portable: PortableStore
    erasures: Erasures
    removals: Removals
    chain: Chain
    closings: Closings
    vectors: VectorStore
    in_force: InForce
    pairs: Pairs
    job_users: JobUsers
    enrichments: Enrichments
    repairs: Repairs
    co_recalls: CoRecalls
    activity: UserActivity
    reverts: Reverts
    settings: SettingsStore
    usage: UsageStore
    merges: UserMerges

    def attempt(self) -> AbstractAsyncContextManager[object]:
        """Work within the transaction that is taken back alone when it fails.

        Raises:
            Interrupted: the transaction cannot go on; do not catch it.
        """
        ...

    async def look(self, look: WriteLookup) -> LookupResult:
        """What stands around a new memory."""
        ...

    async def reach_every_user(self) -> None:
        """Let the transaction touch rows of every user of the tenant from here on, whomever its caller is bound to."""
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
