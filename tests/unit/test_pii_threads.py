"""What finds personal data may take its time: it is never called where the event loop runs."""

import asyncio
import threading
from collections.abc import Collection, Sequence
from pathlib import Path

from pydantic import SecretStr

from memplane.application.memories.service import NewMemory
from memplane.application.turns.new_turn import NewTurn
from memplane.bootstrap import DEFAULT_TENANT, SQLITE, Application, policies_of, prepare
from memplane.domain.identity.principal import KeyScope, Principal
from memplane.domain.memory.memory import MemoryText, MemoryType, Role
from memplane.domain.policy.policy import Trust
from memplane.domain.privacy.pii import EVERY, Pii, PiiMatch, find
from memplane.settings import Settings

WORKER = Principal(
    tenant=DEFAULT_TENANT, agent="supervisor", trust=Trust.FULL, scopes=frozenset(KeyScope), key_id="k" * 12
)


def test_it_is_called_in_worker_threads_for_memories_changes_turns_and_what_is_drawn(tmp_path: Path) -> None:
    calls: list[tuple[str, int]] = []

    def slow(text: str, only: Collection[Pii] = EVERY) -> Sequence[PiiMatch]:
        calls.append((text, threading.get_ident()))
        return find(text, only)

    settings = Settings(storage="sqlite", database_url=SecretStr(f"{SQLITE}{tmp_path / 'memory.db'}"))
    prepared = prepare(settings)

    async def work() -> None:
        application = Application(settings, prepared.url, policies_of(None, slow))
        await application.open()
        try:
            await application.ensure_tenant(DEFAULT_TENANT)
            new = NewMemory("u", "preferences", MemoryText("Ana likes tea."), MemoryType.SEMANTIC)
            done = await application.remember.create(WORKER, new)
            await application.remember.update(WORKER, done.memory.id, {"content": "Ana likes coffee."})
            turn = NewTurn("u", "t", Role.USER, "My favourite colour is green. I live in Berlin.")
            (stored,) = await application.ingest(WORKER, [turn])
            assert stored.drawn
        finally:
            await application.close()

    asyncio.run(work())
    prepared.stop()
    texts = [text for text, _ in calls]
    assert any("tea" in text for text in texts)
    assert any("coffee" in text for text in texts)
    assert len(texts) > 2  # what was drawn
    assert threading.get_ident() not in {thread for _, thread in calls}
