"""Merging one user into another within a transaction, on both databases: a few statements for each table."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.queries import write_statements
from memplane.adapters.sql.rows import memory_of
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import MENTIONS, SqlSession
from memplane.adapters.sql.stores.memory_stores import thread_key
from memplane.adapters.sql.stores.user_merge_rows import (
    CHECKPOINTS,
    FOLDED,
    LISTED,
    THREADED,
    key_columns,
    parts,
    plain_key,
    row_to_json,
)
from memplane.adapters.sql.stores.user_unmerges import TakingBack
from memplane.application.users.user_merge_ports import Counts, MergedMemoryRecord, UnmergeCounts
from memplane.domain.identity.user_merges import Presence, UserMerge, joined_presence, renamed_threads
from memplane.domain.jobs.job_definitions import ON_DEMAND
from memplane.domain.memory.memory import Memory, State, new_id

Reread = Callable[[SqlSession, Sequence[str]], Awaitable[None]]
"""Has what is remembered of users' memories and turns read anew."""
_ENTRIES = 1_000
"""Entries of one row of the record."""
_THREADS = 200
"""Threads of one statement."""
_U = tables.user_merges.c


class SqlUserMerges:
    """Merges of users, and the rows that they moved."""

    def __init__(self, session: SqlSession, reread: Reread) -> None:
        self._session = session
        self._tenant = session.tenant
        self._reread = reread

    async def standing(self, user_ids: Collection[str]) -> Mapping[str, UserMerge]:
        """Those of some users that were merged into another one, with the merge."""
        found = sa.select(tables.user_merges).where(
            _U.tenant_id == self._tenant, _U.from_user.in_(sorted(user_ids)), _U.undone_at.is_(None)
        )
        rows = (await self._session.execute(found)).mappings()
        return {row["from_user"]: merge_of(dict(row)) for row in rows}

    async def aliases(self, user_id: str) -> list[str]:
        """Users that were merged into a user."""
        found = sa.select(_U.from_user).where(
            _U.tenant_id == self._tenant, _U.into_user == user_id, _U.undone_at.is_(None)
        )
        return sorted((await self._session.execute(found)).scalars())

    async def page(
        self, user_id: str | None, among: Collection[str] | None, before: UUID | None, limit: int
    ) -> list[UserMerge]:
        """Merges, standing and undone ones, newest first."""
        found = sa.select(tables.user_merges).where(_U.tenant_id == self._tenant)
        if user_id is not None:
            found = found.where(sa.or_(_U.from_user == user_id, _U.into_user == user_id))
        if among is not None:
            found = found.where(_U.from_user.in_(sorted(among)), _U.into_user.in_(sorted(among)))
        if before is not None:
            found = found.where(_U.id < before)
        rows = (await self._session.execute(found.order_by(_U.id.desc()).limit(limit))).mappings()
        return [merge_of(dict(row)) for row in rows]

    async def keep(self, merge: UserMerge) -> None:
        """Store a merge, or what became of it."""
        values = {name: getattr(merge, name) for name in UserMerge.__slots__}
        values["counts"] = {name: dict(counts) for name, counts in merge.counts.items()}
        statement = self._session.insert(tables.user_merges).values(tenant_id=self._tenant, **values)
        changed = {name: value for name, value in values.items() if name != "id"}
        await self._session.execute(statement.on_conflict_do_update(index_elements=[_U.tenant_id, _U.id], set_=changed))

    async def active(self, user_id: str, categories: Collection[str], limit: int) -> list[Memory]:
        """Active memories of a user in some categories, locked, the newest first."""
        m = tables.memories.c
        statement = sa.select(*write_statements.MEMORY).where(
            m.tenant_id == self._tenant, m.user_id == user_id, m.category.in_(sorted(categories)),
            m.state == sa.literal_column(f"'{State.ACTIVE}'"),
        )  # fmt: skip
        rows = await self._session.execute(statement.order_by(m.id.desc()).limit(limit).with_for_update())
        return [memory_of(dict(row)) for row in rows.mappings()]

    async def rejected_in(self, user_id: str) -> list[str]:
        """The categories in which values of a user are buried."""
        t = tables.tombstones.c
        found = sa.select(t.category).where(t.tenant_id == self._tenant, t.scope == user_id).distinct()
        return sorted((await self._session.execute(found)).scalars())

    async def move(self, merge: UserMerge, multiple: Collection[str], away: timedelta) -> Counts:
        """Move all rows of a user to the other one, and record them; how many were folded into rows that were there."""
        moving = Moving(self._session, merge)
        await moving.threads()
        for table, column in LISTED.items():
            await moving.move_rows(table, column)
        for table, (column, same) in FOLDED.items():
            await moving.move_unless_equal(table, column, same, multiple)
        await moving.entities()
        await moving.memories()
        await moving.counters(away)
        for name, entries in moving.record.items():
            await self._record(merge, name, entries)
        await self._reread(self._session, [merge.from_user, merge.into_user])
        return dict(moving.counts)

    async def record(self, merge: UserMerge, memories: Sequence[MergedMemoryRecord]) -> None:
        """Record which memories a merge moved and changed."""
        await self._record(
            merge, "memories", [[str(each.id), each.version, each.moved, dict(each.changes)] for each in memories]
        )

    async def _record(self, merge: UserMerge, name: str, entries: Sequence[Any]) -> None:
        rows = [
            {"tenant_id": self._tenant, "merge_id": merge.id, "name": name, "part": nth, "entries": list(some)}
            for nth, some in enumerate(parts(entries, _ENTRIES))
        ]
        if rows:
            await self._session.execute(sa.insert(tables.user_merge_rows), rows)

    async def versions(self, ids: Sequence[UUID]) -> Mapping[UUID, int]:
        """The versions that memories have now."""
        m, found = tables.memories.c, dict[UUID, int]()
        for some in parts(ids):
            statement = sa.select(m.id, m.version).where(m.tenant_id == self._tenant, m.id.in_(some))
            found |= {row.id: row.version for row in await self._session.execute(statement)}
        return found

    async def following(self, merge: UserMerge) -> UserMerge | None:
        """The merge that has moved this one's user on to another, if it stands."""
        r = tables.user_merge_rows.c
        statement = (
            sa.select(tables.user_merges, r.entries)
            .join(tables.user_merge_rows, sa.and_(r.tenant_id == _U.tenant_id, r.merge_id == _U.id))
            .where(
                _U.tenant_id == self._tenant, _U.into_user == merge.into_user, _U.id > merge.id,
                _U.undone_at.is_(None), r.name == tables.user_merges.name,
            )
        )  # fmt: skip
        for row in (await self._session.execute(statement)).mappings():
            if [str(merge.id)] in row["entries"]:
                return merge_of(dict(row))
        return None

    async def move_back(self, merge: UserMerge) -> UnmergeCounts:
        """Give back what moved and was not changed since, and forget what was recorded."""
        done = await TakingBack(self._session, merge)()
        await self._forget([merge.id])
        await self._reread(self._session, [merge.from_user, merge.into_user])
        return done

    async def forget(self, user_id: str) -> int:
        """Remove every merge from or into a user, for an erasure; how many."""
        both = sa.or_(_U.from_user == user_id, _U.into_user == user_id)
        found = sa.select(_U.id).where(_U.tenant_id == self._tenant, both)
        ids = list((await self._session.execute(found)).scalars())
        await self._forget(ids)
        for some in parts(ids):
            gone = sa.delete(tables.user_merges).where(_U.tenant_id == self._tenant, _U.id.in_(some))
            await self._session.execute(gone)
        return len(ids)

    async def expire(self, now: datetime, limit: int) -> int:
        """Forget what was recorded of merges that can no longer be undone; how many."""
        there = sa.exists().where(
            tables.user_merge_rows.c.tenant_id == _U.tenant_id, tables.user_merge_rows.c.merge_id == _U.id
        )
        found = sa.select(_U.id).where(_U.tenant_id == self._tenant, _U.revertible_until < now, there).limit(limit)
        ids = list((await self._session.execute(found)).scalars())
        await self._forget(ids)
        return len(ids)

    async def _forget(self, ids: Sequence[UUID]) -> None:
        r = tables.user_merge_rows.c
        for some in parts(ids):
            gone = sa.delete(tables.user_merge_rows).where(r.tenant_id == self._tenant, r.merge_id.in_(some))
            await self._session.execute(gone)


class Moving:
    """The moves of one merge, table by table.

    Attributes:
        record: what moved, by table.
        counts: by table, how many rows were folded into rows of the other user.
    """

    def __init__(self, session: SqlSession, merge: UserMerge) -> None:
        self._session = session
        self._tenant = session.tenant
        self._merge = merge
        self._renamed: dict[str, str] = {}
        self.record: dict[str, list[Any]] = {}
        self.counts: Counter[str] = Counter()

    async def threads(self) -> None:
        """Threads with their turns, changes, sessions and checkpoints; one whose name is taken gets another."""
        into = self._merge.into_user
        names = await self._thread_names(self._merge.from_user)
        taken = {name for some in parts(names) for name in await self._thread_names(into, some)}
        self._renamed = renamed_threads(names, taken, self._merge.id)
        v, moved = tables.thread_revision.c, list[dict[str, Any]]()
        mine = (v.tenant_id == self._tenant, v.user_id == self._merge.from_user)
        for row in (await self._session.execute(sa.select(tables.thread_revision).where(*mine))).mappings():
            name = self._renamed.get(row["thread_id"], row["thread_id"])
            moved.append(dict(row) | {"user_id": into, "thread_id": name})
        for some in parts(moved):
            await self._session.execute(sa.insert(tables.thread_revision), some)
        revisions = {row["thread_id"]: row for row in moved}
        self.record["threads"] = []
        for old in names:
            new = self._renamed.get(old, old)
            known = revisions.get(new, {"turns": None, "rev": None})
            self.record["threads"].append([new, old, known["turns"], known["rev"]])
        for some in parts(names, _THREADS):
            keys = {old: sa.literal(thread_key(into, self._renamed.get(old, old)), sa.BigInteger) for old in some}
            t = tables.turns.c
            await self._update(
                tables.turns, t.user_id, t.thread_id.in_(some), thread_key=sa.case(keys, value=t.thread_id)
            )
        for table in (*THREADED, *CHECKPOINTS):
            if table is not tables.turns:
                await self._update(table, table.c.user_id)
        await self._session.execute(sa.delete(tables.thread_revision).where(*mine))

    async def move_rows(self, table: sa.Table, column: sa.Column[Any]) -> None:
        """Rows that move as they are."""
        columns: list[sa.ColumnElement[Any]] = [*key_columns(table, column)] or [sa.literal(1)]
        keys = sa.select(*columns).where(*self._mine(table, column))
        if table is tables.user_merges:
            keys = keys.where(_U.undone_at.is_(None))
        self.record[table.name] = [plain_key(row) for row in await self._session.execute(keys)]
        await self._update(table, column)

    async def move_unless_equal(
        self, table: sa.Table, column: sa.Column[Any], same: Iterable[str], multiple: Collection[str]
    ) -> None:
        """Rows that move unless the other user has the same; of a field with one value the other user's holds."""
        other = table.alias("other")
        equal = [other.c[name] == table.c[name] for name in same]
        if table is tables.user_context:
            alone = table.c.field.not_in(sorted(multiple))
            equal = [other.c.field == table.c.field, sa.or_(other.c.value_hash == table.c.value_hash, alone)]
        there = sa.exists(
            sa.select(sa.literal(1)).where(
                other.c.tenant_id == self._tenant, other.c[column.name] == self._merge.into_user, *equal
            )
        )
        taken = (*self._mine(table, column), there)
        rows = (await self._session.execute(sa.select(table).where(*taken))).mappings()
        dropped = [row_to_json(dict(row)) for row in rows]
        self.counts[table.name] += len(dropped)
        if dropped:
            await self._session.execute(sa.delete(table).where(*taken))
        self.record[f"dropped {table.name}"] = dropped
        await self.move_rows(table, column)

    async def entities(self) -> None:
        """Entities; of one that the other user has too the mentions and aliases go to that one."""
        e, other = tables.entities.c, tables.entities.alias("other")
        both = sa.and_(
            other.c.tenant_id == e.tenant_id, other.c.user_id == self._merge.into_user, other.c.kind == e.kind,
            other.c.name_key == e.name_key,
        )  # fmt: skip
        pairs = sa.select(tables.entities, other.c.id.label("into")).join(other, both)
        rows = [
            dict(row) for row in (await self._session.execute(pairs.where(*self._mine(tables.entities)))).mappings()
        ]
        into = {row["id"]: row["into"] for row in rows}
        names = await self._aliases([*into, *into.values()])
        added = await self._join(into, names)
        self.record["folded"] = [
            row_to_json(row) | {"aliases": names.get(row["id"], []), "added": added.get(row["into"], [])}
            for row in rows
        ]
        self.counts[tables.entities.name] += len(rows)
        await self.move_rows(tables.entities, tables.entities.c.user_id)

    async def _aliases(self, ids: Sequence[UUID]) -> dict[UUID, list[list[str]]]:
        a, found = tables.entity_aliases.c, dict[UUID, list[list[str]]]()
        for some in parts(ids):
            statement = sa.select(a.entity_id, a.alias, a.alias_key).where(
                a.tenant_id == self._tenant, a.entity_id.in_(some)
            )
            for row in await self._session.execute(statement):
                found.setdefault(row.entity_id, []).append([row.alias, row.alias_key])
        return found

    async def _join(
        self, into: Mapping[UUID, UUID], names: Mapping[UUID, Sequence[Sequence[str]]]
    ) -> dict[UUID, list[str]]:
        """Give the mentions and names of some entities to others, and remove them; which names each has got."""
        j, a, e = tables.memory_entities.c, tables.entity_aliases.c, tables.entities.c
        added: dict[UUID, list[str]] = {}
        rows: list[dict[str, Any]] = []
        for gone, kept in into.items():
            known = {key for _, key in names.get(kept, ())}
            for alias, key in names.get(gone, ()):
                if key not in known:
                    row = {"id": new_id(), "entity_id": kept, "alias": alias, "alias_key": key}
                    rows.append({"tenant_id": self._tenant} | row)
                    added.setdefault(kept, []).append(key)
        for some in parts(list(into)):
            found = sa.select(j.memory_id, j.entity_id).where(j.tenant_id == self._tenant, j.entity_id.in_(some))
            mentions = [
                {"tenant_id": self._tenant, "memory_id": row.memory_id, "entity_id": into[row.entity_id]}
                for row in await self._session.execute(found)
            ]
            if mentions:
                await self._session.add(MENTIONS, mentions)
            for table, entity in ((tables.memory_entities, j.entity_id), (tables.entity_aliases, a.entity_id)):
                gone_rows = sa.delete(table).where(table.c.tenant_id == self._tenant, entity.in_(some))
                await self._session.execute(gone_rows)
            await self._session.execute(sa.delete(tables.entities).where(e.tenant_id == self._tenant, e.id.in_(some)))
        for some in parts(rows):
            await self._session.execute(sa.insert(tables.entity_aliases), some)
        return added

    async def memories(self) -> None:
        """Memories, in whatever state; their versions stay: they say what they said."""
        m = tables.memories.c
        found = sa.select(m.id).where(m.tenant_id == self._tenant, m.user_id == self._merge.from_user).order_by(m.id)
        for some in parts(list((await self._session.execute(found)).scalars())):
            await self._update(tables.memories, m.user_id, m.id.in_(some))

    async def counters(self, away: timedelta) -> None:
        """Counters and the stretches of activity, which become those of one user; jobs that wait."""
        await self._budgets()
        await self._presence(away)
        u, j = tables.user_usage.c, tables.job_runs.c
        # triggers have counted what moved
        await self._session.execute(sa.delete(tables.user_usage).where(*self._mine(tables.user_usage, u.user_id)))
        waiting = sa.update(tables.job_runs).where(
            j.tenant_id == self._tenant, j.name.in_(ON_DEMAND), j.place == self._merge.from_user
        )
        await self._session.execute(waiting.values(place=self._merge.into_user))

    async def _budgets(self) -> None:
        b = tables.token_budgets
        mine = self._mine(b)
        rows = [dict(row) for row in (await self._session.execute(sa.select(b).where(*mine))).mappings()]
        if rows:
            insert = self._session.insert(b)
            summed = {
                name: b.c[name] + insert.excluded[name]
                for name in ("reserved", "input_tokens", "output_tokens", "drawn")
            }
            statement = insert.on_conflict_do_update(index_elements=[b.c.tenant_id, b.c.day, b.c.user_id], set_=summed)
            await self._session.execute(statement, [row | {"user_id": self._merge.into_user} for row in rows])
            await self._session.execute(sa.delete(b).where(*mine))

    async def _presence(self, away: timedelta) -> None:
        a = tables.user_activity.c
        both = (a.tenant_id == self._tenant, a.user_id.in_([self._merge.from_user, self._merge.into_user]))
        rows = list(await self._session.execute(sa.select(a.user_id, a.began_at, a.last_at).where(*both)))
        if any(row.user_id == self._merge.from_user for row in rows):
            await self._session.execute(sa.delete(tables.user_activity).where(*both))
            joined = joined_presence([Presence(row.began_at, row.last_at) for row in rows], away)
            mine = {"tenant_id": self._tenant, "user_id": self._merge.into_user}
            await self._session.execute(
                sa.insert(tables.user_activity),
                [
                    mine | {"began_at": each.began_at, "last_at": each.last_at, "resumed_at": resumed}
                    for each, resumed in joined
                ],
            )

    async def _thread_names(self, user_id: str, among: Sequence[str] | None = None) -> list[str]:
        found: set[str] = set()
        for table in (tables.thread_revision, *CHECKPOINTS):
            statement = sa.select(table.c.thread_id).where(
                table.c.tenant_id == self._tenant, table.c.user_id == user_id
            )
            if among is not None:
                statement = statement.where(table.c.thread_id.in_(among))
            found.update((await self._session.execute(statement.distinct())).scalars())
        return sorted(found)

    def _mine(self, table: sa.Table, column: sa.Column[Any] | None = None) -> tuple[sa.ColumnElement[bool], ...]:
        user = table.c.user_id if column is None else column
        return (table.c.tenant_id == self._tenant, user == self._merge.from_user)

    async def _update(
        self, table: sa.Table, column: sa.Column[Any], *conditions: sa.ColumnElement[bool], **values: object
    ) -> None:
        """Rows of the user become the other one's, in a thread of another name where it was renamed."""
        if "thread_id" in table.c and self._renamed:
            thread = table.c.thread_id
            values["thread_id"] = sa.case(self._renamed, value=thread, else_=thread)
        if table is tables.user_merges:
            conditions = (*conditions, _U.undone_at.is_(None))
        statement = sa.update(table).where(*self._mine(table, column), *conditions)
        await self._session.execute(statement.values({column.name: self._merge.into_user, **values}))


def merge_of(row: Mapping[str, Any]) -> UserMerge:
    """A merge from its row."""
    return UserMerge(**{name: row[name] for name in UserMerge.__slots__})
