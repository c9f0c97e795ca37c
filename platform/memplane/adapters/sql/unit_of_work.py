"""One write transaction of one tenant."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.scope import Syntax
from memplane.adapters.sql.session import SqlSession
from memplane.adapters.sql.stores.activity import SqlActivity
from memplane.adapters.sql.stores.audit_chain import SqlChain
from memplane.adapters.sql.stores.checkpoints import SqlCheckpoints
from memplane.adapters.sql.stores.consent_stores import SqlConsents
from memplane.adapters.sql.stores.erasures import SqlErasures
from memplane.adapters.sql.stores.gateway_stores import SqlAnswers, SqlGraph, SqlTombstones
from memplane.adapters.sql.stores.jobs.budgets import SqlBudgets
from memplane.adapters.sql.stores.jobs.co_recalls import SqlCoRecalls
from memplane.adapters.sql.stores.jobs.enrichments import SqlEnrichments
from memplane.adapters.sql.stores.jobs.graph_repairs import SqlRepairs
from memplane.adapters.sql.stores.jobs.job_runs import Send, SqlJobRuns
from memplane.adapters.sql.stores.jobs.job_users import SqlJobUsers
from memplane.adapters.sql.stores.jobs.pairs import SqlPairs
from memplane.adapters.sql.stores.jobs.text_repairs import Freshen
from memplane.adapters.sql.stores.jobs.upkeep import SqlUpkeep
from memplane.adapters.sql.stores.memory_stores import (
    FindCandidates,
    ReadMemories,
    SqlJournal,
    SqlKeys,
    SqlMemories,
    SqlThreads,
)
from memplane.adapters.sql.stores.portable_store import SqlPortableStore
from memplane.adapters.sql.stores.reverts import SqlReverts
from memplane.adapters.sql.stores.session_closings import SqlClosings
from memplane.adapters.sql.stores.turn_deletions import SqlRemovals
from memplane.adapters.sql.stores.user_merges import Reread, SqlUserMerges
from memplane.adapters.sql.stores.user_settings import SqlUsage, SqlUserSettings, TenantUsage, tenant_usage
from memplane.adapters.sql.stores.vectors import Alone, SqlVectors
from memplane.application.erasure.erasure_ports import Erasures
from memplane.application.jobs.job_ports import Budgets, Enrichments, JobRuns, Upkeep, UserActivity, VectorStore
from memplane.application.jobs.pair_records import Pairs
from memplane.application.jobs.reconciliation.reconcile_records import Repairs
from memplane.application.jobs.user_job_records import JobUsers
from memplane.application.limits.idempotency_ports import Answers
from memplane.application.limits.usage import SettingsStore, UsageStore
from memplane.application.operations.audit_chain_ports import Chain
from memplane.application.recall.co_recall_records import CoRecalls
from memplane.application.records import LookupResult, WriteLookup
from memplane.application.reverts.revert_ports import Reverts
from memplane.application.transaction import (
    CheckpointStore,
    ConsentStore,
    Graph,
    Journal,
    KeyStore,
    MemoryStore,
    ThreadStore,
    Tombstones,
)
from memplane.application.transfer.portable_records import PortableStore
from memplane.application.turns.session_records import Closings
from memplane.application.turns.turn_deletion_ports import Removals
from memplane.application.users.user_merge_ports import UserMerges
from memplane.domain.ranking.embedding_models import InForce


@dataclass(frozen=True, slots=True)
class DialectOps:
    """What each database does in its own way within a write.

    Attributes:
        candidates: finds the signals of everything in scope.
        lock: lets no other transaction take the same names until this one ends.
        freshen: has what is remembered of units read anew, whatever their version.
        reread: has what is remembered of users' units read anew.
        read: reads memories by their ids, where there is a faster way than that of every database.
        row_locks: whether a row can be locked; else a transaction that writes is the only one.
        send: tells the queue of a job that waits, where the queue is not the table of jobs itself.
        alone: waits until no other transaction writes vectors of the tenant, and lets none begin; where several can.
        widen: lifts the database's own bounds between users of the tenant until the transaction ends, where it has any.
        tenant_usage: sums up how much is stored of all users, whomever the transaction is bound to.
    """

    candidates: FindCandidates
    lock: Callable[[SqlSession, Sequence[str]], Awaitable[None]]
    freshen: Freshen
    reread: Reread
    read: ReadMemories | None = None
    row_locks: bool = True
    send: Send | None = None
    alone: Alone | None = None
    widen: Callable[[SqlSession], Awaitable[None]] | None = None
    tenant_usage: TenantUsage = tenant_usage


def lock_names(tenant: str, users: Iterable[str]) -> list[str]:
    """By what users are locked, in one order for every writer."""
    return [f"{tenant}/{user}" for user in sorted(set(users))]


class SqlUnitOfWork:
    """The stores of one open transaction; whoever opened the transaction commits it."""

    def __init__(self, session: SqlSession, syntax: Syntax, ways: DialectOps) -> None:
        self._session = session
        self._tenant = session.tenant
        self._ways = ways
        self.found = SqlMemories(session, syntax, ways.candidates, ways.read, row_locks=ways.row_locks)
        self.memories: MemoryStore = self.found
        self.threads: ThreadStore = SqlThreads(session)
        self.journal: Journal = SqlJournal(session)
        self.keys: KeyStore = SqlKeys(session)
        self.tombstones: Tombstones = SqlTombstones(session)
        self.graph: Graph = (graph := SqlGraph(session))
        self.enrichments: Enrichments = SqlEnrichments(session, graph)
        self.answers: Answers = SqlAnswers(session)
        self.consents: ConsentStore = SqlConsents(session)
        self.upkeep: Upkeep = SqlUpkeep(session, syntax)
        self.jobs: JobRuns = SqlJobRuns(session, ways.send)
        self.budgets: Budgets = SqlBudgets(session)
        self.checkpoints: CheckpointStore = SqlCheckpoints(session)
        self.portable: PortableStore = SqlPortableStore(session)
        self.erasures: Erasures = SqlErasures(session)
        self.removals: Removals = SqlRemovals(session)
        self.chain: Chain = SqlChain(session)
        self.closings: Closings = SqlClosings(session)
        self.vectors: VectorStore = SqlVectors(session, ways.alone)
        self.in_force: InForce = session.in_force
        self.pairs: Pairs = SqlPairs(session)
        self.job_users: JobUsers = SqlJobUsers(session)
        self.co_recalls: CoRecalls = SqlCoRecalls(session)
        self.activity: UserActivity = SqlActivity(session)
        self.reverts: Reverts = SqlReverts(session)
        self.settings: SettingsStore = SqlUserSettings(session)
        self.usage: UsageStore = SqlUsage(session, ways.tenant_usage)
        self.merges: UserMerges = SqlUserMerges(session, ways.reread)
        self.repairs: Repairs = SqlRepairs(session, ways.freshen)

    def attempt(self) -> AbstractAsyncContextManager[object]:
        """Work within the transaction that is taken back alone when it fails."""
        return self._session.attempt()

    async def look(self, look: WriteLookup) -> LookupResult:
        """What stands around a new memory."""
        memory = look.memory
        buried = await self.tombstones.load(memory.user_id, memory.category)
        there = await self.memories.find_duplicate(memory)
        past = await self.memories.find_past(memory) if there is None else None
        last = await self.memories.last_recorded(memory.user_id)
        if there is not None or past is not None:
            return LookupResult(buried, there, past, (), None, last)
        near = await self.memories.nearest(look.scope, look.material, look.limit)
        return LookupResult(buried, None, None, tuple(near), None, last)

    async def reach_every_user(self) -> None:
        """Let the transaction touch rows of every user of the tenant from here on, whomever its caller is bound to."""
        if self._ways.widen is not None:
            await self._ways.widen(self._session)

    async def lock_users(self, user_ids: Iterable[str]) -> None:
        """Let no other transaction write these users' memories until this one ends; in the order of their names."""
        await self._ways.lock(self._session, lock_names(self._tenant, user_ids))

    async def ensure_tenant(self, now: datetime) -> None:
        """Make the tenant if it is new."""
        statement = self._session.insert(tables.tenants).values(tenant_id=self._tenant, created_at=now)
        await self._session.execute(statement.on_conflict_do_nothing())

    async def setting(self, name: str) -> object | None:
        """A value of the metadata table."""
        s = tables.settings.c
        statement = sa.select(s.value).where(s.tenant_id == self._tenant, s.name == name)
        value: object | None = (await self._session.execute(statement)).scalar_one_or_none()
        return value

    async def keep_setting(self, name: str, value: object, now: datetime) -> None:
        """Store a value in the metadata table."""
        s = tables.settings.c
        statement = self._session.insert(tables.settings).values(
            tenant_id=self._tenant, name=name, value=value, updated_at=now
        )
        await self._session.execute(
            statement.on_conflict_do_update(
                index_elements=[s.tenant_id, s.name], set_={"value": value, "updated_at": now}
            )
        )
