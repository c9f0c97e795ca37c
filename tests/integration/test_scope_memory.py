"""What PostgreSQL's reader remembers of scopes is what it would read again, whatever happened in between."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

import psycopg
import pytest

from memplane.adapters.postgres.scope_cache import CachedScope, ScopeCache
from memplane.adapters.postgres.storage import PostgresStorage
from memplane.application.ports import TenantReader
from memplane.application.recall.search_material import Query
from memplane.bootstrap import now
from memplane.domain.errors import StorageUnavailable
from memplane.domain.language.terms import terms
from memplane.domain.memory.scope import Filters, read_scope
from support.callers import USER, Caller, Tenant
from support.serving import RunningServer

WORDS = ("hall", "menu", "band", "cake", "river", "train", "garden", "kiln", "harbour", "glaze", "ticket", "window")
QUESTIONS = ("Which hall has the river?", "kiln and glaze in the garden", "the train ticket of Ben")
Found = list[tuple[str, float]]


@pytest.fixture
def tenant(postgres_server: RunningServer) -> Tenant:
    return Tenant(postgres_server)


@pytest.fixture
def storage(postgres_server: RunningServer) -> PostgresStorage:
    found = postgres_server.wired.storage
    assert isinstance(found, PostgresStorage)
    return found


@pytest.fixture
def alone(storage: PostgresStorage) -> Iterator[ScopeCache]:
    """A memory of scopes that holds nothing yet."""
    before = storage._scopes
    storage._scopes = ScopeCache(256, 2**28)
    yield storage._scopes
    storage._scopes = before


def answers(caller: Caller, **body: Any) -> list[Found]:  # noqa: ANN401 - fields of the request
    return [
        [(item["id"], item["score"]) for item in caller.ask(question, top_k=40, budget_tokens=50_000, **body)["items"]]
        for question in QUESTIONS
    ]


def scanned(storage: PostgresStorage, caller: Caller) -> list[Found]:
    """What a server answers that remembers nothing."""
    memory, storage._scopes = storage._scopes, None
    try:
        return answers(caller, filters={"user_id": USER})
    finally:
        storage._scopes = memory


def same(one: list[Found], other: list[Found]) -> bool:
    """The same units in the same order, with scores that differ by no more than how sums are rounded."""
    return all(
        [unit for unit, _ in mine] == [unit for unit, _ in theirs]
        and [score for _, score in mine] == pytest.approx([score for _, score in theirs], abs=2e-4)
        for mine, theirs in zip(one, other, strict=True)
    )


def sentence(random: Random) -> str:
    return f"Ana saw the {' '.join(random.sample(WORDS, 3))} number {random.randrange(10_000)}."


def say(caller: Caller, random: Random) -> None:
    caller.say(sentence(random), thread_id=f"t{random.randrange(3)}", actor_id=random.choice(["Ana", "Ben"]))


def remember(caller: Caller, random: Random) -> None:
    body = {"user_id": USER, "category": "tasks", "content": sentence(random), "importance": random.randint(1, 5)}
    assert caller.post("/v1/memories", body).status_code in (200, 201)


def one_of(caller: Caller, random: Random) -> str:
    items = caller.get("/v1/memories", user_id=USER, limit=100).json()["items"]
    return str(random.choice(items)["id"]) if items else ""


def change(caller: Caller, random: Random) -> None:
    if memory := one_of(caller, random):
        caller.patch(f"/v1/memories/{memory}", {"content": sentence(random)})


def verb(caller: Caller, random: Random) -> None:
    if memory := one_of(caller, random):
        caller.post(f"/v1/memories/{memory}/{random.choice(['reinforce', 'demote', 'pin', 'confirm'])}", {})


def end(caller: Caller, random: Random) -> None:
    if memory := one_of(caller, random):
        caller.post(f"/v1/memories/{memory}/{random.choice(['retract', 'reject'])}", {})


STEPS: tuple[Callable[[Caller, Random], None], ...] = (say, say, remember, remember, change, verb, end)


@pytest.mark.parametrize("seed", range(3))
def test_it_answers_as_one_that_remembers_nothing(
    tenant: Tenant, storage: PostgresStorage, alone: ScopeCache, seed: int
) -> None:
    random = Random(seed)  # noqa: S311 - nothing secret
    caller = tenant.caller("supervisor")
    for _ in range(6):
        say(caller, random)
        remember(caller, random)
    answers(caller, filters={"user_id": USER})
    assert len(alone._kept) == 1  # by the second question the scope is held
    for _ in range(25):
        random.choice(STEPS)(caller, random)
        assert same(answers(caller, filters={"user_id": USER}), scanned(storage, caller))
    assert len(alone._kept) == 1


@pytest.fixture
def warm(tenant: Tenant, alone: ScopeCache) -> Caller:
    """One whose scope is remembered, with five memories in it."""
    caller = tenant.caller("supervisor")
    for number in range(5):
        caller.remember(f"The hall number {number} is by the river.")
    for _ in range(3):
        caller.ask("hall", filters={"user_id": USER})
    assert len(alone._kept) == 1
    return caller


def test_what_another_server_wrote_is_found_at_once(warm: Caller, tenant: Tenant) -> None:
    """Written past this server's own use cases, as another one does."""
    (row,) = tenant.rows("SELECT * FROM memories WHERE tenant_id = %(tenant)s LIMIT 1")
    copied = [name for name in row if name not in ("id", "value_hash", "changed_in")]
    tenant.rows(
        f"INSERT INTO memories (id, value_hash, {', '.join(copied)}) SELECT gen_random_uuid(), 'another',"
        f" {', '.join(copied)} FROM memories WHERE id = %(id)s AND tenant_id = %(tenant)s",
        id=row["id"],
    )
    assert len(warm.found("hall", filters={"user_id": USER})) == 6


def test_what_was_removed_is_gone_from_ranks_too(warm: Caller, tenant: Tenant, storage: PostgresStorage) -> None:
    tenant.rows("DELETE FROM relations WHERE tenant_id = %(tenant)s")
    gone = warm.found("hall", filters={"user_id": USER})[0]
    tenant.rows("DELETE FROM memory_entities WHERE memory_id = %(id)s", id=gone)
    tenant.rows("DELETE FROM memories WHERE id = %(id)s", id=gone)
    answer = warm.ask("hall", filters={"user_id": USER})
    assert (len(answer["items"]), answer["usage"]["candidates"]) == (4, 4)
    assert same(answers(warm, filters={"user_id": USER}), scanned(storage, warm))


def test_what_expires_ends_what_is_remembered(warm: Caller, tenant: Tenant, alone: ScopeCache) -> None:
    first = warm.found("hall", filters={"user_id": USER})[0]
    (kept,) = alone._kept.values()
    assert kept.expiry is None
    tenant.rows("UPDATE memories SET expires_at = now(), version = version + 1 WHERE id = %(id)s", id=first)
    answer = warm.ask("hall", filters={"user_id": USER})
    assert (len(answer["items"]), answer["usage"]["candidates"]) == (4, 4)
    lasting = warm.remember("The hall of tomorrow is by the sea.", expires_at="2099-01-01T00:00:00Z")
    assert lasting in warm.found("hall", filters={"user_id": USER})
    (kept,) = alone._kept.values()
    assert kept.expiry is not None
    assert kept.expiry.year == 2099


def test_a_transaction_that_is_open_is_seen_once_it_ends(
    warm: Caller, tenant: Tenant, storage: PostgresStorage
) -> None:
    """What was changed in it has an older number than what others committed meanwhile."""
    (row,) = tenant.rows("SELECT id FROM memories WHERE tenant_id = %(tenant)s ORDER BY id LIMIT 1")
    with psycopg.connect(tenant.server.database.admin_url) as connection:
        connection.execute("UPDATE memories SET state = 'archived', version = version + 1 WHERE id = %s", (row["id"],))
        for number in range(3):
            warm.remember(f"The river has bank number {number} at the hall.")
            assert str(row["id"]) in warm.found("hall", filters={"user_id": USER})
    assert str(row["id"]) not in warm.found("hall", filters={"user_id": USER})
    assert same(answers(warm, filters={"user_id": USER}), scanned(storage, warm))


def test_an_older_look_finds_what_its_moment_had(
    warm: Caller, storage: PostgresStorage, alone: ScopeCache, tenant: Tenant
) -> None:
    """Others have written, and brought what is remembered up to date, since its transaction began."""
    application = tenant.server.wired
    query = Query(terms("hall river"), ("hall", "river"), None)

    def change() -> str:
        first = warm.found("hall", filters={"user_id": USER})[0]
        assert warm.post(f"/v1/memories/{first}/retract", {}).status_code == 200
        new = warm.remember("The hall of glass is by the river.")
        assert new in warm.found("hall", filters={"user_id": USER})
        return new

    async def looked() -> tuple[set[UUID], str, set[UUID], set[UUID]]:
        principal = await application.authenticate(warm.credential)
        policy = application.policies.current
        scope = replace(
            read_scope(principal, policy, policy.readable("supervisor", ()), now(), Filters(user_id=USER)),
            procedures=False,
        ).as_of(None, None)

        async def seen(reader: TenantReader) -> set[UUID]:
            ids = (await reader.candidates(scope, query)).ids
            return {ids[place] for place in range(len(ids))}

        async with storage.reading(principal.reach) as old:
            before = await seen(old)
            new = await asyncio.to_thread(change)
            still = await seen(old)
        async with storage.reading(principal.reach) as later:
            return before, new, still, await seen(later)

    before, new, still, after = tenant.server.run(looked())
    assert len(alone._kept) == 1  # what both looked at
    assert still == before
    assert UUID(new) in after
    assert len(before - after) == 1


def test_many_at_once(warm: Caller, storage: PostgresStorage) -> None:
    def work(number: int) -> bool:
        random = Random(number)  # noqa: S311 - nothing secret
        stored = warm.say(f"Which {sentence(random)}", thread_id=f"t{number % 4}")["turn_id"]
        items = warm.ask(f"number hall {' '.join(WORDS)}", filters={"user_id": USER}, top_k=100, budget_tokens=50_000)
        return stored in [item["id"] for item in items["items"]]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(60)))
    assert same(answers(warm, filters={"user_id": USER}), scanned(storage, warm))


def test_callers_do_not_share_what_they_may_not(tenant: Tenant, alone: ScopeCache) -> None:
    everyone, bound = tenant.caller("supervisor"), tenant.caller("supervisor", users=[USER])
    planner = tenant.caller("planner")
    secret = everyone.remember("The hall has a secret.", "profile")
    for caller in (everyone, bound, planner):
        for _ in range(3):
            seen = caller.found("hall secret", filters={"user_id": USER})
        assert (secret in seen) is (caller is not planner)
    assert len(alone._kept) == 3


def test_a_budget_is_kept(warm: Caller, storage: PostgresStorage, alone: ScopeCache) -> None:
    def asked_about(user: str) -> None:
        warm.remember("The hall is by the river.", user_id=user)
        for _ in range(3):
            assert len(warm.found("hall", filters={"user_id": user})) == 1

    asked_about("user-0")
    one = list(alone._kept.values())[-1].material.bytes
    storage._scopes = small = ScopeCache(256, one * 5 // 2)
    for number in range(1, 5):
        asked_about(f"user-{number}")
    assert len(small._kept) < 4
    assert sum(each.material.bytes for each in small._kept.values()) <= one * 5 // 2
    storage._scopes = none = ScopeCache(256, 0)
    for _ in range(3):
        assert len(warm.found("hall", filters={"user_id": "user-1"})) == 1
    assert not none._kept


def test_further_filters_are_not_remembered(warm: Caller, alone: ScopeCache) -> None:
    for _ in range(3):
        warm.ask("hall", filters={"user_id": USER, "importance_min": 3})
        warm.ask("hall")
    kept = list(alone._kept.values())
    assert (len(kept), all(isinstance(each, CachedScope) for each in kept)) == (1, True)


def test_an_update_that_was_given_up_half_way_is_not_believed(
    warm: Caller, alone: ScopeCache, storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (held,) = alone._kept.values()
    new = warm.remember("The hall number 9 is by the river.")

    def given_up(_kept: CachedScope, _found: object) -> None:
        raise StorageUnavailable("given up")

    with monkeypatch.context() as patch:
        patch.setattr(CachedScope, "put", given_up)
        assert warm.query("hall", filters={"user_id": USER}).status_code == 503
    assert new in warm.found("hall", filters={"user_id": USER})
    (again,) = alone._kept.values()
    assert again is not held
    assert same(answers(warm, filters={"user_id": USER}), scanned(storage, warm))
