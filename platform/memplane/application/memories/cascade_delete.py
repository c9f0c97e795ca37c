"""What came of a memory follows it when it is deleted, into whatever user and store it was copied."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from uuid import UUID

from memplane.application.memories.authorization import AUTHORITY, LASTING
from memplane.application.memories.gateway import Write
from memplane.application.memories.supersession import as_deleted
from memplane.domain.memory.delta import ChangeEvent
from memplane.domain.memory.derivation import SOURCE_DELETED, Fate, concluded_by, fate, without
from memplane.domain.memory.history import HistoryEvent
from memplane.domain.memory.memory import Memory


async def cascade_delete(write: Write, sources: Sequence[UUID], removed: Collection[UUID] = ()) -> list[Memory]:
    """Delete what was derived from deleted sources alone, and what was derived from that; the caller settles the write.

    What stays names the sources no longer. Each change is told in the history with its cause. A job that concluded
    something that goes looks at its user again.

    Args:
        write: the write under way, with the user of the sources locked.
        sources: memories or turns that are deleted in it.
        removed: those of them that cannot be restored: nothing names them any more, whatever becomes of it.

    Returns:
        What was deleted.
    """
    if write.principal.users is not None:  # what was copied to other users follows, though the key be bound to some
        await write.uow.reach_every_user()
    gone: dict[UUID, Memory] = {}
    following = tuple(sources)
    while following:
        ended: list[UUID] = []
        # whoever writes one of them just now has read it already: their users first, and then what they are
        await write.uow.lock_users(await write.uow.upkeep.users_of_derived(following))
        for each in await write.uow.upkeep.lock_derived(following):
            if each.id in gone or each.id in sources:
                continue
            if await _followed(write, each, following, removed):
                gone[each.id] = each
                ended.append(each.id)
        following = tuple(ended)
    for user, job in sorted({(each.user_id, job) for each in gone.values() if (job := concluded_by(each))}):
        await write.uow.job_users.forget(job, user)
    return list(gone.values())


async def _followed(write: Write, memory: Memory, sources: Sequence[UUID], removed: Collection[UUID]) -> bool:
    """Let one memory follow its sources; whether it is deleted now."""
    if memory.state in LASTING and fate(memory, sources, AUTHORITY[write.principal.trust]) is Fate.GOES:
        await delete_with_sources(write, without(memory, removed), memory, sources)
        return True
    lasting = memory.state in LASTING
    left = without(memory, sources if lasting else removed)
    if left.source_ids == memory.source_ids:
        return False
    after = replace(left, updated_at=write.now if lasting else memory.updated_at, version=memory.version + 1)
    await write.uow.memories.replace(after, None)
    if lasting:
        write.record_change(HistoryEvent.UPDATE, None, after, memory, _cause(memory, sources))
    return False


async def delete_with_sources(write: Write, memory: Memory, before: Memory, sources: Sequence[UUID]) -> None:
    """Delete a memory because of its sources, and note that."""
    after = as_deleted(write, memory)
    await write.uow.memories.replace(after, None)
    write.record_change(HistoryEvent.DELETE, ChangeEvent.SOFT_DELETED, after, before, _cause(before, sources))


def _cause(memory: Memory, sources: Sequence[UUID]) -> dict[str, object]:
    named = sorted(str(each) for each in set(memory.source_ids) & set(sources))
    return {"cause": SOURCE_DELETED, "sources": named}
