"""Tools of an agent for its memory, for `ToolNode` or `model.bind_tools`: over HTTP, or in this process."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import wraps
from typing import Annotated, Any, Concatenate, Literal, ParamSpec
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import Field

from memplane.client import Memplane, MemplaneClientError, NotFound
from memplane.client.fields import ChangeFields
from memplane.contracts.memories import MemoryRecord, TurnRecord, WriteOutcome
from memplane.domain.errors import InvalidRequest
from memplane.domain.ranking.fencing import fence, new_delimiter, quote_text
from memplane.entrypoints.langgraph.conversation import conversation_of

P = ParamSpec("P")
Artifact = dict[str, Any] | None
Told = str | WriteOutcome
NOTHING = "Nothing is known of it."
MemoryId = Annotated[UUID, Field(description="The id that stands beside a recalled memory.")]
Few = Annotated[int, Field(ge=1, le=20)]
Importance = Annotated[int, Field(ge=1, le=5, description="1: trivial … 5: must not be forgotten.")]
_MANY = 20


def _told(
    method: Callable[Concatenate["MemoryTools", P], Awaitable[Told]],
) -> Callable[Concatenate["MemoryTools", P], Awaitable[tuple[str, Artifact]]]:
    """What a tool answers a model, and a program; a refusal is an answer too, with its code: the model goes on."""

    @wraps(method)
    async def call(tools: "MemoryTools", /, *args: P.args, **kwargs: P.kwargs) -> tuple[str, Artifact]:
        try:
            told = await method(tools, *args, **kwargs)
        except MemplaneClientError as error:
            raise ToolException(f"refused ({error.code}): {error.detail}") from error
        return (told, None) if isinstance(told, str) else (_done(told), told.model_dump(mode="json"))

    return call


class MemoryTools:
    """The tools of one agent. The key of the client, and the agent, say what they reach; the config says whose.

    A model can name neither a user nor a thread nor another agent: these are no arguments of the tools. What is
    recalled comes fenced as data. What Memplane refuses is told to the model as the tool's answer. What a write did is
    the ``artifact`` of its `ToolMessage` besides: ``outcome``, and ``id`` of the memory, or of what waits for consent.

    Args:
        memory: `Memplane(url, key)`, or what `memplane.open` gives: both are the same to the tools.
        agent: the agent to act for; the key's own unless it may act for others.
        user_id: the user, for runs whose config names none; other users are then refused.
    """

    def __init__(self, memory: Memplane, *, agent: str | None = None, user_id: str | None = None) -> None:
        self._memory = memory
        self._agent = agent
        self._user = user_id

    def all(self, only: Collection[str] | None = None) -> list[BaseTool]:
        """The tools, or those of some names.

        Raises:
            Invalid: there is none of such a name.
        """
        named = {f"memory_{each.__name__}": each for each in self._each}
        if unknown := set(only or ()) - set(named):
            raise InvalidRequest(f"no such tools: {', '.join(sorted(unknown))}; there are {', '.join(named)}")
        return [
            StructuredTool.from_function(
                coroutine=method,
                name=name,
                description=method.__doc__,
                handle_tool_error=True,
                response_format="content_and_artifact",
            )
            for name, method in named.items()
            if only is None or name in only
        ]

    @property
    def _each(self) -> Sequence[Callable[..., Awaitable[tuple[str, Artifact]]]]:
        return (
            self.query, self.remember, self.correct, self.update, self.confirm, self.reinforce, self.demote, self.get,
            self.timeline, self.history, self.people,
        )  # fmt: skip

    @_told
    async def query(
        self, query: str, config: RunnableConfig, categories: list[str] | None = None, top_k: Few = 5
    ) -> str:
        """Recall what is known about the user: facts, plans and earlier talk, best first, each with its id."""
        whose = conversation_of(config, self._user)
        answer = await self._memory.query(
            query, categories=categories, top_k=top_k, filters={"user_id": whose.user_id}, thread_id=whose.thread_id,
            purpose="on_demand", agent=self._agent,
        )  # fmt: skip
        return answer.prompt or NOTHING

    @_told
    async def remember(
        self, content: str, category: str, config: RunnableConfig, importance: Importance = 3
    ) -> WriteOutcome:
        """Remember one thing about the user: one or two whole sentences in the third person, without pronouns."""
        whose = conversation_of(config, self._user)
        return await self._memory.remember(
            content, category=category, importance=importance, user_id=whose.user_id, thread_id=whose.thread_id,
            agent=self._agent,
        )  # fmt: skip

    @_told
    async def correct(self, memory_id: MemoryId, content: str, config: RunnableConfig) -> WriteOutcome:
        """Put right a memory that is wrong, by what is right; the wrong one is no longer believed."""
        mine = await self._mine(memory_id, config)
        return await self._memory.correct(mine.id, content, version=mine.version, agent=self._agent)

    @_told
    async def update(
        self,
        memory_id: MemoryId,
        config: RunnableConfig,
        content: str | None = None,
        importance: Importance | None = None,
    ) -> WriteOutcome:
        """Reword a memory that is right, or weigh it anew; one that is wrong is corrected instead."""
        mine = await self._mine(memory_id, config)
        if content is None and importance is None:
            raise ToolException("name what is to change: content or importance")
        change: ChangeFields = {}
        if content is not None:
            change["content"] = content
        if importance is not None:
            change["importance"] = importance
        return await self._memory.update(mine.id, version=mine.version, agent=self._agent, **change)

    @_told
    async def confirm(self, memory_id: MemoryId, config: RunnableConfig) -> WriteOutcome:
        """Say that the user has confirmed a memory: it holds without doubt, and does not fade."""
        return await self._said(memory_id, "confirm", config)

    @_told
    async def reinforce(self, memory_id: MemoryId, config: RunnableConfig) -> WriteOutcome:
        """Say that a memory helped: it comes first more often."""
        return await self._said(memory_id, "reinforce", config)

    @_told
    async def demote(self, memory_id: MemoryId, config: RunnableConfig) -> WriteOutcome:
        """Say that a memory did not help: it comes first less often."""
        return await self._said(memory_id, "demote", config)

    @_told
    async def get(self, memory_id: MemoryId, config: RunnableConfig) -> str:
        """Read one memory whole, with its narrative, facts and steps."""
        found = await self._mine(memory_id, config)
        parts = (found.title, found.content, found.narrative, *found.facts, *found.steps)
        return _fenced([_provenance(found), *(f"  {quote_text(part)}" for part in parts if part)])

    @_told
    async def timeline(self, memory_id: MemoryId, config: RunnableConfig, before: Few = 5, after: Few = 5) -> str:
        """Read what was recorded just before and after a memory."""
        mine = await self._mine(memory_id, config)
        found = await self._memory.timeline(mine.id, before=before, after=after, agent=self._agent)
        return _fenced([_line(each) for each in found.items])

    @_told
    async def history(self, memory_id: MemoryId, config: RunnableConfig) -> str:
        """Read how a memory came to say what it says: each change, newest first, and who made it."""
        mine = await self._mine(memory_id, config)
        found = await self._memory.history(mine.id, limit=_MANY, agent=self._agent)
        return _fenced(
            [
                f"- {each.ts:%Y-%m-%d} {each.event} by {quote_text(each.actor)}\n  {quote_text(each.new_ref or '')}"
                for each in found.items
            ]
        )

    @_told
    async def people(self, config: RunnableConfig, name: str | None = None) -> str:
        """List whom the user's memories mention, those that most mention first."""
        whose = conversation_of(config, self._user)
        found = await self._memory.entities(
            whose.user_id, kind=None if name else "person", name=name, limit=_MANY, agent=self._agent
        )
        lines = [
            f"- {each.kind}, {each.memories} memories, {len(each.aliases)} other names\n"
            f"  {', '.join(quote_text(name) for name in (each.name, *each.aliases))}"
            for each in found.items
        ]
        return _fenced(lines) if lines else NOTHING

    async def _said(
        self, memory_id: UUID, verb: Literal["confirm", "reinforce", "demote"], config: RunnableConfig
    ) -> WriteOutcome:
        mine = await self._mine(memory_id, config)
        return await self._memory.say(mine.id, verb, agent=self._agent)

    async def _mine(self, memory_id: UUID, config: RunnableConfig) -> MemoryRecord:
        """A memory of the conversation's user; a key may reach more users than the run is about.

        Raises:
            NotFound: absent, or somebody else's.
        """
        whose = conversation_of(config, self._user)
        found = await self._memory.get(memory_id, agent=self._agent)
        if found.user_id != whose.user_id:
            raise NotFound("not_found", "no such memory", 404)
        return found


def _done(outcome: WriteOutcome) -> str:
    """What a write did, in words for a model."""
    if outcome.outcome == "queued_for_consent":
        return (
            f"Not stored yet: it waits for the user's consent (proposal {outcome.id}). Ask the user plainly whether "
            "this may be remembered; do not treat it as known."
        )
    overruled = f", in the place of {len(outcome.overruled)}" if outcome.overruled else ""
    return f"{outcome.outcome}{overruled}: id {outcome.id}"


def _line(record: MemoryRecord | TurnRecord) -> str:
    return f"{_provenance(record)}\n  {quote_text(record.text if isinstance(record, TurnRecord) else record.content)}"


def _provenance(record: MemoryRecord | TurnRecord) -> str:
    """The line before a record's words: where they come from, as in a prompt of the server."""
    day = f"{(record.event_time or record.recorded_at):%Y-%m-%d}"
    if isinstance(record, TurnRecord):
        speaker = f"{record.role} {quote_text(record.actor_id)}" if record.actor_id else record.role
        return f"- (turn {record.seq} by {speaker}{'' if record.vouched else ', unvouched'}, {day})"
    return f"- [{record.category}] ({record.type}, {record.trust_state}, {day}, id {record.id})"


def _fenced(lines: Sequence[str]) -> str:
    return fence(lines, new_delimiter())
