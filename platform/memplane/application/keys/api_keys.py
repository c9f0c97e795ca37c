"""API keys: made, listed, rotated, revoked, and turned into principals."""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from memplane.application.keys.key_history import OPERATOR, Doer, KeyEntry, KeyEvent, key_entry
from memplane.application.keys.key_uses import KeyUses
from memplane.application.memories.gateway import clean_id
from memplane.application.ports import Clock, Policies, Storage
from memplane.application.records import StoredKey
from memplane.application.transaction import UnitOfWork
from memplane.domain.errors import AuthenticationRequired, InvalidRequest, RecordNotFound
from memplane.domain.identity.principal import ALL, KeyScope, Principal, Reach
from memplane.domain.policy.policy import Policy, Trust

PREFIX = "mp"
ID_BYTES = 6
SECRET_BYTES = 32
AGENT_SCOPES = (KeyScope.READ, KeyScope.WRITE, KeyScope.CHECKPOINT)
"""What a key has unless something else is asked for; ``turns:user`` is given on request alone."""
MAX_GRACE = timedelta(days=90)
REVOKED = "no such key, or it is revoked already"
REFUSAL = "a valid API key or token is needed: send `Authorization: Bearer …`"
"""The one answer to every credential that does not hold: it does not tell why."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """What a new key is bound to.

    Attributes:
        agent: the agent it speaks for, or none for an operator's key.
        act_for: further agents it may speak for; ``*`` for all.
        users: the only users it may touch; ``None`` for all of the tenant.
        trust: its level.
        scopes: what it may be used for.
        label: the operator's own note.
        expires_at: when it ends, or never.
    """

    agent: str | None
    trust: Trust
    scopes: tuple[KeyScope, ...] = AGENT_SCOPES
    act_for: tuple[str, ...] = ()
    users: tuple[str, ...] | None = None
    label: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MadeKey:
    """A key that was just made: as it is stored, and the whole credential, which cannot be read again."""

    stored: StoredKey
    credential: str = field(repr=False)  # no log has it


@dataclass(frozen=True, slots=True)
class Rotation:
    """How a key is replaced.

    Attributes:
        grace: how long the old key goes on working beside the new one.
        expires_at: when the new key ends; ``None``: when the old one would have.
    """

    grace: timedelta = timedelta(0)
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class KeyReplacement:
    """The key that takes the place of another, and when that one ends."""

    made: MadeKey
    replaces: str
    ends_at: datetime


def first_scopes(policy: Policy, agent: str) -> tuple[KeyScope, ...]:
    """The scopes of the key that is made for an agent at the first start: one agent records what people say.

    It is the first that hears the talk: the supervisor, in the shipped policy.
    """
    return (*AGENT_SCOPES, KeyScope.USER_TURNS) if agent == policy.keeper(policy.turns_category) else AGENT_SCOPES


class Keys:
    """The keys of tenants. A secret is shown once, when its key is made; only its SHA-256 is stored."""

    def __init__(self, storage: Storage, policies: Policies, uses: KeyUses, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._uses = uses
        self._clock = clock
        self._local: dict[str, StoredKey] = {}

    def local(self, tenant: str, new: NewKey) -> str:
        """A credential that only this process knows, for a caller within it; it is nowhere stored.

        Raises:
            Invalid: as for :meth:`make`.
        """
        made = self.make(tenant, new)
        self._local[made.stored.key_id] = made.stored
        return made.credential

    async def create(self, tenant: str, new: NewKey) -> tuple[StoredKey, str]:
        """Make a key, and its tenant if that is new.

        Returns:
            The key as stored, and the whole credential, which cannot be read again.

        Raises:
            Invalid: as for :meth:`make`.
        """
        made = self.make(tenant, new)
        await self._storage.write(Reach(tenant), lambda uow: uow.ensure_tenant(made.stored.created_at))
        await self._storage.write(Reach(tenant), lambda uow: self.add(uow, made, OPERATOR))
        return made.stored, made.credential

    async def add(self, uow: UnitOfWork, made: MadeKey, by: Doer) -> None:
        """Within a transaction: store a key that was made, and who made it."""
        key = made.stored
        await uow.keys.add(key)
        await uow.keys.note([key_entry(key.key_id, KeyEvent.CREATED, by, key.created_at, ends_at=key.expires_at)])

    def make(self, tenant: str, new: NewKey) -> MadeKey:
        """A key that is not stored yet; names of users are normalised as in memories, so that they compare equal.

        Raises:
            Invalid: the policy does not know an agent that is named, or a list that must not be empty is.
            InvalidText: a name or the label cannot be stored.
            LimitExceeded: a name or the label is too long.
        """
        named = [agent for agent in (new.agent, *new.act_for) if agent not in (None, ALL)]
        unknown = [agent for agent in named if agent not in self._policies.current.allowlists]
        if unknown:
            known = ", ".join(self._policies.current.allowlists)
            raise InvalidRequest(f"the policy has no agent '{unknown[0]}'; it has {known}", field="agent")
        if new.users is not None and not new.users:
            raise InvalidRequest("users: name at least one, or leave it out for every user", field="users")
        if not new.scopes:
            raise InvalidRequest("scopes: name at least one", field="scopes")
        key_id, secret = _drawn()
        stored = StoredKey(
            tenant=tenant,
            key_id=key_id,
            secret_hash=_hash(secret),
            agent=new.agent,
            act_for=tuple(dict.fromkeys(new.act_for)),
            users=None if new.users is None else clean_users(new.users),
            trust=new.trust.value,
            scopes=tuple(scope.value for scope in dict.fromkeys(new.scopes)),
            label=clean_id(new.label or None, "label"),
            created_at=self._clock(),
            expires_at=new.expires_at,
        )
        return MadeKey(stored, _credential(key_id, secret))

    async def list(self, tenant: str) -> Sequence[StoredKey]:
        """The keys of a tenant, oldest first, revoked ones too."""
        return await self._storage.write(Reach(tenant), lambda uow: uow.keys.all())

    async def rotate(self, tenant: str, key_id: str, rotation: Rotation) -> KeyReplacement:
        """Put a new key with the same bindings in the place of a key.

        Raises:
            Invalid: as for :meth:`replace`.
            NotFound: there is no such key, or it is revoked or expired.
        """
        now = self._clock()

        async def work(uow: UnitOfWork) -> KeyReplacement:
            return await self.replace(uow, await usable(uow, key_id, now), rotation, now, OPERATOR)

        return await self._storage.write(Reach(tenant), work)

    async def replace(
        self, uow: UnitOfWork, old: StoredKey, rotation: Rotation, now: datetime, by: Doer
    ) -> KeyReplacement:
        """Within a transaction: a new key with the bindings of a locked one, which ends at once or after its grace.

        Raises:
            Invalid: the grace is longer than ninety days.
        """
        if not timedelta(0) <= rotation.grace <= MAX_GRACE:
            raise InvalidRequest(f"grace: at most {MAX_GRACE.days} days", field="grace_seconds")
        new_id, secret = _drawn()
        stored = replace(
            old,
            key_id=new_id,
            secret_hash=_hash(secret),
            created_at=now,
            expires_at=rotation.expires_at or old.expires_at,
            last_used_at=None,
        )
        await uow.keys.add(stored)
        ends = min(now + rotation.grace, old.expires_at or datetime.max.replace(tzinfo=now.tzinfo))
        if rotation.grace:
            await uow.keys.end(old.key_id, ends)
        else:
            await uow.keys.revoke(old.key_id, now)
        await uow.keys.note(
            [
                key_entry(old.key_id, KeyEvent.ROTATED, by, now, replaced_by=new_id, ends_at=ends),
                key_entry(new_id, KeyEvent.CREATED, by, now, replaces=old.key_id, ends_at=stored.expires_at),
            ]
        )
        return KeyReplacement(MadeKey(stored, _credential(new_id, secret)), old.key_id, ends)

    async def revoke(self, tenant: str, key_id: str) -> None:
        """End a key at once.

        Raises:
            NotFound: there is no such key, or it is revoked already.
        """
        await self._storage.write(Reach(tenant), lambda uow: self.end(uow, key_id, self._clock(), OPERATOR))

    async def end(self, uow: UnitOfWork, key_id: str, now: datetime, by: Doer) -> None:
        """Within a transaction: end a key at once.

        Raises:
            NotFound: there is no such key, or it is revoked already.
        """
        if not await uow.keys.revoke(key_id, now):
            raise RecordNotFound(REVOKED)
        await uow.keys.note([key_entry(key_id, KeyEvent.REVOKED, by, now, ends_at=now)])

    async def history(
        self, tenant: str, key_ids: Sequence[str] | None, *, before: UUID | None, limit: int
    ) -> Sequence[KeyEntry]:
        """What was done to some keys of a tenant, or to all of them, newest first."""
        return await self._storage.write(Reach(tenant), lambda uow: uow.keys.history(key_ids, before, limit))

    async def authenticate(self, credential: str | None) -> Principal:
        """The principal of a credential ``mp_<id>_<secret>``.

        Raises:
            Unauthenticated: absent, malformed, unknown, wrong, revoked or expired: always the same answer.
        """
        parts = (credential or "").split("_", 2)
        if len(parts) != 3 or parts[0] != PREFIX or not parts[1].isalnum() or not parts[1].isascii():
            raise AuthenticationRequired(REFUSAL)
        local = self._local.get(parts[1])
        stored = local or await self._storage.find_key(parts[1])
        expected = stored.secret_hash if stored else bytes(32)
        holds = hmac.compare_digest(_hash(parts[2]), expected)
        if stored is None or not holds or not stored.valid(self._clock()):
            raise AuthenticationRequired(REFUSAL)
        if local is None:
            self._uses.note(stored)
        return Principal(
            tenant=stored.tenant,
            agent=stored.agent,
            trust=Trust(stored.trust),
            scopes=frozenset(KeyScope(scope) for scope in stored.scopes),
            key_id=stored.key_id,
            act_for=frozenset(stored.act_for),
            users=None if stored.users is None else frozenset(stored.users),
            expires_at=stored.expires_at,
        )


async def usable(uow: UnitOfWork, key_id: str, now: datetime) -> StoredKey:
    """A key that works, locked.

    Raises:
        NotFound: there is no such key, or it is revoked or expired.
    """
    found = await uow.keys.lock(key_id)
    if found is None or not found.valid(now):
        raise RecordNotFound("no such key, or it is revoked or expired")
    return found


def clean_users(users: Iterable[str]) -> tuple[str, ...]:
    """Names of users as memories have them, each once.

    Raises:
        InvalidText: a name is empty or cannot be stored.
        LimitExceeded: a name is too long.
    """
    return tuple(dict.fromkeys(clean_id(user, "users") or "" for user in users))


def _drawn() -> tuple[str, str]:
    """A new id and a new secret."""
    return secrets.token_hex(ID_BYTES), secrets.token_urlsafe(SECRET_BYTES)


def _credential(key_id: str, secret: str) -> str:
    return f"{PREFIX}_{key_id}_{secret}"


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
