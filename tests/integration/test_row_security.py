"""Row-level security: what the database itself shows and accepts, whatever a statement asks for."""

from collections.abc import Iterator
from uuid import UUID, uuid5

import psycopg
import pytest
import sqlalchemy as sa

from memplane.adapters.postgres.rate_buckets import PASSING
from memplane.adapters.postgres.tenant_removal import OPERATOR
from memplane.adapters.sql.schema.tables import APPEND_ONLY, metadata
from support.cluster import Cluster, Database, Databases
from support.filling import insert

TABLES = [*metadata.sorted_tables, *PASSING.sorted_tables]
TENANTS = ("a", "b")
ROWS = 2  # of each tenant in each table
OWNED = {"tombstones": "scope"} | dict.fromkeys(
    (
        "memories", "turns", "thread_revision", "change_log", "entities", "events", "consent_proposals", "checkpoints",
        "checkpoint_blobs", "checkpoint_writes", "supervisor_checkpoints", "user_context", "context_signals",
        "sessions", "pair_checks", "token_budgets", "job_users", "user_activity", "unit_removals",
        "undo_records", "user_settings", "user_usage",
    ),
    "user_id",
)  # fmt: skip
BELONGING = {"history", "memory_entities", "memory_sources", "relations", "entity_aliases"}
COUNTED = {"user_usage"}
"""Tables of which triggers make a row for each user."""
UNTENANTED = {"alembic_version": "the schema's revision: one row for all, which the application may only read"}
READ_ONLY = {table.name for table in OPERATOR.sorted_tables}
"""Tables of tenants that the schema's owner alone writes."""
NAMED = {table.name: table for table in TABLES}
by_name = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)


def identity(tenant: str, kind: str, number: int) -> str:
    return f"'{uuid5(UUID(int=0), f'{tenant} {kind} {number}')}'"


def row(table: sa.Table, tenant: str, number: int, **given: str) -> str:
    """An INSERT of one of a tenant's rows, which refers to other rows of the tenant alone."""
    columns = ("user_id", "from_user", "into_user", "scope", "thread_id", "key_id", "name", "value_hash")
    names = dict.fromkeys(columns, f"'{tenant}{number}'")
    expressions = names | {
        "tenant_id": f"'{tenant}'",
        "id": identity(tenant, table.name, number),
        "memory_id": identity(tenant, "memories", number),
        "from_id": identity(tenant, "memories", number),
        "to_id": identity(tenant, "memories", 1 - number),
        "entity_id": identity(tenant, "entities", number),
        "merge_id": identity(tenant, "user_merges", number),
        "position": str(number),
    }
    there = " ON CONFLICT DO NOTHING" if table.name in COUNTED else ""
    return f"{insert(table, **(expressions | given))}{there}"


@pytest.fixture(scope="module")
def filled(databases: Databases) -> Iterator[Database]:
    """A database with two rows of each tenant in every table; tests roll back what they do."""
    made = databases.create()
    with psycopg.connect(made.admin_url) as connection:
        for table in TABLES:
            for tenant in TENANTS:
                # a tenant has one row in the table of tenants
                for number in range(1 if table.name == "tenants" else ROWS):
                    connection.execute(row(table, tenant, number))
    yield made
    databases.drop(made)


@pytest.fixture
def app(filled: Database) -> Iterator[psycopg.Connection]:
    """The application's role, in no transaction."""
    with psycopg.connect(filled.url, autocommit=True) as connection:
        yield connection


def name_tenant(connection: psycopg.Connection, tenant: str) -> None:
    connection.execute("SELECT set_config('memplane.tenant', %s, true)", (tenant,))


def run_as(connection: psycopg.Connection, tenant: str, *statements: str) -> None:
    """Run statements in a transaction of a tenant, and take it back."""
    with connection.transaction(force_rollback=True):
        name_tenant(connection, tenant)
        for statement in statements:
            connection.execute(statement)


def tenants_seen(connection: psycopg.Connection, table: sa.Table) -> list[str]:
    return [tenant for (tenant,) in connection.execute(f"SELECT tenant_id FROM {table.name}").fetchall()]


def rows_of(table: sa.Table) -> int:
    return 1 if table.name == "tenants" else ROWS


@by_name
def test_a_caller_who_named_no_tenant_sees_nothing(app: psycopg.Connection, table: sa.Table) -> None:
    assert tenants_seen(app, table) == []


@by_name
def test_a_caller_sees_the_tenant_that_its_transaction_named(app: psycopg.Connection, table: sa.Table) -> None:
    for tenant in TENANTS:
        with app.transaction():
            name_tenant(app, tenant)
            assert tenants_seen(app, table) == [tenant] * rows_of(table)
    with app.transaction():
        name_tenant(app, "c")
        assert tenants_seen(app, table) == []


@by_name
def test_after_a_commit_the_next_transaction_sees_nothing(app: psycopg.Connection, table: sa.Table) -> None:
    with app.transaction():
        name_tenant(app, "a")
    assert tenants_seen(app, table) == []


@by_name
def test_after_an_error_the_next_transaction_sees_nothing(app: psycopg.Connection, table: sa.Table) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero):
        run_as(app, "a", "SELECT 1 / 0")
    assert tenants_seen(app, table) == []


@by_name
def test_the_owner_is_bound_too(filled: Database, table: sa.Table) -> None:
    with psycopg.connect(filled.owner_url) as connection:
        assert tenants_seen(connection, table) == []
        name_tenant(connection, "a")
        assert tenants_seen(connection, table) == ["a"] * rows_of(table)


@by_name
@pytest.mark.breaks
def test_without_row_security_everything_would_be_seen(filled: Database, table: sa.Table) -> None:
    with psycopg.connect(filled.owner_url) as connection:
        connection.execute(f"ALTER TABLE {table.name} DISABLE ROW LEVEL SECURITY")
        assert sorted(tenants_seen(connection, table)) == sorted(TENANTS * rows_of(table))
        connection.rollback()


@by_name
def test_a_row_of_another_tenant_cannot_be_written(app: psycopg.Connection, table: sa.Table) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        run_as(app, "a", row(table, "c", 0))


@pytest.mark.parametrize("table", [t for t in TABLES if t.name not in APPEND_ONLY], ids=lambda table: table.name)
def test_a_row_cannot_be_moved_to_another_tenant_nor_taken_from_one(app: psycopg.Connection, table: sa.Table) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        run_as(app, "a", f"UPDATE {table.name} SET tenant_id = 'b'")
    with app.transaction(force_rollback=True):
        name_tenant(app, "a")
        assert app.execute(f"UPDATE {table.name} SET tenant_id = 'a' WHERE tenant_id = 'b'").rowcount == 0
        assert app.execute(f"DELETE FROM {table.name} WHERE tenant_id = 'b'").rowcount == 0


FOREIGN_KEYS = [
    pytest.param(key, id=str(key.name))
    for table in TABLES
    for key in sorted(table.foreign_key_constraints, key=lambda key: str(key.name))
    if len(key.columns) > 1
]


@pytest.mark.parametrize("key", FOREIGN_KEYS)
def test_a_foreign_key_accepts_its_own_tenant_s_rows_alone(
    app: psycopg.Connection, key: sa.ForeignKeyConstraint
) -> None:
    def refer(tenant: str) -> tuple[str, ...]:
        """Add a row of tenant a that refers to a row of a tenant."""
        number = 1 if "to_id" in key.columns else 0  # a relation has two ends
        there = dict.fromkeys(("user_id", "thread_id", "key_id"), f"'{tenant}{number}'")
        there["id"] = identity(tenant, key.referred_table.name, number)
        given = {pair.parent.name: there[pair.column.name] for pair in key.elements if pair.parent.name != "tenant_id"}
        if key.table.name in APPEND_ONLY:  # nothing makes room: the row is one more
            return (row(key.table, "a", 0, **given | {"id": "gen_random_uuid()"}),)
        return f"DELETE FROM {key.table.name}", row(key.table, "a", 0, **given)

    run_as(app, "a", *refer("a"))
    with pytest.raises(psycopg.errors.ForeignKeyViolation, match=str(key.name)):
        run_as(app, "a", *refer("b"))


MERGES = ("user_merge_rows", "user_merges")
"""Tables that name two users each, directly or by their merge."""
OF_USERS = [table for table in TABLES if table.name in {*OWNED, *BELONGING}]
of_users = pytest.mark.parametrize("table", OF_USERS, ids=lambda table: table.name)


def name_users(connection: psycopg.Connection, *users: str) -> None:
    connection.execute("SELECT set_config('memplane.users', %s::text[]::text, true)", (list(users),))


@of_users
def test_a_bound_caller_sees_its_users_rows_alone(app: psycopg.Connection, table: sa.Table) -> None:
    def seen(*users: str) -> int:
        with app.transaction():
            name_tenant(app, "a")
            name_users(app, *users)
            return len(tenants_seen(app, table))

    whole = 1 if table.name != "relations" else 0  # a relation has two ends, here of two users
    assert [seen("a0"), seen("a1"), seen("a0", "a1"), seen("b0"), seen("a")] == [whole, whole, ROWS, 0, 0]
    with app.transaction():
        name_tenant(app, "a")
        assert len(tenants_seen(app, table)) == ROWS  # the next transaction is bound no more


@of_users
def test_a_bound_caller_changes_nothing_of_other_users(app: psycopg.Connection, table: sa.Table) -> None:
    if table.name in APPEND_ONLY:
        return
    with app.transaction(force_rollback=True):
        name_tenant(app, "a")
        name_users(app, "a7")
        assert app.execute(f"UPDATE {table.name} SET tenant_id = 'a'").rowcount == 0
        assert app.execute(f"DELETE FROM {table.name}").rowcount == 0
        name_users(app, "a0", "a1")
        assert app.execute(f"UPDATE {table.name} SET tenant_id = 'a'").rowcount == ROWS  # its own can be changed


@pytest.mark.parametrize("name", sorted(OWNED))
def test_a_bound_caller_writes_no_row_of_another_user(app: psycopg.Connection, name: str) -> None:
    another = {"thread_id": "'another'"} if name == "thread_revision" else {}  # turns refer to those that are there

    def add(user: str) -> None:
        with app.transaction(force_rollback=True):
            name_tenant(app, "a")
            name_users(app, "a0")
            if not another:
                app.execute(f"DELETE FROM {name}")
            new = row(NAMED[name], "a", 0, **{OWNED[name]: f"'{user}'"} | another)
            app.execute(new)

    add("a0")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        add("a1")


def test_a_bound_caller_sees_its_own_answers_alone(app: psycopg.Connection) -> None:
    def seen(caller: str, *users: str) -> int:
        with app.transaction():
            name_tenant(app, "a")
            if users:
                name_users(app, *users)
            app.execute("SELECT set_config('memplane.caller', %s, true)", (caller,))
            return len(tenants_seen(app, metadata.tables["idempotency_keys"]))

    assert [seen("a0", "a0"), seen("", "a0"), seen("b0", "a0"), seen("a0")] == [1, 0, 0, ROWS]


@pytest.mark.parametrize("name", MERGES)
def test_a_bound_caller_sees_the_merges_from_and_into_its_users_alone(app: psycopg.Connection, name: str) -> None:
    def seen(*users: str) -> int:
        with app.transaction(force_rollback=True):
            name_tenant(app, "a")
            app.execute("UPDATE user_merges SET into_user = 'known' WHERE from_user = 'a0'")
            name_users(app, *users)
            return len(tenants_seen(app, metadata.tables[name]))

    assert [seen("a0"), seen("known"), seen("a1"), seen("a0", "a1"), seen("a7")] == [1, 1, 1, ROWS, 0]


def test_a_name_is_no_pattern_and_no_list(app: psycopg.Connection) -> None:
    for name in ("a0,a1", "{a0,a1}", "a%", '"a0"', "a_", "A0", "a0 "):
        with app.transaction():
            name_tenant(app, "a")
            name_users(app, name)
            assert tenants_seen(app, metadata.tables["memories"]) == [], name


def test_every_table_that_knows_users_is_bound_to_them() -> None:
    owned = {table.name for table in TABLES if "user_id" in table.c} | {"tombstones"}
    belonging = {
        key.table.name
        for table in TABLES
        for key in table.foreign_key_constraints
        if key.referred_table.name in {"memories", "entities"}
    } | {"history"}  # which outlives its memory
    assert (set(OWNED), set(BELONGING)) == (owned, belonging)
    assert {table.name for table in TABLES} - owned - belonging == {
        "tenants", "api_keys", "key_history", "idempotency_keys", "job_runs", "metadata", "alembic_version",
        "rate_limits", "erasures", "history_seals", *MERGES,
    } - set(UNTENANTED)  # fmt: skip


def test_there_is_nothing_that_runs_with_another_s_rights(database: Database) -> None:
    """No view, and triggers that run as their caller: whatever is read is read by the policies.

    Three functions of the history run as its owner, bound by the policies too; `tests/integration/test_history_rights`
    shows how little each can do.
    """
    ours = (
        """SELECT p.proname::text, p.prosecdef FROM pg_proc p WHERE pronamespace = 'public'::regnamespace
            AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')""",
        """SELECT DISTINCT p.proname::text FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
            WHERE NOT t.tgisinternal AND p.pronamespace = 'public'::regnamespace""",
        "SELECT 1 FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('v', 'm')",
    )
    found, triggered, views = (sorted(catalogue(database, query)) for query in ours)
    assert found == [
        ("history_erased", True), ("history_purged", True), ("history_sealed", True),
        ("memories_added_counted", False), ("memories_changed_counted", False), ("memories_moved_counted", False),
        ("memories_removed_counted", False), ("sources_noted", False), ("tenant_refused", False),
        ("tenant_usage", False), ("turns_added_counted", False), ("turns_moved_counted", False),
        ("turns_removed_counted", False), ("unit_changed", False), ("units_removed", False),
    ]  # fmt: skip
    assert triggered == [
        ("memories_added_counted",), ("memories_changed_counted",), ("memories_moved_counted",),
        ("memories_removed_counted",), ("sources_noted",), ("turns_added_counted",), ("turns_moved_counted",),
        ("turns_removed_counted",), ("unit_changed",), ("units_removed",),
    ]  # fmt: skip
    assert views == []


def test_a_key_is_visible_to_the_caller_who_names_it_and_no_other(app: psycopg.Connection) -> None:
    def seen(key_id: str) -> list[tuple[str, str]]:
        with app.transaction():
            app.execute("SELECT set_config('memplane.key', %s, true)", (key_id,))
            return app.execute("SELECT tenant_id, key_id FROM api_keys").fetchall()

    assert seen("a0") == [("a", "a0")]
    assert seen("b1") == [("b", "b1")]
    assert seen("c0") == seen("") == seen("%") == []
    assert app.execute("SELECT 1 FROM api_keys").fetchall() == []


def test_naming_a_key_shows_nothing_else_and_lets_nothing_be_changed(app: psycopg.Connection) -> None:
    with app.transaction(force_rollback=True):
        app.execute("SELECT set_config('memplane.key', 'a0', true)")
        assert {table.name for table in TABLES if tenants_seen(app, table)} == {"api_keys"}
        assert app.execute("UPDATE api_keys SET trust = 'full'").rowcount == 0
        assert app.execute("DELETE FROM api_keys").rowcount == 0
        name_tenant(app, "a")
        assert app.execute("UPDATE api_keys SET trust = 'full'").rowcount == ROWS  # the tenant's own can


def catalogue(database: Database, query: str, **values: object) -> list[tuple[object, ...]]:
    with psycopg.connect(database.admin_url) as connection:
        return connection.execute(query, values).fetchall()


def test_every_table_forces_row_security_on_everybody(database: Database) -> None:
    secured = catalogue(
        database,
        "SELECT relname::text, relrowsecurity, relforcerowsecurity FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'f')",
    )
    flags = {name: (enabled, forced) for name, enabled, forced in secured if name not in UNTENANTED}
    assert flags == dict.fromkeys([*(table.name for table in TABLES), *READ_ONLY], (True, True))


def test_every_table_has_the_tenant_s_policy_and_no_wider_one(database: Database) -> None:
    policies = catalogue(
        database,
        "SELECT tablename::text, policyname::text, cmd, qual, with_check, permissive, roles::text[] FROM pg_policies"
        " WHERE schemaname = 'public'",
    )
    tenant = "((tenant_id)::text = NULLIF(current_setting('memplane.tenant'::text, true), ''::text))"
    key = "((key_id)::text = NULLIF(current_setting('memplane.key'::text, true), ''::text))"
    expected = {(name, "tenant_isolation", "ALL", tenant) for name in [*(table.name for table in TABLES), *READ_ONLY]}
    wider = {policy[:4] for policy in policies if policy[5] == "PERMISSIVE"}
    listing = "(current_setting('memplane.listing'::text, true) = 'tenants'::text)"
    lookups = {("api_keys", "key_lookup", "SELECT", key)}
    lookups |= {(name, "tenant_listing", "SELECT", listing) for name in ("tenants", "tenant_removals")}
    assert wider == expected | lookups
    narrower = [policy for policy in policies if policy[5] == "RESTRICTIVE"]
    by_command = {
        (name, f"user_{command.lower()}", command) for name in BELONGING for command in ("SELECT", "UPDATE", "DELETE")
    }
    whole = {(name, "user_isolation", "ALL") for name in OWNED} | {("idempotency_keys", "caller_isolation", "ALL")}
    whole |= {(name, "user_isolation", "ALL") for name in MERGES}
    assert {policy[:3] for policy in narrower} == by_command | whole
    assert all("memplane.users" in str(policy[3]) for policy in narrower)
    assert {policy[4] for policy in policies} == {None}


def test_the_application_s_rights_are_the_least_that_it_needs(database: Database, cluster: Cluster) -> None:
    rights: dict[object, set[object]] = {}
    for name, right in catalogue(
        database,
        "SELECT table_name::text, privilege_type::text FROM information_schema.role_table_grants"
        " WHERE table_schema = 'public' AND grantee IN (%(role)s, 'PUBLIC')",
        role=cluster.app_role,
    ):
        rights.setdefault(name, set()).add(right)
    grow, change = {"SELECT", "INSERT"}, {"SELECT", "INSERT", "UPDATE", "DELETE"}
    expected = {name: grow if name in APPEND_ONLY else change for name in (table.name for table in TABLES)}
    assert rights == expected | {name: {"SELECT"} for name in (*UNTENANTED, *READ_ONLY)}


def test_a_removal_is_seen_by_its_tenant_and_changed_by_none(database: Database) -> None:
    with psycopg.connect(database.admin_url) as admin:
        for tenant in TENANTS:
            admin.execute(insert(OPERATOR.tables["tenant_removals"], tenant_id=f"'{tenant}'"))
    with psycopg.connect(database.url) as app:
        name_tenant(app, "a")
        assert app.execute("SELECT tenant_id FROM tenant_removals").fetchall() == [("a",)]
        for change in ("DELETE FROM tenant_removals", "UPDATE tenant_removals SET actor = 'x'"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), app.transaction():
                app.execute(change)


def test_the_application_s_role_is_nobody_special(database: Database, cluster: Cluster) -> None:
    powers = catalogue(
        database,
        "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication,"
        " EXISTS (SELECT 1 FROM pg_class WHERE relowner = r.oid),"
        " has_schema_privilege(r.oid, 'public', 'CREATE') FROM pg_roles r WHERE rolname = %(role)s",
        role=cluster.app_role,
    )
    assert powers == [(False,) * 7]
    member = catalogue(
        database, "SELECT 1 FROM pg_auth_members WHERE member = %(role)s::regrole", role=cluster.app_role
    )
    assert member == []


@pytest.mark.parametrize("change", ["UPDATE history SET actor = 'x'", "DELETE FROM history", "TRUNCATE history"])
def test_history_can_only_grow(app: psycopg.Connection, change: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
        run_as(app, "a", change)
    with app.transaction(force_rollback=True):
        name_tenant(app, "a")
        app.execute(row(metadata.tables["history"], "a", 7))  # adding is allowed
        assert app.execute("UPDATE events SET op = 'x'").rowcount == ROWS  # and another table can be changed
