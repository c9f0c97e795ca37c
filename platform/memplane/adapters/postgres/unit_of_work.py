"""The stores of a PostgreSQL transaction, and how they look around a new memory in one exchange."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine.interfaces import Compiled

from memplane.adapters.postgres.erasures import PostgresChain, PostgresErasures, PostgresJournal
from memplane.adapters.postgres.packed_units import UNIT_BYTES, unpack
from memplane.adapters.postgres.search import scan_statements, sources_of
from memplane.adapters.postgres.session import PostgresSession
from memplane.adapters.sql.queries import write_statements
from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.rows import memory_of
from memplane.adapters.sql.scope import Syntax
from memplane.adapters.sql.stores.gateway_stores import wanted_names
from memplane.adapters.sql.stores.memory_stores import place_of
from memplane.adapters.sql.unit_of_work import DialectOps, SqlUnitOfWork
from memplane.application.limits.offload import offload
from memplane.application.recall.search_material import Query
from memplane.application.records import KnownName, LookupResult, WriteLookup

_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call] # SQLAlchemy's own gap

# Aliases are served by ix_entity_aliases_key, names by uq_entities_tenant_id_user_id_kind_name_key.
_KNOWN = """
SELECT e.id, a.alias_key AS key, e.kind, true AS alias FROM entity_aliases a JOIN entities e
    ON e.tenant_id = a.tenant_id AND e.id = a.entity_id
 WHERE a.tenant_id = %(tenant_id)s AND a.alias_key = ANY(%(keys)s) AND e.user_id = %(user_id)s
 UNION ALL
SELECT e.id, e.name_key, e.kind, false FROM entities e
 WHERE e.tenant_id = %(tenant_id)s AND e.user_id = %(user_id)s AND e.kind = ANY(%(kinds)s)
   AND e.name_key = ANY(%(keys)s)"""


class PostgresUnitOfWork(SqlUnitOfWork):
    """The stores of one open transaction."""

    def __init__(self, session: PostgresSession, syntax: Syntax, ways: DialectOps) -> None:
        super().__init__(session, syntax, ways)
        self.journal = PostgresJournal(session)
        self.erasures = PostgresErasures(session)
        self.chain = PostgresChain(session)
        self._together = session

    async def look(self, look: WriteLookup) -> LookupResult:
        """What stands around a new memory."""
        memory, in_force = look.memory, self.in_force
        query = Query(look.material.terms, (), look.material.vector(in_force.model))
        place = {"tenant_id": self._tenant} | place_of(memory)
        buried = {"tenant_id": self._tenant, "scope": memory.user_id, "category": memory.category}
        taken = _as_statement(write_statements.is_taken(memory), place)
        asked = {
            "buried": _as_statement(write_statements.BURIED, buried),
            "there": _as_statement(write_statements.same(memory), place),
            "last": _as_statement(
                write_statements.LAST_RECORDED, {"tenant_id": self._tenant, "user_id": memory.user_id}
            ),
            "near": _unless(scan_statements(sources_of(look.scope), query, in_force.column)[0], taken),
        }
        if look.mentions:
            asked["known"] = Statement(_KNOWN, wanted_names(self._tenant, memory.user_id, look.mentions))
        if memory.external_id is not None:
            asked["past"] = _as_statement(write_statements.PAST_OF_NAME, place)
        rows = dict(zip(asked, await self._together.rows_of_all(list(asked.values())), strict=True))
        there, past = ([memory_of(row) for row in rows.get(name, ())] for name in ("there", "past"))
        seen = LookupResult(
            buried=frozenset(row["value_hash"] for row in rows["buried"]),
            there=next(iter(there), None),
            past=None if there else next(iter(past), None),
            near=(),
            known=tuple(KnownName(**row) for row in rows.get("known", ())),
            last=next((row["recorded_at"] for row in rows["last"]), None),
        )
        if seen.there is not None or seen.past is not None:
            return seen
        (scanned,) = rows["near"]
        units, terms = scanned["units"] or b"", scanned["terms"] or b""
        found = await offload(len(units) // UNIT_BYTES, unpack, units, terms, query)
        return replace(seen, near=tuple(await self.found.nearest_of(look.scope, found, look.limit)))


def _unless(scan: Statement, taken: Statement) -> Statement:
    """A scan that is not begun where another statement finds something."""
    return Statement(f"{scan.sql}\n   AND NOT EXISTS ({taken.sql})", {**taken.values, **scan.values})


@lru_cache
def _compiled(statement: sa.SelectBase) -> Compiled:
    return statement.compile(dialect=_DIALECT)


def _as_statement(statement: sa.SelectBase, values: Mapping[str, object]) -> Statement:
    """A prepared statement as the driver takes it."""
    compiled = _compiled(statement)
    return Statement(compiled.string, {**compiled.params, **values})
