"""LangGraph stores for tests: ours on the database of a running application."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from memplane.bootstrap import Application, open_application
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.langgraph import MemplaneStore
from memplane.entrypoints.langgraph.store import Ground
from support.cluster import Database
from support.files import File

READ_WRITE = frozenset({KeyScope.READ, KeyScope.WRITE})


def speaker(tenant: str, agent: str = "supervisor", *users: str, **given: Any) -> Principal:  # noqa: ANN401 - of a principal
    """One who may read and write as an agent, for all users of a tenant or for some."""
    chosen = {"trust": Trust.FULL, "scopes": READ_WRITE, "key_id": "test"} | given
    return Principal(tenant, agent, users=frozenset(users) if users else None, **chosen)


@asynccontextmanager
async def running(database: Database | File, tenant: str) -> AsyncIterator[Application]:
    """An application with a tenant."""
    async with open_application(database.url) as application:
        await application.ensure_tenant(tenant)
        yield application


def store_of(application: Application, caller: Principal, *root: str, **given: Any) -> MemplaneStore:  # noqa: ANN401 - of a store
    """A caller's store, under a user, or a user and a category."""
    return MemplaneStore(application.items, caller, Ground(root=root), **given)


def keys(found: Sequence[Any]) -> list[str]:
    """The keys of items."""
    return [each.key for each in found]
