"""Rates over HTTP: a key that asks too often is told when to come again, and nobody else notices."""

import asyncio
import json
from collections.abc import Callable, Iterator

import httpx2
import psycopg
import pytest

from memplane.client import Memplane, RateLimited
from memplane.domain.policy.capabilities import Capability
from support.callers import THREAD, USER, Caller, Tenant, refused
from support.serving import RunningServer

Start = Callable[..., RunningServer]


def until_refused(caller: Caller, most: int = 200) -> tuple[int, httpx2.Response]:
    """How many questions were answered before one was refused."""
    for answered in range(most):
        response = caller.query("hall")
        if response.status_code != 200:
            return answered, response
    pytest.fail(f"{most} questions, and none was refused")


def test_a_key_that_asks_too_often_is_told_when_to_come_again(start_server: Start) -> None:
    tenant = Tenant(start_server(rate_per_second=0.1, rate_burst=20))
    caller, colleague = tenant.caller(), tenant.caller()
    answered, response = until_refused(caller)
    problem = refused(response, 429, "rate_limited")
    assert answered == 20
    assert response.headers["Retry-After"] == str(problem["retry_after"])
    assert 1 <= problem["retry_after"] <= 10
    assert colleague.query("hall").status_code == 200


def test_every_guarded_call_is_counted_and_health_is_not(start_server: Start) -> None:
    tenant = Tenant(start_server(rate_per_second=0.1, rate_burst=2))
    caller = tenant.caller()
    assert caller.get("/v1/memories").status_code == 200
    turn = {"user_id": USER, "thread_id": THREAD, "role": "user", "text": "The hall is booked."}
    assert caller.post("/v1/turns", turn).status_code == 201
    for refusal in (caller.get("/v1/memories"), caller.post("/v1/turns", turn), caller.query("hall")):
        refused(refusal, 429, "rate_limited")
    assert tenant.count("turns") == 1
    for _ in range(50):
        assert caller.get("/healthz").status_code == caller.get("/readyz").status_code == 200


def test_a_refusal_does_no_work(start_server: Start) -> None:
    """It comes before the body is read: what could not even be parsed is refused in the same way."""
    caller = Tenant(start_server(rate_per_second=0.01, rate_burst=1)).caller()
    json_body = {"Content-Type": "application/json"}
    assert caller.send("POST", "/v1/memory/query", content="{", headers=json_body).status_code == 422
    refused(caller.send("POST", "/v1/memory/query", content="{", headers=json_body), 429, "rate_limited")


@pytest.mark.untold("POST /v1/memory/query: 500")
def test_a_refusal_that_is_foretold_needs_no_database(start_server: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memplane.application.limits.refusals.KNOWN_SECONDS", 600.0)
    server = start_server(rate_per_second=0.01, rate_burst=3)
    tenant = Tenant(server)
    caller, colleague = tenant.caller(), tenant.caller()
    stranger = Caller(caller.client, f"mp_{caller.key_id}_wrong")
    assert colleague.query("hall").status_code == 200
    until_refused(caller)
    server.run(server.wired.storage.close())
    for _ in range(20):
        refused(caller.query("hall"), 429, "rate_limited")
        refused(caller.send("POST", "/v1/memory/query", content="{"), 429, "rate_limited")
    assert colleague.query("hall").status_code >= 500  # the control: whoever is not refused needs it
    assert stranger.query("hall").status_code >= 500  # and the key's id alone tells nothing


@pytest.mark.parametrize(("seconds", "answer"), [(600.0, (429, "rate_limited")), (0.0, (401, "unauthenticated"))])
def test_a_key_that_was_revoked_meanwhile_is_refused_as_before_for_a_moment(
    start_server: Start, monkeypatch: pytest.MonkeyPatch, seconds: float, answer: tuple[int, str]
) -> None:
    monkeypatch.setattr("memplane.application.limits.refusals.KNOWN_SECONDS", seconds)
    server = start_server(rate_per_second=0.01, rate_burst=3)
    tenant = Tenant(server)
    caller = tenant.caller()
    until_refused(caller)
    server.run(server.wired.keys.revoke(tenant.name, caller.key_id))
    refused(caller.query("hall"), *answer)


def test_a_caller_without_a_key_takes_nothing_from_one(start_server: Start) -> None:
    caller = Tenant(start_server(rate_per_second=0.01, rate_burst=3)).caller()
    stranger = Caller(caller.client, f"mp_{caller.key_id}_wrong")
    for _ in range(20):
        refused(stranger.query("hall"), 401, "unauthenticated")
    assert until_refused(caller)[0] == 3


def test_a_large_body_costs_more(start_server: Start) -> None:
    tenant = Tenant(start_server(rate_per_second=0.01, rate_burst=30))
    caller, other = tenant.caller(), tenant.caller()
    turns = [{"user_id": USER, "thread_id": THREAD, "role": "user", "text": "hall " * 60} for _ in range(500)]
    assert caller.post("/v1/turns:batch", {"turns": turns}).status_code == 201
    assert until_refused(caller)[0] < 10
    assert until_refused(other)[0] == 30


def test_a_large_body_without_a_length_costs_as_much(start_server: Start) -> None:
    caller = Tenant(start_server(rate_per_second=0.01, rate_burst=30)).caller()
    turns = [{"user_id": USER, "thread_id": THREAD, "role": "user", "text": "hall " * 60} for _ in range(500)]
    body = json.dumps({"turns": turns}).encode()

    def pieces() -> Iterator[bytes]:
        yield from (body[i : i + 10_000] for i in range(0, len(body), 10_000))

    sent = caller.send("POST", "/v1/turns:batch", content=pieces(), headers={"Content-Type": "application/json"})
    assert sent.status_code == 201, sent.text
    assert until_refused(caller)[0] < 10


def test_it_may_ask_again_after_the_time_that_it_was_told(start_server: Start) -> None:
    """The client waits for as long as it is told, and gets its answer."""
    server = start_server(rate_per_second=0.5, rate_burst=2)
    caller = Tenant(server).caller()
    until_refused(caller)
    assert caller.credential is not None

    async def asked(retries: int) -> None:
        async with Memplane(server.url, caller.credential or "", retries=retries) as memory:
            await memory.query("hall")

    with pytest.raises(RateLimited) as told:
        asyncio.run(asked(0))
    assert told.value.retry_after in {1, 2}  # a token takes two seconds
    asyncio.run(asked(3))


def test_no_limit_where_the_operator_wants_none(start_server: Start) -> None:
    caller = Tenant(start_server(rate_per_second=0, rate_burst=1)).caller()
    assert [caller.query("hall").status_code for _ in range(50)] == [200] * 50


@pytest.mark.needs(Capability.SHARED_RATES)
class TestShared:
    """Several servers on one database."""

    def test_two_servers_share_a_key_s_bucket(self, start_server: Start) -> None:
        settings = {"rate_per_second": 0.01, "rate_burst": 30}
        first, second = start_server(**settings), start_server(**settings)
        caller = Tenant(first).caller()
        elsewhere = Caller(second.client, caller.credential, caller.key_id)
        answered = [(caller if turn % 2 else elsewhere).query("hall").status_code for turn in range(60)]
        assert answered.count(200) == 30
        assert set(answered) == {200, 429}

    def test_a_bucket_outlives_its_server(self, start_server: Start) -> None:
        settings = {"rate_per_second": 0.01, "rate_burst": 3}
        caller = Tenant(start_server(**settings)).caller()
        until_refused(caller)
        again = Caller(start_server(**settings).client, caller.credential)
        refused(again.query("hall"), 429, "rate_limited")

    def test_the_bucket_is_the_key_s_tenant_s_alone(self, start_server: Start) -> None:
        tenant = Tenant(start_server(rate_per_second=100))
        caller = tenant.caller()
        assert caller.query("hall").status_code == 200
        kept = tenant.rows("SELECT key_id, tokens FROM rate_limits WHERE tenant_id = %(tenant)s")
        assert [row["key_id"] for row in kept] == [caller.key_id]
        assert tenant.rows_as_application("SELECT * FROM rate_limits", named=False) == []
        assert len(tenant.rows_as_application("SELECT * FROM rate_limits")) == 1

    def test_a_crash_of_the_database_only_fills_the_buckets(self, start_server: Start) -> None:
        """PostgreSQL empties an unlogged table when it recovers; a key whose row is gone begins with a full bucket."""
        tenant = Tenant(start_server(rate_per_second=0.01, rate_burst=3))
        caller = tenant.caller()
        until_refused(caller)
        with psycopg.connect(tenant.server.database.admin_url) as connection:  # type: ignore[union-attr]  # it is PostgreSQL
            found = connection.execute("SELECT relpersistence FROM pg_class WHERE relname = 'rate_limits'")
            assert found.fetchone() == ("u",)
            connection.execute("TRUNCATE rate_limits")
        fresh = Caller(start_server(rate_per_second=0.01, rate_burst=3).client, caller.credential)
        assert until_refused(fresh)[0] == 3
