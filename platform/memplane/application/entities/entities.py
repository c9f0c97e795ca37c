"""Who and what memories mention: lists, aliases, and two that are one put together by hand."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from memplane.application.limits.idempotency import Once
from memplane.application.memories.authorization import require_full
from memplane.application.memories.gateway import Gateway, Write, clean_id
from memplane.application.memories.shared_memories import require_sharer
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.records import Entity, EntityProfile, EntityQuery
from memplane.application.users.merged_users import require_unmerged
from memplane.domain.errors import InvalidRequest, LimitExceeded, RecordNotFound, StateConflict
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.language.entities import key_of
from memplane.domain.language.text import normalise
from memplane.domain.memory.memory import SHARED
from memplane.domain.memory.scope import Filters, Scope, read_scope
from memplane.domain.memory.undo_records import UndoKind

MAX_PAGE = 200
MAX_ALIASES = 50
MAX_RELATED = 20
"""Entities at most that a profile names beside its own."""
_MISSING = "no such entity"


class BrowseEntities:
    """Entities, as far as a memory that the caller may read mentions them: any other is as if it were not there."""

    def __init__(self, storage: Storage, policies: Policies, gateway: Gateway, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._gateway = gateway
        self._clock = clock

    def _scope(self, principal: Principal, agent: str | None, user_id: str | None = None) -> Scope:
        principal.require(KeyScope.READ)
        policy = self._policies.current
        allowed = policy.allowlist(principal.act_as(agent)).read
        scope = read_scope(principal, policy, allowed, self._clock(), Filters(user_id=user_id or None))
        scope = scope.with_shared(policy.shared)
        if user_id is None:
            return scope
        return scope.without_shared if user_id else scope.shared_alone

    async def list(
        self,
        principal: Principal,
        user_id: str | None,
        *,
        kind: str | None = None,
        name: str | None = None,
        limit: int = 50,
        agent: str | None = None,
    ) -> Sequence[Entity]:
        """The entities of a user or of shared knowledge, those that most memories mention first.

        Args:
            principal: the caller.
            user_id: whose, or none for those that shared knowledge mentions.
            kind: of this kind alone.
            name: of this name or alias alone.
            limit: the most.
            agent: the agent to act for, or none for the key's own.

        Raises:
            LimitExceeded: too many are asked for.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise LimitExceeded(f"limit: {limit}, it must be 1 to {MAX_PAGE}", field="limit")
        user = SHARED if user_id is None else principal.touch(clean_id(user_id, "user_id") or "")
        named = clean_id(name, "name")
        wanted = EntityQuery(kind=clean_id(kind, "kind"), key=key_of(named) if named else None)
        scope = self._scope(principal, agent, user)
        async with self._storage.reading(principal.reach) as reader:
            await require_unmerged(reader, principal, user)
            found = await reader.entities(scope, wanted, limit)
        self._gateway.activity.note_read(principal, (user,))
        return found

    async def get(self, principal: Principal, entity_id: UUID, agent: str | None = None) -> Entity:
        """One entity.

        Raises:
            NotFound: absent, or no memory that the caller may read mentions it.
        """
        scope = self._scope(principal, agent)
        async with self._storage.reading(principal.reach) as reader:
            found = await reader.entities(scope, EntityQuery(ids=(entity_id,)), 1)
        if not found:
            raise RecordNotFound(_MISSING)
        self._gateway.activity.note_read(principal, (found[0].user_id,))
        return found[0]

    async def profile(
        self,
        principal: Principal,
        entity_id: UUID,
        *,
        before: UUID | None = None,
        limit: int = 20,
        agent: str | None = None,
    ) -> tuple[Entity, EntityProfile, UUID | None]:
        """One entity, with a page of what memories say of it, and where the next page begins.

        Raises:
            NotFound: absent, or no memory that the caller may read mentions it.
            LimitExceeded: the page is too long.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise LimitExceeded(f"limit: {limit}, it must be 1 to {MAX_PAGE}", field="limit")
        entity = await self.get(principal, entity_id, agent)
        async with self._storage.reading(principal.reach) as reader:
            scope = self._scope(principal, agent, entity.user_id)
            found = await reader.profile(scope, entity_id, before, (limit + 1, MAX_RELATED))
        more = found.facts[limit - 1].id if len(found.facts) > limit else None
        return entity, replace(found, facts=found.facts[:limit]), more

    async def _changeable(self, principal: Principal, entity_id: UUID, agent: str | None) -> Entity:
        entity = await self.get(principal, entity_id, agent)
        if entity.user_id == SHARED:
            require_sharer(principal)
        return entity

    async def alias(
        self,
        principal: Principal,
        entity_id: UUID,
        alias: str,
        agent: str | None = None,
        *,
        once: Once[Entity] | None = None,
    ) -> Entity:
        """Give an entity another name, by which memories are linked to it and found from now on.

        Raises:
            NotFound: absent, or no memory that the caller may read mentions it.
            TrustTooLow: the key is not fully trusted.
            UserForbidden: shared knowledge mentions it, and the key is bound to users.
            Conflict: another entity of the user has the name; merge the two instead.
            LimitExceeded: it has too many names.
            InvalidText: the name is empty or cannot be stored.
        """
        require_full(principal, "name an entity")
        name = normalise(alias, "alias")
        key = key_of(name)
        if not any(c.isalnum() for c in key):
            raise InvalidRequest("alias: has no letters by which it could be known", field="alias")
        policy, now = self._gateway.begin(principal)
        await self._gateway.raise_if_done(principal, once)
        entity = await self._changeable(principal, entity_id, agent)

        async def work(write: Write) -> Entity:
            if key == key_of(entity.name) or key in map(key_of, entity.aliases):
                return entity
            if len(entity.aliases) >= MAX_ALIASES:
                raise LimitExceeded(f"alias: an entity has at most {MAX_ALIASES}", field="alias")
            if not await write.uow.graph.name(entity.user_id, entity.id, name, key):
                raise StateConflict("alias: another entity of this user has the name; merge the two", field="alias")
            write.undoing(UndoKind.ALIAS, entity.user_id, entity.id, {"alias": name, "key": key})
            await write.settle(entity.user_id, None)
            return replace(entity, aliases=(*entity.aliases, name))

        return await self._gateway.run(principal, policy, now, work, users=[entity.user_id], once=once)

    async def merge(
        self,
        principal: Principal,
        entity_id: UUID,
        into: UUID,
        agent: str | None = None,
        *,
        once: Once[Entity] | None = None,
    ) -> Entity:
        """Put an entity into another: its memories and names become the other's, and it is gone.

        Raises:
            NotFound: one of them is absent, or no memory that the caller may read mentions it.
            TrustTooLow: the key is not fully trusted.
            UserForbidden: shared knowledge mentions them, and the key is bound to users.
            Invalid: they are one already, or belong to different users.
        """
        require_full(principal, "merge entities")
        if entity_id == into:
            raise InvalidRequest("into: is the entity itself", field="into")
        policy, now = self._gateway.begin(principal)
        await self._gateway.raise_if_done(principal, once)
        gone = await self._changeable(principal, entity_id, agent)
        kept = await self._changeable(principal, into, agent)
        if gone.user_id != kept.user_id:
            raise InvalidRequest("into: belongs to another user", field="into")

        async def work(write: Write) -> Entity:
            before = await write.uow.reverts.standing(gone.id, kept.id)
            write.undoing(UndoKind.FOLD, kept.user_id, kept.id, before)
            await write.settle(kept.user_id, None)
            if not await write.uow.graph.fold(gone.id, kept.id, (gone.name, key_of(gone.name))):
                raise RecordNotFound(_MISSING)
            names = tuple(dict.fromkeys((*kept.aliases, gone.name, *gone.aliases)))
            return replace(kept, aliases=names, memories=None)

        merged: Entity = await self._gateway.run(principal, policy, now, work, users=[kept.user_id], once=once)
        return merged
