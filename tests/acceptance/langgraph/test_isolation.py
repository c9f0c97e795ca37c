"""A saver reaches its caller's tenant and users alone, whatever ids a config guesses; each absence has its control."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from memplane.application.keys.api_keys import NewKey
from memplane.bootstrap import open_application
from memplane.domain.errors import (
    AmbiguousThread,
    AuthenticationRequired,
    CategoryForbidden,
    InvalidRequest,
    MemplaneError,
    RecordNotFound,
    ScopeForbidden,
    UserForbidden,
    VisibilityForbidden,
)
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.langgraph import MemplaneSaver
from support.cluster import Database
from support.files import File
from support.graphs import at, counting, principal, savers

SECRET = "the canary sings"
THREAD, RUN = "plans", "run-1"


async def planted(saver: MemplaneSaver, user: str = "ana") -> str:
    """A thread with a secret in its state, metadata and writes; the id of its head."""
    checkpoint = {**empty_checkpoint(), "channel_values": {"said": [SECRET]}, "channel_versions": {"said": "1"}}
    config = at(THREAD, user, checkpoint_ns="")
    told = {"source": "input", "step": -1, "run_id": RUN, "note": SECRET}
    stored = await saver.aput(config, checkpoint, told, {"said": "1"})
    await saver.aput_writes(stored, [("said", SECRET)], "task")
    return str(checkpoint["id"])


async def seen(saver: MemplaneSaver, user: str | None, head: str) -> list[object]:
    """All that a saver shows of the thread, asked for in every way; a refusal shows nothing."""
    configs = [at(THREAD, user), at(THREAD, user, checkpoint_id=head), at(THREAD, user, checkpoint_ns="")]
    found: list[object] = []
    for config in configs:
        try:
            found += [one for one in [await saver.aget_tuple(config)] if one is not None]
            found += [one async for one in saver.alist(config)]
            found += [one async for one in saver.alist(config, filter={"run_id": RUN})]
            history = await saver.aget_delta_channel_history(config=config, channels=["said"])
            found += [each for channel in history.values() for each in channel["writes"]]
        except MemplaneError as refusal:
            assert SECRET not in str(refusal)  # noqa: PT017 - a refusal is one of the answers
    found += [one async for one in saver.alist(None)]
    return found


async def tampered(saver: MemplaneSaver, user: str | None, head: str) -> None:
    """Everything that could change or delete the thread, with its ids guessed right."""
    config = at(THREAD, user, checkpoint_ns="", checkpoint_id=head)
    new = {**empty_checkpoint(), "channel_values": {"said": 1}, "channel_versions": {"said": "2"}}
    tries: list[Callable[[], object]] = [
        lambda: saver.aput(config, new, {"source": "loop", "step": 0}, {"said": "2"}),
        lambda: saver.aput(config, {**new, "id": head}, {"source": "loop", "step": 0}, {"said": "2"}),
        lambda: saver.aput_writes(config, [("said", "forged")], "task"),
        lambda: saver.aput_writes(config, [("said", "forged")], "another task"),
        lambda: saver.acopy_thread(THREAD, "copy"),
        lambda: saver.adelete_for_runs([RUN]),
        lambda: saver.aprune([THREAD], older_than=timedelta(0)),
        lambda: saver.aprune([THREAD], strategy="delete"),
        lambda: saver.adelete_thread(THREAD),
    ]
    for each in tries:
        try:
            await each()  # type: ignore[misc]  # coroutines, all of them
        except MemplaneError as refusal:
            assert SECRET not in str(refusal)  # noqa: PT017 - a refusal is one of the answers


async def untouched(saver: MemplaneSaver, head: str) -> bool:
    found = await saver.aget_tuple(at(THREAD, "ana"))
    assert found is not None
    writes = [(channel, value) for _, channel, value in found.pending_writes or []]
    values = found.checkpoint["channel_values"]
    return (found.checkpoint["id"], values, writes) == (head, {"said": [SECRET]}, [("said", SECRET)])


def others(database: Database | File, tenant: str) -> dict[str, tuple[Principal, str | None]]:
    """Those who may not see the thread, and the user that they name."""
    found: dict[str, tuple[Principal, str | None]] = {
        "another user's key": (principal(tenant, "bo"), None),
        "another user's key that names the user": (principal(tenant, "bo"), "ana"),
        "a key of several other users": (principal(tenant, "bo", "cy"), "ana"),
    }
    if isinstance(database, Database):
        found["another tenant's key"] = (principal(database.new_tenant()), "ana")
        found["another tenant's user of the same name"] = (principal(database.new_tenant(), "ana"), None)
    return found


def test_nobody_else_sees_a_thread_or_changes_it(place: Database | File) -> None:
    tenant = place.new_tenant()
    strangers = others(place, tenant)

    async def run() -> None:
        callers = [principal(tenant, "ana"), *(caller for caller, _ in strangers.values())]
        async with savers(place, *callers) as (mine, *theirs):
            head = await planted(mine)
            assert SECRET in str(await seen(mine, "ana", head))  # the same ways show it to whom it belongs
            for saver, (name, (_, user)) in zip(theirs, strangers.items(), strict=True):
                assert await seen(saver, user, head) == [], name
            for saver, (name, (_, user)) in zip(theirs, strangers.items(), strict=True):
                await tampered(saver, user, head)
                assert await untouched(mine, head), name
                assert SECRET not in str(await seen(saver, user, head)), name
            await tampered(mine, "ana", head)
            assert await mine.aget_tuple(at(THREAD, "ana")) is None  # the same tries do delete one's own

    asyncio.run(run())


def test_row_level_security_stands_behind_the_statements(database: Database) -> None:
    """Statements that forget tenant and user still show and change nothing of others."""
    import psycopg  # noqa: PLC0415 - for this test alone

    tenant, other = database.new_tenant(), database.new_tenant()

    async def run() -> None:
        async with savers(database, principal(tenant, "ana"), principal(other, "ana")) as (mine, theirs):
            for saver in (mine, theirs):
                await planted(saver)

    asyncio.run(run())
    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "supervisor_checkpoints")
    with psycopg.connect(database.url) as connection:
        for users, expected in (("{ana}", 1), ("{bo}", 0), ("", 1)):
            for table in tables:
                with connection.transaction(force_rollback=True):
                    connection.execute(
                        "SELECT set_config('memplane.tenant', %s, true), set_config('memplane.users', %s, true)",
                        (tenant, users),
                    )
                    assert len(connection.execute(f"SELECT 1 FROM {table}").fetchall()) == expected
                    assert connection.execute(f"DELETE FROM {table}").rowcount == expected


def test_a_config_chooses_among_the_key_s_users_and_no_others(place: Database | File) -> None:
    tenant = place.new_tenant()

    async def run() -> None:
        callers = (principal(tenant), principal(tenant, "ana", "bo"), principal(tenant, "ana"))
        async with savers(place, *callers) as (of_all, of_two, of_one):
            for saver in (of_all, of_two):
                with pytest.raises(AmbiguousThread):
                    await counting(saver, 1).ainvoke({"count": 0, "messages": []}, at(THREAD))
            await counting(of_one, 1).ainvoke({"count": 0, "messages": []}, at(THREAD))
            await counting(of_two, 1).ainvoke({"count": 5, "messages": []}, at(THREAD, "bo"))
            assert (await counting(of_all, 1).aget_state(at(THREAD, "ana"))).values["count"] == 1
            assert (await counting(of_all, 1).aget_state(at(THREAD, "bo"))).values["count"] == 6
            with pytest.raises(UserForbidden):
                await of_two.aget_tuple(at(THREAD, "cy"))
            with pytest.raises(AmbiguousThread):
                await of_two.adelete_thread(THREAD)
            await of_one.adelete_thread(THREAD)
            assert await of_all.aget_tuple(at(THREAD, "ana")) is None
            assert await of_all.aget_tuple(at(THREAD, "bo")) is not None

        async with savers(place, principal(tenant), user_id="bo") as (bound,):
            assert await bound.aget_tuple(at(THREAD)) is not None
            with pytest.raises(UserForbidden):
                await bound.aget_tuple(at(THREAD, "ana"))

    asyncio.run(run())


def test_names_that_look_alike_are_different_threads(place: Database | File) -> None:
    names = ["1", "12", "_", "%", "a.b", "a/b", '["a","b"]', "a b", "A", "a"]

    async def run() -> None:
        async with savers(place, principal(place.new_tenant())) as (saver,):
            for user in names:
                for thread in names:
                    values = {"channel_values": {"said": f"{user}|{thread}"}, "channel_versions": {"said": "1"}}
                    config = at(thread, user, checkpoint_ns="")
                    await saver.aput(config, {**empty_checkpoint(), **values}, {"step": -1}, {"said": "1"})
            for user in names:
                for thread in names:
                    found = [one async for one in saver.alist(at(thread, user))]
                    said = [one.checkpoint["channel_values"]["said"] for one in found]
                    assert said == [f"{user}|{thread}"]

    asyncio.run(run())


def test_a_key_opens_the_saver_until_it_is_revoked(place: Database | File) -> None:
    tenant = place.new_tenant()

    async def run() -> None:
        async with open_application(place.url) as application:
            new = NewKey("supervisor", Trust.FULL, scopes=(KeyScope.CHECKPOINT,), users=("ana",))
            stored, credential = await application.keys.create(tenant, new)
            async with MemplaneSaver.open(place.url, key=credential) as saver:
                await counting(saver, 1).ainvoke({"count": 0, "messages": []}, at(THREAD))
                with pytest.raises(UserForbidden):
                    await saver.aget_tuple(at(THREAD, "bo"))
                await application.keys.revoke(tenant, stored.key_id)
                with pytest.raises(AuthenticationRequired):
                    await saver.aget_tuple(at(THREAD))
            for wrong in (credential, "mp_0123456789ab_wrong"):
                with pytest.raises(AuthenticationRequired):
                    await MemplaneSaver.open(place.url, key=wrong).__aenter__()
            with pytest.raises(InvalidRequest):
                await MemplaneSaver.open(place.url).__aenter__()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("less", "error"),
    [
        ({"scopes": frozenset(KeyScope) - {KeyScope.CHECKPOINT}}, ScopeForbidden),
        ({"trust": Trust.INNER}, VisibilityForbidden),
        ({"agent": "planner"}, CategoryForbidden),
    ],
    ids=["the scope", "the private store", "the category of turns"],
)
def test_a_caller_without_what_is_needed_does_nothing(
    place: Database | File, less: dict[str, Any], error: type[MemplaneError]
) -> None:
    tenant = place.new_tenant()

    async def run() -> None:
        async with savers(place, principal(tenant), replace(principal(tenant), **less)) as (mine, barred):
            head = await planted(mine)
            for each in (
                barred.aget_tuple(at(THREAD, "ana")),
                barred.adelete_thread(THREAD),
                barred.adelete_for_runs([RUN]),
            ):
                with pytest.raises(error):
                    await each
            with pytest.raises(error):
                _ = [one async for one in barred.alist(None)]
            await tampered(barred, "ana", head)
            assert await untouched(mine, head)
            with pytest.raises(RecordNotFound):
                await mine.acopy_thread("absent", "copy")

    asyncio.run(run())
