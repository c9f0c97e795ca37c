"""A database that is copied: a SQLite file while it is in use, and a tenant from one kind of database to the other."""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from memplane.bootstrap import POSTGRES, SQLITE_FILE
from memplane.domain.errors import SettingsError
from memplane.domain.policy import capabilities
from memplane.domain.policy.capabilities import Capability
from memplane.settings import Settings

if TYPE_CHECKING:
    from memplane.adapters.conversion.conversion import ConversionResult, Told


async def backup(settings: Settings, target: Path) -> Path:
    """Copy the SQLite file, which may be in use, to a file that is not there yet.

    Returns:
        The file that was copied.

    Raises:
        NotSupported: the database is PostgreSQL.
        StorageUnavailable: there is no file to copy, or the copy cannot be written.
    """
    file = settings.storage == "sqlite" and settings.database_url is None
    (capabilities.SQLITE if file else capabilities.POSTGRES).require(Capability.BACKUP_COMMAND)
    from memplane.adapters.sqlite.backup import copy  # noqa: PLC0415 - loaded when it is chosen

    source = settings.data / SQLITE_FILE
    await asyncio.to_thread(copy, source, target)
    return source


def convert(source: str, target: str, tenant: str | None, app_role: str, told: "Told") -> "ConversionResult":
    """Copy a tenant from SQLite to PostgreSQL, or back, and compare both.

    Args:
        source: a SQLite file, the URL of the owner of a PostgreSQL schema, or a folder with an embedded PostgreSQL.
        target: the same, of the other kind; made or migrated first.
        tenant: the tenant on PostgreSQL's side; the file's is always the default one.
        app_role: PostgreSQL's role of the application.
        told: hears of progress.

    Raises:
        SettingsError: both are of one kind.
        MemplaneError: see `Conversion.run`.
    """
    from memplane.adapters.conversion.conversion import TenantConversion, refuse_several_tenants  # noqa: PLC0415 - which little else needs
    from memplane.adapters.conversion.conversion_sides import file_side, postgres_side  # noqa: PLC0415 - which little else needs

    if _is_file(source) == _is_file(target):
        instead = "copy a file with `memplane backup`" if _is_file(source) else "copy a database with pg_dump"
        raise SettingsError(f"one side has to be a SQLite file and the other a PostgreSQL database; {instead}")
    with ExitStack() as cleanup:
        sides = (file_side, postgres_side) if _is_file(source) else (postgres_side, file_side)
        found = sides[0](source, cleanup, tenant, None)
        if tenant is None:
            refuse_several_tenants(found)
        return TenantConversion(found, sides[1](target, cleanup, tenant, app_role)).run(told)


def _is_file(where: str) -> bool:
    return not where.startswith(POSTGRES) and not Path(where).is_dir()
