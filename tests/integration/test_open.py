"""`memplane.open`: the interface of the client on a file, with no server."""

import asyncio
from pathlib import Path

import pytest

import memplane
from memplane.client import Forbidden
from memplane.domain.errors import MemplaneError, StorageUnavailable


async def texts(memory: memplane.client.Memplane, question: str) -> str:
    answer = await memory.query(question, filters={"user_id": "u"})
    return " ".join(item.text for item in answer.items)


def test_what_was_remembered_is_found_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"

    async def first() -> None:
        async with memplane.open(file) as memory:
            await memory.turn("The release moves to September.", user_id="u", thread_id="t", role="user")
            outcome = await memory.remember("Ana ships in May.", user_id="u", category="goals", thread_id="t")
            assert (await memory.get(outcome.id)).content == "Ana ships in May."
            assert "September" in await texts(memory, "When is the release?")

    async def later() -> None:
        async with memplane.open(str(file)) as memory:
            assert "May" in await texts(memory, "When does Ana ship?")
            assert (await memory.delta("t", user_id="u")).rev == 2

    asyncio.run(first())
    asyncio.run(later())
    assert [path.name for path in tmp_path.iterdir()] == ["memory.db"]
    assert file.stat().st_mode & 0o077 == 0


def test_two_agents_share_a_file_and_each_sees_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        file = tmp_path / "memory.db"
        async with memplane.open(file) as supervisor, memplane.open(file, agent="planner") as planner:
            await supervisor.turn("The release moves to September.", user_id="u", thread_id="t", role="user")
            await supervisor.remember("Ana ships in May.", user_id="u", category="goals")
            assert "May" in await texts(planner, "When does Ana ship?")
            assert "September" not in await texts(planner, "When is the release?")
            assert "September" in await texts(supervisor, "When is the release?")
            with pytest.raises(Forbidden) as refused:
                await planner.query("release", categories=["activity"], filters={"user_id": "u"})
            assert refused.value.code == "category_forbidden"
            assert await planner.query("ship", categories=["goals"], filters={"user_id": "u"})  # one of its own is not

    asyncio.run(scenario())


def test_what_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear Ana, this is no database. " * 300)
    before = letter.read_bytes()

    async def opened(path: Path, **options: str) -> None:
        async with memplane.open(path, **options):
            raise AssertionError("it was opened")

    with pytest.raises(StorageUnavailable, match=r"letter\.txt: cannot be used as a database"):
        asyncio.run(opened(letter))
    assert letter.read_bytes() == before
    with pytest.raises(StorageUnavailable, match="cannot be used"):
        asyncio.run(opened(tmp_path))
    with pytest.raises(MemplaneError, match="nobody"):
        asyncio.run(opened(tmp_path / "memory.db", agent="nobody"))
