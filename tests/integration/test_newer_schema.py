"""A schema that a newer version made is named, and left as it is, on every way to it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from integration.commands import reachable_folder
from memplane.adapters.postgres.embedded.embedded_postgres import EmbeddedPostgres
from memplane.adapters.postgres.provisioning import DATABASE, OWNER_ROLE, migrate
from memplane.adapters.sql.schema.revisions import head
from memplane.domain.errors import SchemaMismatch
from support.cluster import Cluster, Database
from support.commands import run

NEWER = "9999"
NAMED = "schema is at revision 9999, which this version does not know: install a newer Memplane"


@pytest.fixture
def folder() -> Iterator[Path]:
    with reachable_folder() as made:
        yield made / "data"


def memplane(folder: Path, command: str, storage: str) -> tuple[int, str]:
    done = run(command, "--data", str(folder), "--storage", storage)
    return done.code, done.err


def set_revision(folder: Path, storage: str, revision: str) -> None:
    change = "UPDATE alembic_version SET version_num = "
    if storage == "sqlite":
        with closing(sqlite3.connect(folder / "memplane.db")) as file, file:
            file.execute(f"{change} ?", (revision,))
        return
    with (
        EmbeddedPostgres.start(folder) as server,
        psycopg.connect(server.url(user=OWNER_ROLE, database=DATABASE)) as owner,
    ):
        owner.execute(f"{change} %s", (revision,))


@pytest.mark.parametrize("storage", ["postgres", "sqlite"])
def test_every_command_names_it(folder: Path, storage: str) -> None:
    assert memplane(folder, "init", storage)[0] == 0
    set_revision(folder, storage, NEWER)
    for command in ("serve", "migrate", "worker"):
        code, told = memplane(folder, command, storage)
        assert code != 0, command
        assert NAMED in told, (command, told)
        assert "Traceback" not in told, command
    set_revision(folder, storage, head())
    assert memplane(folder, "migrate", storage)[0] == 0  # the control


def test_a_server_of_the_operator_s_is_not_migrated(database: Database, cluster: Cluster) -> None:
    with psycopg.connect(database.admin_url, autocommit=True) as admin:
        admin.execute("UPDATE alembic_version SET version_num = %s", (NEWER,))
        with pytest.raises(SchemaMismatch, match=NAMED):
            migrate(database.owner_url, cluster.app_role, cluster.worker_role)
        assert admin.execute("SELECT version_num FROM alembic_version").fetchone() == (NEWER,)
