"""The read statements, hand-written, next to each other, for both databases.

Every statement carries the scope predicate; the comment above it names the index that serves it. What finds candidates
for a query is each database's own.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from memplane.adapters.sql.rows import MEMORY_COLUMNS, TURN_COLUMNS
from memplane.adapters.sql.scope import Predicate, Syntax, memories_in, turns_in
from memplane.application.operations.tracking_records import TurnSpan
from memplane.application.records import ContextField, EntityQuery, ProposalQuery, TombstoneQuery
from memplane.domain.consent.consent_rules import ProposalState
from memplane.domain.memory.items import PREFIX
from memplane.domain.memory.memory import SHARED
from memplane.domain.memory.scope import Scope

_MEMORY = ", ".join(f"m.{name}" for name in MEMORY_COLUMNS)
_TURN = ", ".join(f"t.{name}" for name in TURN_COLUMNS)

# Ids are ordered by time. Served by ix_memories_user and ix_turns_user, or pk_memories and pk_turns for a whole tenant.
_NEWEST = """
SELECT {table}_ids.id FROM (
SELECT u.id FROM {table} u WHERE {scope} ORDER BY u.id {order} LIMIT {limit}) AS {table}_ids"""

# Served by pk_memories.
_MEMORIES_BY_ID = "SELECT {columns} FROM {listed} WHERE {scope} AND {ids}"

# Served by pk_turns.
_TURNS_BY_ID = "SELECT {columns} FROM {listed} WHERE {scope} AND {ids}"

# Served by uq_turns_tenant_id_user_id_thread_id_seq.
_WINDOW = "SELECT {columns} FROM turns t WHERE {scope} ORDER BY t.seq DESC LIMIT {limit}"

# Served by uq_turns_tenant_id_user_id_thread_id_seq.
_TURNS_OF = "SELECT {columns} FROM turns t WHERE {scope} AND {span} ORDER BY t.seq {order} LIMIT {limit}"

# Served by ix_memories_user, or by pk_memories where no user is named.
_PAGE = "SELECT {columns} FROM memories m WHERE {scope} AND {page} ORDER BY m.id DESC LIMIT {limit}"

# Served by ix_entities_name, ix_entity_aliases_key and ix_memory_entities_entity.
_MENTIONING = """
SELECT {packed} AS ids FROM memory_entities me
 WHERE me.tenant_id = {tenant} AND me.entity_id IN (
        SELECT e.id FROM entities e WHERE {owner} AND {named}
        UNION SELECT a.entity_id FROM entity_aliases a
                JOIN entities e ON e.tenant_id = a.tenant_id AND e.id = a.entity_id
         WHERE a.tenant_id = {tenant} AND {owner} AND {aliased})"""

# Served by uq_memories_external: a state that is bound would not show that the index covers it.
_NAMED = "SELECT {columns} FROM memories m WHERE {scope} AND m.state = 'active' AND {names}"
_ITEMS = """
SELECT m.id, m.user_id, m.category, m.external_id, CAST(m.attributes -> 'namespace' AS text) AS labels,
       m.attributes ->> 'key' AS key
  FROM memories m
 WHERE {scope} AND m.state = 'active' AND m.external_id IS NOT NULL AND substr(m.external_id, 1, {length}) = {prefix}
 ORDER BY m.id"""

# Served by uq_relations_tenant_id_from_id_to_id_relation_type and ix_relations_to.
_EDGES = """
SELECT edge.via, edge.id, edge.strength
  FROM (SELECT f.from_id AS via, f.to_id AS id, f.strength FROM relations f WHERE f.tenant_id = {tenant} AND {from_ids}
        UNION ALL
        SELECT o.to_id, o.from_id, o.strength FROM relations o WHERE o.tenant_id = {tenant} AND {to_ids}) AS edge
 ORDER BY edge.strength DESC, edge.id DESC LIMIT {limit}"""

# Served by uq_relations_tenant_id_from_id_to_id_relation_type, ix_relations_to and pk_memories.
_RELATED = """
SELECT edge.via, edge.strength, {columns}
  FROM (SELECT f.from_id AS via, f.to_id AS id, f.strength FROM relations f WHERE f.tenant_id = {tenant} AND {from_ids}
        UNION ALL
        SELECT o.to_id, o.from_id, o.strength FROM relations o WHERE o.tenant_id = {tenant} AND {to_ids}) AS edge
  CROSS JOIN memories m
 WHERE {scope} AND m.id = edge.id AND edge.strength > 0 AND edge.strength >= {least} AND NOT {ids}
 ORDER BY edge.strength DESC, m.id DESC LIMIT {limit}"""

# Of a tenant: served by ix_relations_conflicts and pk_memories.
_CONFLICTS = """
SELECT r.id, r.from_id, r.to_id, r.created_at AS noted_at FROM relations r CROSS JOIN memories m CROSS JOIN memories o
 WHERE r.tenant_id = {tenant} AND r.relation_type = 'possible_conflict' AND {page}
   AND m.id = r.from_id AND {scope} AND o.id = r.to_id AND {other} ORDER BY r.id DESC LIMIT {limit}"""

# Of users: served by ix_memories_scope or ix_memories_user, then, as the next, by
# uq_relations_tenant_id_from_id_to_id_relation_type, ix_relations_to and pk_memories. The kind is compared as an
# expression: else a planner may walk the tenant's index of open conflicts, however few of them are the user's.
_CONFLICTS_OF_USERS = """
SELECT r.id, r.from_id, r.to_id, r.created_at AS noted_at FROM memories m CROSS JOIN relations r CROSS JOIN memories o
 WHERE {scope} AND r.tenant_id = {tenant} AND r.from_id = m.id AND r.relation_type || '' = 'possible_conflict'
   AND {page} AND o.id = r.to_id AND {other} ORDER BY r.id DESC LIMIT {limit}"""
_CONFLICTS_OF_MEMORIES = """
SELECT r.id, r.from_id, r.to_id, r.created_at AS noted_at
  FROM (SELECT f.* FROM relations f WHERE f.tenant_id = {tenant} AND {from_ids}
         UNION
        SELECT t.* FROM relations t WHERE t.tenant_id = {tenant} AND {to_ids}) AS r
  CROSS JOIN memories m CROSS JOIN memories o
 WHERE r.relation_type || '' = 'possible_conflict' AND {page}
   AND m.id = r.from_id AND {scope} AND o.id = r.to_id AND {other} ORDER BY r.id DESC LIMIT {limit}"""

# Of some users: served by uq_tombstones_tenant_id_scope_category_value_hash and ix_tombstones_verdict. What they have
# is taken first: else a planner may walk the tenant's verdicts, however few of them are the users'.
_VERDICTS_OF_USERS = """
WITH v AS MATERIALIZED (
    SELECT v.verdict_id, v.category FROM tombstones v WHERE {wanted})
SELECT b.verdict_id AS id, b.scope, b.reason, b.actor, b.ts, b.subject_id, b.category, count(*) AS number
  FROM (SELECT v.verdict_id FROM v WHERE v.verdict_id IS NOT NULL AND {page}
         GROUP BY v.verdict_id HAVING min(CASE WHEN {places} THEN 1 ELSE 0 END) = 1
         ORDER BY v.verdict_id DESC LIMIT {limit}) AS p
  JOIN tombstones b ON b.tenant_id = {tenant} AND b.verdict_id = p.verdict_id
 GROUP BY b.verdict_id, b.scope, b.reason, b.actor, b.ts, b.subject_id, b.category
 ORDER BY b.verdict_id DESC, b.category"""

# Of a tenant: served by ix_tombstones_verdict.
_VERDICTS = """
SELECT b.verdict_id AS id, b.scope, b.reason, b.actor, b.ts, b.subject_id, b.category, count(*) AS number
  FROM (SELECT v.verdict_id FROM tombstones v
         WHERE {wanted} AND v.verdict_id IS NOT NULL AND {page}
         GROUP BY v.verdict_id HAVING min(CASE WHEN {places} THEN 1 ELSE 0 END) = 1
         ORDER BY v.verdict_id DESC LIMIT {limit}) AS p
  JOIN tombstones b ON b.tenant_id = {tenant} AND b.verdict_id = p.verdict_id
 GROUP BY b.verdict_id, b.scope, b.reason, b.actor, b.ts, b.subject_id, b.category
 ORDER BY b.verdict_id DESC, b.category"""

# Served by ix_tombstones_verdict.
_ERASED_VALUES = """
SELECT v.id, v.scope, v.reason, v.actor, v.ts, v.subject_id, v.category, 1 AS number FROM tombstones v
 WHERE {wanted} AND v.verdict_id IS NULL AND {places} AND {page} ORDER BY v.id DESC LIMIT {limit}"""

# Served by ix_thread_revision_thread.
_THREAD_USERS = """
SELECT r.user_id FROM thread_revision r WHERE {users} AND r.thread_id = {thread_id} ORDER BY r.user_id LIMIT 2"""

# Served by pk_thread_revision.
_REVISION = """
SELECT r.rev, r.pruned_rev FROM thread_revision r
 WHERE r.tenant_id = {tenant} AND r.user_id = {user_id} AND r.thread_id = {thread_id}"""

# Served by uq_change_log_tenant_id_user_id_thread_id_rev and pk_memories.
_CHANGES = """
SELECT c.rev, c.event, c.memory_id, m.category, coalesce(m.title, m.content) AS summary, m.importance, c.ts
  FROM change_log c CROSS JOIN memories m
 WHERE c.tenant_id = {tenant} AND c.user_id = {user_id} AND c.thread_id = {thread_id} AND c.rev > {since}
   AND c.event <> 'turn' AND m.id = c.memory_id AND m.user_id = c.user_id AND {scope}
   AND (m.expires_at IS NULL OR m.expires_at > {now} OR c.event IN ('deleted', 'soft_deleted'))
 ORDER BY c.rev DESC LIMIT {limit}"""

# Served by uq_change_log_tenant_id_user_id_thread_id_rev and pk_memories.
_CHANGED_MEMORIES = """
SELECT c.rev, CASE WHEN f.created = 1 AND c.event = 'updated' THEN 'created' ELSE c.event END AS event, c.memory_id,
       m.category, coalesce(m.title, m.content) AS summary, m.importance, c.ts, count(*) OVER () AS total
  FROM (SELECT l.memory_id, max(l.rev) AS rev, max(CASE WHEN l.event = 'created' THEN 1 ELSE 0 END) AS created
          FROM change_log l
         WHERE l.tenant_id = {tenant} AND l.user_id = {user_id} AND l.thread_id = {thread_id} AND l.rev > {since}
           AND l.event <> 'turn'
         GROUP BY l.memory_id) AS f
       CROSS JOIN change_log c CROSS JOIN memories m
 WHERE c.tenant_id = {tenant} AND c.user_id = {user_id} AND c.thread_id = {thread_id} AND c.rev = f.rev
   AND c.memory_id = f.memory_id AND m.id = f.memory_id AND m.user_id = c.user_id AND {scope}
   AND (m.expires_at IS NULL OR m.expires_at > {now} OR c.event IN ('deleted', 'soft_deleted'))
   AND NOT (f.created = 1 AND c.event IN ('deleted', 'soft_deleted', 'archived'))
 ORDER BY m.importance DESC, c.rev DESC LIMIT {limit}"""

# Served by ix_history_memory and pk_memories.
_CHANGED_AFTER = """
SELECT h.* FROM history h CROSS JOIN memories m
 WHERE h.tenant_id = {tenant} AND {ids} AND h.ts > {moment} AND m.id = h.memory_id AND {scope}
 ORDER BY h.id"""

# Served by uq_entities_tenant_id_user_id_kind_name_key or pk_entities, ix_memory_entities_entity and pk_memories.
_ENTITIES = """
SELECT found.* FROM (
SELECT e.id, e.user_id, e.kind, e.name,
       (SELECT count(*) FROM memory_entities me CROSS JOIN memories m
         WHERE me.tenant_id = e.tenant_id AND me.entity_id = e.id AND m.id = me.memory_id AND {scope}) AS memories
  FROM entities e WHERE e.tenant_id = {tenant} AND {wanted}) AS found
 WHERE found.memories > 0 ORDER BY found.memories DESC, found.name, found.id LIMIT {limit}"""

_ALIASED = (
    "EXISTS (SELECT 1 FROM entity_aliases a WHERE a.tenant_id = e.tenant_id AND a.entity_id = e.id"
    " AND a.alias_key = {key})"
)

# Of one entity: served by ix_memory_entities_entity, pk_memories, pk_memory_entities and pk_entities.
_MENTIONS_OF = """
SELECT {columns} FROM memory_entities me CROSS JOIN memories m
 WHERE me.tenant_id = {tenant} AND me.entity_id = {entity} AND m.id = me.memory_id AND {scope} AND {page}
 ORDER BY m.id DESC LIMIT {limit}"""
_LAST_MENTION = """
SELECT max(coalesce(m.asserted_at, m.recorded_at)) AS recorded_at FROM memory_entities me CROSS JOIN memories m
 WHERE me.tenant_id = {tenant} AND me.entity_id = {entity} AND m.id = me.memory_id AND {scope}"""
_MENTIONED_WITH = """
SELECT e.id, e.kind, e.name, count(*) AS memories
  FROM memory_entities me CROSS JOIN memories m CROSS JOIN memory_entities o CROSS JOIN entities e
 WHERE me.tenant_id = {tenant} AND me.entity_id = {entity} AND m.id = me.memory_id AND {scope}
   AND o.tenant_id = {tenant} AND o.memory_id = m.id AND o.entity_id <> {entity}
   AND e.tenant_id = {tenant} AND e.id = o.entity_id
 GROUP BY e.id, e.kind, e.name ORDER BY count(*) DESC, e.name, e.id LIMIT {most}"""

# Served by uq_entity_aliases_tenant_id_entity_id_alias_key.
_ALIASES = """
SELECT a.entity_id, a.alias FROM entity_aliases a WHERE a.tenant_id = {tenant} AND {ids} ORDER BY a.id"""

# Served by pk_memories and ix_history_memory.
_WHOLE = "SELECT {columns} FROM memories m WHERE {scope} AND m.id = {memory_id}"
_SEEN = "SELECT 1 AS seen FROM memories m WHERE {scope} AND m.id = {memory_id}"
_HISTORY = """
SELECT h.* FROM history h
 WHERE h.tenant_id = {tenant} AND h.memory_id = {memory_id} AND {page} ORDER BY h.id DESC LIMIT {limit}"""

# Served by ix_consent_proposals_user, or by pk_consent_proposals where no user is named.
_PROPOSALS = """
SELECT p.* FROM consent_proposals p WHERE {wanted} AND {page} ORDER BY p.id DESC LIMIT {limit}"""

# Served by pk_user_context and pk_memories.
_CONTEXT = """
SELECT {fields} FROM user_context c CROSS JOIN memories m
 WHERE c.tenant_id = {tenant} AND c.user_id = {of_user} AND m.id = c.memory_id AND {scope}
 ORDER BY c.field, c.decided_at DESC, c.value_hash LIMIT {limit}"""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement and the values bound in it."""

    sql: str
    values: dict[str, object]


_MERGED_INTO = (
    "SELECT into_user FROM user_merges WHERE tenant_id = {tenant} AND from_user = {user} AND undone_at IS NULL"
)


def merged_into(tenant: str, syntax: Syntax, user_id: str) -> Statement:
    """Whom a user was merged into; served by uq_user_merges_from."""
    marks = {"tenant": syntax.value("tenant"), "user": syntax.value("user")}
    return Statement(_MERGED_INTO.format(**marks), {"tenant": tenant, "user": user_id})


def time_zones(tenant: str, syntax: Syntax, users: Collection[str]) -> Statement:
    """The time zones that some users set; served by pk_user_settings."""
    named = syntax.any_of("s.user_id", "users")
    sql = (
        "SELECT s.user_id, s.time_zone FROM user_settings s"  # noqa: S608 - our own names
        f" WHERE s.tenant_id = {syntax.value('tenant')} AND {named} AND s.time_zone IS NOT NULL"
    )
    return Statement(sql, {"tenant": tenant, "users": sorted(users)})


def _filled(template: str, allowed: Predicate, values: dict[str, object], **parts: str) -> Statement:
    """A template with its scope, and every value's name replaced by the database's placeholder."""
    placeholders = {name: allowed.syntax.value(name) for name in values}
    sql = template.format(scope=allowed.sql, tenant=allowed.syntax.value("tenant"), **placeholders, **parts)
    return Statement(sql, allowed.values | values)


def newest(scope: Scope, syntax: Syntax, limit: int, until: UUID | None = None) -> Statement:
    """Ids of the newest memories and turns in scope, or of those that are no newer than a given one."""
    return _by_time(scope, syntax, limit, "DESC", None if until is None else ("<=", until))


def oldest(scope: Scope, syntax: Syntax, limit: int, since: UUID) -> Statement:
    """Ids of the memories and turns in scope that are newer than a given one, oldest first."""
    return _by_time(scope, syntax, limit, "ASC", (">", since))


def _by_time(scope: Scope, syntax: Syntax, limit: int, order: str, bound: tuple[str, UUID] | None) -> Statement:
    parts: list[str] = []
    values: dict[str, object] = {"limit": limit}
    for table, allowed in (("memories", memories_in(scope, syntax, "u")), ("turns", turns_in(scope, syntax, "u"))):
        if allowed is not None:
            if bound is not None:
                allowed.compare("u.id", bound[0], "anchor", bound[1])
            parts.append(_NEWEST.format(table=table, scope=allowed.sql, order=order, limit=syntax.value("limit")))
            values |= allowed.values
    return Statement(" UNION ALL".join(parts) + f" ORDER BY 1 {order} LIMIT {syntax.value('limit')}", values)


def changed_after(scope: Scope, syntax: Syntax, ids: Sequence[UUID], moment: datetime) -> Statement:
    """What was done to memories after a moment, the first change of each first."""
    allowed = memories_in(
        replace(scope.narrowed_to_permission(), believed_at=None, true_at=None), syntax, any_state=True
    )
    allowed.values["ids"] = list(ids)
    return _filled(_CHANGED_AFTER, allowed, {"moment": moment}, ids=syntax.any_of("h.memory_id", "ids"))


def memories_by_id(scope: Scope, syntax: Syntax, ids: Sequence[UUID]) -> Statement:
    """Memories in scope by their ids."""
    allowed = memories_in(scope, syntax)
    allowed.values["ids"] = list(ids)
    listed, condition = syntax.rows_by_ids("memories", "m", "ids")
    return _filled(_MEMORIES_BY_ID, allowed, {}, columns=_MEMORY, listed=listed, ids=condition)


def turns_by_id(scope: Scope, syntax: Syntax, ids: Sequence[UUID]) -> Statement | None:
    """Turns in scope by their ids, or ``None`` when no turn is in scope."""
    allowed = turns_in(scope, syntax)
    if allowed is None:
        return None
    allowed.values["ids"] = list(ids)
    listed, condition = syntax.rows_by_ids("turns", "t", "ids")
    return _filled(_TURNS_BY_ID, allowed, {}, columns=_TURN, listed=listed, ids=condition)


def units_by_id(scope: Scope, syntax: Syntax, ids: Sequence[UUID]) -> list[Statement]:
    """Memories in scope by their ids, and turns where they are in scope."""
    spoken = turns_by_id(scope, syntax, ids)
    known = memories_by_id(scope, syntax, ids)
    return [known] if spoken is None else [known, spoken]


def window(scope: Scope, syntax: Syntax, thread_id: str, limit: int) -> Statement | None:
    """The last turns of a thread, the newest first, or ``None`` when no turn is in scope."""
    allowed = turns_in(replace(scope, filters=replace(scope.filters, thread_id=thread_id)), syntax)
    return None if allowed is None else _filled(_WINDOW, allowed, {"limit": limit}, columns=_TURN)


def turns_of(scope: Scope, syntax: Syntax, thread_id: str, span: TurnSpan, limit: int) -> Statement | None:
    """A page of a thread's turns, or ``None`` when no turn is in scope."""
    allowed = turns_in(replace(scope, filters=replace(scope.filters, thread_id=thread_id)), syntax)
    if allowed is None:
        return None
    asked = Predicate(syntax)
    if span.before is not None:
        asked.compare("t.seq", "<", "before", span.before)
    if span.after is not None:
        asked.compare("t.seq", ">", "after", span.after)
    allowed.values |= asked.values
    order = "DESC" if span.after is None else "ASC"
    return _filled(_TURNS_OF, allowed, {"limit": limit}, columns=_TURN, span=asked.sql or "true", order=order)


def page_of_memories(scope: Scope, syntax: Syntax, before: UUID | None, limit: int) -> Statement:
    """A page of memories in scope, newest first."""
    allowed = memories_in(scope, syntax)
    page = _page("m.id", allowed, before)
    return _filled(_PAGE, allowed, {"limit": limit}, columns=_MEMORY, page=page)


def memories_by_name(scope: Scope, syntax: Syntax, names: Sequence[str]) -> Statement:
    """Memories in scope by the caller's own names for them."""
    allowed = memories_in(scope, syntax)
    allowed.values["names"] = list(names)
    return _filled(_NAMED, allowed, {}, columns=_MEMORY, names=syntax.any_of("m.external_id", "names"))


def items(scope: Scope, syntax: Syntax, labels: Sequence[str]) -> Statement:
    """Where the items of a store in scope stand, whose namespace begins with some labels; oldest first."""
    allowed = memories_in(scope, syntax)
    for place, label in enumerate(labels):
        allowed.compare(f"m.attributes -> 'namespace' ->> {place:d}", "=", f"label_{place:d}", label)
    return _filled(_ITEMS, allowed, {"prefix": PREFIX}, length=str(len(PREFIX)))


def related_memories(scope: Scope, syntax: Syntax, ids: Sequence[UUID], limit: int, least: float) -> Statement:
    """Memories in scope that a relation of at least some strength links to the given ones."""
    allowed = memories_in(scope, syntax)
    allowed.values["ids"] = list(ids)
    ends = {"from_ids": syntax.any_of("f.from_id", "ids"), "to_ids": syntax.any_of("o.to_id", "ids")}
    bound: dict[str, object] = {"limit": limit, "least": least}
    return _filled(_RELATED, allowed, bound, columns=_MEMORY, ids=syntax.any_of("m.id", "ids"), **ends)


def conflicts(scope: Scope, syntax: Syntax, ids: Sequence[UUID] | None, before: UUID | None, limit: int) -> Statement:
    """A page of possible conflicts of which both memories are in scope, newest first; of some memories, or of all."""
    allowed, other = memories_in(scope, syntax), memories_in(scope, syntax, "o")
    parts = {"page": _page("r.id", allowed, before), "other": other.sql}
    if ids is not None:
        allowed.values["ids"] = list(ids)
        ends = {"from_ids": syntax.any_of("f.from_id", "ids"), "to_ids": syntax.any_of("t.to_id", "ids")}
        return _filled(_CONFLICTS_OF_MEMORIES, allowed, {"limit": limit}, **ends, **parts)
    named = scope.filters.user_id is not None or scope.users is not None
    return _filled(_CONFLICTS_OF_USERS if named else _CONFLICTS, allowed, {"limit": limit}, **parts)


def edges(tenant: str, syntax: Syntax, ids: Sequence[UUID], limit: int) -> Statement:
    """The strongest relations of the given memories, to others in whatever scope.

    Only for memories that a scoped statement has found, and who asks looks whether the others are in scope.
    """
    asked = Predicate(syntax, values={"tenant": tenant, "ids": list(ids)})
    ends = {"from_ids": syntax.any_of("f.from_id", "ids"), "to_ids": syntax.any_of("o.to_id", "ids")}
    return _filled(_EDGES, asked, {"limit": limit}, **ends)


def mentioning(scope: Scope, syntax: Syntax, names: Sequence[str]) -> Statement:
    """Packed ids of memories that mention entities with one of these names, once for each; in whatever scope they are.

    Only for units that a scoped statement has found.
    """
    owner = Predicate(syntax)
    owner.compare("e.tenant_id", "=", "tenant", scope.tenant)
    owner.equal_if("e.user_id", "user_id", scope.filters.user_id)
    if scope.users is not None:
        owner.one_of("e.user_id", "users", sorted(scope.users))
    owner.values["names"] = list(names)
    named = {"named": syntax.any_of("e.name_key", "names"), "aliased": syntax.any_of("a.alias_key", "names")}
    return _filled(_MENTIONING, owner, {}, owner=owner.sql, packed=syntax.pack_ids("me.memory_id"), **named)


def entities(scope: Scope, syntax: Syntax, wanted: EntityQuery, limit: int) -> Statement:
    """Entities that memories in scope mention, with how many do."""
    allowed = memories_in(scope, syntax)
    asked = Predicate(syntax)
    asked.equal_if("e.user_id", "user_id", scope.filters.user_id)
    if scope.users is not None:
        # the memories decide: of nobody's they are those of the shared categories alone
        asked.one_of("e.user_id", "e_users", sorted(scope.users | ({SHARED} if scope.shared else set())))
    asked.equal_if("e.kind", "e_kind", wanted.kind)
    if wanted.ids is not None:
        asked.one_of("e.id", "e_ids", list(wanted.ids))
    if wanted.key is not None:
        key = syntax.value("e_key")
        asked.conditions.append(f"(e.name_key = {key} OR {_ALIASED.format(key=key)})")
        asked.values["e_key"] = wanted.key
    allowed.values |= asked.values
    return _filled(_ENTITIES, allowed, {"limit": limit}, wanted=asked.sql or "true")


def profile(
    scope: Scope, syntax: Syntax, entity: UUID, before: UUID | None, limits: tuple[int, int]
) -> list[Statement]:
    """Of an entity: a page of the memories in scope that mention it, the last mention, and whom they mention besides.

    ``limits`` are the most memories and the most other entities.
    """
    made: list[Statement] = []
    for template in (_MENTIONS_OF, _LAST_MENTION, _MENTIONED_WITH):
        allowed = memories_in(scope, syntax)
        values: dict[str, object] = {"entity": entity}
        parts: dict[str, str] = {}
        if template is _MENTIONS_OF:
            values["limit"] = limits[0]
            parts = {"columns": _MEMORY, "page": _page("m.id", allowed, before)}
        elif template is _MENTIONED_WITH:
            values["most"] = limits[1]
        made.append(_filled(template, allowed, values, **parts))
    return made


def aliases(tenant: str, syntax: Syntax, ids: Sequence[UUID]) -> Statement:
    """Other names of entities that :func:`entities` found."""
    asked = Predicate(syntax, values={"tenant": tenant, "ids": list(ids)})
    return _filled(_ALIASES, asked, {}, ids=syntax.any_of("a.entity_id", "ids"))


def thread_users(scope: Scope, syntax: Syntax, thread_id: str) -> Statement:
    """At most two users in the scope's tenant and user list that have a thread of this name."""
    allowed = Predicate(syntax)
    allowed.compare("r.tenant_id", "=", "tenant", scope.tenant)
    if scope.users is not None:
        allowed.one_of("r.user_id", "users", sorted(scope.users))
    return _filled(_THREAD_USERS, allowed, {"thread_id": thread_id}, users=allowed.sql)


def revision(scope: Scope, syntax: Syntax, user_id: str, thread_id: str) -> Statement:
    """A thread's revision, and the last one whose change was pruned."""
    tenant = Predicate(syntax, values={"tenant": scope.tenant})
    return _filled(_REVISION, tenant, {"user_id": user_id, "thread_id": thread_id})


def changes(
    scope: Scope, syntax: Syntax, thread: tuple[str, str], since: int, limit: int, *, folded: bool = False
) -> Statement:
    """The last changes of memories in a thread, given as (user, thread id), after a revision.

    Folded, the latest change of each memory, the most important ones first, and how many memories there are.
    """
    allowed = memories_in(scope.narrowed_to_permission(), syntax, any_state=True)
    place = {"user_id": thread[0], "thread_id": thread[1]}
    values: dict[str, object] = {**place, "since": since, "limit": limit, "now": scope.now}
    return _filled(_CHANGED_MEMORIES if folded else _CHANGES, allowed, values)


def is_visible(scope: Scope, syntax: Syntax, memory_id: UUID) -> Statement:
    """Whether a memory is in scope, in any state."""
    return _filled(_SEEN, memories_in(scope, syntax, any_state=True), {"memory_id": memory_id})


def whole(scope: Scope, syntax: Syntax, memory_id: UUID) -> Statement:
    """A memory in scope, in any state."""
    allowed = memories_in(scope, syntax, any_state=True)
    return _filled(_WHOLE, allowed, {"memory_id": memory_id}, columns=_MEMORY)


def history(scope: Scope, syntax: Syntax, memory_id: UUID, before: UUID | None, limit: int) -> Statement:
    """A page of a memory's history, newest first; ask :func:`is_visible` before."""
    wanted = Predicate(syntax, values={"tenant": scope.tenant})
    page = _page("h.id", wanted, before)
    return _filled(_HISTORY, wanted, {"memory_id": memory_id, "limit": limit}, page=page)


def proposals(wanted: ProposalQuery, syntax: Syntax, before: UUID | None, limit: int) -> Statement:
    """A page of proposals, newest first."""
    asked = Predicate(syntax, values={"tenant": wanted.tenant, "now": wanted.now})
    asked.compare("p.tenant_id", "=", "tenant", wanted.tenant)
    asked.equal_if("p.user_id", "user_id", wanted.user_id)
    if wanted.users is not None:
        asked.one_of("p.user_id", "users", sorted(wanted.users))
    asked.one_of("p.category", "categories", list(wanted.categories))
    asked.equal_if("p.field", "field", wanted.field)
    if wanted.ids is not None:
        asked.one_of("p.id", "ids", list(wanted.ids))
    if wanted.state is not None:
        lapsed = wanted.state is ProposalState.EXPIRED
        asked.compare("p.state", "=", "state", (ProposalState.PENDING if lapsed else wanted.state).value)
        if wanted.state in {ProposalState.EXPIRED, ProposalState.PENDING}:
            asked.compare("p.expires_at", "<=" if lapsed else ">", "now", wanted.now)
    page = _page("p.id", asked, before)
    return _filled(_PROPOSALS, asked, {"limit": limit}, wanted=asked.sql, page=page)


def verdicts(wanted: TombstoneQuery, syntax: Syntax, before: UUID | None, limit: int) -> Statement:
    """A page of verdicts with what each of them buried, or of single values that erasures left; newest first."""
    asked = Predicate(syntax, values={"tenant": wanted.tenant})
    asked.compare("v.tenant_id", "=", "tenant", wanted.tenant)
    if wanted.scopes is not None:
        asked.one_of("v.scope", "scopes", sorted(wanted.scopes))
    column = "v.id" if wanted.erased else "v.verdict_id"
    if wanted.ids is not None:
        asked.one_of(column, "ids", list(wanted.ids))
    asked.values["places"] = list(wanted.places)
    page, places = _page(column, asked, before), syntax.any_of("v.category", "places")
    template = _VERDICTS if wanted.scopes is None else _VERDICTS_OF_USERS
    template = _ERASED_VALUES if wanted.erased else template
    return _filled(template, asked, {"limit": limit}, wanted=asked.sql, page=page, places=places)


def context(scope: Scope, syntax: Syntax, limit: int) -> Statement:
    """The decided fields of the scope's user, as far as the memories that hold them are in scope."""
    allowed = memories_in(scope, syntax)
    fields = ", ".join(f"c.{name}" for name in ContextField.__slots__)
    return _filled(_CONTEXT, allowed, {"of_user": scope.filters.user_id, "limit": limit}, fields=fields)


def _page(column: str, allowed: Predicate, before: UUID | None) -> str:
    if before is None:
        return "true"
    allowed.values["before"] = before
    return f"{column} < {allowed.syntax.value('before')}"
