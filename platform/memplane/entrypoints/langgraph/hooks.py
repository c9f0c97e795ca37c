"""What stands around a model: its memory told before it answers, and the talk recorded after.

Two nodes of a graph, so that they need LangGraph alone; `create_react_agent` takes them as its hooks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.message import add_messages

from memplane.client import Memplane
from memplane.client.fields import TurnEntry
from memplane.entrypoints.langgraph.conversation import ConversationThread, conversation_of

MAX_CHARS = 16_000
"""The longest turn; what is longer is cut."""
MAX_TURNS = 1_000


class MemoryState(TypedDict, total=False):
    """The channels of a graph that the nodes read and write; a state schema of one's own has these.

    Attributes:
        messages: the conversation.
        llm_input_messages: the conversation with what the memory says before it, for the model alone.
        memory_context: what the memory says, fenced as data; a supervisor's checkpoint tells it.
        memory_delta: what changed in the memory since the last time, at most three lines; ``None`` when nothing did.
        memory_revision: how far the thread has been told.
        memory_recorded: the id of the last message that is recorded.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    llm_input_messages: list[AnyMessage]
    memory_context: str | None
    memory_delta: str | None
    memory_revision: int
    memory_recorded: str | None


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """How much is told.

    Attributes:
        budget_tokens: the most tokens of the whole block.
        k: the most items that are recalled by the message.
        auto_extract: whether facts may be drawn from what the user says.
    """

    budget_tokens: int = 2_048
    k: int = 20
    auto_extract: bool = True


class MemoryHooks:
    """Two nodes: ``add_node("recall", hooks.recall)`` before a model's, and ``add_node("record", hooks.record)`` after.

    `recall` asks `/v1/context` for the last message of the user and puts its prompt, fenced, before the conversation;
    since the revision that the thread was told last, so that a change elsewhere is told once, after a restart too.
    `record` stores what the user and the model said since: each message once, by its id, however often a run repeats.

    Args:
        memory: `Memplane(url, key)`, or what `memplane.open` gives.
        agent: the agent to act for; the key's own unless it may act for others.
        user_id: the user, for runs whose config names none; other users are then refused.
        telling: how much is told.
    """

    def __init__(
        self,
        memory: Memplane,
        *,
        agent: str | None = None,
        user_id: str | None = None,
        telling: ContextOptions | None = None,
    ) -> None:
        self._memory = memory
        self._agent = agent
        self._user = user_id
        self._telling = telling or ContextOptions()

    async def recall(self, state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        """Tell the memory: `llm_input_messages` for the model, `memory_context`, and what changed.

        Raises:
            MemplaneClientError: the memory refuses, or does not answer.
            Invalid: the config names no user or thread.
        """
        whose = conversation_of(config, self._user)
        messages: Sequence[BaseMessage] = state.get("messages") or ()
        asked = next((each for each in reversed(messages) if isinstance(each, HumanMessage)), None)
        since = state.get("memory_revision")
        told = await self._memory.context(
            whose.user_id,
            whose.thread_id,
            message=None if asked is None else _text(asked)[:MAX_CHARS] or None,
            budget_tokens=self._telling.budget_tokens,
            k=self._telling.k,
            agent=self._agent,
            **({} if since is None else {"since_rev": since}),
        )
        return {
            "llm_input_messages": _with(messages, told.prompt),
            "memory_context": told.prompt,
            "memory_delta": told.delta.header,
            "memory_revision": told.delta.rev,
        }

    async def record(self, state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        """Record what was said since the last time.

        Raises:
            MemplaneClientError: the memory refuses, or does not answer.
            Invalid: the config names no user or thread.
        """
        whose = conversation_of(config, self._user)
        messages: Sequence[BaseMessage] = state.get("messages") or ()
        last = state.get("memory_recorded")
        places = [nth for nth, each in enumerate(messages) if each.id is not None and each.id == last]
        new = messages[places[-1] + 1 :] if places else messages
        entries = [entry for each in new if (entry := self._entry(each, whose)) is not None]
        for start in range(0, len(entries), MAX_TURNS):
            await self._memory.turns(entries[start : start + MAX_TURNS])
        return {"memory_recorded": messages[-1].id if messages else last}

    def _entry(self, message: BaseMessage, whose: ConversationThread) -> TurnEntry | None:
        """A message as a turn; ``None`` for what nobody said: calls of tools, their answers, instructions."""
        if not isinstance(message, HumanMessage | AIMessage):
            return None
        text = _text(message).strip()
        if not text:
            return None
        entry: TurnEntry = {
            "text": text[:MAX_CHARS],
            "role": "user" if isinstance(message, HumanMessage) else "assistant",
            "user_id": whose.user_id,
            "thread_id": whose.thread_id,
            "agent": self._agent,
            "auto_extract": self._telling.auto_extract,
        }
        if message.id is not None:
            entry["external_id"] = message.id[:255]
        if message.name:
            entry["actor_id"] = message.name[:255]
        return entry


def _with(messages: Sequence[BaseMessage], prompt: str | None) -> list[BaseMessage]:
    """The conversation with a block of memory after the instructions that it begins with."""
    if prompt is None:
        return list(messages)
    begin = next((nth for nth, each in enumerate(messages) if not isinstance(each, SystemMessage)), len(messages))
    return [*messages[:begin], SystemMessage(prompt), *messages[begin:]]


def _text(message: BaseMessage) -> str:
    return str(message.text)
