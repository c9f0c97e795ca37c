"""Writers of one user wait for each other; others do not wait for them."""

import asyncio

import pytest

from memplane.application.limits import user_queues
from memplane.application.limits.user_queues import UnderWay, UserQueues
from memplane.domain.errors import StorageUnavailable


def test_one_user_is_written_by_one_at_a_time() -> None:
    async def scenario() -> list[str]:
        users, told = UserQueues(), []
        begun = asyncio.Event()

        async def write(name: str, *written: str) -> None:
            async with users.of("t", written):
                told.append(f"{name} in")
                begun.set()
                for _ in range(5):
                    await asyncio.sleep(0)
                told.append(f"{name} out")

        first = asyncio.create_task(write("first", "ana", "ben"))
        await begun.wait()
        await asyncio.gather(write("second", "ben"), write("third", "cleo"))
        await first
        return told

    told = asyncio.run(scenario())
    assert told.index("first out") < told.index("second in")
    assert told.index("third in") < told.index("first out")  # the control: another user waits for nobody


def test_tenants_have_queues_of_their_own() -> None:
    async def scenario() -> None:
        users = UserQueues()
        async with users.of("t1", ["ana"]), asyncio.timeout(5), users.of("t2", ["ana"]):
            pass

    asyncio.run(scenario())


def test_who_waits_too_long_is_told_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_queues, "PATIENCE_SECONDS", 0.01)

    async def scenario() -> None:
        users = UserQueues()
        async with users.of("t", ["ana"]):
            with pytest.raises(StorageUnavailable):
                async with users.of("t", ["ben", "ana"]):
                    pass
            async with users.of("t", ["ben"]):  # what was taken before is given back
                pass
        async with users.of("t", ["ana", "ana"]):  # and a name said twice is one
            pass

    asyncio.run(scenario())


def test_what_comes_after_a_request_waits_until_it_is_over() -> None:
    async def scenario() -> list[str]:
        requests, told = UnderWay(), []

        async def later() -> None:
            await requests.over(("key", "first"))
            told.append("second in")

        with requests.under_name(("key", "first")):
            with requests.under_name(("key", "first")):  # sent again meanwhile
                waiting = asyncio.create_task(later())
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            await requests.over(("key", "other"))  # the control: nothing is under way by this name
            told.append("first out")
        await waiting
        await requests.over(("key", "first"))
        return told

    assert asyncio.run(scenario()) == ["first out", "second in"]


def test_who_waits_too_long_for_a_request_is_told_to_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_queues, "PATIENCE_SECONDS", 0.01)

    async def scenario() -> None:
        requests = UnderWay()
        with requests.under_name(("key", "first")), pytest.raises(StorageUnavailable):
            await requests.over(("key", "first"))

    asyncio.run(scenario())
