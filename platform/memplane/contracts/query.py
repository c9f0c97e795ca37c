"""`memory.query`."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from memplane.contracts.base import Category, Importance, Message, Name, Request, Time
from memplane.contracts.memories import MemoryRecord, TurnRecord
from memplane.domain.memory.memory import MemoryType, Role, Visibility

_DAY = len("2025-07-01")
_SCOPE_NAMES = ("user_id", "agent_id", "run_id", "actor_id", "role")
"""Filters that a question may also name beside its `filters`."""


def _day_or_time(value: object) -> object:
    """A bare day means its first moment, UTC."""
    return f"{value}T00:00:00Z" if isinstance(value, str) and len(value) == _DAY else value


def as_list(value: str | list[str] | None) -> list[str]:
    """What may be given as one or as several, as several."""
    return [] if value is None else [value] if isinstance(value, str) else value


DayOrTime = Annotated[Time, BeforeValidator(_day_or_time)]


class QueryFilters(Request):
    """Conditions that narrow a read; each is optional, and none can widen it."""

    user_id: Name | None = None
    agent_id: Name | None = None
    run_id: Name | None = None
    actor_id: Name | None = None
    role: Role | None = None
    thread_id: Name | None = None
    category: Category | Annotated[list[Category], Field(max_length=100)] | None = None
    """Taken as `categories` of the question; where both are given they must name the same."""
    type: MemoryType | None = None
    types: Annotated[list[MemoryType], Field(max_length=len(MemoryType))] = []
    """Any one of them; with `type`, which must be among them, that one alone."""
    visibility: Visibility | None = None
    """The only store."""
    tags: Annotated[list[Name], Field(max_length=50)] = []
    """Every one of them must be present."""
    entity: Name | Annotated[list[Name], Field(max_length=50)] | None = None
    """Name or alias of an entity that the memory mentions; of several, any one."""
    pinned: StrictBool | None = None
    importance_min: Importance | None = None
    importance_max: Importance | None = None
    updated_after: DayOrTime | None = None
    """Inclusive; a day or a time."""
    updated_before: DayOrTime | None = None
    """Exclusive; a day or a time."""

    @model_validator(mode="after")
    def _type_is_among_types(self) -> "QueryFilters":
        if self.type is not None and self.types and self.type not in self.types:
            raise ValueError("type: is not among types; leave one of them out")
        return self


class AsOf(Request):
    """Another moment: what the system believed then, or what was true then as it knows now, or both."""

    believed_at: Time | None = None
    true_at: Time | None = None


class QueryRequest(Request):
    """A question to the memory."""

    agent: Name | None = None
    """The agent to speak as; the key's own unless the key may act for others."""
    query: Annotated[str, Field(max_length=8_000)] | None = None
    """What is looked for; without it the newest are answered."""
    categories: Annotated[list[Category], Field(max_length=100)] | None = None
    """The only categories; without it all that the agent reads by default."""
    filters: QueryFilters = QueryFilters()
    user_id: Name | None = None
    """The same as `filters.user_id`; where both are given they must agree. So it is with the next four."""
    agent_id: Name | None = None
    """The agent that recorded it; not the one that asks, which is `agent`."""
    run_id: Name | None = None
    actor_id: Name | None = None
    role: Role | None = None
    top_k: Annotated[int, Field(ge=1, le=200, strict=True)] = 10
    """The most items, related ones included."""
    return_: Annotated[Literal["bullets", "full"], Field(alias="return")] = "bullets"
    budget_tokens: Annotated[int, Field(ge=1, le=100_000, strict=True)] = 4096
    """The most tokens that the items may take together."""
    threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    """Items whose semantic similarity is below it are left out."""
    since_rev: Annotated[int, Field(ge=0, le=2**53, strict=True)] | None = None
    """Tell what changed in `thread_id` after this revision."""
    thread_id: Name | None = None
    """The thread whose changes are told; it does not narrow the search. `filters.thread_id` does, and must be the same
    where both are given."""
    ranking: Name | None = None
    """A profile of ranking.yaml."""
    related: StrictBool = True
    """Add one or two memories that relations link to the found ones."""
    explain: StrictBool = False
    """Say how each score came about."""
    as_of: AsOf | None = None
    """Another moment than now."""
    archive: StrictBool = False
    """Search what was archived, for want of room, in place of what is current."""
    purpose: Literal["search", "on_demand"] = "search"
    """`on_demand` when an agent asks in the middle of a turn for what it was not given before. Name the `thread_id`
    then: statistics show the share of turns that needed it."""

    @model_validator(mode="after")
    def _delta_needs_a_thread(self) -> "QueryRequest":
        if self.since_rev is not None and self.thread_id is None:
            raise ValueError("since_rev: name the thread_id whose changes are told")
        return self

    @model_validator(mode="after")
    def _scope_names_agree(self) -> "QueryRequest":
        for name in (*_SCOPE_NAMES, "thread_id"):
            beside, within = getattr(self, name), getattr(self.filters, name)
            if beside is not None and within is not None and beside != within:
                raise ValueError(f"filters.{name}: is another one than {name}; leave one of them out")
        return self

    @property
    def narrowing(self) -> QueryFilters:
        """The filters, with those that stand beside them."""
        beside = {name: value for name in _SCOPE_NAMES if (value := getattr(self, name)) is not None}
        return self.filters.model_copy(update=beside)

    @model_validator(mode="after")
    def _categories_agree(self) -> "QueryRequest":
        named = self.filters.category
        if named is not None and self.categories is not None and set(self.categories) != set(as_list(named)):
            raise ValueError("filters.category: names other categories than categories; leave one of them out")
        return self

    @model_validator(mode="after")
    def _archive_is_of_now(self) -> "QueryRequest":
        if self.archive and self.as_of is not None:
            raise ValueError("archive: the archive is searched as it is now; leave as_of out")
        return self


class Explanation(Message):
    """How a score came about."""

    signals: dict[str, float]
    """The raw and scaled signals of this item."""
    weights: dict[str, float]
    """What each signal was multiplied with."""
    matched: list[str]
    """Word stems of the question that the item holds."""
    rules: list[str]
    """The policy rules by which the caller may see it."""


class QueryItem(Message):
    """One result."""

    id: UUID
    category: str
    type: MemoryType
    text: str
    """One line: `[category] …`."""
    score: float
    external_id: str | None = None
    thread_id: str | None = None
    event_time: datetime | None = None
    via: UUID | None = None
    """The item whose relation brought this one."""
    vouched: bool | None = None
    """For a turn: false where its role is `user` and the key that recorded it lacks `turns:user`."""
    memory: MemoryRecord | None = None
    """The whole record, with `return: full`, for a memory."""
    turn: TurnRecord | None = None
    """The whole record, with `return: full`, for a turn."""
    score_parts: dict[str, float] | None = None
    """The parts of the score, with `return: full`."""
    explain: Explanation | None = None


class DeltaHeader(Message):
    """What changed in a thread."""

    rev: int
    header: str | None
    """At most three lines of changes; absent when nothing changed."""
    pruned: bool = False
    """Whether changes after `since_rev` are no longer kept: load the context again."""


class QueryUsage(Message):
    """What the answer cost."""

    tokens: int
    budget: int
    truncated: bool
    """Whether something was left out because it did not fit the budget."""
    candidates: int
    """How many memories and turns were in scope."""
    prompt_tokens: int
    """Tokens of `prompt`."""
    counter: str
    """How tokens were counted."""
    threshold_on: Literal["semantic", "lexical"] | None = None
    """Which signal the threshold was applied to."""


class QueryAnswer(Message):
    """The answer to a question."""

    items: list[QueryItem]
    prompt: str | None
    """The items fenced as data, ready for a prompt and within the budget; only with `return: bullets`."""
    delta: DeltaHeader | None
    usage: QueryUsage
    policy: str
    """Hash of the policy in force."""
