"""The Python client: its arguments, its methods against a real server, and its sync face."""

import asyncio
import inspect
import json
import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest

from integration.answers import WRITTEN, Answers, ok
from integration.commands import Served
from memplane.client import (
    Conflict,
    Forbidden,
    Invalid,
    Memplane,
    MemplaneSync,
    NotFound,
    Unauthenticated,
    Unreachable,
    VersionConflict,
    fields,
)
from memplane.contracts.base import Message
from memplane.contracts.consents import BulkItem, ConsentFilters
from memplane.contracts.context import ContextRequest
from memplane.contracts.memories import MemoryChange, NewMemoryRequest, NewTurnRequest
from memplane.contracts.observations import ObservationRequest
from memplane.contracts.query import QueryFilters, QueryRequest


@pytest.fixture
def served(served_by_postgres: Served) -> Served:
    return served_by_postgres


@pytest.fixture
def memory(served: Served) -> Iterator[MemplaneSync]:
    with MemplaneSync(served.url, served.keys["supervisor"]) as client:
        yield client


# The arguments


@pytest.mark.parametrize(
    ("given", "contract", "positional"),
    [
        (fields.QueryFields, QueryRequest, {"query"}),
        (fields.FilterFields, QueryFilters, set()),
        (fields.ContextFields, ContextRequest, {"user_id", "thread_id"}),
        (fields.TurnFields, NewTurnRequest, {"text"}),
        (fields.TurnEntry, NewTurnRequest, set()),
        (fields.MemoryFields, NewMemoryRequest, {"content"}),
        (fields.ChangeFields, MemoryChange, set()),
        (fields.ObservationFields, ObservationRequest, {"tool", "outcome"}),
        (fields.ConsentFields, ConsentFilters, set()),
        (fields.DecisionEntry, BulkItem, set()),
    ],
)
def test_the_arguments_mirror_the_contract(given: type, contract: type[Message], positional: set[str]) -> None:
    assert set(inspect.get_annotations(given)) | positional == set(contract.model_fields)
    required = {name for name, field in contract.model_fields.items() if field.is_required()}
    assert given.__required_keys__ | positional >= required >= given.__required_keys__


def test_only_what_is_given_is_sent() -> None:
    answers = Answers(ok(WRITTEN))
    answers.ask(lambda m: m.remember("Ana sails.", user_id="ana", category="interests", tags=["sea"]))
    assert json.loads(answers.requests[0].content) == {
        "content": "Ana sails.", "user_id": "ana", "category": "interests", "tags": ["sea"],
    }  # fmt: skip
    answers = Answers(ok())
    answers.ask(lambda m: m.query(return_="full", filters={"updated_after": "2025-07-01"}))
    assert json.loads(answers.requests[0].content) == {
        "return": "full", "filters": {"updated_after": "2025-07-01T00:00:00Z"},
    }  # fmt: skip


def test_none_empties_a_field_of_a_change() -> None:
    answers = Answers(ok(WRITTEN))
    answers.ask(lambda m: m.update(uuid4(), title=None, version=3))
    assert json.loads(answers.requests[0].content) == {"title": None}
    assert answers.requests[0].headers["If-Match"] == '"3"'


def test_what_breaks_the_contract_is_not_sent() -> None:
    answers = Answers(ok())
    with pytest.raises(Invalid, match="top_k") as refused:
        answers.ask(lambda m: m.query("x", top_k=0))
    assert (refused.value.code, refused.value.status, answers.requests) == ("invalid_request", None, [])
    with pytest.raises(Invalid, match="text: "):
        answers.ask(lambda m: m.turn("lone \ud800", user_id="u", thread_id="t", role="user"))
    with pytest.raises(Invalid, match="names nothing"):
        answers.ask(lambda m: m.get(""))
    assert answers.requests == []
    answers.ask(lambda m: m.query("x", top_k=1))
    assert len(answers.requests) == 1


@pytest.mark.parametrize("thread", ["a/b", "..", "a b", "ä?#%"])
def test_an_id_stays_one_segment_of_the_path(thread: str) -> None:
    answers = Answers(ok({"rev": 0, "header": None, "changes": []}))
    answers.ask(lambda m: m.delta(thread))
    raw = answers.requests[0].url.raw_path.decode()
    assert raw.startswith("/v1/threads/")
    assert raw.endswith("/delta")
    assert raw.count("/") == 4


@pytest.mark.parametrize(
    ("url", "key"), [("ftp://m", "mp_k"), ("nothing", "mp_k"), ("http://m", ""), ("http://m", "mp_k\n")]
)
def test_a_url_or_key_that_cannot_be_one_is_refused(url: str, key: str) -> None:
    with pytest.raises(Invalid) as refused:
        Memplane(url, key)
    assert refused.value.code in {"invalid_url", "invalid_key"}
    assert not key or key not in str(refused.value)


# A real server


def test_the_async_client_speaks_with_a_server(served: Served, user: str) -> None:
    async def story() -> None:
        async with Memplane(served.url, served.keys["supervisor"]) as client:
            assert (await client.health()).status == "ok"
            assert (await client.ready()).policy
            turn = await client.turn("The launch moved to May.", user_id=user, thread_id=user, role="user")
            assert (turn.outcome, turn.seq) == ("created", 1)
            written = await client.remember("The user plans a launch.", user_id=user, category="goals", thread_id=user)
            answer = await client.query(
                "launch", filters={"user_id": user}, return_="full", thread_id=user, since_rev=1
            )
            assert {item.id for item in answer.items} == {turn.turn_id, written.id}
            assert answer.delta
            assert answer.delta.header
            assert (await client.delta(user, since=1, user_id=user)).rev == written.rev
            assert [record.id async for record in client.list(user_id=user)] == [written.id]

    asyncio.run(story())


def test_a_batch_is_stored_in_order_and_once(memory: MemplaneSync, user: str) -> None:
    batch: list[fields.TurnEntry] = [
        {"user_id": user, "thread_id": user, "role": "user", "text": f"word {n}", "external_id": f"x{n}"}
        for n in range(3)
    ]
    first, again = memory.turns(batch), memory.turns(batch)
    assert [turn.seq for turn in first.items] == [1, 2, 3]
    assert {turn.outcome for turn in first.items} == {"created"}
    assert {turn.outcome for turn in again.items} == {"duplicate"}
    assert [turn.turn_id for turn in again.items] == [turn.turn_id for turn in first.items]


def test_a_change_needs_the_version_that_is_there(memory: MemplaneSync, user: str) -> None:
    made = memory.remember("The user sails.", user_id=user, category="goals")
    changed = memory.update(made.id, version=made.version, content="The user sails on Sundays.")
    assert changed.outcome == "updated"
    with pytest.raises(VersionConflict) as refused:
        memory.update(made.id, version=made.version, content="The user rows.")
    assert (refused.value.status, refused.value.code) == (412, "version_conflict")
    assert isinstance(refused.value, Conflict)
    assert refused.value.extra["version"] == changed.version
    assert memory.get(made.id).content == "The user sails on Sundays."


def test_what_was_deleted_is_gone_but_for_its_history(memory: MemplaneSync, user: str) -> None:
    made = memory.remember("The user rows.", user_id=user, category="goals")
    assert memory.get(str(made.id)).id == made.id
    assert memory.delete(made.id, version=made.version).outcome == "deleted"
    with pytest.raises(NotFound):
        memory.get(made.id)
    page = memory.history(made.id, limit=1)
    assert [entry.event.value for entry in page.items] == ["DELETE"]
    assert [entry.event.value for entry in memory.history(made.id, cursor=page.next).items] == ["ADD"]


def test_a_list_goes_on_over_its_pages(memory: MemplaneSync, user: str) -> None:
    made = [memory.remember(f"The user owns boat {n}.", user_id=user, category="goals").id for n in range(5)]
    assert [record.id for record in memory.list(user_id=user, page_size=2)] == made[::-1]
    page = memory.list_page(user_id=user, limit=2)
    assert [record.id for record in page.items] == made[:2:-1]
    assert page.next
    begun = memory.list(user_id=user, page_size=2)
    assert next(begun).id == made[-1]
    begun.close()  # type: ignore[attr-defined]  # it is a generator
    assert memory.health().status == "ok"


def test_all_of_a_history_comes_over_its_pages(memory: MemplaneSync, user: str) -> None:
    made = memory.remember("The user owns 1 boat.", user_id=user, category="goals")
    for number in range(2, 6):
        memory.update(made.id, content=f"The user owns {number} boats.")
    events = [entry.event.value for entry in memory.all_history(made.id, page_size=2)]
    assert events == ["UPDATE"] * 4 + ["ADD"]
    assert [entry.event.value for entry in memory.history(made.id, limit=2).items] == events[:2]
    begun = memory.all_history(made.id, page_size=2)
    assert next(begun).event.value == "UPDATE"
    begun.close()  # type: ignore[attr-defined]  # it is a generator
    with pytest.raises(NotFound):
        next(memory.all_history(uuid4()))


def test_a_supervisor_s_state_is_kept_and_deleted(memory: MemplaneSync, user: str) -> None:
    thread = "plans/1"
    made = memory.save_checkpoint(thread, user_id=user, agents={"planner": {"step": 1}}, version=0)
    assert (made.version, made.agents, made.memory) == (1, {"planner": {"step": 1}}, None)
    with pytest.raises(VersionConflict):
        memory.save_checkpoint(thread, user_id=user, memory={}, version=0)
    assert memory.checkpoint(thread, user_id=user) == made
    assert memory.delete_checkpoints(thread, user_id=user, version=1).outcome == "deleted"
    with pytest.raises(NotFound):
        memory.checkpoint(thread, user_id=user)


def test_a_refusal_says_what_is_forbidden(served: Served, memory: MemplaneSync, user: str) -> None:
    with MemplaneSync(served.url, served.keys["planner"]) as planner:
        with pytest.raises(Forbidden) as refused:
            planner.remember("The user likes blue.", user_id=user, category="preferences")
        assert (refused.value.status, refused.value.code) == (403, "category_forbidden")
        assert planner.remember("The user has to pack.", user_id=user, category="tasks").outcome == "created"
    assert memory.remember("The user likes blue.", user_id=user, category="preferences").outcome == "created"


def test_a_wrong_key_is_refused(served: Served, memory: MemplaneSync) -> None:
    with MemplaneSync(served.url, "mp_0123456789ab_wrong") as stranger, pytest.raises(Unauthenticated) as refused:
        stranger.query("x")
    assert refused.value.status == 401
    assert memory.query("x").usage.budget > 0


def test_nobody_there_is_unreachable(served: Served) -> None:
    with MemplaneSync("http://127.0.0.1:9", served.keys["supervisor"], retries=0) as lost:
        with pytest.raises(Unreachable) as refused:
            lost.query("x")
        assert (refused.value.code, refused.value.status) == ("unreachable", None)


# The sync face


def test_the_sync_client_has_every_method_and_writes_none_twice() -> None:
    offered = {name for name, _ in inspect.getmembers(Memplane, inspect.isfunction) if not name.startswith("_")}
    assert offered >= {"query", "turn", "turns", "remember", "get", "list", "update", "delete", "history", "delta"}
    for name in offered - {"close"}:
        assert inspect.unwrap(getattr(MemplaneSync, name)) is getattr(Memplane, name)


def test_the_sync_client_serves_several_threads(memory: MemplaneSync, user: str) -> None:
    def write(number: int) -> None:
        memory.remember(f"The user owns oar {number}.", user_id=user, category="goals")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list(memory.list(user_id=user))) == 8


def test_a_closed_sync_client_says_so(served: Served) -> None:
    client = MemplaneSync(served.url, served.keys["supervisor"])
    assert client.health().status == "ok"
    begun = client.list(page_size=1)
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.health()
    with pytest.raises(RuntimeError, match="closed"):
        next(begun)
    assert not [thread for thread in threading.enumerate() if thread.name == "memplane-client"]
