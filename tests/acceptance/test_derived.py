"""Deleting a source reaches what came of it, kind by kind; the history tells why, and what stands by itself stays."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import psycopg
import pytest

from memplane.application.transaction import UnitOfWork
from memplane.domain.identity.principal import KeyScope, Principal, Reach
from memplane.domain.memory.scope import read_scope
from memplane.domain.policy.capabilities import Capability
from memplane.domain.policy.policy import Trust
from support.callers import USER, Caller, Json, Tenant
from support.cluster import Database
from support.nights import state
from support.promises.checks import COPIES, OTHER, PIANO, WAYS, copies_left
from support.telling import events, say, texts, write
from support.working import until

SOURCE = PIANO


def history(caller: Caller, memory: str) -> Json:
    """The newest entry of a memory's history."""
    return dict(caller.get(f"/v1/memories/{memory}/history").json()["items"][0])


def kind(tenant: Tenant, memory: str, **columns: str) -> None:
    """Let a memory be one that a job would make."""
    assigned = ", ".join(f"{name} = %({name})s" for name in columns)
    tenant.rows(f"UPDATE memories SET {assigned} WHERE id = %(id)s", id=UUID(memory), **columns)


WOVEN: dict[str, dict[str, str]] = {
    "insight": {"type": "insight"},
    "reflection": {"type": "reflection", "source": "reflection"},
    "consolidation": {"source": "consolidation"},
}


@pytest.mark.parametrize("way", WAYS)
class TestGoes:
    """What is derived from the source alone, or woven from several."""

    @pytest.mark.parametrize("copy", COPIES)
    def test_a_copy_goes_and_what_was_copied_from_it(self, tenant: Tenant, copy: str, way: str) -> None:
        assert copies_left(tenant, copy, way) == []

    @pytest.mark.parametrize("woven", WOVEN)
    def test_what_was_woven_goes_with_any_of_its_sources(
        self, tenant: Tenant, supervisor: Caller, woven: str, way: str
    ) -> None:
        sources = [write(supervisor, text)["id"] for text in (SOURCE, "The user sails a boat.")]
        made = write(supervisor, "The user likes quiet pastimes.", source_ids=sources)["id"]
        kind(tenant, made, **WOVEN[woven])
        WAYS[way](supervisor, sources[0])
        assert state(tenant, made) == "soft_deleted"
        assert state(tenant, sources[1]) == "active"

    def test_a_fact_said_in_two_places_stays_on_the_other(self, tenant: Tenant, supervisor: Caller, way: str) -> None:
        sources = [write(supervisor, text)["id"] for text in (SOURCE, "The user sails a boat.")]
        drawn = write(supervisor, "The user likes quiet pastimes.", source_ids=sources)["id"]
        kind(tenant, drawn, source="extraction")
        WAYS[way](supervisor, sources[0])
        assert state(tenant, drawn) == "active"
        assert supervisor.get(f"/v1/memories/{drawn}").json()["source_ids"] == sources[1:]
        assert history(supervisor, drawn)["meta"]["cause"] == "source_deleted"
        WAYS[way](supervisor, sources[1])
        assert state(tenant, drawn) == "soft_deleted"

    def test_what_a_person_confirmed_stays(self, tenant: Tenant, supervisor: Caller, way: str) -> None:
        source = write(supervisor, SOURCE)["id"]
        drawn = write(supervisor, "The user likes quiet pastimes.", source_ids=[source])["id"]
        say(supervisor, drawn, "confirm")
        WAYS[way](supervisor, source)
        assert state(tenant, drawn) == "active"
        assert events(supervisor, drawn)[0] == "UPDATE"


def test_who_is_trusted_less_takes_nothing_of_others_along(tenant: Tenant, supervisor: Caller) -> None:
    inner = tenant.caller("supervisor", trust="inner")
    source = write(inner, SOURCE, visibility="shared")["id"]
    drawn = write(supervisor, "The user likes quiet pastimes.", source_ids=[source])["id"]
    inner.delete(f"/v1/memories/{source}").raise_for_status()
    assert state(tenant, source) == "soft_deleted"
    assert state(tenant, drawn) == "active"


def test_what_was_drawn_from_a_turn_goes_when_its_user_is_erased(
    tenant: Tenant, supervisor: Caller, admin: Caller
) -> None:
    turn = supervisor.say("I moved to Lisbon.")["turn_id"]
    copied = write(supervisor, "Ben knows somebody in Lisbon.", user_id=OTHER, source_ids=[turn])["id"]
    own = write(supervisor, "Ben owns a boat.", user_id=OTHER)["id"]
    assert admin.post(f"/v1/users/{USER}/erase", {"confirm": USER}).json()["erased"]["copies"] == 1
    assert (state(tenant, copied), state(tenant, own)) == (None, "active")
    assert texts(supervisor, filters={"user_id": OTHER}) == {"Ben owns a boat."}


@pytest.mark.parametrize("way", WAYS)
def test_copies_follow_whomever_the_key_is_bound_to(tenant: Tenant, supervisor: Caller, way: str) -> None:
    source, other = write(supervisor, SOURCE)["id"], write(supervisor, "The user sails a boat.")["id"]
    copied = write(supervisor, "Ben heard of music.", user_id=OTHER, source_ids=[source])["id"]
    control = write(supervisor, "Ben heard of a boat.", user_id=OTHER, source_ids=[other])["id"]
    WAYS[way](tenant.caller("supervisor", users=[USER]), source)
    assert [state(tenant, each) for each in (copied, control)] == ["soft_deleted", "active"]


@pytest.mark.parametrize("way", WAYS)
def test_each_user_s_threads_are_told_of_their_own_alone(tenant: Tenant, supervisor: Caller, way: str) -> None:
    source = write(supervisor, SOURCE, thread_id="ours")["id"]
    drawn = write(supervisor, "The user likes quiet pastimes.", thread_id="ours", source_ids=[source])["id"]
    copied = write(supervisor, "Ben heard of music.", user_id=OTHER, thread_id="his", source_ids=[source])["id"]
    WAYS[way](supervisor, source)
    told = tenant.rows(
        "SELECT user_id, thread_id, memory_id FROM change_log"
        " WHERE tenant_id = %(tenant)s AND event IN ('soft_deleted', 'rejected')"
    )
    assert {(each["user_id"], each["thread_id"], UUID(str(each["memory_id"]))) for each in told} == {
        (USER, "ours", UUID(source)), (USER, "ours", UUID(drawn)), (OTHER, "his", UUID(copied)),
    }  # fmt: skip
    threads = tenant.rows("SELECT user_id, thread_id FROM thread_revision WHERE tenant_id = %(tenant)s")
    assert {(each["user_id"], each["thread_id"]) for each in threads} == {(USER, "ours"), (OTHER, "his")}
    assert SOURCE not in supervisor.get("/v1/threads/his/delta", user_id=OTHER, since=0).text


@pytest.mark.needs(Capability.SIMULTANEOUS_WRITES)
def test_whoever_writes_a_copy_in_that_moment_does_not_bring_it_back(tenant: Tenant, supervisor: Caller) -> None:
    source = write(supervisor, SOURCE)["id"]
    copied = UUID(write(supervisor, "Ben heard of music.", user_id=OTHER, source_ids=[source])["id"])
    has_read, goes_on = threading.Event(), threading.Event()
    wired = tenant.server.wired
    writer = Principal(tenant.name, "supervisor", Trust.FULL, frozenset(KeyScope), "ben's")
    scope = read_scope(writer, wired.policies.current, ("event",), datetime.now(UTC))

    async def counted(uow: UnitOfWork) -> None:
        """What the gateway does with a memory that is said again: it reads it, works, and writes it."""
        await uow.lock_users([OTHER])
        there = await uow.memories.find(scope, copied)
        assert there is not None
        has_read.set()
        await asyncio.to_thread(goes_on.wait, 60)
        await uow.memories.replace(replace(there, importance=5, version=there.version + 1), None)

    database = tenant.server.database
    assert isinstance(database, Database)
    mine = "database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    waiting = f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND {mine}"
    with psycopg.connect(database.admin_url, autocommit=True) as watcher, ThreadPoolExecutor(1) as pool:
        counting = tenant.server.start(wired.storage.write(Reach(tenant.name), counted))
        assert has_read.wait(60)
        deleting = pool.submit(supervisor.delete, f"/v1/memories/{source}")
        until(lambda: deleting.done() or watcher.execute(waiting).fetchone() != (0,), "the delete waits, or is done")
        goes_on.set()
        counting.result(60)
        assert deleting.result(60).status_code == 200
    assert state(tenant, str(copied)) == "soft_deleted"
    assert state(tenant, str(copied), "importance") == 5  # the control: it was written meanwhile


@pytest.mark.needs(Capability.ROW_LEVEL_SECURITY)
def test_the_database_keeps_users_apart_until_something_follows(tenant: Tenant, supervisor: Caller) -> None:
    write(supervisor, "Ben owns a boat.", user_id=OTHER)
    bound = Reach(tenant.name, frozenset({USER}))

    async def seen(uow: UnitOfWork) -> tuple[int, int]:
        before = await uow.erasures.memories(OTHER, 10)
        await uow.reach_every_user()
        return len(before), len(await uow.erasures.memories(OTHER, 10))

    for _ in range(3):  # the next transaction is bound again, on the same connection too
        assert tenant.server.run(tenant.server.wired.storage.write(bound, seen)) == (0, 1)
