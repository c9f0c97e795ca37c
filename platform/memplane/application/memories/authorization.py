"""Which memory a change concerns: what the agent may change, in a state that allows it, of no greater authority."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from memplane.application.memories.gateway import Write
from memplane.domain.errors import CategoryForbidden, RecordNotFound, StateConflict, TrustTooLow, VersionMismatch
from memplane.domain.identity.principal import ALL, Principal
from memplane.domain.memory.memory import Memory, State, TrustState, weight
from memplane.domain.memory.scope import Scope, read_scope
from memplane.domain.policy.policy import Policy, Speaker, Trust

AUTHORITY = {Trust.FULL: 3, Trust.INNER: 2, Trust.FAMILIAR: 1, Trust.PUBLIC: 0}
"""How much a writer's word counts, by the trust of its key; never by what it says of itself."""
LASTING = (State.ACTIVE, State.SUPERSEDED, State.ARCHIVED)
"""States of what is not deleted."""
MISSING = "no such memory"


def writable_scope(write: Write, agent: Speaker, *, expired: bool = False) -> Scope:
    """What an agent may change: memories that it may both read and write, in whatever state and however believed."""
    allowed = write.policy.allowlist(agent)
    both = tuple(name for name in allowed.read if name in allowed.write)
    scope = read_scope(write.principal, write.policy, both, write.now)
    return replace(scope, states=(*LASTING, State.SOFT_DELETED), trust_states=tuple(TrustState), expired=expired)


async def find_target(
    write: Write,
    agent: Speaker,
    memory_id: UUID,
    version: int | None = None,
    states: Collection[State] = (State.ACTIVE,),
) -> Memory:
    """A memory that the agent may change, as it is now.

    Raises:
        NotFound: absent, deleted, or not the caller's.
        VersionConflict: it changed since.
        Conflict: it is in another state.
    """
    scope = writable_scope(write, agent, expired=State.SOFT_DELETED in states)
    memory = await write.uow.memories.find(scope, memory_id)
    return _checked(memory, version, states, write.now)


async def lock_target(
    write: Write,
    agent: Speaker,
    memory_id: UUID,
    version: int | None = None,
    states: Collection[State] = (State.ACTIVE,),
) -> Memory:
    """The same, locked until the transaction ends, after its user.

    Raises:
        NotFound, VersionConflict, Conflict: as :func:`find_target`.
    """
    memory = await find_target(write, agent, memory_id, version, states)
    await write.uow.lock_users([memory.user_id])
    scope = writable_scope(write, agent, expired=State.SOFT_DELETED in states)
    return _checked(await write.uow.memories.lock(scope, memory_id), version, states, write.now)


def has_expired(memory: Memory, now: datetime) -> bool:
    """Whether a memory is read no longer, though the night has not deleted it yet."""
    return memory.state is State.ACTIVE and memory.expires_at is not None and memory.expires_at <= now


def _checked(memory: Memory | None, version: int | None, states: Collection[State], now: datetime) -> Memory:
    if memory is None or (memory.state is State.SOFT_DELETED and State.SOFT_DELETED not in states):
        raise RecordNotFound(MISSING)
    if version is not None and memory.version != version:
        raise VersionMismatch(
            f"the memory is at version {memory.version}, not {version}: read it again", version=memory.version
        )
    if (State.SOFT_DELETED if has_expired(memory, now) else memory.state) not in states:
        accepted = " or ".join(state.value for state in states)
        raise StateConflict(
            f"the memory is {memory.state}; this needs one that is {accepted}", state=memory.state.value
        )
    return memory


def require_weight(principal: Principal, memory: Memory) -> None:
    """Who is fully trusted speaks for the person; others do not undo what they are trusted less than.

    Raises:
        TrustTooLow: a more trusted writer stands behind the memory.
    """
    if principal.trust is not Trust.FULL and AUTHORITY[principal.trust] < weight(memory):
        raise TrustTooLow("this key is trusted less than whoever stands behind the memory")


def require_full(principal: Principal, deed: str) -> None:
    """Some deeds are a person's own, or concern what the caller may not see.

    Raises:
        TrustTooLow: the key is not fully trusted.
    """
    if principal.trust is not Trust.FULL:
        raise TrustTooLow(f"only a fully trusted key may {deed}", trust=principal.trust.value)


def require_every_category(principal: Principal, policy: Policy, deed: str = "an erasure") -> None:
    """A key that is bound to agents reaches no further than they do: what concerns everything is refused as a whole.

    Raises:
        CategoryForbidden: no agent of the key reads and writes these categories, be there anything in them or not.
    """
    if ALL in principal.act_for or (principal.agent is None and not principal.act_for):
        return
    agents = {principal.agent, *principal.act_for} - {None}
    missing = [each for each in policy.categories if not any(policy.keeps(str(agent), each) for agent in agents)]
    if missing:
        raise CategoryForbidden(
            f"this key is bound to agents, and {deed} reaches every category: {', '.join(missing)} are outside of "
            "what they read and write. Nothing was changed",
            categories=missing,
        )
