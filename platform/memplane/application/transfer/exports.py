"""All that is remembered of a user, from one look at the database, a page at a time."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from memplane.application.consent.proposals import field_namespace
from memplane.application.memories.authorization import require_full
from memplane.application.memories.browse import redact_entry
from memplane.application.memories.shared_memories import owner_of
from memplane.application.ports import Clock, Policies, Storage, TenantReader
from memplane.application.records import Proposal, ProposalQuery
from memplane.application.transfer.portable_records import PortableReader, Record
from memplane.application.users.merged_users import require_unmerged
from memplane.domain.errors import StorageUnavailable
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.memory.memory import State, TrustState
from memplane.domain.memory.scope import Scope, read_scope
from memplane.domain.policy.policy import Policy

R = TypeVar("R")

PAGE = 100
"""Records of a page: few enough that to read and encode one holds nobody up."""
RUNNING = 2
"""Exports at a time: each keeps a connection until its reader has all of it."""


@dataclass(frozen=True, slots=True)
class ExportStream:
    """An export that is allowed, before it began.

    Attributes:
        user_id: whose; empty for what is about no user.
        exported_at: when.
        policy: hash of the policy in force.
        categories: what it covers.
        graves: where the values that were refused in these are buried.
        scope: all of it that the caller may see.
        principal: the caller.
    """

    user_id: str
    exported_at: datetime
    policy: str
    categories: tuple[str, ...]
    graves: tuple[str, ...]
    scope: Scope
    principal: Principal


class Exports:
    """Exports, for fully trusted keys with the scope ``admin``, as far as their agents and users reach."""

    def __init__(self, storage: Storage, policies: Policies, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._clock = clock
        self._running = 0

    async def begin(self, principal: Principal, user_id: str | None, agent: str | None = None) -> ExportStream:
        """What an export of a user covers, or one of what is about no user; none of it is read yet.

        Raises:
            ScopeForbidden: the key lacks ``admin`` or ``memory:read``.
            TrustTooLow: it is not fully trusted.
            AgentForbidden, UserForbidden: it does not reach the agent or the user.
            UserMerged: the user was merged into another one.
        """
        principal.require(KeyScope.ADMIN)
        principal.require(KeyScope.READ)
        require_full(principal, "export all that is known of a user")
        user = owner_of(principal, user_id)
        policy, now = self._policies.current, self._clock()
        categories = readable(principal, policy, agent)
        scope = read_scope(principal, policy, categories, now).with_shared(policy.shared).of_user(user)
        scope = replace(scope, states=tuple(State), trust_states=tuple(TrustState))
        async with self._storage.reading(principal.reach) as reader:
            await require_unmerged(reader, principal, user_id)
        categories = scope.categories
        graves = (
            *categories,
            *sorted({field_namespace(f) for name in categories for f in policy.sensitive_fields(name)}),
        )
        return ExportStream(user, now, policy.digest, categories, graves, scope, principal)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """One of the few places of those that export at a time.

        Raises:
            StorageUnavailable: all are taken.
        """
        if self._running >= RUNNING:
            raise StorageUnavailable("as many exports run as may at a time; try again when one is done")
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    async def pages(self, export: ExportStream) -> AsyncGenerator[Sequence[Record], None]:
        """Its records, in pages of one kind; whatever is referred to comes before what refers to it.

        All of it is read in one transaction, that sees one state of the database.

        Raises:
            StorageUnavailable: the database does not answer any more.
        """
        async with self._storage.reading(export.principal.reach) as reader:
            for part in (_proposals, _turns, _entities, _memories, _relations, _fields):
                async for page in part(reader, export.scope):
                    yield page
            async for page in _tombstones(reader, export):
                yield page


def readable(principal: Principal, policy: Policy, agent: str | None) -> tuple[str, ...]:
    """What the caller may read."""
    return tuple(policy.allowlist(principal.act_as(agent)).read)


Page = AsyncIterator[Sequence[Record]]


async def _paged(ask: Callable[[R | None], Awaitable[list[R]]]) -> AsyncIterator[list[R]]:
    """Pages until one is not full, each asked for after the last record of the one before."""
    found = await ask(None)
    while found:
        yield found
        if len(found) < PAGE:
            return
        found = await ask(found[-1])


async def _proposals(reader: TenantReader, scope: Scope) -> Page:
    wanted = ProposalQuery(scope.tenant, scope.categories, scope.users, scope.now, user_id=scope.filters.user_id)

    async def ask(after: Proposal | None) -> list[Proposal]:
        return await reader.proposals(wanted, before=after.id if after else None, limit=PAGE)

    async for found in _paged(ask):
        yield found
        async for page in _histories(reader.portable, scope, [each.id for each in found]):
            yield page


async def _turns(reader: TenantReader, scope: Scope) -> Page:
    async for found in _paged(lambda after: reader.portable.turns(scope, after, PAGE)):
        yield found


async def _entities(reader: TenantReader, scope: Scope) -> Page:
    async for found in _paged(lambda after: reader.portable.entities(scope, after, PAGE)):
        yield found


async def _memories(reader: TenantReader, scope: Scope) -> Page:
    async for found in _paged(lambda after: reader.portable.memories(scope, after.memory.id if after else None, PAGE)):
        yield found
        async for page in _histories(reader.portable, scope, [each.memory.id for each in found]):
            yield page


async def _relations(reader: TenantReader, scope: Scope) -> Page:
    async for ids in _paged(lambda after: reader.portable.memory_ids(scope, after, PAGE)):
        found = await reader.portable.relations(scope, ids)
        if found:
            yield found


async def _histories(reader: PortableReader, scope: Scope, ids: Sequence[UUID]) -> Page:
    async for found in _paged(lambda after: reader.histories(scope, ids, after, PAGE)):
        yield [redact_entry(entry, scope) for entry in found]


async def _fields(reader: TenantReader, scope: Scope) -> Page:
    async for found in _paged(lambda after: reader.portable.fields(scope, after, PAGE)):
        yield found


async def _tombstones(reader: TenantReader, export: ExportStream) -> Page:
    async for found in _paged(lambda after: reader.portable.tombstones(export.scope, export.graves, after, PAGE)):
        yield found
