"""Making and migrating a SQLite file."""

from pathlib import Path

import sqlalchemy as sa

from memplane.adapters.sql.schema.revisions import check_fit, current, head, refuse_newer
from memplane.adapters.sqlite.engine import configure, sync_url
from memplane.domain.errors import StorageUnavailable


def migrate(path: Path) -> str:
    """Bring a file to this version's schema, making it when it is new; readable by its owner alone.

    Returns:
        The revision that the file is at.

    Raises:
        StorageUnavailable: the file cannot be made or opened, or is no database.
        SchemaMismatch: a newer version made its schema.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.touch(mode=0o600)
        found = revision(path)
        refuse_newer(found)
        if found != head():
            from memplane.adapters.sql.schema.migrations import upgrade  # noqa: PLC0415 - Alembic is slow to load, and seldom needed

            upgrade(sync_url(path), app_role="")
        return revision(path) or ""
    except (OSError, sa.exc.DBAPIError) as error:
        raise StorageUnavailable(f"{path}: cannot be used as a database ({_reason(error)})") from error


def revision(path: Path) -> str | None:
    """The file's revision, or ``None`` for an empty one."""
    engine = sa.create_engine(sync_url(path), poolclass=sa.NullPool)
    configure(engine, begin="BEGIN")
    try:
        with engine.connect() as connection:
            return current(connection)
    finally:
        engine.dispose()


def checked_engine(path: Path) -> sa.Engine:
    """An engine on a file whose schema this version fits.

    Raises:
        SchemaMismatch: it has to be migrated, or is newer.
        StorageUnavailable: it is no database.
    """
    try:
        check_fit(revision(path))
    except sa.exc.DBAPIError as error:
        raise StorageUnavailable(f"{path}: cannot be used as a database ({_reason(error)})") from error
    engine = sa.create_engine(sync_url(path), hide_parameters=True)
    configure(engine, begin="BEGIN")
    return engine


def _reason(error: Exception) -> str:
    return str(error.orig) if isinstance(error, sa.exc.DBAPIError) else str(error)
