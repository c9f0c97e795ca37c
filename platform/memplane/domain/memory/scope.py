"""What a read may touch: the permission scope, and the filters that narrow it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from memplane.domain.identity.principal import Principal
from memplane.domain.memory.memory import (
    RETRIEVABLE_TRUST,
    SHARED,
    Layer,
    Memory,
    MemoryType,
    Role,
    State,
    TrustState,
    Visibility,
)
from memplane.domain.policy.policy import Policy, Trust


@dataclass(frozen=True, slots=True)
class Filters:
    """Optional conditions of a request; each can only narrow.

    ``importance`` bounds are inclusive; ``updated_after`` is inclusive and ``updated_before`` exclusive; every tag
    must be present, of several types or entities any one is enough.
    """

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    actor_id: str | None = None
    role: Role | None = None
    thread_id: str | None = None
    types: tuple[MemoryType, ...] = ()
    visibility: Visibility | None = None
    layer: Layer | None = None
    tags: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    pinned: bool | None = None
    importance_min: int | None = None
    importance_max: int | None = None
    updated_after: datetime | None = None
    updated_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope predicate of a read, as values: every query of memories and turns is built on it.

    Attributes:
        tenant: the only tenant.
        categories: the only categories.
        visibilities: the only stores.
        trust_levels: values of ``min_trust`` that the reader satisfies.
        users: the only users, or ``None`` for all of the tenant.
        shared: categories of which memories about no user are in scope beside those of its users.
        states: lifecycle states.
        trust_states: epistemic states.
        now: rows that expired before it are gone.
        expired: whether they are there all the same, for who brings them back.
        turns: whether conversation turns are in scope.
        believed_at: read what the system believed then, and not what it believes now.
        true_at: read what was true then, and not what is true now.
        ended: whether what is no longer true is in scope; a question for the present leaves it out.
        procedures: whether memories of type ``procedural`` are in scope; a question gets them only when it asks.
        lasting_beyond: only memories that ended after this moment; for what arrives late.
        outweighing: only memories of more weight than this authority; for what a write is compared with.
        filters: what the request narrows further.
    """

    tenant: str
    categories: tuple[str, ...]
    visibilities: frozenset[Visibility]
    trust_levels: tuple[str, ...]
    users: frozenset[str] | None
    now: datetime
    turns: bool
    states: tuple[State, ...] = (State.ACTIVE,)
    trust_states: tuple[TrustState, ...] = RETRIEVABLE_TRUST
    procedures: bool = True
    expired: bool = False
    believed_at: datetime | None = None
    true_at: datetime | None = None
    ended: bool = True
    lasting_beyond: datetime | None = None
    outweighing: int | None = None
    shared: tuple[str, ...] = ()
    filters: Filters = field(default_factory=Filters)

    def permits(self, memory: Memory) -> bool:
        """Whether a memory is within the permissions, whatever its state and the request's filters."""
        return (
            memory.category in self.categories
            and memory.visibility in self.visibilities
            and memory.min_trust in self.trust_levels
            and (self.users is None or memory.user_id in self.users or self._is_shared(memory))
        )

    def _is_shared(self, memory: Memory) -> bool:
        return memory.user_id == SHARED and memory.category in self.shared

    def with_shared(self, categories: Collection[str]) -> "Scope":
        """The same, with memories about no user in some categories, as far as its own categories reach."""
        return replace(self, shared=tuple(name for name in self.categories if name in categories))

    @property
    def of_shared(self) -> "Scope | None":
        """What is in scope of memories about no user, by itself; ``None`` where that is nothing or not apart."""
        apart = self.filters.user_id is not None or self.users is not None
        return self.shared_alone if self.shared and apart else None

    @property
    def shared_alone(self) -> "Scope":
        """Nothing but the memories about no user that are in scope."""
        return replace(
            self,
            categories=tuple(name for name in self.categories if name in self.shared),
            users=None,
            turns=False,
            shared=(),
            filters=replace(self.filters, user_id=SHARED),
        )

    def of_user(self, user_id: str) -> "Scope":
        """What is in scope of one user, or of nobody."""
        if user_id == SHARED:
            return self.shared_alone
        return replace(self.without_shared, filters=Filters(user_id=user_id))

    @property
    def without_shared(self) -> "Scope":
        """The same without memories about no user."""
        return replace(self, shared=()) if self.shared else self

    def narrowed_to_permission(self) -> "Scope":
        """The same permissions, without the request's filters."""
        return replace(self, filters=Filters())

    def as_of(self, believed_at: datetime | None, true_at: datetime | None) -> "Scope":
        """The same scope at another moment, with what has been superseded since; without one, for the present."""
        if believed_at is None and true_at is None:
            return replace(self, ended=False)
        states = (State.ACTIVE, State.SUPERSEDED)
        return replace(self, believed_at=believed_at, true_at=true_at, states=states)

    def archived_only(self) -> "Scope":
        """What was archived within the same permissions; no turn ever is."""
        return replace(self, states=(State.ARCHIVED,), turns=False)


_TRUST_ORDER: Mapping[str, tuple[str, ...]] = {
    "full": ("full", "inner", "familiar", "public"),
    "inner": ("inner", "familiar", "public"),
    "familiar": ("familiar", "public"),
    "public": ("public",),
}


def trust_levels(trust: Trust) -> tuple[str, ...]:
    """The levels that a trust level reaches: its own and those below."""
    return _TRUST_ORDER[trust]


def read_scope(
    principal: Principal,
    policy: Policy,
    categories: tuple[str, ...],
    now: datetime,
    filters: Filters | None = None,
) -> Scope:
    """The scope of a read by a principal over categories that the policy has already allowed.

    Raises:
        UserForbidden: the filters name a user that the principal may not touch.
    """
    chosen = filters or Filters()
    if chosen.user_id is not None:
        principal.touch(chosen.user_id)
    visible = policy.visible(principal.trust)
    return Scope(
        tenant=principal.tenant,
        categories=categories,
        visibilities=visible,
        trust_levels=trust_levels(principal.trust),
        users=principal.users,
        now=now,
        turns=policy.turns_category in categories,
        filters=chosen,
    )
