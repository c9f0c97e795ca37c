"""The database from the command line: prepared, with its use cases opened on it, and let go of."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from memplane.adapters.files.key_file import KeyFile
from memplane.adapters.sql.schema.revisions import head
from memplane.adapters.sqlite.provisioning import migrate as migrate_sqlite
from memplane.bootstrap import SQLITE_FILE, Application, prepare, with_ledger
from memplane.domain.errors import SettingsError
from memplane.entrypoints.cli.admin.first_keys import ensure_keys
from memplane.settings import Settings

T = TypeVar("T")
CLUSTER = "pg"


def has_database(settings: Settings) -> bool:
    """Whether a database is named, or was made in the data folder before."""
    return settings.database_url is not None or _made(settings, settings.storage)


def _made(settings: Settings, storage: str) -> bool:
    return (settings.data / (SQLITE_FILE if storage == "sqlite" else CLUSTER)).exists()


def storage_found(settings: Settings) -> Settings:
    """The settings with the kind of database that the data folder holds, where neither option nor setting names one."""
    named = settings.database_url is not None or "storage" in settings.model_fields_set
    if named or _made(settings, "postgres") or not _made(settings, "sqlite"):
        return settings
    return settings.model_copy(update={"storage": "sqlite"})


def require_database(settings: Settings) -> None:
    """Refuse to go on without a database: a mistyped folder must not become a new one.

    Raises:
        SettingsError: none is named, and none was made in the data folder.
    """
    if not has_database(settings):
        other = "postgres" if settings.storage == "sqlite" else "sqlite"
        hint = f", or add --storage {other}" if _made(settings, other) else ""
        raise SettingsError(
            f"there is no database in {settings.data}: name its folder with --data, or make one with `memplane init`"
            f"{hint}"
        )


def on_database(settings: Settings, work: Callable[[Application], Awaitable[T]]) -> T:
    """Do work on the database that is there, beside a server that may be running on it.

    Raises:
        SettingsError: there is none.
        StorageError: it cannot be reached, or does not fit.
    """
    require_database(settings)
    prepared = prepare(settings)
    try:
        return asyncio.run(run_on_database(settings, prepared.url, work))
    finally:
        prepared.stop()


async def run_on_database(settings: Settings, url: str, work: Callable[[Application], Awaitable[T]]) -> T:
    """Do work on the use cases of a prepared database."""
    application = Application(with_ledger(settings), url)
    try:
        await application.open()
        return await work(application)
    finally:
        await application.close()


async def first_keys(settings: Settings, url: str) -> KeyFile:
    """The keys of a single-user server, made where they are missing."""
    return await run_on_database(settings, url, lambda application: ensure_keys(application, settings.data))


def initialise(settings: Settings) -> tuple[KeyFile, str]:
    """Make what is missing of the database and its keys.

    Returns:
        The keys, and the schema's revision.

    Raises:
        StorageError: the database cannot be made or reached, or does not fit.
    """
    prepared = prepare(settings)
    try:
        return asyncio.run(first_keys(settings, prepared.url)), head()
    finally:
        prepared.stop()


def migrate_named(settings: Settings) -> tuple[str, str]:
    """Bring the database that the settings name to this version's schema.

    Returns:
        Which database it is, for people, and its revision.

    Raises:
        SettingsError: there is none, or only the application's role is named.
        StorageError: it cannot be reached or changed.
    """
    if settings.storage == "sqlite":
        require_database(settings)
        return f"the file {settings.data / SQLITE_FILE}", migrate_sqlite(settings.data / SQLITE_FILE)
    from memplane.adapters.postgres import provisioning  # noqa: PLC0415 - loaded when it is chosen
    from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres  # noqa: PLC0415 - loaded when it is chosen

    if settings.migration_url is not None:
        revision = provisioning.migrate(
            settings.migration_url.get_secret_value(), settings.app_role, settings.worker_role
        )
        return "the database of MEMPLANE_MIGRATION_URL", revision
    if settings.database_url is not None:
        raise SettingsError(
            "MEMPLANE_DATABASE_URL names the application's role, which may not change the schema: set "
            "MEMPLANE_MIGRATION_URL to the URL of the schema's owner"
        )
    require_database(settings)
    where = f"the database of {settings.data}"
    with EmbeddedPostgres.start(settings.data) as server:
        provisioning.provision_embedded(server)
        return where, provisioning.migrate(server.url(user=provisioning.OWNER_ROLE, database=provisioning.DATABASE))
