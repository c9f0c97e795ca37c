"""Erasing a user within a transaction, on both databases."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.queries import write_statements
from memplane.adapters.sql.rows import memory_of
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import SqlSession
from memplane.application.erasure.erasure_ports import Buried, Counts, TurnFingerprint
from memplane.application.records import TombstoneOrigin
from memplane.domain.jobs.job_definitions import ON_DEMAND
from memplane.domain.memory.memory import Memory, new_id
from memplane.domain.privacy.erasure import ERASED, Erasure

KEYS = "erasure_keys"
"""The row of the metadata table with the tenant's keys."""
_MANY = 1_000
_OWN = (
    tables.change_log,
    tables.events,
    tables.consent_proposals,
    tables.user_context,
    tables.context_signals,
    tables.entities,
    tables.pair_checks,
    tables.undo_records,
)
"""Tables whose rows are of one user, in the order in which they go."""
_THREADS = (
    tables.sessions, tables.thread_revision, tables.token_budgets, tables.job_users, tables.user_activity,
    tables.user_settings, tables.user_usage,
)  # fmt: skip
"""Tables with a row for each user, or for each of its threads, days or jobs, in the order in which they go."""
_CHECKPOINTS = (
    tables.checkpoints,
    tables.checkpoint_blobs,
    tables.checkpoint_writes,
    tables.supervisor_checkpoints,
)
_BURIED = (tables.tombstones.c.category, tables.tombstones.c.value_hash)
WORDLESS: dict[str, Any] = {"old_ref": None, "new_ref": None, "meta": {}, "salt": None}
"""A row of history without its words."""


class SqlErasures:
    """Receipts, keyed tombstones, and whatever there is of one user."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def keys(self) -> list[bytes]:
        """The tenant's keys for hashes of what was erased, the oldest first; none while nobody was."""
        s = tables.settings.c
        statement = sa.select(s.value).where(s.tenant_id == self._tenant, s.name == KEYS)
        found = (await self._session.execute(statement)).scalar_one_or_none()
        return [bytes.fromhex(each) for each in found or ()]

    async def fences(self, users: Collection[str]) -> tuple[list[bytes], Mapping[str, str]]:
        """The tenant's keys, and the standing merges from or into some users, by the merged one; in one exchange."""
        s, u = tables.settings.c, tables.user_merges.c
        one = sa.select(sa.literal(1).label("one")).subquery()
        key = sa.and_(s.tenant_id == self._tenant, s.name == KEYS)
        either = sa.or_(u.from_user.in_(sorted(users)), u.into_user.in_(sorted(users)))
        merged = sa.and_(u.tenant_id == self._tenant, either, u.undone_at.is_(None))
        both = one.outerjoin(tables.settings, key).outerjoin(tables.user_merges, merged)
        rows = list(await self._session.execute(sa.select(s.value, u.from_user, u.into_user).select_from(both)))
        return [bytes.fromhex(each) for each in rows[0].value or ()], {
            row.from_user: row.into_user for row in rows if row.from_user is not None
        }

    async def add_key(self, key: bytes, now: datetime) -> None:
        """Store a key beside those that there are; one that is there stays as it is."""
        s = tables.settings.c
        row = {"tenant_id": self._tenant, "name": KEYS, "value": [key.hex()], "updated_at": now}
        made = self._session.insert(tables.settings).values(row).on_conflict_do_nothing()
        await self._session.execute(made)
        mine = (s.tenant_id == self._tenant, s.name == KEYS)
        there = (await self._session.execute(sa.select(s.value).where(*mine).with_for_update())).scalar_one()
        if key.hex() not in there:
            values = {"value": [*there, key.hex()], "updated_at": now}
            await self._session.execute(sa.update(tables.settings).where(*mine).values(values))

    async def of_subjects(self, subjects: Collection[str]) -> list[Erasure]:
        """The erasures of users, by the hashes of their names, the oldest first."""
        e = tables.erasures.c
        statement = sa.select(tables.erasures).where(e.tenant_id == self._tenant, e.subject.in_(sorted(subjects)))
        rows = (await self._session.execute(statement.order_by(e.id))).mappings()
        return [_erasure_of(dict(row)) for row in rows]

    async def all(self) -> list[Erasure]:
        """Every erasure of the tenant, the oldest first."""
        e = tables.erasures.c
        statement = sa.select(tables.erasures).where(e.tenant_id == self._tenant).order_by(e.id)
        return [_erasure_of(dict(row)) for row in (await self._session.execute(statement)).mappings()]

    async def next_unfinished(self, after: UUID | None = None) -> Erasure | None:
        """The oldest erasure that was begun and is not finished; of those that came after one."""
        e = tables.erasures.c
        left = sa.select(tables.erasures).where(e.tenant_id == self._tenant, e.finished_at.is_(None))
        if after is not None:
            left = left.where(e.id > after)
        row = (await self._session.execute(left.order_by(e.id).limit(1))).mappings().first()
        return None if row is None else _erasure_of(dict(row))

    async def keep(self, erasure: Erasure) -> None:
        """Store what was erased so far."""
        values: dict[str, Any] = {
            name: getattr(erasure, name) for name in Erasure.__slots__ if name not in {"user_id", "counts"}
        }
        values |= {"of_user": erasure.user_id, "counts": dict(erasure.counts)}
        e = tables.erasures.c
        statement = self._session.insert(tables.erasures).values(tenant_id=self._tenant, **values)
        changed = {name: value for name, value in values.items() if name != "id"}
        await self._session.execute(statement.on_conflict_do_update(index_elements=[e.tenant_id, e.id], set_=changed))

    async def has_tombstone(
        self, subject: str, where: str, hashes: Collection[str], said: datetime | None = None
    ) -> bool:
        """Whether one of some values is buried; where ``said`` is given, erased values count if they went later."""
        t = tables.tombstones.c
        mine = [t.tenant_id == self._tenant, t.scope == subject, t.category == where]
        if said is not None:
            mine.append(sa.or_(t.reason != ERASED, t.ts >= said))
        for some in _parts(sorted(hashes)):
            statement = sa.select(t.id).where(*mine, t.value_hash.in_(some)).limit(1)
            if (await self._session.execute(statement)).first() is not None:
                return True
        return False

    async def bury(self, subject: str, buried: Sequence[Buried], burial: TombstoneOrigin) -> None:
        """Bury values; one that is buried already is so from the later moment on, and a person's verdict stays one."""
        t = tables.tombstones.c
        shared = {
            "tenant_id": self._tenant, "scope": subject, "reason": burial.reason, "actor": burial.actor,
            "ts": burial.ts,
        }  # fmt: skip
        for some in _parts(sorted(set(buried))):
            rows = [{**shared, "id": new_id(), "category": where, "value_hash": value} for where, value in some]
            insert = self._session.insert(tables.tombstones).values(rows)
            changed: dict[str, Any] = {"ts": sa.case((insert.excluded.ts > t.ts, insert.excluded.ts), else_=t.ts)}
            if burial.reason != ERASED:
                changed["reason"] = burial.reason
            key = [t.tenant_id, t.scope, t.category, t.value_hash]
            await self._session.execute(insert.on_conflict_do_update(index_elements=key, set_=changed))

    async def graves(self, subject: str, reason: str, after: Buried | None, limit: int) -> list[Buried]:
        """What is buried of a user for a reason, in one order."""
        t = tables.tombstones.c
        mine = (t.tenant_id == self._tenant, t.scope == subject, t.reason == reason)
        statement = sa.select(t.category, t.value_hash).where(*mine)
        if after is not None:
            there = [sa.literal(value, column.type) for value, column in zip(after, _BURIED, strict=True)]
            statement = statement.where(sa.tuple_(*_BURIED) > sa.tuple_(*there))
        rows = await self._session.execute(statement.order_by(*_BURIED).limit(limit))
        return [(row.category, row.value_hash) for row in rows]

    async def memories(self, user_id: str, limit: int) -> list[Memory]:
        """Memories of a user, in whatever state, locked."""
        m = tables.memories.c
        statement = sa.select(*write_statements.MEMORY).where(m.tenant_id == self._tenant, m.user_id == user_id)
        rows = await self._session.execute(statement.order_by(m.id).limit(limit).with_for_update())
        return [memory_of(dict(row)) for row in rows.mappings()]

    async def turns(self, user_id: str, limit: int) -> list[TurnFingerprint]:
        """Turns of a user."""
        t = tables.turns.c
        statement = sa.select(t.id, t.thread_id, t.text).where(t.tenant_id == self._tenant, t.user_id == user_id)
        rows = await self._session.execute(statement.order_by(t.id).limit(limit))
        return [TurnFingerprint(row.id, row.thread_id, row.text) for row in rows]

    async def derived_from(self, ids: Collection[UUID], user_id: str) -> list[Memory]:
        """Memories of other users than this one that were derived from some units, locked."""
        m, s = tables.memories.c, tables.memory_sources.c
        found: dict[UUID, Memory] = {}
        for some in _parts(sorted(map(str, ids))):
            drawn = sa.select(s.memory_id).where(s.tenant_id == self._tenant, s.source_id.in_(some))
            statement = sa.select(*write_statements.MEMORY).where(
                m.tenant_id == self._tenant, m.id.in_(drawn), m.user_id != user_id
            )
            rows = (await self._session.execute(statement.order_by(m.id).with_for_update())).mappings()
            found |= {row["id"]: memory_of(dict(row)) for row in rows}
        return list(found.values())

    async def take_tombstones(self, user_id: str, limit: int) -> list[Buried]:
        """Take the tombstones of a user out; what they were."""
        t = tables.tombstones.c
        statement = sa.select(t.id, t.category, t.value_hash).where(t.tenant_id == self._tenant, t.scope == user_id)
        rows = list(await self._session.execute(statement.order_by(*_BURIED).limit(limit)))
        for some in _parts([row.id for row in rows]):
            gone = sa.delete(tables.tombstones).where(t.tenant_id == self._tenant, t.id.in_(some))
            await self._session.execute(gone)
        return [(row.category, row.value_hash) for row in rows]

    async def field_values(self, user_id: str, limit: int) -> list[Buried]:
        """The values of a user's fields, decided and proposed, by the field and their keys."""
        found: list[Buried] = []
        c, p = tables.user_context.c, tables.consent_proposals.c
        for columns, order in ((c, (c.field, c.value_hash)), (p, (p.state, p.id))):
            mine = (columns.tenant_id == self._tenant, columns.user_id == user_id)
            statement = sa.select(columns.field, columns.value_hash).where(*mine).order_by(*order).limit(limit)
            found += [(row.field, row.value_hash) for row in await self._session.execute(statement)]
        return found

    async def forget_history(self, receipt: UUID, memory_ids: Sequence[UUID], limit: int) -> int:
        """Take the words of a user out of the history, of some memories and of others; how many entries."""
        h, e = tables.history.c, tables.erasures.c
        running = sa.select(e.of_user).where(e.tenant_id == self._tenant, e.id == receipt)
        user = (await self._session.execute(running)).scalar_one()
        mine = sa.select(h.id).where(h.tenant_id == self._tenant, h.of_user == user).limit(limit)
        ids = set((await self._session.execute(mine)).scalars())
        for some in _parts(sorted(memory_ids)):
            of_memories = sa.select(h.id).where(h.tenant_id == self._tenant, h.memory_id.in_(some))
            ids |= set((await self._session.execute(of_memories)).scalars())
        erased_by = sa.func.coalesce(h.erased_by, sa.literal(receipt, sa.Uuid()))
        values = {**WORDLESS, "of_user": None, "erased_by": erased_by}
        named = sa.case((sa.func.instr(h.actor, user) > 0, "erased"), else_=h.actor)
        for some in _parts(sorted(ids)):
            statement = sa.update(tables.history).where(h.tenant_id == self._tenant, h.id.in_(some))
            await self._session.execute(statement.values({**values, "actor": named}))
        return len(ids)

    async def remove(self, memory_ids: Sequence[UUID], turn_ids: Sequence[UUID]) -> Counts:
        """Remove memories with their relations and mentions, and turns."""
        r, j = tables.relations.c, tables.memory_entities.c
        counts: dict[str, int] = {}
        for some in _parts(memory_ids):
            for table, condition in (
                (tables.relations, r.from_id.in_(some)),
                (tables.relations, r.to_id.in_(some)),
                (tables.memory_entities, j.memory_id.in_(some)),
                (tables.memories, tables.memories.c.id.in_(some)),
            ):
                await self._delete(counts, table, condition)
        for some in _parts(turn_ids):
            await self._delete(counts, tables.turns, tables.turns.c.id.in_(some))
        return counts

    async def sweep(self, user_id: str, limit: int) -> Counts:
        """Remove what else there is of a user, so many rows of each table at most."""
        counts: dict[str, int] = {}
        for table in _OWN:
            await self._delete_some(counts, table, table.c.user_id == user_id, limit)
        k = tables.idempotency_keys.c
        await self._delete_some(counts, tables.idempotency_keys, k.of_user == user_id, limit)
        # an answer that may tell of several users: that it was given stays, or the request would be carried out twice
        unknown = _some(tables.idempotency_keys, (k.tenant_id == self._tenant, k.of_user.is_(None)), limit)
        blank = sa.update(tables.idempotency_keys).where(unknown).values(answer={}, of_user="")
        counts["answers"] = await self._session.rows_changed(blank)
        return counts

    async def finish(self, user_id: str, now: datetime) -> Counts:
        """Remove what there is one of for a thread or a user, once the rest is gone."""
        counts: dict[str, int] = {}
        j, a = tables.job_runs.c, tables.api_keys.c
        for table in _THREADS:
            await self._delete(counts, table, table.c.user_id == user_id)
        asked = (j.tenant_id == self._tenant, j.name.in_(ON_DEMAND), j.place == user_id)
        await self._session.execute(sa.delete(tables.job_runs).where(*asked))
        for place, left in ((user_id, None), (f"settled{user_id}", "settled")):  # where a job stands in their order
            at = sa.update(tables.job_runs).where(j.tenant_id == self._tenant, j.place == place)
            await self._session.execute(at.values(place=left))
        bound = sa.select(a.key_id, a.users).where(a.tenant_id == self._tenant, a.users.is_not(None))
        for row in list(await self._session.execute(bound)):
            if user_id in row.users:
                others = [each for each in row.users if each != user_id]
                key = sa.update(tables.api_keys).where(a.tenant_id == self._tenant, a.key_id == row.key_id)
                ended: dict[str, Any] = {} if others else {"revoked_at": now}
                await self._session.execute(key.values(users=others, **ended))
                counts["api_keys"] = counts.get("api_keys", 0) + 1
        return counts

    async def count(self, user_id: str) -> Counts:
        """How many rows there are of a user."""
        counts: dict[str, int] = {}
        h = tables.history.c
        for table in (tables.memories, tables.turns, *_OWN, *_THREADS, *_CHECKPOINTS):
            counts[table.name] = await self._counted(table, table.c.user_id == user_id)
        counts["history"] = await self._counted(tables.history, h.of_user == user_id)
        counts["tombstones"] = await self._counted(tables.tombstones, tables.tombstones.c.scope == user_id)
        merges = tables.user_merges
        either = sa.or_(merges.c.from_user == user_id, merges.c.into_user == user_id)
        counts[merges.name] = await self._counted(merges, either)
        k = tables.idempotency_keys
        counts[k.name] = await self._counted(k, k.c.of_user == user_id)
        m, r, j = tables.memories.c, tables.relations.c, tables.memory_entities.c
        mine = sa.select(m.id).where(m.tenant_id == self._tenant, m.user_id == user_id)
        counts["relations"] = await self._counted(tables.relations, r.from_id.in_(mine))
        begins = sa.exists().where(m.tenant_id == self._tenant, m.id == r.from_id, m.user_id == user_id)
        counts["relations"] += await self._counted(tables.relations, r.to_id.in_(mine), ~begins)
        counts["memory_entities"] = await self._counted(tables.memory_entities, j.memory_id.in_(mine))
        return {name: found for name, found in counts.items() if found}

    async def users(self) -> list[str]:
        """Every user of whom there is a row."""
        names = [
            sa.select(table.c.user_id).where(table.c.tenant_id == self._tenant).distinct()
            for table in (tables.memories, tables.turns, *_THREADS, *_OWN, *_CHECKPOINTS)
        ]
        t, h = tables.tombstones.c, tables.history.c
        names.append(sa.select(t.scope).where(t.tenant_id == self._tenant).distinct())
        names.append(sa.select(h.of_user).where(h.tenant_id == self._tenant).distinct())
        u = tables.user_merges.c
        names += [sa.select(each).where(u.tenant_id == self._tenant).distinct() for each in (u.from_user, u.into_user)]
        rows = (await self._session.execute(sa.union(*names))).scalars()
        return sorted(row for row in rows if row)

    async def _delete(self, counts: dict[str, int], table: sa.Table, *conditions: sa.ColumnElement[bool]) -> None:
        gone = sa.delete(table).where(table.c.tenant_id == self._tenant, *conditions)
        counts[table.name] = counts.get(table.name, 0) + await self._session.rows_changed(gone)

    async def _delete_some(
        self, counts: dict[str, int], table: sa.Table, condition: sa.ColumnElement[bool], limit: int
    ) -> None:
        some = _some(table, (table.c.tenant_id == self._tenant, condition), limit)
        counts[table.name] = counts.get(table.name, 0) + await self._session.rows_changed(sa.delete(table).where(some))

    async def _counted(self, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
        statement = sa.select(sa.func.count()).select_from(table).where(table.c.tenant_id == self._tenant, *conditions)
        found: int = (await self._session.execute(statement)).scalar_one()
        return found


def _some(table: sa.Table, conditions: Iterable[sa.ColumnElement[bool]], limit: int) -> sa.ColumnElement[bool]:
    """So many rows of those that are meant."""
    key = list(table.primary_key.columns)
    return sa.tuple_(*key).in_(sa.select(*key).where(*conditions).limit(limit))


def _parts(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    for start in range(0, len(values), _MANY):
        yield values[start : start + _MANY]


def _erasure_of(row: Mapping[str, Any]) -> Erasure:
    values = {name: row[name] for name in Erasure.__slots__ if name != "user_id"}
    return Erasure(**values, user_id=row["of_user"])
