"""How PostgreSQL writes the few things that statements for both databases need."""

from collections.abc import Mapping


class PostgresSyntax:
    """How PostgreSQL writes the scope predicate; ``mark`` is how a driver marks a parameter's place."""

    def __init__(self, mark: str) -> None:
        self._mark = mark

    def value(self, name: str) -> str:
        """A bound value."""
        return self._mark.format(name)

    def any_of(self, column: str, name: str) -> str:
        """The column's value is one of a bound list."""
        return f"{column} = ANY({self.value(name)})"

    def holds_all(self, column: str, name: str) -> str:
        """The list column holds every item of a bound list."""
        return f"{column} @> CAST({self.value(name)} AS text[])"

    def rows_by_ids(self, table: str, alias: str, name: str) -> tuple[str, str]:
        """Rows of a table by a bound list of ids."""
        return f"{table} {alias}", self.any_of(f"{alias}.id", name)

    def pack_ids(self, column: str) -> str:
        """All ids of a column as one value."""
        return f"string_agg(uuid_send({column}), ''::bytea)"

    def bind_values(self, values: Mapping[str, object]) -> dict[str, object]:
        """Values as psycopg takes them: as they are."""
        return dict(values)

    def json(self, name: str) -> str:
        """A bound JSON document."""
        return f"CAST({self.value(name)} AS jsonb)"

    def members(self, column: str, member: str) -> str:
        """The members of an object in a JSON column."""
        return f"jsonb_each_text({column} -> '{member}') AS e (key, value)"

    @property
    def shared_lock(self) -> str:
        """Held by many at once, and by nobody beside who holds it alone."""
        return f"SELECT count(pg_advisory_xact_lock_shared(hashtextextended({self.value('name')}, 0))) AS locked"

    @property
    def for_update(self) -> str:
        """Locks the rows that are selected."""
        return "FOR UPDATE"


SYNTAX = PostgresSyntax("%({})s")
"""For statements that go to psycopg."""
TEXT_SYNTAX = PostgresSyntax(":{}")
"""For conditions inside SQLAlchemy's text."""
