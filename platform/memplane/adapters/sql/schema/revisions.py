"""At which revision a database is, and which one this code needs; told without loading what runs the migrations."""

from pathlib import Path

import sqlalchemy as sa

import memplane
from memplane.domain.errors import SchemaMismatch


def scripts_folder() -> Path:
    """The migrations: inside an installed wheel, or beside the source root."""
    package = Path(memplane.__file__).parent
    packaged = package / "_data" / "alembic"
    return packaged if packaged.is_dir() else package.parent.parent / "alembic"


def revisions() -> tuple[str, ...]:
    """Every revision, in their order: each is the number that its file's name begins with.

    Raises:
        SchemaMismatch: there are none, as in an installation that lost its files.
    """
    found = tuple(sorted(path.name.split("_")[0] for path in (scripts_folder() / "versions").glob("[0-9]*_*.py")))
    if not found:
        raise SchemaMismatch(f"there are no migrations in {scripts_folder()}")
    return found


def head() -> str:
    """The revision that this code needs."""
    return revisions()[-1]


def current(connection: sa.Connection) -> str | None:
    """The database's revision, or ``None`` for an empty one."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()


def refuse_newer(found: str | None) -> None:
    """Refuse to migrate a schema that a newer version made.

    Raises:
        SchemaMismatch: this version does not know the revision.
    """
    if found is not None and found not in revisions():
        check_fit(found)


def check_fit(found: str | None) -> None:
    """Refuse a schema that this code does not fit.

    Raises:
        SchemaMismatch: the database is empty, older, or newer than this code.
    """
    needed = head()
    if found == needed:
        return
    if found is None:
        advice = "the database has no Memplane schema: run `memplane migrate`"
    elif found in revisions():
        advice = f"the schema is at revision {found}, this version needs {needed}: run `memplane migrate`"
    else:
        advice = f"the schema is at revision {found}, which this version does not know: install a newer Memplane"
    raise SchemaMismatch(advice, found=found, needed=needed)
