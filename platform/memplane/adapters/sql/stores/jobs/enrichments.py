"""Memories whose entities are looked for again, and what is found then, within a transaction."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from memplane.adapters.sql.queries import write_statements
from memplane.adapters.sql.rows import memory_of
from memplane.adapters.sql.schema import tables
from memplane.adapters.sql.session import MENTIONS, SqlSession
from memplane.adapters.sql.stores.gateway_stores import NAMED, UNKNOWN, SqlGraph, match_names
from memplane.application.records import KnownName
from memplane.domain.language.enrichment import Enriched
from memplane.domain.language.entities import Mention
from memplane.domain.memory.memory import Memory, State

_MANY = 500


class SqlEnrichments:
    """The second look at memories with few entities."""

    def __init__(self, session: SqlSession, graph: SqlGraph) -> None:
        self._session = session
        self._tenant = session.tenant
        self._graph = graph

    async def due(self, by: str, after: UUID | None, limit: int) -> list[Memory]:
        """Active memories at which this did not look since they were written, after one, in the order of their ids."""
        statement = self._unseen(by)
        if after is not None:
            statement = statement.where(tables.memories.c.id > after)
        return await self._found(statement.limit(limit))

    async def lock(self, by: str, ids: Sequence[UUID]) -> list[Memory]:
        """Those of some memories that are still due, locked, in the order of their ids."""
        return await self._found(self._unseen(by).where(tables.memories.c.id.in_(ids)).with_for_update())

    async def counts(self, ids: Sequence[UUID]) -> Mapping[UUID, int]:
        """How many entities memories mention; those without any are left out."""
        j = tables.memory_entities.c
        statement = sa.select(j.memory_id, sa.func.count().label("entities")).where(
            j.tenant_id == self._tenant, j.memory_id.in_(ids)
        )
        return {row.memory_id: row.entities for row in await self._session.execute(statement.group_by(j.memory_id))}

    async def keep(self, user_id: str, found: Mapping[UUID, Enriched], now: datetime) -> int:
        """Link a user's memories with what they mention, and no longer with what they only seemed to; how many were."""
        wanted, same = _unified(found)
        names = [each for part in _parts(_named(found)) for each in await self._graph.known_names(user_id, part)]
        ids: dict[tuple[str, str], UUID] = {}
        for part in _parts(wanted):
            keys = {mention.key for mention in part}
            ids |= await self._graph.entity_ids(user_id, part, now, [name for name in names if name.key in keys])
        ids |= {place: ids[one] for place, one in same.items()}
        links = {(memory, ids[each.kind, each.key]) for memory, one in found.items() for each in one.mentions}
        await self._unlink(self._dropped(found, names) - links)
        there = await self._linked(list(found))
        rows = [
            {"tenant_id": self._tenant, "memory_id": memory, "entity_id": entity}
            for memory, entity in sorted(links - there)
        ]
        for start in range(0, len(rows), _MANY):
            await self._session.add(MENTIONS, rows[start : start + _MANY])
        return len({memory for memory, _ in links - there})

    async def mark(self, ids: Sequence[UUID], by: str) -> None:
        """Note what looked at memories that are locked; without a version."""
        if ids:
            m = tables.memories.c
            statement = sa.update(tables.memories).where(m.tenant_id == self._tenant, m.id.in_(ids))
            await self._session.execute(statement.values(enriched_by=by))

    def _unseen(self, by: str) -> sa.Select[tuple[object, ...]]:
        m = tables.memories.c
        unseen = sa.or_(m.enriched_by.is_(None), m.enriched_by != by)
        statement = sa.select(*write_statements.MEMORY).where(
            m.tenant_id == self._tenant, m.state == sa.literal_column(f"'{State.ACTIVE}'"), unseen
        )
        return statement.order_by(m.id)

    async def _found(self, statement: sa.Select[tuple[object, ...]]) -> list[Memory]:
        return [memory_of(dict(row)) for row in (await self._session.execute(statement)).mappings()]

    async def _linked(self, ids: Sequence[UUID]) -> set[tuple[UUID, UUID]]:
        j = tables.memory_entities.c
        statement = sa.select(j.memory_id, j.entity_id).where(j.tenant_id == self._tenant, j.memory_id.in_(ids))
        return {(row.memory_id, row.entity_id) for row in await self._session.execute(statement)}

    def _dropped(self, found: Mapping[UUID, Enriched], names: Sequence[KnownName]) -> set[tuple[UUID, UUID]]:
        lost = {(each.kind, each.key) for one in found.values() for each in one.dropped}
        ids, _ = match_names(names, lost)
        return {
            (memory, ids[each.kind, each.key])
            for memory, one in found.items()
            for each in one.dropped
            if (each.kind, each.key) in ids
        }

    async def _unlink(self, links: set[tuple[UUID, UUID]]) -> None:
        j = tables.memory_entities.c
        for start in range(0, len(links), _MANY):
            some = sorted(links)[start : start + _MANY]
            pairs = sa.tuple_(j.memory_id, j.entity_id).in_(some)
            # by the memories first: no index serves pairs on SQLite
            memories = j.memory_id.in_({memory for memory, _ in some})
            await self._session.execute(
                sa.delete(tables.memory_entities).where(j.tenant_id == self._tenant, memories, pairs)
            )


def _unified(
    found: Mapping[UUID, Enriched],
) -> tuple[list[Mention], dict[tuple[str, str], tuple[str, str]]]:
    """What is mentioned, each once, and which of it is the same: a name whose kind another of the texts shows."""
    every = {(each.kind, each.key): each for one in found.values() for each in one.mentions}
    shown = {key: kind for kind, key in sorted(every, reverse=True) if kind in NAMED - {UNKNOWN}}
    same = {(UNKNOWN, key): (kind, key) for key, kind in shown.items() if (UNKNOWN, key) in every}
    return [every[place] for place in sorted(every.keys() - same.keys())], same


def _named(found: Mapping[UUID, Enriched]) -> list[Mention]:
    named = {(each.kind, each.key): each for one in found.values() for each in (*one.mentions, *one.dropped)}
    return [named[place] for place in sorted(named)]


def _parts(every: Sequence[Mention]) -> Iterator[Sequence[Mention]]:
    return (every[start : start + _MANY] for start in range(0, len(every), _MANY))
