"""What the policy files say, as frozen values: who may see what, how text is written, how results are ranked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from memplane.domain.consent.consent_rules import ConsentRules
from memplane.domain.errors import (
    CategoryForbidden,
    CategoryNotShared,
    UnknownCategory,
    UnknownRanking,
    VisibilityForbidden,
)
from memplane.domain.jobs.job_definitions import WorkerRules
from memplane.domain.language.comparison.comparison import MergeRules
from memplane.domain.memory.lifecycle import LifecycleRules
from memplane.domain.memory.memory import MemoryType, Visibility
from memplane.domain.policy.quota_limits import QuotaLimits
from memplane.domain.privacy.pii import Finder, Pii, find
from memplane.domain.privacy.screening import Screening


class ContextMode(StrEnum):
    """How a category takes part in the context that is given to an agent before it speaks."""

    ALL = "all"
    RAG = "rag"
    NONE = "none"


class Trust(StrEnum):
    """How far a principal is trusted, most first."""

    FULL = "full"
    INNER = "inner"
    FAMILIAR = "familiar"
    PUBLIC = "public"

    @classmethod
    def lowest(cls, *levels: "Trust") -> "Trust":
        """The least of some levels."""
        return max(levels, key=list(cls).index)


@dataclass(frozen=True, slots=True)
class Category:
    """One category of memories: the unit of permission.

    Attributes:
        name: lower-case name.
        context: whether all of it, what fits the message, or none of it goes into the context.
        rag_length: the most items it gives to a context, for ``rag``.
        sensitive_fields: profile fields in it that need consent.
        system: shipped with the product, as opposed to the operator's own.
        pii: what is done about personal data in it, by kind; what is absent is tagged.
    """

    name: str
    context: ContextMode
    rag_length: int | None = None
    sensitive_fields: tuple[str, ...] = ()
    system: bool = True
    pii: Mapping[Pii, Screening] = field(default_factory=dict)


class Operator(Enum):
    """Who runs a tenant and acts for no agent. No string, so that no agent's name can be taken for it."""

    OPERATOR = "operator"


Speaker = str | Operator
"""Whose allowlist counts for a call: an agent's by its name, or an operator's, which is every category."""


def describe_speaker(speaker: Speaker) -> str:
    """Whose allowlist counts, for a message."""
    return "an operator" if isinstance(speaker, Operator) else f"agent '{speaker}'"


@dataclass(frozen=True, slots=True)
class Allowlist:
    """What one agent may do.

    Attributes:
        read: categories that it may read, in the order of the file.
        write: categories that it may write.
        trust: the level that the agent's shipped key carries.
    """

    read: tuple[str, ...]
    write: tuple[str, ...]
    trust: Trust = Trust.FULL


@dataclass(frozen=True, slots=True)
class TrustLevel:
    """What a trust level may see, and where its writes go unless said; ``None`` means that it cannot write."""

    sees: frozenset[Visibility]
    default_write: Visibility | None


@dataclass(frozen=True, slots=True)
class TypeWriting:
    """The writing rules of one memory type.

    Attributes:
        max_chars: the longest content, in characters; the rest goes to the narrative.
        max_sentences: the most sentences in the content.
        refuse_pronoun_subjects: whether a sentence may begin with a pronoun as its subject.
        numbered_steps: whether the content is a list of numbered steps.
        third_person: whether an agent's content must not speak in the first person.
        complete_sentences: whether an agent's content must not be a mere name of something.
        past_tense: whether an agent is warned of content that is not in the past tense.
        imperative_steps: whether an agent's steps must order something.
    """

    max_chars: int
    max_sentences: int
    refuse_pronoun_subjects: bool = False
    numbered_steps: bool = False
    third_person: bool = False
    complete_sentences: bool = False
    past_tense: bool = False
    imperative_steps: bool = False


@dataclass(frozen=True, slots=True)
class WritingRules:
    """Limits and format rules of text.

    Attributes:
        types: rules by memory type; a type that is absent has only the general limits.
        pronouns: words that may not be a sentence's subject, lower case.
        max_text_chars: the longest text of any field, and of a turn.
        max_title_chars: the longest title.
        max_list_items: the most facts, steps, tags or files in one memory.
        quotas: how much may be stored, and written in a day.
    """

    types: Mapping[MemoryType, TypeWriting]
    pronouns: frozenset[str]
    max_text_chars: int
    max_title_chars: int
    max_list_items: int
    quotas: QuotaLimits = field(default_factory=QuotaLimits)


@dataclass(frozen=True, slots=True)
class Bm25:
    """Parameters of contextual BM25.

    Attributes:
        k1: saturation of term frequency.
        b: how much length counts, 0 to 1.
        before: weights of the words of the units 1, 2, … places earlier in the thread.
        after: weights of the words of the units 1, 2, … places later.
    """

    k1: float = 1.2
    b: float = 0.5
    before: tuple[float, ...] = (0.6, 0.4, 0.3)
    after: tuple[float, ...] = (0.5, 0.3)


@dataclass(frozen=True, slots=True)
class FusionWeights:
    """Weights of the signals in the calibrated fusion; every signal is scaled to 0…1 first where its range is open.

    Attributes:
        lexical: contextual BM25, min-max scaled over the scope.
        semantic: cosine of the unit itself.
        semantic_context: cosine averaged over the unit and its neighbours.
        actor: the query names the unit's actor.
        entity: the unit mentions entities that the query names, by whatever name.
        when: the unit happened at a time that the query names.
        phrase: the unit holds all words of a quoted phrase.
        recency: 1/(1 + days since the unit was written or happened).
        importance: (importance - 1)/4.
        pinned: the unit is pinned.
        insight: factor applied to the score of units of type ``insight`` or ``reflection``.
    """

    lexical: float
    semantic: float
    semantic_context: float
    actor: float
    entity: float = 0.0
    when: float = 0.0
    phrase: float = 0.0
    recency: float = 0.0
    importance: float = 0.0
    pinned: float = 0.0
    insight: float = 1.0


class RankingMethod(StrEnum):
    """How a profile turns signals into one score."""

    CALIBRATED = "calibrated"
    RRF = "rrf"
    LEXICAL = "lexical"
    SEMANTIC = "semantic"
    WEIGHTED = "weighted"
    HEBBIAN = "hebbian"
    LAYERED = "layered"


@dataclass(frozen=True, slots=True)
class RankingProfile:
    """One named way to rank.

    Attributes:
        name: the name that a request uses.
        method: the formula.
        bm25: parameters of the lexical signal.
        weights: by embedding model name; ``*`` serves models that are not named. Only for ``calibrated``.
        rrf_k: the constant of reciprocal rank fusion.
        relation: weight of a unit's strongest relation to another one in scope.
    """

    name: str
    method: RankingMethod
    bm25: Bm25
    weights: Mapping[str, FusionWeights]
    rrf_k: int = 60
    relation: float = 0.0

    @property
    def by_use(self) -> bool:
        """Whether it orders what the words find by the use that was made of it; without words, everything."""
        return self.method in {RankingMethod.WEIGHTED, RankingMethod.HEBBIAN, RankingMethod.LAYERED}

    @property
    def by_entity(self) -> bool:
        """Whether it matters which entities a unit mentions."""
        return self.method is RankingMethod.RRF or any(weights.entity for weights in self.weights.values())

    def weights_for(self, model: str) -> FusionWeights:
        """The weights measured for an embedding model, or the general ones."""
        return self.weights.get(model) or self.weights["*"]


@dataclass(frozen=True, slots=True)
class Policy:
    """The whole policy, immutable; ``digest`` names exactly this content.

    Attributes:
        categories: by name, in the order of the file.
        allowlists: by agent.
        trust: by level.
        turns_category: the category of conversation turns.
        shared: categories that may hold knowledge about no user, which is part of every user's recall.
        extraction: categories that facts drawn from turns are written to; ``None`` for those that the agent which
            recorded the turn may write.
        writing: text rules.
        rankings: ranking profiles by name; ``default`` is always there.
        merging: from which similarity on two texts may be one fact.
        consent: which fields of a profile need a person's consent, and which apply by themselves.
        lifecycle: what becomes of memories with time.
        workers: when background work is done, and how often it is tried.
        digest: ``sha256:`` and the hash of the files' content.
        find_pii: what finds personal data; chosen by the operator's settings, not by the files.
    """

    categories: Mapping[str, Category]
    allowlists: Mapping[str, Allowlist]
    trust: Mapping[Trust, TrustLevel]
    turns_category: str
    writing: WritingRules
    rankings: Mapping[str, RankingProfile]
    merging: MergeRules
    consent: ConsentRules
    digest: str
    lifecycle: LifecycleRules = field(default_factory=LifecycleRules)
    workers: WorkerRules = field(default_factory=WorkerRules)
    extraction: tuple[str, ...] | None = None
    shared: tuple[str, ...] = ()
    find_pii: Finder = field(default=find, compare=False, repr=False)

    def allowlist(self, agent: Speaker) -> Allowlist:
        """The agent's allowlist, every category for an operator; an agent unknown to the policy has an empty one."""
        if isinstance(agent, Operator):
            return Allowlist(read=tuple(self.categories), write=tuple(self.categories))
        return self.allowlists.get(agent, Allowlist(read=(), write=()))

    def keeps(self, agent: str, category: str) -> bool:
        """Whether an agent reads and writes a category."""
        may = self.allowlist(agent)
        return category in may.read and category in may.write

    def keeper(self, category: str) -> str | None:
        """The first agent that reads and writes a category: what is done in the background goes by its allowlist."""
        return next((agent for agent in self.allowlists if self.keeps(agent, category)), None)

    def readable(self, agent: Speaker, requested: Iterable[str] | None) -> tuple[str, ...]:
        """The categories that a read by ``agent`` covers.

        Args:
            agent: whose allowlist counts.
            requested: the categories named in the request; ``None`` or empty for the agent's own.

        Returns:
            The requested ones, or, when none are, the allowlist less the categories with ``context: none``.

        Raises:
            CategoryForbidden: one or more are outside the allowlist; all of those are named. A category that the
                policy does not have is forbidden in the same way, so the answer tells nothing of the policy.
        """
        allowed = self.allowlist(agent).read
        wanted = tuple(dict.fromkeys(requested or ()))
        if not wanted:
            return tuple(name for name in allowed if self.categories[name].context is not ContextMode.NONE)
        self._refuse_outside(agent, wanted, allowed, "read")
        return wanted

    def check_write(self, agent: Speaker, category: str) -> None:
        """Refuse a write by ``agent`` to a category outside its write allowlist.

        Raises:
            CategoryForbidden: the category is not in the allowlist.
        """
        self._refuse_outside(agent, (category,), self.allowlist(agent).write, "write")

    def check_shared(self, category: str) -> None:
        """Refuse knowledge about no user in a category that holds none.

        Raises:
            CategoryNotShared: the category is not among ``shared``.
        """
        if category not in self.shared:
            may = ", ".join(self.shared) or "none"
            raise CategoryNotShared(
                f"category: '{category}' holds memories about users alone; name a user_id, or one of the categories "
                f"that the policy shares: {may}",
                field="category",
                categories=list(self.shared),
            )

    def drawn_into(self, agent: str) -> tuple[str, ...]:
        """The categories that facts may be written to which are drawn from turns that ``agent`` recorded."""
        return self.allowlist(agent).write if self.extraction is None else self.extraction

    def check_drawn(self, agent: str, category: str) -> None:
        """Refuse a fact drawn from a turn that ``agent`` recorded, when its category takes none.

        Raises:
            CategoryForbidden: the category is not among those of :meth:`drawn_into`.
        """
        self._refuse_outside(agent, (category,), self.drawn_into(agent), "draw facts into")

    def _refuse_outside(self, agent: Speaker, wanted: tuple[str, ...], allowed: tuple[str, ...], verb: str) -> None:
        refused = [name for name in wanted if name not in allowed]
        if refused:
            may = ", ".join(allowed) or "nothing"
            raise CategoryForbidden(
                f"{describe_speaker(agent)} may not {verb} {', '.join(refused)}; it may {verb} {may}",
                categories=refused,
                agent=agent if isinstance(agent, str) else None,
            )

    def visible(self, trust: Trust) -> frozenset[Visibility]:
        """The visibilities that a trust level may see."""
        return self.trust[trust].sees

    def write_visibility(self, trust: Trust, requested: Visibility | None) -> Visibility:
        """Where a write goes.

        Raises:
            VisibilityForbidden: the level cannot write, or cannot see the requested visibility.
        """
        level = self.trust[trust]
        if level.default_write is None:
            raise VisibilityForbidden(f"trust level '{trust}' cannot write", trust=trust.value)
        if requested is None:
            return level.default_write
        if requested not in level.sees:
            raise VisibilityForbidden(f"trust level '{trust}' cannot write visibility '{requested}'", trust=trust.value)
        return requested

    def category(self, name: str) -> Category:
        """The category of that name.

        Raises:
            UnknownCategory: the policy has none such.
        """
        try:
            return self.categories[name]
        except KeyError:
            raise UnknownCategory(f"the policy has no category '{name}'", category=name) from None

    def sensitive_fields(self, category: str) -> frozenset[str]:
        """The fields of the profile in a category that change by consent only."""
        found = self.categories.get(category)
        return frozenset() if found is None else frozenset(found.sensitive_fields)

    def home_of(self, field: str, category: str) -> str:
        """The category that a sensitive field lies in.

        Args:
            field: one of ``consent.sensitive``.
            category: the category of what states it, which comes first where several have the field.
        """
        if field in self.sensitive_fields(category):
            return category
        return next((name for name, each in self.categories.items() if field in each.sensitive_fields), category)

    def ranking(self, name: str | None) -> RankingProfile:
        """The ranking profile of that name, or the default one.

        Raises:
            UnknownRanking: the policy has none such.
        """
        profile = self.rankings.get(name or "default")
        if profile is None:
            raise UnknownRanking(
                f"there is no ranking profile '{name}'; there are {', '.join(self.rankings)}", ranking=name
            )
        return profile
