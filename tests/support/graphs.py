"""LangGraph for tests: savers on the database of a running application, and a small graph."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memplane.bootstrap import open_application
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.langgraph import MemplaneSaver
from support.cluster import Database
from support.files import File


def principal(tenant: str, *users: str, scopes: frozenset[KeyScope] = frozenset({KeyScope.CHECKPOINT})) -> Principal:
    """One who may use checkpoints, of all users of a tenant or of some."""
    return Principal(tenant, "supervisor", Trust.FULL, scopes, "test", users=frozenset(users) if users else None)


@asynccontextmanager
async def savers(database: Database | File, *callers: Principal, **given: Any) -> AsyncIterator[list[MemplaneSaver]]:  # noqa: ANN401 - what a saver takes
    """Savers of several callers, on one application."""
    async with open_application(database.url) as application:
        for each in callers:
            await application.ensure_tenant(each.tenant)
        yield [MemplaneSaver(application.checkpoints, each, **given) for each in callers]


class Steps(TypedDict):
    """What the small graph keeps."""

    messages: Annotated[list[Any], lambda before, more: before + more]
    count: int


def counting(saver: MemplaneSaver, steps: int = 3) -> "CompiledStateGraph[Any, Any, Any, Any]":
    """A graph that counts its steps, one node after the other."""
    builder = StateGraph(Steps)
    for number in range(steps):
        builder.add_node(f"step{number}", _counted)
        builder.add_edge(START if not number else f"step{number - 1}", f"step{number}")
    builder.add_edge(f"step{steps - 1}", END)
    return builder.compile(checkpointer=saver)


async def _counted(state: Steps) -> dict[str, Any]:
    await asyncio.sleep(0)  # lets others run, as a node that waits for a model does
    return {"count": state["count"] + 1, "messages": [f"counted to {state['count'] + 1}"]}


def at(thread_id: str, user_id: str | None = None, **more: object) -> RunnableConfig:
    """A config that names a thread."""
    user = {} if user_id is None else {"user_id": user_id}
    return {"configurable": {"thread_id": thread_id, **user, **more}}
