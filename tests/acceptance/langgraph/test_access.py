"""Every operation of the saver and of the store is held to its rules."""

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from memplane.domain.errors import (
    CategoryForbidden,
    MemplaneError,
    RecordNotFound,
    ScopeForbidden,
    UserForbidden,
    VisibilityForbidden,
)
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.langgraph import MemplaneSaver, MemplaneStore
from support.cluster import Database
from support.files import File
from support.graph_matrix import CARRIERS, OPERATIONS, Operation
from support.graph_stores import running, speaker

BASES = {"saver": (BaseCheckpointSaver, MemplaneSaver), "store": (BaseStore, MemplaneStore)}
EVERYTHING = frozenset(KeyScope) - {KeyScope.ADMIN}


def test_every_operation_is_in_the_matrix_once() -> None:
    for of, (base, ours) in BASES.items():
        declared = {name for name, member in inspect.getmembers(base) if inspect.isfunction(member) and name[0] != "_"}
        plain = {"get", "get_next_version", "with_allowlist"} if of == "saver" else set()
        listed = [name for each in OPERATIONS if each.of == of for name in (each.name, each.blocking)]
        assert len(listed) == len(set(listed))
        assert declared - plain - (set(CARRIERS) - set(listed)) == set(listed)
        for name in listed:
            assert getattr(ours, name) is not None
    assert "aput" in {each.name for each in OPERATIONS}


Made = Callable[[Principal], Any]


def with_each(place: Database | File, operation: Operation, work: Callable[[str, Made], Awaitable[None]]) -> None:
    async def run() -> None:
        tenant = place.new_tenant()
        async with running(place, tenant) as application:

            def made(caller: Principal) -> Any:  # noqa: ANN401 - a saver or a store
                if operation.of == "store":
                    return MemplaneStore(application.items, caller)
                return MemplaneSaver(application.checkpoints, caller)

            await work(tenant, made)

    asyncio.run(run())


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_a_key_needs_the_scope_and_no_other(place: Database | File, operation: Operation) -> None:
    async def work(tenant: str, made: Made) -> None:
        without = made(speaker(tenant, operation.agent, scopes=EVERYTHING - operation.scopes))
        with pytest.raises(ScopeForbidden):
            await operation.call(without, "ana", "tasks")
        try:
            await operation.call(made(speaker(tenant, operation.agent, scopes=operation.scopes)), "ana", "tasks")
        except RecordNotFound:  # of what is not there yet: it was looked for
            assert operation.name == "acopy_thread"

    with_each(place, operation, work)


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.names_user], ids=str)
def test_a_user_who_is_not_the_key_s_is_refused(place: Database | File, operation: Operation) -> None:
    async def work(tenant: str, made: Made) -> None:
        bound = made(speaker(tenant, operation.agent, "ana", scopes=EVERYTHING))
        await operation.call(bound, "ana", "tasks")
        with pytest.raises(UserForbidden):
            await operation.call(bound, "bo", "tasks")

    with_each(place, operation, work)


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.category], ids=str)
def test_a_category_outside_the_allowlist_is_refused(place: Database | File, operation: Operation) -> None:
    async def work(tenant: str, made: Made) -> None:
        planner = made(speaker(tenant, "planner", scopes=EVERYTHING))
        await operation.call(planner, "ana", "tasks")
        for category in ("style", "no such category"):
            with pytest.raises(CategoryForbidden):
                await operation.call(planner, "ana", category)

    with_each(place, operation, work)


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.of == "saver"], ids=str)
def test_who_may_not_read_conversations_has_no_checkpoints(place: Database | File, operation: Operation) -> None:
    async def work(tenant: str, made: Made) -> None:
        with pytest.raises(CategoryForbidden):
            await operation.call(made(speaker(tenant, "planner", scopes=EVERYTHING)), "ana", "tasks")
        with pytest.raises(VisibilityForbidden):
            await operation.call(made(speaker(tenant, trust=Trust.PUBLIC, scopes=EVERYTHING)), "ana", "tasks")
        with contextlib.suppress(RecordNotFound):  # of what is not there yet: it was looked for
            await operation.call(made(speaker(tenant, scopes=EVERYTHING)), "ana", "tasks")

    with_each(place, operation, work)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_another_tenant_s_rows_are_not_there(database: Database, operation: Operation) -> None:
    """Whatever the other tenant does under the same names, one's own state stays as it is."""

    async def work(tenant: str, made: Made) -> None:
        mine = made(speaker(tenant, operation.agent, scopes=EVERYTHING))
        for each in OPERATIONS:
            if each.of == operation.of and each.name == "aput":
                await each.call(mine, "ana", "tasks")
        looks = {each.name: each for each in OPERATIONS if each.of == operation.of}
        look = looks["aget" if operation.of == "store" else "aget_tuple"]
        before = await look.call(mine, "ana", "tasks")
        assert before is not None
        other = database.new_tenant()
        async with running(database, other):
            stranger = made(speaker(other, operation.agent, scopes=EVERYTHING))
            assert await look.call(stranger, "ana", "tasks") is None
            try:
                await operation.call(stranger, "ana", "tasks")
            except MemplaneError as refusal:
                assert isinstance(refusal, RecordNotFound)  # noqa: PT017 - nothing of that name is there
        assert await look.call(mine, "ana", "tasks") == before

    with_each(database, operation, work)
