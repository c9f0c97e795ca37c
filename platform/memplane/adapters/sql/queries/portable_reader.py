"""What an export reads of one user: hand-written statements for both databases, each a page in the order of a key."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.rows import (
    MEMORY_COLUMNS,
    TURN_COLUMNS,
    Row,
    context_field_of,
    history_of,
    memory_of,
    turn_of,
)
from memplane.adapters.sql.scope import Predicate, Syntax, memories_in, turns_in
from memplane.application.records import ContextField
from memplane.application.transfer.portable_records import MemoryRelation, Mentioning, NamedEntity, Tombstone
from memplane.domain.memory.history import HistoryEntry
from memplane.domain.memory.memory import Turn
from memplane.domain.memory.scope import Scope

Rows = Callable[[Sequence[Statement]], Awaitable[list[list[Row]]]]

_TURN = ", ".join(f"t.{name}" for name in TURN_COLUMNS)
_MEMORY = ", ".join(f"m.{name}" for name in MEMORY_COLUMNS)
_FIELD = ", ".join(f"c.{name}" for name in ContextField.__slots__)

# Served by uq_turns_tenant_id_user_id_thread_id_seq.
_TURNS = "SELECT {columns} FROM turns t WHERE {scope} AND {page} ORDER BY t.thread_id, t.seq LIMIT {limit}"

# Served by ix_memories_user.
_MEMORIES = "SELECT {columns} FROM memories m WHERE {scope} AND {page} ORDER BY m.id LIMIT {limit}"

# Served by pk_memory_entities and pk_entities, for memories that the statement above has found.
_MENTIONS = """
SELECT me.memory_id, e.kind, e.name FROM memory_entities me JOIN entities e
    ON e.tenant_id = me.tenant_id AND e.id = me.entity_id
 WHERE me.tenant_id = {tenant} AND {ids} ORDER BY me.memory_id, e.kind, e.name_key"""

# Served by ix_history_memory, for records that a scoped statement has found.
_HISTORIES = """
SELECT h.* FROM history h WHERE h.tenant_id = {tenant} AND {ids} AND {page} ORDER BY h.memory_id, h.id LIMIT {limit}"""

# Served by uq_relations_tenant_id_from_id_to_id_relation_type and pk_memories.
_RELATIONS = """
SELECT r.from_id, r.to_id, r.relation_type, r.strength, r.co_recalls, r.created_at, r.updated_at
  FROM relations r CROSS JOIN memories m
 WHERE r.tenant_id = {tenant} AND {ids} AND m.id = r.to_id AND {scope}
 ORDER BY r.from_id, r.to_id, r.relation_type"""

# Served by uq_entities_tenant_id_user_id_kind_name_key, ix_memory_entities_entity and pk_memories.
_ENTITIES = """
SELECT e.id, e.kind, e.name, e.name_key, e.created_at FROM entities e
 WHERE e.tenant_id = {tenant} AND e.user_id = {of_user} AND {page}
   AND EXISTS (SELECT 1 FROM memory_entities me CROSS JOIN memories m
                WHERE me.tenant_id = e.tenant_id AND me.entity_id = e.id AND m.id = me.memory_id AND {scope})
 ORDER BY e.kind, e.name_key LIMIT {limit}"""

# Served by uq_entity_aliases_tenant_id_entity_id_alias_key.
_ALIASES = "SELECT a.entity_id, a.alias FROM entity_aliases a WHERE a.tenant_id = {tenant} AND {ids} ORDER BY a.id"

# Served by pk_user_context and pk_memories.
_FIELDS = """
SELECT {columns} FROM user_context c CROSS JOIN memories m
 WHERE c.tenant_id = {tenant} AND c.user_id = {of_user} AND {page} AND m.id = c.memory_id AND {scope}
 ORDER BY c.field, c.value_hash LIMIT {limit}"""

# Served by uq_tombstones_tenant_id_scope_category_value_hash.
_TOMBSTONES = """
SELECT b.category, b.value_hash, b.reason, b.actor, b.ts FROM tombstones b
 WHERE b.tenant_id = {tenant} AND b.scope = {of_user} AND {categories} AND {page}
 ORDER BY b.category, b.value_hash LIMIT {limit}"""


class SqlPortableReader:
    """Pages of one user's records, within one transaction; see ``PortableReader``."""

    def __init__(self, syntax: Syntax, rows: Rows) -> None:
        self._syntax = syntax
        self._rows_of = rows

    async def _rows(self, statement: Statement) -> list[Row]:
        (rows,) = await self._rows_of([statement])
        return rows

    async def turns(self, scope: Scope, after: Turn | None, limit: int) -> list[Turn]:
        """Turns, thread by thread; none where no turn is in scope."""
        allowed = turns_in(scope, self._syntax)
        if allowed is None:
            return []
        page = _after(allowed, ("t.thread_id", "t.seq"), (after.thread_id, after.seq) if after else None)
        return [turn_of(row) for row in await self._rows(_filled(_TURNS, allowed, page, limit, columns=_TURN))]

    async def memories(self, scope: Scope, after: UUID | None, limit: int) -> list[Mentioning]:
        """Memories, oldest first, with the entities that they mention."""
        allowed = memories_in(scope, self._syntax, any_state=True)
        page = _after(allowed, ("m.id",), (after,) if after else None)
        found = [memory_of(row) for row in await self._rows(_filled(_MEMORIES, allowed, page, limit, columns=_MEMORY))]
        if not found:
            return []
        mentioned = self._of(scope, _MENTIONS, "me.memory_id", [each.id for each in found])
        named: dict[UUID, list[tuple[str, str]]] = {}
        for row in await self._rows(mentioned):
            named.setdefault(row["memory_id"], []).append((row["kind"], row["name"]))
        return [Mentioning(each, tuple(named.get(each.id, ()))) for each in found]

    async def memory_ids(self, scope: Scope, after: UUID | None, limit: int) -> list[UUID]:
        """Ids of memories, oldest first."""
        allowed = memories_in(scope, self._syntax, any_state=True)
        page = _after(allowed, ("m.id",), (after,) if after else None)
        return [row["id"] for row in await self._rows(_filled(_MEMORIES, allowed, page, limit, columns="m.id"))]

    async def histories(
        self, scope: Scope, ids: Sequence[UUID], after: HistoryEntry | None, limit: int
    ) -> list[HistoryEntry]:
        """What was done to memories or proposals that were found in scope, record by record, oldest first."""
        asked = self._ids(scope, ids)
        page = _after(asked, ("h.memory_id", "h.id"), (after.memory_id, after.id) if after else None)
        listed = self._syntax.any_of("h.memory_id", "ids")
        return [history_of(row) for row in await self._rows(_filled(_HISTORIES, asked, page, limit, ids=listed))]

    async def relations(self, scope: Scope, ids: Sequence[UUID]) -> list[MemoryRelation]:
        """Relations that lead out of memories that were found in scope, to others in scope."""
        allowed = memories_in(scope, self._syntax, any_state=True)
        allowed.values["ids"] = list(ids)
        statement = _filled(_RELATIONS, allowed, "", 0, ids=self._syntax.any_of("r.from_id", "ids"))
        return [MemoryRelation(**row) for row in await self._rows(statement)]

    async def entities(self, scope: Scope, after: NamedEntity | None, limit: int) -> list[NamedEntity]:
        """Entities that memories in scope mention, by kind and name."""
        allowed = memories_in(scope, self._syntax, any_state=True)
        allowed.values["of_user"] = scope.filters.user_id
        page = _after(allowed, ("e.kind", "e.name_key"), (after.kind, after.key) if after else None)
        found = await self._rows(_filled(_ENTITIES, allowed, page, limit))
        named: dict[UUID, list[str]] = {}
        if found:
            for row in await self._rows(self._of(scope, _ALIASES, "a.entity_id", [row["id"] for row in found])):
                named.setdefault(row["entity_id"], []).append(row["alias"])
        return [
            NamedEntity(
                row["id"], row["kind"], row["name"], row["name_key"], row["created_at"], tuple(named.get(row["id"], ()))
            )
            for row in found
        ]

    async def fields(self, scope: Scope, after: ContextField | None, limit: int) -> list[ContextField]:
        """Decided fields of the profile whose memories are in scope, by name."""
        allowed = memories_in(scope, self._syntax, any_state=True)
        allowed.values["of_user"] = scope.filters.user_id
        page = _after(allowed, ("c.field", "c.value_hash"), (after.field, after.value_hash) if after else None)
        return [
            context_field_of(row) for row in await self._rows(_filled(_FIELDS, allowed, page, limit, columns=_FIELD))
        ]

    async def tombstones(
        self, scope: Scope, categories: Sequence[str], after: Tombstone | None, limit: int
    ) -> list[Tombstone]:
        """Buried values of the scope's user, of some categories."""
        asked = Predicate(self._syntax, values={"tenant": scope.tenant, "of_user": scope.filters.user_id})
        asked.values["graves"] = list(categories)
        page = _after(asked, ("b.category", "b.value_hash"), (after.category, after.value_hash) if after else None)
        of = self._syntax.any_of("b.category", "graves")
        return [Tombstone(**row) for row in await self._rows(_filled(_TOMBSTONES, asked, page, limit, categories=of))]

    def _ids(self, scope: Scope, ids: Sequence[UUID]) -> Predicate:
        return Predicate(self._syntax, values={"tenant": scope.tenant, "ids": list(ids)})

    def _of(self, scope: Scope, template: str, column: str, ids: Sequence[UUID]) -> Statement:
        """Rows that belong to records that a scoped statement has found."""
        return _filled(template, self._ids(scope, ids), "", 0, ids=self._syntax.any_of(column, "ids"))


def _after(allowed: Predicate, columns: Sequence[str], values: Sequence[Any] | None) -> str:
    """The condition of what comes after a record, in the order of a key."""
    if values is None:
        return "true"
    names = [f"after_{place}" for place in range(len(columns))]
    allowed.values |= dict(zip(names, values, strict=True))
    marks = ", ".join(allowed.syntax.value(name) for name in names)
    return f"({', '.join(columns)}) > ({marks})"


def _filled(template: str, allowed: Predicate, page: str, limit: int, **parts: str) -> Statement:
    """A template with its scope, its page, and the database's placeholders."""
    marks = {name: allowed.syntax.value(name) for name in ("tenant", "of_user", "limit")}
    sql = template.format(scope=allowed.sql, page=page, **marks, **parts)
    values = allowed.values | ({"limit": limit} if "{limit}" in template else {})
    return Statement(sql, values)
