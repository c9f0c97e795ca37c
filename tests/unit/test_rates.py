"""Rates: how many tokens go out, what a process takes in advance, and what a refusal costs."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.adapters.sqlite.rate_buckets import LocalBuckets
from memplane.application.limits.rate_limits import BYTES_PER_TOKEN, PORTION, RateLimits, cost_of
from memplane.application.records import Draw, Rate, TokenGrant
from memplane.domain.errors import RateLimitExceeded
from memplane.domain.identity.principal import Principal
from memplane.domain.policy.policy import Trust
from memplane.settings import Settings


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Shared:
    """The real buckets of one process, as several servers would share them; counts how often they are asked."""

    def __init__(self, clock: Clock) -> None:
        self._buckets = LocalBuckets(clock)
        self.asked = 0

    async def draw(self, draw: Draw, rate: Rate) -> TokenGrant:
        self.asked += 1
        await asyncio.sleep(0)  # a round trip lets others go on
        return self._buckets.draw(draw, rate)


def caller(key: str = "k", tenant: str = "t") -> Principal:
    return Principal(tenant, "planner", Trust.FULL, frozenset(), key)


def served(limits: RateLimits, tokens: int = 1, key: str = "k", tenant: str = "t") -> bool:
    try:
        asyncio.run(limits.take(caller(key, tenant), tokens))
    except RateLimitExceeded:
        return False
    return True


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shared(clock: Clock) -> Shared:
    return Shared(clock)


@pytest.fixture
def limits(shared: Shared, clock: Clock) -> Callable[[Rate | None], RateLimits]:
    return lambda rate: RateLimits(shared, rate, clock)


def test_the_burst_goes_out_and_then_the_rate(limits: Callable[[Rate | None], RateLimits], clock: Clock) -> None:
    limited = limits(Rate(10, 50))
    assert [served(limited) for _ in range(60)] == [True] * 50 + [False] * 10
    clock.now += 1
    assert [served(limited) for _ in range(20)] == [True] * 10 + [False] * 10
    clock.now += 3_600
    assert sum(served(limited) for _ in range(100)) == 50


def test_keys_and_tenants_have_buckets_of_their_own(limits: Callable[[Rate | None], RateLimits]) -> None:
    limited = limits(Rate(1, 5))
    assert [served(limited) for _ in range(6)] == [True] * 5 + [False]
    assert served(limited, key="another")
    assert served(limited, tenant="another")


def test_without_a_rate_nobody_is_counted(limits: Callable[[Rate | None], RateLimits], shared: Shared) -> None:
    assert all(served(limits(None)) for _ in range(100))
    assert shared.asked == 0


def test_the_refusal_says_when_there_will_be_enough(limits: Callable[[Rate | None], RateLimits], clock: Clock) -> None:
    limited = limits(Rate(2, 20))
    assert served(limited, 20)
    with pytest.raises(RateLimitExceeded) as refused:
        asyncio.run(limited.take(caller(), 5))
    assert refused.value.extra == {"retry_after": 3}  # 2.5 s, in whole seconds
    clock.now += 2.4
    assert not served(limited, 5)
    clock.now += 0.1
    assert served(limited, 5)
    with pytest.raises(RateLimitExceeded) as refused:
        asyncio.run(limited.take(caller(), 1))
    assert refused.value.extra == {"retry_after": 1}


def test_what_costs_more_than_a_full_bucket_empties_it(limits: Callable[[Rate | None], RateLimits]) -> None:
    limited = limits(Rate(1, 5))
    assert served(limited, 1_000)
    assert not served(limited)


def test_a_refusal_asks_nobody_until_there_can_be_tokens(
    limits: Callable[[Rate | None], RateLimits], shared: Shared, clock: Clock
) -> None:
    limited = limits(Rate(1, 5))
    while served(limited):
        pass
    asked = shared.asked
    assert not any(served(limited) for _ in range(1_000))
    assert shared.asked == asked
    clock.now += 1
    assert served(limited)
    assert shared.asked == asked + 1


def test_a_refusal_is_foretold_and_nothing_is_taken_by_that(
    limits: Callable[[Rate | None], RateLimits], shared: Shared, clock: Clock
) -> None:
    limited = limits(Rate(1, 5))
    limited.foretell(caller(), 1)  # nothing is known of this key yet
    while served(limited):
        pass
    asked = shared.asked
    for _ in range(100):
        with pytest.raises(RateLimitExceeded) as refused:
            limited.foretell(caller(), 1)
        assert refused.value.extra == {"retry_after": 1}
    limited.foretell(caller("another"), 1)
    clock.now += 1
    for _ in range(100):
        limited.foretell(caller(), 1)
    with pytest.raises(RateLimitExceeded):
        limited.foretell(caller(), 2)
    assert shared.asked == asked
    assert served(limited)
    limits(None).foretell(caller(), 1_000)


def test_a_portion_saves_most_of_the_asking(limits: Callable[[Rate | None], RateLimits], shared: Shared) -> None:
    limited = limits(Rate(100, 500))
    assert all(served(limited) for _ in range(500))
    assert shared.asked == 500 / PORTION


def test_a_slow_key_gets_no_more_than_a_tenth_of_a_second_at_once(
    limits: Callable[[Rate | None], RateLimits], shared: Shared
) -> None:
    limited = limits(Rate(20, 500))
    assert all(served(limited) for _ in range(100))
    assert shared.asked == 50


def test_many_at_once_get_what_there_is(limits: Callable[[Rate | None], RateLimits], shared: Shared) -> None:
    limited = limits(Rate(100, 100))

    async def all_at_once() -> list[object]:
        return await asyncio.gather(*(limited.take(caller(), 1) for _ in range(300)), return_exceptions=True)

    told = asyncio.run(all_at_once())
    assert sum(answer is None for answer in told) == 100
    assert sum(isinstance(answer, RateLimitExceeded) for answer in told) == 200
    assert shared.asked < 20


def test_one_that_goes_away_while_it_waits_holds_nobody_up(limits: Callable[[Rate | None], RateLimits]) -> None:
    limited = limits(Rate(1, 100))

    async def cancelled() -> None:
        waiting = [asyncio.create_task(limited.take(caller(), 1)) for _ in range(20)]
        await asyncio.sleep(0)
        for task in waiting[:10]:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await limited.take(caller(), 1)

    asyncio.run(cancelled())


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 30), st.floats(0, 2)), min_size=1, max_size=60))
def test_all_processes_together_keep_to_the_rate(requests: list[tuple[int, int, float]]) -> None:
    clock, rate = Clock(), Rate(5, 40)
    shared = Shared(clock)
    servers = [RateLimits(shared, rate, clock) for _ in range(4)]
    begun, given_out = clock.now, 0
    for server, tokens, seconds in requests:
        clock.now += seconds
        if served(servers[server], tokens):
            given_out += tokens
    assert given_out <= rate.burst + rate.per_second * (clock.now - begun) + 1e-6


@given(st.lists(st.floats(0, 2), min_size=1, max_size=40))
def test_a_key_that_keeps_to_the_rate_is_never_refused(pauses: list[float]) -> None:
    clock, rate = Clock(), Rate(5, 40)
    servers = [RateLimits(shared, rate, clock) for shared in [Shared(clock)] for _ in range(2)]
    for turn, pause in enumerate(pauses):
        clock.now += pause + 1 / rate.per_second
        assert served(servers[turn % 2])


def test_the_rate_that_nobody_chose_is_one_that_a_team_does_not_meet() -> None:
    settings = Settings()
    assert (settings.rate_per_second, settings.rate_burst) == (100, 500)


def test_a_batch_costs_more_than_a_question() -> None:
    assert cost_of(0) == cost_of(200) == 1
    assert cost_of(BYTES_PER_TOKEN) == 2
    assert cost_of(1_000 * 330) == 41  # a thousand turns of common length
