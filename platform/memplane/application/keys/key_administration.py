"""Keys that one caller gives to others: none can do more than the caller itself."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from memplane.application.keys.api_keys import (
    AGENT_SCOPES,
    REVOKED,
    KeyReplacement,
    Keys,
    MadeKey,
    NewKey,
    Rotation,
    clean_users,
    usable,
)
from memplane.application.keys.key_history import Doer, KeyEntry
from memplane.application.limits.idempotency import Once, run_once
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.records import StoredKey
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import (
    AccessForbidden,
    AgentForbidden,
    InvalidRequest,
    RecordNotFound,
    TrustTooLow,
    UserForbidden,
)
from memplane.domain.identity.principal import ALL, KeyScope, Principal, is_operator
from memplane.domain.policy.policy import Trust


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """A key that a caller asks for; what is ``None`` is the usual, as far as the caller has it itself."""

    agent: str | None = None
    act_for: tuple[str, ...] = ()
    users: tuple[str, ...] | None = None
    trust: Trust | None = None
    scopes: tuple[KeyScope, ...] | None = None
    label: str | None = None
    expires_at: datetime | None = None


class KeyAdministration:
    """The keys of the caller's tenant, for callers with the scope ``admin``."""

    def __init__(self, storage: Storage, keys: Keys, policies: Policies, clock: Clock) -> None:
        self._storage = storage
        self._keys = keys
        self._policies = policies
        self._clock = clock

    async def list(self, principal: Principal, *, after: str | None, limit: int) -> tuple[Sequence[StoredKey], bool]:
        """Keys, oldest first, revoked ones too; a caller that is bound to users sees those of its users alone.

        Args:
            principal: the caller.
            after: the id of the last key of the page before.
            limit: the most keys.

        Returns:
            The keys, and whether there are more.

        Raises:
            ScopeForbidden: the caller lacks ``admin``.
            Invalid: there is no key ``after``.
        """
        principal.require(KeyScope.ADMIN)
        seen = [key for key in await self._keys.list(principal.tenant) if _sees(principal, key)]
        places = {key.key_id: place for place, key in enumerate(seen, 1)}
        if after is not None and after not in places:
            raise InvalidRequest("cursor: is none of this list", field="cursor")
        rest = seen[places[after] :] if after else seen
        return rest[:limit], len(rest) > limit

    async def create(self, principal: Principal, asked: KeyRequest, *, once: Once[MadeKey] | None = None) -> MadeKey:
        """Make a key of the caller's tenant.

        Raises:
            ScopeForbidden: the caller lacks ``admin``, or a scope that it would give.
            AgentForbidden: it may not speak for an agent that it would give.
            UserForbidden: it may not touch a user that it would give.
            TrustTooLow: it is trusted less than it would give.
            Forbidden: it ends before the key that it would give.
            Invalid: as for :meth:`Keys.make`, or the key would never work.
            AlreadyDone: the request was carried out before.
            IdempotencyMismatch: its idempotency key was used for another one.
        """
        principal.require(KeyScope.ADMIN)
        now = self._clock()

        async def work(uow: UnitOfWork) -> MadeKey:
            # within, so that what was carried out before is answered even where it would be refused by now
            made = self._keys.make(principal.tenant, self._bounded(principal, asked))
            _refuse_more(principal, made.stored)
            _refuse_past(made.stored.expires_at, now)
            await self._keys.add(uow, made, Doer.of(principal))
            return made

        return await run_once(self._storage, principal, work, now, once=once)

    async def rotate(
        self, principal: Principal, key_id: str, rotation: Rotation, *, once: Once[KeyReplacement] | None = None
    ) -> KeyReplacement:
        """Put a new key with the same bindings in the place of a key.

        Raises:
            NotFound: no such key, or it is revoked or expired, or of users that the caller may not touch.
            Forbidden: the key can do more than the caller, see :meth:`create`.
            Invalid: the grace is too long, or the new key would never work.
            AlreadyDone: the request was carried out before.
            IdempotencyMismatch: its idempotency key was used for another one.
        """
        principal.require(KeyScope.ADMIN)
        now = self._clock()

        async def work(uow: UnitOfWork) -> KeyReplacement:
            _refuse_past(rotation.expires_at, now)
            old = _seen(principal, await usable(uow, key_id, now))
            _refuse_more(principal, replace(old, expires_at=rotation.expires_at or old.expires_at))
            return await self._keys.replace(uow, old, rotation, now, Doer.of(principal))

        return await run_once(self._storage, principal, work, now, once=once)

    async def revoke(self, principal: Principal, key_id: str, *, once: Once[str] | None = None) -> str:
        """End a key at once; also one that can do more than the caller, for that gives nothing away.

        Returns:
            The key's id.

        Raises:
            ScopeForbidden: the caller lacks ``admin``.
            NotFound: there is no such key, or it is revoked already, or it is of users that the caller may not touch.
            AlreadyDone: the request was carried out before.
            IdempotencyMismatch: its idempotency key was used for another one.
        """
        principal.require(KeyScope.ADMIN)
        now = self._clock()

        async def work(uow: UnitOfWork) -> str:
            found = await uow.keys.lock(key_id)
            if found is None or not _sees(principal, found):
                raise RecordNotFound(REVOKED)
            await self._keys.end(uow, key_id, now, Doer.of(principal))
            return key_id

        return await run_once(self._storage, principal, work, now, once=once)

    async def history(
        self, principal: Principal, key_id: str | None, *, before: UUID | None, limit: int
    ) -> tuple[Sequence[KeyEntry], bool]:
        """What was done to keys, newest first; a caller that is bound to users is told of keys of its users alone.

        Args:
            principal: the caller.
            key_id: of this key alone.
            before: the id of the last entry of the page before.
            limit: the most entries.

        Returns:
            The entries, and whether there are more.

        Raises:
            ScopeForbidden: the caller lacks ``admin``.
            NotFound: there is no such key, or it is of users that the caller may not touch.
        """
        principal.require(KeyScope.ADMIN)
        asked: list[str] | None = None
        if key_id is not None or principal.users is not None:
            seen = [key.key_id for key in await self._keys.list(principal.tenant) if _sees(principal, key)]
            asked = [each for each in seen if key_id in (None, each)]
            if key_id is not None and not asked:
                raise RecordNotFound("no such key")
        found = await self._keys.history(principal.tenant, asked, before=before, limit=limit + 1)
        return found[:limit], len(found) > limit

    def _bounded(self, principal: Principal, asked: KeyRequest) -> NewKey:
        """What was asked for, with what was left out as usual, as far as the caller has it."""
        own = None if principal.users is None else tuple(sorted(principal.users))
        allowlist = self._policies.current.allowlists.get(asked.agent or "")
        usual = Trust.lowest(principal.trust, allowlist.trust) if allowlist else principal.trust
        if asked.agent is None and not asked.act_for and KeyScope.ADMIN not in (asked.scopes or ()):
            raise InvalidRequest(
                "agent: name the agent that the key speaks for, or `act_for`; only a key with the scope `admin` can do"
                " without",
                field="agent",
            )
        return NewKey(
            agent=asked.agent,
            trust=asked.trust or usual,
            scopes=tuple(scope for scope in AGENT_SCOPES if scope in principal.scopes)
            if asked.scopes is None
            else asked.scopes,
            act_for=asked.act_for,
            users=own if asked.users is None else clean_users(asked.users),
            label=asked.label,
            expires_at=asked.expires_at or principal.expires_at,
        )


def _sees(principal: Principal, key: StoredKey) -> bool:
    """Whether a caller may know of a key: one that is bound to users must not learn of others."""
    return principal.users is None or (key.users is not None and set(key.users) <= principal.users)


def _seen(principal: Principal, key: StoredKey) -> StoredKey:
    if not _sees(principal, key):
        raise RecordNotFound("no such key, or it is revoked or expired")
    return key


def _refuse_more(principal: Principal, key: StoredKey) -> None:
    """Refuse a key that can do more than the caller who would hold it."""
    if is_operator(key.agent, key.act_for, key.scopes) and not principal.is_operator:
        raise AgentForbidden("this key is bound to agents, and cannot give one that reaches every category")
    for agent in dict.fromkeys((*((key.agent,) if key.agent else ()), *key.act_for)):
        if agent == ALL and ALL not in principal.act_for:
            raise AgentForbidden("this key may not act for every agent, and cannot let another do so", agent=ALL)
        if agent != ALL:
            principal.speak_as(agent)
    if principal.users is not None and key.users is None:
        raise UserForbidden("this key may not touch every user")
    for user in key.users or ():
        principal.touch(user)
    for scope in key.scopes:
        principal.require(KeyScope(scope))
    trust = Trust(key.trust)
    if Trust.lowest(principal.trust, trust) is not trust:
        raise TrustTooLow(f"this key has the trust '{principal.trust}' and cannot give '{trust}'")
    if principal.expires_at is not None and (key.expires_at is None or key.expires_at > principal.expires_at):
        raise AccessForbidden(
            f"this key ends at {principal.expires_at.isoformat()} and cannot give one that ends later"
        )


def _refuse_past(moment: datetime | None, now: datetime) -> None:
    if moment is not None and moment <= now:
        raise InvalidRequest("expires_at: is past; the key would never work", field="expires_at")
