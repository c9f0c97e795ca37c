"""A merge of users handles every table, or says why it leaves one alone."""

from memplane.adapters.sql.schema.tables import metadata
from memplane.adapters.sql.stores.user_merge_rows import HANDLED, LEFT


def test_every_table_is_handled_or_left_for_a_reason() -> None:
    tables = set(metadata.tables)
    assert tables - HANDLED - LEFT.keys() == set(), "a new table: say in user_merge_rows.py what a merge does with it"
    assert (HANDLED | LEFT.keys()) - tables == set()
    assert HANDLED & LEFT.keys() == set()


def test_no_table_that_names_a_user_is_left_unnoticed() -> None:
    names = {"user_id", "scope", "of_user", "into_user", "from_user", "users"}
    naming = {name for name, table in metadata.tables.items() if names & set(table.c.keys())}
    assert naming & LEFT.keys() == {"history", "api_keys", "erasures"}
