"""What `memplane doctor` looks at: everything that the server needs."""

import asyncio
import os
import sqlite3
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import sqlalchemy as sa

from memplane.adapters.embeddings.choice import encoders_of
from memplane.adapters.files.key_file import NAME, KeyFile
from memplane.adapters.llm.choice import model_of
from memplane.adapters.policy import load_policy, shipped_policies
from memplane.adapters.postgres.database_privileges import may_create
from memplane.adapters.postgres.embedded.embedded_binaries import default_caches, packaged_binaries, reachable_binaries
from memplane.adapters.postgres.embedded.embedded_files import DataFolder
from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.adapters.postgres.provisioning import APP_ROLE, DATABASE, check_schema, worker_url
from memplane.adapters.postgres.queue import require_worker
from memplane.adapters.postgres.storage import PostgresStorage
from memplane.adapters.sql.schema.revisions import head
from memplane.bootstrap import SQLITE_FILE
from memplane.domain.errors import MemplaneError, SettingsError, UnsafeRole
from memplane.domain.policy.policy import Policy
from memplane.entrypoints.cli.admin.database import has_database
from memplane.entrypoints.cli.checks import key_checks
from memplane.entrypoints.cli.checks.check_results import CheckSkipped, Doubtful, Finding, Status
from memplane.entrypoints.cli.checks.file_checks import file_checks
from memplane.entrypoints.redaction import without_secrets
from memplane.settings import Settings

ANSWER_SECONDS = 5
MODEL_ADVICE = "correct MEMPLANE_MODEL, _URL or _KEY; until then no server starts that does background work"
ISSUER_ADVICE = (
    "start the issuer, or correct MEMPLANE_OIDC_ISSUER, _JWKS_URL or _ALGORITHMS; until then its tokens are refused,"
    " and API keys work"
)


class Examination:
    """The checks, in the order in which one needs the others; what was started for them ends with `cleanup`."""

    def __init__(self, settings: Settings, cleanup: ExitStack) -> None:
        self._settings = settings
        self._cleanup = cleanup
        self._place: DataFolder | None = None
        self._url: str | None = None
        self._weighted: Collection[str] | None = None
        self._loaded: Policy | None = None

    def findings(self) -> Iterator[Finding]:
        """Every check that this kind of database has."""
        named = self._settings.database_url is not None
        if not named:
            yield _finding("data folder", self._folder, "make it reachable and writable, or choose another with --data")
        if self._sqlite:
            for check, look, advice in file_checks(self._settings.data / SQLITE_FILE):
                yield _finding(check, look, advice)
        else:
            yield from self._postgres(named=named)
        yield _finding("policy", self._policy, "correct the files; `memplane policy check` lists every mistake")
        yield _finding("embedding model", self._embedding, self._embedding_advice)
        if self._settings.model is not None:
            yield _finding("language model", self._model, MODEL_ADVICE)
        if self._settings.oidc_issuer is not None:
            yield _finding("OIDC issuer", self._issuer, ISSUER_ADVICE)
        yield _finding(key_checks.CHECK, self._user_turns, key_checks.ADVICE)
        if not named:
            path = self._settings.data / NAME
            yield _finding(NAME, self._keys, f"`chmod 600 {path}`, and revoke the keys if a stranger could read them")

    def _postgres(self, *, named: bool) -> Iterator[Finding]:
        mend = "start that server, or correct MEMPLANE_DATABASE_URL"
        if not named:
            advice = 'install "memplane[embedded]", or set MEMPLANE_DATABASE_URL to use another PostgreSQL'
            yield _finding("embedded PostgreSQL", self._binaries, advice)
            mend = f"look into {self._settings.data / 'postgres.log'}"
        yield _finding("database", self._database, mend)
        yield _finding("schema", self._schema, "run `memplane migrate`, or install the version that made it")
        yield _finding("database role", self._role, "connect as the application's role: memplane_app, unless renamed")
        yield _finding("worker role", self._worker, "connect as the worker's role: memplane_worker, unless renamed")

    @property
    def _sqlite(self) -> bool:
        return self._settings.database_url is None and self._settings.storage == "sqlite"

    def _folder(self) -> str:
        folder = self._settings.data.absolute()
        if not folder.exists():
            there = next(parent for parent in folder.parents if parent.exists())
            if not os.access(there, os.W_OK | os.X_OK):
                raise SettingsError(f"{folder} is not there and {there} cannot be written: choose another with --data")
            raise CheckSkipped(f"{folder} is not there yet; `memplane init` or `memplane serve` makes it")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise SettingsError(f"{folder} cannot be written by this user: give it to this user, or choose another")
        if self._sqlite:
            return str(folder)
        self._place = DataFolder.prepare(folder)
        return f"{folder}, PostgreSQL runs as {self._place.account.name if self._place.account else 'this user'}"

    def _binaries(self) -> str:
        binaries = packaged_binaries()
        if self._place is None:
            return str(binaries)
        return str(reachable_binaries(binaries, self._place.account, default_caches(self._place)))

    def _database(self) -> str:
        if not has_database(self._settings):
            raise CheckSkipped("not made yet; `memplane init` or `memplane serve` makes it")
        if self._settings.database_url is not None:
            named, where = self._settings.database_url.get_secret_value(), "the server of MEMPLANE_DATABASE_URL"
        else:
            server = self._cleanup.enter_context(EmbeddedPostgres.start(self._settings.data))
            named = server.url(user=APP_ROLE, database=DATABASE)
            where = "the embedded server, started for this" if server.is_owner else "the embedded server, which runs"
        with psycopg.connect(named, connect_timeout=ANSWER_SECONDS) as connection:
            version = connection.info.server_version // 10_000
        self._url = named
        return f"{where}, PostgreSQL {version}"

    def _schema(self) -> str:
        check_schema(self._reached())
        return f"revision {head()}"

    def _role(self) -> str:
        url = self._reached()

        async def connect() -> None:
            storage = PostgresStorage(url, pool_size=2, pool_wait=ANSWER_SECONDS)
            try:
                await storage.open()
            finally:
                await storage.close()

        asyncio.run(connect())
        with psycopg.connect(url, connect_timeout=ANSWER_SECONDS) as connection:
            created = may_create(connection, connection.info.user)
        if created:
            raise UnsafeRole(f"the role may create {' and '.join(created)}: run `memplane migrate` as the owner")
        return "bound by row-level security, creates nothing"

    def _worker(self) -> str:
        named = self._settings.worker_url
        if named is None and self._settings.database_url is not None:
            raise CheckSkipped("MEMPLANE_WORKER_URL is not set: this does no background work, another may")
        url = worker_url(self._reached()) if named is None else named.get_secret_value()
        asyncio.run(require_worker(url))
        return "sees the queue and nothing else"

    def _reached(self) -> str:
        if self._url is None:
            raise CheckSkipped("needs the database")
        return self._url

    def _policy(self) -> str:
        folder = self._settings.policies or shipped_policies()
        policy = self._loaded = load_policy(folder)
        self._weighted = policy.ranking("default").weights
        return f"{folder}, {len(policy.allowlists)} agents, {policy.digest[:19]}…"

    def _embedding(self) -> str:
        told = []
        for encoder in encoders_of(self._settings.embedding, self._settings.next_embedding):
            (vector,) = encoder.encode(["a sentence to try the model with"])
            if vector is None:
                raise SettingsError(f"the embedding model {encoder.model} knows no word")
            if self._weighted is not None and encoder.model not in self._weighted:
                raise Doubtful(f"{encoder.model}: ranking.yaml has no weights measured for it, those of `*` serve")
            told.append(f"{encoder.model}, {len(vector)} dimensions")
        return ", next ".join(told)

    def _model(self) -> str:
        model_of(self._settings)  # asks nothing: a model that is down is asked again when it is needed
        where = self._settings.model_url or "its provider's own address"
        return f"{self._settings.model}, at {without_secrets(where)}"

    @property
    def _embedding_advice(self) -> str:
        if self._settings.next_embedding_model is not None:
            return "correct MEMPLANE_NEXT_EMBEDDING_MODEL; measure weights with benchmarks/calibrate.py --model"
        if self._settings.embedding_model is None:
            return "install memplane again, with its package `wordllama`"
        return "correct MEMPLANE_EMBEDDING_MODEL or _NAME; measure weights with benchmarks/calibrate.py --model"

    def _issuer(self) -> str:
        from memplane.entrypoints.cli.checks.issuer_checks import issuer_answers  # noqa: PLC0415 - loaded when one is named

        named = self._settings
        return issuer_answers(named.oidc_issuer or "", named.oidc_jwks_url, named.oidc_algorithms)

    def _user_turns(self) -> str:
        if self._sqlite:
            return key_checks.keys_of_file(self._settings.data / SQLITE_FILE, self._loaded)
        return key_checks.keys_of_server(self._reached(), self._loaded)

    def _keys(self) -> str:
        path: Path = self._settings.data / NAME
        try:
            status = path.stat()
        except FileNotFoundError:
            raise CheckSkipped("not there yet; `memplane init` or `memplane serve` makes it") from None
        mode = stat.S_IMODE(status.st_mode)
        if mode & 0o077:
            raise SettingsError(f"{path} has mode {mode:o}: others than its owner can read it")
        keys = KeyFile.read(self._settings.data)
        agents = len(keys.agents) if keys else 0
        return f"{path}, mode {mode:o}, {agents} agents"


def _finding(check: str, look: Callable[[], str], advice: str) -> Finding:
    """Look, and tell what was found."""
    try:
        return Finding(check, Status.OK, look())
    except CheckSkipped as reason:
        return Finding(check, Status.SKIPPED, str(reason))
    except Doubtful as reason:
        return Finding(check, Status.WARNING, str(reason), advice)
    except MemplaneError as error:
        return Finding(check, Status.PROBLEM, without_secrets(" ".join(error.detail.split())), advice)
    except (OSError, ImportError, sqlite3.Error, psycopg.Error, sa.exc.SQLAlchemyError) as error:
        return Finding(check, Status.PROBLEM, without_secrets(" ".join(str(error).split())), advice)
