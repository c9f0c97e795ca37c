"""Taking back what one writer changed, on both databases: every look and every change is of many rows at once."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.queries import write_statements
from memplane.adapters.sql.rows import (
    TURN_COLUMNS,
    context_field_of,
    material_values,
    memory_of,
    memory_values,
    turn_of,
)
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import MANY, MENTIONS, UNDO, SqlSession
from memplane.application.recall.search_material import SearchMaterial
from memplane.application.records import ContextField
from memplane.application.reverts.revert_ports import RejectedValue, RevertedWriter
from memplane.domain.consent.consent_rules import ProposalState
from memplane.domain.identity.principal import SUBJECT
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import Memory, State, TrustState, Turn, first_id, new_id
from memplane.domain.memory.revert_rules import RecordedChange, known_changes
from memplane.domain.memory.undo_records import UndoKind, UndoRecord
from memplane.domain.ranking.embedding_models import Column

T = TypeVar("T")
_CLOCKS = timedelta(days=1)
"""So far the clocks of two servers may be apart, and more: ids follow the clock of the server that made them."""
_TURN = [tables.turns.c[name] for name in TURN_COLUMNS]
_H, _O = tables.history.c, tables.undo_records.c
_IS_DEED = sa.and_(
    sa.or_(_H.event != HistoryEvent.LINK, _H.meta["links"].as_string().is_(None)),
    _H.event.not_in([HistoryEvent.USER_MERGE, HistoryEvent.USER_UNMERGE]),
)
"""Entries that only list new relations are left out: relations go with their memories. So are merges of users, which
are undone in their own way."""
_DEED = [
    *(_H[name] for name in ("id", "memory_id", "of_user", "event", "actor", "ts", "old_ref", "new_ref", "meta")),
    *(_O[name] for name in ("changes", "said", "reverted_by")),
    _O.id.label("undo"),
]
_DISPUTES = "disputes"
_BESIDE_MEMORIES = _O.kind != sa.literal_column(f"'{UndoKind.MEMORY}'")  # as the partial indexes have it


class SqlReverts:
    """What one writer changed, and what else there is to it."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._tenant = session.tenant

    async def users(self, writer: RevertedWriter) -> list[str]:
        """User ids with writes of this writer that are not reverted yet, sorted."""
        t = tables.turns.c
        found = [
            self._of(writer, sa.select(_H.of_user)),  # of nobody: where the words were erased, and receipts
            self._noted(writer, sa.select(_O.user_id)),
        ]
        of_turns = sa.select(t.user_id).where(t.tenant_id == self._tenant, t.recorded_at >= writer.since)
        found += [of_turns.where(*own) for own in _recorded(writer)]  # each by an index of its own
        names: set[str | None] = set()
        for statement in found:
            names.update((await self._session.execute(statement.distinct())).scalars())
        merged = await self._merged({name for name in names if name is not None})
        return sorted(set(merged.values()))

    async def _merged(self, users: Collection[str]) -> Mapping[str, str]:
        """Who has the records of users by now, by their names: history keeps the name of a user that was merged."""
        u, found = tables.user_merges.c, {user: user for user in users}
        for some in _parts(sorted(users)):
            statement = sa.select(u.from_user, u.into_user).where(
                u.tenant_id == self._tenant, u.from_user.in_(some), u.undone_at.is_(None)
            )
            found |= {row.from_user: row.into_user for row in await self._session.execute(statement)}
        return found

    async def deeds_of(
        self, writer: RevertedWriter, user_id: str, before: UUID | None, limit: int
    ) -> list[RecordedChange]:
        """What of the writer's changes was not taken back, newest first, those older than ``before``."""
        u = tables.user_merges.c
        merged = sa.select(u.from_user).where(
            u.tenant_id == self._tenant, u.into_user == user_id, u.undone_at.is_(None)
        )
        own = sa.or_(_H.of_user == user_id, _H.of_user.in_(merged))
        statement = self._of(writer, sa.select(*_DEED)).where(own)
        if before is not None:
            statement = statement.where(_H.id < before)
        rows = await self._session.execute(statement.order_by(_H.id.desc()).limit(limit))
        return [_deed_of(dict(row)) for row in rows.mappings()]

    def _of(self, writer: RevertedWriter, statement: sa.Select[Any]) -> sa.Select[Any]:
        """Entries of the history that are a writer's and were not taken back."""
        own = _H.key_id == writer.key_id if writer.key_id else _H.actor == writer.actor
        return self._with_undo(statement).where(
            _H.tenant_id == self._tenant, _H.id >= first_id(writer.since - _CLOCKS), _H.ts >= writer.since, own,
            _IS_DEED,
            _O.reverted_by.is_(None),
        )  # fmt: skip

    def _with_undo(self, statement: sa.Select[Any]) -> sa.Select[Any]:
        same = sa.and_(_O.tenant_id == self._tenant, _O.id == _H.id)
        return statement.select_from(tables.history.outerjoin(tables.undo_records, same))

    async def deeds_on(self, ids: Collection[UUID], since: datetime) -> Mapping[UUID, list[RecordedChange]]:
        """What anybody did to memories since a moment, or since the first change that was taken back; oldest first."""
        found: dict[UUID, list[RecordedChange]] = {each: [] for each in ids}
        for some in _parts(sorted(ids)):
            first = sa.select(sa.func.min(_O.ts)).where(
                _O.tenant_id == self._tenant, _O.about.in_(some), _O.reverted_by.is_not(None)
            )
            then = (await self._session.execute(first)).scalar_one_or_none()
            begin = since if then is None else min(since, then)
            statement = self._with_undo(sa.select(*_DEED)).where(
                _H.tenant_id == self._tenant, _H.memory_id.in_(some), _H.ts >= begin, _IS_DEED
            )
            for row in (await self._session.execute(statement.order_by(_H.ts, _H.id))).mappings():
                found[row["memory_id"]].append(_deed_of(dict(row)))
        return found

    def _noted(self, writer: RevertedWriter, statement: sa.Select[Any]) -> sa.Select[Any]:
        own = _O.key_id == writer.key_id if writer.key_id else _O.actor == writer.actor
        return statement.where(
            _O.tenant_id == self._tenant, _O.id >= first_id(writer.since - _CLOCKS), _O.ts >= writer.since, own,
            _BESIDE_MEMORIES, _O.reverted_by.is_(None),
        )  # fmt: skip

    async def writer_records(self, writer: RevertedWriter, user_id: str, since: datetime) -> list[UndoRecord]:
        """What the writer changed besides memories and was not taken back, newest first."""
        statement = self._noted(writer, sa.select(tables.undo_records)).where(_O.user_id == user_id, _O.ts >= since)
        rows = (await self._session.execute(statement.order_by(_O.id.desc()))).mappings()
        return [_record_of(dict(row)) for row in rows]

    async def decision_records(self, user_id: str, since: datetime) -> list[UndoRecord]:
        """What anybody's decisions on fields of a user replaced since a moment."""
        statement = sa.select(tables.undo_records).where(
            _O.tenant_id == self._tenant, _O.user_id == user_id, _O.id >= first_id(since - _CLOCKS),
            _O.kind == UndoKind.FIELD,
        )  # fmt: skip
        return [_record_of(dict(row)) for row in (await self._session.execute(statement)).mappings()]

    async def proposal_records(self, proposals: Collection[UUID]) -> Mapping[UUID, list[UndoRecord]]:
        """Who made or repeated proposals, by proposal."""
        found: dict[UUID, list[UndoRecord]] = {each: [] for each in proposals}
        for some in _parts(sorted(proposals)):
            statement = sa.select(tables.undo_records).where(
                _O.tenant_id == self._tenant, _O.about.in_(some), _O.kind == UndoKind.PROPOSAL
            )
            for row in (await self._session.execute(statement)).mappings():
                found[row["about"]].append(_record_of(dict(row)))
        # not by the database: SQLite would rather read a tenant in order than sort a few rows
        return {about: sorted(notes, key=lambda note: note.id) for about, notes in found.items()}

    async def turns(self, writer: RevertedWriter, user_id: str, since: datetime) -> list[Turn]:
        """A user's turns that the writer recorded since a moment."""
        t = tables.turns.c
        own = sa.or_(*(sa.and_(*each) for each in _recorded(writer)))
        statement = sa.select(*_TURN).where(
            t.tenant_id == self._tenant, t.user_id == user_id, t.recorded_at >= since, own
        )
        rows = (await self._session.execute(statement.order_by(t.id))).mappings()
        return [turn_of(dict(row)) for row in rows]

    async def memories(self, ids: Collection[UUID]) -> list[Memory]:
        """Memories in whatever state, locked."""
        m = tables.memories.c
        found: list[Memory] = []
        for some in _parts(sorted(ids)):
            statement = sa.select(*write_statements.MEMORY).where(m.tenant_id == self._tenant, m.id.in_(some))
            rows = await self._session.execute(statement.order_by(m.id).with_for_update())
            found += [memory_of(dict(row)) for row in rows.mappings()]
        return found

    async def ended_by(self, user_id: str, ids: Collection[UUID]) -> list[UUID]:
        """Memories of a user in whose place others are."""
        m = tables.memories.c
        found: list[UUID] = []
        for some in _parts(sorted(ids)):
            statement = sa.select(m.id).where(
                m.tenant_id == self._tenant, m.user_id == user_id, m.superseded_by.in_(some)
            )
            found += (await self._session.execute(statement)).scalars()
        return found

    async def changed_since(self, user_id: str, since: datetime) -> list[Memory]:
        """Memories of a user that hold or held and were changed since a moment, locked."""
        m = tables.memories.c
        statement = sa.select(*write_statements.MEMORY).where(
            m.tenant_id == self._tenant, m.user_id == user_id, m.updated_at >= since,
            m.state.in_((State.ACTIVE, State.SUPERSEDED)),
        )  # fmt: skip
        rows = (await self._session.execute(statement.order_by(m.id).with_for_update())).mappings()
        return [memory_of(dict(row)) for row in rows]

    async def holding(self, memories: Collection[Memory]) -> list[Memory]:
        """Other active memories of the values and names of some of one user."""
        m = tables.memories.c
        own, found = {memory.id for memory in memories}, dict[UUID, Memory]()
        users = sorted({memory.user_id for memory in memories})
        held = (
            (m.value_hash, sorted({memory.value_hash for memory in memories})),
            (m.external_id, sorted({memory.external_id for memory in memories if memory.external_id is not None})),
        )
        for column, values in held:
            for some in _parts(values):
                statement = sa.select(*write_statements.MEMORY).where(
                    m.tenant_id == self._tenant, m.user_id.in_(users), column.in_(some),
                    m.state == sa.literal_column(f"'{State.ACTIVE}'"),
                )  # fmt: skip
                rows = (await self._session.execute(statement)).mappings()
                found |= {row["id"]: memory_of(dict(row)) for row in rows if row["id"] not in own}
        return list(found.values())

    async def disputes(self, ids: Collection[UUID]) -> Mapping[UUID, frozenset[UUID]]:
        """By memory that disputes one of some, all that it disputes."""
        these, others = tables.relations.alias("these"), tables.relations.alias("others")
        r, o = these.c, others.c
        found: dict[UUID, frozenset[UUID]] = {}
        for some in _parts(sorted(ids)):
            same = sa.and_(o.tenant_id == r.tenant_id, o.from_id == r.from_id, o.relation_type == r.relation_type)
            statement = (
                sa.select(o.from_id, o.to_id, r.strength)  # else SQLite prefers the index that has all columns
                .select_from(these.join(others, same))
                .where(r.tenant_id == self._tenant, r.to_id.in_(some), r.relation_type == _DISPUTES)
            )
            for row in await self._session.execute(statement):
                found[row.from_id] = found.get(row.from_id, frozenset()) | {row.to_id}
        return found

    async def rejected_memories(self, user_id: str, but: Collection[UUID]) -> list[Memory]:
        """What a person rejected of a user, but for some."""
        m = tables.memories.c
        statement = sa.select(*write_statements.MEMORY).where(
            m.tenant_id == self._tenant, m.user_id == user_id, m.state == State.SOFT_DELETED,
            m.trust_state == TrustState.REJECTED,
        )  # fmt: skip
        rows = (await self._session.execute(statement)).mappings()
        return [memory_of(dict(row)) for row in rows if row["id"] not in but]

    async def fields(self, user_id: str) -> list[ContextField]:
        """All decided fields of a user."""
        c = tables.user_context.c
        statement = sa.select(tables.user_context).where(c.tenant_id == self._tenant, c.user_id == user_id)
        return [context_field_of(dict(row)) for row in (await self._session.execute(statement)).mappings()]

    async def corroborations(self, user_id: str) -> list[tuple[str, str, UUID]]:
        """What corroborates benign fields of a user: field, value and turn."""
        s = tables.context_signals.c
        statement = sa.select(s.field, s.value_hash, s.turn_id).where(s.tenant_id == self._tenant, s.user_id == user_id)
        return [(row.field, row.value_hash, row.turn_id) for row in await self._session.execute(statement)]

    async def standing(self, gone: UUID, kept: UUID) -> Mapping[str, Any]:
        """Two entities before one is put into the other, as an undo record has them."""
        e, a, j = tables.entities.c, tables.entity_aliases.c, tables.memory_entities.c
        both = sa.select(tables.entities).where(e.tenant_id == self._tenant, e.id.in_([gone, kept]))
        rows = {row["id"]: row for row in (await self._session.execute(both)).mappings()}
        named = sa.select(a.entity_id, a.alias, a.alias_key).where(
            a.tenant_id == self._tenant, a.entity_id.in_([gone, kept])
        )
        aliases = list(await self._session.execute(named))
        mentioned = sa.select(j.entity_id, j.memory_id).where(
            j.tenant_id == self._tenant, j.entity_id.in_([gone, kept])
        )
        memories = list(await self._session.execute(mentioned))
        one = rows.get(gone)
        return {
            "gone": str(gone), "kept": str(kept),
            "entity": None if one is None else {name: one[name] for name in ("user_id", "kind", "name", "name_key")},
            "created_at": None if one is None else one["created_at"].isoformat(),
            "aliases": [[row.alias, row.alias_key] for row in aliases if row.entity_id == gone],
            "known": [row.alias_key for row in aliases if row.entity_id == kept],
            "memories": sorted(str(row.memory_id) for row in memories if row.entity_id == gone),
            "shared": sorted(str(row.memory_id) for row in memories if row.entity_id == kept),
        }  # fmt: skip

    async def replace(self, memories: Sequence[tuple[Memory, SearchMaterial | None]]) -> None:
        """Store locked memories, with search material where their words changed; those that leave come first."""
        m = tables.memories.c
        ordered = sorted(memories, key=lambda pair: pair[0].id)
        # one may take the value or the name that another of them still has
        for some in _parts([memory.id for memory, _ in ordered if memory.state is State.ACTIVE]):
            away = sa.update(tables.memories).where(m.tenant_id == self._tenant, m.id.in_(some))
            await self._session.execute(away.values(state=State.SUPERSEDED))
        for active in (False, True):
            for with_material in (False, True):
                rows = [
                    self._values(memory, material)
                    for memory, material in ordered
                    if (memory.state is State.ACTIVE, material is not None) == (active, with_material)
                ]
                statement = write_statements.replacing(with_material=with_material, active=False)
                for some_rows in _parts(rows):
                    await self._session.execute(statement, some_rows)

    def _values(self, memory: Memory, material: SearchMaterial | None) -> dict[str, Any]:
        values: dict[str, Any] = memory_values(memory)
        if material is not None:
            values |= dict.fromkeys(Column) | material_values(material, self._session.in_force)
        for counted in ("access_count", "last_accessed"):
            del values[counted]
        return {"of_tenant": self._tenant} | {f"new_{name}": value for name, value in values.items()}

    async def mention(self, memories: Mapping[UUID, Sequence[UUID]]) -> None:
        """Note which entities memories mention, instead of those that they did before."""
        j = tables.memory_entities.c
        for some in _parts(sorted(memories)):
            gone = sa.delete(tables.memory_entities).where(j.tenant_id == self._tenant, j.memory_id.in_(some))
            await self._session.execute(gone)
        rows = [
            {"tenant_id": self._tenant, "memory_id": memory, "entity_id": entity}
            for memory, entities in sorted(memories.items())
            for entity in sorted(entities)
        ]
        if rows:
            await self._session.add(MENTIONS, rows)

    async def remove_turns(self, user_id: str, turns: Sequence[Turn]) -> None:
        """Remove turns, and what they corroborated."""
        s, t = tables.context_signals.c, tables.turns.c
        for some in _parts([turn.id for turn in turns]):
            spoke = (s.tenant_id == self._tenant, s.user_id == user_id, s.turn_id.in_(some))
            await self._session.execute(sa.delete(tables.context_signals).where(*spoke))
            gone = sa.delete(tables.turns).where(t.tenant_id == self._tenant, t.id.in_(some))
            await self._session.execute(gone)

    async def put_fields(self, gone: Sequence[ContextField], back: Sequence[ContextField]) -> None:
        """Remove decided fields, and store others."""
        c = tables.user_context.c
        key = sa.tuple_(c.user_id, c.field, c.value_hash)
        for some in _parts([(row.user_id, row.field, row.value_hash) for row in gone]):
            await self._session.execute(
                sa.delete(tables.user_context).where(c.tenant_id == self._tenant, key.in_(some))
            )
        rows = [
            {"tenant_id": self._tenant} | {name: getattr(row, name) for name in ContextField.__slots__} for row in back
        ]
        for some_rows in _parts(rows):
            await self._session.execute(self._session.insert(tables.user_context).on_conflict_do_nothing(), some_rows)

    async def reopen(self, proposals: Collection[UUID]) -> None:
        """Let decided proposals wait again."""
        p = tables.consent_proposals.c
        undecided: dict[str, Any] = dict.fromkeys(
            ("decided_at", "decided_by", "acknowledged_by", "memory_id", "reason")
        )
        undecided |= {"state": ProposalState.PENDING, "self_acknowledged": False}
        for some in _parts(sorted(proposals)):
            these = (p.tenant_id == self._tenant, p.id.in_(some))
            await self._session.execute(sa.update(tables.consent_proposals).where(*these).values(**undecided))

    async def tombstones_since(self, user_id: str, since: datetime) -> list[RejectedValue]:
        """Values of a user that were buried since a moment."""
        b = tables.tombstones.c
        statement = sa.select(b.id, b.category, b.value_hash.label("key"), b.actor, b.ts).where(
            b.tenant_id == self._tenant, b.scope == user_id, b.ts >= since
        )
        return [RejectedValue(**row) for row in (await self._session.execute(statement)).mappings()]

    async def lift(self, graves: Collection[UUID]) -> None:
        """Take back what was buried."""
        b = tables.tombstones.c
        for some in _parts(sorted(graves)):
            gone = sa.delete(tables.tombstones).where(b.tenant_id == self._tenant, b.id.in_(some))
            await self._session.execute(gone)

    async def unlink(self, kind: str, pairs: Collection[tuple[UUID, UUID]]) -> None:
        """Remove relations of a kind between pairs, in either direction."""
        r = tables.relations.c
        both = sorted({*pairs, *((other, one) for one, other in pairs)})
        gone = sa.delete(tables.relations).where(
            r.tenant_id == self._tenant, r.relation_type == kind,
            r.from_id == sa.bindparam("one"), r.to_id == sa.bindparam("other"),
        )  # fmt: skip
        for some in _parts(both):
            await self._session.execute(gone, [{"one": one, "other": other} for one, other in some])

    async def reopen_sessions(self, user_id: str, summaries: Collection[UUID]) -> None:
        """Let conversations be closed again whose summaries are gone."""
        s = tables.sessions.c
        for some in _parts(sorted(summaries)):
            these = (s.tenant_id == self._tenant, s.user_id == user_id, s.summary_id.in_(some))
            await self._session.execute(sa.update(tables.sessions).where(*these).values(seq=0, summary_id=None))

    async def unname(self, entity_id: UUID, alias_key: str) -> bool:
        """Take another name from an entity; False when it does not have it."""
        a = tables.entity_aliases.c
        gone = sa.delete(tables.entity_aliases).where(
            a.tenant_id == self._tenant, a.entity_id == entity_id, a.alias_key == alias_key
        )
        return await self._session.rows_changed(gone) > 0

    async def unfold(self, before: Mapping[str, Any]) -> bool:
        """Take an entity out of another again; False when that one is gone, or the name is taken."""
        m = tables.memories.c
        e, a, j = tables.entities.c, tables.entity_aliases.c, tables.memory_entities.c
        gone, kept, entity = UUID(before["gone"]), UUID(before["kept"]), before["entity"]
        there = sa.select(e.id).where(e.tenant_id == self._tenant, e.id == kept).with_for_update()
        if entity is None or (await self._session.execute(there)).first() is None:
            return False
        row = {"tenant_id": self._tenant, "id": gone, "created_at": datetime.fromisoformat(before["created_at"])}
        made = self._session.insert(tables.entities).values(**row, **entity).on_conflict_do_nothing().returning(e.id)
        if (await self._session.execute(made)).first() is None:
            return False
        names = [entity["name_key"], *(key for _, key in before["aliases"])]
        taken = [key for key in names if key not in before["known"]]
        await self._session.execute(
            sa.delete(tables.entity_aliases).where(
                a.tenant_id == self._tenant, a.entity_id == kept, a.alias_key.in_(taken)
            )
        )
        aliases = [
            {"tenant_id": self._tenant, "id": new_id(), "entity_id": gone, "alias": alias, "alias_key": key}
            for alias, key in before["aliases"]
        ]
        if aliases:
            await self._session.execute(sa.insert(tables.entity_aliases), aliases)
        own = [UUID(each) for each in before["memories"]]
        alone = [each for each in own if str(each) not in before["shared"]]
        for some in _parts(own):
            moved = sa.select(m.tenant_id, m.id, sa.literal(gone, sa.Uuid())).where(
                m.tenant_id == self._tenant, m.id.in_(some)
            )
            junction = self._session.insert(tables.memory_entities)
            await self._session.execute(
                junction.from_select(["tenant_id", "memory_id", "entity_id"], moved).on_conflict_do_nothing()
            )
        for some in _parts(alone):
            left = (j.tenant_id == self._tenant, j.entity_id == kept, j.memory_id.in_(some))
            await self._session.execute(sa.delete(tables.memory_entities).where(*left))
        return True

    async def mark(self, receipt: UUID, deeds: Sequence[RecordedChange], noted: Sequence[UndoRecord]) -> None:
        """Note that changes are taken back."""
        there = [deed.id for deed in deeds if deed.changes is not None] + [each.id for each in noted]
        for some in _parts(sorted(there)):
            these = (_O.tenant_id == self._tenant, _O.id.in_(some))
            await self._session.execute(sa.update(tables.undo_records).where(*these).values(reverted_by=receipt))
        rows = [
            {
                "tenant_id": self._tenant, "id": deed.id, "user_id": deed.user_id, "about": deed.memory_id,
                "kind": UndoKind.MEMORY, "actor": deed.actor, "key_id": deed.key_id, "ts": deed.ts,
                "changes": dict(known_changes(deed, None)), "said": None, "reverted_by": receipt,
            }
            for deed in deeds
            if deed.changes is None
        ]  # fmt: skip
        if rows:
            await self._session.add(UNDO, rows)

    async def unmark(self, user_id: str, receipts: Collection[UUID]) -> None:
        """Clear the mark of these receipts from a user's undo records: a reverted revert."""
        for some in _parts(sorted(receipts)):
            these = (_O.tenant_id == self._tenant, _O.user_id == user_id, _O.reverted_by.in_(some))
            await self._session.execute(sa.update(tables.undo_records).where(*these).values(reverted_by=None))

    async def count_refused(self, user_id: str, since: datetime, categories: Collection[str] | None) -> int:
        """How many writes of a user, in some categories or all, were refused since a moment, whoever sent them."""
        """Count refused writes for a user since a moment, by any sender, in the given categories or in all."""
        e = tables.events.c
        statement = sa.select(sa.func.count()).where(
            e.tenant_id == self._tenant, e.user_id == user_id, e.ts >= since, e.op == "refuse"
        )
        if categories is not None:
            statement = statement.where(e.category.in_(sorted(categories)))
        found: int = (await self._session.execute(statement)).scalar_one()
        return found

    async def keys_made(self, writer: RevertedWriter) -> list[str]:
        """Keys that the writer made or renewed since."""
        k = tables.key_history.c
        own = k.by_key == writer.key_id if writer.key_id else k.by_key.in_(sorted(writer.keys))
        statement = sa.select(k.key_id).where(
            k.tenant_id == self._tenant, k.ts >= writer.since, own, k.event.in_(("created", "rotated"))
        )
        return sorted(set((await self._session.execute(statement)).scalars()) - {writer.key_id})

    async def checkpoints(self, writer: RevertedWriter, users: Collection[str] | None) -> int:
        """How many checkpoints and supervisors' states of some or all users are as the writer saved them since."""
        found = 0
        for table, moment in ((tables.checkpoints, "created_at"), (tables.supervisor_checkpoints, "updated_at")):
            c = table.c
            for key in sorted(writer.keys) if writer.key_id is None else [writer.key_id]:
                saved = sa.select(sa.func.count()).where(
                    c.tenant_id == self._tenant, c.key_id == key, c[moment] >= writer.since
                )
                statement = saved if users is None else saved.where(c.user_id.in_(sorted(users)))
                found += (await self._session.execute(statement)).scalar_one()
        return found


def _recorded(writer: RevertedWriter) -> list[tuple[sa.ColumnElement[bool], ...]]:
    """Which turns are the writer's, each way: only their keys are noted, or of a token its subject."""
    t = tables.turns.c
    if writer.key_id is not None:
        return [(t.key_id == writer.key_id,)]
    by_token = (t.agent_id == writer.agent, t.key_id.startswith(SUBJECT))
    return [*((t.key_id == key,) for key in sorted(writer.keys)), by_token]


def _deed_of(row: Mapping[str, Any]) -> RecordedChange:
    meta: Mapping[str, Any] = row["meta"]
    changes = None if row["undo"] is None else row["changes"]
    return RecordedChange(
        row["id"], row["memory_id"], row["of_user"] or "", HistoryEvent(row["event"]), row["actor"], meta.get("key"),
        row["ts"], row["old_ref"], row["new_ref"], meta, changes, row["said"], row["reverted_by"],
    )  # fmt: skip


def _record_of(row: Mapping[str, Any]) -> UndoRecord:
    return UndoRecord(
        row["id"], row["user_id"], row["about"], UndoKind(row["kind"]), row["actor"], row["key_id"], row["ts"],
        row["changes"], row["said"], row["reverted_by"],
    )  # fmt: skip


def _parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), MANY):
        yield values[start : start + MANY]
