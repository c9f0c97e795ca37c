"""What is remembered of scopes between questions, and how it is kept right under writes.

Reading a scope's material costs as much as all of its rows; asking what changed since costs one look at an index.
Every row of ``memories`` and ``turns`` says in which transaction it was last changed. What was read under a snapshot is
right for all transactions below that snapshot's horizon (its ``xmin``), so the next question reads what was changed at
or above it: some of that it has already, and putting it in place again does no harm. Snapshots of one server follow one
another (``xmin`` and ``xmax`` only grow, and between equal ones transactions only end), so it is known which of two is
the older: a question that reads by an older one than what is remembered leaves it alone and scans.

Rows that were removed are told by ``unit_removals``, those of whoever was erased under the name ''; what expires ends
what is remembered. Scopes with further filters than a user are scanned for each question.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from memplane.adapters.postgres.packed_units import UnitMaterial
from memplane.adapters.postgres.syntax import SYNTAX
from memplane.adapters.sql.queries.material import Material
from memplane.adapters.sql.queries.read_statements import Statement, mentioning
from memplane.adapters.sql.queries.units import Units, measure, part_of
from memplane.adapters.sql.scope import Predicate
from memplane.adapters.sql.session import SqlSession
from memplane.application.jobs.vector_records import Kind
from memplane.application.recall.search_material import Candidates, Query
from memplane.domain.memory.scope import Filters, Scope
from memplane.domain.ranking.embedding_models import Column, EmbeddingModel, InForce

Key = tuple[object, ...]
Held = tuple[Column, EmbeddingModel | None]
AT_REST = InForce()
MOST_UNITS = 300_000
"""Units of a scope beyond which it is not remembered: a value of PostgreSQL has its limits."""
_TOUCHED = 4_096
_SLACK = 4_096
_EPOCH = 0  # removals empty the whole scope, not its material

# Served by ix_memories_changed, ix_turns_changed and pk_unit_removals: a look at the end of each index.
HORIZON = """
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS horizon,
       pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next,
       (SELECT count(*) FROM pg_snapshot_xip(pg_current_snapshot())) AS running,
       (SELECT max(u.changed_in) FROM memories u WHERE u.tenant_id = %(tenant)s AND u.user_id = %(user_id)s
           AND u.changed_in < pg_snapshot_xmax(pg_current_snapshot())::text::bigint) AS memories,
       (SELECT max(u.changed_in) FROM turns u WHERE u.tenant_id = %(tenant)s AND u.user_id = %(user_id)s
           AND u.changed_in < pg_snapshot_xmax(pg_current_snapshot())::text::bigint) AS turns,
       (SELECT max(r.removed_in) FROM unit_removals r
         WHERE r.tenant_id = %(tenant)s AND r.user_id IN (%(user_id)s, '')) AS removed{named}"""

# Served by the same indexes. Names what may have left the scope: it is taken out, and put back if it is still in scope.
CHANGED = """
SELECT string_agg(uuid_send(u.id), ''::bytea) AS ids FROM {table} u
 WHERE u.tenant_id = %(tenant)s AND u.user_id = %(user_id)s AND u.changed_in >= %(since)s
   AND u.changed_in < %(next)s"""

# Served by pk_memories and pk_turns. Says that units changed in this transaction, as a trigger does with a new version.
_FRESHEN = """
UPDATE {table} SET changed_in = pg_current_xact_id()::text::bigint WHERE tenant_id = :tenant AND id = ANY(:ids)"""


# Served by pk_unit_removals.
_REREAD = sa.text(
    "INSERT INTO unit_removals (tenant_id, user_id, removed_in)"
    " VALUES (:tenant, :user, pg_current_xact_id()::text::bigint)"
    " ON CONFLICT (tenant_id, user_id) DO UPDATE SET removed_in = excluded.removed_in"
)


async def freshen(session: SqlSession, kind: Kind, ids: Sequence[UUID]) -> None:
    """Have what is remembered of units read anew, whatever their version."""
    statement = sa.text(_FRESHEN.format(table=kind)).bindparams(sa.bindparam("ids", type_=ARRAY(sa.Uuid())))
    await session.execute(statement, {"tenant": session.tenant, "ids": list(ids)})


async def reread(session: SqlSession, users: Sequence[str]) -> None:
    """Have what is remembered of users' units read anew, as after a removal."""
    for user in sorted(users):
        await session.execute(_REREAD, {"tenant": session.tenant, "user": user})


def horizon(scope: Scope, names: Sequence[str]) -> Statement:
    """What the transaction sees of the changes of the scope's user, and packed, who mentions what has such a name."""
    values: dict[str, object] = {"tenant": scope.tenant, "user_id": scope.filters.user_id}
    if not names:
        return Statement(HORIZON.format(named=""), values)
    asked = mentioning(scope, SYNTAX, names)
    return Statement(HORIZON.format(named=f", ({asked.sql}) AS named"), asked.values | values)


def changed_units(table: str, scope: Scope, since: int, before: int) -> Statement:
    """The units of the scope's user that changed in a range of transactions, whatever scope they are in now."""
    values: dict[str, object] = {
        "tenant": scope.tenant,
        "user_id": scope.filters.user_id,
        "since": since,
        "next": before,
    }
    return Statement(CHANGED.format(table=table), values)


@dataclass(frozen=True, slots=True)
class ScopeSnapshot:
    """What a transaction sees of a user's changes.

    Attributes:
        horizon: every change of a transaction below it is seen.
        next: no change of it, or of a later transaction, is seen; rows that say so come from another cluster.
        running: how many transactions between the two are not seen.
        changed: the last transaction that changed a unit, or none.
        removed: the last transaction that removed a unit, or none.
    """

    horizon: int
    next: int
    running: int
    changed: int
    removed: int | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "ScopeSnapshot":
        """From the row of the statement."""
        last = max(row["memories"] or 0, row["turns"] or 0)
        return cls(row["horizon"], row["next"], row["running"], last, row["removed"])

    @property
    def age(self) -> tuple[int, int, int]:
        """Greater for the later of two snapshots, equal for the same."""
        return self.horizon, self.next, -self.running


def embedding_key(in_force: InForce) -> Held:
    """What the vectors that a question is compared with are of, and their column."""
    return in_force.column, in_force.model


def key_of(scope: Scope, asked: Sequence[Predicate]) -> Key | None:
    """What makes two scopes the same, whenever they are asked for; ``None`` for one that is not remembered."""
    plain = scope.filters == Filters(user_id=scope.filters.user_id)
    present = scope.believed_at is None and scope.true_at is None and scope.outweighing is None
    if scope.filters.user_id is None or not plain or not present or not asked:
        return None
    parts: list[object] = []
    for allowed in asked:
        parts.append(allowed.sql)
        for name, value in allowed.values.items():
            if name != "now":
                parts.append((name, tuple(value) if isinstance(value, list) else value))
    return tuple(parts)


@dataclass(slots=True)
class CachedScope:
    """A scope as it is remembered; whoever changes or reads it holds its lock.

    Attributes:
        unsure: whether a change of it was given up half-way: then it is read anew.
        vectors: what those that are held are of, and from which column.
    """

    material: Material
    look: ScopeSnapshot
    expiry: datetime | None = None
    numbers: dict[bytes, int] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    unsure: bool = False
    vectors: Held = (Column.FIRST, None)
    _alive: set[int] = field(default_factory=set)
    _units: Units | None = None
    _changes: int = 0

    def right(self, look: ScopeSnapshot, now: datetime) -> bool:
        """Whether it can be brought up to date at all: nothing was removed or has expired, and it is not worn out."""
        worn = self.material.count > 2 * len(self._alive) + _SLACK
        fits = len(self._alive) <= MOST_UNITS
        lasts = self.expiry is None or self.expiry > now
        return look.removed == self.look.removed and fits and lasts and not worn and not self.unsure

    def current(self, look: ScopeSnapshot) -> bool:
        """Whether nothing changed since."""
        return look.changed < self.look.horizon or look.age == self.look.age

    def put(self, found: Sequence[UnitMaterial]) -> None:
        """Units that are in scope, in place of what was held of them."""
        self.material.reserve(sum(len(part.columns.ids) for part in found))
        for part in found:
            if not len(part.columns.ids):
                continue
            names: list[bytes] = part.columns.ids.tolist()
            rows = np.array([self.numbers.setdefault(name, len(self.numbers)) for name in names], dtype=np.int64)
            self.material.missing(_EPOCH, rows, part.columns.version)
            self.material.add(_EPOCH, rows, part.columns)
            self._alive.update(rows.tolist())
            self.expiry = min((moment for moment in (self.expiry, part.expiry) if moment), default=None)
        self._changed()

    def take_out(self, ids: bytes) -> None:
        """Units that may not be in scope any more, by their packed ids."""
        for start in range(0, len(ids), 16):
            self._alive.discard(self.numbers.get(ids[start : start + 16], -1))
        self._changed()

    def _changed(self) -> None:
        self._units = None
        self._changes += 1

    def measure(self, query: Query, named: bytes) -> Candidates:
        """Every unit in scope with its signals."""
        units, changes = self._units, self._changes
        if units is None:
            rows = np.fromiter(self._alive, dtype=np.int64, count=len(self._alive))
            units = Units.of([part_of(self.material, self.material.places(rows))])
            if self._changes == changes:  # a thread whose reader was cancelled goes on without the lock
                self._units = units
        return Candidates(units.ids, measure(units, query, named))


class ScopeCache:
    """The scopes that are asked for again and again, within a budget of memory.

    Args:
        dimensions: of the embeddings of tenants that were never used.
        budget: bytes that all scopes may take together, about.
    """

    def __init__(self, dimensions: int, budget: int) -> None:
        self.dimensions = dimensions
        self._budget = budget
        self._kept: OrderedDict[Key, CachedScope] = OrderedDict()
        self._touched: OrderedDict[Key, None] = OrderedDict()

    def find(self, key: Key) -> CachedScope | None:
        """What is remembered of a scope."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def worth(self, key: Key) -> bool:
        """Whether the scope was asked for a while ago: what is asked for once is not worth the memory."""
        known = key in self._touched
        self._touched[key] = None
        self._touched.move_to_end(key)
        if len(self._touched) > _TOUCHED:
            self._touched.popitem(last=False)
        return known and self._budget > 0

    def size_of(self, in_force: InForce) -> int:
        """How long the vectors in force are."""
        return self.dimensions if in_force.model is None else in_force.model.dimensions

    def build_scope(
        self, look: ScopeSnapshot, found: Sequence[UnitMaterial], in_force: InForce = AT_REST
    ) -> CachedScope:
        """A scope from its units; takes a while for many."""
        kept = CachedScope(Material(self.size_of(in_force)), look, vectors=embedding_key(in_force))
        kept.put(found)
        return kept

    def keep(self, key: Key, kept: CachedScope) -> None:
        """Remember a scope; the least used ones are forgotten beyond the budget."""
        self._kept[key] = kept
        self._kept.move_to_end(key)
        self.settle()

    def settle(self) -> None:
        """Forget the least used scopes until the others fit the budget: a scope grows by what is written."""
        taken = sum(each.material.bytes for each in self._kept.values())
        while self._kept and taken > self._budget:
            _, oldest = self._kept.popitem(last=False)
            taken -= oldest.material.bytes

    def clear(self) -> None:
        """Drop everything."""
        self._kept.clear()

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a scope."""
        self._kept.pop(key, None)
