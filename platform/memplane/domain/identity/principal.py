"""Who is calling, as authenticated, and what that allows."""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from memplane.domain.errors import AgentForbidden, ScopeForbidden, UserForbidden
from memplane.domain.memory.memory import SHARED
from memplane.domain.policy.policy import Operator, Speaker, Trust

SUBJECT = "oidc:"
"""How the ``key_id`` of a caller with a token begins, before its subject; no API key's does."""
JOB = "job:"
"""How the ``key_id`` of the work of the night begins, before the job's name; no API key's does."""
NAMESPACE_CHARS = 32
ALL = "*"
"""In `act_for`: every agent."""


class KeyScope(StrEnum):
    """What a key may be used for."""

    READ = "memory:read"
    WRITE = "memory:write"
    USER_TURNS = "turns:user"
    """Record what a person said, so that it counts as said by the person."""
    CHECKPOINT = "checkpoint"
    CONSENT = "consent:review"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Reach:
    """Whose rows a transaction may touch at all.

    Attributes:
        tenant: the tenant.
        users: the only users; ``None`` for every one of the tenant.
        caller: whose answers to repeated requests it may see, where it is bound to users.
    """

    tenant: str
    users: frozenset[str] | None = None
    caller: str = ""

    @property
    def with_shared(self) -> "Reach":
        """The same with what is about no user, which who is bound to users may read."""
        return self if self.users is None else replace(self, users=self.users | {SHARED})


def is_operator(agent: str | None, act_for: Collection[str], scopes: Collection[str]) -> bool:
    """Whether a key with these bindings is an operator's: bound to no agent, with the scope ``admin``."""
    return agent is None and KeyScope.ADMIN in scopes and (not act_for or ALL in act_for)


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated caller.

    Attributes:
        tenant: the isolation boundary.
        agent: the agent that the key speaks for, or none for a pure operator key.
        act_for: further agents that it may speak for; ``*`` for all.
        users: the users it may touch; ``None`` for every user of the tenant.
        trust: its trust level.
        scopes: what it may be used for.
        key_id: which key, for audit; of a token its subject, as ``oidc:<sub>``.
        expires_at: when the key ends; ``None`` for never, and for a token, which is checked anew each time.
        operates: whether it does what only the scope ``admin`` allows, such as a restore of somebody's memories.
    """

    tenant: str
    agent: str | None
    trust: Trust
    scopes: frozenset[KeyScope]
    key_id: str
    act_for: frozenset[str] = field(default_factory=frozenset)
    users: frozenset[str] | None = None
    expires_at: datetime | None = None
    operates: bool = False

    def require(self, scope: KeyScope) -> None:
        """Refuse a call that the key's scopes do not cover.

        Raises:
            ScopeForbidden: the scope is missing.
        """
        if scope not in self.scopes:
            raise ScopeForbidden(f"this key lacks the scope '{scope}'", scope=scope.value)

    def speak_as(self, agent: str | None) -> str:
        """The agent in whose name this call adds something.

        Args:
            agent: the agent named in the request, or none.

        Raises:
            AgentForbidden: the key may not speak for that agent, or none is named and the key has none.
        """
        chosen = agent or self.agent
        if chosen is None:
            raise AgentForbidden("this key belongs to no agent: name the agent to act for as `agent`")
        if chosen != self.agent and chosen not in self.act_for and ALL not in self.act_for:
            raise AgentForbidden(f"this key may not act for agent '{chosen}'", agent=chosen)
        return chosen

    @property
    def is_operator(self) -> bool:
        """Whether it runs the tenant and is no agent."""
        return is_operator(self.agent, self.act_for, self.scopes)

    def act_as(self, agent: str | None) -> Speaker:
        """Whose allowlist counts for a call that reads, or changes what is there already.

        The one place that decides how far a caller reaches: an operator reaches every category of the policy unless
        it names an agent; a key that is bound to agents stays within their allowlists, whatever its scopes are.

        Args:
            agent: the agent named in the request, or none.

        Raises:
            AgentForbidden: as :meth:`speak_as`.
        """
        return Operator.OPERATOR if not agent and self.is_operator else self.speak_as(agent)

    def touch(self, user_id: str) -> str:
        """The user, when the key may touch it.

        Raises:
            UserForbidden: it may not.
        """
        if self.users is not None and user_id not in self.users:
            raise UserForbidden("this key may not touch that user")
        return user_id

    @property
    def reach(self) -> Reach:
        """Whose rows its transactions may touch."""
        return Reach(self.tenant, self.users, self.namespace)

    @property
    def namespace(self) -> str:
        """Where its idempotency keys stand, at most 32 characters.

        A key is bound to the same for ever, the tokens of one subject are not: what one of them was answered must not
        be told to another that may do less.
        """
        if not self.key_id.startswith(SUBJECT):
            return self.key_id
        users = None if self.users is None else sorted(self.users)
        bindings = repr((self.key_id, self.agent, sorted(self.act_for), users, self.trust.value))
        return f"{SUBJECT}{hashlib.sha256(bindings.encode()).hexdigest()[: NAMESPACE_CHARS - len(SUBJECT)]}"

    def as_operator(self) -> "Principal":
        """The same caller, in what only the scope ``admin`` allows."""
        return replace(self, operates=True)

    @property
    def reads_for_users(self) -> bool:
        """Whether its reads are activity of the users: neither background work nor an administrator's."""
        return not self.is_job and KeyScope.ADMIN not in self.scopes

    @property
    def writes_for_users(self) -> bool:
        """Whether its writes are: neither background work nor an operator's."""
        return not self.is_job and not self.operates

    @property
    def is_job(self) -> bool:
        """Whether it is the work of the night, and nobody who calls."""
        return self.key_id.startswith(JOB)

    @property
    def actor(self) -> str:
        """How history names the caller."""
        if self.is_job:
            return self.key_id
        return f"agent:{self.agent}" if self.agent else f"key:{self.key_id}"
