"""API keys: made, listed, revoked, and turned into principals."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memplane.application.ports import Clock, Policies, Storage
from memplane.application.records import StoredKey
from memplane.domain.errors import Invalid, NotFound, Unauthenticated
from memplane.domain.policy import Trust
from memplane.domain.principal import KeyScope, Principal, Reach

PREFIX = "mp"
ID_BYTES = 6
SECRET_BYTES = 32
AGENT_SCOPES = (KeyScope.READ, KeyScope.WRITE, KeyScope.CHECKPOINT)
ALL = "*"


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


class Keys:
    """The keys of tenants. A secret is shown once, when its key is made; only its SHA-256 is stored."""

    def __init__(self, storage: Storage, policies: Policies, clock: Clock) -> None:
        self._storage = storage
        self._policies = policies
        self._clock = clock
        self._local: dict[str, StoredKey] = {}

    def local(self, tenant: str, new: NewKey) -> str:
        """A credential that only this process knows, for a caller within it; it is nowhere stored.

        Raises:
            Invalid: as for :meth:`create`.
        """
        stored, credential = self._made(tenant, new)
        self._local[stored.key_id] = stored
        return credential

    async def create(self, tenant: str, new: NewKey) -> tuple[StoredKey, str]:
        """Make a key, and its tenant if that is new.

        Returns:
            The key as stored, and the whole credential, which cannot be read again.

        Raises:
            Invalid: the policy does not know an agent that is named, or the list of users is empty.
        """
        stored, credential = self._made(tenant, new)
        await self._storage.write(Reach(tenant), lambda uow: uow.ensure_tenant(stored.created_at))
        await self._storage.write(Reach(tenant), lambda uow: uow.keys.add(stored))
        return stored, credential

    def _made(self, tenant: str, new: NewKey) -> tuple[StoredKey, str]:
        named = [agent for agent in (new.agent, *new.act_for) if agent not in (None, ALL)]
        unknown = [agent for agent in named if agent not in self._policies.current.allowlists]
        if unknown:
            known = ", ".join(self._policies.current.allowlists)
            raise Invalid(f"the policy has no agent '{unknown[0]}'; it has {known}", field="agent")
        if new.users is not None and not new.users:
            raise Invalid("users: name at least one, or leave it out for every user", field="users")
        key_id, secret = secrets.token_hex(ID_BYTES), secrets.token_urlsafe(SECRET_BYTES)
        stored = StoredKey(
            tenant=tenant,
            key_id=key_id,
            secret_hash=_hash(secret),
            agent=new.agent,
            act_for=new.act_for,
            users=new.users,
            trust=new.trust.value,
            scopes=tuple(scope.value for scope in new.scopes),
            label=new.label,
            created_at=self._clock(),
            expires_at=new.expires_at,
        )
        return stored, f"{PREFIX}_{key_id}_{secret}"

    async def list(self, tenant: str) -> Sequence[StoredKey]:
        """The keys of a tenant, oldest first, revoked ones too."""
        return await self._storage.write(Reach(tenant), lambda uow: uow.keys.all())

    async def revoke(self, tenant: str, key_id: str) -> None:
        """End a key at once.

        Raises:
            NotFound: there is no such key, or it is revoked already.
        """
        if not await self._storage.write(Reach(tenant), lambda uow: uow.keys.revoke(key_id, self._clock())):
            raise NotFound("no such key, or it is revoked already")

    async def authenticate(self, credential: str | None) -> Principal:
        """The principal of a credential ``mp_<id>_<secret>``.

        Raises:
            Unauthenticated: absent, malformed, unknown, wrong, revoked or expired: always the same answer.
        """
        refusal = Unauthenticated("a valid API key is needed: send `Authorization: Bearer mp_…`")
        parts = (credential or "").split("_", 2)
        if len(parts) != 3 or parts[0] != PREFIX or not parts[1].isalnum() or not parts[1].isascii():
            raise refusal
        stored = self._local.get(parts[1]) or await self._storage.find_key(parts[1])
        expected = stored.secret_hash if stored else bytes(32)
        holds = hmac.compare_digest(_hash(parts[2]), expected)
        if stored is None or not holds or stored.revoked_at is not None:
            raise refusal
        if stored.expires_at is not None and stored.expires_at <= self._clock():
            raise refusal
        return Principal(
            tenant=stored.tenant,
            agent=stored.agent,
            trust=Trust(stored.trust),
            scopes=frozenset(KeyScope(scope) for scope in stored.scopes),
            key_id=stored.key_id,
            act_for=frozenset(stored.act_for),
            users=None if stored.users is None else frozenset(stored.users),
        )


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
