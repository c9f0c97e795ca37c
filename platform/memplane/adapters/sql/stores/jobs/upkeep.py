"""What becomes of memories with time, many at once, on both databases."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.queries import write_statements
from memplane.adapters.sql.rows import memory_of
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.scope import Syntax, memories_in
from memplane.adapters.sql.session import SqlSession
from memplane.adapters.sql.stores.activity import activity_of
from memplane.adapters.sql.stores.jobs.graph_repairs import is_needed
from memplane.application.jobs.job_records import Due, MemorySelection, Swept
from memplane.application.records import EXTRACT
from memplane.domain.consent.consent_rules import ProposalState
from memplane.domain.memory.active_days import Activity
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.lifecycle import IMPORTANT, WeighedMemory
from memplane.domain.memory.memory import Layer, Memory, MemoryType, State, TrustState, first_id
from memplane.domain.memory.scope import Scope

_MANY = 500


class SqlUpkeep:
    """The work of the night within a transaction."""

    def __init__(self, session: SqlSession, syntax: Syntax) -> None:
        self._session = session
        self._tenant = session.tenant
        self._syntax = syntax

    async def lock_deleted(
        self, scope: Scope, memory_id: UUID | None, due: datetime | None, limit: int
    ) -> list[Memory]:
        """Deleted memories of a scope, locked, in whatever trust state: one, or all; those to purge by then alone."""
        m = tables.memories.c
        allowed = memories_in(scope, self._syntax, "memories", any_state=True)
        statement = sa.select(*write_statements.MEMORY).where(
            m.tenant_id == self._tenant,
            m.state == State.SOFT_DELETED,
            sa.text(allowed.sql).bindparams(**self._syntax.bind_values(allowed.values)),
        )
        if memory_id is not None:
            statement = statement.where(m.id == memory_id)
        if due is not None:
            statement = statement.where(m.purge_at <= due)
        rows = await self._session.execute(statement.order_by(m.id).limit(limit).with_for_update())
        return [memory_of(dict(row)) for row in rows.mappings()]

    async def purge(self, gone: Sequence[Memory]) -> None:
        """Remove memories: relations and mentions go with them, and what rests on them; entities that they alone name.

        An entity to which somebody gave another name stays. Nothing else may be writing their users' memories.
        """
        if not gone:
            return
        ids, users = [each.id for each in gone], sorted({each.user_id for each in gone})  # found by their users
        for table in (tables.user_context, tables.context_signals, tables.consent_proposals):
            await self._session.execute(
                sa.delete(table).where(
                    table.c.tenant_id == self._tenant, table.c.user_id.in_(users), table.c.memory_id.in_(ids)
                )
            )
        m, j, e, o = tables.memories.c, tables.memory_entities.c, tables.entities.c, tables.undo_records
        undo = sa.delete(o).where(o.c.tenant_id == self._tenant, o.c.user_id.in_(users), o.c.about.in_(ids))
        await self._session.execute(undo)
        named = sa.select(j.entity_id).where(j.tenant_id == self._tenant, j.memory_id.in_(ids)).distinct()
        entities = list((await self._session.execute(named)).scalars())
        await self._session.execute(sa.delete(tables.memories).where(m.tenant_id == self._tenant, m.id.in_(ids)))
        for start in range(0, len(entities), _MANY):
            some = (e.tenant_id == self._tenant, e.id.in_(entities[start : start + _MANY]))
            await self._session.execute(sa.delete(tables.entities).where(*some, ~is_needed()))

    async def users_of_derived(self, sources: Sequence[UUID]) -> frozenset[str]:
        """Whose memories name one of some sources, whichever users the tenant has."""
        m, s = tables.memories.c, tables.memory_sources.c
        found: set[str] = set()
        for start in range(0, len(sources), _MANY):
            named = [str(each) for each in sources[start : start + _MANY]]
            of = sa.select(s.memory_id).where(s.tenant_id == self._tenant, s.source_id.in_(named))
            statement = sa.select(m.user_id).distinct().where(m.tenant_id == self._tenant, m.id.in_(of))
            found.update((await self._session.execute(statement)).scalars())
        return frozenset(found)

    async def lock_derived(self, sources: Sequence[UUID]) -> list[Memory]:
        """The tenant's memories that name one of some sources, locked, in the order of their ids."""
        m, s = tables.memories.c, tables.memory_sources.c
        found: list[Memory] = []
        for start in range(0, len(sources), _MANY):
            named = [str(each) for each in sources[start : start + _MANY]]
            of = sa.select(s.memory_id).where(s.tenant_id == self._tenant, s.source_id.in_(named))
            statement = sa.select(*write_statements.MEMORY).where(m.tenant_id == self._tenant, m.id.in_(of))
            rows = await self._session.execute(statement.order_by(m.id).with_for_update())
            found += [memory_of(dict(row)) for row in rows.mappings()]
        return found

    async def due(self, wanted: MemorySelection, after: UUID | None, limit: int) -> list[tuple[UUID, str]]:
        """Ids, in their order, and users of the tenant's memories that a job looks at, of those after one."""
        m = tables.memories.c
        statement = sa.select(m.id, m.user_id).where(m.tenant_id == self._tenant, *_conditions(wanted))
        if after is not None:
            statement = statement.where(m.id > after)
        return [(row.id, row.user_id) for row in await self._session.execute(statement.order_by(m.id).limit(limit))]

    async def lock_due(self, wanted: MemorySelection, ids: Sequence[UUID]) -> list[Memory]:
        """Those of some memories that it still looks at, locked, in the order of their ids."""
        return await self._locked(ids, *_conditions(wanted))

    async def lock_active(self, ids: Sequence[UUID]) -> list[Memory]:
        """Active memories by their ids, locked, in their order."""
        return await self._locked(ids, tables.memories.c.state == State.ACTIVE)

    async def _locked(self, ids: Sequence[UUID], *conditions: sa.ColumnElement[bool]) -> list[Memory]:
        m = tables.memories.c
        found: list[Memory] = []
        for start in range(0, len(ids), _MANY):
            some = m.id.in_(ids[start : start + _MANY])
            statement = sa.select(*write_statements.MEMORY).where(m.tenant_id == self._tenant, some, *conditions)
            rows = await self._session.execute(statement.order_by(m.id).with_for_update())
            found += [memory_of(dict(row)) for row in rows.mappings()]
        return found

    async def move(self, ids: Sequence[UUID], state: State, purge_at: datetime | None, now: datetime) -> None:
        """Give memories that are locked another state."""
        values = {"state": state, "purge_at": purge_at, "updated_at": now, "version": tables.memories.c.version + 1}
        await self._set(ids, values)

    async def promote(self, ids: Sequence[UUID]) -> None:
        """Settle memories that are locked; without a version."""
        await self._set(ids, {"layer": Layer.LONG})

    async def fade(self, confidences: Mapping[UUID, float]) -> None:
        """Give memories that are locked another confidence; it is counted beside, without a version."""
        ids = list(confidences)
        for start in range(0, len(ids), _MANY):
            some = ids[start : start + _MANY]
            by_id = sa.case(*[(tables.memories.c.id == each, confidences[each]) for each in some])
            await self._set(some, {"confidence": by_id})

    async def doubt(self, ids: Sequence[UUID], most: float) -> None:
        """Let memories that are locked be believed no more than that; it is counted beside, without a version."""
        m = tables.memories.c
        await self._set(ids, {"confidence": sa.case((m.confidence > most, most), else_=m.confidence)})

    async def _set(self, ids: Sequence[UUID], values: Mapping[str, object]) -> None:
        m = tables.memories.c
        for start in range(0, len(ids), _MANY):
            statement = sa.update(tables.memories).where(
                m.tenant_id == self._tenant, m.id.in_(ids[start : start + _MANY])
            )
            await self._session.execute(statement.values(**values))

    async def next_crowded_user(
        self, most: int, layer: Layer | None, after: str | None, user: str | None = None
    ) -> tuple[str, Activity] | None:
        """The next user, by name, who has more active memories than that, of a layer or of all, with the activity."""
        m, a = tables.memories.c, tables.user_activity.c
        statement = sa.select(m.user_id).where(m.tenant_id == self._tenant, m.state == State.ACTIVE)
        if layer is not None:
            statement = statement.where(m.layer == layer)
        if after is not None:
            statement = statement.where(m.user_id > after)
        if user is not None:
            statement = statement.where(m.user_id == user)
        first = statement.group_by(m.user_id).having(sa.func.count() > most).order_by(m.user_id).limit(1).subquery()
        theirs = sa.and_(a.tenant_id == self._tenant, a.user_id == first.c.user_id)
        found = sa.select(first.c.user_id, a.last_at, a.resumed_at).select_from(
            first.outerjoin(tables.user_activity, theirs)
        )
        return next(iter(activity_of(await self._session.execute(found)).items()), None)

    async def weigh_memories(self, user_id: str, layer: Layer | None) -> list[WeighedMemory]:
        """What of each of a user's active memories, of a layer or of all, decides whether there is room for it."""
        m, c = tables.memories.c, tables.user_context.c
        fields = sa.select(c.memory_id).where(c.tenant_id == self._tenant, c.user_id == user_id)
        statement = sa.select(
            m.id, m.hits, m.reinforcement, m.importance, m.last_hit_at, m.recorded_at,
            sa.or_(*_protected(), m.id.in_(fields)).label("kept"),
        ).where(m.tenant_id == self._tenant, m.user_id == user_id, m.state == State.ACTIVE)  # fmt: skip
        if layer is not None:
            statement = statement.where(m.layer == layer)
        return [
            WeighedMemory(
                row.id, row.hits, row.reinforcement, row.importance, row.last_hit_at or row.recorded_at, bool(row.kept)
            )
            for row in await self._session.execute(statement)
        ]

    async def sweep_proposals(self, lapsed_by: datetime, limit: int) -> int:
        """Remove proposals that lapsed by then, at most so many; how many were."""
        p = tables.consent_proposals.c
        lapsed = sa.select(p.id).where(
            p.tenant_id == self._tenant, p.state == ProposalState.PENDING, p.expires_at <= lapsed_by
        )
        ids = list((await self._session.execute(lapsed.order_by(p.id).limit(limit).with_for_update())).scalars())
        if ids:
            gone = sa.delete(tables.consent_proposals).where(p.tenant_id == self._tenant, p.id.in_(ids))
            await self._session.execute(gone)
        return len(ids)

    async def old_changes(self, before: datetime, limit: int) -> list[tuple[UUID, str]]:
        """Ids and users of changes of threads that were logged before a moment, the oldest first; ids tell when."""
        c = tables.change_log.c
        old = sa.select(c.id, c.user_id).where(c.tenant_id == self._tenant, c.id < first_id(before))
        return [(row.id, row.user_id) for row in await self._session.execute(old.order_by(c.id).limit(limit))]

    async def prune_changes(self, ids: Sequence[UUID]) -> None:
        """Remove changes of threads, which note the last one that they lost; their users are locked."""
        c, r = tables.change_log.c, tables.thread_revision.c
        some = (c.tenant_id == self._tenant, c.id.in_(ids))
        lost = sa.select(c.user_id, c.thread_id, sa.func.max(c.rev).label("rev")).where(*some)
        found = (await self._session.execute(lost.group_by(c.user_id, c.thread_id))).all()
        theirs = [r.user_id == sa.bindparam("of_user"), r.thread_id == sa.bindparam("of_thread")]
        note = sa.update(tables.thread_revision).where(r.tenant_id == self._tenant, *theirs)
        later = sa.case((r.pruned_rev < sa.bindparam("last"), sa.bindparam("last")), else_=r.pruned_rev)
        for row in sorted(found):
            values = {"of_user": row.user_id, "of_thread": row.thread_id, "last": row.rev}
            await self._session.execute(note.values(pruned_rev=later), values)
        await self._session.execute(sa.delete(tables.change_log).where(*some))

    async def prune_events(self, before: datetime, limit: int) -> int:
        """Remove operational events that were noted before a moment, at most so many; how many were."""
        e = tables.events.c
        old = sa.select(e.id).where(e.tenant_id == self._tenant, e.id < first_id(before)).order_by(e.id).limit(limit)
        ids = list((await self._session.execute(old)).scalars())
        if ids:
            await self._session.execute(sa.delete(tables.events).where(e.tenant_id == self._tenant, e.id.in_(ids)))
        return len(ids)

    async def sweep_answers(self, after: datetime | None, given_by: datetime, limit: int) -> Swept:
        """Forget answers kept for idempotency keys that were given after a moment, or ever, and by another."""
        k = tables.idempotency_keys.c
        old = [k.tenant_id == self._tenant, k.created_at <= given_by]
        if after is not None:
            old.append(k.created_at > after)
        some = sa.select(k.created_at).where(*old).order_by(k.created_at).limit(limit).subquery()
        told = sa.select(sa.func.count().label("found"), sa.func.max(some.c.created_at).label("last"))
        row = (await self._session.execute(told.select_from(some))).one()
        if not row.found:
            return Swept()
        gone = sa.delete(tables.idempotency_keys).where(*old, k.created_at <= row.last)
        return Swept(await self._session.rows_changed(gone), row.last if row.found == limit else None)

    async def tally(self, since: datetime, user: str | None = None) -> Mapping[str, float]:
        """What was made, promoted, archived and deleted since a moment, averages, and facts lost to errors."""
        m, h = tables.memories.c, tables.history.c
        of_user = (m.user_id == user, h.of_user == user) if user is not None else (sa.true(), sa.true())
        active = m.state == State.ACTIVE
        made = sa.select(
            sa.func.count().label("memories"),
            sa.func.coalesce(sa.func.sum(sa.case((m.recorded_at > since, 1), else_=0)), 0).label("created"),
            *(
                sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0).label(name)
                for name, condition in {
                    "active": active,
                    "active_long": sa.and_(active, m.layer == Layer.LONG),
                    "active_archived": m.state == State.ARCHIVED,
                }.items()
            ),
            *(
                sa.func.avg(sa.case((active, m[name]))).label(f"average_{name}")
                for name in ("confidence", "importance", "hits", "mention_count")
            ),
        ).where(m.tenant_id == self._tenant, of_user[0])
        row = (await self._session.execute(made)).mappings().one()
        found = {name.replace("active_", ""): float(value or 0) for name, value in row.items()}
        done = sa.select(h.event, sa.func.count().label("times")).where(
            h.tenant_id == self._tenant, h.ts > since, h.event.in_([event for event, _ in _TALLIED]), of_user[1]
        )
        counts = {row.event: row.times for row in await self._session.execute(done.group_by(h.event))}
        for event, name in _TALLIED:
            found[name] = found.get(name, 0.0) + float(counts.get(event, 0))
        lost = (await self._session.execute(self._lost(since, user))).all()
        counted = {row.status: float(row.times) for row in lost}
        found |= {name: counted.get(status, 0.0) for status, name in _LOST}
        return {name: round(value, 4) for name, value in found.items()}

    def _lost(self, since: datetime, user: str | None) -> sa.Select[str, int]:
        """How many facts of turns were lost since a moment, by status."""
        e = tables.events.c
        of = (e.tenant_id == self._tenant, e.node.in_(("hotpath", "episodic", "worker")), e.ts > since, e.op == EXTRACT)
        lost = sa.select(e.status, sa.func.count().label("times")).where(*of, e.status.in_([each for each, _ in _LOST]))
        return (lost if user is None else lost.where(e.user_id == user)).group_by(e.status)


_LOST = (("error", "extraction_errors"), ("skipped", "extraction_skipped"))
"""Facts of turns that broke, and those that the policy or a limit kept out."""


_TALLIED = (
    (HistoryEvent.PROMOTE, "promoted"),
    (HistoryEvent.ARCHIVE, "newly_archived"),
    (HistoryEvent.TTL, "deleted"),
    (HistoryEvent.DELETE, "deleted"),
    (HistoryEvent.PURGE, "purged"),
)


def _protected() -> tuple[sa.ColumnElement[bool], ...]:
    """What of a memory itself keeps time alone from making the system forget it."""
    m = tables.memories.c
    return m.pinned, m.trust_state == TrustState.CONFIRMED, m.importance >= IMPORTANT


def _may_fade(present_since: datetime | None) -> list[sa.ColumnElement[bool]]:
    """Whether time may make the system forget a memory, and its user is present: while one is away, nothing ages.

    Each is looked up for a memory, as one value: a join would sort all memories of the tenant for each batch.
    """
    a, m = tables.user_activity.c, tables.memories.c
    conditions = [*(~each for each in _protected()), ~_holds_a_field()]
    if present_since is not None:
        theirs = (a.tenant_id == m.tenant_id, a.user_id == m.user_id, a.resumed_at.is_(None))
        conditions.append(sa.select(a.last_at).where(*theirs).scalar_subquery() >= present_since)
    return conditions


def _holds_a_field() -> sa.ColumnElement[bool]:
    """Whether a memory holds a decided field of the profile, which never changes silently."""
    c, m = tables.user_context.c, tables.memories.c
    mine = (c.tenant_id == m.tenant_id, c.user_id == m.user_id, c.memory_id == m.id)
    return sa.select(sa.func.count()).where(*mine).scalar_subquery() > 0


def _conditions(wanted: MemorySelection) -> list[sa.ColumnElement[bool]]:
    """Which of a tenant's memories a job looks at, of one user where one is named."""
    found = _due(wanted)
    return found if wanted.user is None else [tables.memories.c.user_id == wanted.user, *found]


def _due(wanted: MemorySelection) -> list[sa.ColumnElement[bool]]:
    m = tables.memories.c
    match wanted.due:
        case Due.EXPIRED:
            return [m.state == State.ACTIVE, m.expires_at <= wanted.moment]
        case Due.IDLE:
            touched = [m[name].is_(None) | (m[name] < wanted.moment) for name in ("last_accessed", "last_hit_at")]
            limits = wanted.limits
            limit = sa.case(dict(limits), value=m.category, else_=wanted.limit) if limits else sa.literal(wanted.limit)
            return [
                m.state == State.ACTIVE, m.importance < limit, m.updated_at < wanted.moment, *touched,
                *_may_fade(wanted.present_since),
            ]  # fmt: skip
        case Due.DECAYING:
            semantic = m.type == MemoryType.SEMANTIC
            return [m.state == State.ACTIVE, semantic, m.decay_rate > 0, *_may_fade(wanted.present_since)]
        case Due.PURGE:
            return [m.state == State.SOFT_DELETED, m.purge_at <= wanted.moment]
        case Due.PROMOTED:
            recent = m.last_hit_at >= wanted.moment
            settles = (m.hits >= wanted.limit, m.reinforcement >= 0)
            return [m.state == State.ACTIVE, m.layer == Layer.MID, *settles, recent]
