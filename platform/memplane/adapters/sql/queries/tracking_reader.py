"""Statistics and operational events, read through the scope predicate."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.rows import Row
from memplane.adapters.sql.scope import Predicate, Syntax, memories_in, turns_in
from memplane.application.operations.tracking import bounds
from memplane.application.operations.tracking_records import EventPageQuery, MemoryGroup, OnDemand, StoredEvent
from memplane.domain.memory.memory import first_id
from memplane.domain.memory.scope import Scope

_EVENT = ", ".join(f"e.{name}" for name in StoredEvent.__slots__)

# Served by ix_events_listed, or by pk_events where no user is named.
_EVERY_EVENT = "SELECT {columns} FROM events e WHERE {wanted} ORDER BY e.id DESC LIMIT {limit}"

# The same, and pk_memories for each.
_EVENTS = """
SELECT {columns} FROM events e
 WHERE {wanted} AND {named} AND (
       EXISTS (SELECT 1 FROM memories m WHERE {scope} AND m.id = e.memory_id)
       OR (e.memory_id IS NULL AND {unnamed}))
 ORDER BY e.id DESC LIMIT {limit}"""

# Served by ix_memories_user, or by pk_memories where no user is named; the newest so many in either case.
_GROUPS = """
SELECT g.state, g.layer, g.category, g.type, count(*) AS memories, sum(g.hits) AS hits,
       sum(CASE WHEN g.hits > 0 THEN 1 ELSE 0 END) AS hit, sum(g.access_count) AS accesses,
       min(g.recorded_at) AS recorded_at, {newer}
  FROM (SELECT CASE WHEN m.state = 'active' AND m.expires_at <= {moment} THEN 'expired' ELSE m.state END AS state,
               m.layer, m.category, m.type, m.hits, m.access_count, m.recorded_at
          FROM memories m WHERE {scope} ORDER BY m.id DESC LIMIT {limit}) AS g
 GROUP BY 1, 2, 3, 4"""

# Served by ix_turns_user, or by pk_turns where no user is named; those of the window in either case.
_USER_TURNS = """
SELECT count(*) AS turns FROM turns t
 WHERE {scope} AND t.role = 'user' AND t.id >= {first} AND t.recorded_at >= {since}"""

# Served by ix_events_recalled, uq_turns_tenant_id_user_id_thread_id_seq and pk_turns. When the turn was recorded is
# looked up for each, as one value: a planner may join all turns of the tenant otherwise.
_RECALLED = """
SELECT count(*) AS queries, count(asked.turn_id) AS placed,
       count(DISTINCT CASE WHEN (SELECT o.recorded_at FROM turns o
                                  WHERE o.tenant_id = {tenant} AND o.id = asked.turn_id) >= {since}
                           THEN asked.turn_id END) AS recalled
  FROM (SELECT (SELECT t.id FROM turns t
                 WHERE {scope} AND t.user_id = e.user_id AND t.thread_id = e.thread_id AND t.role = 'user'
                   AND t.recorded_at <= e.ts
                 ORDER BY t.seq DESC LIMIT 1) AS turn_id
          FROM events e
         WHERE {wanted} AND e.op = 'recall_on_demand' AND e.status = 'ok' AND e.ts >= {since}) AS asked"""


class SqlTrackingReader:
    """Runs the statements above within one look at a tenant."""

    def __init__(self, syntax: Syntax, rows: Callable[[Sequence[Statement]], Awaitable[list[list[Row]]]]) -> None:
        self._syntax = syntax
        self._rows = rows

    async def events(self, scope: Scope, query: EventPageQuery) -> list[StoredEvent]:
        """Events about what a scope covers, newest first; for who operates the tenant, all of it."""
        (rows,) = await self._rows([_events(scope, self._syntax, query)])
        return [StoredEvent(**row) for row in rows]

    async def memories(self, scope: Scope, limit: int) -> tuple[list[MemoryGroup], bool]:
        """Memories that the scope's permissions cover, in any state, in groups; and whether all were counted."""
        (rows,) = await self._rows([_groups(scope, self._syntax, limit)])
        found = [_group(row) for row in rows]
        return found, sum(each.memories for each in found) < limit

    async def on_demand(self, scope: Scope, since: datetime) -> OnDemand:
        """How often recall on demand was needed since a moment, of the turns in scope."""
        asked = [_user_turns(scope, self._syntax, since), _recalled(scope, self._syntax, since)]
        (turns,), (recalled,) = await self._rows([each for each in asked if each is not None])
        unplaced = recalled["queries"] - recalled["placed"]
        return OnDemand(since, turns["turns"], recalled["recalled"], recalled["queries"], unplaced)


def _events(scope: Scope, syntax: Syntax, query: EventPageQuery) -> Statement:
    """A page of events; of those without a memory only what no store could hide."""
    asked, wanted = _of_users(scope, syntax), query.filters
    asked.equal_if("e.thread_id", "e_thread", wanted.thread_id)
    asked.equal_if("e.node", "e_node", wanted.node)
    asked.equal_if("e.op", "e_op", wanted.op)
    asked.equal_if("e.status", "e_status", wanted.status)
    asked.equal_if("e.memory_id", "e_memory", wanted.memory_id)
    if wanted.since is not None:
        asked.compare("e.ts", ">=", "e_since", wanted.since)
    if wanted.until is not None:
        asked.compare("e.ts", "<", "e_until", wanted.until)
    if query.before is not None:
        asked.compare("e.id", "<", "before", query.before)
    limit = syntax.value("limit")
    if query.every:
        sql = _EVERY_EVENT.format(columns=_EVENT, wanted=asked.sql, limit=limit)
        return Statement(sql, asked.values | {"limit": query.limit})
    allowed = memories_in(scope.narrowed_to_permission(), syntax, any_state=True)
    named, unnamed = syntax.any_of("e.category", "categories"), "true" if query.stores else "false"
    sql = _EVENTS.format(columns=_EVENT, wanted=asked.sql, named=named, unnamed=unnamed, scope=allowed.sql, limit=limit)
    return Statement(sql, allowed.values | asked.values | {"limit": query.limit})


def _groups(scope: Scope, syntax: Syntax, limit: int) -> Statement:
    allowed = memories_in(scope, syntax, any_state=True)
    values: dict[str, object] = {"moment": scope.now, "limit": limit}
    newer: list[str] = []
    for place, bound in enumerate(bounds(scope.now)):
        values[f"bound_{place}"] = bound
        mark = syntax.value(f"bound_{place}")
        newer.append(f"sum(CASE WHEN g.recorded_at >= {mark} THEN 1 ELSE 0 END) AS newer_{place}")
    placeholders = {name: syntax.value(name) for name in ("moment", "limit")}
    sql = _GROUPS.format(scope=allowed.sql, newer=", ".join(newer), **placeholders)
    return Statement(sql, allowed.values | values)


def _group(row: Row) -> MemoryGroup:
    newer = tuple(int(row[name]) for name in sorted(name for name in row if name.startswith("newer_")))
    return MemoryGroup(
        state=row["state"],
        layer=row["layer"],
        category=row["category"],
        type=row["type"],
        memories=row["memories"],
        hits=int(row["hits"]),
        hit=int(row["hit"]),
        accesses=int(row["accesses"]),
        newer=newer,
        oldest=row["recorded_at"],
    )


def _user_turns(scope: Scope, syntax: Syntax, since: datetime) -> Statement | None:
    allowed = turns_in(scope, syntax)
    if allowed is None:
        return None
    placeholders = {name: syntax.value(name) for name in ("since", "first")}
    sql = _USER_TURNS.format(scope=allowed.sql, **placeholders)
    return Statement(sql, allowed.values | {"since": since, "first": first_id(since)})


def _recalled(scope: Scope, syntax: Syntax, since: datetime) -> Statement | None:
    allowed = turns_in(scope, syntax)
    if allowed is None:
        return None
    asked = _of_users(scope, syntax)
    placeholders = {name: syntax.value(name) for name in ("since", "tenant")}
    sql = _RECALLED.format(scope=allowed.sql, wanted=asked.sql, **placeholders)
    return Statement(sql, allowed.values | asked.values | {"since": since})


def _of_users(scope: Scope, syntax: Syntax) -> Predicate:
    """Events of the users that a scope covers; the values have the same names as those of the scope predicate."""
    asked = Predicate(syntax)
    asked.compare("e.tenant_id", "=", "tenant", scope.tenant)
    asked.equal_if("e.user_id", "user_id", scope.filters.user_id)
    if scope.users is not None:
        asked.one_of("e.user_id", "users", sorted(scope.users))
    return asked
