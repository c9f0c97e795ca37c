"""What came of a memory follows it when it is deleted, into whatever user and store it was copied."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from memplane.application.beside import deleted
from memplane.application.gateway import Write
from memplane.application.targets import AUTHORITY, LASTING
from memplane.domain.delta import ChangeEvent
from memplane.domain.derivation import SOURCE_DELETED, Fate, fate, without
from memplane.domain.history import HistoryEvent
from memplane.domain.memory import Memory


async def follow(write: Write, sources: Sequence[UUID]) -> None:
    """Delete what was derived from deleted sources alone, and what was derived from that; the caller settles its user.

    What stays names the sources no longer. Each change is told in the history with its cause.

    Args:
        write: the write under way, with the user of the sources locked.
        sources: memories or turns that are deleted in it.
    """
    gone: list[UUID] = []
    following, others = tuple(sources), set[str]()
    while following:
        ended: list[UUID] = []
        for each in await write.uow.upkeep.derived(following):
            others.add(each.user_id)
            if each.id in gone or each.id in sources:
                continue
            if await _followed(write, each, following):
                ended.append(each.id)
        gone += ended
        following = tuple(ended)
    for user in sorted(others):
        await write.settle(user, None)


async def _followed(write: Write, memory: Memory, sources: Sequence[UUID]) -> bool:
    """Let one memory follow its sources; whether it is deleted now."""
    left = without(memory, sources)
    named = sorted(str(each) for each in set(memory.source_ids) & set(sources))
    meta = {"cause": SOURCE_DELETED, "sources": named}
    if memory.state in LASTING and fate(memory, sources, AUTHORITY[write.principal.trust]) is Fate.GOES:
        after = deleted(write, memory)
        await write.uow.memories.replace(after, None)
        write.changed(HistoryEvent.DELETE, ChangeEvent.SOFT_DELETED, after, memory, meta)
        return True
    after = replace(left, updated_at=write.now, version=memory.version + 1)
    if memory.state in LASTING:
        await write.uow.memories.replace(after, None)
        write.changed(HistoryEvent.UPDATE, None, after, memory, meta)
    return False
