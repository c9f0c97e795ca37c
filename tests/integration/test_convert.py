"""`memplane convert`: everything that one database holds, in the other, and proved to be there."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import psycopg
import pytest
import sqlalchemy as sa

import memplane
from integration.commands import Result, run
from memplane.adapters.conversion.conversion import MARK, Side, TenantConversion, canonical
from memplane.adapters.postgres import provisioning as postgres
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.schema.types import Embedding, TextList, UtcTime
from memplane.adapters.sqlite import provisioning as sqlite
from memplane.domain.errors import NotSupported, RecordNotFound, SettingsError, StateConflict
from support.cluster import Database

TABLES = [table for table in tables.metadata.sorted_tables if table.name not in tables.DERIVED]
Files = Callable[..., Side]
FIXED = {"importance": 3, "confidence": 0.5}
ONLY_HERE = {"alembic_version", "search_epoch", "rate_limits", "unit_removals", "tenant_removals"} | tables.DERIVED

VALUES: dict[type[Any], Callable[[str, int], object]] = {
    UtcTime: lambda _, number: datetime(2026, 1, 2, 3, 4, 5, 60 + number, tzinfo=UTC) + timedelta(days=number),
    TextList: lambda _, number: ("ä", 'a "quoted" one', "", str(number)),
    Embedding: lambda _, number: np.linspace(-1, 1, 256, dtype=np.float16).astype(np.float32) * np.float32(number % 2),
    sa.Uuid: lambda name, number: UUID(int=(number << 64) + int.from_bytes(name[:4].encode())),
    sa.JSON: lambda _, number: {"z": 1.0, "a": [1, 2.5, 1e20, None, True], "é": {"nested": "…", "number": number}},
    sa.Boolean: lambda _, number: number % 2 == 0,
    sa.LargeBinary: lambda _, number: bytes([0, 255, number % 256]),
    sa.Float: lambda _, number: 1 / (3 + number),
    sa.Integer: lambda _, number: number,
    sa.String: lambda _, number: ("Ünï-Zz" if number % 2 else "a_b") + str(number),
}
"""What a column of each type gets: values that differ from row to row and are hard to carry over."""


def value(column: sa.Column[Any], number: int) -> object:
    """A value of a column's type."""
    if column.name in FIXED:
        return FIXED[column.name]
    for kind, make in VALUES.items():
        if isinstance(column.type, kind):
            return make(column.name, number)
    raise AssertionError(f"no value for {column.table.name}.{column.name}: teach this test its type")


def rows(table: sa.Table, tenant: str, count: int, made: dict[str, list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """Rows of a table; what refers to other tables refers to their rows."""
    for number in range(1, count + 1):
        row = {column.name: value(column, number) for column in table.columns if column.computed is None}
        row["tenant_id"] = tenant
        for key in table.foreign_key_constraints:
            shift = 1 if key.name == "fk_relations_to" else 0
            found = made[key.referred_table.name][(number - 1 + shift) % len(made[key.referred_table.name])]
            row |= {element.parent.name: found[element.column.name] for element in key.elements}
        yield row


def fill(side: Side, count: int = 3) -> None:
    """Rows in every table that there is."""
    made: dict[str, list[dict[str, Any]]] = {}
    with side.transaction() as connection:
        for table in TABLES:
            each = 1 if table is tables.tenants else count
            made[table.name] = list(rows(table, side.tenant, each, made))
            connection.execute(sa.insert(table), made[table.name])


def held(side: Side) -> dict[str, list[Any]]:
    """Every row of every table, without the mark of the conversion."""
    with side.transaction() as connection:
        return {
            table.name: sorted(
                json.dumps({name: canonical(cell) for name, cell in row.items() if name != "tenant_id"}, sort_keys=True)
                for row in connection.execute(sa.select(table).where(table.c.tenant_id == side.tenant)).mappings()
                if table is not tables.settings or row["name"] != MARK
            )
            for table in TABLES
        }


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    """Makes migrated SQLite files."""
    opened = []

    def make(name: str = "memory.db") -> Side:
        sqlite.migrate(tmp_path / name)
        engine = sqlite.checked_engine(tmp_path / name)
        opened.append(engine)
        return Side(str(tmp_path / name), engine, "default")

    yield make
    for engine in opened:
        engine.dispose()


@pytest.fixture
def server_side(database: Database) -> Iterator[Side]:
    """A PostgreSQL database, as its owner, whom row-level security binds."""
    engine = postgres.checked_engine(database.owner_url)
    yield Side("server", engine, "default")
    engine.dispose()


def converted(source: str | Path, target: str | Path, *more: str) -> Result:
    return run("convert", "--from", str(source), "--to", str(target), *more, "--json")


# Everything


def test_every_table_that_is_migrated_is_converted(server_side: Side, files: Files) -> None:
    known = {table.name for table in TABLES}
    for side in (server_side, files()):
        assert set(sa.inspect(side.engine).get_table_names()) - ONLY_HERE == known


def test_every_column_of_every_table_survives_the_way_there_and_back(server_side: Side, files: Files) -> None:
    first, last = files(), files("back.db")
    fill(first)
    there = TenantConversion(first, server_side, batch=2).run()
    back = TenantConversion(server_side, last, batch=2).run()
    assert there.equal
    assert back.equal
    assert {each.table for each in there.tables} == {table.name for table in TABLES}
    assert all(each.source_rows for each in there.tables), "a table without rows proves nothing"
    assert held(first) == held(server_side) == held(last)
    assert [each.source_hash for each in there.tables] == [each.target_hash for each in back.tables]


def test_answers_histories_and_revisions_are_the_same_afterwards(tmp_path: Path, database: Database) -> None:
    first, last = tmp_path / "first.db", tmp_path / "last.db"

    async def tell() -> None:
        async with memplane.open(first) as memory:
            for number in range(12):
                await memory.turn(user_id="u", thread_id="t", role="user", text=f"Turn {number} about the release.")
            await memory.remember(user_id="u", category="goals", content="Ship the release in May.", thread_id="t")

    async def ask(path: Path) -> tuple[Any, ...]:
        async with memplane.open(path) as memory:
            answer = await memory.query("When is the release?", filters={"user_id": "u"}, top_k=10)
            (kept,) = [record async for record in memory.list(user_id="u")]
            history = await memory.history(kept.id)
            delta = await memory.delta("t", since=0, user_id="u")
            scores = [item.score for item in answer.items]
            items = [item.model_copy(update={"score": 0}) for item in answer.items]
            return scores, items, kept, history, delta

    asyncio.run(tell())
    assert converted(first, database.owner_url).code == 0
    assert converted(database.owner_url, last).code == 0
    (scores, *before), (scores_after, *after) = asyncio.run(ask(first)), asyncio.run(ask(last))
    assert before == after
    assert scores == pytest.approx(scores_after, abs=1e-3)  # time passes, and what is recent counts for less


# Again, and again


def test_a_run_that_was_interrupted_goes_on(server_side: Side, files: Files) -> None:
    source = files()
    fill(source, 9)

    def stop(table: str, done: int, _rows: int) -> None:
        if table == "memories" and done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TenantConversion(source, server_side, batch=2).run(stop)
    assert len(held(server_side)["memories"]) == 4
    resumed = TenantConversion(source, server_side, batch=2).run()
    assert (resumed.resumed, resumed.equal) == (True, True)
    assert {each.table: each.copied for each in resumed.tables}["memories"] == 5


def test_a_second_run_copies_nothing_and_compares_all(server_side: Side, files: Files) -> None:
    source = files()
    fill(source)
    assert TenantConversion(source, server_side).run().equal
    again = TenantConversion(source, server_side).run()
    assert (again.equal, again.resumed, sum(each.copied for each in again.tables)) == (True, True, 0)


def test_a_target_that_was_used_since_is_told_and_left_alone(server_side: Side, files: Files) -> None:
    source = files()
    fill(source)
    TenantConversion(source, server_side).run()
    with server_side.transaction() as connection:
        connection.execute(sa.update(tables.memories).values(content="changed"))
        connection.execute(sa.delete(tables.events))
    again = TenantConversion(source, server_side).run()
    assert {each.table for each in again.tables if not each.equal} == {"memories", "events"}
    assert held(server_side)["events"] == []


def test_a_target_with_data_of_its_own_is_refused(server_side: Side, files: Files) -> None:
    source, other = files(), files("other.db")
    fill(source)
    fill(other)
    with pytest.raises(StateConflict, match="holds data already"):
        TenantConversion(source, other).run()
    TenantConversion(source, server_side).run()
    with pytest.raises(StateConflict, match="another source"):
        TenantConversion(other, server_side).run()


# The command


def test_the_command_copies_and_tells(tmp_path: Path, files: Files, database: Database) -> None:
    fill(files())
    done = converted(tmp_path / "memory.db", database.owner_url).document
    assert (done["ok"], done["resumed"]) == (True, False)
    assert all(table["source"] == table["target"] for table in done["tables"])
    told = run("convert", "--from", str(tmp_path / "memory.db"), "--to", database.owner_url)
    assert told.code == 0
    assert "hold the same" in told.out

    with psycopg.connect(database.admin_url) as connection:
        connection.execute("SELECT set_config('memplane.tenant', 'default', false)")
        connection.execute("DELETE FROM events")
    differs = run("convert", "--from", str(tmp_path / "memory.db"), "--to", database.owner_url)
    assert differs.code == 1
    assert "DIFFERS" in differs.out


def test_a_tenant_is_chosen_on_the_side_of_postgresql(tmp_path: Path, files: Files, database: Database) -> None:
    fill(files())
    assert converted(tmp_path / "memory.db", database.owner_url, "--tenant", "acme").code == 0
    missing = converted(database.owner_url, tmp_path / "back.db")
    assert missing.code == 1
    assert "--tenant" in missing.err
    assert converted(database.owner_url, tmp_path / "back.db", "--tenant", "acme").code == 0
    assert held(files()) == held(files("back.db"))


@pytest.mark.parametrize(
    ("sides", "code", "told"),
    [
        (("{file}", "{folder}/other.db"), SettingsError.code, "memplane backup"),
        (("{url}", "{url}"), SettingsError.code, "pg_dump"),
        (("{folder}/absent.db", "{url}"), "unavailable", "no such file"),
        (("{folder}/text.db", "{url}"), "unavailable", "cannot be used as a database"),
        (("{url}", "{folder}/new.db"), RecordNotFound.code, "no tenant"),
    ],
)
def test_what_cannot_be_converted_is_told(
    tmp_path: Path, files: Files, database: Database, sides: tuple[str, str], code: str, told: str
) -> None:
    files()
    (tmp_path / "text.db").write_text("this is no database, but it is long enough to be looked at as one" * 20)
    named = {"file": tmp_path / "memory.db", "folder": tmp_path, "url": database.owner_url}
    result = converted(*(side.format(**named) for side in sides))
    assert result.code != 0
    assert result.document["error"]["code"] == code
    assert told in result.document["error"]["detail"]


def test_several_tenants_are_not_guessed_among(database: Database, tmp_path: Path) -> None:
    with psycopg.connect(database.admin_url) as connection:
        bound = connection.execute("SELECT NOT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
        if bound and bound[0]:
            pytest.skip("this administrator is bound by row-level security")
        for name in ("acme", "umbra"):
            connection.execute("INSERT INTO tenants VALUES (%s, now())", (name,))
    refused = converted(database.admin_url, tmp_path / "new.db")
    assert refused.document["error"]["code"] == NotSupported.code
    assert "acme, umbra" in refused.document["error"]["detail"]


@pytest.mark.parametrize(
    ("one", "other"), [({"a": 1.0, "b": 2}, {"b": 2, "a": 1}), (100000.0, 100000), ([1.5], (1.5,))]
)
def test_a_number_is_its_value(one: object, other: object) -> None:
    assert json.dumps(canonical(one), sort_keys=True) == json.dumps(canonical(other), sort_keys=True)
