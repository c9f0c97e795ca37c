"""A supervisor and four agents on one memory: each has a key of its own, and so an allowlist of its own."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt

import memplane
from memplane.bootstrap import DEFAULT_TENANT
from memplane.client import Memplane, MemplaneClientError
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.langgraph import MemoryHooks, MemoryState, MemoryTools, MemplaneSaver

Graph = CompiledStateGraph[Any, Any, Any, Any]
Heard = Callable[[str, str, str], None]
"""Hears who used which tool, and what it answered."""
AGENTS = ("planner", "stylist", "researcher", "executor")
USER, THREAD = "ana", "launch"
CONFIG: RunnableConfig = {"configurable": {"user_id": USER, "thread_id": THREAD}}
SUPERVISOR = SystemMessage(
    "You are the supervisor. Delegate what others know better: planning, style, research, execution. Remember what the "
    "user says of themselves. When something waits for consent, ask. Rely on the memory below, and tell what changed.",
    id="instructions",
)


@dataclass(frozen=True)
class Team:
    """What a session works with.

    Attributes:
        graph: the supervisor's.
        memories: the client of each agent.
        saver: where the graph's state stands.
    """

    graph: Graph
    memories: dict[str, Memplane]
    saver: MemplaneSaver


@asynccontextmanager
async def opened(file: Path, model: BaseChatModel, heard: Heard) -> AsyncIterator[Team]:
    """The team on a file: the same one remembers, whoever opened it before."""
    async with AsyncExitStack() as stack:
        names = ("supervisor", *AGENTS)
        memories = {name: await stack.enter_async_context(memplane.open(file, agent=name)) for name in names}
        caller = Principal(DEFAULT_TENANT, "supervisor", Trust.FULL, frozenset({KeyScope.CHECKPOINT}), "example")
        saver = await stack.enter_async_context(MemplaneSaver.open(str(file), principal=caller))
        yield Team(_supervisor(model, memories, heard).compile(checkpointer=saver), memories, saver)


def _listening(agent: str, tools: list[BaseTool], heard: Heard) -> Callable[..., Any]:
    """A node that runs tools, and lets the narrator hear what they answered."""
    node = ToolNode(tools)

    async def run(state: MemoryState, config: RunnableConfig) -> dict[str, Any]:
        done: dict[str, Any] = await node.ainvoke(state, config)
        for message in done["messages"]:
            heard(agent, message.name, message.text)
        return done

    return run


def _agent(name: str, model: BaseChatModel, memory: Memplane, heard: Heard) -> Graph:
    """An agent: a model and the tools of its memory, until it has nothing more to look up."""
    tools = MemoryTools(memory).all(["memory_query", "memory_remember", "memory_correct"])
    bound = model.bind_tools(tools)
    instructions = SystemMessage(f"You are the {name}. Do the task with your memory, then report in one sentence.")

    async def think(state: MemoryState) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke([instructions, *state["messages"]])]}

    builder = StateGraph(MemoryState)
    builder.add_node("think", think).add_node("tools", _listening(name, tools, heard))
    builder.add_edge(START, "think").add_conditional_edges("think", tools_condition).add_edge("tools", "think")
    return builder.compile(name=name)


def _waiting(messages: Sequence[AnyMessage]) -> list[tuple[str, str]]:
    """What waits for the user's consent since the user has spoken: the proposal, and the words that were to be kept."""
    since = max(nth for nth, each in enumerate(messages) if isinstance(each, HumanMessage))
    calls = {call["id"]: call["args"] for each in messages if isinstance(each, AIMessage) for call in each.tool_calls}
    return [
        (str(each.artifact["id"]), str(calls[each.tool_call_id]["content"]))
        for each in messages[since:]
        if isinstance(each, ToolMessage) and (each.artifact or {}).get("outcome") == "queued_for_consent"
    ]


def _supervisor(model: BaseChatModel, memories: dict[str, Memplane], heard: Heard) -> StateGraph[Any, Any, Any, Any]:
    """The supervisor: its memory tells it before it thinks, its team is a tool, and it asks for consent."""
    memory = memories["supervisor"]
    team = {name: _agent(name, model, memories[name], heard) for name in AGENTS}

    @tool
    async def delegate(
        agent: Literal["planner", "stylist", "researcher", "executor"], task: str, config: RunnableConfig
    ) -> str:
        """Give a task to an agent of the team, and get its report."""
        done = await team[agent].ainvoke({"messages": [HumanMessage(task)]}, config)
        return str(done["messages"][-1].text)

    tools = [delegate, *MemoryTools(memory).all(["memory_query", "memory_remember", "memory_correct"])]
    hooks, bound = MemoryHooks(memory), model.bind_tools(tools)

    async def think(state: MemoryState) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke(state["llm_input_messages"])]}

    async def consent(state: MemoryState) -> dict[str, Any]:
        answers: list[Any] = []
        for proposal, content in _waiting(state["messages"]):
            said = str(interrupt({"content": content}))
            name = f"consent-{proposal}"
            turn = await memory.turn(said, user_id=USER, thread_id=THREAD, role="user", external_id=name)
            try:
                heard("supervisor", "consent", (await memory.acknowledge(proposal, turn.turn_id)).outcome)
            except MemplaneClientError as refusal:
                heard("supervisor", "consent", f"not stored ({refusal.code})")
            answers.append(HumanMessage(said, id=name))
        return {"messages": answers}

    builder = StateGraph(MemoryState)
    builder.add_node("recall", hooks.recall).add_node("think", think).add_node("consent", consent)
    builder.add_node("tools", _listening("supervisor", tools, heard)).add_node("record", hooks.record)
    builder.add_edge(START, "recall").add_edge("recall", "think")
    builder.add_conditional_edges("think", tools_condition, {"tools": "tools", END: "consent"})
    builder.add_edge("tools", "recall").add_edge("consent", "record").add_edge("record", END)
    return builder
