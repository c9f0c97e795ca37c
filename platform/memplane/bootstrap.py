"""The only place that wires adapters to use cases."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from pydantic import SecretStr

from memplane.adapters.embeddings.batching import BatchingEmbedder
from memplane.adapters.embeddings.choice import encoders_of
from memplane.adapters.files.erasure_ledger import LedgerFile
from memplane.adapters.llm.choice import model_of
from memplane.adapters.llm.prompt_files import prompt_file
from memplane.adapters.ner.choice import extractors_of
from memplane.adapters.oidc.trusted import tokens_of, verifier_of
from memplane.adapters.pii.choice import finder_of
from memplane.adapters.policy import PolicyFiles, shipped_policies
from memplane.application.checkpoints.checkpoint_pruning import PruneCheckpoints
from memplane.application.checkpoints.checkpoint_service import Checkpoints
from memplane.application.entities.entities import BrowseEntities
from memplane.application.erasure.erasure_ports import NoLedger
from memplane.application.erasure.erasure_replay import ReplayErasures
from memplane.application.erasure.user_erasure import EraseUsers
from memplane.application.jobs.co_recall_job import JOB as CO_RECALL
from memplane.application.jobs.co_recall_job import co_recalls
from memplane.application.jobs.consolidation import ConsolidateDaily
from memplane.application.jobs.embedding_change import Reembedding
from memplane.application.jobs.enrichment_job import EnrichEntities
from memplane.application.jobs.garbage_collection import CollectGarbage
from memplane.application.jobs.inference.inference_jobs import conclusions
from memplane.application.jobs.inference.llm_budget import LlmBudget
from memplane.application.jobs.inference.session_facts import conversations
from memplane.application.jobs.job_queue import JobAdministration, JobQueue
from memplane.application.jobs.job_runner import Jobs
from memplane.application.jobs.lifecycle_jobs import Prepare
from memplane.application.jobs.periodic import Periodic
from memplane.application.jobs.reconciliation.all_parts import repairs
from memplane.application.jobs.reembed_job import PrepareVectors
from memplane.application.keys.api_keys import Keys
from memplane.application.keys.issuer_tokens import Authenticate
from memplane.application.keys.key_administration import KeyAdministration
from memplane.application.keys.key_uses import KeyUses
from memplane.application.limits.admission import Admission
from memplane.application.limits.offload import Workers
from memplane.application.limits.quotas import ReadQuotas
from memplane.application.limits.rate_limits import RateLimits
from memplane.application.limits.refusals import Refusals
from memplane.application.limits.uploads import UNFINISHED, UploadLimits, Uploads
from memplane.application.memories.browse import Browse
from memplane.application.memories.dry_run import DryRun
from memplane.application.memories.explanation import ExplainMemory
from memplane.application.memories.gateway import Gateway
from memplane.application.memories.item_store import Items
from memplane.application.memories.refused_values import RefusedValueReview
from memplane.application.memories.writes import Writes
from memplane.application.operations.audit import VerifyHistory
from memplane.application.operations.policy_administration import PolicyAdministration
from memplane.application.operations.tracking import Tracking
from memplane.application.ports import Worker
from memplane.application.recall.access_log import AccessLog
from memplane.application.recall.context import TellContext
from memplane.application.recall.embedders import Embedders
from memplane.application.recall.embedding_guard import EmbeddingGuard
from memplane.application.recall.query_analysis import QueryContext
from memplane.application.recall.recall import RecallMemories
from memplane.application.recall.threads import Threads
from memplane.application.records import Rate
from memplane.application.reverts.revert_service import RevertWrites
from memplane.application.transfer.exports import Exports
from memplane.application.transfer.imports import Imports
from memplane.application.turns.session_close import CloseSessions
from memplane.application.users.user_merging import MergeUsers
from memplane.domain.errors import SettingsError
from memplane.domain.identity.principal import Reach
from memplane.domain.policy import capabilities
from memplane.domain.privacy import pii
from memplane.settings import Settings

# Each of the two databases is loaded when it is chosen: SQLite needs no PostgreSQL, and starts sooner without it.
if TYPE_CHECKING:
    from memplane.adapters.postgres.storage import PostgresStorage
    from memplane.adapters.sqlite.storage import SqliteStorage

logger = logging.getLogger("memplane")
POLICY_WATCH_SECONDS = 1.0
SCHEDULE_SECONDS = 60.0
WAITS = "background work waits for `memplane worker`: set MEMPLANE_WORKER_URL to do it here, or MEMPLANE_JOBS=false"

DEFAULT_TENANT = "default"
SQLITE = "sqlite:///"
SQLITE_FILE = "memplane.db"
LEDGER = "erasures.jsonl"
POSTGRES = ("postgresql://", "postgres://")


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


class Application:
    """Every use case, on one database, under one policy: that of the settings, or one that others share."""

    _watch: asyncio.Task[None] | None = None

    def __init__(self, settings: Settings, database_url: str, policies: PolicyFiles | None = None) -> None:
        self._settings = settings
        self.policies = policies or policies_of(settings.policies, finder_of(settings))
        self._embedding = [BatchingEmbedder(each) for each in encoders_of(settings.embedding, settings.next_embedding)]
        self.embedder, self.embedders = self._embedding[0], Embedders(*self._embedding)
        self.storage = _storage(settings, database_url, self.embedder.dimensions)
        guard = EmbeddingGuard(self.storage, self.embedders, now)
        ledger = NoLedger() if settings.erasure_ledger is None else LedgerFile(settings.erasure_ledger)
        self.gateway = gateway = Gateway(self.storage, self.policies, self.embedders, guard, now, ledger)
        self._accesses = AccessLog(self.storage, now, self._counts_co_recalls)
        rate = Rate(settings.rate_per_second, settings.rate_burst) if settings.rate_per_second else None
        self.rates = RateLimits(self.storage, rate)
        self.refusals, self.uploads = Refusals(), Uploads(_upload_limits(settings))
        # as many at work as can have a connection: who has to wait, waits for a turn
        self.admission = Admission(2 * settings.pool_size, settings.tenant_share, settings.pool_wait)
        self.workers = Workers(settings.tenant_share, settings.work_seconds)
        self.key_uses = KeyUses(self.storage, now)
        self.keys = Keys(self.storage, self.policies, self.key_uses, now)
        self.key_admin = KeyAdministration(self.storage, self.keys, self.policies, now)
        self.verifier = verifier_of(settings)
        tokens = None if self.verifier is None else tokens_of(settings, self.verifier, self.policies, self.storage)
        self.authenticate = Authenticate(self.keys, tokens)
        self.writes = writes = Writes(gateway, self.storage, self.policies, now)
        self.remember, self.feedback, self.ingest = writes.remember, writes.feedback, writes.ingest
        self.consents, self.conflicts, self.recovery = writes.consents, writes.conflicts, writes.recovery
        self.correct, self.delete_turn = writes.correct, writes.delete_turn
        self.quotas = ReadQuotas(self.storage, self.policies, now)
        deciding = (self.storage, self.policies, gateway, now)
        self.verdicts, self.revert = RefusedValueReview(*deciding), RevertWrites(*deciding)
        self.imports, self.exports = Imports(gateway), Exports(self.storage, self.policies, now)
        self.erase = EraseUsers(self.storage, self.policies, ledger, now)
        self.replay, self.merge_users = ReplayErasures(self.storage, self.erase, now), MergeUsers(*deciding)
        self.audit, self.policy_admin = VerifyHistory(self.storage), PolicyAdministration(self.policies)
        self.close_session = CloseSessions(self.storage, gateway)
        self.thinking = LlmBudget(settings.model, lambda: model_of(settings), self.storage, self.policies, now)
        extractors = extractors_of(settings, self.thinking)
        prepared: dict[str, Prepare] = {
            **conversations(self.storage, self.policies, self.close_session, self.thinking, prompt_file("facts")),
            "consolidation": ConsolidateDaily(self.storage, self.policies, self.thinking, prompt_file("pairs").about),
            "enrichment": EnrichEntities(self.storage, self.policies, extractors),
            "reembed": PrepareVectors(self.storage, self.embedders),
            CO_RECALL: co_recalls,
            "reconcile": repairs(self.storage, self.policies, gateway, extractors[0]),
            **conclusions(self.storage, self.policies, gateway, now, self.thinking, prompt_file),
        }
        self.reembedding = Reembedding(self.storage, self.embedders, now)
        self.jobs = Jobs(self.storage, self.policies, gateway, now, prepared)
        self.collect = CollectGarbage(self.storage, self.policies, gateway, self.jobs, now)
        self.queue = JobQueue(self.storage, self.policies, now)
        self.job_admin = JobAdministration(self.storage, self.queue, now)
        self._schedule = Periodic("the schedule of jobs", SCHEDULE_SECONDS, self.queue.schedule)
        self._worker: Worker | None = None
        asking = QueryContext(self.storage, self.policies, self.embedders, guard, self._accesses, gateway.activity, now)
        self.recall, self.context, self.explain = RecallMemories(asking), TellContext(asking), ExplainMemory(asking)
        self.items = Items(asking, gateway, self.remember)
        reading = (self.storage, self.policies, gateway.activity, now)
        self.threads, self.browse, self.checkpoints = Threads(*reading), Browse(*reading), Checkpoints(*reading)
        self.tracking = Tracking(self.storage, self.policies, self._accesses, now)
        self.entities = BrowseEntities(self.storage, self.policies, gateway, now)
        self.pruning = PruneCheckpoints(self.storage, now, settings.checkpoints_keep, settings.checkpoints_days)

    def _counts_co_recalls(self) -> bool:
        """Whether it is counted what is recalled together: not where the job is switched off."""
        return self.policies.current.workers.schedules.get(CO_RECALL) is not None

    def dry_run(self) -> tuple[DryRun, Writes]:
        """A gateway that rolls back, for one request, and the writes through it."""
        gateway = DryRun(self.gateway)
        return gateway, Writes(gateway, self.storage, self.policies, now)

    async def open(self) -> None:
        """Connect, refuse a database that does not fit, and begin the background tasks."""
        await self.storage.open()
        self._accesses.start()
        self.gateway.activity.start()
        self.key_uses.start()
        self._watch = asyncio.create_task(self._watch_policies())

    def serve(self) -> None:
        """Begin what only a server needs, once opened: an issuer's keys, pruning if wanted."""
        self.pruning.start()
        if self.verifier is not None:
            self.verifier.keys.start()

    async def work(self) -> None:
        """Begin to do background work, once opened: put into the queue what is due, and take out what waits.

        Raises:
            SettingsError: on PostgreSQL, the worker's role is not named; the model cannot be asked.
            StorageUnavailable, UnsafeRole: the queue cannot be reached, or not by that role.
        """
        await self.thinking.ready()
        worker = _worker(self._settings, self.storage, self.jobs)
        await worker.open()
        self._worker = worker
        worker.start()
        self._schedule.start()

    async def work_beside(self) -> None:
        """The same in a server, where it is wanted and the worker's role is named.

        Raises:
            StorageUnavailable, UnsafeRole: as for :meth:`work`.
        """
        if self._settings.jobs and (self._settings.worker_url is not None or _is_sqlite(self.storage)):
            await self.work()
        elif self._settings.jobs:
            logger.warning(WAITS)

    async def close(self) -> None:
        """Finish what was begun and disconnect."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        if self.verifier is not None:
            await self.verifier.keys.stop()
        await self._schedule.stop()
        if self._worker is not None:
            await self._worker.close()
        await self.pruning.stop()
        await self.key_uses.stop()
        await self._accesses.stop()
        await self.gateway.activity.stop()
        await self.storage.close()
        self.workers.close()
        for each in self._embedding:
            each.close()

    async def ensure_tenant(self, tenant: str) -> None:
        """Make a tenant if it is new."""
        await self.storage.write(Reach(tenant), lambda uow: uow.ensure_tenant(now()))

    async def _watch_policies(self) -> None:
        told: object = None
        while True:
            await asyncio.sleep(POLICY_WATCH_SECONDS)
            policy = await asyncio.to_thread(self.policies.maybe_reload)
            if policy is not None:
                logger.warning("policy reloaded: %s", policy.digest)
            elif self.policies.last_error is not None and self.policies.last_error is not told:
                logger.error("policy not reloaded, the old one stays in force: %s", self.policies.last_error)
            told = self.policies.last_error


def _upload_limits(settings: Settings) -> UploadLimits:
    """Bytes of bodies that are held at a time; each limit leaves room for the largest body."""
    megabytes = (settings.uploads_mb_per_key, settings.uploads_mb_per_address, settings.uploads_mb)
    key, address, total = (each and max(each * 2**20, settings.max_body_bytes, UNFINISHED) for each in megabytes)
    return UploadLimits(key, address, total, settings.body_seconds)


def ledger_of(settings: Settings) -> Path | None:
    """The ledger of erasures: the operator's, or one in the data folder of a database that lies there too."""
    if settings.erasure_ledger is not None:
        return settings.erasure_ledger
    return settings.data / LEDGER if settings.database_url is None else None


def with_ledger(settings: Settings) -> Settings:
    """The settings with the ledger of erasures that goes with the database."""
    return settings.model_copy(update={"erasure_ledger": ledger_of(settings)})


def policies_of(folder: Path | None, find_pii: pii.Finder = pii.find) -> PolicyFiles:
    """The operator's policy files, or the shipped ones."""
    return PolicyFiles(folder or shipped_policies(), find_pii)


def _storage(settings: Settings, url: str, dimensions: int) -> "PostgresStorage | SqliteStorage":
    """The database that a URL names: ``postgresql://…`` or ``sqlite:///file``."""
    if url.startswith(SQLITE):
        from memplane.adapters.sqlite.storage import SqliteStorage  # noqa: PLC0415 - loaded when it is chosen

        return SqliteStorage(Path(url.removeprefix(SQLITE)), dimensions=dimensions, wait=settings.pool_wait)
    from memplane.adapters.postgres.scope_cache import ScopeCache  # noqa: PLC0415 - loaded when it is chosen
    from memplane.adapters.postgres.storage import PostgresStorage, Timeouts  # noqa: PLC0415 - loaded when it is chosen

    return PostgresStorage(
        url,
        scopes=ScopeCache(dimensions, settings.search_memory_mb * 2**20),
        pool_size=settings.pool_size,
        pool_wait=settings.pool_wait,
        timeouts=Timeouts(settings.statement_timeout_ms, settings.idle_transaction_ms, settings.exchange_timeout),
    )


def _is_sqlite(storage: "PostgresStorage | SqliteStorage") -> "TypeGuard[SqliteStorage]":
    return storage.capabilities is capabilities.SQLITE


def _worker(settings: Settings, storage: "PostgresStorage | SqliteStorage", jobs: Jobs) -> Worker:
    """What takes jobs out of the queue of a database."""
    if _is_sqlite(storage):
        from memplane.adapters.sqlite.queue import LocalWorker  # noqa: PLC0415 - loaded when it is chosen

        return LocalWorker(storage, jobs.perform, now, jobs.stop)
    if settings.worker_url is None:
        raise SettingsError(
            "MEMPLANE_WORKER_URL is not set: the URL of the database as the worker's role, memplane_worker by default"
        )
    from memplane.adapters.postgres.queue import QueueWorker  # noqa: PLC0415 - loaded when it is chosen

    url = settings.worker_url.get_secret_value()
    return QueueWorker(url, jobs.perform, jobs.stop, stalled_seconds=settings.worker_stalled_seconds)


@dataclass(frozen=True, slots=True)
class PreparedDatabase:
    """A database that is ready for the application, and how to let go of it."""

    url: str = field(repr=False)
    stop: Callable[[], None]
    worker_url: str | None = field(default=None, repr=False)


def prepare(settings: Settings, *, attach: bool = True) -> PreparedDatabase:
    """Start or attach to the embedded server and migrate it, or check the operator's own database.

    Args:
        settings: which database.
        attach: whether another process may own the embedded server, and end it.

    Raises:
        EmbeddedPostgresError: the embedded server cannot be prepared, or is another process's.
        SchemaMismatch: the operator's database needs `memplane migrate`, or a newer version made its schema.
    """
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        return _prepared_file(Path(url.removeprefix(SQLITE))) if url.startswith(SQLITE) else _checked(url)
    if settings.storage == "sqlite":
        return _prepared_file(settings.data / SQLITE_FILE)
    from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres  # noqa: PLC0415 - loaded when it is chosen
    from memplane.adapters.postgres.provisioning import provision_embedded, worker_url  # noqa: PLC0415 - loaded when it is chosen

    server = EmbeddedPostgres.start(settings.data, attach=attach)
    try:
        url = provision_embedded(server)
        return PreparedDatabase(url, server.stop, worker_url(url))
    except BaseException:
        server.stop()
        raise


def _prepared_file(path: Path) -> PreparedDatabase:
    from memplane.adapters.sqlite.provisioning import migrate  # noqa: PLC0415 - loaded when it is chosen

    migrate(path)
    return PreparedDatabase(f"{SQLITE}{path}", lambda: None)


def _checked(url: str) -> PreparedDatabase:
    from memplane.adapters.postgres.provisioning import check_schema  # noqa: PLC0415 - loaded when it is chosen

    check_schema(url)
    return PreparedDatabase(url, lambda: None)


@asynccontextmanager
async def open_application(database: str) -> AsyncIterator[Application]:
    """An application in this process, on a PostgreSQL database that is migrated, or on a SQLite file.

    Raises:
        SchemaMismatch, StorageUnavailable: PostgreSQL needs `memplane migrate`; the database cannot be used.
    """
    url = database if database.startswith((*POSTGRES, SQLITE)) else f"{SQLITE}{Path(database)}"
    settings = Settings(database_url=SecretStr(url), rate_per_second=0)
    prepared = await asyncio.to_thread(prepare, settings)
    application = await asyncio.to_thread(Application, settings, prepared.url)
    await application.open()
    try:
        yield application
    finally:
        await application.close()
