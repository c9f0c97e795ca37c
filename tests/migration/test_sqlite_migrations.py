"""The same migrations on a SQLite file: up, down, up again, and equal to the models but for what SQLite alone has."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from memplane.adapters.sql.schema import migrations
from memplane.adapters.sql.schema.revisions import head
from memplane.adapters.sql.schema.tables import metadata
from memplane.adapters.sqlite.engine import configure, sync_url
from memplane.adapters.sqlite.provisioning import checked_engine, migrate, revision
from memplane.domain.errors import SchemaMismatch, StorageUnavailable

CATALOGUE = "SELECT type, name, sql FROM sqlite_schema WHERE tbl_name <> 'alembic_version'"
SQLITE_ALONE = {
    ("table", "search_epoch"),
    ("index", "ix_memories_scope"),
    ("index", "ix_turns_scope"),
    ("trigger", "memories_added"),
    ("trigger", "memories_added_usage"),
    ("trigger", "memories_changed"),
    ("trigger", "memories_changed_usage"),
    ("trigger", "memories_moved_usage"),
    ("trigger", "memories_removed"),
    ("trigger", "memories_removed_usage"),
    ("trigger", "memory_sources_changed"),
    ("trigger", "memory_sources_noted"),
    ("trigger", "turns_added"),
    ("trigger", "turns_added_usage"),
    ("trigger", "turns_moved_usage"),
    ("trigger", "turns_removed"),
    ("trigger", "turns_removed_usage"),
}
"""What the migrations make on SQLite that the models do not know."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@contextmanager
def connected(file: Path) -> Iterator[sa.Connection]:
    engine = sa.create_engine(sync_url(file), poolclass=sa.NullPool)
    configure(engine, begin="BEGIN")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def catalogue(file: Path) -> set[tuple[object, ...]]:
    with connected(file) as connection:
        return {tuple(row) for row in connection.exec_driver_sql(CATALOGUE)}


def objects(found: set[tuple[object, ...]]) -> set[tuple[object, ...]]:
    """Kinds and names, without what SQLite makes by itself for keys."""
    return {row[:2] for row in found if not str(row[1]).startswith("sqlite_")}


def test_up_down_and_up_again(file: Path) -> None:
    migrations.upgrade(sync_url(file), "")
    first = catalogue(file)
    migrations.downgrade(sync_url(file), "", "base")
    assert catalogue(file) == set()
    migrations.upgrade(sync_url(file), "")
    assert catalogue(file) == first != set()


def test_each_revision_can_be_taken_back_alone(file: Path) -> None:
    seen = []
    while revision(file) != head():
        seen.append(catalogue(file))
        migrations.upgrade(sync_url(file), "", "+1")
    assert len(seen) > 1
    for expected in reversed(seen):
        migrations.downgrade(sync_url(file), "", "-1")
        assert catalogue(file) == expected


def test_migrating_again_changes_nothing(file: Path) -> None:
    migrate(file)
    before = catalogue(file)
    assert migrate(file) == head()
    assert catalogue(file) == before


def test_the_models_need_no_new_revision(file: Path) -> None:
    migrate(file)
    alone = {name for _, name in SQLITE_ALONE}

    def ours(_object: object, name: str | None, _kind: str, _reflected: bool, _other: object) -> bool:
        return name not in alone

    with connected(file) as connection:
        opts = {"compare_type": True, "compare_server_default": True, "include_object": ours}
        assert compare_metadata(MigrationContext.configure(connection, opts=opts), metadata) == []


def test_the_migrated_file_has_what_the_models_would_make_and_what_is_declared(file: Path, tmp_path: Path) -> None:
    migrate(file)
    with connected(tmp_path / "models.db") as connection:
        metadata.create_all(connection)
        connection.commit()
    assert objects(catalogue(file)) - objects(catalogue(tmp_path / "models.db")) == SQLITE_ALONE
    assert objects(catalogue(tmp_path / "models.db")) <= objects(catalogue(file))


def test_a_file_that_does_not_fit_is_refused(file: Path) -> None:
    file.touch()
    with pytest.raises(SchemaMismatch, match="memplane migrate"):
        checked_engine(file)
    migrate(file)
    with connected(file) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    with pytest.raises(SchemaMismatch, match="install a newer Memplane"):
        checked_engine(file)


def test_what_is_no_database_is_left_as_it_is(file: Path) -> None:
    file.write_bytes(b"a letter, and no database at all. " * 200)
    before = file.read_bytes()
    with pytest.raises(StorageUnavailable, match="cannot be used as a database"):
        migrate(file)
    assert file.read_bytes() == before
