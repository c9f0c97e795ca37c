"""The only place that wires adapters to use cases."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memplane.adapters.embeddings.batching import BatchingEmbedder
from memplane.adapters.embeddings.wordllama import WordLlama
from memplane.adapters.key_file import KeyFile
from memplane.adapters.policy_files import PolicyFiles, shipped_policies
from memplane.adapters.postgres.embedded import EmbeddedPostgres
from memplane.adapters.postgres.provision import check_schema, provision_embedded
from memplane.adapters.postgres.storage import PostgresStorage
from memplane.adapters.sqlite.provision import migrate as migrate_sqlite
from memplane.adapters.sqlite.storage import SqliteStorage
from memplane.application.accesses import AccessLog
from memplane.application.browse import Browse
from memplane.application.embedding_guard import EmbeddingGuard
from memplane.application.gateway import Gateway
from memplane.application.ingest import IngestTurns
from memplane.application.keys import Keys, NewKey
from memplane.application.recall import RecallMemories
from memplane.application.remember import Remember
from memplane.application.threads import Threads
from memplane.domain.errors import Unauthenticated
from memplane.domain.policy import Trust
from memplane.domain.principal import KeyScope
from memplane.settings import Settings

logger = logging.getLogger("memplane")
POLICY_WATCH_SECONDS = 1.0
DEFAULT_TENANT = "default"
SQLITE = "sqlite:///"
SQLITE_FILE = "memplane.db"


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


class Application:
    """Every use case, on one database, under one policy."""

    def __init__(self, settings: Settings, database_url: str) -> None:
        self.policies = policies_of(settings.policies)
        self.embedder = BatchingEmbedder(WordLlama())
        self.storage = _storage(settings, database_url, self.embedder.dimensions)
        guard = EmbeddingGuard(self.storage, self.embedder, now)
        gateway = Gateway(self.storage, self.policies, self.embedder, guard, now)
        self._accesses = AccessLog(self.storage, now)
        self.keys = Keys(self.storage, self.policies, now)
        self.remember = Remember(gateway)
        self.ingest = IngestTurns(gateway)
        self.recall = RecallMemories(self.storage, self.policies, self.embedder, guard, self._accesses, now)
        self.threads = Threads(self.storage, self.policies, now)
        self.browse = Browse(self.storage, self.policies, now)
        self._watch: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect, refuse a database that does not fit, and begin the background tasks."""
        await self.storage.open()
        self._accesses.start()
        self._watch = asyncio.create_task(self._watch_policies())

    async def close(self) -> None:
        """Finish what was begun and disconnect."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await self._accesses.stop()
        await self.storage.close()
        self.embedder.close()

    async def ensure_tenant(self, tenant: str) -> None:
        """Make a tenant if it is new."""
        await self.storage.write(tenant, lambda uow: uow.ensure_tenant(now()))

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


def policies_of(folder: Path | None) -> PolicyFiles:
    """The operator's policy files, or the shipped ones."""
    return PolicyFiles(folder or shipped_policies())


def _storage(settings: Settings, url: str, dimensions: int) -> PostgresStorage | SqliteStorage:
    """The database that a URL names: ``postgresql://…`` or ``sqlite:///file``."""
    if url.startswith(SQLITE):
        return SqliteStorage(Path(url.removeprefix(SQLITE)), dimensions=dimensions)
    return PostgresStorage(
        url,
        pool_size=settings.pool_size,
        pool_wait=settings.pool_wait,
        statement_timeout_ms=settings.statement_timeout_ms,
    )


@dataclass(frozen=True, slots=True)
class Prepared:
    """A database that is ready for the application, and how to let go of it."""

    url: str
    stop: Callable[[], None]


def prepare(settings: Settings) -> Prepared:
    """Start or attach to the embedded server and migrate it, or check the operator's own database.

    Raises:
        EmbeddedPostgresError: the embedded server cannot be prepared.
        SchemaMismatch: the operator's database needs `memplane migrate`.
    """
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        if url.startswith(SQLITE):
            migrate_sqlite(Path(url.removeprefix(SQLITE)))
        else:
            check_schema(url)
        return Prepared(url, lambda: None)
    if settings.storage == "sqlite":
        file = settings.data / SQLITE_FILE
        migrate_sqlite(file)
        return Prepared(f"{SQLITE}{file}", lambda: None)
    server = EmbeddedPostgres.start(settings.data)
    try:
        return Prepared(provision_embedded(server), server.stop)
    except BaseException:
        server.stop()
        raise


async def ensure_keys(application: Application, folder: Path) -> KeyFile:
    """Make the default tenant's keys on first start: one for each agent of the policy, and the administrator's.

    A key file whose administrator's key this database knows is kept; agents that are new in the policy get a key.
    """
    allowlists = application.policies.current.allowlists
    kept = KeyFile.read(folder)
    if kept is not None and not await _known(application, kept.admin):
        kept = None
    agents = dict(kept.agents) if kept else {}
    admin = kept.admin if kept else None
    if admin is None:
        new = NewKey(agent=None, trust=Trust.FULL, scopes=tuple(KeyScope), act_for=("*",), label="administrator")
        _, admin = await application.keys.create(DEFAULT_TENANT, new)
    missing = [agent for agent in allowlists if agent not in agents]
    for agent in missing:
        new = NewKey(agent=agent, trust=allowlists[agent].trust, label="made at first start")
        _, agents[agent] = await application.keys.create(DEFAULT_TENANT, new)
    file = KeyFile(admin, agents)
    if kept is None or missing:
        await asyncio.to_thread(file.write, folder)
    return file


async def _known(application: Application, credential: str) -> bool:
    try:
        await application.keys.authenticate(credential)
    except Unauthenticated:
        return False
    return True
