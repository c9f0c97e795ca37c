"""One read-only transaction of one tenant: what both databases share."""

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from memplane.adapters.sql.queries import read_statements
from memplane.adapters.sql.queries.portable_reader import SqlPortableReader
from memplane.adapters.sql.queries.read_statements import Statement
from memplane.adapters.sql.queries.tracking_reader import SqlTrackingReader
from memplane.adapters.sql.rows import Row, context_field_of, history_of, memory_of, proposal_of, turn_of
from memplane.adapters.sql.scope import Syntax
from memplane.adapters.sql.stores.checkpoints import SqlCheckpointReader
from memplane.application.operations.tracking_records import TurnSpan
from memplane.application.ports import Unit
from memplane.application.recall.search_material import Candidates, Query
from memplane.application.records import (
    ConflictPair,
    ContextField,
    Entity,
    EntityProfile,
    EntityQuery,
    Proposal,
    ProposalQuery,
    RelatedEntity,
    TombstonedValues,
    TombstoneQuery,
)
from memplane.domain.consent.consent_rules import state_at
from memplane.domain.memory.delta import ChangeEvent, ChangeLogEntry
from memplane.domain.memory.history import HistoryEntry
from memplane.domain.memory.items import ItemMemory, address_of
from memplane.domain.memory.memory import Memory, Turn
from memplane.domain.memory.scope import Scope

_FEW_USERS = 64
"""Of a key that is bound to more users than that the newest units are looked for among the tenant's."""


class SqlReader(ABC):
    """Runs the shared statements; a database adds how rows are fetched and how candidates are found.

    Attributes:
        syntax: how the database writes the scope predicate.
    """

    syntax: Syntax

    def __init__(self, tenant: str) -> None:
        self._tenant = tenant

    @property
    def checkpoints(self) -> SqlCheckpointReader:
        """Checkpoints of the tenant."""
        return SqlCheckpointReader(self._tenant, self.syntax, self.rows_of_all)

    @property
    def portable(self) -> SqlPortableReader:
        """All records of one user, page by page."""
        return SqlPortableReader(self.syntax, self.rows_of_all)

    @property
    def tracking(self) -> SqlTrackingReader:
        """Statistics and operational events."""
        return SqlTrackingReader(self.syntax, self.rows_of_all)

    @abstractmethod
    async def rows(self, statement: Statement) -> list[Row]:
        """The rows of a statement, by column name, as Python values."""

    @abstractmethod
    async def rows_of_all(self, asked: Sequence[Statement]) -> list[list[Row]]:
        """The rows of several statements, in one exchange with the database."""

    @abstractmethod
    async def candidates_apart(self, scope: Scope, query: Query) -> Candidates:
        """All memories and turns in a scope that takes in nothing shared, with their signals for the query."""

    async def candidates(self, scope: Scope, query: Query) -> Candidates:
        """All memories and turns in scope, with their signals for the query.

        What is shared is found and remembered by itself, for all users together: no user's scope grows by it.
        """
        found = await self.candidates_apart(scope.without_shared, query)
        if (beside := scope.of_shared) is None:
            return found
        return found.followed_by(await self.candidates_apart(beside, query))

    async def time_zones(self, users: Collection[str]) -> dict[str, str]:
        """The time zones that some users set."""
        rows = await self.rows(read_statements.time_zones(self._tenant, self.syntax, users))
        return {row["user_id"]: row["time_zone"] for row in rows}

    async def merged_into(self, user_id: str) -> str | None:
        """The user that another one was merged into; ``None`` for one that was not."""
        rows = await self.rows(read_statements.merged_into(self._tenant, self.syntax, user_id))
        return rows[0]["into_user"] if rows else None

    async def newest(self, scope: Scope, limit: int) -> list[UUID]:
        """Ids of the newest memories and turns in scope, newest first."""
        users, own, beside = sorted(scope.users or ()), scope.without_shared, scope.of_shared
        of = [own]
        if scope.filters.user_id is None and 1 < len(users) <= _FEW_USERS:
            of = [replace(own, filters=replace(scope.filters, user_id=user)) for user in users]
        of += [] if beside is None else [beside]
        # one after the other, each by its own index: all at once would be walked with the rest of the tenant's
        found = await self.rows_of_all([read_statements.newest(each, self.syntax, limit) for each in of])
        return sorted((row["id"] for rows in found for row in rows), reverse=True)[:limit]

    async def units(self, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, Unit]:
        """The memories and turns with these ids that are in scope."""
        return _units_of(await self.rows_of_all(read_statements.units_by_id(scope, self.syntax, ids)))

    async def memories(self, scope: Scope, *, before: UUID | None, limit: int) -> list[Memory]:
        """Memories in scope, newest first, those older than ``before``."""
        statement = read_statements.page_of_memories(scope, self.syntax, before, limit)
        return [memory_of(row) for row in await self.rows(statement)]

    async def memories_by_name(self, scope: Scope, names: Sequence[str]) -> list[Memory]:
        """Memories in scope by the caller's own names for them, unique for each user."""
        return [memory_of(row) for row in await self.rows(read_statements.memories_by_name(scope, self.syntax, names))]

    async def items(self, scope: Scope, labels: Sequence[str]) -> list[ItemMemory]:
        """Where the items of a store in scope stand whose namespace begins with some labels, oldest first."""
        found: list[ItemMemory] = []
        for row in await self.rows(read_statements.items(scope, self.syntax, labels)):
            said = None if row["labels"] is None else json.loads(row["labels"])
            place = address_of(row["user_id"], row["category"], said, row["key"])
            if place is not None and place.name == row["external_id"]:  # anybody may choose such a name
                found.append(ItemMemory(row["id"], place))
        return found

    async def pages_and_window(
        self, pages: Sequence[tuple[Scope, int]], scope: Scope, thread_id: str, limit: int
    ) -> tuple[list[list[Memory]], list[Turn]]:
        """The newest memories of some scopes, at most so many of each; and a thread's last turns, the newest first.

        In one exchange. There are no turns where none is in scope.
        """
        window = read_statements.window(scope, self.syntax, thread_id, limit)
        asked = [read_statements.page_of_memories(each, self.syntax, None, most) for each, most in pages]
        found = await self.rows_of_all([*asked, *([] if window is None else [window])])
        memories = [[memory_of(row) for row in rows] for rows in found[: len(pages)]]
        return memories, [turn_of(row) for rows in found[len(pages) :] for row in rows]

    async def turns_of(self, scope: Scope, thread_id: str, span: TurnSpan, limit: int) -> list[Turn]:
        """Turns of a thread in scope: the newest first before a place, or the oldest first after one."""
        statement = read_statements.turns_of(scope, self.syntax, thread_id, span, limit)
        return [] if statement is None else [turn_of(row) for row in await self.rows(statement)]

    async def related_memories(
        self, scope: Scope, ids: Sequence[UUID], limit: int, *, least: float = 0.0
    ) -> list[tuple[UUID, Memory, float]]:
        """Memories in scope that a relation of at least ``least`` links to one of ``ids``, strongest first."""
        rows = await self.rows(read_statements.related_memories(scope, self.syntax, ids, limit, least))
        return [(row["via"], memory_of(row), row["strength"]) for row in rows]

    async def conflicts(
        self, scope: Scope, ids: Sequence[UUID] | None = None, *, before: UUID | None = None, limit: int
    ) -> list[ConflictPair]:
        """Pairs in scope that may contradict each other, newest first, those noted before ``before``."""
        rows = await self.rows(read_statements.conflicts(scope, self.syntax, ids, before, limit))
        return [ConflictPair(**row) for row in rows]

    async def edges_and_units(
        self, scope: Scope, ids: Sequence[UUID], limit: int, wanted: Sequence[UUID]
    ) -> tuple[list[tuple[UUID, UUID, float]], dict[UUID, Unit]]:
        """The strongest relations of memories of the scope, to others that may be in it or not, and some units of it.

        In one exchange: who looks for the one mostly wants the other next.
        """
        asked = [read_statements.edges(scope.tenant, self.syntax, ids, limit)]
        if wanted:
            asked += read_statements.units_by_id(scope, self.syntax, wanted)
        rows, *units = await self.rows_of_all(asked)
        return [(row["via"], row["id"], row["strength"]) for row in rows], _units_of(units)

    async def entities(self, scope: Scope, wanted: EntityQuery, limit: int) -> list[Entity]:
        """Entities that memories in scope mention, those that most mention first."""
        rows = await self.rows(read_statements.entities(scope, self.syntax, wanted, limit))
        names: dict[UUID, list[str]] = {}
        if rows:
            for row in await self.rows(read_statements.aliases(scope.tenant, self.syntax, [row["id"] for row in rows])):
                names.setdefault(row["entity_id"], []).append(row["alias"])
        return [
            Entity(
                row["id"], row["user_id"], row["kind"], row["name"], row["memories"], tuple(names.get(row["id"], ()))
            )
            for row in rows
        ]

    async def profile(self, scope: Scope, entity: UUID, before: UUID | None, limits: tuple[int, int]) -> EntityProfile:
        """What memories in scope say of an entity: see :func:`statements.profile`."""
        memories, last, others = await self.rows_of_all(
            read_statements.profile(scope, self.syntax, entity, before, limits)
        )
        related = [RelatedEntity(row["id"], row["kind"], row["name"], row["memories"]) for row in others]
        return EntityProfile([memory_of(row) for row in memories], related, last[0]["recorded_at"])

    async def changed_after(
        self, scope: Scope, ids: Sequence[UUID], moment: datetime
    ) -> Mapping[UUID, Sequence[HistoryEntry]]:
        """What was done to memories in scope after a moment, by memory, oldest first."""
        found: dict[UUID, list[HistoryEntry]] = {}
        for row in await self.rows(read_statements.changed_after(scope, self.syntax, ids, moment)):
            found.setdefault(row["memory_id"], []).append(history_of(row))
        return found

    async def around(self, scope: Scope, anchor: UUID, before: int, after: int) -> list[Unit]:
        """The units in scope that were recorded before and after one, oldest first, that one among them."""
        sides = [
            read_statements.newest(scope, self.syntax, before + 1, until=anchor),
            read_statements.oldest(scope, self.syntax, after, since=anchor),
        ]
        ids = {row["id"] for rows in await self.rows_of_all(sides) for row in rows}
        units = await self.units(scope, sorted(ids))
        return [units[each] for each in sorted(units)]

    async def thread_users(self, scope: Scope, thread_id: str) -> list[str]:
        """The users in the scope's tenant and user list that have a thread of this name; at most two."""
        return [row["user_id"] for row in await self.rows(read_statements.thread_users(scope, self.syntax, thread_id))]

    async def revision(self, scope: Scope, user_id: str, thread_id: str) -> tuple[int, int]:
        """The thread's revision, and the last one whose change was pruned; 0 when there is no such thread."""
        rows = await self.rows(read_statements.revision(scope, self.syntax, user_id, thread_id))
        return (rows[0]["rev"], rows[0]["pruned_rev"]) if rows else (0, 0)

    async def changes(self, scope: Scope, user_id: str, thread_id: str, since: int, limit: int) -> list[ChangeLogEntry]:
        """The last ``limit`` changes of memories after a revision, oldest first."""
        rows = await self.rows(read_statements.changes(scope, self.syntax, (user_id, thread_id), since, limit))
        return [ChangeLogEntry(**{**row, "event": ChangeEvent(row["event"])}) for row in reversed(rows)]

    async def changed_memories(
        self, scope: Scope, user_id: str, thread_id: str, since: int, limit: int
    ) -> tuple[list[ChangeLogEntry], int]:
        """The latest change of each memory after a revision, the most important first; and how many memories."""
        asked = read_statements.changes(scope, self.syntax, (user_id, thread_id), since, limit, folded=True)
        rows = [dict(row) for row in await self.rows(asked)]
        count = [row.pop("total") for row in rows]
        return [ChangeLogEntry(**{**row, "event": ChangeEvent(row["event"])}) for row in rows], count[0] if count else 0

    async def whole(self, scope: Scope, memory_id: UUID) -> Memory | None:
        """A memory that the scope's permissions cover, in whatever state it is."""
        rows = await self.rows(read_statements.whole(scope, self.syntax, memory_id))
        return memory_of(rows[0]) if rows else None

    async def history(
        self, scope: Scope, memory_id: UUID, *, before: UUID | None, limit: int
    ) -> list[HistoryEntry] | None:
        """A memory's history, newest first; ``None`` when the memory is not in scope in any state."""
        if not await self.rows(read_statements.is_visible(scope, self.syntax, memory_id)):
            return None
        return [
            history_of(row)
            for row in await self.rows(read_statements.history(scope, self.syntax, memory_id, before, limit))
        ]

    async def proposals(self, wanted: ProposalQuery, *, before: UUID | None, limit: int) -> list[Proposal]:
        """Proposals, newest first, those older than ``before``; those that lapsed are ``expired``."""
        rows = await self.rows(read_statements.proposals(wanted, self.syntax, before, limit))
        found = [proposal_of(row) for row in rows]
        return [replace(each, state=state_at(each.state, each.expires_at, wanted.now)) for each in found]

    async def verdicts(self, wanted: TombstoneQuery, *, before: UUID | None, limit: int) -> list[TombstonedValues]:
        """Verdicts by which values are refused, newest first, those older than ``before``."""
        found: dict[UUID, TombstonedValues] = {}
        for row in await self.rows(read_statements.verdicts(wanted, self.syntax, before, limit)):
            each = found.get(row["id"])
            places = {**(each.places if each else {}), row["category"]: row["number"]}
            found[row["id"]] = TombstonedValues(
                row["id"], row["scope"], row["reason"], row["actor"], row["ts"], places, row["subject_id"]
            )
        return list(found.values())

    async def context(self, scope: Scope, limit: int) -> list[ContextField]:
        """The decided fields of the scope's user whose memories are in scope, by name, the newest value first."""
        return [context_field_of(row) for row in await self.rows(read_statements.context(scope, self.syntax, limit))]


def _units_of(found: Sequence[Sequence[Row]]) -> dict[UUID, Unit]:
    """From what :func:`statements.units_by_id` brings: memories, and then turns if they are in scope."""
    units: dict[UUID, Unit] = {row["id"]: memory_of(row) for rows in found[:1] for row in rows}
    return units | {row["id"]: turn_of(row) for rows in found[1:] for row in rows}
