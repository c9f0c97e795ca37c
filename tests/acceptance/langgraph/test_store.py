"""What the store keeps is memory like any other: under the allowlist, screened, found by its text, and put right."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import PutOp

from memplane.application.keys.api_keys import NewKey
from memplane.application.memories.correction import Correction
from memplane.application.memories.feedback import Verb
from memplane.application.memories.service import NewMemory
from memplane.application.recall.recall import Question
from memplane.bootstrap import Application
from memplane.domain.errors import (
    AuthenticationRequired,
    CategoryForbidden,
    ConsentRequired,
    InvalidRequest,
    LimitExceeded,
    MemplaneError,
    ScopeForbidden,
    StateConflict,
    TrustTooLow,
    UserForbidden,
    ValueRejected,
    VisibilityForbidden,
)
from memplane.domain.identity.principal import KeyScope
from memplane.domain.memory.items import Address
from memplane.domain.memory.memory import MemoryText, MemoryType
from memplane.domain.memory.scope import Filters
from memplane.domain.policy.policy import Trust
from memplane.entrypoints.langgraph import MemplaneStore
from support.cluster import Database
from support.files import File
from support.graph_stores import keys, running, speaker, store_of

T = TypeVar("T")
USER, TASKS, GOALS = "ana", ("ana", "tasks"), ("ana", "goals")


def on(place: Database | File, work: Callable[[Application, str], Awaitable[T]]) -> T:
    async def run() -> T:
        tenant = place.new_tenant()
        async with running(place, tenant) as application:
            return await work(application, tenant)

    return asyncio.run(run())


async def refused(kind: type[MemplaneError], work: Awaitable[object]) -> None:
    with pytest.raises(kind):
        await work


def test_each_agent_reads_and_writes_its_own_categories(place: Database | File) -> None:
    async def work(application: Application, tenant: str) -> None:
        planner = store_of(application, speaker(tenant, "planner"))
        stylist = store_of(application, speaker(tenant, "stylist"))
        for store, category in ((planner, "tasks"), (stylist, "style")):
            await store.aput((USER, category), "k", {"of": category})
        for store, own, foreign in ((planner, "tasks", "style"), (stylist, "style", "tasks")):
            assert (await store.aget((USER, own), "k")).value == {"of": own}
            await refused(CategoryForbidden, store.aget((USER, foreign), "k"))
            await refused(CategoryForbidden, store.aput((USER, foreign), "k", {"of": "a stranger"}))
            await refused(CategoryForbidden, store.adelete((USER, foreign), "k"))
            await refused(CategoryForbidden, store.asearch((USER, foreign)))
            await refused(CategoryForbidden, store.alist_namespaces(prefix=(USER, foreign)))
            await refused(CategoryForbidden, store.asearch((USER, "no such category")))
            for prefix in ((), (USER,)):
                assert [item.value for item in await store.asearch(prefix)] == [{"of": own}]
                assert [item.value for item in await store.asearch(prefix, query="style tasks")] == [{"of": own}]
            assert await store.alist_namespaces() == [(USER, own)]

    on(place, work)


def test_nobody_reaches_another_user_or_tenant(place: Database | File) -> None:
    async def work(application: Application, tenant: str) -> None:
        mine, other = (store_of(application, speaker(tenant, "planner", user)) for user in (USER, "bo"))
        await mine.aput(TASKS, "k", {"secret": "canary"})
        strangers = [other]
        if isinstance(place, Database):
            elsewhere = place.new_tenant()
            await application.ensure_tenant(elsewhere)
            strangers.append(store_of(application, speaker(elsewhere, "planner")))
        for stranger in strangers:
            for prefix in ((), ("bo",)):
                assert await stranger.asearch(prefix) == []
                assert await stranger.asearch(prefix, query="canary") == []
                assert await stranger.alist_namespaces(prefix=prefix) == []
        await refused(UserForbidden, other.aget(TASKS, "k"))
        await refused(UserForbidden, other.aput(TASKS, "k", {}))
        await refused(UserForbidden, other.asearch((USER,)))
        bound = store_of(application, speaker(tenant, "planner", USER), "bo")
        await refused(UserForbidden, bound.aget(("tasks",), "k"))
        assert keys(await mine.asearch(())) == ["k"]  # the same ways show it to whom it belongs
        assert keys(await mine.asearch((), query="canary")) == ["k"]
        assert await mine.alist_namespaces() == [TASKS]

    on(place, work)


def test_a_key_does_what_its_scopes_and_its_trust_allow(place: Database | File) -> None:
    async def work(application: Application, tenant: str) -> None:
        full = store_of(application, speaker(tenant, "planner"))
        await full.aput(TASKS, "k", {"by": "full"})
        reader = store_of(application, speaker(tenant, "planner", scopes=frozenset({KeyScope.READ})))
        assert (await reader.aget(TASKS, "k")).value == {"by": "full"}
        await refused(ScopeForbidden, reader.aput(TASKS, "k", {}))
        await refused(ScopeForbidden, reader.adelete(TASKS, "k"))
        writer = store_of(application, speaker(tenant, "planner", scopes=frozenset({KeyScope.WRITE})))
        await writer.aput(TASKS, "w", {})
        await refused(ScopeForbidden, writer.aget(TASKS, "w"))
        inner = store_of(application, speaker(tenant, "planner", trust=Trust.INNER))
        assert await inner.aget(TASKS, "k") is None  # it lies in a store that this trust does not see
        await refused(StateConflict, inner.aput(TASKS, "k", {}))
        await inner.aput(TASKS, "shared", {"by": "inner"})
        assert (await full.aget(TASKS, "shared")).value == {"by": "inner"}
        await full.aput(TASKS, "shared", {"by": "full"})
        await refused(TrustTooLow, inner.aput(TASKS, "shared", {"by": "inner again"}))
        await refused(
            VisibilityForbidden,
            store_of(application, speaker(tenant, "planner", trust=Trust.PUBLIC)).aput(TASKS, "p", {}),
        )
        assert (await full.aget(TASKS, "k")).value == {"by": "full"}

    on(place, work)


def test_a_revoked_key_ends_at_once(place: Database | File) -> None:
    async def work(application: Application, tenant: str) -> None:
        _, secret = await application.keys.create(tenant, NewKey("planner", Trust.FULL))
        async with MemplaneStore.open(place.url, key=secret, user_id=USER) as store:
            await store.aput(("tasks",), "k", {"a": 1})
            assert (await store.aget(("tasks",), "k")).value == {"a": 1}
            (key,) = [key for key in await _keys(application, tenant) if key.agent == "planner"]
            await application.storage.write(
                speaker(tenant).reach, lambda uow: uow.keys.revoke(key.key_id, datetime.now(UTC))
            )
            await refused(AuthenticationRequired, store.aget(("tasks",), "k"))
        with pytest.raises(InvalidRequest):
            async with MemplaneStore.open(place.url, key=secret, category="tasks"):
                pass

    on(place, work)


async def _keys(application: Application, tenant: str) -> list[Any]:
    return list(await application.storage.write(speaker(tenant).reach, lambda uow: uow.keys.all()))


def test_an_item_is_one_memory_that_a_question_finds_by_its_text(place: Database | File) -> None:
    async def work(application: Application, tenant: str) -> None:
        caller = speaker(tenant, "planner")
        store = store_of(application, caller)
        await store.aput(TASKS, "tea", {"text": "Ana waters the orchids on Mondays", "n": 1.0})
        await store.aput(TASKS, "same", {"text": "Ana waters the orchids on Mondays", "n": 1.0})
        await store.aput(TASKS, "against", {"text": "Ana does not water the orchids on Mondays"})
        await store.aput(TASKS, "hidden", {"text": "orchids nobody finds"}, index=False)
        await store.aput(TASKS, "part", {"title": "roses", "body": "orchids too"}, index=["title"])
        rows = place.rows(tenant, "SELECT state, type FROM memories WHERE tenant_id = %(tenant)s", {})
        assert [(row["state"], row["type"]) for row in rows] == [("active", "observation")] * 5
        asked = Question("Who waters the orchids?", categories=("tasks",), filters=Filters(user_id=USER), top_k=20)
        found = [item.text for item in (await application.recall(caller, asked)).items]
        assert sum("waters the orchids" in text for text in found) == 2
        assert not any("nobody finds" in text or "orchids too" in text for text in found)
        best = await store.asearch(TASKS, query="waters orchids", limit=3)
        assert set(keys(best)) == {"tea", "same", "against"}
        assert all(each.score is not None for each in best)
        assert keys(await store.asearch(TASKS, query="roses", limit=1)) == ["part"]
        assert keys(await store.asearch(TASKS, query="roses orchids", filter={"n": 1.0}, limit=1, offset=1)) in (
            ["tea"],
            ["same"],
        )

    on(place, work)


def test_a_filter_does_not_starve_a_search(place: Database | File) -> None:
    async def work(application: Application, tenant: str) -> None:
        store = store_of(application, speaker(tenant, "planner"), USER, "tasks")
        for nth in range(60):
            await store.aput(("many",), str(nth), {"text": f"the deployment plan, part {nth}", "kind": "plan"})
        await store.aput(("few",), "one", {"text": "a plan of the garden", "kind": "garden"})
        assert keys(await store.asearch(("few",), query="deployment plan", limit=1)) == ["one"]
        assert keys(await store.asearch((), query="deployment plan", filter={"kind": "garden"}, limit=1)) == ["one"]
        assert len(await store.asearch((), query="deployment plan", limit=100)) == 61

    on(place, work)


def test_what_a_person_corrects_or_rejects_does_not_come_back_through_the_store(place: Database | File) -> None:
    async def work(application: Application, tenant: str) -> None:
        caller = speaker(tenant, "planner")
        store = store_of(application, caller)
        wrong, right = {"text": "The release is on Monday"}, {"text": "The release is on Friday"}
        for key in ("corrected", "rejected", "patched"):
            await store.aput(TASKS, key, {"text": f"{wrong['text']}, says {key}"})
        ids = {
            key: place.rows(
                tenant,
                "SELECT id FROM memories WHERE tenant_id = %(tenant)s AND external_id = %(name)s",
                {"name": Address(USER, "tasks", (), key).name},
            )[0]["id"]
            for key in ("corrected", "rejected", "patched")
        }
        await application.correct(caller, Verb(ids["corrected"]), Correction(MemoryText(right["text"])))
        await application.feedback.reject(caller, Verb(ids["rejected"]))
        await application.remember.update(caller, ids["patched"], {"content": right["text"] + ", by hand"})
        for key in ids:
            assert await store.aget(TASKS, key) is None
        assert await store.asearch(TASKS) == []
        await refused(ValueRejected, store.aput(TASKS, "rejected", {"text": "The release is on Monday, says rejected"}))
        await refused(ValueRejected, store.aput(TASKS, "other", {"text": "the release is on monday, says rejected!"}))
        await refused(
            StateConflict, store.aput(TASKS, "corrected", {"text": "The release is on Monday, says corrected"})
        )
        for key in ids:
            await store.aput(TASKS, key, {"text": f"The release is on Sunday, says {key}"})
            assert (await store.aget(TASKS, key)).value["text"].startswith("The release is on Sunday")

    on(place, work)


def test_a_sensitive_field_waits_for_consent_here_too(place: Database | File) -> None:
    async def work(application: Application, tenant: str) -> None:
        store = store_of(application, speaker(tenant, "supervisor"))
        for value, index in (
            ({"preferred_name": "Ann"}, None),
            ({"city": "Graz"}, False),
            ({"text": "Ana lives in Linz."}, None),
        ):
            with pytest.raises(ConsentRequired):
                await store.aput((USER, "profile"), "about", value, index=index)  # type: ignore[arg-type]  # one of both
            assert await store.aget((USER, "profile"), "about") is None
        for value in ({"text": "The user lives in Linz."}, {"text": "Ana moved to Linz."}, {"user": {"city": "Linz"}}):
            with pytest.raises(ConsentRequired):
                await store.aput(TASKS, "note", value)
            assert await store.aget(TASKS, "note") is None
        await store.aput(TASKS, "note", {"venue": {"city": "Linz"}})  # the control
        await store.aput((USER, "profile"), "about", {"text": "Ana keeps bees."})
        with pytest.raises(ConsentRequired):
            await store.aput((USER, "profile"), "about", {"text": "Ana lives in Linz."})
        assert (await store.aget((USER, "profile"), "about")).value == {"text": "Ana keeps bees."}

    on(place, work)


def test_an_item_ends_unless_it_is_read(place: Database | File) -> None:
    async def work(application: Application, tenant: str) -> None:
        store = store_of(application, speaker(tenant, "planner"), ttl={"default_ttl": 60})
        await store.aput(TASKS, "short", {"a": 1})
        await store.aput(TASKS, "for ever", {"a": 2}, ttl=None)
        reader = store_of(application, speaker(tenant, "planner", scopes=frozenset({KeyScope.READ})))

        def end() -> datetime:
            (row,) = place.rows(
                tenant, "SELECT expires_at FROM memories WHERE expires_at IS NOT NULL AND state = 'active'", {}
            )
            return row["expires_at"]

        def set_end(after: timedelta) -> datetime:
            moment = datetime.now(UTC) + after
            place.rows(
                tenant,
                "UPDATE memories SET expires_at = %(at)s WHERE expires_at IS NOT NULL AND state = 'active'",
                {"at": moment.isoformat()},
            )
            return moment

        assert timedelta(minutes=59) < end() - datetime.now(UTC) <= timedelta(minutes=60)
        soon = set_end(timedelta(minutes=5))
        for unmoved in (reader.aget(TASKS, "short"), store.aget(TASKS, "short", refresh_ttl=False)):
            assert (await unmoved).value == {"a": 1}
            assert abs(end() - soon) < timedelta(seconds=1)
        assert keys(await store.asearch(TASKS, refresh_ttl=False)) == ["short", "for ever"]
        assert abs(end() - soon) < timedelta(seconds=1)
        assert keys(await store.asearch(TASKS)) == ["short", "for ever"]
        assert end() - datetime.now(UTC) > timedelta(minutes=59)
        set_end(timedelta(seconds=-1))
        assert await store.aget(TASKS, "short") is None
        assert keys(await store.asearch(TASKS)) == ["for ever"]
        await store.aput(TASKS, "short", {"a": 3})
        assert (await store.aget(TASKS, "short")).value == {"a": 3}
        assert end() > datetime.now(UTC)
        with pytest.raises(InvalidRequest):
            await store.aput(TASKS, "short", {}, ttl=-1)

    on(place, work)


def test_a_namespace_is_compared_whole_and_a_user_s_name_exactly(place: Database | File) -> None:
    async def work(application: Application, tenant: str) -> None:
        store = store_of(application, speaker(tenant, "planner"))
        for user in ("1", "12", "_", "%", "a"):
            await store.aput((user, "tasks", user), "k", {"of": user})
        for user in ("1", "12", "_", "%", "a"):
            assert [item.value for item in await store.asearch((user,))] == [{"of": user}]
            assert [item.value for item in await store.asearch((user,), query="of")] == [{"of": user}]
            assert await store.alist_namespaces(prefix=(user,)) == [(user, "tasks", user)]
        for disguised in (" 1", "1 ", "a  b", "1\t"):
            with pytest.raises(InvalidRequest):
                await store.abatch([PutOp((disguised, "tasks"), "k", {"of": "a stranger"})])
            with pytest.raises(InvalidRequest):
                await store.asearch((disguised,))

    on(place, work)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"nan": float("nan")}, InvalidRequest),
        ({"huge": 2**63}, InvalidRequest),
        ({1: "a number for a name"}, InvalidRequest),
        ({"set": {1}}, InvalidRequest),
        ({"nul": "\x00"}, InvalidRequest),
        ({"half": "\ud800"}, InvalidRequest),
        ({"long": "x" * 16_001}, LimitExceeded),
        ({"deep": [[[[[[[[1]]]]]]]]}, LimitExceeded),
    ],
    ids=lambda each: next(iter(map(str, each)), "") if isinstance(each, dict) else "",
)
def test_what_json_does_not_have_is_refused_and_the_older_value_stays(
    place: Database | File, value: dict[Any, Any], kind: type[MemplaneError]
) -> None:
    async def work(application: Application, tenant: str) -> None:
        store = store_of(application, speaker(tenant, "planner"))
        await store.aput(TASKS, "k", {"good": [1, {"a": None}]})
        await refused(kind, store.aput(TASKS, "k", value))
        assert json.dumps((await store.aget(TASKS, "k")).value) == json.dumps({"good": [1, {"a": None}]})

    on(place, work)


def test_writers_of_one_key_leave_one_of_their_values(place: Database | File) -> None:
    async def work(application: Application, tenant: str) -> None:
        store = store_of(application, speaker(tenant, "planner"))
        values = [{"text": f"written by number {nth}"} for nth in range(8)]
        await asyncio.gather(*(store.aput(TASKS, "k", value) for value in values))
        assert (await store.aget(TASKS, "k")).value in values
        assert len(await store.asearch(TASKS)) == 1

    on(place, work)


def test_a_memory_that_poses_as_an_item_is_none(place: Database | File) -> None:
    async def work(application: Application, tenant: str) -> None:
        store = store_of(application, speaker(tenant, "planner"))
        await store.aput(TASKS, "k", {"true": 1})
        forged = {"namespace": [], "key": "k", "value": {"forged": 1}}
        for name, attributes in (
            ("item:forged", forged),
            ("item:other", {"namespace": "x", "key": 1}),
            ("item:none", {}),
        ):
            new = NewMemory(
                USER, "tasks", MemoryText(name), MemoryType.OBSERVATION, external_id=name, attributes=attributes
            )
            assert (await application.remember.create(speaker(tenant, "planner"), new)).outcome == "created"
        assert [item.value for item in await store.asearch(TASKS)] == [{"true": 1}]
        assert [item.value for item in await store.asearch(TASKS, query="forged")] == [{"true": 1}]
        assert await store.alist_namespaces() == [TASKS]

    on(place, work)


def test_a_graph_remembers_across_restarts(place: Database | File) -> None:
    tenant = place.new_tenant()

    async def note(_: dict[str, Any], runtime: Runtime[None]) -> dict[str, Any]:
        store = runtime.store
        assert store is not None
        told = await store.aget(TASKS, "count")
        count = 1 if told is None else told.value["n"] + 1
        await store.aput(TASKS, "count", {"n": count})
        return {"n": count}

    async def run() -> int:
        async with running(place, tenant) as application:
            builder = StateGraph(dict).add_node("note", note).add_edge(START, "note").add_edge("note", END)  # type: ignore[type-var]  # a plain state
            graph = builder.compile(store=store_of(application, speaker(tenant, "planner")))
            return int((await graph.ainvoke({"n": 0}))["n"])

    assert [asyncio.run(run()), asyncio.run(run())] == [1, 2]


def test_without_an_event_loop_it_is_the_same(place: Database | File) -> None:
    tenant = place.new_tenant()
    with MemplaneStore.open_sync(
        place.url, principal=speaker(tenant, "planner"), user_id=USER, category="tasks"
    ) as store:
        store.put(("a",), "k", {"n": 1})
        assert store.get(("a",), "k").value == {"n": 1}
        assert keys(store.search((), query="n")) == ["k"]
        assert store.list_namespaces() == [("a",)]
        store.delete(("a",), "k")
        assert store.get(("a",), "k") is None
