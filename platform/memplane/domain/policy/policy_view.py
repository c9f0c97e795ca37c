"""What the policy comes to for one agent: the effect of allowlist, trust and categories together."""

from dataclasses import dataclass

from memplane.domain.errors import InvalidRequest
from memplane.domain.memory.memory import Visibility
from memplane.domain.policy.policy import Category, ContextMode, Policy, Trust


@dataclass(frozen=True, slots=True)
class CategoryView:
    """One category as an agent meets it.

    Attributes:
        name: the category.
        read: whether the agent effectively reads it.
        write: whether the agent effectively writes it.
        context: how it takes part in the agent's context; ``none`` when the agent does not read it.
        rag_length: the most items it gives to a context, for ``rag``.
        sensitive_fields: profile fields in it that change by consent only.
        system: shipped with the product, as opposed to the operator's own.
    """

    name: str
    read: bool
    write: bool
    context: ContextMode
    rag_length: int | None
    sensitive_fields: tuple[str, ...]
    system: bool


@dataclass(frozen=True, slots=True)
class AgentView:
    """What one agent may do with the key that is made for it.

    Attributes:
        agent: whose view it is.
        trust: the level of its key.
        sees: the stores that it sees, the most private first; empty when it sees nothing.
        default_store: where its writes go unless said; ``None`` when it cannot write.
        categories: those of its allowlist, as read first, then those that it only writes.
        asked_by_default: the categories that a query covers which names none.
        turns_category: the category of conversation turns.
        sees_turns: whether conversation turns reach it: it reads their category, and sees the private store, where
            turns count as lying.
        drawn_into: the categories that facts go to which are drawn from the turns it records; empty when it records
            none.
        digest: which policy says so.
    """

    agent: str
    trust: Trust
    sees: tuple[Visibility, ...]
    default_store: Visibility | None
    categories: tuple[CategoryView, ...]
    asked_by_default: tuple[str, ...]
    turns_category: str
    sees_turns: bool
    drawn_into: tuple[str, ...]
    digest: str

    @property
    def read(self) -> tuple[str, ...]:
        """Names of the categories that it effectively reads."""
        return tuple(category.name for category in self.categories if category.read)

    @property
    def write(self) -> tuple[str, ...]:
        """Names of the categories that it effectively writes."""
        return tuple(category.name for category in self.categories if category.write)


def describe_agent(policy: Policy, agent: str) -> AgentView:
    """What an agent effectively may do.

    An agent whose trust sees no store reads nothing, whatever its allowlist says, and one whose trust has no default
    store writes nothing.

    Args:
        policy: the policy in force.
        agent: a name of its allowlists.

    Raises:
        Invalid: the policy has no such agent; the known ones are named, and are in ``extra["agents"]``.
    """
    allowlist = policy.allowlists.get(agent)
    if allowlist is None:
        known = tuple(policy.allowlists)
        raise InvalidRequest(
            f"the policy has no agent '{agent}'; it has {', '.join(known) or 'none'}", agent=agent, agents=list(known)
        )
    level = policy.trust[allowlist.trust]
    reads = frozenset(allowlist.read if level.sees else ())
    writes = frozenset(allowlist.write if level.default_write else ())
    records = policy.turns_category in writes and Visibility.PRIVATE in level.sees
    names = dict.fromkeys((*allowlist.read, *allowlist.write))
    return AgentView(
        agent=agent,
        trust=allowlist.trust,
        sees=tuple(store for store in Visibility if store in level.sees),
        default_store=level.default_write,
        categories=tuple(_meets(policy.category(name), read=name in reads, write=name in writes) for name in names),
        asked_by_default=tuple(name for name in policy.readable(agent, None) if name in reads),
        turns_category=policy.turns_category,
        sees_turns=policy.turns_category in reads and Visibility.PRIVATE in level.sees,
        drawn_into=policy.drawn_into(agent) if records else (),
        digest=policy.digest,
    )


def _meets(category: Category, *, read: bool, write: bool) -> CategoryView:
    return CategoryView(
        name=category.name,
        read=read,
        write=write,
        context=category.context if read else ContextMode.NONE,
        rag_length=category.rag_length if read else None,
        sensitive_fields=category.sensitive_fields,
        system=category.system,
    )
