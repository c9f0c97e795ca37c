"""Personal data under an operator's own rules: what is stored, through whatever way it comes."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import memplane
from memplane.adapters.policy import shipped_policies
from memplane.client import Invalid, Memplane

MAIL, CARD = "ana@example.org", "4111 1111 1111 1111"


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Callable[[Memplane], Awaitable[None]]], None]:
    """Runs a scenario on a file whose policy refuses card numbers, and marks out addresses but in goals."""
    policies = shutil.copytree(shipped_policies(), tmp_path / "policies")
    path = policies / "categories.yaml"
    text = path.read_text(encoding="utf-8").replace("{name: goals,", "{name: goals, pii: {email: tag},")
    path.write_text("pii: {card: refuse, email: redact}\n" + text, encoding="utf-8")

    def scenario(work: Callable[[Memplane], Awaitable[None]]) -> None:
        async def opened() -> None:
            async with memplane.open(tmp_path / "memory.db", policies=policies) as memory:
                await work(memory)

        asyncio.run(opened())

    return scenario


async def everything(memory: Memplane) -> str:
    """All that a reader gets, and what is told of each memory."""
    found = await memory.query("mail card", filters={"user_id": "u"}, top_k=50)
    told = [(await memory.why(item.id)).model_dump_json() for item in found.items if item.category != "activity"]
    return found.model_dump_json() + "".join(told)


def test_each_category_has_its_rules(run: Callable[[Callable[[Memplane], Awaitable[None]]], None]) -> None:
    async def work(memory: Memplane) -> None:
        marked = await memory.remember(f"The mail of Ana is {MAIL}.", user_id="u", category="preferences")
        assert (await memory.get(marked.id)).content == "The mail of Ana is [email]."
        assert MAIL not in await everything(memory)
        with pytest.raises(Invalid) as refused:
            await memory.remember(f"The card is {CARD}.", user_id="u", category="preferences")
        assert refused.value.code == "personal_data_refused"
        kept = await memory.get(
            (await memory.remember(f"The mail of Ana is {MAIL}.", user_id="u", category="goals")).id
        )
        assert (kept.content, kept.pii) == (f"The mail of Ana is {MAIL}.", ["email"])
        assert MAIL in await everything(memory)

    run(work)


def test_changes_corrections_and_moves_are_held_to_them(
    run: Callable[[Callable[[Memplane], Awaitable[None]]], None],
) -> None:
    async def work(memory: Memplane) -> None:
        here = (await memory.remember("Ana has a mail.", user_id="u", category="preferences")).id
        await memory.update(here, content=f"The mail of Ana is {MAIL}.")
        assert (await memory.get(here)).content == "The mail of Ana is [email]."
        right = (await memory.correct(here, f"Ana reads {MAIL}.")).id
        assert (await memory.get(right)).content == "Ana reads [email]."
        there = (await memory.remember(f"Bo reads {MAIL}.", user_id="u", category="goals")).id
        assert MAIL in await everything(memory)
        await memory.update(there, category="preferences", attributes={"to": MAIL})
        moved = await memory.get(there)
        assert (moved.content, moved.attributes, moved.pii) == ("Bo reads [email].", {"to": "[email]"}, [])
        with pytest.raises(Invalid):
            await memory.update(there, content=f"The card is {CARD}.")
        assert (await memory.get(there)).content == "Bo reads [email]."

    run(work)


def test_turns_and_what_is_drawn_from_them_too(run: Callable[[Callable[[Memplane], Awaitable[None]]], None]) -> None:
    async def work(memory: Memplane) -> None:
        said = f"I prefer to get mail at {MAIL}."
        await memory.turn(said, user_id="u", thread_id="t", role="user")
        assert MAIL not in await everything(memory)
        assert "[email]" in await everything(memory)
        with pytest.raises(Invalid) as refused:
            await memory.turn(f"Pay with {CARD}.", user_id="u", thread_id="t", role="user")
        assert refused.value.code == "personal_data_refused"
        assert "1111" not in await everything(memory)

    run(work)
