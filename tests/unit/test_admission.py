"""Whose turn it is: tenants in turn, none of whom can take all places."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from memplane.application.limits.admission import LONG_SECONDS, REMEMBERED_SECONDS, Admission
from memplane.domain.errors import StorageUnavailable

PATIENCE = 30.0
PLACES, SHARE = 8, 2


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Work:
    """Requests that are worked on until the test says that one is done."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._tasks: list[asyncio.Task[None]] = []
        self._begun: list[tuple[str, asyncio.Event]] = []
        self.order: list[str] = []

    async def ask(self, tenant: str, times: int = 1) -> list[asyncio.Task[None]]:
        """Requests of a tenant, each of which begins or waits."""
        asked = [asyncio.create_task(self._request(tenant)) for _ in range(times)]
        self._tasks += asked
        await settled()
        return asked

    async def _request(self, tenant: str) -> None:
        async with self._admission.turn(tenant):
            self.order.append(tenant)
            done = asyncio.Event()
            self._begun.append((tenant, done))
            await done.wait()

    def at_work(self) -> Counter[str]:
        """How many requests of each tenant are worked on."""
        return Counter(tenant for tenant, _ in self._begun)

    async def finish(self, tenant: str | None = None) -> None:
        """One is done: the one that began first, of any tenant or of this one."""
        place = next(place for place, (name, _) in enumerate(self._begun) if tenant in {None, name})
        self._begun.pop(place)[1].set()
        await settled()

    async def finish_all(self) -> None:
        """All are done, also those that wait."""
        while self._begun:
            await self.finish()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def settled() -> None:
    """Let everything that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


async def until(happened: Callable[[], bool]) -> None:
    """Wait for what a timer brings."""
    async with asyncio.timeout(PATIENCE):
        while not happened():  # noqa: ASYNC110 - a timer sets no event
            await asyncio.sleep(0.01)


def tell(
    story: Callable[[Work, Clock], Awaitable[None]],
    places: int = PLACES,
    share: int = SHARE,
    patience: float = PATIENCE,
) -> None:
    """Run a story of requests to its end."""

    async def told() -> None:
        clock = Clock()
        work = Work(Admission(places, share, patience, clock))
        await story(work, clock)
        await work.finish_all()

    asyncio.run(told())


def test_alone_a_tenant_has_all_places_but_a_share() -> None:
    async def story(work: Work, _: Clock) -> None:
        await work.ask("loud", 100)
        assert work.at_work() == {"loud": PLACES - SHARE}
        await work.ask("quiet")
        assert work.at_work() == {"loud": PLACES - SHARE, "quiet": 1}  # at once

    tell(story)


def test_beside_another_a_tenant_has_one_place() -> None:
    async def story(work: Work, _: Clock) -> None:
        await work.ask("quiet")
        await work.finish("quiet")
        await work.ask("loud", 100)
        assert work.at_work() == {"loud": 1}
        await work.finish("loud")
        assert work.at_work() == {"loud": 1}

    tell(story)


def test_a_request_that_takes_long_has_another_beside_it() -> None:
    async def story(work: Work, clock: Clock) -> None:
        await work.ask("quiet")
        await work.ask("loud", 100)
        clock.now += LONG_SECONDS
        await until(lambda: work.at_work()["loud"] == SHARE)  # by itself, with nothing else that happens
        clock.now += LONG_SECONDS
        await work.ask("loud")
        assert work.at_work() == {"quiet": 1, "loud": SHARE}  # but no third
        await work.finish("loud")
        assert work.at_work() == {"quiet": 1, "loud": SHARE}
        await work.finish("loud")
        assert work.at_work() == {"quiet": 1, "loud": 1}  # the one that is there began a moment ago

    tell(story)


def test_a_tenant_that_was_not_heard_of_for_long_leaves_the_places_to_others() -> None:
    async def story(work: Work, clock: Clock) -> None:
        await work.ask("quiet")
        await work.finish("quiet")
        clock.now += REMEMBERED_SECONDS - 1
        await work.ask("loud", 50)
        assert work.at_work() == {"loud": 1}
        clock.now += 1
        await work.ask("loud")
        await work.finish("loud")
        assert work.at_work() == {"loud": PLACES - SHARE}

    tell(story)


def test_one_whose_request_takes_long_is_not_forgotten() -> None:
    async def story(work: Work, clock: Clock) -> None:
        await work.ask("slow")
        clock.now += 2 * REMEMBERED_SECONDS
        await work.ask("loud", 50)
        assert work.at_work() == {"slow": 1, "loud": 1}

    tell(story)


def test_those_that_always_ask_are_served_in_turn() -> None:
    async def story(work: Work, _: Clock) -> None:
        for number, times in enumerate((100, 10, 10, 10)):
            await work.ask(f"t{number}", times)
        begun = len(work.order)
        for _ in range(12):
            await work.finish()
        assert Counter(work.order[begun:]) == {"t0": 3, "t1": 3, "t2": 3, "t3": 3}

    tell(story, places=2)


def test_one_that_asks_now_and_then_is_next_whoever_waits() -> None:
    async def story(work: Work, _: Clock) -> None:
        await work.ask("quiet")
        await work.finish("quiet")
        for number in range(5):
            await work.ask(f"loud {number}", 20)
        for _ in range(9):
            await work.finish()
        await work.ask("quiet")
        assert "quiet" not in work.at_work()
        await work.finish()
        assert work.at_work()["quiet"] == 1

    tell(story, places=2)


def test_requests_of_one_tenant_keep_their_order() -> None:
    async def story(work: Work, _: Clock) -> None:
        asked = await work.ask("loud", 20)
        for number in range(18):
            await work.finish()
            assert [task.done() for task in asked] == [True] * (number + 1) + [False] * (19 - number)

    tell(story, places=SHARE)


def test_who_waits_too_long_is_told_to_come_again() -> None:
    async def story(work: Work, _: Clock) -> None:
        asked = await work.ask("loud", SHARE + 1)
        with pytest.raises(StorageUnavailable):
            await asked[-1]
        assert work.at_work() == {"loud": SHARE}
        await work.ask("loud")
        await work.finish()
        assert work.at_work() == {"loud": SHARE}  # who gave up takes nobody's place

    tell(story, places=SHARE, patience=0.01)


@pytest.mark.parametrize("called", [False, True])
def test_who_goes_away_while_it_waits_leaves_its_place(called: bool) -> None:
    async def story(work: Work, _: Clock) -> None:
        asked = await work.ask("loud", SHARE + 3)
        if called:
            work._begun.pop()[1].set()
            await asyncio.sleep(0)  # its place is given to the first that waits, which has not gone on yet
        asked[SHARE].cancel()
        await settled()
        assert work.at_work() == {"loud": SHARE}
        await work.finish()
        await work.finish()
        assert work.at_work() == {"loud": SHARE - called}
        assert work.order == ["loud"] * (SHARE + 2)

    tell(story, places=SHARE)


def test_a_request_that_fails_gives_its_place_back() -> None:
    async def story(work: Work, _: Clock) -> None:
        asked = await work.ask("loud", SHARE + 1)
        asked[0].cancel()
        await settled()
        assert work.order == ["loud"] * (SHARE + 1)

    tell(story, places=SHARE)


def test_without_a_share_nobody_waits() -> None:
    async def story(work: Work, _: Clock) -> None:
        await work.ask("quiet")
        await work.ask("loud", 100)
        assert work.at_work() == {"quiet": 1, "loud": 100}

    tell(story, share=0)
