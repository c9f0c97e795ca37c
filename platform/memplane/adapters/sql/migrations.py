"""Bringing a database to the schema that this code needs, and refusing one that does not fit."""

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

import memplane
from memplane.domain.errors import SchemaMismatch


def scripts_folder() -> Path:
    """The migrations: inside an installed wheel, or beside the source root."""
    package = Path(memplane.__file__).parent
    packaged = package / "_data" / "alembic"
    return packaged if packaged.is_dir() else package.parent.parent / "alembic"


def _config(url: str, app_role: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts_folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["url"] = url
    config.attributes["app_role"] = app_role
    return config


def head() -> str:
    """The revision that this code needs."""
    found = ScriptDirectory(str(scripts_folder())).get_current_head()
    if found is None:
        raise SchemaMismatch(f"there are no migrations in {scripts_folder()}")
    return found


def upgrade(url: str, app_role: str, revision: str = "head") -> None:
    """Run the migrations as the owner of the schema.

    Args:
        url: the owner's database URL, with driver.
        app_role: the application's role, which receives its grants.
        revision: the target.
    """
    command.upgrade(_config(url, app_role), revision)


def downgrade(url: str, app_role: str, revision: str) -> None:
    """Undo migrations, down to a revision."""
    command.downgrade(_config(url, app_role), revision)


def current(connection: sa.Connection) -> str | None:
    """The database's revision, or ``None`` for an empty one."""
    return MigrationContext.configure(connection).get_current_revision()


def check_fit(found: str | None) -> None:
    """Refuse a schema that this code does not fit.

    Raises:
        SchemaMismatch: the database is empty, older, or newer than this code.
    """
    needed = head()
    if found == needed:
        return
    known = {script.revision for script in ScriptDirectory(str(scripts_folder())).walk_revisions()}
    if found is None:
        advice = "the database has no Memplane schema: run `memplane migrate`"
    elif found in known:
        advice = f"the schema is at revision {found}, this version needs {needed}: run `memplane migrate`"
    else:
        advice = f"the schema is at revision {found}, which this version does not know: install a newer Memplane"
    raise SchemaMismatch(advice, found=found, needed=needed)
